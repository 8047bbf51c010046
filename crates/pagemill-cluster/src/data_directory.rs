//! Opening a data directory: is it one, of a version that can be read, at rest?
//!
//! Everything that could make the files say something else than a server would is refused here,
//! before a page is read: a running server, an unclean shutdown, another block size. Whoever
//! knows better says so in [`OpenOptions`].
//!
//! Source: the layout of a data directory is in the manual, "Database File Layout"; the states in
//! `src/include/catalog/pg_control.h`, the lock file in `src/backend/utils/init/miscinit.c`,
//! PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use pagemill_format::control::{ClusterState, ControlFile};
use pagemill_format::{Error as FormatError, ErrorKind as FormatErrorKind, Fork, Oid, PgVersion};
use pagemill_io::{ForkFiles, SegmentListing, Storage};
use pagemill_stream::buffer_pool::DEFAULT_SHARED_BUFFERS;
use pagemill_stream::{BufferPool, SyncScans};

use crate::change::ClusterLock;
use crate::error::{Damage, Error, Result};

/// `pg_default`, the tablespace whose files lie under `base`.
pub const DEFAULT_TABLESPACE: Oid = Oid(1663);
/// `pg_global`, the tablespace whose files lie under `global`.
pub const GLOBAL_TABLESPACE: Oid = Oid(1664);

const SMALL_FILE_LIMIT: u64 = 1 << 20;

/// How often, and after how long, `pg_control` is read again when its CRC is wrong: a server may
/// have been writing it. `get_controlfile` in `controldata_utils.c` does the same.
const CONTROL_RETRIES: usize = 10;
const CONTROL_PAUSE: Duration = Duration::from_millis(10);

/// Files that a base backup or a restore leaves in a data directory until a server has started.
const RECOVERY_FILES: [&str; 4] =
    ["backup_label", "tablespace_map", "recovery.signal", "standby.signal"];

/// What a caller allows although the result can then only be advisory, and what it checks.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions {
    /// Read although a server is running.
    pub live: bool,
    /// Read although the cluster was not shut down.
    pub allow_unclean: bool,
    /// Verify the checksum of every page read, where the cluster has them.
    pub verify_checksums: bool,
    /// Pages that all threads share, at most; memory is taken as they are needed.
    pub shared_buffers: NonZeroUsize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            live: false,
            allow_unclean: false,
            verify_checksums: true,
            shared_buffers: DEFAULT_SHARED_BUFFERS,
        }
    }
}

/// An open data directory. Clones share it.
#[derive(Debug, Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    storage: Storage,
    path: PathBuf,
    control: ControlFile,
    options: OpenOptions,
    verify_checksums: bool,
    buffer_pool: Arc<BufferPool>,
    /// What each directory of relations holds.
    listings: Mutex<HashMap<PathBuf, Arc<SegmentListing>>>,
    /// The names of tablespaces, once a message has needed one.
    tablespace_names: OnceLock<HashMap<Oid, Box<[u8]>>>,
    sync_scans: SyncScans,
}

impl Cluster {
    /// Opens the data directory at `path`.
    ///
    /// # Errors
    /// When it is none, or of a kind or in a state that is not to be read.
    pub fn open(storage: Storage, path: &Path, options: OpenOptions) -> Result<Self> {
        let version = read_version(&storage, path)?;
        let lock = if options.live { None } else { LockFile::read(&storage, path)? };
        Self::open_beside(storage, path, version, options, lock)
    }

