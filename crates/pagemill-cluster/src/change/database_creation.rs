//! A new database, made from a template: its row, its dependencies, its directories and what is logged of them.
//!
//! ```text
//! begin   the rules are checked, an OID is taken, the directories are listed as unfinished
//!   │     the caller makes the directories and fills them, logging it in one of two ways:
//!   │       made: the directory is made by a replay, and every page comes as an image (15 on)
//!   │       copied: a replay copies the template's directory as it finds it
//!   ├─ drop: the directories are removed
//! commit  rows in pg_database and pg_shdepend, see `transaction.rs`
//! ```
//!
//! Invariant: until the commit no row names the directories, and they are on the list of what is unfinished.
//!
//! Source: `createdb` in `src/backend/commands/dbcommands.c`, `copyTemplateDependencies` and `recordDependencyOnOwner` in
//! `src/backend/catalog/pg_shdepend.c`, PostgreSQL 14 to 18.

use std::path::PathBuf;
use std::sync::Arc;

use pagemill_format::wal::{
    Commit, CopiedDatabase, ImageCompression, Invalidation, RecordBuilder, RelFileLocator,
    StorageFile,
};
use pagemill_format::{BlockBytes, BlockNumber, Fork, Lsn, Oid, PgVersion};
use pagemill_wal::WalWriter;

use super::catalog_indexes::{OF_DATABASE, OF_DEPENDENCIES};
use super::catalog_table::{CatalogTable, Payloads};
use super::database_row::NewDatabase;
use super::lock::ClusterLock;
use super::pending::{self, Unfinished};
use super::shared_rows;
use super::state_check::check_state;
use super::transaction::{Ending, Transaction};
use crate::data_directory::{Cluster, GLOBAL_TABLESPACE};
use crate::database::{Database, catalog};
use crate::error::{Error, Result};
use crate::refusal::{DatabaseCause, NewDatabaseCause, Refusal};
use crate::relation::ClassRow;

/// Roles below this are part of every cluster, and what depends on them is not noted (`FirstUnpinnedObjectId`).
const FIRST_UNPINNED: Oid = Oid(12000);
/// `SHARED_DEPENDENCY_OWNER`.
const OWNER_DEPENDENCY: u8 = b'o';

/// A directory of the template and the one that becomes its copy, in their tablespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseDirectory {
    /// The tablespace of the template's.
    pub source: Oid,
    /// The tablespace of the copy.
    pub target: Oid,
}

/// A database that is not committed. Dropped, it is removed.
#[derive(Debug)]
pub struct DatabaseCreation {
    template: Database,
    new: NewDatabase,
    oid: Oid,
    directories: Vec<DatabaseDirectory>,
    transaction: Transaction,
}

impl DatabaseCreation {
    /// Begins to make a database as `template`, which was opened under `lock`.
    ///
    /// # Errors
    /// When there is a database of that name, its tablespace cannot be that, or the cluster is in no state to be
    /// changed.
    pub fn begin(
        lock: Arc<ClusterLock>,
        template: Database,
        new: NewDatabase,
        compression: ImageCompression,
    ) -> Result<Self> {
        let cluster = template.cluster().clone();
        check_new_database(&template, &new)?;
        let directories = database_directories(&template, new.tablespace)?;
        let mut transaction = Transaction::begin(lock, &cluster, compression)?;
        let oid = unused_oid(&transaction)?;
        let unfinished: Vec<_> = directories
            .iter()
            .map(|dir| Unfinished::Database { tablespace: dir.target, database: oid })
            .collect();
        transaction.list(&unfinished)?;
        Ok(Self { template, new, oid, directories, transaction })
    }

    /// The database that is copied.
    pub fn template(&self) -> &Database {
        &self.template
    }

    /// The OID of the new one.
    pub fn oid(&self) -> Oid {
        self.oid
    }

    /// The directories that it has, that of its default tablespace first.
    pub fn directories(&self) -> &[DatabaseDirectory] {
        &self.directories
    }

    /// The path of one of them.
    pub fn path(&self, directory: DatabaseDirectory) -> PathBuf {
        self.template.cluster().tablespace_path(directory.target, self.oid)
    }

    /// The files of the copy of one of the template's relations.
    ///
    /// # Errors
    /// When the relation map does not have it.
    pub fn file_of(&self, class: &ClassRow) -> Result<RelFileLocator> {
        let source = super::catalog_table::files_of(&self.template, class.oid)?;
        let directory = self.directories.iter().find(|dir| dir.source == source.tablespace);
        let tablespace = directory.map_or(source.tablespace, |dir| dir.target);
        Ok(RelFileLocator { tablespace, database: self.oid, number: source.number })
    }

