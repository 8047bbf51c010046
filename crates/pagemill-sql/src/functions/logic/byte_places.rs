//! bytea: single bytes and bits, some bytes in the place of others, bytes cut off, and integers as bytes.
//!
//! Source: `byteaGetByte`, `byteaSetBit`, `bytea_overlay`, `bytea_int4`, `bytea_reverse` and their kin in
//! `src/backend/utils/adt/varlena.c` (from 18 on `bytea.c`), `dobyteatrim` in `oracle_compat.c`, PostgreSQL 14 to 18.

use super::super::integers::out_of_range;
use super::super::rows::{Outcome, Plain, four, one, three, two};
use super::bytes::substring;
use super::{checksums, digest_long};
use crate::error::{SqlState, StatementError};

pub(super) fn plain(key: &str) -> Option<Plain> {
    place(key).or_else(|| integer(key)).or_else(|| {
        Some(match key {
            "byteatrim" => |a| two(a, |x: &[u8], set: &[u8]| Ok(trimmed(x, set, (true, true)))),
            "bytealtrim" => |a| two(a, |x: &[u8], set: &[u8]| Ok(trimmed(x, set, (true, false)))),
            "byteartrim" => |a| two(a, |x: &[u8], set: &[u8]| Ok(trimmed(x, set, (false, true)))),
            "bytea_reverse" => {
                |a| one(a, |x: &[u8]| Ok(x.iter().rev().copied().collect::<Vec<u8>>()))
            }
            "bytea_bit_count" => |a| {
                one(a, |x: &[u8]| {
                    Ok(x.iter().map(|byte| i64::from(byte.count_ones())).sum::<i64>())
                })
            },
            "crc32_bytea" => |a| one(a, |x: &[u8]| Ok(i64::from(checksums::crc32(x)))),
            "crc32c_bytea" => |a| one(a, |x: &[u8]| Ok(i64::from(checksums::crc32c(x)))),
            "sha384_bytea" => |a| one(a, |x: &[u8]| Ok(digest_long::sha384(x))),
            "sha512_bytea" => |a| one(a, |x: &[u8]| Ok(digest_long::sha512(x))),
            _ => return None,
        })
    })
}

/// Single bytes and bits.
fn place(key: &str) -> Option<Plain> {
    Some(match key {
        "byteaGetByte" => |a| {
            two(a, |x: &[u8], place: i32| {
                let place = checked(place.into(), x.len() as i64)?;
                Ok(x.get(place).map_or(0, |byte| i32::from(*byte)))
            })
        },
        "byteaSetByte" => |a| {
            three(a, |x: &[u8], place: i32, new: i32| {
                let place = checked(place.into(), x.len() as i64)?;
                // Of a greater number the last bits.
                Ok(with(x, place, |_| new as u8))
            })
        },
        "byteaGetBit" => |a| {
            two(a, |x: &[u8], place: i64| {
                let place = checked(place, x.len() as i64 * 8)?;
                Ok(x.get(place / 8).map_or(0, |byte| i32::from(byte >> (place % 8) & 1)))
            })
        },
        "byteaSetBit" => |a| three(a, |x: &[u8], place: i64, bit: i32| with_bit(x, place, bit)),
        "byteaoverlay" => {
            |a| four(a, |x: &[u8], y: &[u8], from: i32, count: i32| overlaid(x, y, (from, count)))
        }
        // No value has 2^31 bytes.
        "byteaoverlay_no_len" => {
            |a| three(a, |x: &[u8], y: &[u8], from: i32| overlaid(x, y, (from, y.len() as i32)))
        }
        _ => return None,
    })
}

/// Integers as bytes, the highest one first, and back.
fn integer(key: &str) -> Option<Plain> {
    Some(match key {
        "int2_bytea" => |a| one(a, |x: i16| Ok(x.to_be_bytes().to_vec())),
        "int4_bytea" => |a| one(a, |x: i32| Ok(x.to_be_bytes().to_vec())),
        "int8_bytea" => |a| one(a, |x: i64| Ok(x.to_be_bytes().to_vec())),
        "bytea_int2" => |a| one(a, |x: &[u8]| Ok(i16::from_be_bytes(padded(x, "smallint")?))),
        "bytea_int4" => |a| one(a, |x: &[u8]| Ok(i32::from_be_bytes(padded(x, "integer")?))),
        "bytea_int8" => |a| one(a, |x: &[u8]| Ok(i64::from_be_bytes(padded(x, "bigint")?))),
        _ => return None,
    })
}

