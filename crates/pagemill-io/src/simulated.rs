//! A file system with injected faults, for tests: real files underneath, and between them and the
//! reader what disks, kernels and other processes do on bad days.
//!
//! Faults of two sorts: a script of [`Disturbance`]s, one per read or write call in the order of calls,
//! most of which a correct reader or writer survives; and lasting faults at a place (an unreadable byte, a file that
//! was cut or removed), which it must report.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::capabilities::FileCapabilities;
use crate::real_files::RealFileSystem;
use pagemill_sys::{Extent, Mapping, WritableMapping, WriteBack};

use crate::seam::{
    Access, Caching, DirEntry, Direction, File, FileSystem, FinishedIo, Identity, IoQueue,
    Metadata, Node, OpenForWrite, QueueKind, QueuedIo, SpaceLeft,
};
use crate::worker_queue::WorkerQueue;

/// What happens to one read or write call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// Nothing.
    None,
    /// The call takes or returns at most this many bytes (at least one, so that it is not the end).
    Short(usize),
    /// The call fails with EINTR.
    Interrupted,
    /// The call fails with ENOSPC.
    NoSpace,
}

/// The faulty file system. Clones share their faults.
#[derive(Debug, Clone, Default)]
pub struct FaultyFileSystem {
    real: RealFileSystem,
    faults: Arc<Mutex<Faults>>,
}

#[derive(Debug, Default)]
struct Faults {
    script: VecDeque<Disturbance>,
    by_path: HashMap<PathBuf, FileFaults>,
    failing_syncs: u32,
    allocation_refused: Option<Errno>,
    copies_refused: Option<Errno>,
    /// Where copies within the kernel come to nothing.
    copies_end_at: Option<u64>,
    /// Bytes up to which a file can grow.
    space: Option<u64>,
}

#[derive(Debug, Default)]
struct FileFaults {
    unreadable: Vec<u64>,
    cut_at: Option<u64>,
    vanished: bool,
}

impl FaultyFileSystem {
    /// Appends to the script: one entry for each of the next read calls, on whatever file.
    pub fn disturb(&self, script: impl IntoIterator<Item = Disturbance>) {
        self.faults().script.extend(script);
    }

    /// Every read of the file that covers the byte at `offset` fails with EIO.
    pub fn make_unreadable(&self, path: &Path, offset: u64) {
        self.faults().of(path).unreadable.push(offset);
    }

    /// The file ends at `len` for every read from now on, while its size is still told as before:
    /// it was cut after it was looked at.
    pub fn cut(&self, path: &Path, len: u64) {
        self.faults().of(path).cut_at = Some(len);
    }

    /// The file can no longer be opened or looked at; where it is open it stays readable, and
    /// directories still list it: it was removed after they were read.
    pub fn vanish(&self, path: &Path) {
        self.faults().of(path).vanished = true;
    }

    /// The next `count` syncs of files fail with EIO.
    pub fn fail_syncs(&self, count: u32) {
        self.faults().failing_syncs = count;
    }

    /// Every allocation fails with this error.
    pub fn refuse_allocation(&self, errno: Errno) {
        self.faults().allocation_refused = Some(errno);
    }

    /// Every call that copies from file to file, or lets files share blocks, fails with this error.
    pub fn refuse_copies(&self, errno: Errno) {
        self.faults().copies_refused = Some(errno);
    }

    /// Copies within the kernel come to this offset of a file, and then to nothing.
    pub fn end_copies_at(&self, offset: u64) {
        self.faults().copies_end_at = Some(offset);
    }

    /// There is space for this many bytes in a file, and not for more. A write that begins within takes
    /// what fits; an allocation takes it too, and fails.
    pub fn limit_space(&self, bytes: u64) {
        self.faults().space = Some(bytes);
    }

    fn check_sync(&self) -> io::Result<()> {
        let mut faults = self.faults();
        match faults.failing_syncs.checked_sub(1) {
            Some(left) => {
                faults.failing_syncs = left;
                Err(Errno::IO.into())
            }
            None => Ok(()),
        }
    }

