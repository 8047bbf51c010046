//! Index entries put in order, however many they are.
//!
//! ```text
//!   workers: RunBuilder ─► SortedRun ─┐
//!   workers: RunBuilder ─► SortedRun ─┴─► SortRuns ─► Merged: one entry after the other
//!                                            └─► a temporary file, when memory is used up
//! ```
//!
//! An entry is a number and the bytes of an index tuple. The number says as much of the order as fits
//! into it; where two are equal, the bytes are compared by what the caller gives. Runs come in an
//! order of their own: entries that compare equal keep it, and so keep the order in which they
//! were pushed.
//!
//! Runs that follow each other in order without overlapping count as one, so that merging entries
//! that came sorted costs one comparison each.
//!
//! Invariants: a sort keeps no more in memory than its share of the [`SortMemory`], and when it
//! merges, buffers for the file besides; a run in memory and a run in the file have the same form:
//! number, length, bytes.

use std::cmp::Ordering;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pagemill_io::{ScratchFile, Storage};

use crate::error::{Error, Result};

/// Bytes of runs that are kept in memory, unless another limit is given.
pub const DEFAULT_SORT_BYTES: usize = 64 << 20;
/// Bytes before those of an index tuple: the number, the length.
const HEADER_BYTES: usize = 12;
/// Smallest and largest buffer in which a run is read from the file.
const BUFFER_BYTES: Range<usize> = 16 << 10..256 << 10;
/// Bytes written to the file at once.
const WRITE_BYTES: usize = 1 << 20;

/// The memory that several sorts share: each has an equal part of it.
#[derive(Debug)]
pub struct SortMemory {
    most: usize,
    sorts: AtomicUsize,
}

impl SortMemory {
    /// With this limit, in bytes.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, sorts: AtomicUsize::new(0) })
    }

    /// What one of the sorts may keep.
    fn share(&self) -> usize {
        self.most / self.sorts.load(Relaxed).max(1)
    }
}

/// An entry of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// What its order goes by first.
    pub abbreviation: u64,
    /// The bytes of the index tuple.
    pub bytes: &'a [u8],
}

impl Entry<'_> {
    #[inline]
    fn cmp(&self, other: &Entry<'_>, compare: impl Fn(&[u8], &[u8]) -> Ordering) -> Ordering {
        let first = self.abbreviation.cmp(&other.abbreviation);
        first.then_with(|| compare(self.bytes, other.bytes))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.abbreviation.to_le_bytes());
        out.extend_from_slice(&(self.bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(self.bytes);
    }
}

/// The entry that starts here, and how many bytes it takes; nothing if it is not whole.
#[inline]
fn entry_at(bytes: &[u8], start: usize) -> Option<(Entry<'_>, usize)> {
    let rest = bytes.get(start..)?;
    let (abbreviation, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let bytes = rest.get(..u32::from_le_bytes(*length) as usize)?;
    let abbreviation = u64::from_le_bytes(*abbreviation);
    Some((Entry { abbreviation, bytes }, HEADER_BYTES + bytes.len()))
}

/// Collects entries and sorts them. Each worker has its own, and uses it again.
#[derive(Debug, Default)]
pub struct RunBuilder {
    keys: Vec<Key>,
    bytes: Vec<u8>,
}

/// An entry whose bytes lie elsewhere.
#[derive(Clone, Copy, Debug)]
struct Key {
    abbreviation: u64,
    start: usize,
    length: u32,
}

impl RunBuilder {
    /// Adds an entry. Index tuples are shorter than a page.
    #[inline]
    pub fn push(&mut self, abbreviation: u64, bytes: &[u8]) {
        let (start, length) = (self.bytes.len(), bytes.len() as u32);
        self.keys.push(Key { abbreviation, start, length });
        self.bytes.extend_from_slice(bytes);
    }

    /// How many bytes the run will take.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len() + self.keys.len() * HEADER_BYTES
    }

    /// The entries in order. The builder is empty again.
    pub fn finish(&mut self, compare: impl Fn(&[u8], &[u8]) -> Ordering) -> SortedRun {
        let bytes = &self.bytes;
        let entry = |key: &Key| Entry {
            abbreviation: key.abbreviation,
            bytes: bytes.get(key.start..key.start + key.length as usize).unwrap_or_default(),
        };
        // Where an entry starts says which was pushed first.
        self.keys.sort_unstable_by(|a, b| {
            entry(a).cmp(&entry(b), &compare).then_with(|| a.start.cmp(&b.start))
        });
        let mut sorted = Vec::with_capacity(bytes.len() + self.keys.len() * HEADER_BYTES);
        let mut last = 0;
        for key in &self.keys {
            last = sorted.len();
            entry(key).write(&mut sorted);
        }
        self.keys.clear();
        self.bytes.clear();
        SortedRun { bytes: sorted, last }
    }
}

