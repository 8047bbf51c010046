//! The input of `numeric`: from decimal text to base-10000 digits, as the server packs them.
//!
//! A number of up to 16 digits without exponent is read into one 64-bit integer, rounded there if
//! the column asks for it, and cut into base-10000 digits. All other texts become digits in the
//! caller's buffer first, and are rounded and packed there. Other bases and underscores came with
//! PostgreSQL 16; before it an exponent may have blanks in front.
//! Source: `numeric_in`, `set_var_from_str` and `set_var_from_non_decimal_integer_str` in
//! `src/backend/utils/adt/numeric.c`, PostgreSQL 14 to 18.

use super::InputError;
use super::c_integer::CInteger;
use super::digits::{all_blank, append, base_of, byte_at, leading_digits, skip_blanks};
use super::numeric_packing::{Typmod, Unpacked, header};

/// `numeric`, alias `decimal`, up to PostgreSQL 15.
///
/// # Errors
/// When the text is no number, or one that its type cannot hold.
pub fn read_numeric_before_16(
    text: &[u8],
    typmod: i32,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    read(text, typmod, Syntax::Plain, out)
}

/// `numeric`, alias `decimal`.
///
/// # Errors
/// When the text is no number, or one that its type cannot hold.
pub fn read_numeric(text: &[u8], typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    read(text, typmod, Syntax::Extended, out)
}

/// Which numbers there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syntax {
    /// Decimal ones.
    Plain,
    /// Those of other bases as well, and with underscores.
    Extended,
}

#[inline]
fn read(text: &[u8], typmod: i32, syntax: Syntax, out: &mut Vec<u8>) -> Result<(), InputError> {
    let typmod = Typmod::parse(typmod);
    if plain(text, typmod, out).is_some() {
        return Ok(());
    }
    slowly(text, typmod, syntax, out).map_err(|fault| fault.told(text))
}

/// What can be wrong with a number.
pub(super) enum Fault {
    Syntax,
    /// More digits before the point than the type allows, or an infinity where it allows none.
    Field,
    /// More than any numeric can hold.
    Format,
}

impl Fault {
    #[cold]
    fn told(self, text: &[u8]) -> InputError {
        match self {
            Self::Syntax => InputError::syntax("numeric", text),
            Self::Field => InputError::new("numeric field overflow"),
            Self::Format => InputError::new("value overflows numeric format"),
        }
    }
}

/// The most digits that fit 64 bits with three zeros behind them.
const PLAIN_DIGITS: usize = 16;

const POWERS: [u64; PLAIN_DIGITS + 4] = {
    let mut powers = [1; PLAIN_DIGITS + 4];
    let mut n = 1;
    while n < powers.len() {
        powers[n] = powers[n - 1] * 10;
        n += 1;
    }
    powers
};

/// Appends a number of few digits, with a point and a minus or without; `None`, and nothing
/// appended, when the text is anything else or does not fit the type.
#[inline]
fn plain(text: &[u8], typmod: Option<Typmod>, out: &mut Vec<u8>) -> Option<()> {
    let (negative, number) = match text {
        [b'-', rest @ ..] => (true, rest),
        all => (false, all),
    };
    let whole = leading_digits(number);
    let (integer, fraction) = match number.split_at_checked(whole)? {
        (integer, [b'.', fraction @ ..]) => (integer, fraction),
        (integer, []) => (integer, &[][..]),
        _ => return None,
    };
    if !(1..=PLAIN_DIGITS).contains(&(integer.len() + fraction.len())) {
        return None;
    }
    let mut value = append(append(0, integer)?, fraction)?;
    let mut scale = fraction.len();
    let mut display_scale = scale;
    if let Some(typmod) = typmod {
        display_scale = usize::try_from(typmod.scale).ok()?;
        if scale > display_scale {
            let unit = POWERS.get(scale - display_scale)?;
            value = (value + unit / 2) / unit;
            scale = display_scale;
        }
        if value > 0 && digit_count(value) - scale as i32 > typmod.precision - typmod.scale {
            return None;
        }
    }
    PlainNumber { negative, value, scale, display_scale }.push(out);
    Some(())
}

