//! `bit` and `bit varying`: lengths, operators, parts, and integers as bits.
//!
//! A payload is the number of bits in four bytes, then the bits, the first one highest; those behind the last are 0.
//!
//! Source: `src/backend/utils/adt/varbit.c`, PostgreSQL 14 to 18.

use arrow::array::ArrayRef;

use super::rows::{Outcome, Plain, one, run, three, two};
use super::{Implementation, KernelCall};
use crate::error::{SqlState, StatementError};

pub(crate) fn find(key: &str) -> Option<Implementation> {
    plain(key).map(|_| Implementation::Kernel(kernel))
}

fn kernel(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    run(plain, call, arguments)
}

fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "bit" => {
            |a| three(a, |bits: &[u8], length: i32, explicit: bool| fixed(bits, length, explicit))
        }
        "varbit" => {
            |a| three(a, |bits: &[u8], length: i32, explicit: bool| at_most(bits, length, explicit))
        }
        "bitfromint4" => |a| two(a, |x: i32, length: i32| Ok(of_integer(x.into(), length))),
        "bitfromint8" => |a| two(a, |x: i64, length: i32| Ok(of_integer(x, length))),
        "bittoint4" => |a| {
            one(a, |bits: &[u8]| match length(bits) {
                0..=32 => Ok(integer(bits) as u32 as i32),
                _ => Err(StatementError::new(SqlState("22003"), "integer out of range")),
            })
        },
        "bittoint8" => |a| {
            one(a, |bits: &[u8]| match length(bits) {
                0..=64 => Ok(integer(bits) as i64),
                _ => Err(StatementError::new(SqlState("22003"), "bigint out of range")),
            })
        },
        "bit_and" => |a| two(a, |x: &[u8], y: &[u8]| both(x, y, "AND", |x, y| x & y)),
        "bit_or" => |a| two(a, |x: &[u8], y: &[u8]| both(x, y, "OR", |x, y| x | y)),
        "bitxor" => |a| two(a, |x: &[u8], y: &[u8]| both(x, y, "XOR", |x, y| x ^ y)),
        "bitnot" => |a| {
            one(a, |bits: &[u8]| {
                Ok(payload(length(bits), &data(bits).iter().map(|byte| !byte).collect::<Vec<u8>>()))
            })
        },
        "bitshiftleft" => |a| two(a, |x: &[u8], by: i32| Ok(shifted(x, by.into()))),
        "bitshiftright" => |a| two(a, |x: &[u8], by: i32| Ok(shifted(x, -i64::from(by)))),
        "bitcat" => |a| two(a, |x: &[u8], y: &[u8]| Ok(of_bits(bits(x).chain(bits(y))))),
        "bitlength" => |a| one(a, |x: &[u8]| Ok(length(x) as i32)),
        "bitoctetlength" => |a| one(a, |x: &[u8]| Ok(data(x).len() as i32)),
        "bit_bit_count" => |a| {
            one(a, |x: &[u8]| {
                Ok(data(x).iter().map(|byte| i64::from(byte.count_ones())).sum::<i64>())
            })
        },
        "bitsubstr" => |a| three(a, |x: &[u8], from: i32, count: i32| part(x, from, Some(count))),
        "bitsubstr_no_len" => |a| two(a, |x: &[u8], from: i32| part(x, from, None)),
        _ => return None,
    })
}

/// How many bits there are.
pub(super) fn length(payload: &[u8]) -> usize {
    payload.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes).max(0) as usize)
}

fn data(payload: &[u8]) -> &[u8] {
    payload.get(4..).unwrap_or_default()
}

pub(super) fn bits(payload: &[u8]) -> impl Iterator<Item = bool> {
    let bit =
        |at: usize| data(payload).get(at / 8).is_some_and(|byte| byte & (0x80 >> (at % 8)) != 0);
    (0..length(payload)).map(bit)
}

/// So many bits of some bytes, or zeros behind them.
fn payload(length: usize, bytes: &[u8]) -> Vec<u8> {
    let mut made = (length as i32).to_le_bytes().to_vec();
    made.extend_from_slice(&bytes[..bytes.len().min(length.div_ceil(8))]);
    made.resize(4 + length.div_ceil(8), 0);
    if let (Some(last), rest @ 1..) = (made.last_mut(), length % 8) {
        *last &= 0xFF << (8 - rest);
    }
    made
}

pub(super) fn of_bits(bits: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut length = 0;
    for bit in bits {
        if length % 8 == 0 {
            bytes.push(0);
        }
        if let (true, Some(last)) = (bit, bytes.last_mut()) {
            *last |= 0x80 >> (length % 8);
        }
        length += 1;
    }
    payload(length, &bytes)
}

#[cold]
fn wrong(state: &'static str, message: String) -> StatementError {
    StatementError::new(SqlState(state), message)
}

