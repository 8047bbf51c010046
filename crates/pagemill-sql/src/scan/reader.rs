//! Rows of a range of a relation, read and decoded: what the thread of a scan does.
//!
//! ```text
//! run of pages ── columns of a filter ──► batch ── conditions ──► rows that pass ── … ── columns that are wanted ──► batch
//! ```
//!
//! With filters, the columns that they look at are decoded first, step by step ([`Choice`]), and the columns that are wanted
//! only of the rows that pass: a value that lies in a TOAST table is fetched for these alone. A column that is looked at and
//! wanted is decoded twice for them, which costs less than to keep two batches in step when values turn out damaged.
//!
//! Invariants: a row is decoded whole or left out whole; damage is told once, where it was met first.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, Int32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::DataFusionError;
use pagemill_arrow::{BatchBuilder, InfinityChoice, Plan};
use pagemill_engine::{
    DamageLog, KeyScan, RunScan, ScanOptions, ScanRequest, StepColumns, Table, TableScan, TidScan,
    TupleRow,
};
use pagemill_format::{Oid, Tid};
use pagemill_types::builtin::oid;

use super::ScanContext;
use super::account::ScanAccount;
use super::filters::{RowFilter, ScanFilters};
use super::index_access::Access;
use super::key_access::KeyAccess;
use super::opener::Output;
use super::relation_table::{TableColumn, stored_name};
use super::source::RelationSource;
use super::system_columns::SystemColumn;
use super::tid_access::within;
use crate::error::{Result, unsupported};
use crate::types::PgType;

/// So many rows tell what a choice removes.
const LATELY: f64 = 100_000.0;
/// Nanoseconds that it takes to find a column behind others whose lengths differ from row to row.
const WALK: f64 = 15.0;

/// A range of a relation, and where its rows go.
pub(super) struct RowReader<'s> {
    pub(super) source: &'s RelationSource,
    /// Its number among the relations that hold the rows.
    pub(super) part: usize,
    pub(super) table: &'s Arc<Table>,
    pub(super) blocks: Range<u32>,
    pub(super) account: ScanAccount,
    pub(super) out: Output<'s>,
}

