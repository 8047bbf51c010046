//! The whole report for a terminal: a table per group, then the answers, the claims and what disturbed the run.
//!
//! Invariant: [`text_group`] says of a group what [`text`] says of it, so that what scrolled by while the lab ran can be
//! printed again from the results.

use std::collections::BTreeSet;
use std::io::Write;

use crate::results::{Experiment, Group, Results, Verdict, Warning};
use crate::statistics::LEAST_COVERAGE;

use super::best;
use super::error::Result;
use super::rows::{Against, Row, call_names, least_coverage, part_names, rows, scale};
use super::text_layout::{Align, Line, paragraph, printable, table};
use super::units::{Scale, count, digits, duration, range};
use super::wording;

/// Calls told by name in a table; the rest is in the other forms of the report.
const MOST_CALLS: usize = 6;
/// A call with a longer name gets a table of its own.
const LONGEST_CALL: usize = 12;
/// Coverage below which a table says what its intervals reach.
const USUAL_COVERAGE: f64 = 0.95;

/// Writes all of the report.
pub fn text(results: &Results, out: &mut dyn Write) -> Result<()> {
    head(results, out)?;
    for experiment in &results.experiments {
        write!(out, "\n{}: {}\n", printable(&experiment.name), printable(&experiment.title))?;
        if !experiment.question.is_empty() {
            write!(out, "{}", paragraph(&experiment.question, 2, 2))?;
        }
        for group in &experiment.groups {
            text_group(experiment, group, out)?;
        }
        for skipped in &experiment.skipped {
            let line = format!("not run: {}: {}", skipped.what, skipped.why);
            write!(out, "{}", paragraph(&line, 2, 4))?;
        }
    }
    answers(results, out)?;
    verdicts(&results.verdicts, out)?;
    warnings(&results.warnings, out)
}

/// Writes all of the report but its tables, for whoever told those as they came.
pub fn text_ending(results: &Results, out: &mut dyn Write) -> Result<()> {
    writeln!(out)?;
    head(results, out)?;
    answers(results, out)?;
    verdicts(&results.verdicts, out)?;
    warnings(&results.warnings, out)
}

/// Writes the table of one group, with its title above and the calls below it.
pub fn text_group(experiment: &Experiment, group: &Group, out: &mut dyn Write) -> Result<()> {
    let name = format!("{}/{}: {}", experiment.name, group.name, group.title);
    let work = wording::work(group);
    let title = if work.is_empty() { name } else { format!("{name} ({work})") };
    write!(out, "\n{}", paragraph(&title, 2, 4))?;
    let rows = rows(group);
    write!(out, "{}", figures(group, &rows))?;
    write!(out, "{}", calls(&rows))?;
    for row in &rows {
        let note = row.cell.note.as_ref().map(|note| format!("{}: {note}", row.cell.name));
        write!(out, "{}", note.map_or(String::new(), |note| paragraph(&note, 4, 6)))?;
    }
    write!(out, "{}", coverage(&rows))?;
    Ok(())
}

fn head(results: &Results, out: &mut dyn Write) -> Result<()> {
    let quick = if results.quick { ", quick: small files, rough figures" } else { "" };
    let took = duration(results.elapsed_s);
    let version = printable(&results.pagemill);
    writeln!(out, "pagemill lab {version}, {}, {took}{quick}", printable(&results.started))?;
    if let Some(why) = &results.interrupted {
        write!(out, "{}", paragraph(&format!("The run ended early: {why}"), 0, 2))?;
    }
    let facts = results.environment.iter();
    let facts: Vec<(String, &str)> =
        facts.map(|fact| (wording::name(&fact.name), fact.value.as_str())).collect();
    let width = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(30);
    for (name, value) in facts {
        write!(out, "{}", paragraph(&format!("{name:<width$}  {value}"), 2, width + 4))?;
    }
    Ok(())
}

fn figures(group: &Group, rows: &[Row<'_>]) -> String {
    let baseline = group.baseline.as_ref().map_or(String::new(), |name| format!("vs {name}"));
    let short: String = baseline.chars().take(24).collect();
    let only = only_call(rows);
    let call = only.map_or(String::new(), |name| format!("{name} calls"));
    let header = [
        ("cell", Align::Left),
        (wording::figure(group.figure), Align::Right),
        ("interval", Align::Right),
        ("user", Align::Right),
        ("system", Align::Right),
        ("wait", Align::Right),
        (short.as_str(), Align::Right),
        ("", Align::Left),
        ("device", Align::Right),
        (call.as_str(), Align::Right),
    ];
    let parts = part_names(rows);
    let header: Vec<(&str, Align)> =
        header.into_iter().chain(parts.iter().map(|name| (*name, Align::Right))).collect();
    let scale = scale(group);
    let lines: Vec<Line> = rows.iter().map(|row| line(group, row, &scale, only, &parts)).collect();
    table(&header, &lines, 4)
}

fn line(
    group: &Group,
    row: &Row<'_>,
    scale: &Scale,
    call: Option<&str>,
    parts: &BTreeSet<&str>,
) -> Line {
    let name = row.cell.name.clone();
    let Some(found) = row.summary else {
        let (word, why) = row.cell.absent.as_ref().map_or(("no figures", ""), wording::absence);
        let remark = if why.is_empty() { word.to_owned() } else { format!("{word}: {why}") };
        return Line::Remark(name, remark);
    };
    let seconds =
        |value: Option<f64>| value.map_or(String::new(), |value| Scale::seconds().show(value));
    let rate = row.device_rate.map_or(String::new(), |rate| Scale::bytes_per_second().show(rate));
    let (ratio, word) = against(group, row);
    let calls =
        call.and_then(|name| row.calls.get(name)).map_or(String::new(), |calls| count(*calls));
    let fields = [
        name,
        scale.show(found.median),
        scale.show_range(found.low, found.high),
        seconds(row.user_s),
        seconds(row.system_s),
        seconds(row.wait_s),
        ratio,
        word,
        rate,
        calls,
    ];
    let parts = parts.iter().map(|name| seconds(row.parts.get(name).copied()));
    Line::Fields(fields.into_iter().chain(parts).collect())
}

/// The name of the call, when all cells make the same one: it then needs no table of its own.
fn only_call<'a>(rows: &[Row<'a>]) -> Option<&'a str> {
    match call_names(rows).as_slice() {
        [name] if name.chars().count() <= LONGEST_CALL => Some(*name),
        _ => None,
    }
}

