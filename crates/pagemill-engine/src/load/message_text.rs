//! Rows and keys in messages: a row that violates a constraint, `(1, null, x)`, and the key of an index entry,
//! `(a, b)=(1, x)`.
//!
//! For messages only, so what cannot be printed is a question mark and no error.
//!
//! Source: `ExecBuildSlotValueDescription` in `src/backend/executor/execMain.c`, PostgreSQL 14 to 18.

use pagemill_cluster::names::quote_identifier;
use pagemill_cluster::{Column, Database, UnknownTypes, ValueCatalog};
use pagemill_format::btree::IndexTuple;
use pagemill_format::tuple::{Span, TupleData, TupleLayout};
use pagemill_format::tuple_data_builder::SpannedRow;
use pagemill_format::varlena::VARLENA_HEADER_BYTES;
use pagemill_types::output::ValueWriter;

use super::index::IndexPlan;
use crate::copy::from::Row as CopyRow;
use crate::encoding::readable_name;

/// Bytes of a value that are shown.
const MOST_BYTES: usize = 64;

/// The values of a row, dropped columns left out.
pub(super) fn row_text(
    database: &Database,
    columns: &[Column],
    values: SpannedRow<'_>,
    row: &CopyRow<'_>,
) -> String {
    let live = columns.iter().zip(values.spans).filter(|(column, _)| !column.dropped);
    value_texts(database, live.map(|(column, span)| (column, span.of(values.bytes))), row)
}

/// Values of these columns, `None` for a null.
pub(super) fn value_texts<'r>(
    database: &Database,
    values: impl Iterator<Item = (&'r Column, Option<&'r [u8]>)>,
    row: &CopyRow<'_>,
) -> String {
    let catalog = ValueCatalog::new(database, UnknownTypes::Hex).ok();
    let texts = values.map(|(column, payload)| {
        let Some(payload) = payload else { return "null".to_owned() };
        let text = catalog.as_ref().and_then(|catalog| value_text(catalog, column, payload));
        text.map_or_else(|| "?".to_owned(), |text| row.excerpt(&text, MOST_BYTES))
    });
    format!("({})", texts.collect::<Vec<_>>().join(", "))
}

fn value_text(catalog: &ValueCatalog, column: &Column, payload: &[u8]) -> Option<Vec<u8>> {
    let value_type = catalog.value_type(column.type_oid).ok()?;
    let len = column.layout.len;
    let mut stored = Vec::new();
    if len == -1 {
        let word = u32::try_from(payload.len() + VARLENA_HEADER_BYTES).ok()?.checked_mul(4)?;
        stored.extend_from_slice(&word.to_le_bytes());
    }
    stored.extend_from_slice(payload);
    let (mut lookups, mut text) = (catalog.lookups(), Vec::new());
    ValueWriter::new(&mut lookups).write(&value_type.output, len, &stored, &mut text).ok()?;
    Some(text)
}

/// The key of an index entry, names and values: `(a, b)=(1, x)`.
pub(super) fn key_text(database: &Database, plan: &IndexPlan, entry: &[u8]) -> String {
    let version = database.cluster().version();
    let quoted = |name: &String| {
        let mut quoted = Vec::new();
        quote_identifier(name.as_bytes(), version, &mut quoted);
        String::from_utf8_lossy(&quoted).into_owned()
    };
    let names = plan.key_names.iter().map(quoted).collect::<Vec<_>>().join(", ");
    let values =
        key_values(database, plan, entry).unwrap_or_else(|| vec!["?".into(); plan.key_names.len()]);
    format!("({names})=({})", values.join(", "))
}

fn key_values(database: &Database, plan: &IndexPlan, entry: &[u8]) -> Option<Vec<String>> {
    let tuple = IndexTuple::of_bytes(entry).ok()?;
    let layout = TupleLayout::new(plan.layouts.iter().map(|column| column.layout).collect());
    let nulls = tuple.null_bitmap().map(|bits| &bits[..]);
    let data = TupleData { attributes: plan.layouts.len(), nulls, data: tuple.key() };
    let mut spans = Vec::new();
    layout.spans(&data, plan.key_names.len(), &mut spans).ok()?;
    let catalog = ValueCatalog::new(database, UnknownTypes::Hex).ok()?;
    let mut lookups = catalog.lookups();
    let mut value = |(at, span): (usize, &Span)| {
        let Some(raw) = span.of(data.data) else { return Some("null".to_owned()) };
        let of = catalog.value_type(*plan.key_types.get(at)?).ok()?;
        let mut text = Vec::new();
        let len = plan.layouts.get(at)?.layout.len;
        ValueWriter::new(&mut lookups).write(&of.output, len, raw, &mut text).ok()?;
        Some(readable_name(database.row().encoding, &text))
    };
    spans.iter().enumerate().map(&mut value).collect()
}
