//! Blocks of one size, read or written by one method, in order or in random order, for a time: what every figure of a
//! device is made of.
//!
//! ```text
//! method            in flight   calls
//! seek, pread, …    1           the caller's own
//! worker, io_uring  depth       a queue of the project's, kept full
//! threads           depth       so many threads, each with one read in flight, as the I/O workers of a server have
//! ```
//!
//! The calls are those behind the project's seam, so that what is measured is what `count` and `load` do. A turn goes on until
//! its rate stands ([`Pace`]); where no block is to come twice from the device, all of them leave the page cache before they
//! come again, outside of the time. Invariants: the time is looked at after each block, and no block is counted that did not
//! come whole; the file stays as long as it is; what is written and synced counts in full, with its sync.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pagemill_format::BLOCK_SIZE;
use pagemill_io::{
    Caching, Create, Direction, File, FileSystem, IoMethod, OpenForWrite, QueueKind, QueuedIo,
    RealFileSystem, WriteMethod,
};
use pagemill_sys::AlignedBuffer;

use crate::cache::bring_about;
use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::{Error, Result};
use crate::experiments::pace::Pace;
use crate::experiments::random::Random;
use crate::results::CacheState;

/// A way to move blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Read(IoMethod),
    /// By threads of its own, one read each.
    ReadByThreads,
    Write(WriteMethod),
}

/// How long the watch over threads sleeps.
const LOOK: Duration = Duration::from_millis(5);

/// Which blocks come one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// In order from somewhere on, and round.
    Around,
    /// The same, until all came: what came into the cache is not read again.
    Once,
    /// Shuffled, and round.
    Random,
}

/// A stretch of such work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockIo {
    pub(crate) method: Method,
    pub(crate) caching: Caching,
    pub(crate) order: Order,
    /// Bytes of a block.
    pub(crate) block: usize,
    /// The most in flight at once.
    pub(crate) depth: u32,
    /// It lasts at least so long, and until its rate stands.
    pub(crate) time: Duration,
    /// What the order and the bytes depend on.
    pub(crate) seed: u64,
    /// `fdatasync` at the end belongs to it.
    pub(crate) synced: bool,
}

/// A file that blocks are moved in, on any file system.
#[derive(Clone, Copy)]
struct PlacedFile<'a> {
    /// The file system, by whose clock turns are timed.
    files: &'a dyn FileSystem,
    /// Where it lies there.
    path: &'a Path,
    /// Lets the file out of the page cache.
    cold: &'a dyn Fn() -> Result<()>,
}

