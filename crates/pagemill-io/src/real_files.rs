//! The operating system's files behind the seam.
//!
//! Invariants: every method of [`File`] is one system call, but for the two that say otherwise; a
//! file opened for direct I/O is never read or written through the page cache.

use std::ffi::{CStr, OsStr};
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use pagemill_format::BLOCK_SIZE;
use pagemill_sys::{ALIGNMENT, Extent, Mapping, WritableMapping, WriteBack};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, Dir, FallocateFlags, FileType, Gid, Mode, OFlags, SeekFrom, Statx, StatxFlags,
    Uid,
};

use crate::capabilities::FileCapabilities;
use crate::refusal::Refusal;
use crate::ring_queue::RingQueue;
use crate::seam::{
    Access, Advice, Caching, Create, DirEntry, File, FileState, FileSystem, Identity, IoQueue,
    Metadata, Node, OpenForWrite, QueueKind, Residency, SpaceLeft,
};
use crate::storage_traits::StorageTraits;
use crate::worker_queue::WorkerQueue;

/// The operating system's files.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFileSystem;

impl FileSystem for RealFileSystem {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        open(path, OFlags::RDONLY, caching, Mode::empty())
    }

    fn open_for_write(&self, path: &Path, how: OpenForWrite) -> io::Result<Box<dyn File>> {
        let create = match how.create {
            Create::Existing => OFlags::empty(),
            Create::New => OFlags::CREATE | OFlags::EXCL,
            Create::OrNew => OFlags::CREATE,
        };
        let mode = match how.create {
            Create::Existing => Mode::empty(),
            Create::New | Create::OrNew => Mode::from_raw_mode(mode_in(path, 0o640, 0o600)),
        };
        let opened = open(path, OFlags::RDWR | create, how.caching, mode);
        let file = opened.inspect_err(|error| {
            // Linux makes the file before it finds that it cannot be opened past the page cache.
            if how.create == Create::New && error.kind() == io::ErrorKind::Unsupported {
                let _ = rustix::fs::unlink(path);
            }
        })?;
        if how.create != Create::Existing
            && let Some(fd) = file.descriptor()
        {
            give_to_owner_of_directory(path, fd)?;
        }
        Ok(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::rename(from, to)?)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::link(from, to)?)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlink(path)?)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mode = mode_in(path, 0o750, 0o700);
        rustix::fs::mkdir(path, Mode::from_raw_mode(mode))?;
        if rustix::process::geteuid().is_root() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            give_to_owner_of_directory(path, rustix::fs::open(path, flags, Mode::empty())?)?;
        }
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::rmdir(path)?)
    }

    fn make_symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        std::os::unix::fs::symlink(target, path)?;
        if rustix::process::geteuid().is_root() {
            let owner = rustix::fs::stat(directory_of(path))?;
            std::os::unix::fs::lchown(path, Some(owner.st_uid), Some(owner.st_gid))?;
        }
        Ok(())
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        let found = std::fs::metadata(path)?;
        Ok(Identity { device: found.dev(), inode: found.ino() })
    }

    fn state(&self, path: &Path) -> io::Result<FileState> {
        // What a network file system keeps of a file for a while is asked for again: another machine may have changed it.
        let flags = AtFlags::STATX_FORCE_SYNC;
        let wanted = StatxFlags::INO | StatxFlags::SIZE | StatxFlags::CTIME;
        let found = rustix::fs::statx(CWD, path, flags, wanted)?;
        if !StatxFlags::from_bits_retain(found.stx_mask).contains(wanted) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let device = rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor);
        let seconds = u64::try_from(found.stx_ctime.tv_sec).map_err(io::Error::other)?;
        Ok(FileState {
            identity: Identity { device, inode: found.stx_ino },
            len: found.stx_size,
            changed: Duration::new(seconds, found.stx_ctime.tv_nsec),
        })
    }

    fn access(&self, path: &Path) -> io::Result<Access> {
        let found = std::fs::metadata(path)?;
        Ok(Access { owner: found.uid(), mode: found.mode() })
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        let found = std::fs::symlink_metadata(path)?;
        let kind = found.file_type();
        Ok(if kind.is_symlink() {
            Node::Link { target: std::fs::read_link(path)? }
        } else if kind.is_dir() {
            Node::Directory
        } else if kind.is_file() {
            Node::File { len: found.len() }
        } else if kind.is_fifo() || kind.is_char_device() {
            Node::Stream
        } else {
            Node::Other
        })
    }

    fn set_access_like(&self, path: &Path, like: &Path) -> io::Result<()> {
        let wanted = rustix::fs::stat(like)?;
        if rustix::process::geteuid().is_root() {
            let owner = (Uid::from_raw(wanted.st_uid), Gid::from_raw(wanted.st_gid));
            rustix::fs::chown(path, Some(owner.0), Some(owner.1))?;
        }
        Ok(rustix::fs::chmod(path, Mode::from_raw_mode(wanted.st_mode))?)
    }

    fn space_left(&self, path: &Path) -> io::Result<SpaceLeft> {
        let found = rustix::fs::statvfs(path)?;
        let file_system = rustix::fs::stat(path)?.st_dev;
        Ok(SpaceLeft { file_system, bytes: found.f_bavail.saturating_mul(found.f_frsize) })
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = || rustix::fs::open(path, flags, Mode::empty());
        match rustix::fs::fsync(rustix::io::retry_on_intr(open)?) {
            // Some file systems do not sync directories, and say so in these ways; PostgreSQL passes
            // them over too (`fsync_fname_ext`, `src/backend/storage/file/fd.c`).
            Err(rustix::io::Errno::BADF | rustix::io::Errno::INVAL) => Ok(()),
            synced => Ok(synced?),
        }
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        std::fs::read_dir(path)?.map(|entry| Ok(DirEntry::named(entry?.file_name()))).collect()
    }

    fn read_dir_with_metadata(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = || rustix::fs::open(path, flags, Mode::empty());
        let directory = rustix::io::retry_on_intr(open)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if !matches!(name.to_bytes(), b"." | b"..") {
                let metadata = metadata_in(&directory, name);
                entries
                    .push(DirEntry { name: OsStr::from_bytes(name.to_bytes()).into(), metadata });
            }
        }
        Ok(entries)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let found = std::fs::metadata(path)?;
        Ok(Metadata { len: found.len(), is_dir: found.is_dir() })
    }

    fn place(&self, path: &Path) -> StorageTraits {
        StorageTraits::of(path)
    }

    fn open_queue(&self, kind: QueueKind, depth: u32) -> io::Result<Box<dyn IoQueue>> {
        Ok(match kind {
            QueueKind::Worker => Box::new(WorkerQueue::new(depth)?),
            QueueKind::IoUring => Box::new(RingQueue::new(depth)?),
            QueueKind::Own => return Err(io::ErrorKind::Unsupported.into()),
        })
    }
}

