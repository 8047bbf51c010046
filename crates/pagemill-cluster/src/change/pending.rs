//! What a change that was not finished leaves behind, and how the next one removes it.
//!
//! New relation files, directories of databases and segments of WAL are made before the commit, and a killed process
//! cannot remove them. So their numbers are written to a file in the data directory first, which PostgreSQL passes over:
//!
//! ```text
//! pagemill.pending:  relation files of a change that was not finished
//!                    1663 5 16390        tablespace, database, relfilenode
//!                    1663 16391          tablespace, database: all of it
//!                    wal 1 37            timeline, number: the segments behind that one
//! ```
//!
//! Whoever changes the cluster next finds the list. A number that some row of the database's `pg_class`, its relation
//! map, or `pg_database` has was committed, possibly by the server's own recovery, or given out again by a server, which
//! does not know of numbers without files; files of the others belong to nobody and are removed.
//!
//! Invariants: nothing is made under a number before the list that has it is durable, and no list is removed while
//! there can be such a file; no file or directory is removed that a catalog names.

use std::fmt;
use std::path::{Path, PathBuf};

use pagemill_format::wal::RelFileLocator;
use pagemill_format::{Fork, Oid};
use pagemill_io::{Node, Storage};

use super::wal_segments;
use crate::data_directory::Cluster;
use crate::database::Database;
use crate::error::{Damage, Result};
use crate::lock_file::LockFile;

const NAME: &str = "pagemill.pending";
const TEMPORARY: &str = "pagemill.pending.new";
const TITLE: &str = "relation files of a change that was not finished";
const LIMIT: u64 = 1 << 20;
/// How files without a name are called for a moment, in the data directory.
const NAMELESS: &str = "pagemill_tmp.";

/// What may be left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfinished {
    /// Files of a relation.
    Files(RelFileLocator),
    /// The directory of a database in a tablespace.
    Database {
        /// The tablespace.
        tablespace: Oid,
        /// The database.
        database: Oid,
    },
    /// Segments of WAL.
    Wal {
        /// Their timeline.
        timeline: u32,
        /// The last one that was there before.
        last: u64,
    },
}

/// The path of a relation's files, without fork and segment.
pub(super) fn base(cluster: &Cluster, file: RelFileLocator) -> PathBuf {
    let directory = cluster.tablespace_path(file.tablespace, file.database);
    directory.join(file.number.to_string())
}

/// Makes the list durable.
pub(super) fn write(storage: &Storage, directory: &Path, list: &[Unfinished]) -> Result<()> {
    let mut text = format!("{TITLE}\n");
    for each in list {
        text += &match each {
            Unfinished::Files(RelFileLocator { tablespace, database, number }) => {
                format!("{tablespace} {database} {number}\n")
            }
            Unfinished::Database { tablespace, database } => format!("{tablespace} {database}\n"),
            Unfinished::Wal { timeline, last } => format!("wal {timeline} {last}\n"),
        };
    }
    let (path, temporary) = (directory.join(NAME), directory.join(TEMPORARY));
    Ok(storage.replace_file(&path, &temporary, text.as_bytes())?)
}

/// Removes the list, once none of the files is in doubt.
pub(super) fn forget(storage: &Storage, directory: &Path) -> Result<()> {
    storage.remove_if_there(&directory.join(NAME))?;
    Ok(storage.sync_dir(directory)?)
}

/// Something that an unfinished change had left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// A directory of a database, the files of a relation without fork and segment, or the directory of the WAL.
    pub path: PathBuf,
    /// How many files.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// What it is.
    kind: Unfinished,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            Unfinished::Files(_) => "files of a relation",
            Unfinished::Database { .. } => "directory of a database",
            Unfinished::Wal { .. } => "WAL segments",
        };
        let files = if self.files == 1 { "file" } else { "files" };
        let Self { path, files: count, bytes, .. } = self;
        write!(f, "{}: {what}, {count} {files}, {bytes} bytes", path.display())
    }
}

/// True when an unfinished change left its list, and possibly files.
pub(super) fn is_there(cluster: &Cluster) -> Result<bool> {
    Ok(cluster.storage().exists(&cluster.path().join(NAME))?)
}