    /// The WAL of the change.
    pub fn wal(&self) -> &WalWriter {
        self.transaction.wal()
    }

    /// Logs that the database's own directory is made and has this relation map.
    ///
    /// # Errors
    /// When the WAL cannot be written, or the version has no such record.
    pub fn log_made(&mut self, relation_map: &[u8]) -> Result<()> {
        if self.template.cluster().version() == PgVersion::V14 {
            return Err(Error::refused(NewDatabaseCause::NotLoggedByPages));
        }
        let own = self.directories.first().expect("a database has a directory of its own"); // infallible: the list begins with it
        let (target, xid) = (own.target, self.transaction.xid());
        self.transaction.append(&RecordBuilder::database_made(self.oid, target, xid))?;
        self.transaction.append(&RecordBuilder::relation_map(
            self.oid,
            target,
            relation_map,
            xid,
        ))?;
        Ok(())
    }

    /// Logs that all directories are copies of the template's.
    ///
    /// # Errors
    /// When the WAL cannot be written.
    pub fn log_copied(&mut self) -> Result<()> {
        let xid = self.transaction.xid();
        for directory in &self.directories {
            let copied = CopiedDatabase {
                database: self.oid,
                tablespace: directory.target,
                source_database: self.template.row().oid,
                source_tablespace: directory.source,
            };
            self.transaction.append(&copied.record(xid))?;
        }
        Ok(())
    }

    /// Logs that a fork of a relation has files.
    ///
    /// # Errors
    /// When the WAL cannot be written.
    pub fn log_file(&mut self, locator: RelFileLocator, fork: Fork) -> Result<()> {
        let made = StorageFile { locator, fork };
        self.transaction.append(&made.record(self.transaction.xid()))?;
        Ok(())
    }

    /// Logs images of pages of a new fork, at most 32, and returns the LSN they get.
    ///
    /// # Errors
    /// When the WAL cannot be written.
    pub fn log_images(
        &mut self,
        file: RelFileLocator,
        fork: Fork,
        pages: &[(BlockNumber, &BlockBytes)],
    ) -> Result<Lsn> {
        self.transaction.log_images(file, fork, pages, false)
    }

    /// Makes the database exist. Its directories have to be durable.
    ///
    /// # Errors
    /// When something fails before the decision, nothing has changed. [`Error::Unfinished`] when it is after that, and
    /// [`Error::Undecided`] when it is the decision itself that fails.
    pub fn commit(mut self) -> Result<()> {
        let mut locked = self.add_database()?;
        locked.extend(self.add_dependencies()?);
        let (row, oid) = (self.template.row(), self.oid);
        let of_databases =
            Invalidation::Catalog { database: Oid::INVALID, catalog: catalog::PG_DATABASE };
        self.transaction.commit(Ending {
            commit: Commit {
                database: Some((row.oid, row.tablespace)),
                invalidations: vec![of_databases],
                ..Commit::default()
            },
            locked,
            is_new: &|file| file.database == oid,
            settings: self.template.session_settings()?,
            remove: &|_| Ok(()),
        })
    }

    fn add_database(&mut self) -> Result<Vec<(Oid, Oid)>> {
        let databases = CatalogTable::open(&self.template, catalog::PG_DATABASE)?;
        let row = template_row(&databases, &self.template)?;
        let tablespace = self.directories.first().map_or(Oid::INVALID, |own| own.target);
        let row = self.new.row(&databases, row, self.oid, tablespace)?;
        shared_rows::insert(&mut self.transaction, &databases, &[row], &OF_DATABASE)
    }

    /// What in the new database depends on roles and tablespaces, as in the template; and its owner.
    fn add_dependencies(&mut self) -> Result<Vec<(Oid, Oid)>> {
        let dependencies = CatalogTable::open(&self.template, catalog::PG_SHDEPEND)?;
        let template = self.template.row().oid.0.to_le_bytes();
        let oid = self.oid.0.to_le_bytes().to_vec();
        let mut rows = Vec::new();
        dependencies.for_each_row(|_, tuple| {
            let mut row = dependencies.payloads(tuple, |_| true)?;
            if let Some(database) = row.first_mut().filter(|d| d.as_deref() == Some(&template)) {
                *database = Some(oid.clone());
                rows.push(row);
            }
            Ok(())
        })?;
        if self.new.owner >= FIRST_UNPINNED {
            rows.push(owner_dependency(self.oid, self.new.owner));
        }
        shared_rows::insert(&mut self.transaction, &dependencies, &rows, &OF_DEPENDENCIES)
    }
}

