//! The segment files that are written: found, made, filled, synced.
//!
//! A new one is made under another name, gets all its space in one step, and then its own name: a file that
//! is called a segment has the size of one. A name that servers remove at their start is taken, so that
//! nothing is left behind by a kill. All but the first are written past the page cache, where that can be, as nobody
//! reads so much WAL soon.
//!
//! Invariants: a file counts as unsynced from its first write on, and stays open until it was synced; the
//! directory is synced when a file was made.

use std::io;
use std::path::{Path, PathBuf};

use pagemill_format::Lsn;
use pagemill_format::wal::SegmentName;
use pagemill_io::{Caching, Create, ErrorKind, OpenForWrite, Storage, WritableFile, sync_all};
use pagemill_sys::{AlignedBuffer, WriteBack};

use super::piece::Piece;
use super::piece_queue::PieceQueue;
use crate::error::{Error, Result};
use crate::wal_directory::WalDirectory;

/// Bytes in files that were filled and not synced, at most: they are on their way to the device already.
const MOST_UNSYNCED_BYTES: u64 = 128 << 20;
/// Zeros written at once where space cannot be taken otherwise.
const ZERO_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct SegmentFiles {
    storage: Storage,
    directory: WalDirectory,
    /// How all segments but the first are opened.
    caching: Caching,
    /// The segment with the checkpoint, whose first page a server wrote: it goes through the page cache.
    first: SegmentName,
    /// Whether the others go past it, and by what; `None` where that is not to be had.
    queue: Option<PieceQueue>,
    /// Those that were written to; the last is the one that is written now.
    open: Vec<(SegmentName, WritableFile)>,
    is_directory_changed: bool,
}

impl SegmentFiles {
    /// Files from the segment with `start` on.
    pub(super) fn new(storage: &Storage, directory: &WalDirectory, start: Lsn) -> Self {
        Self {
            first: directory.segment_of(start),
            queue: None,
            storage: storage.clone(),
            directory: directory.clone(),
            caching: Caching::Direct,
            open: Vec::new(),
            is_directory_changed: false,
        }
    }

    /// Writes bytes that lie in one segment, and begins to send them to the device.
    pub(super) fn write(&mut self, at: Lsn, bytes: &[u8]) -> Result<()> {
        let offset = self.directory.offset_of(at);
        let file = self.file(self.directory.segment_of(at))?;
        file.write_all_at(bytes, offset)?;
        file.write_back(offset..offset + bytes.len() as u64, WriteBack::Begin)?;
        Ok(())
    }

    /// Writes a piece that ends at a multiple of its size, while others are filled where that can be, and leaves it
    /// empty.
    pub(super) fn write_piece(&mut self, at: Lsn, piece: &mut Piece) -> Result<()> {
        let segment = self.directory.segment_of(at);
        let file = self.file(segment)?;
        let Some(queue) = self.queue.as_mut().filter(|_| segment != self.first) else {
            self.write(at, piece.bytes())?;
            piece.clear();
            return Ok(());
        };
        let len = piece.len();
        let buffer = piece.exchange(queue.blank()?);
        queue.start(&file, self.directory.offset_of(at), buffer, len)
    }

    /// Makes the segments from that of `begin` to that of `end` where they are missing. Those that are there keep their
    /// bytes; where they have holes, space is taken if the file system can.
    pub(super) fn reserve(&mut self, begin: Lsn, end: Lsn) -> Result<()> {
        let mut segment = self.directory.segment_of(begin);
        while segment.start() < end {
            let range = begin.0.max(segment.start().0)..end.0.min(segment.end().0);
            let from_start = |lsn: u64| lsn - segment.start().0;
            self.file(segment)?.reserve(from_start(range.start)..from_start(range.end))?;
            segment = self.directory.segment_of(segment.end());
        }
        Ok(())
    }

