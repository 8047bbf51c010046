//! Numbers of any length with the places they are printed with, read from payloads and written to them.
//!
//! A number is an integer over 10^dscale. Most integers fit 128 bits and are computed there; the others are big integers.
//! Invariant: what fits 128 bits is `Small`, and a payload has no digits behind its dscale; one that has is refused.
//!
//! Source: `set_var_from_num` and `make_result_opt_error` in `src/backend/utils/adt/numeric.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{Signed, ToPrimitive, Zero};
use pagemill_types::numeric::{Numeric, short_scaled};

use crate::error::{SqlState, StatementError};

/// The most places a value can have.
pub(crate) const MAX_DSCALE: u32 = 0x3FFF;
/// The greatest power of 10000 that a first digit counts.
const MAX_WEIGHT: i64 = i16::MAX as i64;

/// A value of type numeric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    NaN,
    Infinity,
    NegativeInfinity,
    Finite(Number),
}

/// `integer / 10^dscale`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) integer: Integer,
    pub(crate) dscale: u32,
}

/// An integer of any length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Integer {
    Small(i128),
    Large(BigInt),
}

/// 10^n where it fits.
pub(crate) fn small_power(n: u32) -> Option<i128> {
    POWERS.get(n as usize).copied()
}

const POWERS: [i128; 39] = {
    let mut powers = [1; 39];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

impl From<BigInt> for Integer {
    fn from(value: BigInt) -> Self {
        match value.to_i128() {
            Some(small) => Self::Small(small),
            None => Self::Large(value),
        }
    }
}

impl Integer {
    pub(crate) const ZERO: Self = Self::Small(0);

    pub(crate) fn power_of_ten(n: u32) -> Self {
        match small_power(n) {
            Some(small) => Self::Small(small),
            None => Self::Large(BigInt::from(10).pow(n)),
        }
    }

    pub(crate) fn to_big(&self) -> BigInt {
        match self {
            Self::Small(small) => BigInt::from(*small),
            Self::Large(large) => large.clone(),
        }
    }

    /// −1, 0 or 1.
    pub(crate) fn signum(&self) -> i32 {
        match self {
            Self::Small(small) => small.signum() as i32,
            Self::Large(large) if large.is_negative() => -1,
            Self::Large(_) => 1,
        }
    }

    pub(crate) fn negated(&self) -> Self {
        match self {
            Self::Small(small) if *small != i128::MIN => Self::Small(-small),
            other => (-other.to_big()).into(),
        }
    }

    pub(crate) fn magnitude(&self) -> Self {
        if self.signum() < 0 { self.negated() } else { self.clone() }
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        if let (Self::Small(a), Self::Small(b)) = (self, other)
            && let Some(sum) = a.checked_add(*b)
        {
            return Self::Small(sum);
        }
        (self.to_big() + other.to_big()).into()
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        if let (Self::Small(a), Self::Small(b)) = (self, other)
            && let Some(difference) = a.checked_sub(*b)
        {
            return Self::Small(difference);
        }
        (self.to_big() - other.to_big()).into()
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        if let (Self::Small(a), Self::Small(b)) = (self, other)
            && let Some(product) = a.checked_mul(*b)
        {
            return Self::Small(product);
        }
        (self.to_big() * other.to_big()).into()
    }

    pub(crate) fn times_power(&self, n: u32) -> Self {
        match n {
            0 => self.clone(),
            _ if self.signum() == 0 => Self::ZERO,
            _ => self.times(&Self::power_of_ten(n)),
        }
    }

    /// Quotient towards zero and remainder with the sign of this one; the divisor is not zero.
    pub(crate) fn divided(&self, divisor: &Self) -> (Self, Self) {
        if let (Self::Small(a), Self::Small(b)) = (self, divisor)
            && let Some(quotient) = a.checked_div(*b)
        {
            return (Self::Small(quotient), Self::Small(a % b));
        }
        let (a, b) = (self.to_big(), divisor.to_big());
        let quotient = &a / &b;
        let remainder = a - &quotient * b;
        (quotient.into(), remainder.into())
    }

    /// The quotient rounded to the nearest, halves away from zero.
    pub(crate) fn divided_and_rounded(&self, divisor: &Self) -> Self {
        let (quotient, remainder) = self.divided(divisor);
        let doubled = remainder.plus(&remainder).magnitude();
        if doubled.compare(&divisor.magnitude()) == Ordering::Less {
            return quotient;
        }
        quotient.plus(&Self::Small((self.signum() * divisor.signum()).into()))
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Small(a), Self::Small(b)) => a.cmp(b),
            _ => self.to_big().cmp(&other.to_big()),
        }
    }

    /// Decimal digits, 0 for zero; and the first of them as a number with how many were left off.
    pub(crate) fn digits(&self) -> (u32, u128, u32) {
        match self {
            Self::Small(0) => (0, 0, 0),
            Self::Small(small) => {
                let size = small.unsigned_abs();
                (size.ilog10() + 1, size, 0)
            }
            Self::Large(large) => {
                // A decimal digit is 3.3 bits: what is left of them has 20 at least and 38 at most.
                let dropped = ((large.bits() - 1) * 30_102 / 100_000 - 25) as u32;
                let first = (large.magnitude() / BigUint::from(10u32).pow(dropped)).to_u128();
                let first = first.expect("of the digits only the first are left"); // infallible: by the count of bits
                (first.ilog10() + 1 + dropped, first, dropped)
            }
        }
    }
}

