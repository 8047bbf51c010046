//! `seg`: an interval of floating-point numbers that remembers how exactly its ends were given.
//!
//! ```text
//! lower, f32 | upper, f32 | digits of lower | digits of upper | sign of lower | sign of upper
//! ```
//!
//! A sign is `<`, `>`, `~`, `-` for an end that is not there (then it is infinite), or zero. `seg/text.rs`: from and to text.
//! `seg/digits.rs`: numbers with so many digits. `seg/order.rs`: the order.
//!
//! Invariant: functions compute in single precision, as the server does.
//! Source: `contrib/seg/segdata.h`, `contrib/seg/seg.c`, `contrib/seg/seg--1.1.sql` and its updates up to 1.4, PostgreSQL 14 to 18.

mod digits;
mod order;
mod text;

use std::cmp::Ordering;

use pagemill_format::error::Result as FormatResult;
use pagemill_format::reader::Reader;

use super::call::{Argument, CallError, ExtensionFunction, Value, strict};

pub use order::{compare, order_key};
pub use text::{parse, read_seg, write_seg};

const UNKNOWN: u8 = b'-';

/// One end.
#[derive(Debug, Clone, Copy, PartialEq)]
struct End {
    number: f32,
    /// Significant digits.
    digits: i8,
    sign: u8,
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seg {
    lower: End,
    upper: End,
}

impl Seg {
    /// The value of a payload.
    ///
    /// # Errors
    /// When it is cut off.
    pub fn of_payload(payload: &[u8]) -> FormatResult<Self> {
        let mut reader = Reader::new("seg", payload);
        let [lower, upper] = [reader.u32()?, reader.u32()?].map(f32::from_bits);
        let digits = [reader.u8()? as i8, reader.u8()? as i8];
        let [lower_sign, upper_sign] = [reader.u8()?, reader.u8()?];
        let [lower_digits, upper_digits] = digits;
        Ok(Self {
            lower: End { number: lower, digits: lower_digits, sign: lower_sign },
            upper: End { number: upper, digits: upper_digits, sign: upper_sign },
        })
    }

    /// Its payload.
    pub fn payload(&self) -> Vec<u8> {
        let (lower, upper) = (self.lower, self.upper);
        let numbers = [lower.number, upper.number].map(f32::to_le_bytes).concat();
        let rest = [lower.digits as u8, upper.digits as u8, lower.sign, upper.sign];
        [&numbers[..], &rest].concat()
    }

    fn union(&self, other: &Self) -> Self {
        let is_higher = self.upper.number > other.upper.number;
        let is_lower = self.lower.number < other.lower.number;
        Self {
            lower: if is_lower { self.lower } else { other.lower },
            upper: if is_higher { self.upper } else { other.upper },
        }
    }

