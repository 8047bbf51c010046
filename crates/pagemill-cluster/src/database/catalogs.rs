//! [`Catalogs`]: how the catalogs of a database are found and read, before anything else of it can be.
//!
//! The relation map says where `pg_class` and `pg_attribute` are; `pg_attribute`, whose own shape is fixed per version, gives
//! the shape of every other catalog.
//!
//! Source: `src/backend/utils/cache/relmapper.c`, `src/include/catalog/`, PostgreSQL 14 to 18.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

use pagemill_format::relmap::RelationMap;
use pagemill_format::tuple::TupleLayout;
use pagemill_format::{BlockNumber, Oid};

use super::{DatabaseRow, catalog};
use crate::bootstrap::pg_attribute_columns;
use crate::column::{Column, in_order, tuple_layout};
use crate::data_directory::{Cluster, GLOBAL_TABLESPACE};
use crate::error::{Damage, Error, Result};
use crate::relation::ClassRow;
use crate::settings::Settings;
use crate::system_table::{ALL_BLOCKS, RowChoice, SystemTable};
use crate::tablespace_settings::AllTablespaces;
use crate::transaction_log::ClusterLog;
use crate::value_types::TypeTable;

/// What is known of a database's catalogs.
#[derive(Debug)]
pub(super) struct Catalogs {
    pub(super) cluster: Cluster,
    pub(super) row: DatabaseRow,
    pub(super) maps: RelationMaps,
    /// Columns of the catalogs in [`catalog::ALL`].
    pub(super) catalog_columns: HashMap<Oid, Vec<Column>>,
    /// Where `pg_attribute` has the columns of each relation: all its rows lie in the range of blocks.
    pub(super) column_blocks: HashMap<Oid, Range<u32>>,
    pub(super) classes: Vec<ClassRow>,
    pub(super) by_oid: HashMap<Oid, usize>,
    pub(super) namespaces: OnceLock<HashMap<Oid, Box<[u8]>>>,
    pub(super) types: OnceLock<TypeTable>,
    pub(super) toast_indexes: OnceLock<HashMap<Oid, Oid>>,
    pub(super) heap_methods: OnceLock<HashSet<Oid>>,
    pub(super) session_settings: OnceLock<Settings>,
    pub(super) tablespaces: OnceLock<AllTablespaces>,
}

/// Where the catalogs lie that do not say it of themselves.
#[derive(Debug)]
pub(super) struct RelationMaps {
    pub(super) shared: RelationMap,
    pub(super) local: RelationMap,
}

impl Catalogs {
    /// A database of which nothing was read but the relation maps.
    pub(super) fn unread(cluster: &Cluster, row: DatabaseRow) -> Result<Self> {
        let map = |tablespace| -> Result<RelationMap> {
            let path = cluster.tablespace_path(tablespace, row.oid).join("pg_filenode.map");
            let bytes = cluster.read_small_file(&path)?;
            RelationMap::parse(&bytes).map_err(|error| Error::file_damage(path, &error))
        };
        let maps = RelationMaps { shared: map(GLOBAL_TABLESPACE)?, local: map(row.tablespace)? };
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
    pub(super) fn shared_table(
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
    pub(super) fn catalog_columns(&self, oid: Oid, wanted: &[&str]) -> Result<&[Column]> {
        let columns = self.catalog_columns.get(&oid).map(Vec::as_slice).unwrap_or_default();
        let is_there = |name: &&&str| columns.iter().any(|c| *c.name == *name.as_bytes());
        match wanted.iter().find(|name| !is_there(name)) {
            None => Ok(columns),
            Some(name) => Err(self.attribute_damage(oid, &format!("no row for the column {name}"))),
        }
    }

    /// Checks a relation's columns, whose numbers follow each other, against `pg_class`.
    pub(super) fn check_column_count(&self, oid: Oid, found: usize) -> Result<()> {
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
    pub(super) fn attribute_damage(&self, oid: Oid, has: &str) -> Error {
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

    pub(super) fn class(&self, oid: Oid) -> Option<&ClassRow> {
        self.by_oid.get(&oid).and_then(|&at| self.classes.get(at))
    }

    pub(super) fn base_path(&self, class: &ClassRow) -> Result<PathBuf> {
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

    pub(super) fn system_table(&self, base: PathBuf, columns: &[Column]) -> SystemTable {
        SystemTable {
            cluster: self.cluster.clone(),
            base,
            layout: tuple_layout(columns),
            columns: columns.iter().map(|c| c.name.clone()).collect(),
        }
    }

    /// Reads the columns of the catalogs, and takes note of where those of all relations are.
    pub(super) fn read_catalog_columns(&mut self, log: &mut ClusterLog) -> Result<()> {
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
    pub(super) fn blocks_of_columns(&self, relations: &[Oid]) -> Range<u32> {
        if self.cluster.is_live() {
            return ALL_BLOCKS;
        }
        let found = || relations.iter().filter_map(|oid| self.column_blocks.get(oid));
        let start = found().map(|range| range.start).min().unwrap_or(0);
        start..found().map(|range| range.end).max().unwrap_or(0)
    }

    /// The columns of every relation that `wanted` takes, which rows of `pg_attribute` in these blocks describe.
    pub(super) fn read_columns(
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
        let choice = RowChoice { blocks, passes: wanted };
        table.scan_where(log, choice, &Column::SOURCE, |row| {
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

    pub(super) fn read_classes(&mut self, log: &mut ClusterLog) -> Result<()> {
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
