//! The state of the page cache before a turn: brought about for the files of an experiment, and looked at.
//!
//! Files leave the cache by `fadvise(DONTNEED)` after what is changed was synced, and enter it by being read. How much of them
//! is there is asked by `cachestat`, or by mapping them and `mincore` where there is no such call.
//!
//! Readahead that was on its way when a file was let go arrives afterwards, and fills the cache again; so what shall be cold is
//! looked at, and let go again after a while, until it is.
//!
//! Invariant: only files that the experiment made are touched; the system's caches are never dropped as a whole.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pagemill_sys::{Mapping, cachestat};
use rustix::fs::Advice;

use crate::results::CacheState;

/// How long readahead is waited for before a file is let go again: 315 ms in all.
const WAITS: [Duration; 6] = {
    const fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }
    [ms(5), ms(10), ms(20), ms(40), ms(80), ms(160)]
};
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
            let mut found = drop_files(files)?;
            for wait in WAITS {
                if found.is_none() {
                    break;
                }
                std::thread::sleep(wait);
                found = drop_files(files)?;
            }
            Ok(found)
        }
        CacheState::Cached => {
            if cached_share(files)?.is_none_or(|share| share < 1.0) {
                files.iter().try_for_each(read_file)?;
            }
            Ok(cached_share(files)?.filter(|share| *share < 1.0 - TOLERATED))
        }
    }
}

/// Lets the files go; what of them is still there, if that is too much. Without the means to look, the advice is all there is.
fn drop_files(files: &[PathBuf]) -> io::Result<Option<f64>> {
    files.iter().try_for_each(drop_file)?;
    Ok(cached_share(files)?.filter(|share| *share > TOLERATED))
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

    /// The first cell after a scan found some per cent of the file cached, and its group said nothing any more.
    #[test]
    fn what_readahead_brings_back_is_let_go_again() {
        let dir = tempfile::tempdir().unwrap();
        let files = vec![dir.path().join("file")];
        std::fs::write(&files[0], vec![1; 4 << 20]).unwrap();
        if bring_about(CacheState::Cold, &files).unwrap().is_some() {
            eprintln!("SKIPPED: this file system keeps its files in memory");
            return;
        }
        let (path, late) = (files[0].clone(), Duration::from_millis(3));
        let dropped = drop_files(&files).unwrap();
        assert_eq!(dropped, None);
        let other = std::thread::spawn(move || {
            // As readahead that arrives between the advice and the look at it.
            for _ in 0..5 {
                read_file(&path).unwrap();
                std::thread::sleep(late);
            }
        });
        std::thread::sleep(late);
        assert_eq!(bring_about(CacheState::Cold, &files).unwrap(), None);
        other.join().unwrap();
    }

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
