//! `load`: files into a table of a stopped cluster, all rows or none.
//!
//! ```text
//!   input ─► batches ─┬─► rows ─► tuples on pages ─┐
//!                     └─► rows ─► tuples on pages ─┴─► in order: blocks, WAL, files ─► indexes ─► maps ─► commit
//!                         (RowFormer, one a thread)
//! ```
//!
//! | the table | heap and TOAST pages | indexes |
//! | --- | --- | --- |
//! | has no blocks, or `--truncate` | in new files, logged or not | new files |
//! | has rows, logged | in the WAL; into the old files after the commit | new files |
//! | has rows, `--no-wal` or unlogged | in new files, behind a copy of the old ones | new files |
//!
//! Rows of a partitioned table are given to its leaves, each of which is such a table.
//!
//! Invariants: rows keep the order of the input; memory does not grow with it; until the commit nothing is changed that
//! a server looks at.

mod column_defaults;
mod dead_rows;
mod duplicate_key;
mod fork_writer;
mod heap_target;
mod index;
mod message_text;
mod plan;
mod read_back;
mod relation_files;
mod routing;
mod row_former;
mod row_lines;
mod table_plan;
mod targets;
mod used_ids;

use std::sync::Arc;

use pagemill_cluster::change::{ClusterChange, ClusterLock};
use pagemill_cluster::value_inputs::InputCatalog;
use pagemill_cluster::{Database, Persistence, Relation};
use pagemill_format::toast_builder::chunk_form;
use pagemill_format::wal::ImageCompression;
use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork};
use pagemill_io::{Storage, WriteMethod, check_interrupt};
use pagemill_wal::ForkKey;

use crate::copy;
use crate::copy::from::{
    CopyFromOptions, CopyRules, CopyTarget, Input, InputSource, RejectLog, Rows,
};
use crate::encoding::readable_name;
use crate::error::{Error, Result};
use crate::heap_files::page_run::PIECE_BLOCKS;
use fork_writer::ForkWriter;
use plan::{LoadPlan, LoadPlanner};
use relation_files::{new_files, writing};
use row_former::{FormedRows, FormerState, RowFormer, Shared};
use targets::Targets;

pub use duplicate_key::DuplicateKey;
pub use plan::LoadOptions;
pub(crate) use plan::default_jobs;
pub use read_back::ReadBack;
pub use row_lines::InputLine;

/// What was loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadSummary {
    /// Rows that are in the table now and were not before.
    pub rows: u64,
    /// Rows that were put aside.
    pub rejected: u64,
    /// Blocks of the table that were written.
    pub blocks: u64,
    /// Bytes of WAL that were written.
    pub wal_bytes: u64,
    /// Blocks of tables and indexes that were read back and compared.
    pub verified_blocks: u64,
    /// How the table's new file was written; `None` where its pages came out of the WAL.
    pub write_method: Option<WriteMethod>,
}

/// What is to be loaded, and how.
#[derive(Debug)]
pub struct LoadRequest<'a> {
    /// The table.
    pub relation: Relation,
    /// The files and streams, in the order of their rows.
    pub sources: Vec<InputSource>,
    /// How rows are written in them.
    pub copy: &'a CopyFromOptions,
    /// How the table is changed.
    pub options: LoadOptions,
    /// How images of pages in the WAL are compressed.
    pub compression: ImageCompression,
    /// Where rows go that are wrong; without it, the first of them ends the load.
    pub rejects: Option<RejectLog>,
}

/// Loads files into a table. The database was opened under `lock`.
///
/// # Errors
/// When the table, the options or a row stand in the way, or the system fails: nothing has changed then. Only
/// [`pagemill_cluster::Error::Unfinished`] and [`pagemill_cluster::Error::Undecided`] say otherwise, and, where what was
/// written is read back, damage that says that it is not what was written.
pub fn load(
    lock: impl Into<Arc<ClusterLock>>,
    database: &Database,
    request: LoadRequest<'_>,
) -> Result<LoadSummary> {
    let LoadRequest { relation, sources, copy, options, compression, rejects } = request;
    let mut change = ClusterChange::begin(lock.into(), database.clone(), compression)?;
    let catalog = InputCatalog::new(database)?;
    let planner = LoadPlanner { database, options, xid: change.xid() };
    let mut plan = planner.plan(relation, &catalog)?;
    plan.expected_blocks = expected_blocks(database.cluster().storage(), &sources);
    tracing::info!(
        table = %plan.relation.display_name(),
        tables = plan.tables.len(),
        expected_blocks = plan.expected_blocks,
        jobs = plan.reading_jobs(),
        "load planned"
    );
    let rules = copy_rules(copy, &plan, database)?;
    let mut targets = Targets::new(&mut change, &plan)?;
    let used_ids = targets::used_ids(database, &plan)?;
    let oids = change.oids().clone();
    let form = chunk_form()?;
    let shared = Shared {
        database,
        plan: &plan,
        catalog: &catalog,
        context: catalog.context(),
        oids: &oids,
        used_ids: &used_ids,
        chunk_form: &form,
        pieces: targets.pieces().clone(),
        puts_aside: rejects.is_some(),
    };
    let storage = database.cluster().storage();
    let input = Input { storage, rules: &rules, sources };
    let mut taking = RowTaking { change: &mut change, targets: &mut targets, rejects, rows: 0 };
    let read = taking.run(&shared, input);
    let RowTaking { rejects, rows, .. } = taking;
    let mut summary = LoadSummary { rows, ..LoadSummary::default() };
    if let Err(error) = &read
        && error.is_interruption()
    {
        // Nothing is left behind, the log of rejected rows neither.
        return read.map(|()| summary);
    }
    if let Some(log) = rejects {
        summary.rejected = log.count();
        // It tells why too many rows were too many.
        log.finish()?;
    }
    read?;
    targets.finish(&mut change, &mut summary)?;
    advance_sequences(&mut change, &plan)?;
    let wal = (change.wal().start_lsn(), change.wal().position());
    summary.wal_bytes = wal.1.0 - wal.0.0;
    change.commit()?;
    summary.verified_blocks = plan.options.read_back.check(database.cluster())?;
    tracing::info!(
        rows = summary.rows,
        rejected = summary.rejected,
        blocks = summary.blocks,
        wal_bytes = summary.wal_bytes,
        "loaded"
    );
    Ok(summary)
}

