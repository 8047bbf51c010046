//! Two runs side by side as Markdown.
//!
//! Invariant: text from the results is escaped as in the report of one run.

use std::io::Write;

use crate::report::Result;
use crate::report::markdown::{column, escape, table};
use crate::report::wording;

use super::{CellPair, GroupPair, Run, Sides, outcome};

/// Writes the comparison as a document.
pub fn markdown(first: &Run<'_>, second: &Run<'_>, out: &mut dyn Write) -> Result<()> {
    let sides = Sides::new(first, second);
    writeln!(out, "# Two runs of the lab\n")?;
    for run in [first, second] {
        let results = run.results;
        let quick = if results.quick { ", quick" } else { "" };
        let (started, version) = (escape(&results.started), escape(&results.pagemill));
        writeln!(out, "- **{}**: {started}, pagemill {version}{quick}", escape(run.label))?;
    }
    writeln!(out, "\n{}", escape(&sides.sentence()))?;
    environment(&sides, out)?;
    verdicts(&sides, out)?;
    for group in &sides.groups {
        write_group(&sides, group, out)?;
    }
    lone_groups(&sides, out)
}

fn columns(sides: &Sides<'_>, first: &str, number: bool) -> Vec<(String, bool)> {
    let [a, b] = sides.labels.map(escape);
    vec![column(first, false), (a, number), (b, number)]
}

fn environment(sides: &Sides<'_>, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\n## Environment\n\n{}", sides.facts_sentence())?;
    if sides.facts.is_empty() {
        return Ok(());
    }
    let value = |value: Option<&str>| value.map_or("*not recorded*".to_owned(), escape);
    let row = |fact: &super::FactPair<'_>| {
        let [a, b] = fact.values.map(value);
        vec![escape(&wording::name(fact.name)), a, b]
    };
    let rows: Vec<Vec<String>> = sides.facts.iter().map(row).collect();
    table(&columns(sides, "what", false), &rows, out)
}

fn verdicts(sides: &Sides<'_>, out: &mut dyn Write) -> Result<()> {
    if sides.verdicts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Claims")?;
    let row = |verdict: &super::VerdictPair<'_>| {
        let [a, b] = verdict.outcomes.map(outcome);
        vec![escape(verdict.claim), a, b]
    };
    let rows: Vec<Vec<String>> = sides.verdicts.iter().map(row).collect();
    table(&columns(sides, "the claim", false), &rows, out)
}

fn write_group(sides: &Sides<'_>, group: &GroupPair<'_>, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\n## {}: {}", escape(&group.name), escape(group.title))?;
    if let Some(doubt) = &group.doubt {
        writeln!(out, "\n> {}", escape(doubt))?;
    }
    let [first, second] = sides.labels.map(escape);
    let mut columns = columns(sides, "cell", true);
    columns.push((format!("{second} against {first}"), true));
    columns.push(column("", false));
    let rows: Vec<Vec<String>> = group.cells.iter().map(|cell| row(group, cell)).collect();
    table(&columns, &rows, out)
}

fn row(group: &GroupPair<'_>, cell: &CellPair<'_>) -> Vec<String> {
    let side = |at| escape(&cell.side(at, &group.scale));
    let ratio = cell.shift.map_or("–".to_owned(), |shift| shift.figure());
    let word = cell.shift.map_or("", |shift| shift.word(group.figure));
    vec![escape(cell.name), side(0), side(1), ratio, word.to_owned()]
}

fn lone_groups(sides: &Sides<'_>, out: &mut dyn Write) -> Result<()> {
    if sides.lone_groups.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## In one run only\n")?;
    for (name, side) in &sides.lone_groups {
        let label = sides.labels.get(*side).copied().unwrap_or_default();
        writeln!(out, "- {}: only in {}", escape(name), escape(label))?;
    }
    Ok(())
}
