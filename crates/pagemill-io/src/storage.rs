//! The seam between this project and the file system, and [`Storage`], which everything is read
//! through.
//!
//! A [`FileSystem`] and its [`File`]s make single calls and retry nothing. [`Storage`] adds what
//! every caller needs: calls repeated after a short read or EINTR, counted one by one, and errors
//! that name the file. So faults can be injected below, and no reader above can forget them.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};

use crate::counters::Counters;
use crate::error::{Error, ErrorKind, Result};

/// Where files come from.
pub trait FileSystem: Send + Sync + Debug {
    /// Opens an existing file for reading.
    ///
    /// # Errors
    /// What the operating system reports.
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// Everything in a directory but `.` and `..`, in no particular order.
    ///
    /// # Errors
    /// What the operating system reports.
    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>>;

    /// Size and type of what `path` names, symbolic links followed.
    ///
    /// # Errors
    /// What the operating system reports.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;
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
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// The name, without the directory.
    pub name: OsString,
}

/// What is known of a file without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// Size in bytes.
    pub len: u64,
    /// True for a directory.
    pub is_dir: bool,
}

/// The operating system's files.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFileSystem;

impl FileSystem for RealFileSystem {
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        // NONBLOCK does nothing to a regular file, and keeps a fifo under a relation's name from
        // holding the caller forever.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = rustix::io::retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))?;
        Ok(Box::new(RealFile { fd }))
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        std::fs::read_dir(path)?.map(|entry| Ok(DirEntry { name: entry?.file_name() })).collect()
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let found = std::fs::metadata(path)?;
        Ok(Metadata { len: found.len(), is_dir: found.is_dir() })
    }
}

#[derive(Debug)]
struct RealFile {
    fd: OwnedFd,
}

impl File for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pread(&self.fd, buf, offset)?)
    }

    fn len(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstat(&self.fd)?;
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }
}

/// A file system and the counters of all that is done through it. Clones share both.
#[derive(Debug, Clone)]
pub struct Storage {
    file_system: Arc<dyn FileSystem>,
    counters: Arc<Counters>,
    timed: bool,
}

impl Storage {
    /// Storage on the operating system's files.
    pub fn real() -> Self {
        Self::new(Arc::new(RealFileSystem))
    }

    /// Storage on any file system, its counters at 0.
    pub fn new(file_system: Arc<dyn FileSystem>) -> Self {
        Self { file_system, counters: Arc::default(), timed: true }
    }

    /// The same storage, whose calls are counted and not timed: reading the clock twice costs a call
    /// that copies from the cache about a hundredth of its time.
    #[must_use]
    pub fn untimed(self) -> Self {
        Self { timed: false, ..self }
    }

    /// When a call begins, if calls are timed.
    pub(crate) fn call_begins(&self) -> Option<Instant> {
        self.timed.then(Instant::now)
    }

