//! The seam between this project and the file system: [`FileSystem`], [`File`] and [`IoQueue`].
//!
//! Each method makes single calls and retries nothing, so that a simulated file system can stand
//! behind it with faults and with its own time. What every caller needs besides is in
//! [`Storage`](crate::Storage).
//!
//! Invariant: a method that a file system does not have says so with [`io::ErrorKind::Unsupported`];
//! it never pretends.

use std::any::Any;
use std::ffi::OsString;
use std::fmt::Debug;
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pagemill_sys::{AlignedBuffer, Extent, Mapping, WritableMapping, WriteBack};
use rustix::fd::OwnedFd;

use crate::capabilities::{Capabilities, FileCapabilities};
use crate::storage_traits::StorageTraits;

/// Where files come from.
pub trait FileSystem: Send + Sync + Debug {
    /// Opens an existing file for reading.
    ///
    /// # Errors
    /// What the operating system reports; [`io::ErrorKind::Unsupported`] where the file system has
    /// no direct I/O, or wants an alignment that buffers do not have.
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>>;

    /// Everything in a directory but `.` and `..`, in no particular order.
    ///
    /// # Errors
    /// What the operating system reports.
    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>>;

    /// The same, with sizes and types where they can be had for less than asking for each by its path.
    ///
    /// # Errors
    /// What the operating system reports of the directory. What cannot be told of a name in it is left out.
    fn read_dir_with_metadata(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.read_dir(path)
    }

    /// Size and type of what `path` names, symbolic links followed.
    ///
    /// # Errors
    /// What the operating system reports.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;

    /// Opens a file for reading and writing. A file that is made belongs to its directory for good only
    /// once that was [synced](Self::sync_dir).
    ///
    /// # Errors
    /// What the operating system reports; [`io::ErrorKind::Unsupported`] as for [`open`](Self::open), and
    /// where nothing can be written.
    fn open_for_write(&self, path: &Path, how: OpenForWrite) -> io::Result<Box<dyn File>> {
        let _ = (path, how);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Gives a file another name, in place of what had that name.
    ///
    /// # Errors
    /// What the operating system reports.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Gives a file a second name, which nothing may have yet.
    ///
    /// # Errors
    /// What the operating system reports.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a file's name.
    ///
    /// # Errors
    /// What the operating system reports.
    fn remove(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes a directory that its owner may enter, and the group where it may enter the one above.
    ///
    /// # Errors
    /// What the operating system reports.
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a directory with nothing in it.
    ///
    /// # Errors
    /// What the operating system reports.
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes a symbolic link to `target`.
    ///
    /// # Errors
    /// What the operating system reports.
    fn make_symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        let _ = (target, path);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What `path` itself names: symbolic links are not followed.
    ///
    /// # Errors
    /// What the operating system reports.
    fn node(&self, path: &Path) -> io::Result<Node> {
        let found = self.metadata(path)?;
        Ok(if found.is_dir { Node::Directory } else { Node::File { len: found.len } })
    }

    /// The path without symbolic links, `.` and `..` in it: two names of one file have the same.
    ///
    /// # Errors
    /// What the operating system reports, as of a path that leads nowhere.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.metadata(path)?;
        Ok(path.to_owned())
    }

    /// What tells the file or directory that a path leads to from all others of this machine.
    ///
    /// # Errors
    /// What the operating system reports; [`io::ErrorKind::Unsupported`] where files are not those of this machine.
    fn identity(&self, path: &Path) -> io::Result<Identity> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What changes with the file that a path leads to, as it is now, also where another machine has changed it.
    ///
    /// # Errors
    /// What the operating system reports; [`io::ErrorKind::Unsupported`] where nothing tells.
    fn state(&self, path: &Path) -> io::Result<FileState> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Who may do what with a file or directory.
    ///
    /// # Errors
    /// What the operating system reports; [`io::ErrorKind::Unsupported`] where there are no owners and modes.
    fn access(&self, path: &Path) -> io::Result<Access> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Gives a directory the permissions of another, and where this process may do that, its owner and group.
    ///
    /// # Errors
    /// What the operating system reports.
    fn set_access_like(&self, path: &Path, like: &Path) -> io::Result<()> {
        let _ = (path, like);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// How much space there is in the file system of a file or directory.
    ///
    /// # Errors
    /// What the operating system reports; [`io::ErrorKind::Unsupported`] where nobody knows.
    fn space_left(&self, path: &Path) -> io::Result<SpaceLeft> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Waits until the device holds the names in a directory.
    ///
    /// # Errors
    /// What the operating system reports, EINTR included.
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// A queue for reads and writes that go on while their caller does something else, at most `depth` of
    /// them at once.
    ///
    /// # Errors
    /// Why there can be none of this kind.
    fn open_queue(&self, kind: QueueKind, depth: u32) -> io::Result<Box<dyn IoQueue>> {
        let _ = (kind, depth);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What the file system is like.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// The contents of a file of at most `limit` bytes in one call; `None` where that takes as many calls as opening it,
    /// asking for its size and reading it. Of a longer file it gives more bytes than `limit`, or all.
    ///
    /// # Errors
    /// What the operating system reports.
    fn read_whole(&self, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let _ = (path, limit);
        Ok(None)
    }

    /// What lies below a file.
    fn place(&self, path: &Path) -> StorageTraits {
        let _ = path;
        StorageTraits::default()
    }

    /// The time since some fixed moment. A simulated file system has its own.
    fn now(&self) -> Duration {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

/// Whether reads go through the kernel's page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Caching {
    /// Through it.
    #[default]
    Buffered,
    /// Past it (`O_DIRECT`).
    Direct,
}

/// How a file is opened for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct OpenForWrite {
    /// Which files there may be.
    pub create: Create,
    /// Through the page cache or past it.
    pub caching: Caching,
}

/// Which file an opening for writing wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Create {
    /// One that exists.
    #[default]
    Existing,
    /// One that does not exist, and is made.
    New,
    /// One that exists, or is made.
    OrNew,
}

/// How an [`IoQueue`] gets its work done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueKind {
    /// By threads of this process.
    Worker,
    /// By the kernel, through a ring of requests.
    IoUring,
    /// In the file system's own way, as requests over a network.
    Own,
}

/// What the kernel is told about reads to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Advice {
    /// Bytes that are wanted soon: begin to read them.
    WillNeed,
    /// The file is read in one direction: read ahead further.
    Sequential,
    /// The file is read in random order: do not read ahead.
    Random,
    /// Nothing is known.
    Normal,
}

