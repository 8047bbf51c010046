//! The input of `int2vector` and `oidvector`: numbers with blanks between them.
//!
//! PostgreSQL 14 takes 100 of them at most, and any blank behind a number of an `int2vector`; later
//! versions want a space there. An `oidvector` needs nothing between numbers that a sign separates.
//! Sources: `int2vectorin` in `src/backend/utils/adt/int.c` and `pg_atoi` in `numutils.c` (14),
//! `oidvectorin` in `oid.c`, PostgreSQL 14 to 18. The layout is told in
//! [`crate::identifier`].

use super::InputError;
use super::c_integer::CInteger;
use super::digits::{is_blank, skip_blanks};
use super::identifier::{as_u32, u32_number};

/// The most elements that PostgreSQL 14 takes (`FUNC_MAX_ARGS`).
const LIMIT_14: u32 = 100;

/// `int2vector`.
///
/// # Errors
/// When a number is none, or out of range.
pub fn read_int2vector(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    push(&INT2VECTOR, text, out, |text, out| {
        let behind = push_int2(text, "smallint", out)?;
        match behind.first() {
            None | Some(b' ') => Ok(behind),
            _ => Err(InputError::syntax("smallint", text)),
        }
    })
}

/// `int2vector`, as PostgreSQL 14 reads it.
///
/// # Errors
/// When a number is none, or out of range, or there are more than 100.
pub fn read_int2vector_14(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    push(&INT2VECTOR_14, text, out, |text, out| {
        let behind = push_int2(text, "integer", out)?;
        match behind.iter().find(|&&b| b == b' ' || !is_blank(b)) {
            None | Some(b' ') => Ok(behind),
            _ => Err(InputError::syntax("integer", text)),
        }
    })
}

/// `oidvector`.
///
/// # Errors
/// When a number is none, or out of range.
pub fn read_oidvector(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    push(&OIDVECTOR, text, out, |text, out| push_oid(text, 0, out))
}

/// `oidvector`, as PostgreSQL 15 reads it.
///
/// # Errors
/// When a number is none, or out of range.
pub fn read_oidvector_15(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    push(&OIDVECTOR, text, out, |text, out| push_oid(text, 10, out))
}

/// `oidvector`, as PostgreSQL 14 reads it.
///
/// # Errors
/// When a number is none, or out of range, or there are more than 100.
pub fn read_oidvector_14(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    push(&OIDVECTOR_14, text, out, |text, out| push_oid(text, 10, out))
}

/// What tells the two types apart, and one version's from another's.
struct Kind {
    name: &'static str,
    element: u32,
    /// The most elements that are taken.
    limit: u32,
}

const INT2VECTOR: Kind = Kind { name: "int2vector", element: 21, limit: u32::MAX };
const INT2VECTOR_14: Kind = Kind { limit: LIMIT_14, ..INT2VECTOR };
const OIDVECTOR: Kind = Kind { name: "oidvector", element: 26, limit: u32::MAX };
const OIDVECTOR_14: Kind = Kind { limit: LIMIT_14, ..OIDVECTOR };

/// Appends an array of one dimension without nulls, whose lower bound is 0. `next` appends the
/// number that a text starts with, and returns what is behind it.
fn push(
    kind: &Kind,
    text: &[u8],
    out: &mut Vec<u8>,
    next: impl for<'t> Fn(&'t [u8], &mut Vec<u8>) -> Result<&'t [u8], InputError>,
) -> Result<(), InputError> {
    for field in [1, 0, kind.element, 0, 0] {
        out.extend_from_slice(&field.to_le_bytes());
    }
    let dimension_at = out.len() - 8;
    let mut count = 0u32;
    let mut rest = skip_blanks(text);
    while !rest.is_empty() {
        if count == kind.limit {
            return Err(InputError::new(format!("{} has too many elements", kind.name)));
        }
        rest = skip_blanks(next(rest, out)?);
        count += 1;
    }
    if let Some(place) = out.get_mut(dimension_at..dimension_at + 4) {
        place.copy_from_slice(&count.to_le_bytes());
    }
    Ok(())
}