/// No type is longer.
///
/// Source: `MaxAttrSize` in `src/include/access/htup_details.h`, PostgreSQL 14 to 18.
const MOST_BITS: usize = (10 << 20) * 8;

/// `bit(n)`.
fn fixed(bits: &[u8], wanted: i32, explicit: bool) -> Outcome<Vec<u8>> {
    let own = length(bits);
    match usize::try_from(wanted) {
        // Calls of the function may ask for more than any type has room for; the server gives what it was given.
        Ok(wanted) if wanted > MOST_BITS => Ok(bits.to_vec()),
        Ok(wanted) if wanted > 0 && wanted != own => match explicit {
            true => Ok(payload(wanted, data(bits))),
            false => {
                let message = format!("bit string length {own} does not match type bit({wanted})");
                Err(wrong("22026", message))
            }
        },
        _ => Ok(bits.to_vec()),
    }
}

/// `bit varying(n)`.
fn at_most(bits: &[u8], most: i32, explicit: bool) -> Outcome<Vec<u8>> {
    match usize::try_from(most) {
        Ok(most) if most > 0 && most < length(bits) => match explicit {
            true => Ok(payload(most, data(bits))),
            false => {
                let message = format!("bit string too long for type bit varying({most})");
                Err(wrong("22001", message))
            }
        },
        _ => Ok(bits.to_vec()),
    }
}

/// The last bits of an integer, its sign in front of them where more are wanted.
fn of_integer(number: i64, length: i32) -> Vec<u8> {
    let length = usize::try_from(length).ok().filter(|length| (1..=MOST_BITS).contains(length));
    let length = length.unwrap_or(1); // default: the server's for all others
    let bit = |from_right: usize| number >> from_right.min(63) & 1 == 1;
    of_bits((0..length).rev().map(bit))
}

fn integer(payload: &[u8]) -> u64 {
    bits(payload).fold(0, |number, bit| number << 1 | u64::from(bit))
}

fn both(x: &[u8], y: &[u8], name: &str, of: fn(u8, u8) -> u8) -> Outcome<Vec<u8>> {
    if length(x) != length(y) {
        return Err(wrong("22026", format!("cannot {name} bit strings of different sizes")));
    }
    let bytes: Vec<u8> = data(x).iter().zip(data(y)).map(|(x, y)| of(*x, *y)).collect();
    Ok(payload(length(x), &bytes))
}

/// To the left, or below 0 to the right.
fn shifted(payload: &[u8], left: i64) -> Vec<u8> {
    let length = length(payload);
    let own: Vec<bool> = bits(payload).collect();
    let bit = |at: usize| {
        let from = i64::try_from(at).ok().and_then(|at| at.checked_add(left));
        from.and_then(|from| usize::try_from(from).ok()).and_then(|from| own.get(from).copied())
    };
    of_bits((0..length).map(|at| bit(at).unwrap_or(false)))
}

pub(super) fn part(payload: &[u8], from: i32, count: Option<i32>) -> Outcome<Vec<u8>> {
    let end = i64::try_from(length(payload)).unwrap_or(i64::MAX) + 1;
    let to = match count {
        None => end,
        Some(..0) => {
            return Err(wrong("22011", "negative substring length not allowed".to_owned()));
        }
        Some(count) => (i64::from(from) + i64::from(count)).min(end),
    };
    let from = i64::from(from).max(1);
    let taken = usize::try_from(to - from).unwrap_or(0);
    Ok(of_bits(bits(payload).skip(usize::try_from(from - 1).unwrap_or(0)).take(taken)))
}

/// Bytes that sort as bits do: the bytes, and among those that begin alike the shorter first.
pub(crate) fn order_key(payload: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(data(payload).len() * 2 + 5);
    for byte in data(payload) {
        key.extend([1, *byte]);
    }
    key.push(0);
    key.extend((length(payload) as u32).to_be_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<u8> {
        of_bits(text.bytes().map(|byte| byte == b'1'))
    }

    #[test]
    fn integers_are_bits_and_bits_integers() {
        assert_eq!(of_integer(5, 4), of("0101"));
        assert_eq!(of_integer(-1, 70), of(&"1".repeat(70)));
        assert_eq!(of_integer(44, 3), of("100"));
        assert_eq!(integer(&of("101100")), 44);
    }

    #[test]
    fn bits_are_cut_shifted_and_ordered() {
        assert_eq!(shifted(&of("110010011"), 2), of("001001100"));
        assert_eq!(shifted(&of("110010011"), -3), of("000110010"));
        assert_eq!(part(&of("110010011"), 3, Some(4)).unwrap(), of("0010"));
        assert_eq!(payload(3, &[0xFF]), of("111"));
        assert!(order_key(&of("1")) < order_key(&of("10")));
        assert!(order_key(&of("01111111111")) < order_key(&of("1")));
    }
}
