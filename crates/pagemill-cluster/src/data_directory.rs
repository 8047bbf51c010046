//! The third stage of opening a data directory, and what stays open: the [`Cluster`], which catalogs and relations are read
//! from.
//!
//! Everything that could make the files say something else than a server would is refused before a page is read: a running
//! server and another block size by [`DirectoryState`], an unclean shutdown by [`Recovery`]. Whoever knows better says so in
//! [`OpenOptions`].
//!
//! Source: the layout of a data directory is in the manual, "Database File Layout", PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pagemill_format::control::ControlFile;
use pagemill_format::{BlockNumber, Fork, Lsn, Oid, PgVersion};
use pagemill_io::{ForkFiles, Node, SegmentListing, Storage};
use pagemill_stream::BufferPool;
use pagemill_stream::buffer_pool::DEFAULT_SHARED_BUFFERS;

use crate::change::ClusterLock;
use crate::directory_state::{DirectoryState, SMALL_FILE_LIMIT};
use crate::directory_witness::{DirectoryChange, DirectoryWitness};
use crate::error::{Damage, Error, Result};
use crate::page_check::PageLimit;
use crate::recovery::{PageHistory, Recovery, RecoveryResult, RedoneFiles, TransactionCounters};

/// `pg_default`, the tablespace whose files lie under `base`.
pub const DEFAULT_TABLESPACE: Oid = Oid(1663);
/// `pg_global`, the tablespace whose files lie under `global`.
pub const GLOBAL_TABLESPACE: Oid = Oid(1664);

/// What a caller allows although the result can then only be advisory, and what it checks.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions {
    /// Read although a server is running.
    pub live: bool,
    /// Read although the cluster was not shut down.
    pub allow_unclean: bool,
    /// Read on although a copy contradicts its WAL: files of several moments, a link to a running server's files, WAL that
    /// is damaged or too short. Each is told: when the directory is opened, or by [`Cluster::newer_page`].
    pub allow_inconsistent: bool,
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
            allow_inconsistent: false,
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
    state: DirectoryState,
    storage: Storage,
    counters: TransactionCounters,
    result: RecoveryResult,
    redone: Option<RedoneFiles>,
    verify_checksums: bool,
    page_limit: PageLimit,
    lost_databases: Vec<Oid>,
    buffer_pool: Arc<BufferPool>,
    /// What each directory of relations holds.
    listings: Mutex<HashMap<PathBuf, Arc<SegmentListing>>>,
    /// What the directory is known by, where it is watched.
    witness: OnceLock<DirectoryWitness>,
    /// The names of tablespaces, once a message has needed one.
    tablespace_names: OnceLock<HashMap<Oid, Box<[u8]>>>,
}

impl Cluster {
    /// Opens the data directory at `path`.
    ///
    /// # Errors
    /// When it is none, or of a kind or in a state that is not to be read.
    pub fn open(storage: Storage, path: &Path, options: OpenOptions) -> Result<Self> {
        let state = match options.live {
            true => DirectoryState::read_live(&storage, path)?,
            false => DirectoryState::read(&storage, path)?,
        };
        Self::open_after(state, options)
    }

