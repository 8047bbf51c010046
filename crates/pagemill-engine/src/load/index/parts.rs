//! Many sources of entries in order, cut into parts that are merged each by itself.
//!
//! ```text
//!   source 1  ──────┐aaaa│bbbbbbb│ccc…      a part is what comes before a separator, of each source a slice;
//!   source 2  ──────┤aa│bbbb│ccccccc…       all of part a comes before all of part b, so that any thread can
//!   old index ──────┘aaaaaaaa│b│cc…         put any part in order
//! ```
//!
//! The separator is the end of a window that was read: windows are read of whichever source ends first in what was read
//! of it, until they are as much as a part is to be. So nothing that was not read comes before it.
//!
//! Invariants: of the entries of the sources each is in one part, even where a source is not in order; a part has
//! [`PART_BYTES`] or little more, and of each source less than a window besides.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use pagemill_types::index_key_order::KeyOrder;

use super::keys::{Entry, KeyRun, compare};
use super::sources::{KeySlice, KeySource};
use crate::error::Result;

/// Bytes of the entries of a part: enough to be worth a message between threads, few enough for a core's cache.
const PART_BYTES: usize = 256 << 10;
const LEAST_WINDOW_BYTES: usize = 512;

/// Cuts parts.
#[derive(Debug)]
pub(in crate::load) struct PartCutter<'p> {
    order: &'p KeyOrder,
    sources: Vec<Source<'p>>,
    /// What was read last of each source that may have more, the one that ends first on top.
    ends: BinaryHeap<WindowEnd<'p>>,
    part_bytes: usize,
    window_bytes: usize,
}

/// How large parts are, and what is read for them.
#[derive(Debug, Clone, Copy)]
struct PartSizes {
    part_bytes: usize,
    /// The least that is read at once of a run in memory.
    least_window_bytes: usize,
}

impl Default for PartSizes {
    fn default() -> Self {
        Self { part_bytes: PART_BYTES, least_window_bytes: LEAST_WINDOW_BYTES }
    }
}

/// A source, and what was read of it and is in no part yet.
#[derive(Debug)]
struct Source<'p> {
    /// `None` when all was read, so that its memory is given back by whoever merges the last of it.
    unread: Option<KeySource<'p>>,
    slices: Vec<KeySlice>,
}

impl<'p> PartCutter<'p> {
    /// Reads the first window of each source.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(in crate::load) fn new(order: &'p KeyOrder, sources: Vec<KeySource<'p>>) -> Result<Self> {
        Self::with_sizes(order, sources, PartSizes::default())
    }

    fn with_sizes(
        order: &'p KeyOrder,
        sources: Vec<KeySource<'p>>,
        sizes: PartSizes,
    ) -> Result<Self> {
        let PartSizes { part_bytes, least_window_bytes } = sizes;
        let window_bytes = (part_bytes / sources.len().max(1)).max(least_window_bytes);
        let sources: Vec<_> = sources
            .into_iter()
            .map(|unread| Source { unread: Some(unread), slices: Vec::new() })
            .collect();
        let ends = BinaryHeap::with_capacity(sources.len());
        let mut cutter = Self { order, sources, ends, part_bytes, window_bytes };
        (0..cutter.sources.len()).try_for_each(|source| cutter.read_window(source))?;
        Ok(cutter)
    }

    fn read_window(&mut self, number: usize) -> Result<()> {
        let Self { order, sources, ends, window_bytes, .. } = self;
        let source = &mut sources[number];
        let Some(unread) = &mut source.unread else { return Ok(()) };
        match unread.next_window(*window_bytes, order)? {
            None => source.unread = None,
            Some(window) => {
                let abbreviation = window.last().0;
                source.slices.push(window.clone());
                ends.push(WindowEnd { order, abbreviation, window, source: number });
            }
        }
        Ok(())
    }

    /// The next part; nothing when all entries are in one.
    ///
    /// # Errors
    /// When entries cannot be read.
    pub(in crate::load) fn next_part(&mut self) -> Result<Option<KeyPart>> {
        let (mut bytes, mut separator) = (0, None::<WindowEnd<'_>>);
        while bytes < self.part_bytes
            && let Some(end) = self.ends.pop()
        {
            bytes += end.window.bytes();
            self.read_window(end.source)?;
            // The later of them: an old index that is damaged may be out of order, and is not to lose entries by it.
            separator = Some(match separator {
                Some(before) => before.min(end),
                None => end,
            });
        }
        let Some(WindowEnd { window: separator, .. }) = separator else { return Ok(None) };
        let mut part = KeyPart { slices: Vec::new() };
        for source in &mut self.sources {
            source.give_up_to(separator.last(), self.order, &mut part.slices);
        }
        Ok(Some(part))
    }
}

