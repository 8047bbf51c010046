//! The simulated disk as a file system: what the reader under test is given, and the test's own handle to
//! it.
//!
//! Invariants: a call of the seam is counted once, as it begins; only files that a test added exist, and
//! the directories above them; nothing is ever written, so that files cannot be mapped.

use std::any::Any;
use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pagemill_format::{BLOCK_SIZE, SEGMENT_BLOCKS};
use pagemill_io::{
    Advice, Caching, DirEntry, File, FileCapabilities, FileSystem, IoQueue, Metadata, QueueKind,
    Residency, StorageTraits,
};
use pagemill_sys::ALIGNMENT;
use rustix::io::Errno;

use crate::contents::Contents;
use crate::drive::nanos;
use crate::faults::{Call, Faults};
use crate::kernel_settings::KernelSettings;
use crate::machine::{CallFate, Machine};
use crate::page_cache::{PAGE, PageKey, PageState};
use crate::page_reads::ReadTask;
use crate::readahead::Readahead;
use crate::request_queue::DriveCount;
use crate::simulated_queue::SimulatedQueue;
use crate::volume::VolumeModel;

/// The machine behind everything that reads from it.
pub(crate) type SharedMachine = Mutex<Machine>;

pub(crate) fn lock(machine: &SharedMachine) -> MutexGuard<'_, Machine> {
    machine.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A machine with files on its disks. Clones are the same machine.
#[derive(Debug, Clone)]
pub struct SimulatedDisk {
    machine: Arc<SharedMachine>,
}

impl SimulatedDisk {
    /// A machine without files, at time 0.
    pub fn new(volume: VolumeModel, kernel: KernelSettings) -> Self {
        Self { machine: Arc::new(Mutex::new(Machine::new(volume, kernel))) }
    }

    /// Adds a file behind those there are.
    pub fn add_file(&self, path: impl Into<PathBuf>, contents: Contents) {
        self.machine().add_file(path.into(), contents);
    }

    /// Adds the segments of a relation's main fork, whose first is `path`: blocks stamped with their numbers,
    /// or not filled at all.
    pub fn add_relation(&self, path: &Path, blocks: u32, filled: bool) {
        for first in (0..blocks).step_by(SEGMENT_BLOCKS as usize) {
            let here = (blocks - first).min(SEGMENT_BLOCKS);
            let mut name = path.as_os_str().to_owned();
            if first > 0 {
                name.push(format!(".{}", first / SEGMENT_BLOCKS));
            }
            let contents = if filled {
                Contents::Stamped { first, blocks: here }
            } else {
                Contents::Unfilled(u64::from(here) * BLOCK_SIZE as u64)
            };
            self.add_file(PathBuf::from(name), contents);
        }
    }

    /// The reader computes for this long.
    pub fn spend(&self, time: Duration) {
        self.machine().spend(nanos(time));
    }

    /// What goes wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.machine().faults = faults;
    }

    /// Calls made so far.
    pub fn calls(&self) -> u64 {
        self.machine().calls()
    }

    /// Calls of one kind made so far.
    pub fn calls_of(&self, call: Call) -> u64 {
        self.machine().calls_of(call)
    }

    /// What each drive did so far.
    pub fn drive_counts(&self) -> Vec<DriveCount> {
        self.machine().volume.counts()
    }

    /// Empties the page cache.
    pub fn drop_caches(&self) {
        self.machine().cache.drop_all();
    }

    /// Puts a whole file into the page cache.
    pub fn cache_file(&self, path: &Path) {
        let mut machine = self.machine();
        let Some(file) = machine.by_path.get(path).copied() else { return };
        let pages = machine.files[file].contents.len().div_ceil(PAGE);
        for page in 0..u32::try_from(pages).unwrap_or(u32::MAX) {
            let key = PageKey { file, page };
            if machine.cache.state(key) == PageState::Absent {
                machine.cache.begin(key, false);
                machine.cache.arrive(key);
            }
        }
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        lock(&self.machine)
    }
}