impl Number {
    pub(crate) fn new(integer: impl Into<Integer>, dscale: u32) -> Self {
        Self { integer: integer.into(), dscale }
    }

    /// The integer at a scale that is not below its own.
    pub(crate) fn at(&self, scale: u32) -> Integer {
        self.integer.times_power(scale - self.dscale)
    }

    /// The power of 10000 that the first base-10000 digit counts, and that digit; both 0 for zero.
    pub(crate) fn first_digit(&self) -> (i32, u32) {
        let (count, first, dropped) = self.integer.digits();
        if count == 0 {
            return (0, 0);
        }
        let weight = (count as i32 - 1 - self.dscale as i32).div_euclid(4);
        let below = 4 * weight + self.dscale as i32 - dropped as i32;
        let digit = match u32::try_from(below) {
            Ok(below) => first / 10u128.pow(below),
            Err(_) => first * 10u128.pow(below.unsigned_abs()),
        };
        (weight, digit as u32)
    }

    /// −1, 0 or 1.
    pub(crate) fn signum(&self) -> i32 {
        self.integer.signum()
    }
}

impl From<i128> for Integer {
    fn from(value: i128) -> Self {
        Self::Small(value)
    }
}

impl From<i64> for Integer {
    fn from(value: i64) -> Self {
        Self::Small(value.into())
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        Self::Finite(number)
    }
}

impl Value {
    /// # Errors
    /// When the payload is damaged.
    #[inline]
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, StatementError> {
        if let Some((small, dscale)) = short_scaled(payload, None) {
            return Ok(Number::new(small, dscale).into());
        }
        let found = Numeric::parse(payload).map_err(|error| damaged(error.to_string()))?;
        let (negative, dscale, weight, digits) = match found {
            Numeric::NaN => return Ok(Self::NaN),
            Numeric::Infinity => return Ok(Self::Infinity),
            Numeric::NegativeInfinity => return Ok(Self::NegativeInfinity),
            Numeric::Finite { negative, dscale, weight, digits } => {
                (negative, dscale, weight, digits)
            }
        };
        if let Some(small) = found.scaled(dscale.into()) {
            return Ok(Number::new(small, dscale.into()).into());
        }
        let integer = large(negative, i64::from(dscale), i64::from(weight), digits)?;
        Ok(Number::new(integer, dscale.into()).into())
    }

    /// Appends the payload.
    ///
    /// # Errors
    /// When a numeric has no room for the number.
    #[inline]
    pub(crate) fn pack(&self, out: &mut Vec<u8>) -> Result<(), StatementError> {
        match self {
            Self::NaN => out.extend(0xC000u16.to_le_bytes()),
            Self::Infinity => out.extend(0xD000u16.to_le_bytes()),
            Self::NegativeInfinity => out.extend(0xF000u16.to_le_bytes()),
            Self::Finite(number) => return pack(number, out),
        }
        Ok(())
    }

    pub(crate) fn payload(&self) -> Result<Vec<u8>, StatementError> {
        let mut out = Vec::new();
        self.pack(&mut out)?;
        Ok(out)
    }
}

#[cold]
fn damaged(message: String) -> StatementError {
    StatementError::new(SqlState::DATA_CORRUPTED, message)
}

