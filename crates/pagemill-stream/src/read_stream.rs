//! A read stream: the caller says which blocks it wants in which order, the stream looks ahead in
//! that order, combines neighbours into one read call, and hands the pages out one by one.
//!
//! The idea and the names are PostgreSQL's (`src/backend/storage/aio/read_stream.c`,
//! `io_combine_limit`, PostgreSQL 17 and 18). The default, 16 blocks or 128 kB, lets a run stay in
//! a core's L2 cache between the kernel's copy and the consumer.
//!
//! ```text
//! blocks asked for   7 8 9 40 41 3      io_combine_limit 16
//! read calls         [7 8 9] [40 41] [3]
//! ```
//!
//! Invariants:
//! - pages and errors come in the order asked for, exactly one for each block asked for;
//! - blocks `first .. first + len` of the run lie in the buffer's first `len` pages; those before
//!   `next` were handed out;
//! - a run lies in one segment and takes one read call, unless a call comes back short;
//! - the iterator is asked for at most one block beyond the run, and never again after its end;
//! - after a failed call for several blocks each is read on its own, when its turn comes: only
//!   those that cannot be read give an error.

use std::iter::{Fuse, Peekable};

use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber};
use pagemill_io::{Error, ForkFiles};
use pagemill_sys::AlignedBuffer;

/// Blocks combined into one read unless told otherwise.
pub const DEFAULT_IO_COMBINE_LIMIT: u32 = 16;
/// The most blocks that can be combined into one read: 1 MiB.
pub const MAX_IO_COMBINE_LIMIT: u32 = 128;

/// How a stream reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadStreamOptions {
    /// The most blocks one read fetches, from 1 to [`MAX_IO_COMBINE_LIMIT`]; a value outside is
    /// taken as the nearest inside.
    pub io_combine_limit: u32,
}

impl Default for ReadStreamOptions {
    fn default() -> Self {
        Self { io_combine_limit: DEFAULT_IO_COMBINE_LIMIT }
    }
}

/// Reads the blocks an iterator names from one fork.
#[derive(Debug)]
pub struct ReadStream<'f, I: Iterator<Item = BlockNumber>> {
    files: &'f ForkFiles,
    blocks: Peekable<Fuse<I>>,
    io_combine_limit: u32,
    buffer: AlignedBuffer,
    run: Run,
}

/// The blocks in the buffer.
#[derive(Debug)]
struct Run {
    first: BlockNumber,
    len: u32,
    /// How many of them were handed out.
    next: u32,
    /// True when the combined call failed and each block is read when its turn comes.
    one_by_one: bool,
}

impl Run {
    const NONE: Self = Self { first: BlockNumber(0), len: 0, next: 0, one_by_one: false };

    fn block(&self, index: u32) -> BlockNumber {
        BlockNumber(self.first.0.saturating_add(index))
    }
}

impl<'f, I: Iterator<Item = BlockNumber>> ReadStream<'f, I> {
    /// A stream over `blocks`. Reads nothing yet.
    pub fn new(
        files: &'f ForkFiles,
        blocks: impl IntoIterator<IntoIter = I>,
        options: ReadStreamOptions,
    ) -> Self {
        // No run is longer than the fork, and memory never touched before is dear: most catalogs
        // are a few blocks.
        let most = files.blocks().clamp(1, MAX_IO_COMBINE_LIMIT);
        let io_combine_limit = options.io_combine_limit.clamp(1, most);
        Self {
            files,
            blocks: blocks.into_iter().fuse().peekable(),
            io_combine_limit,
            buffer: AlignedBuffer::zeroed(io_combine_limit as usize * BLOCK_SIZE),
            run: Run::NONE,
        }
    }

    /// The next page, or the error in its place; `None` after the last block.
    ///
    /// # Errors
    /// Names the block. The stream goes on with the block after it.
    #[expect(clippy::should_implement_trait, reason = "an Iterator cannot lend its pages")]
    #[inline]
    pub fn next(&mut self) -> Option<Result<(BlockNumber, &BlockBytes), Error>> {
        match self.advance(1)? {
            Ok((block, index, _)) => Some(Ok((block, &self.buffer.as_chunks().0[index]))),
            Err(error) => Some(Err(error)),
        }
    }

