//! From the fields of a row to a tuple on a page: the inner loop of `load`, one for each batch of rows.
//!
//! Values are read into one piece of memory, and where each lies is noted; the tuple is then formed from there straight
//! on its page. Large values are compressed, or moved to pages of the TOAST table, on the way.
//!
//! Invariant: a row that fails leaves nothing on a page of the table; chunks it may have left in the TOAST table belong
//! to no row, as after an error in a server.

use std::sync::Arc;

use pagemill_cluster::Database;
use pagemill_cluster::change::OidCounter;
use pagemill_cluster::value_inputs::{InputCatalog, InputNames};
use pagemill_format::toast_builder::{ToastBuilder, ToastChunk, ToastSink};
use pagemill_format::tuple::Span;
use pagemill_format::tuple_builder::TupleForm;
use pagemill_format::tuple_data_builder::SpannedRow;
use pagemill_format::{Error as FormatError, Oid, Tid};
use pagemill_types::expression::Inputs;
use pagemill_types::input::tree::{InputContext, ValueReader};

use super::index::{KeyFormer, KeyRun};
use super::message_text::row_text;
use super::plan::LoadPlan;
use super::routing::Homeless;
use super::row_lines::BatchLines;
use super::table_plan::TablePlan;
use super::used_ids::UsedIds;
use crate::copy::from::{CopyError, Row as CopyRow};
use crate::encoding::readable_name;
use crate::error::Result;
use crate::heap_files::page_run::{PageFill, PageRun, Piece, Pieces};

/// Memory for values that grew beyond this for one large row is given back.
const KEPT_BYTES: usize = 1 << 20;

/// An entry of a TOAST table's index: `chunk_id`, `chunk_seq` and the tuple's place.
pub(super) type ChunkKey = (Oid, u32, Tid);

/// What a load's threads share.
pub(super) struct Shared<'a> {
    pub(super) database: &'a Database,
    pub(super) plan: &'a LoadPlan,
    pub(super) catalog: &'a InputCatalog,
    pub(super) context: &'a InputContext,
    pub(super) oids: &'a OidCounter,
    /// By table.
    pub(super) used_ids: &'a [UsedIds],
    pub(super) chunk_form: &'a TupleForm,
    pub(super) pieces: Pieces,
    /// Rows with wrong values are put aside.
    pub(super) puts_aside: bool,
}

/// What one thread keeps from batch to batch.
pub(super) struct FormerState {
    lookups: InputNames,
    /// By table, made when the first row goes there.
    toast: Vec<Option<ToastBuilder>>,
    payloads: Vec<u8>,
    spans: Vec<Span>,
    /// The spans in the order of the columns of a partition.
    partition_spans: Vec<Span>,
}

impl FormerState {
    pub(super) fn new(shared: &Shared<'_>) -> Self {
        Self {
            lookups: shared.catalog.lookups(),
            toast: shared.plan.tables.iter().map(|_| None).collect(),
            payloads: Vec::new(),
            spans: Vec::new(),
            partition_spans: Vec::new(),
        }
    }
}

/// The rows of a batch, as pages.
#[derive(Debug)]
pub(super) struct FormedRows {
    pub(super) tables: Vec<FormedTable>,
    pub(super) rejected: Vec<CopyError>,
    pub(super) rows: u64,
}

/// Those of one table.
#[derive(Debug)]
pub(super) struct FormedTable {
    /// Its number among the tables of the plan.
    pub(super) table: usize,
    pub(super) heap: Vec<Piece>,
    pub(super) toast: Vec<Piece>,
    pub(super) chunk_keys: Vec<ChunkKey>,
    /// The entries for each index of the table.
    pub(super) keys: Vec<KeyRun>,
    /// Where its rows lay in the input, if a message may need it.
    pub(super) lines: Option<BatchLines>,
    pub(super) rows: u64,
}

/// Forms the rows of one batch.
pub(super) struct RowFormer<'a, 's> {
    shared: &'s Shared<'a>,
    input: Arc<str>,
    plan: &'a LoadPlan,
    reader: ValueReader<'s>,
    toast: &'s mut [Option<ToastBuilder>],
    payloads: &'s mut Vec<u8>,
    spans: &'s mut Vec<Span>,
    partition_spans: &'s mut Vec<Span>,
    /// By table, made when the first row of the batch goes there.
    tables: Vec<Option<Box<TableFormer<'a>>>>,
    rejected: Vec<CopyError>,
    rows: u64,
}

