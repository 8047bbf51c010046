//! Redo of WAL in front of the files: [`Recovery::by_wal`] does what a server's recovery does, and writes nothing.
//!
//! A [`RecoveryPlan`] says where redo begins and ends. The WAL between is read once; what it did to which blocks is kept, and
//! pages are redone as they are read. What happened to be on disk already makes no difference.
//!
//! # What is wrong with a copy
//! A first change of a page since the checkpoint brings the whole page, where `full_page_writes` was on. One that does not says
//! that WAL before it is missing: redo begins too late, since a `backup_label` was removed, or the control file is newer than
//! the rest. Pages that are newer than the end of WAL are found when they are read, by `page_check`.
//!
//! Source: `StartupXLOG` in `src/backend/access/transam/xlog.c`, `PerformWalRecovery` in `xlogrecovery.c`, PostgreSQL 14 to 18.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pagemill_format::{Lsn, Oid, SEGMENT_BLOCKS};
use pagemill_io::{FileSystem, Redirect, Storage};
use pagemill_wal::{
    DatabaseDirectory, DirectoryLife, EndOfWal, Entry, Finding, ForkKey, RecordFetch, WalIndex,
    WalIndexBuilder,
};

use super::overlay::{OverlayFileSystem, OverlayParts, file_name};
use super::plan::{PlanOptions, RecoveryCase, RecoveryEnd, RecoveryPlan};
use super::{Recovery, RedoneFiles, TransactionCounters};
use crate::data_directory::OpenOptions;
use crate::directory_state::DirectoryState;
use crate::error::{Damage, Error, Result};

/// What each directory of a database has in it.
const VERSION_FILE: &str = "PG_VERSION";

/// `wal_level` from which on all changes of files are logged (`replica`).
const REPLICA: u32 = 1;

/// What was redone, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedoneWal {
    /// How the directory came to be as it is.
    pub case: RecoveryCase,
    /// Where the first record begins.
    pub start: Lsn,
    /// Where redo ended, and why.
    pub end: RecoveryEnd,
    /// How many records there are.
    pub records: u64,
    /// What somebody ought to know of the directory.
    pub warnings: Vec<String>,
    /// Where the server runs whose lock file lies here too: this is a copy of its files.
    pub server_elsewhere: Option<PathBuf>,
}

impl fmt::Display for RedoneWal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, start, end, records, server_elsewhere, .. } = self;
        write!(
            f,
            "{case}: read as after redo of its WAL from {start} to {}, {records} records, where ",
            end.lsn
        )?;
        match (&end.stop, &end.end_of_wal) {
            (Some(stop), _) if stop.is_before => write!(f, "the target comes")?,
            (Some(_), _) => write!(f, "the target is met")?,
            (None, Some(end)) => write!(f, "it ends: {}", end.reason)?,
            (None, None) => write!(f, "it ends")?,
        }
        match server_elsewhere {
            Some(directory) => write!(
                f,
                "; its postmaster.pid is that of a server on {}: the result is right only if all its files were \
                 copied at one moment, as in a snapshot",
                directory.display()
            ),
            None => Ok(()),
        }
    }
}

