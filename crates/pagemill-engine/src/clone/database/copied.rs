//! `file_copy` and `reflink`: the files of the template's directories, copied or shared as they are; and the directories
//! themselves, for every strategy.
//!
//! Files are copied by several threads, the largest first, and synced together, by several threads. Pages are checked on
//! their way where they come through this process.
//!
//! Invariant: every file is durable when [`copy`] returns, and every name when [`sync_directories`] does.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, ScopedJoinHandle};

use pagemill_cluster::change::{DatabaseCreation, DatabaseDirectory};
use pagemill_cluster::page_check::find_fault;
use pagemill_cluster::{Damage, Database};
use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork, Oid, SEGMENT_BLOCKS};
use pagemill_io::{CopiedFile, CopiedPiece, CopyMethod, check_interrupt, sync_all};

use super::plan::TemplateFile;
use super::{CloneOptions, ClonePlan, CloneStrategy, CloneSummary, cluster_error};
use crate::clone::comparison::compare_files;
use crate::error::{Error, Result};

/// Files that are copied before they are synced together.
const UNSYNCED: usize = 256;
/// More than any of the small files of a database is long.
const SMALL_FILE: u64 = 1 << 16;

/// Makes the directories of the new database. Their names are not durable yet.
///
/// # Errors
/// Names the directory.
pub(super) fn make_directories(creation: &DatabaseCreation) -> Result<()> {
    let storage = creation.template().cluster().storage();
    for &directory in creation.directories() {
        storage.create_dir(&creation.path(directory)).map_err(cluster_error)?;
    }
    Ok(())
}

/// Makes the names in all directories durable, and theirs.
///
/// # Errors
/// When a directory cannot be synced.
pub(super) fn sync_directories(creation: &DatabaseCreation) -> Result<()> {
    let storage = creation.template().cluster().storage();
    for &directory in creation.directories() {
        let path = creation.path(directory);
        storage.sync_dir(&path).map_err(cluster_error)?;
        storage.sync_dir_of(&path).map_err(cluster_error)?;
    }
    Ok(())
}

/// Copies `PG_VERSION` and the relation map, and returns the map.
///
/// # Errors
/// When one cannot be read or written.
pub(super) fn copy_small_files(creation: &DatabaseCreation) -> Result<Vec<u8>> {
    let mut last = Vec::new();
    let own = *creation.directories().first().expect("a database has a directory of its own"); // infallible: the list begins with it
    let storage = creation.template().cluster().storage();
    for name in ["PG_VERSION", "pg_filenode.map"] {
        let (from, to) = paths(creation.template(), creation.oid(), own, OsStr::new(name));
        last = storage.read_file(&from, SMALL_FILE).map_err(cluster_error)?;
        let temporary = to.with_extension("new");
        storage.create_file(&to, &temporary, &last).map_err(cluster_error)?;
    }
    Ok(last)
}

/// A file of the template, and its copy in the database with this OID.
fn paths(
    template: &Database,
    oid: Oid,
    directory: DatabaseDirectory,
    name: &OsStr,
) -> (PathBuf, PathBuf) {
    let path = |tablespace, oid| template.cluster().tablespace_path(tablespace, oid).join(name);
    (path(directory.source, template.row().oid), path(directory.target, oid))
}

/// Copies all files of a plan.
///
/// # Errors
/// When a page is damaged, or the system fails.
pub(super) fn copy(
    creation: &DatabaseCreation,
    plan: &ClonePlan,
    options: &CloneOptions,
) -> Result<CloneSummary> {
    let mut files: Vec<_> = plan.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.bytes));
    let copying = Copying {
        template: creation.template(),
        oid: creation.oid(),
        options,
        method: match plan.strategy {
            CloneStrategy::Reflink => CopyMethod::Reflink,
            _ => CopyMethod::ReadWrite,
        },
        files,
        next: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        unsynced: Mutex::new(Vec::new()),
        summary: Mutex::new(CloneSummary::default()),
    };
    let jobs = options.jobs.clamp(1, copying.files.len().max(1));
    std::thread::scope(|scope| {
        let start = |_| Builder::new().spawn_scoped(scope, || copying.work());
        let threads = (0..jobs).map(start).collect::<io::Result<Vec<_>>>();
        let threads = threads.map_err(Error::Threads)?;
        // All are waited for before one is asked how it ended.
        let ended: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
        ended.into_iter().try_for_each(|ended| ended.unwrap_or(Err(Error::Worker)))
    })?;
    copying.sync(&copying.unsynced_from(1))?;
    if options.verify {
        copying.compare()?;
    }
    Ok(copying.summary.into_inner().unwrap_or_else(PoisonError::into_inner))
}

