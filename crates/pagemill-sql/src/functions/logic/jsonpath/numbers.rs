//! Numbers as paths have them: from and to integers, compared, and read from strings.
//!
//! Source: `numeric_int4_opt_error`, `numeric_int8_opt_error`, `float8_numeric`, `cmp_numerics` in
//! `src/backend/utils/adt/numeric.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use pagemill_types::input::numeric::read_numeric;

use super::damaged;
use super::value::{Bytes, Value};
use crate::functions::numeric::arithmetic::{round, sign, subtract};
use crate::functions::numeric::value::{Integer, Number, Value as Numeric};
use crate::functions::rows::Outcome;

/// An integer as a value.
pub(super) fn whole<'d>(number: i64) -> Outcome<Value<'d>> {
    Value::number(&Number::new(number, 0).into())
}

/// The integer nearest to a number, if it has so few bits.
pub(super) fn to_i64(number: &Numeric) -> Option<i64> {
    match round(number, 0) {
        Numeric::Finite(Number { integer: Integer::Small(small), .. }) => i64::try_from(small).ok(),
        _ => None,
    }
}

/// The same of 32 bits.
pub(super) fn to_i32(number: &Numeric) -> Option<i32> {
    to_i64(number).and_then(|wide| i32::try_from(wide).ok())
}

/// Two payloads by what they say.
pub(super) fn compare(left: &[u8], right: &[u8]) -> Outcome<Ordering> {
    let rank = |number: &Numeric| match number {
        Numeric::NegativeInfinity => 0,
        Numeric::Finite(_) => 1,
        Numeric::Infinity => 2,
        Numeric::NaN => 3,
    };
    let (left, right) = (Numeric::parse(left)?, Numeric::parse(right)?);
    if rank(&left) != rank(&right) || rank(&left) != 1 {
        return Ok(rank(&left).cmp(&rank(&right)));
    }
    let difference = sign(&subtract(&left, &right)?);
    Ok(difference.unwrap_or(0).cmp(&0)) // default: the difference of numbers is one
}

/// The text of a numeric.
pub(super) fn text(payload: &[u8]) -> Outcome<String> {
    let mut out = Vec::new();
    pagemill_types::numeric::write_numeric(payload, &mut out).map_err(damaged)?;
    String::from_utf8(out).map_err(damaged)
}

/// A float as a numeric: of its digits the first fifteen.
pub(super) fn of_float<'d>(float: f64) -> Outcome<Value<'d>> {
    let mut payload = Vec::new();
    read_numeric(format!("{float:.14e}").as_bytes(), -1, &mut payload)
        .map_err(|error| damaged(error.message))?;
    let number = Numeric::parse(&payload)?;
    let trimmed = crate::functions::numeric::arithmetic::trim_scale(&number);
    Ok(Value::Number(Bytes::made(trimmed.payload()?)))
}
