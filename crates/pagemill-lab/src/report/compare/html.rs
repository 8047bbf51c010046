//! Two runs side by side as a page, in the frame and the look of the report.
//!
//! Invariant: the two bars of a cell share one scale and differ in pattern as well as in colour.

use std::io::Write;

use crate::report::Result;
use crate::report::html::bars::{self, Bar, Shown};
use crate::report::html::markup::Markup;
use crate::report::html::page::{contents, document, fold};
use crate::report::html::tables::{self, Field};
use crate::report::units::digits;
use crate::report::wording;
use crate::results::Group;

use super::{CellPair, GroupPair, Run, Sides, outcome};

/// Writes the comparison as one self-contained page.
pub fn html(first: &Run<'_>, second: &Run<'_>, out: &mut dyn Write) -> Result<()> {
    let sides = Sides::new(first, second);
    let mut page = Markup::default();
    document(&mut page, "Two runs of the lab", |page| {
        contents(page, &entries(&sides));
        page.tag("main", &[], |page| {
            head(first, second, &sides, page);
            environment(&sides, page);
            verdicts(&sides, page);
            for (at, group) in sides.groups.iter().enumerate() {
                write_group([first, second], &sides, at, group, page);
            }
            lone_groups(&sides, page);
        });
    });
    out.write_all(page.finish().as_bytes())?;
    Ok(())
}

fn entries(sides: &Sides<'_>) -> Vec<(String, String, usize)> {
    let fixed = [
        ("summary", "The two runs"),
        ("environment", "What differs around them"),
        ("claims", "The claims"),
    ];
    let fixed = fixed.into_iter().filter(|(id, _)| *id != "claims" || !sides.verdicts.is_empty());
    let mut entries: Vec<_> = fixed.map(|(id, text)| (id.to_owned(), text.to_owned(), 0)).collect();
    let groups = sides.groups.iter().enumerate();
    entries.extend(groups.map(|(at, group)| (format!("g{at}"), group.title.to_owned(), 1)));
    if !sides.lone_groups.is_empty() {
        entries.push(("lone".to_owned(), "In one run only".to_owned(), 0));
    }
    entries
}

fn head(first: &Run<'_>, second: &Run<'_>, sides: &Sides<'_>, page: &mut Markup) {
    page.tag("header", &[("id", "summary")], |page| {
        page.leaf("p", &[("class", "kicker")], "pagemill lab --compare");
        page.leaf("h1", &[], "Two runs side by side");
        for run in [first, second] {
            page.tag("p", &[("class", "work")], |page| {
                page.leaf("b", &[], run.label);
                let quick = if run.results.quick { " · a quick run" } else { "" };
                page.text(&format!(" · {} · pagemill {}{quick}", run.results.started, run.results.pagemill));
            });
        }
        page.leaf("p", &[("class", "answer")], &sides.sentence());
        page.leaf(
            "p",
            &[("class", "question")],
            "Turns of different runs make no pairs, so a word stands only where the intervals of the two medians do \
             not overlap. The ratio says how many times as good the second run is.",
        );
        for run in [first, second] {
            let number = run.results.warnings.len();
            if number > 0 {
                let text = format!("{} carries {}; read its own report.", run.label, wording::number_of(number, "warning"));
                page.leaf("p", &[("class", "alert")], &text);
            }
        }
    });
}

fn environment(sides: &Sides<'_>, page: &mut Markup) {
    page.tag("section", &[("id", "environment")], |page| {
        page.leaf("h2", &[], "What differs around them");
        let same = sides.facts_sentence();
        page.leaf("p", &[("class", "question")], &same);
        let value = |value: Option<&str>| Field::text(value.unwrap_or("not recorded"));
        let row = |fact: &super::FactPair<'_>| {
            let [a, b] = fact.values.map(value);
            vec![Field::text(wording::name(fact.name)), a, b]
        };
        let rows: Vec<Vec<Field>> = sides.facts.iter().map(row).collect();
        if !rows.is_empty() {
            let [a, b] = sides.labels;
            tables::write("Facts that differ", &["what", a, b], &rows, page);
        }
    });
}

