//! Which method fetches the next run: the one that was asked for, or under `auto` the one that what can
//! be seen cheaply speaks for.
//!
//! ```text
//!                 blocks of this stretch in the page cache?
//!                  all │                      │ not all, or not known
//!          mmap or pread, whichever        read in order │            │ random order  
//!          took less time per block          pread, and after a       io_uring, or worker
//!          on the windows before              stretch without gaps     where there is none
//!                                             mmap where much is
//!                                             read ahead;
//!                                             on mirrors worker;
//!                                             backward as in random order
//! ```
//!
//! What goes to a queue goes past the page cache where that cannot hold the fork, as nobody would find it there again:
//! a small control group, or a table larger than memory.
//!
//! Cached blocks that are read in random order come by `pread`: a mapping was no faster, and would hold all that
//! was ever looked at.
//!
//! Pages that a processor has to make as they are read, by redo of WAL, are read by workers: each makes other pages than the
//! next, and the reader has more to do with them. No more reads are ahead then than workers, as whoever stops has to wait for
//! them.
//!
//! A *stretch* is [`STRETCH`] consecutive blocks; what is cached of them is looked at once. The cached choice is tried,
//! not assumed: how dear a mapping is depends on the size of the folios that whoever wrote or read the file left behind,
//! which nothing tells. It is made for each [`WINDOW`], so that trying the dearer method is soon over. The time measured
//! is that of reading and of using the pages together, as a mapping moves cost from the one to the other.
//!
//! Where each call takes long (a network), there is no choice: all goes through a queue, also small forks.
//!
//! Invariants: the choice never changes what is read; a method that was asked for is the method; a
//! fork of fewer than [`SMALL`] blocks is read by `pread` and asks nothing.

use std::time::Duration;

use pagemill_format::BlockNumber;
use pagemill_io::{Caching, ForkFiles, IoMethod, Lane, Readahead, StorageTraits, WORKERS};

use crate::method_use::MethodUse;

/// Blocks decided about at once (8 MiB).
pub(crate) const STRETCH: u32 = 1024;
/// Cached blocks whose method is chosen at once, and whose time is measured (2 MiB: a mapping's faults are taken for as
/// many).
pub(crate) const WINDOW: u32 = 256;
const _: () = assert!(STRETCH.is_multiple_of(WINDOW));
/// The fewest blocks whose time says something.
const MEASURED: u32 = 128;
/// Below this many blocks a choice costs more than it gains.
const SMALL: u32 = 256;
/// How far beyond a stretch it is looked whether the cache holds the rest, or only what the kernel has
/// just read ahead (in blocks, 64 MiB).
const FAR: u32 = 8192;
/// Blocks looked at there, and at each step of a stretch: to look at all of it would cost a tenth of reading it.
const SAMPLE: u32 = 16;
const SAMPLE_STEP: usize = 128;
/// Places of a fork looked at when it is read in random order.
const SAMPLES: u32 = 16;
/// Below this much readahead (in units of 1024 bytes) the kernel keeps too little in flight for a device without moving
/// parts: its default of 128 is a single read of our largest size, where such a device serves dozens at once.
const SMALL_READ_AHEAD_KB: u64 = 1024;
/// From this much readahead on even the faults of a mapping seldom wait for the device: a fault maps 64 kB, and this much
/// is on its way behind it.
const LARGE_READ_AHEAD_KB: u64 = 4096;
/// Runs until a fork that is read in random order is looked at again.
const SCATTERED_RUNS: u32 = 4096;
/// What making a block takes from which on workers do it: as long as copying it. Less is done before another thread wakes up.
const WORTH_A_WORKER: Duration = Duration::from_micros(1);

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
    /// True where each call takes long: all is read through a queue.
    distant: bool,
    /// Steps in a row that did not lead to a neighbour.
    scattered: u32,
    /// Blocks read since the last gap within a stretch.
    in_order: u32,
    /// The choice for reading in random order, and for how many more runs it holds.
    scattered_choice: Option<(Uncached, u32)>,
    /// How mirrors are kept busy.
    spread: Spread,
    /// True when the stretch is in the page cache.
    cached: bool,
    /// True when what is read now is read past it.
    past_cache: bool,
}

/// How blocks are read that the page cache has not got.
#[derive(Debug, Clone, Copy)]
struct Uncached {
    method: IoMethod,
    past_cache: bool,
    spread: Spread,
}

