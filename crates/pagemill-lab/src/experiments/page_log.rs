//! WAL of a copy: images of its pages, appended by the project's writer to a directory of the run's own.
//!
//! A writer goes on behind a shutdown checkpoint, so the directory begins with a segment that holds nothing else. Nobody replays
//! this WAL; it is as long, and leaves as a cluster's would. Invariant: what was logged is on the device once [`PageLog::sync`]
//! returned.

use std::io::Write as _;
use std::path::Path;

use pagemill_format::control::{Checkpoint, FullTransactionId};
use pagemill_format::wal::{
    LongHeader, PAGE_BYTES, PageHeader, RecordBuilder, RelFileLocator, page_magic,
};
use pagemill_format::{BlockBytes, BlockNumber, Fork, Lsn, Oid, PgVersion, TransactionId};
use pagemill_io::Storage;
use pagemill_wal::{WalDirectory, WalWriter, WriterOptions};

use crate::error::{Error, Result};

/// Bytes of a segment.
const SEGMENT: u32 = 16 << 20;
/// The number of the first segment; a cluster never has segment 0.
const FIRST: u64 = 1;

/// How many images one record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Records {
    /// One, as `log_newpage_buffer` of the server writes them.
    Single,
    /// Up to 32, as `log_newpages` does.
    Batches,
}

/// WAL that is written.
#[derive(Debug)]
pub(crate) struct PageLog {
    writer: WalWriter,
    records: Records,
}

fn fault(error: pagemill_wal::Error) -> Error {
    Error::system("WAL")(std::io::Error::other(error.to_string()))
}

impl PageLog {
    /// A log in an empty directory, which it gets a first segment in.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub(crate) fn begin(storage: &Storage, path: &Path, records: Records) -> Result<Self> {
        let wal = WalDirectory {
            path: path.into(),
            timeline: 1,
            segment_size: SEGMENT,
            version: PgVersion::V18,
            system_identifier: 1,
        };
        let (checkpoint, bytes) = first_segment(&wal)?;
        let file = wal.file_of(wal.segment_of(checkpoint));
        make_segment(&file, &bytes).map_err(Error::file(&file))?;
        let options = WriterOptions::default();
        let writer = WalWriter::begin(storage, &wal, checkpoint, options).map_err(fault)?;
        Ok(Self { writer, records })
    }

    /// True when pages that come together share a record.
    pub(crate) fn takes_batches(&self) -> bool {
        self.records == Records::Batches
    }

    /// Logs pages that follow each other in the file of that number.
    ///
    /// # Errors
    /// When the WAL cannot be written.
    pub(crate) fn log(
        &mut self,
        number: u32,
        first: BlockNumber,
        pages: &[BlockBytes],
    ) -> Result<()> {
        let locator =
            RelFileLocator { tablespace: Oid(1663), database: Oid(5), number: Oid(number) };
        let batch = if self.records == Records::Single { 1 } else { pages.len().max(1) };
        let pages: Vec<_> = (first.0..).map(BlockNumber).zip(pages).collect();
        for pages in pages.chunks(batch) {
            let logged = self.writer.append_images(locator, Fork::Main, pages, TransactionId(700));
            logged.map_err(fault)?;
        }
        Ok(())
    }

    /// Waits until the device holds all of it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.writer.sync().map_err(fault)
    }
}

/// A segment that begins with these bytes, and is on the device before anything is measured.
fn make_segment(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::File::create_new(path)?;
    file.write_all(bytes)?;
    file.set_len(SEGMENT.into())?;
    file.sync_all()
}

/// Where the checkpoint is, and what the segment with it begins with.
fn first_segment(wal: &WalDirectory) -> Result<(Lsn, Vec<u8>)> {
    let start = Lsn(FIRST * u64::from(SEGMENT));
    let long = LongHeader {
        system_identifier: wal.system_identifier,
        segment_size: wal.segment_size,
        page_size: PAGE_BYTES as u32,
    };
    let header = PageHeader {
        magic: page_magic(wal.version),
        first_is_continuation: false,
        images_removable: false,
        first_is_overwrite: false,
        timeline: wal.timeline,
        address: start,
        remaining: 0,
        long: Some(long),
    };
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    let checkpoint = Lsn(start.0 + bytes.len() as u64);
    let record = RecordBuilder::shutdown_checkpoint(&body(checkpoint), wal.version);
    let encoded = record.encode(Lsn(0), wal.version);
    bytes.extend(encoded.map_err(|error| fault(error.into()))?.to_vec());
    Ok((checkpoint, bytes))
}

fn body(redo: Lsn) -> Checkpoint {
    let next_xid = FullTransactionId(700);
    Checkpoint { wal_level: Some(1), next_xid, ..Checkpoint::initial(redo, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagemill_wal::WalReader;

    #[test]
    fn a_record_holds_one_image_or_as_many_as_came_together() {
        for (records, expected) in [(Records::Single, 40), (Records::Batches, 2)] {
            let dir = tempfile::tempdir().unwrap();
            let storage = Storage::real();
            let mut log = PageLog::begin(&storage, dir.path(), records).unwrap();
            let pages = vec![[7; 8192]; 20];
            log.log(16_384, BlockNumber(0), &pages).unwrap();
            log.log(16_384, BlockNumber(20), &pages).unwrap();
            log.sync().unwrap();
            let wal =
                WalDirectory::of_segment(&storage, &dir.path().join("000000010000000000000001"));
            let (wal, segment) = wal.unwrap();
            let mut reader = WalReader::at(&storage, &wal, Lsn(segment.start().0 + 40));
            let (mut found, mut images) = (0, 0);
            while let Some(record) = reader.next_record().unwrap() {
                found += 1;
                images += record.parse().unwrap().blocks.len();
            }
            assert_eq!((found - 1, images), (expected, 40));
        }
    }
}