/// Size and type of what a name in an open directory leads to: the kernel then walks no path.
fn metadata_in(directory: &OwnedFd, name: &CStr) -> Option<Metadata> {
    let mask = StatxFlags::SIZE | StatxFlags::TYPE;
    let found = rustix::fs::statx(directory, name, AtFlags::empty(), mask).ok()?;
    let is_dir = FileType::from_raw_mode(found.stx_mode.into()) == FileType::Directory;
    Some(Metadata { len: found.stx_size, is_dir })
}

/// The mode of what is made in a directory: for the group too where it may read the directory, as PostgreSQL has it all over
/// a cluster (`pg_file_create_mode` in `src/common/file_perm.c`, PostgreSQL 14 to 18).
fn mode_in(path: &Path, with_group: u32, owner_only: u32) -> u32 {
    const GROUP_READS: u32 = 0o050;
    let found = rustix::fs::stat(directory_of(path));
    let for_group = found.is_ok_and(|found| found.st_mode & GROUP_READS == GROUP_READS);
    if for_group { with_group } else { owner_only }
}

fn directory_of(path: &Path) -> &Path {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    directory.unwrap_or(Path::new("."))
}

/// What root makes in a directory of somebody else is theirs: a server could not open files that root kept, and
/// refuses to run as root.
fn give_to_owner_of_directory(path: &Path, fd: impl AsFd) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let owner = rustix::fs::stat(directory_of(path))?;
    let found = rustix::fs::fstat(&fd)?;
    if (owner.st_uid, owner.st_gid) == (found.st_uid, found.st_gid) {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
    Ok(rustix::fs::fchown(fd, Some(uid), Some(gid))?)
}

