//! Composite values: `(a,b,"c d")`, empty for null.
//!
//! A value older than its type's last attributes has NULL there (composite types have no
//! `attmissingval`); dropped attributes keep their bytes and are not printed.
//! Source: `record_out` in `src/backend/utils/adt/rowtypes.c`, PostgreSQL 14 to 18.

use super::output::{CompositeAttribute, ValueWriter, is_space, quote_tail};
use crate::error::Result;
use crate::tuple::{Span, TupleData, TupleLayout};

/// Appends a composite value.
pub(super) fn write_composite(
    writer: &mut ValueWriter<'_>,
    attributes: &[CompositeAttribute],
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let (_, _, tuple) = TupleData::parse_composite(payload)?;
    let layout = TupleLayout::new(attributes.iter().map(|a| a.layout).collect());
    let mut spans = Vec::new();
    layout.spans(&tuple, attributes.len(), &mut spans)?;
    out.push(b'(');
    let mut first = true;
    for (attribute, span) in attributes.iter().zip(&spans) {
        let Some(output) = &attribute.output else { continue };
        if !first {
            out.push(b',');
        }
        first = false;
        if *span == Span::NULL || *span == Span::MISSING {
            continue;
        }
        let Some(raw) = span.of(tuple.data) else { continue };
        let start = out.len();
        writer.write(output, attribute.layout.len, raw, out)?;
        quote(out, start);
    }
    out.push(b')');
    Ok(())
}

fn quote(out: &mut Vec<u8>, start: usize) {
    let text = &out[start..];
    let special = |b: &u8| matches!(b, b'"' | b'\\' | b'(' | b')' | b',') || is_space(*b);
    if text.is_empty() || text.iter().any(special) {
        quote_tail(out, start, |b| matches!(b, b'"' | b'\\').then_some(b));
    }
}
