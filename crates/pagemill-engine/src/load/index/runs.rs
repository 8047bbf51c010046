//! Runs of index entries, in memory as long as there is room, in a temporary file beyond that.
//!
//! When memory is full, its runs are merged into one and written aside; so the number of runs, each of which needs a
//! buffer when it is read back, stays small for any input. The file has no name and is gone with the process.
//!
//! Invariant: each run is in the order of the index.

use std::ops::Range;
use std::sync::Arc;

use pagemill_io::{Storage, WritableFile};
use pagemill_types::index_key_order::KeyOrder;

use super::keys::{Entry, KeyRun};
use super::merge::merge;
use super::sources::{FileRun, KeySource};
use crate::error::Result;

/// Bytes of entries that all indexes keep in memory, and one at least.
const MOST_BYTES: usize = 96 << 20;
const LEAST_BYTES: usize = 8 << 20;
/// The least of each where there are many, as those of many partitions.
const LEAST_OF_MANY: usize = 1 << 20;
const MANY: usize = 64;
/// Runs of one index kept in memory: the cost of cutting a part grows with them.
const MOST_RUNS: usize = 4096;
/// Written at once.
const WRITE_BYTES: usize = 1 << 20;

/// What one of several indexes has of a machine.
#[derive(Debug, Clone, Copy)]
pub(in crate::load) struct MergeShare {
    /// Indexes that are built, which have memory together.
    pub(in crate::load) indexes: usize,
    /// Threads that merge.
    pub(in crate::load) jobs: usize,
}

/// The runs of one index.
#[derive(Debug)]
pub(in crate::load) struct KeyRuns {
    storage: Storage,
    directory: std::path::PathBuf,
    /// Threads that merge.
    jobs: usize,
    in_memory: Vec<KeyRun>,
    bytes: usize,
    most_bytes: usize,
    file: Option<WritableFile>,
    written: u64,
    /// Where each run lies in the file.
    aside: Vec<Range<u64>>,
}

impl KeyRuns {
    /// None yet; what is too much for memory goes into a file in `directory`.
    pub(in crate::load) fn new(
        storage: &Storage,
        directory: &std::path::Path,
        share: MergeShare,
    ) -> Self {
        let MergeShare { indexes, jobs } = share;
        Self {
            storage: storage.clone(),
            directory: directory.to_owned(),
            jobs,
            in_memory: Vec::new(),
            bytes: 0,
            most_bytes: (MOST_BYTES / indexes.max(1)).max(if indexes > MANY {
                LEAST_OF_MANY
            } else {
                LEAST_BYTES
            }),
            file: None,
            written: 0,
            aside: Vec::new(),
        }
    }

    /// Adds a run.
    ///
    /// # Errors
    /// When runs have to be written aside, and cannot be.
    pub(in crate::load) fn push(&mut self, run: KeyRun, order: &KeyOrder) -> Result<()> {
        if run.entries.is_empty() {
            return Ok(());
        }
        self.bytes += run.bytes.len() + run.entries.len() * size_of::<Entry>();
        self.in_memory.push(run);
        let is_too_much = self.bytes > self.most_bytes || self.in_memory.len() > MOST_RUNS;
        if is_too_much { self.write_aside(order) } else { Ok(()) }
    }

    fn write_aside(&mut self, order: &KeyOrder) -> Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                let made = self.storage.temporary_file(&self.directory);
                made.map_err(pagemill_cluster::Error::from)?
            }
        };
        let begin = self.written;
        let mut buffer = Vec::with_capacity(WRITE_BYTES);
        merge(order, in_memory(std::mem::take(&mut self.in_memory)), self.jobs, |run| {
            FileRun::form(run, &mut buffer);
            if buffer.len() >= WRITE_BYTES { self.write(&file, &mut buffer) } else { Ok(()) }
        })?;
        self.write(&file, &mut buffer)?;
        self.aside.push(begin..self.written);
        self.file = Some(file);
        self.bytes = 0;
        Ok(())
    }

    fn write(&mut self, file: &WritableFile, buffer: &mut Vec<u8>) -> Result<()> {
        file.write_all_at(buffer, self.written).map_err(pagemill_cluster::Error::from)?;
        self.written += buffer.len() as u64;
        buffer.clear();
        Ok(())
    }

    /// The runs, each to be read from its start.
    pub(in crate::load) fn into_sources<'p>(self) -> Vec<KeySource<'p>> {
        let aside = self.aside.into_iter().zip(std::iter::repeat(self.file));
        let aside =
            aside.filter_map(|(range, file)| Some(KeySource::File(FileRun::new(file?, range))));
        in_memory(self.in_memory).into_iter().chain(aside).collect()
    }
}

fn in_memory<'p>(runs: Vec<KeyRun>) -> Vec<KeySource<'p>> {
    runs.into_iter().map(|run| KeySource::Memory(Arc::new(run), 0)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::load::index::keys::test_runs::{order, run};

    proptest! {
        #[test]
        fn every_entry_comes_back_once_and_each_run_in_order(
            runs in proptest::collection::vec(proptest::collection::vec(any::<i32>(), 0..40), 0..12),
            most_bytes in 1usize..4000,
        ) {
            let (order, dir) = (order(), tempfile::tempdir().unwrap());
            let mut kept = KeyRuns::new(&Storage::real(), dir.path(), MergeShare { indexes: 1, jobs: 2 });
            kept.most_bytes = most_bytes;
            let mut expected = Vec::new();
            for (block, numbers) in (0..).zip(&runs) {
                let run = run(numbers, block, &order);
                expected.extend(run.entries.iter().map(|entry| run.entry(*entry).to_vec()));
                kept.push(run, &order).unwrap();
            }
            let mut found: Vec<Vec<u8>> = Vec::new();
            for mut source in kept.into_sources() {
                let begin = found.len();
                while let Some(window) = source.next_window(100, &order).unwrap() {
                    found.extend(window.entries().iter().map(|entry| window.run.entry(*entry).to_vec()));
                }
                prop_assert!(found[begin..].is_sorted_by(|a, b| order.compare(a, b).is_lt()));
            }
            expected.sort();
            found.sort();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }
}
