//! One suite for all methods of writing: whatever runs and pages are given, in whatever order, the file is the
//! same, and a failure is never passed over.

use super::*;
use pagemill_format::checksum::page_checksum;
use pagemill_format::{Fork, SEGMENT_BLOCKS};
use pagemill_io::simulated::{Disturbance, FaultyFileSystem};
use pagemill_io::{Caching, Create, OpenForWrite, RealFileSystem, Storage};
use proptest::prelude::*;
use std::sync::Mutex;
use tempfile::TempDir;

/// Every method, with and without the page cache.
const WAYS: [(WriteMethod, Caching); 9] = [
    (WriteMethod::Pwrite, Caching::Buffered),
    (WriteMethod::Pwritev, Caching::Buffered),
    (WriteMethod::Mmap, Caching::Buffered),
    (WriteMethod::Worker, Caching::Buffered),
    (WriteMethod::IoUring, Caching::Buffered),
    (WriteMethod::Pwrite, Caching::Direct),
    (WriteMethod::Pwritev, Caching::Direct),
    (WriteMethod::Worker, Caching::Direct),
    (WriteMethod::IoUring, Caching::Direct),
];

const NEW: OpenForWrite = OpenForWrite { create: Create::New, caching: Caching::Buffered };

fn fork_on(storage: &Storage, dir: &TempDir, caching: Caching) -> Result<Arc<WritableFork>> {
    let how = OpenForWrite { caching, ..NEW };
    WritableFork::open(storage, &dir.path().join("16384"), Fork::Main, how).map(Arc::new)
}

/// A stream of small windows to a new fork that has `blocks` blocks already; nothing where the machine has not
/// got the method.
fn stream_of(
    storage: &Storage,
    dir: &TempDir,
    (method, caching): (WriteMethod, Caching),
    blocks: u32,
) -> Option<WriteStream> {
    let options = WriteStreamOptions {
        io_method: Some(method),
        io_combine_limit: 8,
        in_flight: 3,
        checksums: false,
    };
    let stream = fork_on(storage, dir, caching).and_then(|fork| {
        WriteStream::new(Arc::new(FileExtension::new(fork, blocks, None)), options, None)
    });
    match stream {
        Err(error) if matches!(error.kind(), ErrorKind::Refused(_)) => {
            println!("SKIPPED: {method}, {caching:?}: {error}");
            None
        }
        stream => Some(stream.unwrap()),
    }
}

fn page(block: u32, version: u32) -> BlockBytes {
    let mut page = [version as u8; BLOCK_SIZE];
    page[..4].copy_from_slice(&block.to_le_bytes());
    page[BLOCK_SIZE - 4..].copy_from_slice(&version.to_le_bytes());
    page
}

#[derive(Debug, Clone)]
enum Step {
    Page(u32),
    Run(u32, u32),
    Drain,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..80_u32).prop_map(Step::Page),
        3 => (0..80_u32, 0..30_u32).prop_map(|(first, count)| Step::Run(first, count)),
        1 => Just(Step::Drain),
    ];
    prop::collection::vec(step, 0..40)
}

fn give(stream: &mut WriteStream, version: u32, step: &Step) -> Result<()> {
    match *step {
        Step::Page(block) => stream.write_page(BlockNumber(block), &page(block, version)),
        Step::Run(first, count) => {
            let lent = stream.buffer()?;
            let len = count as usize * BLOCK_SIZE;
            let mut buffer = if lent.len() < len { AlignedBuffer::zeroed(len) } else { lent };
            for (block, bytes) in (first..).zip(buffer[..len].chunks_mut(BLOCK_SIZE)) {
                bytes.copy_from_slice(&page(block, version));
            }
            stream.write_run(BlockNumber(first), buffer, count as usize)
        }
        Step::Drain => stream.drain(),
    }
}

