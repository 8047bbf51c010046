//! Pieces of WAL on their way to the device while the next ones are filled.
//!
//! Invariants: at most [`MOST_IN_FLIGHT`] pieces are with the kernel; a failure ends the writer, as what follows a piece
//! that was lost must not count.

use pagemill_format::wal::SegmentName;
use pagemill_io::{Caching, FinishedWrite, QueueKind, QueuedWrites, Storage, WritableFile};
use pagemill_sys::AlignedBuffer;

use super::PIECE_BYTES;
use crate::error::Result;

const MOST_IN_FLIGHT: usize = 4;

/// The pieces in flight.
#[derive(Debug)]
pub(super) struct PieceQueue {
    queue: QueuedWrites,
    in_flight: Vec<(u64, SegmentName)>,
    free: Vec<AlignedBuffer>,
}

impl PieceQueue {
    /// A queue for files opened past the page cache, by whichever kind is to be had; `None` where none is.
    pub(super) fn new(storage: &Storage) -> Option<Self> {
        let of_kind = |kind| {
            QueuedWrites::of_files(storage, kind, MOST_IN_FLIGHT as u32, Caching::Direct).ok()
        };
        let queue = of_kind(QueueKind::IoUring).or_else(|| of_kind(QueueKind::Worker))?;
        Some(Self { queue, in_flight: Vec::new(), free: Vec::new() })
    }

    /// Memory for another piece.
    pub(super) fn blank(&mut self) -> Result<AlignedBuffer> {
        while self.in_flight.len() >= MOST_IN_FLIGHT {
            self.wait()?;
        }
        Ok(self.free.pop().unwrap_or_else(|| AlignedBuffer::zeroed(PIECE_BYTES as usize)))
    }

    /// Begins to write a piece.
    pub(super) fn start(
        &mut self,
        segment: SegmentName,
        file: &WritableFile,
        offset: u64,
        (buffer, len): (AlignedBuffer, usize),
    ) -> Result<()> {
        let started = self.queue.start_at(file.clone(), offset, buffer, len);
        let id = started.map_err(|error| file.error(error).with_offset(offset))?;
        self.in_flight.push((id, segment));
        Ok(())
    }

    /// Waits for the pieces of a segment, or for all.
    pub(super) fn finish(&mut self, segment: Option<SegmentName>) -> Result<()> {
        let is_meant = |other: &SegmentName| segment.is_none_or(|segment| segment == *other);
        while self.in_flight.iter().any(|(_, of)| is_meant(of)) {
            self.wait()?;
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        let waited = self.queue.wait();
        let finished = waited.map_err(|error| pagemill_io::Error::new(error, "pg_wal"))?;
        let Some(FinishedWrite { id, buffer, outcome }) = finished else {
            self.in_flight.clear();
            return Ok(());
        };
        self.in_flight.retain(|(other, _)| *other != id);
        self.free.push(buffer);
        Ok(outcome?)
    }
}
