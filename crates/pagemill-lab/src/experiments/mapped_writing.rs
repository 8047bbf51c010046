//! Files written through a mapping or by calls: overwritten and made to last, and grown, with a look at the pieces that
//! they lie in afterwards.
//!
//! ```text
//! overwritten   all blocks in order, or a few at random; then fdatasync, or msync
//! grown         space first (none, zeros, fallocate, a hole), then blocks filled in order or in random order
//! ```
//!
//! The manual that the document quotes warns of the last: holes that a mapping fills lead to files in many pieces. Several
//! writers have a file each and write at the same time, so that the file system has to keep them apart.
//! Invariant: after a turn every block of every file was written and is on the device.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use pagemill_format::BLOCK_SIZE;
use pagemill_sys::WritableMapping;

use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::{Error, Result};
use crate::experiments::grow::GrowMethod;
use crate::experiments::random::Random;

/// Blocks that space is taken for at a time.
const AHEAD: u64 = 64;

/// How blocks get into a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// A call each.
    Pwrite,
    /// Copied into a mapping of the whole file.
    Mmap,
}

/// Which blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocks {
    InOrder,
    /// All of them, shuffled.
    Shuffled,
    /// So many, in random order.
    Few(usize),
}

impl Blocks {
    /// Their offsets in a file of so many bytes.
    fn offsets(self, bytes: u64, seed: u64) -> Vec<u64> {
        let blocks = bytes / BLOCK_SIZE as u64;
        let shuffled = || Random::new(seed).permutation(u32::try_from(blocks).unwrap_or(u32::MAX));
        let numbers: Vec<u64> = match self {
            Self::InOrder => (0..blocks).collect(),
            Self::Shuffled => shuffled().into_iter().map(u64::from).collect(),
            Self::Few(count) => shuffled().into_iter().take(count).map(u64::from).collect(),
        };
        numbers.into_iter().map(|number| number * BLOCK_SIZE as u64).collect()
    }
}

/// Writes blocks to an open file, and makes them last.
fn write(file: &File, by: By, offsets: &[u64], cancel: &Cancel) -> Result<Work> {
    let mut page = vec![0; BLOCK_SIZE];
    Random::new(3).fill(&mut page);
    let begin = Instant::now();
    let work = Work::operations(offsets.len() as u64);
    match by {
        By::Pwrite => {
            for offset in offsets {
                cancel.check()?;
                file.write_all_at(&page, *offset).map_err(Error::system("pwrite"))?;
            }
            let synced = Instant::now();
            file.sync_data().map_err(Error::system("fdatasync"))?;
            Ok(work
                .with_calls("pwrite", offsets.len() as u64)
                .with_calls("fdatasync", 1)
                .with_part("write", synced - begin)
                .with_part("fdatasync", synced.elapsed()))
        }
        By::Mmap => {
            let fault = || Error::system("mmap");
            let len = file.metadata().map_err(fault())?.len();
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let mut mapping = WritableMapping::new(file.as_fd(), 0, len).map_err(fault())?;
            for offset in offsets {
                cancel.check()?;
                let at = usize::try_from(*offset).unwrap_or(usize::MAX);
                let lost = |_| fault()(rustix::io::Errno::IO.into());
                mapping.write(at, &page).map_err(lost)?;
            }
            let synced = Instant::now();
            mapping.sync(0..len).map_err(Error::system("msync"))?;
            Ok(work
                .with_calls("mmap", 1)
                .with_calls("msync", 1)
                .with_part("write", synced - begin)
                .with_part("msync", synced.elapsed()))
        }
    }
}

