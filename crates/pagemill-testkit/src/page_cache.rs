//! Files in and out of the page cache, and the question how much of them is there.
//!
//! A cold read is only cold when nothing of the file was left behind: pages that are dirty or mapped stay in spite of
//! `POSIX_FADV_DONTNEED`. So whoever drops files asks afterwards, and the answer is the kernel's
//! (`fincore` of util-linux, which asks `mincore` or `cachestat`).
//!
//! Must hold: nothing here writes to a file.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{Advice, fadvise};

const CHUNK: usize = 1 << 20;

/// Pages that a reader which just ended still had in hand stay the first time.
const TRIES: usize = 3;

/// Bytes of files, and those of them in the page cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Residency {
    /// Bytes in the page cache, whole memory pages counted up to the end of their file.
    pub resident_bytes: u64,
    /// Bytes of the files.
    pub total_bytes: u64,
}

impl Residency {
    /// The share that is cached, from 0 to 1; all of nothing is 1.
    pub fn share(self) -> f64 {
        if self.total_bytes == 0 {
            return 1.0;
        }
        self.resident_bytes as f64 / self.total_bytes as f64
    }
}

/// Writes out what is dirty of these files, drops them from the page cache, and makes sure that nothing stayed.
pub fn drop_files<P: AsRef<Path>>(files: &[P]) -> Result<()> {
    let mut left = 0;
    for _ in 0..TRIES {
        for file in files {
            drop_one(file.as_ref()).with_context(|| file.as_ref().display().to_string())?;
        }
        left = residency(files)?.resident_bytes;
        if left == 0 {
            break;
        }
    }
    ensure!(left == 0, "{left} bytes stayed in the page cache");
    Ok(())
}

fn drop_one(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    // Only what is on disk can be dropped.
    file.sync_all()?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(())
}

/// Reads these files from front to back, 1 MiB at a time.
pub fn read_files<P: AsRef<Path>>(files: &[P]) -> Result<()> {
    let mut chunk = vec![0; CHUNK];
    for file in files {
        let mut open = File::open(file).with_context(|| file.as_ref().display().to_string())?;
        while open.read(&mut chunk)? > 0 {}
    }
    Ok(())
}

/// How much of these files is in the page cache.
pub fn residency<P: AsRef<Path>>(files: &[P]) -> Result<Residency> {
    let mut fincore = Command::new("fincore");
    fincore.args(["--bytes", "--noheadings", "--raw", "--output", "RES,SIZE"]);
    fincore.args(files.iter().map(AsRef::as_ref));
    let output = fincore.output().context("starting fincore (util-linux)")?;
    if !output.status.success() {
        bail!("fincore: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    sum(&String::from_utf8_lossy(&output.stdout)).context("fincore printed no numbers")
}

/// Sums lines of resident and total bytes.
fn sum(lines: &str) -> Option<Residency> {
    let mut sum = Residency::default();
    for line in lines.lines() {
        let mut numbers = line.split_whitespace().map(|word| word.parse::<u64>().ok());
        let (resident, size) = (numbers.next()??, numbers.next()??);
        sum.resident_bytes += resident.min(size);
        sum.total_bytes += size;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_memory_page_counts_up_to_the_end_of_its_file() {
        let expected = Residency { resident_bytes: 8292, total_bytes: 16_484 };
        assert_eq!(sum("8192 8192\n0 8192\n4096 100\n"), Some(expected));
        assert_eq!(sum("").map(Residency::share), Some(1.0));
        assert_eq!(sum("no numbers\n"), None);
    }
}
