//! Which files of `pg_wal` a copy of a stopped cluster needs: a server that starts on it reads the checkpoint that the
//! shutdown wrote, and goes on behind it.
//!
//! So the segment with that checkpoint is needed, those behind it that WAL was truly written to (the checkpoint may
//! reach into the next), and the histories of the timelines. Segments that were recycled for WAL to come carry the
//! address they had before in their first page, and are left out, as are those before the checkpoint.
//!
//! Sources: `StartupXLOG` in `src/backend/access/transam/xlog.c`, `IsTLHistoryFileName` in
//! `src/include/access/xlog_internal.h`, PostgreSQL 14 to 18.

use std::path::Path;

use pagemill_format::control::ControlFile;
use pagemill_format::wal::{PageHeader, SHORT_HEADER_BYTES, SegmentName};
use pagemill_io::Storage;

use super::error::CopyResult as Result;
use crate::refusal::CopyRefusal;

/// Which segments are needed.
pub(super) struct WalFiles {
    first: SegmentName,
}

impl WalFiles {
    pub(super) fn new(control: &ControlFile) -> Self {
        let checkpoint = &control.checkpoint;
        let size = control.build.wal_segment_size;
        Self { first: SegmentName::of(checkpoint.redo, checkpoint.timeline, size) }
    }

    /// True for a file that is needed.
    ///
    /// # Errors
    /// When the head of a segment cannot be read.
    pub(super) fn needs(&self, storage: &Storage, directory: &Path, name: &str) -> Result<bool> {
        if is_history(name) {
            return Ok(true);
        }
        match SegmentName::parse(name, self.first.segment_size) {
            Some(segment) if segment.timeline != self.first.timeline => Ok(false),
            Some(segment) if segment.number == self.first.number => Ok(true),
            Some(segment) if segment.number > self.first.number => {
                begins_there(storage, &directory.join(name), segment)
            }
            _ => Ok(false),
        }
    }

    /// Makes sure that the segment with the checkpoint is among those found.
    ///
    /// # Errors
    /// When it is missing.
    pub(super) fn check_found(&self, directory: &Path, names: &[String]) -> Result<()> {
        let first = self.first.to_string();
        if names.contains(&first) {
            return Ok(());
        }
        let directory = directory.to_owned();
        Err(CopyRefusal::MissingWal { directory, segment: first }.into())
    }
}

/// `TTTTTTTT.history`.
fn is_history(name: &str) -> bool {
    let timeline = name.strip_suffix(".history");
    timeline.is_some_and(|digits| digits.len() == 8 && u32::from_str_radix(digits, 16).is_ok())
}

/// True when WAL was written to the segment's beginning, and it was not only recycled.
fn begins_there(storage: &Storage, path: &Path, segment: SegmentName) -> Result<bool> {
    let file = storage.open(path)?;
    let mut head = [0; SHORT_HEADER_BYTES];
    let got = storage.read_fully_at(&*file, &mut head, 0);
    got.map_err(|error| pagemill_io::Error::new(error, path))?;
    // Only a long header tells its own length, and here only the address is asked for.
    let header = PageHeader::parse(&short(head));
    Ok(header.is_ok_and(|header| header.address == segment.start()))
}

/// The head without the flag that more of it follows.
fn short(mut head: [u8; SHORT_HEADER_BYTES]) -> [u8; SHORT_HEADER_BYTES] {
    const LONG: u8 = 0x02;
    head[2] &= !LONG;
    head
}
