//! How far the second of two runs lies from the first, from two medians with their intervals.
//!
//! Invariant: a word needs intervals that do not touch, each with enough coverage, and further apart than the larger noise
//! floor of the two runs: what their own two passes differed by.

use crate::report::units::{digits, range};
use crate::report::wording;
use crate::results::Figure;
use crate::statistics::{Difference, LEAST_COVERAGE, Summary};

/// The second run against the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shift {
    /// How many times as good the second is: above 1 it is better. Ratio of the medians.
    pub(super) ratio: f64,
    /// The least and the most that the ends of the intervals allow, widened by the noise floor.
    pub(super) low: f64,
    pub(super) high: f64,
    /// The word for the second run.
    pub(super) difference: Difference,
    /// Whether both runs had turns enough for a word.
    pub(super) trusted: bool,
}

/// Holds the second against the first, with a noise floor as a factor. `None` where a ratio means nothing.
pub(super) fn shift(
    first: &Summary,
    second: &Summary,
    more_is_better: bool,
    floor: f64,
) -> Option<Shift> {
    let (better, worse) = if more_is_better { (second, first) } else { (first, second) };
    let coverage = first.coverage.min(second.coverage);
    let samples = first.samples.min(second.samples);
    let (low, high) = (better.low / worse.high, better.high / worse.low);
    let found = Summary { median: better.median / worse.median, low, high, coverage, samples };
    let found = found.widened(floor);
    let Summary { median: ratio, low, high, .. } = found;
    let is_ratio = |value: f64| value.is_finite() && value > 0.0;
    if ![ratio, low, high].into_iter().all(is_ratio) {
        return None;
    }
    let trusted = coverage >= LEAST_COVERAGE;
    Some(Shift { ratio, low, high, difference: found.difference(), trusted })
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
        shift(&first, &second, more, 1.0).unwrap().difference
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
        let one = summary(1.0, 1.0, 1.0);
        assert_eq!(shift(&summary(0.0, 0.0, 0.0), &one, true, 1.0), None);
        assert_eq!(shift(&summary(f64::NAN, f64::NAN, f64::NAN), &one, true, 1.0), None);
    }

    #[test]
    fn what_the_runs_differ_by_within_themselves_is_no_shift() {
        let (low, high) = (summary(1.0, 1.1, 1.2), summary(1.3, 1.4, 1.5));
        let word = |floor| shift(&low, &high, true, floor).unwrap().difference;
        assert_eq!((word(1.05), word(1.1)), (Difference::Faster, Difference::NotSeen));
    }
}
