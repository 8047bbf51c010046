//! Parts of one aligned buffer, each owned on its own.
//!
//! Why: an allocator gives every aligned allocation of 8 kB a header of its own, and so makes it
//! take 12 kB. Parts of one large buffer lie one behind the other, and can still be lent, moved to
//! another thread and filled one by one. The buffer is freed with the last of its parts.
//!
//! Invariants: `start` points to `LEN` initialized bytes within the buffer that `buffer` keeps
//! alive; no two parts overlap; nothing reaches these bytes but through their part.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::aligned_buffer::{ALIGNMENT, AlignedBuffer};

/// `LEN` bytes, aligned to [`ALIGNMENT`], of a buffer shared with other parts. `LEN` is a multiple
/// of [`ALIGNMENT`], and not 0.
pub struct AlignedPart<const LEN: usize> {
    start: NonNull<[u8; LEN]>,
    _buffer: Arc<AlignedBuffer>,
}

impl<const LEN: usize> AlignedPart<LEN> {
    /// `count` parts of a new buffer, zero at first, in the order of their addresses.
    ///
    /// Many parts cost no memory until they are touched, as for [`AlignedBuffer`].
    ///
    /// # Panics
    /// As [`AlignedBuffer::zeroed`], of all their bytes together.
    pub fn zeroed(count: usize) -> Vec<Self> {
        const { assert!(LEN > 0 && LEN.is_multiple_of(ALIGNMENT)) }
        let mut buffer = AlignedBuffer::zeroed(count.saturating_mul(LEN));
        let base = buffer.as_mut_ptr();
        let buffer = Arc::new(buffer);
        let part = |index| {
            // SAFETY: `index` is below `count`, so the part lies within the buffer's bytes and its
            // offset did not overflow; a pointer into a buffer that is not empty is not null.
            let start = unsafe { NonNull::new_unchecked(base.add(index * LEN)) };
            Self { start: start.cast(), _buffer: buffer.clone() }
        };
        (0..count).map(part).collect()
    }
}

impl<const LEN: usize> Deref for AlignedPart<LEN> {
    type Target = [u8; LEN];

    #[inline]
    fn deref(&self) -> &[u8; LEN] {
        // SAFETY: `start` points to `LEN` initialized bytes that the buffer keeps alive as long as
        // `self`. Only this part reaches them, because the buffer itself is never looked at again
        // and no other part overlaps, so the shared borrow of `self` excludes every writer.
        unsafe { self.start.as_ref() }
    }
}

impl<const LEN: usize> DerefMut for AlignedPart<LEN> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8; LEN] {
        // SAFETY: as in `deref`; the exclusive borrow of `self` excludes every other access.
        unsafe { self.start.as_mut() }
    }
}

// SAFETY: the bytes belong to this part alone and are plain data, so another thread may take them
// over; the buffer they lie in is shared through an `Arc`, and may be freed by any thread.
unsafe impl<const LEN: usize> Send for AlignedPart<LEN> {}
// SAFETY: a shared reference only lets the bytes be read, exactly as with `Box<[u8]>`.
unsafe impl<const LEN: usize> Sync for AlignedPart<LEN> {}

impl<const LEN: usize> fmt::Debug for AlignedPart<LEN> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedPart").field("len", &LEN).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_aligned_zero_and_one_behind_the_other() {
        let parts = AlignedPart::<8192>::zeroed(5);
        let starts: Vec<usize> = parts.iter().map(|part| part.as_ptr() as usize).collect();
        assert!(starts.iter().all(|start| start % ALIGNMENT == 0));
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == 8192));
        assert!(parts.iter().all(|part| part.iter().all(|&byte| byte == 0)));
        assert!(AlignedPart::<8192>::zeroed(0).is_empty());
    }

    #[test]
    fn what_is_written_to_one_part_is_in_no_other_and_outlives_them() {
        let mut parts = AlignedPart::<4096>::zeroed(3);
        for (number, part) in (1..).zip(&mut parts) {
            part.fill(number);
        }
        let last = parts.pop().unwrap();
        assert!(parts[1].iter().all(|&byte| byte == 2));
        drop(parts);
        let last = std::thread::spawn(move || last).join().unwrap();
        assert!(last.iter().all(|&byte| byte == 3));
    }
}