impl Recovery {
    /// The files as a server's recovery would make them, up to the end of WAL or to a target, with nothing written.
    ///
    /// # Errors
    /// As [`RecoveryPlan::new`] and [`RecoveryWalk::finish`](super::plan::RecoveryWalk::finish): a copy that is not
    /// recovered so, WAL that is missing or damaged, a target that cannot be met. Damage: a copy that its WAL contradicts.
    pub fn by_wal(
        state: &DirectoryState,
        options: &OpenOptions,
        wanted: &PlanOptions,
    ) -> Result<(Self, RedoneWal)> {
        let control = state.control();
        let plan = RecoveryPlan::new(state, wanted)?;
        let mut walk = plan.walk(state.storage());
        let mut builder = WalIndexBuilder::new(state.storage(), &plan.source, &plan.checkpoint);
        walk.index(&mut builder)?;
        let end = walk.finish(options.allow_inconsistent)?;
        let index = builder.finish(end_of(&end))?;
        let mut warnings = plan.warnings.clone();
        warnings.extend(end.problems.iter().map(ToString::to_string));
        match check_images(state, &index) {
            Err(Error::Damage(damage)) if options.allow_inconsistent => {
                warnings.push(format!("{damage}; so do others like it, perhaps"));
            }
            checked => checked?,
        }
        let (files, lost_databases) = with_copied_databases(state, &plan, &index)?;
        let redone = RedoneWal {
            case: plan.case.clone(),
            start: plan.start,
            end,
            records: index.records,
            warnings,
            server_elsewhere: state.server_elsewhere().and_then(|lock| lock.directory.clone()),
        };
        let counters = TransactionCounters::from(&index.transactions.checkpoint);
        let newest = redone.end.lsn;
        let records = RecordFetch::new(state.storage(), &plan.source, plan.start)?;
        let has_checksums = control.has_data_checksums();
        let parts = OverlayParts {
            index: Arc::new(index),
            records,
            root: state.path().to_path_buf(),
            version_directory: state.version_directory(),
            version: state.version(),
            has_checksums,
            verify_checksums: options.verify_checksums && has_checksums,
            hints_logged: has_checksums || control.settings.wal_log_hints,
        };
        let mut overlay = None;
        let storage = files.over(|below| -> Arc<dyn FileSystem> {
            overlay.insert(Arc::new(OverlayFileSystem::new(below, parts))).clone()
        });
        let (source, end) = (plan.source, redone.end.lsn);
        let files = overlay.map(|overlay| RedoneFiles { overlay, source, end });
        let recovery = Self::redone(storage, counters).until(newest);
        Ok((Self { redone: files, lost_databases, ..recovery }, redone))
    }
}

/// Where redo ended, as the end of the WAL that counts.
fn end_of(end: &RecoveryEnd) -> EndOfWal {
    EndOfWal {
        lsn: end.lsn,
        reason: end.end_of_wal.as_ref().map_or(Finding::TargetMet, |end| end.reason.clone()),
        page_behind: None,
        segment_behind: None,
        missing: Vec::new(),
    }
}

/// The files that redo begins from, where the files of a copied database are those of its source as the WAL begins: as the
/// server's recovery copies them when it comes to that. And the databases whose source is not there, unless WAL made that, too.
///
/// After a crash they are what was copied, since a checkpoint comes right behind; a backup's may be from before, from the
/// middle of the copy, or not there at all.
fn with_copied_databases(
    state: &DirectoryState,
    plan: &RecoveryPlan,
    index: &WalIndex,
) -> Result<(Storage, Vec<Oid>)> {
    let (mut copied, mut lost, mut whole) = (Vec::new(), Vec::new(), HashSet::new());
    let path = |of: DatabaseDirectory| state.relation_directory(of.tablespace, of.database);
    for (directory, life) in index.files.directories().filter(|_| plan.case.is_of_copy()) {
        if !matches!(life, DirectoryLife::Copied { .. }) {
            continue;
        }
        let target = path(index.files.first_origin(directory));
        // Only the directory in a database's own tablespace has a version file.
        if index.files.has_all_of(directory.database)
            || state.storage().exists(&target.join(VERSION_FILE))?
        {
            whole.insert(directory.database);
        } else if !state.storage().exists(&target)? {
            lost.push(directory.database);
        }
        copied.push((directory.database, Redirect { path: path(directory), target }));
    }
    lost.extend(copied.iter().map(|(database, _)| *database).filter(|oid| !whole.contains(oid)));
    let is_there = |database: &Oid| !lost.contains(database);
    let redirects = copied.into_iter().filter(|(database, _)| is_there(database));
    let redirects = redirects.map(|(_, redirect)| redirect).collect();
    Ok((state.storage().redirected(redirects), lost))
}

fn check_images(state: &DirectoryState, index: &WalIndex) -> Result<()> {
    // Without it, pages are written that no record tells of.
    if state.control().settings.wal_level < REPLICA {
        return Ok(());
    }
    let Some((key, entry)) = index.first_without_image() else { return Ok(()) };
    let what = format!(
        "its first change since redo begins at {}, the record at {}, brings no image of the page, although \
         full_page_writes was on: redo begins too late, as when a backup_label was removed",
        index.start,
        entry.lsn()
    );
    let damage = Damage::in_block(path_of(state, key, entry), key.fork, entry.block, what);
    Err(damage.against_wal().into())
}

fn path_of(state: &DirectoryState, key: ForkKey, entry: Entry) -> PathBuf {
    let locator = key.locator;
    let directory = state.relation_directory(locator.tablespace, locator.database);
    directory.join(file_name(key, entry.block.0 / SEGMENT_BLOCKS))
}