impl BlockIo {
    /// The method's name.
    fn method_name(&self) -> &'static str {
        match self.method {
            Method::Read(method) => method.name(),
            Method::ReadByThreads => IoMethod::Worker.name(),
            Method::Write(method) => method.name(),
        }
    }

    /// One who does this on a file, called as the group needs it.
    pub(crate) fn contestant(self, name: String, path: PathBuf) -> Contestant<'static> {
        let own_threads = self.method == Method::ReadByThreads;
        let by_threads = own_threads || self.queue() == Some(QueueKind::Worker);
        let mut turn = 0;
        let work = move |cancel: &Cancel| {
            turn += 1;
            self.perform(&path, turn, cancel)
        };
        let contestant = Contestant::new(name, work)
            .parameter("method", self.method_name())
            .parameter("block_size", self.block)
            .parameter("depth", self.depth)
            .parameter("direct", self.caching == Caching::Direct);
        let contestant =
            if own_threads { contestant.parameter("workers", self.depth) } else { contestant };
        if by_threads { contestant.by_threads() } else { contestant }
    }

    fn queue(&self) -> Option<QueueKind> {
        match self.method {
            Method::Read(method) => method.queue(),
            Method::ReadByThreads => None,
            Method::Write(method) => method.queue(),
        }
    }

    /// Does it; each turn goes on elsewhere in the order, so that no cache below learns it by heart.
    pub(crate) fn perform(&self, path: &Path, turn: u64, cancel: &Cancel) -> Result<Work> {
        let cold = || {
            let files = [path.to_path_buf()];
            bring_about(CacheState::Cold, &files).map(drop).map_err(Error::file(path))
        };
        let file = PlacedFile { files: &RealFileSystem, path, cold: &cold };
        self.perform_on(file, turn, cancel)
    }

    /// The same on any file system.
    fn perform_on(&self, file: PlacedFile<'_>, turn: u64, cancel: &Cancel) -> Result<Work> {
        let PlacedFile { files, path, cold } = file;
        let mut pace = Pace::new(self.time);
        let mut work = Work::default();
        let (mut done, mut elapsed) = (0, Duration::ZERO);
        loop {
            let file = self.open(files, path).map_err(Error::file(path))?;
            let len = file.len().map_err(Error::file(path))?;
            let blocks = u32::try_from(len / self.block as u64).unwrap_or(u32::MAX);
            let places = BlockNumbers::new(self.order, blocks, self.seed, turn);
            let (begin, earlier) = (files.now(), (done, elapsed));
            let mut stretch = Stretch {
                io: self,
                files,
                file,
                len,
                places,
                cancel,
                begin,
                earlier,
                pace,
                done: 0,
            };
            work = stretch.once(work)?;
            (done, elapsed) = (done + stretch.done, stretch.elapsed());
            let is_empty = stretch.done == 0;
            pace = stretch.pace;
            if self.order != Order::Once || is_empty || elapsed >= self.time {
                break;
            }
            if !self.synced {
                cold()?;
            }
        }
        let (done, elapsed) = match self.synced {
            true => (done, elapsed),
            false => {
                let counted = pace.counted(elapsed, done);
                (counted.done, counted.elapsed)
            }
        };
        let bytes = Some(done * self.block as u64);
        Ok(Work { operations: done, bytes, elapsed: Some(elapsed), ..work })
    }

    fn open(&self, files: &dyn FileSystem, path: &Path) -> std::io::Result<Arc<dyn File>> {
        let file = match self.method {
            Method::Read(_) | Method::ReadByThreads => files.open(path, self.caching)?,
            Method::Write(_) => {
                let how = OpenForWrite { create: Create::Existing, caching: self.caching };
                files.open_for_write(path, how)?
            }
        };
        Ok(Arc::from(file))
    }
}

/// The numbers of the blocks to come.
struct BlockNumbers {
    order: Order,
    blocks: u32,
    next: u32,
    /// How many are still to come, where none comes twice.
    left: Option<u32>,
    shuffled: Vec<u32>,
}

impl BlockNumbers {
    fn new(order: Order, blocks: u32, seed: u64, turn: u64) -> Self {
        let shuffled = match order {
            Order::Random => Random::new(seed).permutation(blocks),
            Order::Around | Order::Once => Vec::new(),
        };
        // A step that is prime spreads the turns over the file: else a cache below would hold what each begins with.
        const STEP: u64 = 104_729;
        let next = turn.wrapping_mul(STEP) % u64::from(blocks.max(1));
        let left = (order == Order::Once).then_some(blocks);
        Self { order, blocks, next: u32::try_from(next).unwrap_or(0), left, shuffled }
    }
}

impl Iterator for BlockNumbers {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.blocks == 0 || self.left == Some(0) {
            return None;
        }
        if self.next >= self.blocks {
            self.next = 0;
        }
        let place = self.next;
        self.next += 1;
        self.left = self.left.map(|left| left.saturating_sub(1));
        Some(match self.order {
            Order::Random => u64::from(*self.shuffled.get(place as usize)?),
            Order::Around | Order::Once => place.into(),
        })
    }
}

/// Calls by name.
type Calls = Vec<(&'static str, u64)>;

/// The work under way.
struct Stretch<'a> {
    io: &'a BlockIo,
    files: &'a dyn FileSystem,
    file: Arc<dyn File>,
    len: u64,
    places: BlockNumbers,
    cancel: &'a Cancel,
    begin: Duration,
    /// Blocks done and time spent before, where the file comes again.
    earlier: (u64, Duration),
    pace: Pace,
    done: u64,
}