    /// Opens the data directory that this process has the right to change.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_locked(storage: Storage, lock: &ClusterLock, options: OpenOptions) -> Result<Self> {
        Self::open_after(DirectoryState::read_locked(&storage, lock)?, options)
    }

    fn open_after(state: DirectoryState, options: OpenOptions) -> Result<Self> {
        let recovery = Recovery::of(&state, &options)?;
        Ok(Self::open_recovered(state, recovery, options))
    }

    /// The last stage, for whoever made the recovery: reads nothing yet. Of the options only those count that say how to read.
    pub fn open_recovered(state: DirectoryState, recovery: Recovery, options: OpenOptions) -> Self {
        let Recovery { storage, counters, result, newest, redone, lost_databases } = recovery;
        let verify_checksums = options.verify_checksums && state.control().has_data_checksums();
        tracing::info!(
            path = %state.path().display(),
            version = %state.control().version,
            state = %state.control().state,
            verify_checksums,
            "cluster opened"
        );
        let inner = Inner {
            storage: storage.with_modes_of(state.path()),
            state,
            counters,
            result,
            redone,
            verify_checksums,
            lost_databases,
            page_limit: PageLimit::new(newest, options.allow_inconsistent),
            buffer_pool: BufferPool::new(options.shared_buffers),
            listings: Mutex::default(),
            witness: OnceLock::new(),
            tablespace_names: OnceLock::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// What lay in the directory when it was opened.
    pub fn state(&self) -> &DirectoryState {
        &self.inner.state
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
        self.state().path()
    }

    /// The contents of `pg_control`. What of it transactions move on is in [`counters`](Self::counters).
    pub fn control(&self) -> &ControlFile {
        self.state().control()
    }

    /// Up to where transactions were given out: what the commit log is asked by.
    pub fn counters(&self) -> &TransactionCounters {
        &self.inner.counters
    }

    /// The version that wrote the cluster.
    pub fn version(&self) -> PgVersion {
        self.state().version()
    }

    /// True when page checksums are to be verified.
    pub fn verify_checksums(&self) -> bool {
        self.inner.verify_checksums
    }

    /// True for a database whose files redo would have to copy from one that is not there.
    pub(crate) fn lacks_source_of(&self, database: Oid) -> bool {
        self.inner.lost_databases.contains(&database)
    }

    /// Up to where pages may have been changed.
    pub(crate) fn page_limit(&self) -> &PageLimit {
        &self.inner.page_limit
    }

    /// Up to where pages may have been changed: what was redone of the WAL, or the end of it where nothing had to be.
    pub fn newest_page(&self) -> Lsn {
        self.inner.page_limit.newest()
    }

    /// The first page that was read although it is newer than the WAL that was redone, if that is allowed and there was one.
    pub fn newer_page(&self) -> Option<&Damage> {
        self.inner.page_limit.first_newer()
    }

    /// Watches the directory from now on, which was looked at before it was opened. The first that watches counts.
    pub fn watch(&self, witness: DirectoryWitness) {
        let _ = self.inner.witness.set(witness);
    }

    /// Whether the directory is still what was opened; true of one that is not watched. Looks into files.
    ///
    /// # Errors
    /// When it is not, or that cannot be told.
    pub fn check_unchanged(&self) -> Result<(), DirectoryChange> {
        self.inner.witness.get().map_or(Ok(()), DirectoryWitness::check)
    }

    /// The same, unless that was checked a moment ago: before work that is checked for once more when it is done.
    ///
    /// # Errors
    /// As [`Self::check_unchanged`].
    pub fn check_unchanged_lately(&self) -> Result<(), DirectoryChange> {
        self.inner.witness.get().map_or(Ok(()), DirectoryWitness::check_lately)
    }

    /// True when a server may be changing the files.
    pub fn is_live(&self) -> bool {
        self.state().is_live()
    }

    /// True when a server shut the cluster down, so that the files are complete without any WAL.
    pub fn is_clean(&self) -> bool {
        self.inner.result == RecoveryResult::Clean
    }

    /// True when all is there that a server would find after its start: the cluster is [clean](Self::is_clean), or its WAL
    /// was redone.
    pub fn is_complete(&self) -> bool {
        self.inner.result != RecoveryResult::AsTheyLie
    }

    /// How a page came to be as it is after redo; `None` where nothing was redone, for pages of maps and of unlogged
    /// relations.
    ///
    /// # Errors
    /// When the page in the file, or a record, cannot be read.
    pub fn page_history(
        &self,
        files: &ForkFiles,
        block: BlockNumber,
    ) -> Result<Option<PageHistory>> {
        let Some(redone) = &self.inner.redone else { return Ok(None) };
        let (path, _) = files.locate(block);
        let named = |error| pagemill_io::Error::new(error, &path);
        Ok(redone.overlay.page_history(&path, block).map_err(named)?)
    }

    /// What the files were redone by.
    pub(crate) fn redone(&self) -> Option<&RedoneFiles> {
        self.inner.redone.as_ref()
    }

    /// The directory that holds a database's files in a tablespace; for the global tablespace the
    /// database does not matter.
    pub fn tablespace_path(&self, tablespace: Oid, database: Oid) -> PathBuf {
        self.state().relation_directory(tablespace, database)
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
        let (link, named) = self.missing_link(oid);
        Error::MissingTablespace { path: directory.into(), tablespace, link, named }
    }

    /// What became of the link of a tablespace that is missing, and the directory that it names, if that is not there.
    fn missing_link(&self, oid: Oid) -> (String, Option<PathBuf>) {
        let place = self.state().tablespaces().iter().find(|place| place.oid == oid);
        let named = place.map(|place| place.named.clone());
        let link = self.path().join("pg_tblspc").join(oid.to_string());
        let is_there = |target: &Path| self.storage().exists(target).unwrap_or(true);
        match self.storage().node(&link) {
            Ok(Node::Link { target }) if is_there(&target) => {
                let shown = target.display();
                (format!("whose link leads to {shown}: restore what is missing there"), None)
            }
            Ok(Node::Link { target }) if place.is_some_and(|place| !place.has_link) => {
                let shown = target.display();
                let told = format!(
                    "which has no link, and which tablespace_map has in {shown}, which is not there: mount or restore it"
                );
                (told, named)
            }
            Ok(Node::Link { target }) => {
                let told = format!(
                    "whose link leads to {}, which is not there: mount or restore it, or correct the link {}",
                    target.display(),
                    link.display()
                );
                (told, named)
            }
            Ok(_) => {
                let shown = link.display();
                (format!("which lies in {shown}: restore what is missing there"), None)
            }
            Err(_) => (format!("whose link {} is missing: restore it", link.display()), None),
        }
    }
}
