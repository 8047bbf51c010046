//! Results of the lab as text for a terminal: a table for each group, then the doubts.
//!
//! Invariant: a word such as "faster" stands only where the interval of the pairs allows it.

use pagemill_lab::results::{Absence, Cell, Experiment, Figure, Group, Results};
use pagemill_lab::statistics::{Difference, compare};

use crate::text_table::{Align, table};

/// A group: each cell with its median, interval, and what may be said of it beside the baseline.
pub(crate) fn group(group: &Group) -> String {
    let unit = unit(group.figure);
    let header = [
        ("", Align::Left),
        (unit, Align::Right),
        ("from", Align::Right),
        ("to", Align::Right),
        ("", Align::Left),
    ];
    let rows: Vec<Vec<String>> = group.cells.iter().map(|cell| row(group, cell)).collect();
    format!("{}\n{}\n", group.title, table(&header, &rows))
}

fn row(group: &Group, cell: &Cell) -> Vec<String> {
    let mut row = vec![cell.name.clone()];
    match group.summary(cell) {
        Some(found) => {
            let values = [found.median, found.low, found.high];
            row.extend(values.map(|value| shown(group.figure, value)));
            let remarks = [word(group, cell), cell.note.clone()];
            row.push(remarks.into_iter().flatten().collect::<Vec<_>>().join("; "));
        }
        None => {
            row.extend(["-".into(), String::new(), String::new()]);
            row.push(why(cell));
        }
    }
    row
}

fn why(cell: &Cell) -> String {
    match &cell.absent {
        Some(Absence::Refused(why)) => format!("refused: {why}"),
        Some(Absence::Skipped(why)) => format!("skipped: {why}"),
        Some(Absence::Failed(why)) => format!("failed: {why}"),
        None => "not measured".into(),
    }
}

fn word(group: &Group, cell: &Cell) -> Option<String> {
    let baseline = group.cell(group.baseline.as_deref()?)?;
    if baseline.name == cell.name {
        return None;
    }
    let more = group.figure.more_is_better();
    let found = compare(&group.figures(cell), &group.figures(baseline), more)?;
    let ratio = found.ratio.median;
    Some(match found.difference {
        Difference::Faster => format!("{ratio:.2} times as fast as {}", baseline.name),
        Difference::Slower => format!("{:.2} times as slow as {}", 1.0 / ratio, baseline.name),
        Difference::NotSeen => format!("no difference seen from {}", baseline.name),
    })
}

fn unit(figure: Figure) -> &'static str {
    match figure {
        Figure::Elapsed => "ms",
        Figure::Throughput => "MB/s",
        Figure::Rate => "per s",
        Figure::Latency => "us",
        Figure::Count => "count",
    }
}

fn shown(figure: Figure, value: f64) -> String {
    let value = match figure {
        Figure::Elapsed => value * 1e3,
        Figure::Throughput => value / 1e6,
        Figure::Latency => value * 1e6,
        Figure::Rate | Figure::Count => value,
    };
    let decimals = match value.abs() {
        0.0..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// What an experiment left out.
pub(crate) fn skipped(experiment: &Experiment) -> String {
    let line =
        |part: &pagemill_lab::results::Skipped| format!("skipped: {}: {}\n", part.what, part.why);
    let lines: String = experiment.skipped.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("{lines}\n") }
}

/// The environment, and what makes figures doubtful.
pub(crate) fn ending(results: &Results) -> String {
    let mut text = String::new();
    for fact in &results.environment {
        text.push_str(&format!("{}: {}\n", fact.name, fact.value));
    }
    for warning in &results.warnings {
        let group = warning.group.as_ref().map(|group| format!("{group}: ")).unwrap_or_default();
        text.push_str(&format!("warning: {group}{}: {}\n", warning.message, warning.remedy));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagemill_lab::results::Sample;

    fn cell(name: &str, elapsed: &[f64]) -> Cell {
        let sample =
            |elapsed: &f64| Sample { elapsed_s: *elapsed, operations: 1, ..Sample::default() };
        Cell { name: name.into(), samples: elapsed.iter().map(sample).collect(), ..Cell::default() }
    }

    #[test]
    fn a_group_is_a_table_with_words_and_reasons() {
        let refused = Cell {
            name: "io_uring".into(),
            absent: Some(Absence::Refused("EPERM".into())),
            ..Cell::default()
        };
        let told = group(&Group {
            title: "Reading".into(),
            baseline: Some("seek".into()),
            cells: vec![cell("seek", &[0.002; 5]), cell("pread", &[0.001; 5]), refused],
            ..Group::default()
        });
        let expected = "Reading\n            ms  from    to\nseek      2.00  2.00  2.00\npread     1.00  1.00  1.00  \
                        2.00 times as fast as seek\nio_uring     -              refused: EPERM\n\n";
        assert_eq!(told, expected);
    }
}