/// What an unfinished change left, if one did: nothing of it is named by a catalog.
pub(super) fn find(cluster: &Cluster) -> Result<Vec<Leftover>> {
    let path = cluster.path().join(NAME);
    let text = match cluster.storage().read_file(&path, LIMIT) {
        Ok(text) => text,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let list = parse(&text).map_err(|line| {
        let what = format!("line {line} names no relation file: remove this file by hand");
        Damage::in_file(&path, what)
    })?;
    let mut found = Vec::new();
    for kind in list {
        let (path, files) = match kind {
            Unfinished::Files(file) if !is_in_use(cluster, file)? => {
                (base(cluster, file), files_of(cluster, file)?)
            }
            Unfinished::Database { tablespace, database } if !has_database(cluster, database)? => {
                let path = cluster.tablespace_path(tablespace, database);
                // It may have nothing in it. What is no directory is not what was made here.
                if is_directory(cluster.storage(), &path)? {
                    let files = files_in(cluster.storage(), &path)?;
                    found.push(leftover(cluster.storage(), path, &files, kind)?);
                }
                continue;
            }
            Unfinished::Wal { timeline, last } => wal_segments::behind(cluster, timeline, last)?,
            _ => continue,
        };
        if !files.is_empty() {
            found.push(leftover(cluster.storage(), path, &files, kind)?);
        }
    }
    Ok(found)
}

fn is_directory(storage: &Storage, path: &Path) -> Result<bool> {
    match storage.node(path) {
        Err(error) if error.is_not_found() => Ok(false),
        node => Ok(node? == Node::Directory),
    }
}

fn leftover(
    storage: &Storage,
    path: PathBuf,
    files: &[PathBuf],
    kind: Unfinished,
) -> Result<Leftover> {
    let mut bytes = 0;
    for file in files {
        if let Node::File { len } = storage.node(file)? {
            bytes += len;
        }
    }
    Ok(Leftover { path, files: files.len() as u64, bytes, kind })
}

/// Removes what an unfinished change left, if one did, and tells what that was.
pub(super) fn remove_leftovers(cluster: &Cluster) -> Result<Vec<Leftover>> {
    remove_nameless(cluster)?;
    let found = find(cluster)?;
    for each in &found {
        match each.kind {
            Unfinished::Files(file) => remove_files(cluster, file)?,
            Unfinished::Database { tablespace, database } => {
                remove_database(cluster, tablespace, database)?;
            }
            Unfinished::Wal { timeline, last } => {
                wal_segments::remove_behind(cluster, timeline, last)?;
            }
        }
    }
    if is_there(cluster)? {
        forget(cluster.storage(), cluster.path())?;
    }
    Ok(found)
}

/// Removes files that a process was killed between making them and taking their names away, and those beside the list
/// and the lock that were to become them. They are empty, or were not yet believed by anybody.
fn remove_nameless(cluster: &Cluster) -> Result<()> {
    let storage = cluster.storage();
    for entry in storage.read_dir(cluster.path())? {
        let Some(name) = entry.name.to_str() else { continue };
        if name.starts_with(NAMELESS) || name == TEMPORARY || name == LockFile::TEMPORARY {
            storage.remove_if_there(&cluster.path().join(name))?;
        }
    }
    Ok(())
}

/// The files in a directory and none below it; none when it is not there.
fn files_in(storage: &Storage, directory: &Path) -> Result<Vec<PathBuf>> {
    match storage.read_dir(directory) {
        Ok(entries) => Ok(entries.into_iter().map(|entry| directory.join(entry.name)).collect()),
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// What is listed, or the number of a line that lists nothing.
fn parse(text: &[u8]) -> Result<Vec<Unfinished>, usize> {
    let text = String::from_utf8_lossy(text);
    let entry = |(number, line): (usize, &str)| {
        if let Some(wal) = line.strip_prefix("wal ") {
            return wal_of(wal).ok_or(number + 1);
        }
        let numbers: Result<Vec<_>, _> = line.split(' ').map(|n| n.parse().map(Oid)).collect();
        match numbers.as_deref() {
            Ok(&[tablespace, database, number]) => {
                Ok(Unfinished::Files(RelFileLocator { tablespace, database, number }))
            }
            Ok(&[tablespace, database]) => Ok(Unfinished::Database { tablespace, database }),
            _ => Err(number + 1),
        }
    };
    text.lines().enumerate().skip(1).map(entry).collect()
}

/// The timeline and the number of a segment.
fn wal_of(words: &str) -> Option<Unfinished> {
    let (timeline, last) = words.split_once(' ')?;
    Some(Unfinished::Wal { timeline: timeline.parse().ok()?, last: last.parse().ok()? })
}

/// True when `pg_database` has a row for it.
fn has_database(cluster: &Cluster, database: Oid) -> Result<bool> {
    Ok(cluster.databases()?.iter().any(|row| row.oid == database))
}

/// Removes the directory of a database in one tablespace, durably.
pub(super) fn remove_database(cluster: &Cluster, tablespace: Oid, database: Oid) -> Result<()> {
    Ok(cluster.storage().remove_tree(&cluster.tablespace_path(tablespace, database))?)
}

/// True when a relation has these files. Of a database that cannot be read nothing is known: an error.
fn is_in_use(cluster: &Cluster, file: RelFileLocator) -> Result<bool> {
    let row = cluster.databases()?.into_iter().find(|row| row.oid == file.database);
    let Some(row) = row else { return Ok(false) };
    Ok(Database::open(cluster, row)?.has_file(file.tablespace, file.number.0))
}

/// Every fork and segment with this number.
fn files_of(cluster: &Cluster, file: RelFileLocator) -> Result<Vec<PathBuf>> {
    let directory = cluster.tablespace_path(file.tablespace, file.database);
    let number = file.number.to_string();
    let mut files = files_in(cluster.storage(), &directory)?;
    files.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| is_file_of(name, &number))
    });
    Ok(files)
}

