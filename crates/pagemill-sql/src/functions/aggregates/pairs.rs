//! Correlation, covariance and the line through pairs of numbers, by the server's steps: rounding makes the order of steps matter, so
//! that they come out as there only if the pairs come in the same order.
//!
//! Invariant: the first number of a pair is Y, the second X; a pair with a NULL is none.
//!
//! Source: `float8_regr_accum`, `float8_regr_combine` and the functions after them in `src/backend/utils/adt/float.c` (Youngs and
//! Cramer), PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::Float64Type;
use datafusion::common::Result as QueryResult;
use datafusion::logical_expr::Accumulator;
use datafusion::scalar::ScalarValue;

use crate::error::StatementError;
use crate::functions::floats::{add, float_error, overflow};

/// What is asked of the pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum OfPairs {
    Count,
    AverageX,
    AverageY,
    SquaresX,
    SquaresY,
    Products,
    CovarianceOfAll,
    CovarianceOfSample,
    Correlation,
    Determination,
    Slope,
    Intercept,
}

impl OfPairs {
    /// By the name of the aggregate.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "regr_count" => Self::Count,
            "regr_avgx" => Self::AverageX,
            "regr_avgy" => Self::AverageY,
            "regr_sxx" => Self::SquaresX,
            "regr_syy" => Self::SquaresY,
            "regr_sxy" => Self::Products,
            "covar_pop" => Self::CovarianceOfAll,
            "covar_samp" => Self::CovarianceOfSample,
            "corr" => Self::Correlation,
            "regr_r2" => Self::Determination,
            "regr_slope" => Self::Slope,
            "regr_intercept" => Self::Intercept,
            _ => return None,
        })
    }
}

/// Count, sums, and sums of the squares and products of the distances from the averages.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct PairMoments {
    count: f64,
    x: f64,
    xx: f64,
    y: f64,
    yy: f64,
    xy: f64,
}

impl PairMoments {
    /// Of a state of six parts.
    pub(super) fn of(parts: &[f64]) -> Self {
        let part = |at: usize| parts.get(at).copied().unwrap_or_default(); // default: nothing is known
        let [count, x, xx, y, yy, xy] = std::array::from_fn(part);
        Self { count, x, xx, y, yy, xy }
    }

    pub(super) fn parts(&self) -> [f64; 6] {
        [self.count, self.x, self.xx, self.y, self.yy, self.xy]
    }

    pub(super) fn add(&mut self, y: f64, x: f64) -> Result<(), StatementError> {
        let before = *self;
        self.count += 1.0;
        self.x += x;
        self.y += y;
        if before.count == 0.0 {
            if !x.is_finite() {
                (self.xx, self.xy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.yy, self.xy) = (f64::NAN, f64::NAN);
            }
            return Ok(());
        }
        let (far_x, far_y) = (x * self.count - self.x, y * self.count - self.y);
        let scale = 1.0 / (self.count * before.count);
        self.xx += far_x * far_x * scale;
        self.yy += far_y * far_y * scale;
        self.xy += far_x * far_y * scale;
        let is_finite_x = !before.x.is_infinite() && !x.is_infinite();
        let is_finite_y = !before.y.is_infinite() && !y.is_infinite();
        let has_overflown = (self.x.is_infinite() || self.xx.is_infinite()) && is_finite_x
            || (self.y.is_infinite() || self.yy.is_infinite()) && is_finite_y
            || self.xy.is_infinite() && is_finite_x && is_finite_y;
        if has_overflown {
            return Err(float_error(overflow()));
        }
        for sum in [&mut self.xx, &mut self.yy, &mut self.xy] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, other: Self) -> Result<(), StatementError> {
        if self.count == 0.0 || other.count == 0.0 {
            *self = if self.count == 0.0 { other } else { *self };
            return Ok(());
        }
        let count = self.count + other.count;
        let far_x = self.x / self.count - other.x / other.count;
        let far_y = self.y / self.count - other.y / other.count;
        let joined = |a: f64, b: f64, (p, q): (f64, f64)| {
            let sum = a + b + self.count * other.count * p * q / count;
            match sum.is_infinite() && !a.is_infinite() && !b.is_infinite() {
                true => Err(float_error(overflow())),
                false => Ok(sum),
            }
        };
        *self = Self {
            count,
            x: add(self.x, other.x).map_err(float_error)?,
            xx: joined(self.xx, other.xx, (far_x, far_x))?,
            y: add(self.y, other.y).map_err(float_error)?,
            yy: joined(self.yy, other.yy, (far_y, far_y))?,
            xy: joined(self.xy, other.xy, (far_x, far_y))?,
        };
        Ok(())
    }

    fn result(&self, wanted: OfPairs) -> Option<f64> {
        let Self { count, x, xx, y, yy, xy } = *self;
        let least = if wanted == OfPairs::CovarianceOfSample { 2.0 } else { 1.0 };
        if count < least {
            return None;
        }
        Some(match wanted {
            OfPairs::Count => count,
            OfPairs::AverageX => x / count,
            OfPairs::AverageY => y / count,
            OfPairs::SquaresX => xx,
            OfPairs::SquaresY => yy,
            OfPairs::Products => xy,
            OfPairs::CovarianceOfAll => xy / count,
            OfPairs::CovarianceOfSample => xy / (count - 1.0),
            // A line that is level or upright has none.
            OfPairs::Correlation if xx == 0.0 || yy == 0.0 => return None,
            OfPairs::Correlation => xy / (xx * yy).sqrt(),
            OfPairs::Determination | OfPairs::Slope | OfPairs::Intercept if xx == 0.0 => {
                return None;
            }
            OfPairs::Determination if yy == 0.0 => 1.0,
            OfPairs::Determination => (xy * xy) / (xx * yy),
            OfPairs::Slope => xy / xx,
            OfPairs::Intercept => (y - x * xy / xx) / count,
        })
    }
}

/// Aggregates of pairs.
#[derive(Debug)]
pub(super) struct Pairs {
    wanted: OfPairs,
    moments: PairMoments,
}

impl Pairs {
    pub(super) fn new(wanted: OfPairs) -> Self {
        Self { wanted, moments: PairMoments::default() }
    }
}

/// The parts of the state, by their names.
pub(super) const STATE: [&str; 6] = ["count", "x", "xx", "y", "yy", "xy"];

impl Accumulator for Pairs {
    fn update_batch(&mut self, values: &[ArrayRef]) -> QueryResult<()> {
        let ys = values[0].as_primitive::<Float64Type>();
        let xs = values[1].as_primitive::<Float64Type>();
        for (y, x) in ys.iter().zip(xs) {
            if let (Some(y), Some(x)) = (y, x) {
                self.moments.add(y, x)?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> QueryResult<ScalarValue> {
        Ok(match self.wanted {
            OfPairs::Count => ScalarValue::Int64(Some(self.moments.count as i64)),
            wanted => ScalarValue::Float64(self.moments.result(wanted)),
        })
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> QueryResult<Vec<ScalarValue>> {
        let PairMoments { count, x, xx, y, yy, xy } = self.moments;
        Ok([count, x, xx, y, yy, xy].map(ScalarValue::from).to_vec())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> QueryResult<()> {
        for row in 0..states[0].len() {
            let part = |at: usize| states[at].as_primitive::<Float64Type>().value(row);
            let [count, x, xx, y, yy, xy] = std::array::from_fn(part);
            self.moments.merge(PairMoments { count, x, xx, y, yy, xy })?;
        }
        Ok(())
    }
}
