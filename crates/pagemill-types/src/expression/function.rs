//! The functions that expressions may call: lengths, blanks cut off, casts between numbers, arithmetic of integers.
//!
//! Invariant: arguments are payloads that are not null; what the server raises is raised in its words.
//!
//! Source: `src/backend/utils/adt/varlena.c`, `varchar.c`, `oracle_compat.c` (`btrim1` and its kin), `int.c`, `int8.c`,
//! `numeric.c`, `array_length` in `arrayfuncs.c`, PostgreSQL 14 to 18.

use std::borrow::Cow;

use crate::input::numeric::read_numeric;
use crate::input::{Characters, InputError};

/// `MAXDIM` in `src/include/c.h`.
const MOST_DIMENSIONS: i64 = 6;

/// The width of an integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// `smallint`.
    Two,
    /// `integer`.
    Four,
    /// `bigint`.
    Eight,
}

/// What is done to two integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`, towards zero.
    Divide,
    /// `%`, with the sign of the dividend.
    Remainder,
}

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// `length`, `char_length`.
    CharacterCount(Characters),
    /// The same of `character(n)`, whose blanks at the end do not count.
    PaddedCharacterCount(Characters),
    /// `octet_length`, and `length` of a bytea.
    ByteCount,
    /// `btrim`, `ltrim`, `rtrim` of blanks, at the start and at the end.
    Trim {
        /// At the start.
        start: bool,
        /// At the end.
        end: bool,
    },
    /// A `name` as a text.
    NameToText,
    /// An integer as a wider one.
    Widen(Width),
    /// An integer as `numeric`.
    IntegerToNumeric,
    /// An integer as `double precision`.
    IntegerToDouble,
    /// `real` as `double precision`.
    RealToDouble,
    /// Of integers, with a result of this width.
    Arithmetic(Arithmetic, Width),
    /// `array_length`: how many elements a dimension has, null where the array has no such dimension.
    ArrayLength,
}

impl Function {
    /// How many arguments it has.
    pub fn arguments(self) -> usize {
        if matches!(self, Self::Arithmetic(..) | Self::ArrayLength) { 2 } else { 1 }
    }

    /// The result's payload, or null.
    ///
    /// # Errors
    /// When the server would raise one.
    pub(super) fn value(self, arguments: &[Cow<'_, [u8]>]) -> Result<Option<Vec<u8>>, InputError> {
        match (self, arguments) {
            (Self::ArrayLength, [array, dimension]) => {
                Ok(length(array, integer(dimension)).map(|length| length.to_vec()))
            }
            _ => self.call(arguments).map(Some),
        }
    }

    fn call(self, arguments: &[Cow<'_, [u8]>]) -> Result<Vec<u8>, InputError> {
        let first = arguments.first().map_or(&[][..], |value| value);
        let second = arguments.get(1).map_or(&[][..], |value| value);
        Ok(match self {
            Self::CharacterCount(characters) => count(characters.count(first)),
            Self::PaddedCharacterCount(characters) => {
                count(characters.count(trimmed(first, false, true)))
            }
            Self::ByteCount => count(first.len()),
            Self::Trim { start, end } => trimmed(first, start, end).to_vec(),
            Self::NameToText => first.split(|byte| *byte == 0).next().unwrap_or_default().to_vec(),
            Self::Widen(width) => stored(integer(first), width)?,
            Self::IntegerToNumeric => {
                let mut out = Vec::new();
                read_numeric(integer(first).to_string().as_bytes(), -1, &mut out)?;
                out
            }
            Self::IntegerToDouble => (integer(first) as f64).to_le_bytes().to_vec(),
            Self::RealToDouble => {
                let real = first.first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes));
                f64::from(real).to_le_bytes().to_vec()
            }
            // Of what is no array and number.
            Self::ArrayLength => Vec::new(),
            Self::Arithmetic(operation, width) => {
                stored(operation.of(integer(first), integer(second), width)?, width)?
            }
        })
    }
}

impl Arithmetic {
    fn of(self, a: i64, b: i64, width: Width) -> Result<i64, InputError> {
        if b == 0 && matches!(self, Self::Divide | Self::Remainder) {
            return Err(InputError::new("division by zero"));
        }
        let result = match self {
            Self::Add => a.checked_add(b),
            Self::Subtract => a.checked_sub(b),
            Self::Multiply => a.checked_mul(b),
            Self::Divide => a.checked_div(b),
            Self::Remainder => Some(a.wrapping_rem(b)),
        };
        result.ok_or_else(|| out_of_range(width))
    }
}