/// Entries in order.
#[derive(Debug, Default)]
pub struct SortedRun {
    bytes: Vec<u8>,
    /// Where the last entry starts.
    last: usize,
}

impl SortedRun {
    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Runs of one index, in memory and in a temporary file.
#[derive(Debug)]
pub struct SortRuns<C> {
    compare: C,
    memory: Arc<SortMemory>,
    storage: Storage,
    directory: PathBuf,
    file: Option<ScratchFile>,
    /// Runs in the file, in their order: those before the ones in memory.
    spilled: Vec<Range<u64>>,
    kept: Vec<SortedRun>,
    /// Bytes of `kept`.
    kept_bytes: usize,
}

impl<C: Fn(&[u8], &[u8]) -> Ordering> SortRuns<C> {
    /// No runs yet. What does not fit into the memory goes to a file in this directory, which is made
    /// when it is needed. `compare` orders index tuples with the same number.
    pub fn new(storage: &Storage, memory: &Arc<SortMemory>, directory: &Path, compare: C) -> Self {
        memory.sorts.fetch_add(1, Relaxed);
        Self {
            compare,
            memory: Arc::clone(memory),
            storage: storage.clone(),
            directory: directory.to_owned(),
            file: None,
            spilled: Vec::new(),
            kept: Vec::new(),
            kept_bytes: 0,
        }
    }

    /// How tuples with the same number compare, for [`RunBuilder::finish`].
    pub fn compare(&self) -> &C {
        &self.compare
    }

    /// Adds a run behind those there are: where entries compare equal, its own come later.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub fn add(&mut self, run: SortedRun) -> Result<()> {
        if run.is_empty() {
            return Ok(());
        }
        let bytes = run.bytes.len();
        if self.kept_bytes + bytes > self.memory.share() {
            self.spill_kept()?;
        }
        if bytes > self.memory.share() {
            return self.spill(vec![run]);
        }
        self.kept_bytes += bytes;
        self.kept.push(run);
        Ok(())
    }

    fn spill_kept(&mut self) -> Result<()> {
        self.kept_bytes = 0;
        let runs = std::mem::take(&mut self.kept);
        if runs.is_empty() { Ok(()) } else { self.spill(runs) }
    }

    /// Writes runs to the file as one.
    fn spill(&mut self, runs: Vec<SortedRun>) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let made = ScratchFile::in_directory(&self.storage, &self.directory);
                none.insert(made.map_err(Error::Input)?)
            }
        };
        let start = file.len();
        let mut merge = Merge::new(chained(runs, &self.compare));
        let mut buffer = Vec::with_capacity(WRITE_BYTES);
        while let Some(entry) = merge.next_entry(None, &self.compare)? {
            entry.write(&mut buffer);
            if buffer.len() >= WRITE_BYTES {
                file.append(&buffer).map_err(Error::Input)?;
                buffer.clear();
            }
        }
        file.append(&buffer).map_err(Error::Input)?;
        self.spilled.push(start..file.len());
        Ok(())
    }

    /// All entries, in order.
    ///
    /// # Errors
    /// When the temporary file cannot be read.
    pub fn merge(mut self) -> Result<Merged<C>>
    where
        C: Clone,
    {
        let buffer_bytes = self.memory.share() / self.spilled.len().max(1);
        let buffer_bytes = buffer_bytes.clamp(BUFFER_BYTES.start, BUFFER_BYTES.end);
        let file_cursor = |range: &Range<u64>| Cursor::File(FileCursor::new(range, buffer_bytes));
        let mut cursors: Vec<_> = self.spilled.iter().map(file_cursor).collect();
        cursors.extend(chained(std::mem::take(&mut self.kept), &self.compare));
        let merge = Merge::new(cursors);
        Ok(Merged { merge, compare: self.compare.clone(), runs: self })
    }
}

