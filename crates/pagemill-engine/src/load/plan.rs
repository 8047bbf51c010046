//! What a load does, decided before anything is read or written.
//!
//! Invariant: a plan exists only for a table, columns and options that a load can keep its promises for.

use std::sync::Arc;

use pagemill_cluster::value_inputs::{InputCatalog, InputColumn};
use pagemill_cluster::{Database, Relation, RelationKind};
use pagemill_format::TransactionId;
use pagemill_io::WriteSettings;
use pagemill_types::input::tree::InputType;

use super::column_defaults::ColumnDefaults;
use super::read_back::ReadBack;
use super::routing::{PartitionCheck, Routing, RoutingPlanner};
use super::table_plan::TablePlan;
use crate::encoding::{readable_name, utf8_name};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::refusal::LoadRefusal;

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
    /// Read back what was written, after the commit.
    pub read_back: ReadBack,
    /// Told how many pages of the table are filled.
    pub progress: Progress,
}

impl Default for LoadOptions {
    /// All columns, behind the rows that are there, logged, by a few threads.
    fn default() -> Self {
        Self {
            columns: None,
            wal: true,
            truncate: false,
            freeze: false,
            jobs: default_jobs(),
            writing: WriteSettings::default(),
            read_back: ReadBack::default(),
            progress: Progress::default(),
        }
    }
}

/// Threads that work where nobody says how many: more than a few wait for the one that writes.
pub(crate) fn default_jobs() -> usize {
    const MOST: usize = 8;
    std::thread::available_parallelism().map_or(1, usize::from).min(MOST)
}

/// A column of the table, as rows are formed for it.
#[derive(Debug)]
pub(super) struct LoadColumn {
    /// How its texts are read; `None` for a column that the input does not have.
    pub(super) value_type: Option<Arc<InputType>>,
    pub(super) type_modifier: i32,
}

/// The plan.
#[derive(Debug)]
pub(super) struct LoadPlan {
    /// The target, whose columns the rows have.
    pub(super) relation: Relation,
    /// The tables that rows go to: the target, or the leaves below it.
    pub(super) tables: Vec<TablePlan>,
    /// Which of them a row goes to, where there is a choice.
    pub(super) routing: Option<Routing>,
    /// What rows of a partition have to keep to.
    pub(super) check: Option<PartitionCheck>,
    /// The target's columns, dropped ones included.
    pub(super) columns: Vec<LoadColumn>,
    /// For each field of the input, the column it goes into.
    pub(super) fields: Vec<usize>,
    /// What the other columns get.
    pub(super) defaults: ColumnDefaults,
    pub(super) options: LoadOptions,
    /// Blocks that the input will about fill, as far as its size is known.
    pub(super) expected_blocks: u32,
}

/// Plans a load by its options, for a transaction.
pub(super) struct LoadPlanner<'a> {
    pub(super) database: &'a Database,
    pub(super) options: LoadOptions,
    pub(super) xid: TransactionId,
}

impl LoadPlanner<'_> {
    /// # Errors
    /// When the target, its columns or the options stand in the way.
    pub(super) fn plan(self, relation: Relation, catalog: &InputCatalog) -> Result<LoadPlan> {
        let (tables, routing) = self.tables(&relation)?;
        let Self { database, options, .. } = self;
        let check = PartitionCheck::new(database, &relation)?;
        let fields = fields_of(&relation, database.row().encoding, options.columns.as_deref())?;
        let defaults = ColumnDefaults::new(database, &relation, &fields, catalog)?;
        let given: Vec<&[u8]> =
            fields.iter().map(|&field| &*relation.columns[field].name).collect();
        let inputs = catalog.columns(relation.class.oid, |name| given.contains(&name))?;
        Ok(LoadPlan {
            columns: inputs.into_iter().map(column_of).collect(),
            fields,
            defaults,
            expected_blocks: 0,
            tables,
            routing,
            check,
            relation,
            options,
        })
    }

    /// The tables that rows of a target go to, and how they are found.
    fn tables(&self, relation: &Relation) -> Result<(Vec<TablePlan>, Option<Routing>)> {
        let Self { database, options, .. } = self;
        if relation.class.kind != RelationKind::PartitionedTable {
            return Ok((vec![self.table(relation.clone(), None)?], None));
        }
        database.check_partitioned(relation, options.truncate, false)?;
        let mut planner = RoutingPlanner::new(database, relation, options.truncate);
        let routing = planner.plan(relation.clone())?;
        let leaves: Vec<_> = planner.leaves.iter().collect();
        let leaves = database.relations(&leaves)?.into_iter();
        let plan = |leaf| self.table(leaf, Some(relation));
        Ok((leaves.map(plan).collect::<Result<_>>()?, Some(routing)))
    }
}

impl LoadPlan {
    /// Threads that read rows: one, where what a row gets depends on how many came before it.
    pub(super) fn reading_jobs(&self) -> usize {
        if self.defaults.depend_on_order() { 1 } else { self.options.jobs }
    }
}

fn column_of(input: InputColumn) -> LoadColumn {
    LoadColumn { value_type: input.value_type, type_modifier: input.typmod }
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
            return Err(Error::refused(LoadRefusal::ColumnTwice(column.display_name())));
        }
        fields.push(position);
    }
    Ok(fields)
}