    /// What was done through this storage and its clones.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// Names the file.
    pub fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        self.file_system.open(path).map_err(|error| Error::new(error, path))
    }

    /// Fills `buf` from `offset` on and returns how many bytes there were: fewer than wanted only
    /// at the end of the file. Short and interrupted calls are repeated.
    ///
    /// # Errors
    /// The system's error. The caller knows which file it was, and names it.
    pub fn read_fully_at(&self, file: &dyn File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let (done, stopped) = self.read_until_stopped(file, buf, offset);
        stopped.map_or(Ok(done), Err)
    }

    /// As [`read_fully_at`](Self::read_fully_at), and tells how many bytes came before an error.
    pub(crate) fn read_until_stopped(
        &self,
        file: &dyn File,
        buf: &mut [u8],
        offset: u64,
    ) -> (usize, Option<io::Error>) {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.read_once(file, rest, offset.saturating_add(done as u64)) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (done, Some(error)),
            }
        }
        (done, None)
    }

    /// One read call, timed and counted.
    fn read_once(&self, file: &dyn File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = self.call_begins();
        let outcome = file.read_at(buf, offset);
        let waited = start.map_or(Duration::ZERO, |start| start.elapsed());
        self.counters.record_read(*outcome.as_ref().unwrap_or(&0), waited);
        outcome
    }

    /// The contents of a small file, as long as it is when opened; what is appended meanwhile is
    /// left out. One read call when nothing is short.
    ///
    /// # Errors
    /// Names the file. Also when it is longer than `limit` bytes, or is cut while it is read.
    pub fn read_file(&self, path: &Path, limit: u64) -> Result<Vec<u8>> {
        let file = self.open(path)?;
        let len = file.len().map_err(|error| Error::new(error, path))?;
        if len > limit {
            return Err(Error::new(ErrorKind::TooLarge { len, limit }, path));
        }
        let mut contents = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        let got = self
            .read_fully_at(file.as_ref(), &mut contents, 0)
            .map_err(|error| Error::new(error, path))?;
        if got < contents.len() {
            let kind = ErrorKind::ShortRead { expected: len, got: got as u64 };
            return Err(Error::new(kind, path));
        }
        Ok(contents)
    }

    /// Everything in a directory but `.` and `..`, in no particular order.
    ///
    /// # Errors
    /// Names the directory.
    pub fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.file_system.read_dir(path).map_err(|error| Error::new(error, path))
    }

    /// Size and type of what `path` names, symbolic links followed.
    ///
    /// # Errors
    /// Names the file.
    pub fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.file_system.metadata(path).map_err(|error| Error::new(error, path))
    }

    /// True when `path` names something; false also for a symbolic link to nowhere.
    ///
    /// # Errors
    /// When the operating system does not tell.
    pub fn exists(&self, path: &Path) -> Result<bool> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Disturbance, FaultyFileSystem};

    fn file_of(contents: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("PG_VERSION");
        std::fs::write(&path, contents).unwrap();
        (dir, path)
    }

    #[test]
    fn a_small_file_is_read_in_one_call() {
        let (_dir, path) = file_of(b"15\n");
        let storage = Storage::real();
        assert_eq!(storage.read_file(&path, 16).unwrap(), b"15\n");
        let counted = storage.counters().snapshot();
        assert_eq!((counted.read_calls, counted.bytes_read), (1, 3));
    }

    #[test]
    fn an_empty_file_needs_no_call() {
        let (_dir, path) = file_of(b"");
        let storage = Storage::real();
        assert_eq!(storage.read_file(&path, 16).unwrap(), b"");
        assert_eq!(storage.counters().snapshot().read_calls, 0);
    }

    #[test]
    fn a_file_larger_than_the_limit_is_refused_unread() {
        let (_dir, path) = file_of(&[0; 17]);
        let storage = Storage::real();
        let message = storage.read_file(&path, 16).unwrap_err().to_string();
        assert!(message.contains("17 bytes, at most 16 expected"), "{message}");
        assert_eq!(storage.counters().snapshot().read_calls, 0);
    }

    #[test]
    fn short_and_interrupted_calls_are_repeated_and_counted() {
        let (_dir, path) = file_of(b"0123456789");
        let files = Arc::new(FaultyFileSystem::default());
        files.disturb([Disturbance::Short(3), Disturbance::Interrupted, Disturbance::Short(1)]);
        let storage = Storage::new(files);
        assert_eq!(storage.read_file(&path, 16).unwrap(), b"0123456789");
        let counted = storage.counters().snapshot();
        assert_eq!((counted.read_calls, counted.bytes_read), (4, 10));
    }

    #[test]
    fn a_file_cut_while_it_is_read_is_an_error_and_not_a_shorter_file() {
        let (_dir, path) = file_of(b"0123456789");
        let files = Arc::new(FaultyFileSystem::default());
        files.cut(&path, 4);
        let error = Storage::new(files).read_file(&path, 16).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::ShortRead { expected: 10, got: 4 }), "{error}");
    }

    #[test]
    fn what_does_not_exist_is_told_apart_from_what_cannot_be_looked_at() {
        let (dir, path) = file_of(b"");
        let storage = Storage::real();
        assert!(storage.exists(&path).unwrap());
        assert!(storage.exists(dir.path()).unwrap());
        assert!(!storage.exists(&dir.path().join("absent")).unwrap());
        assert!(storage.exists(&path.join("below-a-file")).is_err());
        assert!(storage.read_file(&dir.path().join("absent"), 1).unwrap_err().is_not_found());
    }

    #[test]
    fn a_directory_lists_its_names_and_cannot_be_read_as_a_file() {
        let (dir, _path) = file_of(b"");
        let storage = Storage::real();
        let names = storage.read_dir(dir.path()).unwrap();
        assert_eq!(names, [DirEntry { name: "PG_VERSION".into() }]);
        assert!(storage.metadata(dir.path()).unwrap().is_dir);
        assert!(storage.read_file(dir.path(), 1 << 20).is_err());
    }
}