impl Source<'_> {
    /// Moves what does not come behind the separator into a part.
    fn give_up_to(&mut self, separator: (u64, &[u8]), order: &KeyOrder, part: &mut Vec<KeySlice>) {
        let is_before = |entry: (u64, &[u8])| compare(order, entry, separator).is_le();
        let whole = self.slices.iter().take_while(|slice| is_before(slice.last())).count();
        part.extend(self.slices.drain(..whole));
        let Some(slice) = self.slices.first_mut() else { return };
        let before = slice.entries().partition_point(|entry| is_before(slice.run.key(*entry)));
        if before > 0 {
            let begin = slice.range.start;
            slice.range.start += before;
            part.push(KeySlice { run: slice.run.clone(), range: begin..slice.range.start });
        }
    }
}

/// The end of what was read of a source.
#[derive(Debug)]
struct WindowEnd<'p> {
    order: &'p KeyOrder,
    abbreviation: u64,
    window: KeySlice,
    source: usize,
}

/// The greatest of a heap is the one that comes first.
impl Ord for WindowEnd<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_key = || self.order.compare(other.window.last().1, self.window.last().1);
        other.abbreviation.cmp(&self.abbreviation).then_with(by_key)
    }
}

impl PartialOrd for WindowEnd<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for WindowEnd<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for WindowEnd<'_> {}

/// Slices, each in order.
#[derive(Debug)]
pub(in crate::load) struct KeyPart {
    slices: Vec<KeySlice>,
}

/// Where an entry of a part is.
#[derive(Debug, Clone, Copy)]
struct EntryPosition {
    abbreviation: u64,
    slice: u32,
    number: u32,
}

impl KeyPart {
    /// All entries in order. The slices lie one behind the other, and the standard library's stable sort finds such
    /// stretches and merges them, without a branch for each entry that would be guessed wrong half of the time.
    pub(in crate::load) fn merged(&self, order: &KeyOrder) -> KeyRun {
        let mut positions =
            Vec::with_capacity(self.slices.iter().map(|slice| slice.range.len()).sum());
        for (slice, from) in (0..).zip(&self.slices) {
            let position = |(number, entry): (u32, &Entry)| EntryPosition {
                abbreviation: entry.abbreviation,
                slice,
                number,
            };
            positions.extend((0..).zip(from.entries()).map(position));
        }
        positions.sort_by(|a, b| {
            let by_key = || order.compare(self.entry(a), self.entry(b));
            a.abbreviation.cmp(&b.abbreviation).then_with(by_key)
        });
        let bytes: usize = self.slices.iter().map(KeySlice::bytes).sum();
        // It has a window of each source at most, besides what it was cut for.
        assert!(
            u32::try_from(bytes).is_ok(),
            "a part of a merge has {bytes} bytes of index entries, more than a run can have"
        );
        let mut merged = KeyRun::with_capacity(positions.len(), bytes);
        for position in &positions {
            merged.push(position.abbreviation, self.entry(position));
        }
        merged
    }

