//! A copy read back and compared with what it is a copy of, before anything depends on it.
//!
//! Pages that were logged on their way name their record and have another checksum; the rest of them is the same.

use std::path::Path;

use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber};
use pagemill_io::{File, ForkFiles, Storage};
use pagemill_sys::AlignedBuffer;

use super::cluster_error;
use crate::error::{Error, Result};

/// Bytes of each file that are compared at once.
const PIECE: usize = 1 << 20;
/// Where the LSN and the checksum are in a page's header.
const LOGGED: usize = 10;

/// Compares two files, byte by byte; what is a hole in both is the same.
///
/// # Errors
/// [`Error::Differs`], and when one of them cannot be read.
pub(super) fn compare_files(storage: &Storage, from: &Path, to: &Path) -> Result<()> {
    let source = storage.open(from).map_err(cluster_error)?;
    let target = storage.open(to).map_err(cluster_error)?;
    let error = |path| move |error| cluster_error(pagemill_io::Error::new(error, path));
    let (len, other_len) = (source.len().map_err(error(from))?, target.len().map_err(error(to))?);
    let shorter = len.min(other_len);
    let mut buffers = [AlignedBuffer::zeroed(PIECE), AlignedBuffer::zeroed(PIECE)];
    let mut offset = 0;
    loop {
        // A file of a terabyte may hold a megabyte.
        offset = data_start(&*source, offset, len).min(data_start(&*target, offset, other_len));
        if offset >= shorter {
            break;
        }
        let most = usize::try_from(shorter - offset).map_or(PIECE, |left| left.min(PIECE));
        let [one, other] = &mut buffers;
        let got = storage.read_fully_at(&*source, &mut one[..most], offset).map_err(error(from))?;
        let found =
            storage.read_fully_at(&*target, &mut other[..most], offset).map_err(error(to))?;
        if let Some(at) = first_difference(&one[..got], &other[..found]) {
            return Err(differs(from, to, offset + at as u64));
        }
        // Both were cut meanwhile: what was behind is not known to be the same.
        if got < most {
            return Err(differs(from, to, offset + got as u64));
        }
        offset += most as u64;
    }
    if len == other_len { Ok(()) } else { Err(differs(from, to, shorter)) }
}

/// Where the next bytes that take space begin, from `offset` on; `offset` where the file system does not tell.
fn data_start(file: &dyn File, offset: u64, len: u64) -> u64 {
    match file.data_from(offset) {
        Ok(Some(data)) => data.start.max(offset),
        Ok(None) => len,
        Err(_) => offset,
    }
}

/// Compares two forks page by page, but for what logging changes of a page.
///
/// # Errors
/// As [`compare_files`].
pub(super) fn compare_forks(source: &ForkFiles, target: &ForkFiles) -> Result<()> {
    let mut pages = [[0; BLOCK_SIZE]; 2];
    for block in (0..source.blocks().max(target.blocks())).map(BlockNumber) {
        let [one, other] = &mut pages;
        source.read_block(block, one).map_err(cluster_error)?;
        target.read_block(block, other).map_err(cluster_error)?;
        if !is_same(one, other) {
            let offset = u64::from(block.0) * BLOCK_SIZE as u64;
            return Err(differs(source.path(), target.path(), offset));
        }
    }
    Ok(())
}

fn is_same(one: &BlockBytes, other: &BlockBytes) -> bool {
    one[LOGGED..] == other[LOGGED..]
}

fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    if one == other {
        return None;
    }
    let same = one.iter().zip(other).take_while(|(one, other)| one == other);
    Some(same.count())
}

fn differs(from: &Path, to: &Path, offset: u64) -> Error {
    Error::Differs { copy: to.to_owned(), original: from.to_owned(), offset }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_that_differs_is_named_and_a_longer_file_differs_at_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let bytes = vec![5; PIECE + 100];
        let says = |other: &[u8]| {
            std::fs::write(&from, &bytes).unwrap();
            std::fs::write(&to, other).unwrap();
            compare_files(&Storage::real(), &from, &to).err().map(|error| error.to_string())
        };
        assert_eq!(says(&bytes), None);
        let mut other = bytes.clone();
        other[PIECE + 7] = 6;
        let said = says(&other).unwrap();
        assert!(said.contains(&format!("offset {}", PIECE + 7)), "{said}");
        assert!(says(&bytes[..PIECE]).unwrap().contains(&format!("offset {PIECE}")));
        other = bytes.clone();
        other.push(0);
        assert!(says(&other).unwrap().contains(&format!("offset {}", PIECE + 100)));
    }

    #[test]
    fn what_logging_changes_of_a_page_does_not_count() {
        let (one, mut other) = ([0; BLOCK_SIZE], [0; BLOCK_SIZE]);
        other[..LOGGED].fill(9);
        assert!(is_same(&one, &other));
        other[LOGGED] = 1;
        assert!(!is_same(&one, &other));
    }
}
