//! [`WalSource`]: all the places WAL may come from, and the timelines it is read along.
//!
//! Of one segment there can be several files: in archives and in `pg_wal`, and one for each timeline that wrote to
//! it. Which one is read is PostgreSQL's rule: the newest timeline of the history first, never one below that of the
//! file before, none that begins in a later segment, and of one timeline an archive before `pg_wal`. A file that is
//! called `.partial`, which no server reads, is read where it can only be a timeline's last.
//!
//! Source: `XLogFileReadAnyTLI` in `src/backend/access/transam/xlogrecovery.c` (14: `xlog.c`), PostgreSQL 14 to 18.

mod listing;
mod segment_name;
mod stored_file;

use std::collections::HashMap;
use std::path::PathBuf;

use pagemill_format::backup::TimelineHistory;
use pagemill_format::wal::SegmentName;
use pagemill_format::{Lsn, PgVersion};
use pagemill_io::Storage;

use crate::error::{Error, Refusal, Result};
use crate::wal_directory::WalDirectory;
pub(crate) use listing::{Candidate, Listing};
pub use segment_name::is_compression_suffix;
use stored_file::Expected;
pub(crate) use stored_file::SegmentBytes;

/// A history file has a line for each timeline before; nobody has that many.
const MAX_HISTORY_BYTES: u64 = 1 << 20;

/// Where WAL is looked for, and along which timelines it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalSource {
    directory: WalDirectory,
    archives: Vec<PathBuf>,
    history: Option<TimelineHistory>,
    memory: usize,
}

impl WalSource {
    /// The memory that WAL is read in if nothing else is said, in bytes.
    pub const DEFAULT_MEMORY: usize = 256 << 20;

    /// The WAL of one directory up to the timeline it names, whatever led there: of each segment the file of the
    /// highest timeline that is not above it.
    pub fn of_directory(directory: &WalDirectory) -> Self {
        let (archives, memory) = (Vec::new(), Self::DEFAULT_MEMORY);
        Self { directory: directory.clone(), archives, history: None, memory }
    }

    /// The WAL along a history: from `archives`, in this order, then from `pg_wal`, which `directory` names. Archives
    /// may hold compressed segments under the names of pgBackRest, Barman and WAL-G.
    pub fn along(
        directory: &WalDirectory,
        archives: Vec<PathBuf>,
        history: TimelineHistory,
    ) -> Self {
        let directory = WalDirectory { timeline: history.timeline(), ..directory.clone() };
        Self { directory, archives, history: Some(history), memory: Self::DEFAULT_MEMORY }
    }

    /// The same WAL, read in this many bytes of memory, but for a few MiB: the segments that are at hand, and the
    /// [index](crate::WalIndex) of what they do.
    #[must_use]
    pub fn within(self, memory: usize) -> Self {
        Self { memory, ..self }
    }

    /// The memory that it is read in, in bytes.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// `pg_wal`, and how WAL is cut; its timeline is the one that is followed.
    pub fn directory(&self) -> &WalDirectory {
        &self.directory
    }

    /// The version that wrote the WAL.
    pub fn version(&self) -> PgVersion {
        self.directory.version
    }

    /// The timelines that are followed; `None` for a directory that is read by its highest files.
    pub fn history(&self) -> Option<&TimelineHistory> {
        self.history.as_ref()
    }

    /// Reads the history of a timeline from the first place that has it; one without a file has no known parents.
    ///
    /// # Errors
    /// A file that cannot be read, or is none.
    pub fn read_history(
        storage: &Storage,
        directory: &WalDirectory,
        archives: &[PathBuf],
        timeline: u32,
    ) -> Result<TimelineHistory> {
        let found = match timeline {
            1 => None,
            _ => history_file(storage, directory, archives, timeline)?,
        };
        let Some((path, bytes)) = found else {
            return Ok(TimelineHistory::without_parents(timeline));
        };
        TimelineHistory::parse(timeline, &bytes)
            .map_err(|error| Error::Refused { path, cause: Refusal::History(error) })
    }

    /// The newest timeline from `timeline` on that has a history file, with no number left out before it.
    ///
    /// # Errors
    /// A place that cannot be listed.
    pub fn newest_timeline(
        storage: &Storage,
        directory: &WalDirectory,
        archives: &[PathBuf],
        timeline: u32,
    ) -> Result<u32> {
        let mut newest = timeline;
        while let Some(next) = newest.checked_add(1)
            && history_file(storage, directory, archives, next)?.is_some()
        {
            newest = next;
        }
        Ok(newest)
    }

