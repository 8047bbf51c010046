//! A file copied by reading and writing it: through the page cache where it is small, else past it.
//!
//! Past the page cache the space is taken first, in one piece, and several writes are in flight while the next piece is
//! read: from the cache where the file is there, else past it too, so that a copy costs others no memory.
//!
//! Invariants: a file is read and written past the cache only where its length is a multiple of [`ALIGNMENT`]; a buffer
//! is with one write at a time; what is in flight comes back before anything is returned.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use pagemill_format::BLOCK_SIZE;
use pagemill_sys::{ALIGNMENT, AlignedBuffer, WriteBack};

use super::{CopiedPiece, CopyMethod, FileCopy};
use crate::error::{Error, Result};
use crate::queued_reads::{QueuedReads, Ticket};
use crate::queued_writes::QueuedWrites;
use crate::seam::{Advice, Caching, File, QueueKind};
use crate::storage::Storage;

/// Files from this size on are written past the page cache (32 MiB), as those of `pagemill-stream` are.
const LARGE: u64 = 32 << 20;
/// Bytes read and written at once.
const PIECE: usize = 1 << 20;
/// Reads in flight, where they go past the cache.
const READS_IN_FLIGHT: u32 = 4;
/// Writes in flight.
const IN_FLIGHT: u32 = 8;
/// Bytes written through the page cache before they are sent to the device.
const STRETCH: u64 = 8 << 20;