    /// Opens the data directory that this process has the right to change.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_locked(storage: Storage, lock: &ClusterLock, options: OpenOptions) -> Result<Self> {
        let version = read_version(&storage, lock.directory())?;
        Self::open_beside(storage, lock.directory(), version, options, None)
    }

    fn open_beside(
        storage: Storage,
        path: &Path,
        version: PgVersion,
        options: OpenOptions,
        lock: Option<LockFile>,
    ) -> Result<Self> {
        if let Some(lock) = lock.as_ref().filter(|lock| lock.is_of(path)) {
            return Err(Error::Running { path: path.join(LockFile::NAME), pid: lock.pid });
        }
        let control = read_control(&storage, path, Some(version))?;
        if !control.state.is_clean() && !options.live && !options.allow_unclean {
            let advice = start_advice(&storage, path, control.state, lock.as_ref())?;
            let state = control.state.to_string();
            return Err(Error::NotShutDown { path: path.into(), state, advice });
        }
        let verify_checksums = options.verify_checksums && control.has_data_checksums();
        let (path, storage) = (path.to_path_buf(), storage.with_modes_of(path));
        let inner = Inner {
            storage,
            path,
            control,
            options,
            verify_checksums,
            buffer_pool: BufferPool::new(options.shared_buffers),
            listings: Mutex::default(),
            tablespace_names: OnceLock::new(),
            sync_scans: SyncScans::beside_buffers(options.shared_buffers),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What everything in the cluster is read through.
    pub fn storage(&self) -> &Storage {
        &self.inner.storage
    }

    /// The pages that all threads share, those of TOAST tables and their indexes among them. The
    /// number of a file in it is [`shared_file`](Self::shared_file).
    pub fn buffer_pool(&self) -> &Arc<BufferPool> {
        &self.inner.buffer_pool
    }

    /// What the buffer pool calls the main fork of a relation of a database; of a shared relation the
    /// database is [`Oid::INVALID`].
    pub fn shared_file(database: Oid, relation: Oid) -> u64 {
        u64::from(database.0) << 32 | u64::from(relation.0)
    }

    /// The data directory.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The contents of `pg_control`.
    pub fn control(&self) -> &ControlFile {
        &self.inner.control
    }

    /// The version that wrote the cluster.
    pub fn version(&self) -> PgVersion {
        self.inner.control.version
    }

    /// Where the scans are, by whatever thread, that go on together: those of tables larger than a
    /// quarter of [`OpenOptions::shared_buffers`].
    pub fn sync_scans(&self) -> &SyncScans {
        &self.inner.sync_scans
    }

    /// True when page checksums are to be verified.
    pub fn verify_checksums(&self) -> bool {
        self.inner.verify_checksums
    }

    /// True when a server may be changing the files.
    pub fn is_live(&self) -> bool {
        self.inner.options.live
    }

    /// True when a server shut the cluster down, so that the files are complete.
    pub fn is_clean(&self) -> bool {
        self.inner.control.state.is_clean() && !self.inner.options.live
    }

    /// The directory that holds a database's files in a tablespace; for the global tablespace the
    /// database does not matter.
    pub fn tablespace_path(&self, tablespace: Oid, database: Oid) -> PathBuf {
        match tablespace {
            GLOBAL_TABLESPACE => self.path().join("global"),
            DEFAULT_TABLESPACE => self.path().join("base").join(database.to_string()),
            other => self
                .path()
                .join("pg_tblspc")
                .join(other.to_string())
                .join(format!("PG_{}_{}", self.version(), self.control().catalog_version))
                .join(database.to_string()),
        }
    }

    /// Opens a fork of the relation whose main fork starts in the file `base`; `None` when there
    /// is no such fork. Each directory is listed once.
    ///
    /// # Errors
    /// When the directory or a segment's size cannot be read.
    pub fn fork(&self, base: &Path, fork: Fork) -> Result<Option<ForkFiles>> {
        let (Some(directory), Some(name)) = (base.parent(), base.file_name()) else {
            return Ok(None);
        };
        let listing = self.listing(directory)?;
        Ok(ForkFiles::open_listed(self.storage(), &listing, name, fork)?)
    }

    /// Opens the main fork of a relation that must have one.
    ///
    /// # Errors
    /// When it is missing, or as [`Cluster::fork`].
    pub fn main_fork(&self, base: &Path) -> Result<ForkFiles> {
        self.fork(base, Fork::Main)?
            .ok_or_else(|| Damage::in_file(base, "the relation's file is missing").into())
    }

    fn listing(&self, directory: &Path) -> Result<Arc<SegmentListing>> {
        let listings = || self.inner.listings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = listings().get(directory) {
            return Ok(found.clone());
        }
        let read = SegmentListing::read(self.storage(), directory);
        let listing = Arc::new(read.map_err(|error| self.with_tablespace(error, directory))?);
        listings().insert(directory.into(), listing.clone());
        Ok(listing)
    }

    /// Reads a small file of the cluster, whole.
    ///
    /// # Errors
    /// When it is not there, cannot be read, or is not small.
    pub fn read_small_file(&self, path: &Path) -> Result<Vec<u8>> {
        let directory = path.parent().unwrap_or(path);
        let read = self.storage().read_file(path, SMALL_FILE_LIMIT);
        read.map_err(|error| self.with_tablespace(error, directory))
    }

    /// An error of reading in `directory`, with the tablespace named if it is for its want that
    /// nothing was found.
    fn with_tablespace(&self, error: pagemill_io::Error, directory: &Path) -> Error {
        let below = directory.strip_prefix(self.path().join("pg_tblspc"));
        let first = below.ok().and_then(|below| below.iter().next()?.to_str()?.parse().ok());
        match first.map(Oid) {
            Some(oid)
                if error.is_not_found() && self.storage().exists(directory).ok() == Some(false) =>
            {
                self.missing_tablespace(oid, directory)
            }
            _ => error.into(),
        }
    }

    fn missing_tablespace(&self, oid: Oid, directory: &Path) -> Error {
        let names = self.inner.tablespace_names.get_or_init(|| {
            // Without names the message still has the number.
            self.tablespaces().unwrap_or_default()
        });
        let tablespace = match names.get(&oid) {
            Some(name) => format!("\"{}\" (OID {oid})", String::from_utf8_lossy(name)),
            None => format!("with OID {oid}"),
        };
        let link = self.path().join("pg_tblspc").join(oid.to_string());
        let link = match link.read_link() {
            Ok(target) if self.storage().exists(&target).unwrap_or(true) => {
                format!("whose link leads to {}: restore what is missing there", target.display())
            }
            Ok(target) => format!(
                "whose link leads to {}, which is not there: mount or restore it, or correct the \
                 link {}",
                target.display(),
                link.display()
            ),
            Err(_) if self.storage().exists(&link).unwrap_or(false) => {
                format!("which lies in {}: restore what is missing there", link.display())
            }
            Err(_) => format!("whose link {} is missing: restore it", link.display()),
        };
        Error::MissingTablespace { path: directory.into(), tablespace, link }
    }
}

/// Checks that a directory is a data directory, and tells its version.
///
/// # Errors
/// When it is none, or of a version that is not supported.
pub fn read_version(storage: &Storage, path: &Path) -> Result<PgVersion> {
    let file = path.join("PG_VERSION");
    let none = |reason: &str| Error::NotADataDirectory { path: path.into(), reason: reason.into() };
    if !storage.exists(path)? {
        return Err(none("no such directory"));
    }
    if !storage.metadata(path)?.is_dir {
        return Err(none("it is a file"));
    }
    if !storage.exists(&file)? {
        return Err(none("there is no PG_VERSION in it"));
    }
    let text = storage.read_file(&file, SMALL_FILE_LIMIT)?;
    let text = String::from_utf8_lossy(&text);
    let text = text.trim();
    if !storage.exists(&path.join("global"))? {
        return Err(none("there is no global directory in it"));
    }
    let major = text.split('.').next().and_then(|major| major.parse().ok());
    major.and_then(PgVersion::from_major).ok_or_else(|| Error::Unsupported {
        path: file,
        reason: match major {
            Some(major) => {
                format!("PostgreSQL {major} is not supported: this build reads 14 to 18")
            }
            None => format!("{text:?} is no PostgreSQL version: this build reads 14 to 18"),
        },
    })
}

/// Reads `global/pg_control` of a data directory, whatever state it tells of.
///
/// # Errors
/// When it is not there, damaged, or of a kind that is not supported.
pub fn read_control(
    storage: &Storage,
    path: &Path,
    version: Option<PgVersion>,
) -> Result<ControlFile> {
    let file = path.join("global/pg_control");
    if !storage.exists(&file)? {
        let reason = "there is no global/pg_control in it".into();
        return Err(Error::NotADataDirectory { path: path.into(), reason });
    }
    parse_control(storage, &file, version)?.map_err(|error| match error.kind() {
        FormatErrorKind::Unsupported { .. } => {
            Error::Unsupported { path: file, reason: error.to_string() }
        }
        _ => Error::file_damage(file, &error),
    })
}

/// Reads the file until it is sound, or damaged in the same way twice: one caught half written
/// reads differently the next time.
fn parse_control(
    storage: &Storage,
    file: &Path,
    version: Option<PgVersion>,
) -> Result<Result<ControlFile, FormatError>> {
    let mut bytes = storage.read_file(file, SMALL_FILE_LIMIT)?;
    let mut parsed = ControlFile::parse(&bytes, version);
    for _ in 0..CONTROL_RETRIES {
        let is_corrupt =
            |error: &FormatError| matches!(error.kind(), FormatErrorKind::Corrupt { .. });
        if !parsed.as_ref().is_err_and(is_corrupt) {
            break;
        }
        std::thread::sleep(CONTROL_PAUSE);
        let again = storage.read_file(file, SMALL_FILE_LIMIT)?;
        if again == bytes {
            break;
        }
        bytes = again;
        parsed = ControlFile::parse(&bytes, version);
    }
    Ok(parsed)
}

/// What `postmaster.pid` tells; a server that crashed leaves one behind that names nobody who lives.
#[derive(Debug)]
pub(crate) struct LockFile {
    pub(crate) pid: i32,
    /// The data directory of that server; not there in a file that was caught half written.
    directory: Option<PathBuf>,
    /// The shared memory segment of that server.
    pub(crate) shared_memory: Option<u32>,
}

impl LockFile {
    pub(crate) const NAME: &str = "postmaster.pid";
    /// What it is called until it is written: a server that finds it empty does not start.
    pub(crate) const TEMPORARY: &str = "postmaster.pid.new";

    /// What the file tells of a process that lives.
    fn read(storage: &Storage, path: &Path) -> Result<Option<Self>> {
        Ok(Self::read_any(storage, path)?.filter(Self::is_alive))
    }

    /// What the file tells, of whatever process; `None` where there is none, or none that names a process.
    pub(crate) fn read_any(storage: &Storage, path: &Path) -> Result<Option<Self>> {
        let contents = match storage.read_file(&path.join(Self::NAME), SMALL_FILE_LIMIT) {
            Ok(contents) => contents,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let lines: Vec<_> = contents.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).collect();
        let text = |line: usize| lines.get(line).and_then(|line| std::str::from_utf8(line).ok());
        // A negative one is that of a server in single-user mode.
        let pid = text(0).and_then(|line| line.parse::<i32>().ok()?.checked_abs());
        let directory = lines.get(1).filter(|line| !line.is_empty());
        let directory = directory.map(|line| PathBuf::from(OsStr::from_bytes(line)));
        let shared_memory = text(6).and_then(|keys| keys.split_whitespace().nth(1)?.parse().ok());
        Ok(pid.map(|pid| Self { pid, directory, shared_memory }))
    }

    pub(crate) fn is_alive(&self) -> bool {
        is_alive(self.pid)
    }

    /// True when it names the process that asks: what it was written by had the same number and is gone, or it
    /// was this process.
    pub(crate) fn is_this_process(&self) -> bool {
        u32::try_from(self.pid) == Ok(std::process::id())
    }

    /// True unless it is certain that the server runs on another directory, of which this is a
    /// copy. Paths do not tell: links and mounts give one directory several.
    fn is_of(&self, opened: &Path) -> bool {
        let Some(named) = &self.directory else { return true };
        // Asked of the system itself: which directory a name leads to is nothing that is read.
        let identity = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino()));
        match (identity(named), identity(opened)) {
            (Ok(named), Ok(opened)) => named == opened,
            (Err(error), Ok(_)) => error.kind() != std::io::ErrorKind::NotFound,
            (_, Err(_)) => true,
        }
    }
}

