//! Sums, averages and variances of exact numbers, to the last digit.
//!
//! Of each group the count, the sum over 10^scale of the most places seen, and for variances the sum of the squares are kept;
//! special values are counted by themselves. The sum is an integer of 128 bits as long as it fits.
//!
//! Source: `do_numeric_accum`, `numeric_sum`, `numeric_avg`, `numeric_stddev_internal` in
//! `src/backend/utils/adt/numeric.c`, PostgreSQL 14 to 18.

use num_bigint::BigInt;

use crate::error::{SqlState, StatementError};
use crate::functions::numeric::arithmetic;
use crate::functions::numeric::value::{Integer, Number, Value};

/// What is asked of the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Wanted {
    Sum,
    Average,
    Variance(Spread),
}

/// Which of the four measures of spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Spread {
    /// Of a sample, not of the population.
    pub(super) is_sample: bool,
    /// The standard deviation, not the variance.
    pub(super) is_root: bool,
}

/// What is known of the values so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sums {
    count: i64,
    sum: Integer,
    scale: u32,
    rare: Option<Box<Rare>>,
}

/// What most aggregates do not need.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rare {
    /// Over 10^(2 * scale).
    squares: Integer,
    nan: i64,
    infinity: i64,
    negative_infinity: i64,
}

impl Default for Rare {
    fn default() -> Self {
        Self { squares: Integer::ZERO, nan: 0, infinity: 0, negative_infinity: 0 }
    }
}

impl Default for Sums {
    fn default() -> Self {
        Self { count: 0, sum: Integer::ZERO, scale: 0, rare: None }
    }
}

impl Sums {
    /// A value whose scale is that of all others.
    #[inline]
    pub(super) fn add_small(&mut self, value: i128, scale: u32) {
        self.count += 1;
        if let Integer::Small(sum) = &mut self.sum
            && self.scale == scale
            && let Some(found) = sum.checked_add(value)
        {
            *sum = found;
            return;
        }
        self.add_integer(Integer::Small(value), scale);
    }

    /// Takes back a value that was added, where all have one scale.
    pub(super) fn subtract_small(&mut self, value: i128, scale: u32) {
        assert_eq!(self.scale, scale, "only values of one scale are taken back");
        self.count -= 1;
        self.sum = self.sum.minus(&Integer::Small(value));
    }

