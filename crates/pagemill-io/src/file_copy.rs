//! One file copied into a new one: by sharing its blocks, by the kernel, or by reading and writing it.
//!
//! | method | is refused by | what is done then |
//! | --- | --- | --- |
//! | `reflink` | EXDEV, EOPNOTSUPP, EINVAL: shared are blocks of one XFS, btrfs or bcachefs | an error, or the bytes are read and written where no method was asked for |
//! | `copy_file_range` | the same; an answer of 0 before the end | the rest is read and written |
//! | `read_write` | nobody | |
//!
//! Where no method is asked for, blocks are shared where that is to be had, and else the bytes are read and written.
//! Measured on ext4 (Linux 6.18, a virtual disk with 8 MiB of readahead, a file of 1 GB, durable at the end, medians of
//! 5, on a busy machine): of a file in the page cache `copy_file_range` took 2.5 times, and `cp` with a sync 2.8 times as
//! long as reading and writing, of one that is not there 1.6 and 3.5 times. Large files are written past the cache, which
//! also leaves the memory to others.
//!
//! `copy_file_range` may share blocks by itself (XFS, btrfs) or let a server copy (NFS): what it truly did is asked of
//! the file system afterwards ([`CopiedFile::shared_bytes`]).
//!
//! Holes stay holes, by whatever method: a sparse file that is read and written gets only the bytes that take space.
//!
//! Invariants: the new file has all bytes that the old one had when it was opened, or there is no new file; nothing is
//! durable before [`CopiedFile::sync`]; each piece is told to the caller once, in the order of the file.

mod read_write;

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

use pagemill_sys::WriteBack;
use rustix::io::Errno;

use crate::error::{Error, ErrorKind, Result};
use crate::refusal::{NotShared, Refusal};
use crate::seam::{Caching, Create, File, OpenForWrite};
use crate::storage::Storage;
use crate::writable_file::WritableFile;

/// Bytes that the kernel is asked to copy at once: few calls, and it is not long before an interruption is seen.
const PIECE: u64 = 32 << 20;

/// A way to get the bytes of one file into another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CopyMethod {
    /// The new file shares the blocks of the old one (`FICLONE`).
    Reflink,
    /// The kernel copies (`copy_file_range`).
    CopyFileRange,
    /// Large reads and large writes.
    ReadWrite,
}

impl CopyMethod {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Reflink, Self::CopyFileRange, Self::ReadWrite];

    /// The name in messages and statistics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reflink => "reflink",
            Self::CopyFileRange => "copy_file_range",
            Self::ReadWrite => "read_write",
        }
    }
}

impl fmt::Display for CopyMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no such way to copy: there are reflink, copy_file_range and read_write")]
pub struct UnknownCopyMethod;

impl FromStr for CopyMethod {
    type Err = UnknownCopyMethod;

    fn from_str(name: &str) -> std::result::Result<Self, UnknownCopyMethod> {
        Self::ALL.into_iter().find(|method| method.name() == name).ok_or(UnknownCopyMethod)
    }
}

/// What was copied by one step.
#[derive(Debug, Clone, Copy)]
pub struct CopiedPiece<'a> {
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// How long it is, in bytes.
    pub len: u64,
    /// What is in it, where it came through this process: read, and not yet written.
    pub bytes: Option<&'a [u8]>,
}

/// A new file with the bytes of another. Nothing of it is durable until it is [synced](Self::sync).
#[derive(Debug)]
pub struct CopiedFile {
    /// How long it is, in bytes.
    pub bytes: u64,
    /// The method that was truly used, for the last of the bytes.
    pub method: CopyMethod,
    file: WritableFile,
}

impl CopiedFile {
    /// Waits until the device holds the file. Its name lasts when its directory was synced too.
    ///
    /// # Errors
    /// As [`WritableFile::sync_all`].
    pub fn sync(&self) -> Result<()> {
        self.file.sync_all()
    }

    /// Sends the file to the device, so that a later [`sync`](Self::sync) is short.
    ///
    /// # Errors
    /// As [`WritableFile::write_back`].
    pub fn begin_write_back(&self) -> Result<()> {
        self.file.write_back(0..self.bytes, WriteBack::Begin)
    }

