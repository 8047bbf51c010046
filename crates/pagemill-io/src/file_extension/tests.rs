//! What holds of extending a fork: no hole, no block granted twice, nothing left over, and no space told
//! in time.

use super::*;
use crate::seam::{Caching, Create, OpenForWrite};
use crate::simulated::FaultyFileSystem;
use crate::storage::Storage;
use pagemill_format::{Fork, SEGMENT_BLOCKS};

const NEW: OpenForWrite = OpenForWrite { create: Create::New, caching: Caching::Buffered };

fn fork_of(files: &FaultyFileSystem) -> (tempfile::TempDir, Arc<WritableFork>) {
    let dir = tempfile::tempdir().unwrap();
    let storage = Storage::new(Arc::new(files.clone()));
    let fork = WritableFork::open(&storage, &dir.path().join("16384"), Fork::Main, NEW).unwrap();
    (dir, Arc::new(fork))
}

fn len_of(dir: &tempfile::TempDir, name: &str) -> u64 {
    std::fs::metadata(dir.path().join(name)).unwrap().len()
}

/// Bytes the file takes on the device.
fn space_of(dir: &tempfile::TempDir, name: &str) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(dir.path().join(name)).unwrap().blocks() * 512
}

#[test]
fn a_fork_grows_in_ever_larger_steps_and_is_cut_back_at_the_end() {
    for method in [None, Some(FileExtendMethod::PosixFallocate), Some(FileExtendMethod::WriteZeros)]
    {
        let (dir, fork) = fork_of(&FaultyFileSystem::default());
        let extension = FileExtension::new(fork.clone(), 0, method);
        for block in 0..3000 {
            assert_eq!(extension.extend(1).unwrap(), block..block + 1);
        }
        let calls = fork.storage().counters().snapshot();
        assert!(len_of(&dir, "16384") > 3000 * 8192);
        assert!(calls.extend_calls + calls.write_calls < 100, "{method:?}: {calls:?}");
        extension.cut_back().unwrap();
        assert_eq!(len_of(&dir, "16384"), 3000 * 8192);
        assert!(space_of(&dir, "16384") >= 3000 * 8192, "{method:?} left a hole");
    }
}

#[test]
fn what_is_expected_is_taken_at_once_and_no_more() {
    let (dir, fork) = fork_of(&FaultyFileSystem::default());
    let extension = FileExtension::new(fork.clone(), 0, None);
    extension.expect_blocks(1000);
    for _ in 0..1000 {
        extension.extend(1).unwrap();
    }
    assert_eq!(len_of(&dir, "16384"), 1000 * 8192);
    assert_eq!(fork.storage().counters().snapshot().extend_calls, 1);
}

#[test]
fn space_reaches_over_the_end_of_a_segment() {
    let (dir, fork) = fork_of(&FaultyFileSystem::default());
    let method = Some(FileExtendMethod::PosixFallocate);
    // As if a gigabyte had been there.
    let extension = FileExtension::new(fork.clone(), SEGMENT_BLOCKS - 4, method);
    extension.ensure(SEGMENT_BLOCKS + 3).unwrap();
    assert_eq!(extension.granted(), SEGMENT_BLOCKS + 3);
    assert_eq!(len_of(&dir, "16384"), 1 << 30);
    assert!(len_of(&dir, "16384.1") >= 3 * 8192);
    extension.cut_back().unwrap();
    assert_eq!(len_of(&dir, "16384.1"), 3 * 8192);
}

#[test]
fn several_writers_get_blocks_of_their_own() {
    let (dir, fork) = fork_of(&FaultyFileSystem::default());
    let extension = FileExtension::new(fork, 5, None);
    let mut granted: Vec<u32> = std::thread::scope(|scope| {
        let take =
            || (1..40).flat_map(|n| extension.extend(n % 7 + 1).unwrap()).collect::<Vec<_>>();
        let writers: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    granted.sort_unstable();
    assert_eq!(granted, Vec::from_iter(5..extension.granted()));
    extension.cut_back().unwrap();
    assert_eq!(len_of(&dir, "16384"), u64::from(extension.granted()) * 8192);
}

#[test]
fn where_the_kernel_cannot_allocate_zeros_are_written_from_then_on() {
    let files = FaultyFileSystem::default();
    files.refuse_allocation(Errno::OPNOTSUPP);
    let (dir, fork) = fork_of(&files);
    let extension = FileExtension::new(fork.clone(), 0, None);
    extension.ensure(100).unwrap();
    extension.ensure(1000).unwrap();
    let (method, reason) = extension.method();
    assert_eq!(method, FileExtendMethod::WriteZeros);
    assert!(reason.contains("not possible here"), "{reason}");
    assert_eq!(fork.storage().counters().snapshot().extend_calls, 1);
    extension.cut_back().unwrap();
    assert!(space_of(&dir, "16384") >= 1000 * 8192);
}

#[test]
fn a_kernel_that_wrongly_says_there_is_no_space_is_not_believed() {
    let files = FaultyFileSystem::default();
    files.refuse_allocation(Errno::NOSPC);
    let (dir, fork) = fork_of(&files);
    let extension = FileExtension::new(fork, 0, None);
    extension.ensure(200).unwrap();
    assert_eq!(extension.method().0, FileExtendMethod::WriteZeros);
    extension.cut_back().unwrap();
    assert_eq!(len_of(&dir, "16384"), 200 * 8192);
}

#[test]
fn the_end_of_the_space_is_told_before_a_block_is_granted_and_leaves_no_trace() {
    for method in [None, Some(FileExtendMethod::PosixFallocate), Some(FileExtendMethod::WriteZeros)]
    {
        let files = FaultyFileSystem::default();
        files.limit_space(50 * 8192 + 100);
        let (dir, fork) = fork_of(&files);
        let extension = FileExtension::new(fork, 0, method);
        let mut granted = 0;
        let error = loop {
            match extension.extend(3) {
                Ok(blocks) => granted = blocks.end,
                Err(error) => break error,
            }
        };
        // Every block there is space for was granted, in threes.
        assert_eq!(granted, 48, "{method:?}");
        assert!(error.is_no_space() && error.block().is_some(), "{error}");
        assert_eq!(extension.granted(), 48);
        assert_eq!(len_of(&dir, "16384"), 48 * 8192, "{method:?}");
        assert_eq!(extension.extend(2).unwrap(), 48..50);
    }
}

#[test]
fn a_fork_has_no_more_blocks_than_there_are_numbers() {
    let (_dir, fork) = fork_of(&FaultyFileSystem::default());
    let extension = FileExtension::new(fork, MAX_BLOCKS - 3, None);
    let error = extension.extend(5).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::FileTooLarge), "{error}");
}

#[test]
fn what_is_chosen_depends_on_the_file_system() {
    let plain = StorageTraits::default();
    assert_eq!(choose(None, &plain).0, FileExtendMethod::PosixFallocate);
    let compressing = StorageTraits { compresses: true, copies_on_write: true, ..plain };
    assert_eq!(choose(None, &compressing).0, FileExtendMethod::WriteZeros);
    let copying = StorageTraits { copies_on_write: true, ..plain };
    assert!(choose(None, &copying).1.contains("cannot be promised"));
    let asked = Some(FileExtendMethod::PosixFallocate);
    assert_eq!(choose(asked, &compressing), (FileExtendMethod::PosixFallocate, "asked for".into()));
    for method in FileExtendMethod::ALL {
        assert_eq!(method.name().parse(), Ok(method));
    }
}
