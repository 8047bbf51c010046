//! A `numeric` on its way into a tuple: base-10000 digits of any number, rounded to the type's
//! scale, held against its precision, and packed behind a header of 2 or 4 bytes.
//!
//! The digits lie in the caller's buffer from the beginning, with room for the longer header in
//! front, so nothing is allocated but that buffer. Invariant of a packed value: no zero digit at
//! either end, zero has no digits, weight 0 and no sign, and the short header is used wherever
//! scale and weight fit it.
//! Source: `round_var`, `apply_typmod` and `make_result_opt_error` in
//! `src/backend/utils/adt/numeric.c`, PostgreSQL 14 to 18; a scale below zero or above the
//! precision exists from 15 on.

use super::numeric::Fault;

/// The base of the stored digits.
const BASE: u32 = 10_000;
/// Decimal digits in one of them.
const DIGITS: i64 = 4;
/// Bytes of the longer header.
const LONG_HEADER: usize = 4;
/// The largest weight, and the largest scale.
const MAX_WEIGHT: i64 = i16::MAX as i64;
const MAX_SCALE: i64 = 0x3FFF;

/// `numeric(precision, scale)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Typmod {
    /// Decimal digits in all.
    pub(super) precision: i32,
    /// Those after the point; negative when the last ones before it are zero.
    pub(super) scale: i32,
}

impl Typmod {
    /// Takes a type modifier apart; -1 is none.
    #[inline]
    pub(super) fn parse(typmod: i32) -> Option<Self> {
        if typmod < 4 {
            return None;
        }
        let packed = typmod - 4;
        // The scale has 11 bits, the highest one its sign.
        Some(Self { precision: packed >> 16 & 0xFFFF, scale: ((packed & 0x7FF) ^ 1024) - 1024 })
    }
}

/// The header of a value that fits the format, and its length. `negative` is false for zero.
#[inline]
pub(super) fn header(negative: bool, scale: usize, weight: i32) -> ([u8; LONG_HEADER], usize) {
    let sign = u16::from(negative);
    if scale <= 0x3F && (-0x40..=0x3F).contains(&weight) {
        let word = 0x8000 | sign << 13 | (scale as u16) << 7 | (weight as u16 & 0x7F);
        let [a, b] = word.to_le_bytes();
        return ([a, b, 0, 0], 2);
    }
    let [a, b] = (sign << 14 | scale as u16).to_le_bytes();
    let [c, d] = (weight as i16).to_le_bytes();
    ([a, b, c, d], LONG_HEADER)
}

/// A number whose digits are not packed yet: `digits × 10000^(weight + 1 − their count)`.
pub(super) struct Unpacked<'a> {
    out: &'a mut Vec<u8>,
    /// Where the digits begin in `out`, two bytes each; the first is a zero, to be carried into.
    start: usize,
    negative: bool,
    /// The power of 10000 that the first digit counts.
    weight: i64,
    /// Decimal digits after the point.
    scale: i64,
}

impl<'a> Unpacked<'a> {
    /// A number without digits, at the end of `out`.
    pub(super) fn new(negative: bool, out: &'a mut Vec<u8>) -> Self {
        out.extend_from_slice(&[0; LONG_HEADER]);
        let start = out.len();
        Self { out, start, negative, weight: 0, scale: 0 }
    }

    fn digits(&mut self) -> &mut [[u8; 2]] {
        self.out.get_mut(self.start..).unwrap_or_default().as_chunks_mut().0
    }

    fn push(&mut self, digit: u32) {
        self.out.extend_from_slice(&stored(digit));
    }

    /// Takes decimal digits, of which the first `before_point` are before the point: more than
    /// there are when zeros follow, negative when the point has zeros behind it.
    pub(super) fn set_digits(
        &mut self,
        digits: impl Iterator<Item = u8> + Clone,
        before_point: i64,
        scale: i64,
    ) {
        let zeros = digits.clone().take_while(|&digit| digit == 0).count();
        let before_point = before_point - zeros as i64;
        let words = (before_point + DIGITS - 1).div_euclid(DIGITS);
        (self.weight, self.scale) = (words, scale);
        self.push(0);
        // The first word has zeros in front, the last one behind its digits.
        let (mut word, mut filled) = (0, words * DIGITS - before_point);
        for digit in digits.skip(zeros) {
            word = word * 10 + u32::from(digit);
            filled += 1;
            if filled == DIGITS {
                self.push(word);
                (word, filled) = (0, 0);
            }
        }
        if word > 0 {
            self.push(word * 10u32.pow((DIGITS - filled) as u32));
        }
    }

