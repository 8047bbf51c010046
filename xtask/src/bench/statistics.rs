//! Medians, and how far to trust them.
//!
//! The interval for a median comes from order statistics: the number of samples below the true median
//! is binomial with probability one half, whatever the distribution, so the k-th smallest and the
//! k-th largest sample enclose it with a probability that can be computed exactly. Five samples
//! reach 93.75 % at most, with their smallest and largest, and the interval then says so.

/// An interval for the true median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Probability that it encloses the true median.
    pub(super) coverage: f64,
}

const WANTED_COVERAGE: f64 = 0.95;

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The median; `None` without samples.
pub(super) fn median(samples: &[f64]) -> Option<f64> {
    let sorted = sorted(samples);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get((sorted.len() / 2).checked_sub(1)?)?;
    Some(f64::midpoint(lower, upper))
}

/// The smallest and the largest sample.
pub(super) fn range(samples: &[f64]) -> Option<(f64, f64)> {
    let sorted = sorted(samples);
    Some((*sorted.first()?, *sorted.last()?))
}

/// The narrowest symmetric interval of order statistics with at least 95 % coverage, or the widest there is.
pub(super) fn median_interval(samples: &[f64]) -> Option<Interval> {
    let sorted = sorted(samples);
    let count = sorted.len();
    let wide_enough = |rank: &usize| coverage(count, *rank) >= WANTED_COVERAGE;
    let rank = (1..=count.div_ceil(2)).rev().find(wide_enough).unwrap_or(1);
    Some(Interval {
        low: *sorted.get(rank.checked_sub(1)?)?,
        high: *sorted.get(count.checked_sub(rank)?)?,
        coverage: coverage(count, rank),
    })
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
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn five_samples_reach_their_extremes_and_no_more() {
        let interval = median_interval(&[5.0, 1.0, 2.0, 4.0, 3.0]).unwrap();
        assert_eq!((interval.low, interval.high, interval.coverage), (1.0, 5.0, 0.9375));
    }

    #[test]
    fn eleven_samples_leave_one_out_at_each_end() {
        let samples: Vec<f64> = (1..=11).map(f64::from).collect();
        let interval = median_interval(&samples).unwrap();
        assert_eq!((interval.low, interval.high), (2.0, 10.0));
        assert!((interval.coverage - 0.988).abs() < 0.001, "{}", interval.coverage);
    }

    #[test]
    fn one_sample_is_no_evidence() {
        let interval = median_interval(&[7.0]).unwrap();
        assert_eq!((interval.low, interval.high, interval.coverage), (7.0, 7.0, 0.0));
    }
}
