//! Reads of blocks that go on while their reader does something else: what the methods `worker` and
//! `io_uring` are made of, above the seam.
//!
//! ```text
//!   start ──► in flight ──(short or interrupted: the rest is submitted again)──► finished ──► finish
//! ```
//!
//! Invariants: a read that was started is finished exactly once or dropped with the whole; buffers are
//! owned by their read while it is in flight; at the end nothing is in flight, as dropping waits.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use pagemill_format::{BLOCK_SIZE, BlockNumber};
use pagemill_sys::AlignedBuffer;

use crate::error::{Error, ErrorKind, Result};
use crate::fork_files::{ForkFiles, position};
use crate::seam::{Caching, Direction, File, FinishedIo, IoQueue, Lane, QueueKind, QueuedIo};
use crate::storage::{Storage, advanced};

/// A queue in use.
#[derive(Debug)]
pub struct QueuedReads {
    storage: Storage,
    kind: QueueKind,
    depth: u32,
    queue: Option<Box<dyn IoQueue>>,
    in_flight: HashMap<u64, InFlight>,
    finished: HashMap<u64, Finished>,
    next_id: u64,
    ring_calls: u64,
}

/// How a read is best made; never needed for a right result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadHints {
    /// Keeps the kernel from serving it on the submitting thread out of its page cache.
    pub force_async: bool,
    /// Which thread should make it.
    pub lane: Option<Lane>,
}

/// Blocks of one segment to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRead {
    /// The first of them.
    pub first: BlockNumber,
    /// How many.
    pub count: u32,
    /// How they are best read.
    pub hints: ReadHints,
}

/// Stands for a read that was started.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Ticket(u64);

#[derive(Debug)]
struct InFlight {
    file: Arc<dyn File>,
    caching: Caching,
    lane: Option<Lane>,
    offset: u64,
    wanted: usize,
    done: usize,
}

/// A read that is not to be submitted again.
#[derive(Debug)]
struct Finished {
    buffer: AlignedBuffer,
    wanted: usize,
    done: usize,
    stopped: Option<io::Error>,
}

impl QueuedReads {
    /// Reads at most `depth` at once.
    ///
    /// # Errors
    /// Why there can be no queue of this kind.
    pub fn new(storage: &Storage, kind: QueueKind, depth: u32) -> io::Result<Self> {
        let queue = storage.take_queue(kind, depth)?;
        Ok(Self {
            storage: storage.clone(),
            kind,
            depth,
            ring_calls: queue.ring_calls(),
            queue: Some(queue),
            in_flight: HashMap::new(),
            finished: HashMap::new(),
            next_id: 0,
        })
    }

    /// How many reads are in flight or were not yet fetched.
    pub fn len(&self) -> usize {
        self.in_flight.len() + self.finished.len()
    }

    /// True when there is no such read.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Begins to read blocks into the start of a buffer.
    ///
    /// # Errors
    /// When the file cannot be opened; the buffer comes back.
    pub fn start(
        &mut self,
        files: &ForkFiles,
        read: BlockRead,
        buffer: AlignedBuffer,
    ) -> std::result::Result<Ticket, (AlignedBuffer, Error)> {
        let BlockRead { first, count, hints } = read;
        let file = match files.file(first) {
            Ok(file) => file,
            Err(error) => return Err((buffer, error)),
        };
        let wanted = (count as usize * BLOCK_SIZE).min(buffer.len());
        let (offset, lane) = (position(first).1, hints.lane);
        let caching = files.caching();
        let read = InFlight { file, caching, lane, offset, wanted, done: 0 };
        Ok(self.begin(read, buffer, hints.force_async))
    }

    /// Begins to read `wanted` bytes of a file, from byte `offset` on, into the start of a buffer.
    pub(crate) fn start_at(
        &mut self,
        file: Arc<dyn File>,
        offset: u64,
        wanted: usize,
        buffer: AlignedBuffer,
    ) -> Ticket {
        let wanted = wanted.min(buffer.len());
        let caching = Caching::Buffered;
        self.begin(InFlight { file, caching, lane: None, offset, wanted, done: 0 }, buffer, false)
    }

    fn begin(&mut self, read: InFlight, buffer: AlignedBuffer, force_async: bool) -> Ticket {
        let id = self.next_id;
        self.next_id += 1;
        self.submit(id, read, buffer, force_async);
        Ticket(id)
    }

