//! Rows that no table has into a file: those of a statement's answer, value by value, each as the bytes of a tuple without their
//! length word.
//!
//! Types become what they become when a table is exported. How large the decimals are that hold numerics of no declared size is
//! asked before the file begins ([`NumericExtents`]), so whoever has such columns looks at their values first.
//!
//! Invariant: a value is written as it is, or its row is refused by its number.

use pagemill_cluster::ValueCatalog;
use pagemill_engine::encoding::Transcoder;
use pagemill_format::Oid;
use pagemill_io::ByteSink;
use pagemill_types::value::Numeric;

use arrow_array::{ArrayRef, RecordBatch};

use crate::column_builder::ColumnBuilder;
use crate::conversion::{Context, Fault};
use crate::error::{Error, Remedy, Result, RowPlace, Unfit};
use crate::file_metadata::{database_metadata, geo_metadata, with_metadata};
use crate::file_writer::{Encoder, TableFile};
use crate::measure::Extent;
use crate::options::{ArrowOptions, FileFormat, NumericChoice};
use crate::plan::{Measured, Plan, is_open_numeric};

/// Rows of a batch, and bytes, about.
const BATCH_ROWS: u64 = 8192;
const BATCH_BYTES: usize = 16 << 20;

/// Bytes of a value, at most: the server's own limit.
const MOST_VALUE_BYTES: usize = (1 << 30) - 5;

/// A column of an answer.
#[derive(Debug, Clone)]
pub struct AnswerColumn {
    /// Its name.
    pub name: String,
    /// Its type in `pg_type`.
    pub type_oid: Oid,
    /// The modifier, -1 for none.
    pub modifier: i32,
}

/// How large the numerics of an answer are whose types do not say it.
#[derive(Debug)]
pub struct NumericExtents(Vec<(usize, Extent)>);

impl NumericExtents {
    /// Of nothing so far.
    ///
    /// # Errors
    /// When a type is not known.
    pub fn new(
        catalog: &ValueCatalog,
        columns: &[AnswerColumn],
        options: &ArrowOptions,
    ) -> Result<Self> {
        let mut open = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            if options.numeric == NumericChoice::Auto
                && is_open_numeric(catalog, column.type_oid, column.modifier)?
            {
                open.push((at, Extent::NOTHING));
            }
        }
        Ok(Self(open))
    }

    /// The columns to look at.
    pub fn columns(&self) -> Vec<usize> {
        self.0.iter().map(|(at, _)| *at).collect()
    }

    /// Looks at a value. One that is no numeric is passed over: it is met again.
    pub fn add(&mut self, column: usize, payload: &[u8]) {
        let found = self.0.iter_mut().find(|(at, _)| *at == column);
        if let (Some((_, extent)), Ok(number)) = (found, Numeric::parse(payload)) {
            extent.add(&number);
        }
    }

    fn measured(&self) -> Measured {
        self.0.iter().map(|(at, extent)| (*at, extent.decimal())).collect()
    }
}

/// What an answer's columns are.
#[derive(Debug, Clone, Copy)]
pub struct AnswerSchema<'a> {
    /// Their names and types.
    pub columns: &'a [AnswerColumn],
    /// What was measured of those whose type does not say how large their numbers are.
    pub extents: &'a NumericExtents,
}

/// A file of an answer's rows in the making.
pub struct AnswerFile<S: ByteSink + Send> {
    plan: Plan,
    columns: Vec<ColumnBuilder>,
    context: Context,
    file: TableFile<S>,
    encoder: Encoder,
    /// Rows in batches that are done, and in the one that is not.
    done: u64,
    pending: u64,
    /// A value as it would lie in a tuple.
    datum: Vec<u8>,
}

impl<S: ByteSink + Send> AnswerFile<S> {
    /// Begins a file.
    ///
    /// # Errors
    /// When two columns have one name, a type is not known, the format has not the compression, or the output fails.
    pub fn begin(
        catalog: &ValueCatalog,
        answer: AnswerSchema<'_>,
        options: &ArrowOptions,
        sink: S,
    ) -> Result<Self> {
        let AnswerSchema { columns, extents } = answer;
        refuse_same_names(columns)?;
        let plan = Plan::of_answer(catalog, columns, options, &extents.measured())?;
        plan.refuse_no_columns(options)?;
        let mut metadata = database_metadata(catalog.database());
        if options.format == FileFormat::Parquet {
            metadata.extend(geo_metadata(&plan.columns).map(|found| ("geo".to_owned(), found)));
        }
        let schema = with_metadata(plan.schema().fields(), metadata);
        let (file, setup) = TableFile::begin(sink, &schema, options)?;
        let transcoder =
            Transcoder::new(plan.encoding, "UTF8").map_err(pagemill_engine::Error::from)?;
        let (lookups, buffer, infinity) = (catalog.lookups(), Vec::new(), options.infinity);
        Ok(Self {
            columns: plan.columns.iter().map(ColumnBuilder::new).collect(),
            plan,
            context: Context { lookups, transcoder, infinity, buffer },
            file,
            encoder: Encoder::new(&setup),
            done: 0,
            pending: 0,
            datum: Vec::new(),
        })
    }

