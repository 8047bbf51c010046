//! Tests of the read stream: what it hands out, in which calls, and what becomes of failures.
//!
//! Each runs on real files behind the seam with faults, so that short reads and errors can be had at any call.

use super::*;
use pagemill_format::{Fork, SEGMENT_BYTES};
use pagemill_io::simulated::{Disturbance, FaultyFileSystem};
use pagemill_io::{CountersSnapshot, ErrorKind, ReadSettings, Storage};
use proptest::prelude::*;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A relation whose blocks carry their own number, on a file system with faults.
struct Relation {
    dir: tempfile::TempDir,
    faults: Arc<FaultyFileSystem>,
    storage: Storage,
}

impl Relation {
    fn empty() -> Self {
        let faults = Arc::new(FaultyFileSystem::default());
        let storage = Storage::new(faults.clone());
        Self { dir: tempfile::tempdir().unwrap(), faults, storage }
    }

    fn of_blocks(count: u32) -> Self {
        let relation = Self::empty();
        let mut bytes = vec![0; count as usize * BLOCK_SIZE];
        for (number, page) in (0_u32..).zip(bytes.as_chunks_mut::<BLOCK_SIZE>().0) {
            page[..4].copy_from_slice(&number.to_le_bytes());
        }
        fs::write(relation.segment(0), bytes).unwrap();
        relation
    }

    fn read_by(self, settings: ReadSettings) -> Self {
        let storage = Storage::with_settings(self.faults.clone(), settings);
        Self { storage, ..self }
    }

    fn segment(&self, number: u32) -> PathBuf {
        let name = if number == 0 { "1".to_owned() } else { format!("1.{number}") };
        self.dir.path().join(name)
    }

    /// Makes a sparse segment file, its first and last two blocks stamped.
    fn add_sparse_segment(&self, number: u32, len: u64) {
        let mut file = fs::File::create(self.segment(number)).unwrap();
        file.set_len(len).unwrap();
        let count = u32::try_from(len / BLOCK_SIZE as u64).unwrap();
        for index in [0, 1, count - 2, count - 1] {
            let block = number * SEGMENT_BLOCKS + index;
            file.seek(SeekFrom::Start(u64::from(index) * BLOCK_SIZE as u64)).unwrap();
            file.write_all(&block.to_le_bytes()).unwrap();
        }
    }

    fn open(&self) -> ForkFiles {
        ForkFiles::open(&self.storage, &self.segment(0), Fork::Main).unwrap().unwrap()
    }

    fn counted(&self) -> CountersSnapshot {
        self.storage.counters().snapshot()
    }

    fn make_unreadable(&self, path: &Path, block: u32) {
        self.faults.make_unreadable(path, u64::from(block) * BLOCK_SIZE as u64 + 5);
    }
}

fn numbers(blocks: impl IntoIterator<Item = u32>) -> Vec<BlockNumber> {
    blocks.into_iter().map(BlockNumber).collect()
}

fn limit(io_combine_limit: u32) -> ReadStreamOptions {
    ReadStreamOptions { io_combine_limit, ..ReadStreamOptions::default() }
}

fn stamp_of(page: &BlockBytes) -> u32 {
    u32::from_le_bytes(*page.first_chunk().unwrap())
}

/// What came out: the block and its stamp, or the block that failed.
type BlockResult = Result<(u32, u32), u32>;

fn outcome(result: Result<(BlockNumber, &BlockBytes), Error>) -> BlockResult {
    match result {
        Ok((block, page)) => Ok((block.0, stamp_of(page))),
        Err(error) => Err(error.block().unwrap().0),
    }
}

fn drain<I: Iterator<Item = BlockNumber>>(
    stream: &mut ReadStream<&ForkFiles, I>,
) -> Vec<BlockResult> {
    let mut all = Vec::new();
    while let Some(result) = stream.next() {
        all.push(outcome(result));
    }
    all
}

/// As `drain`, taking whole runs where `by_run` (repeated) says so.
fn drain_mixed<I: Iterator<Item = BlockNumber>>(
    stream: &mut ReadStream<&ForkFiles, I>,
    by_run: &[bool],
) -> Vec<BlockResult> {
    let mut all = Vec::new();
    for by_run in by_run.iter().copied().cycle() {
        if !by_run {
            match stream.next() {
                Some(result) => all.push(outcome(result)),
                None => break,
            }
            continue;
        }
        match stream.next_run() {
            Some(Ok(Run { first, pages, .. })) => {
                let stamps = pages.iter().map(stamp_of);
                all.extend((first.0..).zip(stamps).map(Ok));
            }
            Some(Err(error)) => all.push(Err(error.block().unwrap().0)),
            None => break,
        }
    }
    all
}

