//! Runs of index entries, in memory as long as there is room, in a temporary file beyond that.
//!
//! When memory is full, its runs are merged into one and written aside; so the number of runs, each of which needs a
//! buffer when it is read back, stays small for any input. The file has no name and is gone with the process.
//!
//! Invariant: each run is in the order of the index.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use pagemill_format::index_key_order::KeyOrder;
use pagemill_io::{Storage, WritableFile};

use super::index_keys::{Entry, KeyRun};
use crate::error::Result;

/// Bytes of entries that all indexes keep in memory, and one at least.
const MOST_BYTES: usize = 96 << 20;
const LEAST_BYTES: usize = 8 << 20;
/// Read back at once, of each run.
const READ_BYTES: usize = 64 << 10;
/// Written at once.
const WRITE_BYTES: usize = 1 << 20;
/// Bytes before an entry that say how long it is.
const LENGTH_BYTES: usize = 2;

/// The runs of one index.
#[derive(Debug)]
pub(super) struct KeyRuns {
    storage: Storage,
    directory: std::path::PathBuf,
    in_memory: Vec<KeyRun>,
    bytes: usize,
    most_bytes: usize,
    file: Option<WritableFile>,
    written: u64,
    /// Where each run lies in the file.
    aside: Vec<std::ops::Range<u64>>,
}

impl KeyRuns {
    /// None yet, of one of so many indexes; what is too much for memory goes into a file in `directory`.
    pub(super) fn new(storage: &Storage, directory: &std::path::Path, indexes: usize) -> Self {
        Self {
            storage: storage.clone(),
            directory: directory.to_owned(),
            in_memory: Vec::new(),
            bytes: 0,
            most_bytes: (MOST_BYTES / indexes.max(1)).max(LEAST_BYTES),
            file: None,
            written: 0,
            aside: Vec::new(),
        }
    }

    /// Adds a run.
    ///
    /// # Errors
    /// When runs have to be written aside, and cannot be.
    pub(super) fn push(&mut self, run: KeyRun, order: &KeyOrder) -> Result<()> {
        if run.entries.is_empty() {
            return Ok(());
        }
        self.bytes += run.bytes.len() + run.entries.len() * size_of::<Entry>();
        self.in_memory.push(run);
        if self.bytes > self.most_bytes { self.write_aside(order) } else { Ok(()) }
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
        let mut buffer = Vec::with_capacity(WRITE_BYTES + READ_BYTES);
        let runs = std::mem::take(&mut self.in_memory);
        let mut heads = BinaryHeap::new();
        for run in &runs {
            heads.extend(MemoryHead::first(run, order));
        }
        while let Some(mut head) = heads.peek_mut() {
            let entry = head.entry();
            buffer.extend_from_slice(&(entry.len() as u16).to_le_bytes());
            buffer.extend_from_slice(entry);
            if !head.advance() {
                std::collections::binary_heap::PeekMut::pop(head);
            }
            if buffer.len() >= WRITE_BYTES {
                self.write(&file, &mut buffer)?;
            }
        }
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
    pub(super) fn into_readers(self) -> Vec<RunReader> {
        let in_memory = self.in_memory.into_iter().map(|run| RunReader::Memory { run, next: 0 });
        let aside =
            self.aside.into_iter().zip(std::iter::repeat(self.file)).filter_map(|(range, file)| {
                Some(RunReader::File(FileRun { file: file?, range, buffer: Vec::new(), at: 0 }))
            });
        in_memory.chain(aside).collect()
    }
}

/// A run being read.
#[derive(Debug)]
pub(super) enum RunReader {
    Memory { run: KeyRun, next: usize },
    File(FileRun),
}

impl RunReader {
    /// Puts the next entry in place of what `entry` held; false when there is none.
    ///
    /// # Errors
    /// When it cannot be read back.
    pub(super) fn next_into(&mut self, entry: &mut Vec<u8>) -> Result<bool> {
        match self {
            Self::File(run) => run.next_into(entry),
            Self::Memory { run, next } => {
                let Some(&found) = run.entries.get(*next) else { return Ok(false) };
                entry.clear();
                entry.extend_from_slice(run.entry(found));
                *next += 1;
                Ok(true)
            }
        }
    }
}

/// A run in the file.
#[derive(Debug)]
pub(super) struct FileRun {
    file: WritableFile,
    /// What is not in the buffer yet.
    range: std::ops::Range<u64>,
    buffer: Vec<u8>,
    at: usize,
}

impl FileRun {
    fn next_into(&mut self, entry: &mut Vec<u8>) -> Result<bool> {
        if !self.has(LENGTH_BYTES)? {
            return Ok(false);
        }
        let length = self.buffer.get(self.at..).and_then(<[u8]>::first_chunk::<LENGTH_BYTES>);
        let length = length.map_or(0, |bytes| usize::from(u16::from_le_bytes(*bytes)));
        self.has(LENGTH_BYTES + length)?;
        let start = self.at + LENGTH_BYTES;
        entry.clear();
        entry.extend_from_slice(self.buffer.get(start..start + length).unwrap_or_default());
        self.at = start + length;
        Ok(true)
    }

