//! Where entries in the order of an index come from when they are merged: runs in memory, runs in a file, an index.
//!
//! Each is read in *windows*, some neighbouring entries at a time, so that one that is long need not be in memory.
//!
//! Invariant: no window is empty, and each comes behind the one before it.

use std::ops::Range;
use std::sync::Arc;

use pagemill_io::WritableFile;
use pagemill_types::index_key_order::KeyOrder;

use super::keys::{Entry, KeyRun};
use super::old_entries::OldEntries;
use crate::error::Result;

/// Read back at once, of each run in the file. Far longer than any entry.
const READ_BYTES: usize = 64 << 10;
/// Bytes before an entry in the file that say how long it is.
const LENGTH_BYTES: usize = 2;

/// Some neighbours in a run.
#[derive(Debug, Clone)]
pub(in crate::load) struct KeySlice {
    pub(in crate::load) run: Arc<KeyRun>,
    pub(in crate::load) range: Range<usize>,
}

impl KeySlice {
    /// The entries.
    pub(in crate::load) fn entries(&self) -> &[Entry] {
        &self.run.entries[self.range.clone()]
    }

    /// The last entry; one before all others, if there were none.
    pub(in crate::load) fn last(&self) -> (u64, &[u8]) {
        self.entries().last().map_or((0, &[]), |last| self.run.key(*last))
    }

    /// The bytes of its entries.
    pub(in crate::load) fn bytes(&self) -> usize {
        let entries = self.entries();
        let first = entries.first().map_or(0, |first| first.start as usize);
        entries.last().map_or(0, |last| last.start as usize + usize::from(last.len) - first)
    }
}

/// Entries in order.
#[derive(Debug)]
pub(in crate::load) enum KeySource<'p> {
    /// A run, and how many of its entries were read.
    Memory(Arc<KeyRun>, usize),
    File(FileRun),
    Index(Box<OldEntries<'p>>),
}

impl KeySource<'_> {
    /// The next entries: of a run in memory about so many bytes. Nothing at the end.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(in crate::load) fn next_window(
        &mut self,
        bytes: usize,
        order: &KeyOrder,
    ) -> Result<Option<KeySlice>> {
        let run = match self {
            Self::Memory(run, next) => return Ok(memory_window(run, next, bytes)),
            Self::File(run) => run.next_run(order)?,
            Self::Index(old) => old.next_leaf()?,
        };
        Ok(run.map(|run| KeySlice { range: 0..run.entries.len(), run: Arc::new(run) }))
    }
}

/// As many entries as have so many bytes if they are of usual length: to look for where those end would be a walk
/// through memory that is in no cache.
fn memory_window(run: &Arc<KeyRun>, next: &mut usize, bytes: usize) -> Option<KeySlice> {
    let (begin, count) = (*next, run.entries.len());
    *next = count.min(begin + 1 + bytes * count / run.bytes.len().max(1));
    (begin < count).then(|| KeySlice { run: run.clone(), range: begin..*next })
}

/// A run in the file, and what of it was not read.
#[derive(Debug)]
pub(in crate::load) struct FileRun {
    file: WritableFile,
    range: Range<u64>,
}

impl FileRun {
    pub(in crate::load) fn new(file: WritableFile, range: Range<u64>) -> Self {
        Self { file, range }
    }

    /// Appends entries as they are kept in the file.
    pub(in crate::load) fn form(run: &KeyRun, out: &mut Vec<u8>) {
        for &entry in &run.entries {
            out.extend_from_slice(&entry.len.to_le_bytes());
            out.extend_from_slice(run.entry(entry));
        }
    }

    /// The next entries that are whole in what is read at once.
    fn next_run(&mut self, order: &KeyOrder) -> Result<Option<KeyRun>> {
        let most = (self.range.end - self.range.start).min(READ_BYTES as u64) as usize;
        let mut buffer = vec![0; most];
        self.file
            .read_exact_at(&mut buffer, self.range.start)
            .map_err(pagemill_cluster::Error::from)?;
        let (mut run, mut rest) = (KeyRun::default(), &buffer[..]);
        while let Some((entry, behind)) = split_entry(rest) {
            run.push(order.abbreviate(entry), entry);
            rest = behind;
        }
        self.range.start += (most - rest.len()) as u64;
        Ok(Some(run).filter(|run| !run.entries.is_empty()))
    }
}

/// The first entry, and what comes behind it.
fn split_entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use pagemill_io::Storage;

    use super::*;
    use crate::load::index::keys::test_runs::{order, run};

    #[test]
    fn a_run_in_the_file_that_is_longer_than_what_is_read_at_once_comes_back_whole() {
        let (order, dir) = (order(), tempfile::tempdir().unwrap());
        let made = run(&(0..20_000).collect::<Vec<_>>(), 0, &order);
        let mut kept = b"of another run".to_vec();
        FileRun::form(&made, &mut kept);
        let end = kept.len() as u64;
        kept.extend_from_slice(&kept.clone());
        let file = Storage::real().temporary_file(dir.path()).unwrap();
        file.write_all_at(&kept, 0).unwrap();
        let mut source = KeySource::File(FileRun::new(file, 14..end));
        let (mut found, mut windows) = (Vec::new(), 0);
        while let Some(window) = source.next_window(1, &order).unwrap() {
            assert_eq!(window.bytes(), window.entries().len() * 16);
            found.extend(window.entries().iter().map(|entry| window.run.entry(*entry).to_vec()));
            windows += 1;
        }
        assert!(found.iter().eq(made.entries.iter().map(|entry| made.entry(*entry))));
        assert_eq!(windows, (end - 14).div_ceil(READ_BYTES as u64));
    }
}