#[test]
fn neighbours_are_combined_up_to_the_limit() {
    let relation = Relation::of_blocks(100);
    let files = relation.open();
    let mut stream = ReadStream::new(&files, numbers(0..100), limit(16));
    let expected: Vec<BlockResult> = (0..100).map(|n| Ok((n, n))).collect();
    assert_eq!(drain(&mut stream), expected);
    let counted = relation.counted();
    assert_eq!((counted.read_calls, counted.bytes_read), (7, 100 * 8192));
    assert!(stream.next().is_none(), "the end stays the end");
}

#[test]
fn what_does_not_follow_is_not_combined() {
    let relation = Relation::of_blocks(50);
    let files = relation.open();
    let asked = [7, 8, 9, 40, 41, 3, 2, 2, 3];
    let mut stream = ReadStream::new(&files, numbers(asked), limit(16));
    assert_eq!(drain(&mut stream), asked.map(|n| Ok((n, n))));
    assert_eq!(relation.counted().read_calls, 4, "7-9, 40-41, 3-2, 2-3");
}

#[test]
fn one_unreadable_block_costs_one_error() {
    let relation = Relation::of_blocks(20);
    relation.make_unreadable(&relation.segment(0), 5);
    let files = relation.open();
    let mut stream = ReadStream::new(&files, numbers(0..20), limit(8));
    let found = drain(&mut stream);
    let expected: Vec<_> = (0..20).map(|n| if n == 5 { Err(5) } else { Ok((n, n)) }).collect();
    assert_eq!(found, expected);
    assert_eq!(relation.counted().read_calls, 1 + 8 + 2, "the failed run is read singly");
}

#[test]
fn a_consumer_that_stops_early_reads_no_further() {
    let relation = Relation::of_blocks(100);
    let files = relation.open();
    let mut asked = 0;
    let blocks = (0..100).map(BlockNumber).inspect(|_| asked += 1);
    let mut stream = ReadStream::new(&files, blocks, limit(16));
    stream.next().unwrap().unwrap();
    drop(stream);
    assert_eq!(relation.counted().read_calls, 1);
    assert_eq!(asked, 17, "one look at the block after the run: does it go on?");
}

#[test]
fn without_concurrency_no_read_is_begun_before_the_one_before_it_was_handed_out() {
    let ring = ReadSettings { io_method: Some(IoMethod::IoUring), ..ReadSettings::default() };
    for (effective_io_concurrency, ahead) in [(0, 16), (1, 16), (16, 32)] {
        let relation = Relation::of_blocks(100).read_by(ring);
        let files = relation.open();
        let mut asked = 0;
        let blocks = (0..100).map(BlockNumber).inspect(|_| asked += 1);
        let options = ReadStreamOptions { effective_io_concurrency, ..limit(16) };
        let mut stream = ReadStream::new(&files, blocks, options);
        stream.next().unwrap().unwrap();
        drop(stream);
        assert_eq!(asked, ahead, "{effective_io_concurrency}");
    }
}

#[test]
fn a_backward_order_is_combined_and_handed_out_downward() {
    let relation = Relation::of_blocks(40);
    let files = relation.open();
    let mut stream = ReadStream::new(&files, numbers((0..40).rev()), limit(16));
    assert_eq!(
        drain_mixed(&mut stream, &[true]),
        Vec::from_iter((0..40).rev().map(|n| Ok((n, n))))
    );
    assert_eq!(relation.counted().read_calls, 3);
}

#[test]
fn seek_makes_two_calls_for_each_block() {
    let seek = ReadSettings { io_method: Some(IoMethod::Seek), ..ReadSettings::default() };
    let relation = Relation::of_blocks(40).read_by(seek);
    let files = relation.open();
    drain(&mut ReadStream::new(&files, numbers(0..40), limit(16)));
    let counted = relation.counted();
    assert_eq!((counted.seek_calls, counted.read_calls), (40, 40));
}

