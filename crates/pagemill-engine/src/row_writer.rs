//! From a tuple to a line of COPY, or of JSON: the hot loop of `export`.
//!
//! What is known per column (its place, its type's output, whether its text can need escaping)
//! is worked out once. Per value nothing is allocated, and text that lies in the page is escaped
//! straight from there into the output buffer.
//!
//! Invariant: a row that fails leaves the buffer as it was before it.

use std::sync::Arc;

use pagemill_cluster::{Column, Generated, Relation, ValueCatalog, ValueLookups};
use pagemill_format::tuple::{HeapTuple, Span, TupleData, TupleLayout};
use pagemill_format::varlena::Varlena;
use pagemill_format::{Error as FormatError, Oid};
use pagemill_types::builtin::oid::INT4;
use pagemill_types::output::{TypeOutput, ValueType, ValueWriter};
use pagemill_types::{ScalarWriter, integer};

use crate::copy::to::CopyFormat;
use crate::encoding::{Transcoder, readable_name, utf8_name};
use crate::error::{Error, Result};
use crate::export::{Export, RowForm};
use crate::json_row::JsonRow;
use crate::refusal::Refusal;

/// A scratch buffer that grew beyond this for one large value is given back.
const KEPT_SCRATCH_BYTES: usize = 1 << 20;

/// A column that is printed.
#[derive(Debug, Clone)]
pub(crate) struct PrintedColumn {
    /// Its position in the tuple, from 0.
    pub(crate) position: usize,
    pub(crate) name: Box<[u8]>,
    pub(crate) value_type: Arc<ValueType>,
    type_oid: Oid,
    len: i16,
    missing: Option<Box<[u8]>>,
}

impl PrintedColumn {
    /// The same column where it is at another position of another kind of tuple, which is never too
    /// old to have it.
    pub(crate) fn moved_to(&self, position: usize) -> Self {
        Self { position, missing: None, ..self.clone() }
    }

    /// Its value in a tuple whose attributes lie at these places; `None` for NULL.
    #[inline]
    pub(crate) fn raw<'v>(&'v self, data: TupleData<'v>, spans: &[Span]) -> Option<&'v [u8]> {
        match spans[self.position] {
            Span::MISSING => self.missing.as_deref(),
            span => span.of(data.data),
        }
    }
}

