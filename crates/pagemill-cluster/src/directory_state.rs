//! The first stage of opening a data directory: what lies there.
//!
//! Nothing is decided here but one thing: a directory that a server runs on is refused, since whatever else it says may be
//! outdated by the time it is used. What the files lack is the matter of [`Recovery`](crate::Recovery).
//!
//! Invariant: the lock file is read before the control file, so that a server that is just being started is found by one of
//! them.
//!
//! Source: the layout of a data directory is in the manual, "Database File Layout"; the states in
//! `src/include/catalog/pg_control.h`, PostgreSQL 14 to 18.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pagemill_format::control::ControlFile;
use pagemill_format::{Error as FormatError, ErrorKind as FormatErrorKind, Lsn, Oid, PgVersion};
use pagemill_io::{ErrorKind, Storage};

use crate::backup_repository::is_repository;
use crate::backup_storage::has_archives;
use crate::change::ClusterLock;
use crate::data_directory::{DEFAULT_TABLESPACE, GLOBAL_TABLESPACE};
use crate::error::{DirectoryFault, Error, Result, UnsupportedCluster};
use crate::lock_file::LockFile;
use crate::tablespace_places::{TablespacePlace, redirected};

/// Files read whole are at most this long, in bytes.
pub(crate) const SMALL_FILE_LIMIT: u64 = 1 << 20;

/// How often, and after how long, `pg_control` is read again when its CRC is wrong: a server may
/// have been writing it. `get_controlfile` in `controldata_utils.c` does the same.
const CONTROL_RETRIES: usize = 10;
const CONTROL_PAUSE: Duration = Duration::from_millis(10);

/// What a data directory says about itself, before a relation is read.
#[derive(Debug)]
pub struct DirectoryState {
    storage: Storage,
    path: PathBuf,
    version: PgVersion,
    control: ControlFile,
    /// What lies in the directory itself.
    names: HashSet<OsString>,
    /// The lock file of a process that lives, and whose directory is another one.
    server_elsewhere: Option<LockFile>,
    live: bool,
    /// Tablespaces outside of the directory, once they were looked for.
    tablespaces: Vec<TablespacePlace>,
    warnings: Vec<String>,
}

impl DirectoryState {
    /// Looks at the data directory at `path`.
    ///
    /// # Errors
    /// When it is none, of an unknown version, damaged, or when a server runs on it.
    pub fn read(storage: &Storage, path: &Path) -> Result<Self> {
        let (version, names) = version_and_names(storage, path)?;
        let is_there = names.contains(OsStr::new(LockFile::NAME));
        let lock = if is_there { LockFile::read(storage, path)? } else { None };
        if let Some(lock) = lock.as_ref().filter(|lock| lock.is_of(storage, path)) {
            return Err(Error::Running { path: path.join(LockFile::NAME), pid: lock.pid });
        }
        Ok(Self { server_elsewhere: lock, ..Self::with(storage, path, version, names)? })
    }

    /// As [`read`](Self::read), whether a server runs there or not.
    ///
    /// # Errors
    /// As [`read`](Self::read), but for the server.
    pub fn read_live(storage: &Storage, path: &Path) -> Result<Self> {
        let (version, names) = version_and_names(storage, path)?;
        Ok(Self { live: true, ..Self::with(storage, path, version, names)? })
    }

    /// As [`read`](Self::read), of the directory that this process has the right to change.
    ///
    /// # Errors
    /// As [`read`](Self::read); the lock keeps servers away.
    pub fn read_locked(storage: &Storage, lock: &ClusterLock) -> Result<Self> {
        let (version, names) = version_and_names(storage, lock.directory())?;
        Self::with(storage, lock.directory(), version, names)
    }

    fn with(
        storage: &Storage,
        path: &Path,
        version: PgVersion,
        names: HashSet<OsString>,
    ) -> Result<Self> {
        let control = read_control(storage, path, Some(version))?;
        let (storage, path) = (storage.clone(), path.to_owned());
        Ok(Self {
            storage,
            path,
            version,
            control,
            names,
            server_elsewhere: None,
            live: false,
            tablespaces: Vec::new(),
            warnings: Vec::new(),
        })
    }

    /// What the files are read through, as they lie there.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The data directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version that wrote the cluster.
    pub fn version(&self) -> PgVersion {
        self.version
    }

    /// The contents of `pg_control`, as it lies there.
    pub fn control(&self) -> &ControlFile {
        &self.control
    }

    /// The directory in each tablespace that is this cluster's.
    pub fn version_directory(&self) -> String {
        format!("PG_{}_{}", self.version, self.control.catalog_version)
    }

    /// The directory that holds a database's files in a tablespace; for the global tablespace the
    /// database does not matter.
    pub fn relation_directory(&self, tablespace: Oid, database: Oid) -> PathBuf {
        let database = database.to_string();
        match tablespace {
            GLOBAL_TABLESPACE => self.path.join("global"),
            DEFAULT_TABLESPACE => self.path.join("base").join(database),
            other => {
                let tablespace = self.path.join("pg_tblspc").join(other.to_string());
                tablespace.join(self.version_directory()).join(database)
            }
        }
    }

