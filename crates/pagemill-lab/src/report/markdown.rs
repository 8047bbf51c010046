//! The report as Markdown, fit for a pull request: environment, claims, and a table per group.
//!
//! Invariant: text from the results is data: what Markdown or HTML would take as markup is escaped, and line breaks
//! become spaces, so that it stays within its table cell.

use std::io::Write;

use crate::results::{Experiment, Group, Results};

use super::best;
use super::error::Result;
use super::rows::{Against, Row, call_names, rows, scale};
use super::text::tally;
use super::units::{NOTHING, Scale, count, digits, duration, range};
use super::wording;

/// Writes the document.
pub fn markdown(results: &Results, out: &mut dyn Write) -> Result<()> {
    head(results, out)?;
    environment(results, out)?;
    answers(results, out)?;
    verdicts(results, out)?;
    warnings(results, out)?;
    for each in &results.experiments {
        experiment(each, out)?;
    }
    Ok(())
}

/// Text as it is to be read, with its markup taken away.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for ch in text.chars() {
        match ch {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' => out.extend(['\\', ch]),
            // A name after an at sign would call somebody.
            '@' => out += "&#64;",
            ch if ch.is_control() => out.push(' '),
            ch => out.push(ch),
        }
    }
    out
}

/// A table; `columns` holds title and whether it is a number. Fields must be escaped.
pub(super) fn table(
    columns: &[(String, bool)],
    rows: &[Vec<String>],
    out: &mut dyn Write,
) -> Result<()> {
    let titles: Vec<&str> = columns.iter().map(|(title, _)| title.as_str()).collect();
    let rule: Vec<&str> =
        columns.iter().map(|(_, number)| if *number { "---:" } else { "---" }).collect();
    writeln!(out, "\n| {} |\n| {} |", titles.join(" | "), rule.join(" | "))?;
    for row in rows {
        writeln!(out, "| {} |", row.join(" | "))?;
    }
    Ok(())
}

/// A column's title, and whether it holds numbers.
pub(super) fn column(title: &str, number: bool) -> (String, bool) {
    (title.to_owned(), number)
}

fn head(results: &Results, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "# Storage report\n")?;
    let quick = if results.quick { " A quick run: small files, rough figures." } else { "" };
    let (version, started) = (escape(&results.pagemill), escape(&results.started));
    writeln!(
        out,
        "`pagemill lab` {version}, {started}, took {}.{quick}",
        duration(results.elapsed_s)
    )?;
    if let Some(why) = &results.interrupted {
        writeln!(out, "\n> **The run ended early:** {}", escape(why))?;
    }
    Ok(())
}

fn environment(results: &Results, out: &mut dyn Write) -> Result<()> {
    if results.environment.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Environment")?;
    let row =
        |fact: &crate::results::Fact| vec![escape(&wording::name(&fact.name)), escape(&fact.value)];
    let rows: Vec<Vec<String>> = results.environment.iter().map(row).collect();
    table(&[column("what", false), column("value", false)], &rows, out)
}

fn answers(results: &Results, out: &mut dyn Write) -> Result<()> {
    let best = best::all(results);
    if best.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Best")?;
    let row = |best: &best::Best<'_>| {
        let place = format!("{}/{}", best.experiment.name, best.group.name);
        let (name, figure) = best.headline();
        vec![escape(&place), escape(name), figure.to_owned(), escape(&best.remark)]
    };
    let rows: Vec<Vec<String>> = best.iter().map(row).collect();
    let columns = [
        column("group", false),
        column("best", false),
        column("figure", true),
        column("how sure", false),
    ];
    table(&columns, &rows, out)
}

fn verdicts(results: &Results, out: &mut dyn Write) -> Result<()> {
    if results.verdicts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Claims\n\n{}.", tally(&results.verdicts))?;
    let row = |verdict: &crate::results::Verdict| {
        let (mark, word) = wording::outcome(verdict.outcome);
        let claim = format!("{} *({})*", escape(&verdict.claim), escape(&verdict.document));
        vec![claim, escape(&verdict.measured), format!("{mark} {word}"), escape(&verdict.why)]
    };
    let rows: Vec<Vec<String>> = results.verdicts.iter().map(row).collect();
    let columns = ["the claim", "measured here", "it", "why"].map(|title| column(title, false));
    table(&columns, &rows, out)
}