/// The file that the steps make.
fn expected(steps: &[Step]) -> Vec<u8> {
    let mut file: Vec<BlockBytes> = Vec::new();
    for (version, step) in (1..).zip(steps) {
        let blocks = match *step {
            Step::Page(block) => block..block + 1,
            Step::Run(first, count) => first..first + count,
            Step::Drain => 0..0,
        };
        for block in blocks {
            file.resize(file.len().max(block as usize + 1), [0; BLOCK_SIZE]);
            file[block as usize] = page(block, version);
        }
    }
    file.concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_sequence_of_pages_and_runs_gives_the_same_file_by_every_method(steps in steps()) {
        for way in WAYS {
            let dir = tempfile::tempdir().unwrap();
            let Some(mut stream) = stream_of(&Storage::real(), &dir, way, 0) else { continue };
            for (version, step) in (1..).zip(&steps) {
                give(&mut stream, version, step).unwrap();
            }
            stream.finish().unwrap();
            let written = std::fs::read(dir.path().join("16384")).unwrap();
            prop_assert!(written == expected(&steps), "{way:?} differs");
        }
    }

    #[test]
    fn short_and_interrupted_writes_change_nothing(
        steps in steps(),
        script in prop::collection::vec((0..3_usize, 1..20_000_usize), 0..60),
    ) {
        for method in [WriteMethod::Pwrite, WriteMethod::Worker, WriteMethod::IoUring] {
            let (dir, files) = (tempfile::tempdir().unwrap(), FaultyFileSystem::default());
            files.disturb(script.iter().map(|(kind, most)| match kind {
                0 => Disturbance::None,
                1 => Disturbance::Short(*most),
                _ => Disturbance::Interrupted,
            }));
            let storage = Storage::new(Arc::new(files));
            let mut stream = stream_of(&storage, &dir, (method, Caching::Buffered), 0).unwrap();
            for (version, step) in (1..).zip(&steps) {
                give(&mut stream, version, step).unwrap();
            }
            stream.finish().unwrap();
            let written = std::fs::read(dir.path().join("16384")).unwrap();
            prop_assert!(written == expected(&steps), "{method} differs");
        }
    }
}

#[test]
fn runs_cross_the_end_of_a_segment_by_every_method() {
    for way in WAYS {
        let dir = tempfile::tempdir().unwrap();
        let first = SEGMENT_BLOCKS - 5;
        let Some(mut stream) = stream_of(&Storage::real(), &dir, way, first) else { continue };
        for step in [Step::Run(first, 11), Step::Run(first + 11, 8), Step::Page(first + 19)] {
            give(&mut stream, 1, &step).unwrap();
        }
        stream.finish().unwrap();
        let second = std::fs::read(dir.path().join("16384.1")).unwrap();
        assert_eq!(second.len(), 15 * BLOCK_SIZE, "{way:?}");
        let all = (SEGMENT_BLOCKS..).zip(second.chunks(BLOCK_SIZE));
        assert!(all.into_iter().all(|(block, bytes)| bytes == page(block, 1)), "{way:?}");
        let found = std::fs::metadata(dir.path().join("16384")).unwrap();
        assert_eq!(found.len(), 1 << 30, "{way:?}");
    }
}

#[test]
fn neighbours_leave_in_large_writes_and_the_disk_is_asked_for_space_seldom() {
    for way in
        [WriteMethod::Pwrite, WriteMethod::Pwritev, WriteMethod::Worker, WriteMethod::IoUring]
    {
        let (dir, storage) = (tempfile::tempdir().unwrap(), Storage::real());
        let Ok(fork) = fork_on(&storage, &dir, Caching::Buffered) else { continue };
        let options = WriteStreamOptions { io_method: Some(way), ..WriteStreamOptions::default() };
        let space = Arc::new(FileExtension::new(fork, 0, None));
        let Ok(mut stream) = WriteStream::new(space, options, None) else { continue };
        for block in 0..2048 {
            stream.write_page(BlockNumber(block), &page(block, 1)).unwrap();
        }
        stream.finish().unwrap();
        let calls = storage.counters().snapshot();
        assert!(calls.write_calls <= 2048 / 64, "{way}: {calls:?}");
        assert!(calls.extend_calls <= 12, "{way}: {calls:?}");
    }
}

/// A WAL that remembers how far it was made durable.
#[derive(Debug, Default)]
struct Wal {
    durable: Mutex<Vec<Lsn>>,
    broken: bool,
}

impl WalFlush for Wal {
    fn flush_to(&self, lsn: Lsn) -> Result<()> {
        if self.broken {
            return Err(Error::new(std::io::Error::other("no WAL"), "pg_wal"));
        }
        self.durable.lock().unwrap().push(lsn);
        Ok(())
    }
}

fn logged_page(block: u32, lsn: u64) -> BlockBytes {
    let mut page = page(block, 1);
    page[..4].copy_from_slice(&((lsn >> 32) as u32).to_le_bytes());
    page[4..8].copy_from_slice(&(lsn as u32).to_le_bytes());
    page
}