/// How a scan in order keeps more than one mirror busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    /// There is one, or its order makes it busy enough.
    None,
    /// Reads far ahead by whatever thread.
    Any,
    /// Reads far ahead, each mirror's by a thread of its own.
    Lanes(u32),
    /// Advice a window ahead.
    Windows,
    /// What is kept busy are processors: the pages are made as they are read.
    Making,
}

/// The stretch that is being read.
#[derive(Debug)]
struct Stretch {
    number: u32,
    method: IoMethod,
    /// What is measured of it, if it is cached.
    window: Option<Window>,
}

/// The part of a cached stretch that is being read.
#[derive(Debug)]
struct Window {
    number: u32,
    begun: Duration,
    blocks: u32,
}

impl MethodChoice {
    pub(crate) fn new(files: &ForkFiles) -> Self {
        let settings = files.storage().settings();
        let distant = files.storage().capabilities().distant;
        match settings.io_method {
            Some(method) => Self::Fixed(method),
            None if files.blocks() < SMALL && !distant => Self::Fixed(IoMethod::Pread),
            None => Self::Auto(Auto {
                distant,
                stretch: None,
                previous: None,
                scattered: 0,
                in_order: 0,
                scattered_choice: None,
                spread: Spread::None,
                cached: false,
                past_cache: false,
            }),
        }
    }

    /// True when every call takes long, so that as much as may be is asked for from the start.
    pub(crate) fn is_distant(&self) -> bool {
        matches!(self, Self::Auto(auto) if auto.distant)
    }

    /// How mirrors are kept busy.
    pub(crate) fn spread(&self) -> Spread {
        match self {
            Self::Fixed(_) => Spread::None,
            Self::Auto(auto) => auto.spread,
        }
    }

    /// The most reads ahead, where it matters how soon they are over.
    pub(crate) fn most_reads(&self) -> usize {
        match self.spread() {
            Spread::Making => WORKERS,
            _ => usize::MAX,
        }
    }

    /// The lane of a block: each mirror that is chosen by the thread gets stretch after stretch of its own.
    pub(crate) fn lane(&self, block: BlockNumber) -> Option<Lane> {
        let Spread::Lanes(of) = self.spread() else { return None };
        Some(Lane { number: block.0 / STRETCH % of.max(1), of })
    }

    /// Takes note of a run that was begun.
    pub(crate) fn begun(&mut self, last: BlockNumber, len: u32) {
        if let Self::Auto(auto) = self {
            auto.previous = Some(last);
            auto.in_order = auto.in_order.saturating_add(len);
            if let Some(window) = auto.stretch.as_mut().and_then(|stretch| stretch.window.as_mut())
            {
                window.blocks += len;
            }
        }
    }

    /// Takes note that all was read.
    pub(crate) fn ended(&mut self, files: &ForkFiles) {
        if let Self::Auto(auto) = self {
            auto.end_window(files);
        }
    }

    /// True when what is read now was seen in the page cache.
    pub(crate) fn is_cached(&self) -> bool {
        matches!(self, Self::Auto(auto) if auto.cached)
    }

