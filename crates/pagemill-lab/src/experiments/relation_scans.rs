//! Relations read whole, block by block in one direction, with one of the readahead strategies: by one reader, or by several
//! that have a relation each.
//!
//! ```text
//! strategy          reads       tells the kernel
//! 0 none            8 kB        nothing
//! 1 every-page      8 kB        at each block of the one a distance further on
//! 2 window          8 kB        the same in every second window of that length
//! 3 double-window   8 kB        and in the other windows of the one two distances further on
//! window, 16 blocks 128 kB      as 2
//! auto              what suits the place
//! ```
//!
//! Invariant: every block is read and its rows counted; a scan that counts other rows than the first one has failed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use pagemill_format::page::Page;
use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork};
use pagemill_io::{ForkFiles, IoMethod, ReadSettings, Readahead, RealFileSystem, Storage};
use pagemill_stream::{DEFAULT_IO_COMBINE_LIMIT, MethodUse, ReadStream, ReadStreamOptions};

use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::{Error, Result};

/// How blocks in order are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strategy {
    pub(crate) name: &'static str,
    /// `None` for `auto`.
    pub(crate) method: Option<IoMethod>,
    pub(crate) readahead: Readahead,
    pub(crate) io_combine_limit: u32,
}

/// The document's strategies, and the project's.
pub(crate) const STRATEGIES: [Strategy; 6] = [
    block_by_block("0 none", Readahead::None),
    block_by_block("1 every-page", Readahead::EveryPage),
    block_by_block("2 window", Readahead::Window),
    block_by_block("3 double-window", Readahead::DoubleWindow),
    Strategy {
        name: "window, 16 blocks",
        method: Some(IoMethod::Pread),
        readahead: Readahead::Window,
        io_combine_limit: DEFAULT_IO_COMBINE_LIMIT,
    },
    Strategy {
        name: "auto",
        method: None,
        readahead: Readahead::Auto,
        io_combine_limit: DEFAULT_IO_COMBINE_LIMIT,
    },
];

const fn block_by_block(name: &'static str, readahead: Readahead) -> Strategy {
    Strategy { name, method: Some(IoMethod::Pread), readahead, io_combine_limit: 1 }
}

/// Relations to scan.
#[derive(Debug, Clone)]
pub(crate) struct RelationScans {
    /// A reader for each.
    pub(crate) relations: Vec<PathBuf>,
    /// How many blocks ahead the kernel is told of.
    pub(crate) distance: u32,
    pub(crate) backward: bool,
}

/// What a scan came to.
struct Scanned {
    rows: u64,
    blocks: u64,
    work: Work,
}

impl RelationScans {
    /// One who scans them all.
    pub(crate) fn contestant(&self, strategy: Strategy) -> Contestant<'static> {
        let scans = self.clone();
        let mut rows = None;
        let work = move |cancel: &Cancel| {
            let (found, work) = scans.perform(strategy, cancel)?;
            if *rows.get_or_insert(found) != found {
                let what = format!("{found} rows counted, another number before");
                return Err(Error::system("a scan")(std::io::Error::other(what)));
            }
            Ok(work)
        };
        let contestant = Contestant::new(strategy.name, work)
            .parameter("strategy", strategy.name)
            .parameter("method", strategy.method.map_or("auto", IoMethod::name))
            .parameter("io_combine_limit", strategy.io_combine_limit)
            .parameter("distance", self.distance)
            .parameter("readers", self.relations.len());
        if self.relations.len() > 1 { contestant.by_threads() } else { contestant }
    }

    /// All files of the relations, for the state of the cache.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let storage = Storage::real();
        let mut files = Vec::new();
        for relation in &self.relations {
            files.extend(open(&storage, relation)?.segments().map(|(path, _)| path));
        }
        Ok(files)
    }

    /// How many rows there are in all relations, and what it took.
    pub(crate) fn perform(&self, strategy: Strategy, cancel: &Cancel) -> Result<(u64, Work)> {
        let begin = Instant::now();
        let scanned = match self.relations.as_slice() {
            [one] => vec![self.scan(one, strategy, cancel)?],
            several => self.by_readers(several, strategy, cancel)?,
        };
        let elapsed = begin.elapsed();
        let rows = scanned.iter().map(|scanned| scanned.rows).sum();
        let blocks: u64 = scanned.iter().map(|scanned| scanned.blocks).sum();
        let note = scanned.first().and_then(|first| first.work.note.clone());
        let mut all = Work { elapsed: Some(elapsed), note, ..Work::operations(blocks) };
        for scanned in scanned {
            for (name, count) in scanned.work.calls {
                all = all.with_calls(&name, count);
            }
        }
        Ok((rows, all))
    }

    fn by_readers(
        &self,
        relations: &[PathBuf],
        strategy: Strategy,
        cancel: &Cancel,
    ) -> Result<Vec<Scanned>> {
        std::thread::scope(|scope| {
            let start = |relation| {
                let scan = move || self.scan(relation, strategy, cancel);
                std::thread::Builder::new().spawn_scoped(scope, scan)
            };
            let threads: std::io::Result<Vec<_>> =
                relations.iter().map(PathBuf::as_path).map(start).collect();
            let threads = threads.map_err(Error::system("threads"))?;
            let lost = || Error::system("threads")(std::io::Error::other("a reader panicked"));
            threads.into_iter().map(|thread| thread.join().map_err(|_| lost())?).collect()
        })
    }

    fn scan(&self, relation: &Path, strategy: Strategy, cancel: &Cancel) -> Result<Scanned> {
        let settings = ReadSettings {
            io_method: strategy.method,
            readahead: strategy.readahead,
            readahead_distance: self.distance,
            ..ReadSettings::default()
        };
        let storage = Storage::with_settings(Arc::new(RealFileSystem), settings).untimed();
        let files = open(&storage, relation)?;
        let options = ReadStreamOptions {
            io_combine_limit: strategy.io_combine_limit,
            ..ReadStreamOptions::default()
        };
        let last = files.blocks().saturating_sub(1);
        let place = |block| if self.backward { last - block } else { block };
        let blocks = (0..files.blocks()).map(place).map(BlockNumber);
        let mut stream = ReadStream::new(&files, blocks, options);
        let (mut rows, mut count) = (0, 0);
        while let Some(next) = stream.next() {
            let (_, page) = next?;
            rows += u64::from(Page::new(page).count_normal().unwrap_or(0));
            count += 1;
            if count % 64 == 0 {
                cancel.check()?;
            }
        }
        drop(stream);
        let counted = storage.counters().snapshot();
        let note = strategy.method.is_none().then(|| MethodUse::of(&storage).most_used()).flatten();
        let note = note.map(|most| format!("mostly {most}"));
        let work = Work { note, ..Work::default() }.with_counted("pread", &counted);
        Ok(Scanned { rows, blocks: count, work })
    }
}