impl FileSystem for SimulatedDisk {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        let mut machine = self.machine();
        machine.begin_other_call(Call::Open)?;
        let Some(file) = machine.by_path.get(path).copied() else {
            let kind = if machine.has_below(path) { Errno::ISDIR } else { Errno::NOENT };
            return Err(kind.into());
        };
        let most = u32::try_from(machine.settings.read_ahead / PAGE).unwrap_or(u32::MAX);
        machine.readaheads.push(Readahead::new(most));
        let number = machine.readaheads.len() - 1;
        let open = OpenFile { file, number, direct: caching == Caching::Direct };
        Ok(Box::new(SimulatedOpenFile { machine: self.machine.clone(), open }))
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut machine = self.machine();
        machine.begin_other_call(Call::ReadDir)?;
        if machine.by_path.contains_key(path) {
            return Err(Errno::NOTDIR.into());
        }
        let names = machine.names_in(path);
        if names.is_empty() {
            return Err(Errno::NOENT.into());
        }
        Ok(names.into_iter().map(DirEntry::named).collect())
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let mut machine = self.machine();
        machine.begin_other_call(Call::Metadata)?;
        match machine.by_path.get(path) {
            Some(file) => Ok(Metadata { len: machine.files[*file].contents.len(), is_dir: false }),
            None if machine.has_below(path) => Ok(Metadata { len: 0, is_dir: true }),
            None if path.ancestors().any(|above| machine.by_path.contains_key(above)) => {
                Err(Errno::NOTDIR.into())
            }
            None => Err(Errno::NOENT.into()),
        }
    }

    fn open_queue(&self, kind: QueueKind, depth: u32) -> io::Result<Box<dyn IoQueue>> {
        self.machine().begin_other_call(Call::OpenQueue)?;
        Ok(Box::new(SimulatedQueue::new(self.machine.clone(), kind, depth)))
    }

    fn place(&self, _path: &Path) -> StorageTraits {
        let machine = self.machine();
        let model = machine.volume.model();
        StorageTraits {
            mirrors: model.mirrors(),
            mirror_by_thread: model.is_by_thread(),
            turns: model.turns(),
            has_devices: true,
            read_ahead_kb: Some(machine.settings.read_ahead >> 10),
            ..StorageTraits::default()
        }
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.machine().now)
    }
}

/// What an open file is to the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenFile {
    pub(crate) file: usize,
    /// Its open file description.
    pub(crate) number: usize,
    pub(crate) direct: bool,
}

impl OpenFile {
    /// The open file behind the seam; `None` where it belongs to another file system.
    pub(crate) fn of(file: &dyn File) -> Option<Self> {
        Some(file.as_any()?.downcast_ref::<SimulatedOpenFile>()?.open)
    }

    /// The most bytes a read returns: past the page cache these are whole pages.
    pub(crate) fn most(&self, fate: CallFate) -> usize {
        if self.direct {
            fate.most.saturating_add(ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT
        } else {
            fate.most
        }
    }
}

/// An open file.
#[derive(Debug)]
struct SimulatedOpenFile {
    machine: Arc<SharedMachine>,
    open: OpenFile,
}

impl File for SimulatedOpenFile {
    fn capabilities(&self) -> FileCapabilities {
        // A mapping is promised and refused, as some file systems do (ENODEV).
        FileCapabilities { share_blocks: false, ..FileCapabilities::ALL }
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        lock(&self.machine).read(self.open, buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        let mut machine = lock(&self.machine);
        machine.begin_other_call(Call::Metadata)?;
        Ok(machine.files[self.open.file].contents.len())
    }

    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let wanted = bufs.iter().map(|buf| buf.len()).sum();
        let mut machine = lock(&self.machine);
        let bytes = machine.serve(self.open, wanted, offset)?;
        let mut done = 0;
        for buf in bufs {
            let len = buf.len().min(bytes - done);
            let at = offset + done as u64;
            machine.files[self.open.file].contents.fill(&mut buf[..len], at);
            done += len;
        }
        Ok(bytes)
    }

    fn seek_and_read(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut machine = lock(&self.machine);
        let seek = machine.cost(0);
        machine.spend(seek);
        machine.read(self.open, buf, offset)
    }

