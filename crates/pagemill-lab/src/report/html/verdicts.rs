//! The claims of the messages, a line each: whether it holds, what was claimed; below it, folded away, what was measured.
//!
//! Invariants: the outcome is told by a mark and words, the color only repeats it; what a model showed stands apart from what
//! was seen on this storage.

use crate::report::wording;
use crate::results::{ClaimStatus, Results, Verdict};

use super::markup::Markup;
use super::{GroupPlace, group_id};

/// Writes the claims.
pub(super) fn write(results: &Results, page: &mut Markup) {
    if results.verdicts.is_empty() {
        return;
    }
    page.tag("section", &[("id", "claims"), ("aria-labelledby", "claims-title")], |page| {
        page.leaf("h2", &[("id", "claims-title")], "The claims");
        page.leaf(
            "p",
            &[("class", "question")],
            "What was said about these calls on PostgreSQL's mailing lists, and whether this run confirms it.",
        );
        for (model, part) in wording::by_model(&results.verdicts) {
            page.leaf("h3", &[], &wording::measured_on(model));
            let tally = wording::tally(part.iter().map(|(_, verdict)| *verdict));
            let apart = if model.is_some() { " These say nothing about this storage." } else { "" };
            page.leaf("p", &[("class", "lead")], &format!("{tally}{apart}"));
            for (at, verdict) in part {
                claim(results, at, verdict, page);
            }
        }
    });
}

fn claim(results: &Results, at: usize, verdict: &Verdict, page: &mut Markup) {
    let (mark, word) = wording::outcome(verdict.outcome);
    let class = format!("item claim {}", class(verdict.outcome));
    page.tag("details", &[("class", &class), ("id", &format!("v{at}"))], |page| {
        page.tag("summary", &[], |page| {
            page.tag("span", &[("class", "outcome")], |page| {
                page.leaf("span", &[("aria-hidden", "true")], mark);
                page.text(&format!(" {word}"));
            });
            page.tag("span", &[("class", "text")], |page| {
                page.text(&verdict.claim);
                if !verdict.differs.is_empty() {
                    page.leaf("small", &[], &verdict.differs);
                }
            });
        });
        page.tag("dl", &[], |page| {
            part("Measured", &verdict.measured, page);
            part("Why", &verdict.why, page);
            page.leaf("dt", &[], "Claimed in");
            page.tag("dd", &[], |page| message(verdict, page));
        });
        evidence(results, verdict, page);
    });
}

/// The message, as a link where the archive has it.
fn message(verdict: &Verdict, page: &mut Markup) {
    match wording::link(verdict) {
        Some(link) => page.leaf("a", &[("href", link), ("rel", "noreferrer")], &verdict.document),
        None => page.text(&verdict.document),
    }
}

fn evidence(results: &Results, verdict: &Verdict, page: &mut Markup) {
    if verdict.evidence.is_empty() {
        return;
    }
    page.tag("p", &[("class", "evidence")], |page| {
        page.text("See ");
        for (at, place) in verdict.evidence.iter().enumerate() {
            page.text(if at > 0 { ", " } else { "" });
            link(results, place, place, page);
        }
    });
}

fn part(label: &str, text: &str, page: &mut Markup) {
    if !text.is_empty() {
        page.leaf("dt", &[], label);
        page.leaf("dd", &[], text);
    }
}

/// A text that leads to a group, named as `experiment/group`, where it is on the page.
pub(super) fn link(results: &Results, place: &str, text: &str, page: &mut Markup) {
    match find(results, place) {
        Some(found) => page.leaf("a", &[("href", &format!("#{}", group_id(found)))], text),
        None => page.text(text),
    }
}

fn find(results: &Results, place: &str) -> Option<GroupPlace> {
    let (experiment, group) = place.split_once('/')?;
    let at = results.experiments.iter().position(|each| each.name == experiment)?;
    let found = results.experiments.get(at)?;
    let within = found.groups.iter().position(|each| each.name == group)?;
    Some(GroupPlace { experiment: at, group: within })
}

/// The class of an outcome.
pub(in crate::report) fn class(outcome: ClaimStatus) -> &'static str {
    match outcome {
        ClaimStatus::Holds => "holds",
        ClaimStatus::HoldsInPart => "in-part",
        ClaimStatus::DoesNotHold => "fails",
        ClaimStatus::NotSeen => "unseen",
        ClaimStatus::NotMeasured => "unmeasured",
    }
}