impl Stretch<'_> {
    /// All of it, until the rate stands or there are no more blocks, with its sync.
    fn once(&mut self, work: Work) -> Result<Work> {
        let calls = match self.io.queue() {
            Some(kind) => self.by_queue(kind),
            None if self.io.method == Method::ReadByThreads => self.by_threads(),
            None => self.by_calls(),
        }?;
        let mut work = work;
        if self.io.synced {
            let begin = self.files.now();
            self.file.sync_data().map_err(Error::system("fdatasync"))?;
            let took = self.files.now().saturating_sub(begin);
            work = work.with_part("fdatasync", took).with_calls("fdatasync", 1);
        }
        Ok(calls.into_iter().fold(work, |work, (name, count)| work.with_calls(name, count)))
    }

    /// Of the turn so far.
    fn elapsed(&self) -> Duration {
        self.earlier.1 + self.files.now().saturating_sub(self.begin)
    }

    fn is_over(&mut self) -> Result<bool> {
        self.cancel.check()?;
        let now = self.elapsed();
        Ok(self.pace.is_over(now, self.earlier.0 + self.done))
    }

    fn buffer(&self) -> AlignedBuffer {
        let mut buffer = AlignedBuffer::zeroed(self.io.block);
        if matches!(self.io.method, Method::Write(_)) {
            Random::new(self.io.seed ^ 1).fill(&mut buffer);
        }
        buffer
    }

    fn by_calls(&mut self) -> Result<Calls> {
        match self.io.method {
            Method::Read(IoMethod::Mmap) => return self.by_mapping(),
            Method::Write(WriteMethod::Mmap) => return self.by_writable_mapping(),
            _ => {}
        }
        let mut buffer = self.buffer();
        self.begin = self.files.now();
        while !self.is_over()? {
            let Some(place) = self.places.next() else { break };
            let offset = place * self.io.block as u64;
            let moved = self.one_call(&mut buffer, offset);
            self.finished(moved)?;
        }
        Ok(match self.io.method {
            Method::Read(IoMethod::Seek) => {
                let calls = self.done * (self.io.block / BLOCK_SIZE) as u64;
                vec![("lseek", calls), ("read", calls)]
            }
            Method::Read(method) => vec![(method.name(), self.done)],
            Method::ReadByThreads => vec![("pread", self.done)],
            Method::Write(method) => vec![(method.name(), self.done)],
        })
    }

    /// One call and, for `seek`, which has single blocks, as many as the block needs.
    fn one_call(&self, buffer: &mut AlignedBuffer, offset: u64) -> std::io::Result<usize> {
        match self.io.method {
            Method::Read(IoMethod::Seek) => {
                let mut done = 0;
                for page in buffer.chunks_mut(BLOCK_SIZE) {
                    done += self.file.seek_and_read(page, offset + done as u64)?;
                }
                Ok(done)
            }
            Method::Read(IoMethod::Preadv) => {
                let mut pages: Vec<_> =
                    buffer.chunks_mut(BLOCK_SIZE).map(std::io::IoSliceMut::new).collect();
                self.file.read_vectored_at(&mut pages, offset)
            }
            Method::Read(_) | Method::ReadByThreads => self.file.read_at(buffer, offset),
            Method::Write(WriteMethod::Pwritev) => {
                let pages: Vec<_> = buffer.chunks(BLOCK_SIZE).map(std::io::IoSlice::new).collect();
                self.file.write_vectored_at(&pages, offset)
            }
            Method::Write(_) => self.file.write_at(buffer, offset),
        }
    }

    /// Takes note of a block.
    fn finished(&mut self, moved: std::io::Result<usize>) -> Result<()> {
        let moved = moved.map_err(Error::system(self.io.method_name()))?;
        if moved < self.io.block {
            let cut = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(Error::system(self.io.method_name())(cut));
        }
        self.done += 1;
        Ok(())
    }

    /// By so many threads, each with one block after the other; this one looks after the time.
    fn by_threads(&mut self) -> Result<Calls> {
        let no_places = BlockNumbers::new(Order::Once, 0, 0, 0);
        let places = Mutex::new(std::mem::replace(&mut self.places, no_places));
        let (over, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let (io, file) = (self.io, self.file.clone());
        let read = || {
            let mut buffer = AlignedBuffer::zeroed(io.block);
            while !over.load(Ordering::Relaxed) {
                let next = places.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(place) = next else { break };
                let moved = file.read_at(&mut buffer, place * io.block as u64)?;
                if moved < io.block {
                    return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof));
                }
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        self.begin = self.files.now();
        let ended = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..io.depth).map(|_| scope.spawn(read)).collect();
            let mut ended = Ok(false);
            while matches!(ended, Ok(false)) && !threads.iter().any(|each| each.is_finished()) {
                std::thread::sleep(LOOK);
                self.done = done.load(Ordering::Relaxed);
                ended = self.is_over();
            }
            over.store(true, Ordering::Relaxed);
            let came = threads.into_iter().map(|thread| thread.join());
            let came: std::io::Result<Vec<()>> = came
                .map(|came| came.unwrap_or_else(|_| Err(std::io::Error::other("a thread ended"))))
                .collect();
            ended.and(came.map_err(Error::system("pread")))
        });
        self.done = done.load(Ordering::Relaxed);
        ended.map(|_| vec![("pread", self.done)])
    }

    /// Every machine page of each block is looked at.
    fn by_mapping(&mut self) -> Result<Calls> {
        let fault = || Error::system("mmap");
        self.begin = self.files.now();
        let mapping =
            self.file.map(usize::try_from(self.len).unwrap_or(usize::MAX)).map_err(fault())?;
        let advice = match self.io.order {
            Order::Random => pagemill_io::MapAdvice::Random,
            Order::Around | Order::Once => pagemill_io::MapAdvice::Sequential,
        };
        mapping.advise(0..mapping.len(), advice).map_err(fault())?;
        while !self.is_over()? {
            let Some(place) = self.places.next() else { break };
            let start = usize::try_from(place * self.io.block as u64).unwrap_or(usize::MAX);
            let touched = mapping
                .touch(start..start.saturating_add(self.io.block), rustix::param::page_size());
            touched.map_err(|_| fault()(rustix::io::Errno::IO.into()))?;
            self.done += 1;
        }
        Ok(vec![("mmap", 1), ("madvise", 1)])
    }

    fn by_writable_mapping(&mut self) -> Result<Calls> {
        let fault = || Error::system("mmap");
        let buffer = self.buffer();
        self.begin = self.files.now();
        let mut mapping = self.file.map_for_write(0..self.len).map_err(fault())?;
        while !self.is_over()? {
            let Some(place) = self.places.next() else { break };
            let start = usize::try_from(place * self.io.block as u64).unwrap_or(usize::MAX);
            mapping.write(start, &buffer).map_err(|_| fault()(rustix::io::Errno::IO.into()))?;
            self.done += 1;
        }
        mapping.sync(0..mapping.len()).map_err(fault())?;
        Ok(vec![("mmap", 1), ("msync", 1)])
    }

    fn by_queue(&mut self, kind: QueueKind) -> Result<Calls> {
        let name = self.io.method_name();
        let fault = || Error::system(name);
        let mut queue = self.files.open_queue(kind, self.io.depth).map_err(fault())?;
        let mut idle: Vec<AlignedBuffer> = (0..self.io.depth).map(|_| self.buffer()).collect();
        let mut in_flight = 0_u32;
        self.begin = self.files.now();
        loop {
            if !self.is_over()? {
                while let Some(buffer) = idle.pop() {
                    let Some(request) = self.request(buffer) else { break };
                    queue.submit(request);
                    in_flight += 1;
                }
                queue.flush().map_err(fault())?;
            }
            if in_flight == 0 {
                break;
            }
            // The next one goes as soon as one came: refilled in batches, fewer would be in flight than the depth says.
            if let Some(back) = queue.wait().map_err(fault())? {
                in_flight -= 1;
                self.finished(back.outcome)?;
                idle.push(back.buffer);
            }
        }
        let moved = match (kind, self.io.method) {
            (QueueKind::IoUring, _) => "ring requests",
            (QueueKind::Worker, Method::Read(_) | Method::ReadByThreads) => "pread",
            (QueueKind::Worker, Method::Write(_)) => "pwrite",
            (QueueKind::Own, _) => "requests",
        };
        Ok(vec![(moved, self.done), ("io_uring_enter", queue.ring_calls())])
    }

    fn request(&mut self, buffer: AlignedBuffer) -> Option<QueuedIo> {
        let offset = self.places.next()? * self.io.block as u64;
        let direction = match self.io.method {
            Method::Read(_) | Method::ReadByThreads => Direction::Read,
            Method::Write(_) => Direction::Write,
        };
        Some(QueuedIo {
            id: offset,
            file: self.file.clone(),
            direction,
            range: 0..buffer.len(),
            buffer,
            offset,
            // What is in the page cache or has to get there is copied by another thread, as the streams have it.
            force_async: self.io.caching == Caching::Buffered,
            lane: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagemill_sim::{
        CloudSheet, Contents, DriveSheet, KernelSettings, SimulatedDisk, VolumeModel,
    };

    /// A turn on a volume of the cloud that is let do 2,000 reads and 60 MiB a second.
    fn rate_of_capped(method: Method, order: Order, block: usize, depth: u32) -> (f64, f64) {
        let sheet = CloudSheet {
            latency: Duration::from_micros(200),
            iops: 2_000,
            rate: 60 << 20,
            largest: 1 << 20,
            burst: Duration::from_millis(100),
            ..CloudSheet::general_purpose()
        };
        let volume = VolumeModel::One(DriveSheet::Cloud(sheet));
        let disk = SimulatedDisk::new(volume, KernelSettings::linux_6());
        let path = Path::new("/file");
        disk.add_file(path, Contents::Stamped { first: 0, blocks: 8192 });
        let (caching, synced) = (Caching::Direct, false);
        let time = Duration::from_millis(500);
        let io = BlockIo { method, caching, order, block, depth, time, seed: 1, synced };
        let cold = || Ok(());
        let file = PlacedFile { files: &disk, path, cold: &cold };
        let work = io.perform_on(file, 1, &Cancel::default()).unwrap();
        let seconds = work.elapsed.unwrap().as_secs_f64();
        (work.operations as f64 / seconds, work.bytes.unwrap() as f64 / seconds)
    }

    /// Turns of 20 ms on such a device told 2,470 reads and 85 to 103 MiB a second.
    #[test]
    fn a_turn_is_long_enough_for_a_cap_to_bite() {
        use IoMethod::{IoUring, Pread};
        for (method, depth) in [(Pread, 1), (IoUring, 4), (IoUring, 16), (IoUring, 64)] {
            let (rate, _) = rate_of_capped(Method::Read(method), Order::Random, 8192, depth);
            assert!((1_900.0..=2_060.0).contains(&rate), "{method:?} {depth}: {rate}");
        }
        for block in [128 << 10, 1 << 20] {
            let (_, bytes) = rate_of_capped(Method::Read(IoUring), Order::Around, block, 4);
            let mebibytes = bytes / f64::from(1 << 20);
            assert!((58.5..=61.5).contains(&mebibytes), "{block}: {mebibytes}");
        }
    }

    #[test]
    fn threads_read_no_block_twice_and_count_each() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let io = BlockIo {
            method: Method::ReadByThreads,
            caching: Caching::Buffered,
            order: Order::Random,
            block: 8192,
            depth: 8,
            time: Duration::from_millis(20),
            seed: 1,
            synced: false,
        };
        let work = io.perform(&path, 1, &Cancel::default()).unwrap();
        assert!(work.operations > 0 && work.calls["pread"] >= work.operations, "{work:?}");
        assert_eq!(work.bytes, Some(work.operations * 8192));
    }

    #[test]
    fn no_turn_begins_where_the_one_before_did_and_none_leaves_a_block_out() {
        for order in [Order::Around, Order::Once, Order::Random] {
            let turn =
                |turn| BlockNumbers::new(order, 100, 7, turn).take(100).collect::<Vec<u64>>();
            let (one, next) = (turn(1), turn(2));
            assert_ne!(one[..10], next[..10], "{order:?}");
            for mut places in [one, next] {
                places.sort_unstable();
                assert_eq!(places, (0..100).collect::<Vec<u64>>(), "{order:?}");
            }
        }
        assert_eq!(BlockNumbers::new(Order::Once, 100, 7, 1).count(), 100);
        assert_eq!(BlockNumbers::new(Order::Around, 0, 7, 1).count(), 0);
    }
}
