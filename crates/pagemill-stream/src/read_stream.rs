//! A read stream: the caller says which blocks it wants in which order, the stream looks ahead in
//! that order, combines neighbours into one read, lets an I/O method fetch them, and hands the pages
//! out one by one.
//!
//! The idea and the names are PostgreSQL's (`src/backend/storage/aio/read_stream.c`,
//! `io_combine_limit`, PostgreSQL 17 and 18). The default, 16 blocks or 128 kB, lets a run stay in
//! a core's L2 cache between the kernel's copy and the consumer.
//!
//! ```text
//! blocks asked for   7 8 9 40 41 3      io_combine_limit 16
//! runs               [7 8 9] [40 41] [3]
//! ```
//!
//! # States of a run
//!
//! ```text
//!               look_ahead                    begin_next                leave_current
//!   in the      ──────────► PLANNED  ───────► CURRENT ─────────────────► gone
//!   BlockQueue                │                  │ handed out page by page,
//!                             │                  │ or all at once
//!     method without a queue: │ nothing read     │
//!     worker, io_uring:       │ in flight        └─ ONE BY ONE, when the run could not be
//!                             └─ its file could     read as a whole: each block is read
//!                                not be opened      when its turn comes
//! ```
//!
//! | from | to | when | in |
//! | --- | --- | --- | --- |
//! | queue | planned | fewer blocks planned than the look-ahead distance, fewer reads in flight than allowed; or nothing is planned | `look_ahead` |
//! | planned | current | the run before it was handed out whole | `begin_next` |
//! | current | one by one | its read failed, and it has more than one block | `begin_next` |
//! | current | gone | the consumer asks for more; a mapped run is checked for faults met meanwhile | `leave_current` |
//!
//! Look-ahead is of use where a queue reads meanwhile, or where the kernel can be told: for a method
//! without a queue it ends at the first run that follows its neighbour, as the kernel notices a
//! sequential reader by itself.
//!
//! # Invariants
//! 1. Pages and errors come in the order asked for, exactly one for each block asked for; but for a
//!    mapped file that is cut or fails while a page is used, which adds an error after it.
//! 2. The blocks of a run before `next` were handed out.
//! 3. A run lies in one segment and takes one read call, unless a call comes back short; `seek` has runs
//!    of one block.
//! 4. The iterator is asked for at most two blocks beyond what is planned (and the readahead strategy
//!    looks at), and never again after its end.
//! 5. After a failed read for several blocks each is read on its own, when its turn comes: only
//!    those that cannot be read give an error.
//! 6. No more reads are in flight than allowed, and no more blocks are held than the pin limit and one
//!    run more. A buffer in flight belongs to its read. Dropping the stream waits for them.

use std::collections::VecDeque;
use std::ops::Deref;
use std::time::Duration;

use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, SEGMENT_BLOCKS};
use pagemill_io::{
    Advice, BlockRead, Caching, Error, ForkFiles, IoMethod, MappedBlocks, QueuedReads, ReadHints,
    Readahead, Ticket,
};
use pagemill_sys::AlignedBuffer;

use crate::block_queue::{BlockQueue, BlockRun};
use crate::distances::Distances;
use crate::method_choice::{MethodChoice, STRETCH, Spread, WINDOW};
use crate::method_use::MethodUse;
use crate::readahead_advice::ReadaheadAdvice;

/// Blocks combined into one read unless told otherwise.
pub const DEFAULT_IO_COMBINE_LIMIT: u32 = 16;
/// The most blocks that can be combined into one read: 1 MiB.
pub const MAX_IO_COMBINE_LIMIT: u32 = 128;

/// Reads in flight from which on the kernel is kept from serving them on the submitting thread
/// (PostgreSQL 18, `method_io_uring.c`).
const MANY_IN_FLIGHT: usize = 4;
/// Blocks of one read from which on it is kept from that.
const LARGE_READ: u32 = 4;