    /// Where the oldest segment begins from which on no segment up to that with the byte at `lsn` is missing.
    ///
    /// # Errors
    /// A place that cannot be listed.
    pub fn oldest_before(&self, storage: &Storage, lsn: Lsn) -> Result<Lsn> {
        let listing = Listing::read(storage, self)?;
        let mut segment = self.directory.segment_of(lsn);
        while let Some(before) = segment.number.checked_sub(1)
            && self.choose(&listing, before, 0).is_some()
        {
            segment.number = before;
        }
        Ok(segment.start())
    }

    /// The places in the order they are looked at.
    pub fn places(&self) -> impl Iterator<Item = &PathBuf> {
        self.archives.iter().chain(std::iter::once(&self.directory.path))
    }

    /// True for a place that an archiver filled: what lies there is whole, and may be compressed.
    pub(crate) fn is_archive(&self, place: usize) -> bool {
        place < self.archives.len()
    }

    /// Opens a file; `None` when it is gone.
    pub(crate) fn open(&self, storage: &Storage, file: &Candidate) -> Result<Option<SegmentBytes>> {
        let expected = Expected {
            segment_size: self.directory.segment_size,
            is_archived: self.is_archive(file.place),
            is_partial: file.is_partial,
        };
        match SegmentBytes::open(storage, &file.path, &expected) {
            Err(Error::Io(error)) if error.is_not_found() => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Where the part of the way on which a timeline was followed ends.
    pub(crate) fn left_at(&self, timeline: u32) -> Option<Lsn> {
        self.history.as_ref()?.part(timeline)?.end
    }

    /// The file for a segment, when that before was of `timeline_before`.
    pub(crate) fn choose<'a>(
        &self,
        listing: &'a Listing,
        number: u64,
        timeline_before: u32,
    ) -> Option<&'a Candidate> {
        let candidates = listing.of(number);
        let Some(history) = &self.history else {
            let followed = |c: &&Candidate| c.timeline <= self.directory.timeline && !c.is_partial;
            return candidates.iter().filter(followed).max_by_key(|c| c.timeline);
        };
        let segment_size = self.directory.segment_size;
        let eligible = |is_partial: bool| {
            let mut parts = history.parts().iter().rev();
            parts.find_map(|part| {
                let begin = SegmentName::of(part.begin, part.timeline, segment_size).number;
                let is_on_the_way = part.timeline >= timeline_before && number >= begin;
                let of_part = |c: &&Candidate| {
                    is_on_the_way && c.timeline == part.timeline && c.is_partial == is_partial
                };
                candidates.iter().find(of_part)
            })
        };
        // A partial file ends a timeline: where whole ones follow, the whole one is what is missing.
        let is_last = || listing.of(number.saturating_add(1)).iter().all(|c| c.is_partial);
        eligible(false).or_else(|| if is_last() { eligible(true) } else { None })
    }
}

impl WalSource {
    /// The file that is read for each segment from `first` on, by whoever begins there.
    pub(crate) fn chosen(&self, listing: &Listing, first: u64) -> HashMap<u64, Candidate> {
        let mut files = HashMap::new();
        let mut timeline = 0;
        for number in std::iter::once(first).chain(listing.after(first)) {
            // Never back to an older timeline than that of the file before.
            if let Some(file) = self.choose(listing, number, timeline) {
                timeline = file.timeline;
                files.insert(number, file.clone());
            }
        }
        files
    }
}

/// The history file of a timeline, from the first place that has it.
fn history_file(
    storage: &Storage,
    directory: &WalDirectory,
    archives: &[PathBuf],
    timeline: u32,
) -> Result<Option<(PathBuf, Vec<u8>)>> {
    let wanted = TimelineHistory::file_name(timeline);
    for place in archives.iter().chain(std::iter::once(&directory.path)) {
        let entries = match storage.read_dir(place) {
            Ok(entries) => entries,
            Err(error) if error.is_not_found() && *place == directory.path => continue,
            Err(error) => return Err(error.into()),
        };
        let names = entries.iter().filter_map(|entry| entry.name.to_str());
        let is_it = |name: &&str| {
            let rest = name.strip_prefix(wanted.as_str());
            rest.is_some_and(segment_name::is_suffix)
        };
        if let Some(name) = names.filter(is_it).min() {
            let path = place.join(name);
            let bytes = stored_file::read_small(storage, &path, MAX_HISTORY_BYTES)?;
            return Ok(Some((path, bytes)));
        }
    }
    Ok(None)
}
