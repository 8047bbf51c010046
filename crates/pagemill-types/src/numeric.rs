//! `numeric`: base-10000 digits behind a header of 2 or 4 bytes.
//!
//! ```text
//! 0b10 | sign 1 | dscale 6 | weight 7 (signed)      short header, 2 bytes
//! 0b0s | dscale 14, then weight i16                 long header, 4 bytes; s is the sign
//! 0b11 | 00 NaN, 01 Infinity, 11 -Infinity          special value
//! ```
//!
//! The first digit counts 10000^weight, and `dscale` decimal places are printed, whether stored
//! or not. Invariant: every digit is below 10000, else the value is corrupt.
//! Source: `numeric_out` and `get_str_from_var` in `src/backend/utils/adt/numeric.c`,
//! PostgreSQL 14 to 18.

use pagemill_format::error::{Error, Result};

use super::digits::{push_integer, quad};

/// `numeric`, alias `decimal`.
///
/// # Errors
/// When the header is cut off, a digit is 10000 or more, or half a digit is left over.
pub fn write_numeric(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (header, digits) = Header::split(value)?;
    match header {
        Header::Special(text) => out.extend_from_slice(text.as_bytes()),
        Header::Finite(layout) => {
            if !digits.len().is_multiple_of(2) {
                return Err(Error::corrupt("numeric", value.len(), "half a digit at the end"));
            }
            layout.write(digits.as_chunks().0, out)?;
        }
    }
    Ok(())
}

/// A numeric as it lies in its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numeric<'v> {
    /// Not a number.
    NaN,
    /// Larger than every other.
    Infinity,
    /// Smaller than every other.
    NegativeInfinity,
    /// A number: the sum of `digits[i] * 10000^(weight - i)`.
    Finite {
        /// True below zero.
        negative: bool,
        /// Decimal places that are printed, whether stored or not.
        dscale: u16,
        /// The power of 10000 that the first digit counts.
        weight: i32,
        /// Base-10000 digits, each a little-endian `u16` below 10000.
        digits: &'v [[u8; 2]],
    },
}

impl<'v> Numeric<'v> {
    /// # Errors
    /// When the header is cut off, a digit is 10000 or more, or half a digit is left over.
    pub fn parse(payload: &'v [u8]) -> Result<Self> {
        let (header, digits) = Header::split(payload)?;
        let Layout { negative, dscale, weight } = match header {
            Header::Special("Infinity") => return Ok(Self::Infinity),
            Header::Special("-Infinity") => return Ok(Self::NegativeInfinity),
            Header::Special(_) => return Ok(Self::NaN),
            Header::Finite(layout) => layout,
        };
        let (digits, []) = digits.as_chunks() else {
            return Err(Error::corrupt("numeric", payload.len(), "half a digit at the end"));
        };
        digits.iter().try_for_each(|digit| checked(*digit).map(drop))?;
        Ok(Self::Finite { negative, dscale: dscale as u16, weight, digits })
    }

    /// The number times 10^`scale` as an integer, if it is one without rounding and fits.
    #[inline]
    pub fn scaled(&self, scale: u32) -> Option<i128> {
        let Self::Finite { negative, weight, digits, .. } = self else { return None };
        let mut sum: i128 = 0;
        for digit in *digits {
            let digit = i128::from(u16::from_le_bytes(*digit));
            // The last digits may be more than fit, where they are zeros that the scale cuts off.
            let Some(more) = sum.checked_mul(10_000).and_then(|sum| sum.checked_add(digit)) else {
                return self.scaled_by_digits(scale);
            };
            sum = more;
        }
        // The power of ten that the last digit counts, once the number is scaled.
        let last = i64::from(*weight) - digits.len() as i64 + 1;
        let power = 4 * last + i64::from(scale);
        let size = match usize::try_from(power) {
            _ if sum == 0 => 0,
            Ok(power) => sum.checked_mul(*POWERS_OF_TEN.get(power)?)?,
            Err(_) => {
                let Some(divisor) = POWERS_OF_TEN.get(usize::try_from(-power).ok()?) else {
                    return self.scaled_by_digits(scale);
                };
                if sum % divisor != 0 {
                    return None;
                }
                sum / divisor
            }
        };
        Some(if *negative { -size } else { size })
    }