fn open(path: &Path, flags: OFlags, caching: Caching, mode: Mode) -> io::Result<Box<dyn File>> {
    // NONBLOCK does nothing to a regular file, and keeps a fifo under a relation's name from
    // holding the caller forever.
    let mut flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    if caching == Caching::Direct {
        flags |= OFlags::DIRECT;
    }
    let open = || rustix::fs::open(path, flags, mode);
    let fd = match rustix::io::retry_on_intr(open) {
        Err(rustix::io::Errno::INVAL) if caching == Caching::Direct => {
            return Err(Refusal::NoDirectIo.into());
        }
        opened => opened?,
    };
    if caching == Caching::Direct {
        check_alignment(&fd)?;
    }
    Ok(Box::new(RealFile::of(fd)))
}

/// Refuses a file whose direct reads want more than they get: buffers start at a multiple of
/// [`ALIGNMENT`], offsets and lengths are multiples of a block. A kernel that does not tell (before
/// Linux 6.1) finds fault with the read itself.
fn check_alignment(fd: &OwnedFd) -> io::Result<()> {
    let found = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    let told = |found: &Statx| found.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    let Some(found) = found.ok().filter(told) else { return Ok(()) };
    let (memory, offset) = (found.stx_dio_mem_align as usize, found.stx_dio_offset_align as usize);
    if memory == 0 || offset == 0 {
        return Err(Refusal::NoDirectIoForFile.into());
    }
    if !ALIGNMENT.is_multiple_of(memory) || !BLOCK_SIZE.is_multiple_of(offset) {
        return Err(Refusal::DirectAlignment { memory, offset }.into());
    }
    Ok(())
}

/// A file of the operating system.
#[derive(Debug)]
pub(crate) struct RealFile {
    fd: Arc<OwnedFd>,
    /// Held by whoever moves the file position until it has read from there.
    position: Mutex<()>,
    /// Whether the kernel tells what of the file is cached.
    tells_residency: OnceLock<bool>,
}

/// `statfs` calls overlayfs so (`OVERLAYFS_SUPER_MAGIC`, Linux `include/uapi/linux/magic.h`).
const OVERLAYFS: i64 = 0x794c_7630;

impl RealFile {
    pub(crate) fn of(fd: OwnedFd) -> Self {
        Self { fd: Arc::new(fd), position: Mutex::new(()), tells_residency: OnceLock::new() }
    }

    /// False on overlayfs, where `cachestat` looks at an inode that holds nothing (Linux 6.18), and answers
    /// zero for everything.
    fn tells_residency(&self) -> bool {
        *self.tells_residency.get_or_init(|| {
            rustix::fs::fstatfs(&self.fd).is_ok_and(|found| found.f_type != OVERLAYFS)
        })
    }
}

