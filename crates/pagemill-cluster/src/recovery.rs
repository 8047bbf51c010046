//! The second stage of opening a data directory: what has to be redone before its files say what a server would say.
//!
//! After a clean shutdown that is nothing. Otherwise the newest changes are in the WAL alone, and the directory is refused, or
//! its files are read as they lie where the caller allows that, or whoever redid the WAL hands in a [`Recovery`] of its own:
//!
//! ```text
//! DirectoryState ─┬─ Recovery::of      (nothing to redo; a refusal; files as they lie) ─┬─► Cluster::open_recovered
//! what lies there └─ Recovery::redone  (a storage with redone pages, and its counters) ─┘   catalogs, relations
//! ```
//!
//! # What a redone storage has to be
//! All that is read of the cluster comes through the [`Storage`] handed in: catalogs, relation maps, the commit log, TOAST
//! tables, indexes, maps. So one file system that lays redone pages over the files
//! ([`Storage::over`] wraps the one below and keeps its settings and counters) is enough, and no mixture of before and after
//! is possible, if for every path below the data directory and its tablespaces:
//!
//! - `read_dir`, `metadata`, `File::len` tell the files and sizes there are *after* redo: relations and segments that were
//!   made are listed, dropped ones are not, forks are as long as they became. Listings are what relations are found by.
//! - `read_at` gives pages as after redo. Their checksum and header must hold where the cluster has checksums: set the checksum
//!   of each page that was changed. Files without a redone page may be those of the file system below, mapping included; a
//!   file with one leaves `map`, `residency` and `ring` out of its [capabilities](pagemill_io::File::capabilities) and has no
//!   descriptor, and is then read by other calls; the others are mapped and queued as ever.
//! - `pg_xact` and `pg_multixact` are as after redo, up to the page of the last number that was given out:
//!   what a clean cluster must have there must be there.
//! - `global/pg_filenode.map` and its like in each database are as after redo.
//! - A page of a visibility map promises nothing about a heap block that has redone records, unless the map was redone too.
//!   Free space maps are not looked at.
//! - The init fork of unlogged relations is what their rows are read from, as a server's recovery resets them to it.
//!
//! `PG_VERSION` and `global/pg_control` were read before, from the files as they lie.
//!
//! # What the counters are for
//! [`TransactionCounters`] take the place of those in the last checkpoint: the commit log calls a transaction at or above
//! `next_xid` damage, and finds the members of the last multixact by `next_multi_offset`.

mod overlay;
pub mod plan;
mod redone_wal;

use std::sync::Arc;

use pagemill_format::control::{Checkpoint, ClusterState, FullTransactionId};
use pagemill_format::{Lsn, MultiXactId, Oid, TransactionId};
use pagemill_io::Storage;
use pagemill_wal::WalSource;

use crate::data_directory::OpenOptions;
use crate::directory_state::DirectoryState;
use crate::error::{Error, NotShutDown, Result};
use crate::lock_file::LockFile;
use overlay::OverlayFileSystem;
pub use overlay::{BasePage, PageHistory, PageRecord};
pub(crate) use overlay::{ComposedFile, Composition, FileInMemory, read_pages};
pub use redone_wal::RedoneWal;

/// Files that a base backup or a restore leaves in a data directory until a server has started.
const RECOVERY_FILES: [&str; 4] =
    ["backup_label", "tablespace_map", "recovery.signal", "standby.signal"];

/// How the files of a data directory come to be what they should be. See the module for what a new kind of it has to do.
#[derive(Debug)]
pub struct Recovery {
    pub(crate) storage: Storage,
    pub(crate) counters: TransactionCounters,
    pub(crate) result: RecoveryResult,
    /// No page is newer.
    pub(crate) newest: Lsn,
    /// Databases of which a backup does not have what they were made from.
    pub(crate) lost_databases: Vec<Oid>,
    pub(crate) redone: Option<RedoneFiles>,
}

