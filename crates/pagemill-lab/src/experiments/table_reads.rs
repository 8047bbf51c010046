//! A table read the way a scan reads it, through the project's read stream: in its own order, or in that of an index.
//!
//! ```text
//! sequential   block 0 1 2 3 …           all rows of each page are counted
//! by index     block of row 1, row 2 …   one row of a page at a time; nothing is kept, so a block comes again
//! ```
//!
//! Invariant: the rows that are counted are checked where their number is known; a scan that counts others has failed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pagemill_format::page::{LinePointerState, Page};
use pagemill_format::tuple::HeapTuple;
use pagemill_format::{BlockNumber, Fork};
use pagemill_io::{ForkFiles, IoMethod, ReadSettings, Readahead, RealFileSystem, Storage};
use pagemill_stream::{DEFAULT_IO_COMBINE_LIMIT, MethodUse, ReadStream, ReadStreamOptions};

use crate::cancel::Cancel;
use crate::contestant::Work;
use crate::error::{Error, Result};

/// How a table is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// `None` for `auto`.
    pub(crate) method: Option<IoMethod>,
    /// A block at a time and no looking ahead, as PostgreSQL read up to version 16.
    pub(crate) single: bool,
}

impl Reading {
    /// As a command names it.
    pub(crate) fn method_name(self) -> &'static str {
        self.method.map_or("auto", IoMethod::name)
    }

    fn storage(self) -> Storage {
        let single = |settings| ReadSettings {
            readahead: Readahead::None,
            effective_io_concurrency: Some(0),
            ..settings
        };
        let settings = ReadSettings { io_method: self.method, ..ReadSettings::default() };
        let settings = if self.single { single(settings) } else { settings };
        Storage::with_settings(Arc::new(RealFileSystem), settings).untimed()
    }

    fn options(self) -> ReadStreamOptions {
        let io_combine_limit = if self.single { 1 } else { DEFAULT_IO_COMBINE_LIMIT };
        ReadStreamOptions { io_combine_limit, ..ReadStreamOptions::default() }
    }

    fn work(self, storage: &Storage, rows: u64, elapsed: Duration) -> Work {
        let call = match self.method {
            Some(IoMethod::Seek) => "read",
            Some(IoMethod::Preadv) => "preadv",
            Some(IoMethod::IoUring) => "ring requests",
            _ => "pread",
        };
        let counted = storage.counters().snapshot();
        let note = self.method.is_none().then(|| MethodUse::of(storage).most_used()).flatten();
        Work {
            elapsed: Some(elapsed),
            note: note.map(|most| format!("mostly {most}")),
            ..Work::operations(rows).with_counted(call, &counted)
        }
    }
}

/// A row's place: block and line pointer.
pub(crate) type RowAddress = (u32, u16);

/// A table's files.
#[derive(Debug, Clone)]
pub(crate) struct TableFiles {
    pub(crate) path: PathBuf,
    pub(crate) rows: u64,
}

impl TableFiles {
    fn open(&self, storage: &Storage) -> Result<ForkFiles> {
        let lost = || Error::file(&self.path)(std::io::ErrorKind::NotFound.into());
        ForkFiles::open(storage, &self.path, Fork::Main)?.ok_or_else(lost)
    }

    /// All its segment files.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(self.open(&Storage::real())?.segments().map(|(path, _)| path).collect())
    }

    /// Counts all rows, so many times over.
    pub(crate) fn count(&self, reading: Reading, times: u32, cancel: &Cancel) -> Result<Work> {
        let begin = Instant::now();
        let storage = reading.storage();
        let files = self.open(&storage)?;
        let blocks = (0..times).flat_map(|_| (0..files.blocks()).map(BlockNumber));
        let mut stream = ReadStream::new(&files, blocks, reading.options());
        let mut rows = 0;
        while let Some(run) = stream.next_run() {
            cancel.check()?;
            rows += run?
                .pages
                .iter()
                .map(|page| u64::from(Page::new(page).count_normal().unwrap_or(0)))
                .sum::<u64>();
        }
        drop(stream);
        self.check(rows, u64::from(times))?;
        Ok(reading.work(&storage, rows, begin.elapsed()))
    }

    fn check(&self, rows: u64, times: u64) -> Result<()> {
        let expected = self.rows * times;
        if rows == expected {
            return Ok(());
        }
        let what = format!("{rows} rows counted, {expected} expected");
        Err(Error::file(&self.path)(std::io::Error::other(what)))
    }

    /// Looks at one row after the other, for a time, and at one at least.
    pub(crate) fn look_up(
        &self,
        order: &[RowAddress],
        reading: Reading,
        time: Duration,
        cancel: &Cancel,
    ) -> Result<Work> {
        self.look_at(order.iter().cycle(), reading, time, cancel)
    }

    /// Looks at each row once.
    pub(crate) fn look_up_once(
        &self,
        order: &[RowAddress],
        reading: Reading,
        cancel: &Cancel,
    ) -> Result<Work> {
        self.look_at(order.iter(), reading, Duration::MAX, cancel)
    }

    fn look_at<'o>(
        &self,
        places: impl Iterator<Item = &'o RowAddress> + Clone,
        reading: Reading,
        time: Duration,
        cancel: &Cancel,
    ) -> Result<Work> {
        let begin = Instant::now();
        let storage = reading.storage();
        let files = self.open(&storage)?;
        let blocks = places.clone().map(|(block, _)| BlockNumber(*block));
        let mut stream = ReadStream::new(&files, blocks, reading.options());
        let mut rows = 0;
        for (_, number) in places {
            // To open the files may have taken all of a short time, and no row in that time would be no rate.
            if rows > 0 && begin.elapsed() >= time {
                break;
            }
            cancel.check()?;
            let Some(next) = stream.next() else { break };
            let (_, page) = next?;
            let pointer = Page::new(page).line_pointer(*number);
            if pointer.is_none_or(|pointer| pointer.state() != LinePointerState::Normal) {
                return Err(Error::file(&self.path)(std::io::Error::other(
                    "a row is not where it was",
                )));
            }
            rows += 1;
        }
        let elapsed = begin.elapsed();
        // What is still in flight is waited for here, and was not asked for by a row that counts.
        drop(stream);
        Ok(reading.work(&storage, rows, elapsed))
    }

    /// The places of rows in the order that an index on all three integers of `bigtable` gives, of the smallest keys at
    /// most so many.
    pub(crate) fn index_order(&self, most: u32, cancel: &Cancel) -> Result<Vec<RowAddress>> {
        let storage = Storage::real();
        let files = self.open(&storage)?;
        // First integers are spread evenly: below this one are about as many as are wanted.
        let share = f64::from(most) / self.rows.max(1) as f64;
        let limit = (share.min(1.0) * f64::from(i32::MAX)) as i32;
        let mut keys = Vec::new();
        let blocks = (0..files.blocks()).map(BlockNumber);
        let mut stream = ReadStream::new(&files, blocks, ReadStreamOptions::default());
        while let Some(next) = stream.next() {
            cancel.check()?;
            let (block, page) = next?;
            let page = Page::new(page);
            for number in 1..=page.line_pointer_count() {
                if let Some(key) = key_of(page, number).filter(|key| key[0] <= limit) {
                    keys.push((key, (block.0, number)));
                }
            }
        }
        keys.sort_unstable();
        Ok(keys.into_iter().map(|(_, place)| place).collect())
    }
}

