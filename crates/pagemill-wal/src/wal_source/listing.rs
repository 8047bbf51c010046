//! Which files there are for each segment, over all places.
//!
//! Invariant: the files of a segment are in the order they are looked at, whole ones and partial ones alike: by
//! place, then plain names before those that an archiver made longer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pagemill_io::Storage;

use super::{WalSource, segment_name};
use crate::error::Result;

/// A file that may hold a segment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    /// Which of the source's places it lies in.
    pub(crate) place: usize,
    /// The file.
    pub(crate) path: PathBuf,
    /// The timeline that its name says.
    pub(crate) timeline: u32,
    /// It is called a partial one.
    pub(crate) is_partial: bool,
}

/// All files that may hold segments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listing {
    segments: BTreeMap<u64, Vec<Candidate>>,
}

impl Listing {
    /// Lists all places of a source. A `pg_wal` that is not there holds nothing: backups can be without it.
    pub(crate) fn read(storage: &Storage, source: &WalSource) -> Result<Self> {
        let mut listing = Self::default();
        for (place, path) in source.places().enumerate() {
            let is_archive = source.is_archive(place);
            match storage.read_dir(path) {
                Ok(entries) => {
                    for entry in entries {
                        let name = entry.name.to_str().unwrap_or_default();
                        if is_archive && segment_name::is_directory(name) {
                            listing.add_directory(storage, source, place, &path.join(name))?;
                        } else {
                            listing.add(source, place, path, name);
                        }
                    }
                }
                Err(error) if error.is_not_found() && !is_archive && source.history().is_some() => {
                }
                Err(error) => return Err(error.into()),
            }
        }
        listing.segments.values_mut().for_each(|candidates| candidates.sort());
        Ok(listing)
    }

    fn add_directory(
        &mut self,
        storage: &Storage,
        source: &WalSource,
        place: usize,
        path: &Path,
    ) -> Result<()> {
        for entry in storage.read_dir(path)? {
            self.add(source, place, path, entry.name.to_str().unwrap_or_default());
        }
        Ok(())
    }

    fn add(&mut self, source: &WalSource, place: usize, directory: &Path, name: &str) {
        let segment_size = source.directory().segment_size;
        if let Some((segment, is_partial)) = segment_name::parse(name, segment_size) {
            let (path, timeline) = (directory.join(name), segment.timeline);
            let candidate = Candidate { place, path, timeline, is_partial };
            self.segments.entry(segment.number).or_default().push(candidate);
        }
    }

    /// The files for a segment.
    pub(crate) fn of(&self, number: u64) -> &[Candidate] {
        self.segments.get(&number).map_or(&[], Vec::as_slice)
    }

    /// The numbers behind `number` that there is any file for, ascending.
    pub(crate) fn after(&self, number: u64) -> impl Iterator<Item = u64> + '_ {
        self.segments.range(number.saturating_add(1)..).map(|(number, _)| *number)
    }

    /// The numbers behind `number` that there are whole files for, ascending.
    pub(crate) fn behind(&self, number: u64) -> impl DoubleEndedIterator<Item = u64> + '_ {
        let range = self.segments.range(number.saturating_add(1)..);
        range
            .filter(|(_, files)| files.iter().any(|file| !file.is_partial))
            .map(|(number, _)| *number)
    }
}
