//! What a load does to one table with files: the target itself, or a partition of it.
//!
//! Invariant: a plan exists only for a table that a load can keep its promises for.

use pagemill_cluster::insert_rules::InsertRules;
use pagemill_cluster::{Database, Persistence, Relation};
use pagemill_format::tuple_builder::{TupleForm, TupleStamp};
use pagemill_format::tuple_data_builder::{AttributeStorage, ColumnLayout};
use pagemill_format::varlena::Compression;
use pagemill_format::{Oid, TransactionId};

use super::index::IndexPlan;
use super::plan::{LoadOptions, LoadPlan, LoadPlanner};
use crate::error::{Error, Result};
use crate::refusal::LoadRefusal;
use crate::table::first_loss;

/// A table of a load.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableLoad<'p> {
    pub(super) plan: &'p LoadPlan,
    pub(super) table: &'p TablePlan,
}

/// One table with files.
#[derive(Debug)]
pub(super) struct TablePlan {
    pub(super) relation: Relation,
    pub(super) rules: InsertRules,
    pub(super) indexes: Vec<IndexPlan>,
    /// The index of the TOAST table.
    pub(super) toast_index: Option<IndexPlan>,
    /// The columns that may not be null.
    pub(super) not_null: Vec<usize>,
    pub(super) layouts: Vec<ColumnLayout>,
    pub(super) form: TupleForm,
    /// The table has no blocks, or loses them: everything goes into new files.
    pub(super) is_fresh: bool,
    /// Its files are replaced, also where its rows stay.
    pub(super) has_new_files: bool,
    /// It is lost in a crash, and never logged.
    pub(super) is_unlogged: bool,
    pub(super) stamp: TupleStamp,
    /// For each of its columns the one of the target that it is; `None` where all are the same.
    pub(super) columns_from: Option<Vec<Option<usize>>>,
}

impl LoadPlanner<'_> {
    /// The plan of a table that gets its rows itself, or by the partitioned table above (`top`).
    ///
    /// # Errors
    /// When the table stands in the way.
    pub(super) fn table(&self, relation: Relation, top: Option<&Relation>) -> Result<TablePlan> {
        let Self { database, options, .. } = self;
        let rules = database.insert_rules(&relation, options.truncate, top.is_some())?;
        let files = database.cluster().main_fork(&relation.base)?;
        let blocks = files.blocks();
        if let Some(found) = first_loss(database, &relation, &files)?.filter(|_| !options.truncate)
        {
            // Rows behind what is lost would take its place for good.
            return Err(pagemill_cluster::Error::from(found).into());
        }
        let is_fresh = options.truncate || blocks == 0;
        if options.freeze && !is_fresh {
            let table = relation.display_name();
            return Err(Error::refused(LoadRefusal::FreezeBehindRows { table, blocks }));
        }
        let layouts = layouts_of(database, &relation)?;
        let version = database.cluster().version();
        let plan_of = |definition| IndexPlan::new(database, definition, &relation);
        let indexes = rules.indexes.iter().map(plan_of).collect::<Result<_>>()?;
        let toast_index =
            rules.toast.as_ref().map(|(_, index)| IndexPlan::of_toast(index, version));
        let is_unlogged = relation.class.persistence == Persistence::Unlogged;
        let has_new_files = is_fresh || is_unlogged || !options.wal;
        let columns = (0..).zip(&relation.columns);
        Ok(TablePlan {
            not_null: columns
                .filter(|(_, column)| column.not_null && !column.dropped)
                .map(|(at, _)| at)
                .collect(),
            form: TupleForm::new(&layouts)?,
            layouts,
            is_fresh,
            has_new_files,
            is_unlogged,
            stamp: stamp(options, has_new_files, self.xid),
            columns_from: top.and_then(|top| columns_from(&relation, top)),
            toast_index: toast_index.transpose()?,
            indexes,
            relation,
            rules,
        })
    }
}

impl TablePlan {
    /// The TOAST table's OID, where the table has one.
    pub(super) fn toast(&self) -> Option<Oid> {
        self.rules.toast.as_ref().map(|(table, _)| table.oid)
    }
}

/// Rows in new files are seen only once the commit says where those are. Rows behind others in the file that stays are
/// there for everybody as soon as their WAL is replayed, possibly by a standby that never gets the commit: only the
/// commit log may then say what became of them.
fn stamp(options: &LoadOptions, has_new_files: bool, xid: TransactionId) -> TupleStamp {
    match options.freeze {
        true => TupleStamp::frozen(xid, 0),
        false if has_new_files => TupleStamp::committed(xid, 0),
        false => TupleStamp::inserted(xid, 0),
    }
}

/// Columns of a partition are those of its table by name, in whatever order.
fn columns_from(partition: &Relation, top: &Relation) -> Option<Vec<Option<usize>>> {
    let from = |column: &pagemill_cluster::Column| match column.dropped {
        true => None,
        false => top.columns.iter().position(|of| !of.dropped && of.name == column.name),
    };
    let map: Vec<_> = partition.columns.iter().map(from).collect();
    let is_same = map.len() == top.columns.len()
        && map.iter().zip(0..).zip(&top.columns).all(|((from, at), of)| match from {
            Some(from) => *from == at,
            None => of.dropped,
        });
    (!is_same).then_some(map)
}

fn layouts_of(database: &Database, relation: &Relation) -> Result<Vec<ColumnLayout>> {
    let unset = database.default_toast_compression()?;
    relation.columns.iter().map(|column| column_layout(column, unset)).collect()
}

/// How values of a column are stored; `unset` compresses those of columns that do not say it.
pub(super) fn column_layout(
    column: &pagemill_cluster::Column,
    unset: Compression,
) -> Result<ColumnLayout> {
    let compression = match column.compression {
        b'l' => Compression::Lz4,
        b'p' => Compression::Pglz,
        _ => unset,
    };
    let (layout, dropped) = (column.layout, column.dropped);
    let storage = AttributeStorage::from_byte(column.storage)?;
    Ok(ColumnLayout { layout, storage, compression, dropped })
}