/// The rows of a batch that go to one table.
struct TableFormer<'a> {
    heap: PageRun,
    chunks: ChunkPages<'a>,
    keys: Vec<KeyFormer<'a>>,
    lines: Option<BatchLines>,
    rows: u64,
}

impl<'a> TableFormer<'a> {
    fn new(shared: &Shared<'a>, number: usize, input: &Arc<str>) -> Result<Self, FormatError> {
        let (plan, missing) = (shared.plan, || FormatError::limit("a table that was not planned"));
        let table = plan.tables.get(number).ok_or_else(missing)?;
        let (all_visible, stamp) = (plan.options.freeze, table.stamp);
        let fill = |fillfactor| PageFill { fillfactor, all_visible, stamp };
        Ok(Self {
            heap: PageRun::new(shared.pieces.clone(), fill(table.rules.fillfactor)),
            chunks: ChunkPages {
                form: shared.chunk_form,
                run: PageRun::new(shared.pieces.clone(), fill(100)),
                keys: Vec::new(),
                oids: shared.oids,
                used: shared.used_ids.get(number).ok_or_else(missing)?,
            },
            keys: table.indexes.iter().map(KeyFormer::new).collect::<Result<_, _>>()?,
            lines: needs_lines(plan, table).then(|| BatchLines::new(Arc::clone(input))),
            rows: 0,
        })
    }

    fn finish(self, table: usize) -> FormedTable {
        let heap = self.heap.finish();
        FormedTable {
            table,
            lines: self.lines.map(|lines| lines.end(&heap)),
            heap,
            toast: self.chunks.run.finish(),
            chunk_keys: self.chunks.keys,
            keys: self.keys.into_iter().map(KeyFormer::finish).collect(),
            rows: self.rows,
        }
    }
}

impl<'a, 's> RowFormer<'a, 's> {
    pub(super) fn new(
        shared: &'s Shared<'a>,
        state: &'s mut FormerState,
        input: &Arc<str>,
    ) -> Self {
        let FormerState { lookups, toast, payloads, spans, partition_spans } = state;
        Self {
            shared,
            input: Arc::clone(input),
            plan: shared.plan,
            reader: ValueReader::new(lookups, shared.context),
            toast,
            payloads,
            spans,
            partition_spans,
            tables: shared.plan.tables.iter().map(|_| None).collect(),
            rejected: Vec::new(),
            rows: 0,
        }
    }

    /// Adds a row. One with a value that its column does not take is put aside, where that is wanted.
    ///
    /// # Errors
    /// What is wrong with the row, in COPY's words.
    #[inline]
    pub(super) fn add(&mut self, row: &CopyRow<'_>) -> Result<(), Box<CopyError>> {
        self.payloads.clear();
        self.spans.clear();
        self.spans.resize(self.plan.columns.len(), Span::NULL);
        for (field, &position) in self.plan.fields.iter().enumerate() {
            let text = row.value(field)?;
            if let Err(message) = self.read_value(position, text) {
                let error = row.value_error(field, message);
                if !self.shared.puts_aside {
                    return Err(Box::new(error));
                }
                self.rejected.push(error);
                return Ok(());
            }
        }
        let table = self.place().map_err(|violation| self.violation(violation, row))?;
        self.store(table, row.line()).map_err(|error| row.error(error.to_string()))?;
        Ok(())
    }

