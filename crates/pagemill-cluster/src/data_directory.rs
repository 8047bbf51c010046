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
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_format::control::{ClusterState, ControlFile};
use pagemill_format::{Fork, Oid, PgVersion};
use pagemill_io::{ForkFiles, SegmentListing, Storage};

use crate::error::{Damage, Error, Result};

/// `pg_default`, the tablespace whose files lie under `base`.
pub const DEFAULT_TABLESPACE: Oid = Oid(1663);
/// `pg_global`, the tablespace whose files lie under `global`.
pub const GLOBAL_TABLESPACE: Oid = Oid(1664);

const SMALL_FILE_LIMIT: u64 = 1 << 20;

/// What a caller allows although the result can then only be advisory, and what it checks.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions {
    /// Read although a server is running.
    pub live: bool,
    /// Read although the cluster was not shut down.
    pub allow_unclean: bool,
    /// Verify the checksum of every page read, where the cluster has them.
    pub verify_checksums: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { live: false, allow_unclean: false, verify_checksums: true }
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
    /// What each directory of relations holds.
    listings: Mutex<HashMap<PathBuf, Arc<SegmentListing>>>,
}

impl Cluster {
    /// Opens the data directory at `path`.
    ///
    /// # Errors
    /// When it is none, or of a kind or in a state that is not to be read.
    pub fn open(storage: Storage, path: &Path, options: OpenOptions) -> Result<Self> {
        let version = read_version(&storage, path)?;
        if !options.live {
            refuse_running_server(&storage, path)?;
        }
        let control = read_control(&storage, path, Some(version))?;
        let clean = control.state == ClusterState::ShutDown;
        if !clean && !options.live && !options.allow_unclean {
            let state = control.state.to_string();
            return Err(Error::NotShutDown { path: path.into(), state });
        }
        let verify_checksums = options.verify_checksums && control.has_data_checksums();
        let path = path.to_path_buf();
        let listings = Mutex::default();
        let inner = Inner { storage, path, control, options, verify_checksums, listings };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What everything in the cluster is read through.
    pub fn storage(&self) -> &Storage {
        &self.inner.storage
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
        self.inner.control.state == ClusterState::ShutDown && !self.inner.options.live
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
        let listing = Arc::new(SegmentListing::read(self.storage(), directory)?);
        listings().insert(directory.into(), listing.clone());
        Ok(listing)
    }

    /// Reads a small file of the cluster, whole.
    ///
    /// # Errors
    /// When it is not there, cannot be read, or is not small.
    pub fn read_small_file(&self, path: &Path) -> Result<Vec<u8>> {
        Ok(self.storage().read_file(path, SMALL_FILE_LIMIT)?)
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
    let bytes = storage.read_file(&file, SMALL_FILE_LIMIT)?;
    ControlFile::parse(&bytes, version).map_err(|error| match error {
        pagemill_format::Error::Unsupported { .. } => {
            Error::Unsupported { path: file, reason: error.to_string() }
        }
        other => Error::file_damage(file, &other),
    })
}

/// A lock file counts as long as the process it names lives; a server that crashed leaves one
/// behind that names nobody.
fn refuse_running_server(storage: &Storage, path: &Path) -> Result<()> {
    let file = path.join("postmaster.pid");
    let contents = match storage.read_file(&file, SMALL_FILE_LIMIT) {
        Ok(contents) => contents,
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let text = String::from_utf8_lossy(&contents);
    let pid = text.lines().next().and_then(|line| line.trim().parse::<i32>().ok());
    match pid.map(i32::abs).filter(|&pid| is_alive(pid)) {
        Some(pid) => Err(Error::Running { path: file, pid }),
        None => Ok(()),
    }
}

fn is_alive(pid: i32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let Some(pid) = Pid::from_raw(pid) else { return false };
    // Only "no such process" says that nobody is there; "not permitted" says somebody is.
    test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
}

#[cfg(test)]
mod tests {
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
        std::fs::write(dir.path().join("postmaster.pid"), format!("{pid}\n/x\n")).unwrap();
        assert!(open(dir.path()).contains("a server is running"));
    }
}