impl File for RealFile {
    fn capabilities(&self) -> FileCapabilities {
        FileCapabilities { residency: self.tells_residency(), ..FileCapabilities::ALL }
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pread(&self.fd, buf, offset)?)
    }

    fn len(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstat(&self.fd)?;
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::preadv(&self.fd, bufs, offset)?)
    }

    fn seek_and_read(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let _alone = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        rustix::fs::seek(&self.fd, SeekFrom::Start(offset))?;
        Ok(rustix::io::read(&self.fd, buf)?)
    }

    fn advise(&self, range: Range<u64>, advice: Advice) -> io::Result<()> {
        let advice = match advice {
            Advice::WillNeed => rustix::fs::Advice::WillNeed,
            Advice::Sequential => rustix::fs::Advice::Sequential,
            Advice::Random => rustix::fs::Advice::Random,
            Advice::Normal => rustix::fs::Advice::Normal,
        };
        let len = std::num::NonZeroU64::new(range.end.saturating_sub(range.start));
        Ok(rustix::fs::fadvise(&self.fd, range.start, len, advice)?)
    }

    fn residency(&self, range: Range<u64>) -> io::Result<Residency> {
        if !self.tells_residency() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let bytes = range.end.saturating_sub(range.start);
        let found = pagemill_sys::cachestat(&self.fd, range)?;
        Ok(Residency { cached: found.cached * rustix::param::page_size() as u64, bytes })
    }

    fn map(&self, len: usize) -> io::Result<Mapping> {
        use rustix::fd::AsFd as _;
        Mapping::new(self.fd.as_fd(), len)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pwrite(&self.fd, buf, offset)?)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pwritev(&self.fd, bufs, offset)?)
    }

    fn map_for_write(&self, range: Range<u64>) -> io::Result<WritableMapping> {
        use rustix::fd::AsFd as _;
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        WritableMapping::new(self.fd.as_fd(), range.start, len)
    }

    fn allocate(&self, range: Range<u64>) -> io::Result<()> {
        let len = range.end.saturating_sub(range.start);
        Ok(rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), range.start, len)?)
    }

    fn reserve(&self, range: Range<u64>) -> io::Result<()> {
        let len = range.end.saturating_sub(range.start);
        Ok(rustix::fs::fallocate(&self.fd, FallocateFlags::KEEP_SIZE, range.start, len)?)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Ok(rustix::fs::ftruncate(&self.fd, len)?)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(rustix::fs::fdatasync(&self.fd)?)
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.fd)?)
    }

    fn write_back(&self, range: Range<u64>, how: WriteBack) -> io::Result<()> {
        pagemill_sys::write_back(&self.fd, range, how)
    }

    fn share_blocks_of(&self, from: &dyn File) -> io::Result<()> {
        let from = from.descriptor().ok_or(io::ErrorKind::Unsupported)?;
        Ok(rustix::fs::ioctl_ficlone(&self.fd, from)?)
    }

    fn copy_range_of(&self, from: &dyn File, range: Range<u64>) -> io::Result<u64> {
        let from = from.descriptor().ok_or(io::ErrorKind::Unsupported)?;
        let (mut source, mut target) = (range.start, range.start);
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let fds = (from, &self.fd);
        let copied =
            rustix::fs::copy_file_range(fds.0, Some(&mut source), fds.1, Some(&mut target), len)?;
        Ok(copied as u64)
    }

    fn data_from(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        /// The unit of `st_blocks`.
        const UNIT: i64 = 512;
        let found = rustix::fs::fstat(&self.fd)?;
        let len = u64::try_from(found.st_size).unwrap_or(0);
        // What was allocated and not written yet counts as a hole below, and is none.
        if found.st_blocks.saturating_mul(UNIT) >= found.st_size {
            return Ok((offset < len).then_some(offset..len));
        }
        let _alone = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let start = match rustix::fs::seek(&self.fd, SeekFrom::Data(offset)) {
            Err(rustix::io::Errno::NXIO) => return Ok(None),
            start => start?,
        };
        Ok(Some(start..rustix::fs::seek(&self.fd, SeekFrom::Hole(start))?))
    }

    fn extents(&self) -> io::Result<Vec<Extent>> {
        pagemill_sys::extents(&self.fd)
    }

    fn is_own(&self) -> bool {
        let user = rustix::process::geteuid();
        user.is_root()
            || rustix::fs::fstat(&self.fd).is_ok_and(|found| found.st_uid == user.as_raw())
    }

    fn descriptor(&self) -> Option<&Arc<OwnedFd>> {
        Some(&self.fd)
    }
}
