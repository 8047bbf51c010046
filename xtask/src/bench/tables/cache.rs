//! Puts the files of data directories into the page cache, and says how much of them is there.
//!
//! Each file is dropped from the cache and read again to its end. So both sides meet the same state:
//! the kernel caches what it reads ahead in large folios, and what a server or `cp` wrote in small
//! ones, and copying or mapping small ones costs up to twice as much. Whether the files stayed is asked,
//! because files larger than free memory push each other out unnoticed.

use std::path::{Path, PathBuf};

use anyhow::Result;
use pagemill_testkit::page_cache::{Residency, drop_files, read_files, residency};

/// Reads, after dropping it where asked, every table file of these data directories; gives the share that is then cached, if known.
pub(super) fn warm(directories: &[PathBuf], drop_first: bool) -> Result<Option<f64>> {
    let mut files = Vec::new();
    for directory in directories {
        for part in ["base", "global"] {
            collect(&directory.join(part), &mut files)?;
        }
    }
    if drop_first {
        drop_files(&files)?;
    }
    read_files(&files)?;
    Ok(residency(&files).ok().map(Residency::share))
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
