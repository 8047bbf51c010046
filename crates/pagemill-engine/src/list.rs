//! What there is: the databases of a cluster, and the relations of a database, with their sizes.
//!
//! Only catalogs and the sizes of files are read, no table, so this is the fast way to see what a
//! directory holds.
//!
//! Source: `calculate_database_size` in `src/backend/utils/adt/dbsize.c`, PostgreSQL 14 to 18.

use std::path::Path;

use pagemill_cluster::data_directory::GLOBAL_TABLESPACE;
use pagemill_cluster::{
    ClassRow, Cluster, Database, DatabaseRow, Error as ClusterError, Persistence, RelationKind,
};
use pagemill_format::{Fork, Oid};
use pagemill_io::{ForkFiles, Storage};

use crate::encoding::encoding_name;
use crate::error::Result;
use crate::select::{Selected, is_system_schema};
use crate::table::tail_by_sizes_and_maps;

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
    /// Its directory in its default tablespace is not there.
    pub is_missing: bool,
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
    /// What of its files is not there, as far as their names and sizes tell: `the file is missing`.
    pub lost: Vec<String>,
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
            is_missing: !has_directory(cluster, &row)?,
            row,
        })
    };
    rows.into_iter().map(entry).collect()
}

fn has_directory(cluster: &Cluster, row: &DatabaseRow) -> Result<bool> {
    let directory = cluster.tablespace_path(row.tablespace, row.oid);
    Ok(cluster.storage().exists(&directory).map_err(ClusterError::from)?)
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

/// The bytes of the files and directories of a tablespace, of whatever database; `None` where there is no such tablespace.
///
/// # Errors
/// When the tablespaces or the sizes of files cannot be read.
///
/// Source: `calculate_tablespace_size` in `src/backend/utils/adt/dbsize.c`, PostgreSQL 14 to 18.
pub fn tablespace_bytes(cluster: &Cluster, tablespace: Oid) -> Result<Option<u64>> {
    if !cluster.tablespaces()?.contains_key(&tablespace) {
        return Ok(None);
    }
    let storage = cluster.storage();
    // The shared relations are in no database's directory.
    let directory = cluster.tablespace_path(tablespace, Oid(1));
    if tablespace == GLOBAL_TABLESPACE {
        return directory_bytes(storage, &directory).map(Some);
    }
    let of_databases = directory.parent().unwrap_or(&directory); // default: a database's directory is in another
    let mut bytes = 0u64;
    for entry in storage.read_dir_with_metadata(of_databases).map_err(ClusterError::from)? {
        let path = of_databases.join(entry.name);
        let metadata = entry.metadata.map_or_else(|| storage.metadata(&path), Ok);
        let metadata = metadata.map_err(ClusterError::from)?;
        let inside = if metadata.is_dir { directory_bytes(storage, &path)? } else { 0 };
        bytes = bytes.saturating_add(metadata.len).saturating_add(inside);
    }
    Ok(Some(bytes))
}

/// Nothing for a directory or file that is not there: not every database is in every tablespace,
/// and under a running server files come and go.
fn directory_bytes(storage: &Storage, directory: &Path) -> Result<u64> {
    let mut bytes = 0u64;
    let entries = match storage.read_dir_with_metadata(directory) {
        Ok(entries) => entries,
        Err(error) if error.is_not_found() => return Ok(0),
        Err(error) => return Err(ClusterError::from(error).into()),
    };
    for entry in entries {
        let found =
            entry.metadata.map_or_else(|| storage.metadata(&directory.join(entry.name)), Ok);
        match found {
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
    let found = fork_sizes(database, &relation.class)?;
    let toast = database.class(relation.class.toast);
    let toast = toast.map(|toast| fork_sizes(database, toast)).transpose()?;
    let mut lost = found.lost;
    lost.extend(
        toast.iter().flat_map(|toast| &toast.lost).map(|what| format!("TOAST table: {what}")),
    );
    let toast_bytes = toast.map(|toast| toast.bytes);
    Ok(RelationEntry { relation, blocks: found.blocks, bytes: found.bytes, toast_bytes, lost })
}

#[derive(Debug, Default)]
struct ForkSizes {
    /// Blocks of the main fork.
    blocks: u32,
    /// Bytes of all forks.
    bytes: u64,
    lost: Vec<String>,
}

/// Where the whole tablespace is gone, that is what is lost, so that what is left can still be listed.
fn fork_sizes(database: &Database, class: &ClassRow) -> Result<ForkSizes> {
    let mut found = ForkSizes::default();
    if !class.kind.has_files() {
        return Ok(found);
    }
    let (cluster, base) = (database.cluster(), database.base_path(class)?);
    for fork in Fork::ALL {
        let files = match cluster.fork(&base, fork) {
            Ok(files) => files,
            Err(ClusterError::MissingTablespace { .. }) => {
                found.lost.push("the tablespace is missing".into());
                return Ok(found);
            }
            Err(ClusterError::Io(error)) if error.is_not_found() => {
                found.lost.push("the directory of the database is missing".into());
                return Ok(found);
            }
            Err(error) => return Err(error.into()),
        };
        found.add(database, class, fork, files.as_ref())?;
    }
    Ok(found)
}

impl ForkSizes {
    fn add(
        &mut self,
        database: &Database,
        class: &ClassRow,
        fork: Fork,
        files: Option<&ForkFiles>,
    ) -> Result<()> {
        // The files of temporary tables have names of their own, and are nobody's any more.
        let is_lost = fork == Fork::Main && class.persistence != Persistence::Temporary;
        let Some(files) = files else {
            self.lost.extend(is_lost.then(|| "the file is missing".to_owned()));
            return Ok(());
        };
        self.bytes = self.bytes.saturating_add(files.bytes());
        self.lost.extend(files.damage().iter().map(|damage| damage.finding()));
        if fork == Fork::Main {
            self.blocks = files.blocks();
            self.lost.extend(tail_by_sizes_and_maps(database, class, files)?);
        }
        Ok(())
    }
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
