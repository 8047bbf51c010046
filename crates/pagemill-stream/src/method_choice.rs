//! Which method fetches the next run: the one that was asked for, or under `auto` the one that what can
//! be seen cheaply speaks for.
//!
//! ```text
//!                 blocks of this stretch in the page cache?
//!                  all │                      │ not all, or not known
//!          mmap or pread, whichever        read in order │            │ here and there
//!          took less time per block          pread; on mirrors        io_uring, or worker
//!          on the stretches before            worker; backward         where there is none
//!                                             as here and there
//! ```
//!
//! A *stretch* is [`STRETCH`] consecutive blocks. The cached choice is tried, not assumed: how dear a
//! mapping is depends on the size of the folios that whoever wrote or read the file left behind, which
//! nothing tells. The time measured is that of reading and of using the pages together, as a mapping
//! moves cost from the one to the other.
//!
//! Invariants: the choice never changes what is read; a method that was asked for is the method; a
//! fork of fewer than [`SMALL`] blocks is read by `pread` and asks nothing.

use std::time::Duration;

use pagemill_format::BlockNumber;
use pagemill_io::{Caching, ForkFiles, IoMethod, Lane, Readahead};

/// Blocks decided about at once (8 MiB).
const STRETCH: u32 = 1024;
/// Below this many blocks a choice costs more than it gains.
const SMALL: u32 = 256;
/// How far beyond a stretch it is looked whether the cache holds the rest, or only what the kernel has
/// just read ahead (in blocks, 64 MiB).
const FAR: u32 = 8192;
/// Blocks looked at there.
const SAMPLE: u32 = 128;
/// Places of a fork looked at when it is read here and there.
const SAMPLES: u32 = 16;
/// Runs until a fork that is read here and there is looked at again.
const SCATTERED_RUNS: u32 = 4096;

/// The choice for one stream.
#[derive(Debug)]
pub(crate) enum MethodChoice {
    /// What was asked for.
    Fixed(IoMethod),
    /// `auto`.
    Auto(Auto),
}

/// What `auto` has seen.
#[derive(Debug)]
pub(crate) struct Auto {
    stretch: Option<Stretch>,
    previous: Option<BlockNumber>,
    /// Steps in a row that did not lead to a neighbour.
    scattered: u32,
    /// The choice for reading here and there, and for how many more runs it holds.
    scattered_choice: Option<(IoMethod, u32)>,
    /// How many mirrors what is read lies on, if that is why it is read as it is; else 1.
    mirrors: u32,
}

/// The stretch that is being read.
#[derive(Debug)]
struct Stretch {
    number: u32,
    method: IoMethod,
    /// When it began, if its time is to be compared.
    begun: Option<Duration>,
    blocks: u32,
}

impl MethodChoice {
    pub(crate) fn new(files: &ForkFiles) -> Self {
        let settings = files.storage().settings();
        match settings.io_method {
            Some(method) => Self::Fixed(method),
            None if files.blocks() < SMALL => Self::Fixed(IoMethod::Pread),
            None => Self::Auto(Auto {
                stretch: None,
                previous: None,
                scattered: 0,
                scattered_choice: None,
                mirrors: 1,
            }),
        }
    }

    /// How many mirrors are to be kept busy; 1 where there is only one, or it does not matter.
    pub(crate) fn mirrors(&self) -> u32 {
        match self {
            Self::Fixed(_) => 1,
            Self::Auto(auto) => auto.mirrors,
        }
    }

    /// Which thread should read a block: each mirror gets stretch after stretch of its own. Pieces smaller
    /// than that would be of no use on disks that turn: what one leaves to the other passes under its head
    /// all the same.
    pub(crate) fn lane(&self, block: BlockNumber) -> Option<Lane> {
        let of = self.mirrors();
        (of > 1).then_some(Lane { number: block.0 / STRETCH % of, of })
    }

    /// Takes note of a run that was begun.
    pub(crate) fn begun(&mut self, last: BlockNumber, len: u32) {
        if let Self::Auto(auto) = self {
            auto.previous = Some(last);
            if let Some(stretch) = &mut auto.stretch {
                stretch.blocks += len;
            }
        }
    }

    /// True when no method was asked for by name.
    pub(crate) fn is_auto(&self) -> bool {
        matches!(self, Self::Auto(_))
    }

    /// Gives up a method that the platform refused. Returns what to use instead, or `None` when it was
    /// asked for by name.
    pub(crate) fn instead_of(
        &mut self,
        refused: IoMethod,
        why: &str,
        files: &ForkFiles,
    ) -> Option<IoMethod> {
        let Self::Auto(_) = self else { return None };
        files.storage().method_use().refuse(refused, why);
        let next = if refused == IoMethod::IoUring { IoMethod::Worker } else { IoMethod::Pread };
        *self = Self::new(files);
        Some(next)
    }
}