fn logged_stream(dir: &TempDir, wal: Arc<Wal>) -> WriteStream {
    let fork = fork_on(&Storage::real(), dir, Caching::Buffered).unwrap();
    let options = WriteStreamOptions {
        io_method: Some(WriteMethod::Pwrite),
        io_combine_limit: 4,
        checksums: true,
        ..WriteStreamOptions::default()
    };
    WriteStream::new(Arc::new(FileExtension::new(fork, 0, None)), options, Some(wal)).unwrap()
}

#[test]
fn no_page_is_written_before_the_wal_it_names_is_durable() {
    let (dir, wal) = (tempfile::tempdir().unwrap(), Arc::new(Wal::default()));
    let mut stream = logged_stream(&dir, wal.clone());
    for (block, lsn) in [(0, 0x1_0000_0010), (1, 0x2_0000_0000), (2, 0x10), (3, 0x20)] {
        assert!(wal.durable.lock().unwrap().is_empty());
        stream.write_page(BlockNumber(block), &logged_page(block, lsn)).unwrap();
    }
    assert_eq!(*wal.durable.lock().unwrap(), [Lsn(0x2_0000_0000)]);
    stream.write_page(BlockNumber(9), &[0; BLOCK_SIZE]).unwrap();
    stream.finish().unwrap();
    assert_eq!(wal.durable.lock().unwrap().len(), 1, "a page that names no WAL asks for none");
}

#[test]
fn where_the_wal_is_not_durable_nothing_is_written() {
    let (dir, wal) = (tempfile::tempdir().unwrap(), Wal { broken: true, ..Wal::default() });
    let mut stream = logged_stream(&dir, Arc::new(wal));
    stream.write_page(BlockNumber(0), &logged_page(0, 7)).unwrap();
    assert!(stream.finish().unwrap_err().to_string().contains("no WAL"));
    let written = std::fs::read(dir.path().join("16384")).unwrap();
    assert!(written.iter().all(|byte| *byte == 0));
}

#[test]
fn each_page_gets_its_checksum_but_a_new_one() {
    let (dir, wal) = (tempfile::tempdir().unwrap(), Arc::new(Wal::default()));
    let mut stream = logged_stream(&dir, wal);
    let mut buffer = stream.buffer().unwrap();
    buffer[..BLOCK_SIZE].copy_from_slice(&page(3, 7));
    buffer[BLOCK_SIZE..2 * BLOCK_SIZE].fill(0);
    stream.write_run(BlockNumber(3), buffer, 2).unwrap();
    stream.finish().unwrap();
    let written = std::fs::read(dir.path().join("16384")).unwrap();
    let (pages, _) = written.as_chunks::<BLOCK_SIZE>();
    let sum = pagemill_format::checksum::stored_checksum(&pages[3]);
    assert_eq!(sum, page_checksum(&page(3, 7), BlockNumber(3)));
    assert_eq!(pages[4], [0; BLOCK_SIZE]);
}

#[test]
fn the_first_failure_is_the_end_of_the_stream() {
    for method in [WriteMethod::Pwrite, WriteMethod::Worker, WriteMethod::IoUring] {
        let (dir, files) = (tempfile::tempdir().unwrap(), FaultyFileSystem::default());
        let storage = Storage::new(Arc::new(files.clone()));
        let mut stream = stream_of(&storage, &dir, (method, Caching::Buffered), 100).unwrap();
        files.disturb([Disturbance::Short(8192), Disturbance::NoSpace]);
        let error =
            give(&mut stream, 1, &Step::Run(5, 6)).and_then(|()| stream.drain()).unwrap_err();
        assert!(error.is_no_space() && error.block() == Some(BlockNumber(6)), "{method}: {error}");
        let later = give(&mut stream, 2, &Step::Page(0)).unwrap_err();
        assert!(matches!(later.kind(), ErrorKind::Ended { .. }), "{later}");
        let ended = stream.finish().unwrap_err().to_string();
        assert!(ended.contains("no space left"), "{ended}");
    }
}

#[test]
fn a_full_disk_is_told_before_anything_is_written_there() {
    for way in WAYS.into_iter().filter(|(_, caching)| *caching == Caching::Buffered) {
        let (dir, files) = (tempfile::tempdir().unwrap(), FaultyFileSystem::default());
        files.limit_space(20 * BLOCK_SIZE as u64);
        let storage = Storage::new(Arc::new(files.clone()));
        let mut stream = stream_of(&storage, &dir, way, 0).unwrap();
        give(&mut stream, 1, &Step::Run(0, 16)).unwrap();
        let error = give(&mut stream, 1, &Step::Run(16, 8)).unwrap_err();
        assert!(error.is_no_space(), "{way:?}: {error}");
        drop(stream);
        let written = std::fs::read(dir.path().join("16384")).unwrap();
        assert_eq!(written, expected(&[Step::Run(0, 16)]), "{way:?}");
    }
}

