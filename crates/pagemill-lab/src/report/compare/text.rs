//! Two runs side by side on a terminal.
//!
//! Invariant: it says the same as the Markdown and the page; only the layout is its own.

use std::io::Write;

use crate::report::Result;
use crate::report::text_layout::{Align, Line, paragraph, table};
use crate::report::wording;

use super::{CellPair, GroupPair, Run, Sides, outcome};

/// Writes the comparison as tables for a terminal.
pub fn text(first: &Run<'_>, second: &Run<'_>, out: &mut dyn Write) -> Result<()> {
    let sides = Sides::new(first, second);
    for (name, run) in ["A", "B"].iter().zip([first, second]) {
        let results = run.results;
        let quick = if results.quick { ", quick" } else { "" };
        let line = format!(
            "{name}  {}: {}, pagemill {}{quick}",
            run.label, results.started, results.pagemill
        );
        write!(out, "{}", paragraph(&line, 0, 3))?;
    }
    write!(out, "{}", paragraph(&sides.sentence(), 0, 0))?;
    environment(&sides, out)?;
    for group in &sides.groups {
        write_group(group, out)?;
    }
    for (name, side) in &sides.lone_groups {
        let label = sides.labels.get(*side).copied().unwrap_or_default();
        write!(out, "\n{}", paragraph(&format!("{name}: only in {label}"), 2, 4))?;
    }
    verdicts(&sides, out)
}

fn environment(sides: &Sides<'_>, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\nenvironment: {}", sides.facts_sentence())?;
    for fact in &sides.facts {
        for (name, value) in ["A", "B"].iter().zip(fact.values) {
            let line =
                format!("{} {name}: {}", wording::name(fact.name), value.unwrap_or("not recorded"));
            write!(out, "{}", paragraph(&line, 2, 4))?;
        }
    }
    Ok(())
}

fn write_group(group: &GroupPair<'_>, out: &mut dyn Write) -> Result<()> {
    write!(out, "\n{}", paragraph(&format!("{}: {}", group.name, group.title), 2, 4))?;
    if let Some(doubt) = &group.doubt {
        write!(out, "{}", paragraph(&format!("! {doubt}"), 4, 6))?;
    }
    let header = [
        ("cell", Align::Left),
        ("A", Align::Right),
        ("B", Align::Right),
        ("B against A", Align::Right),
        ("", Align::Left),
    ];
    let lines: Vec<Line> = group.cells.iter().map(|cell| line(group, cell)).collect();
    write!(out, "{}", table(&header, &lines, 4))?;
    Ok(())
}

/// A cell that has no figure on a side tells both sides in words.
fn line(group: &GroupPair<'_>, cell: &CellPair<'_>) -> Line {
    let (a, b) = (cell.side(0, &group.scale), cell.side(1, &group.scale));
    if cell.found.iter().any(Option::is_none) {
        return Line::Remark(cell.name.to_owned(), format!("A {a}; B {b}"));
    }
    let ratio = cell.shift.map_or(String::new(), |shift| shift.figure());
    let word = cell.shift.map_or("", |shift| shift.word(group.figure));
    Line::Fields(vec![cell.name.to_owned(), a, b, ratio, word.to_owned()])
}

fn verdicts(sides: &Sides<'_>, out: &mut dyn Write) -> Result<()> {
    if sides.verdicts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nclaims")?;
    for verdict in &sides.verdicts {
        write!(out, "{}", paragraph(verdict.claim, 2, 4))?;
        let [a, b] = verdict.outcomes.map(outcome);
        write!(out, "{}", paragraph(&format!("A {a}; B {b}"), 4, 4))?;
    }
    Ok(())
}
