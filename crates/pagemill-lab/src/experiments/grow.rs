//! A file made longer by so many blocks at a time, in one of three ways, then synced; by one writer or several, and with
//! the blocks filled afterwards or not.
//!
//! Several writers share one file as PostgreSQL's backends share a relation: whoever needs blocks takes the lock,
//! extends, lets it go, and fills what it got. Invariant: each turn begins with a new, empty file whose making is on
//! the device.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pagemill_format::BLOCK_SIZE;

use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::{Error, Result};
use crate::experiments::random::Random;

/// A way to make a file longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrowMethod {
    /// One write of zeros.
    WriteZeros,
    /// `posix_fallocate`, the C library's call.
    PosixFallocate,
    /// `ftruncate`, which leaves holes.
    Ftruncate,
}

impl GrowMethod {
    /// The name, as PostgreSQL's `file_extend_method` has it where it is one of its values.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WriteZeros => "write_zeros",
            Self::PosixFallocate => "posix_fallocate",
            Self::Ftruncate => "ftruncate",
        }
    }

    /// The call.
    pub(crate) fn call(self) -> &'static str {
        match self {
            Self::WriteZeros => "pwrite",
            Self::PosixFallocate => "fallocate",
            Self::Ftruncate => "ftruncate",
        }
    }

    /// Makes the file longer; `zeros` has as many bytes as it grows by.
    pub(crate) fn extend(self, file: &File, from: u64, zeros: &[u8]) -> io::Result<()> {
        let len = zeros.len() as u64;
        match self {
            Self::WriteZeros => file.write_all_at(zeros, from),
            Self::PosixFallocate => loop {
                match pagemill_sys::posix_fallocate(file, from, len) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    outcome => return outcome,
                }
            },
            Self::Ftruncate => file.set_len(from + len),
        }
    }
}

/// A file that grows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grow {
    pub(crate) way: GrowMethod,
    /// Blocks at a time.
    pub(crate) blocks: usize,
    /// Bytes in the end.
    pub(crate) total: u64,
    /// The blocks are written once there is space for them.
    pub(crate) fill: bool,
    pub(crate) writers: usize,
}

impl Grow {
    /// One who makes the file of that name grow.
    pub(crate) fn contestant(self, path: PathBuf) -> Contestant<'static> {
        let name = format!("{} {}", self.way.name(), self.blocks);
        let target = path.clone();
        let contestant = Contestant::new(name, move |cancel| self.perform(&path, cancel))
            .prepared(move || new_file(&target).map_err(Error::file(&target)))
            .parameter("method", self.way.name())
            .parameter("blocks", self.blocks)
            .parameter("writers", self.writers);
        if self.writers > 1 { contestant.by_threads() } else { contestant }
    }

    fn perform(self, path: &Path, cancel: &Cancel) -> Result<Work> {
        let file =
            OpenOptions::new().read(true).write(true).open(path).map_err(Error::file(path))?;
        let growth = Growth { grow: self, file: &file, end: Mutex::new(0), cancel };
        let begin = Instant::now();
        let spent = match self.writers {
            0 | 1 => growth.write()?,
            writers => growth.write_by(writers)?,
        };
        let synced = Instant::now();
        file.sync_data().map_err(Error::system("fdatasync"))?;
        let (sync, elapsed) = (synced.elapsed(), begin.elapsed());
        let blocks = self.total / BLOCK_SIZE as u64;
        let steps = blocks.div_ceil(self.blocks as u64);
        let mut work =
            Work { elapsed: Some(elapsed), note: pieces(&file), ..Work::operations(steps) }
                .with_calls(self.way.call(), steps)
                .with_calls("fdatasync", 1)
                .with_part("extend", spent.extending)
                .with_part("fdatasync", sync);
        if self.fill {
            work = work.with_calls("pwrite", blocks).with_part("fill", spent.filling);
        }
        Ok(work)
    }
}

/// What is told of a file that has grown: in how many pieces it lies.
fn pieces(file: &File) -> Option<String> {
    let extents = pagemill_sys::extents(file).ok()?;
    match pagemill_sys::fragments(&extents) {
        0 => Some("no space taken".into()),
        1 => Some("in one piece".into()),
        pieces => Some(format!("in {pieces} pieces")),
    }
}