impl RowReader<'_> {
    /// Reads to the end, or until no more is wanted.
    pub(super) fn read(mut self) -> Result<()> {
        let mut damage = self.source.context.damage_log();
        match self.source.index.access(self.source, self.part, &mut self.account)? {
            Access::Rows(batches) => self.hand_over(&batches),
            Access::Tids(tids) => self.read_found(&tids, &mut damage)?,
            Access::Blocks(blocks) => {
                self.read_passing(&within(&blocks, &self.blocks), &mut damage)?;
            }
            Access::Keys(keys) => {
                if self.read_keys(&keys, &mut damage)? {
                    self.read_passing(&within(&keys.mixed, &self.blocks), &mut damage)?;
                }
            }
            Access::Whole if self.source.filters.is_empty() => self.read_all(&mut damage)?,
            Access::Whole => {
                self.read_passing(std::slice::from_ref(&self.blocks.clone()), &mut damage)?;
            }
        }
        self.source.context.keep(&damage)
    }

    /// Rows that were read beforehand go with the first block.
    fn hand_over(&mut self, batches: &[RecordBatch]) {
        if self.blocks.contains(&0) {
            let _ = batches.iter().all(|batch| self.out.send(batch.clone()));
        }
    }

    /// How this one thread reads its range.
    fn request(&self) -> ScanRequest<'_> {
        let context = &self.source.context;
        let (options, progress) = (alone(context.options), &self.account.progress);
        let cluster = context.catalog.database().cluster();
        ScanRequest { cluster, table: self.table, options, progress }
    }

    fn read_all(&mut self, damage: &mut DamageLog) -> Result<()> {
        let mut wanted = Decoder::new(self.source, self.table, self.source.wanted())?;
        let blocks = std::slice::from_ref(&self.blocks);
        let mut scan = TableScan::of_blocks(self.request(), wanted.positions(), blocks)?;
        while let Some(batch) = scan.next_batch(damage)? {
            let rows: Vec<TupleRow<'_>> = batch.rows().collect();
            let go_on = !self.out.is_closed() && wanted.hand_over(&rows, &mut self.out, damage)?;
            self.account.toast_fetches = wanted.builder.toast_fetches();
            if !go_on {
                return Ok(());
            }
        }
        wanted.hand_over_rest(&mut self.out)
    }

    fn read_passing(&mut self, blocks: &[Range<u32>], damage: &mut DamageLog) -> Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        let mut choices = choices(self.source, self.table, &self.source.filters)?;
        let mut wanted = Decoder::new(self.source, self.table, self.source.wanted())?;
        let steps: Vec<&[usize]> = choices.iter().map(Choice::positions).collect();
        let steps = [&steps[..], &[wanted.positions()]].concat();
        let mut scan = RunScan::of_blocks(self.request(), &steps, blocks)?;
        let mut order: Vec<usize> = (0..steps.len()).collect();
        while scan.next_run(order[0], damage)? {
            if self.out.is_closed() {
                return Ok(());
            }
            self.account.removed += narrow(&mut scan, &mut choices, &order, damage)?;
            let rows: Vec<TupleRow<'_>> = scan.rows().collect();
            let go_on = wanted.hand_over(&rows, &mut self.out, damage)?;
            let decoders = choices.iter().map(|choice| &choice.columns).chain([&wanted]);
            self.account.toast_fetches = decoders.map(|d| d.builder.toast_fetches()).sum();
            if !go_on {
                return Ok(());
            }
            order[..choices.len()]
                .sort_by(|a, b| choices[*a].rank().total_cmp(&choices[*b].rank()));
        }
        wanted.hand_over_rest(&mut self.out)
    }

    /// Reads the rows that an index alone tells of, and chooses among them; false when no more are wanted.
    fn read_keys(&mut self, keys: &KeyAccess, damage: &mut DamageLog) -> Result<bool> {
        let index = &keys.index;
        let mut choices = in_one_walk(choices(self.source, index, &self.source.filters)?);
        let mut wanted = Decoder::new(self.source, index, self.source.wanted())?;
        let looked_at: Vec<usize> =
            choices.iter().flat_map(|choice| choice.columns.positions().iter().copied()).collect();
        let columns = StepColumns { first: &looked_at, rest: wanted.positions() };
        let (request, blocks) =
            (ScanRequest { table: index, ..self.request() }, keys.share(&self.blocks));
        let mut scan =
            KeyScan::of_blocks(request, columns, self.table, std::slice::from_ref(&blocks))?;
        while !self.out.is_closed() && scan.next_page(damage)? {
            let rows: Vec<TupleRow<'_>> = scan.rows().collect();
            let chosen = choose(&mut choices, &rows, damage)?;
            self.account.removed += (rows.len() - chosen.len()) as u64;
            let rows: Vec<TupleRow<'_>> = chosen.into_iter().map(|at| scan.row(at)).collect();
            if !wanted.hand_over(&rows, &mut self.out, damage)? {
                return Ok(false);
            }
        }
        wanted.hand_over_rest(&mut self.out)?;
        Ok(!self.out.is_closed() && self.out.left > 0)
    }

    /// Reads the rows that an index led to, and chooses among them.
    fn read_found(&mut self, tids: &Arc<[Tid]>, damage: &mut DamageLog) -> Result<()> {
        let mut choices = in_one_walk(choices(self.source, self.table, &self.source.filters)?);
        let mut wanted = Decoder::new(self.source, self.table, self.source.wanted())?;
        let looked_at: Vec<usize> =
            choices.iter().flat_map(|choice| choice.columns.positions().iter().copied()).collect();
        let columns = StepColumns { first: &looked_at, rest: wanted.positions() };
        let mut scan = TidScan::new(self.request(), columns, tids, &self.blocks);
        while scan.next_round(damage)? {
            if self.out.is_closed() {
                return Ok(());
            }
            let rows: Vec<TupleRow<'_>> = scan.rows().collect();
            let chosen = choose(&mut choices, &rows, damage)?;
            self.account.removed += (rows.len() - chosen.len()) as u64;
            let rows: Vec<TupleRow<'_>> = chosen.into_iter().map(|at| scan.row(at)).collect();
            let go_on = wanted.hand_over(&rows, &mut self.out, damage)?;
            let decoders = choices.iter().map(|choice| &choice.columns).chain([&wanted]);
            self.account.toast_fetches = decoders.map(|d| d.builder.toast_fetches()).sum();
            if !go_on {
                return Ok(());
            }
        }
        wanted.hand_over_rest(&mut self.out)
    }
}

