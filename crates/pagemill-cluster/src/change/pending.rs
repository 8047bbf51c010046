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
//! Whoever changes the cluster next finds the list. A number that some row of the database's `pg_class`, or of
//! `pg_database`, has was committed, possibly by the server's own recovery; files of the others belong to nobody and
//! are removed.
//!
//! Invariant: nothing is made under a number before the list that has it is durable, and no list is removed while
//! there can be such a file.

use std::path::{Path, PathBuf};

use pagemill_format::wal::RelFileLocator;
use pagemill_format::{Fork, Oid};
use pagemill_io::Storage;

use super::wal_segments;
use crate::data_directory::Cluster;
use crate::database::Database;
use crate::error::{Damage, Result};

const NAME: &str = "pagemill.pending";
const TEMPORARY: &str = "pagemill.pending.new";
const TITLE: &str = "relation files of a change that was not finished";
const LIMIT: u64 = 1 << 20;

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

/// Removes what an unfinished change left, if one did.
pub(super) fn remove_leftovers(cluster: &Cluster) -> Result<()> {
    let path = cluster.path().join(NAME);
    let text = match cluster.storage().read_file(&path, LIMIT) {
        Ok(text) => text,
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let list = parse(&text).map_err(|line| {
        let what = format!("line {line} names no relation file: remove this file by hand");
        Damage::in_file(&path, what)
    })?;
    for each in list {
        match each {
            Unfinished::Files(file) if !is_in_use(cluster, file)? => remove_files(cluster, file)?,
            Unfinished::Database { tablespace, database } if !has_database(cluster, database)? => {
                remove_database(cluster, tablespace, database)?;
            }
            Unfinished::Wal { timeline, last } => {
                wal_segments::remove_behind(cluster, timeline, last)?;
            }
            _ => {}
        }
    }
    forget(cluster.storage(), cluster.path())
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

/// True when a row of `pg_class` has these files.
fn is_in_use(cluster: &Cluster, file: RelFileLocator) -> Result<bool> {
    let row = cluster.databases()?.into_iter().find(|row| row.oid == file.database);
    let Some(row) = row else { return Ok(false) };
    let default = row.tablespace;
    let database = Database::open(cluster, row)?;
    let lies_in = |tablespace| if tablespace == Oid::INVALID { default } else { tablespace };
    let mut classes = database.classes().iter();
    Ok(classes.any(|c| c.filenode == file.number.0 && lies_in(c.tablespace) == file.tablespace))
}

/// Removes every fork and segment with this number. Syncs the directory.
pub(super) fn remove_files(cluster: &Cluster, file: RelFileLocator) -> Result<()> {
    let storage = cluster.storage();
    let directory = cluster.tablespace_path(file.tablespace, file.database);
    if !storage.exists(&directory)? {
        return Ok(());
    }
    let number = file.number.to_string();
    let mut removed = false;
    for entry in storage.read_dir(&directory)? {
        let Some(name) = entry.name.to_str() else { continue };
        if is_file_of(name, &number) {
            storage.remove_if_there(&directory.join(name))?;
            removed = true;
        }
    }
    if removed {
        storage.sync_dir(&directory)?;
    }
    Ok(())
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
