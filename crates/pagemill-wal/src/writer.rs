//! [`WalWriter`]: records written behind the last shutdown checkpoint of a stopped cluster.
//!
//! A server that starts now ends its WAL at that checkpoint, and writes over what follows: the records count
//! only once the control file says that the cluster is in production. Until then nothing may change what lies
//! before them, so the first page is written from the end of the checkpoint record on, and no byte before.
//!
//! What lies behind the last record has to read as the end of WAL. Files there may be recycled, with records of
//! long ago, whose pages tell so themselves. Or they may be left from a load that did not finish, whose pages
//! are in their place; so [`sync`](WalWriter::sync) fills the last page with zeros, and one page more where
//! the last one is full.
//!
//! Invariants: bytes leave in pieces that end at multiples of 1 MiB, and at `sync`; every byte up to
//! [`position`](WalWriter::position) at the time of a `sync` that succeeded is durable, and so are the names of its
//! files.
//!
//! Sources: `CopyXLogRecordToWAL` and `AdvanceXLInsertBuffer` in `src/backend/access/transam/xlog.c`,
//! PostgreSQL 14 to 18.

mod piece;
mod piece_queue;
mod segment_files;

use pagemill_format::control::Checkpoint;
use pagemill_format::wal::{
    EncodedRecord, ImageCompression, ImageCompressor, LongHeader, PAGE_BYTES, PageHeader,
    RECORD_ALIGNMENT, RecordBuilder, RelFileLocator, ResourceManager, page_magic,
};
use pagemill_format::{BlockBytes, BlockNumber, Fork, Lsn, TransactionId};
use pagemill_io::Storage;
use pagemill_sys::AlignedBuffer;

use crate::error::{Error, MissingCause, Refusal, Result};
use crate::reader::WalReader;
use crate::wal_directory::WalDirectory;
use piece::Piece;
use segment_files::SegmentFiles;

/// Written at once; segments are multiples of it.
const PIECE_BYTES: u64 = 1 << 20;
/// Images in one record, as `log_newpages` of the server has them.
const IMAGES_PER_RECORD: usize = 32;

/// What can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriterOptions {
    /// How full-page images are compressed. `Lz4` and `Zstd` need a server built with them to replay.
    pub compression: ImageCompression,
}

/// Writes records.
#[derive(Debug)]
pub struct WalWriter {
    directory: WalDirectory,
    files: SegmentFiles,
    compressor: ImageCompressor,
    checkpoint: Checkpoint,
    start: Lsn,
    /// Where the last record begins.
    previous: Lsn,
    /// What is not written yet; its first byte is the one at `pending_start`.
    pending: Piece,
    pending_start: Lsn,
}

impl WalWriter {
    /// A writer whose first record follows the shutdown checkpoint at `checkpoint`.
    ///
    /// # Errors
    /// There is no shutdown checkpoint record there, it is not of this timeline, or is damaged.
    pub fn begin(
        storage: &Storage,
        directory: &WalDirectory,
        checkpoint: Lsn,
        options: WriterOptions,
    ) -> Result<Self> {
        let (body, start) = shutdown_checkpoint(storage, directory, checkpoint)?;
        Ok(Self {
            directory: directory.clone(),
            files: SegmentFiles::new(storage, directory, start),
            compressor: ImageCompressor::new(options.compression),
            checkpoint: body,
            start,
            previous: checkpoint,
            pending: Piece::new(),
            pending_start: start,
        })
    }

    /// The checkpoint that the first record follows.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The end of the checkpoint record: where the first record of this writer begins, but for the header of
    /// a page.
    pub fn start_lsn(&self) -> Lsn {
        self.start
    }

    /// Where the last record ends.
    pub fn position(&self) -> Lsn {
        Lsn(self.pending_start.0 + self.pending.len() as u64)
    }

    /// Where a record appended now begins: what a shutdown checkpoint says of itself as `redo`.
    pub fn next_record_lsn(&self) -> Lsn {
        let position = self.position();
        match is_page_start(position) {
            true => Lsn(position.0 + self.page_header(position, 0).len() as u64),
            false => position,
        }
    }

    /// Appends a record and returns where it ends, which is the LSN of the pages it changes.
    ///
    /// # Errors
    /// A record that no server could read; a full disk, and other failures of the system.
    pub fn append(&mut self, record: &RecordBuilder<'_>) -> Result<Lsn> {
        let begin = self.next_record_lsn();
        let encoded = record.encode(self.previous, self.directory.version)?;
        self.copy(&encoded)?;
        self.previous = begin;
        if record.is_switch() {
            self.fill_segment()?;
        }
        Ok(self.position())
    }