/// The three integers of a row.
fn key_of(page: Page<'_>, number: u16) -> Option<[i32; 3]> {
    let tuple = HeapTuple::parse(page.item(page.line_pointer(number)?).ok()?).ok()?;
    let (integers, _) = tuple.data().data.as_chunks::<4>();
    let [a, b, c, ..] = integers else { return None };
    Some([*a, *b, *c].map(i32::from_le_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagemill_engine::{GenerateOptions, GeneratedTable, generate};
    use pagemill_io::WriteSettings;

    const ROWS: u64 = 5000;

    fn table(directory: &std::path::Path) -> TableFiles {
        let options = GenerateOptions {
            table: GeneratedTable::Bigtable,
            rows: ROWS,
            seed: 3,
            fillfactor: 100,
            checksums: false,
            jobs: 1,
            writing: WriteSettings::default(),
        };
        let made = generate(&Storage::real(), directory, &options).unwrap();
        TableFiles { path: made.path, rows: made.rows }
    }

    fn readings() -> impl Iterator<Item = Reading> {
        let methods = IoMethod::ALL.into_iter().map(Some).chain([None]);
        methods.flat_map(|method| [true, false].map(|single| Reading { method, single }))
    }

    #[test]
    fn every_way_to_read_counts_the_same_rows() {
        let dir = tempfile::tempdir().unwrap();
        let table = table(dir.path());
        for reading in readings() {
            match table.count(reading, 2, &Cancel::default()) {
                Ok(work) => assert_eq!(work.operations, 2 * ROWS, "{reading:?}"),
                Err(error) => assert_eq!(reading.method, Some(IoMethod::IoUring), "{error}"),
            }
        }
        let other = TableFiles { rows: ROWS + 1, ..table };
        let reading = Reading { method: Some(IoMethod::Pread), single: false };
        let error = other.count(reading, 1, &Cancel::default()).unwrap_err();
        assert!(error.to_string().contains("5000 rows counted, 5001 expected"), "{error}");
    }

    #[test]
    fn one_call_at_a_time_takes_a_call_for_each_block() {
        let dir = tempfile::tempdir().unwrap();
        let table = table(dir.path());
        let calls = |single| {
            let reading = Reading { method: Some(IoMethod::Pread), single };
            table.count(reading, 1, &Cancel::default()).unwrap().calls["pread"]
        };
        let blocks = std::fs::metadata(&table.path).unwrap().len() / 8192;
        assert_eq!((calls(true), calls(false)), (blocks, blocks.div_ceil(16)));
    }

    #[test]
    fn the_index_order_is_that_of_the_keys_and_has_every_row_once() {
        let dir = tempfile::tempdir().unwrap();
        let table = table(dir.path());
        let order = table.index_order(u32::MAX, &Cancel::default()).unwrap();
        assert_eq!(order.len() as u64, ROWS);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len() as u64, ROWS);
        assert_ne!(sorted, order);
        let few = table.index_order(500, &Cancel::default()).unwrap();
        assert!(few.len() > 300 && few.len() < 700, "{}", few.len());
        assert_eq!(order[..few.len()], few);
        for reading in readings() {
            match table.look_up(&order, reading, Duration::ZERO, &Cancel::default()) {
                Ok(work) => assert_eq!(work.operations, 1, "{reading:?}"),
                Err(error) => assert_eq!(reading.method, Some(IoMethod::IoUring), "{error}"),
            }
        }
    }
}