/// Blocks of a mapping in the page cache that are faulted in together (2 MiB: what one page of page tables maps). Page
/// faults in a row, with no page looked at between them, took three quarters of the time of faults amid the use. Never
/// more than the choice of the method holds for.
const FAULTED_TOGETHER: u32 = WINDOW;

/// How a stream reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadStreamOptions {
    /// The most blocks one read fetches, from 1 to [`MAX_IO_COMBINE_LIMIT`]; a value outside is
    /// taken as the nearest inside.
    pub io_combine_limit: u32,
    /// The most reads in flight, where the settings of the storage do not say: that of the
    /// tablespace. 0 for no look-ahead, on mirrors neither: a read is begun when its first block is
    /// wanted.
    pub effective_io_concurrency: u32,
    /// True for a scan that may stop early or find most of its blocks without reading: it begins with
    /// single blocks and reads more with each read.
    pub ramp_up: bool,
}

impl Default for ReadStreamOptions {
    fn default() -> Self {
        Self {
            io_combine_limit: DEFAULT_IO_COMBINE_LIMIT,
            effective_io_concurrency: pagemill_io::DEFAULT_EFFECTIVE_IO_CONCURRENCY,
            ramp_up: false,
        }
    }
}

/// Pages of consecutive blocks that a stream hands out together.
#[derive(Debug, Clone, Copy)]
pub struct Run<'s> {
    /// The first block.
    pub first: BlockNumber,
    /// The pages, one at least.
    pub pages: &'s [BlockBytes],
    /// True for pages that come out of memory as they are used, and were not copied just now.
    pub is_mapped: bool,
}

/// Reads the blocks an iterator names from one fork, which it borrows (`&ForkFiles`) or shares
/// (`Arc<ForkFiles>`).
#[derive(Debug)]
pub struct ReadStream<F: Deref<Target = ForkFiles>, I: Iterator<Item = BlockNumber>> {
    files: F,
    blocks: BlockQueue<I>,
    io_combine_limit: u32,
    most_reads: u32,
    /// One read at a time, whatever lies below.
    never_ahead: bool,
    choice: MethodChoice,
    distances: Distances,
    advice: ReadaheadAdvice,
    planned: VecDeque<Planned>,
    planned_blocks: u32,
    last_planned: Option<BlockRun>,
    current: Current,
    /// One queue for each method with reads in flight, and that of the last run that was begun.
    reads: Vec<(IoMethod, QueuedReads)>,
    spare: Vec<AlignedBuffer>,
    /// The segment whose blocks are looked ahead of as mirrors want it.
    wide_in: Option<u32>,
    /// The stretch that was mapped last.
    mapped_stretch: Option<u32>,
    /// The blocks that were faulted in last, as a number of [`FAULTED_TOGETHER`].
    faulted: Option<u32>,
    /// The blocks that were mapped since the last stretch was let go of.
    mapped_blocks: Option<(u32, u32)>,
    /// What the last call handed out of the current run.
    handed: Option<HandedOut>,
}

/// A stretch of the current run.
#[derive(Debug, Clone, Copy)]
struct HandedOut {
    first: BlockNumber,
    /// Where its pages begin among those of the run, and how many there are.
    start: usize,
    count: usize,
}

/// A run that is not current yet.
#[derive(Debug)]
struct Planned {
    run: BlockRun,
    fetch: Fetch,
}

#[derive(Debug)]
enum Fetch {
    /// By a call of this method when its turn comes.
    Later(IoMethod),
    InFlight(IoMethod, Ticket),
    Failed(Error),
}

/// The run that is handed out.
#[derive(Debug)]
struct Current {
    run: BlockRun,
    /// How many of its blocks were handed out.
    next: u32,
    pages: Pages,
}

#[derive(Debug)]
enum Pages {
    None,
    Read(AlignedBuffer),
    Mapped(MappedBlocks),
    OneByOne(AlignedBuffer),
}

impl Current {
    const NONE: Self = Self {
        run: BlockRun { first: BlockNumber(0), len: 0, descending: false },
        next: 0,
        pages: Pages::None,
    };

