//! The order of segs: by the lower end, then by the upper one.
//!
//! Ends of the same number are told apart by their signs and digits: what may reach further out comes first at the lower end, and last at
//! the upper one.
//!
//! Invariant: [`order_key`] compares as [`compare`] does for every pair of values that can be read from text.
//! Source: `seg_cmp` in `contrib/seg/seg.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use pagemill_format::error::Result as FormatResult;

use super::{End, Seg, UNKNOWN};
use crate::extension::call::CallError;

/// How the values of two payloads compare, as `seg_cmp` tells it.
///
/// # Errors
/// When a payload is cut off, or has signs that no value has.
pub fn compare(first: &[u8], second: &[u8]) -> Result<Ordering, CallError> {
    Seg::of_payload(first)?.order(&Seg::of_payload(second)?)
}

impl Seg {
    pub(super) fn order(&self, other: &Self) -> Result<Ordering, CallError> {
        let outward = |one: &End| if one.sign == UNKNOWN { 0 } else { inward_rank(one.sign) };
        let lower = order_ends(&self.lower, &other.lower, outward, Ordering::reverse);
        let lower = lower.ok_or_else(|| bogus("lower", &self.lower, &other.lower))?;
        if lower.is_ne() {
            return Ok(lower);
        }
        let rank = |one: &End| if one.sign == UNKNOWN { 4 } else { inward_rank(one.sign) };
        let upper = order_ends(&self.upper, &other.upper, rank, |order| order);
        upper.ok_or_else(|| bogus("upper", &self.upper, &other.upper))
    }
}

/// Of signs other than that of an end that is not there: `<` before what has none or `~`, `>` behind.
fn inward_rank(sign: u8) -> u8 {
    match sign {
        b'<' => 1,
        b'>' => 3,
        _ => 2,
    }
}

/// `blurred` turns the order in which the more blurred end is the greater.
fn order_ends(
    first: &End,
    second: &End,
    rank: fn(&End) -> u8,
    blurred: fn(Ordering) -> Ordering,
) -> Option<Ordering> {
    let number = first.number.partial_cmp(&second.number).unwrap_or(Ordering::Equal);
    let ranks = rank(first).cmp(&rank(second));
    let digits = blurred(second.digits.cmp(&first.digits));
    let known = number.then(ranks).then(digits);
    if known.is_ne() || first.sign == second.sign {
        return Some(known);
    }
    match (first.sign, second.sign) {
        (b'~', _) => Some(blurred(Ordering::Greater)),
        (_, b'~') => Some(blurred(Ordering::Less)),
        _ => None,
    }
}

#[cold]
fn bogus(which: &str, first: &End, second: &End) -> CallError {
    let [first, second] = [first.sign as i8, second.sign as i8];
    CallError::new("XX000", format!("bogus {which} boundary types {first} {second}"))
}

/// Bytes that compare as the values do.
///
/// # Errors
/// When the payload is cut off.
pub fn order_key(payload: &[u8]) -> FormatResult<Vec<u8>> {
    let Seg { lower, upper } = Seg::of_payload(payload)?;
    let digits = |end: &End| end.digits as u8 ^ 0x80;
    let mut key = float_key(lower.number).to_vec();
    let rank = if lower.sign == UNKNOWN { 0 } else { inward_rank(lower.sign) };
    key.extend([rank, digits(&lower), u8::from(lower.sign != b'~')]);
    key.extend(float_key(upper.number));
    let rank = if upper.sign == UNKNOWN { 4 } else { inward_rank(upper.sign) };
    key.extend([rank, !digits(&upper), u8::from(upper.sign == b'~')]);
    Ok(key)
}

/// Bytes that compare as numbers do, zeros of either sign equal.
fn float_key(number: f32) -> [u8; 4] {
    let bits = (number + 0.0).to_bits();
    let flipped = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    flipped.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse;
    use super::*;

    fn payload(text: &str) -> Vec<u8> {
        parse(text.as_bytes()).unwrap().payload()
    }

    /// As a PostgreSQL 15 server sorts them.
    #[test]
    fn blurred_ends_reach_further() {
        let sorted = [
            "..1",
            "<1",
            "~1",
            "1",
            "1 .. 1.5",
            "1 .. ~1.5",
            "1 .. 2.00",
            "1 .. 2",
            "1 ..",
            "~1.0",
            "1.0",
            ">1",
        ];
        for pair in sorted.windows(2) {
            let [first, second] = [pair[0], pair[1]].map(payload);
            assert_eq!(compare(&first, &second), Ok(Ordering::Less), "{pair:?}");
            assert!(order_key(&first).unwrap() < order_key(&second).unwrap(), "{pair:?}");
        }
    }

    proptest! {
        #[test]
        fn keys_compare_as_values(
            texts in prop::collection::vec("[<>~]?-?[01](\\.0{1,2})?( \\.\\. ?([<>~]?[12](\\.0{1,2})?)?)?", 2),
        ) {
            let read: Vec<_> = texts.iter().filter_map(|text| parse(text.as_bytes()).ok()).map(|one| one.payload()).collect();
            if let [first, second] = &read[..] {
                let keys = order_key(first).unwrap().cmp(&order_key(second).unwrap());
                prop_assert_eq!(Ok(keys), compare(first, second));
            }
        }
    }
}
