//! From the fields of a row to a tuple on a page: the inner loop of `load`, one for each batch of rows.
//!
//! Values are read into one piece of memory, and where each lies is noted; the tuple is then formed from there straight
//! on its page. Large values are compressed, or moved to pages of the TOAST table, on the way.
//!
//! Invariant: a row that fails leaves nothing on a page of the table; chunks it may have left in the TOAST table belong
//! to no row, as after an error in a server.

use pagemill_cluster::Database;
use pagemill_cluster::change::OidCounter;
use pagemill_cluster::value_inputs::{InputCatalog, InputNames};
use pagemill_format::expression::Inputs;
use pagemill_format::toast_builder::{ToastBuilder, ToastChunk, ToastSink};
use pagemill_format::tuple::Span;
use pagemill_format::tuple_builder::TupleForm;
use pagemill_format::tuple_data_builder::SpannedRow;
use pagemill_format::types::input::tree::{InputContext, ValueReader};
use pagemill_format::{Error as FormatError, Oid, Tid};

use super::index_keys::{KeyFormer, KeyRun};
use super::page_run::{PageFill, PageRun, Piece, Pieces};
use super::plan::LoadPlan;
use super::row_text::row_text;
use super::used_ids::UsedIds;
use crate::copy_input::{CopyError, Row as CopyRow};
use crate::error::Result;

/// Memory for values that grew beyond this for one large row is given back.
const KEPT_BYTES: usize = 1 << 20;

/// An entry of a TOAST table's index: `chunk_id`, `chunk_seq` and the tuple's place.
pub(super) type ChunkKey = (Oid, u32, Tid);

/// What a load's threads share.
pub(super) struct Shared<'a> {
    pub(super) plan: &'a LoadPlan,
    pub(super) database: &'a Database,
    pub(super) catalog: &'a InputCatalog,
    pub(super) context: &'a InputContext,
    pub(super) oids: &'a OidCounter,
    pub(super) used_ids: &'a UsedIds,
    pub(super) chunk_form: &'a TupleForm,
    pub(super) pieces: Pieces,
    /// Rows with wrong values are put aside.
    pub(super) puts_aside: bool,
}

/// What one thread keeps from batch to batch.
pub(super) struct FormerState {
    lookups: InputNames,
    toast: ToastBuilder,
    payloads: Vec<u8>,
    spans: Vec<Span>,
}

impl FormerState {
    pub(super) fn new(shared: &Shared<'_>) -> Result<Self, FormatError> {
        let plan = shared.plan;
        let target = plan.rules.toast_tuple_target;
        Ok(Self {
            lookups: shared.catalog.lookups(),
            toast: ToastBuilder::new(&plan.layouts, plan.toast(), target)?,
            payloads: Vec::new(),
            spans: Vec::new(),
        })
    }
}

/// The rows of a batch, as pages.
#[derive(Debug)]
pub(super) struct FormedRows {
    pub(super) heap: Vec<Piece>,
    pub(super) toast: Vec<Piece>,
    pub(super) chunk_keys: Vec<ChunkKey>,
    /// The entries for each index of the table.
    pub(super) keys: Vec<KeyRun>,
    pub(super) rejected: Vec<CopyError>,
    pub(super) rows: u64,
}

/// Forms the rows of one batch.
pub(super) struct RowFormer<'a, 's> {
    plan: &'a LoadPlan,
    database: &'a Database,
    reader: ValueReader<'s>,
    toast: &'s mut ToastBuilder,
    payloads: &'s mut Vec<u8>,
    spans: &'s mut Vec<Span>,
    heap: PageRun,
    chunks: ChunkPages<'a>,
    keys: Vec<KeyFormer<'a>>,
    puts_aside: bool,
    rejected: Vec<CopyError>,
    rows: u64,
}

