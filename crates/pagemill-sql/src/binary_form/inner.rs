//! Ranges, multiranges and rows in binary form: flags or types, and values of other types behind their lengths.
//!
//! What comes in becomes a text, as what is read from that is brought into its order and checked as the server does.
//!
//! Invariant: a value inside has the form that its own type has.
//!
//! Source: `range_recv`, `range_send` in `src/backend/utils/adt/rangetypes.c`, `multirange_recv`, `multirange_send` in
//! `multirangetypes.c`, `record_recv`, `record_send` in `rowtypes.c`, PostgreSQL 18.

use std::sync::Arc;

use datafusion::logical_expr::Expr;
use pagemill_format::Oid;
use pagemill_types::decode::{decode, payload};
use pagemill_types::output::{TypeOutput, ValueType};
use pagemill_types::value::{RangeValue, Value};

use super::array::{Incoming, NULL};
use super::{BinaryForm, constant, print, put, wrong};
use crate::catalog::Catalog;
use crate::coerce::carrier_of;
use crate::error::{Result, SqlState, StatementError, fail};
use crate::functions::arrays::value::unexpected;
use crate::functions::text_form::{Printer, scalar_of_payload};
use crate::types::PgType;

/// `RANGE_EMPTY` and its kin in `src/include/utils/rangetypes.h`.
const EMPTY: u8 = 0x01;
const LOWER_INCLUSIVE: u8 = 0x02;
const UPPER_INCLUSIVE: u8 = 0x04;
const LOWER_INFINITE: u8 = 0x08;
const UPPER_INFINITE: u8 = 0x10;

/// The form of a value inside of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InnerForm {
    ty: PgType,
    len: i16,
    form: BinaryForm,
}

/// The form of a type that has others inside; `None` for one that has none.
pub(super) fn form(catalog: &Catalog, base: Oid) -> Result<Option<BinaryForm>> {
    if !catalog.type_row(base).is_some_and(|row| matches!(row.kind, b'r' | b'm' | b'c')) {
        return Ok(None);
    }
    let inner = |ty: &Arc<ValueType>| -> Result<InnerForm> {
        let (len, ty) = (ty.layout.len, PgType::new(ty.oid));
        Ok(InnerForm { ty, len, form: BinaryForm::of(catalog, ty)? })
    };
    Ok(match &catalog.values().value_type(base)?.output {
        TypeOutput::Range(subtype) => Some(BinaryForm::Range(Box::new(inner(subtype)?))),
        TypeOutput::Multirange(subtype) => Some(BinaryForm::Multirange(Box::new(inner(subtype)?))),
        TypeOutput::Composite(attributes) => {
            let types = attributes.iter().filter_map(|attribute| attribute.value_type.as_ref());
            Some(BinaryForm::Row(types.map(inner).collect::<Result<_>>()?))
        }
        _ => None,
    })
}

