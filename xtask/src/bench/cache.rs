//! Puts files into the page cache, and says how much of them is there.
//!
//! Each file is dropped from the cache and read again to its end. So both sides meet the same state:
//! the kernel caches what it reads ahead in large folios, and what a server or `cp` wrote in small
//! ones, and copying or mapping small ones costs up to twice as much. Whether the files stayed is asked
//! with `fincore` (util-linux), because files larger than free memory push each other out unnoticed.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

const CHUNK: usize = 1 << 20;

/// Reads, after dropping it where asked, every table file of these data directories; gives the share that is then cached, if known.
pub(super) fn warm(directories: &[PathBuf], drop_first: bool) -> Result<Option<f64>> {
    let mut files = Vec::new();
    for directory in directories {
        for part in ["base", "global"] {
            collect(&directory.join(part), &mut files)?;
        }
    }
    for file in &files {
        read_through(file, drop_first).with_context(|| file.display().to_string())?;
    }
    Ok(cached_share(&files))
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

fn read_through(path: &Path, drop_first: bool) -> Result<()> {
    let mut file = File::open(path)?;
    if drop_first {
        // Only what is on disk can be dropped.
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    let mut chunk = vec![0; CHUNK];
    while file.read(&mut chunk)? > 0 {}
    Ok(())
}

fn cached_share(files: &[PathBuf]) -> Option<f64> {
    let output = Command::new("fincore")
        .args(["--bytes", "--noheadings", "--raw", "--output", "RES,SIZE"])
        .args(files)
        .output()
        .ok()?;
    share_of(&String::from_utf8_lossy(&output.stdout))
}

/// The share of all bytes in lines of resident and total bytes, rounded up to whole pages by fincore.
fn share_of(lines: &str) -> Option<f64> {
    let mut sums = (0.0, 0.0);
    for line in lines.lines() {
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
        let (resident, size) = (numbers.next()?, numbers.next()?);
        sums = (sums.0 + resident.min(size), sums.1 + size);
    }
    (sums.1 > 0.0).then(|| sums.0 / sums.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_weighed_by_size() {
        assert_eq!(share_of("8192 8192\n0 8192\n4096 100\n"), Some(8292.0 / 16484.0));
        assert_eq!(share_of(""), None);
        assert_eq!(share_of("no numbers\n"), None);
    }
}
