//! `pg_size_bytes`: a number with a unit as so many bytes; and `pg_size_pretty` of numerics.
//!
//! Source: `pg_size_bytes` and `pg_size_pretty_numeric` in `src/backend/utils/adt/dbsize.c`, PostgreSQL 14 to 18.

use arrow::array::ArrayRef;
use pagemill_types::builtin::oid;

use super::super::numeric::arithmetic::{multiply, rounded};
use super::super::numeric::column::Numbers;
use super::super::numeric::value::{Integer, Number, Value, small_power};
use super::super::numeric::write_decimal;
use super::super::rows::{Made, Outcome, one};
use super::super::text_form::payload_of_text;
use super::super::{Implementation, KernelCall};
use super::{LEAST_WITH_UNIT, size_text};
use crate::error::{SqlState, StatementError};
use crate::types::PgType;

pub(super) fn find(key: &str) -> Option<Implementation> {
    (key == "pg_size_bytes").then_some(Implementation::Kernel(bytes))
}

/// A unit, the power of two that it is, and the first version that knows it.
const UNITS: [(&str, u32, u32); 7] = [
    ("bytes", 0, 14),
    ("B", 0, 16),
    ("kB", 10, 14),
    ("MB", 20, 14),
    ("GB", 30, 14),
    ("TB", 40, 14),
    ("PB", 50, 15),
];

fn bytes(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let major = call.catalog.database().cluster().version().major();
    let numeric = PgType::new(oid::NUMERIC);
    one(arguments, |text: &str| {
        let (number, unit) = parts(text)?;
        if major < 16 && number.contains(is_space) {
            return Err(StatementError::unsupported("pg_size_bytes of an exponent behind a space"));
        }
        let number = Value::parse(&payload_of_text(&call.catalog, numeric, number)?)?;
        let size = match power(text, unit, major)? {
            0 => number,
            power => multiply(&Value::Finite(Number::new(Integer::Small(1 << power), 0)), &number)?,
        };
        whole(&size)
    })
}

/// Sizes in the largest unit that leaves few digits. Only those below 10 kB keep their places.
pub(super) fn of_numerics(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let has_petabytes = call.catalog.database().cluster().version().major() > 14;
    let values = Numbers::of(&arguments[0]);
    let one = |row: usize| values.get(row)?.map(|size| pretty(&size, has_petabytes)).transpose();
    Made::column((0..arguments[0].len()).map(one).collect::<Outcome<Vec<Option<String>>>>()?)
}

fn pretty(size: &Value, has_petabytes: bool) -> Outcome<String> {
    let large = || StatementError::unsupported("pg_size_pretty of so many digits");
    let Value::Finite(Number { integer: Integer::Small(digits), dscale }) = size else {
        return Err(large());
    };
    let whole = digits / small_power(*dscale).ok_or_else(large)?;
    let whole = i64::try_from(whole).map_err(|_| large())?;
    if whole.unsigned_abs() >= LEAST_WITH_UNIT {
        return Ok(size_text(whole, has_petabytes));
    }
    let mut text = Vec::new();
    write_decimal(*digits, i8::try_from(*dscale).map_err(|_| large())?, &mut text);
    Ok(format!("{} bytes", String::from_utf8_lossy(&text)))
}

/// What C calls a space.
fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t'..='\r')
}

#[cold]
fn invalid(text: &str) -> StatementError {
    StatementError::new(SqlState::INVALID_PARAMETER, format!("invalid size: \"{text}\""))
}

/// Behind the digits that a text begins with.
fn behind_digits(text: &str) -> &str {
    text.trim_start_matches(|letter: char| letter.is_ascii_digit())
}

/// The number, and the unit behind it without spaces around it.
fn parts(text: &str) -> Outcome<(&str, &str)> {
    let begin = text.trim_start_matches(is_space);
    let digits = begin.strip_prefix(['-', '+']).unwrap_or(begin); // default: no sign
    let mut rest = behind_digits(digits);
    let mut has_digits = rest.len() < digits.len();
    if let Some(fraction) = rest.strip_prefix('.') {
        rest = behind_digits(fraction);
        has_digits |= rest.len() < fraction.len();
    }
    if !has_digits {
        return Err(invalid(text));
    }
    rest = behind_exponent(rest);
    let number = &begin[..begin.len() - rest.len()];
    Ok((number, rest.trim_matches(is_space)))
}

/// Without digits, an E begins a unit. The C library reads spaces and a sign before them.
fn behind_exponent(text: &str) -> &str {
    let Some(exponent) = text.strip_prefix(['e', 'E']) else { return text };
    let digits = exponent.trim_start_matches(is_space);
    let digits = digits.strip_prefix(['-', '+']).unwrap_or(digits); // default: no sign
    let rest = behind_digits(digits);
    if rest.len() < digits.len() { rest } else { text }
}

/// The power of two of a unit; of none, the zeroth.
fn power(text: &str, unit: &str, major: u32) -> Outcome<u32> {
    if unit.is_empty() {
        return Ok(0);
    }
    let known = || UNITS.iter().filter(|(_, _, since)| *since <= major);
    let found = known().find(|(name, ..)| name.eq_ignore_ascii_case(unit));
    found.map(|(_, power, _)| *power).ok_or_else(|| {
        let names: Vec<String> = known().map(|(name, ..)| format!("\"{name}\"")).collect();
        let most = names.len().saturating_sub(1);
        let (others, last) = (names[..most].join(", "), names[most..].concat());
        invalid(text).with_hint(format!("Valid units are {others}, and {last}."))
    })
}

/// Rounded to whole bytes.
fn whole(size: &Value) -> Outcome<i64> {
    let bytes = match size {
        Value::Finite(number) => match rounded(number, 0).integer {
            Integer::Small(bytes) => i64::try_from(bytes).ok(),
            Integer::Large(_) => None,
        },
        _ => None,
    };
    let full = || StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, "bigint out of range");
    bytes.ok_or_else(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_units_are_told_apart() {
        for (text, number, unit) in [
            ("1", "1", ""),
            (" 1.5 GB ", "1.5", "GB"),
            ("1e6 MB", "1e6", "MB"),
            ("-10e-1\tmB", "-10e-1", "mB"),
            ("1eb", "1", "eb"),
            ("+.5E", "+.5", "E"),
            ("1e 5 kb", "1e 5", "kb"),
            ("-1.kb", "-1.", "kb"),
            ("+912+ kB", "+912", "+ kB"),
            ("1 AB A    ", "1", "AB A"),
        ] {
            assert_eq!(parts(text).unwrap(), (number, unit), "{text}");
        }
        for text in ["", "kb", "..", "-.", "-. kb", ".+912", "++123 kB", "e5"] {
            assert!(parts(text).is_err(), "{text}");
        }
    }

    #[test]
    fn units_are_those_of_the_version() {
        assert_eq!(power("", "", 14).unwrap(), 0);
        assert_eq!(power("", "Pb", 15).unwrap(), 50);
        assert_eq!(power("", "b", 16).unwrap(), 0);
        let error = power("1 PB", "PB", 14).unwrap_err();
        let hint = "Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", and \"TB\".";
        assert_eq!(
            (&*error.message, error.hint.as_deref()),
            ("invalid size: \"1 PB\"", Some(hint))
        );
        assert!(power("1 B", "B", 15).is_err());
    }
}
