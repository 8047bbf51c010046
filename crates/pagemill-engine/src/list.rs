//! What there is: the databases of a cluster, and the relations of a database, with their sizes.
//!
//! Only catalogs and the sizes of files are read, no table, so this is the fast way to see what a
//! directory holds.
//!
//! Source: `calculate_database_size` in `src/backend/utils/adt/dbsize.c`, PostgreSQL 14 to 18.

use std::path::Path;

use pagemill_cluster::data_directory::GLOBAL_TABLESPACE;
use pagemill_cluster::{
    ClassRow, Cluster, Database, DatabaseRow, Error as ClusterError, RelationKind,
};
use pagemill_format::{Fork, Oid};
use pagemill_io::Storage;

use crate::encoding::encoding_name;
use crate::error::Result;
use crate::select::{Selected, is_system_schema};

/// A database of the cluster.
#[derive(Debug, Clone)]
pub struct DatabaseEntry {
    /// Its row of `pg_database`.
    pub row: DatabaseRow,
    /// The name of its encoding; empty for a number that is none's.
    pub encoding: &'static str,
    /// The name of its default tablespace.
    pub tablespace: Box<[u8]>,
    /// Bytes of its files, in all tablespaces.
    pub bytes: u64,
}

/// A relation of a database.
#[derive(Debug, Clone)]
pub struct RelationEntry {
    /// Its schema and its row of `pg_class`.
    pub relation: Selected,
    /// Blocks of its main fork.
    pub blocks: u32,
    /// Bytes of all its forks.
    pub bytes: u64,
    /// Bytes of all forks of its TOAST table, where it has one.
    pub toast_bytes: Option<u64>,
}

impl RelationEntry {
    /// The rows at the last vacuum or analyze; `None` when they were never counted.
    pub fn estimated_rows(&self) -> Option<f32> {
        let class = &self.relation.class;
        let counted = class.kind.has_rows() && class.tuples.is_finite() && class.tuples >= 0.0;
        counted.then_some(class.tuples)
    }
}

/// Every database, by name.
///
/// # Errors
/// When the shared catalogs or the sizes of files cannot be read.
pub fn databases(cluster: &Cluster) -> Result<Vec<DatabaseEntry>> {
    let rows = cluster.databases()?;
    let tablespaces = cluster.tablespaces()?;
    let entry = |row: DatabaseRow| {
        let named = tablespaces.get(&row.tablespace).cloned();
        let number = || row.tablespace.to_string().into_bytes().into();
        Ok(DatabaseEntry {
            encoding: encoding_name(row.encoding).unwrap_or_default(),
            tablespace: named.unwrap_or_else(number),
            bytes: database_bytes(cluster, row.oid, tablespaces.keys())?,
            row,
        })
    };
    rows.into_iter().map(entry).collect()
}

fn database_bytes<'a>(
    cluster: &Cluster,
    database: Oid,
    tablespaces: impl Iterator<Item = &'a Oid>,
) -> Result<u64> {
    let mut bytes = 0;
    for &tablespace in tablespaces {
        if tablespace != GLOBAL_TABLESPACE {
            let directory = cluster.tablespace_path(tablespace, database);
            bytes += directory_bytes(cluster.storage(), &directory)?;
        }
    }
    Ok(bytes)
}

/// Nothing for a directory or file that is not there: not every database is in every tablespace,
/// and under a running server files come and go.
fn directory_bytes(storage: &Storage, directory: &Path) -> Result<u64> {
    let mut bytes = 0u64;
    let entries = match storage.read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.is_not_found() => return Ok(0),
        Err(error) => return Err(ClusterError::from(error).into()),
    };
    for entry in entries {
        match storage.metadata(&directory.join(entry.name)) {
            Ok(found) if !found.is_dir => bytes = bytes.saturating_add(found.len),
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(ClusterError::from(error).into()),
        }
    }
    Ok(bytes)
}

/// The relations of a database that hold, or lead to, rows: tables of all kinds, views, sequences;
/// those of the system only with `system`. By schema and name.
///
/// # Errors
/// When the catalogs or the sizes of files cannot be read.
pub fn relations(database: &Database, system: bool) -> Result<Vec<RelationEntry>> {
    let mut chosen = Vec::new();
    for class in database.classes().iter().filter(|class| is_listed(class)) {
        let relation = Selected::new(database, class)?;
        if system || !is_system_schema(&relation.schema) {
            chosen.push(relation);
        }
    }
    chosen.sort_by(|a, b| (&a.schema, &a.class.name).cmp(&(&b.schema, &b.class.name)));
    sizes(database, chosen)
}

/// These relations with their sizes.
///
/// # Errors
/// When the sizes of files cannot be read.
pub fn sizes(database: &Database, relations: Vec<Selected>) -> Result<Vec<RelationEntry>> {
    relations.into_iter().map(|relation| entry(database, relation)).collect()
}

/// True for what a listing shows: tables of all kinds, views and sequences.
pub fn is_listed(class: &ClassRow) -> bool {
    use RelationKind::{ForeignTable, PartitionedTable, View};
    class.kind.has_rows() || matches!(class.kind, PartitionedTable | ForeignTable | View)
}

fn entry(database: &Database, relation: Selected) -> Result<RelationEntry> {
    let (blocks, bytes) = fork_sizes(database, &relation.class)?;
    let toast = database.class(relation.class.toast);
    let toast_bytes = toast.map(|toast| fork_sizes(database, toast)).transpose()?;
    Ok(RelationEntry { relation, blocks, bytes, toast_bytes: toast_bytes.map(|(_, bytes)| bytes) })
}

/// Blocks of the main fork, and bytes of all forks; none where the whole tablespace is gone, so
/// that what is left can still be listed.
fn fork_sizes(database: &Database, class: &ClassRow) -> Result<(u32, u64)> {
    let (mut blocks, mut bytes) = (0, 0u64);
    if !class.kind.has_files() {
        return Ok((blocks, bytes));
    }
    let base = database.base_path(class)?;
    for fork in Fork::ALL {
        let files = match database.cluster().fork(&base, fork) {
            Ok(Some(files)) => files,
            Ok(None) => continue,
            Err(ClusterError::MissingTablespace { .. }) => break,
            Err(ClusterError::Io(error)) if error.is_not_found() => continue,
            Err(error) => return Err(error.into()),
        };
        bytes = bytes.saturating_add(files.bytes());
        if fork == Fork::Main {
            blocks = files.blocks();
        }
    }
    Ok((blocks, bytes))
}

/// The tablespace a relation is in, by number.
pub fn tablespace_of(database: &Database, class: &ClassRow) -> Oid {
    match class.tablespace {
        _ if class.shared => GLOBAL_TABLESPACE,
        Oid::INVALID => database.row().tablespace,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_not_there_holds_nothing() {
        let storage = Storage::real();
        assert_eq!(directory_bytes(&storage, Path::new("/nonexistent/16384")).unwrap(), 0);
    }
}
