//! `bit` and `bit varying`: single bits, where some bits are in others, and some in the place of others.
//!
//! Bits are counted from 0 in `get_bit` and `set_bit`, from 1 elsewhere.
//!
//! Source: `bitposition`, `bit_overlay`, `bitgetbit`, `bitsetbit` in `src/backend/utils/adt/varbit.c`, PostgreSQL 14 to 18.

use arrow::array::ArrayRef;

use super::bit_strings::{bits, length, of_bits, part};
use super::integers::out_of_range;
use super::rows::{Outcome, Plain, four, run, three, two};
use super::{Implementation, KernelCall};
use crate::error::{SqlState, StatementError};

pub(crate) fn find(key: &str) -> Option<Implementation> {
    plain(key).map(|_| Implementation::Kernel(kernel))
}

fn kernel(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    run(plain, call, arguments)
}

/// Functions that depend on their arguments alone.
pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "bitposition" => |a| two(a, |x: &[u8], wanted: &[u8]| Ok(position(x, wanted))),
        "bitoverlay" => {
            |a| four(a, |x: &[u8], y: &[u8], from: i32, count: i32| overlaid(x, y, (from, count)))
        }
        // No value has 2^31 bits.
        "bitoverlay_no_len" => {
            |a| three(a, |x: &[u8], y: &[u8], from: i32| overlaid(x, y, (from, length(y) as i32)))
        }
        "bitgetbit" => |a| {
            two(a, |x: &[u8], place: i32| {
                let place = checked(x, place)?;
                Ok(bits(x).nth(place).map_or(0, i32::from))
            })
        },
        "bitsetbit" => |a| three(a, |x: &[u8], place: i32, bit: i32| with_bit(x, place, bit)),
        _ => return None,
    })
}

fn position(payload: &[u8], wanted: &[u8]) -> i32 {
    let (all, wanted): (Vec<bool>, Vec<bool>) = (bits(payload).collect(), bits(wanted).collect());
    if all.is_empty() || wanted.is_empty() {
        return i32::from(!all.is_empty());
    }
    let found = all.windows(wanted.len()).position(|part| part == wanted);
    found.map_or(0, |at| at as i32 + 1)
}

/// Others in the place of so many bits from one on.
fn overlaid(payload: &[u8], others: &[u8], (from, count): (i32, i32)) -> Outcome<Vec<u8>> {
    if from <= 0 {
        let message = "negative substring length not allowed";
        return Err(StatementError::new(SqlState::SUBSTRING_ERROR, message));
    }
    let behind = from.checked_add(count).ok_or_else(|| out_of_range("integer"))?;
    let (before, behind) = (part(payload, 1, Some(from - 1))?, part(payload, behind, None)?);
    Ok(of_bits(bits(&before).chain(bits(others)).chain(bits(&behind))))
}

fn checked(payload: &[u8], place: i32) -> Outcome<usize> {
    let length = length(payload);
    usize::try_from(place).ok().filter(|place| *place < length).ok_or_else(|| {
        let last = length as i64 - 1;
        let message = format!("bit index {place} out of valid range (0..{last})");
        StatementError::new(SqlState("2202E"), message)
    })
}

fn with_bit(payload: &[u8], place: i32, bit: i32) -> Outcome<Vec<u8>> {
    let place = checked(payload, place)?;
    if !matches!(bit, 0 | 1) {
        let message = "new bit must be 0 or 1";
        return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
    }
    Ok(of_bits(bits(payload).enumerate().map(|(at, own)| if at == place { bit == 1 } else { own })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<u8> {
        of_bits(text.bytes().map(|byte| byte == b'1'))
    }

    #[test]
    fn bits_are_found_and_put_in_place() {
        assert_eq!(position(&of("0000000000001010"), &of("1010")), 13);
        assert_eq!(position(&of("1010"), &of("")), 1);
        assert_eq!(position(&of(""), &of("")), 0);
        assert_eq!(overlaid(&of("0101011100"), &of("001"), (2, 3)).unwrap(), of("0001011100"));
        assert_eq!(with_bit(&of("0101"), 0, 1).unwrap(), of("1101"));
        assert!(with_bit(&of("0101"), 4, 1).is_err() && with_bit(&of("0101"), 0, 2).is_err());
        assert!(overlaid(&of("01"), &of("1"), (0, 1)).is_err());
    }
}