/// Removes every fork and segment with this number. Syncs the directory.
pub(super) fn remove_files(cluster: &Cluster, file: RelFileLocator) -> Result<()> {
    let storage = cluster.storage();
    let files = files_of(cluster, file)?;
    for path in &files {
        storage.remove_if_there(path)?;
    }
    match files.is_empty() {
        true => Ok(()),
        false => Ok(storage.sync_dir(&cluster.tablespace_path(file.tablespace, file.database))?),
    }
}

/// True for `16390`, `16390.1`, `16390_fsm`, `16390_fsm.1`.
fn is_file_of(name: &str, number: &str) -> bool {
    let Some(rest) = name.strip_prefix(number) else { return false };
    let fork = Fork::ALL.iter().map(|fork| fork.suffix()).filter(|suffix| !suffix.is_empty());
    let rest = fork.into_iter().find_map(|suffix| rest.strip_prefix(suffix)).unwrap_or(rest);
    match rest.strip_prefix('.') {
        Some(segment) => segment.parse::<u32>().is_ok(),
        None => rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_and_segments_are_files_of_a_relation_and_longer_numbers_are_not() {
        for name in ["16390", "16390.1", "16390_fsm", "16390_vm.2", "16390_init"] {
            assert!(is_file_of(name, "16390"), "{name}");
        }
        for name in ["163901", "16390.", "16390_", "16390.x", "1639", "pg_filenode.map", "t3_16390"]
        {
            assert!(!is_file_of(name, "16390"), "{name}");
        }
    }

    #[test]
    fn a_list_reads_back_and_a_line_that_is_none_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = RelFileLocator { tablespace: Oid(1663), database: Oid(5), number: Oid(16390) };
        let database = Unfinished::Database { tablespace: Oid(1663), database: Oid(16391) };
        let wal = Unfinished::Wal { timeline: 2, last: 1 << 40 };
        let list = [wal, Unfinished::Files(file), database, Unfinished::Files(file)];
        write(&Storage::real(), dir.path(), &list).unwrap();
        let text = std::fs::read(dir.path().join(NAME)).unwrap();
        assert_eq!(parse(&text).unwrap(), list);
        assert_eq!(parse(b"title\n1663 5 1\n1663\n"), Err(3));
        assert_eq!(parse(b"title\n1663 5 1 7\n"), Err(2));
        assert_eq!(parse(b"title\nwal 1\n"), Err(2));
        forget(&Storage::real(), dir.path()).unwrap();
        assert!(!dir.path().join(NAME).exists());
    }
}
