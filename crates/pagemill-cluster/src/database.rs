//! A database: its catalogs, bootstrapped from the files.
//!
//! The way in: `PG_VERSION` and `pg_control` → the relation map says where `pg_class` and
//! `pg_attribute` are → `pg_attribute`, whose own shape is fixed per version, gives the shape of
//! every catalog → `pg_class` gives the files of every relation. Only the columns of the catalogs
//! are kept, and of others in which blocks they are described; those of a user's table are read when it is asked for, so
//! memory does not grow with what the database holds beyond two entries per relation.
//!
//! Source: `src/backend/utils/cache/relmapper.c`, `src/include/catalog/`, PostgreSQL 14 to 18.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pagemill_format::relmap::RelationMap;
use pagemill_format::tuple::TupleLayout;
use pagemill_format::{BlockNumber, Error as FormatError, Oid};

use crate::bootstrap::pg_attribute_columns;
use crate::column::{Column, in_order, tuple_layout};
use crate::data_directory::{Cluster, DEFAULT_TABLESPACE, GLOBAL_TABLESPACE};
use crate::error::{Damage, Error, Result};
use crate::name_rows::read_session_settings;
use crate::refusal::{DatabaseCause, Refusal};
use crate::relation::{ClassRow, Relation};
use crate::settings::Settings;
use crate::system_table::{ALL_BLOCKS, Row, SystemTable};
use crate::tablespace_settings::AllTablespaces;
use crate::transaction_log::ClusterLog;
use crate::value_types::TypeTable;

/// The catalogs that are read, by the OIDs that initdb gives them.
pub(crate) mod catalog {
    use pagemill_format::Oid;

    pub(crate) const PG_TYPE: Oid = Oid(1247);
    pub(crate) const PG_ATTRIBUTE: Oid = Oid(1249);
    pub(crate) const PG_PROC: Oid = Oid(1255);
    pub(crate) const PG_CLASS: Oid = Oid(1259);
    pub(crate) const PG_AUTHID: Oid = Oid(1260);
    pub(crate) const PG_DATABASE: Oid = Oid(1262);
    pub(crate) const PG_TABLESPACE: Oid = Oid(1213);
    pub(crate) const PG_NAMESPACE: Oid = Oid(2615);
    pub(crate) const PG_OPERATOR: Oid = Oid(2617);
    pub(crate) const PG_COLLATION: Oid = Oid(3456);
    pub(crate) const PG_TS_CONFIG: Oid = Oid(3602);
    pub(crate) const PG_TS_DICT: Oid = Oid(3600);
    pub(crate) const PG_ENUM: Oid = Oid(3501);
    pub(crate) const PG_RANGE: Oid = Oid(3541);
    pub(crate) const PG_CONSTRAINT: Oid = Oid(2606);
    pub(crate) const PG_INDEX: Oid = Oid(2610);
    pub(crate) const PG_AM: Oid = Oid(2601);
    pub(crate) const PG_INHERITS: Oid = Oid(2611);
    pub(crate) const PG_DB_ROLE_SETTING: Oid = Oid(2964);

    // Read when rows are to be loaded, and not kept.
    pub(crate) const PG_OPCLASS: Oid = Oid(2616);
    pub(crate) const PG_TRIGGER: Oid = Oid(2620);
    pub(crate) const PG_PARTITIONED_TABLE: Oid = Oid(3350);
    pub(crate) const PG_ATTRDEF: Oid = Oid(2604);
    pub(crate) const PG_DEPEND: Oid = Oid(2608);
    pub(crate) const PG_SEQUENCE: Oid = Oid(2224);

    // Read for the partitions of a table, and not kept.

    // Changed when databases are made and dropped.
    pub(crate) const PG_SHDEPEND: Oid = Oid(1214);
    pub(crate) const PG_SHDESCRIPTION: Oid = Oid(2396);
    pub(crate) const PG_SHSECLABEL: Oid = Oid(3592);
    pub(crate) const PG_SUBSCRIPTION: Oid = Oid(6100);

