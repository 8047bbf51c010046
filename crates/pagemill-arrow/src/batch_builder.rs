//! Rows of a table into one record batch after the other.
//!
//! The rows of a page are appended column by column. Where a value is damaged and that is to be left out, its row is, from
//! all columns.
//!
//! Invariant: between calls all columns have the same rows.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::{ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions};
use pagemill_cluster::ValueCatalog;
use pagemill_engine::encoding::Transcoder;
use pagemill_engine::{DamageLog, TupleRow};
use pagemill_format::Tid;
use pagemill_format::varlena::ToastPointer;

use crate::column_builder::ColumnBuilder;
use crate::conversion::{Context, Fault};
use crate::error::{Error, Remedy, Result, RowPlace, Unfit};
use crate::options::InfinityChoice;
use crate::plan::Plan;

/// How large a batch is made, about: one with larger values has fewer rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSize {
    /// So many rows.
    pub rows: usize,
    /// Or rows of so many bytes.
    pub bytes: usize,
}

impl Default for BatchSize {
    fn default() -> Self {
        Self { rows: 8192, bytes: 16 << 20 }
    }
}

/// A record batch in the making; one per thread and relation.
pub struct BatchBuilder {
    plan: Plan,
    /// The relation, for messages.
    relation: String,
    columns: Vec<ColumnBuilder>,
    /// Where the columns begin among those of a row.
    first: usize,
    tids: Vec<Tid>,
    /// What their headers say, where that is wanted.
    headers: Option<Vec<RowHeader>>,
    /// How values are stored of the columns behind those of the plan.
    stored_forms: Vec<BinaryBuilder>,
    context: Context,
    size: BatchSize,
}

/// What the header of a row's tuple says, as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowHeader {
    /// The transaction that made it.
    pub xmin: u32,
    /// The transaction, or several, that deleted or locked it, or 0.
    pub xmax: u32,
    /// The command of either, or of both together.
    pub cid: u32,
}

impl RowHeader {
    fn of(row: &TupleRow<'_>) -> Self {
        let tuple = row.tuple();
        Self { xmin: tuple.xmin().0, xmax: tuple.xmax(), cid: tuple.cid() }
    }
}

impl BatchBuilder {
    /// A builder for rows of this relation.
    ///
    /// # Errors
    /// When the database's encoding cannot be converted to UTF-8.
    pub fn new(
        catalog: &ValueCatalog,
        relation: &str,
        plan: &Plan,
        infinity: InfinityChoice,
    ) -> Result<Self> {
        let transcoder =
            Transcoder::new(plan.encoding, "UTF8").map_err(pagemill_engine::Error::from)?;
        let (lookups, buffer) = (catalog.lookups(), Vec::new());
        Ok(Self {
            columns: plan.columns.iter().map(ColumnBuilder::new).collect(),
            plan: plan.clone(),
            relation: relation.to_owned(),
            first: 0,
            tids: Vec::new(),
            headers: None,
            stored_forms: Vec::new(),
            context: Context { lookups, transcoder, infinity, buffer },
            size: BatchSize::default(),
        })
    }

    /// For batches of this size.
    #[must_use]
    pub fn of_size(self, size: BatchSize) -> Self {
        Self { size, ..self }
    }

    /// For rows that have other columns in front of those of the plan.
    #[must_use]
    pub fn behind(self, others: usize) -> Self {
        Self { first: others, ..self }
    }

    /// With what the headers of the rows say.
    #[must_use]
    pub fn with_headers(self) -> Self {
        Self { headers: Some(Vec::new()), ..self }
    }

    /// With how values of so many columns are stored, which stand behind those of the plan in a row.
    #[must_use]
    pub fn with_stored_forms(self, columns: usize) -> Self {
        let stored_forms = (0..columns).map(|_| BinaryBuilder::new()).collect();
        Self { stored_forms, ..self }
    }

    /// How the values of such a column are stored: their bytes in the tuple, as four bytes, and what they begin with there, a
    /// pointer into a TOAST table as a whole.
    ///
    /// # Panics
    /// When fewer columns were asked for.
    pub fn stored_forms(&self, column: usize) -> BinaryArray {
        self.stored_forms[column].finish_cloned()
    }