/// Those who overwrite a file.
pub(crate) fn overwriters(path: &Path, blocks: Blocks, seed: u64) -> Vec<Contestant<'static>> {
    let overwriter = |(name, method, by): (&str, &str, By)| {
        let (path, mut turn) = (path.to_path_buf(), 0);
        let work = move |cancel: &Cancel| {
            turn += 1;
            let file = OpenOptions::new().read(true).write(true).open(&path);
            let file = file.map_err(Error::file(&path))?;
            let bytes = file.metadata().map_err(Error::file(&path))?.len();
            let offsets = blocks.offsets(bytes, seed.wrapping_add(turn));
            let begin = Instant::now();
            let work = write(&file, by, &offsets, cancel)?;
            Ok(Work { elapsed: Some(begin.elapsed()), ..work })
        };
        Contestant::new(name, work).parameter("method", method)
    };
    [("pwrite, fdatasync", "pwrite", By::Pwrite), ("mmap, msync", "mmap", By::Mmap)]
        .into_iter()
        .map(overwriter)
        .collect()
}

/// A way to make a file grow until it is full of blocks.
#[derive(Debug, Clone, Copy)]
struct Growing {
    name: &'static str,
    /// Space for 64 blocks at a time, or for the whole file where that makes a hole; none before the blocks come.
    space: Option<GrowMethod>,
    by: By,
    blocks: Blocks,
}

const GROWINGS: [Growing; 8] = [
    growing("pwrite", None, By::Pwrite, Blocks::InOrder),
    growing("zeros, pwrite", Some(GrowMethod::WriteZeros), By::Pwrite, Blocks::InOrder),
    growing("fallocate, pwrite", Some(GrowMethod::PosixFallocate), By::Pwrite, Blocks::InOrder),
    growing("zeros, mmap", Some(GrowMethod::WriteZeros), By::Mmap, Blocks::Shuffled),
    growing("fallocate, mmap", Some(GrowMethod::PosixFallocate), By::Mmap, Blocks::Shuffled),
    growing("hole, mmap in order", Some(GrowMethod::Ftruncate), By::Mmap, Blocks::InOrder),
    growing("hole, mmap", Some(GrowMethod::Ftruncate), By::Mmap, Blocks::Shuffled),
    growing("hole, pwrite", Some(GrowMethod::Ftruncate), By::Pwrite, Blocks::Shuffled),
];

const fn growing(name: &'static str, space: Option<GrowMethod>, by: By, blocks: Blocks) -> Growing {
    Growing { name, space, by, blocks }
}

/// Those who make files grow to so many bytes in all, with a writer for each file, and count the pieces.
pub(crate) fn growers(files: &[PathBuf], bytes: u64, seed: u64) -> Vec<Contestant<'static>> {
    GROWINGS.into_iter().map(|growing| growing.contestant(files, bytes, seed)).collect()
}

impl Growing {
    fn contestant(self, files: &[PathBuf], bytes: u64, seed: u64) -> Contestant<'static> {
        let (paths, targets) = (files.to_vec(), files.to_vec());
        let each = bytes / files.len().max(1) as u64 / BLOCK_SIZE as u64 * BLOCK_SIZE as u64;
        let contestant = Contestant::new(self.name, move |cancel| {
            let begin = Instant::now();
            let works = self.by_writers(&paths, each, seed, cancel)?;
            let elapsed = begin.elapsed();
            Ok(Work {
                counted: Some(pieces(&paths).map_err(Error::system("FIEMAP"))? as f64),
                elapsed: Some(elapsed),
                ..sum(works)
            })
        });
        contestant
            .prepared(move || targets.iter().try_for_each(|path| new_file(path)))
            .parameter("method", if self.by == By::Mmap { "mmap" } else { "pwrite" })
            .parameter("extend", self.space.map_or("none", GrowMethod::name))
            .parameter("writers", files.len())
            .by_threads()
    }

    fn by_writers(
        self,
        paths: &[PathBuf],
        bytes: u64,
        seed: u64,
        cancel: &Cancel,
    ) -> Result<Vec<Work>> {
        std::thread::scope(|scope| {
            let start = |path| {
                let write = move || self.write(path, bytes, seed, cancel);
                std::thread::Builder::new().spawn_scoped(scope, write)
            };
            let threads: io::Result<Vec<_>> =
                paths.iter().map(PathBuf::as_path).map(start).collect();
            let lost = || Error::system("threads")(io::Error::other("a writer panicked"));
            let threads = threads.map_err(Error::system("threads"))?;
            threads.into_iter().map(|thread| thread.join().map_err(|_| lost())?).collect()
        })
    }

    fn write(self, path: &Path, bytes: u64, seed: u64, cancel: &Cancel) -> Result<Work> {
        let file =
            OpenOptions::new().read(true).write(true).open(path).map_err(Error::file(path))?;
        let begin = Instant::now();
        let (call, calls) = self.make_space(&file, bytes).map_err(Error::file(path))?;
        let took = begin.elapsed();
        let work = write(&file, self.by, &self.blocks.offsets(bytes, seed), cancel)?;
        // The length is to last too.
        file.sync_all().map_err(Error::system("fsync"))?;
        Ok(work.with_calls(call, calls).with_calls("fsync", 1).with_part("extend", took))
    }

    fn make_space(self, file: &File, bytes: u64) -> io::Result<(&'static str, u64)> {
        let Some(way) = self.space else { return Ok(("pwrite", 0)) };
        if way == GrowMethod::Ftruncate {
            return file.set_len(bytes).map(|()| (way.call(), 1));
        }
        let step = AHEAD * BLOCK_SIZE as u64;
        let zeros = vec![0; usize::try_from(step).unwrap_or(0)];
        for from in (0..bytes).step_by(zeros.len().max(1)) {
            let now = usize::try_from(bytes - from).unwrap_or(usize::MAX).min(zeros.len());
            way.extend(file, from, zeros.get(..now).unwrap_or_default())?;
        }
        Ok((way.call(), bytes.div_ceil(step)))
    }
}

