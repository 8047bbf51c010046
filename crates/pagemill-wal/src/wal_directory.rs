//! Where a cluster's WAL lies, and how it is cut.
//!
//! What a reader and a writer have to know beforehand is in the control file. Where there is none, the first
//! page of any segment says it too.

use std::path::{Path, PathBuf};

use pagemill_format::control::ControlFile;
use pagemill_format::wal::{self, PAGE_BYTES, PageHeader, SegmentName};
use pagemill_format::{Lsn, PgVersion};
use pagemill_io::Storage;

use crate::error::{Error, Refusal, Result};

/// A directory of WAL segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalDirectory {
    /// The directory: `pg_wal` of a data directory, or an archive.
    pub path: PathBuf,
    /// The timeline that is followed.
    pub timeline: u32,
    /// Bytes of a segment.
    pub segment_size: u32,
    /// The version that wrote it.
    pub version: PgVersion,
    /// The cluster's system identifier.
    pub system_identifier: u64,
}

impl WalDirectory {
    /// The WAL of the cluster with this data directory and control file.
    ///
    /// # Errors
    /// The control file says sizes of segments or pages that no supported server has.
    pub fn of_cluster(data_directory: &Path, control: &ControlFile) -> Result<Self> {
        let path = data_directory.join("pg_wal");
        let (segment_size, page_size) =
            (control.build.wal_segment_size, control.build.wal_block_size);
        check_sizes(&path, segment_size, page_size)?;
        Ok(Self {
            path,
            timeline: control.checkpoint.timeline,
            segment_size,
            version: control.version,
            system_identifier: control.system_identifier,
        })
    }

    /// The WAL that a segment's file belongs to, and which segment of it the file is.
    ///
    /// # Errors
    /// The file cannot be read, is no WAL of a supported version, or has another name than its contents.
    pub fn of_segment(storage: &Storage, file: &Path) -> Result<(Self, SegmentName)> {
        let mut page = vec![0; PAGE_BYTES];
        let opened = storage.open(file)?;
        let got = storage.read_fully_at(opened.as_ref(), &mut page, 0);
        let got = got.map_err(|error| pagemill_io::Error::new(error, file))?;
        let header = PageHeader::parse(page.get(..got).unwrap_or_default())
            .map_err(|error| refuse(file, error))?;
        let Some(version) = wal::version_of_magic(header.magic) else {
            return Err(refuse(file, Refusal::Magic(header.magic)));
        };
        let Some(long) = header.long else {
            return Err(refuse(file, Refusal::NoLongHeader));
        };
        check_sizes(file, long.segment_size, long.page_size)?;
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let segment = SegmentName::parse(name, long.segment_size)
            .ok_or_else(|| refuse(file, Refusal::Name))?;
        let path = file.parent().unwrap_or(Path::new("")).to_path_buf();
        let path = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path };
        let directory = Self {
            path,
            timeline: segment.timeline,
            segment_size: long.segment_size,
            version,
            system_identifier: long.system_identifier,
        };
        Ok((directory, segment))
    }

    /// The segment with the byte at `lsn`.
    pub fn segment_of(&self, lsn: Lsn) -> SegmentName {
        SegmentName::of(lsn, self.timeline, self.segment_size)
    }

    /// The file of a segment.
    pub fn file_of(&self, segment: SegmentName) -> PathBuf {
        self.path.join(segment.to_string())
    }

    /// Where in its segment a byte is.
    pub(crate) fn offset_of(&self, lsn: Lsn) -> u64 {
        lsn.0 % u64::from(self.segment_size)
    }
}

fn check_sizes(path: &Path, segment_size: u32, page_size: u32) -> Result<()> {
    if !wal::is_segment_size(segment_size) {
        return Err(refuse(path, Refusal::SegmentSize(segment_size)));
    }
    if page_size as usize != PAGE_BYTES {
        let cause = Refusal::PageSize { found: page_size, expected: PAGE_BYTES };
        return Err(refuse(path, cause));
    }
    Ok(())
}

fn refuse(path: &Path, cause: impl Into<Refusal>) -> Error {
    Error::Refused { path: path.to_path_buf(), cause: cause.into() }
}
