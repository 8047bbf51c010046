//! A directory with the WAL of a cluster that was just stopped, made for tests: one segment with a shutdown
//! checkpoint in it, at any place, so that page and segment ends come where a test wants them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use pagemill_format::control::{Checkpoint, FullTransactionId};
use pagemill_format::wal::{
    LongHeader, PAGE_BYTES, PageHeader, RecordBuilder, ResourceManager, page_magic,
};
use pagemill_format::{Lsn, PgVersion, TransactionId};
use pagemill_io::Storage;
use pagemill_io::simulated::FaultyFileSystem;

use pagemill_wal::{EndOfWal, Error, WalDirectory, WalReader, WalWriter, WriterOptions};

/// Bytes of a segment.
pub(crate) const SEGMENT: u64 = 1 << 20;

pub(crate) struct Synthetic {
    /// What disturbs the writing.
    pub(crate) files: FaultyFileSystem,
    pub(crate) storage: Storage,
    pub(crate) wal: WalDirectory,
    pub(crate) checkpoint: Lsn,
    _directory: tempfile::TempDir,
}

/// Bytes of a page.
pub(crate) const PAGE: u64 = PAGE_BYTES as u64;

/// What a reader finds: beginnings, ends and main data of records, and how they end.
#[derive(Debug)]
pub(crate) struct ReadRecords {
    pub(crate) records: Vec<(Lsn, Lsn, Vec<u8>)>,
    pub(crate) end: Result<EndOfWal, Error>,
}

impl Synthetic {
    /// WAL with a checkpoint in the third segment, so many bytes behind its beginning.
    pub(crate) fn new(offset: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let files = FaultyFileSystem::default();
        let wal = WalDirectory {
            path: directory.path().to_path_buf(),
            timeline: 2,
            segment_size: SEGMENT as u32,
            version: PgVersion::V16,
            system_identifier: 42,
        };
        let checkpoint = Lsn(3 * SEGMENT + offset);
        let storage = Storage::new(Arc::new(files.clone()));
        let made = Self { files, storage, wal, checkpoint, _directory: directory };
        for (number, bytes) in (3..).zip(made.bytes().chunks(SEGMENT as usize)) {
            fs::write(made.file(Lsn(number * SEGMENT)), bytes).unwrap();
        }
        made
    }

    /// Whole segments from the third on: page headers, and the checkpoint record.
    fn bytes(&self) -> Vec<u8> {
        let record = RecordBuilder::shutdown_checkpoint(&self.body(), self.wal.version);
        let record = record.encode(Lsn(3 * SEGMENT), self.wal.version).unwrap().to_vec();
        let (mut bytes, mut left) = (Vec::new(), &record[..]);
        while !left.is_empty() {
            let address = Lsn(3 * SEGMENT + bytes.len() as u64);
            let is_begun = left.len() < record.len();
            let remaining = if is_begun { left.len() as u32 } else { 0 };
            let header = self.header(address);
            PageHeader { first_is_continuation: is_begun, remaining, ..header }.encode(&mut bytes);
            let page_end = bytes.len().next_multiple_of(PAGE_BYTES);
            let begin = (self.checkpoint.0 - 3 * SEGMENT) as usize;
            if begin < page_end {
                bytes.resize(begin.max(bytes.len()), 0);
                let (now, later) = left.split_at(left.len().min(page_end - bytes.len()));
                bytes.extend_from_slice(now);
                left = later;
            }
            bytes.resize(page_end, 0);
        }
        bytes.resize(bytes.len().next_multiple_of(SEGMENT as usize), 0);
        bytes
    }

    pub(crate) fn header(&self, address: Lsn) -> PageHeader {
        let long = LongHeader {
            system_identifier: self.wal.system_identifier,
            segment_size: self.wal.segment_size,
            page_size: PAGE_BYTES as u32,
        };
        PageHeader {
            magic: page_magic(self.wal.version),
            first_is_continuation: false,
            images_removable: false,
            first_is_overwrite: false,
            timeline: self.wal.timeline,
            address,
            remaining: 0,
            long: address.0.is_multiple_of(SEGMENT).then_some(long),
        }
    }

    fn body(&self) -> Checkpoint {
        let next_xid = FullTransactionId(700);
        Checkpoint { next_xid, ..Checkpoint::initial(self.checkpoint, self.wal.timeline) }
    }

    pub(crate) fn file(&self, lsn: Lsn) -> PathBuf {
        self.wal.file_of(self.wal.segment_of(lsn))
    }

    pub(crate) fn writer(&self) -> WalWriter {
        let options = WriterOptions::default();
        WalWriter::begin(&self.storage, &self.wal, self.checkpoint, options).unwrap()
    }

    /// A record that takes `len` bytes, at least 26.
    pub(crate) fn record(len: usize) -> RecordBuilder<'static> {
        let header = if len <= 24 + 2 + 255 { 26 } else { 29 };
        let manager = ResourceManager::HEAP;
        let data: Vec<u8> = (0..len - header).map(|at| (at / 7) as u8).collect();
        RecordBuilder::new(manager, 0, TransactionId(700)).main_data(data)
    }

    /// Fills the WAL with zeros or changes it at some place.
    pub(crate) fn change(&self, lsn: Lsn, bytes: &[u8]) {
        let offset = (lsn.0 % SEGMENT) as usize;
        let mut file = fs::read(self.file(lsn)).unwrap();
        file[offset..offset + bytes.len()].copy_from_slice(bytes);
        fs::write(self.file(lsn), file).unwrap();
    }

    /// All that is read behind the checkpoint.
    pub(crate) fn found(&self) -> ReadRecords {
        self.found_with(WalReader::at(&self.storage, &self.wal, self.checkpoint), 1)
    }

    /// All that a reader reads, the first few records left out.
    pub(crate) fn found_with(&self, mut reader: WalReader, skip: usize) -> ReadRecords {
        let mut records = Vec::new();
        let end = loop {
            match reader.next_record() {
                Ok(Some(record)) => {
                    let data = record.parse().unwrap().main_data.to_vec();
                    records.push((record.lsn, record.end, data));
                }
                Ok(None) => break Ok(reader.end().unwrap().clone()),
                Err(error) => break Err(error),
            }
        };
        assert!(matches!(reader.next_record(), Ok(None)), "nothing is read after the end");
        let records = records.split_off(skip.min(records.len()));
        ReadRecords { records, end }
    }
}