    fn entry(&self, position: &EntryPosition) -> &[u8] {
        let slice = &self.slices[position.slice as usize];
        slice.run.entry(slice.run.entries[slice.range.start + position.number as usize])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pagemill_io::Storage;
    use proptest::prelude::*;

    use super::*;
    use crate::load::index::keys::test_runs::{order, run};
    use crate::load::index::sources::FileRun;

    /// The entries of a run, and what becomes of it: a run in memory, or one in a file.
    fn source<'p>(made: KeyRun, in_file: bool, dir: &std::path::Path) -> KeySource<'p> {
        if !in_file {
            return KeySource::Memory(Arc::new(made), 0);
        }
        let mut kept = Vec::new();
        FileRun::form(&made, &mut kept);
        let file = Storage::real().temporary_file(dir).unwrap();
        file.write_all_at(&kept, 0).unwrap();
        KeySource::File(FileRun::new(file, 0..kept.len() as u64))
    }

    fn images(run: &KeyRun) -> Vec<Vec<u8>> {
        run.entries.iter().map(|entry| run.entry(*entry).to_vec()).collect()
    }

    fn numbers() -> impl Strategy<Value = Vec<i32>> {
        let ascending = (any::<i32>(), 0_i32..300)
            .prop_map(|(begin, count)| (0..count).map(|n| begin.saturating_add(n)).collect());
        prop_oneof![
            proptest::collection::vec(any::<i32>(), 0..300),
            proptest::collection::vec(0_i32..5, 0..300),
            ascending,
        ]
    }

    proptest! {
        #[test]
        fn merged_parts_behind_each_other_are_all_entries_in_order(
            runs in proptest::collection::vec((numbers(), any::<bool>()), 0..12),
            part_bytes in 1_usize..6000,
            window_bytes in 1_usize..600,
        ) {
            let (order, dir) = (order(), tempfile::tempdir().unwrap());
            let (mut sources, mut expected) = (Vec::new(), Vec::new());
            for (block, (numbers, in_file)) in (0..).zip(&runs) {
                let made = run(numbers, block, &order);
                expected.extend(images(&made));
                sources.push(source(made, *in_file, dir.path()));
            }
            expected.sort_by(|a, b| order.compare(a, b));
            let mut cutter = PartCutter::with_sizes(&order, sources, PartSizes { part_bytes, least_window_bytes: window_bytes }).unwrap();
            let mut found = Vec::new();
            while let Some(part) = cutter.next_part().unwrap() {
                let merged = part.merged(&order);
                prop_assert!(!merged.entries.is_empty());
                prop_assert!(merged.entries.iter().all(|e| e.abbreviation == order.abbreviate(merged.entry(*e))));
                found.extend(images(&merged));
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_source_that_is_not_in_order_loses_no_entry() {
        let order = order();
        let (forward, mut made) =
            (run(&(0..3000).collect::<Vec<_>>(), 0, &order), KeyRun::default());
        forward
            .entries
            .iter()
            .rev()
            .for_each(|entry| made.push(entry.abbreviation, forward.entry(*entry)));
        let others = (1..9).map(|block| run(&[1000; 60], block, &order));
        let runs: Vec<KeyRun> = [made].into_iter().chain(others).collect();
        let mut expected: Vec<Vec<u8>> = runs.iter().flat_map(images).collect();
        let sources = runs.into_iter().map(|run| KeySource::Memory(Arc::new(run), 0)).collect();
        let mut cutter = PartCutter::with_sizes(
            &order,
            sources,
            PartSizes { part_bytes: 4500, least_window_bytes: 500 },
        )
        .unwrap();
        let mut found = Vec::new();
        while let Some(part) = cutter.next_part().unwrap() {
            found.extend(images(&part.merged(&order)));
        }
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn parts_are_of_the_size_they_are_to_have_whatever_the_order_of_the_rows() {
        let order = order();
        let batch = |block: u32, number: &dyn Fn(i32) -> i32| {
            let numbers: Vec<i32> = (0..4000).map(|n| number(n + block as i32 * 4000)).collect();
            KeySource::Memory(Arc::new(run(&numbers, block, &order)), 0)
        };
        let scattered = |n: i32| n.wrapping_mul(0x9E37_79B1_u32 as i32);
        for number in [&(|n| n) as &dyn Fn(i32) -> i32, &scattered, &|n| -n, &|_| 1] {
            let sources = (0..30).map(|block| batch(block, number)).collect();
            let mut cutter = PartCutter::new(&order, sources).unwrap();
            let mut sizes = Vec::new();
            while let Some(part) = cutter.next_part().unwrap() {
                sizes.push(part.merged(&order).bytes.len());
            }
            assert_eq!(sizes.iter().sum::<usize>(), 30 * 4000 * 16);
            sizes.pop();
            let is_right = |size: &usize| (PART_BYTES / 2..PART_BYTES * 5 / 2).contains(size);
            assert!(sizes.iter().all(is_right), "{sizes:?}");
        }
    }
}
