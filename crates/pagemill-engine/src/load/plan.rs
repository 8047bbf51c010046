//! What a load does, decided before anything is read or written.
//!
//! Invariant: a plan exists only for a table, columns and options that a load can keep its promises for.

use std::sync::Arc;

use pagemill_cluster::insert_rules::InsertRules;
use pagemill_cluster::value_inputs::{InputCatalog, InputColumn};
use pagemill_cluster::{Database, Relation};
use pagemill_format::tuple_builder::{TupleForm, TupleStamp};
use pagemill_format::tuple_data_builder::{AttributeStorage, ColumnLayout};
use pagemill_format::types::input::tree::InputType;
use pagemill_format::varlena::Compression;
use pagemill_format::{Oid, TransactionId};
use pagemill_io::WriteSettings;

use super::index_plan::IndexPlan;
use crate::encoding::{readable_name, utf8_name};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::table::first_loss;

/// How a load goes about.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// The columns that the input has, in its order; `None` for all.
    pub columns: Option<Vec<Box<[u8]>>>,
    /// Log the images of all pages.
    pub wal: bool,
    /// Remove the table's rows first.
    pub truncate: bool,
    /// Write frozen rows on pages marked all-visible.
    pub freeze: bool,
    /// Threads that read rows.
    pub jobs: usize,
    /// How new files are made longer and filled.
    pub writing: WriteSettings,
    /// Told how many pages of the table are filled.
    pub progress: Progress,
}

/// A column of the table, as rows are formed for it.
#[derive(Debug)]
pub(super) struct LoadColumn {
    pub(super) name: String,
    /// How its texts are read; `None` for a column that the input does not have.
    pub(super) value_type: Option<Arc<InputType>>,
    pub(super) type_modifier: i32,
}

/// The plan.
#[derive(Debug)]
pub(super) struct LoadPlan {
    pub(super) relation: Relation,
    pub(super) rules: InsertRules,
    pub(super) indexes: Vec<IndexPlan>,
    /// The index of the TOAST table.
    pub(super) toast_index: Option<IndexPlan>,
    /// The table's columns, dropped ones included.
    pub(super) columns: Vec<LoadColumn>,
    /// The columns that may not be null.
    pub(super) not_null: Vec<usize>,
    /// For each field of the input, the column it goes into.
    pub(super) fields: Vec<usize>,
    pub(super) layouts: Vec<ColumnLayout>,
    pub(super) form: TupleForm,
    /// The table has no blocks, or loses them: everything goes into new files.
    pub(super) is_fresh: bool,
    pub(super) stamp: TupleStamp,
    pub(super) options: LoadOptions,
    /// Blocks that the input will about fill, as far as its size is known.
    pub(super) expected_blocks: u32,
}

impl LoadPlan {
    pub(super) fn new(
        database: &Database,
        relation: Relation,
        catalog: &InputCatalog,
        options: LoadOptions,
        xid: TransactionId,
    ) -> Result<Self> {
        let rules = database.insert_rules(&relation, options.truncate)?;
        let files = database.cluster().main_fork(&relation.base)?;
        let blocks = files.blocks();
        if let Some(found) = first_loss(database, &relation, &files)?.filter(|_| !options.truncate)
        {
            // Rows behind what is lost would take its place for good.
            return Err(pagemill_cluster::Error::from(found).into());
        }
        let is_fresh = options.truncate || blocks == 0;
        if options.freeze && !is_fresh {
            return Err(pagemill_cluster::Error::refused(format!(
                "{} has {blocks} blocks, and rows can only be frozen in a table that was empty: load without \
                 --freeze, or with --truncate",
                relation.display_name()
            ))
            .into());
        }
        let fields = fields_of(&relation, database.row().encoding, options.columns.as_deref())?;
        check_defaults(database, &relation, &fields)?;
        let given: Vec<&[u8]> =
            fields.iter().map(|&field| &*relation.columns[field].name).collect();
        let inputs = catalog.columns(relation.class.oid, |name| given.contains(&name))?;
        let layouts = layouts_of(database, &relation)?;
        let version = database.cluster().version();
        let plan_of = |definition| IndexPlan::new(database, definition, &relation);
        let indexes = rules.indexes.iter().map(plan_of).collect::<Result<_>>()?;
        let toast_index =
            rules.toast.as_ref().map(|(_, index)| IndexPlan::of_toast(index, version));
        Ok(Self {
            not_null: (0..)
                .zip(&inputs)
                .filter(|(_, input)| input.not_null)
                .map(|(at, _)| at)
                .collect(),
            columns: inputs.into_iter().map(|input| column_of(database, input)).collect(),
            form: TupleForm::new(&layouts)?,
            layouts,
            fields,
            is_fresh,
            stamp: stamp(&options, is_fresh, xid),
            toast_index: toast_index.transpose()?,
            indexes,
            expected_blocks: 0,
            relation,
            rules,
            options,
        })
    }