#[cold]
pub(crate) fn overflows() -> StatementError {
    StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, "value overflows numeric format")
}

/// An integer of more than 128 bits, from base-10000 digits.
#[cold]
fn large(
    negative: bool,
    dscale: i64,
    weight: i64,
    digits: &[[u8; 2]],
) -> Result<BigInt, StatementError> {
    let hundreds: Vec<u8> = digits
        .iter()
        .map(|digit| u16::from_le_bytes(*digit))
        .flat_map(|digit| [(digit / 100) as u8, (digit % 100) as u8])
        .collect();
    let all = BigUint::from_radix_be(&hundreds, 100).unwrap_or_default();
    let power = 4 * (weight + 1 - digits.len() as i64) + dscale;
    let ten = BigUint::from(10u32).pow(u32::try_from(power.unsigned_abs()).unwrap_or(u32::MAX));
    let size = match power {
        0.. => all * ten,
        _ if (&all % &ten).is_zero() => all / ten,
        _ => return Err(damaged("a numeric has digits behind its last place".to_owned())),
    };
    Ok(BigInt::from_biguint(if negative { Sign::Minus } else { Sign::Plus }, size))
}

/// The most base-10000 digits that 128 bits have.
const SMALL_DIGITS: usize = 10;

fn pack(number: &Number, out: &mut Vec<u8>) -> Result<(), StatementError> {
    let padding = number.dscale.wrapping_neg() % 4;
    let fraction_digits = i64::from((number.dscale + padding) / 4);
    if let Integer::Small(small) = &number.integer
        && let Some(size) = small.unsigned_abs().checked_mul(POWERS[padding as usize] as u128)
    {
        let mut digits = [0u16; SMALL_DIGITS];
        let first = split(size, &mut digits);
        return put(*small < 0, number.dscale, fraction_digits, &digits[first..], out);
    }
    let hundreds = number.integer.times_power(padding).to_big().magnitude().to_radix_be(100);
    let (odd, pairs) = hundreds.split_at(hundreds.len() % 2);
    let pair = |pair: &[u8; 2]| u16::from(pair[0]) * 100 + u16::from(pair[1]);
    let digits: Vec<u16> =
        odd.iter().map(|one| u16::from(*one)).chain(pairs.as_chunks().0.iter().map(pair)).collect();
    put(number.signum() < 0, number.dscale, fraction_digits, &digits, out)
}

/// Fills in the digits from the end, and tells where they begin.
fn split(mut size: u128, digits: &mut [u16; SMALL_DIGITS]) -> usize {
    const FOUR: u128 = 10_000 * 10_000 * 10_000 * 10_000;
    let mut at = SMALL_DIGITS;
    while size > u128::from(u64::MAX) {
        let mut part = (size % FOUR) as u64;
        size /= FOUR;
        for _ in 0..4 {
            at -= 1;
            digits[at] = (part % 10_000) as u16;
            part /= 10_000;
        }
    }
    let mut rest = size as u64;
    while rest > 0 {
        at -= 1;
        digits[at] = (rest % 10_000) as u16;
        rest /= 10_000;
    }
    at
}

/// Header and digits; those at the end may be zeros, the first one is none.
fn put(
    negative: bool,
    dscale: u32,
    fraction_digits: i64,
    digits: &[u16],
    out: &mut Vec<u8>,
) -> Result<(), StatementError> {
    let stored = digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
    let first = digits.iter().position(|digit| *digit != 0).unwrap_or(0).min(stored);
    let weight = match stored {
        0 => 0,
        _ => (digits.len() - first) as i64 - fraction_digits - 1,
    };
    if dscale > MAX_DSCALE || weight > MAX_WEIGHT {
        return Err(overflows());
    }
    let sign = u16::from(negative && stored > 0);
    if dscale <= 0x3F && (-0x40..=0x3F).contains(&weight) {
        let word = 0x8000 | sign << 13 | (dscale as u16) << 7 | (weight as u16 & 0x7F);
        out.extend(word.to_le_bytes());
    } else {
        out.extend((sign << 14 | dscale as u16).to_le_bytes());
        out.extend((weight as i16).to_le_bytes());
    }
    for digit in &digits[first..stored] {
        out.extend(digit.to_le_bytes());
    }
    Ok(())
}
