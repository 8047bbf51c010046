//! Segments of WAL: how long one takes to be made, and how fast the first writes to it are made to last.
//!
//! PostgreSQL writes a new segment full of zeros (`wal_init_zero`) or only its last byte, syncs it, and gives old ones a
//! new name (`wal_recycle`); `src/backend/access/transam/xlog.c`, `XLogFileInitInternal`, PostgreSQL 15 to 18. Every commit
//! then writes a block or so and waits for it. Invariant: a segment is on the device before a turn that writes to it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pagemill_format::BLOCK_SIZE;

use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::{Error, Result};
use crate::experiments::grow::GrowMethod;
use crate::experiments::random::Random;

/// What a segment is made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Making {
    /// In steps of so many bytes.
    Steps(GrowMethod, usize),
    /// In one step.
    Whole(GrowMethod),
    /// The last byte alone is written.
    LastByte,
    /// It was used before.
    Recycled,
}

impl Making {
    /// Makes the segment, and counts the calls.
    fn make(self, file: &File, bytes: u64) -> io::Result<u64> {
        match self {
            Self::Steps(way, step) => {
                let zeros = vec![0; step];
                let mut at = 0;
                while at < bytes {
                    way.extend(file, at, &zeros)?;
                    at += step as u64;
                }
                Ok(bytes.div_ceil(step as u64))
            }
            Self::Whole(way) => {
                let zeros = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
                way.extend(file, 0, &zeros).map(|()| 1)
            }
            Self::LastByte => file.write_all_at(&[0], bytes.saturating_sub(1)).map(|()| 1),
            Self::Recycled => {
                let mut used = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
                Random::new(1).fill(&mut used);
                file.write_all_at(&used, 0).map(|()| 1)
            }
        }
    }

    fn call(self) -> &'static str {
        match self {
            Self::Steps(way, _) | Self::Whole(way) => way.call(),
            Self::LastByte | Self::Recycled => "pwrite",
        }
    }
}

fn new_segment(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)
}

/// Those who make a segment of so many bytes and sync it.
pub(crate) fn makers(path: &Path, bytes: u64) -> Vec<Contestant<'static>> {
    let makings = [
        ("write_zeros 8 kB", Making::Steps(GrowMethod::WriteZeros, BLOCK_SIZE)),
        ("write_zeros 256 kB", Making::Steps(GrowMethod::WriteZeros, 32 * BLOCK_SIZE)),
        ("write_zeros 1 MB", Making::Steps(GrowMethod::WriteZeros, 128 * BLOCK_SIZE)),
        ("posix_fallocate", Making::Whole(GrowMethod::PosixFallocate)),
        ("last byte", Making::LastByte),
    ];
    makings.into_iter().map(|(name, making)| maker(name, making, path, bytes)).collect()
}

fn maker(name: &str, making: Making, path: &Path, bytes: u64) -> Contestant<'static> {
    let (path, target) = (path.to_path_buf(), path.to_path_buf());
    let work = move |_: &Cancel| {
        let begin = Instant::now();
        let file = OpenOptions::new().write(true).open(&path).map_err(Error::file(&path))?;
        let calls = making.make(&file, bytes).map_err(Error::system(making.call()))?;
        let made = begin.elapsed();
        file.sync_all().map_err(Error::system("fsync"))?;
        let elapsed = begin.elapsed();
        let work = Work { elapsed: Some(elapsed), ..Work::operations(1) };
        Ok(work
            .with_calls(making.call(), calls)
            .with_calls("fsync", 1)
            .with_part("extend", made)
            .with_part("fsync", elapsed.saturating_sub(made)))
    };
    let emptied = move || {
        let file = new_segment(&target).and_then(|file| file.sync_all());
        file.map_err(Error::file(&target))
    };
    Contestant::new(name, work).prepared(emptied).parameter("method", name)
}

/// Those who write to a segment block by block, each made to last by `fdatasync`, for a time.
pub(crate) fn writers(path: &Path, bytes: u64, time: Duration) -> Vec<Contestant<'static>> {
    let makings = [
        ("over zeros", Making::Whole(GrowMethod::WriteZeros)),
        ("over posix_fallocate", Making::Whole(GrowMethod::PosixFallocate)),
        ("over a hole", Making::LastByte),
        ("over a recycled segment", Making::Recycled),
    ];
    let written = WrittenSegment { path, bytes, time };
    makings.into_iter().map(|(name, making)| writer(name, making, written)).collect()
}

/// A segment that is written to for a time.
#[derive(Debug, Clone, Copy)]
struct WrittenSegment<'p> {
    /// Where it lies.
    path: &'p Path,
    /// Its size in bytes.
    bytes: u64,
    /// How long it is written to, unless its end comes first.
    time: Duration,
}

fn writer(name: &str, making: Making, segment: WrittenSegment<'_>) -> Contestant<'static> {
    let WrittenSegment { path, bytes, time } = segment;
    let (path, target): (PathBuf, PathBuf) = (path.into(), path.into());
    let remade = move || {
        let made = new_segment(&target).and_then(|file| {
            making.make(&file, bytes)?;
            file.sync_all()
        });
        made.map_err(Error::file(&target))
    };
    Contestant::new(name, move |cancel| commits(&path, bytes, time, cancel))
        .prepared(remade)
        .parameter("method", name)
}

/// One block after the other, as commits write WAL.
fn commits(path: &Path, bytes: u64, time: Duration, cancel: &Cancel) -> Result<Work> {
    let file = OpenOptions::new().write(true).open(path).map_err(Error::file(path))?;
    let mut block = vec![0; BLOCK_SIZE];
    Random::new(2).fill(&mut block);
    let (begin, mut done) = (Instant::now(), 0);
    for at in (0..bytes).step_by(BLOCK_SIZE) {
        // One at least: to get here may have taken all of a short time.
        if done > 0 && begin.elapsed() >= time {
            break;
        }
        cancel.check()?;
        file.write_all_at(&block, at).map_err(Error::system("pwrite"))?;
        file.sync_data().map_err(Error::system("fdatasync"))?;
        done += 1;
    }
    let work = Work { elapsed: Some(begin.elapsed()), ..Work::operations(done) };
    Ok(work.with_calls("pwrite", done).with_calls("fdatasync", done))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 1 << 20;

    #[test]
    fn every_maker_leaves_a_segment_of_its_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segment");
        for mut maker in makers(&path, BYTES) {
            maker.prepare.as_mut().unwrap()().unwrap();
            let work = maker.perform.as_mut().ok().unwrap()(&Cancel::default()).unwrap();
            assert_eq!(work.calls["fsync"], 1);
            assert_eq!(std::fs::metadata(&path).unwrap().len(), BYTES, "{}", maker.name);
        }
    }

    #[test]
    fn writers_stay_within_the_segment() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segment");
        for mut writer in writers(&path, BYTES, Duration::from_millis(5)) {
            writer.prepare.as_mut().unwrap()().unwrap();
            let work = writer.perform.as_mut().ok().unwrap()(&Cancel::default()).unwrap();
            assert!(work.operations > 0 && work.operations <= BYTES / 8192);
            assert_eq!(std::fs::metadata(&path).unwrap().len(), BYTES);
        }
    }
}
