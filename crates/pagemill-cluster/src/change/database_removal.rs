//! A database that is dropped: its rows in shared catalogs, and its directories.
//!
//! Its row is deleted, and says from the same record on that the database is invalid: whoever replays the WAL and stops
//! between the removal of the directories and the commit finds a database that nobody can connect to, and that can be
//! dropped again.
//!
//! Invariant: nothing is removed before the decision.
//!
//! Source: `dropdb` and `remove_dbtablespaces` in `src/backend/commands/dbcommands.c`, `dropDatabaseDependencies` in
//! `src/backend/catalog/pg_shdepend.c`, PostgreSQL 14 to 18.

use std::path::PathBuf;
use std::sync::Arc;

use pagemill_format::wal::{
    Commit, DroppedStatistics, ImageCompression, Invalidation, RecordBuilder,
};
use pagemill_format::{Oid, PgVersion};

use super::catalog_table::{CatalogTable, Payloads};
use super::lock::ClusterLock;
use super::state_check::check_state;
use super::transaction::{Ending, Transaction};
use super::{pending, shared_rows};
use crate::data_directory::{Cluster, GLOBAL_TABLESPACE};
use crate::database::{Database, DatabaseRow, INVALID_DATABASE_LIMIT, catalog};
use crate::error::{Error, Result};
use crate::refusal::{DatabaseCause, Refusal};

/// `PGSTAT_KIND_DATABASE`.
const DATABASE_STATISTICS: i32 = 1;
/// Bytes of a slot's state before the name of the slot, and those of the name.
const SLOT_NAME: usize = 16;
const NAME_BYTES: usize = 64;
/// More than a slot's state is long.
const SLOT_BYTES: u64 = 1 << 16;

/// Drops a database of a cluster that was opened under `lock`.
///
/// # Errors
/// When there is none of that name, it is a template, or replication depends on it, and when the cluster is in no state
/// to be changed: nothing has changed then. [`Error::Unfinished`] and [`Error::Undecided`] as for any change.
pub fn drop_database(lock: Arc<ClusterLock>, cluster: &Cluster, name: &[u8]) -> Result<()> {
    let (row, beside) = checked(cluster, name)?;
    let mut transaction = Transaction::begin(lock, cluster, ImageCompression::Off)?;
    delete_rows(&mut transaction, &beside, row.oid)?;
    transaction.log_pages(&[])?;
    let tablespaces = tablespaces_of(cluster, row.oid)?;
    let (xid, version) = (transaction.xid(), cluster.version());
    transaction.append(&RecordBuilder::database_dropped(row.oid, &tablespaces, xid, version))?;
    let of_databases =
        Invalidation::Catalog { database: Oid::INVALID, catalog: catalog::PG_DATABASE };
    let statistics = DroppedStatistics { kind: DATABASE_STATISTICS, database: row.oid, object: 0 };
    transaction.commit(Ending {
        commit: Commit {
            database: Some((beside.row().oid, beside.row().tablespace)),
            invalidations: vec![of_databases],
            dropped_statistics: if version == PgVersion::V14 { vec![] } else { vec![statistics] },
            ..Commit::default()
        },
        locked: Vec::new(),
        is_new: &|_| false,
        settings: beside.session_settings()?,
        remove: &|cluster| {
            let mut tablespaces = tablespaces.iter();
            tablespaces.try_for_each(|&space| pending::remove_database(cluster, space, row.oid))
        },
    })
}

/// The directories that dropping a database would remove.
///
/// # Errors
/// As [`drop_database`], as far as it is about the database and the state of the cluster.
pub fn check_drop(cluster: &Cluster, name: &[u8]) -> Result<Vec<PathBuf>> {
    let (row, _) = checked(cluster, name)?;
    let tablespaces = tablespaces_of(cluster, row.oid)?;
    Ok(tablespaces.into_iter().map(|space| cluster.tablespace_path(space, row.oid)).collect())
}

/// A database that can be dropped, and one beside it.
fn checked(cluster: &Cluster, name: &[u8]) -> Result<(DatabaseRow, Database)> {
    check_state(cluster)?;
    let row = row_of(cluster, name)?;
    let beside = other_database(cluster, &row)?;
    check_subscriptions(&beside, &row)?;
    check_slots(cluster, &row)?;
    Ok((row, beside))
}