fn warnings(results: &Results, out: &mut dyn Write) -> Result<()> {
    if results.warnings.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Warnings\n")?;
    for warning in &results.warnings {
        let place =
            warning.group.as_ref().map_or(String::new(), |group| format!(" ({})", escape(group)));
        let (kind, message) = (wording::warning(warning.kind), escape(&warning.message));
        writeln!(out, "- **{kind}**{place}: {message} *Remedy:* {}", escape(&warning.remedy))?;
    }
    Ok(())
}

fn experiment(experiment: &Experiment, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\n## {}: {}", escape(&experiment.name), escape(&experiment.title))?;
    if !experiment.question.is_empty() {
        writeln!(out, "\n{}", escape(&experiment.question))?;
    }
    for group in &experiment.groups {
        write_group(group, out)?;
    }
    for skipped in &experiment.skipped {
        writeln!(out, "\nNot run: {}: {}", escape(&skipped.what), escape(&skipped.why))?;
    }
    Ok(())
}

fn write_group(group: &Group, out: &mut dyn Write) -> Result<()> {
    let work = wording::work(group);
    let work = if work.is_empty() { work } else { format!(" ({work})") };
    writeln!(out, "\n### {}: {}{work}", escape(&group.name), escape(&group.title))?;
    let baseline =
        group.baseline.as_ref().map_or("ratio".to_owned(), |name| format!("vs {}", escape(name)));
    let columns = [
        column("cell", false),
        column(
            &format!("{}, {}", wording::figure(group.figure), wording::direction(group.figure)),
            true,
        ),
        column("interval", true),
        column("user", true),
        column("system", true),
        column("wait", true),
        (baseline, true),
        column("device", true),
        column("calls and parts of a turn", false),
    ];
    let rows = rows(group);
    let lines: Vec<Vec<String>> =
        rows.iter().map(|row| line(group, row, &call_names(&rows))).collect();
    table(&columns, &lines, out)?;
    notes(&rows, out)
}

fn notes(rows: &[Row<'_>], out: &mut dyn Write) -> Result<()> {
    for row in rows {
        if let Some(note) = &row.cell.note {
            writeln!(out, "\n{}: {}", escape(&row.cell.name), escape(note))?;
        }
    }
    Ok(())
}

fn line(group: &Group, row: &Row<'_>, calls: &[&str]) -> Vec<String> {
    let name = escape(&row.cell.name);
    let Some(found) = row.summary else {
        let (word, why) = row.cell.absent.as_ref().map_or(("no figures", ""), wording::absence);
        let mut fields = vec![name, format!("*{word}*")];
        fields.extend(std::iter::repeat_n(NOTHING.to_owned(), 6));
        fields.push(escape(why));
        return fields;
    };
    let scale = scale(group);
    let seconds =
        |value: Option<f64>| value.map_or(NOTHING.to_owned(), |value| Scale::seconds().show(value));
    let rate =
        row.device_rate.map_or(NOTHING.to_owned(), |rate| Scale::bytes_per_second().show(rate));
    let called = calls
        .iter()
        .filter_map(|name| Some(format!("{} {}", escape(name), count(*row.calls.get(name)?))));
    let parts =
        row.parts.iter().map(|(name, time)| format!("{} {}", escape(name), seconds(Some(*time))));
    vec![
        name,
        scale.show(found.median),
        scale.show_range(found.low, found.high),
        seconds(row.user_s),
        seconds(row.system_s),
        seconds(row.wait_s),
        against(group, row),
        rate,
        called.chain(parts).collect::<Vec<_>>().join(", "),
    ]
}

fn against(group: &Group, row: &Row<'_>) -> String {
    match row.against {
        Against::Nothing => NOTHING.to_owned(),
        Against::Baseline => "baseline".to_owned(),
        Against::Compared(found) => {
            let span = range(found.ratio.low, found.ratio.high);
            let word = wording::comparison(&found, group.figure);
            format!("{}× ({span}), {word}", digits(found.ratio.median))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_cell_or_call_anybody() {
        assert_eq!(escape("a|b\n<i>*c*@d"), "a\\|b &lt;i&gt;\\*c\\*&#64;d");
        assert_eq!(escape("größe 8 kB"), "größe 8 kB");
    }
}
