//! Times, ratios and verdicts as they stand in the pages and raw numbers of every benchmark.
//!
//! Invariant: a verdict whose interval holds the target says "within noise".

use serde_json::{Value, json};

use super::statistics::{Summary, median, range, summary};

const ABSENT: &str = "—";

/// A median with the smallest and the largest sample.
pub(super) fn spread(samples: &[f64]) -> String {
    match (median(samples), range(samples)) {
        (Some(median), Some((low, high))) => format!("{median:.1} ({low:.1}–{high:.1})"),
        _ => ABSENT.to_owned(),
    }
}

/// The median of ratios with its interval.
pub(super) fn ratio(ratios: &[f64]) -> String {
    let Some(Summary { median, low, high, coverage, .. }) = summary(ratios) else {
        return ABSENT.to_owned();
    };
    format!("{median:.2}× [{low:.2}–{high:.2}, {:.0} %]", coverage * 100.0)
}

/// A median with its interval, for the raw numbers.
pub(super) fn raw(samples: &[f64]) -> Option<Value> {
    let Summary { median, low, high, coverage, .. } = summary(samples)?;
    Some(json!({ "median": median, "low": low, "high": high, "coverage": coverage }))
}

/// What samples come to, held against a target that a figure reaches or does not.
pub(super) fn verdict(samples: &[f64], reaches: impl Fn(f64) -> bool) -> &'static str {
    let Some(figure) = summary(samples) else { return "not run" };
    match (reaches(figure.median), reaches(figure.low) == reaches(figure.high)) {
        (true, true) => "met",
        (true, false) => "met, within noise",
        (false, true) => "missed",
        (false, false) => "missed, within noise",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_are_not_there_are_dashes() {
        assert_eq!((spread(&[]), ratio(&[])), (ABSENT.to_owned(), ABSENT.to_owned()));
        assert_eq!(spread(&[1.0, 3.0]), "2.0 (1.0–3.0)");
        assert_eq!(ratio(&[1.0, 3.0, 2.0]), "2.00× [1.00–3.00, 75 %]");
    }

    #[test]
    fn a_target_inside_the_interval_is_called_noise() {
        let at_least_3 = |ratios: &[f64]| verdict(ratios, |ratio| ratio >= 3.0);
        assert_eq!((at_least_3(&[]), at_least_3(&[9.0; 5])), ("not run", "met"));
        assert_eq!(at_least_3(&[1.0; 5]), "missed");
        assert_eq!(at_least_3(&[2.0, 9.0, 9.0]), "met, within noise");
        assert_eq!(at_least_3(&[2.0, 2.0, 9.0]), "missed, within noise");
    }
}