impl Drop for DatabaseCreation {
    fn drop(&mut self) {
        if self.transaction.is_flipped() {
            return;
        }
        let cluster = self.template.cluster();
        let mut targets = self.directories.iter();
        let removed =
            targets.try_for_each(|dir| pending::remove_database(cluster, dir.target, self.oid));
        if removed.is_err() {
            self.transaction.keep_list();
        }
    }
}

/// The row that says who owns a database: database, catalog, object, part, catalog and role, kind.
fn owner_dependency(database: Oid, owner: Oid) -> Payloads {
    let oids =
        [Oid::INVALID, catalog::PG_DATABASE, database, Oid::INVALID, catalog::PG_AUTHID, owner];
    let values = oids.map(|oid| Some(oid.0.to_le_bytes().to_vec()));
    values.into_iter().chain([Some(vec![OWNER_DEPENDENCY])]).collect()
}

/// Refuses a database that cannot be made.
///
/// # Errors
/// When there is one of that name, its template has a collation that this system does not have, or the cluster is in no
/// state to be changed.
pub fn check_new_database(template: &Database, new: &NewDatabase) -> Result<()> {
    check_state(template.cluster())?;
    if template.cluster().databases()?.iter().any(|row| *row.name == *new.name) {
        return Err(Error::refused(Refusal::database(&new.name, DatabaseCause::Exists)));
    }
    let databases = CatalogTable::open(template, catalog::PG_DATABASE)?;
    let row = template_row(&databases, template)?;
    new.row(&databases, row, Oid::INVALID, Oid::INVALID)?;
    Ok(())
}

/// The row of the template, but for its privileges.
fn template_row(databases: &CatalogTable, template: &Database) -> Result<Payloads> {
    let oid = template.row().oid.0.to_le_bytes();
    // Without it the wrong column would be compared, and perhaps the wrong row copied.
    let Some(at) = databases.position("oid") else {
        return Err(databases.damage("it has no column oid"));
    };
    let mut found = None;
    databases.for_each_row(|_, tuple| {
        let row = databases.payloads(tuple, |column| &*column.name != b"datacl")?;
        if row.get(at).and_then(Option::as_deref) == Some(&oid[..]) {
            found = Some(row);
        }
        Ok(())
    })?;
    found.ok_or_else(|| databases.damage("no row for a database that was read from it before"))
}

/// The directories of the template that have files, and where their copies go: that of its own tablespace first, which
/// goes to `wanted` if that is given.
///
/// # Errors
/// When the template has tables in that tablespace already, or it cannot be that of a database.
pub fn database_directories(
    template: &Database,
    wanted: Option<Oid>,
) -> Result<Vec<DatabaseDirectory>> {
    let (cluster, row) = (template.cluster(), template.row());
    let own = row.tablespace;
    let target = wanted.unwrap_or(own);
    if target == GLOBAL_TABLESPACE {
        return Err(Error::refused(NewDatabaseCause::GlobalTablespace));
    }
    let mut found = vec![DatabaseDirectory { source: own, target }];
    let mut tablespaces: Vec<_> = cluster.tablespaces()?.into_keys().collect();
    tablespaces.sort_unstable();
    for source in tablespaces.into_iter().filter(|&t| t != own && t != GLOBAL_TABLESPACE) {
        if !has_files(cluster, source, row.oid)? {
            continue;
        }
        if source == target {
            return Err(Error::refused(Refusal::database(
                &row.name,
                DatabaseCause::TablesInTarget,
            )));
        }
        found.push(DatabaseDirectory { source, target: source });
    }
    Ok(found)
}

fn has_files(cluster: &Cluster, tablespace: Oid, database: Oid) -> Result<bool> {
    match cluster.storage().read_dir(&cluster.tablespace_path(tablespace, database)) {
        Ok(entries) => Ok(!entries.is_empty()),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A number that no database has, and no directory in any tablespace.
fn unused_oid(transaction: &Transaction) -> Result<Oid> {
    let cluster = transaction.cluster();
    let databases = cluster.databases()?;
    let tablespaces: Vec<_> = cluster.tablespaces()?.into_keys().collect();
    loop {
        let oid = transaction.oids().take();
        let mut is_free = !databases.iter().any(|row| row.oid == oid);
        for &tablespace in tablespaces.iter().filter(|&&t| t != GLOBAL_TABLESPACE) {
            let path = cluster.tablespace_path(tablespace, oid);
            is_free = is_free && !cluster.storage().exists(&path)?;
        }
        if is_free {
            return Ok(oid);
        }
    }
}
