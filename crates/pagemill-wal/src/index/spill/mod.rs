//! [`Spill`]: entries that do not fit in memory, in temporary files without a name.
//!
//! ```text
//! memory is full ─→ a run: all entries, sorted by fork, block and LSN        (appended, never changed)
//! as many runs of one tier as are read at once ─→ one run of the next tier
//! all WAL is read ─→ one file with a directory of its chunks: what a block's entries are looked up in
//! ```
//!
//! A truncation, or the removal of a file, makes entries needless that are in runs already. Those are left there: the fork
//! keeps [from which run on](Cuts) entries count, and whoever merges runs leaves the others out.
//!
//! The other way, a second pass over the WAL for the forks that are asked for, would have to read 100 GiB again whenever a fork
//! is asked for that nobody thought of, and would not hold for a fork that is larger than memory by itself. Entries take about 5
//! bytes here, a twentieth of the WAL at most, and those that an image makes needless are left out when runs are merged.
//!
//! Invariants: entries of a run are older than those of one with a higher number. Files have no name, so that nothing is left
//! behind, however the process ends.

mod chunk;
mod cuts;
mod merge;
mod run;
mod sorted_writer;
mod spilled_entries;

use std::collections::HashMap;
use std::sync::Arc;

use pagemill_format::BlockNumber;
use pagemill_io::Storage;

use super::entry::{Entry, ForkKey};
use super::files::DatabaseDirectory;
use super::memory::MemoryLimits;
use super::{ForkHistory, Forks, directory_of};
use crate::error::{Error, Result};
pub(super) use cuts::Cuts;
use merge::merge;
use run::{Run, RunCursor};
use sorted_writer::{CHUNK_ENTRIES, ChunkPlace, SortedWriter};
use spilled_entries::SpilledEntries;
pub(super) use spilled_entries::SpilledFork;

/// Bytes of one block's entries that are handed out, however little memory there is.
const LEAST_BYTES_OF_BLOCK: usize = 4 << 20;
/// Runs that are read at once.
const MOST_RUNS: usize = 64;
/// What reading one takes: a chunk, its bytes, and what is read ahead.
const BYTES_OF_CURSOR: usize = 2 * CHUNK_ENTRIES * Entry::BYTES + (16 << 10);

/// Entries in temporary files.
#[derive(Debug)]
pub(super) struct Spill {
    storage: Storage,
    limits: MemoryLimits,
    /// The oldest first; a tier is never above that of an older one.
    runs: Vec<Run>,
    next_run: u32,
    /// From which run on entries of a directory's forks count: all those before are of files that were removed.
    forgotten: HashMap<DatabaseDirectory, u32>,
}

impl Spill {
    pub(super) fn new(storage: Storage, limits: MemoryLimits) -> Self {
        let (runs, forgotten) = (Vec::new(), HashMap::new());
        Self { storage, limits, runs, next_run: 0, forgotten }
    }

    /// The number of the run that comes next.
    pub(super) fn next_run(&self) -> u32 {
        self.next_run
    }

    /// What is kept in memory of them, in bytes.
    pub(super) fn fixed_bytes(&self) -> usize {
        const FORGOTTEN_BYTES: usize = 48;
        self.forgotten.capacity() * FORGOTTEN_BYTES
    }

    /// Entries of a directory's forks count no more that are in runs now.
    pub(super) fn forget(&mut self, directory: DatabaseDirectory) {
        if self.next_run > 0 {
            self.forgotten.insert(directory, self.next_run);
        }
    }

    /// Writes all entries of the forks to a run.
    ///
    /// # Errors
    /// Files that cannot be written or read.
    pub(super) fn write(&mut self, forks: &mut Forks) -> Result<()> {
        let with_entries = forks.iter().filter(|(_, fork)| fork.has_entries_in_memory());
        let mut keys: Vec<ForkKey> = with_entries.map(|(key, _)| *key).collect();
        keys.sort_unstable();
        let mut writer = SortedWriter::new()?;
        for key in keys {
            let entries = forks.get_mut(&key).map(ForkHistory::take_entries);
            entries.iter().flatten().try_for_each(|entry| writer.push(key, *entry))?;
        }
        self.add_run(writer)?;
        self.merge_tiers(forks)
    }

