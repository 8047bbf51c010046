//! The report as Markdown, fit for a pull request: the numbers, the settings that matter, then a table per group, folded
//! away, the claims, the warnings and the machine.
//!
//! Invariant: text from the results is data: what Markdown or HTML would take as markup is escaped, and line breaks
//! become spaces, so that it stays within its table cell.

use std::io::Write;

use crate::results::{Experiment, Group, Results, Verdict};

use super::best;
use super::error::Result;
use super::headline::{self, Change, Number};
use super::rows::{Against, Row, call_names, rows, scale};
use super::units::{NOTHING, Scale, count, digits, duration, range};
use super::wording;

/// Writes the document.
pub fn markdown(results: &Results, out: &mut dyn Write) -> Result<()> {
    head(results, out)?;
    numbers(results, out)?;
    changes(results, out)?;
    answers(results, out)?;
    for each in &results.experiments {
        experiment(each, out)?;
    }
    verdicts(results, out)?;
    warnings(results, out)?;
    environment(results, out)
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

fn numbers(results: &Results, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\n## This storage")?;
    let row = |number: &Number| {
        let value = format!("**{}**", escape(&number.value));
        vec![number.label.to_owned(), value, number.span.clone(), escape(&number.remark)]
    };
    let rows: Vec<Vec<String>> = headline::numbers(results).iter().map(row).collect();
    let columns =
        [column("", false), column("figure", true), column("interval", true), column("of", false)];
    table(&columns, &rows, out)?;
    writeln!(out, "\n**Trust:** {}", escape(&headline::trust(results)))?;
    Ok(())
}

fn changes(results: &Results, out: &mut dyn Write) -> Result<()> {
    let changes = headline::changes(results);
    writeln!(out, "\n## Settings of PostgreSQL {} that matter here", changes.version)?;
    if !changes.first.is_empty() {
        let row = |change: &Change| {
            let fields = [&change.line, &change.default, &change.factor, &change.why];
            fields.map(|text| escape(text)).into()
        };
        let rows: Vec<Vec<String>> = changes.first.iter().map(row).collect();
        let columns = [
            column("setting", false),
            column("default", false),
            column("factor", true),
            column("why", false),
        ];
        table(&columns, &rows, out)?;
    }
    if !changes.rest.is_empty() {
        writeln!(out, "\n{}", changes.rest)?;
    }
    Ok(())
}

fn answers(results: &Results, out: &mut dyn Write) -> Result<()> {
    let best = best::all(results);
    if best.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Best")?;
    unfold("The best of each group", out)?;
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
    table(&columns, &rows, out)?;
    fold_end(out)
}

fn verdicts(results: &Results, out: &mut dyn Write) -> Result<()> {
    if results.verdicts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Claims")?;
    for (model, part) in wording::by_model(&results.verdicts) {
        let tally = wording::tally(part.iter().map(|(_, verdict)| *verdict));
        writeln!(out, "\n### {}\n\n{tally}", escape(&wording::measured_on(model)))?;
        let rows: Vec<Vec<String>> = part.iter().map(|(_, verdict)| claim(verdict)).collect();
        let columns = ["the claim", "measured", "it", "why"].map(|title| column(title, false));
        table(&columns, &rows, out)?;
    }
    Ok(())
}

fn claim(verdict: &Verdict) -> Vec<String> {
    let (mark, words) = wording::verdict(verdict);
    let message = match wording::link(verdict) {
        Some(link) => format!("[{}]({link})", escape(&verdict.document)),
        None => escape(&verdict.document),
    };
    let claim = format!("{} *({message})*", escape(&verdict.claim));
    let words = format!("{mark} {}", escape(&words));
    vec![claim, escape(&verdict.measured), words, escape(&verdict.why)]
}

fn warnings(results: &Results, out: &mut dyn Write) -> Result<()> {
    if results.warnings.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Warnings")?;
    for doubts in wording::doubts(&results.warnings) {
        unfold(&format!("{}. Remedy: {}", doubts.title(), doubts.remedies().join("; ")), out)?;
        writeln!(out)?;
        for warning in &doubts.warnings {
            let place = warning.group.as_ref();
            let place = place.map_or(String::new(), |group| format!("{}: ", escape(group)));
            writeln!(out, "- {place}{}", escape(&warning.message))?;
        }
        fold_end(out)?;
    }
    Ok(())
}

/// Begins what is folded away below a line.
fn unfold(title: &str, out: &mut dyn Write) -> Result<()> {
    Ok(writeln!(out, "\n<details><summary>{}</summary>", escape(title))?)
}

fn fold_end(out: &mut dyn Write) -> Result<()> {
    Ok(writeln!(out, "\n</details>")?)
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
    unfold(&format!("{}: {}{work}", group.name, group.title), out)?;
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
    notes(&rows, out)?;
    fold_end(out)
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