    fn intersection(&self, other: &Self) -> Self {
        let is_lower = self.upper.number < other.upper.number;
        let is_higher = self.lower.number > other.lower.number;
        Self {
            lower: if is_higher { self.lower } else { other.lower },
            upper: if is_lower { self.upper } else { other.upper },
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        let reaches = |one: &Self, other: &Self| {
            one.upper.number >= other.upper.number && one.lower.number <= other.upper.number
        };
        reaches(self, other) || reaches(other, self)
    }

    fn contains(&self, other: &Self) -> bool {
        self.lower.number <= other.lower.number && self.upper.number >= other.upper.number
    }

    fn center(&self) -> f32 {
        (f64::from(self.lower.number + self.upper.number) / 2.0) as f32
    }

    /// Of a side from -0 to 0 it is 0, as since PostgreSQL 16.
    fn size(&self) -> f32 {
        (self.upper.number - self.lower.number).abs()
    }
}

fn one(arguments: &[Argument<'_>]) -> Result<Seg, CallError> {
    match arguments {
        [Argument::Payload(payload)] => Ok(Seg::of_payload(payload)?),
        _ => Err(CallError::other_arguments()),
    }
}

fn two(arguments: &[Argument<'_>]) -> Result<(Seg, Seg), CallError> {
    match arguments {
        [Argument::Payload(first), Argument::Payload(second)] => {
            Ok((Seg::of_payload(first)?, Seg::of_payload(second)?))
        }
        _ => Err(CallError::other_arguments()),
    }
}

fn ordered(arguments: &[Argument<'_>], holds: fn(Ordering) -> bool) -> Result<Value, CallError> {
    let (first, second) = two(arguments)?;
    Ok(Value::Bool(holds(first.order(&second)?)))
}

fn related(arguments: &[Argument<'_>], holds: fn(&Seg, &Seg) -> bool) -> Result<Value, CallError> {
    let (first, second) = two(arguments)?;
    Ok(Value::Bool(holds(&first, &second)))
}

fn made(arguments: &[Argument<'_>], make: fn(&Seg, &Seg) -> Seg) -> Result<Value, CallError> {
    let (first, second) = two(arguments)?;
    Ok(Value::Payload(make(&first, &second).payload()))
}

/// The functions of the library.
pub const FUNCTIONS: &[ExtensionFunction] = &[
    strict("seg_same", |_, arguments| ordered(arguments, Ordering::is_eq)),
    strict("seg_different", |_, arguments| ordered(arguments, Ordering::is_ne)),
    strict("seg_lt", |_, arguments| ordered(arguments, Ordering::is_lt)),
    strict("seg_le", |_, arguments| ordered(arguments, Ordering::is_le)),
    strict("seg_gt", |_, arguments| ordered(arguments, Ordering::is_gt)),
    strict("seg_ge", |_, arguments| ordered(arguments, Ordering::is_ge)),
    strict("seg_cmp", |_, arguments| {
        let (first, second) = two(arguments)?;
        Ok(Value::Int4(first.order(&second)? as i32))
    }),
    strict("seg_contains", |_, arguments| related(arguments, Seg::contains)),
    strict("seg_contained", |_, arguments| related(arguments, |one, other| other.contains(one))),
    strict("seg_overlap", |_, arguments| related(arguments, Seg::overlaps)),
    strict("seg_left", |_, arguments| {
        related(arguments, |one, other| one.upper.number < other.lower.number)
    }),
    strict("seg_over_left", |_, arguments| {
        related(arguments, |one, other| one.upper.number <= other.upper.number)
    }),
    strict("seg_right", |_, arguments| {
        related(arguments, |one, other| one.lower.number > other.upper.number)
    }),
    strict("seg_over_right", |_, arguments| {
        related(arguments, |one, other| one.lower.number >= other.lower.number)
    }),
    strict("seg_union", |_, arguments| made(arguments, Seg::union)),
    strict("seg_inter", |_, arguments| made(arguments, Seg::intersection)),
    strict("seg_size", |_, arguments| Ok(Value::Float4(one(arguments)?.size()))),
    strict("seg_center", |_, arguments| Ok(Value::Float4(one(arguments)?.center()))),
    strict("seg_lower", |_, arguments| Ok(Value::Float4(one(arguments)?.lower.number))),
    strict("seg_upper", |_, arguments| Ok(Value::Float4(one(arguments)?.upper.number))),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::extension::extension_tests::{UnicodeLetters, called};
    use crate::printed;

    fn call(symbol: &str, segs: &[&str]) -> Value {
        let segs: Vec<_> =
            segs.iter().map(|text| parse(text.as_bytes()).unwrap().payload()).collect();
        let arguments: Vec<_> = segs.iter().map(|one| Argument::Payload(one)).collect();
        called(FUNCTIONS, symbol, &arguments).unwrap()
    }

    fn text(symbol: &str, segs: &[&str]) -> String {
        let Value::Payload(payload) = call(symbol, segs) else { panic!("no seg") };
        printed(write_seg, &payload)
    }

    /// What a PostgreSQL 15 server gives.
    #[test]
    fn intervals_are_joined_and_measured() {
        assert_eq!(text("seg_union", &["1 .. 2", "1.50 .. 3"]), "1 .. 3");
        assert_eq!(text("seg_inter", &["1 .. 2", "1.50 .. 3"]), "1.50 .. 2");
        assert_eq!(text("seg_inter", &["1 .. 2", ".. 3"]), "1 .. 2");
        assert_eq!(call("seg_size", &["1 .. 2.5"]), Value::Float4(1.5));
        assert_eq!(call("seg_size", &["1 .."]), Value::Float4(f32::INFINITY));
        assert_eq!(call("seg_center", &["1 .. 2"]), Value::Float4(1.5));
        assert_eq!(call("seg_lower", &[".. 2"]), Value::Float4(f32::NEG_INFINITY));
        assert_eq!(call("seg_upper", &["5 (+-) 0.5"]), Value::Float4(5.5));
        assert_eq!(call("seg_contains", &["1 .. 3", "2"]), Value::Bool(true));
        assert_eq!(call("seg_over_left", &["1 .. 3", "2"]), Value::Bool(false));
        assert_eq!(call("seg_cmp", &["1", "1.0"]), Value::Int4(-1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_arguments(first in prop::collection::vec(any::<u8>(), 0..20), second in any::<[u8; 12]>()) {
            let [first, second] = [Argument::Payload(&first), Argument::Payload(&second)];
            for function in FUNCTIONS {
                for arguments in [&[second][..], &[first, second], &[second, first], &[]] {
                    let _ = (function.call)(&UnicodeLetters, arguments);
                }
            }
        }
    }
}
