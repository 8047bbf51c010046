//! The claims of the documents as cards: what was claimed, what was measured here, whether it holds, and why.
//!
//! Invariant: the outcome is told by a mark and words, the colour only repeats it.

use crate::report::wording;
use crate::results::{Outcome, Results, Verdict};

use super::group_id;
use super::markup::Markup;

/// Writes the cards.
pub(super) fn write(results: &Results, page: &mut Markup) {
    if results.verdicts.is_empty() {
        return;
    }
    page.tag("section", &[("id", "claims"), ("aria-labelledby", "claims-title")], |page| {
        page.leaf("h2", &[("id", "claims-title")], "The claims, one by one");
        page.tag("div", &[("class", "cards")], |page| {
            for (at, verdict) in results.verdicts.iter().enumerate() {
                card(results, at, verdict, page);
            }
        });
    });
}

fn card(results: &Results, at: usize, verdict: &Verdict, page: &mut Markup) {
    let (mark, word) = wording::outcome(verdict.outcome);
    let class = format!("card {}", class(verdict.outcome));
    page.tag("article", &[("class", &class), ("id", &format!("v{at}"))], |page| {
        page.tag("p", &[("class", "outcome")], |page| {
            page.leaf("span", &[("aria-hidden", "true")], mark);
            page.text(&format!(" {word}"));
        });
        page.leaf("h3", &[], &verdict.claim);
        page.leaf("p", &[("class", "document")], &verdict.document);
        page.tag("dl", &[], |page| {
            part("Measured here", &verdict.measured, page);
            part("Why", &verdict.why, page);
        });
        if !verdict.evidence.is_empty() {
            page.tag("p", &[("class", "evidence")], |page| {
                page.text("See ");
                for (at, place) in verdict.evidence.iter().enumerate() {
                    page.text(if at > 0 { ", " } else { "" });
                    evidence(results, place, page);
                }
            });
        }
    });
}

fn part(label: &str, text: &str, page: &mut Markup) {
    if !text.is_empty() {
        page.leaf("dt", &[], label);
        page.leaf("dd", &[], text);
    }
}

/// A group by its `experiment/group`, as a link where it is on the page.
pub(super) fn evidence(results: &Results, place: &str, page: &mut Markup) {
    match find(results, place) {
        Some(found) => page.leaf("a", &[("href", &format!("#{}", group_id(found)))], place),
        None => page.text(place),
    }
}

fn find(results: &Results, place: &str) -> Option<(usize, usize)> {
    let (experiment, group) = place.split_once('/')?;
    let e = results.experiments.iter().position(|each| each.name == experiment)?;
    let g = results.experiments.get(e)?.groups.iter().position(|each| each.name == group)?;
    Some((e, g))
}

/// The class of an outcome.
pub(in crate::report) fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "holds",
        Outcome::HoldsInPart => "in-part",
        Outcome::DoesNotHold => "fails",
        Outcome::NotSeen => "unseen",
        Outcome::NotMeasured => "unmeasured",
    }
}