    /// How many of its bytes lie in blocks that other files have too, as the file system tells (`FIEMAP`); `None`
    /// where it does not tell. What was not written back is, before that can be told.
    ///
    /// # Errors
    /// Names the file: when the device fails.
    pub fn shared_bytes(&self) -> Result<Option<u64>> {
        let extents = match self.file.file().extents() {
            Err(error) if is_refusal(&error) => return Ok(None),
            extents => extents.map_err(|error| self.file.error(error))?,
        };
        let within = |end: u64| end.min(self.bytes);
        let shared = extents.iter().filter(|extent| extent.shared).map(|extent| {
            within(extent.logical.saturating_add(extent.len)) - within(extent.logical)
        });
        Ok(Some(shared.sum()))
    }

    /// The file.
    pub fn file(&self) -> &WritableFile {
        &self.file
    }
}

impl Storage {
    /// Copies the file `from` into the new file `to`, and tells `watch` each piece: before it is written where the bytes
    /// come through this process, else afterwards. An error of `watch` ends the copy. A file that could not be finished
    /// is removed again. Nothing is synced.
    ///
    /// `method` is what was asked for; `None` for blocks shared where that is to be had, and else the faster of the
    /// two others.
    ///
    /// # Errors
    /// Names the file. [`ErrorKind::Refused`] when blocks were to be shared and cannot be; [`ErrorKind::Exists`] when
    /// there is a file `to`; [`ErrorKind::ShortRead`] when `from` was cut meanwhile. And what `watch` returns.
    pub fn copy_file<E: From<Error>>(
        &self,
        from: &Path,
        to: &Path,
        method: Option<CopyMethod>,
        watch: &mut dyn FnMut(CopiedPiece<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<CopiedFile, E> {
        let copy = FileCopy::open(self, from, to, method)?;
        copy.run(method, watch).inspect_err(|_| {
            // The failure that is told is the one before it.
            let _ = self.remove(to);
        })
    }
}

impl Storage {
    /// How many bytes of a file take space, holes left out.
    ///
    /// # Errors
    /// Names the file.
    pub fn bytes_without_holes(&self, path: &Path) -> Result<u64> {
        let file = self.open(path)?;
        let (mut bytes, mut offset) = (0, 0);
        loop {
            match file.data_from(offset) {
                Ok(Some(data)) => {
                    bytes += data.end - data.start;
                    offset = data.end;
                }
                Ok(None) => return Ok(bytes),
                Err(error) if is_refusal(&error) => {
                    return file.len().map_err(|error| Error::new(error, path));
                }
                Err(error) => return Err(Error::new(error, path)),
            }
        }
    }

    /// Tries whether a new file in `directory` could share the blocks of the file `from`, on a file that is gone
    /// afterwards; `None` when it can, else why not.
    ///
    /// # Errors
    /// Names the file: when none can be made there, or the device fails.
    pub fn reflink_refusal(&self, from: &Path, directory: &Path) -> Result<Option<NotShared>> {
        let source = self.open(from)?;
        let len = source.len().map_err(|error| Error::new(error, from))?;
        let (target, caching) = (self.temporary_file(directory)?, Caching::Buffered);
        let copy = FileCopy { storage: self, from, source, target, caching, len };
        Ok(copy.share()?.map(|refusal| not_shared(&refusal)))
    }
}

/// A copy under way.
struct FileCopy<'a> {
    storage: &'a Storage,
    from: &'a Path,
    source: Box<dyn File>,
    target: WritableFile,
    /// How `target` was opened.
    caching: Caching,
    len: u64,
}

impl<'a> FileCopy<'a> {
    /// Opens the one and makes the other.
    fn open(
        storage: &'a Storage,
        from: &'a Path,
        to: &Path,
        method: Option<CopyMethod>,
    ) -> Result<Self> {
        let source = storage.open(from)?;
        let len = source.len().map_err(|error| Error::new(error, from))?;
        let caching = match method {
            None | Some(CopyMethod::ReadWrite) => read_write::caching(storage, to, len),
            Some(CopyMethod::Reflink | CopyMethod::CopyFileRange) => Caching::Buffered,
        };
        let (target, caching) = new_file(storage, to, caching)?;
        Ok(Self { storage, from, source, target, caching, len })
    }

