//! [`Storage`]: what everything is read through.
//!
//! A [`FileSystem`] and its [`File`]s make single calls and retry nothing. [`Storage`] adds what
//! every caller needs: calls repeated after a short read or EINTR, counted one by one, errors
//! that name the file, the settings that say how to read, and what is kept open between reads.
//! So faults can be injected below, and no reader above can forget them.

use std::any::Any;
use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use pagemill_format::BLOCK_SIZE;
use pagemill_sys::ALIGNMENT;

use crate::capabilities::Capabilities;
use crate::counters::Counters;
use crate::creation_modes::CreationModes;
use crate::error::{Error, ErrorKind, Result};
use crate::failed_sync::FailedSync;
use crate::file_cache::FileCache;
use crate::host_files::HostFiles;
use crate::read_settings::{self, IoMethod, ReadSettings};
use crate::real_files::RealFileSystem;
use crate::redirected_files::{Redirect, RedirectedFiles};
use crate::seam::{Caching, DirEntry, File, FileSystem, IoQueue, Metadata, QueueKind};
use crate::storage_traits::StorageTraits;

/// A file system, the settings to read it with, and the counters of all that is done through it.
/// Clones share all three.
#[derive(Debug, Clone)]
pub struct Storage {
    shared: Arc<Shared>,
    timed: bool,
    modes: Option<Arc<CreationModes>>,
}

/// What the layer above keeps.
type KeptAbove = Arc<OnceLock<Box<dyn Any + Send + Sync>>>;

#[derive(Debug)]
struct Shared {
    file_system: Arc<dyn FileSystem>,
    settings: ReadSettings,
    /// Shared with whatever storage lies [over](Storage::over) this one.
    counters: Arc<Counters>,
    /// As the counters.
    kept_above: KeptAbove,
    files: FileCache,
    /// By directory.
    places: Mutex<HashMap<PathBuf, StorageTraits>>,
    /// Queues that nobody uses now: to set one up is dear.
    idle_queues: Mutex<Vec<IdleQueue>>,
    failed_sync: FailedSync,
}

#[derive(Debug)]
struct IdleQueue {
    kind: QueueKind,
    depth: u32,
    queue: Box<dyn IoQueue>,
}

/// By which calls a file is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadCalls {
    /// Those of this method; one that has no calls of its own gets `pread`.
    pub(crate) method: IoMethod,
    /// How the file was opened.
    pub(crate) caching: Caching,
}

/// Idle queues kept at most.
const MOST_IDLE_QUEUES: usize = 16;

impl Storage {
    /// Storage on the operating system's files, read as the default settings say.
    pub fn real() -> Self {
        Self::new(Arc::new(RealFileSystem))
    }

    /// Storage on any file system, its counters at 0.
    pub fn new(file_system: Arc<dyn FileSystem>) -> Self {
        Self::with_settings(file_system, ReadSettings::default())
    }

    /// Storage on any file system, its blocks read as `settings` say.
    pub fn with_settings(file_system: Arc<dyn FileSystem>, settings: ReadSettings) -> Self {
        Self::counted(file_system, settings, Arc::default(), Arc::default())
    }

    /// Storage on a file system that `lay` makes from the one of this storage: read by the same settings and counted by the
    /// same counters, while open files, queues and the modes of what is made are its own. What the file system below does on its behalf is not counted.
    #[must_use]
    pub fn over(&self, lay: impl FnOnce(Arc<dyn FileSystem>) -> Arc<dyn FileSystem>) -> Self {
        let Shared { settings, counters, kept_above, .. } = &*self.shared;
        let file_system = lay(self.file_system().clone());
        let over = Self::counted(file_system, *settings, counters.clone(), kept_above.clone());
        Self { timed: self.timed, ..over }
    }

    /// The same storage with some directories read elsewhere; it reads only, unless there are none.
    #[must_use]
    pub fn redirected(&self, redirects: Vec<Redirect>) -> Self {
        match redirects.is_empty() {
            true => self.clone(),
            false => self.over(|below| Arc::new(RedirectedFiles::new(below, redirects))),
        }
    }

    fn counted(
        file_system: Arc<dyn FileSystem>,
        settings: ReadSettings,
        counters: Arc<Counters>,
        kept_above: KeptAbove,
    ) -> Self {
        let shared = Shared {
            file_system,
            settings,
            counters,
            kept_above,
            files: FileCache::new(settings.max_open_files, settings.max_mapped_bytes),
            places: Mutex::default(),
            idle_queues: Mutex::default(),
            failed_sync: FailedSync::default(),
        };
        Self { shared: Arc::new(shared), timed: true, modes: None }
    }

    /// The same storage, which gives the files and directories it makes the modes that a server gives them that runs
    /// on `data_directory`, whatever the mask of this process is. Where the directory cannot be looked at, nothing changes.
    #[must_use]
    pub fn with_modes_of(self, data_directory: &Path) -> Self {
        let modes = CreationModes::of(&**self.file_system(), data_directory).map(Arc::new);
        Self { modes: modes.or(self.modes), shared: self.shared, timed: self.timed }
    }

