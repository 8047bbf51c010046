//! The result: each row with both sides and the ratio of the pairs of turns.
//!
//! Invariant: a row is called equal only where its median ratio is within a tenth of one; the bound is that of the tracker.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Options, RowResult};
use crate::bench::artifact::{Entries, named};
use crate::bench::figures::ratio;
use crate::bench::statistics::{median, summary};

/// How far from one a ratio may be.
const TOLERATED: f64 = 0.10;

impl RowResult {
    /// Ours over the other's, round by round.
    fn ratios(&self) -> Vec<f64> {
        self.ours.iter().zip(&self.others).map(|(ours, other)| ours / other).collect()
    }

    fn verdict(&self) -> &'static str {
        let ratios = self.ratios();
        let within = |ratio: f64| (ratio - 1.0).abs() <= TOLERATED;
        match summary(&ratios) {
            None => "not run",
            Some(ratio) if within(ratio.median) => "within 10 %",
            Some(ratio) if ratio.low <= 1.0 && ratio.high >= 1.0 => "beyond 10 %, within noise",
            Some(ratio) if ratio.median > 1.0 => "ours is more",
            Some(_) => "ours is less",
        }
    }
}

/// The page.
pub(super) fn markdown(options: &Options, environment: &Entries, outcomes: &[RowResult]) -> String {
    let mut page =
        format!("# The lab's device against fio and pg_test_fsync: {}\n\n", options.run.name);
    let _ = writeln!(
        page,
        "One file of {} MiB, written in full; {} rounds, who begins changes with each; everything written back and free \
         memory filled before each turn. Turns last {} s; those through the page cache begin with none of the file \
         cached, and where that time is not over at its end, ours begin with it again, so, and the other's end there. Figures are medians; the ratio is ours over the other's, of the pairs of turns.\n",
        options.mib, options.run.repetitions, options.seconds
    );
    page += "| cell | ours | other | | ratio [interval] | |\n";
    page += "| --- | ---: | ---: | --- | ---: | --- |\n";
    for outcome in outcomes {
        let _ = writeln!(page, "{}", line(outcome));
    }
    let within = outcomes.iter().filter(|outcome| outcome.verdict() == "within 10 %").count();
    let _ = writeln!(page, "\n{within} of {} are within 10 %.", outcomes.len());
    page += "\n## Environment\n\n";
    for (name, value) in environment {
        let _ = writeln!(page, "- {name}: {value}");
    }
    page
}

fn line(outcome: &RowResult) -> String {
    let RowResult { row, ours, others, failure } = outcome;
    let ratio = ratio(&outcome.ratios());
    let shown = |figures: &[f64]| match median(figures) {
        None => "—".to_owned(),
        Some(figure) if row.is_sync() => format!("{figure:.0}/s"),
        Some(figure) => format!("{:.1} MB/s", figure / 1e6),
    };
    let verdict = failure.as_deref().unwrap_or(outcome.verdict()).replace('\n', " ");
    format!(
        "| {} | {} | {} | {} | {ratio} | {verdict} |",
        row.name,
        shown(ours),
        shown(others),
        row.against()
    )
}

/// The raw numbers.
pub(super) fn raw(options: &Options, environment: &Entries, outcomes: &[RowResult]) -> Value {
    let row = |outcome: &RowResult| {
        json!({
            "cell": outcome.row.name,
            "against": outcome.row.against(),
            "unit": if outcome.row.is_sync() { "operations/s" } else { "bytes/s" },
            "ours": outcome.ours,
            "others": outcome.others,
            "verdict": outcome.verdict(),
            "failure": outcome.failure,
        })
    };
    json!({
        "mib": options.mib,
        "seconds": options.seconds,
        "repetitions": options.run.repetitions,
        "environment": named(environment),
        "rows": outcomes.iter().map(row).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::device::rows;

    #[test]
    fn a_row_is_equal_within_a_tenth_and_noise_is_told_from_a_difference() {
        let verdict = |ours: [f64; 5]| {
            let row = rows::all().remove(0);
            RowResult { row, ours: ours.into(), others: vec![1.0; 5], failure: None }.verdict()
        };
        assert_eq!(verdict([0.95, 1.02, 1.3, 0.99, 1.0]), "within 10 %");
        assert_eq!(verdict([0.5, 0.8, 0.7, 1.2, 0.6]), "beyond 10 %, within noise");
        assert_eq!(verdict([0.5, 0.8, 0.7, 0.9, 0.6]), "ours is less");
        assert_eq!(verdict([1.2, 1.3, 1.2, 1.4, 1.5]), "ours is more");
    }
}