    /// The TOAST table's OID, where the table has one.
    pub(super) fn toast(&self) -> Option<Oid> {
        self.rules.toast.as_ref().map(|(table, _)| table.oid)
    }
}

/// Rows in new files are seen only once the commit says where those are. Rows behind others in the file that stays are
/// there for everybody as soon as their WAL is replayed, possibly by a standby that never gets the commit: only the
/// commit log may then say what became of them.
fn stamp(options: &LoadOptions, is_fresh: bool, xid: TransactionId) -> TupleStamp {
    match options {
        LoadOptions { freeze: true, .. } => TupleStamp::frozen(xid, 0),
        LoadOptions { wal: true, .. } if !is_fresh => TupleStamp::inserted(xid, 0),
        _ => TupleStamp::committed(xid, 0),
    }
}

fn column_of(database: &Database, input: InputColumn) -> LoadColumn {
    LoadColumn {
        name: readable_name(database.row().encoding, &input.name),
        value_type: input.value_type,
        type_modifier: input.typmod,
    }
}

/// The columns the input has: those named, or all that are not dropped.
fn fields_of(
    relation: &Relation,
    encoding: i32,
    named: Option<&[Box<[u8]>]>,
) -> Result<Vec<usize>> {
    let live = || relation.columns.iter().enumerate().filter(|(_, column)| !column.dropped);
    let Some(names) = named else { return Ok(live().map(|(position, _)| position).collect()) };
    let mut fields = Vec::new();
    for name in names {
        let is_it = |stored: &[u8]| *stored == **name || *utf8_name(encoding, stored) == **name;
        let Some((position, column)) = live().find(|(_, column)| is_it(&column.name)) else {
            let names: Vec<_> = live().map(|(_, c)| readable_name(encoding, &c.name)).collect();
            let name = String::from_utf8_lossy(name);
            let near = pagemill_cluster::names::nearest(&name, names.iter().map(String::as_str), 3);
            let near = near.into_iter().map(str::to_owned).collect();
            let what = format!("column \"{name}\" of {}", relation.display_name());
            return Err(pagemill_cluster::Error::NotFound { what, near }.into());
        };
        if fields.contains(&position) {
            let reason = format!("column \"{}\" is named twice", column.display_name());
            return Err(pagemill_cluster::Error::refused(reason).into());
        }
        fields.push(position);
    }
    Ok(fields)
}

/// A column that the input leaves out becomes null: one with a default would not.
fn check_defaults(database: &Database, relation: &Relation, fields: &[usize]) -> Result<()> {
    let types_with_default = database.types_with_default()?;
    let left_out =
        relation.columns.iter().enumerate().filter(|(position, _)| !fields.contains(position));
    for (_, column) in left_out.filter(|(_, column)| !column.dropped) {
        let what = match column {
            column if column.has_default => "has a default, which only a server can evaluate",
            column if types_with_default.contains(&column.type_oid) => {
                "has the default of its type, which only a server can evaluate"
            }
            column if column.not_null => "may not be null",
            _ => continue,
        };
        let (name, table) = (column.display_name(), relation.display_name());
        let reason = format!(
            "column {name} of {table} {what}: put it among --columns, with a value for each row in the input"
        );
        return Err(pagemill_cluster::Error::refused(reason).into());
    }
    Ok(())
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

impl From<pagemill_format::Error> for Error {
    fn from(error: pagemill_format::Error) -> Self {
        Self::Cluster(pagemill_cluster::Error::refused(error.to_string()))
    }
}