/// Appends the number that a text starts with, and returns what is behind it. What is no number is
/// called none of the type `name`.
fn push_int2<'t>(text: &'t [u8], name: &str, out: &mut Vec<u8>) -> Result<&'t [u8], InputError> {
    let number = CInteger::read(text, 10).ok_or_else(|| InputError::syntax(name, text))?;
    let value = number.signed().and_then(|value| i16::try_from(value).ok());
    let value = value.ok_or_else(|| InputError::out_of_range("smallint", text))?;
    out.extend_from_slice(&value.to_le_bytes());
    Ok(text.get(number.end..).unwrap_or_default())
}

/// As [`push_int2`], a number of 32 bits.
fn push_oid<'t>(text: &'t [u8], base: u32, out: &mut Vec<u8>) -> Result<&'t [u8], InputError> {
    let number = u32_number(text, "oid", base)?;
    let value = as_u32(number).ok_or_else(|| InputError::out_of_range("oid", text))?;
    out.extend_from_slice(&value.to_le_bytes());
    Ok(text.get(number.end..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{refused, value};
    use super::*;
    use crate::identifier as written;
    use proptest::prelude::*;

    fn words(value: Vec<u8>) -> Vec<i32> {
        value.as_chunks().0.iter().map(|word| i32::from_le_bytes(*word)).collect()
    }

    #[test]
    fn vectors_are_arrays_that_start_at_zero() {
        assert_eq!(words(value(read_oidvector, "7\t-1 ")), [1, 0, 26, 2, 0, 7, -1]);
        assert_eq!(words(value(read_oidvector, "7-1")), [1, 0, 26, 2, 0, 7, -1]);
        assert_eq!(words(value(read_oidvector, "0x10 010")), [1, 0, 26, 2, 0, 16, 8]);
        assert_eq!(words(value(read_oidvector_15, "010")), [1, 0, 26, 1, 0, 10]);
        assert_eq!(words(value(read_int2vector, " 1  -1")), [1, 0, 21, 2, 0, -65_535]);
        assert_eq!(words(value(read_int2vector, "")), [1, 0, 21, 0, 0]);
        assert_eq!(words(value(read_int2vector_14, "1\t 2")), [1, 0, 21, 2, 0, 131_073]);
    }

    #[test]
    fn a_fault_is_told_with_the_rest_of_the_text() {
        let message = "invalid input syntax for type smallint: \"2x 3\"";
        assert_eq!(refused(read_int2vector, "1 2x 3"), message);
        let message = "invalid input syntax for type integer: \"2x 3\"";
        assert_eq!(refused(read_int2vector_14, "1 2x 3"), message);
        let message = "value \"32768\" is out of range for type smallint";
        assert_eq!(refused(read_int2vector, "1 32768"), message);
        assert_eq!(refused(read_oidvector, "1 x"), "invalid input syntax for type oid: \"x\"");
        let long = "1 ".repeat(101);
        assert_eq!(refused(read_oidvector_14, &long), "oidvector has too many elements");
        assert_eq!(words(value(read_oidvector_15, &long)).len(), 106);
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(shorts in prop::collection::vec(any::<i16>(), 0..9)) {
            let mut vector = Vec::new();
            for field in [1, 0, 21, shorts.len() as u32, 0] {
                vector.extend(field.to_le_bytes());
            }
            vector.extend(shorts.iter().flat_map(|short| short.to_le_bytes()));
            let mut text = Vec::new();
            written::write_int2vector(&vector, &mut text).unwrap();
            prop_assert_eq!(value(read_int2vector, &text), vector.clone());
            prop_assert_eq!(value(read_int2vector_14, &text), vector);
        }
    }
}
