//! Dirty pages sent to the device every so many bytes while somebody else works: what `checkpoint_flush_after` and
//! `backend_flush_after` are for.
//!
//! ```text
//! writer         half of a file's blocks, through the page cache; sync_file_range after so many bytes; fsync at the end
//! transactions   meanwhile, one after the other: 8 kB read past the page cache, 8 kB written over and made to last
//! ```
//!
//! As servers do it (`IssuePendingWritebacks` in src/backend/storage/buffer/bufmgr.c, PostgreSQL 14 to 18): what is pending is
//! sorted, and neighbours are sent in one call. The figure is how long the transaction takes that is under way at any
//! moment: each counts by its length, since the one that waits for all of the writing would else be hidden by the many short
//! ones before it. Invariant: all cells of a group write the same blocks, and their turns end when the device has them.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pagemill_sys::{AlignedBuffer, WriteBack, write_back};
use rustix::fs::OFlags;

use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::{Error, Result};
use crate::experiments::random::Random;

const BLOCK: usize = 8192;
/// Waits shorter than this are left to the next block: they would only wake the processor.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    /// Blocks in rising order, in twice the time that they take at full speed: a checkpoint has time.
    Checkpoint,
    /// Blocks in any order, as fast as they can be written: a session has none.
    Session,
}

/// Where the files lie.
#[derive(Debug, Clone)]
pub(crate) struct FilePaths {
    /// What the writer writes to.
    pub(crate) dirty: PathBuf,
    /// What transactions read.
    pub(crate) read: PathBuf,
    /// What they write to.
    pub(crate) commit: PathBuf,
}

/// The files, each written in full before.
#[derive(Debug)]
pub(crate) struct PreparedFiles {
    paths: FilePaths,
    seed: u64,
    /// The blocks that are written, in any order.
    places: Vec<u32>,
    /// The time that a block takes at full speed, with the sync at the end.
    block_time: Duration,
}

impl PreparedFiles {
    /// Finds out how fast the device takes the blocks.
    pub(crate) fn new(paths: FilePaths, seed: u64, cancel: &Cancel) -> Result<Self> {
        let mut places = Random::new(seed).permutation(blocks(&paths.dirty)?);
        places.truncate((places.len() / 2).max(1));
        let block_time = Duration::ZERO;
        let mut ground = Self { paths, seed, places, block_time };
        let stretch = Stretch { ground: &ground, writer: Writer::Session, every: 0 };
        let took = stretch.write(&ground.open_dirty()?, cancel)?;
        let count = u32::try_from(ground.places.len()).unwrap_or(u32::MAX);
        ground.block_time = (took.writing + took.sync) / count;
        Ok(ground)
    }

    /// One contestant for each number of bytes after which dirty pages are sent; 0 for never.
    /// Turns last at least so long: the same blocks are written again.
    pub(crate) fn contestants(
        &self,
        writer: Writer,
        bytes: &[u64],
        least: Duration,
    ) -> Vec<Contestant<'_>> {
        let contestant = |bytes: &u64| {
            let blocks = usize::try_from(*bytes).unwrap_or(usize::MAX) / BLOCK;
            let stretch = Stretch { ground: self, writer, every: blocks };
            Contestant::new(name(*bytes), move |cancel| stretch.perform(least, cancel))
                .parameter("method", "sync_file_range")
                .parameter("flush_after", bytes)
        };
        bytes.iter().map(contestant).collect()
    }

    fn open_dirty(&self) -> Result<File> {
        let path = &self.paths.dirty;
        OpenOptions::new().write(true).open(path).map_err(Error::file(path))
    }
}

/// `never`, `every 256 kB`.
pub(crate) fn name(bytes: u64) -> String {
    match bytes {
        0 => "never".into(),
        bytes => format!("every {} kB", bytes / 1024),
    }
}

fn blocks(path: &Path) -> Result<u32> {
    let len = std::fs::metadata(path).map_err(Error::file(path))?.len();
    Ok(u32::try_from(len / BLOCK as u64).unwrap_or(u32::MAX))
}

/// A turn of one contestant.
#[derive(Debug, Clone, Copy)]
struct Stretch<'g> {
    ground: &'g PreparedFiles,
    writer: Writer,
    /// Blocks after which they are sent; 0 for never.
    every: usize,
}

/// What the writer did.
#[derive(Debug, Default)]
struct Written {
    writing: Duration,
    sync: Duration,
    sent: u64,
}