    fn keep_stored_forms(&mut self, rows: &[TupleRow<'_>]) {
        let first = self.first + self.columns.len();
        for (number, forms) in self.stored_forms.iter_mut().enumerate() {
            for row in rows {
                forms.append_option(row.raw(first + number).map(|raw| {
                    let begin = &raw[..raw.len().min(ToastPointer::BYTES)];
                    [&(raw.len() as u32).to_le_bytes(), begin].concat()
                }));
            }
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.tids.len()
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.tids.is_empty()
    }

    /// Where its rows stand.
    pub fn tids(&self) -> &[Tid] {
        &self.tids
    }

    /// What their headers say; nothing unless it was asked for ([`with_headers`](Self::with_headers)).
    pub fn headers(&self) -> &[RowHeader] {
        self.headers.as_deref().unwrap_or_default()
    }

    /// True when it is time to [`finish`](Self::finish) the batch.
    pub fn is_full(&self) -> bool {
        let bytes = || self.columns.iter().map(ColumnBuilder::bytes).sum::<usize>();
        self.len() >= self.size.rows || bytes() >= self.size.bytes
    }

    /// Pages that the values led to which were found in caches, and those that were read.
    pub fn cache_counts(&self) -> (u64, u64) {
        self.context.lookups.cache_counts()
    }

    /// Values that were fetched from TOAST tables.
    pub fn toast_fetches(&self) -> u64 {
        self.context.lookups.toast_fetches()
    }

    /// Appends rows whose columns are those of the plan. Returns how many were looked at: the rest does not fit, and is to
    /// be appended once the batch is finished.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped; a value that its column's type cannot hold.
    pub fn append(&mut self, rows: &[TupleRow<'_>], damage: &mut DamageLog) -> Result<usize> {
        let before = self.len();
        // Copied only once a row has to be left out.
        let mut wanted = Cow::Borrowed(rows);
        loop {
            match self.try_append(&wanted) {
                Ok(()) => {
                    self.tids.extend(wanted.iter().map(TupleRow::tid));
                    if let Some(headers) = &mut self.headers {
                        headers.extend(wanted.iter().map(RowHeader::of));
                    }
                    self.keep_stored_forms(&wanted);
                    return Ok(rows.len());
                }
                Err((at, column, fault)) => {
                    self.columns.iter_mut().for_each(|column| column.truncate(before));
                    let row = wanted[at];
                    match fault {
                        Fault::Full if before > 0 => return Ok(0),
                        // The rows before it are a batch; this one will be the first of the next.
                        Fault::Full => {
                            let is_it = |other: &TupleRow<'_>| other.tid() == row.tid();
                            let first = rows.iter().position(is_it).unwrap_or_default();
                            assert!(first > 0, "a batch takes one row of any size");
                            return self.append(&wanted[..at], damage).map(|_| first);
                        }
                        Fault::Damaged(error) => {
                            let name = &self.plan.columns[column].name;
                            damage.report(row.value_damage(name, error)?)?;
                            wanted.to_mut().remove(at);
                        }
                        Fault::Unfit(what, remedy) => {
                            return Err(self.unfit(row.tid(), column, what, remedy));
                        }
                    }
                }
            }
        }
    }

    fn try_append(&mut self, rows: &[TupleRow<'_>]) -> Result<(), (usize, usize, Fault)> {
        for (number, column) in self.columns.iter_mut().enumerate() {
            let cells = rows.iter().map(|row| row.raw(self.first + number));
            column.extend(cells, &mut self.context).map_err(|(at, fault)| (at, number, fault))?;
        }
        Ok(())
    }

    #[cold]
    fn unfit(&self, tid: Tid, column: usize, what: String, remedy: Remedy) -> Error {
        let row = RowPlace::Table(self.relation.clone(), tid);
        let column = self.plan.columns[column].name.clone();
        Error::Unfit(Box::new(Unfit { row, column, what, remedy }))
    }

    /// The batch of the rows so far; the builder is empty afterwards.
    ///
    /// # Errors
    /// A text that is not UTF-8 though the database's encoding says so, or says nothing.
    pub fn finish(&mut self) -> Result<RecordBatch> {
        let schema = self.plan.schema().clone();
        let tids = std::mem::take(&mut self.tids);
        if let Some(headers) = &mut self.headers {
            headers.clear();
        }
        self.stored_forms.iter_mut().for_each(|forms| *forms = BinaryBuilder::new());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for number in 0..self.columns.len() {
            let found = self.columns[number].finish(schema.field(number).data_type());
            arrays.push(found.map_err(|fault| {
                let what = "a text that is not UTF-8".to_owned();
                self.unfit(tids[fault.at], number, what, Remedy::Columns)
            })?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(tids.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?)
    }
}