    /// All pages left of the run in the buffer, or those of the next run: at least one, for
    /// consecutive blocks from the number given. Otherwise as [`next`](Self::next), with which it
    /// can be mixed.
    ///
    /// # Errors
    /// Names the block. The stream goes on with the block after it.
    pub fn next_run(&mut self) -> Option<Result<(BlockNumber, &[BlockBytes]), Error>> {
        match self.advance(u32::MAX)? {
            Ok((first, index, count)) => {
                Some(Ok((first, &self.buffer.as_chunks().0[index..index + count])))
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// Makes the next block's page ready, and up to `most` pages if the run has them. Returns the
    /// first block, its index in the buffer and the number of pages.
    #[inline]
    fn advance(&mut self, most: u32) -> Option<Result<(BlockNumber, usize, usize), Error>> {
        if self.run.next == self.run.len
            && let Err(error) = self.read_run()?
        {
            return Some(Err(error));
        }
        let index = self.run.next;
        let block = self.run.block(index);
        if self.run.one_by_one {
            self.run.next += 1;
            let read = self.read_into(block, index, 1);
            return Some(read.map(|()| (block, index as usize, 1)));
        }
        let count = most.min(self.run.len - index);
        self.run.next += count;
        Some(Ok((block, index as usize, count as usize)))
    }

    /// Takes the next run from the iterator and reads it; `None` when the iterator is at its end.
    /// An error is that of a run of one block, which is then over.
    fn read_run(&mut self) -> Option<Result<(), Error>> {
        self.run = Run::NONE;
        let first = self.blocks.next()?;
        let len = self.combine(first);
        let read = self.read_into(first, 0, len);
        if len == 1 && read.is_err() {
            return Some(read);
        }
        self.run = Run { first, len, next: 0, one_by_one: read.is_err() };
        Some(Ok(()))
    }

    /// Takes the blocks that follow `first` from the iterator, as long as they are its neighbours
    /// and one call can read them. Returns the length of the run, `first` included.
    fn combine(&mut self, first: BlockNumber) -> u32 {
        let most = self.files.contiguous(first, self.io_combine_limit);
        let mut len = 1;
        while len < most {
            let neighbour = first.0.checked_add(len).map(BlockNumber);
            if self.blocks.next_if(|block| Some(*block) == neighbour).is_none() {
                break;
            }
            len += 1;
        }
        len
    }

    /// Reads `count` blocks from `first` on into the buffer's pages from `index` on.
    fn read_into(&mut self, first: BlockNumber, index: u32, count: u32) -> Result<(), Error> {
        let start = index as usize;
        let pages = &mut self.buffer.as_chunks_mut().0[start..start + count as usize];
        self.files.read_blocks(first, pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagemill_format::{Fork, SEGMENT_BLOCKS, SEGMENT_BYTES};
    use pagemill_io::simulated::{Disturbance, FaultyFileSystem};
    use pagemill_io::{CountersSnapshot, ErrorKind, Storage};
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
        ReadStreamOptions { io_combine_limit }
    }

    fn stamp_of(page: &BlockBytes) -> u32 {
        u32::from_le_bytes(*page.first_chunk().unwrap())
    }

    /// What came out: the block and its stamp, or the block that failed.
    type Outcome = Result<(u32, u32), u32>;

    fn outcome(result: Result<(BlockNumber, &BlockBytes), Error>) -> Outcome {
        match result {
            Ok((block, page)) => Ok((block.0, stamp_of(page))),
            Err(error) => Err(error.block().unwrap().0),
        }
    }

    fn drain<I: Iterator<Item = BlockNumber>>(stream: &mut ReadStream<'_, I>) -> Vec<Outcome> {
        let mut all = Vec::new();
        while let Some(result) = stream.next() {
            all.push(outcome(result));
        }
        all
    }

    /// As `drain`, taking whole runs where `by_run` (repeated) says so.
    fn drain_mixed<I: Iterator<Item = BlockNumber>>(
        stream: &mut ReadStream<'_, I>,
        by_run: &[bool],
    ) -> Vec<Outcome> {
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
                Some(Ok((first, pages))) => {
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
        let expected: Vec<Outcome> = (0..100).map(|n| Ok((n, n))).collect();
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
        assert_eq!(relation.counted().read_calls, 5, "7-9, 40-41, 3, 2, 2-3");
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
        assert_eq!(asked, 16, "a full run needs no look at the block after it");
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
        let (first, pages) = stream.next_run().unwrap().unwrap();
        assert_eq!((first.0, pages.len()), (edge - 2, 2));
        let expected: Vec<Outcome> = (edge..edge + 4).map(|n| Ok((n, n))).collect();
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

    /// How many calls a stream over readable blocks may make: one for each run.
    fn count_runs(asked: &[u32], limit: u32) -> u64 {
        let (mut runs, mut len, mut previous) = (0, 0, None);
        for &block in asked {
            if previous.map(|n: u32| n + 1) == Some(block) && len < limit {
                len += 1;
            } else {
                (runs, len) = (runs + 1, 1);
            }
            previous = Some(block);
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

    /// Orders of blocks with neighbours in them, some past the end of a file of 40 blocks.
    fn order() -> impl Strategy<Value = Vec<u32>> {
        prop::collection::vec((0_u32..42, 1_u32..30), 0..12)
            .prop_map(|runs| runs.into_iter().flat_map(|(at, len)| at..at + len).collect())
    }

    proptest! {
        #[test]
        fn a_stream_yields_what_reading_block_by_block_would(
            asked in order(),
            combine in 0_u32..40,
            unreadable in prop::collection::vec(0_u32..40, 0..4),
            script in prop::collection::vec(disturbance(), 0..30),
            by_run in prop::collection::vec(any::<bool>(), 1..5),
        ) {
            let relation = Relation::of_blocks(40);
            for block in &unreadable {
                relation.make_unreadable(&relation.segment(0), *block);
            }
            relation.faults.disturb(script);
            let files = relation.open();
            let mut stream = ReadStream::new(&files, numbers(asked.clone()), limit(combine));
            let found = drain_mixed(&mut stream, &by_run);
            let expected: Vec<Outcome> = asked
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
}
