//! What a load wrote, remembered by its sums, and read back after the commit.
//!
//! A sum is of a run of pages without their checksums, which are set on the way to the file; everything else of a page is
//! final when it is noted. Memory is 24 bytes for a run, of about 1 MiB where many pages are written.
//!
//! Invariant: what is compared comes out of the files by their names, as a server will find them, also where the pages came
//! there out of the WAL.

use std::sync::{Arc, Mutex, PoisonError};

use pagemill_cluster::{Cluster, Damage};
use pagemill_format::wal::RelFileLocator;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork};
use pagemill_io::ForkFiles;
use pagemill_wal::ForkKey;

use crate::error::{Error, Result};

/// Where the checksum is in a page's header.
const CHECKSUM: std::ops::Range<usize> = 8..10;

/// Whether a load reads back what it wrote, and what that was.
#[derive(Debug, Clone, Default)]
pub struct ReadBack {
    runs: Option<Arc<Mutex<Vec<WrittenRun>>>>,
}

#[derive(Debug, Clone, Copy)]
struct WrittenRun {
    file: RelFileLocator,
    fork: Fork,
    first: BlockNumber,
    pages: u32,
    sum: u32,
}

impl ReadBack {
    /// All pages of tables, TOAST tables and indexes are read back.
    pub fn on() -> Self {
        Self { runs: Some(Arc::default()) }
    }

    /// Remembers pages that are written from `first` on.
    pub(super) fn note(&self, key: ForkKey, first: BlockNumber, pages: &[BlockBytes]) {
        let ForkKey { locator: file, fork } = key;
        let Some(runs) = &self.runs else { return };
        let run = WrittenRun { file, fork, first, pages: pages.len() as u32, sum: sum_of(pages) };
        runs.lock().unwrap_or_else(PoisonError::into_inner).push(run);
    }

    /// Reads everything again and compares it. Returns how many blocks that were.
    ///
    /// # Errors
    /// Damage that names the first block of the first run that is not what was written, and when a file cannot be read.
    pub(super) fn check(&self, cluster: &Cluster) -> Result<u64> {
        let Some(runs) = &self.runs else { return Ok(0) };
        let runs = std::mem::take(&mut *runs.lock().unwrap_or_else(PoisonError::into_inner));
        let (mut open, mut pages, mut blocks) = (None, Vec::new(), 0);
        for run in runs {
            let same = |(file, fork, _): &(_, _, ForkFiles)| (*file, *fork) == (run.file, run.fork);
            if !open.as_ref().is_some_and(same) {
                open = Some((run.file, run.fork, files_of(cluster, run)?));
            }
            let Some((_, _, files)) = &open else { continue };
            pages.resize(run.pages as usize, [0; BLOCK_SIZE]);
            files.read_blocks(run.first, &mut pages).map_err(pagemill_cluster::Error::from)?;
            if sum_of(&pages) != run.sum {
                let what = format!("{} blocks from here on are not what was written", run.pages);
                let damage = Damage::in_block(files.path(), run.fork, run.first, what);
                return Err(pagemill_cluster::Error::from(damage).into());
            }
            blocks += u64::from(run.pages);
        }
        Ok(blocks)
    }
}

fn files_of(cluster: &Cluster, run: WrittenRun) -> Result<ForkFiles> {
    let base = cluster.tablespace_path(run.file.tablespace, run.file.database);
    let base = base.join(run.file.number.to_string());
    let files = ForkFiles::open(cluster.storage(), &base, run.fork);
    let files = files.map_err(pagemill_cluster::Error::from)?;
    let gone = || {
        let damage = Damage::in_file(base, format!("fork {} was written and is missing", run.fork));
        Error::from(pagemill_cluster::Error::from(damage))
    };
    files.ok_or_else(gone)
}

fn sum_of(pages: &[BlockBytes]) -> u32 {
    pages.iter().fold(0, |sum, page| {
        let sum = crc32c::crc32c_append(sum, &page[..CHECKSUM.start]);
        crc32c::crc32c_append(sum, &page[CHECKSUM.end..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_sees_every_byte_but_the_checksum() {
        let pages = vec![[7; BLOCK_SIZE]; 2];
        let sum = sum_of(&pages);
        for at in [0, 7, 10, 4000, BLOCK_SIZE - 1] {
            let mut other = pages.clone();
            other[1][at] ^= 1;
            assert_ne!(sum_of(&other), sum, "byte {at}");
        }
        let mut other = pages.clone();
        other[0][8] ^= 1;
        assert_eq!(sum_of(&other), sum);
        let mut swapped = pages;
        swapped[0][100] = 1;
        let one = sum_of(&swapped);
        swapped.reverse();
        assert_ne!(sum_of(&swapped), one, "pages in another order");
    }
}