/// What the files were redone by, where [`Recovery::by_wal`] did it: for whoever asks how a page came to be.
#[derive(Debug, Clone)]
pub(crate) struct RedoneFiles {
    pub(crate) overlay: Arc<OverlayFileSystem>,
    /// Where WAL comes from.
    pub(crate) source: WalSource,
    /// Where the last record ends that was redone.
    pub(crate) end: Lsn,
}

/// Any page is as new as this.
const NO_LIMIT: Lsn = Lsn(u64::MAX);

/// What the files say once recovery is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecoveryResult {
    /// All that was committed: a server stopped cleanly.
    Clean,
    /// All that was committed before the point that was redone to.
    Redone,
    /// What happened to be written: changes of committed transactions may be missing.
    AsTheyLie,
}

/// Up to where transactions and multixacts were given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionCounters {
    /// The next transaction to be given out: no tuple is of this one or a later one.
    pub next_xid: FullTransactionId,
    /// The oldest transaction that the commit log still covers.
    pub oldest_xid: TransactionId,
    /// The next multixact to be given out.
    pub next_multi: MultiXactId,
    /// Where its members will begin.
    pub next_multi_offset: u32,
}

impl From<&Checkpoint> for TransactionCounters {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self {
            next_xid: checkpoint.next_xid,
            oldest_xid: checkpoint.oldest_xid,
            next_multi: checkpoint.next_multi,
            next_multi_offset: checkpoint.next_multi_offset,
        }
    }
}

impl Recovery {
    /// Nothing is redone: right after a clean shutdown; else the files are read as they lie, if the options allow it.
    ///
    /// # Errors
    /// When WAL would have to be redone, with what the directory tells about how that came about.
    pub fn of(state: &DirectoryState, options: &OpenOptions) -> Result<Self> {
        let result = match state.is_clean() {
            true => RecoveryResult::Clean,
            false if state.is_live() || options.allow_unclean => RecoveryResult::AsTheyLie,
            false => {
                return Err(Error::NotShutDown {
                    path: state.path().into(),
                    cause: cause_of(state),
                });
            }
        };
        let counters = TransactionCounters::from(&state.control().checkpoint);
        Ok(Self {
            storage: state.storage().clone(),
            counters,
            result,
            newest: NO_LIMIT,
            redone: None,
            lost_databases: Vec::new(),
        })
    }

    /// What a command that reads makes of a directory: [redone WAL](Self::by_wal) where the files lack some, or where the
    /// caller wants a moment or another archive; else as [`of`](Self::of). Files that the options want as they lie are not
    /// recovered, whatever is wanted.
    ///
    /// # Errors
    /// As these two.
    pub fn for_reading(
        state: &DirectoryState,
        options: &OpenOptions,
        wanted: &plan::PlanOptions,
    ) -> Result<(Self, Option<RedoneWal>)> {
        let as_it_lies = state.is_live() || options.allow_unclean;
        if as_it_lies || state.is_clean() && !wanted.are_given() {
            return Ok((Self::of(state, options)?, None));
        }
        let (recovery, redone) = Self::by_wal(state, options, wanted)?;
        Ok((recovery, Some(redone)))
    }

    /// The WAL was redone: `storage` shows the files as after it, `counters` what was given out by then. The module says
    /// what `storage` has to be.
    pub fn redone(storage: Storage, counters: TransactionCounters) -> Self {
        Self {
            storage,
            counters,
            result: RecoveryResult::Redone,
            newest: NO_LIMIT,
            redone: None,
            lost_databases: Vec::new(),
        }
    }

    /// The same where redo ended at this LSN, so that a page that is newer is not of this copy.
    #[must_use]
    pub fn until(self, newest: Lsn) -> Self {
        Self { newest, ..self }
    }
}