impl Stretch<'_> {
    fn perform(&self, least: Duration, cancel: &Cancel) -> Result<Work> {
        let file = self.ground.open_dirty()?;
        let transactions = Transactions::open(self.ground)?;
        let over = AtomicBool::new(false);
        let (written, latencies) = std::thread::scope(|scope| {
            let others = scope.spawn(|| transactions.run(&over));
            let written = self.write_for(least, &file, cancel);
            over.store(true, Ordering::Relaxed);
            (written, others.join())
        });
        let ended = |_| Error::system("transactions")(std::io::Error::other("their thread ended"));
        let latencies = latencies.map_err(ended)??;
        let (written, times) = written?;
        let blocks = self.ground.places.len() as u64 * u64::from(times);
        let count = latencies.len() as u64;
        let slowest = latencies.iter().max().copied().unwrap_or_default();
        let work = Work {
            bytes: Some(blocks * BLOCK as u64 / u64::from(times)),
            // Of writing the blocks once, however often they were.
            elapsed: Some((written.writing + written.sync) / times),
            latency: Some(met(&latencies)),
            ..Work::operations(count)
        };
        Ok(work
            .with_part("slowest transaction", slowest)
            .with_part("fsync", written.sync)
            .with_calls("pwrite", blocks + count)
            .with_calls("sync_file_range", written.sent)
            .with_calls("fsync", times.into())
            .with_calls("pread", count)
            .with_calls("fdatasync", count))
    }

    /// All blocks again and again for a time: what that took together, and how often they were written.
    fn write_for(&self, least: Duration, file: &File, cancel: &Cancel) -> Result<(Written, u32)> {
        let mut all = Written::default();
        for times in 1.. {
            let written = self.write(file, cancel)?;
            all.writing += written.writing;
            all.sync += written.sync;
            all.sent += written.sent;
            if all.writing + all.sync >= least {
                return Ok((all, times));
            }
        }
        Ok((all, u32::MAX))
    }

    fn write(&self, file: &File, cancel: &Cancel) -> Result<Written> {
        let mut places = self.ground.places.clone();
        if self.writer == Writer::Checkpoint {
            places.sort_unstable();
        }
        let mut buffer = vec![0; BLOCK];
        Random::new(self.ground.seed ^ 1).fill(&mut buffer);
        let (mut pending, mut sent) = (Vec::new(), 0);
        let begin = Instant::now();
        for (done, block) in (0_u32..).zip(places) {
            cancel.check()?;
            self.pause(begin, done);
            let offset = u64::from(block) * BLOCK as u64;
            file.write_all_at(&buffer, offset).map_err(Error::system("pwrite"))?;
            pending.push(block);
            if pending.len() == self.every {
                sent += send(file, &mut pending).map_err(Error::system("sync_file_range"))?;
            }
            if self.every == 0 {
                pending.clear();
            }
        }
        let writing = begin.elapsed();
        file.sync_all().map_err(Error::system("fsync"))?;
        Ok(Written { writing, sync: begin.elapsed().saturating_sub(writing), sent })
    }

    /// Waits until a checkpoint's next block is due.
    fn pause(&self, begin: Instant, done: u32) {
        if self.writer == Writer::Checkpoint {
            let due = self.ground.block_time.saturating_mul(2).saturating_mul(done);
            let early = due.saturating_sub(begin.elapsed());
            if early >= SHORTEST_WAIT {
                std::thread::sleep(early);
            }
        }
    }
}

/// Sends what is pending to the device, neighbours together, and tells in how many calls.
fn send(file: &File, pending: &mut Vec<u32>) -> std::io::Result<u64> {
    pending.sort_unstable();
    let mut calls = 0;
    for run in pending.chunk_by(|one, next| one.checked_add(1) == Some(*next)) {
        let at = |block: u32| u64::from(block) * BLOCK as u64;
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        write_back(file, at(*first)..at(*last) + BLOCK as u64, WriteBack::Begin)?;
        calls += 1;
    }
    pending.clear();
    Ok(calls)
}

/// Those who work while others write.
#[derive(Debug)]
struct Transactions {
    read: File,
    /// Blocks of it.
    blocks: u32,
    commit: File,
    seed: u64,
}

