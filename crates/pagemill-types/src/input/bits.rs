//! The input of `bit` and `varbit`: binary digits, with `b` in front or without, or hexadecimal ones
//! behind an `x`.
//!
//! Source: `bit_in` and `varbit_in` in `src/backend/utils/adt/varbit.c`, PostgreSQL 14 to 18.

use super::InputError;
use super::characters::Encoding;
use super::hexadecimal::digit_value;

/// The most bits there can be (`VARBITMAXLEN`).
const MAX_BITS: usize = i32::MAX as usize - 7;

/// `bit(n)`: exactly n bits.
pub(crate) fn read_bit<E: Encoding>(
    text: &[u8],
    typmod: i32,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let bits = Bits::parse(text)?;
    if typmod > 0 && bits.count() != typmod as usize {
        let count = bits.count();
        return Err(InputError::new(format!(
            "bit string length {count} does not match type bit({typmod})"
        )));
    }
    bits.store::<E>(out)
}

/// `varbit`, alias `bit varying`.
pub(crate) fn read_varbit<E: Encoding>(
    text: &[u8],
    typmod: i32,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let bits = Bits::parse(text)?;
    if typmod > 0 && bits.count() > typmod as usize {
        let message = format!("bit string too long for type bit varying({typmod})");
        return Err(InputError::new(message));
    }
    bits.store::<E>(out)
}

enum Bits<'a> {
    Binary(&'a [u8]),
    Hexadecimal(&'a [u8]),
}

impl<'a> Bits<'a> {
    fn parse(text: &'a [u8]) -> Result<Self, InputError> {
        match text {
            [b'b' | b'B', digits @ ..] => Ok(Self::Binary(digits)),
            [b'x' | b'X', digits @ ..] if digits.len() > MAX_BITS / 4 => Err(InputError::new(
                format!("bit string length exceeds the maximum allowed ({MAX_BITS})"),
            )),
            [b'x' | b'X', digits @ ..] => Ok(Self::Hexadecimal(digits)),
            digits => Ok(Self::Binary(digits)),
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Binary(digits) => digits.len(),
            Self::Hexadecimal(digits) => digits.len() * 4,
        }
    }

    /// Appends the number of bits, and the bits.
    fn store<E: Encoding>(&self, out: &mut Vec<u8>) -> Result<(), InputError> {
        out.extend_from_slice(&(self.count() as u32).to_le_bytes());
        match self {
            Self::Binary(digits) => {
                for chunk in digits.chunks(8) {
                    let byte = binary_byte(chunk);
                    out.push(byte.ok_or_else(|| bad_digit::<E>(digits, "binary", binary_digit))?);
                }
            }
            Self::Hexadecimal(digits) => {
                for chunk in digits.chunks(2) {
                    let byte = hexadecimal_byte(chunk);
                    let fault = || bad_digit::<E>(digits, "hexadecimal", digit_value);
                    out.push(byte.ok_or_else(fault)?);
                }
            }
        }
        Ok(())
    }
}

fn binary_digit(byte: u8) -> Option<u8> {
    matches!(byte, b'0' | b'1').then(|| byte - b'0')
}

/// The byte of up to eight digits, the first one its highest bit.
#[inline]
fn binary_byte(digits: &[u8]) -> Option<u8> {
    let mut byte = 0;
    for (digit, shift) in digits.iter().zip((0..8).rev()) {
        byte |= binary_digit(*digit)? << shift;
    }
    Some(byte)
}

/// The byte of one or two digits, the first one its high half.
#[inline]
fn hexadecimal_byte(digits: &[u8]) -> Option<u8> {
    let mut byte = 0;
    for (digit, shift) in digits.iter().zip([4, 0]) {
        byte |= digit_value(*digit)? << shift;
    }
    Some(byte)
}

/// The complaint about the first byte that is no digit.
#[cold]
fn bad_digit<E: Encoding>(text: &[u8], kind: &str, value: fn(u8) -> Option<u8>) -> InputError {
    let at = text.iter().position(|&b| value(b).is_none()).unwrap_or(0);
    let shown = E::first(text.get(at..).unwrap_or_default());
    InputError::new(format!("\"{shown}\" is not a valid {kind} digit"))
}

#[cfg(test)]
mod tests {
    use super::super::ScalarReader;
    use super::super::characters::Utf8;
    use super::super::tests::value;
    use super::*;
    use crate::bits::write_varbit;
    use proptest::prelude::*;

    fn refused(read: ScalarReader, text: &str, typmod: i32) -> String {
        read(text.as_bytes(), typmod, &mut Vec::new()).unwrap_err().message
    }

    #[test]
    fn digits_are_binary_or_hexadecimal() {
        let bits = |text: &str| value(read_varbit::<Utf8>, text);
        assert_eq!(bits(""), [0, 0, 0, 0]);
        assert_eq!(bits("b1010000111"), [10, 0, 0, 0, 0b1010_0001, 0b1100_0000]);
        assert_eq!(bits("Xa1F"), [12, 0, 0, 0, 0xA1, 0xF0]);
        assert_eq!(bits("1"), [1, 0, 0, 0, 0x80]);
    }

    #[test]
    fn the_length_has_to_fit() {
        let message = "bit string length 4 does not match type bit(3)";
        assert_eq!(refused(read_bit::<Utf8>, "1010", 3), message);
        assert_eq!(refused(read_bit::<Utf8>, "xA", 3), message);
        let message = "bit string too long for type bit varying(3)";
        assert_eq!(refused(read_varbit::<Utf8>, "1010", 3), message);
        assert!(read_varbit::<Utf8>(b"10", 3, &mut Vec::new()).is_ok());
        assert!(read_bit::<Utf8>(b"101", 3, &mut Vec::new()).is_ok());
    }

    #[test]
    fn a_byte_that_is_no_digit_is_named() {
        assert_eq!(
            refused(read_varbit::<Utf8>, "0000000012", -1),
            "\"2\" is not a valid binary digit"
        );
        assert_eq!(refused(read_varbit::<Utf8>, "1€", -1), "\"€\" is not a valid binary digit");
        assert_eq!(
            refused(read_varbit::<Utf8>, "x00g", -1),
            "\"g\" is not a valid hexadecimal digit"
        );
        assert_eq!(refused(read_bit::<Utf8>, " 1", -1), "\" \" is not a valid binary digit");
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(text in "[01]{0,70}") {
            let mut printed = Vec::new();
            write_varbit(&value(read_varbit::<Utf8>, &text), &mut printed).unwrap();
            prop_assert_eq!(printed, text.as_bytes());
        }
    }
}
