//! The state of the page cache before a turn: brought about for the files of an experiment, and looked at.
//!
//! Files leave the cache by `fadvise(DONTNEED)` after what is changed was synced, and enter it by being read. How much of them
//! is there is asked by `cachestat`, or by mapping them and `mincore` where there is no such call.
//!
//! Invariant: only files that the experiment made are touched; the system's caches are never dropped as a whole.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use pagemill_sys::{Mapping, cachestat};
use rustix::fs::Advice;

use crate::results::CacheState;

/// Bytes read at once to fill the cache.
const CHUNK: usize = 1 << 20;
/// Share of a file that may be in the cache of what shall be cold, and out of it of what shall be cached.
const TOLERATED: f64 = 0.01;

/// Brings the files into a state; `Some` with what was seen instead, as a share of their bytes that are cached, where
/// that did not work.
///
/// # Errors
/// When a file cannot be read.
pub fn bring_about(state: CacheState, files: &[PathBuf]) -> io::Result<Option<f64>> {
    match state {
        CacheState::Any => Ok(None),
        CacheState::Cold | CacheState::Limited => {
            files.iter().try_for_each(drop_file)?;
            // Without the means to look, the advice is all there is.
            Ok(cached_share(files)?.filter(|share| *share > TOLERATED))
        }
        CacheState::Cached => {
            if cached_share(files)?.is_none_or(|share| share < 1.0) {
                files.iter().try_for_each(read_file)?;
            }
            Ok(cached_share(files)?.filter(|share| *share < 1.0 - TOLERATED))
        }
    }
}

/// Lets a file out of the page cache.
///
/// # Errors
/// When it cannot be opened or synced.
pub fn drop_file(path: impl AsRef<Path>) -> io::Result<()> {
    let file = File::open(path)?;
    // What is not on the device stays in the cache, whatever the advice.
    file.sync_data()?;
    Ok(rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?)
}

fn read_file(path: impl AsRef<Path>) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut chunk = vec![0; CHUNK];
    while file.read(&mut chunk)? > 0 {}
    Ok(())
}

/// How much of the files is in the page cache, from 0 to 1; `None` where nobody tells.
///
/// # Errors
/// When a file cannot be opened.
pub fn cached_share(files: &[PathBuf]) -> io::Result<Option<f64>> {
    let (mut cached, mut all) = (0, 0);
    for path in files {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        let Some(found) = cached_bytes(&file, len) else { return Ok(None) };
        cached += found.min(len);
        all += len;
    }
    Ok((all > 0).then(|| cached as f64 / all as f64))
}

fn cached_bytes(file: &File, len: u64) -> Option<u64> {
    let page = rustix::param::page_size() as u64;
    // A call that finds nothing may have looked at the wrong inode (overlayfs): the mapping decides.
    let asked =
        cachestat(file, 0..len).ok().map(|found| found.cached * page).filter(|cached| *cached > 0);
    asked.or_else(|| {
        let len = usize::try_from(len).ok().filter(|len| *len > 0)?;
        let resident = Mapping::new(file.as_fd(), len).ok()?.resident(0..len).ok()?;
        Some(resident.iter().filter(|there| **there).count() as u64 * page)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_out_of_the_cache_and_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let files = vec![dir.path().join("file")];
        std::fs::write(&files[0], vec![1; 1 << 20]).unwrap();
        if bring_about(CacheState::Cold, &files).unwrap().is_some() {
            eprintln!("skipped: this file system keeps its files in memory");
            return;
        }
        assert_eq!(cached_share(&files).unwrap(), Some(0.0));
        assert_eq!(bring_about(CacheState::Cached, &files).unwrap(), None);
        assert_eq!(cached_share(&files).unwrap(), Some(1.0));
        assert_eq!(bring_about(CacheState::Any, &files).unwrap(), None);
        assert_eq!(cached_share(&files).unwrap(), Some(1.0));
    }
}
