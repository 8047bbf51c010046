//! Keys of rows, and comparisons of two: field by field, the first pair that differs tells.
//!
//! ```text
//! row ──► fields ──► their keys ──► bytes that sort as the rows do      (NULL above all values, and equal to NULL)
//! ```
//!
//! Invariant: rows that the server finds it cannot compare are an error only where their fields before that are equal, and no row
//! is NULL.
//!
//! Source: `record_cmp`, `record_eq` in `src/backend/utils/adt/rowtypes.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Operator, binary_expr, is_not_null, lit};
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::arrays::keys::push;
use super::keys::{equality_pair, is_own_key, is_plain_row, order_pair, payloads, strings};
use super::row_payloads::taken_apart;
use super::row_values::{field_at, presence};
use super::rows::{Made, Outcome};
use super::{Build, KernelCall, call_kernel};
use crate::catalog::Catalog;
use crate::error::{Error, Result, SqlState, StatementError, unsupported};
use crate::typed::{RowField, Typed};
use crate::types::{PgType, RECORD, UNKNOWN};

/// What stands before a field.
const VALUE: u8 = 1;
const NULL: u8 = 2;

/// What is asked of two rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Order,
    Equality,
}

/// The key of a row whose fields have this one.
///
/// # Errors
/// Where a field has no key here, or the fields are not known.
pub(super) fn row_key(
    catalog: &Arc<Catalog>,
    typed: &Typed,
    key: fn(&Arc<Catalog>, &Typed) -> Result<Expr>,
) -> Result<Expr> {
    let (row, fields) = fields_of(catalog, typed)?;
    let of_field = |(at, field): (usize, &RowField)| {
        if field.was_unknown {
            return unsupported("a row with a text of no type in an order or a group");
        }
        key(catalog, &field_at(&row, at, field)).map_err(|error| refused(error, catalog, field))
    };
    let keys = fields.iter().enumerate().map(of_field).collect::<Result<Vec<_>>>()?;
    Ok(joined(catalog, &row, keys))
}