impl<'a, 's> RowFormer<'a, 's> {
    pub(super) fn new(shared: &'s Shared<'a>, state: &'s mut FormerState) -> Result<Self> {
        let plan = shared.plan;
        let freeze = plan.options.freeze;
        let fill = |fillfactor| PageFill { fillfactor, all_visible: freeze, stamp: plan.stamp };
        let FormerState { lookups, toast, payloads, spans } = state;
        let keys = plan.indexes.iter().map(KeyFormer::new).collect::<Result<_, _>>()?;
        Ok(Self {
            plan,
            database: shared.database,
            keys,
            reader: ValueReader::new(lookups, shared.context),
            toast,
            payloads,
            spans,
            heap: PageRun::new(shared.pieces.clone(), fill(plan.rules.fillfactor)),
            chunks: ChunkPages {
                form: shared.chunk_form,
                run: PageRun::new(shared.pieces.clone(), fill(100)),
                keys: Vec::new(),
                oids: shared.oids,
                used: shared.used_ids,
            },
            puts_aside: shared.puts_aside,
            rejected: Vec::new(),
            rows: 0,
        })
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
                if !self.puts_aside {
                    return Err(Box::new(error));
                }
                self.rejected.push(error);
                return Ok(());
            }
        }
        self.check_row().map_err(|violation| self.violation(violation, row))?;
        self.store().map_err(|error| row.error(error.to_string()))?;
        Ok(())
    }

    /// Reads a value, or says in PostgreSQL's words why there is none.
    #[inline]
    fn read_value(&mut self, position: usize, text: Option<&[u8]>) -> Result<(), String> {
        let Some(column) = self.plan.columns.get(position) else { return Ok(()) };
        let Some(value_type) = &column.value_type else { return Ok(()) };
        let Some(text) = text else {
            let read = self.reader.read_null(&value_type.input);
            return read.map_err(|error| error.message);
        };
        let start = self.payloads.len();
        let read = self.reader.read(&value_type.input, column.type_modifier, text, self.payloads);
        read.map_err(|error| error.message)?;
        if let Some(span) = self.spans.get_mut(position) {
            // A row of 4 GiB is refused when it is measured, as no value of it can be so long.
            *span = Span::new(start as u32, self.payloads.len() as u32);
        }
        Ok(())
    }

    /// Checks the row against the table's constraints, in the order in which a server does.
    #[inline]
    fn check_row(&self) -> Result<(), Violation> {
        let is_null = |position: &&usize| self.spans.get(**position) == Some(&Span::NULL);
        if let Some(&position) = self.plan.not_null.iter().find(is_null) {
            return Err(Violation::Null(position));
        }
        let values = RowValues { payloads: self.payloads, spans: self.spans };
        for check in &self.plan.rules.checks {
            match check.expression.is_satisfied(&values) {
                Ok(true) => {}
                Ok(false) => return Err(Violation::Check(check.name.clone())),
                Err(error) => return Err(Violation::Expression(error.message)),
            }
        }
        Ok(())
    }

    #[cold]
    fn violation(&self, violation: Violation, row: &CopyRow<'_>) -> Box<CopyError> {
        let relation = String::from_utf8_lossy(&self.plan.relation.class.name);
        let message = match violation {
            Violation::Null(position) => format!(
                "null value in column \"{}\" of relation \"{relation}\" violates not-null constraint",
                self.plan.columns.get(position).map_or("", |column| &column.name),
            ),
            Violation::Check(name) => {
                format!("new row for relation \"{relation}\" violates check constraint \"{name}\"")
            }
            Violation::Expression(message) => return row.error(message),
        };
        let values = (&self.payloads[..], &self.spans[..]);
        let text = row_text(self.database, &self.plan.relation.columns, values, row);
        let mut error = row.error(message);
        error.detail = Some(format!("Failing row contains {text}."));
        error
    }

    /// Forms the tuple of the values read.
    #[inline]
    fn store(&mut self) -> Result<Tid, FormatError> {
        let row = SpannedRow { bytes: self.payloads, spans: self.spans };
        let form = &self.plan.form;
        let size = form.measure(&row)?;
        let tid = if ToastBuilder::is_due(size) {
            let row = self.toast.toast(&row, &mut self.chunks)?;
            let size = form.measure(&row)?;
            self.heap.add(form, &row, size)?
        } else {
            self.heap.add(form, &row, size)?
        };
        self.keys.iter_mut().try_for_each(|index| index.add(&row, tid))?;
        if self.payloads.capacity() > KEPT_BYTES {
            *self.payloads = Vec::new();
        }
        self.rows += 1;
        Ok(tid)
    }

    /// The pages.
    pub(super) fn finish(self) -> FormedRows {
        FormedRows {
            heap: self.heap.finish(),
            toast: self.chunks.run.finish(),
            chunk_keys: self.chunks.keys,
            keys: self.keys.into_iter().map(KeyFormer::finish).collect(),
            rejected: self.rejected,
            rows: self.rows,
        }
    }
}

/// What a row does not keep to.
enum Violation {
    /// The column at this position is null.
    Null(usize),
    /// The CHECK constraint of this name.
    Check(String),
    /// A CHECK constraint raised this.
    Expression(String),
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
