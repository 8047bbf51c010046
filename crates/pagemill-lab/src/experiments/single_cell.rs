//! One cell of `device` by itself, as `cargo xtask bench device` holds it against fio and pg_test_fsync.
//!
//! Invariant: it is the code of the cell, called as a turn of a run calls it.

use std::path::Path;
use std::time::Duration;

use pagemill_io::{Caching, IoMethod, WriteMethod};

use crate::cache::drop_file;
use crate::cancel::Cancel;
use crate::contestant::Work;
use crate::error::{Error, Result};
use crate::experiments::block_io::{BlockIo, Method, Order};
use crate::experiments::{sync_methods, test_file};

/// Writes a file in full, as `device` does before it measures.
///
/// # Errors
/// When it cannot be written.
pub fn make_file(path: &Path, bytes: u64) -> Result<()> {
    test_file::make(path, bytes, 0, &Cancel::default())
}

/// One turn, the one of that number, of a cell on a file that was written in full, which is out of the page cache at its
/// begin: `sync fdatasync`, or as `read pread 8 direct 1 around` and `write pwrite 128 buffered 1 once`, with the block in kB
/// and the depth. What is written through the page cache is synced at the end. `None` for words that name no cell.
pub fn turn(path: &Path, words: &[&str], time: Duration, turn: u64) -> Option<Result<Work>> {
    if let ["sync", method] = words {
        return sync_methods::operations(path, method, time);
    }
    let io = parsed(words, time)?;
    Some(
        drop_file(path)
            .map_err(Error::file(path))
            .and_then(|()| io.perform(path, turn, &Cancel::default())),
    )
}

fn parsed(words: &[&str], time: Duration) -> Option<BlockIo> {
    let [direction, method, kilobytes, caching, depth, order] = words else { return None };
    let method = match *direction {
        "read" => Method::Read(method.parse::<IoMethod>().ok()?),
        "write" => Method::Write(method.parse::<WriteMethod>().ok()?),
        _ => return None,
    };
    let caching = match *caching {
        "direct" => Caching::Direct,
        "buffered" => Caching::Buffered,
        _ => return None,
    };
    let order = match *order {
        "around" => Order::Around,
        "once" => Order::Once,
        "random" => Order::Random,
        _ => return None,
    };
    let block = kilobytes.parse::<usize>().ok()?.checked_mul(1024)?;
    let synced = matches!(method, Method::Write(_)) && caching == Caching::Buffered;
    let depth = depth.parse().ok()?;
    Some(BlockIo { method, caching, order, block, depth, time, seed: 0, synced })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_a_cell_and_others_name_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        make_file(&path, 1 << 20).unwrap();
        let time = Duration::from_millis(20);
        let of = |words: &str| turn(&path, &words.split(' ').collect::<Vec<_>>(), time, 1);
        let read = of("read pread 128 buffered 1 once").unwrap().unwrap();
        assert!(
            read.operations > 0 && read.bytes == Some(read.operations * (128 << 10)),
            "{read:?}"
        );
        let written = of("write pwrite 8 buffered 1 once").unwrap().unwrap();
        assert_eq!(written.calls["pwrite"], written.operations);
        assert!(written.calls["fdatasync"] >= 1);
        for words in
            ["read pread", "read tea 8 direct 1 once", "sync tea", "write pwrite x direct 1 once"]
        {
            assert!(of(words).is_none(), "{words}");
        }
    }
}
