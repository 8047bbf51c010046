//! Which cells of a group make lines: those in which one parameter is a number and takes three values or more.
//!
//! Invariants: every line holds cells that differ in that parameter alone; a chart has at most eight lines, one for
//! each mark, and where there are more, charts are made for the values of a second numeric parameter.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::wording;
use crate::results::{Cell, Group};
use crate::statistics::Summary;

/// The lines over one parameter.
#[derive(Debug)]
pub(super) struct Chart<'a> {
    /// The parameter along the chart.
    pub(super) parameter: &'a str,
    /// What holds for all lines, such as `depth 4`; empty for the only chart of a group.
    pub(super) title: String,
    pub(super) series: Vec<Series<'a>>,
    /// Lines that found no place.
    pub(super) left_out: usize,
}

/// One line.
#[derive(Debug)]
pub(super) struct Series<'a> {
    pub(super) name: String,
    /// By rising parameter.
    pub(super) points: Vec<Point<'a>>,
}

/// One point: the parameter as number and as it was written, and the figure.
#[derive(Debug)]
pub(super) struct Point<'a> {
    pub(super) at: f64,
    pub(super) label: &'a str,
    pub(super) found: Summary,
}

const MOST_SERIES: usize = 8;
/// A cell with its figure.
type Measured<'a> = (&'a Cell, Summary);

/// More lines than this are split over charts, if they can be.
const CROWDED: usize = 6;

/// The charts of a group; none where no parameter is numeric.
pub(super) fn charts(group: &Group) -> Vec<Chart<'_>> {
    let measured: Vec<Measured<'_>> =
        group.cells.iter().filter_map(|cell| Some((cell, group.summary(cell)?))).collect();
    let Some(parameter) = best_parameter(&measured, 3, None) else { return Vec::new() };
    let whole = chart(&measured, parameter, String::new());
    if whole.series.len() + whole.left_out <= CROWDED {
        return if whole.series.is_empty() { Vec::new() } else { vec![whole] };
    }
    match best_parameter(&measured, 2, Some(parameter)) {
        Some(second) => split(&measured, parameter, second),
        None => vec![whole],
    }
}

/// A size or a number out of a parameter: `8 kB`, `64KiB`, `0.5`.
pub(super) fn numeric(text: &str) -> Option<f64> {
    let end = text.find(|ch: char| !ch.is_ascii_digit() && ch != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(end)?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" | "bytes" | "blocks" => 1.0,
        "k" | "kb" | "kib" => 1024.0,
        "m" | "mb" | "mib" => 1024.0 * 1024.0,
        "g" | "gb" | "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|value| value * factor)
}

/// The numeric parameter with the most values, at least `least`; the first by name among equals.
fn best_parameter<'a>(
    cells: &[Measured<'a>],
    least: usize,
    except: Option<&str>,
) -> Option<&'a str> {
    let mut values: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for (name, value) in cells.iter().flat_map(|(cell, _)| &cell.parameters) {
        if let Some(number) = numeric(value).filter(|_| Some(name.as_str()) != except) {
            values.entry(name).or_default().insert(number.to_bits());
        }
    }
    let enough = values.into_iter().filter(|(_, values)| values.len() >= least);
    enough.min_by_key(|(_, values)| std::cmp::Reverse(values.len())).map(|(name, _)| name)
}

fn split<'a>(cells: &[Measured<'a>], parameter: &'a str, second: &'a str) -> Vec<Chart<'a>> {
    let mut parts: Vec<(f64, &str, Vec<Measured<'_>>)> = Vec::new();
    for (cell, found) in cells {
        let Some(text) = cell.parameters.get(second) else { continue };
        let Some(value) = numeric(text) else { continue };
        match parts.iter_mut().find(|(other, _, _)| *other == value) {
            Some((_, _, members)) => members.push((cell, *found)),
            None => parts.push((value, text, vec![(cell, *found)])),
        }
    }
    parts.sort_by(|(a, _, _), (b, _, _)| a.total_cmp(b));
    let charts = parts.iter().map(|(_, text, members)| {
        chart(members, parameter, format!("{} {text}", wording::name(second)))
    });
    charts.filter(|chart| !chart.series.is_empty()).collect()
}