impl Transactions {
    fn open(ground: &PreparedFiles) -> Result<Self> {
        let paths = &ground.paths;
        let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
        let read = OpenOptions::new().read(true).custom_flags(direct).open(&paths.read);
        let commit = OpenOptions::new().write(true).open(&paths.commit);
        Ok(Self {
            read: read.map_err(Error::file(&paths.read))?,
            blocks: blocks(&paths.read)?,
            commit: commit.map_err(Error::file(&paths.commit))?,
            seed: ground.seed,
        })
    }

    /// One after the other until it is over, at least one: how long each took.
    fn run(&self, over: &AtomicBool) -> Result<Vec<Duration>> {
        let mut buffer = AlignedBuffer::zeroed(BLOCK);
        let mut random = Random::new(self.seed ^ 2);
        let mut latencies = Vec::new();
        while latencies.is_empty() || !over.load(Ordering::Relaxed) {
            let block = random.next() % u64::from(self.blocks.max(1));
            let begin = Instant::now();
            let read = self.read.read_exact_at(&mut buffer, block * BLOCK as u64);
            read.map_err(Error::system("pread"))?;
            self.commit.write_all_at(&buffer, 0).map_err(Error::system("pwrite"))?;
            self.commit.sync_data().map_err(Error::system("fdatasync"))?;
            latencies.push(begin.elapsed());
        }
        Ok(latencies)
    }
}

/// How long the one takes that is under way at any moment: the mean, each weighed by its length.
fn met(latencies: &[Duration]) -> Duration {
    let seconds = || latencies.iter().map(Duration::as_secs_f64);
    let (sum, squares) = (seconds().sum::<f64>(), seconds().map(|time| time * time).sum::<f64>());
    if sum > 0.0 { Duration::from_secs_f64(squares / sum) } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground(dir: &Path) -> PreparedFiles {
        let file = |name: &str, blocks: usize| {
            let path = dir.join(name);
            std::fs::write(&path, vec![7; blocks * BLOCK]).unwrap();
            path
        };
        let (dirty, read, commit) = (file("dirty", 64), file("read", 4), file("commit", 1));
        let paths = FilePaths { dirty, read, commit };
        PreparedFiles::new(paths, 3, &Cancel::default()).unwrap()
    }

    #[test]
    fn half_of_the_blocks_are_written_and_sent_in_runs_of_neighbours() {
        let dir = tempfile::tempdir().unwrap();
        let ground = ground(dir.path());
        for writer in [Writer::Checkpoint, Writer::Session] {
            let stretch = Stretch { ground: &ground, writer, every: 16 };
            let written = stretch.write(&ground.open_dirty().unwrap(), &Cancel::default()).unwrap();
            assert!((2..=32).contains(&written.sent), "{written:?}");
        }
        let bytes = std::fs::read(&ground.paths.dirty).unwrap();
        let changed = bytes.chunks(BLOCK).filter(|block| block[..8] != [7; 8]).count();
        assert_eq!((changed, bytes.len()), (32, 64 * BLOCK));
    }

    #[test]
    fn neighbours_are_sent_together() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let mut pending = vec![9, 3, 4, 2, 11];
        assert_eq!(send(&file, &mut pending).unwrap(), 3);
        assert!(pending.is_empty());
    }

    #[test]
    fn a_turn_has_transactions_beside_its_writes() {
        let dir = tempfile::tempdir().unwrap();
        let ground = ground(dir.path());
        let stretch = Stretch { ground: &ground, writer: Writer::Session, every: 0 };
        match stretch.perform(Duration::ZERO, &Cancel::default()) {
            Ok(work) => {
                assert!(work.operations > 0 && work.latency > Some(Duration::ZERO), "{work:?}");
                assert_eq!(work.calls["pwrite"], 32 + work.operations);
                assert!(!work.calls.contains_key("sync_file_range"));
            }
            // Not every file system reads past the page cache.
            Err(error) => eprintln!("SKIPPED: {error}"),
        }
    }

    #[test]
    fn one_long_wait_is_not_hidden_by_many_short_ones() {
        let short = [Duration::from_millis(1); 100];
        assert!((met(&short).as_secs_f64() - 0.001).abs() < 1e-9);
        let long = [&short[..], &[Duration::from_millis(100)]].concat();
        assert!((met(&long).as_secs_f64() - 0.0505).abs() < 1e-4, "{:?}", met(&long));
        assert_eq!(met(&[]), Duration::ZERO);
    }
}
