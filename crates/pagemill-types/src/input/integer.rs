//! The input of `bool`, `int2`, `int4` and `int8`.
//!
//! A number of up to 19 digits with at most a minus in front is read at once; blanks, a plus, other
//! bases, and all that is wrong go the slow way, which follows the server step by step, so that it
//! also finds the same fault first. From PostgreSQL 16 on there are `0x`, `0o`, `0b` and
//! underscores between digits, and overflow is told by the digits before the last, so that some
//! numbers with rubbish behind them are a fault of syntax there and of range before.
//! Sources: `boolin` in `src/backend/utils/adt/bool.c`, `pg_strtoint16`, `pg_strtoint32` and
//! `pg_strtoint64` in `numutils.c`, `scanint8` in `int8.c` (14), PostgreSQL 14 to 18.

use super::InputError;
use super::digits::{all_blank, base_of, byte_at, leading_digits, skip_blanks, trim_blanks, whole};

/// `bool`: `true`, `yes`, `on`, `1` and their opposites, in any case, cut short as long as it is
/// clear which is meant.
///
/// # Errors
/// When the text is none of them.
pub fn read_bool(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let value = match text {
        b"t" | b"1" => true,
        b"f" | b"0" => false,
        _ => bool_word(trim_blanks(text)).ok_or_else(|| InputError::syntax("boolean", text))?,
    };
    out.push(value.into());
    Ok(())
}

fn bool_word(word: &[u8]) -> Option<bool> {
    let starts = |whole: &str, least: usize| {
        word.len() >= least
            && whole.as_bytes().get(..word.len()).is_some_and(|w| w.eq_ignore_ascii_case(word))
    };
    match word {
        b"1" => Some(true),
        b"0" => Some(false),
        _ if starts("true", 1) || starts("yes", 1) || starts("on", 2) => Some(true),
        _ if starts("false", 1) || starts("no", 1) || starts("off", 2) => Some(false),
        _ => None,
    }
}

/// What tells the three types apart.
struct Kind {
    name: &'static str,
    /// The magnitude of the lowest value.
    limit: u64,
}

const INT2: Kind = Kind { name: "smallint", limit: 1 << 15 };
const INT4: Kind = Kind { name: "integer", limit: 1 << 31 };
const INT8: Kind = Kind { name: "bigint", limit: 1 << 63 };

/// `int2`, alias `smallint`, up to PostgreSQL 15.
///
/// # Errors
/// When the text is no integer, or one out of range.
pub fn read_int2_before_16(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    read::<2>(text, &INT2, decimal_slowly, out)
}

/// `int2`, alias `smallint`.
///
/// # Errors
/// When the text is no integer, or one out of range.
pub fn read_int2(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    read::<2>(text, &INT2, any_base_slowly, out)
}

/// `int4`, alias `integer`, up to PostgreSQL 15.
///
/// # Errors
/// When the text is no integer, or one out of range.
pub fn read_int4_before_16(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    read::<4>(text, &INT4, decimal_slowly, out)
}

/// `int4`, alias `integer`.
///
/// # Errors
/// When the text is no integer, or one out of range.
pub fn read_int4(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    read::<4>(text, &INT4, any_base_slowly, out)
}

/// `int8`, alias `bigint`, up to PostgreSQL 15.
///
/// # Errors
/// When the text is no integer, or one out of range.
pub fn read_int8_before_16(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    read::<8>(text, &INT8, decimal_slowly, out)
}

/// `int8`, alias `bigint`.
///
/// # Errors
/// When the text is no integer, or one out of range.
pub fn read_int8(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    read::<8>(text, &INT8, any_base_slowly, out)
}

/// Reads an integer and appends its lowest `BYTES` bytes.
#[inline]
fn read<const BYTES: usize>(
    text: &[u8],
    kind: &Kind,
    slowly: fn(&[u8], &Kind) -> Result<i64, Fault>,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let value = match plain(text, kind.limit) {
        Some(value) => value,
        None => slowly(text, kind).map_err(|fault| fault.told(text, kind))?,
    };
    if let Some(bytes) = value.to_le_bytes().first_chunk::<BYTES>() {
        out.extend_from_slice(bytes);
    }
    Ok(())
}

/// A value in range of up to 19 digits, with a minus or without.
#[inline]
fn plain(text: &[u8], limit: u64) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => {
            let magnitude = whole(digits).filter(|&m| m <= limit)?;
            0i64.checked_sub_unsigned(magnitude)
        }
        digits => i64::try_from(whole(digits).filter(|&m| m < limit)?).ok(),
    }
}

enum Fault {
    Syntax,
    OutOfRange,
}

impl Fault {
    #[cold]
    fn told(self, text: &[u8], kind: &Kind) -> InputError {
        match self {
            Self::Syntax => InputError::syntax(kind.name, text),
            Self::OutOfRange => InputError::out_of_range(kind.name, text),
        }
    }
}

/// The sign, and what is behind it.
fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match skip_blanks(text) {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    }
}

#[cold]
fn decimal_slowly(text: &[u8], kind: &Kind) -> Result<i64, Fault> {
    let (negative, text) = split_sign(text);
    let count = leading_digits(text);
    let (digits, rest) = text.split_at_checked(count).unwrap_or_default();
    if digits.is_empty() {
        return Err(Fault::Syntax);
    }
    let mut magnitude = 0u64;
    for digit in digits {
        let next = magnitude.checked_mul(10).and_then(|m| m.checked_add((digit - b'0').into()));
        magnitude = next.filter(|&m| m <= kind.limit).ok_or(Fault::OutOfRange)?;
    }
    if !all_blank(rest) {
        return Err(Fault::Syntax);
    }
    signed(magnitude, negative, kind)
}