/// Appends a length, and behind it what `write` appends.
pub(super) fn framed(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let start = out.len();
    out.extend([0; 4]);
    write(out)?;
    let length = (out.len() - start - 4) as i32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Appends the binary form of a payload that has values inside.
pub(super) fn put_inner(
    catalog: &Arc<Catalog>,
    (ty, form): (PgType, &BinaryForm),
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let (base, _) = catalog.base_type(ty.oid, -1);
    let value_type = catalog.values().value_type(base)?;
    match (decode(&value_type, payload).map_err(damaged)?, form) {
        (Value::Range(range), BinaryForm::Range(inner)) => put_range(catalog, inner, &range, out),
        (Value::Multirange(ranges), BinaryForm::Multirange(inner)) => {
            out.extend((ranges.len() as i32).to_be_bytes());
            for range in ranges.ranges() {
                let range = range.map_err(damaged)?;
                framed(out, |out| put_range(catalog, inner, &range, out))?;
            }
            Ok(())
        }
        (Value::Composite(row), BinaryForm::Row(inner)) => {
            out.extend((inner.len() as i32).to_be_bytes());
            for ((_, raw), inner) in row.attributes().zip(inner) {
                out.extend(inner.ty.oid.0.to_be_bytes());
                match raw {
                    Some(raw) => framed(out, |out| put_value(catalog, inner, raw, out))?,
                    None => out.extend(NULL.to_be_bytes()),
                }
            }
            Ok(())
        }
        _ => unreachable!("the form follows from the type, as the value does"),
    }
}

fn damaged(error: pagemill_format::Error) -> StatementError {
    StatementError::new(SqlState::DATA_CORRUPTED, error.to_string())
}

fn put_range(
    catalog: &Arc<Catalog>,
    inner: &InnerForm,
    range: &RangeValue<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(range.flags());
    for bound in [range.lower, range.upper].into_iter().flatten() {
        framed(out, |out| put_value(catalog, inner, bound.value, out))?;
    }
    Ok(())
}

/// Appends the binary form of a value as it lies inside of another one.
fn put_value(
    catalog: &Arc<Catalog>,
    inner: &InnerForm,
    raw: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let InnerForm { ty, len, form } = inner;
    let (mut lookups, mut buffer) = (catalog.values().lookups(), Vec::new());
    let payload = payload(&mut lookups, *len, raw, &mut buffer).map_err(damaged)?;
    match form {
        BinaryForm::Text | BinaryForm::Versioned | BinaryForm::Numeric => {
            let value = scalar_of_payload(catalog, *ty, &carrier_of(catalog, *ty), payload)?;
            let value = value.to_array().map_err(unexpected)?;
            print((&mut Printer::new(catalog, *ty)?, form), &value, 0, out)
        }
        _ => put((catalog, *ty), form, payload, out),
    }
}

/// The text of a range by its binary form.
///
/// # Errors
/// When it is none, or a bound is none of its type.
pub(super) fn range_text(
    catalog: &Arc<Catalog>,
    inner: &InnerForm,
    bytes: &[u8],
) -> Result<String> {
    let Some((&flags, rest)) = bytes.split_first() else { return wrong() };
    let mut incoming = Incoming(rest);
    let mut bound = |infinite: u8| match flags & (EMPTY | infinite) {
        0 => match incoming.element()? {
            Some(bytes) => Ok(quoted(&text_of(catalog, inner, bytes)?)),
            None => wrong(),
        },
        _ => Ok(String::new()),
    };
    let (lower, upper) = (bound(LOWER_INFINITE)?, bound(UPPER_INFINITE)?);
    if !incoming.0.is_empty() {
        return wrong();
    }
    if flags & EMPTY != 0 {
        return Ok("empty".to_owned());
    }
    let open = if flags & LOWER_INCLUSIVE != 0 { '[' } else { '(' };
    let close = if flags & UPPER_INCLUSIVE != 0 { ']' } else { ')' };
    Ok(format!("{open}{lower},{upper}{close}"))
}

/// The same of a multirange.
///
/// # Errors
/// Likewise.
pub(super) fn multirange_text(
    catalog: &Arc<Catalog>,
    inner: &InnerForm,
    bytes: &[u8],
) -> Result<String> {
    let mut incoming = Incoming(bytes);
    let (count, mut ranges) = (incoming.word()?, Vec::new());
    for _ in 0..count {
        let Some(bytes) = incoming.element()? else { return wrong() };
        ranges.push(range_text(catalog, inner, bytes)?);
    }
    match incoming.0.is_empty() {
        true => Ok(format!("{{{}}}", ranges.join(","))),
        false => wrong(),
    }
}

/// The same of a row.
///
/// # Errors
/// Likewise, and when it has other columns.
pub(super) fn row_text(
    catalog: &Arc<Catalog>,
    inner: &[InnerForm],
    bytes: &[u8],
) -> Result<String> {
    let mut incoming = Incoming(bytes);
    let count = incoming.word()?;
    if usize::try_from(count).ok() != Some(inner.len()) {
        let message = format!("wrong number of columns: {count}, expected {}", inner.len());
        return fail(SqlState("42804"), message);
    }
    let mut fields = Vec::new();
    for (number, inner) in inner.iter().enumerate() {
        let (given, wanted) = (Oid(incoming.word()? as u32), inner.ty.oid);
        if given != wanted {
            let message = format!(
                "binary data has type {} ({}) instead of expected {} ({}) in record column {}",
                given.0,
                catalog.type_name(given),
                wanted.0,
                catalog.type_name(wanted),
                number + 1
            );
            return fail(SqlState("42804"), message);
        }
        fields.push(match incoming.element()? {
            Some(bytes) => quoted(&text_of(catalog, inner, bytes)?),
            None => String::new(),
        });
    }
    match incoming.0.is_empty() {
        true => Ok(format!("({})", fields.join(","))),
        false => wrong(),
    }
}

/// The text of a value inside.
fn text_of(catalog: &Arc<Catalog>, inner: &InnerForm, bytes: &[u8]) -> Result<String> {
    let Expr::Literal(value, _) = constant(catalog, inner.ty, bytes)?.expr else { return wrong() };
    let value = value.to_array().map_err(unexpected)?;
    let mut text = Vec::new();
    Printer::new(catalog, inner.ty)?.print(&value, 0, &mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A text as it stands in those of ranges and rows, whatever is in it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\""))
}