/// How a cluster in this state came about, as far as its directory tells, and what makes it whole.
fn start_advice(
    storage: &Storage,
    path: &Path,
    state: ClusterState,
    lock: Option<&LockFile>,
) -> Result<String> {
    if state == ClusterState::ShutDownInRecovery {
        let advice = "it is a standby, and some of its changes may be in its WAL only: start it, \
                      promote it and stop it";
        return Ok(advice.into());
    }
    let found = recovery_files(storage, path)?;
    Ok(match lock {
        // Whether it is a copy or a container's own cannot be told from outside.
        Some(LockFile { pid, directory: Some(directory), .. }) => format!(
            "{found}its postmaster.pid is that of a server on {} (process {pid}): if this is a \
             copy of a running server's files, remove that file from the copy, start PostgreSQL \
             on it and stop it; if a container's server runs on it, stop that",
            directory.display()
        ),
        _ if found.is_empty() => "start and stop PostgreSQL on it".into(),
        _ => format!("{found}start PostgreSQL on it first, which completes it, and stop it"),
    })
}

/// Tells of what a base backup or a restore left; empty when there is nothing.
fn recovery_files(storage: &Storage, path: &Path) -> Result<String> {
    let mut found = Vec::new();
    for name in RECOVERY_FILES {
        if storage.exists(&path.join(name))? {
            found.push(name);
        }
    }
    let origin = match found.first() {
        None => return Ok(String::new()),
        Some(&("backup_label" | "tablespace_map")) => "as an unpacked base backup does",
        Some(_) => "as a standby or a restore does",
    };
    Ok(format!("it holds {}, {origin}: ", found.join(" and ")))
}

