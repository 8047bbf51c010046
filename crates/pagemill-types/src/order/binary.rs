//! Orders of types that are numbers or bytes: integers and what is stored as one, floats, bytea,
//! uuid, MAC addresses, bit strings, tid, oidvector.
//!
//! Invariant: numbers are little-endian, of one to eight bytes; longer values count by their first eight.
//! Sources: `src/backend/access/nbtree/nbtcompare.c`, `bit_cmp` in `src/backend/utils/adt/varbit.c`,
//! `float8_cmp_internal` in `src/include/utils/float.h`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use super::first_bytes;

/// Bit strings begin with their length in bits.
const BIT_LENGTH: usize = 4;
/// Where an oidvector has its length, and its values.
const VECTOR_LENGTH: usize = 12;
const VECTOR_VALUES: usize = 20;

#[inline]
pub(super) fn unsigned(value: &[u8]) -> u64 {
    match *value {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        _ => first_bytes(value).swap_bytes(),
    }
}

#[inline]
fn signed(value: &[u8]) -> i64 {
    match *value {
        [a] => i64::from(a as i8),
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => first_bytes(value).swap_bytes() as i64,
    }
}

/// A signed number's place among the unsigned ones.
#[inline]
pub(super) fn biased(number: i64) -> u64 {
    number as u64 ^ 1 << 63
}

pub(super) fn compare_unsigned(a: &[u8], b: &[u8]) -> Ordering {
    unsigned(a).cmp(&unsigned(b))
}

pub(super) fn compare_signed(a: &[u8], b: &[u8]) -> Ordering {
    signed(a).cmp(&signed(b))
}

pub(super) fn abbreviate_signed(value: &[u8]) -> u64 {
    biased(signed(value))
}

pub(super) fn compare_bytes(a: &[u8], b: &[u8]) -> Ordering {
    a.cmp(b)
}

pub(super) fn abbreviate_bytes(value: &[u8]) -> u64 {
    first_bytes(value)
}

pub(super) fn compare_floats(a: &[u8], b: &[u8]) -> Ordering {
    abbreviate_float(a).cmp(&abbreviate_float(b))
}

/// NaN is higher than all, and the same as any other; zero has no sign.
pub(super) fn abbreviate_float(value: &[u8]) -> u64 {
    let number = match *value {
        [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
        _ => f64::from_bits(unsigned(value)),
    };
    if number.is_nan() {
        return u64::MAX;
    }
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

pub(super) fn compare_tids(a: &[u8], b: &[u8]) -> Ordering {
    abbreviate_tid(a).cmp(&abbreviate_tid(b))
}

/// Block and line pointer, the block as two halves with the upper one first.
pub(super) fn abbreviate_tid(value: &[u8]) -> u64 {
    let [h0, h1, l0, l1, p0, p1, ..] = first_bytes(value).to_be_bytes();
    u64::from_be_bytes([0, 0, h1, h0, l1, l0, p1, p0])
}

/// Shorter vectors come first.
pub(super) fn compare_oid_vectors(a: &[u8], b: &[u8]) -> Ordering {
    let lengths = vector_length(a).cmp(&vector_length(b));
    lengths.then_with(|| vector_values(a).cmp(vector_values(b)))
}

fn vector_values(vector: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let values = vector.get(VECTOR_VALUES..).unwrap_or_default().as_chunks::<4>().0;
    values.iter().map(|value| u32::from_le_bytes(*value))
}

pub(super) fn abbreviate_oid_vector(value: &[u8]) -> u64 {
    let first = vector_values(value).next().unwrap_or(0);
    u64::from(vector_length(value)) << 32 | u64::from(first)
}

fn vector_length(value: &[u8]) -> u32 {
    let length = value.get(VECTOR_LENGTH..).and_then(|rest| rest.first_chunk());
    length.map_or(0, |length| u32::from_le_bytes(*length))
}

/// By their bytes, which are padded with zero bits, then by their length.
pub(super) fn compare_bits(a: &[u8], b: &[u8]) -> Ordering {
    let length = |value: &[u8]| unsigned(value.get(..BIT_LENGTH).unwrap_or_default());
    bits(a).cmp(bits(b)).then_with(|| length(a).cmp(&length(b)))
}

fn bits(value: &[u8]) -> &[u8] {
    value.get(BIT_LENGTH..).unwrap_or_default()
}

pub(super) fn abbreviate_bits(value: &[u8]) -> u64 {
    first_bytes(bits(value))
}
