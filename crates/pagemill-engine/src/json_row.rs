//! From a tuple to a line of JSON: an object with the columns' names and values, as `row_to_json` writes it.
//!
//! What stands before each value is put together once. Texts are escaped straight from where they lie into the output.
//!
//! Invariant: a row is one line, as no value has a line break of its own.
//!
//! Source: `composite_to_json` in `src/backend/utils/adt/json.c`, PostgreSQL 14 to 18.

use pagemill_cluster::ValueLookups;
use pagemill_format::tuple::{Span, TupleData};
use pagemill_format::varlena::Varlena;
use pagemill_types::ScalarWriter;
use pagemill_types::decode::Decode;
use pagemill_types::json::{JsonForm, write_json_string};
use pagemill_types::output::{TypeOutput, ValueWriter};

use crate::row_writer::{PrintedColumn, ValueFault};

/// Rows of these columns as objects.
pub(crate) struct JsonRow<'a> {
    columns: &'a [PrintedColumn],
    fields: Vec<Field>,
}

struct Field {
    /// A brace or comma, the name, and a colon.
    opening: Box<[u8]>,
    way: Way,
}

/// How values get into the output, the shorter ways first.
enum Way {
    /// Integers: numbers of fixed length.
    Direct(ScalarWriter),
    /// The bytes are the text.
    Text,
    Other(JsonForm),
}

impl Way {
    fn of(column: &PrintedColumn) -> Self {
        let len = column.value_type.layout.len;
        let is_integer =
            matches!(column.value_type.decode, Decode::Int2 | Decode::Int4 | Decode::Int8);
        match (JsonForm::of(&column.value_type), &column.value_type.output) {
            (JsonForm::Number, TypeOutput::Scalar { write, .. }) if is_integer => {
                Self::Direct(*write)
            }
            (JsonForm::Text, TypeOutput::Verbatim) if len == -1 => Self::Text,
            (form, _) => Self::Other(form),
        }
    }
}

impl<'a> JsonRow<'a> {
    pub(crate) fn new(columns: &'a [PrintedColumn]) -> Self {
        let field = |(number, column): (usize, &PrintedColumn)| {
            let mut opening = vec![if number == 0 { b'{' } else { b',' }];
            write_json_string(&column.name, &mut opening);
            opening.push(b':');
            Field { opening: opening.into(), way: Way::of(column) }
        };
        Self { columns, fields: columns.iter().enumerate().map(field).collect() }
    }

    /// Appends a row, whose attributes lie at these places.
    pub(crate) fn write(
        &self,
        data: TupleData<'_>,
        spans: &[Span],
        lookups: &mut ValueLookups,
        out: &mut Vec<u8>,
    ) -> Result<(), ValueFault> {
        if self.fields.is_empty() {
            out.push(b'{');
        }
        for (index, (field, column)) in self.fields.iter().zip(self.columns).enumerate() {
            out.extend_from_slice(&field.opening);
            match column.raw(data, spans) {
                None => out.extend_from_slice(b"null"),
                Some(raw) => field
                    .write(column, raw, lookups, out)
                    .map_err(|error| ValueFault { column: Some(index), error })?,
            }
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }
}

impl Field {
    #[inline]
    fn write(
        &self,
        column: &PrintedColumn,
        raw: &[u8],
        lookups: &mut ValueLookups,
        out: &mut Vec<u8>,
    ) -> pagemill_format::Result<()> {
        let form = match self.way {
            Way::Direct(write) => return write(raw, out),
            Way::Text => match Varlena::parse(raw)? {
                Varlena::Plain(text) => {
                    write_json_string(text, out);
                    return Ok(());
                }
                _ => JsonForm::Text,
            },
            Way::Other(form) => form,
        };
        ValueWriter::new(lookups).write_json(&column.value_type, form, raw, out)
    }
}
