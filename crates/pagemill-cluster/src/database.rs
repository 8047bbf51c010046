//! A database: its catalogs, bootstrapped from the files.
//!
//! The way in: `PG_VERSION` and `pg_control` → the relation map says where `pg_class` and
//! `pg_attribute` are → `pg_attribute`, whose own shape is fixed per version, gives the shape of
//! every catalog → `pg_class` gives the files of every relation. Only the columns of the catalogs
//! are kept, and of others in which blocks they are described; those of a user's table are read when it is asked for, so
//! memory does not grow with what the database holds beyond two entries per relation.
//!
//! Source: `src/backend/utils/cache/relmapper.c`, `src/include/catalog/`, PostgreSQL 14 to 18.

pub(crate) mod catalog;
mod catalogs;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pagemill_format::wal::RelFileLocator;
use pagemill_format::{Error as FormatError, Oid};
use pagemill_types::time_zone::Zone;
use pagemill_types::value_styles::ValueStyles;

use catalogs::Catalogs;

use crate::column::{Column, tuple_layout};
use crate::data_directory::{Cluster, DEFAULT_TABLESPACE, GLOBAL_TABLESPACE};
use crate::error::{DirectoryFault, Error, Result};
use crate::name_rows::read_session_settings;
use crate::refusal::{DatabaseCause, Refusal};
use crate::relation::{ClassRow, Relation};
use crate::settings::Settings;
use crate::system_table::Row;
use crate::tablespace_settings::AllTablespaces;
use crate::transaction_log::ClusterLog;
use crate::value_types::TypeTable;

/// OIDs from here on were given out after initdb (`FirstNormalObjectId`).
pub const FIRST_NORMAL_OID: Oid = Oid(16384);

/// `DATCONNLIMIT_INVALID_DB`: 16 on, and the minor releases of 14 and 15 that came with it.
pub(crate) const INVALID_DATABASE_LIMIT: i32 = -2;

/// `heap_tableam_handler` in `pg_proc`.
const HEAP_HANDLER: Oid = Oid(3);

/// A row of `pg_database`.
#[derive(Debug, Clone)]
pub struct DatabaseRow {
    /// Its OID.
    pub oid: Oid,
    /// `datname`.
    pub name: Box<[u8]>,
    /// `encoding`, a number of `src/include/mb/pg_wchar.h`.
    pub encoding: i32,
    /// `dattablespace`.
    pub tablespace: Oid,
    /// `datistemplate`.
    pub is_template: bool,
    /// `datallowconn`.
    pub allows_connections: bool,
    /// `datconnlimit`, -1 for none; see [`DatabaseRow::is_invalid`].
    pub connection_limit: i32,
}

/// An open database. Clones share it.
#[derive(Debug, Clone)]
pub struct Database {
    catalogs: Arc<Catalogs>,
    /// What a session has other than the first superuser's by default.
    session: Arc<SessionNames>,
}

/// What names and values depend on that differs between sessions.
#[derive(Debug, Clone, Default)]
pub struct SessionNames {
    /// Whose rights it has, `current_user`; `None` for the first superuser.
    pub user: Option<Box<[u8]>>,
    /// Who connected, `session_user`, where that is somebody else.
    pub session_user: Option<Box<[u8]>>,
    /// What `SET search_path` gave instead of the settings, as entries of
    /// [`parse_search_path`](crate::settings::parse_search_path).
    pub search_path: Option<Vec<Box<[u8]>>>,
    /// In which zone moments are printed and read; `None` for UTC.
    pub time_zone: Option<Arc<Zone>>,
    /// How values are printed, and dates and intervals read.
    pub styles: ValueStyles,
}

impl Cluster {
    /// Every database of the cluster, by name.
    ///
    /// # Errors
    /// When no database's catalogs can be read.
    pub fn databases(&self) -> Result<Vec<DatabaseRow>> {
        let mut rows = self.pg_database()?;
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(rows)
    }

    /// Opens the database with this name.
    ///
    /// # Errors
    /// When there is none, or its catalogs cannot be read.
    pub fn database(&self, name: &str) -> Result<Database> {
        let rows = self.pg_database()?;
        if let Some(row) = rows.iter().find(|row| *row.name == *name.as_bytes()) {
            return Database::open(self, row.clone());
        }
        let names: Vec<_> =
            rows.iter().map(|row| String::from_utf8_lossy(&row.name).into_owned()).collect();
        let near = crate::names::nearest(name, names.iter().map(String::as_str), 3);
        let near = near.into_iter().map(str::to_owned).collect();
        Err(Error::NotFound { what: format!("database \"{name}\""), near })
    }

