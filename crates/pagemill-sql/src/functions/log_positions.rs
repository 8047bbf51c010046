//! `pg_lsn`: how far positions in the write-ahead log are from each other, and numbers as positions.
//!
//! A payload is the position in eight bytes.
//!
//! Source: `src/backend/utils/adt/pg_lsn.c`, `numeric_pg_lsn` in `numeric.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use arrow::array::{Array as _, ArrayRef, BinaryBuilder};

use super::Implementation;
use super::integers::out_of_range;
use super::keys::payloads;
use super::numeric::arithmetic;
use super::numeric::column::{self, Numbers};
use super::numeric::value::{Integer, Number, Value};
use super::rows::{Outcome, two};
use crate::error::{SqlState, StatementError};

pub(crate) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "pg_lsn_mi" | "pg_wal_lsn_diff" => |_, a| difference(a),
        "pg_lsn_pli" => |_, a| moved(a, "add NaN to", arithmetic::add),
        "pg_lsn_mii" => |_, a| moved(a, "subtract NaN from", arithmetic::subtract),
        "numeric_pg_lsn" => |_, a| of_numeric(&a[0]),
        "pg_lsn_larger" => |_, a| two(a, |x: &[u8], y: &[u8]| chosen(x, y, u64::max)),
        "pg_lsn_smaller" => |_, a| two(a, |x: &[u8], y: &[u8]| chosen(x, y, u64::min)),
        "pg_lsn_cmp" => |_, a| two(a, compared),
        _ => return None,
    }))
}

fn position(payload: &[u8]) -> Outcome<u64> {
    match payload.try_into() {
        Ok(bytes) => Ok(u64::from_le_bytes(bytes)),
        Err(_) => {
            let message = format!("a pg_lsn of {} bytes is damaged", payload.len());
            Err(StatementError::new(SqlState::DATA_CORRUPTED, message))
        }
    }
}

/// Bytes that sort as positions do.
pub(super) fn order_key(payload: &[u8]) -> Outcome<Vec<u8>> {
    Ok(position(payload)?.to_be_bytes().to_vec())
}

fn chosen(x: &[u8], y: &[u8], of: fn(u64, u64) -> u64) -> Outcome<Vec<u8>> {
    Ok(of(position(x)?, position(y)?).to_le_bytes().to_vec())
}

fn compared(x: &[u8], y: &[u8]) -> Outcome<i32> {
    Ok(match position(x)?.cmp(&position(y)?) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    })
}

fn number(position: u64) -> Value {
    Number::new(i128::from(position), 0).into()
}

fn difference(arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (a, b) = (payloads(&arguments[0]), payloads(&arguments[1]));
    column::build(a.len(), |row| match a.is_null(row) || b.is_null(row) {
        true => Ok(None),
        false => {
            let (x, y) = (position(a.value(row))?, position(b.value(row))?);
            Ok(Some(Number::new(i128::from(x) - i128::from(y), 0).into()))
        }
    })
}

/// So many bytes on or back.
fn moved(
    arguments: &[ArrayRef],
    words: &str,
    of: fn(&Value, &Value) -> Outcome<Value>,
) -> Outcome<ArrayRef> {
    let (positions, by) = (payloads(&arguments[0]), Numbers::of(&arguments[1]));
    let mut found = BinaryBuilder::new();
    for row in 0..positions.len() {
        match by.get(row)? {
            Some(by) if positions.is_valid(row) => {
                if by == Value::NaN {
                    let message = format!("cannot {words} pg_lsn");
                    return Err(StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
                let moved = of(&number(position(positions.value(row))?), &by)?;
                found.append_value(as_position(&moved)?.to_le_bytes());
            }
            _ => found.append_null(),
        }
    }
    Ok(std::sync::Arc::new(found.finish()))
}

fn of_numeric(numbers: &ArrayRef) -> Outcome<ArrayRef> {
    let values = Numbers::of(numbers);
    let mut found = BinaryBuilder::new();
    for row in 0..numbers.len() {
        match values.get(row)? {
            Some(value) => found.append_value(as_position(&value)?.to_le_bytes()),
            None => found.append_null(),
        }
    }
    Ok(std::sync::Arc::new(found.finish()))
}

/// Rounded, halves away from zero.
fn as_position(value: &Value) -> Outcome<u64> {
    let number = match value {
        Value::Finite(number) => number,
        special => {
            let what = if *special == Value::NaN { "NaN" } else { "infinity" };
            let message = format!("cannot convert {what} to pg_lsn");
            return Err(StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
    };
    match arithmetic::rounded(number, 0).integer {
        Integer::Small(small) => u64::try_from(small).map_err(|_| out_of_range("pg_lsn")),
        Integer::Large(_) => Err(out_of_range("pg_lsn")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_positions() {
        let of = |integer: i128, places| as_position(&Number::new(integer, places).into());
        assert_eq!(of(25, 1).unwrap(), 3);
        assert_eq!(of(-4, 1).unwrap(), 0);
        assert_eq!(of(-5, 1).unwrap_err().message, "pg_lsn out of range");
        assert_eq!(of(u64::MAX.into(), 0).unwrap(), u64::MAX);
        assert!(of(1 << 64, 0).is_err());
        assert_eq!(as_position(&Value::NaN).unwrap_err().message, "cannot convert NaN to pg_lsn");
    }

    #[test]
    fn keys_sort_as_positions_do() {
        let key = |position: u64| order_key(&position.to_le_bytes()).unwrap();
        assert!(key(255) < key(256) && key(1) < key(u64::MAX));
        assert!(order_key(&[1, 2]).is_err());
    }
}