fn row_of(cluster: &Cluster, name: &[u8]) -> Result<DatabaseRow> {
    let rows = cluster.databases()?;
    let shown = String::from_utf8_lossy(name);
    let Some(row) = rows.iter().find(|row| *row.name == *name) else {
        let names: Vec<_> =
            rows.iter().map(|row| String::from_utf8_lossy(&row.name).into_owned()).collect();
        let near = crate::names::nearest(&shown, names.iter().map(String::as_str), 3);
        let near = near.into_iter().map(str::to_owned).collect();
        return Err(Error::NotFound { what: format!("database \"{shown}\""), near });
    };
    if row.is_template {
        return Err(Error::refused(Refusal::database(name, DatabaseCause::IsTemplate)));
    }
    Ok(row.clone())
}

/// A database whose catalogs say what the shared ones look like.
fn other_database(cluster: &Cluster, dropped: &DatabaseRow) -> Result<Database> {
    let mut last = None;
    for row in cluster.databases()?.into_iter().filter(|row| row.oid != dropped.oid) {
        match Database::open(cluster, row) {
            Ok(found) => return Ok(found),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| {
        Error::refused(Refusal::database(&dropped.name, DatabaseCause::IsOnlyOne))
    }))
}

fn check_subscriptions(beside: &Database, dropped: &DatabaseRow) -> Result<()> {
    let mut count = 0;
    beside.scan_any(catalog::PG_SUBSCRIPTION, &["subdbid"], |row| {
        count += u32::from(row.oid(0)? == dropped.oid);
        Ok(())
    })?;
    if count > 0 {
        let cause = DatabaseCause::Subscriptions(count);
        return Err(Error::refused(Refusal::database(&dropped.name, cause)));
    }
    Ok(())
}

/// Refuses a database whose changes somebody decodes.
fn check_slots(cluster: &Cluster, dropped: &DatabaseRow) -> Result<()> {
    let directory = cluster.path().join("pg_replslot");
    for entry in cluster.storage().read_dir(&directory)? {
        let path = directory.join(&entry.name).join("state");
        let state = match cluster.storage().read_file(&path, SLOT_BYTES) {
            Err(error) if error.is_not_found() => continue,
            state => state?,
        };
        let database = state.get(SLOT_NAME + NAME_BYTES..).and_then(<[u8]>::first_chunk);
        if database.map(|bytes| Oid(u32::from_le_bytes(*bytes))) == Some(dropped.oid) {
            let cause = DatabaseCause::Slot(entry.name.display().to_string());
            return Err(Error::refused(Refusal::database(&dropped.name, cause)));
        }
    }
    Ok(())
}

/// Deletes what the shared catalogs have of a database.
fn delete_rows(transaction: &mut Transaction, beside: &Database, database: Oid) -> Result<()> {
    let databases = CatalogTable::open(beside, catalog::PG_DATABASE)?;
    let limit = databases.position("datconnlimit").and_then(|at| databases.layout.fixed_span(at));
    let invalid = INVALID_DATABASE_LIMIT.to_le_bytes();
    let invalid = limit.map(|span| (span.start, &invalid[..]));
    shared_rows::delete(transaction, &databases, |row| oid_at(row, 0) == Some(database), invalid)?;
    let is_object = |object, class| {
        move |row: &Payloads| {
            oid_at(row, object) == Some(database)
                && oid_at(row, class) == Some(catalog::PG_DATABASE)
        }
    };
    let is_dependency = |row: &Payloads| {
        let of_database = is_object(2, 1);
        oid_at(row, 0) == Some(database) || oid_at(row, 0) == Some(Oid::INVALID) && of_database(row)
    };
    let dependencies = CatalogTable::open(beside, catalog::PG_SHDEPEND)?;
    shared_rows::delete(transaction, &dependencies, is_dependency, None)?;
    let settings = CatalogTable::open(beside, catalog::PG_DB_ROLE_SETTING)?;
    shared_rows::delete(transaction, &settings, |row| oid_at(row, 0) == Some(database), None)?;
    for catalog in [catalog::PG_SHDESCRIPTION, catalog::PG_SHSECLABEL] {
        let catalog = CatalogTable::open(beside, catalog)?;
        shared_rows::delete(transaction, &catalog, is_object(0, 1), None)?;
    }
    Ok(())
}

fn oid_at(row: &Payloads, column: usize) -> Option<Oid> {
    let bytes = row.get(column)?.as_deref()?.first_chunk()?;
    Some(Oid(u32::from_le_bytes(*bytes)))
}

/// The tablespaces in which a database has a directory.
fn tablespaces_of(cluster: &Cluster, database: Oid) -> Result<Vec<Oid>> {
    let mut found = Vec::new();
    for tablespace in cluster.tablespaces()?.into_keys().filter(|&t| t != GLOBAL_TABLESPACE) {
        if cluster.storage().exists(&cluster.tablespace_path(tablespace, database))? {
            found.push(tablespace);
        }
    }
    found.sort_unstable();
    Ok(found)
}
