//! An answer as a Parquet or Arrow file, with the types and the conversions of `export`.
//!
//! A file's columns are settled before its first row. So an answer with numerics of no declared size is kept until its end, when it
//! is known which decimals hold them; any other is written as it comes.
//!
//! Invariant: a value is in the file as it is, or the answer is refused.

use std::io::Write;
use std::sync::Arc;

use arrow::array::Array as _;
use arrow::record_batch::RecordBatch;
use pagemill_arrow::{
    AnswerColumn as FileColumn, AnswerFile, AnswerSchema, ArrowOptions, NumericExtents,
};
use pagemill_io::WriterSink;
use pagemill_types::builtin::oid;

use crate::catalog::Catalog;
use crate::error::{Error, Result, SqlState, StatementError};
use crate::functions::text_form::payload_of;
use crate::session::{AnswerColumn, AnswerSink};
use crate::types::{PgType, RECORD, RECORDS, UNKNOWN};

/// Writes one answer as a file.
pub(crate) struct WholeFile<W: Write + Send> {
    options: ArrowOptions,
    /// Bytes that may be kept until the end.
    memory: Option<usize>,
    /// Until the file begins.
    out: Option<W>,
    answer: Option<Answer<W>>,
}

/// An answer that has begun.
struct Answer<W: Write + Send> {
    catalog: Arc<Catalog>,
    types: Vec<PgType>,
    columns: Vec<FileColumn>,
    extents: NumericExtents,
    kept: Vec<RecordBatch>,
    kept_bytes: usize,
    file: Option<AnswerFile<WriterSink<W>>>,
}

impl<W: Write + Send> WholeFile<W> {
    pub(crate) fn new(options: ArrowOptions, memory: Option<usize>, out: W) -> Self {
        Self { options, memory, out: Some(out), answer: None }
    }

    fn begin_file(&mut self) -> Result<()> {
        let answer = self.answer.as_mut().expect("an answer begins before its rows"); // infallible: by the trait
        let out = self.out.take().expect("a file begins once"); // infallible: here alone, for one answer
        let sink = WriterSink::new(out, "the answer's file");
        let values = answer.catalog.values();
        let schema = AnswerSchema { columns: &answer.columns, extents: &answer.extents };
        let file = AnswerFile::begin(values, schema, &self.options, sink);
        answer.file = Some(file.map_err(in_words)?);
        Ok(())
    }
}

impl<W: Write + Send> Answer<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let Self { catalog, types, file, .. } = self;
        let file = file.as_mut().expect("the file has begun"); // infallible: of the callers
        for row in 0..batch.num_rows() {
            let mut payloads = Vec::with_capacity(types.len());
            for (ty, array) in types.iter().zip(batch.columns()) {
                let payload = || payload_of(catalog, *ty, array, row);
                payloads.push(array.is_valid(row).then(payload).transpose()?);
            }
            let cells: Vec<Option<&[u8]>> = payloads.iter().map(Option::as_deref).collect();
            file.push(&cells).map_err(in_words)?;
        }
        Ok(())
    }

    fn keep(&mut self, batch: &RecordBatch, most: Option<usize>) -> Result<()> {
        for column in self.extents.columns() {
            let array = batch.column(column);
            for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
                let payload = payload_of(&self.catalog, self.types[column], array, row)?;
                self.extents.add(column, &payload);
            }
        }
        self.kept_bytes += batch.get_array_memory_size();
        if most.is_some_and(|most| self.kept_bytes > most) {
            let message = "an answer with numerics of no declared size is kept until its end, and \
                           does not fit into the memory allowed";
            let error = StatementError::new(SqlState::OUT_OF_MEMORY, message);
            return Err(error.with_hint("Cast them to numeric(p,s) or text.").into());
        }
        self.kept.push(batch.clone());
        Ok(())
    }
}

impl<W: Write + Send> AnswerSink for WholeFile<W> {
    fn begin(&mut self, catalog: &Arc<Catalog>, columns: &[AnswerColumn]) -> Result<()> {
        let is_record = |column: &&AnswerColumn| [RECORD, RECORDS].contains(&column.ty.oid);
        if let Some(record) = columns.iter().find(is_record) {
            let what = format!("a record as a column of a file, \"{}\",", record.name);
            return Err(StatementError::unsupported(what).with_hint("Cast it to text.").into());
        }
        let types = columns.iter().map(|column| match column.ty.oid {
            UNKNOWN => PgType::new(oid::TEXT),
            _ => column.ty,
        });
        let types: Vec<PgType> = types.collect();
        let of = |(column, ty): (&AnswerColumn, &PgType)| FileColumn {
            name: column.name.clone(),
            type_oid: ty.oid,
            modifier: ty.modifier,
        };
        let columns: Vec<FileColumn> = columns.iter().zip(&types).map(of).collect();
        let extents = NumericExtents::new(catalog.values(), &columns, &self.options)?;
        let is_settled = extents.columns().is_empty();
        let catalog = catalog.clone();
        let (kept, kept_bytes, file) = (Vec::new(), 0, None);
        self.answer = Some(Answer { catalog, types, columns, extents, kept, kept_bytes, file });
        if is_settled { self.begin_file() } else { Ok(()) }
    }

    fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let answer = self.answer.as_mut().expect("an answer begins before its rows"); // infallible: by the trait
        match answer.file {
            Some(_) => answer.write(batch),
            None => answer.keep(batch, self.memory),
        }
    }

    fn end(&mut self, _: u64) -> Result<()> {
        if self.answer.as_ref().is_some_and(|answer| answer.file.is_none()) {
            self.begin_file()?;
        }
        let mut answer = self.answer.take().expect("an answer begins before its end"); // infallible: by the trait
        for batch in std::mem::take(&mut answer.kept) {
            answer.write(&batch)?;
        }
        let file = answer.file.take().expect("the file has begun"); // infallible: above, or before
        file.finish().map_err(in_words)
    }
}

/// The error of the file in the words of a statement.
fn in_words(error: pagemill_arrow::Error) -> Error {
    use pagemill_arrow::Error as Arrow;
    match error {
        Arrow::Engine(error) => error.into(),
        Arrow::Unfit(unfit) => {
            let error = StatementError::new(SqlState("22000"), unfit.to_string());
            error.with_hint("Cast it to text, or choose its rows by a condition.").into()
        }
        Arrow::Usage(reason) => StatementError::new(SqlState("42701"), reason).into(),
        other => other.into(),
    }
}