    pub(super) fn add(&mut self, value: &Value, wanted: Wanted) {
        let number = match value {
            Value::Finite(number) => number,
            Value::NaN => return self.rare().nan += 1,
            Value::Infinity => return self.rare().infinity += 1,
            Value::NegativeInfinity => return self.rare().negative_infinity += 1,
        };
        match &number.integer {
            Integer::Small(small) => self.add_small(*small, number.dscale),
            large => {
                self.count += 1;
                self.add_integer(large.clone(), number.dscale);
            }
        }
        if let Wanted::Variance(_) = wanted {
            let square = number.integer.times(&number.integer);
            let square = square.times_power(2 * (self.scale - number.dscale));
            let rare = self.rare();
            rare.squares = rare.squares.plus(&square);
        }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn add_integer(&mut self, value: Integer, scale: u32) {
        self.widen(scale);
        self.sum = self.sum.plus(&value.times_power(self.scale - scale));
    }

    /// To a scale, if it is the greater one.
    fn widen(&mut self, scale: u32) {
        let Some(more) = scale.checked_sub(self.scale).filter(|more| *more > 0) else { return };
        self.sum = self.sum.times_power(more);
        if let Some(rare) = &mut self.rare {
            rare.squares = rare.squares.times_power(2 * more);
        }
        self.scale = scale;
    }

    pub(super) fn merge(&mut self, mut other: Self) {
        other.widen(self.scale);
        self.widen(other.scale);
        self.count += other.count;
        self.sum = self.sum.plus(&other.sum);
        if let Some(of_other) = other.rare {
            let rare = self.rare();
            rare.squares = rare.squares.plus(&of_other.squares);
            rare.nan += of_other.nan;
            rare.infinity += of_other.infinity;
            rare.negative_infinity += of_other.negative_infinity;
        }
    }

    fn special_count(&self) -> i64 {
        self.rare.as_ref().map_or(0, |rare| rare.nan + rare.infinity + rare.negative_infinity)
    }

    /// The result; none where it is NULL.
    pub(super) fn result(&self, wanted: Wanted) -> Result<Option<Value>, StatementError> {
        let total = self.count + self.special_count();
        let too_few = match wanted {
            Wanted::Variance(Spread { is_sample: true, .. }) => total <= 1,
            _ => total == 0,
        };
        if too_few {
            return Ok(None);
        }
        let sum = || Number::new(self.sum.clone(), self.scale);
        match (self.special(), wanted) {
            (Some(_), Wanted::Variance(_)) => Ok(Some(Value::NaN)),
            (Some(special), _) => Ok(Some(special)),
            (None, Wanted::Sum) => Ok(Some(sum().into())),
            (None, Wanted::Average) => {
                let count = Number::new(self.count, 0);
                arithmetic::divide(&sum().into(), &count.into()).map(Some)
            }
            (None, Wanted::Variance(spread)) => self.spread(spread).map(Some),
        }
    }

    /// What the special values come to.
    fn special(&self) -> Option<Value> {
        let rare = self.rare.as_ref()?;
        match (rare.nan, rare.infinity, rare.negative_infinity) {
            (0, 0, 0) => None,
            (0, _, 0) => Some(Value::Infinity),
            (0, 0, _) => Some(Value::NegativeInfinity),
            _ => Some(Value::NaN),
        }
    }

    fn spread(&self, spread: Spread) -> Result<Value, StatementError> {
        let squares = self.rare.as_ref().map_or(Integer::ZERO, |rare| rare.squares.clone());
        let count = Integer::from(self.count);
        let numerator = count.times(&squares).minus(&self.sum.times(&self.sum));
        if numerator.signum() <= 0 {
            return Ok(Number::new(0i64, 0).into());
        }
        let numerator = Number::new(numerator, 2 * self.scale);
        let others = if spread.is_sample { self.count - 1 } else { self.count };
        let denominator = Number::new(count.times(&Integer::from(others)), 0);
        let scale = arithmetic::division_scale(&numerator, &denominator);
        let variance = arithmetic::quotient(&numerator, &denominator, scale)?;
        match spread.is_root {
            true => arithmetic::root(&variance, scale).map(Value::from),
            false => Ok(variance.into()),
        }
    }

    /// The sum as an integer over 10^scale; none of no values.
    pub(super) fn decimal(&self) -> Result<Option<i128>, StatementError> {
        match &self.sum {
            _ if self.count == 0 => Ok(None),
            Integer::Small(sum) => Ok(Some(*sum)),
            Integer::Large(_) => Err(StatementError::unsupported("a sum of more than 38 digits")),
        }
    }

    /// Appends all of it: five counts of 8 bytes, the scale, the length of the sum, sum and squares.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let none = Rare::default();
        let rare = self.rare.as_deref().unwrap_or(&none);
        for count in [self.count, rare.nan, rare.infinity, rare.negative_infinity] {
            out.extend(count.to_le_bytes());
        }
        let sum = bytes(&self.sum);
        out.extend(self.scale.to_le_bytes());
        out.extend((sum.len() as u32).to_le_bytes());
        out.extend(sum);
        out.extend(bytes(&rare.squares));
    }

    /// # Errors
    /// When the bytes are not what [`Self::write`] wrote.
    pub(super) fn read(state: &[u8]) -> Result<Self, StatementError> {
        Self::split(state).ok_or_else(|| {
            StatementError::new(SqlState::DATA_CORRUPTED, "the state of an aggregate is cut off")
        })
    }

    fn split(state: &[u8]) -> Option<Self> {
        let (counts, rest) = state.split_at_checked(32)?;
        let mut counts = counts.as_chunks::<8>().0.iter().map(|count| i64::from_le_bytes(*count));
        let (count, nan) = (counts.next()?, counts.next()?);
        let (infinity, negative_infinity) = (counts.next()?, counts.next()?);
        let (scale, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (sum, squares) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let rare = Rare { squares: integer(squares), nan, infinity, negative_infinity };
        let rare = (rare != Rare::default()).then(|| Box::new(rare));
        Some(Self { count, sum: integer(sum), scale: u32::from_le_bytes(*scale), rare })
    }
}

fn bytes(integer: &Integer) -> Vec<u8> {
    match integer {
        Integer::Small(small) => small.to_le_bytes().to_vec(),
        Integer::Large(large) => large.to_signed_bytes_le(),
    }
}

fn integer(bytes: &[u8]) -> Integer {
    match <[u8; 16]>::try_from(bytes) {
        Ok(small) => Integer::Small(i128::from_le_bytes(small)),
        Err(_) => BigInt::from_signed_bytes_le(bytes).into(),
    }
}