/// Decimal digits of a value, which is not 0.
#[inline]
fn digit_count(value: u64) -> i32 {
    value.ilog10() as i32 + 1
}

/// `value / 10^scale`, negative or not; the value has 17 digits at most.
struct PlainNumber {
    negative: bool,
    value: u64,
    scale: usize,
    /// How many digits are shown behind the point.
    display_scale: usize,
}

impl PlainNumber {
    /// Appends the number.
    #[inline]
    fn push(self, out: &mut Vec<u8>) {
        let Self { negative, value, scale, display_scale } = self;
        let padding = (4 - scale % 4) % 4;
        let fraction_digits = (scale + padding) / 4;
        let mut rest = value * POWERS.get(padding).copied().unwrap_or(1);
        let mut digits = [[0u8; 2]; 5];
        let (mut first, mut last) = (digits.len(), digits.len());
        while rest > 0 && first > 0 {
            first -= 1;
            let digit = (rest % 10_000) as u16;
            rest /= 10_000;
            if let Some(place) = digits.get_mut(first) {
                *place = digit.to_le_bytes();
            }
            // A zero with nothing but zeros behind it is not stored.
            last = if digit == 0 && last == first + 1 { first } else { last };
        }
        let stored = digits.get(first..last).unwrap_or_default();
        let weight = match stored {
            [] => 0,
            _ => (digits.len() - first) as i32 - 1 - fraction_digits as i32,
        };
        match header(negative && !stored.is_empty(), display_scale, weight) {
            ([a, b, ..], 2) => out.extend_from_slice(&[a, b]),
            (long, _) => out.extend_from_slice(&long),
        }
        out.extend_from_slice(stored.as_flattened());
    }
}

/// Follows the server step by step.
#[cold]
fn slowly(
    text: &[u8],
    typmod: Option<Typmod>,
    syntax: Syntax,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let text = skip_blanks(text);
    if let Some((header, length)) = special(text) {
        if !all_blank(text.get(length..).unwrap_or_default()) {
            return Err(Fault::Syntax);
        }
        if typmod.is_some() && header != NAN {
            return Err(Fault::Field);
        }
        out.extend_from_slice(&header.to_le_bytes());
        return Ok(());
    }
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let unsigned = text.get(sign..).unwrap_or_default();
    let mut number = Unpacked::new(text.first() == Some(&b'-'), out);
    let rest = match base_of(unsigned) {
        (base @ (2 | 8 | 16), prefix) if syntax == Syntax::Extended => {
            non_decimal(unsigned.get(prefix..).unwrap_or_default(), base, &mut number)?
        }
        _ => decimal(unsigned, syntax, &mut number)?,
    };
    if !all_blank(rest) {
        return Err(Fault::Syntax);
    }
    if let Some(typmod) = typmod {
        number.apply(typmod)?;
    }
    number.pack()
}

const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const MINUS_INFINITY: u16 = 0xF000;

/// The header of the special value that the text starts with, and the length of its name.
fn special(text: &[u8]) -> Option<(u16, usize)> {
    let named = |header, name: &str| {
        let start = text.get(..name.len())?;
        start.eq_ignore_ascii_case(name.as_bytes()).then_some((header, name.len()))
    };
    named(NAN, "NaN")
        .or_else(|| named(INFINITY, "Infinity"))
        .or_else(|| named(INFINITY, "+Infinity"))
        .or_else(|| named(MINUS_INFINITY, "-Infinity"))
        .or_else(|| named(INFINITY, "inf"))
        .or_else(|| named(INFINITY, "+inf"))
        .or_else(|| named(MINUS_INFINITY, "-inf"))
}