    /// The same, each digit by itself.
    #[cold]
    fn scaled_by_digits(&self, scale: u32) -> Option<i128> {
        let Self::Finite { negative, weight, digits, .. } = self else { return None };
        let mut sum: i128 = 0;
        for (at, digit) in (0i64..).zip(*digits) {
            let digit = i128::from(u16::from_le_bytes(*digit));
            let power = 4 * (i64::from(*weight) - at) + i64::from(scale);
            let part = match u32::try_from(power) {
                _ if digit == 0 => 0,
                Ok(power) => digit.checked_mul(10i128.checked_pow(power)?)?,
                Err(_) => {
                    let divisor = 10i128.checked_pow(u32::try_from(-power).ok()?)?;
                    if digit % divisor != 0 {
                        return None;
                    }
                    digit / divisor
                }
            };
            sum = sum.checked_add(part)?;
        }
        Some(if *negative { -sum } else { sum })
    }
}

/// The payload of most numerics that there are, one of the short form with at most four digits of its own, as an integer over
/// 10^`scale`, and that scale: without one, the places that it is printed with. `None` for every other payload, and where that
/// is no integer of 64 bits.
#[inline]
pub fn short_scaled(payload: &[u8], scale: Option<u32>) -> Option<(i64, u32)> {
    let (header, digits) = payload.split_first_chunk()?;
    let header = u16::from_le_bytes(*header);
    let (digits, []) = digits.as_chunks::<2>() else { return None };
    if header >> 14 != 0b10 || digits.len() > 4 {
        return None;
    }
    let Layout { negative, dscale, weight } = Layout::short(header);
    let mut sum: u64 = 0;
    for digit in digits {
        let digit = u16::from_le_bytes(*digit);
        if digit >= 10_000 {
            return None;
        }
        sum = sum * 10_000 + u64::from(digit);
    }
    let scale = scale.unwrap_or(dscale as u32);
    // The power of ten that the last digit counts, once the number is scaled.
    let power = i64::from(4 * (weight + 1 - digits.len() as i32)) + i64::from(scale);
    let of_ten = match usize::try_from(power.unsigned_abs()) {
        _ if sum == 0 => 1,
        Ok(power) => *SMALL_POWERS_OF_TEN.get(power)?,
        Err(_) => return None,
    };
    let size = match power >= 0 {
        true => sum.checked_mul(of_ten)?,
        false if sum.is_multiple_of(of_ten) => sum / of_ten,
        false => return None,
    };
    let size = i64::try_from(size).ok()?;
    Some((if negative { -size } else { size }, scale))
}