type Watch<'a, E> = &'a mut dyn FnMut(CopiedPiece<'_>) -> std::result::Result<(), E>;

/// How a new file of this size is best opened there.
pub(super) fn caching(storage: &Storage, to: &Path, len: u64) -> Caching {
    let aligned = len.is_multiple_of(ALIGNMENT as u64);
    if len < LARGE || !aligned || storage.place_of(to).copies_on_write {
        Caching::Buffered
    } else {
        Caching::Direct
    }
}

impl FileCopy<'_> {
    /// Reads and writes all from the byte `start` on.
    pub(super) fn read_and_write<E: From<Error>>(
        &self,
        start: u64,
        watch: Watch<'_, E>,
    ) -> std::result::Result<CopyMethod, E> {
        match self.caching {
            _ if start == 0 && self.is_sparse()? => self.without_holes(watch)?,
            Caching::Buffered => self.through_cache(start, watch)?,
            Caching::Direct => self.past_cache(watch)?,
        }
        Ok(CopyMethod::ReadWrite)
    }

    /// True when the file has holes, as far as the file system tells.
    fn is_sparse(&self) -> Result<bool> {
        Ok(self.len > 0 && self.next_data(0)? != (0..self.len))
    }

    /// The next bytes that take space, within the file, in whole blocks: whoever checks pages gets whole ones, and what is
    /// written past the cache is aligned.
    fn next_data(&self, offset: u64) -> Result<Range<u64>> {
        const UNIT: u64 = BLOCK_SIZE as u64;
        const { assert!(BLOCK_SIZE.is_multiple_of(ALIGNMENT)) };
        match self.source.data_from(offset) {
            Ok(Some(data)) => {
                let (start, end) = (data.start / UNIT * UNIT, data.end.next_multiple_of(UNIT));
                Ok(start.max(offset).min(self.len)..end.min(self.len))
            }
            Ok(None) => Ok(self.len..self.len),
            Err(error) if super::is_refusal(&error) => Ok(offset..self.len),
            Err(error) => Err(Error::new(error, self.from).with_offset(offset)),
        }
    }

    /// Copies what takes space, and leaves the rest a hole.
    fn without_holes<E: From<Error>>(&self, watch: Watch<'_, E>) -> std::result::Result<(), E> {
        self.target.set_len(self.len)?;
        let mut buffer = AlignedBuffer::zeroed(PIECE);
        let mut offset = 0;
        while offset < self.len {
            let data = self.next_data(offset)?;
            if data.start > offset {
                watch(CopiedPiece { offset, len: data.start - offset, bytes: None })?;
            }
            offset = data.start;
            while offset < data.end {
                let most = usize::try_from(data.end - offset).map_or(PIECE, |len| len.min(PIECE));
                let bytes = self.read_part(&*self.source, &mut buffer[..most], offset)?;
                watch(CopiedPiece { offset, len: most as u64, bytes: Some(bytes) })?;
                self.target.write_all_at(bytes, offset)?;
                offset += most as u64;
            }
        }
        Ok(())
    }

    fn through_cache<E: From<Error>>(
        &self,
        start: u64,
        watch: Watch<'_, E>,
    ) -> std::result::Result<(), E> {
        let most = usize::try_from(self.len - start).map_or(PIECE, |left| left.min(PIECE));
        let mut buffer = AlignedBuffer::zeroed(most);
        let (mut offset, mut sent) = (start, start);
        while offset < self.len {
            let bytes = self.read(&*self.source, &mut buffer, offset)?;
            watch(CopiedPiece { offset, len: bytes.len() as u64, bytes: Some(bytes) })?;
            self.target.write_all_at(bytes, offset)?;
            offset += bytes.len() as u64;
            if offset - sent >= STRETCH {
                self.target.write_back(sent..offset, WriteBack::Begin)?;
                sent = offset;
            }
        }
        Ok(())
    }

    fn past_cache<E: From<Error>>(&self, watch: Watch<'_, E>) -> std::result::Result<(), E> {
        self.take_space()?;
        let mut writer = Writer::new(self);
        let mut reader = self.direct_source().and_then(|source| Reader::new(self, source));
        let mut offset = 0;
        while offset < self.len {
            let (buffer, len) = match &mut reader {
                Some(reader) => reader.next(&mut writer.spare)?,
                None => {
                    let mut buffer = writer.buffer()?;
                    let len = self.read(&*self.source, &mut buffer, offset)?.len();
                    (buffer, len)
                }
            };
            watch(CopiedPiece { offset, len: len as u64, bytes: buffer.get(..len) })?;
            writer.make_room()?;
            writer.write(offset, buffer, len)?;
            offset += len as u64;
        }
        Ok(writer.finish()?)
    }

    /// Takes the space of the whole file. Where the file system cannot do that beforehand, the writes take it.
    fn take_space(&self) -> Result<()> {
        match self.target.allocate(0..self.len) {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                Err(self.target.error(error))
            }
            _ => Ok(()),
        }
    }

    /// The source opened past the page cache, unless most of it is there, or that is not to be had.
    fn direct_source(&self) -> Option<Box<dyn File>> {
        let cached = self.source.residency(0..self.len).ok()?;
        if cached.cached.saturating_mul(2) >= cached.bytes {
            // Advice is never needed for a right result.
            let _ = self.source.advise(0..self.len, Advice::Sequential);
            self.storage.counters().record_advice();
            return None;
        }
        self.storage.file_system().open(self.from, Caching::Direct).ok()
    }

    /// Fills the buffer as far as the file goes.
    fn read<'b>(
        &self,
        source: &dyn File,
        buffer: &'b mut AlignedBuffer,
        offset: u64,
    ) -> Result<&'b [u8]> {
        let left = usize::try_from(self.len - offset).unwrap_or(usize::MAX).min(buffer.len());
        self.read_part(source, &mut buffer[..left], offset)
    }

    /// Fills a part of a buffer.
    fn read_part<'b>(
        &self,
        source: &dyn File,
        part: &'b mut [u8],
        offset: u64,
    ) -> Result<&'b [u8]> {
        let got = self.storage.read_fully_at(source, part, offset);
        let got = got.map_err(|error| Error::new(error, self.from).with_offset(offset))?;
        if got < part.len() {
            return Err(self.cut(offset + got as u64));
        }
        Ok(part)
    }
}

/// Reads of a whole file in its order, several in flight.
struct Reader<'a> {
    copy: &'a FileCopy<'a>,
    source: Arc<dyn File>,
    queue: QueuedReads,
    in_flight: VecDeque<(u64, Ticket)>,
    /// Where the next one begins.
    next: u64,
}