fn out_of_range(width: Width) -> InputError {
    InputError::new(match width {
        Width::Two => "smallint out of range",
        Width::Four => "integer out of range",
        Width::Eight => "bigint out of range",
    })
}

/// The length of a dimension, which lies behind number of dimensions, offset and type of elements.
fn length(array: &[u8], dimension: i64) -> Option<&[u8]> {
    let dimensions = i64::from(i32::from_le_bytes(*array.first_chunk()?));
    if dimension < 1 || dimension > dimensions || dimensions > MOST_DIMENSIONS {
        return None;
    }
    let at = 12 + 4 * usize::try_from(dimension - 1).ok()?;
    array.get(at..at + 4)
}

fn count(of: usize) -> Vec<u8> {
    i32::try_from(of).unwrap_or(i32::MAX).to_le_bytes().to_vec()
}

/// An integer of any width.
fn integer(payload: &[u8]) -> i64 {
    match *payload {
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => payload.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes)),
    }
}

fn stored(number: i64, width: Width) -> Result<Vec<u8>, InputError> {
    let fails = |_| out_of_range(width);
    Ok(match width {
        Width::Two => i16::try_from(number).map_err(fails)?.to_le_bytes().to_vec(),
        Width::Four => i32::try_from(number).map_err(fails)?.to_le_bytes().to_vec(),
        Width::Eight => number.to_le_bytes().to_vec(),
    })
}

fn trimmed(text: &[u8], start: bool, end: bool) -> &[u8] {
    let mut text = text;
    while let [b' ', rest @ ..] = text
        && start
    {
        text = rest;
    }
    while let [rest @ .., b' '] = text
        && end
    {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(function: Function, arguments: &[&[u8]]) -> Result<Vec<u8>, String> {
        let values: Vec<_> = arguments.iter().map(|bytes| Cow::Borrowed(*bytes)).collect();
        function.call(&values).map_err(|error| error.message)
    }

    #[test]
    fn lengths_count_characters_or_bytes() {
        let of = |function, text: &str| call(function, &[text.as_bytes()]).unwrap();
        let n = |number: i32| number.to_le_bytes().to_vec();
        assert_eq!(of(Function::CharacterCount(Characters::Utf8), "é€x"), n(3));
        assert_eq!(of(Function::CharacterCount(Characters::Single), "é"), n(2));
        assert_eq!(of(Function::PaddedCharacterCount(Characters::Utf8), " é  "), n(2));
        assert_eq!(of(Function::ByteCount, "é "), n(3));
        assert_eq!(of(Function::Trim { start: true, end: true }, "  a b "), b"a b");
        assert_eq!(of(Function::Trim { start: false, end: true }, "   "), b"");
    }

    #[test]
    fn arrays_have_lengths_of_the_dimensions_that_they_have() {
        let array: Vec<u8> =
            [2_i32, 0, 23, 2, 3, 1, 1].iter().flat_map(|w| w.to_le_bytes()).collect();
        let of = |array: &[u8], dimension: i32| {
            let arguments = [Cow::Borrowed(array), Cow::Owned(dimension.to_le_bytes().to_vec())];
            Function::ArrayLength.value(&arguments).map_err(|error| error.message)
        };
        assert_eq!(of(&array, 1), Ok(Some(2_i32.to_le_bytes().to_vec())));
        assert_eq!(of(&array, 2), Ok(Some(3_i32.to_le_bytes().to_vec())));
        assert_eq!((of(&array, 0), of(&array, 3), of(&array, -1)), (Ok(None), Ok(None), Ok(None)));
        assert_eq!(
            (of(&[0; 12], 1), of(&[1], 1), of(&array[..14], 1)),
            (Ok(None), Ok(None), Ok(None))
        );
    }

    #[test]
    fn integers_overflow_as_on_the_server() {
        let four = |a: i32, b: i32, what| {
            let function = Function::Arithmetic(what, Width::Four);
            call(function, &[&a.to_le_bytes(), &b.to_le_bytes()])
        };
        assert_eq!(four(2, 3, Arithmetic::Multiply), Ok(6_i32.to_le_bytes().to_vec()));
        assert_eq!(four(-7, 2, Arithmetic::Remainder), Ok((-1_i32).to_le_bytes().to_vec()));
        assert_eq!(four(i32::MIN, -1, Arithmetic::Remainder), Ok(vec![0; 4]));
        assert_eq!(four(i32::MAX, 1, Arithmetic::Add), Err("integer out of range".into()));
        assert_eq!(four(i32::MIN, -1, Arithmetic::Divide), Err("integer out of range".into()));
        assert_eq!(four(1, 0, Arithmetic::Divide), Err("division by zero".into()));
    }
}
