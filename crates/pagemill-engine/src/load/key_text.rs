//! The key of an index entry as PostgreSQL tells it: `(a, b)=(1, x)`.
//!
//! For messages only, so what cannot be printed is a question mark and no error.

use pagemill_cluster::names::quote_identifier;
use pagemill_cluster::{Database, UnknownTypes, ValueCatalog};
use pagemill_format::btree::IndexTuple;
use pagemill_format::tuple::{Span, TupleData, TupleLayout};
use pagemill_format::types::output::ValueWriter;

use super::index_plan::IndexPlan;
use crate::encoding::readable_name;

/// Names and values; what cannot be printed is a question mark.
pub(super) fn key_text(database: &Database, plan: &IndexPlan, entry: &[u8]) -> String {
    let version = database.cluster().version();
    let quoted = |name: &String| {
        let mut quoted = Vec::new();
        quote_identifier(name.as_bytes(), version, &mut quoted);
        String::from_utf8_lossy(&quoted).into_owned()
    };
    let names = plan.key_names.iter().map(quoted).collect::<Vec<_>>().join(", ");
    let values =
        values(database, plan, entry).unwrap_or_else(|| vec!["?".into(); plan.key_names.len()]);
    format!("({names})=({})", values.join(", "))
}

fn values(database: &Database, plan: &IndexPlan, entry: &[u8]) -> Option<Vec<String>> {
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