    fn wrap(&self, file: Box<dyn File>, path: &Path) -> Box<dyn File> {
        Box::new(FaultyFile { file, path: path.to_owned(), files: self.clone() })
    }

    /// Takes back every fault.
    pub fn heal(&self) {
        *self.faults() = Faults::default();
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_present(&self, path: &Path) -> io::Result<()> {
        match self.faults().by_path.get(path) {
            Some(file) if file.vanished => Err(Errno::NOENT.into()),
            _ => Ok(()),
        }
    }
}

impl Faults {
    fn of(&mut self, path: &Path) -> &mut FileFaults {
        self.by_path.entry(path.to_owned()).or_default()
    }

    /// How many of `wanted` bytes a call takes or returns at most, after the script.
    fn next_call(&mut self, wanted: usize) -> io::Result<usize> {
        match self.script.pop_front().unwrap_or(Disturbance::None) {
            Disturbance::None => Ok(wanted),
            Disturbance::Short(most) => Ok(wanted.min(most.max(1))),
            Disturbance::Interrupted => Err(Errno::INTR.into()),
            Disturbance::NoSpace => Err(Errno::NOSPC.into()),
        }
    }

    /// How many of `wanted` bytes at `offset` a write takes, after the faults.
    fn next_write(&mut self, wanted: usize, offset: u64) -> io::Result<usize> {
        let allowed = self.next_call(wanted)?;
        let left = self.space.map_or(u64::MAX, |space| space.saturating_sub(offset));
        match allowed.min(usize::try_from(left).unwrap_or(usize::MAX)) {
            0 if wanted > 0 => Err(Errno::NOSPC.into()),
            allowed => Ok(allowed),
        }
    }

    /// Up to where a copy of a range comes, after the faults.
    fn next_copy(&mut self, path: &Path, range: Range<u64>) -> io::Result<Range<u64>> {
        if let Some(errno) = self.copies_refused {
            return Err(errno.into());
        }
        let end = range.end.min(self.copies_end_at.unwrap_or(u64::MAX)).max(range.start);
        let wanted = usize::try_from(end - range.start).unwrap_or(usize::MAX);
        let wanted = self.next_write(wanted, range.start)?;
        let unreadable = self.by_path.get(path).is_some_and(|file| {
            file.unreadable.iter().any(|byte| (range.start..end).contains(byte))
        });
        if unreadable {
            Err(Errno::IO.into())
        } else {
            Ok(range.start..range.start + wanted as u64)
        }
    }

    /// How many of `wanted` bytes at `offset` a call returns at most, after the faults.
    fn next_read(&mut self, path: &Path, wanted: usize, offset: u64) -> io::Result<usize> {
        let allowed = self.next_call(wanted)?;
        let Some(file) = self.by_path.get(path) else { return Ok(allowed) };
        let left = file.cut_at.map_or(u64::MAX, |end| end.saturating_sub(offset));
        let allowed = allowed.min(usize::try_from(left).unwrap_or(usize::MAX));
        let range = offset..offset.saturating_add(allowed as u64);
        if file.unreadable.iter().any(|byte| range.contains(byte)) {
            return Err(Errno::IO.into());
        }
        Ok(allowed)
    }
}

impl FileSystem for FaultyFileSystem {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        self.check_present(path)?;
        Ok(self.wrap(self.real.open(path, caching)?, path))
    }