    /// Those read through a database; the others are shared by all.
    pub(crate) const ALL: [Oid; 18] = [
        PG_TYPE,
        PG_ATTRIBUTE,
        PG_PROC,
        PG_CLASS,
        PG_AUTHID,
        PG_NAMESPACE,
        PG_OPERATOR,
        PG_COLLATION,
        PG_TS_CONFIG,
        PG_TS_DICT,
        PG_ENUM,
        PG_RANGE,
        PG_CONSTRAINT,
        PG_INDEX,
        PG_AM,
        PG_INHERITS,
        PG_DB_ROLE_SETTING,
        PG_TABLESPACE,
    ];
}

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
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    cluster: Cluster,
    row: DatabaseRow,
    maps: Maps,
    /// Columns of the catalogs in [`catalog::ALL`].
    catalog_columns: HashMap<Oid, Vec<Column>>,
    /// Where `pg_attribute` has the columns of each relation: all its rows lie in the range of blocks.
    column_blocks: HashMap<Oid, Range<u32>>,
    classes: Vec<ClassRow>,
    by_oid: HashMap<Oid, usize>,
    namespaces: OnceLock<HashMap<Oid, Box<[u8]>>>,
    types: OnceLock<TypeTable>,
    toast_indexes: OnceLock<HashMap<Oid, Oid>>,
    heap_methods: OnceLock<HashSet<Oid>>,
    session_settings: OnceLock<Settings>,
    tablespaces: OnceLock<AllTablespaces>,
}