/// Reads a decimal number without its sign, and returns what is behind it.
fn decimal<'a>(
    text: &'a [u8],
    syntax: Syntax,
    number: &mut Unpacked<'_>,
) -> Result<&'a [u8], Fault> {
    let first = if byte_at(text, 0) == b'.' { 1 } else { 0 };
    if !byte_at(text, first).is_ascii_digit() {
        return Err(Fault::Syntax);
    }
    let (length, point) = mantissa_length(text, syntax)?;
    let (mantissa, rest) = text.split_at_checked(length).unwrap_or_default();
    let is_digit = |b: &&u8| b.is_ascii_digit();
    let digits = mantissa.iter().filter(is_digit).count() as i64;
    let fraction = mantissa.get(point..).unwrap_or_default();
    let scale = fraction.iter().filter(is_digit).count() as i64;
    let (exponent, rest) = match (rest, syntax) {
        ([b'e' | b'E', rest @ ..], Syntax::Plain) => c_exponent(rest)?,
        ([b'e' | b'E', rest @ ..], Syntax::Extended) => exponent(rest)?,
        _ => (0, rest),
    };
    number.set_digits(
        mantissa.iter().filter(is_digit).map(|b| b - b'0'),
        digits - scale + exponent,
        (scale - exponent).max(0),
    );
    Ok(rest)
}

/// The length of digits and point, and where the digits after the point start.
fn mantissa_length(text: &[u8], syntax: Syntax) -> Result<(usize, usize), Fault> {
    let (mut at, mut point) = (0, None);
    loop {
        let next = byte_at(text, at + 1);
        match byte_at(text, at) {
            b'0'..=b'9' => {}
            b'.' if point.is_some() => return Err(Fault::Syntax),
            b'.' if syntax == Syntax::Extended && next == b'_' => return Err(Fault::Syntax),
            b'.' => point = Some(at + 1),
            b'_' if syntax == Syntax::Extended && !next.is_ascii_digit() => {
                return Err(Fault::Syntax);
            }
            b'_' if syntax == Syntax::Extended => {}
            _ => return Ok((at, point.unwrap_or(at))),
        }
        at += 1;
    }
}

/// The magnitude that an exponent must stay below.
const EXPONENT_LIMIT: i64 = i32::MAX as i64 / 2;

/// An exponent as the C library reads it, and what is behind it.
fn c_exponent(text: &[u8]) -> Result<(i64, &[u8]), Fault> {
    let number = CInteger::read(text, 10).ok_or(Fault::Syntax)?;
    match number.signed() {
        Some(n) if n > -EXPONENT_LIMIT && n < EXPONENT_LIMIT => {
            Ok((n, text.get(number.end..).unwrap_or_default()))
        }
        _ => Err(Fault::Format),
    }
}

/// An exponent with underscores, and what is behind it.
fn exponent(text: &[u8]) -> Result<(i64, &[u8]), Fault> {
    let mut at = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    if !byte_at(text, at).is_ascii_digit() {
        return Err(Fault::Syntax);
    }
    let mut power = 0;
    loop {
        match byte_at(text, at) {
            digit @ b'0'..=b'9' => power = power * 10 + i64::from(digit - b'0'),
            b'_' if byte_at(text, at + 1).is_ascii_digit() => {}
            b'_' => return Err(Fault::Syntax),
            _ => break,
        }
        if power > EXPONENT_LIMIT {
            return Err(Fault::Format);
        }
        at += 1;
    }
    let power = if text.first() == Some(&b'-') { -power } else { power };
    Ok((power, text.get(at..).unwrap_or_default()))
}

/// Reads the digits of a number of another base, and returns what is behind them.
fn non_decimal<'a>(
    text: &'a [u8],
    base: u32,
    number: &mut Unpacked<'_>,
) -> Result<&'a [u8], Fault> {
    // A group of digits at a time: its value, and the base to the power of their count.
    let (mut group, mut unit) = (0, 1);
    let mut at = 0;
    loop {
        let digit_at = at + usize::from(byte_at(text, at) == b'_');
        let Some(digit) = char::from(byte_at(text, digit_at)).to_digit(base) else {
            if digit_at > at || at == 0 {
                return Err(Fault::Syntax);
            }
            break;
        };
        if unit > u64::from(u32::MAX) / 16 {
            number.multiply_and_add(unit, group)?;
            (group, unit) = (0, 1);
        }
        group = group * u64::from(base) + u64::from(digit);
        unit *= u64::from(base);
        at = digit_at + 1;
    }
    number.multiply_and_add(unit, group)?;
    number.reverse();
    Ok(text.get(at..).unwrap_or_default())
}

#[cfg(test)]
mod tests;