impl<C> Drop for SortRuns<C> {
    fn drop(&mut self) {
        self.memory.sorts.fetch_sub(1, Relaxed);
    }
}

/// Runs as cursors, those that follow each other without overlapping as one.
fn chained<C>(runs: Vec<SortedRun>, compare: &C) -> Vec<Cursor>
where
    C: Fn(&[u8], &[u8]) -> Ordering,
{
    let mut chains: Vec<Vec<SortedRun>> = Vec::new();
    for run in runs {
        let follows = |chain: &&mut Vec<SortedRun>| {
            let last = chain.last().and_then(|before| entry_at(&before.bytes, before.last));
            let both = last.zip(entry_at(&run.bytes, 0));
            both.is_some_and(|((last, _), (first, _))| last.cmp(&first, compare).is_le())
        };
        match chains.last_mut().filter(follows) {
            Some(chain) => chain.push(run),
            None => chains.push(vec![run]),
        }
    }
    let cursor = |runs: Vec<SortedRun>| {
        Cursor::Memory(MemoryCursor { runs: runs.into_iter(), run: SortedRun::default(), at: 0 })
    };
    chains.into_iter().map(cursor).collect()
}

/// Sorted entries, one after the other.
#[derive(Debug)]
pub struct Merged<C> {
    merge: Merge,
    compare: C,
    /// Has the file, and gives its share of the memory back when it goes.
    runs: SortRuns<C>,
}

impl<C: Fn(&[u8], &[u8]) -> Ordering> Merged<C> {
    /// The next entry.
    ///
    /// # Errors
    /// When the temporary file cannot be read.
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>> {
        self.merge.next_entry(self.runs.file.as_ref(), &self.compare)
    }
}

/// The place in a run, at an entry until the run is at its end.
#[derive(Debug)]
enum Cursor {
    Memory(MemoryCursor),
    File(FileCursor),
}

#[derive(Debug)]
struct MemoryCursor {
    /// Those behind the current one.
    runs: std::vec::IntoIter<SortedRun>,
    run: SortedRun,
    at: usize,
}

#[derive(Debug)]
struct FileCursor {
    /// What is in the file and not in the buffer.
    rest: Range<u64>,
    buffer: Vec<u8>,
    at: usize,
    buffer_bytes: usize,
}

impl Cursor {
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        let (bytes, at) = match self {
            Self::Memory(cursor) => (&cursor.run.bytes, cursor.at),
            Self::File(cursor) => (&cursor.buffer, cursor.at),
        };
        entry_at(bytes, at).map(|(entry, _)| entry)
    }

    /// Goes to the next entry, or to the first.
    #[inline]
    fn advance(&mut self, file: Option<&ScratchFile>) -> Result<()> {
        match self {
            Self::Memory(cursor) => {
                cursor.advance();
                Ok(())
            }
            Self::File(cursor) => cursor.advance(file),
        }
    }
}

impl MemoryCursor {
    fn advance(&mut self) {
        self.at += entry_at(&self.run.bytes, self.at).map_or(0, |(_, length)| length);
        if self.at >= self.run.bytes.len() {
            (self.run, self.at) = (self.runs.next().unwrap_or_default(), 0);
        }
    }
}

impl FileCursor {
    fn new(range: &Range<u64>, buffer_bytes: usize) -> Self {
        Self { rest: range.clone(), buffer: Vec::new(), at: 0, buffer_bytes }
    }

    fn advance(&mut self, file: Option<&ScratchFile>) -> Result<()> {
        self.at += entry_at(&self.buffer, self.at).map_or(0, |(_, length)| length);
        while entry_at(&self.buffer, self.at).is_none() && !self.rest.is_empty() {
            let Some(file) = file else { break };
            self.fill(file)?;
        }
        Ok(())
    }

