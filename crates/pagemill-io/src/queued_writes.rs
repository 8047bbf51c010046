//! Blocks written by a queue while their writer does something else: short and interrupted writes made
//! whole, all of them counted.
//!
//! Invariants: a write that was started comes back exactly once, with its buffer, unless the queue itself
//! fails; dropping waits for what is in flight.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use pagemill_format::BlockNumber;
use pagemill_sys::{ALIGNMENT, AlignedBuffer};

use crate::error::{Error, Result};
use crate::seam::{Caching, Direction, FinishedIo, IoQueue, QueueKind, QueuedIo};
use crate::storage::Storage;
use crate::writable_file::WritableFile;
use crate::writable_fork::WritableFork;

/// Writes in flight.
#[derive(Debug)]
pub struct QueuedWrites {
    storage: Storage,
    kind: QueueKind,
    depth: u32,
    caching: Caching,
    queue: Option<Box<dyn IoQueue>>,
    ring_calls: u64,
    in_flight: HashMap<u64, InFlight>,
    next_id: u64,
}

#[derive(Debug)]
struct InFlight {
    file: WritableFile,
    /// Where in the file the first byte of the buffer belongs.
    offset: u64,
    wanted: usize,
    done: usize,
}

/// A write that is over.
#[derive(Debug)]
pub struct FinishedWrite {
    /// What [`QueuedWrites::start`] returned for it.
    pub id: u64,
    /// What was written.
    pub buffer: AlignedBuffer,
    /// Names the file and the offset that was not written.
    pub outcome: Result<()>,
}

impl QueuedWrites {
    /// Writes at most `depth` at once, to files opened as those of `fork`.
    ///
    /// # Errors
    /// Why there can be no queue of this kind. Names the fork.
    pub fn new(fork: &WritableFork, kind: QueueKind, depth: u32) -> Result<Self> {
        let queue = Self::of_files(fork.storage(), kind, depth, fork.how().caching);
        queue.map_err(|error| Error::new(error, fork.path()))
    }

    /// Writes at most `depth` at once, to files opened with this caching.
    ///
    /// # Errors
    /// Why there can be no queue of this kind.
    pub fn of_files(
        storage: &Storage,
        kind: QueueKind,
        depth: u32,
        caching: Caching,
    ) -> io::Result<Self> {
        let queue = storage.take_queue(kind, depth)?;
        Ok(Self {
            storage: storage.clone(),
            kind,
            depth,
            caching,
            ring_calls: queue.ring_calls(),
            queue: Some(queue),
            in_flight: HashMap::new(),
            next_id: 0,
        })
    }

    /// How many are in flight, or came back and were not taken.
    pub fn len(&self) -> usize {
        self.in_flight.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Begins to write the first `len` bytes of the buffer to blocks from `first` on, all of one segment.
    ///
    /// # Errors
    /// When the file cannot be opened or made, or the queue cannot go on.
    pub fn start(
        &mut self,
        fork: &WritableFork,
        first: BlockNumber,
        buffer: AlignedBuffer,
        len: usize,
    ) -> Result<u64> {
        let (file, offset) = fork.file(first)?;
        self.start_at(file, offset, buffer, len).map_err(|error| fork.failure(error, first))
    }

    /// Begins to write the first `len` bytes of the buffer to a file, from byte `offset` on.
    ///
    /// # Errors
    /// When the queue cannot go on.
    pub fn start_at(
        &mut self,
        file: WritableFile,
        offset: u64,
        buffer: AlignedBuffer,
        len: usize,
    ) -> io::Result<u64> {
        let id = self.next_id;
        self.next_id += 1;
        let write = InFlight { file, offset, wanted: len.min(buffer.len()), done: 0 };
        self.submit(id, write, buffer);
        self.flush()?;
        Ok(id)
    }

    /// A write that is over, if there is one now. Waits for nothing.
    pub fn poll(&mut self) -> Option<FinishedWrite> {
        loop {
            let came = self.queue.as_mut()?.poll()?;
            if let Some(finished) = self.arrive(came) {
                return Some(finished);
            }
        }
    }

    /// Waits for a write to be over; `None` when none is in flight.
    ///
    /// # Errors
    /// When the queue itself failed: what is in flight is lost track of.
    pub fn wait(&mut self) -> io::Result<Option<FinishedWrite>> {
        let begin = self.storage.call_begins();
        let outcome = self.wait_untimed();
        self.storage.counters().record_wait(self.storage.call_took(begin));
        outcome
    }

    fn wait_untimed(&mut self) -> io::Result<Option<FinishedWrite>> {
        while !self.in_flight.is_empty() {
            let Some(queue) = &mut self.queue else { break };
            let came = queue.wait();
            self.count_ring_calls();
            match came? {
                Some(came) => {
                    if let Some(finished) = self.arrive(came) {
                        return Ok(Some(finished));
                    }
                }
                None => return Err(io::Error::other("the queue lost a write")),
            }
        }
        Ok(None)
    }

    /// Takes note of a write that came back; one that is not done goes on its way again.
    fn arrive(&mut self, came: FinishedIo) -> Option<FinishedWrite> {
        let FinishedIo { id, buffer, outcome } = came;
        let mut write = self.in_flight.remove(&id)?;
        let bytes = *outcome.as_ref().unwrap_or(&0);
        self.storage.counters().record_write(bytes, Duration::ZERO);
        let at = write.offset.saturating_add(write.done as u64);
        // A ring that is out of memory for a moment says so (EAGAIN): to try again is all there is.
        let outcome = outcome.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::ErrorKind::Interrupted.into(),
            _ => error,
        });
        let outcome = match write.file.written(write.wanted - write.done, outcome) {
            Ok(n) => {
                write.done = self.advanced(write.done + n, write.wanted);
                if write.done < write.wanted {
                    self.submit(id, write, buffer);
                    // A queue that refuses to begin tells so when it is waited for.
                    let _ = self.flush();
                    return None;
                }
                Ok(())
            }
            Err(error) => Err(error.with_offset(at)),
        };
        Some(FinishedWrite { id, buffer, outcome })
    }

    /// Direct writes go on at an aligned offset.
    fn advanced(&self, done: usize, wanted: usize) -> usize {
        match self.caching {
            Caching::Direct if done < wanted => done - done % ALIGNMENT,
            _ => done,
        }
    }

    fn submit(&mut self, id: u64, write: InFlight, buffer: AlignedBuffer) {
        let Some(queue) = &mut self.queue else { return };
        queue.submit(QueuedIo {
            id,
            file: write.file.file().clone(),
            direction: Direction::Write,
            buffer,
            range: write.done..write.wanted,
            offset: write.offset + write.done as u64,
            // A buffered write is a copy: another thread shall make it.
            force_async: self.caching == Caching::Buffered,
            lane: None,
        });
        self.in_flight.insert(id, write);
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(queue) = &mut self.queue else { return Ok(()) };
        let flushed = queue.flush();
        self.count_ring_calls();
        flushed
    }

    fn count_ring_calls(&mut self) {
        let Some(queue) = &self.queue else { return };
        let now = queue.ring_calls();
        self.storage.counters().record_ring(now - self.ring_calls);
        self.ring_calls = now;
    }
}

impl Drop for QueuedWrites {
    /// Waits for what is in flight, and leaves the queue to whoever needs one next.
    fn drop(&mut self) {
        while !self.in_flight.is_empty() {
            if self.wait().is_err() {
                return;
            }
        }
        if let Some(queue) = self.queue.take() {
            self.storage.return_queue(self.kind, self.depth, queue);
        }
    }
}