/// How a cluster came to be as it is, as far as its directory tells.
fn cause_of(directory: &DirectoryState) -> NotShutDown {
    let state = directory.control().state;
    if state == ClusterState::ShutDownInRecovery {
        return NotShutDown::StoppedStandby;
    }
    let files: Vec<_> =
        RECOVERY_FILES.into_iter().filter(|name| directory.contains(name)).collect();
    match directory.server_elsewhere() {
        Some(LockFile { pid, directory: Some(directory), .. }) => {
            NotShutDown::ServerElsewhere { state, files, pid: *pid, directory: directory.clone() }
        }
        _ if files.is_empty() => NotShutDown::Crash(state),
        _ => NotShutDown::Restored(state, files),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use pagemill_format::slru;
    use pagemill_format::{BLOCK_SIZE, TransactionId};
    use pagemill_io::{Caching, DirEntry, File, FileSystem, Metadata};

    use super::*;
    use crate::Cluster;
    use crate::transaction_log::ClusterLog;
    use crate::transaction_log::synthetic::SyntheticCluster;
    use crate::visibility::TransactionLog as _;

    /// One file as it is after redo, over those that lie there.
    #[derive(Debug)]
    struct Redone {
        below: Arc<dyn FileSystem>,
        path: PathBuf,
        contents: Vec<u8>,
    }

    #[derive(Debug)]
    struct RedoneFile(Vec<u8>);

    impl FileSystem for Redone {
        fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
            match path == self.path {
                true => Ok(Box::new(RedoneFile(self.contents.clone()))),
                false => self.below.open(path, caching),
            }
        }
        fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
            self.below.read_dir(path)
        }
        fn metadata(&self, path: &Path) -> io::Result<Metadata> {
            match path == self.path {
                true => Ok(Metadata { len: self.contents.len() as u64, is_dir: false }),
                false => self.below.metadata(path),
            }
        }
    }

    impl File for RedoneFile {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            let rest = self.0.get(offset as usize..).unwrap_or_default();
            let len = rest.len().min(buf.len());
            buf[..len].copy_from_slice(&rest[..len]);
            Ok(len)
        }
        fn len(&self) -> io::Result<u64> {
            Ok(self.0.len() as u64)
        }
    }

    fn state(made: &SyntheticCluster) -> DirectoryState {
        DirectoryState::read(&Storage::real(), &made.path("")).unwrap()
    }

    #[test]
    fn a_clean_directory_needs_nothing_and_a_killed_one_is_refused_or_read_as_it_lies() {
        let made = SyntheticCluster::new(1000, 1, 1);
        assert!(made.open().is_clean() && made.open().is_complete());
        let clean = state(&made);
        assert_eq!((clean.is_clean(), clean.redo()), (true, None));
        let made = made.killed();
        let raw = made.open();
        assert!(!raw.is_clean() && !raw.is_complete());
        let killed = state(&made);
        assert_eq!(killed.redo(), Some(killed.control().checkpoint.redo));
        let refused = Recovery::of(&killed, &OpenOptions::default()).unwrap_err().to_string();
        assert!(refused.contains("start and stop PostgreSQL on it"), "{refused}");
    }

    #[test]
    fn what_was_redone_is_read_from_the_storage_and_by_the_counters_that_are_handed_in() {
        let made = SyntheticCluster::new(1000, 1, 1).killed();
        made.open();
        let state = state(&made);
        let mut page = vec![0; BLOCK_SIZE];
        let committed = TransactionId(1007);
        page[slru::clog_position(committed).byte] |= 1 << (committed.0 % 4 * 2);
        let (path, counted) = (made.path("pg_xact/0000"), state.storage().clone());
        let lay =
            |below| -> Arc<dyn FileSystem> { Arc::new(Redone { below, path, contents: page }) };
        let storage = state.storage().over(lay);
        let before = TransactionCounters::from(&state.control().checkpoint);
        let counters = TransactionCounters { next_xid: FullTransactionId(1009), ..before };
        let recovery = Recovery::redone(storage, counters);
        let cluster = Cluster::open_recovered(state, recovery, OpenOptions::default());
        assert!(cluster.is_complete() && !cluster.is_clean());
        let calls = counted.counters().snapshot().read_calls;
        let mut log = ClusterLog::new(cluster);
        assert!(log.committed(committed).unwrap());
        assert!(!log.committed(TransactionId(1008)).unwrap());
        let error = log.committed(TransactionId(1009)).unwrap_err().to_string();
        assert!(error.contains("1009 was never begun: the next one is 1009"), "{error}");
        assert_eq!(counted.counters().snapshot().read_calls, calls + 1);
    }
}