    /// Multiplies by `unit`, which has 32 bits at most, and adds. The digits are those of a whole
    /// number, the lowest first, until [`Self::reverse`].
    pub(super) fn multiply_and_add(&mut self, unit: u64, summand: u64) -> Result<(), Fault> {
        let mut carry = summand;
        for place in self.digits() {
            carry += u64::from(loaded(*place)) * unit;
            *place = stored((carry % u64::from(BASE)) as u32);
            carry /= u64::from(BASE);
        }
        while carry > 0 {
            self.push((carry % u64::from(BASE)) as u32);
            carry /= u64::from(BASE);
        }
        if self.digits().len() as i64 > MAX_WEIGHT + 1 { Err(Fault::Format) } else { Ok(()) }
    }

    /// Puts the highest digit first.
    pub(super) fn reverse(&mut self) {
        self.push(0);
        self.digits().reverse();
        self.weight = self.digits().len() as i64 - 1;
    }

    /// Rounds to the type's scale, and holds the result against its precision.
    pub(super) fn apply(&mut self, typmod: Typmod) -> Result<(), Fault> {
        self.round(typmod.scale.into());
        self.scale = typmod.scale.max(0).into();
        let weight = self.weight;
        let mut digits = self.digits().iter().zip(0..).map(|(place, at)| (loaded(*place), at));
        let Some((first, at)) = digits.find(|&(digit, _)| digit > 0) else { return Ok(()) };
        let before_point = (weight - at) * DIGITS + i64::from(first.ilog10()) + 1;
        if before_point > i64::from(typmod.precision - typmod.scale) {
            return Err(Fault::Field);
        }
        Ok(())
    }

    /// Rounds to `scale` decimal digits after the point, halves away from zero.
    fn round(&mut self, scale: i64) {
        let places = (self.weight + 1) * DIGITS + scale;
        let Ok(places) = usize::try_from(places) else {
            self.out.truncate(self.start);
            return;
        };
        let (kept, partial) = (places.div_ceil(DIGITS as usize), places % DIGITS as usize);
        let digits = self.digits();
        if kept < digits.len() || (kept == digits.len() && partial > 0) {
            round_to(digits, kept, partial);
            self.out.truncate(self.start + 2 * kept);
        }
    }

    /// Puts the header in front and takes zeros away.
    pub(super) fn pack(mut self) -> Result<(), Fault> {
        let is_digit = |place: &[u8; 2]| *place != [0, 0];
        let digits = self.digits();
        let first = digits.iter().position(is_digit).unwrap_or(0);
        let end = digits.iter().rposition(is_digit).map_or(first, |last| last + 1);
        let is_zero = first == end;
        let weight = if is_zero { 0 } else { self.weight - first as i64 };
        if self.scale > MAX_SCALE || !(-MAX_WEIGHT - 1..=MAX_WEIGHT).contains(&weight) {
            return Err(Fault::Format);
        }
        let (header, length) =
            header(self.negative && !is_zero, self.scale as usize, weight as i32);
        let header_at = self.start - LONG_HEADER;
        let digits_at = header_at + length;
        self.out.copy_within(self.start + 2 * first..self.start + 2 * end, digits_at);
        self.out.truncate(digits_at + 2 * (end - first));
        for (place, byte) in self.out.iter_mut().skip(header_at).zip(&header[..length]) {
            *place = *byte;
        }
        Ok(())
    }
}

fn stored(digit: u32) -> [u8; 2] {
    (digit as u16).to_le_bytes()
}

fn loaded(place: [u8; 2]) -> u32 {
    u16::from_le_bytes(place).into()
}

/// Rounds to `kept` digits, of the last of which `partial` decimal digits stay, or all if 0.
fn round_to(digits: &mut [[u8; 2]], kept: usize, partial: usize) {
    let (kept, dropped) = digits.split_at_mut(kept);
    let unit = if partial == 0 { BASE } else { 10u32.pow(4 - partial as u32) };
    let (up, mut carry) = match (kept.last_mut(), partial) {
        (Some(last), 1..) => {
            let extra = loaded(*last) % unit;
            *last = stored(loaded(*last) - extra);
            (extra >= unit / 2, unit)
        }
        _ => (dropped.first().is_some_and(|next| loaded(*next) >= unit / 2), 1),
    };
    for place in kept.iter_mut().rev().take_while(|_| up) {
        let sum = loaded(*place) + carry;
        *place = stored(sum % BASE);
        if sum < BASE {
            break;
        }
        carry = 1;
    }
}