    fn pages(&self) -> &[BlockBytes] {
        match &self.pages {
            Pages::None => &[],
            Pages::Read(buffer) | Pages::OneByOne(buffer) => buffer.as_chunks().0,
            Pages::Mapped(mapped) => mapped.pages(),
        }
    }
}

/// The share of a table that one of several threads scanned need not count as memory either.
impl<F: Deref<Target = ForkFiles>, I: Iterator<Item = BlockNumber>> Drop for ReadStream<F, I> {
    fn drop(&mut self) {
        if let Pages::Mapped(last) = &self.current.pages {
            self.release_behind(last.first(), last.count());
        }
        self.release_rest();
    }
}

/// The most reads in flight of a scan where each call takes long, unless the settings say: 64 MiB of neighbors, as much as some
/// connections at once bring in the time of two requests.
const FAR_READS: u32 = 64;
/// Blocks that are planned at once there, 16 MiB.
const FAR_BATCH: u32 = 2048;

/// How many stretches a scan in order moves at once: one, or as many as there are threads that share the table.
const NEAR: std::ops::RangeInclusive<u32> = 1..=256;

impl<F: Deref<Target = ForkFiles>, I: Iterator<Item = BlockNumber>> ReadStream<F, I> {
    /// A stream over `blocks`. Reads nothing yet.
    pub fn new(
        files: F,
        blocks: impl IntoIterator<IntoIter = I>,
        options: ReadStreamOptions,
    ) -> Self {
        let settings = *files.storage().settings();
        // No run is longer than the fork, and memory never touched before is dear: most catalogs
        // are a few blocks.
        let most = files.blocks().clamp(1, MAX_IO_COMBINE_LIMIT);
        let choice = MethodChoice::new(&files);
        // What a call may bring is the queue's to say there, which makes long requests of neighbors.
        let options = match choice.is_distant() && !options.ramp_up {
            true => ReadStreamOptions {
                io_combine_limit: most,
                effective_io_concurrency: FAR_READS,
                ..options
            },
            false => options,
        };
        let io_combine_limit = options.io_combine_limit.clamp(1, most);
        let concurrency =
            settings.effective_io_concurrency.unwrap_or(options.effective_io_concurrency);
        let most_reads = concurrency.clamp(1, pagemill_io::MAX_EFFECTIVE_IO_CONCURRENCY);
        let distances =
            if options.ramp_up { Distances::ramping_up } else { Distances::from_the_start };
        let mut distances = distances(io_combine_limit, most_reads);
        if choice.is_distant() {
            // Nothing would come of finding out that reads are waited for.
            distances.widen(most_reads.saturating_mul(io_combine_limit));
        }
        Self {
            files,
            blocks: BlockQueue::new(blocks),
            io_combine_limit,
            most_reads,
            never_ahead: concurrency == 0,
            choice,
            distances,
            advice: ReadaheadAdvice::new(settings.readahead, settings.readahead_distance),
            planned: VecDeque::new(),
            planned_blocks: 0,
            last_planned: None,
            current: Current::NONE,
            reads: Vec::new(),
            spare: Vec::new(),
            wide_in: None,
            mapped_stretch: None,
            faulted: None,
            mapped_blocks: None,
            handed: None,
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
            Ok(HandedOut { first, start, .. }) => Some(Ok((first, &self.current.pages()[start]))),
            Err(error) => Some(Err(error)),
        }
    }