    /// The modes of what is made, where they are known.
    pub(crate) fn modes(&self) -> Option<&CreationModes> {
        self.modes.as_deref()
    }

    /// The same storage, whose calls are counted and not timed: reading the clock twice costs a call
    /// that copies from the cache about a hundredth of its time.
    #[must_use]
    pub fn untimed(self) -> Self {
        Self { timed: false, ..self }
    }

    /// The files of this machine, whatever file system the storage is on: what the user names beside the cluster.
    pub fn host(&self) -> HostFiles {
        HostFiles::beside(self)
    }

    /// How blocks are to be read.
    pub fn settings(&self) -> &ReadSettings {
        &self.shared.settings
    }

    /// The time since some fixed moment, as the file system counts it.
    pub fn now(&self) -> Duration {
        self.shared.file_system.now()
    }

    /// Where files come from: for file systems that lie over several. What is done through it is not counted.
    pub fn file_system(&self) -> &Arc<dyn FileSystem> {
        &self.shared.file_system
    }

    /// The first sync that failed, if one did.
    pub(crate) fn failed_sync(&self) -> &FailedSync {
        &self.shared.failed_sync
    }

    /// When a call begins, if calls are timed.
    pub(crate) fn call_begins(&self) -> Option<Duration> {
        self.timed.then(|| self.now())
    }

    /// How long ago `begin` was; nothing if calls are not timed.
    pub(crate) fn call_took(&self, begin: Option<Duration>) -> Duration {
        begin.map_or(Duration::ZERO, |begin| self.now().saturating_sub(begin))
    }

    /// What the file system is like.
    pub fn capabilities(&self) -> Capabilities {
        self.file_system().capabilities()
    }

    /// What was done through this storage and its clones.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// What the layer above keeps with a storage, as it knows best when that is of use no more: what it measured of its
    /// files. There is one such thing, made when it is first asked for.
    pub fn kept_above<T: Any + Default + Send + Sync>(&self) -> &T {
        let kept = self.shared.kept_above.get_or_init(|| Box::new(T::default()));
        let kept = kept.downcast_ref();
        assert!(kept.is_some(), "two layers above one storage keep things of different types");
        kept.expect("checked") // infallible: checked above
    }

    /// What lies below a file, asked once for all files of a directory.
    pub fn place_of(&self, path: &Path) -> StorageTraits {
        let directory = path.parent().unwrap_or(path);
        let mut places = self.shared.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(directory) {
            return *place;
        }
        let place = self.shared.file_system.place(path);
        places.insert(directory.to_path_buf(), place);
        place
    }

    /// What is kept open.
    pub(crate) fn files(&self) -> &FileCache {
        &self.shared.files
    }

    /// Makes sure that the platform has a method.
    ///
    /// # Errors
    /// Why it has not.
    pub fn check_method(&self, method: IoMethod) -> io::Result<()> {
        let Some(kind) = method.queue() else { return Ok(()) };
        let depth = read_settings::DEFAULT_EFFECTIVE_IO_CONCURRENCY;
        let depth = self.settings().effective_io_concurrency.unwrap_or(depth);
        let queue = self.take_queue(kind, depth)?;
        self.return_queue(kind, depth, queue);
        Ok(())
    }

    /// A queue for reads ahead, at most `depth` of them at once. Give it back with
    /// [`return_queue`](Self::return_queue).
    ///
    /// # Errors
    /// Why there can be none of this kind.
    pub(crate) fn take_queue(&self, kind: QueueKind, depth: u32) -> io::Result<Box<dyn IoQueue>> {
        let mut idle = self.shared.idle_queues.lock().unwrap_or_else(PoisonError::into_inner);
        let found = idle.iter().position(|idle| (idle.kind, idle.depth) == (kind, depth));
        if let Some(found) = found {
            return Ok(idle.swap_remove(found).queue);
        }
        drop(idle);
        self.shared.file_system.open_queue(kind, depth)
    }

    /// Takes back a queue with nothing in flight.
    pub(crate) fn return_queue(&self, kind: QueueKind, depth: u32, queue: Box<dyn IoQueue>) {
        let mut idle = self.shared.idle_queues.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_IDLE_QUEUES {
            idle.push(IdleQueue { kind, depth, queue });
        }
    }

    /// Opens a file that blocks are read from.
    ///
    /// # Errors
    /// Names the file.
    pub(crate) fn open_blocks(&self, path: &Path, caching: Caching) -> Result<Box<dyn File>> {
        let opened = self.shared.file_system.open(path, caching);
        opened.map_err(|error| Error::new(error, path))
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// Names the file.
    pub fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        self.shared
            .file_system
            .open(path, Caching::Buffered)
            .map_err(|error| Error::new(error, path))
    }

    /// Fills `buf` from `offset` on and returns how many bytes there were: fewer than wanted only
    /// at the end of the file. Short and interrupted calls are repeated.
    ///
    /// # Errors
    /// The system's error. The caller knows which file it was, and names it.
    pub fn read_fully_at(&self, file: &dyn File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let how = ReadCalls { method: IoMethod::Pread, caching: self.settings().caching };
        let (done, stopped) = self.read_until_stopped(file, buf, offset, how);
        stopped.map_or(Ok(done), Err)
    }

