//! A directory of files as a database has it: many small ones, and a few that hold most of the bytes.
//!
//! Invariant: all sizes are whole blocks, the same number and bytes give the same sizes, and together they are the bytes
//! that were asked for, unless that is too little for a block each.

use std::path::{Path, PathBuf};

use pagemill_format::BLOCK_SIZE;

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::experiments::test_file;

/// One file in so many is large.
const LARGE_EVERY: u64 = 16;
/// Blocks of small files, in turn: most relations of a database are catalogs and their indexes.
const SMALL: [u64; 6] = [1, 2, 1, 4, 2, 8];

/// How large a tree is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeSize {
    /// The number of its files.
    pub(crate) files: u64,
    /// Bytes of all of them together.
    pub(crate) bytes: u64,
}

/// Makes the files of a tree, named by numbers as relations are.
///
/// # Errors
/// When one cannot be written, or somebody ends the run.
pub(crate) fn make(
    directory: &Path,
    size: TreeSize,
    seed: u64,
    cancel: &Cancel,
) -> Result<Vec<PathBuf>> {
    std::fs::create_dir(directory).map_err(Error::file(directory))?;
    let mut made = Vec::new();
    for (number, blocks) in (0..).zip(sizes(size.files, size.bytes / BLOCK_SIZE as u64)) {
        let path = directory.join((16_384 + number).to_string());
        test_file::make(&path, blocks * BLOCK_SIZE as u64, seed.wrapping_add(number), cancel)?;
        made.push(path);
    }
    Ok(made)
}

/// The blocks of each file.
fn sizes(files: u64, blocks: u64) -> Vec<u64> {
    let is_large = |number: &u64| number.is_multiple_of(LARGE_EVERY);
    let small: u64 = (0..files).filter(|number| !is_large(number)).map(small_blocks).sum();
    let large = files.div_ceil(LARGE_EVERY).max(1);
    let left = blocks.saturating_sub(small);
    let size = |number| match (is_large(&number), number / LARGE_EVERY) {
        (false, _) => small_blocks(number),
        (true, 0) => (left / large + left % large).max(1),
        (true, _) => (left / large).max(1),
    };
    (0..files).map(size).collect()
}

fn small_blocks(number: u64) -> u64 {
    let place = usize::try_from(number).unwrap_or(0) % SMALL.len();
    SMALL.get(place).copied().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_files_are_small_and_a_few_hold_most() {
        let sizes = sizes(128, 8192);
        assert_eq!((sizes.len(), sizes.iter().sum::<u64>()), (128, 8192));
        let (large, small): (Vec<u64>, Vec<u64>) = sizes.iter().partition(|size| **size > 8);
        assert_eq!(large.len(), 8);
        assert!(large.iter().sum::<u64>() > 10 * small.iter().sum::<u64>());
    }

    #[test]
    fn too_few_bytes_still_give_every_file_a_block() {
        assert!(sizes(20, 10).iter().all(|size| *size > 0));
    }

    #[test]
    fn the_files_are_there_in_their_sizes() {
        let dir = tempfile::tempdir().unwrap();
        let size = TreeSize { files: 20, bytes: 1 << 20 };
        let files = make(&dir.path().join("tree"), size, 1, &Cancel::default()).unwrap();
        let len = |path: &PathBuf| std::fs::metadata(path).unwrap().len();
        assert_eq!(files.iter().map(len).sum::<u64>(), 1 << 20);
    }
}