impl Auto {
    /// The method for a run that begins at `block`, which `then` comes after.
    pub(crate) fn method_for(
        &mut self,
        block: BlockNumber,
        then: Option<BlockNumber>,
        files: &ForkFiles,
    ) -> IoMethod {
        let near = self.previous.is_none_or(|previous| previous.0.abs_diff(block.0) <= 1);
        self.scattered = if near { 0 } else { self.scattered.saturating_add(1) };
        if self.scattered > 1 {
            return self.scattered_method(files);
        }
        let number = block.0 / STRETCH;
        match &self.stretch {
            Some(stretch) if stretch.number == number => stretch.method,
            _ => self.begin_stretch(number, then.is_some_and(|then| then < block), files),
        }
    }

    fn begin_stretch(&mut self, number: u32, backward: bool, files: &ForkFiles) -> IoMethod {
        self.end_stretch(files);
        let (method, begun) = if is_cached(files, number, backward) {
            let method =
                files.storage().method_use().cached_choice(files.storage().settings().may_map);
            (method, Some(files.storage().now()))
        } else {
            let (method, mirrors) = cold_method(files, backward);
            self.mirrors = mirrors;
            (method, None)
        };
        self.stretch = Some(Stretch { number, method, begun, blocks: 0 });
        method
    }

    /// Takes note of the time a cached stretch took, if all of it was read.
    fn end_stretch(&mut self, files: &ForkFiles) {
        let Some(stretch) = self.stretch.take() else { return };
        if let Some(begun) = stretch.begun.filter(|_| stretch.blocks >= STRETCH / 2) {
            let took = files.storage().now().saturating_sub(begun);
            files.storage().method_use().measured(stretch.method, stretch.blocks, took);
        }
    }

    fn scattered_method(&mut self, files: &ForkFiles) -> IoMethod {
        if let Some((method, left)) = self.scattered_choice.filter(|(_, left)| *left > 0) {
            self.scattered_choice = Some((method, left - 1));
            return method;
        }
        self.stretch = None;
        let method = scattered_method(files);
        self.scattered_choice = Some((method, SCATTERED_RUNS));
        method
    }
}

/// True when a stretch and what lies beyond the reach of the kernel's readahead are in the page cache.
fn is_cached(files: &ForkFiles, stretch: u32, backward: bool) -> bool {
    if files.storage().settings().caching == Caching::Direct {
        return false;
    }
    let first = stretch * STRETCH;
    let far = if backward { first.checked_sub(FAR) } else { first.checked_add(FAR) };
    let whole = |first: u32, limit: u32| {
        let count = files.contiguous(BlockNumber(first), limit);
        count > 0
            && files.residency(BlockNumber(first), count).is_some_and(|found| found.is_whole())
    };
    let beyond = |far: u32| files.contiguous(BlockNumber(far), SAMPLE) == 0 || whole(far, SAMPLE);
    whole(first, STRETCH) && far.is_none_or(beyond)
}

/// The method for blocks in order that a device has to bring, and how many mirrors it is to keep busy.
fn cold_method(files: &ForkFiles, backward: bool) -> (IoMethod, u32) {
    let storage = files.storage();
    let used = storage.method_use();
    if storage.settings().caching == Caching::Direct {
        let method = used.queued_choice();
        used.explain(format!(
            "{method}: past the page cache, reads in flight keep the device busy"
        ));
        return (method, 1);
    }
    let explicit = !matches!(storage.settings().readahead, Readahead::Auto);
    let place = storage.place_of(files.path());
    if !explicit && place.mirrors > 1 {
        let mirrors = place.mirrors;
        used.explain(format!("worker: not cached, and {mirrors} mirrors want several readers"));
        return (IoMethod::Worker, mirrors);
    }
    if !explicit && place.reads_ahead_too_little {
        let method = used.queued_choice();
        let why = "not cached, and the kernel reads ahead too little here";
        used.explain(format!("{method}: {why}"));
        return (method, 1);
    }
    if !explicit && backward {
        let method = used.queued_choice();
        used.explain(format!("{method}: not cached, and backward the kernel does not read ahead"));
        return (method, 1);
    }
    used.explain("pread: not cached, in order, so the kernel reads ahead".into());
    (IoMethod::Pread, 1)
}

/// The method for blocks here and there.
fn scattered_method(files: &ForkFiles) -> IoMethod {
    let storage = files.storage();
    let used = storage.method_use();
    if storage.settings().caching == Caching::Buffered && is_cached_all_over(files) {
        let maps = used.maps(storage.settings().may_map);
        let method = if maps { IoMethod::Mmap } else { IoMethod::Pread };
        used.explain(format!("{method}: cached, blocks here and there"));
        return method;
    }
    let method = used.queued_choice();
    used.explain(format!("{method}: not cached, blocks here and there, so several at once"));
    method
}

fn is_cached_all_over(files: &ForkFiles) -> bool {
    let blocks = files.blocks();
    (0..SAMPLES).all(|sample| {
        let first = u64::from(blocks) * u64::from(sample) / u64::from(SAMPLES);
        let first = BlockNumber(u32::try_from(first).unwrap_or(u32::MAX));
        let count = files.contiguous(first, 16);
        count == 0 || files.residency(first, count).is_some_and(|found| found.is_whole())
    })
}
