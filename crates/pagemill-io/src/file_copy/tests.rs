//! Copies by every method, whole and with faults: the new file is the old one, or there is none.
//! Whether blocks are shared depends on where the tests run: both answers are accepted, and held against the method.

use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::simulated::{Disturbance, FaultyFileSystem};

/// A file of so many bytes that do not repeat by blocks, and the name of its copy.
fn source(len: usize) -> (tempfile::TempDir, PathBuf, PathBuf, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..len as u64).map(|i| ((i * 2_654_435_761) >> 13) as u8).collect();
    let (from, to) = (dir.path().join("16384"), dir.path().join("16385"));
    std::fs::write(&from, &bytes).unwrap();
    (dir, from, to, bytes)
}

/// Copies, and tells the pieces.
fn copy(
    storage: &Storage,
    (from, to): (&Path, &Path),
    method: Option<CopyMethod>,
) -> Result<(CopiedFile, Vec<(u64, u64)>)> {
    let mut pieces = Vec::new();
    let copied = storage.copy_file(from, to, method, &mut |piece| {
        assert!(piece.bytes.is_none_or(|bytes| bytes.len() as u64 == piece.len));
        pieces.push((piece.offset, piece.len));
        Ok::<_, Error>(())
    })?;
    Ok((copied, pieces))
}

fn assert_in_order(pieces: &[(u64, u64)], len: u64) {
    let end = pieces.iter().fold(0, |end, (offset, len)| {
        assert_eq!(*offset, end);
        end + len
    });
    assert_eq!(end, len);
}

#[test]
fn every_method_makes_the_same_file_and_tells_each_byte_once() {
    for len in [0, 1, 8192, 3 * 1024 * 1024 + 17, 33 << 20] {
        for method in [None, Some(CopyMethod::ReadWrite), Some(CopyMethod::CopyFileRange)] {
            let (_dir, from, to, bytes) = source(len);
            let storage = Storage::real();
            let (copied, pieces) = copy(&storage, (&from, &to), method).unwrap();
            copied.sync().unwrap();
            assert_eq!(std::fs::read(&to).unwrap(), bytes, "{len} {method:?}");
            assert_eq!(copied.bytes, len as u64);
            assert_in_order(&pieces, len as u64);
            let counted = storage.counters().snapshot();
            assert_eq!(counted.bytes_written + counted.bytes_copied, len as u64);
            // On ext4 nothing is ever shared; elsewhere a reflink shares all.
            let shared = copied.shared_bytes().unwrap();
            assert!(shared.is_none_or(|shared| shared == 0 || shared == len as u64), "{shared:?}");
        }
    }
}

#[test]
fn a_reflink_that_was_asked_for_is_one_or_is_refused_and_leaves_no_file() {
    let (_dir, from, to, bytes) = source(65_536);
    match copy(&Storage::real(), (&from, &to), Some(CopyMethod::Reflink)) {
        Ok((copied, _)) => {
            assert_eq!(std::fs::read(&to).unwrap(), bytes);
            assert_eq!(copied.shared_bytes().unwrap(), Some(65_536));
        }
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Refused(_)), "{error}");
            assert!(error.to_string().contains("copy the bytes instead"), "{error}");
            assert!(!to.exists());
        }
    }
}

#[test]
fn what_the_kernel_does_not_copy_is_read_and_written() {
    for (errno, end) in [
        (Some(Errno::XDEV), None),
        (Some(Errno::OPNOTSUPP), None),
        (Some(Errno::INVAL), None),
        (None, Some(0)),
        (None, Some(20_000)),
    ] {
        let (_dir, from, to, bytes) = source(100_000);
        let files = FaultyFileSystem::default();
        if let Some(errno) = errno {
            files.refuse_copies(errno);
        }
        if let Some(end) = end {
            files.end_copies_at(end);
        }
        let storage = Storage::new(Arc::new(files));
        let method = Some(CopyMethod::CopyFileRange);
        let (copied, pieces) = copy(&storage, (&from, &to), method).unwrap();
        assert_eq!(copied.method, CopyMethod::ReadWrite);
        assert_eq!(std::fs::read(&to).unwrap(), bytes);
        assert_in_order(&pieces, 100_000);
        assert_eq!(storage.counters().snapshot().bytes_copied, end.unwrap_or(0));
    }
}

#[test]
fn short_and_interrupted_copies_go_on() {
    let (_dir, from, to, bytes) = source(100_000);
    let files = FaultyFileSystem::default();
    files.disturb([Disturbance::Short(7), Disturbance::Interrupted, Disturbance::Short(9000)]);
    let storage = Storage::new(Arc::new(files));
    let (copied, pieces) = copy(&storage, (&from, &to), Some(CopyMethod::CopyFileRange)).unwrap();
    assert_eq!(copied.method, CopyMethod::CopyFileRange);
    assert_eq!(std::fs::read(&to).unwrap(), bytes);
    assert_in_order(&pieces, 100_000);
    assert_eq!(storage.counters().snapshot().copy_calls, 4);
}

#[test]
fn a_failed_copy_leaves_no_file_and_names_the_one_that_failed() {
    for method in [CopyMethod::CopyFileRange, CopyMethod::ReadWrite] {
        let (_dir, from, to, _) = source(34 << 20);
        let files = FaultyFileSystem::default();
        let storage = Storage::new(Arc::new(files.clone()));
        files.limit_space(3 << 20);
        let error = copy(&storage, (&from, &to), Some(method)).unwrap_err();
        assert!(error.is_no_space() && error.path() == to, "{error}");
        assert!(!to.exists());
        files.heal();
        files.make_unreadable(&from, 2 << 20);
        assert!(copy(&storage, (&from, &to), Some(method)).is_err());
        assert!(!to.exists());
    }
}

#[test]
fn a_file_that_was_cut_meanwhile_and_one_that_is_there_are_errors() {
    let (_dir, from, to, _) = source(100_000);
    let files = FaultyFileSystem::default();
    let storage = Storage::new(Arc::new(files.clone()));
    files.cut(&from, 50_000);
    let error = copy(&storage, (&from, &to), Some(CopyMethod::ReadWrite)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ShortRead { expected: 100_000, got: 50_000 }));
    assert!(!to.exists());
    std::fs::write(&to, b"mine").unwrap();
    let error = copy(&storage, (&from, &to), None).unwrap_err();
    assert!(error.is_exists(), "{error}");
    assert_eq!(std::fs::read(&to).unwrap(), b"mine");
}

#[test]
fn an_error_of_the_watcher_ends_the_copy() {
    let (_dir, from, to, _) = source(3 << 20);
    let mut told = 0;
    let outcome = Storage::real().copy_file(&from, &to, Some(CopyMethod::ReadWrite), &mut |_| {
        told += 1;
        if told == 2 { Err(Error::new(ErrorKind::NotFound, "stop")) } else { Ok(()) }
    });
    assert!(outcome.unwrap_err().is_not_found());
    assert!(told == 2 && !to.exists());
}