/// For one thread.
pub(super) fn alone(options: ScanOptions) -> ScanOptions {
    ScanOptions { jobs: 1, ..options }
}

/// The conditions in steps by what it takes to look at them: those on columns that lie in the same place of every tuple;
/// those on others of a fixed length; those on decimals, which take longer to decode; and those on values that may have to be
/// fetched.
pub(super) fn choices(
    source: &RelationSource,
    table: &Table,
    filters: &ScanFilters,
) -> Result<Vec<Choice>> {
    let carrier = |at: usize| &source.columns[at].carrier;
    let is_short = |at: usize| !matches!(carrier(at), DataType::Utf8 | DataType::Binary);
    let is_plain = |at: usize| is_short(at) && !matches!(carrier(at), DataType::Decimal128(..));
    let is_in_place = |at: usize| is_plain(at) && is_in_place(&source.columns[at], table);
    let [in_place, others] = filters.split(is_in_place);
    let [plain, others] = others.split(is_plain);
    let [short, long] = others.split(is_short);
    // What is fetched for rows that others would remove may be much, or damaged: those stay last.
    let steps = [(in_place, Some(0.0)), (plain, Some(WALK)), (short, Some(WALK)), (long, None)];
    let steps = steps.into_iter().filter(|(filters, _)| !filters.is_empty());
    steps.map(|(filters, walk)| Choice::new(source, table, &filters, walk)).collect()
}

/// Whether a column lies in the same place of every tuple that has no NULL before it.
fn is_in_place(column: &TableColumn, table: &Table) -> bool {
    let relation = &table.relation;
    let position = relation.columns.iter().position(|stored| stored.name == column.stored_name);
    position.is_some_and(|at| relation.layout.fixed_span(at).is_some())
}

/// The choices for rows whose columns are found together, one choice's behind those of the one before.
pub(super) fn in_one_walk(choices: Vec<Choice>) -> Vec<Choice> {
    let mut others = 0;
    let behind = |mut choice: Choice| {
        choice.columns.builder = choice.columns.builder.behind(others);
        others += choice.positions().len();
        choice
    };
    choices.into_iter().map(behind).collect()
}

/// Keeps the rows of a run that every choice lets pass, in this order of steps, the last of which are the wanted columns;
/// how many do not pass.
fn narrow(
    scan: &mut RunScan,
    choices: &mut [Choice],
    order: &[usize],
    damage: &mut DamageLog,
) -> Result<u64> {
    let mut removed = 0;
    for step in order.windows(2) {
        let rows: Vec<TupleRow<'_>> = scan.rows().collect();
        let choice = &mut choices[step[0]];
        choice.choose(&rows, damage)?;
        removed += (rows.len() - choice.chosen.len()) as u64;
        scan.keep(&choice.chosen, step[1], damage)?;
    }
    Ok(removed)
}