    fn open_for_write(&self, path: &Path, how: OpenForWrite) -> io::Result<Box<dyn File>> {
        self.check_present(path)?;
        Ok(self.wrap(self.real.open_for_write(path, how)?, path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.real.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.real.link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.real.remove(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.real.create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.real.remove_dir(path)
    }

    fn make_symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        self.real.make_symlink(target, path)
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        self.check_present(path)?;
        self.real.node(path)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.real.resolve(path)
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        self.real.identity(path)
    }

    fn access(&self, path: &Path) -> io::Result<Access> {
        self.real.access(path)
    }

    fn set_access_like(&self, path: &Path, like: &Path) -> io::Result<()> {
        self.real.set_access_like(path, like)
    }

    fn space_left(&self, path: &Path) -> io::Result<SpaceLeft> {
        self.real.space_left(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.check_sync()?;
        self.real.sync_dir(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.real.read_dir(path)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.check_present(path)?;
        self.real.metadata(path)
    }

    fn open_queue(&self, kind: QueueKind, depth: u32) -> io::Result<Box<dyn IoQueue>> {
        Ok(match kind {
            QueueKind::Worker => Box::new(WorkerQueue::new(depth)?),
            QueueKind::IoUring => Box::new(ShuffledQueue::default()),
            QueueKind::Own => return Err(io::ErrorKind::Unsupported.into()),
        })
    }
}

#[derive(Debug)]
struct FaultyFile {
    file: Box<dyn File>,
    path: PathBuf,
    files: FaultyFileSystem,
}

impl File for FaultyFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let allowed = self.files.faults().next_read(&self.path, buf.len(), offset)?;
        self.file.read_at(&mut buf[..allowed], offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn map(&self, len: usize) -> io::Result<Mapping> {
        self.file.map(len)
    }

    fn capabilities(&self) -> FileCapabilities {
        FileCapabilities { residency: false, ..FileCapabilities::ALL }
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let allowed = self.files.faults().next_write(buf.len(), offset)?;
        self.file.write_at(&buf[..allowed], offset)
    }

    fn map_for_write(&self, range: Range<u64>) -> io::Result<WritableMapping> {
        self.file.map_for_write(range)
    }

    fn allocate(&self, range: Range<u64>) -> io::Result<()> {
        let (refused, space) = {
            let faults = self.files.faults();
            (faults.allocation_refused, faults.space.unwrap_or(u64::MAX))
        };
        match refused {
            Some(errno) => Err(errno.into()),
            None if range.end > space => {
                self.file.allocate(range.start..space.max(range.start + 1))?;
                Err(Errno::NOSPC.into())
            }
            None => self.file.allocate(range),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.files.check_sync()?;
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.files.check_sync()?;
        self.file.sync_all()
    }

    fn write_back(&self, range: Range<u64>, how: WriteBack) -> io::Result<()> {
        self.file.write_back(range, how)
    }

    fn share_blocks_of(&self, from: &dyn File) -> io::Result<()> {
        let from = Self::of(from)?;
        let len = from.file.len()?;
        let allowed = self.files.faults().next_copy(&from.path, 0..len)?;
        if allowed.end < len {
            return Err(Errno::NOSPC.into());
        }
        self.file.share_blocks_of(&*from.file)
    }

    fn copy_range_of(&self, from: &dyn File, range: Range<u64>) -> io::Result<u64> {
        let from = Self::of(from)?;
        let allowed = self.files.faults().next_copy(&from.path, range)?;
        if allowed.is_empty() {
            return Ok(0);
        }
        self.file.copy_range_of(&*from.file, allowed)
    }

    fn extents(&self) -> io::Result<Vec<Extent>> {
        self.file.extents()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl FaultyFile {
    fn of(file: &dyn File) -> io::Result<&Self> {
        let found = file.as_any().and_then(|file| file.downcast_ref::<Self>());
        found.ok_or_else(|| io::ErrorKind::Unsupported.into())
    }
}

/// Stands for a ring: reads and writes come back in an order that has nothing to do with that of their
/// beginning, but is the same in each run.
#[derive(Debug, Default)]
struct ShuffledQueue {
    reads: Vec<QueuedIo>,
    step: usize,
}

impl IoQueue for ShuffledQueue {
    fn submit(&mut self, read: QueuedIo) {
        self.reads.push(read);
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn poll(&mut self) -> Option<FinishedIo> {
        None
    }

    fn wait(&mut self) -> io::Result<Option<FinishedIo>> {
        if self.reads.is_empty() {
            return Ok(None);
        }
        self.step += 7;
        let QueuedIo { id, file, direction, mut buffer, range, offset, .. } =
            self.reads.swap_remove(self.step % self.reads.len());
        let outcome = match direction {
            Direction::Read => file.read_at(&mut buffer[range], offset),
            Direction::Write => file.write_at(&buffer[range], offset),
        };
        Ok(Some(FinishedIo { id, buffer, outcome }))
    }
}