/// How much of a stretch of a file is in the kernel's page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Residency {
    /// Bytes that are.
    pub cached: u64,
    /// Bytes asked about.
    pub bytes: u64,
}

impl Residency {
    /// True when all of it is.
    pub fn is_whole(self) -> bool {
        self.cached >= self.bytes
    }
}

/// One open file.
#[expect(clippy::len_without_is_empty, reason = "asking costs a system call; nobody needs it")]
pub trait File: Send + Sync + Debug {
    /// Reads once at `offset`, without moving any file position. Fewer bytes than asked for mean
    /// nothing; none, for a buffer that is not empty, mean the end of the file.
    ///
    /// # Errors
    /// What the operating system reports, EINTR included.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// The file's size in bytes, asked for anew.
    ///
    /// # Errors
    /// What the operating system reports.
    fn len(&self) -> io::Result<u64>;

    /// Reads once at `offset` into several buffers, one after the other. Otherwise as
    /// [`read_at`](Self::read_at).
    ///
    /// # Errors
    /// What the operating system reports, EINTR included.
    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        match bufs.iter_mut().find(|buf| !buf.is_empty()) {
            Some(buf) => self.read_at(buf, offset),
            None => Ok(0),
        }
    }

    /// Moves the file position to `offset` and reads once from there: two calls, which nobody comes
    /// between. Otherwise as [`read_at`](Self::read_at).
    ///
    /// # Errors
    /// What the operating system reports, EINTR included.
    fn seek_and_read(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read_at(buf, offset)
    }

    /// Tells the kernel what to expect of a stretch of the file, in bytes.
    ///
    /// # Errors
    /// What the operating system reports. Advice is never needed for a right result.
    fn advise(&self, range: Range<u64>, advice: Advice) -> io::Result<()> {
        let _ = (range, advice);
        Ok(())
    }

    /// How much of a stretch of the file is in the page cache.
    ///
    /// # Errors
    /// What the operating system reports; [`io::ErrorKind::Unsupported`] where it cannot tell.
    fn residency(&self, range: Range<u64>) -> io::Result<Residency> {
        let _ = range;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The first `len` bytes of the file as memory.
    ///
    /// # Errors
    /// What the operating system reports; [`io::ErrorKind::Unsupported`] where files are not mapped.
    fn map(&self, len: usize) -> io::Result<Mapping> {
        let _ = len;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Writes once at `offset`, without moving any file position. The file grows when need be. Fewer
    /// bytes than given mean nothing.
    ///
    /// # Errors
    /// What the operating system reports, EINTR included; [`io::ErrorKind::Unsupported`] where nothing can
    /// be written.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let _ = (buf, offset);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Writes once at `offset` from several buffers, one after the other. Otherwise as
    /// [`write_at`](Self::write_at).
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        match bufs.iter().find(|buf| !buf.is_empty()) {
            Some(buf) => self.write_at(buf, offset),
            None => Ok(0),
        }
    }

    /// A range of the file, in bytes, as memory to write to. It begins at a multiple of the machine's page
    /// size.
    ///
    /// # Errors
    /// What the operating system reports; [`io::ErrorKind::Unsupported`] where files are not mapped.
    fn map_for_write(&self, range: Range<u64>) -> io::Result<WritableMapping> {
        let _ = range;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Takes space on the device for a range, in bytes; what was not written before reads as zeros, and
    /// the file grows when need be. The kernel's own call: nothing is written in its place.
    ///
    /// # Errors
    /// What the operating system reports, EINTR included. EOPNOTSUPP where the file system cannot.
    fn allocate(&self, range: Range<u64>) -> io::Result<()> {
        let _ = range;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// As [`allocate`](Self::allocate), but the file stays as long as it is: what is written there later finds its
    /// space, and nobody sees a longer file before.
    ///
    /// # Errors
    /// What the operating system reports; [`io::ErrorKind::Unsupported`] where the file system cannot.
    fn reserve(&self, range: Range<u64>) -> io::Result<()> {
        let _ = range;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Cuts the file, or lengthens it with bytes that read as zeros and take no space.
    ///
    /// # Errors
    /// What the operating system reports, EINTR included.
    fn set_len(&self, len: u64) -> io::Result<()> {
        let _ = len;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Waits until the device holds what was written, and what it takes to find it (`fdatasync`).
    ///
    /// # Errors
    /// What the operating system reports, EINTR included. After a failure nobody knows what the device
    /// holds, and a later call may claim success.
    fn sync_data(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// As [`sync_data`](Self::sync_data), with all that is known of the file (`fsync`).
    ///
    /// # Errors
    /// As [`sync_data`](Self::sync_data).
    fn sync_all(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends what was written to a range, in bytes, to the device. Makes nothing durable.
    ///
    /// # Errors
    /// What the operating system reports.
    fn write_back(&self, range: Range<u64>, how: WriteBack) -> io::Result<()> {
        let _ = (range, how);
        Ok(())
    }

    /// Makes this file, which is empty, have all bytes of `from` by sharing its blocks (`FICLONE`): all of them or
    /// none.
    ///
    /// # Errors
    /// What the operating system reports, EINTR included: EXDEV, EOPNOTSUPP, ENOTTY or EINVAL where these two files
    /// cannot share; [`io::ErrorKind::Unsupported`] where there is no such call, or `from` is of another file system
    /// of this seam.
    fn share_blocks_of(&self, from: &dyn File) -> io::Result<()> {
        let _ = from;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Copies once within the kernel (`copy_file_range`), to the same range, in bytes, that is copied from. Fewer bytes
    /// than asked for mean nothing, and neither do none, which some file systems answer before the end.
    ///
    /// # Errors
    /// As [`share_blocks_of`](Self::share_blocks_of).
    fn copy_range_of(&self, from: &dyn File, range: Range<u64>) -> io::Result<u64> {
        let _ = (from, range);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The next bytes from `offset` on that take space; `None` when there are only holes up to the end. A file without
    /// holes is all such bytes.
    ///
    /// # Errors
    /// What the operating system reports; [`io::ErrorKind::Unsupported`] where it cannot tell.
    fn data_from(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        let _ = offset;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Where the file lies on its device; what is changed in the page cache is written back first.
    ///
    /// # Errors
    /// What the operating system reports; [`io::ErrorKind::Unsupported`] where it cannot tell.
    fn extents(&self) -> io::Result<Vec<Extent>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// About how much time a processor needs to make a stretch of the file, in bytes, beyond copying it: none for a file that
    /// lies somewhere, more for one whose pages are made when they are read.
    fn making_time(&self, range: Range<u64>) -> Duration {
        let _ = range;
        Duration::ZERO
    }

    /// What the file can do besides being read.
    fn capabilities(&self) -> FileCapabilities {
        FileCapabilities::default()
    }

    /// True when the file belongs to this process's user, whom the kernel tells which of its pages are in
    /// memory.
    fn is_own(&self) -> bool {
        false
    }

    /// The descriptor, for calls that no method above makes; `None` where there is no such thing.
    fn descriptor(&self) -> Option<&Arc<OwnedFd>> {
        None
    }

    /// The file as what it is, so that a queue of a file system without descriptors knows its own
    /// files; `None` where none needs that.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// Reads and writes that go on while their caller does something else.
///
/// Each owns its buffer and its file until it comes back, so nothing can be freed under the kernel's
/// hands. Dropping a queue waits for what is in flight.
pub trait IoQueue: Send + Debug {
    /// Takes a read or write on. It may begin at once or with [`flush`](Self::flush).
    fn submit(&mut self, read: QueuedIo);

    /// Makes sure that all taken on have begun.
    ///
    /// # Errors
    /// What the operating system reports. They stay taken on.
    fn flush(&mut self) -> io::Result<()>;

    /// One that has come back, if there is one now: waits for nothing.
    fn poll(&mut self) -> Option<FinishedIo>;

    /// Waits for one to come back; `None` when none is in flight.
    ///
    /// # Errors
    /// What the operating system reports, but for EINTR.
    fn wait(&mut self) -> io::Result<Option<FinishedIo>>;

    /// Calls made so far to hand them to the kernel or to wait for them, beside the reads and writes
    /// themselves (`io_uring_enter`).
    fn ring_calls(&self) -> u64 {
        0
    }
}

/// A read or a write for an [`IoQueue`].
#[derive(Debug)]
pub struct QueuedIo {
    /// Chosen by the caller; comes back with the outcome.
    pub id: u64,
    /// The file.
    pub file: Arc<dyn File>,
    /// Whether the bytes come from the file or go to it.
    pub direction: Direction,
    /// Where the bytes go, or come from.
    pub buffer: AlignedBuffer,
    /// Which part of the buffer, in bytes.
    pub range: Range<usize>,
    /// Where in the file they are, in bytes.
    pub offset: u64,
    /// True when the kernel should not try to serve it on the submitting thread: copying from or to the page
    /// cache then does not hold up the submitter.
    pub force_async: bool,
    /// The lane it belongs to, if it matters which thread makes it.
    pub lane: Option<Lane>,
}

/// Reads of one lane are made by one thread, one after the other; those of different lanes by different
/// threads, where there are as many, and of as many thread numbers modulo `of`: that is how btrfs tells
/// mirrors apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lane {
    /// From 0, below `of`.
    pub number: u32,
    /// How many lanes there are.
    pub of: u32,
}

/// Where bytes move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the file to the buffer.
    Read,
    /// From the buffer to the file.
    Write,
}

/// A read or write that came back.
#[derive(Debug)]
pub struct FinishedIo {
    /// As given.
    pub id: u64,
    /// As given; with what was read.
    pub buffer: AlignedBuffer,
    /// How many bytes moved. As for [`File::read_at`] and [`File::write_at`].
    pub outcome: io::Result<usize>,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// The name, without the directory.
    pub name: OsString,
    /// Size and type of what it leads to, where the listing tells at no further cost.
    pub metadata: Option<Metadata>,
}

impl DirEntry {
    /// A name of which nothing else is known.
    pub fn named(name: impl Into<OsString>) -> Self {
        Self { name: name.into(), metadata: None }
    }
}

/// What is known of a file without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// Size in bytes.
    pub len: u64,
    /// True for a directory.
    pub is_dir: bool,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A file with contents.
    File {
        /// Size in bytes.
        len: u64,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Link {
        /// Where it leads, as it is written in the link.
        target: PathBuf,
    },
    /// A pipe or a character device: it takes what is written to it.
    Stream,
    /// A socket or a block device.
    Other,
}

/// What tells a file or directory from all others of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The device.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// What a file is when it was looked at. One that is changed has another afterwards, if some time lies between two changes: clocks of
/// file systems are coarse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState {
    /// Which file it is.
    pub identity: Identity,
    /// Its length in bytes.
    pub len: u64,
    /// When it was changed last, by the clock of its file system, since 1970: `st_ctime`, which nobody can set.
    pub changed: Duration,
}

/// Who may do what with a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The number of the account that owns it.
    pub owner: u32,
    /// The bits of its mode (`st_mode`).
    pub mode: u32,
}

/// The space of one file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceLeft {
    /// Tells one file system from another.
    pub file_system: u64,
    /// What this process may still take, in bytes.
    pub bytes: u64,
}
