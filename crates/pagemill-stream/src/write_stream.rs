//! [`WriteStream`]: pages on their way to the files of one fork, in few large writes.
//!
//! ```text
//!  write_page ──▶ window of io_combine_limit blocks ──┐
//!                                                     ├─▶ space ─▶ checksum ─▶ WAL ─▶ write ─▶ write-back
//!  write_run (a buffer of neighbours, not copied) ────┘
//! ```
//!
//! What is promised of each run, in this order: there is space for it (`FileExtension`), so that a full disk
//! is told before any page is written; its pages carry their checksums; the WAL is durable up to the highest
//! position that one of them names (the rule of `FlushBuffer`, `src/backend/storage/buffer/bufmgr.c`,
//! PostgreSQL 14 to 18); then it is written, and a little later sent to the device, so that the sync at the end
//! is short. Nothing is durable before [`WriteStream::finish`] returned, and what is on the device until then
//! may be any part of what was written.
//!
//! Invariants: the last page given for a block is the one in the file; two writes in flight never overlap; at
//! most `in_flight` buffers are with the kernel; after the first failure nothing is written and every call
//! fails, as a job that lost a write must not be finished.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use pagemill_format::checksum::is_new;
use pagemill_format::page::Page;
use pagemill_format::page_builder::set_checksum;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Lsn};
use pagemill_io::{
    Error, ErrorKind, FileExtension, MappedWrites, QueuedWrites, Refusal, Result, WritableFork,
    WriteMethod,
};
use pagemill_sys::AlignedBuffer;

use crate::steady_write_back::SteadyWriteBack;
use crate::write_windows::WriteWindows;

/// Blocks combined into one write unless told otherwise (1 MiB).
pub const DEFAULT_WRITE_COMBINE_LIMIT: u32 = 128;
/// Writes in flight unless told otherwise.
pub const DEFAULT_WRITES_IN_FLIGHT: u32 = 8;
/// Blocks that windows are made of at most (8 MiB).
const MAX_WINDOW: u32 = 1024;

/// How a stream writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteStreamOptions {
    /// The method; `None` for what suits the place and the file (`auto`).
    pub io_method: Option<WriteMethod>,
    /// Blocks that [`WriteStream::write_page`] combines into one write at most: a power of two up to 1024;
    /// another value is taken as the next one below.
    pub io_combine_limit: u32,
    /// Writes in flight at most, for the methods that have any.
    pub in_flight: u32,
    /// True when pages are to carry checksums, as the control file says.
    pub checksums: bool,
}

impl Default for WriteStreamOptions {
    fn default() -> Self {
        Self {
            io_method: None,
            io_combine_limit: DEFAULT_WRITE_COMBINE_LIMIT,
            in_flight: DEFAULT_WRITES_IN_FLIGHT,
            checksums: false,
        }
    }
}

/// The WAL that pages were logged in, asked before each of them is written.
pub trait WalFlush: Send + Sync + fmt::Debug {
    /// Makes sure that the WAL before `lsn` is durable.
    ///
    /// # Errors
    /// When it is not: the pages that name it are then not written.
    fn flush_to(&self, lsn: Lsn) -> Result<()>;
}

/// Writes pages of one fork. For one thread; several streams may share the fork and its space.
#[derive(Debug)]
pub struct WriteStream {
    space: Arc<FileExtension>,
    fork: Arc<WritableFork>,
    wal: Option<Arc<dyn WalFlush>>,
    checksums: bool,
    /// Blocks of a buffer that is lent or combined into.
    window: u32,
    windows: WriteWindows,
    way: WriteBackend,
    reason: String,
    /// What is with the queue.
    in_flight: Vec<(u64, Range<u32>)>,
    most_in_flight: usize,
    spare: Vec<AlignedBuffer>,
    write_back: SteadyWriteBack,
    /// Why nothing is written any more.
    ended: Option<String>,
}

/// How runs come to the files.
#[derive(Debug)]
pub(crate) enum WriteBackend {
    Calls { vectored: bool },
    Mapped(MappedWrites),
    Queued(QueuedWrites, WriteMethod),
}

impl WriteStream {
    /// A stream to the fork that `space` extends.
    ///
    /// # Errors
    /// When the method that was asked for is not to be had here.
    pub fn new(
        space: Arc<FileExtension>,
        options: WriteStreamOptions,
        wal: Option<Arc<dyn WalFlush>>,
    ) -> Result<Self> {
        let fork = space.fork().clone();
        let depth = options.in_flight.max(1);
        let (way, reason) = crate::write_method_choice::choose(&fork, options.io_method, depth)?;
        let window = 1 << options.io_combine_limit.clamp(1, MAX_WINDOW).ilog2();
        Ok(Self {
            wal,
            checksums: options.checksums,
            window,
            windows: WriteWindows::new(window),
            way,
            reason,
            in_flight: Vec::new(),
            most_in_flight: depth as usize,
            spare: Vec::new(),
            write_back: SteadyWriteBack::new(fork.clone()),
            ended: None,
            space,
            fork,
        })
    }

