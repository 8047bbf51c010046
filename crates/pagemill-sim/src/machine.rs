//! The machine: its clock, its kernel, its drives, and the reads that go on by themselves.
//!
//! One thread of the test is the machine's main thread. Time passes while it waits for a page, when its
//! calls cost something, and when it says that it computes; in between, the drives and the other readers go
//! on, event by event.
//!
//! ```text
//!   main thread waits, computes ──► step ──► the drives finish pieces ──► pages arrive
//!                                     └────► reads of queues end      └──► blocked reads go on
//! ```
//!
//! Invariants: the clock never goes back; events at one time happen in the order of drives, then of
//! their beginning; nothing depends on real time, addresses or hashes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::path::PathBuf;

use pagemill_io::{FinishedIo, QueueKind};
use rustix::io::Errno;

use crate::contents::{Contents, Layout, SimulatedFile};
use crate::drive::{Agenda, Nanos, nanos, time_for};
use crate::faults::{Call, Fault, Faults};
use crate::kernel_settings::KernelSettings;
use crate::page_cache::{PAGE, PageCache, PageKey, PageState};
use crate::page_reads::{ReadTask, Wait};
use crate::readahead::Readahead;
use crate::request_queue::Piece;
use crate::simulated_queue::{BackgroundRead, WorkerPool};
use crate::volume::{Volume, VolumeModel};

/// Files begin at multiples of this.
const FILE_ALIGNMENT: u64 = 1 << 20;

/// All of it.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) now: Nanos,
    pub(crate) settings: KernelSettings,
    pub(crate) volume: Volume,
    pub(crate) cache: PageCache,
    pub(crate) files: Vec<SimulatedFile>,
    pub(crate) by_path: BTreeMap<PathBuf, usize>,
    /// One for each open file description.
    pub(crate) readaheads: Vec<Readahead>,
    ios: HashMap<u64, Io>,
    next_io: u64,
    next_base: u64,
    pub(crate) queues: Vec<QueueState>,
    pub(crate) workers: WorkerPool,
    pub(crate) background: BTreeMap<u64, BackgroundRead>,
    pub(crate) blocked: Vec<(u64, Wait)>,
    pub(crate) timers: Agenda,
    pub(crate) faults: Faults,
    calls: u64,
    calls_of: BTreeMap<Call, u64>,
    finished_pieces: Vec<Piece>,
}

/// Bytes asked of the volume.
#[derive(Debug)]
struct Io {
    pieces_left: usize,
    target: Target,
}

/// What an I/O is for.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// Pages of a file, from the first to before the second.
    Pages(usize, u32, u32),
    /// A block map of a file.
    Map(usize, u32),
    /// Somebody's buffer.
    Direct,
}

/// The reads of one queue.
#[derive(Debug)]
pub(crate) struct QueueState {
    pub(crate) kind: QueueKind,
    pub(crate) depth: usize,
    /// Taken on and not given back.
    pub(crate) in_flight: usize,
    /// In the order the device had them.
    pub(crate) finished: VecDeque<FinishedIo>,
    pub(crate) unflushed: Vec<pagemill_io::QueuedIo>,
}

/// What becomes of a call that does not fail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallFate {
    /// A read returns no more than this.
    pub(crate) most: usize,
    /// How much longer it takes.
    pub(crate) slower: Nanos,
}

impl Machine {
    pub(crate) fn new(volume: VolumeModel, settings: KernelSettings) -> Self {
        Self {
            now: 0,
            settings,
            volume: Volume::new(volume, settings.queue()),
            cache: PageCache::new(settings.memory),
            files: Vec::new(),
            by_path: BTreeMap::new(),
            readaheads: Vec::new(),
            ios: HashMap::new(),
            next_io: 0,
            next_base: FILE_ALIGNMENT,
            queues: Vec::new(),
            workers: WorkerPool::new(settings.workers),
            background: BTreeMap::new(),
            blocked: Vec::new(),
            timers: Agenda::default(),
            faults: Faults::none(),
            calls: 0,
            calls_of: BTreeMap::new(),
            finished_pieces: Vec::new(),
        }
    }

    pub(crate) fn add_file(&mut self, path: PathBuf, contents: Contents) {
        let len = contents.len();
        let layout = Layout { base: self.next_base, block_maps: self.settings.block_maps };
        let pages = u32::try_from(len.div_ceil(PAGE)).unwrap_or(u32::MAX);
        let end = layout.page(pages) + PAGE;
        self.next_base = end.next_multiple_of(FILE_ALIGNMENT);
        let maps = vec![0; pages.div_ceil(crate::contents::MAP_PAGES) as usize];
        self.cache.add_file(len);
        self.by_path.insert(path.clone(), self.files.len());
        self.files.push(SimulatedFile { path, contents, layout, maps });
    }