    /// Appends a row: a value for each column, `None` for NULL.
    ///
    /// # Errors
    /// When a value has no place in its column, or the output fails.
    pub fn push(&mut self, row: &[Option<&[u8]>]) -> Result<()> {
        assert!(row.len() == self.columns.len(), "a value for each column");
        while let Some((column, fault)) = self.try_push(row) {
            let pending = usize::try_from(self.pending).expect("rows of a batch"); // infallible: below BATCH_ROWS
            self.columns.iter_mut().for_each(|column| column.truncate(pending));
            match fault {
                Fault::Full => self.end_batch()?,
                Fault::Damaged(error) => {
                    return Err(self.unfit(column, error.to_string(), Remedy::Columns));
                }
                Fault::Unfit(what, remedy) => return Err(self.unfit(column, what, remedy)),
            }
        }
        self.pending += 1;
        let bytes = || self.columns.iter().map(ColumnBuilder::bytes).sum::<usize>();
        match self.pending >= BATCH_ROWS || bytes() >= BATCH_BYTES {
            true => self.end_batch(),
            false => Ok(()),
        }
    }

    fn try_push(&mut self, row: &[Option<&[u8]>]) -> Option<(usize, Fault)> {
        let Self { plan, columns, context, datum, .. } = self;
        for (at, (payload, column)) in row.iter().zip(columns).enumerate() {
            if payload.is_some_and(|payload| payload.len() > MOST_VALUE_BYTES) {
                let what = "a value of 1 GB or more".to_owned();
                return Some((at, Fault::Unfit(what, Remedy::Columns)));
            }
            let cell = payload.map(|payload| {
                as_datum(plan.columns[at].value_type.layout.len, payload, datum);
                &datum[..]
            });
            if let Err((_, fault)) = column.extend(std::iter::once(cell), context) {
                return Some((at, fault));
            }
        }
        None
    }

    #[cold]
    fn unfit(&self, column: usize, what: String, remedy: Remedy) -> Error {
        let row = RowPlace::Answer(self.done + self.pending + 1);
        let column = self.plan.columns[column].name.clone();
        Error::Unfit(Box::new(Unfit { row, column, what, remedy }))
    }

    fn end_batch(&mut self) -> Result<()> {
        let schema = self.plan.schema().clone();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for (column, field) in self.columns.iter_mut().zip(schema.fields()) {
            let found = column.finish(field.data_type());
            arrays.push(found.map_err(|fault| {
                let row = RowPlace::Answer(self.done + fault.at as u64 + 1);
                let (column, what) = (field.name().clone(), "a text that is not UTF-8".to_owned());
                Error::Unfit(Box::new(Unfit { row, column, what, remedy: Remedy::Columns }))
            })?);
        }
        self.done += std::mem::take(&mut self.pending);
        let batch = RecordBatch::try_new(schema, arrays)?;
        self.encoder.push(batch, &mut |piece| self.file.write(piece))
    }

    /// Writes the rest, and what ends the file.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(mut self) -> Result<()> {
        if self.pending > 0 {
            self.end_batch()?;
        }
        self.encoder.finish(&mut |piece| self.file.write(piece))?;
        self.file.finish()
    }
}

/// Readers know columns by their names.
fn refuse_same_names(columns: &[AnswerColumn]) -> Result<()> {
    for (at, column) in columns.iter().enumerate() {
        if columns[..at].iter().any(|other| other.name == column.name) {
            let reason = format!(
                "two columns of the answer are named \"{}\": give them names that differ, with AS",
                column.name
            );
            return Err(Error::Usage(reason));
        }
    }
    Ok(())
}

/// The bytes as a tuple has them: a length word, filled up to a fixed length, or ended by a zero byte.
fn as_datum(len: i16, payload: &[u8], out: &mut Vec<u8>) {
    out.clear();
    match usize::try_from(len) {
        Ok(len) => {
            out.extend_from_slice(payload);
            out.resize(len.max(payload.len()), 0);
        }
        Err(_) if len == -1 => {
            assert!(payload.len() <= MOST_VALUE_BYTES, "values are below 1 GB");
            out.extend((((payload.len() + 4) as u32) << 2).to_le_bytes());
            out.extend_from_slice(payload);
        }
        Err(_) => {
            out.extend_from_slice(payload);
            out.push(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_what_a_tuple_has_around_them() {
        let datum = |len, payload: &[u8]| {
            let mut out = vec![9];
            as_datum(len, payload, &mut out);
            out
        };
        assert_eq!(datum(4, &[1, 0, 0, 0]), [1, 0, 0, 0]);
        assert_eq!(datum(8, b"ab"), *b"ab\0\0\0\0\0\0", "a name");
        assert_eq!(datum(-1, b"abc"), [28, 0, 0, 0, b'a', b'b', b'c']);
        assert_eq!(datum(-2, b"abc"), *b"abc\0");
    }
}
