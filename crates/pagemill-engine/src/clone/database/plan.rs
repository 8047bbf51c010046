//! What a clone will do, decided before anything is made: the strategy and why, the files, the bytes, the space.
//!
//! | `auto` takes | when |
//! | --- | --- |
//! | `reflink` | the file system lets two files share their blocks, tried on one file of each directory |
//! | `wal_log` | somebody follows the cluster's WAL, the template is small, and the version has it |
//! | `file_copy` | else: it writes half as much |
//!
//! A follower is a standby with a slot, or an archive. All strategies are safe for followers, who copy their own template
//! when they replay `file_copy` and `reflink`; but they stand still for it, which for small templates is longer than
//! replaying the pages, and with wal_log nothing depends on what they have. Measured on ext4 (Linux 6.18, a virtual disk,
//! durable at the end, medians of 9), wal_log and file_copy took, for databases of 8 MiB, 0.13 and 0.09 s; of 63 MiB, 0.16
//! and 0.11 s; of 126 MiB, 0.30 and 0.15 s; of 251 MiB, 0.46 and 0.21 s. Up to the size below the difference is a
//! twentieth of a second.
//!
//! Invariant: a plan exists only where the space for it was there when it was made.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pagemill_cluster::Database;
use pagemill_cluster::change::{DatabaseDirectory, database_directories};
use pagemill_format::{BLOCK_SIZE, Fork, Oid, PgVersion};
use pagemill_io::{CopyMethod, ErrorKind, NotShared, Refusal, Storage};
use pagemill_wal::WalDirectory;

use super::{cluster_error, logged};
use crate::error::{Error, Result};
use crate::refusal::CloneRefusal;

/// Templates up to this size are logged for those who follow, in bytes.
const SMALL_TEMPLATE: u64 = 64 << 20;
/// `wal_level` in the control file from which somebody can follow.
const REPLICA: u32 = 1;

/// How a database is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CloneStrategy {
    /// Page by page, logged.
    WalLog,
    /// File by file, one record a directory.
    FileCopy,
    /// As [`FileCopy`](Self::FileCopy), with blocks shared.
    Reflink,
}

impl CloneStrategy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::WalLog, Self::FileCopy, Self::Reflink];

    /// The name in messages and statistics, as CREATE DATABASE has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::WalLog => "wal_log",
            Self::FileCopy => "file_copy",
            Self::Reflink => "reflink",
        }
    }
}

impl fmt::Display for CloneStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no such strategy: there are wal_log, file_copy and reflink")]
pub struct UnknownStrategy;

impl FromStr for CloneStrategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> std::result::Result<Self, UnknownStrategy> {
        Self::ALL.into_iter().find(|each| each.name() == name).ok_or(UnknownStrategy)
    }
}

/// A file of the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFile {
    /// Which of the directories it is in.
    pub directory: DatabaseDirectory,
    /// Its name there.
    pub name: OsString,
    /// How long it is, in bytes.
    pub bytes: u64,
}

/// What a clone will do.
#[derive(Debug, Clone)]
pub struct ClonePlan {
    /// The strategy.
    pub strategy: CloneStrategy,
    /// Why it is this one.
    pub reason: String,
    /// The files that are copied as files are; those of relations are not among them with [`CloneStrategy::WalLog`].
    pub files: Vec<TemplateFile>,
    /// Bytes of the copy.
    pub bytes: u64,
    /// About how many bytes of WAL are written.
    pub wal_bytes: u64,
}

impl ClonePlan {
    /// Plans a clone of `template`, into the tablespace if one is given, by the strategy if one is asked for.
    ///
    /// # Errors
    /// When the strategy cannot be had here, or there is too little space.
    pub fn new(
        template: &Database,
        tablespace: Option<Oid>,
        asked: Option<CloneStrategy>,
    ) -> Result<Self> {
        let directories = database_directories(template, tablespace)?;
        let files = template_files(template, &directories)?;
        let bytes = files.iter().map(|file| file.bytes).sum();
        let (strategy, reason) = match asked {
            Some(strategy) => (strategy, "asked for".to_owned()),
            None => choose(template, &directories, bytes)?,
        };
        match strategy {
            CloneStrategy::Reflink => check_reflink(template, &directories)?,
            CloneStrategy::WalLog => check_version(template)?,
            CloneStrategy::FileCopy => {}
        }
        let (bytes, wal_bytes) = match strategy {
            CloneStrategy::WalLog => relation_bytes(template)?,
            _ => (bytes, 0),
        };
        let plan = Self { strategy, reason, files, bytes, wal_bytes };
        plan.check_space(template)?;
        tracing::info!(strategy = %plan.strategy, reason = %plan.reason, bytes = plan.bytes, "clone planned");
        Ok(plan)
    }

