//! The piece of WAL that is being filled: 1 MiB of aligned memory, written as it is.
//!
//! Invariant: what is beyond `len` is never written.

use pagemill_sys::AlignedBuffer;

use super::PIECE_BYTES;

/// Bytes that are not written yet.
#[derive(Debug)]
pub(super) struct Piece {
    buffer: AlignedBuffer,
    len: usize,
}

impl Piece {
    pub(super) fn new() -> Self {
        Self { buffer: AlignedBuffer::zeroed(PIECE_BYTES as usize), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// Adds bytes, for which the caller knows there is room.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        assert!(end <= self.buffer.len(), "a piece of WAL takes no more than it has room for");
        self.buffer[self.len..end].copy_from_slice(bytes);
        self.len = end;
    }

    /// Adds zeros up to a length.
    pub(super) fn extend_zeros(&mut self, len: usize) {
        assert!(
            self.len <= len && len <= self.buffer.len(),
            "zeros follow what a piece of WAL has, and end within it"
        );
        self.buffer[self.len..len].fill(0);
        self.len = len;
    }

    /// Keeps the bytes of a range only, at the start.
    pub(super) fn keep(&mut self, range: std::ops::Range<usize>) {
        assert!(range.end <= self.len, "what is kept of a piece of WAL is in it");
        let len = range.len();
        self.buffer.copy_within(range, 0);
        self.len = len;
    }

    /// Gives the memory away for other, which is empty.
    pub(super) fn exchange(&mut self, other: AlignedBuffer) -> AlignedBuffer {
        self.len = 0;
        std::mem::replace(&mut self.buffer, other)
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }
}
