//! One group on the page: a line with its answer; below it its charts, and all figures as tables.
//!
//! The first group of an experiment is open, the others are folded away. Invariant: the bars show every cell, also those without figures, unless there are so many that lines tell it
//! better; then they are folded away and still there.

use std::collections::BTreeSet;

use crate::report::best::{self, Standing};
use crate::report::rows::{Against, Row, call_names, least_coverage, part_names, rows, scale};
use crate::report::units::{Scale, count, digits, range, short};
use crate::report::wording;
use crate::results::{Experiment, Group};
use crate::statistics::LEAST_COVERAGE;

use super::bars::{self, Bar, Shown};
use super::markup::Markup;
use super::page::fold;
use super::tables::{self, Field};
use super::{GroupPlace, flame, group_id, lines, series, timelines};

/// More bars than this are folded away where there are lines.
const MANY_BARS: usize = 16;
/// Coverage below which a group says what its intervals reach.
const USUAL_COVERAGE: f64 = 0.95;

/// Writes the group.
pub(super) fn write(place: GroupPlace, experiment: &Experiment, group: &Group, page: &mut Markup) {
    let id = group_id(place);
    let open = [("class", "item group"), ("id", id.as_str()), ("open", "open")];
    let attributes = if place.group == 0 { &open[..] } else { &open[..2] };
    page.tag("details", attributes, |page| {
        let best = best::of_group(experiment, group);
        page.tag("summary", &[], |page| head(group, best.as_ref(), page));
        page.leaf("p", &[("class", "work")], &subtitle(experiment, group));
        if let Some(best) = &best {
            answer(best, page);
        }
        let rows = rows(group);
        let charts = series::charts(group);
        charts_and_bars(group, &rows, best.as_ref(), &charts, page);
        timelines::write(group, page);
        remarks(&rows, page);
        fold(page, "All figures", |page| figures(group, &rows, page));
        if !call_names(&rows).is_empty() {
            fold(page, "Calls of a turn", |page| calls(&rows, page));
        }
        flames(group, page);
    });
}

/// Title and state of the cache, and the answer in short.
fn head(group: &Group, best: Option<&best::Best<'_>>, page: &mut Markup) {
    page.tag("h3", &[], |page| {
        page.text(&group.title);
        if let Some(state) = wording::state(group) {
            page.text(" ");
            page.leaf("span", &[("class", "state")], state);
        }
    });
    page.tag("span", &[("class", "short")], |page| {
        let (name, figure) = best.map_or(("no figures", ""), best::Best::headline);
        page.leaf("b", &[], name);
        page.text(" ");
        page.leaf("span", &[("class", "figure")], figure);
    });
}