fn against(group: &Group, row: &Row<'_>) -> (String, String) {
    match row.against {
        Against::Nothing => (String::new(), String::new()),
        Against::Baseline => (String::new(), "baseline".to_owned()),
        Against::Compared(found) => {
            let span = range(found.ratio.low, found.ratio.high);
            let word = wording::comparison(&found, group.figure);
            (format!("{}× ({span})", digits(found.ratio.median)), word.to_owned())
        }
    }
}

/// Which calls a turn made; nothing when none were counted.
fn calls(rows: &[Row<'_>]) -> String {
    let names = call_names(rows);
    let shown = names.get(..MOST_CALLS.min(names.len())).unwrap_or_default();
    if shown.is_empty() || only_call(rows).is_some() {
        return String::new();
    }
    let mut header = vec![("calls of a turn", Align::Left)];
    header.extend(shown.iter().map(|name| (*name, Align::Right)));
    let line = |row: &Row<'_>| {
        let of = |name: &&str| row.calls.get(name).map_or(String::new(), |calls| count(*calls));
        Line::Fields(std::iter::once(row.cell.name.clone()).chain(shown.iter().map(of)).collect())
    };
    let measured = rows.iter().filter(|row| !row.calls.is_empty());
    let lines: Vec<Line> = measured.map(line).collect();
    let more = names.len() - shown.len();
    let rest = if more > 0 {
        format!("    and {} more\n", wording::number_of(more, "call"))
    } else {
        String::new()
    };
    table(&header, &lines, 4) + &rest
}

fn coverage(rows: &[Row<'_>]) -> String {
    let Some(least) = least_coverage(rows).filter(|least| *least < USUAL_COVERAGE) else {
        return String::new();
    };
    let turns =
        rows.iter().filter_map(|row| row.summary).map(|found| found.samples).min().unwrap_or(0);
    let turns = wording::number_of(turns, "turn");
    let word = if least < LEAST_COVERAGE { ": too few for a word" } else { "" };
    paragraph(
        &format!(
            "Intervals enclose the true median with {:.1} % only ({turns}){word}.",
            least * 100.0
        ),
        4,
        4,
    )
}

fn answers(results: &Results, out: &mut dyn Write) -> Result<()> {
    let best = best::all(results);
    if best.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nbest")?;
    for best in best {
        let place = format!("{}/{}", best.experiment.name, best.group.name);
        write!(out, "{}", paragraph(&format!("{place}: {}", best.sentence()), 2, 4))?;
    }
    Ok(())
}

fn verdicts(verdicts: &[Verdict], out: &mut dyn Write) -> Result<()> {
    for (model, part) in wording::by_model(verdicts) {
        let tally = wording::tally(part.iter().map(|(_, verdict)| *verdict));
        write!(out, "\n{}", paragraph(&format!("claims, {}: {tally}", in_sentence(model)), 0, 2))?;
        for (_, verdict) in part {
            write_verdict(verdict, out)?;
        }
    }
    Ok(())
}

/// As [`wording::measured_on`], within a sentence.
fn in_sentence(model: Option<&str>) -> String {
    let place = wording::measured_on(model);
    let mut letters = place.chars();
    letters
        .next()
        .map_or(String::new(), |first| first.to_lowercase().to_string() + letters.as_str())
}

fn write_verdict(verdict: &Verdict, out: &mut dyn Write) -> Result<()> {
    let (mark, words) = wording::verdict(verdict);
    write!(out, "\n{}", paragraph(&format!("{mark} {}", verdict.claim), 2, 4))?;
    let evidence = verdict.evidence.join(", ");
    let link = wording::link(verdict).unwrap_or_default().to_owned();
    let parts = [
        ("this", &words),
        ("claimed in", &verdict.document),
        ("", &link),
        ("measured", &verdict.measured),
        ("why", &verdict.why),
        ("see", &evidence),
    ];
    for (label, value) in parts.iter().filter(|(_, value)| !value.is_empty()) {
        write!(out, "{}", paragraph(&format!("{label:<10}  {value}"), 4, 16))?;
    }
    Ok(())
}

fn warnings(warnings: &[Warning], out: &mut dyn Write) -> Result<()> {
    if warnings.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nwarnings")?;
    for doubts in wording::doubts(warnings) {
        write!(out, "\n{}", paragraph(&format!("! {}", doubts.title()), 2, 4))?;
        for warning in &doubts.warnings {
            let place = warning.group.as_ref().map_or(String::new(), |group| format!("{group}: "));
            write!(out, "{}", paragraph(&format!("{place}{}", warning.message), 4, 6))?;
        }
        for remedy in doubts.remedies() {
            write!(out, "{}", paragraph(&format!("remedy: {remedy}"), 4, 6))?;
        }
    }
    Ok(())
}