/// With zeros in front.
fn padded<const N: usize>(bytes: &[u8], name: &str) -> Outcome<[u8; N]> {
    let mut all = [0; N];
    let start = N.checked_sub(bytes.len()).ok_or_else(|| out_of_range(name))?;
    all.iter_mut().skip(start).zip(bytes).for_each(|(to, from)| *to = *from);
    Ok(all)
}

/// A place among so many.
fn checked(place: i64, count: i64) -> Outcome<usize> {
    usize::try_from(place).ok().filter(|_| place < count).ok_or_else(|| {
        let message = format!("index {place} out of valid range, 0..{}", count - 1);
        StatementError::new(SqlState("2202E"), message)
    })
}

fn with(bytes: &[u8], place: usize, of: impl FnOnce(u8) -> u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(byte) = bytes.get_mut(place) {
        *byte = of(*byte);
    }
    bytes
}

fn with_bit(bytes: &[u8], place: i64, bit: i32) -> Outcome<Vec<u8>> {
    let place = checked(place, bytes.len() as i64 * 8)?;
    let mask = 1 << (place % 8);
    match bit {
        0 => Ok(with(bytes, place / 8, |byte| byte & !mask)),
        1 => Ok(with(bytes, place / 8, |byte| byte | mask)),
        _ => {
            let message = "new bit must be 0 or 1";
            Err(StatementError::new(SqlState::INVALID_PARAMETER, message))
        }
    }
}

/// Others in the place of so many bytes from one on, counted from 1.
fn overlaid(bytes: &[u8], others: &[u8], (from, count): (i32, i32)) -> Outcome<Vec<u8>> {
    if from <= 0 {
        let message = "negative substring length not allowed";
        return Err(StatementError::new(SqlState::SUBSTRING_ERROR, message));
    }
    let behind = from.checked_add(count).ok_or_else(|| out_of_range("integer"))?;
    let (before, behind) = (substring(bytes, 1, Some(from - 1))?, substring(bytes, behind, None)?);
    Ok([&before, others, &behind].concat())
}

/// Without the bytes of a set at the beginning, at the end or at both.
fn trimmed(bytes: &[u8], set: &[u8], (at_start, at_end): (bool, bool)) -> Vec<u8> {
    let mut left = bytes;
    while let (true, [first, rest @ ..]) = (at_start, left) {
        if !set.contains(first) {
            break;
        }
        left = rest;
    }
    while let (true, [rest @ .., last]) = (at_end, left) {
        if !set.contains(last) {
            break;
        }
        left = rest;
    }
    left.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_bits_are_put_in_place() {
        assert_eq!(with_bit(&[0, 0], 9, 1).unwrap(), [0, 2]);
        assert!(with_bit(&[0], 8, 1).is_err() && with_bit(&[0], 0, 2).is_err());
        assert_eq!(overlaid(b"abcdef", b"XY", (2, 3)).unwrap(), b"aXYef");
        assert_eq!(overlaid(b"abc", b"X", (9, 1)).unwrap(), b"abcX");
        assert!(overlaid(b"abc", b"X", (i32::MAX, 1)).is_err());
    }

    #[test]
    fn bytes_are_trimmed_and_padded() {
        assert_eq!(trimmed(b"xxayx", b"xy", (true, true)), b"a");
        assert_eq!(trimmed(b"xxayx", b"xy", (false, true)), b"xxa");
        assert_eq!(trimmed(b"xx", b"x", (true, true)), b"");
        assert_eq!(i32::from_be_bytes(padded(&[1, 2], "integer").unwrap()), 258);
        assert!(padded::<2>(&[1, 2, 3], "smallint").is_err());
    }
}