    /// The method in use, and why it is.
    pub fn method(&self) -> (WriteMethod, &str) {
        let method = match &self.way {
            WriteBackend::Calls { vectored: false } => WriteMethod::Pwrite,
            WriteBackend::Calls { vectored: true } => WriteMethod::Pwritev,
            WriteBackend::Mapped(_) => WriteMethod::Mmap,
            WriteBackend::Queued(_, method) => *method,
        };
        (method, &self.reason)
    }

    /// The space of the fork.
    pub fn space(&self) -> &Arc<FileExtension> {
        &self.space
    }

    /// A buffer of `io_combine_limit` blocks to fill and to give to [`write_run`](Self::write_run). It holds
    /// whatever an earlier run left there.
    ///
    /// # Errors
    /// When an earlier write failed.
    pub fn buffer(&mut self) -> Result<AlignedBuffer> {
        self.guarded(|stream| {
            stream.take_finished()?;
            Ok(stream.blank())
        })
    }

    /// Writes `pages` consecutive blocks from `first` on, which lie one behind the other at the start of the
    /// buffer. The stream keeps the buffer; [`buffer`](Self::buffer) lends it again.
    ///
    /// # Errors
    /// When these or earlier ones cannot be written, when there is no space, or when the WAL is not durable.
    /// Nothing is written afterwards.
    pub fn write_run(
        &mut self,
        first: BlockNumber,
        buffer: AlignedBuffer,
        pages: usize,
    ) -> Result<()> {
        self.guarded(|stream| {
            let range = stream.range_of(first, &buffer, pages)?;
            for (block, buffer, pages) in stream.windows.take_overlapping(&range) {
                stream.submit(block, buffer, pages)?;
            }
            stream.submit(range.start, buffer, pages)
        })
    }

    /// Writes one page, together with its neighbours if they come soon.
    ///
    /// # Errors
    /// As [`write_run`](Self::write_run).
    pub fn write_page(&mut self, block: BlockNumber, page: &BlockBytes) -> Result<()> {
        self.guarded(|stream| {
            if stream.windows.needs_buffer(block) {
                let blank = stream.blank();
                stream.windows.add_buffer(block, blank);
            }
            let full = stream.windows.put(block, page);
            full.into_iter()
                .try_for_each(|(block, buffer, pages)| stream.submit(block, buffer, pages))
        })
    }

    /// Waits until everything given so far is written: other streams and readers see it then. Makes nothing
    /// durable.
    ///
    /// # Errors
    /// As [`write_run`](Self::write_run).
    pub fn drain(&mut self) -> Result<()> {
        self.guarded(|stream| {
            for (block, buffer, pages) in stream.windows.take_all() {
                stream.submit(block, buffer, pages)?;
            }
            while !stream.in_flight.is_empty() {
                stream.wait_for_one()?;
            }
            Ok(())
        })
    }

    /// Writes what is left, cuts off what was extended too far, and waits until the device holds the files
    /// and their names. Other streams of the fork are drained before.
    ///
    /// # Errors
    /// As [`write_run`](Self::write_run); and when something cannot be synced, which ends the job.
    pub fn finish(mut self) -> Result<()> {
        self.drain()?;
        if let WriteBackend::Mapped(mapped) = &mut self.way {
            mapped.sync()?;
        }
        self.space.cut_back()?;
        self.fork.sync()
    }

