//! Ranges from their text: `[1,5)`, `(,"b c"]`, `empty`.
//!
//! A range is put in its canonical form where its type has one; a range without a value in it is
//! empty, whatever its bounds were.
//!
//! ```text
//! type OID | lower | upper | flags (last byte)
//! ```
//!
//! Source: `range_parse`, `range_serialize`, `make_range` and the canonical functions in
//! `src/backend/utils/adt/rangetypes.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use super::InputError;
use super::composite::unquoted;
use super::datum::{malformed, push_datum, skip_space};
use super::tree::{Canonical, RangeInput, ValueReader};
use crate::order::ValueOrder;

const EMPTY: u8 = 0x01;
const LOWER_INCLUSIVE: u8 = 0x02;
const UPPER_INCLUSIVE: u8 = 0x04;
const LOWER_INFINITE: u8 = 0x08;
const UPPER_INFINITE: u8 = 0x10;

pub(super) const EMPTY_WORD: &[u8] = b"empty";

/// Days from the epoch to the first one past the last that a date can be (`DATE_END_JULIAN`).
const END_OF_DATES: i32 = 2_145_031_949;

/// One end of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The payload; `None` where there is no bound on this side.
    pub value: Option<Vec<u8>>,
    /// True for a bound that belongs to the range; of no account where there is no value.
    pub inclusive: bool,
    /// True for where a range begins.
    pub is_lower: bool,
}

impl Bound {
    /// Compares two bounds as positions on the line of values.
    pub fn compare(&self, other: &Self, order: &ValueOrder) -> Ordering {
        let (Some(a), Some(b)) = (&self.value, &other.value) else {
            let place = |bound: &Self| match (&bound.value, bound.is_lower) {
                (Some(_), _) => 0,
                (None, true) => -1,
                (None, false) => 1,
            };
            return place(self).cmp(&place(other));
        };
        // At the same value, a bound lies a little above it when it shuts the value out from below
        // or lets it in from above.
        let side = |bound: &Self| match (bound.inclusive, bound.is_lower) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => -1,
        };
        order.compare(a, b).then_with(|| side(self).cmp(&side(other)))
    }

    /// True when this upper bound ends just where that lower one begins: the value is in exactly
    /// one of them.
    pub fn meets(&self, lower: &Self, order: &ValueOrder) -> bool {
        let (Some(a), Some(b)) = (&self.value, &lower.value) else { return false };
        order.compare(a, b) == Ordering::Equal && self.inclusive != lower.inclusive
    }
}

/// A range's ends; a range that is empty has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// Where it begins.
    pub lower: Bound,
    /// Where it ends.
    pub upper: Bound,
}

impl Bounds {
    /// Checks the ends against each other: `None` when no value lies between them.
    fn checked(self, order: &ValueOrder) -> Result<Option<Self>, InputError> {
        let (Some(a), Some(b)) = (&self.lower.value, &self.upper.value) else {
            return Ok(Some(self));
        };
        match order.compare(a, b) {
            Ordering::Less => Ok(Some(self)),
            Ordering::Equal if self.lower.inclusive && self.upper.inclusive => Ok(Some(self)),
            Ordering::Equal => Ok(None),
            Ordering::Greater => Err(InputError::new(
                "range lower bound must be less than or equal to range upper bound",
            )),
        }
    }

    /// The range in its type's canonical form; `None` when it is empty.
    ///
    /// # Errors
    /// When it ends before it begins, or its canonical form is out of the type's range.
    pub fn made(self, range: &RangeInput) -> Result<Option<Self>, InputError> {
        let Some(mut bounds) = self.checked(&range.order)? else { return Ok(None) };
        if range.canonical == Canonical::None {
            return Ok(Some(bounds));
        }
        if let Some(value) = bounds.lower.value.as_mut().filter(|_| !bounds.lower.inclusive) {
            bounds.lower.inclusive = range.canonical.step(value)?;
        }
        if let Some(value) = bounds.upper.value.as_mut().filter(|_| bounds.upper.inclusive) {
            bounds.upper.inclusive = !range.canonical.step(value)?;
        }
        bounds.checked(&range.order)
    }

    pub(super) fn flags(&self) -> u8 {
        let lower = match (&self.lower.value, self.lower.inclusive) {
            (None, _) => LOWER_INFINITE,
            (Some(_), true) => LOWER_INCLUSIVE,
            (Some(_), false) => 0,
        };
        let upper = match (&self.upper.value, self.upper.inclusive) {
            (None, _) => UPPER_INFINITE,
            (Some(_), true) => UPPER_INCLUSIVE,
            (Some(_), false) => 0,
        };
        lower | upper
    }

    /// Appends the values of both bounds to `data`, whose start is aligned for any.
    pub(super) fn push_values(
        &self,
        range: &RangeInput,
        data: &mut Vec<u8>,
    ) -> Result<(), InputError> {
        for value in [&self.lower.value, &self.upper.value].into_iter().flatten() {
            push_datum(range.subtype.layout, range.subtype.packable, value, data)?;
        }
        Ok(())
    }
}

