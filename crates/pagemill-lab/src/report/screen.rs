//! The report on one screen of a terminal: the numbers of this storage, the settings that matter, the claims in short, and
//! what was wrong.
//!
//! Invariant: it is about as long however much was measured: lists end after a few lines and say how many there are.

use std::io::Write;

use crate::results::{ClaimStatus, Results, Verdict};

use super::error::Result;
use super::headline::{self, Number};
use super::text_layout::{paragraph, printable};
use super::units::duration;
use super::wording;

/// Claims that are named, of those that do not hold.
const MOST_CLAIMS: usize = 4;
/// Characters of a line that a claim may take.
const WIDEST_CLAIM: usize = 96;
/// Kinds of warnings that are named.
const MOST_WARNINGS: usize = 6;
/// What of the machine is named.
const FACTS: [&str; 6] =
    ["kernel", "processors", "processor", "file_system", "device", "postgresql"];

/// Writes the screen.
pub fn screen(results: &Results, out: &mut dyn Write) -> Result<()> {
    head(results, out)?;
    numbers(results, out)?;
    changes(results, out)?;
    claims(results, out)?;
    warnings(results, out)
}

fn head(results: &Results, out: &mut dyn Write) -> Result<()> {
    let quick = if results.quick { ", quick" } else { "" };
    let (version, started) = (printable(&results.pagemill), printable(&results.started));
    writeln!(out, "pagemill lab {version}, {started}, {}{quick}", duration(results.elapsed_s))?;
    let fact = |name: &&str| results.environment.iter().find(|fact| fact.name == *name);
    let named = FACTS.iter().filter_map(fact).map(|fact| match fact.name.as_str() {
        "processors" => format!("processors: {}", fact.value),
        "postgresql" => format!("PostgreSQL {}", fact.value),
        _ => fact.value.clone(),
    });
    let facts: Vec<String> = named.collect();
    if !facts.is_empty() {
        write!(out, "{}", paragraph(&facts.join(" · "), 0, 2))?;
    }
    if let Some(why) = &results.interrupted {
        write!(out, "{}", paragraph(&format!("The run ended early: {why}"), 0, 2))?;
    }
    Ok(())
}

fn numbers(results: &Results, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\nThis storage")?;
    for number in headline::numbers(results) {
        let Number { label, value, span, remark, .. } = number;
        let span = if span.is_empty() { span } else { format!("({span})") };
        let line = format!("{label:<16} {value:>12}  {span:<18}  {remark}");
        write!(out, "{}", paragraph(&line, 2, 53))?;
    }
    write!(out, "{}", paragraph(&format!("Trust: {}", headline::trust(results)), 2, 4))?;
    Ok(())
}

fn changes(results: &Results, out: &mut dyn Write) -> Result<()> {
    let changes = headline::changes(results);
    writeln!(out, "\nSettings of PostgreSQL {} that matter here", changes.version)?;
    for change in &changes.first {
        let default = format!("(default {})", change.default);
        write!(out, "{}", paragraph(&format!("{} {default}", change.line), 2, 4))?;
        let gap = if change.factor.is_empty() { "" } else { ": " };
        write!(out, "{}", paragraph(&format!("{}{gap}{}", change.factor, change.why), 6, 8))?;
    }
    if !changes.rest.is_empty() {
        write!(out, "{}", paragraph(&changes.rest, 2, 4))?;
    }
    Ok(())
}

fn claims(results: &Results, out: &mut dyn Write) -> Result<()> {
    if results.verdicts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nClaims of old messages to PostgreSQL's mailing lists")?;
    for (model, part) in wording::by_model(&results.verdicts) {
        let tally = wording::tally(part.iter().map(|(_, verdict)| *verdict));
        write!(out, "{}", paragraph(&format!("{}: {tally}", wording::measured_on(model)), 2, 4))?;
        let failed = part.iter().filter(|(_, verdict)| verdict.outcome == ClaimStatus::DoesNotHold);
        let failed: Vec<&Verdict> = failed.map(|(_, verdict)| *verdict).collect();
        for verdict in failed.iter().take(MOST_CLAIMS) {
            let (mark, _) = wording::outcome(verdict.outcome);
            writeln!(out, "    {mark} {}", shortened(&verdict.claim))?;
            if !verdict.differs.is_empty() {
                writeln!(out, "        {}", shortened(&verdict.differs))?;
            }
        }
    }
    Ok(())
}

/// A text in one line, cut at a word.
fn shortened(text: &str) -> String {
    let text = printable(text);
    if text.chars().count() <= WIDEST_CLAIM {
        return text;
    }
    let cut: String = text.chars().take(WIDEST_CLAIM - 1).collect();
    let end = cut.rfind(' ').filter(|end| *end > 0).unwrap_or(cut.len());
    format!("{}…", cut.get(..end).unwrap_or(&cut))
}

fn warnings(results: &Results, out: &mut dyn Write) -> Result<()> {
    let doubts = wording::doubts(&results.warnings);
    if doubts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nWarnings")?;
    for doubt in doubts.iter().take(MOST_WARNINGS) {
        let remedy = doubt.remedies().first().map_or(String::new(), |first| format!(": {first}"));
        writeln!(out, "  ! {}", shortened(&format!("{}{remedy}", doubt.title())))?;
    }
    if doubts.len() > MOST_WARNINGS {
        let more = wording::number_of(doubts.len() - MOST_WARNINGS, "other kind");
        writeln!(out, "    and {more}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_claim_ends_at_a_word() {
        assert_eq!(shortened("short"), "short");
        let long = "word ".repeat(40);
        let cut = shortened(&long);
        assert!(cut.ends_with("word…") && cut.chars().count() <= WIDEST_CLAIM, "{cut}");
        assert_eq!(shortened(&"ä".repeat(200)).chars().count(), WIDEST_CLAIM);
    }
}
