//! How far the second of two runs lies from the first, from two medians with their intervals.
//!
//! Invariant: a word needs intervals that do not touch, each with enough coverage, and a ratio that anybody would act on.

use crate::report::units::{digits, range};
use crate::report::wording;
use crate::results::Figure;
use crate::statistics::{Difference, LEAST_COVERAGE, NEGLIGIBLE, Summary};

/// The second run against the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shift {
    /// How many times as good the second is: above 1 it is better. Ratio of the medians.
    pub(super) ratio: f64,
    /// The least and the most that the ends of the intervals allow.
    pub(super) low: f64,
    pub(super) high: f64,
    /// The word for the second run.
    pub(super) difference: Difference,
    /// Whether both runs had turns enough for a word.
    pub(super) trusted: bool,
}

/// Holds the second against the first. `None` where a ratio means nothing.
pub(super) fn shift(first: &Summary, second: &Summary, more_is_better: bool) -> Option<Shift> {
    let (better, worse) = if more_is_better { (second, first) } else { (first, second) };
    let ratio = better.median / worse.median;
    let (low, high) = (better.low / worse.high, better.high / worse.low);
    let is_ratio = |value: f64| value.is_finite() && value > 0.0;
    if ![ratio, low, high].into_iter().all(is_ratio) {
        return None;
    }
    let trusted = first.coverage.min(second.coverage) >= LEAST_COVERAGE;
    let difference = match trusted {
        true if low > 1.0 && ratio > 1.0 + NEGLIGIBLE => Difference::Faster,
        true if high < 1.0 && ratio < 1.0 - NEGLIGIBLE => Difference::Slower,
        _ => Difference::NotSeen,
    };
    Some(Shift { ratio, low, high, difference, trusted })
}

impl Shift {
    /// The ratio with its ends.
    pub(super) fn figure(&self) -> String {
        format!("{}× ({})", digits(self.ratio), range(self.low, self.high))
    }

    /// The word.
    pub(super) fn word(&self, figure: Figure) -> &'static str {
        if self.trusted { wording::difference(self.difference, figure) } else { wording::TOO_FEW }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(low: f64, median: f64, high: f64) -> Summary {
        Summary { median, low, high, coverage: 0.96, samples: 9 }
    }

    fn word(first: Summary, second: Summary, more: bool) -> Difference {
        shift(&first, &second, more).unwrap().difference
    }

    #[test]
    fn intervals_that_touch_leave_it_open() {
        let (low, high) = (summary(1.0, 1.1, 1.2), summary(1.3, 1.4, 1.5));
        assert_eq!(word(low, high, false), Difference::Slower);
        assert_eq!(word(low, high, true), Difference::Faster);
        assert_eq!(word(high, low, false), Difference::Faster);
        assert_eq!(word(low, summary(1.2, 1.4, 1.5), false), Difference::NotSeen);
    }

    #[test]
    fn too_few_turns_and_too_small_a_ratio_leave_it_open() {
        let few = Summary { coverage: 0.75, ..summary(1.0, 1.1, 1.2) };
        assert_eq!(word(few, summary(2.0, 2.1, 2.2), true), Difference::NotSeen);
        assert_eq!(
            word(summary(1.0, 1.0, 1.0), summary(1.01, 1.01, 1.01), true),
            Difference::NotSeen
        );
    }

    #[test]
    fn no_ratio_with_nothing() {
        assert_eq!(shift(&summary(0.0, 0.0, 0.0), &summary(1.0, 1.0, 1.0), true), None);
        assert_eq!(
            shift(&summary(f64::NAN, f64::NAN, f64::NAN), &summary(1.0, 1.0, 1.0), true),
            None
        );
    }
}
