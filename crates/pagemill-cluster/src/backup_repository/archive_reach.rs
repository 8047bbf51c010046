//! [`ArchiveReach`]: from where to where an archive has WAL, and up to which moment.
//!
//! Where, is told by names alone, out of three listings at most: pgBackRest and Barman put segments into directories of the first 16
//! digits of their names, WAL-G puts them all into one. The moment is that of the last commit, for which the last segments are read.
//!
//! Source: `archiveInfo` in `src/command/info/info.c`, pgBackRest 2.59; `hash_dir` in `barman/xlog.py`, Barman 3.17.

use std::path::{Path, PathBuf};

use pagemill_format::backup::TimelineHistory;
use pagemill_format::wal::SegmentName;
use pagemill_format::{Lsn, PgVersion};
use pagemill_io::Storage;
use pagemill_wal::{WalDirectory, WalReader, WalSource, is_compression_suffix};

use crate::error::Result;
use crate::recovery::plan::{Landmark, Moment, TransactionEnd};

/// Digits of a segment's name, and those of its directory.
const DIGITS: [usize; 2] = [24, 16];
/// Segments that are read at most for a commit: others may have none, as of a server that nobody uses.
const MOST_READ: usize = 4;

/// The WAL of one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveReach {
    /// Its directory, as it is called in the repository: `15-1`, `wals`.
    pub directory: String,
    /// The names of the first and the last segment, if there are any.
    pub segments: Option<(String, String)>,
    /// The latest moment that a recovery can stop at: that of the last commit, if the last segments have one.
    pub last_commit: Option<Moment>,
}

/// An archive, and what is known of the cluster whose WAL it has.
#[derive(Debug)]
pub(super) struct Archived {
    pub(super) path: PathBuf,
    pub(super) version: Option<PgVersion>,
    pub(super) system_identifier: Option<u64>,
    pub(super) segment_size: Option<u32>,
}

impl ArchiveReach {
    pub(super) fn of(storage: &Storage, directory: String, archived: &Archived) -> Result<Self> {
        let found = Segments::of(storage, &archived.path)?;
        let last_commit = match &found {
            Some(found) => found.last_commit(storage, archived)?,
            None => None,
        };
        let segments = found.and_then(|mut found| Some((found.first, found.names.pop()?)));
        Ok(Self { directory, segments, last_commit })
    }
}

/// The ends of an archive.
struct Segments {
    first: String,
    /// The directory with the last segment.
    directory: PathBuf,
    /// The segments in it, in order.
    names: Vec<String>,
}

impl Segments {
    fn of(storage: &Storage, archive: &Path) -> Result<Option<Self>> {
        let in_one = names(storage, archive, DIGITS[0])?;
        if let Some(first) = in_one.first().cloned() {
            return Ok(Some(Self { first, directory: archive.to_owned(), names: in_one }));
        }
        let directories = names(storage, archive, DIGITS[1])?;
        let Some((first, last)) = directories.first().zip(directories.last()) else {
            return Ok(None);
        };
        let last_names = names(storage, &archive.join(last), DIGITS[0])?;
        let first = match first == last {
            true => last_names.first().cloned(),
            false => names(storage, &archive.join(first), DIGITS[0])?.into_iter().next(),
        };
        let directory = archive.join(last);
        Ok(first.map(|first| Self { first, directory, names: last_names }))
    }

    /// When the last transaction committed that the last segments have.
    fn last_commit(&self, storage: &Storage, archived: &Archived) -> Result<Option<Moment>> {
        let Archived { version, system_identifier, segment_size, .. } = archived;
        let (Some(version), Some(system_identifier), Some(segment_size)) =
            (*version, *system_identifier, *segment_size)
        else {
            return Ok(None);
        };
        for name in self.names.iter().rev().take(MOST_READ) {
            let Some(segment) = SegmentName::parse(name, segment_size) else { continue };
            let directory = WalDirectory {
                // Nothing lies there: all comes from the archive.
                path: self.directory.join("pg_wal"),
                timeline: segment.timeline,
                segment_size,
                version,
                system_identifier,
            };
            let history = TimelineHistory::without_parents(segment.timeline);
            let archives = vec![self.directory.clone()];
            let source = WalSource::along(&directory, archives, history);
            let found = last_commit_from(storage, &source, segment.start())?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

fn last_commit_from(storage: &Storage, source: &WalSource, start: Lsn) -> Result<Option<Moment>> {
    let mut reader = match WalReader::from_along(storage, source, start) {
        // A record fills the segment, or what lies there is not to be read: a recovery will say.
        Err(pagemill_wal::Error::Io(error)) => return Err(error.into()),
        Err(_) => return Ok(None),
        Ok(reader) => reader,
    };
    let mut last = None;
    while let Some(record) = reader.next_record()? {
        if let Some(Landmark::Transaction(TransactionEnd::Commit(_, time))) =
            Landmark::of(&record, source.version())?
        {
            last = last.max(Some(Moment(time)));
        }
    }
    Ok(last)
}

/// How large segments are: so that these places lie in the segments of these names.
pub(super) fn segment_size(told: &[(Lsn, &str)]) -> Option<u32> {
    let is_it = |size: &u32| {
        told.iter().all(|(lsn, name)| {
            SegmentName::parse(name, *size).is_some_and(|segment| {
                // A place behind the last byte of a segment is the beginning of the next.
                (segment.start().0..=segment.end().0).contains(&lsn.0)
            })
        })
    };
    // From 1 MB to 1 GB; what initdb makes first.
    let sizes = std::iter::once(16 << 20).chain((20..=30).map(|bits| 1 << bits));
    sizes.filter(|_| !told.is_empty()).find(is_it)
}

/// What the names in a directory begin with that have so many digits, in order, each once; those of segments that are not whole,
/// and of other files about segments, are left out.
fn names(storage: &Storage, directory: &Path, digits: usize) -> Result<Vec<String>> {
    let entries = match storage.read_dir(directory) {
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        entries => entries?,
    };
    let name = |name: &str| {
        let (number, rest) = name.split_at_checked(digits)?;
        let is_number = number.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'));
        let is_whole = rest.starts_with('-') || is_compression_suffix(rest);
        (is_number && is_whole).then(|| number.to_owned())
    };
    let mut names: Vec<_> = entries.iter().filter_map(|entry| name(entry.name.to_str()?)).collect();
    names.sort();
    names.dedup();
    Ok(names)
}