impl RangeInput {
    /// The payload of a range in its canonical form; `None` is the empty one.
    ///
    /// # Errors
    /// When it is longer than a value can be.
    pub fn payload(&self, bounds: Option<&Bounds>) -> Result<Vec<u8>, InputError> {
        let mut out = self.oid.0.to_le_bytes().to_vec();
        let Some(bounds) = bounds else {
            out.push(EMPTY);
            return Ok(out);
        };
        let mut data = Vec::new();
        bounds.push_values(self, &mut data)?;
        out.append(&mut data);
        out.push(bounds.flags());
        Ok(out)
    }
}

impl Canonical {
    /// Moves a value to the next one; false when it stays, as the infinite dates do.
    fn step(self, value: &mut Vec<u8>) -> Result<bool, InputError> {
        let out_of_range = |name| InputError::new(format!("{name} out of range"));
        if let (Self::Int8, Some(bytes)) = (self, value.first_chunk()) {
            let next = i64::from_le_bytes(*bytes).checked_add(1);
            let next = next.ok_or_else(|| out_of_range("bigint"))?;
            *value = next.to_le_bytes().to_vec();
            return Ok(true);
        }
        let Some(bytes) = value.first_chunk() else { return Ok(false) };
        let number = i32::from_le_bytes(*bytes);
        let next = match self {
            Self::Date if number == i32::MIN || number == i32::MAX => return Ok(false),
            Self::Date => number.checked_add(1).filter(|next| *next < END_OF_DATES),
            _ => number.checked_add(1),
        };
        let name = if self == Self::Date { "date" } else { "integer" };
        *value = next.ok_or_else(|| out_of_range(name))?.to_le_bytes().to_vec();
        Ok(true)
    }
}

/// Appends the payload of a range.
pub(super) fn read_range(
    reader: &mut ValueReader<'_>,
    range: &RangeInput,
    text: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let bounds = read_bounds(reader, range, text)?;
    out.extend_from_slice(&range.oid.0.to_le_bytes());
    let Some(bounds) = bounds else {
        out.push(EMPTY);
        return Ok(());
    };
    reader.with_buffer(|_, data| {
        bounds.push_values(range, data)?;
        out.extend_from_slice(data);
        out.push(bounds.flags());
        Ok(())
    })
}

/// Reads a range, `None` when it is empty.
pub(super) fn read_bounds(
    reader: &mut ValueReader<'_>,
    range: &RangeInput,
    text: &[u8],
) -> Result<Option<Bounds>, InputError> {
    let refused = || malformed("range", text);
    let start = skip_space(text);
    if starts_with_empty(start) {
        let rest = skip_space(start.get(EMPTY_WORD.len()..).unwrap_or_default());
        return if rest.is_empty() { Ok(None) } else { Err(refused()) };
    }
    let mut parts = split(start).ok_or_else(refused)?;
    // Both texts are there before either is read.
    let lower = bound_value(reader, range, parts.lower.take())?;
    let upper = bound_value(reader, range, parts.upper.take())?;
    let lower = Bound { value: lower, inclusive: parts.lower_inclusive, is_lower: true };
    let upper = Bound { value: upper, inclusive: parts.upper_inclusive, is_lower: false };
    Bounds { lower, upper }.made(range)
}

pub(super) fn starts_with_empty(text: &[u8]) -> bool {
    text.get(..EMPTY_WORD.len()).is_some_and(|word| word.eq_ignore_ascii_case(EMPTY_WORD))
}

/// What a range's text is made of.
struct Parts {
    lower_inclusive: bool,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    upper_inclusive: bool,
}

fn split(text: &[u8]) -> Option<Parts> {
    let (&opening, text) = text.split_first().filter(|(byte, _)| matches!(**byte, b'[' | b'('))?;
    let (text, lower) = split_bound(text)?;
    let (text, upper) = split_bound(text.strip_prefix(b",")?)?;
    let (&closing, text) = text.split_first().filter(|(byte, _)| **byte != b',')?;
    let parts =
        Parts { lower_inclusive: opening == b'[', lower, upper, upper_inclusive: closing == b']' };
    skip_space(text).is_empty().then_some(parts)
}

/// The text of a bound, if it has one, behind what comes after.
fn split_bound(text: &[u8]) -> Option<(&[u8], Option<Vec<u8>>)> {
    let mut bound = Vec::new();
    let (rest, present) = unquoted(text, |byte| matches!(byte, b',' | b')' | b']'), &mut bound)?;
    Some((rest, present.then_some(bound)))
}

fn bound_value(
    reader: &mut ValueReader<'_>,
    range: &RangeInput,
    text: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, InputError> {
    let Some(text) = text else { return Ok(None) };
    let mut value = Vec::new();
    reader.read(&range.subtype.input, -1, &text, &mut value)?;
    Ok(Some(value))
}