fn is_alive(pid: i32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let Some(pid) = Pid::from_raw(pid) else { return false };
    // Only "no such process" says that nobody is there; "not permitted" says somebody is.
    test_kill_process(pid) != Err(rustix::io::Errno::SRCH) && !has_ended(pid)
}

/// True for a process that has ended and was not reaped by its parent: it keeps its number, takes signals, and does
/// nothing any more. Where the system cannot tell, it has not.
fn has_ended(pid: rustix::process::Pid) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let Ok(process) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else {
        return false;
    };
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    poll(&mut ended, Some(&Timespec::default())) == Ok(1)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn open(path: &Path) -> String {
        match Cluster::open(Storage::real(), path, OpenOptions::default()) {
            Ok(_) => panic!("opened"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_is_no_data_directory_is_refused_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        assert!(open(&dir.path().join("absent")).contains("no such directory"));
        assert!(open(dir.path()).contains("no PG_VERSION"));
        std::fs::write(dir.path().join("PG_VERSION"), "15\n").unwrap();
        assert!(open(dir.path()).contains("no global directory"));
        std::fs::create_dir(dir.path().join("global")).unwrap();
        assert!(open(dir.path()).contains("no global/pg_control"));
    }

    #[test]
    fn old_and_future_versions_are_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("global")).unwrap();
        for (version, says) in
            [("9.6\n", "PostgreSQL 9 "), ("19\n", "PostgreSQL 19 "), ("x", "\"x\"")]
        {
            std::fs::write(dir.path().join("PG_VERSION"), version).unwrap();
            let message = open(dir.path());
            assert!(message.contains(says) && message.contains("14 to 18"), "{message}");
        }
    }

    #[test]
    fn a_live_process_in_the_lock_file_is_a_running_server() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("global")).unwrap();
        std::fs::write(dir.path().join("PG_VERSION"), "15\n").unwrap();
        let pid = std::process::id();
        let linked = dir.path().join("global/..");
        // The path itself, another path to it, and a file caught half written.
        for line in [
            format!("{}\n", dir.path().display()),
            format!("{}\n", linked.display()),
            String::new(),
        ] {
            let lock = format!("{pid}\n{line}");
            std::fs::write(dir.path().join("postmaster.pid"), lock).unwrap();
            assert!(open(dir.path()).contains("a server is running"));
        }
    }

    #[test]
    fn the_lock_file_of_another_directory_or_of_nobody_is_no_running_server() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(dir.path().join("global")).unwrap();
        std::fs::write(dir.path().join("PG_VERSION"), "15\n").unwrap();
        let (pid, own) = (std::process::id(), dir.path().display().to_string());
        let other = other.path().display().to_string();
        for lock in [
            format!("{pid}\n{other}\n"),
            format!("{pid}\n{other}/gone\n"),
            format!("{}\n{own}\n", i32::MIN),
            format!("x\n{own}\n"),
            String::new(),
        ] {
            std::fs::write(dir.path().join("postmaster.pid"), lock).unwrap();
            assert!(open(dir.path()).contains("no global/pg_control"));
        }
    }

    /// A server that was killed, and whose parent did not wait for it, was called a running one: it can still be sent
    /// signals.
    #[test]
    fn a_process_that_ended_and_was_not_reaped_is_no_running_server() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("global")).unwrap();
        std::fs::write(dir.path().join("PG_VERSION"), "15\n").unwrap();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let lock = format!("{}\n{}\n", child.id(), dir.path().display());
        std::fs::write(dir.path().join("postmaster.pid"), lock).unwrap();
        assert!(open(dir.path()).contains("a server is running"));
        child.kill().unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        let is_told = || open(dir.path()).contains("no global/pg_control");
        while !is_told() && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(is_told(), "{}", open(dir.path()));
        child.wait().unwrap();
    }

    const CONTROL_15: &[u8] = include_bytes!("../../pagemill-format/fixtures/pg_control/15.bin");

    /// Files that are read half written a few times, in two ways.
    #[derive(Debug)]
    struct Torn {
        reads_left: Arc<AtomicUsize>,
    }

    #[derive(Debug)]
    struct TornFile(Box<dyn pagemill_io::File>, Arc<AtomicUsize>);

    impl pagemill_io::FileSystem for Torn {
        fn open(
            &self,
            path: &Path,
            caching: pagemill_io::Caching,
        ) -> std::io::Result<Box<dyn pagemill_io::File>> {
            let file = pagemill_io::RealFileSystem.open(path, caching)?;
            Ok(Box::new(TornFile(file, self.reads_left.clone())))
        }
        fn read_dir(&self, path: &Path) -> std::io::Result<Vec<pagemill_io::DirEntry>> {
            pagemill_io::RealFileSystem.read_dir(path)
        }
        fn metadata(&self, path: &Path) -> std::io::Result<pagemill_io::Metadata> {
            pagemill_io::RealFileSystem.metadata(path)
        }
    }

    impl pagemill_io::File for TornFile {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> std::io::Result<usize> {
            let got = self.0.read_at(buf, offset)?;
            let left = self.1.load(Ordering::Relaxed);
            if left > 0 {
                self.1.store(left - 1, Ordering::Relaxed);
                buf[100] ^= left as u8;
            }
            Ok(got)
        }
        fn len(&self) -> std::io::Result<u64> {
            self.0.len()
        }
    }

    #[test]
    fn a_control_file_caught_half_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("global")).unwrap();
        let mut control = CONTROL_15.to_vec();
        control.resize(8192, 0);
        std::fs::write(dir.path().join("global/pg_control"), control).unwrap();
        for (torn, sound) in [(0, true), (3, true), (100, false)] {
            let reads_left = Arc::new(AtomicUsize::new(torn));
            let storage = Storage::new(Arc::new(Torn { reads_left }));
            let read = read_control(&storage, dir.path(), None);
            assert_eq!(read.is_ok(), sound, "{read:?}");
        }
    }
}