fn open(storage: &Storage, relation: &Path) -> Result<ForkFiles> {
    let lost = || Error::file(relation)(std::io::ErrorKind::NotFound.into());
    ForkFiles::open(storage, relation, Fork::Main)?.ok_or_else(lost)
}

/// A copy of a relation's first segment that has holes in the place of every second stretch of so many blocks.
///
/// # Errors
/// When it cannot be written, or somebody ends the run.
pub(crate) fn copy_with_holes(
    from: &Path,
    to: &Path,
    stretch: usize,
    cancel: &Cancel,
) -> Result<()> {
    use std::os::unix::fs::FileExt as _;
    let source = std::fs::File::open(from).map_err(Error::file(from))?;
    let target = std::fs::File::create_new(to).map_err(Error::file(to))?;
    let len = source.metadata().map_err(Error::file(from))?.len();
    target.set_len(len).map_err(Error::file(to))?;
    let mut buffer = vec![0; stretch.max(1) * BLOCK_SIZE];
    for at in (0..len).step_by(2 * buffer.len()) {
        cancel.check()?;
        let left = usize::try_from(len - at).unwrap_or(usize::MAX).min(buffer.len());
        let bytes = buffer.get_mut(..left).unwrap_or_default();
        source.read_exact_at(bytes, at).map_err(Error::file(from))?;
        target.write_all_at(bytes, at).map_err(Error::file(to))?;
    }
    target.sync_all().map_err(Error::file(to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagemill_engine::{GenerateOptions, GeneratedTable, generate};
    use pagemill_io::WriteSettings;

    const ROWS: u64 = 20_000;

    fn table(directory: &Path) -> PathBuf {
        std::fs::create_dir(directory).unwrap();
        let options = GenerateOptions {
            table: GeneratedTable::Bigtable,
            rows: ROWS,
            seed: 3,
            fillfactor: 100,
            checksums: false,
            jobs: 1,
            writing: WriteSettings::default(),
        };
        generate(&Storage::real(), directory, &options).unwrap().path
    }

    #[test]
    fn every_strategy_counts_the_same_rows_in_both_directions_and_by_several() {
        let dir = tempfile::tempdir().unwrap();
        let relations = vec![table(&dir.path().join("a")), table(&dir.path().join("b"))];
        for strategy in STRATEGIES {
            for backward in [false, true] {
                let one = vec![relations[0].clone()];
                for (relations, expected) in [(one, ROWS), (relations.clone(), 2 * ROWS)] {
                    let scans = RelationScans { relations, distance: 16, backward };
                    let (rows, _) = scans.perform(strategy, &Cancel::default()).unwrap();
                    assert_eq!(rows, expected, "{strategy:?}");
                }
            }
        }
    }

    #[test]
    fn the_kernel_is_told_as_the_strategy_says() {
        let dir = tempfile::tempdir().unwrap();
        let relations = vec![table(&dir.path().join("a"))];
        let scans = RelationScans { relations, distance: 16, backward: false };
        let calls = |number: usize| {
            let (_, work) = scans.perform(STRATEGIES[number], &Cancel::default()).unwrap();
            (work.operations, work.calls["pread"], work.calls.get("fadvise").copied().unwrap_or(0))
        };
        let (blocks, reads, told) = calls(0);
        assert_eq!((reads, told), (blocks, 0));
        let (every, window, double) = (calls(1).2, calls(2).2, calls(3).2);
        assert_eq!(every, blocks - 16);
        assert!(window > 0 && window <= blocks.div_ceil(2));
        assert!(double > window && double <= blocks);
    }

    #[test]
    fn holes_take_no_space_and_read_as_pages_without_rows() {
        let dir = tempfile::tempdir().unwrap();
        let (table, sparse) = (table(&dir.path().join("a")), dir.path().join("sparse"));
        copy_with_holes(&table, &sparse, 8, &Cancel::default()).unwrap();
        let scans = RelationScans { relations: vec![sparse], distance: 16, backward: false };
        let (rows, work) = scans.perform(STRATEGIES[0], &Cancel::default()).unwrap();
        assert_eq!(work.operations, std::fs::metadata(&table).unwrap().len() / 8192);
        assert!(rows > ROWS / 3 && rows < ROWS * 2 / 3, "{rows}");
    }
}
