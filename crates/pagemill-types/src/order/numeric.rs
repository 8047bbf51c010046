//! The order of numeric: -Infinity, the numbers by their value whatever their scale, Infinity, NaN.
//!
//! Invariant: a number is sign, weight and digits without zeros at either end, so that of two positive
//! ones the weight decides and then the digits, one by one.
//! Source: `cmp_numerics`, `cmp_var_common` in `src/backend/utils/adt/numeric.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

/// The greatest weight a long header has room for, and so the bias that makes weights positive.
const WEIGHT_BIAS: i32 = 1 << 15;

/// The greatest digit that an abbreviation has room for.
const WIDEST_DIGIT: u16 = 0x3FFF;

/// A value's place in the order; the variants are in it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Rank<'a> {
    MinusInfinity,
    Finite(Number<'a>),
    Infinity,
    NotANumber,
}

#[derive(PartialEq, Eq)]
struct Number<'a> {
    is_negative: bool,
    weight: i32,
    digits: &'a [[u8; 2]],
}

impl<'a> Rank<'a> {
    fn read(value: &'a [u8]) -> Self {
        let (header, rest) = value.split_first_chunk().unwrap_or((&[0, 0x80], &[]));
        let header = u16::from_le_bytes(*header);
        match (header >> 14, header) {
            (0b11, 0xD000) => Self::Infinity,
            (0b11, 0xF000) => Self::MinusInfinity,
            (0b11, _) => Self::NotANumber,
            (0b10, _) => {
                // Seven bits with a sign of their own.
                let weight = i32::from((header << 9) as i16 >> 9);
                Self::Finite(Number::new(header & 0x2000 != 0, weight, rest))
            }
            _ => {
                let (weight, rest) = rest.split_first_chunk().unwrap_or((&[0, 0], &[]));
                let weight = i32::from(i16::from_le_bytes(*weight));
                Self::Finite(Number::new(header & 0x4000 != 0, weight, rest))
            }
        }
    }
}

impl<'a> Number<'a> {
    fn new(is_negative: bool, mut weight: i32, digits: &'a [u8]) -> Self {
        let mut digits = digits.as_chunks::<2>().0;
        while let [[0, 0], rest @ ..] = digits {
            (digits, weight) = (rest, weight - 1);
        }
        while let [rest @ .., [0, 0]] = digits {
            digits = rest;
        }
        let weight = if digits.is_empty() { 0 } else { weight };
        Self { is_negative: is_negative && !digits.is_empty(), weight, digits }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => {
                let digits = |number: &Self| number.digits.iter().map(|d| u16::from_le_bytes(*d));
                self.weight.cmp(&other.weight).then_with(|| digits(self).cmp(digits(other)))
            }
        }
    }

    /// Weight, three digits, and what there is room for of the fourth; 0 for zero.
    fn abbreviate_magnitude(&self) -> u64 {
        // Zeros in front that were no digits at all can make a weight less than any header could say;
        // what is so near to zero looks like zero here, for its digits would order it by themselves.
        let weight = self.weight + WEIGHT_BIAS;
        if self.digits.is_empty() || weight < 0 {
            return 0;
        }
        (weight as u64) << 47 | self.abbreviate_digits()
    }

    /// 47 bits of the digits: 14 for each of the first three, five for the fourth.
    fn abbreviate_digits(&self) -> u64 {
        let digits =
            (0..4).map(|n| self.digits.get(n).map_or(0, |digit| u16::from_le_bytes(*digit)));
        let mut bits = 0_u64;
        let mut is_cut = false;
        for digit in digits {
            // No digit of a sound number is above 9999. Of one too wide for its 14 bits nothing is
            // told but that, and nothing of the digits behind it: they must not decide in its place.
            bits = bits << 14 | if is_cut { 0 } else { u64::from(digit.min(WIDEST_DIGIT)) };
            is_cut |= digit >= WIDEST_DIGIT;
        }
        bits >> 9
    }
}

impl Ord for Number<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Number<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The weight and the digits of a number without the zeros at either end; `None` for NaN and infinities.
pub(crate) fn significant(value: &[u8]) -> Option<(i32, &[[u8; 2]])> {
    match Rank::read(value) {
        Rank::Finite(number) => Some((number.weight, number.digits)),
        Rank::MinusInfinity | Rank::Infinity | Rank::NotANumber => None,
    }
}

pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    Rank::read(a).cmp(&Rank::read(b))
}

pub(super) fn abbreviate(value: &[u8]) -> u64 {
    match Rank::read(value) {
        Rank::MinusInfinity => 0,
        Rank::Infinity | Rank::NotANumber => u64::MAX,
        Rank::Finite(number) => {
            let positive = 1 << 63 | number.abbreviate_magnitude();
            if number.is_negative { !positive } else { positive }
        }
    }
}