#[test]
fn a_failed_sync_fails_the_stream_and_all_that_come_after_it() {
    let (dir, files) = (tempfile::tempdir().unwrap(), FaultyFileSystem::default());
    let storage = Storage::new(Arc::new(files.clone()));
    let way = (WriteMethod::Pwrite, Caching::Buffered);
    let mut stream = stream_of(&storage, &dir, way, 0).unwrap();
    give(&mut stream, 1, &Step::Run(0, 3)).unwrap();
    files.fail_syncs(1);
    let error = stream.finish().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::SyncFailed { .. }), "{error}");

    let dir = tempfile::tempdir().unwrap();
    let stream = stream_of(&storage, &dir, way, 0).unwrap();
    let error = stream.finish().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::SyncFailedBefore { .. }), "{error}");
}

#[test]
fn several_streams_fill_one_fork_each_its_own_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let fork = fork_on(&Storage::real(), &dir, Caching::Buffered).unwrap();
    let space = Arc::new(FileExtension::new(fork, 0, None));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let space = space.clone();
            scope.spawn(move || {
                let options = WriteStreamOptions::default();
                let mut stream = WriteStream::new(space.clone(), options, None).unwrap();
                for _ in 0..20 {
                    let blocks = space.extend(7).unwrap();
                    let step = Step::Run(blocks.start, 7);
                    give(&mut stream, 3, &step).unwrap();
                }
                stream.drain().unwrap();
            });
        }
    });
    let last = WriteStream::new(space, WriteStreamOptions::default(), None).unwrap();
    last.finish().unwrap();
    let written = std::fs::read(dir.path().join("16384")).unwrap();
    assert_eq!(written.len(), 4 * 20 * 7 * BLOCK_SIZE);
    assert!((0..).zip(written.chunks(BLOCK_SIZE)).all(|(block, bytes)| bytes == page(block, 3)));
}

#[test]
fn what_is_chosen_suits_the_cache_and_says_why() {
    let (dir, storage) = (tempfile::tempdir().unwrap(), Storage::new(Arc::new(RealFileSystem)));
    let fork = fork_on(&storage, &dir, Caching::Buffered).unwrap();
    let space = Arc::new(FileExtension::new(fork, 0, None));
    let stream = WriteStream::new(space, WriteStreamOptions::default(), None).unwrap();
    assert_eq!(stream.method().0, WriteMethod::Pwrite);
    assert!(stream.method().1.starts_with("auto: "));
}

#[test]
fn a_large_new_fork_goes_past_the_page_cache_where_that_is_possible_and_a_small_one_does_not() {
    let (dir, storage) = (tempfile::tempdir().unwrap(), Storage::real());
    let open = |name: &str, blocks| {
        crate::create_fork(&storage, &dir.path().join(name), Fork::Main, blocks).unwrap()
    };
    assert_eq!(open("small", 100).how().caching, Caching::Buffered);
    let large = Arc::new(open("large", 100_000));
    let space = Arc::new(FileExtension::new(large.clone(), 0, None));
    let mut stream = WriteStream::new(space, WriteStreamOptions::default(), None).unwrap();
    let direct = large.how().caching == Caching::Direct;
    assert_eq!(stream.method().1.contains("past the page cache"), direct, "{}", stream.method().1);
    for block in 0..300 {
        stream.write_page(BlockNumber(block), &page(block, 1)).unwrap();
    }
    stream.finish().unwrap();
    let written = std::fs::read(dir.path().join("large")).unwrap();
    assert!((0..).zip(written.chunks(BLOCK_SIZE)).all(|(block, bytes)| bytes == page(block, 1)));
    assert_eq!(written.len(), 300 * BLOCK_SIZE);
}

#[test]
fn a_mapping_and_direct_writes_do_not_go_together() {
    let (dir, storage) = (tempfile::tempdir().unwrap(), Storage::real());
    let Ok(fork) = fork_on(&storage, &dir, Caching::Direct) else { return };
    let options =
        WriteStreamOptions { io_method: Some(WriteMethod::Mmap), ..WriteStreamOptions::default() };
    let error = WriteStream::new(Arc::new(FileExtension::new(fork, 0, None)), options, None);
    assert!(error.unwrap_err().to_string().contains("direct I/O"));
}