    /// As [`read_fully_at`](Self::read_fully_at) with calls of a kind, and tells how many bytes came before an error.
    pub(crate) fn read_until_stopped(
        &self,
        file: &dyn File,
        buf: &mut [u8],
        offset: u64,
        how: ReadCalls,
    ) -> (usize, Option<io::Error>) {
        let ReadCalls { method, caching } = how;
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.read_once(file, rest, offset.saturating_add(done as u64), method) {
                Ok(0) => break,
                Ok(n) => match advanced(caching, done, n, buf.len()) {
                    Some(now) => done = now,
                    None => break,
                },
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (done, Some(error)),
            }
        }
        (done, None)
    }

    /// One read of a method, timed and counted.
    fn read_once(
        &self,
        file: &dyn File,
        buf: &mut [u8],
        offset: u64,
        method: IoMethod,
    ) -> io::Result<usize> {
        let begin = self.call_begins();
        let outcome = match method {
            IoMethod::Seek => {
                self.counters().record_seek();
                let end = buf.len().min(BLOCK_SIZE);
                file.seek_and_read(&mut buf[..end], offset)
            }
            IoMethod::Preadv => {
                let mut pages: Vec<_> = buf.chunks_mut(BLOCK_SIZE).map(IoSliceMut::new).collect();
                file.read_vectored_at(&mut pages, offset)
            }
            IoMethod::Pread
            | IoMethod::Mmap
            | IoMethod::Worker
            | IoMethod::IoUring
            | IoMethod::Own => file.read_at(buf, offset),
        };
        let waited = self.call_took(begin);
        self.counters().record_read(*outcome.as_ref().unwrap_or(&0), waited);
        outcome
    }

    /// The contents of a small file, as long as it is when opened; what is appended meanwhile is
    /// left out. One read call when nothing is short.
    ///
    /// # Errors
    /// Names the file. Also when it is longer than `limit` bytes, or is cut while it is read.
    pub fn read_file(&self, path: &Path, limit: u64) -> Result<Vec<u8>> {
        if let Some(contents) = self.read_whole(path, limit)? {
            return Ok(contents);
        }
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

    /// A file that the file system has at once.
    fn read_whole(&self, path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
        let begin = self.call_begins();
        let read = self.file_system().read_whole(path, limit);
        let read = read.map_err(|error| Error::new(error, path))?;
        let Some(contents) = read else { return Ok(None) };
        self.counters().record_read(contents.len(), self.call_took(begin));
        let len = contents.len() as u64;
        match len > limit {
            true => Err(Error::new(ErrorKind::TooLarge { len, limit }, path)),
            false => Ok(Some(contents)),
        }
    }

    /// Everything in a directory but `.` and `..`, in no particular order.
    ///
    /// # Errors
    /// Names the directory.
    pub fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.shared.file_system.read_dir(path).map_err(|error| Error::new(error, path))
    }

    /// The same, with sizes and types of what is there, as far as the file system tells them at once.
    ///
    /// # Errors
    /// Names the directory.
    pub fn read_dir_with_metadata(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let entries = self.shared.file_system.read_dir_with_metadata(path);
        entries.map_err(|error| Error::new(error, path))
    }

    /// Size and type of what `path` names, symbolic links followed.
    ///
    /// # Errors
    /// Names the file.
    pub fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.shared.file_system.metadata(path).map_err(|error| Error::new(error, path))
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

/// Where to go on after `n` more bytes of `wanted`; `None` at the end of the file. Direct reads go on
/// at an aligned offset, so that one which brought less than that will bring no more.
pub(crate) fn advanced(caching: Caching, done: usize, n: usize, wanted: usize) -> Option<usize> {
    let now = done + n;
    if caching == Caching::Buffered || now >= wanted {
        return Some(now);
    }
    let aligned = now - now % ALIGNMENT;
    (aligned > done).then_some(aligned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Disturbance, FaultyFileSystem};

    fn file_of(contents: &[u8]) -> (tempfile::TempDir, PathBuf) {
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
        assert_eq!(names, [DirEntry::named("PG_VERSION")]);
        assert!(storage.metadata(dir.path()).unwrap().is_dir);
        assert!(storage.read_file(dir.path(), 1 << 20).is_err());
    }

    #[test]
    fn a_listing_with_sizes_says_what_each_path_leads_to() {
        let (dir, path) = file_of(b"0123456789");
        std::fs::create_dir(dir.path().join("base")).unwrap();
        std::os::unix::fs::symlink(&path, dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("dangling")).unwrap();
        let storage = Storage::real();
        let mut entries = storage.read_dir_with_metadata(dir.path()).unwrap();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let names: Vec<_> = entries.iter().map(|entry| entry.name.to_str().unwrap()).collect();
        assert_eq!(names, ["PG_VERSION", "base", "dangling", "link"]);
        for entry in &entries {
            assert_eq!(entry.metadata, storage.metadata(&dir.path().join(&entry.name)).ok());
        }
        assert!(
            storage.read_dir_with_metadata(&dir.path().join("absent")).unwrap_err().is_not_found()
        );
    }
}