fn subtitle(experiment: &Experiment, group: &Group) -> String {
    let name = format!("{}/{}", experiment.name, group.name);
    let figure = format!("{}, {}", wording::figure(group.figure), wording::direction(group.figure));
    let parts = [name, wording::work(group), figure];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

fn answer(best: &best::Best<'_>, page: &mut Markup) {
    let class = if best.standing == Standing::Open { "answer open" } else { "answer" };
    page.tag("p", &[("class", class)], |page| {
        let (name, figure) = best.headline();
        page.leaf("b", &[], name);
        let separator = if figure.is_empty() { ": " } else { ", " };
        page.text(&format!(
            "{}{separator}{}.",
            if figure.is_empty() { String::new() } else { format!(": {figure}") },
            best.remark
        ));
    });
}

fn charts_and_bars(
    group: &Group,
    rows: &[Row<'_>],
    best: Option<&best::Best<'_>>,
    charts: &[series::Chart<'_>],
    page: &mut Markup,
) {
    if !charts.is_empty() {
        page.tag("div", &[("class", "charts")], |page| {
            lines::write(group, charts, page);
        });
    }
    if charts.is_empty() || rows.len() <= MANY_BARS {
        bars_of(group, rows, best, page);
    } else {
        fold(page, &format!("All {} as bars", rows.len()), |page| bars_of(group, rows, best, page));
    }
}

fn bars_of(group: &Group, rows: &[Row<'_>], best: Option<&best::Best<'_>>, page: &mut Markup) {
    let scale = scale(group);
    let bar = |row| bar(group, row, best, &scale);
    let bars: Vec<Bar<'_>> = rows.iter().map(bar).collect();
    let baseline = rows.iter().find(|row| row.against == Against::Baseline);
    let baseline = baseline.and_then(|row| row.summary).map(|found| found.median);
    let label = format!("{}: {} of each", group.title, wording::figure(group.figure));
    bars::write(&bars, &label, baseline, page);
}

fn bar<'a>(group: &Group, row: &Row<'a>, best: Option<&best::Best<'_>>, scale: &Scale) -> Bar<'a> {
    let is_best = best.is_some_and(|best| std::ptr::eq(best.cell, row.cell));
    let standing = best.map(|best| best.standing).filter(|_| is_best);
    let (look, tag) = match (standing, row.against == Against::Baseline) {
        (Some(Standing::Alone), _) => ("best", "best"),
        (Some(Standing::Shared), _) => ("best", "leads"),
        (_, true) => ("baseline", "baseline"),
        (_, false) => ("row", ""),
    };
    let shown = row.summary.map(|found| Shown {
        median: found.median,
        low: found.low,
        high: found.high,
        turns: group.figures(row.cell),
        figure: scale.show(found.median),
        interval: scale.show_range(found.low, found.high),
    });
    Bar { name: &row.cell.name, look, tag, shown, remark: remark(group, row) }
}

fn remark(group: &Group, row: &Row<'_>) -> String {
    match (row.against, &row.cell.absent) {
        (_, Some(absence)) => {
            let (word, why) = wording::absence(absence);
            format!("{word}: {why}")
        }
        (Against::Compared(found), None) => {
            let ratio = digits(found.ratio.median);
            format!("{ratio}× · {}", wording::comparison(&found, group.figure))
        }
        (Against::Nothing | Against::Baseline, None) => String::new(),
    }
}

fn remarks(rows: &[Row<'_>], page: &mut Markup) {
    for row in rows {
        if let Some(note) = &row.cell.note {
            page.leaf("p", &[("class", "note")], &format!("{}: {note}", row.cell.name));
        }
    }
    let Some(least) = least_coverage(rows).filter(|least| *least < USUAL_COVERAGE) else { return };
    let word = if least < LEAST_COVERAGE { ", and too few for a word" } else { "" };
    let text = format!(
        "Some intervals enclose the true median with {} % only: there were few turns{word}.",
        digits(least * 100.0)
    );
    page.leaf("p", &[("class", "note")], &text);
}

fn figures(group: &Group, rows: &[Row<'_>], page: &mut Markup) {
    let baseline =
        group.baseline.as_ref().map_or("ratio".to_owned(), |name| format!("against {name}"));
    let parts = part_names(rows);
    let first = [
        "cell",
        wording::figure(group.figure),
        "interval",
        "turns",
        &baseline,
        "interval of that",
        "seen",
        "user",
        "system",
        "wait",
        "device",
    ];
    let header: Vec<&str> =
        first.into_iter().chain(parts.iter().copied()).chain(["why not"]).collect();
    let scale = scale(group);
    let line = |row| fields(group, row, &scale, &parts);
    let lines: Vec<Vec<Field>> = rows.iter().map(line).collect();
    let caption =
        format!("{}: medians over the turns, {}", group.title, wording::direction(group.figure));
    tables::write(&caption, &header, &lines, page);
}

fn fields(group: &Group, row: &Row<'_>, scale: &Scale, parts: &BTreeSet<&str>) -> Vec<Field> {
    let (found, seconds) = (row.summary, |value| Scale::seconds().show(value));
    let span = found.map_or(String::new(), |found| scale.show_range(found.low, found.high));
    let (ratio, ratio_span, word) = ratio(group, row);
    let absence = row.cell.absent.as_ref().map(wording::absence);
    let why = Field::text(absence.map_or(String::new(), |(word, why)| format!("{word}: {why}")));
    let first = [
        Field::text(&row.cell.name),
        Field::number(found.map(|found| found.median), |value| scale.show(value)),
        Field::text(span),
        Field::number(found.map(|found| found.samples as f64), short),
        Field::number(ratio, |ratio| format!("{}×", digits(ratio))),
        Field::text(ratio_span),
        Field::text(word),
        Field::number(row.user_s, seconds),
        Field::number(row.system_s, seconds),
        Field::number(row.wait_s, seconds),
        Field::number(row.device_rate, |rate| Scale::bytes_per_second().show(rate)),
    ];
    let parts = parts.iter().map(|name| Field::number(row.parts.get(name).copied(), seconds));
    first.into_iter().chain(parts).chain([why]).collect()
}

fn ratio(group: &Group, row: &Row<'_>) -> (Option<f64>, String, &'static str) {
    match row.against {
        Against::Nothing => (None, String::new(), ""),
        Against::Baseline => (None, String::new(), "baseline"),
        Against::Compared(found) => {
            let span = range(found.ratio.low, found.ratio.high);
            (Some(found.ratio.median), span, wording::comparison(&found, group.figure))
        }
    }
}

fn calls(rows: &[Row<'_>], page: &mut Markup) {
    let names = call_names(rows);
    let header: Vec<&str> =
        std::iter::once("cell").chain(names.iter().copied()).chain(["all"]).collect();
    let line = |row: &Row<'_>| {
        let of = |calls: Option<u64>| {
            Field::number(calls.map(|calls| calls as f64), |_| calls.map_or(String::new(), count))
        };
        let sum = row.calls.values().fold(0, |sum: u64, calls| sum.saturating_add(*calls));
        let named = names.iter().map(|name| of(row.calls.get(name).copied()));
        std::iter::once(Field::text(&row.cell.name)).chain(named).chain([of(Some(sum))]).collect()
    };
    let lines: Vec<Vec<Field>> =
        rows.iter().filter(|row| row.summary.is_some()).map(line).collect();
    tables::write("How often each call was made, median over the turns", &header, &lines, page);
}

fn flames(group: &Group, page: &mut Markup) {
    for cell in &group.cells {
        if let Some(folded) = &cell.profile {
            fold(page, &format!("Flame graph: {}", cell.name), |page| {
                flame::write(&cell.name, folded, page)
            });
        }
    }
}