/// True where each field is its own key, or a row of such fields.
///
/// # Errors
/// As [`row_key`].
pub(super) fn has_plain_fields(catalog: &Arc<Catalog>, typed: &Typed) -> Result<bool> {
    let (row, fields) = fields_of(catalog, typed)?;
    for (at, field) in fields.iter().enumerate() {
        let field = field_at(&row, at, field);
        if !is_own_key(catalog, &field)? && !is_plain_row(catalog, &field)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A field without an order is an error of rows that come to be compared, if any do.
fn refused(error: Error, catalog: &Catalog, field: &RowField) -> Error {
    match error.is_unsupported() {
        true => error,
        false => {
            let name = catalog.type_name(field.ty.oid);
            StatementError::unsupported(format!("a row with a field of type {name} in an order"))
                .into()
        }
    }
}

fn fields_of(catalog: &Arc<Catalog>, typed: &Typed) -> Result<(Typed, Arc<[RowField]>)> {
    let row = taken_apart(catalog, typed.clone())?;
    match row.row.clone() {
        Some(fields) => Ok((row, fields)),
        None => unsupported(format!("the fields of type {}", catalog.type_name(typed.ty.oid))),
    }
}

/// The keys of fields as one of the row, NULL where there is none.
fn joined(catalog: &Arc<Catalog>, row: &Typed, keys: Vec<Expr>) -> Expr {
    let present = presence(row).unwrap_or_else(|| is_not_null(row.expr.clone()));
    let bytes = PgType::new(oid::BYTEA);
    let mut arguments = vec![Typed::new(present, PgType::new(oid::BOOL), DataType::Boolean)];
    // A key without a carrier of its own: a NULL of any will do.
    arguments.extend(keys.into_iter().map(|key| Typed::new(key, bytes, DataType::Binary)));
    call_kernel(catalog, ("row key", key_of_fields), &arguments, bytes, DataType::Binary).expr
}

fn key_of_fields(_: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let Some((present, keys)) = arguments.split_first() else { return Made::column(no_keys()) };
    let present = present.as_boolean();
    let one = |row: usize| -> Outcome<Option<Vec<u8>>> {
        if present.is_null(row) || !present.value(row) {
            return Ok(None);
        }
        key_at(keys, row).map(Some)
    };
    Made::column((0..present.len()).map(one).collect::<Outcome<Vec<_>>>()?)
}

fn key_at(keys: &[ArrayRef], row: usize) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    for column in keys {
        match column.is_null(row) {
            true => bytes.push(NULL),
            false => {
                bytes.push(VALUE);
                push(column, row, &mut bytes)?;
            }
        }
    }
    Ok(bytes)
}

fn no_keys() -> Vec<Option<Vec<u8>>> {
    Vec::new()
}

/// Two rows beside each other.
struct Paired {
    /// Keys of the fields that can be compared.
    keys: (Expr, Expr),
    /// What the server says where those are equal.
    stop: Option<StatementError>,
}

/// Keys of two rows that are compared.
///
/// # Errors
/// Where the rows have other fields, or some that are not compared here.
pub(super) fn pair(
    catalog: &Arc<Catalog>,
    both: [&Typed; 2],
    asked: Asked,
) -> Result<(Expr, Expr)> {
    let paired = paired(catalog, both, asked)?;
    match paired.stop {
        None => Ok(paired.keys),
        Some(_) => unsupported("rows of different types beside each other"),
    }
}

fn paired(catalog: &Arc<Catalog>, both: [&Typed; 2], asked: Asked) -> Result<Paired> {
    let (a, of_a) = fields_of(catalog, both[0])?;
    let (b, of_b) = fields_of(catalog, both[1])?;
    let (mut left, mut right, mut stop) = (Vec::new(), Vec::new(), None);
    for (at, (x, y)) in of_a.iter().zip(of_b.iter()).enumerate() {
        // What is a record here may be a row of a type to the server.
        let is_record = |field: &RowField| field.ty.oid == RECORD;
        if is_record(x) != is_record(y) && [x, y].iter().all(|z| is_of_rows(catalog, z.ty.oid)) {
            return unsupported("a record beside a row of a type, each in a row,");
        }
        stop = incomparable(catalog, (x, y), at, asked);
        if stop.is_some() {
            break;
        }
        if x.ty.collation != y.ty.collation {
            return unsupported("rows whose texts have different collations beside each other");
        }
        let (x, y) = (field_at(&a, at, x), field_at(&b, at, y));
        let keys = match asked {
            Asked::Order => order_pair(catalog, &x, &y)?,
            Asked::Equality => equality_pair(catalog, &x, &y)?,
        };
        left.push(keys.0);
        right.push(keys.1);
    }
    if stop.is_none() && of_a.len() != of_b.len() {
        let message = "cannot compare record types with different numbers of columns";
        stop = Some(StatementError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    Ok(Paired { keys: (joined(catalog, &a, left), joined(catalog, &b, right)), stop })
}

/// What the server says of two fields that cannot be compared.
fn incomparable(
    catalog: &Catalog,
    (x, y): (&RowField, &RowField),
    at: usize,
    asked: Asked,
) -> Option<StatementError> {
    let type_of = |field: &RowField| if field.was_unknown { UNKNOWN } else { field.ty.oid };
    let (of_x, of_y) = (type_of(x), type_of(y));
    if of_x != of_y {
        let message = format!(
            "cannot compare dissimilar column types {} and {} at record column {}",
            catalog.type_name(of_x),
            catalog.type_name(of_y),
            at + 1
        );
        return Some(StatementError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    let base = catalog.base_type(of_x, -1).0;
    let what = match asked {
        Asked::Equality if is_without_equality(base) => "an equality operator",
        Asked::Order if is_without_equality(base) || matches!(base, oid::XID | oid::CID) => {
            "a comparison function"
        }
        _ => return None,
    };
    let name = catalog.type_name(of_x);
    let message = format!("could not identify {what} for type {name}");
    Some(StatementError::new(SqlState::UNDEFINED_FUNCTION, message))
}

/// Types of which no operator class has an equality.
///
/// Source: `src/include/catalog/pg_opclass.dat`, PostgreSQL 14 to 18.
fn is_without_equality(base: Oid) -> bool {
    matches!(base, UNKNOWN | oid::JSON | oid::POINT | oid::LINE | oid::XML)
}

/// `record_eq` and its kin.
///
/// # Errors
/// Where the fields of one are not known, or not compared here.
pub(super) fn compared(build: &Build<'_>, operator: Operator) -> Result<Typed> {
    let [a, b] = build.arguments else { return unsupported("a comparison of other than two") };
    let is_null = |typed: &Typed| matches!(&typed.expr, Expr::Literal(value, _) if value.is_null());
    if is_null(a) || is_null(b) {
        let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
        return Ok(build.done(unknown, DataType::Boolean));
    }
    let asked = match operator {
        Operator::Eq | Operator::NotEq => Asked::Equality,
        _ => Asked::Order,
    };
    let Paired { keys: (left, right), stop } = paired(build.catalog, [a, b], asked)?;
    let Some(error) = stop else {
        return Ok(build.done(binary_expr(left, operator, right), DataType::Boolean));
    };
    let bytes = PgType::new(oid::BYTEA);
    let text = |text: &str| Typed::new(lit(text), PgType::new(oid::TEXT), DataType::Utf8);
    let arguments = [
        Typed::new(left, bytes, DataType::Binary),
        Typed::new(right, bytes, DataType::Binary),
        text(error.state.0),
        text(&error.message),
    ];
    Ok(build.kernel(compared_or_stopped, &arguments, DataType::Boolean))
}

/// Compares the fields before those that cannot be compared; where they are equal, that is the error.
fn compared_or_stopped(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let [left, right, state, message] = arguments else {
        return Made::column(Vec::<Option<bool>>::new());
    };
    let (left, right) = (payloads(left), payloads(right));
    let one = |row: usize| -> Outcome<Option<bool>> {
        if left.is_null(row) || right.is_null(row) {
            return Ok(None);
        }
        let (a, b) = (left.value(row), right.value(row));
        if a == b {
            let state = match strings(state).value(row) {
                state if state == SqlState::UNDEFINED_FUNCTION.0 => SqlState::UNDEFINED_FUNCTION,
                _ => SqlState::DATATYPE_MISMATCH,
            };
            return Err(StatementError::new(state, strings(message).value(row)));
        }
        Ok(Some(match &*call.key {
            "record_ne" => true,
            "record_lt" | "record_le" => a < b,
            "record_gt" | "record_ge" => a > b,
            _ => false,
        }))
    };
    Made::column((0..left.len()).map(one).collect::<Outcome<Vec<_>>>()?)
}

/// Whether a type is one of rows.
pub(super) fn is_of_rows(catalog: &Catalog, type_oid: Oid) -> bool {
    let base = catalog.base_type(type_oid, -1).0;
    base == RECORD || catalog.type_row(base).is_some_and(|row| row.kind == b'c')
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, StringArray};

    use super::*;

    /// As `record_cmp` has it: a NULL above all values, two of them equal.
    #[test]
    fn keys_sort_as_rows_do() {
        let sorted = [
            (Some(-1), None),
            (Some(1), Some("")),
            (Some(1), Some("a")),
            (Some(1), Some("a\0")),
            (Some(1), Some("ab")),
            (Some(1), None),
            (Some(2), Some("")),
            (None, Some("a")),
            (None, None),
        ];
        let numbers: ArrayRef =
            Arc::new(sorted.iter().map(|(number, _)| *number).collect::<Int32Array>());
        let texts: ArrayRef =
            Arc::new(sorted.iter().map(|(_, text)| *text).collect::<StringArray>());
        let columns = [numbers, texts];
        let keys: Vec<Vec<u8>> =
            (0..sorted.len()).map(|row| key_at(&columns, row).unwrap()).collect();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