    fn run<E: From<Error>>(
        self,
        method: Option<CopyMethod>,
        watch: &mut dyn FnMut(CopiedPiece<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<CopiedFile, E> {
        let method = match method {
            None | Some(CopyMethod::Reflink) => match self.share()? {
                None => self.whole(watch)?,
                Some(_) if method.is_none() => self.read_and_write(0, watch)?,
                Some(refusal) => return Err(self.refused(&refusal).into()),
            },
            Some(CopyMethod::CopyFileRange) => self.by_kernel(watch)?,
            Some(CopyMethod::ReadWrite) => self.read_and_write(0, watch)?,
        };
        Ok(CopiedFile { bytes: self.len, method, file: self.target })
    }

    /// Lets the new file share all blocks of the old one; tells why these two cannot.
    fn share(&self) -> Result<Option<io::Error>> {
        let files = [&*self.source, &**self.target.file()];
        if files.iter().any(|file| !file.capabilities().share_blocks) {
            return Ok(Some(io::ErrorKind::Unsupported.into()));
        }
        let call = || self.target.file().share_blocks_of(&*self.source).map(|()| self.len);
        match self.counted(call) {
            Ok(_) => Ok(None),
            Err(error) if is_refusal(&error) => Ok(Some(error)),
            Err(error) => Err(self.target.error(error)),
        }
    }

    fn refused(&self, refusal: &io::Error) -> Error {
        let (from, cause) = (self.from.to_owned(), not_shared(refusal));
        self.target.error(Refusal::NotShared { from, cause })
    }

    /// Tells of a file that came in one step.
    fn whole<E: From<Error>>(
        &self,
        watch: &mut dyn FnMut(CopiedPiece<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<CopyMethod, E> {
        let len = self.target.len()?;
        if len < self.len {
            return Err(self.cut(len).into());
        }
        watch(CopiedPiece { offset: 0, len: self.len, bytes: None })?;
        Ok(CopyMethod::Reflink)
    }

    /// Lets the kernel copy as far as it does, and reads and writes the rest.
    fn by_kernel<E: From<Error>>(
        &self,
        watch: &mut dyn FnMut(CopiedPiece<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<CopyMethod, E> {
        let mut done = 0;
        while done < self.len {
            let range = done..self.len.min(done.saturating_add(PIECE));
            let call = || self.target.file().copy_range_of(&*self.source, range.clone());
            let copied = match self.counted(call) {
                Err(error) if is_refusal(&error) => 0,
                copied => copied.map_err(|error| self.target.error(error).with_offset(done))?,
            };
            let copied = copied.min(self.len - done);
            if copied == 0 {
                return self.read_and_write(done, watch);
            }
            self.target.write_back(done..done + copied, WriteBack::Begin)?;
            watch(CopiedPiece { offset: done, len: copied, bytes: None })?;
            done += copied;
        }
        Ok(CopyMethod::CopyFileRange)
    }

    /// One call that copies, timed and counted, repeated when it is interrupted.
    fn counted(&self, mut call: impl FnMut() -> io::Result<u64>) -> io::Result<u64> {
        loop {
            let begin = self.storage.call_begins();
            let outcome = call();
            let waited = self.storage.call_took(begin);
            self.storage.counters().record_copy(*outcome.as_ref().unwrap_or(&0), waited);
            match outcome {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    /// The file was cut while it was copied.
    fn cut(&self, got: u64) -> Error {
        Error::new(ErrorKind::ShortRead { expected: self.len, got }, self.from)
    }
}

fn not_shared(refusal: &io::Error) -> NotShared {
    match refusal.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::XDEV) => NotShared::DifferentFileSystems,
        Some(Errno::INVAL) => NotShared::TheseFiles,
        _ => NotShared::NoReflinks,
    }
}

/// Makes a file that does not exist, past the page cache where that is to be had.
fn new_file(storage: &Storage, path: &Path, caching: Caching) -> Result<(WritableFile, Caching)> {
    let open = |caching| {
        let how = OpenForWrite { create: Create::New, caching };
        storage.open_for_write(path, how).map(|file| (file, caching))
    };
    match open(caching) {
        Err(error) if matches!(error.kind(), ErrorKind::Refused(_)) => open(Caching::Buffered),
        opened => opened,
    }
}

/// True when the system says that these two files, or this file, cannot have it, and not that something failed.
fn is_refusal(error: &io::Error) -> bool {
    let refusals = [
        Errno::XDEV,
        Errno::OPNOTSUPP,
        Errno::NOTTY,
        Errno::INVAL,
        Errno::NOSYS,
        Errno::PERM,
        Errno::TXTBSY,
    ];
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(errno) => refusals.contains(&errno),
        None => error.kind() == io::ErrorKind::Unsupported,
    }
}

#[cfg(test)]
mod tests;