fn new_file(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Error::file(path)(error));
        }
        _ => {}
    }
    File::create(path).and_then(|file| file.sync_all()).map_err(Error::file(path))
}

/// In how many pieces files lie, all together.
fn pieces(paths: &[PathBuf]) -> io::Result<usize> {
    let of = |path: &PathBuf| {
        let extents = pagemill_sys::extents(&File::open(path)?)?;
        Ok(pagemill_sys::fragments(&extents))
    };
    paths.iter().map(of).sum()
}

/// What several did together.
fn sum(works: Vec<Work>) -> Work {
    let mut all = Work::default();
    for work in works {
        all.operations += work.operations;
        for (name, count) in work.calls {
            *all.calls.entry(name).or_default() += count;
        }
        for (name, seconds) in work.parts {
            *all.parts.entry(name).or_default() += seconds;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 1 << 20;

    #[test]
    fn overwriting_changes_all_blocks_or_a_few() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for (blocks, changed) in [(Blocks::InOrder, 128), (Blocks::Few(10), 10)] {
            for mut writer in overwriters(&path, blocks, 1) {
                std::fs::write(&path, vec![0; BYTES as usize]).unwrap();
                let work = writer.perform.as_mut().ok().unwrap()(&Cancel::default()).unwrap();
                let bytes = std::fs::read(&path).unwrap();
                let written = bytes.chunks(BLOCK_SIZE).filter(|block| block[9] != 0).count();
                assert_eq!((written, work.operations), (changed, changed as u64));
                assert!(work.calls.contains_key("msync") != work.calls.contains_key("fdatasync"));
            }
        }
    }

    #[test]
    fn every_file_is_full_of_blocks_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let files: Vec<PathBuf> = (0..4).map(|n| dir.path().join(n.to_string())).collect();
        for mut grower in growers(&files, BYTES, 7) {
            grower.prepare.as_mut().unwrap()().unwrap();
            let work = match grower.perform.as_mut().ok().unwrap()(&Cancel::default()) {
                Ok(work) => work,
                Err(error) => {
                    eprintln!("skipped: {}: {error}", grower.name);
                    continue;
                }
            };
            assert!(work.counted.unwrap() >= 4.0, "{}: {work:?}", grower.name);
            assert_eq!((work.operations, work.calls["fsync"]), (128, 4));
            for file in &files {
                let bytes = std::fs::read(file).unwrap();
                assert_eq!(bytes.len() as u64, BYTES / 4);
                let first = &bytes[..BLOCK_SIZE];
                assert!(bytes.chunks(BLOCK_SIZE).all(|block| block == first && block[9] != 0));
            }
        }
    }
}
