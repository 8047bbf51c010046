//! Pieces of WAL on their way to the device while the next ones are filled.
//!
//! Invariants: at most [`MOST_IN_FLIGHT`] pieces are with the kernel; a failure ends the writer, as what follows a piece
//! that was lost must not count.

use pagemill_io::{Caching, FinishedWrite, QueueKind, QueuedWrites, Storage, WritableFile};
use pagemill_sys::AlignedBuffer;

use super::PIECE_BYTES;
use crate::error::Result;

const MOST_IN_FLIGHT: usize = 4;

/// The pieces in flight.
#[derive(Debug)]
pub(super) struct PieceQueue {
    queue: QueuedWrites,
    free: Vec<AlignedBuffer>,
}

impl PieceQueue {
    /// A queue for files opened past the page cache, by whichever kind is to be had; `None` where none is.
    pub(super) fn new(storage: &Storage) -> Option<Self> {
        let of_kind = |kind| {
            QueuedWrites::of_files(storage, kind, MOST_IN_FLIGHT as u32, Caching::Direct).ok()
        };
        let queue = of_kind(QueueKind::IoUring).or_else(|| of_kind(QueueKind::Worker))?;
        Some(Self { queue, free: Vec::new() })
    }

    /// Memory for another piece.
    pub(super) fn blank(&mut self) -> Result<AlignedBuffer> {
        while self.queue.len() >= MOST_IN_FLIGHT {
            self.wait()?;
        }
        Ok(self.free.pop().unwrap_or_else(|| AlignedBuffer::zeroed(PIECE_BYTES as usize)))
    }

    /// Begins to write a piece.
    pub(super) fn start(
        &mut self,
        file: &WritableFile,
        offset: u64,
        buffer: AlignedBuffer,
        len: usize,
    ) -> Result<()> {
        let started = self.queue.start_at(file.clone(), offset, buffer, len);
        Ok(started.map(|_| ()).map_err(|error| file.error(error).with_offset(offset))?)
    }

    /// Waits for all pieces.
    pub(super) fn finish(&mut self) -> Result<()> {
        while !self.queue.is_empty() {
            self.wait()?;
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        let waited = self.queue.wait().and_then(|finished| {
            finished.ok_or_else(|| std::io::Error::other("nobody writes what is in flight"))
        });
        let FinishedWrite { buffer, outcome, .. } =
            waited.map_err(|error| pagemill_io::Error::new(error, "pg_wal"))?;
        self.free.push(buffer);
        Ok(outcome?)
    }
}