    /// All pages left of the current run, or those of the next run: at least one, for consecutive
    /// blocks from the number given on. A descending order comes block by block. Otherwise as
    /// [`next`](Self::next), with which it can be mixed.
    ///
    /// # Errors
    /// Names the block. The stream goes on with the block after it.
    pub fn next_run(&mut self) -> Option<Result<Run<'_>, Error>> {
        match self.advance(u32::MAX)? {
            Ok(handed) => Some(Ok(self.run(handed))),
            Err(error) => Some(Err(error)),
        }
    }

    /// What [`next_run`](Self::next_run) or [`next`](Self::next) handed out last; `None` before the
    /// first call, after an error and at the end. For a caller that cannot hold on to the run itself.
    #[inline]
    pub fn current_run(&self) -> Option<Run<'_>> {
        self.handed.map(|handed| self.run(handed))
    }

    #[inline]
    fn run(&self, handed: HandedOut) -> Run<'_> {
        let pages = &self.current.pages()[handed.start..handed.start + handed.count];
        let is_mapped = matches!(self.current.pages, Pages::Mapped(_));
        Run { first: handed.first, pages, is_mapped }
    }

    /// Makes the next block's page ready, and up to `most` pages if the run has them.
    #[inline]
    fn advance(&mut self, most: u32) -> Option<Result<HandedOut, Error>> {
        self.handed = None;
        if self.current.next == self.current.run.len {
            if let Err(error) = self.leave_current() {
                return Some(Err(error));
            }
            if let Err(error) = self.begin_next()? {
                return Some(Err(error));
            }
        }
        let Current { run, next, pages } = &mut self.current;
        let (first, start) = (run.block(*next), run.place(*next) as usize);
        if let Pages::OneByOne(buffer) = pages {
            *next += 1;
            let page = &mut buffer.as_chunks_mut().0[start];
            if let Err(error) = self.files.read_block(first, page) {
                return Some(Err(error));
            }
            return Some(Ok(*self.handed.insert(HandedOut { first, start, count: 1 })));
        }
        let count = if run.descending { 1 } else { most.min(run.len - *next) };
        *next += count;
        let count = count as usize;
        Some(Ok(*self.handed.insert(HandedOut { first, start, count })))
    }

    /// Lets the run go that was handed out whole.
    ///
    /// # Errors
    /// When it was mapped, and its file failed while it was used.
    fn leave_current(&mut self) -> Result<(), Error> {
        match std::mem::replace(&mut self.current, Current::NONE).pages {
            Pages::Read(buffer) | Pages::OneByOne(buffer) => self.spare.push(buffer),
            Pages::Mapped(mapped) => {
                self.release_behind(mapped.first(), mapped.count());
                mapped.check(&self.files)?;
            }
            Pages::None => {}
        }
        Ok(())
    }

    /// Lets go of the stretch before that of this block, once a scan in order has left it behind, alone or in turns with
    /// other threads: it need not count as its memory. Who reads in random order may come back at once.
    fn release_behind(&mut self, block: BlockNumber, count: u32) {
        let stretch = block.0 / STRETCH;
        if self.mapped_stretch != Some(stretch) {
            self.mapped_blocks = None;
        }
        let (first, end) = self.mapped_blocks.unwrap_or((block.0, block.0));
        self.mapped_blocks = Some((first.min(block.0), end.max(block.0.saturating_add(count))));
        let Some(left) = self
            .mapped_stretch
            .replace(stretch)
            .filter(|left| NEAR.contains(&left.abs_diff(stretch)))
        else {
            return;
        };
        let first = BlockNumber(left * STRETCH);
        let count = self.files.contiguous(first, STRETCH);
        if let Ok(mapped) = self.files.map_blocks(first, count) {
            mapped.release(&self.files);
        }
    }

    /// Lets go of what is still mapped of the last stretch.
    fn release_rest(&mut self) {
        let Some((first, end)) = self.mapped_blocks.take() else { return };
        let count = self.files.contiguous(BlockNumber(first), end.saturating_sub(first));
        if let Ok(mapped) = self.files.map_blocks(BlockNumber(first), count) {
            mapped.release(&self.files);
        }
    }

    /// Makes the next run current; `None` when there is none. An error is that of a run of one block,
    /// which is then over.
    fn begin_next(&mut self) -> Option<Result<(), Error>> {
        self.look_ahead();
        let Some(Planned { run, fetch }) = self.planned.pop_front() else {
            self.release_rest();
            self.choice.ended(&self.files);
            return None;
        };
        self.planned_blocks -= run.len;
        let fetched = match fetch {
            Fetch::Failed(error) => Err(error),
            Fetch::Later(IoMethod::Mmap) => self.map(run),
            Fetch::Later(method) => self.read(method, run),
            Fetch::InFlight(method, ticket) => self.finish(method, &ticket, run),
        };
        let pages = match fetched {
            Ok(pages) => pages,
            Err(error) if run.len == 1 => return Some(Err(error)),
            Err(_) => Pages::OneByOne(self.buffer(run.len)),
        };
        self.current = Current { run, next: 0, pages };
        Some(Ok(()))
    }

    /// Plans runs as far ahead as the distances say, and begins to read those that a queue reads.
    fn look_ahead(&mut self) {
        let is_full = self.planned_blocks + self.batch() > self.distances.look_ahead();
        if !self.planned.is_empty() && is_full {
            return;
        }
        let mut begun = false;
        while self.planned.is_empty()
            || self.planned_blocks < self.distances.look_ahead()
                && self.planned.len() < self.choice.most_reads().min(self.most_reads as usize)
        {
            let Some(next) = self.blocks.peek(0) else { break };
            let method = match &mut self.choice {
                MethodChoice::Fixed(method) => *method,
                MethodChoice::Auto(auto) => auto.method_for(next, self.blocks.peek(1), &self.files),
            };
            match self.choice.spread() {
                _ if self.never_ahead => {}
                Spread::None | Spread::Making => {}
                Spread::Any | Spread::Lanes(_) => self.widen(next),
                Spread::Windows => self.advise_windows(),
            }
            let queued = method.queue().is_some();
            if !self.planned.is_empty() && !queued && !self.advises_scattered(next) {
                break;
            }
            let Some(run) = self.blocks.next_run(&self.files, self.most_blocks(method)) else {
                break;
            };
            self.choice.begun(run.block(run.len - 1), run.len);
            let ahead = !self.planned.is_empty();
            let fetch = if queued {
                begun = true;
                self.begin(method, run)
            } else {
                if ahead && self.files.contiguous(run.first, run.len) == run.len {
                    // The read itself will tell what is wrong with the file.
                    let _ = self.files.advise(run.first, run.len, Advice::WillNeed);
                }
                Fetch::Later(method)
            };
            self.planned_blocks += run.len;
            self.last_planned = Some(run);
            self.planned.push_back(Planned { run, fetch });
        }
        for (_, reads) in self.reads.iter_mut().filter(|_| begun) {
            // A queue that cannot be flushed fails again, with a block to name, when it is waited for.
            let _ = reads.flush();
        }
    }

    /// How many blocks are planned at once: where each call takes long, so many that the queue can make few long requests of
    /// them.
    fn batch(&self) -> u32 {
        let far = (self.distances.look_ahead() / 4).clamp(1, FAR_BATCH);
        if self.choice.is_distant() { far } else { 1 }
    }

    /// Looks ahead far enough for several mirrors to be busy at once. The kernel's own readahead is switched
    /// off: it would have one thread, and so one mirror, read what others are asked for.
    fn widen(&mut self, block: BlockNumber) {
        let segment = block.0 / SEGMENT_BLOCKS;
        if self.wide_in == Some(segment) {
            return;
        }
        self.wide_in = Some(segment);
        let distance = self.files.storage().settings().readahead_distance;
        self.distances.widen(distance);
        self.most_reads = self.most_reads.max(distance / self.io_combine_limit);
        // The read itself will tell what is wrong with the file.
        let _ = self.files.advise(block, 1, Advice::Random);
    }

    /// Tells the kernel of every second window from here on.
    fn advise_windows(&mut self) {
        if self.advice.is_silent() {
            let distance = self.files.storage().settings().readahead_distance;
            self.advice = ReadaheadAdvice::new(Readahead::Window, distance);
        }
    }

    /// True when the kernel is to be told of a block that a run ahead begins with: it does not go on
    /// where the run before it ended.
    fn advises_scattered(&self, next: BlockNumber) -> bool {
        let settings = self.files.storage().settings();
        let one = BlockRun { first: next, len: 1, descending: false };
        settings.readahead == Readahead::Auto
            && self.files.caching() == Caching::Buffered
            && self.last_planned.is_some_and(|last| !one.follows(&last))
    }

    fn most_blocks(&self, method: IoMethod) -> u32 {
        match method {
            IoMethod::Seek => 1,
            // No call and no buffer, so no limit to how much of it one holds.
            IoMethod::Mmap => MAX_IO_COMBINE_LIMIT,
            _ => self.distances.combine(),
        }
    }

    /// Hands a run to the method's queue.
    fn begin(&mut self, method: IoMethod, run: BlockRun) -> Fetch {
        if self.files.contiguous(run.first, run.len) < run.len {
            return Fetch::Later(IoMethod::Pread);
        }
        if let Err(error) = self.open_queue(method) {
            return match self.choice.instead_of(method, &error.to_string(), &self.files) {
                Some(other) if other.queue().is_some() => self.begin(other, run),
                Some(other) => Fetch::Later(other),
                None => {
                    let error = Error::new(error, self.files.path());
                    Fetch::Failed(error.with_block(self.files.fork(), run.first))
                }
            };
        }
        let buffer = self.buffer(run.len);
        let reads = queue_of(&mut self.reads, method);
        let Some(reads) = reads else { return Fetch::Later(IoMethod::Pread) };
        let source = self.choice.source(&self.files);
        let direct = source.caching() == Caching::Direct;
        let force = !direct && (run.len >= LARGE_READ || reads.len() > MANY_IN_FLIGHT);
        let hints = ReadHints { force_async: force, lane: self.choice.lane(run.first) };
        let read = BlockRead { first: run.first, count: run.len, hints };
        match reads.start(source, read, buffer) {
            Ok(ticket) => Fetch::InFlight(method, ticket),
            Err((buffer, error)) => {
                self.spare.push(buffer);
                Fetch::Failed(error)
            }
        }
    }

    /// Makes sure that there is a queue of this method. One of another method is let go once all that it
    /// read was fetched: it stays beside this one until then.
    fn open_queue(&mut self, method: IoMethod) -> std::io::Result<()> {
        if queue_of(&mut self.reads, method).is_some() {
            return Ok(());
        }
        let Some(kind) = method.queue() else { return Ok(()) };
        let reads = QueuedReads::new(self.files.storage(), kind, self.most_reads)?;
        self.reads.retain(|(_, reads)| !reads.is_empty());
        self.reads.push((method, reads));
        Ok(())
    }

    /// Waits for a run that a queue reads.
    fn finish(&mut self, method: IoMethod, ticket: &Ticket, run: BlockRun) -> Result<Pages, Error> {
        let Some(reads) = queue_of(&mut self.reads, method) else { return Ok(Pages::None) };
        let waited = !reads.is_finished(ticket);
        let (buffer, outcome) = reads.finish(ticket, &self.files, run.first);
        MethodUse::of(self.files.storage()).record(method, run.len.into());
        self.distances.read_done(waited);
        match (buffer, outcome) {
            (Some(buffer), Ok(())) => Ok(Pages::Read(buffer)),
            (buffer, outcome) => {
                self.spare.extend(buffer);
                outcome.map(|()| Pages::None)
            }
        }
    }

    /// Reads a run by calls of the reader itself.
    fn read(&mut self, method: IoMethod, run: BlockRun) -> Result<Pages, Error> {
        self.advice.before_reading(run.len, &mut self.blocks, &self.files);
        let mut buffer = self.buffer(run.len);
        let pages = &mut buffer.as_chunks_mut().0[..run.len as usize];
        let clock = self.distances_matter().then(|| self.files.storage().now());
        let outcome = self.files.read_blocks_by(method, run.first, pages);
        MethodUse::of(self.files.storage()).record(method, run.len.into());
        let took = clock.map(|begin| self.files.storage().now().saturating_sub(begin));
        self.distances.read_done(took.is_some_and(|took| is_a_wait(took, run.len)));
        match outcome {
            Ok(()) => Ok(Pages::Read(buffer)),
            Err(error) => {
                self.spare.push(buffer);
                Err(error)
            }
        }
    }

    /// True when blocks in random order are read, so that it matters whether a read was waited for.
    fn distances_matter(&self) -> bool {
        self.files.storage().settings().readahead == Readahead::Auto
            && (!self.planned.is_empty() || self.last_planned.is_some_and(|run| run.len == 1))
    }

    /// Maps a run and looks at each of its pages.
    fn map(&mut self, run: BlockRun) -> Result<Pages, Error> {
        self.advice.before_reading(run.len, &mut self.blocks, &self.files);
        if self.choice.is_cached() {
            self.fault_around(run.first);
        }
        let mapped = self.files.map_blocks(run.first, run.len).and_then(|mapped| {
            match (self.choice.is_auto(), self.choice.is_cached()) {
                // What is in the page cache was faulted in, or is by its use.
                (true, true) => {}
                (true, false) => drop(mapped.fetched_in_order(&self.files)?),
                (false, _) => drop(mapped.fetched(&self.files)?),
            }
            Ok(mapped)
        });
        match mapped {
            Ok(mapped) => {
                MethodUse::of(self.files.storage()).record(IoMethod::Mmap, run.len.into());
                Ok(Pages::Mapped(mapped))
            }
            Err(refused) => self.read_unmapped(run, refused),
        }
    }

    /// Faults in the blocks around this one, unless they were the last that were.
    fn fault_around(&mut self, block: BlockNumber) {
        let together = block.0 / FAULTED_TOGETHER;
        if self.faulted.replace(together) == Some(together) {
            return;
        }
        let first = BlockNumber(together * FAULTED_TOGETHER);
        let count = self.files.contiguous(first, FAULTED_TOGETHER);
        if let Ok(mapped) = self.files.map_blocks(first, count) {
            mapped.fault_around();
        }
    }

    /// Reads a run that could not be mapped. Where that works, and nobody asked for a mapping by name, the
    /// mapping was what failed, and no other is tried.
    fn read_unmapped(&mut self, run: BlockRun, refused: Error) -> Result<Pages, Error> {
        // A file whose pages are put together as they are read is no matter of the platform.
        let can_map = self.files.capabilities(run.first).map;
        if can_map && !self.choice.is_auto() {
            return Err(refused);
        }
        let mut buffer = self.buffer(run.len);
        let pages = &mut buffer.as_chunks_mut().0[..run.len as usize];
        self.files.read_blocks_by(IoMethod::Pread, run.first, pages)?;
        if can_map {
            let why = refused.kind().to_string();
            let _ = self.choice.instead_of(IoMethod::Mmap, &why, &self.files);
        }
        MethodUse::of(self.files.storage()).record(IoMethod::Pread, run.len.into());
        Ok(Pages::Read(buffer))
    }

    /// A buffer for a run.
    fn buffer(&mut self, len: u32) -> AlignedBuffer {
        let wanted = len as usize * BLOCK_SIZE;
        match self.spare.pop() {
            Some(spare) if spare.len() >= wanted => spare,
            _ => AlignedBuffer::zeroed(wanted.max(self.io_combine_limit as usize * BLOCK_SIZE)),
        }
    }
}

/// The queue that reads by a method.
fn queue_of(queues: &mut [(IoMethod, QueuedReads)], method: IoMethod) -> Option<&mut QueuedReads> {
    queues.iter_mut().find(|(open, _)| *open == method).map(|(_, reads)| reads)
}

/// True for a read that took longer than a copy from the page cache takes.
fn is_a_wait(took: Duration, blocks: u32) -> bool {
    took > Duration::from_micros(30) + Duration::from_micros(4) * blocks
}

#[cfg(test)]
mod tests;
