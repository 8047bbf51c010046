//! Arrays: their sizes, and those of texts made.
//!
//! ```text
//! dimensions i32 | offset of the values, 0 where none is NULL, i32 | element type u32 | sizes i32 … | lower bounds i32 … | values
//! ```
//!
//! Source: `src/include/utils/array.h`, `array_length` and its kin in `src/backend/utils/adt/arrayfuncs.c`, PostgreSQL 14 to 18.

use pagemill_types::builtin::oid;

use super::super::rows::{Outcome, Plain, one, two};

/// `ArrayGetNItems` allows no more dimensions.
const MOST_DIMENSIONS: i32 = 6;

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "array_ndims" => {
            |a| one(a, |payload: &[u8]| Ok(Some(dimensions(payload)).filter(|n| *n > 0)))
        }
        "array_length" => |a| two(a, |payload: &[u8], of: i32| Ok(size(payload, of))),
        "array_lower" => |a| two(a, |payload: &[u8], of: i32| Ok(lower(payload, of))),
        "array_upper" => |a| two(a, upper),
        "array_cardinality" => |a| one(a, cardinality),
        _ => return None,
    })
}

fn number(payload: &[u8], at: i32) -> i32 {
    let at = at as usize * 4;
    let bytes = payload.get(at..at + 4).and_then(|bytes| bytes.first_chunk::<4>());
    i32::from_le_bytes(bytes.copied().unwrap_or_default())
}

/// How many dimensions an array has.
pub(in super::super) fn dimensions(payload: &[u8]) -> i32 {
    number(payload, 0).clamp(0, MOST_DIMENSIONS)
}

fn size(payload: &[u8], of: i32) -> Option<i32> {
    (1..=dimensions(payload)).contains(&of).then(|| number(payload, 2 + of))
}

fn lower(payload: &[u8], of: i32) -> Option<i32> {
    let count = dimensions(payload);
    (1..=count).contains(&of).then(|| number(payload, 2 + count + of))
}

/// The first and last subscript of a dimension.
pub(in super::super) fn bounds(payload: &[u8], of: i32) -> Option<(i32, i32)> {
    let (size, lower) = size(payload, of).zip(lower(payload, of))?;
    Some((lower, lower.wrapping_add(size).wrapping_sub(1)))
}

fn upper(payload: &[u8], of: i32) -> Outcome<Option<i32>> {
    let bounds = size(payload, of).zip(lower(payload, of));
    Ok(bounds.map(|(size, lower)| lower.wrapping_add(size).wrapping_sub(1)))
}

fn cardinality(payload: &[u8]) -> Outcome<i32> {
    let count = dimensions(payload);
    let sizes = (1..=count).map(|of| number(payload, 2 + of));
    Ok(if count == 0 { 0 } else { sizes.fold(1, i32::wrapping_mul) })
}

/// A `text[]` of one dimension.
pub(in super::super) fn texts_payload(texts: &[Option<String>]) -> Vec<u8> {
    const HEADER: usize = 20;
    if texts.is_empty() {
        return [0, 0, oid::TEXT.0].iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    }
    let has_null = texts.contains(&None);
    // Offsets count the length word, and the values are aligned to 8 bytes.
    let data = match has_null {
        true => (4 + HEADER + texts.len().div_ceil(8)).next_multiple_of(8),
        false => 4 + HEADER,
    };
    let offset = if has_null { data as u32 } else { 0 };
    let words = [1, offset, oid::TEXT.0, texts.len() as u32, 1];
    let mut payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    if has_null {
        let mut bits = vec![0u8; texts.len().div_ceil(8)];
        for (number, _) in texts.iter().enumerate().filter(|(_, text)| text.is_some()) {
            bits[number / 8] |= 1 << (number % 8);
        }
        payload.extend(bits);
    }
    payload.resize(data - 4, 0);
    for text in texts.iter().flatten() {
        while !payload.len().is_multiple_of(4) {
            payload.push(0);
        }
        payload.extend((((text.len() + 4) as u32) << 2).to_le_bytes());
        payload.extend(text.as_bytes());
    }
    payload
}