/// A new file in the place of the one before.
fn new_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // The sync ends what the removal set going.
    File::create(path)?.sync_all()
}

/// Time spent, added over all writers.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    extending: Duration,
    filling: Duration,
}

/// A file while it grows.
struct Growth<'a> {
    grow: Grow,
    file: &'a File,
    /// Up to where it has grown.
    end: Mutex<u64>,
    cancel: &'a Cancel,
}

impl Growth<'_> {
    fn write_by(&self, writers: usize) -> Result<Spent> {
        std::thread::scope(|scope| {
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, || self.write());
            let threads: io::Result<Vec<_>> = (0..writers).map(start).collect();
            let mut sum = Spent::default();
            for thread in threads.map_err(Error::system("threads"))? {
                let lost = || Error::system("threads")(io::Error::other("a writer panicked"));
                let spent = thread.join().map_err(|_| lost())??;
                sum.extending += spent.extending;
                sum.filling += spent.filling;
            }
            Ok(sum)
        })
    }

    /// Extends and fills until the file is as long as it shall be.
    fn write(&self) -> Result<Spent> {
        let zeros = vec![0; self.grow.blocks * BLOCK_SIZE];
        let mut page = vec![0; BLOCK_SIZE];
        Random::new(1).fill(&mut page);
        let mut spent = Spent::default();
        loop {
            self.cancel.check()?;
            let begin = Instant::now();
            let Some((from, len)) = self.extend(&zeros)? else { return Ok(spent) };
            let extended = Instant::now();
            spent.extending += extended - begin;
            if self.grow.fill {
                for at in (from..from + len).step_by(BLOCK_SIZE) {
                    self.file.write_all_at(&page, at).map_err(Error::system("pwrite"))?;
                }
                spent.filling += extended.elapsed();
            }
        }
    }

    /// The next stretch of the file, as offset and length; `None` when it is long enough.
    fn extend(&self, zeros: &[u8]) -> Result<Option<(u64, u64)>> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let from = *end;
        let left = usize::try_from(self.grow.total.saturating_sub(from)).unwrap_or(usize::MAX);
        let Some(zeros) = zeros.get(..left.min(zeros.len())).filter(|zeros| !zeros.is_empty())
        else {
            return Ok(None);
        };
        let Grow { way, .. } = self.grow;
        way.extend(self.file, from, zeros).map_err(Error::system(way.name()))?;
        *end += zeros.len() as u64;
        Ok(Some((from, zeros.len() as u64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(grow: Grow) -> (u64, Vec<u8>, Work) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        new_file(&path).unwrap();
        let work = grow.perform(&path, &Cancel::default()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        (bytes.len() as u64, bytes, work)
    }

    #[test]
    fn every_way_ends_with_a_file_of_the_same_length() {
        for way in [GrowMethod::WriteZeros, GrowMethod::PosixFallocate, GrowMethod::Ftruncate] {
            let grow = Grow { way, blocks: 3, total: 10 * 8192, fill: false, writers: 1 };
            let (len, bytes, work) = grown(grow);
            assert_eq!((len, work.operations), (10 * 8192, 4), "{way:?}");
            assert!(bytes.iter().all(|byte| *byte == 0));
            assert_eq!(work.calls[way.call()], 4);
            assert!(work.parts.contains_key("extend") && work.parts.contains_key("fdatasync"));
        }
    }

    #[test]
    fn four_writers_fill_every_block_of_one_file() {
        let way = GrowMethod::WriteZeros;
        let grow = Grow { way, blocks: 2, total: 64 * 8192, fill: true, writers: 4 };
        let (len, bytes, work) = grown(grow);
        assert_eq!(len, 64 * 8192);
        let blocks: std::collections::BTreeSet<_> = bytes.chunks(8192).collect();
        assert_eq!(blocks.len(), 1, "all blocks hold what a writer filled in");
        assert!(bytes.iter().any(|byte| *byte != 0));
        assert_eq!(work.calls["pwrite"], 32 + 64);
    }
}