    /// Appends images of pages of one fork, up to 32 in a record, and returns where the last record ends.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn append_images(
        &mut self,
        locator: RelFileLocator,
        fork: Fork,
        pages: &[(BlockNumber, &BlockBytes)],
        xid: TransactionId,
    ) -> Result<Lsn> {
        for batch in pages.chunks(IMAGES_PER_RECORD) {
            let manager = ResourceManager::XLOG;
            let mut record = RecordBuilder::new(manager, ResourceManager::XLOG_FPI, xid);
            for (block, page) in batch {
                let image = self.compressor.image(page, fork);
                record = record.image(locator, fork, *block, image);
            }
            self.append(&record)?;
        }
        Ok(self.position())
    }

    /// Waits until the device holds every record, and what shows that there are no more.
    ///
    /// # Errors
    /// Failures of the system. After one, nothing is known of what the device holds.
    pub fn sync(&mut self) -> Result<()> {
        let end = self.position();
        let zeros = match end.0 % PAGE_BYTES as u64 {
            0 => 0,
            used => PAGE_BYTES - used as usize,
        };
        self.pending.extend_zeros(self.pending.len() + zeros);
        let written = self.write_pending();
        // The page that was begun stays, to be written again when it is filled.
        let begun = Lsn((end.0 - end.0 % PAGE_BYTES as u64).max(self.pending_start.0));
        let from_start = |lsn: Lsn| (lsn.0 - self.pending_start.0) as usize;
        self.pending.keep(from_start(begun)..from_start(end));
        self.pending_start = begun;
        written?;
        if zeros == 0 && end > self.start {
            self.files.write(end, &AlignedBuffer::zeroed(PAGE_BYTES))?;
        }
        self.files.sync()
    }

    /// Has the segments there, with their space, that the next `bytes` of records lie in, and the page that shows the
    /// end of WAL behind them. The next [`sync`](Self::sync) makes them durable.
    ///
    /// # Errors
    /// A full disk, and other failures of the system.
    pub fn reserve(&mut self, bytes: u64) -> Result<()> {
        let begin = self.position();
        self.files.reserve(begin, Lsn(begin.0 + bytes + PAGE_BYTES as u64))
    }

    /// Copies a record to where it is written from, headers of pages in between.
    fn copy(&mut self, record: &EncodedRecord<'_>) -> Result<()> {
        let mut left = record.len();
        for slice in record.slices() {
            let mut slice = slice;
            while !slice.is_empty() {
                let here = self.room(if left == record.len() { 0 } else { left })?;
                let (now, later) = slice.split_at_checked(here).unwrap_or((slice, &[]));
                self.pending.extend(now);
                left -= now.len();
                slice = later;
            }
        }
        assert!(left == 0, "a record is written whole, over however many pages");
        let end = self.position().0.next_multiple_of(RECORD_ALIGNMENT);
        self.pending.extend_zeros((end - self.pending_start.0) as usize);
        self.write_whole_pieces()
    }

    /// Begins the next page if the last one is full, with so many bytes of a record to come, and says how
    /// much room the page has.
    fn room(&mut self, remaining: usize) -> Result<usize> {
        self.write_whole_pieces()?;
        let position = self.position();
        if is_page_start(position) {
            let mut header = Vec::new();
            self.page_header(position, remaining).encode(&mut header);
            self.pending.extend(&header);
        }
        Ok(PAGE_BYTES - (self.position().0 % PAGE_BYTES as u64) as usize)
    }

    fn page_header(&self, address: Lsn, remaining: usize) -> PageHeader {
        let directory = &self.directory;
        let long = LongHeader {
            system_identifier: directory.system_identifier,
            segment_size: directory.segment_size,
            page_size: PAGE_BYTES as u32,
        };
        PageHeader {
            magic: page_magic(directory.version),
            first_is_continuation: remaining > 0,
            images_removable: false,
            first_is_overwrite: false,
            timeline: directory.timeline,
            address,
            remaining: remaining as u32,
            long: (directory.offset_of(address) == 0).then_some(long),
        }
    }

    /// Ends the segment: empty pages up to the next one.
    fn fill_segment(&mut self) -> Result<()> {
        while self.directory.offset_of(self.position()) != 0 {
            let room = self.room(0)?;
            self.pending.extend_zeros(self.pending.len() + room);
        }
        self.write_whole_pieces()
    }

    fn write_whole_pieces(&mut self) -> Result<()> {
        match self.position().0.is_multiple_of(PIECE_BYTES) && !self.pending.is_empty() {
            true => {
                let end = self.position();
                let start = std::mem::replace(&mut self.pending_start, end);
                self.files.write_piece(start, &mut self.pending)
            }
            false => Ok(()),
        }
    }

    /// Writes what is pending, which never reaches over the end of a piece, and so of a segment.
    fn write_pending(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.files.write(self.pending_start, self.pending.bytes())
    }
}

fn is_page_start(lsn: Lsn) -> bool {
    lsn.0.is_multiple_of(PAGE_BYTES as u64)
}

/// The body and the end of the shutdown checkpoint record that begins at `lsn`.
fn shutdown_checkpoint(
    storage: &Storage,
    directory: &WalDirectory,
    lsn: Lsn,
) -> Result<(Checkpoint, Lsn)> {
    let path = directory.file_of(directory.segment_of(lsn));
    let refuse = |cause| Error::Refused { path: path.clone(), cause };
    let mut reader = WalReader::at(storage, directory, lsn);
    let Some(found) = reader.next_record()? else {
        let end = reader.end().cloned().expect("a reader without a next record knows why"); // infallible: set with the end
        return Err(Error::Missing { path, lsn, cause: MissingCause::Ended(Box::new(end)) });
    };
    let record = found.parse()?;
    let is_shutdown = record.header.resource_manager == ResourceManager::XLOG
        && record.header.kind() == ResourceManager::XLOG_CHECKPOINT_SHUTDOWN;
    if !is_shutdown {
        return Err(refuse(Refusal::NotAShutdownCheckpoint(lsn)));
    }
    let body = Checkpoint::parse(record.main_data, directory.version)?;
    if body.redo != lsn || body.timeline != directory.timeline {
        let (redo, timeline, expected) = (body.redo, body.timeline, directory.timeline);
        return Err(refuse(Refusal::OtherCheckpoint { lsn, redo, timeline, expected }));
    }
    Ok((body, found.end))
}