#[cold]
fn any_base_slowly(text: &[u8], kind: &Kind) -> Result<i64, Fault> {
    let (negative, text) = split_sign(text);
    let (base, prefix) = base_of(text);
    let digits = text.get(prefix..).unwrap_or_default();
    // An underscore may come right after a prefix, but not in front of a decimal number.
    if base == 10 && byte_at(digits, 0) == b'_' {
        return Err(Fault::Syntax);
    }
    let (mut magnitude, mut at) = (0u64, 0);
    loop {
        let digit_at = at + usize::from(byte_at(digits, at) == b'_');
        let Some(digit) = char::from(byte_at(digits, digit_at)).to_digit(base) else {
            if digit_at > at {
                return Err(Fault::Syntax);
            }
            break;
        };
        if magnitude > kind.limit / u64::from(base) {
            return Err(Fault::OutOfRange);
        }
        magnitude = magnitude.wrapping_mul(base.into()).wrapping_add(digit.into());
        at = digit_at + 1;
    }
    if at == 0 || !all_blank(digits.get(at..).unwrap_or_default()) {
        return Err(Fault::Syntax);
    }
    signed(magnitude, negative, kind)
}

fn signed(magnitude: u64, negative: bool, kind: &Kind) -> Result<i64, Fault> {
    let value = match negative {
        true if magnitude <= kind.limit => 0i64.checked_sub_unsigned(magnitude),
        false if magnitude < kind.limit => i64::try_from(magnitude).ok(),
        _ => None,
    };
    value.ok_or(Fault::OutOfRange)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{refused, value};
    use super::*;
    use crate::integer as written;
    use proptest::prelude::*;

    #[test]
    fn a_bool_may_be_cut_short_while_it_is_clear() {
        for text in ["t", "TRUE", " tr ", "y", "Yes", "on", "1", "\t1\n"] {
            assert_eq!(value(read_bool, text), [1], "{text}");
        }
        for text in ["f", "fAlse", "n", "no", "of", "off", "0"] {
            assert_eq!(value(read_bool, text), [0], "{text}");
        }
        for text in ["", " ", "o", "truex", "2", "00", "t f", "onn"] {
            let message = format!("invalid input syntax for type boolean: \"{text}\"");
            assert_eq!(refused(read_bool, text), message);
        }
    }

    #[test]
    fn extremes_fit_and_what_is_beyond_does_not() {
        assert_eq!(value(read_int2, "-32768"), i16::MIN.to_le_bytes());
        assert_eq!(value(read_int8, "-9223372036854775808"), i64::MIN.to_le_bytes());
        assert_eq!(value(read_int8_before_16, "9223372036854775807"), i64::MAX.to_le_bytes());
        assert_eq!(
            refused(read_int2_before_16, "32768"),
            "value \"32768\" is out of range for type smallint"
        );
        assert_eq!(
            refused(read_int4, " 2147483648"),
            "value \" 2147483648\" is out of range for type integer"
        );
    }

    #[test]
    fn other_bases_and_underscores_came_with_16() {
        assert_eq!(value(read_int4, "0x_1f"), 31i32.to_le_bytes());
        assert_eq!(value(read_int4, " -0o17 "), (-15i32).to_le_bytes());
        assert_eq!(value(read_int2, "0b101"), 5i16.to_le_bytes());
        assert_eq!(value(read_int8, "1_000_000"), 1_000_000i64.to_le_bytes());
        for text in ["_1", "1_", "1__0", "0x", "0xg", "0b2", "0o8", "1_x", "+-1", "", "- 1"] {
            let message = format!("invalid input syntax for type integer: \"{text}\"");
            assert_eq!(refused(read_int4, text), message);
        }
        for text in ["0x1", "1_0", "0b1"] {
            assert!(refused(read_int4_before_16, text).starts_with("invalid input syntax"));
        }
    }

    #[test]
    fn rubbish_behind_a_number_out_of_range_is_told_as_the_version_tells_it() {
        assert!(refused(read_int2_before_16, "32769x").starts_with("value"));
        assert!(refused(read_int2, "32769x").starts_with("invalid"));
        assert!(refused(read_int2, "99999x").starts_with("value"));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(n: i64) {
            let check = |read, write: crate::ScalarWriter, bytes: &[u8]| {
                let mut text = Vec::new();
                write(bytes, &mut text).unwrap();
                value(read, &text) == bytes
            };
            prop_assert!(check(read_int8, written::write_int8, &n.to_le_bytes()));
            prop_assert!(check(read_int4, written::write_int4, &(n as i32).to_le_bytes()));
            prop_assert!(check(read_int2, written::write_int2, &(n as i16).to_le_bytes()));
            prop_assert!(check(read_int8_before_16, written::write_int8, &n.to_le_bytes()));
            prop_assert!(check(read_bool, written::write_bool, &[n as u8 & 1]));
        }

        /// The quick way never says anything else than the slow one.
        #[test]
        fn both_ways_agree(text in "[ +-]?[0-9_]{0,21}[ x]?") {
            for kind in [&INT2, &INT4, &INT8] {
                if let Some(quick) = plain(text.as_bytes(), kind.limit) {
                    prop_assert_eq!(decimal_slowly(text.as_bytes(), kind).ok(), Some(quick));
                    prop_assert_eq!(any_base_slowly(text.as_bytes(), kind).ok(), Some(quick));
                }
            }
        }
    }
}