/// The columns COPY would print: all that are neither dropped nor generated, or those that are
/// named, in the order they are named.
///
/// # Errors
/// When a named column does not exist or has no stored values, or a type cannot be printed.
pub(crate) fn printed_columns(
    catalog: &ValueCatalog,
    relation: &Relation,
    named: Option<&[Box<[u8]>]>,
) -> Result<Vec<PrintedColumn>> {
    let (mut columns, mut unprintable) = (Vec::new(), Vec::new());
    for position in column_positions(catalog, relation, named)? {
        match printed_column(catalog, relation, position) {
            Ok(column) => columns.push(column),
            Err(pagemill_cluster::Error::Refused(reason)) => {
                unprintable.push((relation.columns[position].display_name(), *reason));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if unprintable.is_empty() {
        return Ok(columns);
    }
    // All of them are named at once, so that one look shows what to leave out.
    let relation = relation.display_name();
    Err(Error::refused(Refusal::Unprintable { relation, columns: unprintable }))
}

/// Where a relation has the columns that COPY would print: all that are neither dropped nor generated, or those that are
/// named, in the order they are named.
///
/// # Errors
/// When a named column does not exist or has no stored values.
pub fn column_positions(
    catalog: &ValueCatalog,
    relation: &Relation,
    named: Option<&[Box<[u8]>]>,
) -> Result<Vec<usize>> {
    let encoding = catalog.database().row().encoding;
    match named {
        None => Ok(all_columns(&relation.columns)),
        Some(names) => names.iter().map(|name| position_of(relation, encoding, name)).collect(),
    }
}

fn all_columns(columns: &[Column]) -> Vec<usize> {
    let printed = |(_, c): &(usize, &Column)| !c.dropped && c.generated == Generated::No;
    columns.iter().enumerate().filter(printed).map(|(position, _)| position).collect()
}

/// A column by its name, as stored or as it would be typed.
fn position_of(relation: &Relation, encoding: i32, name: &[u8]) -> Result<usize> {
    let live = || relation.columns.iter().enumerate().filter(|(_, c)| !c.dropped);
    let found = live().find(|(_, c)| *c.name == *name || *utf8_name(encoding, &c.name) == *name);
    let Some((position, column)) = found else {
        let names: Vec<_> = live().map(|(_, c)| readable_name(encoding, &c.name)).collect();
        let name = String::from_utf8_lossy(name);
        let near = pagemill_cluster::names::nearest(&name, names.iter().map(String::as_str), 3);
        let near = near.into_iter().map(str::to_owned).collect();
        let what = format!("column \"{name}\" of {}", relation.display_name());
        return Err(pagemill_cluster::Error::NotFound { what, near }.into());
    };
    if column.generated == Generated::Virtual {
        let (column, relation) = (column.display_name(), relation.display_name());
        return Err(Error::refused(Refusal::VirtualColumn { column, relation }));
    }
    Ok(position)
}

fn printed_column(
    catalog: &ValueCatalog,
    relation: &Relation,
    position: usize,
) -> Result<PrintedColumn, pagemill_cluster::Error> {
    let column = &relation.columns[position];
    let value_type = catalog.value_type(column.type_oid)?;
    Ok(PrintedColumn {
        position,
        name: column.name.clone(),
        value_type,
        type_oid: column.type_oid,
        len: column.layout.len,
        missing: column.missing.clone(),
    })
}

/// How a column's values get from the tuple into the output, the shorter ways first.
#[derive(Clone, Copy)]
enum ColumnWriter {
    /// `int4`, with nothing to escape, together with the byte that follows it.
    Int4(u8),
    /// Of fixed length, printed by a function of the bytes, with nothing to escape: integers, dates.
    Direct(ScalarWriter),
    /// The bytes are the text, to be escaped.
    Text,
    /// Printed, with nothing to escape.
    Untouched,
    /// Printed, then escaped.
    Checked,
}

impl ColumnWriter {
    fn of(column: &PrintedColumn, plain_is_safe: bool, end: u8) -> Self {
        match (&column.value_type.output, column.len) {
            (TypeOutput::Scalar { .. }, 4) if plain_is_safe && column.type_oid == INT4 => {
                Self::Int4(end)
            }
            (TypeOutput::Scalar { write, plain: true }, 1..) if plain_is_safe => {
                Self::Direct(*write)
            }
            (TypeOutput::Verbatim, -1) => Self::Text,
            (output, _) if output.is_plain() && plain_is_safe => Self::Untouched,
            _ => Self::Checked,
        }
    }
}

/// Rows that print as `int4` columns only, all of them among the leading columns of fixed length: what they need is
/// known before the tuple is looked at, as long as nothing in it is null.
struct IntegerRow {
    /// Where each value begins, and the byte after its text.
    fields: Vec<(usize, u8)>,
    /// Bytes a tuple must have.
    len: usize,
}

impl IntegerRow {
    fn of(layout: &TupleLayout, columns: &[PrintedColumn], ways: &[ColumnWriter]) -> Option<Self> {
        let mut fields = Vec::new();
        let mut len = 0;
        for (column, way) in columns.iter().zip(ways) {
            let (ColumnWriter::Int4(end), Some(span)) = (way, layout.fixed_span(column.position))
            else {
                return None;
            };
            fields.push((span.start, *end));
            len = len.max(span.end);
        }
        (!fields.is_empty()).then_some(Self { fields, len })
    }

    #[inline]
    fn is_in(&self, data: &TupleData<'_>, depth: usize) -> bool {
        data.attributes >= depth && data.leading_values() >= depth && data.data.len() >= self.len
    }
}

/// A value that cannot be printed.
pub(crate) struct ValueFault {
    /// Index into the printed columns, or `None` where the tuple cannot be taken apart.
    pub(crate) column: Option<usize>,
    pub(crate) error: FormatError,
}

/// Writes rows of one table; one per thread.
pub(crate) struct RowWriter<'a> {
    relation: &'a Relation,
    columns: &'a [PrintedColumn],
    /// The way each printed column goes.
    ways: Vec<ColumnWriter>,
    integers: Option<IntegerRow>,
    copy: &'a CopyFormat,
    /// Rows are objects instead of lines of COPY.
    json: Option<JsonRow<'a>>,
    transcoder: Option<&'a Transcoder>,
    lookups: ValueLookups,
    depth: usize,
    spans: Vec<Span>,
    scratch: Vec<u8>,
}

impl<'a> RowWriter<'a> {
    pub(crate) fn new(
        export: &'a Export<'_>,
        relation: &'a Relation,
        columns: &'a [PrintedColumn],
    ) -> Self {
        let Export { catalog, copy, transcoder, .. } = export;
        let json = (export.form == RowForm::Json).then(|| JsonRow::new(columns));
        let end = |i| if i + 1 < columns.len() { copy.delimiter() } else { b'\n' };
        let way = |(i, column)| ColumnWriter::of(column, copy.plain_is_safe(i), end(i));
        let ways: Vec<ColumnWriter> = (0..).zip(columns).map(way).collect();
        let integers = IntegerRow::of(&relation.layout, columns, &ways).filter(|_| json.is_none());
        let depth = columns.iter().map(|c| c.position + 1).max().unwrap_or(0);
        Self {
            relation,
            columns,
            ways,
            integers,
            copy,
            json,
            transcoder: transcoder.as_ref(),
            lookups: catalog.lookups(),
            depth,
            spans: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Pages the lookups found in their caches, and those they had to read.
    pub(crate) fn cache_counts(&self) -> (u64, u64) {
        self.lookups.cache_counts()
    }

    /// Appends a row; on an error, nothing.
    #[inline]
    pub(crate) fn write(
        &mut self,
        tuple: HeapTuple<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ValueFault> {
        self.write_data(tuple.data(), out)
    }

    /// Appends a row from the attributes of a tuple of any kind; on an error, nothing.
    #[inline]
    pub(crate) fn write_data(
        &mut self,
        data: TupleData<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ValueFault> {
        if let Some(row) = &self.integers
            && row.is_in(&data, self.depth)
        {
            integer::write_int4_row(data.data, &row.fields, out);
            return Ok(());
        }
        let start = out.len();
        let written = self.write_columns(data, out).and_then(|()| self.transcode(start, out));
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    fn write_columns(&mut self, data: TupleData<'_>, out: &mut Vec<u8>) -> Result<(), ValueFault> {
        self.relation
            .layout
            .spans(&data, self.depth, &mut self.spans)
            .map_err(|error| ValueFault { column: None, error })?;
        let columns = self.columns;
        if let Some(json) = &self.json {
            return json.write(data, &self.spans, &mut self.lookups, out);
        }
        for (index, column) in columns.iter().enumerate() {
            let Some(raw) = column.raw(data, &self.spans) else {
                self.copy.write_null(out);
                self.end_field(index, out);
                continue;
            };
            self.write_value(index, column, raw, out)
                .map_err(|error| ValueFault { column: Some(index), error })?;
        }
        if columns.is_empty() {
            self.copy.end_row(out);
        }
        Ok(())
    }

    /// What follows a field: the delimiter, or the end of the row.
    #[inline]
    fn end_field(&self, index: usize, out: &mut Vec<u8>) {
        if index + 1 < self.columns.len() {
            self.copy.separate(out)
        } else {
            self.copy.end_row(out)
        }
    }

    #[inline]
    fn write_value(
        &mut self,
        index: usize,
        column: &PrintedColumn,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> pagemill_format::Result<()> {
        match self.ways[index] {
            ColumnWriter::Int4(end) => return integer::write_int4_then(raw, end, out),
            ColumnWriter::Direct(write) => write(raw, out)?,
            ColumnWriter::Text => self.write_text(index, raw, out)?,
            ColumnWriter::Untouched => {
                self.print(column, raw, out)?;
            }
            ColumnWriter::Checked => {
                let start = out.len();
                self.print(column, raw, out)?;
                self.copy.finish_field(index, start, out);
            }
        }
        self.end_field(index, out);
        Ok(())
    }

    #[inline]
    fn print(
        &mut self,
        column: &PrintedColumn,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> pagemill_format::Result<()> {
        let output = &column.value_type.output;
        ValueWriter::new(&mut self.lookups).write(output, column.len, raw, out)
    }

    /// Text goes from where it lies into the output in one pass.
    #[inline]
    fn write_text(
        &mut self,
        index: usize,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> pagemill_format::Result<()> {
        if let Varlena::Plain(text) = Varlena::parse(raw)? {
            self.copy.write_field(index, text, out);
            return Ok(());
        }
        self.scratch.clear();
        ValueWriter::new(&mut self.lookups).detoast(raw, &mut self.scratch)?;
        self.copy.write_field(index, &self.scratch, out);
        if self.scratch.capacity() > KEPT_SCRATCH_BYTES {
            self.scratch = Vec::new();
        }
        Ok(())
    }

    /// Every server encoding has ASCII as ASCII, so a finished row can be converted as a whole.
    fn transcode(&mut self, start: usize, out: &mut Vec<u8>) -> Result<(), ValueFault> {
        let Some(transcoder) = self.transcoder else { return Ok(()) };
        if out[start..].is_ascii() {
            return Ok(());
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(&out[start..]);
        out.truncate(start);
        transcoder
            .convert(&self.scratch, out)
            .map_err(|error| ValueFault { column: None, error: FormatError::lookup(error) })
    }
}