    /// What a queue reads from.
    pub(crate) fn source<'f>(&self, files: &'f ForkFiles) -> &'f ForkFiles {
        match self {
            Self::Auto(auto) if auto.past_cache => files.past_cache().unwrap_or(files),
            _ => files,
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
        MethodUse::of(files.storage()).refuse(refused, why);
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
        if self.distant {
            let method = queue_for(files, block);
            let used = MethodUse::of(files.storage());
            used.explain(format!("{method}: each call takes long here, so many at once"));
            return method;
        }
        let near = self.previous.is_none_or(|previous| previous.0.abs_diff(block.0) <= 1);
        self.scattered = if near { 0 } else { self.scattered.saturating_add(1) };
        // One of several threads goes on where a stretch begins.
        if !near && !block.0.is_multiple_of(STRETCH) {
            self.in_order = 0;
        }
        if self.scattered > 1 {
            return self.scattered_method(block, files);
        }
        let number = block.0 / STRETCH;
        let window = block.0 / WINDOW;
        match &self.stretch {
            Some(Stretch { number: same, method, window: None }) if *same == number => *method,
            Some(Stretch { method, window: Some(same), .. }) if same.number == window => *method,
            Some(stretch) if stretch.number == number => self.begin_window(block, files),
            _ => self.begin_stretch(block, then.is_some_and(|then| then < block), files),
        }
    }

    fn begin_stretch(&mut self, block: BlockNumber, backward: bool, files: &ForkFiles) -> IoMethod {
        // Before it is looked what is cached: that is not part of the window's time.
        self.end_window(files);
        let number = block.0 / STRETCH;
        self.cached = is_cached(files, number, backward);
        if self.cached {
            return self.begin_window(block, files);
        }
        let Uncached { method, past_cache, spread } =
            cold_method(files, block, backward, self.in_order);
        self.past_cache = past_cache;
        self.spread = spread;
        self.stretch = Some(Stretch { number, method, window: None });
        method
    }

    /// Begins the window of a block in a cached stretch.
    fn begin_window(&mut self, block: BlockNumber, files: &ForkFiles) -> IoMethod {
        self.end_window(files);
        let storage = files.storage();
        let method = MethodUse::of(storage).cached_choice(may_map(files, block));
        let window = Window { number: block.0 / WINDOW, begun: storage.now(), blocks: 0 };
        self.stretch = Some(Stretch { number: block.0 / STRETCH, method, window: Some(window) });
        method
    }

    /// Takes note of the time a window took, if enough of it was read.
    fn end_window(&mut self, files: &ForkFiles) {
        let Some(Stretch { method, window: Some(window), .. }) = self.stretch.take() else {
            return;
        };
        if window.blocks >= MEASURED {
            let took = files.storage().now().saturating_sub(window.begun);
            MethodUse::of(files.storage()).measured(method, window.blocks, took);
        }
    }

    fn scattered_method(&mut self, block: BlockNumber, files: &ForkFiles) -> IoMethod {
        let (chosen, left) = match self.scattered_choice {
            Some((chosen, left)) if left > 0 => (chosen, left - 1),
            _ => {
                self.stretch = None;
                self.cached = false;
                (scattered_method(files, block), SCATTERED_RUNS)
            }
        };
        self.past_cache = chosen.past_cache;
        self.scattered_choice = Some((chosen, left));
        chosen.method
    }
}

/// True when a stretch and what lies beyond the reach of the kernel's readahead are in the page cache, as far as samples
/// tell.
fn is_cached(files: &ForkFiles, stretch: u32, backward: bool) -> bool {
    if files.caching() == Caching::Direct {
        return false;
    }
    let first = stretch * STRETCH;
    let far = if backward { first.checked_sub(FAR) } else { first.checked_add(FAR) };
    let samples = (0..STRETCH).step_by(SAMPLE_STEP).map(|step| first + step);
    samples.chain(far).enumerate().all(|(n, at)| {
        let count = files.contiguous(BlockNumber(at), SAMPLE);
        // A fork may end within the stretch.
        if count == 0 { n > 0 } else { is_whole(files, at, count) }
    })
}

fn is_whole(files: &ForkFiles, first: u32, count: u32) -> bool {
    files.residency(BlockNumber(first), count).is_some_and(|found| found.is_whole())
}

/// The method for blocks in order that a device has to bring, and how mirrors are kept busy by it. `in_order`: how many
/// were before them. Where there are gaps between them, faults of a mapping take half as long again as reads.
fn cold_method(files: &ForkFiles, block: BlockNumber, backward: bool, in_order: u32) -> Uncached {
    let storage = files.storage();
    let used = MethodUse::of(storage);
    if is_made(files, block) {
        used.explain("worker: pages are redone as they are read, by several threads".into());
        return Uncached::buffered(IoMethod::Worker, Spread::Making);
    }
    if files.caching() == Caching::Direct {
        return queued(files, block, "past the page cache, reads in flight keep the device busy");
    }
    let place = storage.place_of(files.path());
    let in_order = || {
        let far = reads_ahead_far(&place) && in_order >= STRETCH;
        if far && used.maps(may_map(files, block)) {
            used.explain("mmap: not cached, in order, and the kernel reads far ahead".into());
            return Uncached::buffered(IoMethod::Mmap, Spread::None);
        }
        used.explain("pread: not cached, in order, so the kernel reads ahead".into());
        Uncached::buffered(IoMethod::Pread, Spread::None)
    };
    match storage.settings().readahead {
        Readahead::Auto if place.mirrors > 1 && !(backward && place.turns) => {
            on_mirrors(files, place)
        }
        Readahead::Auto if reads_ahead_too_little(&place) => {
            queued(files, block, "not cached, and the kernel reads ahead too little here")
        }
        Readahead::Auto if backward => {
            queued(files, block, "not cached, and backward the kernel does not read ahead")
        }
        _ => in_order(),
    }
}