fn verdicts(sides: &Sides<'_>, page: &mut Markup) {
    if sides.verdicts.is_empty() {
        return;
    }
    page.tag("section", &[("id", "claims")], |page| {
        page.leaf("h2", &[], "The claims");
        let row = |verdict: &super::VerdictPair<'_>| {
            let [a, b] = verdict.outcomes.map(outcome);
            vec![Field::text(verdict.claim), Field::text(a), Field::text(b)]
        };
        let rows: Vec<Vec<Field>> = sides.verdicts.iter().map(row).collect();
        let [a, b] = sides.labels;
        tables::write("What each run says of the claims", &["the claim", a, b], &rows, page);
    });
}

fn write_group(
    runs: [&Run<'_>; 2],
    sides: &Sides<'_>,
    at: usize,
    group: &GroupPair<'_>,
    page: &mut Markup,
) {
    page.tag("section", &[("class", "group"), ("id", &format!("g{at}"))], |page| {
        page.leaf("h3", &[], group.title);
        let work = format!(
            "{} · {}, {}",
            group.name,
            wording::figure(group.figure),
            wording::direction(group.figure)
        );
        page.leaf("p", &[("class", "work")], &work);
        if let Some(doubt) = &group.doubt {
            page.leaf("p", &[("class", "alert")], doubt);
        }
        let bars: Vec<Bar<'_>> = group
            .cells
            .iter()
            .flat_map(|cell| [0, 1].map(|side| bar(runs, sides, group, cell, side)))
            .collect();
        bars::write(&bars, &format!("{}: both runs", group.title), None, page);
        fold(page, "All figures", |page| figures(sides, group, page));
    });
}

fn bar<'a>(
    runs: [&Run<'a>; 2],
    sides: &Sides<'a>,
    group: &GroupPair<'a>,
    cell: &CellPair<'a>,
    side: usize,
) -> Bar<'a> {
    let found = cell.found.get(side).copied().flatten();
    let turns =
        runs.get(side).and_then(|run| turns(run, &group.name, cell.name)).unwrap_or_default();
    let shown = found.map(|found| Shown {
        median: found.median,
        low: found.low,
        high: found.high,
        turns,
        figure: group.scale.show(found.median),
        interval: group.scale.show_range(found.low, found.high),
    });
    let word = cell
        .shift
        .filter(|_| side == 1)
        .map(|shift| format!("{}× · {}", digits(shift.ratio), shift.word(group.figure)));
    let remark = match found {
        Some(_) => word.unwrap_or_default(),
        None => cell.side(side, &group.scale),
    };
    let look = if side == 1 { "second" } else { "first" };
    Bar {
        name: cell.name,
        look,
        tag: sides.labels.get(side).copied().unwrap_or_default(),
        shown,
        remark,
    }
}

/// The figures of the turns of a cell, by the names of its group and its own.
fn turns(run: &Run<'_>, group: &str, cell: &str) -> Option<Vec<f64>> {
    let groups = run
        .results
        .experiments
        .iter()
        .flat_map(|experiment| experiment.groups.iter().map(move |group| (experiment, group)));
    let mut named =
        groups.filter(|(experiment, each)| format!("{}/{}", experiment.name, each.name) == group);
    let found: &Group = named.next()?.1;
    Some(found.figures(found.cell(cell)?))
}

fn figures(sides: &Sides<'_>, group: &GroupPair<'_>, page: &mut Markup) {
    let [a, b] = sides.labels;
    let row = |cell: &CellPair<'_>| {
        let ratio = cell.shift.map_or(String::new(), |shift| shift.figure());
        let word = cell.shift.map_or("", |shift| shift.word(group.figure));
        let side = |at| Field {
            text: cell.side(at, &group.scale),
            number: cell.found.get(at).copied().flatten().map(|found| found.median),
        };
        let ratio = Field { text: ratio, number: cell.shift.map(|shift| shift.ratio) };
        vec![Field::text(cell.name), side(0), side(1), ratio, Field::text(word)]
    };
    let rows: Vec<Vec<Field>> = group.cells.iter().map(row).collect();
    tables::write(
        "Medians with their intervals",
        &["cell", a, b, "second against first", "seen"],
        &rows,
        page,
    );
}

fn lone_groups(sides: &Sides<'_>, page: &mut Markup) {
    if sides.lone_groups.is_empty() {
        return;
    }
    page.tag("section", &[("id", "lone")], |page| {
        page.leaf("h2", &[], "In one run only");
        page.tag("ul", &[("class", "skipped")], |page| {
            for (name, side) in &sides.lone_groups {
                let label = sides.labels.get(*side).copied().unwrap_or_default();
                page.leaf("li", &[], &format!("{name}: only in {label}"));
            }
        });
    });
}