    /// The rows of `pg_database`.
    fn pg_database(&self) -> Result<Vec<DatabaseRow>> {
        let mut rows = Vec::new();
        let wanted = [
            "oid",
            "datname",
            "encoding",
            "dattablespace",
            "datistemplate",
            "datallowconn",
            "datconnlimit",
        ];
        self.scan_shared(catalog::PG_DATABASE, &wanted, |row| {
            rows.push(DatabaseRow::read(row)?);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Scans a mapped catalog that all databases share. Its shape is the same in every database,
    /// so the first one whose `pg_attribute` can be read tells it.
    pub(crate) fn scan_shared(
        &self,
        oid: Oid,
        wanted: &[&str],
        visit: impl FnMut(&Row<'_>) -> Result<(), FormatError>,
    ) -> Result<()> {
        let base = self.path().join("base");
        let entries = self.storage().read_dir(&base)?;
        let mut databases: Vec<u32> =
            entries.iter().filter_map(|e| e.name.to_str()?.parse().ok()).collect();
        databases.sort_unstable();
        let mut log = ClusterLog::new(self.clone());
        let mut last = None;
        for database in databases {
            let unread = Catalogs::unread(self, DatabaseRow::unnamed(Oid(database)));
            match unread.and_then(|catalogs| catalogs.shared_table(oid, wanted, &mut log)) {
                Ok(table) => return table.scan(&mut log, wanted, visit),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::NotADataDirectory {
            path: self.path().into(),
            fault: DirectoryFault::NoDatabase,
        }))
    }
}

impl DatabaseRow {
    /// A database of which only the directory is known.
    fn unnamed(oid: Oid) -> Self {
        Self {
            oid,
            name: Box::default(),
            encoding: 0,
            tablespace: DEFAULT_TABLESPACE,
            is_template: false,
            allows_connections: true,
            connection_limit: -1,
        }
    }

    fn read(row: &Row<'_>) -> Result<Self, FormatError> {
        Ok(Self {
            oid: row.oid(0)?,
            name: row.name(1)?,
            encoding: row.i32(2)?,
            tablespace: row.oid(3)?,
            is_template: row.byte(4)? != 0,
            allows_connections: row.byte(5)? != 0,
            connection_limit: row.i32(6)?,
        })
    }

    /// True when a DROP DATABASE was begun and did not end: some of its files may be gone, and a
    /// server refuses to connect to it.
    pub fn is_invalid(&self) -> bool {
        self.connection_limit == INVALID_DATABASE_LIMIT
    }
}

impl Database {
    /// Opens a database that `pg_database` lists.
    ///
    /// # Errors
    /// When it is invalid, or its catalogs cannot be read.
    pub fn open(cluster: &Cluster, row: DatabaseRow) -> Result<Self> {
        if row.is_invalid() {
            return Err(Error::refused(Refusal::database(&row.name, DatabaseCause::Invalid)));
        }
        if cluster.lacks_source_of(row.oid) {
            return Err(Error::refused(Refusal::database(&row.name, DatabaseCause::LostSource)));
        }
        let mut catalogs = Catalogs::unread(cluster, row)?;
        let mut log = ClusterLog::new(cluster.clone());
        catalogs.read_catalog_columns(&mut log)?;
        catalogs.read_classes(&mut log)?;
        for oid in catalog::ALL {
            catalogs.check_column_count(oid, catalogs.catalog_columns(oid, &[])?.len())?;
        }
        Ok(Self { catalogs: Arc::new(catalogs), session: Arc::default() })
    }

    /// The same database for another session: names without a schema are looked up along its path, and printed without one when
    /// they are found there.
    #[must_use]
    pub fn for_session(&self, session: SessionNames) -> Self {
        Self { catalogs: self.catalogs.clone(), session: Arc::new(session) }
    }

    /// The same for a session that prints values, and reads dates and intervals, as by default.
    #[must_use]
    pub fn in_plain_styles(&self) -> Self {
        let styles = ValueStyles::default();
        self.for_session(SessionNames { styles, ..SessionNames::clone(&self.session) })
    }

    /// What the session set.
    pub(crate) fn session(&self) -> &SessionNames {
        &self.session
    }

    /// In which zone the session prints and reads moments; `None` for UTC.
    pub fn session_time_zone(&self) -> Option<&Arc<Zone>> {
        self.session.time_zone.as_ref()
    }

    /// How the session prints values, and reads dates and intervals.
    pub fn session_styles(&self) -> &ValueStyles {
        &self.session.styles
    }

    /// The cluster it is in.
    pub fn cluster(&self) -> &Cluster {
        &self.catalogs.cluster
    }

    /// Its row of `pg_database`.
    pub fn row(&self) -> &DatabaseRow {
        &self.catalogs.row
    }

    /// Every relation, in the order of `pg_class`'s file.
    pub fn classes(&self) -> &[ClassRow] {
        &self.catalogs.classes
    }

    /// The relation with this OID.
    pub fn class(&self, oid: Oid) -> Option<&ClassRow> {
        self.catalogs.class(oid)
    }

    /// The names of all schemas.
    ///
    /// # Errors
    /// When `pg_namespace` cannot be read.
    pub fn namespaces(&self) -> Result<&HashMap<Oid, Box<[u8]>>> {
        load_once(&self.catalogs.namespaces, || {
            let mut found = HashMap::new();
            self.scan(catalog::PG_NAMESPACE, &["oid", "nspname"], |row| {
                found.insert(row.oid(0)?, row.name(1)?);
                Ok(())
            })?;
            Ok(found)
        })
    }

    /// The name of a relation's schema, or its number should `pg_namespace` not have it.
    ///
    /// # Errors
    /// When `pg_namespace` cannot be read.
    pub fn schema_of(&self, class: &ClassRow) -> Result<Box<[u8]>> {
        let name = self.namespaces()?.get(&class.namespace).cloned();
        Ok(name.unwrap_or_else(|| class.namespace.to_string().into_bytes().into()))
    }

    /// The types of the database.
    ///
    /// # Errors
    /// When `pg_type` cannot be read.
    pub(crate) fn types(&self) -> Result<&TypeTable> {
        load_once(&self.catalogs.types, || TypeTable::read(self))
    }

    /// The index of a TOAST table.
    ///
    /// # Errors
    /// When `pg_index` cannot be read.
    pub(crate) fn toast_index(&self, toast: Oid) -> Result<Option<Oid>> {
        let indexes = load_once(&self.catalogs.toast_indexes, || {
            let mut found = HashMap::new();
            self.scan(catalog::PG_INDEX, &["indexrelid", "indrelid", "indisvalid"], |row| {
                if row.byte(2)? != 0 {
                    found.insert(row.oid(1)?, row.oid(0)?);
                }
                Ok(())
            })?;
            found.retain(|table, _| {
                self.class(*table).is_some_and(|c| c.kind == crate::relation::RelationKind::Toast)
            });
            Ok(found)
        })?;
        Ok(indexes.get(&toast).copied())
    }

    /// The settings of a new session.
    ///
    /// # Errors
    /// When the catalogs cannot be read.
    pub fn session_settings(&self) -> Result<&Settings> {
        load_once(&self.catalogs.session_settings, || read_session_settings(self))
    }

    /// What `read` makes of all tablespaces, once.
    pub(crate) fn all_tablespaces(
        &self,
        read: impl FnOnce() -> Result<AllTablespaces>,
    ) -> Result<&AllTablespaces> {
        load_once(&self.catalogs.tablespaces, read)
    }

    /// True when tables of this access method are heaps: `heap` itself, or another name for its
    /// handler.
    ///
    /// # Errors
    /// When `pg_am` cannot be read.
    pub fn is_heap(&self, access_method: Oid) -> Result<bool> {
        let methods = load_once(&self.catalogs.heap_methods, || {
            let mut found = HashSet::new();
            self.scan(catalog::PG_AM, &["oid", "amhandler"], |row| {
                if row.oid(1)? == HEAP_HANDLER {
                    found.insert(row.oid(0)?);
                }
                Ok(())
            })?;
            Ok(found)
        })?;
        Ok(methods.contains(&access_method))
    }

    /// A relation with its columns, ready to be read.
    ///
    /// # Errors
    /// When its columns or files cannot be found.
    pub fn relation(&self, class: &ClassRow) -> Result<Relation> {
        let oid = class.oid;
        let columns = match self.catalogs.catalog_columns.get(&oid) {
            Some(columns) => columns.clone(),
            None => self.columns_of(&[oid])?.remove(&oid).unwrap_or_default(),
        };
        self.relation_with(class, columns)
    }

    /// Several relations with their columns, in one pass over `pg_attribute`.
    ///
    /// # Errors
    /// As [`Database::relation`].
    pub fn relations(&self, classes: &[&ClassRow]) -> Result<Vec<Relation>> {
        let wanted: Vec<Oid> = classes.iter().map(|c| c.oid).collect();
        let mut columns = self.columns_of(&wanted)?;
        let relation = |class: &&ClassRow| {
            self.relation_with(class, columns.remove(&class.oid).unwrap_or_default())
        };
        classes.iter().map(relation).collect()
    }

    /// The columns of these relations.
    ///
    /// # Errors
    /// When `pg_attribute` cannot be read, or has not just the columns that `pg_class` counts.
    pub(crate) fn columns_of(&self, relations: &[Oid]) -> Result<HashMap<Oid, Vec<Column>>> {
        let wanted: HashSet<Oid> = relations.iter().copied().collect();
        let mut log = ClusterLog::new(self.cluster().clone());
        let blocks = self.catalogs.blocks_of_columns(relations);
        let found = self.catalogs.read_columns(&mut log, blocks, |_, oid| wanted.contains(&oid))?;
        for &oid in relations {
            let columns = found.get(&oid).map(Vec::as_slice).unwrap_or_default();
            self.catalogs.check_column_count(oid, columns.len())?;
        }
        Ok(found)
    }

    /// Checks that the numbers of a relation's attributes, in order, are those there must be.
    ///
    /// # Errors
    /// When one is missing or there twice, or `pg_class` counts others.
    pub(crate) fn check_numbers(&self, relation: Oid, numbers: &[i16]) -> Result<()> {
        if let Some((number, _)) = numbers.iter().zip(1..).find(|(number, due)| **number != *due) {
            let what = format!("number {number} where another one must be");
            return Err(self.catalogs.attribute_damage(relation, &what));
        }
        self.catalogs.check_column_count(relation, numbers.len())
    }

    fn relation_with(&self, class: &ClassRow, columns: Vec<Column>) -> Result<Relation> {
        Ok(Relation {
            schema: self.schema_of(class)?,
            base: self.base_path(class)?,
            layout: tuple_layout(&columns),
            class: class.clone(),
            columns,
        })
    }

    /// The path of a relation's files, without fork and segment.
    ///
    /// # Errors
    /// When a mapped relation is not in the relation map.
    pub fn base_path(&self, class: &ClassRow) -> Result<PathBuf> {
        self.catalogs.base_path(class)
    }

    /// The files of a relation, as WAL names them.
    ///
    /// # Errors
    /// When a mapped relation is not in the relation map; refused: a relation without files.
    pub fn locator(&self, class: &ClassRow) -> Result<RelFileLocator> {
        let row = self.row();
        let (tablespace, database) = match class.tablespace {
            _ if class.shared => (GLOBAL_TABLESPACE, Oid::INVALID),
            Oid::INVALID => (row.tablespace, row.oid),
            other => (other, row.oid),
        };
        let base = self.base_path(class)?;
        let number = base.file_name().and_then(|name| name.to_str()?.parse().ok()).map(Oid);
        let number = number.ok_or_else(|| Error::refused(Refusal::NoFiles(class.oid)))?;
        Ok(RelFileLocator { tablespace, database, number })
    }

    /// As [`scan`](Self::scan), for a catalog whose columns are not kept.
    pub(crate) fn scan_any(
        &self,
        oid: Oid,
        wanted: &[&str],
        visit: impl FnMut(&Row<'_>) -> Result<(), FormatError>,
    ) -> Result<()> {
        let class = self
            .class(oid)
            .ok_or_else(|| Error::refused(Refusal::missing_row("pg_class", "the catalog", oid)))?;
        let columns = self.columns_of(&[oid])?.remove(&oid).unwrap_or_default();
        let table = self.catalogs.system_table(self.base_path(class)?, &columns);
        table.scan(&mut ClusterLog::new(self.cluster().clone()), wanted, visit)
    }

    /// Scans a catalog; see [`SystemTable::scan`](crate::system_table::SystemTable::scan).
    pub(crate) fn scan(
        &self,
        oid: Oid,
        wanted: &[&str],
        visit: impl FnMut(&Row<'_>) -> Result<(), FormatError>,
    ) -> Result<()> {
        let class = self
            .class(oid)
            .ok_or_else(|| Error::refused(Refusal::missing_row("pg_class", "the catalog", oid)))?;
        let columns = self.catalogs.catalog_columns(oid, wanted)?;
        let table = self.catalogs.system_table(self.base_path(class)?, columns);
        table.scan(&mut ClusterLog::new(self.cluster().clone()), wanted, visit)
    }

    /// True when some relation has the file of this number in the tablespace: by its row of `pg_class`, or by the
    /// relation map, where that row does not tell.
    pub(crate) fn has_file(&self, tablespace: Oid, number: u32) -> bool {
        let default = self.row().tablespace;
        let lies_in = |named: Oid| if named == Oid::INVALID { default } else { named };
        let is_it =
            |class: &ClassRow| class.filenode == number && lies_in(class.tablespace) == tablespace;
        self.classes().iter().any(is_it) || self.catalogs.maps.local.oid(number).is_some()
    }
}

/// The value in `slot`, loaded now if nobody has yet.
pub(crate) fn load_once<T>(slot: &OnceLock<T>, load: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(found) = slot.get() {
        return Ok(found);
    }
    let loaded = load()?;
    Ok(slot.get_or_init(|| loaded))
}