    /// Waits until the device holds all that was written, and the names of the files.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.sync_files()?;
        if let Some(newest) = self.open.len().checked_sub(1) {
            self.open.drain(..newest);
        }
        if std::mem::take(&mut self.is_directory_changed) {
            self.storage.sync_dir(&self.directory.path)?;
        }
        Ok(())
    }

    /// All at once: a sync of one brings to the device most of what the others wait for.
    fn sync_files(&mut self) -> Result<()> {
        if let Some(queue) = &mut self.queue {
            queue.finish()?;
        }
        Ok(sync_all(&self.open, |(_, file)| file.sync_data())?)
    }

    fn file(&mut self, segment: SegmentName) -> Result<WritableFile> {
        if let Some((_, file)) = self.open.iter().find(|(open, _)| *open == segment) {
            return Ok(file.clone());
        }
        let unsynced = self.open.len() as u64 * u64::from(segment.segment_size);
        if unsynced > MOST_UNSYNCED_BYTES {
            self.sync_files()?;
            self.open.clear();
        }
        if self.caching == Caching::Direct && self.queue.is_none() && segment != self.first {
            self.queue = PieceQueue::new(&self.storage);
            if self.queue.is_none() {
                self.caching = Caching::Buffered;
            }
        }
        let file = match self.open_or_make(segment) {
            // Memory as a disk, and others: there is no way past the page cache.
            Err(Error::Io(error)) if self.is_no_direct(&error) => {
                self.caching = Caching::Buffered;
                self.queue = None;
                self.open_or_make(segment)?
            }
            opened => opened?,
        };
        self.open.push((segment, file.clone()));
        Ok(file)
    }

    fn open_or_make(&mut self, segment: SegmentName) -> Result<WritableFile> {
        let path = self.directory.file_of(segment);
        let caching = if segment == self.first { Caching::Buffered } else { self.caching };
        match self.storage.open_for_write(&path, self.how(Create::Existing, caching)) {
            Ok(file) => {
                let len = file.len()?;
                if len < u64::from(segment.segment_size) {
                    self.take_space(&file, len)?;
                }
                Ok(file)
            }
            Err(error) if error.is_not_found() => self.make(&path, caching),
            Err(error) => Err(error.into()),
        }
    }

    fn make(&mut self, path: &Path, caching: Caching) -> Result<WritableFile> {
        let temporary = self.temporary();
        self.storage.remove_if_there(&temporary)?;
        let file =
            self.storage.open_for_write(&temporary, self.how(Create::New, Caching::Buffered))?;
        let named = self.take_space(&file, 0).and_then(|()| {
            self.storage.rename(&temporary, path)?;
            Ok(self.storage.open_for_write(path, self.how(Create::Existing, caching))?)
        });
        if named.is_err() {
            // The failure that is told is the one before this.
            let _ = self.storage.remove_if_there(&temporary);
        }
        self.is_directory_changed = true;
        named
    }

    /// Servers remove what is called `xlogtemp.*` when they start.
    fn temporary(&self) -> PathBuf {
        self.directory.path.join(format!("xlogtemp.{}", std::process::id()))
    }

    /// Gives the file the size of a segment, from `len` bytes on.
    fn take_space(&self, file: &WritableFile, len: u64) -> Result<()> {
        let size = u64::from(self.directory.segment_size);
        match file.allocate(len..size) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                Err(file.error(error).into())
            }
            // Whatever else the file system has against it: zeros can be written anywhere.
            Err(_) => self.write_zeros(file, len, size),
        }
    }

    fn write_zeros(&self, file: &WritableFile, len: u64, size: u64) -> Result<()> {
        let zeros = AlignedBuffer::zeroed(ZERO_BYTES);
        let mut at = len;
        while at < size {
            let now = zeros.len().min(usize::try_from(size - at).unwrap_or(zeros.len()));
            file.write_all_at(&zeros[..now], at)?;
            at += now as u64;
        }
        // A file that is called a segment has the size of one, also after a power cut.
        Ok(file.sync_data()?)
    }

    fn is_no_direct(&self, error: &pagemill_io::Error) -> bool {
        self.caching == Caching::Direct && matches!(error.kind(), ErrorKind::Refused(_))
    }

    fn how(&self, create: Create, caching: Caching) -> OpenForWrite {
        OpenForWrite { create, caching }
    }
}