    /// True when the directory itself holds a file or directory of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(OsStr::new(name))
    }

    /// True when a server may be changing the files.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// True when a server stopped cleanly, so that the files are complete without any WAL.
    pub fn is_clean(&self) -> bool {
        self.control.state.is_clean() && !self.live
    }

    /// Where the WAL begins that the files lack, as the control file has it; `None` when they lack none. A
    /// `backup_label`, where there is one, names an earlier point, and a server follows that.
    pub fn redo(&self) -> Option<Lsn> {
        (!self.is_clean()).then_some(self.control.checkpoint.redo)
    }

    /// The tablespaces outside of the data directory, by their numbers; none before
    /// [`with_tablespaces`](Self::with_tablespaces).
    pub fn tablespaces(&self) -> &[TablespacePlace] {
        &self.tablespaces
    }

    /// What is wrong with the directory, and was allowed.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(crate) fn warn(&mut self, what: String) {
        self.warnings.push(what);
    }

    /// Reads the tablespaces where they are from now on.
    pub(crate) fn set_tablespaces(&mut self, places: Vec<TablespacePlace>) {
        self.storage = redirected(&self.storage, &self.path, &places);
        self.tablespaces = places;
    }

    /// The lock file of a server that runs on another directory: this may be a copy of its files.
    pub(crate) fn server_elsewhere(&self) -> Option<&LockFile> {
        self.server_elsewhere.as_ref()
    }
}

/// Checks that a directory is a data directory, and tells its version.
///
/// # Errors
/// When it is none, or of a version that is not supported.
pub fn read_version(storage: &Storage, path: &Path) -> Result<PgVersion> {
    Ok(version_and_names(storage, path)?.0)
}

/// The version, and the names in the directory: all that is asked of it is found by listing it once.
fn version_and_names(storage: &Storage, path: &Path) -> Result<(PgVersion, HashSet<OsString>)> {
    let none = |fault| Error::NotADataDirectory { path: path.into(), fault };
    let names: HashSet<OsString> = match storage.read_dir(path) {
        Ok(entries) => entries.into_iter().map(|entry| entry.name).collect(),
        Err(error) if error.is_not_found() => return Err(none(DirectoryFault::Missing)),
        Err(error) if is_no_directory(&error) => return Err(none(DirectoryFault::File)),
        Err(error) => return Err(error.into()),
    };
    let contains = |name: &str| names.contains(OsStr::new(name));
    if !contains("PG_VERSION") && has_archives(&names) {
        return Err(none(DirectoryFault::TarBackup));
    }
    if is_repository(&names) {
        return Err(none(DirectoryFault::Repository));
    }
    if !contains("PG_VERSION") {
        return Err(none(DirectoryFault::NoVersionFile));
    }
    if !contains("global") {
        return Err(none(DirectoryFault::NoGlobalDirectory));
    }
    Ok((parse_version(storage, path.join("PG_VERSION"))?, names))
}

/// True when a path leads through a file, or to one where a directory is wanted.
pub(crate) fn is_no_directory(error: &pagemill_io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Io(error) if error.kind() == io::ErrorKind::NotADirectory)
}

fn parse_version(storage: &Storage, file: PathBuf) -> Result<PgVersion> {
    let text = storage.read_file(&file, SMALL_FILE_LIMIT)?;
    let text = String::from_utf8_lossy(&text);
    let text = text.trim();
    let major = text.split('.').next().and_then(|major| major.parse().ok());
    major.and_then(PgVersion::from_major).ok_or_else(|| Error::Unsupported {
        path: file,
        found: match major {
            Some(major) => UnsupportedCluster::Version(major),
            None => UnsupportedCluster::NotAVersion(text.into()),
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
    let parsed = match parse_control(storage, &file, version) {
        Err(Error::Io(error)) if error.is_not_found() => {
            let fault = DirectoryFault::NoControlFile;
            return Err(Error::NotADataDirectory { path: path.into(), fault });
        }
        parsed => parsed?,
    };
    parsed.map_err(|error| match error.kind() {
        FormatErrorKind::Unsupported { .. } => {
            Error::Unsupported { path: file, found: UnsupportedCluster::ControlFile(error) }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{Cluster, OpenOptions};

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
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(open(&dir.path().join("file")).contains("it is a file"));
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
        ) -> io::Result<Box<dyn pagemill_io::File>> {
            let file = pagemill_io::RealFileSystem.open(path, caching)?;
            Ok(Box::new(TornFile(file, self.reads_left.clone())))
        }
        fn read_dir(&self, path: &Path) -> io::Result<Vec<pagemill_io::DirEntry>> {
            pagemill_io::RealFileSystem.read_dir(path)
        }
        fn metadata(&self, path: &Path) -> io::Result<pagemill_io::Metadata> {
            pagemill_io::RealFileSystem.metadata(path)
        }
    }

    impl pagemill_io::File for TornFile {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            let got = self.0.read_at(buf, offset)?;
            let left = self.1.load(Ordering::Relaxed);
            if left > 0 {
                self.1.store(left - 1, Ordering::Relaxed);
                buf[100] ^= left as u8;
            }
            Ok(got)
        }
        fn len(&self) -> io::Result<u64> {
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
