//! A row as PostgreSQL tells it when it violates a constraint: `(1, null, x)`.
//!
//! For messages only, so what cannot be printed is a question mark and no error.
//!
//! Source: `ExecBuildSlotValueDescription` in `src/backend/executor/execMain.c`, PostgreSQL 14 to 18.

use pagemill_cluster::{Column, Database, UnknownTypes, ValueCatalog};
use pagemill_format::tuple::Span;
use pagemill_format::types::output::ValueWriter;
use pagemill_format::varlena::VARLENA_HEADER_BYTES;

use crate::copy_input::Row as CopyRow;

/// Bytes of a value that are shown.
const MOST_BYTES: usize = 64;

/// The values of a row whose payloads lie in `payloads`, dropped columns left out.
pub(super) fn row_text(
    database: &Database,
    columns: &[Column],
    (payloads, spans): (&[u8], &[Span]),
    row: &CopyRow<'_>,
) -> String {
    let live = columns.iter().zip(spans).filter(|(column, _)| !column.dropped);
    value_texts(database, live.map(|(column, span)| (column, span.of(payloads))), row)
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