impl<'a> Reader<'a> {
    fn new(copy: &'a FileCopy<'a>, source: Box<dyn File>) -> Option<Self> {
        let open = |kind| QueuedReads::new(copy.storage, kind, READS_IN_FLIGHT).ok();
        let queue = open(QueueKind::IoUring).or_else(|| open(QueueKind::Worker))?;
        Some(Self { copy, source: Arc::from(source), queue, in_flight: VecDeque::new(), next: 0 })
    }

    /// The next piece of the file, and how long it is. Buffers are taken from `spare` as long as there are any.
    fn next(&mut self, spare: &mut Vec<AlignedBuffer>) -> Result<(AlignedBuffer, usize)> {
        while self.in_flight.len() < READS_IN_FLIGHT as usize && self.next < self.copy.len {
            let left = self.copy.len - self.next;
            let wanted = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
            let buffer = spare.pop().unwrap_or_else(|| AlignedBuffer::zeroed(PIECE));
            let ticket = self.queue.start_at(self.source.clone(), self.next, wanted, buffer);
            self.in_flight.push_back((self.next, ticket));
            self.next += wanted as u64;
        }
        let failed = |error, offset| Error::new(error, self.copy.from).with_offset(offset);
        let Some((offset, ticket)) = self.in_flight.pop_front() else {
            return Err(self.copy.cut(self.next));
        };
        self.queue.flush().map_err(|error| failed(error, offset))?;
        let (buffer, got) = self.queue.finish_at(&ticket).map_err(|error| failed(error, offset))?;
        let wanted = (self.copy.len - offset).min(PIECE as u64);
        if (got as u64) < wanted {
            return Err(self.copy.cut(offset + got as u64));
        }
        Ok((buffer, got))
    }
}

/// Writes in flight to one file, or written one by one where there are none to be had.
struct Writer<'a> {
    copy: &'a FileCopy<'a>,
    queue: Option<QueuedWrites>,
    spare: Vec<AlignedBuffer>,
}

impl<'a> Writer<'a> {
    fn new(copy: &'a FileCopy<'a>) -> Self {
        let open = |kind| QueuedWrites::of_files(copy.storage, kind, IN_FLIGHT, copy.caching).ok();
        let queue = open(QueueKind::IoUring).or_else(|| open(QueueKind::Worker));
        Self { copy, queue, spare: Vec::new() }
    }

    /// A buffer that no write has; waits for one when all are in flight.
    fn buffer(&mut self) -> Result<AlignedBuffer> {
        self.make_room()?;
        Ok(self.spare.pop().unwrap_or_else(|| AlignedBuffer::zeroed(PIECE)))
    }

    /// Makes sure that another write can be in flight.
    fn make_room(&mut self) -> Result<()> {
        while let Some(finished) = self.queue.as_mut().and_then(QueuedWrites::poll) {
            finished.outcome?;
            self.spare.push(finished.buffer);
        }
        if self.queue.as_ref().is_some_and(|queue| queue.len() >= IN_FLIGHT as usize) {
            self.wait()?;
        }
        Ok(())
    }

    fn write(&mut self, offset: u64, buffer: AlignedBuffer, len: usize) -> Result<()> {
        let target = &self.copy.target;
        let Some(queue) = &mut self.queue else {
            let written = target.write_all_at(&buffer[..len], offset);
            self.spare.push(buffer);
            return written;
        };
        let started = queue.start_at(target.clone(), offset, buffer, len);
        started.map(|_| ()).map_err(|error| target.error(error).with_offset(offset))
    }

    /// Waits for one write to be over.
    fn wait(&mut self) -> Result<()> {
        let Some(queue) = &mut self.queue else { return Ok(()) };
        if let Some(finished) = queue.wait().map_err(|error| self.copy.target.error(error))? {
            finished.outcome?;
            self.spare.push(finished.buffer);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        while self.queue.as_ref().is_some_and(|queue| !queue.is_empty()) {
            self.wait()?;
        }
        Ok(())
    }
}
