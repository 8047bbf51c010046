//! Medians, how far to trust them, and when one thing may be called faster than another.
//!
//! The interval for a median comes from order statistics: the number of samples below the true median is binomial with
//! probability one half, whatever the distribution, so the k-th smallest and the k-th largest sample enclose it with a
//! probability that can be computed exactly. Five samples reach 93.75 % at most, with their smallest and largest, and
//! the interval then says so.
//!
//! Two contestants are compared by the ratios of their pairs, turn by turn, so that a drift of the machine is in both
//! sides of each. The interval of the ratio is widened at both ends by a noise floor: what a contestant differed by from
//! itself (the lab's `noise_floor.rs`), and 2 % at least. A word is given only where the whole widened interval lies on one
//! side of 1, and where it covers the true ratio with 94 %; so "no difference seen" never stands beside an
//! interval that leaves 1 out.

#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

/// A median with an interval for the true one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The median of the samples.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Probability that the interval encloses the true median, 0 to 1.
    pub coverage: f64,
    /// How many samples there are.
    pub samples: usize,
}

/// What may be said of two contestants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// The first is faster.
    Faster,
    /// The first is slower.
    Slower,
    /// The interval leaves both open.
    NotSeen,
}

/// Two contestants held against each other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// How many times as good the first is: above 1 it is better. Median over the pairs, with its interval, widened by the
    /// noise floor.
    pub ratio: Summary,
    /// The word for it.
    pub difference: Difference,
}

/// Coverage that is wanted of an interval.
const WANTED_COVERAGE: f64 = 0.95;
/// Coverage below which an interval says nothing: six samples reach it, five do not.
pub const LEAST_COVERAGE: f64 = 0.94;
/// The least noise floor, as a factor: nobody acts on a ratio nearer to 1 than this.
pub const NEGLIGIBLE: f64 = 1.02;

/// Median and interval: the narrowest symmetric one of order statistics with at least 95 % coverage, or the widest there
/// is. `None` without samples.
pub fn summary(samples: &[f64]) -> Option<Summary> {
    let sorted = sorted(samples);
    let count = sorted.len();
    let wide_enough = |rank: &usize| coverage(count, *rank) >= WANTED_COVERAGE;
    let rank = (1..=count.div_ceil(2)).rev().find(wide_enough).unwrap_or(1);
    Some(Summary {
        median: median_of_sorted(&sorted)?,
        low: *sorted.get(rank.checked_sub(1)?)?,
        high: *sorted.get(count.checked_sub(rank)?)?,
        coverage: coverage(count, rank),
        samples: count,
    })
}

/// The median alone. `None` without samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    median_of_sorted(&sorted(samples))
}

/// The smallest and the largest sample. `None` without samples.
pub fn range(samples: &[f64]) -> Option<(f64, f64)> {
    let sorted = sorted(samples);
    Some((*sorted.first()?, *sorted.last()?))
}

/// Holds the figures of a contestant against another's, pair by pair, with the noise floor as a factor from 1 on. `None`
/// when there is no pair.
pub fn compare(
    first: &[f64],
    other: &[f64],
    more_is_better: bool,
    floor: f64,
) -> Option<Comparison> {
    let ratio = |(first, other): (&f64, &f64)| {
        if more_is_better { first / other } else { other / first }
    };
    let ratios: Vec<f64> = first.iter().zip(other).map(ratio).filter(|r| r.is_finite()).collect();
    let ratio = summary(&ratios)?.widened(floor);
    Some(Comparison { ratio, difference: ratio.difference() })
}

impl Summary {
    /// With both ends moved away by a noise floor, a factor; by 2 % at least.
    #[must_use]
    pub fn widened(self, floor: f64) -> Self {
        let floor = floor.max(NEGLIGIBLE);
        Self { low: self.low / floor, high: self.high * floor, ..self }
    }

    /// The word for a ratio with this interval.
    pub fn difference(&self) -> Difference {
        match self.coverage >= LEAST_COVERAGE {
            true if self.low > 1.0 => Difference::Faster,
            true if self.high < 1.0 => Difference::Slower,
            _ => Difference::NotSeen,
        }
    }
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get((sorted.len() / 2).checked_sub(1)?)?;
    Some(f64::midpoint(lower, upper))
}

/// Probability that the `rank`-th smallest and largest of `count` samples enclose the median.
fn coverage(count: usize, rank: usize) -> f64 {
    let mut term = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut tail = 0.0;
    for below in 0..rank {
        tail += term;
        term *= (count - below) as f64 / (below + 1) as f64;
    }
    (1.0 - 2.0 * tail).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_lies_between_the_middle_two() {
        assert_eq!(summary(&[4.0, 1.0, 3.0, 2.0]).unwrap().median, 2.5);
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[])), (Some(2.0), None));
        assert_eq!((summary(&[]), range(&[])), (None, None));
    }

    #[test]
    fn five_samples_reach_their_extremes_and_no_more() {
        let found = summary(&[5.0, 1.0, 2.0, 4.0, 3.0]).unwrap();
        assert_eq!((found.low, found.high, found.coverage), (1.0, 5.0, 0.9375));
    }

    #[test]
    fn eleven_samples_leave_one_out_at_each_end() {
        let samples: Vec<f64> = (1..=11).map(f64::from).collect();
        let found = summary(&samples).unwrap();
        assert_eq!((found.low, found.high), (2.0, 10.0));
        assert!((found.coverage - 0.988).abs() < 0.001, "{}", found.coverage);
        assert_eq!(range(&samples), Some((1.0, 11.0)));
    }

    #[test]
    fn one_sample_is_no_evidence() {
        let found = summary(&[7.0]).unwrap();
        assert_eq!((found.low, found.high, found.coverage), (7.0, 7.0, 0.0));
    }

    #[test]
    fn a_word_needs_the_whole_interval_and_enough_samples() {
        let slow = [2.0, 2.1, 2.2, 2.0, 2.1, 2.0];
        let fast = [1.0, 1.1, 1.0, 1.2, 1.0, 1.1];
        let word = |a: &[f64], b: &[f64], more| compare(a, b, more, 1.0).unwrap().difference;
        assert_eq!(word(&fast, &slow, false), Difference::Faster);
        assert_eq!(word(&fast, &slow, true), Difference::Slower);
        assert_eq!(word(&fast[..5], &slow[..5], false), Difference::NotSeen);
        assert_eq!(word(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0], &[1.5; 6], false), Difference::NotSeen);
        assert_eq!(compare(&[], &[], false, 1.0), None);
    }

    /// A table said "no difference seen" of a ratio from 1.005 to 1.015, and the reader could not know why.
    #[test]
    fn no_difference_is_never_seen_beside_an_interval_without_1() {
        let other = [1.0; 6];
        for first in [[1.01; 6], [0.99; 6], [1.015; 6], [1.0; 6], [1.3; 6], [0.5; 6]] {
            for floor in [1.0, 1.1, 1.4] {
                let found = compare(&first, &other, true, floor).unwrap();
                let has_1 = found.ratio.low <= 1.0 && found.ratio.high >= 1.0;
                assert_eq!(found.difference == Difference::NotSeen, has_1, "{found:?}");
            }
        }
    }

    #[test]
    fn a_difference_within_the_noise_floor_is_none() {
        let word = |floor| compare(&[1.2; 6], &[1.0; 6], true, floor).unwrap().difference;
        assert_eq!((word(1.1), word(1.25)), (Difference::Faster, Difference::NotSeen));
    }
}