    /// Fills in what the input does not have, and finds the table that the row goes to.
    #[inline]
    fn place(&mut self) -> Result<usize, Violation> {
        let plan = self.plan;
        let Self { payloads, spans, .. } = self;
        plan.defaults
            .fill(|position, payload| {
                let start = payloads.len() as u32;
                payloads.extend_from_slice(payload);
                spans[position] = Span::new(start, payloads.len() as u32);
            })
            .map_err(Violation::Other)?;
        // A line of 1 GiB can have more values than that, as those of arrays are longer than their texts.
        if u32::try_from(payloads.len()).is_err() {
            return Err(Violation::Other("the values of the row take more than 4 GiB".into()));
        }
        let keeps_bounds = |former: &Self| match &plan.check {
            Some(check) if !check.admits(|position| former.value(position)) => {
                Err(Violation::Bounds)
            }
            _ => Ok(()),
        };
        // A server asks for the bounds of a partition before it gives its rows to others below, else behind the
        // constraints.
        let Some(routing) = &plan.routing else {
            self.check_row(0)?;
            return keeps_bounds(self).map(|()| 0);
        };
        keeps_bounds(self)?;
        let table = routing.table_of(|position| self.value(position));
        let table = table.map_err(Violation::Homeless)?;
        self.check_row(table)?;
        Ok(table)
    }

    fn value(&self, position: usize) -> Option<&[u8]> {
        self.spans.get(position)?.of(self.payloads)
    }

    /// Reads a value, or says in PostgreSQL's words why there is none.
    #[inline]
    fn read_value(&mut self, position: usize, text: Option<&[u8]>) -> Result<(), String> {
        let column = &self.plan.columns[position];
        let Some(value_type) = &column.value_type else { return Ok(()) };
        let Some(text) = text else {
            let read = self.reader.read_null(&value_type.input);
            return read.map_err(|error| error.message);
        };
        let start = self.payloads.len();
        let read = self.reader.read(&value_type.input, column.type_modifier, text, self.payloads);
        read.map_err(|error| error.message)?;
        // That of a row of more than 4 GiB is none: `place` refuses it.
        self.spans[position] = Span::new(start as u32, self.payloads.len() as u32);
        Ok(())
    }

    /// Puts the row in the order of the table's columns, and asks for what the table itself wants of it, in the order in
    /// which a server does.
    #[inline]
    fn check_row(&mut self, number: usize) -> Result<(), Violation> {
        let table = &self.plan.tables[number];
        if let Some(from) = &table.columns_from {
            let span = |from: &Option<usize>| {
                from.and_then(|from| self.spans.get(from).copied()).unwrap_or(Span::NULL)
            };
            self.partition_spans.clear();
            self.partition_spans.extend(from.iter().map(span));
        }
        let spans = match table.columns_from {
            Some(_) => &*self.partition_spans,
            None => &*self.spans,
        };
        let is_null = |position: &&usize| spans.get(**position) == Some(&Span::NULL);
        if let Some(&position) = table.not_null.iter().find(is_null) {
            return Err(Violation::Null { table: number, position });
        }
        let values = RowValues { payloads: self.payloads, spans };
        for (at, check) in table.rules.checks.iter().enumerate() {
            match check.expression.is_satisfied(&values) {
                Ok(true) => {}
                Ok(false) => return Err(Violation::Check { table: number, at }),
                Err(error) => return Err(Violation::Other(error.message)),
            }
        }
        Ok(())
    }

    /// What is wrong with a row, in the server's words. A row that was given to a partition is shown as it came.
    #[cold]
    fn violation(&self, violation: Violation, row: &CopyRow<'_>) -> Box<CopyError> {
        let (database, plan) = (self.shared.database, self.plan);
        let name = |name: &[u8]| readable_name(database.row().encoding, name);
        let table = |number: usize| &plan.tables[number];
        let message = match violation {
            Violation::Null { table: number, position } => {
                let of = &table(number).relation;
                format!(
                    "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                    of.columns.get(position).map_or_else(String::new, |column| name(&column.name)),
                    name(&of.class.name),
                )
            }
            Violation::Check { table: number, at } => {
                let TablePlan { relation, rules, .. } = table(number);
                format!(
                    "new row for relation \"{}\" violates check constraint \"{}\"",
                    name(&relation.class.name),
                    rules.checks.get(at).map_or("", |check| &check.name),
                )
            }
            Violation::Bounds => {
                let relation = name(&plan.relation.class.name);
                format!("new row for relation \"{relation}\" violates partition constraint")
            }
            Violation::Homeless(homeless) => {
                let routing = plan.routing.as_ref();
                let routing = routing.expect("routed"); // infallible: only routed rows find no table
                let value = |position| self.value(position);
                let (message, detail) = routing.complaint(database, homeless, value, row);
                let mut error = row.error(message);
                error.detail = detail;
                return error;
            }
            Violation::Other(message) => return row.error(message),
        };
        let values = SpannedRow { bytes: self.payloads, spans: self.spans };
        let text = row_text(database, &plan.relation.columns, values, row);
        let mut error = row.error(message);
        error.detail = Some(format!("Failing row contains {text}."));
        error
    }