    fn advise(&self, range: Range<u64>, advice: Advice) -> io::Result<()> {
        lock(&self.machine).advise(self.open, range, advice)
    }

    fn residency(&self, range: Range<u64>) -> io::Result<Residency> {
        let mut machine = lock(&self.machine);
        machine.begin_other_call(Call::Residency)?;
        let bytes = range.end.saturating_sub(range.start);
        Ok(Residency { cached: machine.resident(self.open.file, range), bytes })
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl Machine {
    /// A call that reads nothing.
    fn begin_other_call(&mut self, call: Call) -> io::Result<()> {
        let fate = self.begin_call(call)?;
        self.spend(self.cost(0) + fate.slower);
        Ok(())
    }

    fn has_below(&self, path: &Path) -> bool {
        self.by_path.range(path.to_owned()..).any(|(file, _)| file.starts_with(path))
    }

    fn names_in(&self, path: &Path) -> Vec<OsString> {
        let below = self.by_path.keys().filter_map(|file| file.strip_prefix(path).ok());
        let mut names: Vec<_> =
            below.filter_map(|rest| Some(rest.iter().next()?.to_owned())).collect();
        names.dedup();
        names
    }

    /// The main thread reads.
    pub(crate) fn read(&mut self, open: OpenFile, buf: &mut [u8], at: u64) -> io::Result<usize> {
        let bytes = self.serve(open, buf.len(), at)?;
        self.files[open.file].contents.fill(&mut buf[..bytes], at);
        Ok(bytes)
    }

    /// All of a read by the main thread but the bytes.
    fn serve(&mut self, open: OpenFile, wanted: usize, at: u64) -> io::Result<usize> {
        let fate = self.begin_call(Call::Read)?;
        let bytes = self.readable(open.file, at, wanted.min(open.most(fate)))?;
        let mut task = self.task_for(open, at, bytes, 0);
        self.run(&mut task)?;
        self.spend(self.cost(bytes as u64) + fate.slower);
        Ok(bytes)
    }

    pub(crate) fn task_for(
        &self,
        open: OpenFile,
        at: u64,
        bytes: usize,
        thread: usize,
    ) -> ReadTask {
        let task = ReadTask::new(open.file, open.number, at..at + bytes as u64, thread);
        if open.direct { self.direct_task(task) } else { task }
    }

    /// How many of the bytes wanted there are and can be read.
    pub(crate) fn readable(&self, file: usize, at: u64, wanted: usize) -> io::Result<usize> {
        let file = &self.files[file];
        let left = file.contents.len().saturating_sub(at);
        let wanted = wanted.min(usize::try_from(left).unwrap_or(usize::MAX));
        match self.faults.unreadable_in(&file.path, &(at..at + wanted as u64)) {
            Some(bad) if bad - bad % PAGE <= at => Err(Errno::IO.into()),
            Some(bad) => Ok((bad - bad % PAGE - at) as usize),
            None => Ok(wanted),
        }
    }

    /// How many bytes of a range are in the page cache.
    pub(crate) fn resident(&self, file: usize, range: Range<u64>) -> u64 {
        let mut cached = 0;
        let mut at = range.start;
        while at < range.end {
            let next = (at / PAGE + 1) * PAGE;
            let page = u32::try_from(at / PAGE).unwrap_or(u32::MAX);
            if self.cache.state(PageKey { file, page }) == PageState::There {
                cached += next.min(range.end) - at;
            }
            at = next;
        }
        cached
    }

    fn advise(&mut self, open: OpenFile, range: Range<u64>, advice: Advice) -> io::Result<()> {
        self.begin_other_call(Call::Advise)?;
        let most = u32::try_from(self.settings.read_ahead / PAGE).unwrap_or(u32::MAX);
        let readahead = &mut self.readaheads[open.number];
        match advice {
            Advice::Sequential => readahead.most = most.saturating_mul(2),
            Advice::Random => readahead.most = 0,
            Advice::Normal => readahead.most = most,
            Advice::WillNeed => {
                let task = ReadTask::new(open.file, open.number, range, 0);
                let mut task = self.announcement(task);
                return self.run(&mut task);
            }
        }
        Ok(())
    }
}