/// Rows that were formed, on their way into the table.
struct RowTaking<'t, 'p> {
    change: &'t mut ClusterChange,
    targets: &'t mut Targets<'p>,
    rejects: Option<RejectLog>,
    /// How many were taken.
    rows: u64,
}

impl RowTaking<'_, '_> {
    /// Has the threads read all rows, and takes them in their order.
    fn run(&mut self, shared: &Shared<'_>, input: Input<'_>) -> Result<()> {
        let workers = copy::from::Workers::new(
            shared.plan.reading_jobs(),
            || FormerState::new(shared),
            |state, rows| form_rows(shared, state, rows),
        );
        copy::from::run(input, workers, |formed| self.take(shared, formed))
    }

    fn take(&mut self, shared: &Shared<'_>, formed: FormedRows) -> Result<()> {
        check_interrupt(self.change.database().cluster().path())
            .map_err(pagemill_cluster::Error::from)?;
        self.rows += formed.rows;
        for error in &formed.rejected {
            match &mut self.rejects {
                Some(log) => log.push(error.clone())?,
                None => return Err(Error::Copy(Box::new(error.clone()))),
            }
        }
        let pieces = formed.tables.iter().flat_map(|table| &table.heap);
        shared.plan.options.progress.add_pages(pieces.map(|piece| piece.pages as u64).sum());
        self.targets.take(self.change, formed)
    }
}

fn copy_rules(copy: &CopyFromOptions, plan: &LoadPlan, database: &Database) -> Result<CopyRules> {
    let names: Vec<&[u8]> = plan
        .fields
        .iter()
        .filter_map(|&field| plan.relation.columns.get(field))
        .map(|c| &*c.name)
        .collect();
    let server_major = database.cluster().version().major();
    let encoding = database.row().encoding;
    CopyRules::new(
        copy,
        CopyTarget {
            relation: &readable_name(encoding, &plan.relation.class.name),
            columns: &names,
            encoding,
            server_major,
        },
    )
}

/// About how many blocks files of this size become: a tuple is longer than its text by its header, and mostly not by
/// much else. What a pipe will bring, and what is packed, is not known; what was expected too much is cut off again.
pub fn expected_blocks(storage: &Storage, sources: &[InputSource]) -> u32 {
    let len = |source: &InputSource| match source {
        InputSource::File(path) => storage.metadata(path).map_or(0, |found| found.len),
        InputSource::Stream(_) => 0,
    };
    let bytes: u64 = sources.iter().map(len).sum();
    u32::try_from(bytes / (BLOCK_SIZE as u64) * 9 / 8).unwrap_or(u32::MAX)
}

/// Writes down which values were taken from sequences.
fn advance_sequences(change: &mut ClusterChange, plan: &LoadPlan) -> Result<()> {
    for sequence in plan.defaults.sequences() {
        let Some(page) = sequence.changed_page() else { continue };
        let class = &sequence.class;
        if class.persistence != Persistence::Unlogged {
            let file = change.files_of(class.oid)?;
            change.set_page(file, Fork::Main, BlockNumber(0), page);
            continue;
        }
        let file = new_files(change, class, true, &plan.options)?;
        let how = writing(true, &plan.options, PIECE_BLOCKS);
        let mut writer =
            ForkWriter::new_file(change, ForkKey { locator: file, fork: Fork::Main }, 1, how)?;
        writer.add_page(change, BlockNumber(0), &page)?;
        writer.flush(change)?;
        writer.finish()?;
        change.replace_files(class.oid, file)?;
    }
    Ok(())
}

/// The work of a thread on one batch.
fn form_rows(
    shared: &Shared<'_>,
    state: &mut FormerState,
    rows: &mut Rows<'_>,
) -> Result<FormedRows> {
    let mut former = RowFormer::new(shared, state, rows.input());
    while let Some(row) = rows.next_row()? {
        former.add(&row)?;
    }
    Ok(former.finish())
}
