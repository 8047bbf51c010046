//! From values to places: linear or logarithmic, with ticks at round values.
//!
//! Invariant: a place is between 0 and 1 whatever the value, so that nothing is drawn outside its chart.

/// One direction of a chart.
#[derive(Debug, Clone, Copy)]
pub(in crate::report) struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

/// How many times as large the largest value must be for a logarithmic axis.
const LOG_FROM: f64 = 25.0;

impl Axis {
    /// From zero to the largest of the values.
    pub(in crate::report) fn from_zero(values: impl IntoIterator<Item = f64>) -> Self {
        let high = values.into_iter().filter(|value| value.is_finite()).fold(0.0, f64::max);
        Self { low: 0.0, high: if high > 0.0 { high } else { 1.0 }, log: false }
    }

    /// From zero to the largest, or logarithmic where the values lie far apart.
    pub(super) fn fitting(values: &[f64]) -> Self {
        let usable = values.iter().copied().filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = usable
            .fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        if low < f64::MAX && high / low >= LOG_FROM && high / low < f64::MAX {
            return Self { low: round_down(low), high: round_up(high), log: true };
        }
        let exact = Self::from_zero(values.iter().copied());
        let step = round_step(exact.high / 4.0);
        Self { high: (exact.high / step).ceil() * step, ..exact }
    }

    /// Logarithmic where all values are above zero: for parameters, which are mostly powers of two.
    pub(super) fn of_parameter(values: &[f64]) -> Self {
        let low = values.iter().copied().fold(f64::MAX, f64::min);
        let high = values.iter().copied().fold(f64::MIN, f64::max);
        Self { low, high, log: low > 0.0 && high / low >= 8.0 }
    }

    /// True when equal steps are equal factors.
    pub(super) fn is_log(&self) -> bool {
        self.log
    }

    /// Where a value lies: 0 at the low end, 1 at the high one.
    pub(in crate::report) fn place(&self, value: f64) -> f64 {
        let place = if self.log {
            (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.5 }
    }

    /// Round values between the ends, at most about six.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if self.log { self.log_ticks() } else { self.linear_ticks() }
    }

    fn linear_ticks(&self) -> Vec<f64> {
        let step = round_step((self.high - self.low) / 4.0);
        let count = ((self.high - self.low) / step + 0.001).floor().min(8.0) as usize;
        (0..=count).map(|at| self.low + step * at as f64).collect()
    }

    /// Powers of ten, with 2 and 5 between them where there are few.
    fn log_ticks(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let decades = last.saturating_sub(first);
        let factors: &[f64] = if self.high / self.low < 150.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let every = usize::try_from(decades / 6).unwrap_or(0) + 1;
        let powers = (first..=last)
            .step_by(every)
            .flat_map(|power| factors.iter().map(move |factor| factor * 10.0_f64.powi(power)));
        powers.filter(|tick| (self.low * 0.999..=self.high * 1.001).contains(tick)).collect()
    }
}

/// 1, 2 or 5 times a power of ten, at or above the value.
fn round_up(value: f64) -> f64 {
    let near = round_step(value * 0.999_999);
    if near.is_finite() { near } else { value }
}

/// 1, 2 or 5 times a power of ten, at or below the value.
fn round_down(value: f64) -> f64 {
    let power = 10.0_f64.powf(value.log10().floor());
    let factor = [5.0, 2.0, 1.0].into_iter().find(|factor| factor * power <= value * 1.000_001);
    let low = factor.unwrap_or(1.0) * power;
    if low.is_normal() { low } else { value }
}

/// 1, 2 or 5 times a power of ten, at or above the step.
fn round_step(step: f64) -> f64 {
    let power = 10.0_f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step);
    let step = factor.unwrap_or(10.0) * power;
    if step.is_finite() && step > 0.0 { step } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_values_start_at_zero_and_far_ones_are_logarithmic() {
        let near = Axis::fitting(&[3.0, 10.0]);
        assert_eq!((near.place(0.0), near.place(5.0), near.is_log()), (0.0, 0.5, false));
        assert_eq!(near.ticks(), [0.0, 5.0, 10.0]);
        let far = Axis::fitting(&[1.0, 100.0]);
        assert!((far.place(10.0) - 0.5).abs() < 1e-9 && far.is_log());
        assert_eq!(far.ticks(), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
    }

    #[test]
    fn a_place_is_within_the_chart_whatever_comes() {
        for axis in [
            Axis::fitting(&[]),
            Axis::fitting(&[f64::NAN, -1.0]),
            Axis::of_parameter(&[4.0]),
            Axis::fitting(&[1e-300, 1e300]),
        ] {
            for value in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
                assert!((0.0..=1.0).contains(&axis.place(value)));
            }
            assert!(axis.ticks().len() < 20, "{axis:?}");
        }
    }
}