#[derive(Debug)]
struct Maps {
    shared: RelationMap,
    local: RelationMap,
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
            let unread = Inner::unread(self, DatabaseRow::unnamed(Oid(database)));
            match unread.and_then(|inner| inner.shared_table(oid, wanted, &mut log)) {
                Ok(table) => return table.scan(&mut log, wanted, visit),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::NotADataDirectory {
            path: self.path().into(),
            reason: "there is no database in its base directory".into(),
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
        let mut inner = Inner::unread(cluster, row)?;
        let mut log = ClusterLog::new(cluster.clone());
        inner.read_catalog_columns(&mut log)?;
        inner.read_classes(&mut log)?;
        for oid in catalog::ALL {
            inner.check_column_count(oid, inner.catalog_columns(oid, &[])?.len())?;
        }
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The cluster it is in.
    pub fn cluster(&self) -> &Cluster {
        &self.inner.cluster
    }

    /// Its row of `pg_database`.
    pub fn row(&self) -> &DatabaseRow {
        &self.inner.row
    }

    /// Every relation, in the order of `pg_class`'s file.
    pub fn classes(&self) -> &[ClassRow] {
        &self.inner.classes
    }

    /// The relation with this OID.
    pub fn class(&self, oid: Oid) -> Option<&ClassRow> {
        self.inner.class(oid)
    }

    /// The names of all schemas.
    ///
    /// # Errors
    /// When `pg_namespace` cannot be read.
    pub fn namespaces(&self) -> Result<&HashMap<Oid, Box<[u8]>>> {
        load_once(&self.inner.namespaces, || {
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
        load_once(&self.inner.types, || TypeTable::read(self))
    }

    /// The index of a TOAST table.
    ///
    /// # Errors
    /// When `pg_index` cannot be read.
    pub(crate) fn toast_index(&self, toast: Oid) -> Result<Option<Oid>> {
        let indexes = load_once(&self.inner.toast_indexes, || {
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
    pub(crate) fn session_settings(&self) -> Result<&Settings> {
        load_once(&self.inner.session_settings, || read_session_settings(self))
    }

    /// What `read` makes of all tablespaces, once.
    pub(crate) fn all_tablespaces(
        &self,
        read: impl FnOnce() -> Result<AllTablespaces>,
    ) -> Result<&AllTablespaces> {
        load_once(&self.inner.tablespaces, read)
    }

    /// True when tables of this access method are heaps: `heap` itself, or another name for its
    /// handler.
    ///
    /// # Errors
    /// When `pg_am` cannot be read.
    pub fn is_heap(&self, access_method: Oid) -> Result<bool> {
        let methods = load_once(&self.inner.heap_methods, || {
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
        let columns = match self.inner.catalog_columns.get(&oid) {
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
        let blocks = self.inner.blocks_of_columns(relations);
        let found = self.inner.read_columns(&mut log, blocks, |_, oid| wanted.contains(&oid))?;
        for &oid in relations {
            let columns = found.get(&oid).map(Vec::as_slice).unwrap_or_default();
            self.inner.check_column_count(oid, columns.len())?;
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
            return Err(self.inner.attribute_damage(relation, &what));
        }
        self.inner.check_column_count(relation, numbers.len())
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
        self.inner.base_path(class)
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
        let table = self.inner.system_table(self.base_path(class)?, &columns);
        table.scan(&mut ClusterLog::new(self.cluster().clone()), wanted, visit)
    }

    /// Scans a catalog; see [`SystemTable::scan`].
    pub(crate) fn scan(
        &self,
        oid: Oid,
        wanted: &[&str],
        visit: impl FnMut(&Row<'_>) -> Result<(), FormatError>,
    ) -> Result<()> {
        let class = self
            .class(oid)
            .ok_or_else(|| Error::refused(Refusal::missing_row("pg_class", "the catalog", oid)))?;
        let columns = self.inner.catalog_columns(oid, wanted)?;
        let table = self.inner.system_table(self.base_path(class)?, columns);
        table.scan(&mut ClusterLog::new(self.cluster().clone()), wanted, visit)
    }

    /// True when some relation has the file of this number in the tablespace: by its row of `pg_class`, or by the
    /// relation map, where that row does not tell.
    pub(crate) fn has_file(&self, tablespace: Oid, number: u32) -> bool {
        let default = self.row().tablespace;
        let lies_in = |named: Oid| if named == Oid::INVALID { default } else { named };
        let is_it =
            |class: &ClassRow| class.filenode == number && lies_in(class.tablespace) == tablespace;
        self.classes().iter().any(is_it) || self.inner.maps.local.oid(number).is_some()
    }
}

impl Inner {
    /// A database of which nothing was read but the relation maps.
    fn unread(cluster: &Cluster, row: DatabaseRow) -> Result<Self> {
        let map = |tablespace| -> Result<RelationMap> {
            let path = cluster.tablespace_path(tablespace, row.oid).join("pg_filenode.map");
            let bytes = cluster.read_small_file(&path)?;
            RelationMap::parse(&bytes).map_err(|error| Error::file_damage(path, &error))
        };
        let maps = Maps { shared: map(GLOBAL_TABLESPACE)?, local: map(row.tablespace)? };
        Ok(Self {
            cluster: cluster.clone(),
            row,
            maps,
            catalog_columns: HashMap::new(),
            column_blocks: HashMap::new(),
            classes: Vec::new(),
            by_oid: HashMap::new(),
            namespaces: OnceLock::new(),
            types: OnceLock::new(),
            toast_indexes: OnceLock::new(),
            heap_methods: OnceLock::new(),
            session_settings: OnceLock::new(),
            tablespaces: OnceLock::new(),
        })
    }

    /// A shared catalog, its shape taken from this database.
    fn shared_table(
        mut self,
        oid: Oid,
        wanted: &[&str],
        log: &mut ClusterLog,
    ) -> Result<SystemTable> {
        self.catalog_columns = self.read_columns(log, ALL_BLOCKS, |_, other| other == oid)?;
        let directory = self.cluster.tablespace_path(GLOBAL_TABLESPACE, Oid::INVALID);
        let base = directory.join(self.mapped_filenode(oid, true)?.to_string());
        Ok(self.system_table(base, self.catalog_columns(oid, wanted)?))
    }

    /// The columns of a catalog, those that are wanted among them: otherwise it is this database's
    /// `pg_attribute` that is damaged, and not the catalog.
    fn catalog_columns(&self, oid: Oid, wanted: &[&str]) -> Result<&[Column]> {
        let columns = self.catalog_columns.get(&oid).map(Vec::as_slice).unwrap_or_default();
        let is_there = |name: &&&str| columns.iter().any(|c| *c.name == *name.as_bytes());
        match wanted.iter().find(|name| !is_there(name)) {
            None => Ok(columns),
            Some(name) => Err(self.attribute_damage(oid, &format!("no row for the column {name}"))),
        }
    }

    /// Checks a relation's columns, whose numbers follow each other, against `pg_class`.
    fn check_column_count(&self, oid: Oid, found: usize) -> Result<()> {
        let Some(class) = self.class(oid) else {
            let path = self.mapped_base(catalog::PG_CLASS)?;
            let what = format!("pg_class has no row for relation {oid}, which something refers to");
            return Err(Damage::in_file(path, what).into());
        };
        if usize::try_from(class.column_count) == Ok(found) {
            return Ok(());
        }
        let counted = class.column_count;
        let what = format!("columns up to number {found}, and pg_class says there are {counted}");
        Err(self.attribute_damage(oid, &what))
    }

    /// What `pg_attribute` has for this relation is not what it must have.
    fn attribute_damage(&self, oid: Oid, has: &str) -> Error {
        let relation = match self.class(oid) {
            Some(class) => format!("\"{}\" (OID {oid})", String::from_utf8_lossy(&class.name)),
            None => format!("with OID {oid}"),
        };
        let what = format!("for the relation {relation}, pg_attribute has {has}");
        match self.mapped_base(catalog::PG_ATTRIBUTE) {
            Ok(path) => Damage::in_file(path, what).into(),
            Err(error) => error,
        }
    }

    fn class(&self, oid: Oid) -> Option<&ClassRow> {
        self.by_oid.get(&oid).and_then(|&at| self.classes.get(at))
    }

    fn base_path(&self, class: &ClassRow) -> Result<PathBuf> {
        let tablespace = match class.tablespace {
            _ if class.shared => GLOBAL_TABLESPACE,
            Oid::INVALID => self.row.tablespace,
            other => other,
        };
        let filenode = match class.filenode {
            0 if class.kind.has_files() => self.mapped_filenode(class.oid, class.shared)?,
            // A view: no such file will be found.
            0 => class.oid.0,
            number => number,
        };
        let directory = self.cluster.tablespace_path(tablespace, self.row.oid);
        Ok(directory.join(filenode.to_string()))
    }

    fn mapped_filenode(&self, oid: Oid, shared: bool) -> Result<u32> {
        let (map, tablespace) = match shared {
            true => (&self.maps.shared, GLOBAL_TABLESPACE),
            false => (&self.maps.local, self.row.tablespace),
        };
        map.filenode(oid).ok_or_else(|| {
            let path = self.cluster.tablespace_path(tablespace, self.row.oid);
            let what = format!("relation {oid} is not in the relation map");
            Damage::in_file(path.join("pg_filenode.map"), what).into()
        })
    }

    fn mapped_base(&self, oid: Oid) -> Result<PathBuf> {
        let directory = self.cluster.tablespace_path(self.row.tablespace, self.row.oid);
        Ok(directory.join(self.mapped_filenode(oid, false)?.to_string()))
    }

    fn system_table(&self, base: PathBuf, columns: &[Column]) -> SystemTable {
        SystemTable {
            cluster: self.cluster.clone(),
            base,
            layout: tuple_layout(columns),
            columns: columns.iter().map(|c| c.name.clone()).collect(),
        }
    }

    /// Reads the columns of the catalogs, and takes note of where those of all relations are.
    fn read_catalog_columns(&mut self, log: &mut ClusterLog) -> Result<()> {
        let mut column_blocks: HashMap<Oid, Range<u32>> = HashMap::new();
        let mut latest = None;
        self.catalog_columns = self.read_columns(log, ALL_BLOCKS, |block, relation| {
            // The rows of a relation mostly follow each other.
            if latest.replace((block, relation)) != Some((block, relation)) {
                let range = column_blocks.entry(relation).or_insert(block.0..block.0);
                range.end = block.0.saturating_add(1);
            }
            catalog::ALL.contains(&relation)
        })?;
        self.column_blocks = column_blocks;
        Ok(())
    }

    /// The blocks of `pg_attribute` that hold the columns of these relations; under a running server, which may have moved
    /// them, all there are.
    fn blocks_of_columns(&self, relations: &[Oid]) -> Range<u32> {
        if self.cluster.is_live() {
            return ALL_BLOCKS;
        }
        let found = || relations.iter().filter_map(|oid| self.column_blocks.get(oid));
        let start = found().map(|range| range.start).min().unwrap_or(0);
        start..found().map(|range| range.end).max().unwrap_or(0)
    }

    /// The columns of every relation that `wanted` takes, which rows of `pg_attribute` in these blocks describe.
    fn read_columns(
        &self,
        log: &mut ClusterLog,
        blocks: Range<u32>,
        wanted: impl FnMut(BlockNumber, Oid) -> bool,
    ) -> Result<HashMap<Oid, Vec<Column>>> {
        let shape = pg_attribute_columns(self.cluster.version());
        let table = SystemTable {
            cluster: self.cluster.clone(),
            base: self.mapped_base(catalog::PG_ATTRIBUTE)?,
            layout: TupleLayout::new(shape.iter().map(|c| c.layout).collect()),
            columns: shape.iter().map(|c| c.name.as_bytes().into()).collect(),
        };
        let mut found: HashMap<Oid, Vec<(i16, Column)>> = HashMap::new();
        table.scan_where(log, blocks, &Column::SOURCE, wanted, |row| {
            let (relation, number, column) = Column::read(row)?;
            found.entry(relation).or_default().push((number, column));
            Ok(())
        })?;
        let ordered = |(oid, columns)| match in_order(columns) {
            Ok(columns) => Ok((oid, columns)),
            Err(fault) => Err(self.attribute_damage(oid, &fault.to_string())),
        };
        found.into_iter().map(ordered).collect()
    }

    fn read_classes(&mut self, log: &mut ClusterLog) -> Result<()> {
        let columns = self.catalog_columns(catalog::PG_CLASS, &ClassRow::SOURCE)?;
        let table = self.system_table(self.mapped_base(catalog::PG_CLASS)?, columns);
        let mut classes = Vec::new();
        table.scan(log, &ClassRow::SOURCE, |row| {
            classes.push(ClassRow::read(row)?);
            Ok(())
        })?;
        self.by_oid = classes.iter().enumerate().map(|(at, c)| (c.oid, at)).collect();
        self.classes = classes;
        Ok(())
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