#[test]
fn a_file_cut_under_its_mapping_gives_errors_that_name_the_blocks() {
    let mmap = ReadSettings { io_method: Some(IoMethod::Mmap), ..ReadSettings::default() };
    let relation = Relation::of_blocks(40).read_by(mmap);
    let files = relation.open();
    let mut stream = ReadStream::new(&files, numbers(0..40), limit(16));
    assert_eq!(outcome(stream.next().unwrap()), Ok((0, 0)));
    let file = fs::OpenOptions::new().write(true).open(relation.segment(0)).unwrap();
    file.set_len(10 * 8192).unwrap();
    // Block 1 was looked at before the cut; what lies behind it shows when it is used.
    let rest = drain(&mut stream);
    assert!(rest.contains(&Ok((9, 9))), "{rest:?}");
    let mut stream = ReadStream::new(&files, numbers(0..40), limit(16));
    let again = drain(&mut stream);
    let expected: Vec<_> = (0..40).map(|n| if n < 10 { Ok((n, n)) } else { Err(n) }).collect();
    assert_eq!(again, expected);
    assert_eq!(relation.counted().read_calls, 0);
}

/// A file was cut inside a machine page while its rows were written: the rest of that page reads as zeros
/// and raises no signal, so a row of zeros went out and the exit status was 0.
#[test]
fn a_cut_within_a_machine_page_of_a_mapping_is_an_error_too() {
    let mmap = ReadSettings { io_method: Some(IoMethod::Mmap), ..ReadSettings::default() };
    let relation = Relation::of_blocks(40).read_by(mmap);
    let files = relation.open();
    let mut stream = ReadStream::new(&files, numbers(0..40), limit(16));
    assert_eq!(outcome(stream.next().unwrap()), Ok((0, 0)));
    let file = fs::OpenOptions::new().write(true).open(relation.segment(0)).unwrap();
    file.set_len(39 * 8192 + 8000).unwrap();
    assert_eq!(drain(&mut stream).last(), Some(&Err(39)));
}

#[test]
fn scattered_blocks_are_announced_ahead_and_sequential_ones_are_not() {
    let pread = ReadSettings { io_method: Some(IoMethod::Pread), ..ReadSettings::default() };
    let relation = Relation::of_blocks(40).read_by(pread);
    let files = relation.open();
    drain(&mut ReadStream::new(&files, numbers(0..40), limit(16)));
    assert_eq!(relation.counted().advice_calls, 0);
    let scattered = numbers((0..20).map(|n| n * 7 % 40));
    drain(&mut ReadStream::new(&files, scattered, limit(16)));
    assert!(relation.counted().advice_calls > 0);
}

#[test]
fn an_empty_order_reads_nothing() {
    let relation = Relation::of_blocks(1);
    let files = relation.open();
    assert!(ReadStream::new(&files, [], limit(16)).next().is_none());
    assert_eq!(relation.counted().read_calls, 0);
}

#[test]
fn a_file_cut_under_the_stream_gives_what_is_left_and_then_errors() {
    let relation = Relation::of_blocks(10);
    let files = relation.open();
    relation.faults.cut(&relation.segment(0), 4 * 8192 + 100);
    let found = drain(&mut ReadStream::new(&files, numbers(0..10), limit(16)));
    let expected: Vec<_> = (0..10).map(|n| if n < 4 { Ok((n, n)) } else { Err(n) }).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_run_never_crosses_a_segment_edge() {
    let relation = Relation::empty();
    relation.add_sparse_segment(0, SEGMENT_BYTES);
    relation.add_sparse_segment(1, 4 * 8192);
    let files = relation.open();
    let edge = SEGMENT_BLOCKS;
    let asked = numbers(edge - 2..edge + 4);
    let mut stream = ReadStream::new(&files, asked, limit(16));
    let Run { first, pages, .. } = stream.next_run().unwrap().unwrap();
    assert_eq!((first.0, pages.len()), (edge - 2, 2));
    let expected: Vec<BlockResult> = (edge..edge + 4).map(|n| Ok((n, n))).collect();
    assert_eq!(drain(&mut stream), expected);
    assert_eq!(relation.counted().read_calls, 2);
}

#[test]
fn a_gap_and_a_short_segment_give_errors_without_calls_and_the_rest_still_comes() {
    let relation = Relation::empty();
    relation.add_sparse_segment(0, 4 * 8192);
    relation.add_sparse_segment(2, 4 * 8192);
    let files = relation.open();
    let (gap, after) = (SEGMENT_BLOCKS, 2 * SEGMENT_BLOCKS);
    let asked = numbers((2..6).chain(gap - 1..gap + 2).chain(after - 1..after + 2));
    let found = drain(&mut ReadStream::new(&files, asked, limit(16)));
    let ok = |n| Ok((n, n));
    let mut expected = vec![ok(2), ok(3), Err(4), Err(5)];
    expected.extend([Err(gap - 1), Err(gap), Err(gap + 1), Err(after - 1)]);
    expected.extend([ok(after), ok(after + 1)]);
    assert_eq!(found, expected);
    assert_eq!(relation.counted().read_calls, 2);
}

#[test]
fn a_block_past_the_end_is_an_error_even_at_the_highest_number() {
    let relation = Relation::of_blocks(2);
    let files = relation.open();
    let asked = numbers([1, 2, u32::MAX, u32::MAX, 0]);
    let mut stream = ReadStream::new(&files, asked, limit(16));
    assert_eq!(outcome(stream.next().unwrap()), Ok((1, 1)));
    let error = stream.next().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::PastEnd { blocks: 2 }), "{error}");
    assert_eq!(drain(&mut stream), [Err(u32::MAX), Err(u32::MAX), Ok((0, 0))]);
}