    /// Counts a call, and says what becomes of it.
    pub(crate) fn begin_call(&mut self, call: Call) -> io::Result<CallFate> {
        self.calls += 1;
        *self.calls_of.entry(call).or_default() += 1;
        let mut fate = CallFate { most: usize::MAX, slower: 0 };
        match self.faults.next(self.calls) {
            Some(Fault::Failed) => return Err(Errno::IO.into()),
            Some(Fault::Interrupted) if call == Call::Read => return Err(Errno::INTR.into()),
            Some(Fault::Short(most)) if call == Call::Read => fate.most = most.max(1),
            Some(Fault::Slow(time)) => fate.slower = nanos(time),
            _ => {}
        }
        Ok(fate)
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    pub(crate) fn calls_of(&self, call: Call) -> u64 {
        self.calls_of.get(&call).copied().unwrap_or(0)
    }

    /// What a call costs that copies so many bytes.
    pub(crate) fn cost(&self, bytes: u64) -> Nanos {
        nanos(self.settings.call) + time_for(bytes, self.settings.copy_rate)
    }

    /// The main thread computes.
    pub(crate) fn spend(&mut self, time: Nanos) {
        let until = self.now.saturating_add(time);
        while self.step(until) {}
        self.now = until;
    }

    /// The main thread does a read to its end.
    pub(crate) fn run(&mut self, task: &mut ReadTask) -> io::Result<()> {
        while let Some(wait) = self.advance(task) {
            self.wait_until(|machine| machine.is_over(&wait))?;
        }
        Ok(())
    }

    /// The main thread sleeps.
    pub(crate) fn wait_until(&mut self, over: impl Fn(&Self) -> bool) -> io::Result<()> {
        self.volume.unplug(self.now);
        while !over(self) {
            if !self.step(Nanos::MAX) {
                return Err(io::Error::other(
                    "the simulated disk stands still: nothing is in flight",
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn is_over(&self, wait: &Wait) -> bool {
        match *wait {
            Wait::Page(key) => self.cache.state(key) != PageState::Reading,
            Wait::Queue(queue) => !self.volume.is_full(queue),
            Wait::Map(file, map) => self.files[file].maps[map as usize] != 1,
            Wait::Io(io) => !self.ios.contains_key(&io),
        }
    }

    /// Begins an I/O: its number, and its pieces with their queues.
    pub(crate) fn begin_io(
        &mut self,
        target: Target,
        start: u64,
        len: u64,
        thread: usize,
    ) -> (u64, Vec<(usize, Piece)>) {
        self.next_io += 1;
        let read = Piece { io: self.next_io, start, len };
        let pieces = self.volume.route(read, thread);
        self.ios.insert(self.next_io, Io { pieces_left: pieces.len(), target });
        (self.next_io, pieces)
    }

    /// Lets the next thing happen, if that is not after `limit`.
    pub(crate) fn step(&mut self, limit: Nanos) -> bool {
        let times = [self.volume.next_time(), self.timers.next()];
        let next = times.into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= limit) else { return false };
        self.now = self.now.max(next);
        let mut finished = std::mem::take(&mut self.finished_pieces);
        self.volume.advance(self.now, &mut finished);
        let any = !finished.is_empty();
        finished.drain(..).for_each(|piece| self.finish_piece(piece));
        self.finished_pieces = finished;
        while let Some(id) = self.timers.due(self.now) {
            self.end_background(id);
        }
        if any && !self.blocked.is_empty() {
            self.retry_blocked();
        }
        true
    }

    fn finish_piece(&mut self, piece: Piece) {
        let Some(io) = self.ios.get_mut(&piece.io) else { return };
        io.pieces_left -= 1;
        if io.pieces_left > 0 {
            return;
        }
        let Some(Io { target, .. }) = self.ios.remove(&piece.io) else { return };
        match target {
            Target::Pages(file, first, end) => {
                (first..end).for_each(|page| self.cache.arrive(PageKey { file, page }));
            }
            Target::Map(file, map) => self.files[file].maps[map as usize] = 2,
            Target::Direct => {}
        }
    }

    /// Lets those go on that were waiting for what has happened.
    fn retry_blocked(&mut self) {
        for (id, wait) in std::mem::take(&mut self.blocked) {
            if self.is_over(&wait) {
                self.advance_background(id);
            } else {
                self.blocked.push((id, wait));
            }
        }
    }
}