fn chart<'a>(cells: &[Measured<'a>], parameter: &'a str, title: String) -> Chart<'a> {
    let varying = varying(cells, parameter);
    let mut series: Vec<Series<'_>> = Vec::new();
    for (cell, found) in cells {
        let Some(label) = cell.parameters.get(parameter) else { continue };
        let Some(at) = numeric(label) else { continue };
        let point = Point { at, label, found: *found };
        let name = series_name(cell, &varying);
        match series.iter_mut().find(|each| each.name == name) {
            Some(each) => each.points.push(point),
            None => series.push(Series { name, points: vec![point] }),
        }
    }
    series.retain(|each| each.points.len() >= 2);
    for each in &mut series {
        each.points.sort_by(|a, b| a.at.total_cmp(&b.at));
    }
    let left_out = series.len().saturating_sub(MOST_SERIES);
    series.truncate(MOST_SERIES);
    Chart { parameter, title, series, left_out }
}

/// Parameters in which the cells differ, but for the one along the chart.
fn varying<'a>(cells: &[Measured<'a>], parameter: &str) -> Vec<&'a str> {
    let mut values: BTreeMap<&str, BTreeSet<Option<&String>>> = BTreeMap::new();
    let names: BTreeSet<&String> =
        cells.iter().flat_map(|(cell, _)| cell.parameters.keys()).collect();
    for name in names.into_iter().filter(|name| *name != parameter) {
        values
            .entry(name)
            .or_default()
            .extend(cells.iter().map(|(cell, _)| cell.parameters.get(name)));
    }
    values.into_iter().filter(|(_, values)| values.len() > 1).map(|(name, _)| name).collect()
}

/// Words stand alone, numbers with the name of what they count.
fn series_name(cell: &Cell, varying: &[&str]) -> String {
    let part = |name: &&str| {
        let value = cell.parameters.get(*name)?;
        let alone = numeric(value).is_none();
        Some(if alone { value.clone() } else { format!("{} {value}", wording::name(name)) })
    };
    let parts: Vec<String> = varying.iter().filter_map(part).collect();
    if parts.is_empty() { "all".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Sample;

    fn cell(parameters: &[(&str, &str)]) -> Cell {
        let parameters =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let samples = vec![Sample { elapsed_s: 1.0, ..Sample::default() }];
        Cell { parameters: parameters.collect(), samples, ..Cell::default() }
    }

    #[test]
    fn sizes_are_numbers_and_words_are_not() {
        assert_eq!(
            (numeric("8kB"), numeric("64 KiB"), numeric("0.5")),
            (Some(8192.0), Some(65536.0), Some(0.5))
        );
        assert_eq!(
            (numeric("pread"), numeric(""), numeric("8 potatoes"), numeric("é")),
            (None, None, None, None)
        );
    }

    #[test]
    fn a_line_holds_cells_that_differ_in_one_parameter() {
        let cells = ["zeros", "fallocate"].iter().flat_map(|method| {
            ["4", "1", "16"]
                .map(|blocks| cell(&[("method", method), ("blocks", blocks), ("sync", "yes")]))
        });
        let group = Group { cells: cells.collect(), ..Group::default() };
        let charts = charts(&group);
        assert_eq!((charts.len(), charts[0].parameter), (1, "blocks"));
        let labels: Vec<&str> =
            charts[0].series[0].points.iter().map(|point| point.label).collect();
        assert_eq!((charts[0].series[0].name.as_str(), labels), ("zeros", vec!["1", "4", "16"]));
    }

    #[test]
    fn many_lines_become_charts_by_a_second_number() {
        let cells = (0..4).flat_map(|method| {
            ["1", "4"].into_iter().flat_map(move |depth| {
                ["8kB", "64kB", "1MB"].map(|size| {
                    cell(&[("method", &format!("m{method}")), ("depth", depth), ("size", size)])
                })
            })
        });
        let group = Group { cells: cells.collect(), ..Group::default() };
        let titles: Vec<String> = charts(&group)
            .iter()
            .map(|chart| format!("{} {}", chart.title, chart.series.len()))
            .collect();
        assert_eq!(titles, ["depth 1 4", "depth 4 4"]);
    }

    #[test]
    fn words_alone_make_no_lines() {
        let group = Group {
            cells: ["a", "b", "c"].map(|method| cell(&[("method", method)])).into(),
            ..Group::default()
        };
        assert!(charts(&group).is_empty());
    }
}
