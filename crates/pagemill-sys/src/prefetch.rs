//! The beginning of bytes that are used soon, brought into the processor's caches ahead of their use.
//!
//! Why not by reading them: a load that has to wait for memory holds up all that comes after it, long before the next
//! page's turn; a prefetch is asked for and forgotten.
//!
//! Invariant: nothing is changed and nothing faults, whatever lies behind the bytes.

/// The bytes of a cache line on x86-64 and most of aarch64.
const LINE: usize = 64;

/// Asks for the cache lines that hold the bytes. Does nothing on machines other than x86-64.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    for line in bytes.chunks(LINE) {
        prefetch_line(line.as_ptr());
    }
}

#[inline]
#[cfg(target_arch = "x86_64")]
fn prefetch_line(line: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing as far as the program can see, and raises no fault for any address; SSE, which
    // it is part of, is there on every x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
}

#[inline]
#[cfg(not(target_arch = "x86_64"))]
fn prefetch_line(_: *const u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_what_they_were() {
        let bytes: Vec<u8> = (0..=255).collect();
        for range in [0..0, 0..1, 3..200, 255..256] {
            prefetch(&bytes[range]);
        }
        assert!(bytes.iter().zip(0..=255).all(|(byte, due)| *byte == due));
    }
}