/// The places of the rows that every choice lets pass, one after the other.
pub(super) fn choose(
    choices: &mut [Choice],
    rows: &[TupleRow<'_>],
    damage: &mut DamageLog,
) -> Result<Vec<usize>> {
    let Some((first, others)) = choices.split_first_mut() else {
        return Ok((0..rows.len()).collect());
    };
    first.choose(rows, damage)?;
    let mut chosen = std::mem::take(&mut first.chosen);
    for choice in others {
        let left: Vec<TupleRow<'_>> = chosen.iter().map(|at| rows[*at]).collect();
        choice.choose(&left, damage)?;
        chosen = choice.chosen.drain(..).map(|at| chosen[at]).collect();
    }
    Ok(chosen)
}

/// What chooses rows by some of their columns.
///
/// Which of several goes first is found out while the scan runs: the one that removes most in the least time.
pub(super) struct Choice {
    filter: RowFilter,
    columns: Decoder,
    /// The places of the rows that pass.
    chosen: Vec<usize>,
    /// Nanoseconds that it takes to find the columns in a row; `None` of one that stays last.
    walk: Option<f64>,
    /// Rows that were looked at lately, those of them that did not pass, and nanoseconds that this took.
    looked_at: f64,
    removed: f64,
    nanoseconds: f64,
}

impl Choice {
    fn new(
        source: &RelationSource,
        table: &Table,
        filters: &ScanFilters,
        walk: Option<f64>,
    ) -> Result<Self> {
        let positions = filters.columns();
        let columns = Decoder::new(source, table, &positions)?;
        let (filter, chosen) = (filters.on(&positions)?, Vec::new());
        let (looked_at, removed, nanoseconds) = (0.0, 0.0, 0.0);
        Ok(Self { filter, columns, chosen, walk, looked_at, removed, nanoseconds })
    }

    /// Nanoseconds that it takes to remove a row: of two choices that with the lower rank had better come first.
    fn rank(&self) -> f64 {
        match self.walk {
            Some(walk) if self.removed > 0.0 => {
                (walk * self.looked_at + self.nanoseconds) / self.removed
            }
            _ => f64::INFINITY,
        }
    }

    /// Remembers what it removed. Older rows count less and less, as conditions that a join hands down become narrower.
    fn remember(&mut self, looked_at: usize, time: Duration) {
        if self.looked_at > LATELY {
            self.looked_at /= 2.0;
            self.removed /= 2.0;
            self.nanoseconds /= 2.0;
        }
        self.looked_at += looked_at as f64;
        self.removed += looked_at.saturating_sub(self.chosen.len()) as f64;
        self.nanoseconds += time.as_nanos() as f64;
    }

    /// The columns that are looked at.
    pub(super) fn positions(&self) -> &[usize] {
        self.columns.positions()
    }

    /// Values fetched from TOAST tables so far.
    pub(super) fn toast_fetches(&self) -> u64 {
        self.columns.toast_fetches()
    }

    /// Chooses among rows; those with a damaged value in a column that counts are not chosen.
    fn choose(&mut self, rows: &[TupleRow<'_>], damage: &mut DamageLog) -> Result<()> {
        let begin = Instant::now();
        self.chosen.clear();
        let mut looked_at = 0;
        while looked_at < rows.len() {
            let rest = &rows[looked_at..];
            let taken = self.columns.builder.append(rest, damage)?;
            let decoded = self.columns.builder.tids().to_vec();
            let batch = self.columns.finish()?;
            let passing = self.filter.passing(&batch)?;
            self.note(&rest[..taken], &decoded, passing.as_ref(), looked_at);
            looked_at += taken;
        }
        self.remember(rows.len(), begin.elapsed());
        Ok(())
    }

    /// Notes the places of rows that passed: decoded ones are some of the rows, in their order.
    fn note(
        &mut self,
        rows: &[TupleRow<'_>],
        decoded: &[Tid],
        passing: Option<&BooleanArray>,
        start: usize,
    ) {
        if decoded.len() == rows.len() {
            match passing {
                None => self.chosen.extend(start..start + rows.len()),
                Some(mask) => {
                    self.chosen.extend(mask.values().set_indices().map(|at| start + at));
                }
            }
            return;
        }
        let mut places = (start..).zip(rows);
        for (at, tid) in decoded.iter().enumerate() {
            let place = places.find(|(_, row)| row.tid() == *tid);
            let (place, _) = place.expect("a decoded row is one of the rows"); // infallible: rows are left out, not added
            if passing.is_none_or(|mask| mask.value(at)) {
                self.chosen.push(place);
            }
        }
    }
}

/// Some columns of rows in the making, as the query engine carries them.
pub(super) struct Decoder {
    context: Arc<ScanContext>,
    decoding: Arc<Decoding>,
    builder: BatchBuilder,
}

/// How some columns of a relation are decoded.
pub(super) struct Decoding {
    /// Where the columns are in the relation.
    positions: Vec<usize>,
    types: Vec<PgType>,
    schema: SchemaRef,
    /// Of each column, whether it is one of the system's.
    system: Vec<Option<SystemColumn>>,
    /// The relation's.
    table: Oid,
    name: String,
    plan: Plan,
}

/// What was worked out once, for all threads and runs of a scan: by the relation, the columns, and whether numerics are wide.
pub(super) type Decodings = Arc<Mutex<HashMap<(Oid, Vec<usize>, bool), Arc<Decoding>>>>;

impl Decoding {
    fn new(source: &RelationSource, part: &Table, columns: &[usize]) -> Result<Self> {
        let values = source.context.catalog.values();
        let chosen = || columns.iter().map(|at| &source.columns[*at]);
        let stored = chosen().filter(|column| column.system.is_none());
        let names: Vec<Box<[u8]>> = stored.map(|column| column.stored_name.clone()).collect();
        let mut relation = part.relation.clone();
        if source.context.has_wide_numerics {
            let columns = relation.columns.iter_mut();
            columns.filter(|column| column.type_oid == oid::NUMERIC).for_each(|column| {
                column.type_modifier = -1;
            });
        }
        let plan = Plan::stored(values, &relation, &names)?;
        let mut positions = plan.positions(values, &relation)?;
        let forms = chosen().filter(|column| column.system == Some(SystemColumn::StoredForm));
        for form in forms {
            let is_it = |column: &pagemill_cluster::Column| *column.name == *stored_name(form);
            match relation.columns.iter().position(is_it) {
                Some(position) => positions.push(position),
                None => return unsupported("a partition without a column of its table"),
            }
        }
        let field = |column: &TableColumn| Field::new(&column.name, column.carrier.clone(), true);
        let schema = Arc::new(Schema::new(chosen().map(field).collect::<Vec<_>>()));
        let types = chosen().map(|column| column.ty).collect();
        let system = chosen().map(|column| column.system).collect();
        let (table, name) = (part.relation.class.oid, part.relation.display_name());
        Ok(Self { positions, types, schema, system, table, name, plan })
    }

    /// The one that is known, or a new one.
    fn of(source: &RelationSource, part: &Table, columns: &[usize]) -> Result<Arc<Self>> {
        let key = (part.relation.class.oid, columns.to_vec(), source.context.has_wide_numerics);
        let known = || source.decodings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&key) {
            return Ok(found.clone());
        }
        let made = Arc::new(Self::new(source, part, columns)?);
        known().insert(key, made.clone());
        Ok(made)
    }
}

impl Decoder {
    /// These columns of the table, as stored in one of its parts.
    pub(super) fn new(source: &RelationSource, part: &Table, columns: &[usize]) -> Result<Self> {
        let context = source.context.clone();
        let decoding = Decoding::of(source, part, columns)?;
        let (values, Decoding { name, plan, .. }) = (context.catalog.values(), &*decoding);
        let builder = BatchBuilder::new(values, name, plan, InfinityChoice::Error)?;
        let mut builder = builder.of_size(context.batch_size);
        if decoding.system.iter().flatten().any(|column| column.is_of_header()) {
            builder = builder.with_headers();
        }
        let is_form = |column: &&SystemColumn| **column == SystemColumn::StoredForm;
        let forms = decoding.system.iter().flatten().filter(is_form).count();
        builder = builder.with_stored_forms(forms);
        Ok(Self { context, decoding, builder })
    }

    /// Where the columns are in the relation.
    pub(super) fn positions(&self) -> &[usize] {
        &self.decoding.positions
    }

    /// Rows that are in no batch yet.
    pub(super) fn len(&self) -> usize {
        self.builder.len()
    }

    /// Values fetched from TOAST tables so far.
    pub(super) fn toast_fetches(&self) -> u64 {
        self.builder.toast_fetches()
    }

    /// Appends rows, and keeps what makes a batch.
    pub(super) fn collect(
        &mut self,
        mut rows: &[TupleRow<'_>],
        batches: &mut Vec<RecordBatch>,
        damage: &mut DamageLog,
    ) -> Result<()> {
        while !rows.is_empty() {
            let taken = self.builder.append(rows, damage)?;
            rows = &rows[taken..];
            if self.builder.is_full() || !rows.is_empty() {
                batches.push(self.finish()?);
            }
        }
        Ok(())
    }

    /// Appends rows, and hands over what makes a batch; false when no more rows are wanted.
    fn hand_over(
        &mut self,
        mut rows: &[TupleRow<'_>],
        out: &mut Output<'_>,
        damage: &mut DamageLog,
    ) -> Result<bool> {
        while !rows.is_empty() {
            let taken = self.builder.append(rows, damage)?;
            rows = &rows[taken..];
            let is_due = self.builder.is_full() || self.builder.len() >= out.left;
            if (is_due || !rows.is_empty()) && !out.send(self.finish()?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn hand_over_rest(&mut self, out: &mut Output<'_>) -> Result<()> {
        if !self.builder.is_empty() {
            let _ = out.send(self.finish()?);
        }
        Ok(())
    }

    /// The batch of the rows so far: labels of enums become their places.
    pub(super) fn finish(&mut self) -> Result<RecordBatch> {
        let Decoding { system, table, .. } = &*self.decoding;
        let mut forms = 0;
        let of_system = |column: &Option<SystemColumn>| {
            let place = forms;
            forms += usize::from(*column == Some(SystemColumn::StoredForm));
            column.map(|column| column.values(&self.builder, *table, place))
        };
        let of_system: Vec<Option<ArrayRef>> = system.iter().map(of_system).collect();
        let batch = self.builder.finish()?;
        let mut stored = batch.columns().iter();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(of_system.len());
        for (at, of_system) in of_system.into_iter().enumerate() {
            let wanted = self.decoding.schema.field(at).data_type();
            let array = match of_system {
                Some(array) => &array.clone(),
                None => stored.next().expect("a column for each that is stored"), // infallible: by the plan
            };
            columns.push(match (array.data_type(), wanted) {
                (DataType::UInt32, DataType::Int32) => {
                    self.places(array, self.decoding.types[at])?
                }
                (found, wanted) => {
                    assert_eq!(found, wanted, "a column is read as its type is carried");
                    array.clone()
                }
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch =
            RecordBatch::try_new_with_options(self.decoding.schema.clone(), columns, &options);
        Ok(batch.map_err(DataFusionError::from)?)
    }

    fn places(&self, array: &ArrayRef, ty: PgType) -> Result<ArrayRef> {
        let order = self.context.catalog.enum_order(ty.oid)?;
        let labels = array.as_primitive::<UInt32Type>();
        let place = |label: Option<u32>| label.map(|label| order.place(Oid(label))).transpose();
        let places: Int32Array = labels.iter().map(place).collect::<Result<_, _>>()?;
        assert_eq!(places.len(), array.len(), "each label has a place");
        Ok(Arc::new(places))
    }
}