    fn add_run(&mut self, writer: SortedWriter) -> Result<()> {
        self.runs.push(Run::new(self.next_run, 0, writer.finish()?));
        let next = self.next_run.checked_add(1);
        self.next_run = next.ok_or(Error::Memory("the order of temporary files"))?;
        Ok(())
    }

    /// Entries of one directory's forks become entries of another one's, too, which are there already. All are in runs, and
    /// none of the other one's counts.
    ///
    /// # Errors
    /// Files that cannot be written or read.
    pub(super) fn copy(
        &mut self,
        forks: &Forks,
        from: DatabaseDirectory,
        to: DatabaseDirectory,
    ) -> Result<()> {
        let mut writer = SortedWriter::new()?;
        let keeps = |key: ForkKey| {
            (directory_of(key.locator) == from).then_some(()).and_then(|()| self.rule(forks, key))
        };
        merge(self.cursors(0)?, keeps, |mut key, entry| {
            (key.locator.tablespace, key.locator.database) = (to.tablespace, to.database);
            writer.push(key, entry)
        })?;
        self.add_run(writer)?;
        self.merge_tiers(forks)
    }

    /// Puts all that is in runs into one file, and gives each fork its part of it.
    ///
    /// # Errors
    /// Files that cannot be written or read; a directory that becomes too large.
    pub(super) fn finish(mut self, forks: &mut Forks) -> Result<()> {
        if self.runs.is_empty() {
            return Ok(());
        }
        self.write(forks)?;
        let mut writer = SortedWriter::with_directory(self.limits.fixed())?;
        let keeps = |key| self.rule(forks, key);
        merge(self.cursors(0)?, keeps, |key, entry| writer.push(key, entry))?;
        let mut written = writer.finish()?;
        let parts = std::mem::take(&mut written.forks);
        let most_entries = (self.limits.all / 2).max(LEAST_BYTES_OF_BLOCK) / Entry::BYTES;
        let file = Arc::new(SpilledEntries::new(self.storage.clone(), written, most_entries));
        for part in parts.into_iter().filter(|part| !part.chunks.is_empty()) {
            if let Some(fork) = forks.get_mut(&part.key) {
                let first_without_image = part.first_without_image;
                let (file, chunks) = (file.clone(), part.chunks);
                fork.set_spilled(SpilledFork { file, chunks, first_without_image });
            }
        }
        Ok(())
    }

    /// Which entries of a fork count: those of no run before a number, nor of blocks that were cut off.
    fn rule<'f>(
        &self,
        forks: &'f Forks,
        key: ForkKey,
    ) -> Option<impl Fn(u32, BlockNumber) -> bool + use<'f>> {
        let cuts = forks.get(&key)?.cuts();
        let first_run = self.forgotten.get(&directory_of(key.locator)).copied().unwrap_or(0);
        Some(move |run, block| run >= first_run && cuts.keep(run, block))
    }

    fn cursors(&self, first: usize) -> Result<Vec<RunCursor>> {
        self.runs[first..].iter().map(|run| run.cursor(&self.storage)).collect()
    }

    /// Makes one run of those of the last tier, once there are so many that they could not be read at once.
    fn merge_tiers(&mut self, forks: &Forks) -> Result<()> {
        let most = (self.limits.all / 4 / BYTES_OF_CURSOR).clamp(4, MOST_RUNS);
        while let Some(last) = self.runs.last() {
            let (number, tier) = (last.number, last.tier);
            let first = self.runs.partition_point(|run| run.tier > tier);
            if self.runs.len() - first < most {
                break;
            }
            let mut writer = SortedWriter::new()?;
            let keeps = |key| self.rule(forks, key);
            merge(self.cursors(first)?, keeps, |key, entry| writer.push(key, entry))?;
            self.runs.truncate(first);
            self.runs.push(Run::new(number, tier + 1, writer.finish()?));
        }
        Ok(())
    }
}

const _: () = assert!(ChunkPlace::BYTES == 16);
