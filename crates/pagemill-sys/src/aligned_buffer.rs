//! Heap bytes whose address is a multiple of [`ALIGNMENT`].
//!
//! Why: blocks that start at a page boundary of the machine cost the kernel's copy the fewest
//! cache lines and page-table entries, and direct I/O refuses any other address.
//!
//! The allocator is asked for more than is needed, at its own alignment, and the buffer starts where
//! it is aligned: asked for the alignment itself, it would zero the bytes by writing them, and so
//! take every page from the kernel at once.
//!
//! Invariants: `allocation` was allocated with `layout(len)`, and `start` is its first aligned
//! address, with `len` initialized bytes behind it; both dangle (well aligned) when `len` is 0; the
//! length never changes; the allocation is owned by this value alone.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// What every buffer's address is a multiple of: the machine's page size, and the largest logical
/// sector size of common devices.
pub const ALIGNMENT: usize = 4096;

/// A fixed number of bytes, zero at first, aligned to [`ALIGNMENT`].
///
/// A large buffer costs no memory until it is touched: the zeros come from the kernel.
pub struct AlignedBuffer {
    allocation: NonNull<u8>,
    start: NonNull<u8>,
    len: usize,
}

impl AlignedBuffer {
    /// Allocates `len` zero bytes.
    ///
    /// # Panics
    /// When `len` is within [`ALIGNMENT`] of `isize::MAX`, as `Vec` does. Running out of memory
    /// aborts, also as `Vec` does.
    pub fn zeroed(len: usize) -> Self {
        if len == 0 {
            return Self { allocation: dangling(), start: dangling(), len };
        }
        let layout = layout(len);
        // SAFETY: the layout's size is more than `len`, so not zero.
        let allocated = unsafe { alloc_zeroed(layout) };
        let Some(allocation) = NonNull::new(allocated) else { handle_alloc_error(layout) };
        let skipped = allocated.align_offset(ALIGNMENT);
        assert!(skipped < ALIGNMENT, "an address is aligned within the alignment");
        // SAFETY: fewer than ALIGNMENT bytes are skipped, and the allocation has `len` and
        // ALIGNMENT, so the pointer stays within it, with `len` bytes behind it.
        let start = unsafe { allocation.add(skipped) };
        Self { allocation, start, len }
    }
}

/// A well-aligned pointer to no bytes.
fn dangling() -> NonNull<u8> {
    #[repr(align(4096))]
    struct Aligned;
    const _: () = assert!(align_of::<Aligned>() == ALIGNMENT);
    NonNull::<Aligned>::dangling().cast()
}

fn layout(len: usize) -> Layout {
    let layout = len.checked_add(ALIGNMENT).map(|size| Layout::from_size_align(size, 1));
    match layout {
        Some(Ok(layout)) => layout,
        _ => panic!("a buffer of {len} bytes exceeds the address space"), // infallible: callers ask for pages
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `start` points to `len` initialized bytes (or dangles, aligned, for none) that
        // live as long as `self`; the shared borrow of `self` excludes every writer.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl AsMut<[u8]> for AlignedBuffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl DerefMut for AlignedBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; the exclusive borrow of `self` excludes every other access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if self.len != 0 {
            // SAFETY: a length other than 0 was allocated by `zeroed` with this very layout, and
            // only `drop` frees it.
            unsafe { dealloc(self.allocation.as_ptr(), layout(self.len)) }
        }
    }
}

// SAFETY: the bytes are owned by this value alone and are plain data, so another thread may take
// them over, exactly as with `Box<[u8]>`.
unsafe impl Send for AlignedBuffer {}
// SAFETY: a shared reference only lets the bytes be read, exactly as with `Box<[u8]>`.
unsafe impl Sync for AlignedBuffer {}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuffer").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_aligned_and_zero() {
        for len in [0, 1, 4095, 4096, 8192, 128 * 1024 + 1] {
            let buffer = AlignedBuffer::zeroed(len);
            assert_eq!(buffer.len(), len);
            assert_eq!(buffer.as_ptr() as usize % ALIGNMENT, 0);
            assert!(buffer.iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn what_is_written_is_read_even_on_another_thread() {
        let mut buffer = AlignedBuffer::zeroed(8192);
        buffer[8191] = 7;
        let buffer = std::thread::spawn(move || buffer).join().unwrap();
        assert_eq!(buffer[8191], 7);
    }
}