struct Copying<'a> {
    template: &'a Database,
    oid: Oid,
    options: &'a CloneOptions,
    method: CopyMethod,
    files: Vec<&'a TemplateFile>,
    next: AtomicUsize,
    failed: AtomicBool,
    unsynced: Mutex<Vec<CopiedFile>>,
    summary: Mutex<CloneSummary>,
}

impl Copying<'_> {
    /// Copies files until there are no more.
    fn work(&self) -> Result<()> {
        while !self.failed.load(Ordering::Relaxed)
            && let Some(file) = self.files.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            let copied = self.copy(file).and_then(|copied| {
                copied.begin_write_back().map_err(cluster_error)?;
                self.unsynced.lock().unwrap_or_else(PoisonError::into_inner).push(copied);
                self.sync(&self.unsynced_from(UNSYNCED))
            });
            copied.inspect_err(|_| self.failed.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    }

    /// Takes the files that wait for their sync, if there are so many.
    fn unsynced_from(&self, count: usize) -> Vec<CopiedFile> {
        let mut unsynced = self.unsynced.lock().unwrap_or_else(PoisonError::into_inner);
        if unsynced.len() < count { Vec::new() } else { std::mem::take(&mut unsynced) }
    }

    fn copy(&self, file: &TemplateFile) -> Result<CopiedFile> {
        let (from, to) = paths(self.template, self.oid, file.directory, &file.name);
        let cluster = self.template.cluster();
        let name = file.name.to_string_lossy();
        let checked = relation_file(&name).filter(|_| self.options.verify_checksums);
        let has_checksums = cluster.control().has_data_checksums();
        let mut watch = |piece: CopiedPiece<'_>| -> Result<(), pagemill_cluster::Error> {
            check_interrupt(cluster.path())?;
            if let Some((fork, segment)) = checked
                && let Some(bytes) = piece.bytes
            {
                let first = segment * SEGMENT_BLOCKS + (piece.offset / BLOCK_SIZE as u64) as u32;
                let (pages, rest) = bytes.as_chunks();
                if !rest.is_empty() {
                    let what = format!("the file ends {} bytes into a block", rest.len());
                    return Err(Damage::in_file(&from, what).into());
                }
                for (block, page) in (first..).map(BlockNumber).zip(pages) {
                    if let Some(what) = find_fault(has_checksums, block, page) {
                        return Err(Damage::in_block(&from, fork, block, what).into());
                    }
                }
            }
            self.options.progress.add_pages(piece.len / BLOCK_SIZE as u64);
            Ok(())
        };
        let copied = cluster.storage().copy_file(&from, &to, Some(self.method), &mut watch);
        Ok(copied?)
    }

    /// Compares all copies with their files.
    fn compare(&self) -> Result<()> {
        let cluster = self.template.cluster();
        for file in &self.files {
            check_interrupt(cluster.path()).map_err(cluster_error)?;
            let (from, to) = paths(self.template, self.oid, file.directory, &file.name);
            compare_files(cluster.storage(), &from, &to)?;
        }
        Ok(())
    }

    fn sync(&self, unsynced: &[CopiedFile]) -> Result<()> {
        sync_all(unsynced, |copied| {
            copied.sync().map_err(cluster_error)?;
            let shared = match self.method {
                CopyMethod::Reflink => copied.shared_bytes().map_err(cluster_error)?,
                _ => None,
            };
            let mut summary = self.summary.lock().unwrap_or_else(PoisonError::into_inner);
            summary.files += 1;
            summary.blocks += copied.bytes.div_ceil(BLOCK_SIZE as u64);
            if let Some(shared) = shared {
                *summary.shared_bytes.get_or_insert_default() += shared;
            }
            Ok(())
        })
    }
}

/// The fork and the segment that a file of a relation has.
fn relation_file(name: &str) -> Option<(Fork, u32)> {
    let digits = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
    let (number, rest) = name.split_at(digits);
    number.parse::<u32>().ok()?;
    let (suffix, segment) = match rest.split_once('.') {
        Some((suffix, segment)) => (suffix, segment.parse().ok()?),
        None => (rest, 0),
    };
    let fork = Fork::ALL.into_iter().find(|fork| fork.suffix() == suffix)?;
    Some((fork, segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_fork_and_segment() {
        assert_eq!(relation_file("16384"), Some((Fork::Main, 0)));
        assert_eq!(relation_file("16384.2"), Some((Fork::Main, 2)));
        assert_eq!(relation_file("16384_fsm.1"), Some((Fork::Fsm, 1)));
        for name in ["PG_VERSION", "pg_filenode.map", "16384_x", "16384.y", ""] {
            assert_eq!(relation_file(name), None, "{name}");
        }
    }
}