/// How many calls a stream over readable blocks may make: one for each run, up or down.
fn count_runs(asked: &[u32], limit: u32) -> u64 {
    let (mut runs, mut rest) = (0, asked);
    while let Some(&first) = rest.first() {
        let up = (first..).zip(rest).take_while(|(n, block)| n == *block).count();
        let down = (0..=first).rev().zip(rest).take_while(|(n, block)| n == *block).count();
        let len = if up > 1 { up } else { down };
        (runs, rest) = (runs + 1, &rest[len.min(limit as usize)..]);
    }
    runs
}

fn disturbance() -> impl Strategy<Value = Disturbance> {
    prop_oneof![
        Just(Disturbance::None),
        Just(Disturbance::Interrupted),
        (1..5 * BLOCK_SIZE).prop_map(Disturbance::Short),
    ]
}

/// Orders of blocks with neighbours in them, up and down, some past the end of a file of 40 blocks.
fn order() -> impl Strategy<Value = Vec<u32>> {
    let run = (0_u32..42, 1_u32..30, any::<bool>()).prop_map(|(at, len, down)| {
        let run = at..at + len;
        if down { run.rev().collect() } else { run.collect::<Vec<_>>() }
    });
    prop::collection::vec(run, 0..12).prop_map(|runs| runs.concat())
}

fn settings() -> impl Strategy<Value = ReadSettings> {
    let methods = IoMethod::ALL.map(Some).into_iter().chain([None]).collect::<Vec<_>>();
    let readahead = vec![
        Readahead::None,
        Readahead::EveryPage,
        Readahead::Window,
        Readahead::DoubleWindow,
        Readahead::Auto,
    ];
    let choices = (prop::sample::select(methods), prop::sample::select(readahead));
    (choices, 1_u32..20, 1_u32..8).prop_map(|((io_method, readahead), distance, most)| {
        ReadSettings {
            io_method,
            readahead,
            readahead_distance: distance,
            effective_io_concurrency: Some(most),
            max_open_files: 1,
            ..ReadSettings::default()
        }
    })
}

proptest! {
    #[test]
    fn a_stream_yields_what_reading_block_by_block_would(
        asked in order(),
        combine in 0_u32..40,
        unreadable in prop::collection::vec(0_u32..40, 0..4),
        script in prop::collection::vec(disturbance(), 0..30),
        by_run in prop::collection::vec(any::<bool>(), 1..5),
        settings in settings(),
        ramp_up: bool,
    ) {
        // What a mapping cannot read is a signal, and no fault of this file system.
        let mapped = settings.io_method == Some(IoMethod::Mmap);
        let unreadable = if mapped { Vec::new() } else { unreadable };
        let relation = Relation::of_blocks(40).read_by(settings);
        for block in &unreadable {
            relation.make_unreadable(&relation.segment(0), *block);
        }
        relation.faults.disturb(script);
        let files = relation.open();
        let options = ReadStreamOptions { ramp_up, ..limit(combine) };
        let mut stream = ReadStream::new(&files, numbers(asked.clone()), options);
        let found = drain_mixed(&mut stream, &by_run);
        let expected: Vec<BlockResult> = asked
            .iter()
            .map(|&n| if n >= 40 || unreadable.contains(&n) { Err(n) } else { Ok((n, n)) })
            .collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn an_undisturbed_stream_makes_one_call_for_each_run(
        asked in order(),
        combine in 1_u32..=128,
    ) {
        let asked: Vec<u32> = asked.into_iter().filter(|block| *block < 40).collect();
        let relation = Relation::of_blocks(40);
        let files = relation.open();
        drain(&mut ReadStream::new(&files, numbers(asked.clone()), limit(combine)));
        let counted = relation.counted();
        prop_assert_eq!(counted.read_calls, count_runs(&asked, combine));
        prop_assert_eq!(counted.bytes_read, asked.len() as u64 * BLOCK_SIZE as u64);
    }
}