    /// Forms the tuple of the values read, of a row that ended on this line.
    #[inline]
    fn store(&mut self, number: usize, line: u64) -> Result<Tid, FormatError> {
        let missing = || FormatError::limit("a table that was not planned");
        let table = self.plan.tables.get(number).ok_or_else(missing)?;
        let slot = self.tables.get_mut(number).ok_or_else(missing)?;
        let former = match slot {
            Some(former) => former,
            None => slot.insert(Box::new(TableFormer::new(self.shared, number, &self.input)?)),
        };
        let spans = match table.columns_from {
            Some(_) => &*self.partition_spans,
            None => &*self.spans,
        };
        let row = SpannedRow { bytes: self.payloads, spans };
        let form = &table.form;
        let size = form.measure(&row)?;
        let tid = if ToastBuilder::is_due(size) {
            let slot = self.toast.get_mut(number).ok_or_else(missing)?;
            let toast = match slot {
                Some(toast) => toast,
                None => {
                    let target = table.rules.toast_tuple_target;
                    slot.insert(ToastBuilder::new(&table.layouts, table.toast(), target)?)
                }
            };
            let row = toast.toast(&row, &mut former.chunks)?;
            let size = form.measure(&row)?;
            former.heap.add(form, &row, size)?
        } else {
            former.heap.add(form, &row, size)?
        };
        former.keys.iter_mut().try_for_each(|index| index.add(&row, tid))?;
        former.rows += 1;
        if let Some(lines) = &mut former.lines {
            lines.push(line);
        }
        if self.payloads.capacity() > KEPT_BYTES {
            *self.payloads = Vec::new();
        }
        self.rows += 1;
        Ok(tid)
    }

    /// The pages.
    pub(super) fn finish(self) -> FormedRows {
        let tables = self.tables.into_iter().enumerate();
        FormedRows {
            tables: tables.filter_map(|(number, of)| Some(of?.finish(number))).collect(),
            rejected: self.rejected,
            rows: self.rows,
        }
    }
}

/// A key that is there twice is reported with the row's line. Those of partitions are packed together, from many batches.
fn needs_lines(plan: &LoadPlan, table: &TablePlan) -> bool {
    plan.routing.is_none() && table.indexes.iter().any(|index| index.unique && index.immediate)
}

/// What a row does not keep to. Tables are numbers of those of the plan.
enum Violation {
    /// A column that may not be is null.
    Null { table: usize, position: usize },
    /// The CHECK constraint at this position among those of the table.
    Check { table: usize, at: usize },
    /// The bounds of the partition that rows are loaded into.
    Bounds,
    /// It goes to no table.
    Homeless(Homeless),
    /// What an expression, a default or a sequence raised.
    Other(String),
}

/// The values of a row, by the positions of their columns.
struct RowValues<'a> {
    payloads: &'a [u8],
    spans: &'a [Span],
}

impl Inputs for RowValues<'_> {
    fn value(&self, position: usize) -> Option<&[u8]> {
        self.spans.get(position)?.of(self.payloads)
    }
}

/// Where values go that are moved out of their rows.
struct ChunkPages<'a> {
    form: &'a TupleForm,
    run: PageRun,
    keys: Vec<ChunkKey>,
    oids: &'a OidCounter,
    used: &'a UsedIds,
}

impl ToastSink for ChunkPages<'_> {
    type Error = FormatError;

    fn next_value_id(&mut self) -> Result<Oid, FormatError> {
        self.used.next_unused(self.oids)
    }

    fn chunk(&mut self, chunk: &ToastChunk<'_>) -> Result<(), FormatError> {
        let tid = self.run.add(self.form, chunk, self.form.measure(chunk)?)?;
        self.keys.push((chunk.value_id(), chunk.sequence(), tid));
        Ok(())
    }
}