    /// Refuses a copy for which there is no room, with the sum.
    fn check_space(&self, template: &Database) -> Result<()> {
        let cluster = template.cluster();
        let mut needs: BTreeMap<PathBuf, u64> = BTreeMap::new();
        if self.strategy != CloneStrategy::Reflink {
            for file in &self.files {
                let path = cluster.tablespace_path(file.directory.target, Oid::INVALID);
                *needs.entry(path.parent().unwrap_or(&path).to_owned()).or_default() += file.bytes;
            }
        }
        let wal = WalDirectory::of_cluster(cluster.path(), cluster.control())
            .map_err(pagemill_cluster::Error::from)?;
        *needs.entry(wal.path).or_default() += self.wal_bytes;
        let mut sums: BTreeMap<u64, (PathBuf, u64, u64)> = BTreeMap::new();
        for (path, bytes) in needs {
            let Some(space) = cluster.storage().space_left(&path).map_err(cluster_error)? else {
                continue;
            };
            let sum = sums.entry(space.file_system).or_insert((path, 0, space.bytes));
            sum.1 += bytes;
        }
        match sums.into_values().find(|(_, needed, free)| needed > free) {
            None => Ok(()),
            Some((path, needed, free)) => {
                let is_logged = self.strategy == CloneStrategy::WalLog;
                Err(Error::refused(CloneRefusal::NoSpace { path, needed, free, is_logged }))
            }
        }
    }
}

/// The files of all directories that belong into a copy: what servers make anew at their start, and what sessions that
/// are gone left behind, does not.
fn template_files(
    template: &Database,
    directories: &[DatabaseDirectory],
) -> Result<Vec<TemplateFile>> {
    let cluster = template.cluster();
    let mut files = Vec::new();
    for &directory in directories {
        let path = cluster.tablespace_path(directory.source, template.row().oid);
        let mut entries = cluster.storage().read_dir(&path).map_err(cluster_error)?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        for entry in entries.into_iter().filter(|entry| is_kept(&entry.name.to_string_lossy())) {
            let found = cluster.storage().metadata(&path.join(&entry.name));
            let found = found.map_err(cluster_error)?;
            if !found.is_dir {
                files.push(TemplateFile { directory, name: entry.name, bytes: found.len });
            }
        }
    }
    Ok(files)
}

/// Not `pg_internal.init`, `pgsql_tmp…`, `t3_16390`, nor what we left.
fn is_kept(name: &str) -> bool {
    let is_temporary_relation = name.strip_prefix('t').is_some_and(|rest| {
        rest.split_once('_').is_some_and(|(session, number)| {
            session.parse::<u32>().is_ok() && number.starts_with(|c: char| c.is_ascii_digit())
        })
    });
    !name.starts_with("pg_internal.init")
        && !name.starts_with("pgsql_tmp")
        && !name.starts_with("pagemill_tmp")
        && !is_temporary_relation
}

/// Bytes of the relations that `wal_log` copies, and of the WAL it writes.
fn relation_bytes(template: &Database) -> Result<(u64, u64)> {
    let (mut bytes, mut logged) = (0, 0);
    for class in template.classes().iter().filter(|class| logged::is_copied(class)) {
        let base = template.base_path(class)?;
        for fork in Fork::ALL {
            let Some(files) = template.cluster().fork(&base, fork)? else { continue };
            let len = u64::from(files.blocks()) * BLOCK_SIZE as u64;
            bytes += len;
            logged += if logged::is_logged(class, fork) { len } else { 0 };
        }
    }
    Ok((bytes, logged))
}

