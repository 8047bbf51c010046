//! The result: each row with both builds and the ratio of the pairs of turns.
//!
//! Invariant: a row is called slower or faster only where the whole interval is on that side of one.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Options, RowResult};
use crate::bench::artifact::{Entries, named};
use crate::bench::figures::{ratio, raw as interval, spread};
use crate::bench::statistics::summary;

impl RowResult {
    /// The time of the later build over that of the earlier one, pair by pair.
    fn ratios(&self) -> Vec<f64> {
        self.after.iter().zip(&self.before).map(|(after, before)| after / before).collect()
    }

    fn verdict(&self) -> &str {
        match (&self.fault, summary(&self.ratios())) {
            (Some(fault), _) => fault,
            (None, None) => "not run",
            (None, Some(ratio)) if ratio.low > 1.0 => "slower",
            (None, Some(ratio)) if ratio.high < 1.0 => "faster",
            (None, Some(_)) => "within the interval",
        }
    }
}

/// The page.
pub(super) fn markdown(options: &Options, environment: &Entries, results: &[RowResult]) -> String {
    let mut page = format!("# Two builds of pagemill: {}\n\n", options.run.name);
    let _ = writeln!(
        page,
        "Tables `t` ({} rows of one wide text) and `bigtable` ({} rows of three integers) in one cluster, its files in the page \
         cache; {} pairs of turns after one of each, who begins changes with each. Milliseconds of whole processes, median \
         (least to most). The ratio is the later build over the earlier one, pair by pair: below 1 is faster.\n",
        options.rows, options.bigtable_rows, options.run.repetitions
    );
    page += "| row | command | before, ms | after, ms | ratio [interval] | |\n";
    page += "| --- | --- | ---: | ---: | --- | --- |\n";
    for result in results {
        let _ = writeln!(
            page,
            "| {} | `{}` | {} | {} | {} | {} |",
            result.row.id,
            result.row.command,
            spread(&result.before),
            spread(&result.after),
            ratio(&result.ratios()),
            result.verdict().replace('\n', " ")
        );
    }
    page += "\n## Environment\n\n";
    for (name, value) in environment {
        let _ = writeln!(page, "- {name}: {value}");
    }
    page
}

/// The raw numbers.
pub(super) fn raw(options: &Options, environment: &Entries, results: &[RowResult]) -> Value {
    let row = |result: &RowResult| {
        json!({
            "row": result.row.id,
            "command": result.row.command,
            "before_ms": result.before,
            "after_ms": result.after,
            "ratio": interval(&result.ratios()),
            "verdict": result.verdict(),
        })
    };
    json!({
        "rows": options.rows,
        "bigtable_rows": options.bigtable_rows,
        "repetitions": options.run.repetitions,
        "environment": named(environment),
        "results": results.iter().map(row).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::builds::rows;

    #[test]
    fn only_a_whole_interval_is_a_difference() {
        let verdict = |after: [f64; 5]| {
            let row = rows::ROWS[0];
            let result = RowResult { row, before: vec![1.0; 5], after: after.into(), fault: None };
            result.verdict().to_owned()
        };
        assert_eq!(verdict([1.1, 1.2, 1.05, 1.3, 1.1]), "slower");
        assert_eq!(verdict([0.9, 0.8, 0.95, 0.9, 0.7]), "faster");
        assert_eq!(verdict([1.1, 1.2, 0.99, 1.3, 1.1]), "within the interval");
    }

    #[test]
    fn a_row_that_failed_says_so_and_has_no_figures() {
        let (row, fault) = (rows::ROWS[0], Some("the answers differ".to_owned()));
        let result = RowResult { row, before: Vec::new(), after: Vec::new(), fault };
        assert_eq!(result.verdict(), "the answers differ");
        assert!(result.ratios().is_empty());
    }
}