    /// Makes sure that so many bytes are in the buffer; false at the end of the run.
    fn has(&mut self, wanted: usize) -> Result<bool> {
        let left = self.buffer.len() - self.at;
        if left >= wanted {
            return Ok(true);
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let more = (self.range.end - self.range.start).min(READ_BYTES as u64) as usize;
        self.buffer.resize(left + more, 0);
        let buffer = self.buffer.get_mut(left..).unwrap_or_default();
        self.file.read_exact_at(buffer, self.range.start).map_err(pagemill_cluster::Error::from)?;
        self.range.start += more as u64;
        Ok(self.buffer.len() >= wanted)
    }
}

/// A run in memory and the entry it is at.
struct MemoryHead<'r> {
    order: &'r KeyOrder,
    run: &'r KeyRun,
    at: Entry,
    next: usize,
}

impl<'r> MemoryHead<'r> {
    fn first(run: &'r KeyRun, order: &'r KeyOrder) -> Option<Self> {
        Some(Self { order, run, at: *run.entries.first()?, next: 1 })
    }

    fn entry(&self) -> &'r [u8] {
        self.run.entry(self.at)
    }

    fn advance(&mut self) -> bool {
        let Some(&entry) = self.run.entries.get(self.next) else { return false };
        (self.at, self.next) = (entry, self.next + 1);
        true
    }
}

/// The greatest of a heap is the one that comes first.
impl Ord for MemoryHead<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_key = || other.order.compare(other.entry(), self.entry());
        other.at.abbreviation.cmp(&self.at.abbreviation).then_with(by_key)
    }
}

impl PartialOrd for MemoryHead<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for MemoryHead<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for MemoryHead<'_> {}

#[cfg(test)]
mod tests {
    use pagemill_format::Oid;
    use pagemill_format::index_key_order::KeyColumn;
    use pagemill_format::index_tuple_builder::IndexForm;
    use pagemill_format::tuple::AttributeLayout;
    use pagemill_format::tuple_data_builder::{AttributeStorage, ColumnLayout};
    use pagemill_format::types::order::{TextCollation, ValueOrder};
    use pagemill_format::varlena::Compression;
    use pagemill_format::{BlockNumber, Tid};
    use proptest::prelude::*;

    use super::*;

    const LAYOUT: AttributeLayout = AttributeLayout { len: 4, align: 4 };

    fn order() -> KeyOrder {
        let order = ValueOrder::of_type(Oid(23), &TextCollation::C).unwrap();
        KeyOrder::new(vec![KeyColumn {
            layout: LAYOUT,
            order,
            descending: false,
            nulls_first: false,
        }])
    }

    /// The entries of some numbers, in order, each of a row of its own.
    fn run(numbers: &[i32], block: u32, order: &KeyOrder) -> KeyRun {
        let storage = AttributeStorage::Plain;
        let column = ColumnLayout {
            layout: LAYOUT,
            storage,
            compression: Compression::Pglz,
            dropped: false,
        };
        let mut form = IndexForm::new("i", &[column]).unwrap();
        let mut made = KeyRun::default();
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        for (line_pointer, number) in (1..).zip(numbers) {
            let tid = Tid { block: BlockNumber(block), line_pointer };
            let start = made.bytes.len();
            form.form(&[Some(&number.to_le_bytes()[..])][..], tid, &mut made.bytes).unwrap();
            let abbreviation = order.abbreviate(&made.bytes[start..]);
            let len = (made.bytes.len() - start) as u16;
            made.entries.push(Entry { abbreviation, start: start as u32, len });
        }
        made
    }

    proptest! {
        #[test]
        fn every_entry_comes_back_once_and_each_run_in_order(
            runs in proptest::collection::vec(proptest::collection::vec(any::<i32>(), 0..40), 0..12),
            most_bytes in 1usize..4000,
        ) {
            let (order, dir) = (order(), tempfile::tempdir().unwrap());
            let mut kept = KeyRuns::new(&Storage::real(), dir.path(), 1);
            kept.most_bytes = most_bytes;
            let mut expected = Vec::new();
            for (block, numbers) in (0..).zip(&runs) {
                let run = run(numbers, block, &order);
                expected.extend(run.entries.iter().map(|entry| run.entry(*entry).to_vec()));
                kept.push(run, &order).unwrap();
            }
            let mut found: Vec<Vec<u8>> = Vec::new();
            for mut reader in kept.into_readers() {
                let (begin, mut entry) = (found.len(), Vec::new());
                while reader.next_into(&mut entry).unwrap() {
                    found.push(entry.clone());
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