fn choose(
    template: &Database,
    directories: &[DatabaseDirectory],
    bytes: u64,
) -> Result<(CloneStrategy, String)> {
    let cluster = template.cluster();
    let Some(refusal) = reflink_refusal(template, directories)? else {
        return Ok((CloneStrategy::Reflink, "the file system shares blocks between files".into()));
    };
    let small = bytes <= SMALL_TEMPLATE && cluster.version() > PgVersion::V14;
    if small && cluster.control().settings.wal_level >= REPLICA && is_followed(template)? {
        let reason = format!("{refusal}; it is small, and others follow the WAL of this cluster");
        return Ok((CloneStrategy::WalLog, reason));
    }
    Ok((CloneStrategy::FileCopy, format!("{refusal}; a copy of the files writes the least")))
}

/// True when a standby keeps its place in the WAL, or the WAL is archived.
fn is_followed(template: &Database) -> Result<bool> {
    let slots = template.cluster().path().join("pg_replslot");
    let slots = template.cluster().storage().read_dir(&slots).map_err(cluster_error)?;
    Ok(!slots.is_empty() || template.archives_wal()?)
}

fn check_version(template: &Database) -> Result<()> {
    match template.cluster().version() {
        PgVersion::V14 => Err(Error::refused(CloneRefusal::NotLoggedByPages)),
        _ => Ok(()),
    }
}

fn check_reflink(template: &Database, directories: &[DatabaseDirectory]) -> Result<()> {
    match reflink_refusal(template, directories)? {
        None => Ok(()),
        Some(cause) => Err(Error::refused(CloneRefusal::NoReflink(cause))),
    }
}

/// Why the files of the template cannot share their blocks with files beside the copy; tried on one of each directory.
fn reflink_refusal(
    template: &Database,
    directories: &[DatabaseDirectory],
) -> Result<Option<NotShared>> {
    let cluster = template.cluster();
    for directory in directories {
        let source = cluster.tablespace_path(directory.source, template.row().oid);
        let target = cluster.tablespace_path(directory.target, Oid::INVALID);
        let target = target.parent().unwrap_or(&target);
        let Some(sample) = sample_of(cluster.storage(), &source)? else { continue };
        if let Some(why) = try_reflink(cluster.storage(), &sample, target)? {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// Some file with a block in it.
fn sample_of(storage: &Storage, directory: &Path) -> Result<Option<PathBuf>> {
    for entry in storage.read_dir(directory).map_err(cluster_error)? {
        let path = directory.join(&entry.name);
        let found = storage.metadata(&path).map_err(cluster_error)?;
        if !found.is_dir && found.len >= BLOCK_SIZE as u64 {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn try_reflink(storage: &Storage, from: &Path, directory: &Path) -> Result<Option<NotShared>> {
    // What a killed process left of this name is in nobody's way: the right to change the cluster is ours. Servers and
    // their tools pass over names that begin so.
    let to = directory.join("pgsql_tmp.pagemill_reflink");
    storage.remove_if_there(&to).map_err(cluster_error)?;
    let mut unwatched = |_: pagemill_io::CopiedPiece<'_>| Ok::<_, pagemill_io::Error>(());
    match storage.copy_file(from, &to, Some(CopyMethod::Reflink), &mut unwatched) {
        Ok(_) => {
            storage.remove(&to).map_err(cluster_error)?;
            Ok(None)
        }
        Err(error) => match error.kind() {
            ErrorKind::Refused(Refusal::NotShared { cause, .. }) => Ok(Some(*cause)),
            ErrorKind::Refused(_) => Ok(Some(NotShared::NoReflinks)),
            _ => Err(cluster_error(error)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_makes_anew_and_what_sessions_left_is_not_copied() {
        for name in [
            "pg_internal.init",
            "pg_internal.init.77",
            "pgsql_tmp12.0",
            "t3_16390",
            "t12_16390_fsm.1",
        ] {
            assert!(!is_kept(name), "{name}");
        }
        for name in ["PG_VERSION", "pg_filenode.map", "16390", "16390_vm", "16390.1", "toast_1"] {
            assert!(is_kept(name), "{name}");
        }
    }

    #[test]
    fn strategies_read_as_they_print() {
        for strategy in CloneStrategy::ALL {
            assert_eq!(strategy.name().parse(), Ok(strategy));
        }
        assert_eq!("copy".parse::<CloneStrategy>(), Err(UnknownStrategy));
    }
}