/// True when the kernel's readahead keeps less in flight than the device can serve at once.
fn reads_ahead_too_little(place: &StorageTraits) -> bool {
    let little = place.read_ahead_kb.is_some_and(|kb| kb < SMALL_READ_AHEAD_KB);
    little && place.has_devices && !place.turns
}

/// True when the kernel reads far ahead.
fn reads_ahead_far(place: &StorageTraits) -> bool {
    place.read_ahead_kb.is_some_and(|kb| kb >= LARGE_READ_AHEAD_KB)
}

/// True when the blocks of a stretch have to be made, on the whole, and not only copied.
fn is_made(files: &ForkFiles, block: BlockNumber) -> bool {
    let first = BlockNumber(block.0 - block.0 % STRETCH);
    let count = files.contiguous(first, STRETCH);
    count > 0 && files.making_time(first, count) >= WORTH_A_WORKER * count
}

/// The method for blocks in order on mirrors. On disks that turn it matters that each reads long
/// stretches: what one leaves to the other passes under its head all the same.
fn on_mirrors(files: &ForkFiles, place: StorageTraits) -> Uncached {
    let used = MethodUse::of(files.storage());
    let mirrors = place.mirrors;
    let (method, spread, why) = match (place.turns, place.mirror_by_thread) {
        (false, _) => (IoMethod::Worker, Spread::Any, "want several readers"),
        (true, true) => (IoMethod::Worker, Spread::Lanes(mirrors), "want a reader each"),
        (true, false) => (IoMethod::Pread, Spread::Windows, "want two places read at once"),
    };
    used.explain(format!("{method}: not cached, and {mirrors} mirrors {why}"));
    Uncached::buffered(method, spread)
}

impl Uncached {
    fn buffered(method: IoMethod, spread: Spread) -> Self {
        Self { method, past_cache: false, spread }
    }
}

/// True when the file that holds a block may be mapped, by the settings and by what it can do. One that cannot says nothing
/// about others.
fn may_map(files: &ForkFiles, block: BlockNumber) -> bool {
    let (wanted, can) = (files.storage().settings().may_map, files.capabilities(block).map);
    if wanted && !can {
        MethodUse::of(files.storage()).explain("not mmap: a file here cannot be mapped".into());
    }
    wanted && can
}

/// The queue that the platform has for the file of a block.
fn queue_for(files: &ForkFiles, block: BlockNumber) -> IoMethod {
    if files.storage().capabilities().own_queue {
        return IoMethod::Own;
    }
    let used = MethodUse::of(files.storage());
    match used.queued_choice() {
        IoMethod::IoUring if !files.capabilities(block).ring => {
            used.explain("worker: the kernel cannot read this file by itself".into());
            IoMethod::Worker
        }
        method => method,
    }
}

/// The queue that the platform has, past the page cache where nobody would find again what was read through it.
fn queued(files: &ForkFiles, block: BlockNumber, why: &str) -> Uncached {
    let used = MethodUse::of(files.storage());
    let method = queue_for(files, block);
    let past_cache = files.caching() == Caching::Buffered
        && files.storage().place_of(files.path()).cache_bytes < files.bytes()
        && files.past_cache().is_some();
    let past = if past_cache { "; past the page cache, which cannot hold all of it" } else { "" };
    used.explain(format!("{method}: {why}{past}"));
    Uncached { method, past_cache, spread: Spread::None }
}

/// The method for blocks in random order.
fn scattered_method(files: &ForkFiles, block: BlockNumber) -> Uncached {
    let used = MethodUse::of(files.storage());
    if files.caching() == Caching::Buffered && is_cached_all_over(files) {
        // A mapping was no faster here, and would hold all that was ever looked at.
        used.explain("pread: cached, blocks in random order".into());
        return Uncached::buffered(IoMethod::Pread, Spread::None);
    }
    queued(files, block, "not cached, blocks in random order, so several at once")
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

#[cfg(test)]
mod tests;