/// Those that a `u64` holds.
pub const SMALL_POWERS_OF_TEN: [u64; 20] = {
    let mut powers = [1; 20];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Those that an `i128` holds.
const POWERS_OF_TEN: [i128; 39] = {
    let mut powers = [1; 39];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

enum Header {
    Special(&'static str),
    Finite(Layout),
}

/// What a header says about the digits after it.
struct Layout {
    negative: bool,
    dscale: usize,
    weight: i32,
}

impl Header {
    fn split(value: &[u8]) -> Result<(Self, &[u8])> {
        let Some((first, rest)) = value.split_first_chunk() else {
            return Err(cut_off(value.len()));
        };
        let first = u16::from_le_bytes(*first);
        match first >> 14 {
            0b11 => Ok((Self::Special(special(first)), rest)),
            0b10 => Ok((Self::Finite(Layout::short(first)), rest)),
            _ => {
                let Some((weight, rest)) = rest.split_first_chunk() else {
                    return Err(cut_off(value.len()));
                };
                let weight = i16::from_le_bytes(*weight).into();
                let layout = Layout {
                    negative: first & 0x4000 != 0,
                    dscale: (first & 0x3FFF).into(),
                    weight,
                };
                Ok((Self::Finite(layout), rest))
            }
        }
    }
}

fn special(header: u16) -> &'static str {
    match header {
        0xD000 => "Infinity",
        0xF000 => "-Infinity",
        _ => "NaN",
    }
}

#[cold]
fn cut_off(length: usize) -> Error {
    Error::corrupt("numeric", length, "the header is cut off")
}

impl Layout {
    fn short(header: u16) -> Self {
        // The weight's sign bit is bit 6: shift it up to the word's own, and back.
        let weight = i32::from((header << 9) as i16 >> 9);
        Self { negative: header & 0x2000 != 0, dscale: usize::from(header >> 7 & 0x3F), weight }
    }

    fn write(&self, digits: &[[u8; 2]], out: &mut Vec<u8>) -> Result<()> {
        if self.negative {
            out.push(b'-');
        }
        // Digits before the point; a negative weight has none, and leaves a gap of zeros behind it.
        let before = usize::try_from(self.weight + 1).unwrap_or(0);
        let gap = usize::try_from(-self.weight - 1).unwrap_or(0);
        let (whole, fraction) = digits.split_at(before.min(digits.len()));
        write_whole(whole, before, out)?;
        if self.dscale == 0 {
            return Ok(());
        }
        out.push(b'.');
        let end = out.len() + self.dscale;
        out.resize(out.len() + (4 * gap).min(self.dscale), b'0');
        for digit in fraction {
            if out.len() >= end {
                break;
            }
            out.extend_from_slice(&quad(checked(*digit)?));
        }
        out.resize(end, b'0');
        Ok(())
    }
}

/// Appends `places` base-10000 digits, those that are stored and then zeros, without zeros in
/// front but for a single 0.
fn write_whole(stored: &[[u8; 2]], places: usize, out: &mut Vec<u8>) -> Result<()> {
    let Some((first, rest)) = stored.split_first() else {
        // The value is zero or below one; a stored zero has weight 0.
        out.push(b'0');
        out.resize(out.len() + 4 * places.saturating_sub(1), b'0');
        return Ok(());
    };
    push_integer(checked(*first)?, out);
    for digit in rest {
        out.extend_from_slice(&quad(checked(*digit)?));
    }
    out.resize(out.len() + 4 * (places - stored.len()), b'0');
    Ok(())
}

#[inline]
fn checked(digit: [u8; 2]) -> Result<u32> {
    match u16::from_le_bytes(digit) {
        small @ 0..=9999 => Ok(small.into()),
        large => Err(too_large(large)),
    }
}

#[cold]
fn too_large(digit: u16) -> Error {
    Error::corrupt("numeric", 0, format!("a base-10000 digit of {digit}"))
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    /// A value from its 16-bit words.
    fn numeric(words: &[u16]) -> String {
        let value: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        printed(write_numeric, &value)
    }

    #[test]
    fn a_short_header_holds_sign_scale_and_weight() {
        assert_eq!(numeric(&[0x8000]), "0");
        assert_eq!(numeric(&[0x8100]), "0.00");
        assert_eq!(numeric(&[0x8000, 42]), "42");
        assert_eq!(numeric(&[0xA101, 1, 2345, 6700]), "-12345.67");
        assert_eq!(numeric(&[0x8002, 1]), "100000000");
        assert_eq!(numeric(&[0x8000 | 5 << 7 | 0x7F, 12, 3000]), "0.00123");
        assert_eq!(numeric(&[0x8000 | 8 << 7 | 0x7E, 5]), "0.00000005");
    }

    #[test]
    fn a_long_header_has_a_word_for_the_weight() {
        assert_eq!(numeric(&[0x4002, 0, 7, 5000]), "-7.50");
        assert_eq!(numeric(&[0x0000, 2, 12]), "1200000000");
        assert_eq!(numeric(&[0x0002, 0xFFFF, 9900]), "0.99");
        assert_eq!(numeric(&[0x0002, 0xFFF0, 9900]), "0.00");
    }

    #[test]
    fn special_values_have_names() {
        assert_eq!(numeric(&[0xC000]), "NaN");
        assert_eq!(numeric(&[0xC000, 0]), "NaN");
        assert_eq!(numeric(&[0xD000]), "Infinity");
        assert_eq!(numeric(&[0xF000]), "-Infinity");
    }

    #[test]
    fn damage_is_an_error() {
        for value in [&b""[..], &[0], &[0, 0], &[0, 0, 0], &[0, 0x80, 1], &[0, 0x80, 0x10, 0x27]] {
            assert!(write_numeric(value, &mut Vec::new()).is_err(), "{value:?}");
        }
    }
}