    /// Does something unless something failed before, and remembers if it fails.
    fn guarded<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if let Some(reason) = &self.ended {
            return Err(Error::new(ErrorKind::Ended { reason: reason.clone() }, self.fork.path()));
        }
        act(self).inspect_err(|error| self.ended = Some(error.to_string()))
    }

    fn range_of(&self, first: BlockNumber, buffer: &[u8], pages: usize) -> Result<Range<u32>> {
        let held = pages <= buffer.len() / BLOCK_SIZE;
        let end = u32::try_from(pages).ok().filter(|_| held).and_then(|n| first.0.checked_add(n));
        let wrong =
            || self.fork.at(Error::new(Refusal::TooManyPages(pages), self.fork.path()), first);
        Ok(first.0..end.ok_or_else(wrong)?)
    }

    /// A buffer of the stream's size.
    fn blank(&mut self) -> AlignedBuffer {
        let new = || AlignedBuffer::zeroed(self.window as usize * BLOCK_SIZE);
        self.spare.pop().unwrap_or_else(new)
    }

    /// Takes back a buffer, unless it is of another size or there are enough.
    fn give_back(&mut self, buffer: AlignedBuffer) {
        let fits = buffer.len() == self.window as usize * BLOCK_SIZE;
        if fits && self.spare.len() < self.most_in_flight {
            self.spare.push(buffer);
        }
    }

    /// Writes one run: what the head of this file says.
    fn submit(&mut self, first: u32, mut buffer: AlignedBuffer, pages: usize) -> Result<()> {
        let end = u32::try_from(pages).ok().and_then(|count| first.checked_add(count));
        let blocks = first..end.expect("a run ends within the block numbers"); // infallible: checked when it began
        assert!(pages * BLOCK_SIZE <= buffer.len(), "the pages of a run are in its buffer");
        if blocks.is_empty() {
            self.give_back(buffer);
            return Ok(());
        }
        self.space.ensure(blocks.end)?;
        let highest = self.seal(first, &mut buffer, pages);
        if let Some(wal) = self.wal.as_ref().filter(|_| highest > Lsn(0)) {
            wal.flush_to(highest)?;
        }
        self.wait_for_overlapping(&blocks)?;
        self.write(blocks, buffer)
    }

    /// Puts the checksums on, and finds the highest position in the WAL that one of the pages names.
    fn seal(&self, first: u32, buffer: &mut AlignedBuffer, pages: usize) -> Lsn {
        let mut highest = Lsn(0);
        let (blocks, _) = buffer.as_chunks_mut::<BLOCK_SIZE>();
        for (block, page) in (first..).zip(blocks.iter_mut().take(pages)) {
            if self.checksums && !is_new(page) {
                set_checksum(page, BlockNumber(block));
            }
            highest = highest.max(Page::new(page).header().lsn);
        }
        highest
    }

    fn write(&mut self, blocks: Range<u32>, buffer: AlignedBuffer) -> Result<()> {
        let first = BlockNumber(blocks.start);
        let bytes = &buffer[..blocks.len() * BLOCK_SIZE];
        match &mut self.way {
            WriteBackend::Calls { vectored: false } => self.fork.write_blocks(first, bytes)?,
            WriteBackend::Calls { vectored: true } => {
                let pages: Vec<&[u8]> = bytes.chunks(BLOCK_SIZE).collect();
                self.fork.write_vectored(first, &pages)?;
            }
            WriteBackend::Mapped(mapped) => mapped.write_blocks(first, bytes)?,
            WriteBackend::Queued(..) => return self.write_queued(blocks, buffer),
        }
        self.give_back(buffer);
        self.write_back.written(blocks)
    }

    /// Hands a run to the queue. A run that crosses the end of a segment is written here and now: a buffer
    /// can be in one write only.
    fn write_queued(&mut self, blocks: Range<u32>, buffer: AlignedBuffer) -> Result<()> {
        let (first, len) = (BlockNumber(blocks.start), blocks.len() * BLOCK_SIZE);
        if (WritableFork::within_segment(first, u32::MAX) as usize) < blocks.len() {
            self.fork.write_blocks(first, &buffer[..len])?;
            self.give_back(buffer);
            return self.write_back.written(blocks);
        }
        while self.in_flight.len() >= self.most_in_flight {
            self.wait_for_one()?;
        }
        let WriteBackend::Queued(queue, _) = &mut self.way else {
            unreachable!("runs are handed to the queue of a stream that has one")
        };
        let id = queue.start(&self.fork, first, buffer, len)?;
        self.in_flight.push((id, blocks));
        self.take_finished()
    }

    fn wait_for_overlapping(&mut self, blocks: &Range<u32>) -> Result<()> {
        let overlaps =
            |(_, other): &(u64, Range<u32>)| other.start < blocks.end && blocks.start < other.end;
        while self.in_flight.iter().any(overlaps) {
            self.wait_for_one()?;
        }
        Ok(())
    }

    /// Takes what has been written, and waits for nothing.
    fn take_finished(&mut self) -> Result<()> {
        while let WriteBackend::Queued(queue, _) = &mut self.way {
            let Some(finished) = queue.poll() else { break };
            self.finished(finished)?;
        }
        Ok(())
    }

    fn wait_for_one(&mut self) -> Result<()> {
        let WriteBackend::Queued(queue, _) = &mut self.way else {
            self.in_flight.clear();
            return Ok(());
        };
        let first = self.in_flight.first().map_or(0, |(_, blocks)| blocks.start);
        let finished = queue.wait();
        match finished.map_err(|error| self.fork.failure(error, BlockNumber(first)))? {
            Some(finished) => self.finished(finished),
            None => {
                self.in_flight.clear();
                Ok(())
            }
        }
    }

    fn finished(&mut self, write: pagemill_io::FinishedWrite) -> Result<()> {
        let place = self.in_flight.iter().position(|(id, _)| *id == write.id);
        let Some(place) = place else { unreachable!("a write that ends was begun") };
        let (_, blocks) = self.in_flight.swap_remove(place);
        self.give_back(write.buffer);
        write.outcome.map_err(|error| self.fork.at(error, BlockNumber(blocks.start)))?;
        self.write_back.written(blocks)
    }
}

#[cfg(test)]
mod tests;