    /// Makes sure that all of them have begun.
    ///
    /// # Errors
    /// What the system reports, with the file system's root cause; no file is to blame.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(queue) = &mut self.queue else { return Ok(()) };
        let flushed = queue.flush();
        self.count_ring_calls();
        flushed
    }

    /// True when [`finish`](Self::finish) would not wait. Never waits.
    pub fn is_finished(&mut self, ticket: &Ticket) -> bool {
        while !self.finished.contains_key(&ticket.0) {
            let Some(read) = self.queue.as_mut().and_then(|queue| queue.poll()) else { break };
            self.arrive(read);
        }
        self.finished.contains_key(&ticket.0)
    }

    /// The outcome of a read that began at `first`, and its buffer, waiting for it if need be; no
    /// buffer when the queue itself failed.
    pub fn finish(
        &mut self,
        ticket: &Ticket,
        files: &ForkFiles,
        first: BlockNumber,
    ) -> (Option<AlignedBuffer>, Result<()>) {
        let read = match self.wait_for(ticket) {
            Err(error) => return (None, Err(files.error(ErrorKind::from(error), first))),
            Ok(read) => read,
        };
        let Finished { buffer, wanted, done, stopped } = read;
        let outcome = match stopped {
            None if done >= wanted => Ok(()),
            stopped => Err(files.stopped(first, done, stopped)),
        };
        (Some(buffer), outcome)
    }

    /// The buffer of a read of a file, and how many bytes there were: fewer than wanted only at the end of the file.
    ///
    /// # Errors
    /// The system's. The caller knows which file it was, and names it.
    pub(crate) fn finish_at(&mut self, ticket: &Ticket) -> io::Result<(AlignedBuffer, usize)> {
        let Finished { buffer, done, stopped, .. } = self.wait_for(ticket)?;
        stopped.map_or(Ok((buffer, done)), Err)
    }

    fn wait_for(&mut self, ticket: &Ticket) -> io::Result<Finished> {
        let begin = self.storage.call_begins();
        while !self.is_finished(ticket) {
            self.wait()?;
        }
        self.storage.counters().record_wait(self.storage.call_took(begin));
        let read = self.finished.remove(&ticket.0);
        read.ok_or_else(|| io::Error::other("the queue lost a read"))
    }

    fn wait(&mut self) -> io::Result<()> {
        let Some(queue) = &mut self.queue else { return Err(io::ErrorKind::NotConnected.into()) };
        let read = queue.wait();
        self.count_ring_calls();
        match read? {
            Some(read) => self.arrive(read),
            None => return Err(io::Error::other("the queue lost a read")),
        }
        Ok(())
    }

    fn submit(&mut self, id: u64, read: InFlight, buffer: AlignedBuffer, force_async: bool) {
        let Some(queue) = &mut self.queue else { return };
        queue.submit(QueuedIo {
            id,
            file: read.file.clone(),
            direction: Direction::Read,
            buffer,
            range: read.done..read.wanted,
            offset: read.offset + read.done as u64,
            force_async,
            lane: read.lane,
        });
        self.in_flight.insert(id, read);
    }

    /// Takes note of a read that came back; one that is not done goes on its way again.
    fn arrive(&mut self, came: FinishedIo) {
        let FinishedIo { id, buffer, outcome } = came;
        let Some(mut read) = self.in_flight.remove(&id) else { return };
        let bytes = *outcome.as_ref().unwrap_or(&0);
        self.storage.counters().record_read(bytes, std::time::Duration::ZERO);
        let (advanced, stopped) = match outcome {
            Ok(0) => (None, None),
            Ok(n) => (advanced(read.caching, read.done, n, read.wanted), None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (Some(read.done), None),
            Err(error) => (None, Some(error)),
        };
        read.done = advanced.unwrap_or(read.done);
        if advanced.is_some() && read.done < read.wanted {
            self.submit(id, read, buffer, false);
            return;
        }
        let InFlight { wanted, done, .. } = read;
        self.finished.insert(id, Finished { buffer, wanted, done, stopped });
    }

    fn count_ring_calls(&mut self) {
        let Some(queue) = &self.queue else { return };
        let now = queue.ring_calls();
        self.storage.counters().record_ring(now - self.ring_calls);
        self.ring_calls = now;
    }
}

impl Drop for QueuedReads {
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
