//! Sums, averages and variances of floats, by the server's steps: rounding makes the order of steps matter, so that they come
//! out as there only if the values come in the same order.
//!
//! Source: `float8_accum`, `float8_combine` and the functions after them in `src/backend/utils/adt/float.c` (Youngs and Cramer),
//! PostgreSQL 15 to 18.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::Result as QueryResult;
use datafusion::logical_expr::Accumulator;
use datafusion::scalar::ScalarValue;
use num_traits::Float;

use super::sums::{Spread, Wanted};
use crate::error::StatementError;
use crate::functions::floats::{add, float_error, overflow};
use crate::functions::integers::numbers;

/// `sum(float4)`, `sum(float8)`.
#[derive(Debug)]
pub(super) struct FloatSum<T: ArrowPrimitiveType> {
    sum: Option<T::Native>,
}

impl<T: ArrowPrimitiveType> FloatSum<T> {
    pub(super) fn new() -> Self {
        Self { sum: None }
    }
}

impl<T: ArrowPrimitiveType<Native: Float> + std::fmt::Debug> Accumulator for FloatSum<T>
where
    ScalarValue: From<Option<T::Native>>,
{
    fn update_batch(&mut self, values: &[ArrayRef]) -> QueryResult<()> {
        for value in numbers::<T>(&values[0]).iter().flatten() {
            self.sum = Some(match self.sum {
                None => value,
                Some(sum) => add(sum, value).map_err(float_error)?,
            });
        }
        Ok(())
    }

    fn evaluate(&mut self) -> QueryResult<ScalarValue> {
        Ok(self.sum.into())
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> QueryResult<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> QueryResult<()> {
        self.update_batch(states)
    }
}

/// Count, sum, and sum of the squares of the distances from the average.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Moments {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    /// Of a state of three parts.
    pub(super) fn of(parts: &[f64]) -> Self {
        let part = |at: usize| parts.get(at).copied().unwrap_or_default(); // default: nothing is known
        Self { count: part(0), sum: part(1), squares: part(2) }
    }

    pub(super) fn parts(&self) -> [f64; 3] {
        [self.count, self.sum, self.squares]
    }

    pub(super) fn add(&mut self, value: f64) -> Result<(), StatementError> {
        let before = *self;
        self.count += 1.0;
        self.sum += value;
        if before.count == 0.0 {
            if !value.is_finite() {
                self.squares = f64::NAN;
            }
            return Ok(());
        }
        let distance = value * self.count - self.sum;
        self.squares += distance * distance / (self.count * before.count);
        if self.sum.is_infinite() || self.squares.is_infinite() {
            if !before.sum.is_infinite() && !value.is_infinite() {
                return Err(float_error(overflow()));
            }
            self.squares = f64::NAN;
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, other: Self) -> Result<(), StatementError> {
        if self.count == 0.0 || other.count == 0.0 {
            *self = if self.count == 0.0 { other } else { *self };
            return Ok(());
        }
        let count = self.count + other.count;
        let sum = add(self.sum, other.sum).map_err(float_error)?;
        let distance = self.sum / self.count - other.sum / other.count;
        let more = self.count * other.count * distance * distance / count;
        let squares = self.squares + other.squares + more;
        if squares.is_infinite() && !self.squares.is_infinite() && !other.squares.is_infinite() {
            return Err(float_error(overflow()));
        }
        *self = Self { count, sum, squares };
        Ok(())
    }

    fn result(&self, wanted: Wanted) -> Option<f64> {
        match wanted {
            Wanted::Sum => unreachable!("sums of floats need no moments"),
            Wanted::Average => (self.count > 0.0).then(|| self.sum / self.count),
            Wanted::Variance(Spread { is_sample, is_root }) => {
                let others = if is_sample { self.count - 1.0 } else { self.count };
                let variance = (others > 0.0).then(|| self.squares / others)?;
                Some(if is_root { variance.sqrt() } else { variance })
            }
        }
    }
}

/// Averages and variances.
#[derive(Debug)]
pub(super) struct FloatMoments {
    wanted: Wanted,
    moments: Moments,
}

impl FloatMoments {
    pub(super) fn new(wanted: Wanted) -> Self {
        Self { wanted, moments: Moments::default() }
    }
}

impl Accumulator for FloatMoments {
    fn update_batch(&mut self, values: &[ArrayRef]) -> QueryResult<()> {
        match values[0].data_type() {
            DataType::Float32 => {
                for value in values[0].as_primitive::<Float32Type>().iter().flatten() {
                    self.moments.add(value.into())?;
                }
            }
            _ => {
                for value in values[0].as_primitive::<Float64Type>().iter().flatten() {
                    self.moments.add(value)?;
                }
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> QueryResult<ScalarValue> {
        Ok(ScalarValue::Float64(self.moments.result(self.wanted)))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> QueryResult<Vec<ScalarValue>> {
        let Moments { count, sum, squares } = self.moments;
        Ok([count, sum, squares].map(ScalarValue::from).to_vec())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> QueryResult<()> {
        let part = |at: usize, row| states[at].as_primitive::<Float64Type>().value(row);
        for row in 0..states[0].len() {
            let other = Moments { count: part(0, row), sum: part(1, row), squares: part(2, row) };
            self.moments.merge(other)?;
        }
        Ok(())
    }
}