    /// Brings what is left in the buffer to its front, and more of the file behind it.
    fn fill(&mut self, file: &ScratchFile) -> Result<()> {
        self.buffer.drain(..self.at.min(self.buffer.len()));
        self.at = 0;
        let left = usize::try_from(self.rest.end - self.rest.start).unwrap_or(usize::MAX);
        let (before, more) = (self.buffer.len(), left.min(self.buffer_bytes));
        self.buffer.resize(before + more, 0);
        let place = self.buffer.get_mut(before..).unwrap_or_default();
        file.read_at(place, self.rest.start).map_err(Error::Input)?;
        self.rest.start += more as u64;
        Ok(())
    }
}

/// Cursors as a heap: the one with the first entry on top; of equal ones that of the first run.
#[derive(Debug)]
struct Merge {
    cursors: Vec<Cursor>,
    /// Numbers of the cursors that are not at their end.
    heap: Vec<usize>,
    is_started: bool,
}

impl Merge {
    fn new(cursors: Vec<Cursor>) -> Self {
        Self { cursors, heap: Vec::new(), is_started: false }
    }

    fn next_entry<C: Fn(&[u8], &[u8]) -> Ordering>(
        &mut self,
        file: Option<&ScratchFile>,
        compare: &C,
    ) -> Result<Option<Entry<'_>>> {
        if self.is_started {
            self.pass_top(file, compare)?;
        } else {
            self.start(file, compare)?;
        }
        Ok(self.heap.first().and_then(|&top| self.cursors.get(top)).and_then(Cursor::entry))
    }

    fn start<C: Fn(&[u8], &[u8]) -> Ordering>(
        &mut self,
        file: Option<&ScratchFile>,
        compare: &C,
    ) -> Result<()> {
        self.is_started = true;
        for cursor in &mut self.cursors {
            cursor.advance(file)?;
        }
        self.heap = (0..self.cursors.len()).collect();
        self.heap.retain(|&number| self.cursors.get(number).and_then(Cursor::entry).is_some());
        for place in (0..self.heap.len() / 2).rev() {
            self.sift_down(place, compare);
        }
        Ok(())
    }

    fn pass_top<C: Fn(&[u8], &[u8]) -> Ordering>(
        &mut self,
        file: Option<&ScratchFile>,
        compare: &C,
    ) -> Result<()> {
        let Some(&top) = self.heap.first() else { return Ok(()) };
        if let Some(cursor) = self.cursors.get_mut(top) {
            cursor.advance(file)?;
            if cursor.entry().is_none() {
                self.heap.swap_remove(0);
            }
        }
        self.sift_down(0, compare);
        Ok(())
    }

    /// Brings the cursor at this place of the heap below those that come before it.
    fn sift_down<C: Fn(&[u8], &[u8]) -> Ordering>(&mut self, place: usize, compare: &C) {
        let mut place = place;
        loop {
            let mut first = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.heap.len() && self.is_before(child, first, compare) {
                    first = child;
                }
            }
            if first == place {
                return;
            }
            self.heap.swap(first, place);
            place = first;
        }
    }

    #[inline]
    fn is_before<C: Fn(&[u8], &[u8]) -> Ordering>(&self, a: usize, b: usize, compare: &C) -> bool {
        let cursor = |place: usize| {
            let number = *self.heap.get(place)?;
            Some((self.cursors.get(number)?.entry()?, number))
        };
        match (cursor(a), cursor(b)) {
            (Some((a, first)), Some((b, second))) => {
                a.cmp(&b, compare).then(first.cmp(&second)).is_lt()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Owned = (u64, Vec<u8>);

    /// By the first byte alone, so that different tuples compare equal.
    fn by_first_byte(a: &[u8], b: &[u8]) -> Ordering {
        a.first().cmp(&b.first())
    }

    fn sorted_by_runs(runs: &[Vec<Owned>], most: usize) -> (Vec<Owned>, u64) {
        let dir = tempfile::tempdir().unwrap();
        let (storage, memory) = (Storage::real(), SortMemory::new(most));
        let mut sort = SortRuns::new(&storage, &memory, dir.path(), by_first_byte);
        let mut builder = RunBuilder::default();
        for run in runs {
            run.iter().for_each(|(abbreviation, bytes)| builder.push(*abbreviation, bytes));
            sort.add(builder.finish(sort.compare())).unwrap();
            assert!(sort.kept_bytes <= most);
        }
        let mut merged = sort.merge().unwrap();
        let mut all = Vec::new();
        while let Some(entry) = merged.next_entry().unwrap() {
            all.push((entry.abbreviation, entry.bytes.to_vec()));
        }
        assert!(merged.next_entry().unwrap().is_none());
        drop(merged);
        assert_eq!(memory.sorts.load(Relaxed), 0);
        (all, storage.counters().snapshot().bytes_written)
    }

    fn expected(runs: &[Vec<Owned>]) -> Vec<Owned> {
        let mut all = runs.concat();
        all.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| by_first_byte(&a.1, &b.1)));
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn entries_come_out_as_a_stable_sort_puts_them(
            runs in prop::collection::vec(
                prop::collection::vec(
                    (0u64..6, prop::collection::vec(0u8..3, 0..5)), 0..20,
                ), 0..30,
            ),
            most in prop::sample::select(vec![0usize, 100, 400, 1 << 20]),
        ) {
            prop_assert_eq!(sorted_by_runs(&runs, most).0, expected(&runs));
        }

        #[test]
        fn long_runs_are_read_from_the_file_piece_by_piece(
            seed in any::<u64>(),
            most in prop::sample::select(vec![20_000usize, 70_000]),
        ) {
            let number = |n: u64| (n.wrapping_mul(seed | 1) >> 40) % 5000;
            let entry = |n: u64| (number(n), vec![n as u8; (n % 50) as usize]);
            let runs: Vec<Vec<Owned>> =
                (0..10).map(|run| (run * 500..(run + 1) * 500).map(entry).collect()).collect();
            let (all, written) = sorted_by_runs(&runs, most);
            prop_assert!(written > 0);
            prop_assert_eq!(all, expected(&runs));
        }
    }

    #[test]
    fn runs_that_follow_each_other_are_one() {
        let mut builder = RunBuilder::default();
        let mut run = |range: Range<u64>| {
            range.for_each(|n| builder.push(n, &[1]));
            builder.finish(by_first_byte)
        };
        let runs = vec![run(0..10), run(9..20), run(20..30), run(5..7), run(7..8)];
        assert_eq!(chained(runs, &by_first_byte).len(), 2);
    }

    #[test]
    fn sorts_share_their_memory_and_nothing_is_written_while_it_lasts() {
        let dir = tempfile::tempdir().unwrap();
        let (storage, memory) = (Storage::real(), SortMemory::new(1000));
        let new = || SortRuns::new(&storage, &memory, dir.path(), by_first_byte);
        let (mut first, mut second) = (new(), new());
        let run = |count: u64| {
            let mut builder = RunBuilder::default();
            (0..count).for_each(|n| builder.push(n, b"12345678"));
            assert_eq!(builder.len_bytes(), 20 * count as usize);
            builder.finish(by_first_byte)
        };
        first.add(run(20)).unwrap();
        second.add(run(24)).unwrap();
        assert_eq!(storage.counters().snapshot().write_calls, 0);
        second.add(run(2)).unwrap();
        assert_eq!(storage.counters().snapshot().bytes_written, 480);
        drop(first);
        second.add(run(45)).unwrap();
        assert_eq!(storage.counters().snapshot().bytes_written, 480);
    }

    #[test]
    fn a_directory_without_room_is_an_error() {
        let (storage, memory) = (Storage::real(), SortMemory::new(0));
        let missing = Path::new("/nonexistent");
        let mut sort = SortRuns::new(&storage, &memory, missing, by_first_byte);
        let mut builder = RunBuilder::default();
        builder.push(1, b"a");
        let run = builder.finish(sort.compare());
        assert!(sort.add(run).unwrap_err().to_string().starts_with("/nonexistent/"));
    }
}
