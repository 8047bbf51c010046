//! What a reader should know first, and what stands last: the answers, what disturbed the run, the machine.
//!
//! Invariant: a disturbed run says so at the top, before any figure.

use crate::report::best::{self, Best};
use crate::report::text::tally;
use crate::report::units::duration;
use crate::report::wording;
use crate::results::{Results, Warning};

use super::markup::Markup;
use super::{experiment_id, group_id};

/// Writes the head of the page.
pub(super) fn write(results: &Results, page: &mut Markup) {
    page.tag("header", &[("id", "summary")], |page| {
        page.leaf("p", &[("class", "kicker")], "pagemill lab");
        page.leaf("h1", &[], "What this storage does");
        page.leaf("p", &[("class", "work")], &line(results));
        interrupted(results, page);
        disturbed(results, page);
        claims(results, page);
        answers(results, page);
    });
}

fn line(results: &Results) -> String {
    let quick = if results.quick { " · a quick run: small files, rough figures" } else { "" };
    let took = duration(results.elapsed_s);
    format!("{} · took {took} · pagemill {}{quick}", results.started, results.pagemill)
}

fn interrupted(results: &Results, page: &mut Markup) {
    if let Some(why) = &results.interrupted {
        page.tag("p", &[("class", "alert")], |page| {
            page.leaf("b", &[], "The run ended early. ");
            page.text(why);
        });
    }
}

fn disturbed(results: &Results, page: &mut Markup) {
    if results.warnings.is_empty() {
        page.leaf("p", &[("class", "calm")], "Nothing was seen to disturb the figures.");
        return;
    }
    page.tag("p", &[("class", "alert")], |page| {
        page.leaf("b", &[], "Read with care. ");
        let mut kinds: Vec<&str> = Vec::new();
        for kind in results.warnings.iter().map(|warning| wording::warning(warning.kind)) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let number = wording::number_of(results.warnings.len(), "warning");
        page.text(&format!("{}: ", kinds.join(", ")));
        page.leaf("a", &[("href", "#warnings")], &number);
        page.text(".");
    });
}

fn claims(results: &Results, page: &mut Markup) {
    if results.verdicts.is_empty() {
        return;
    }
    page.leaf("h2", &[], "The claims");
    page.leaf(
        "p",
        &[("class", "lead")],
        &format!(
            "Of {}: {}.",
            wording::number_of(results.verdicts.len(), "claim"),
            tally(&results.verdicts)
        ),
    );
    page.tag("ul", &[("class", "claims")], |page| {
        for (at, verdict) in results.verdicts.iter().enumerate() {
            let (mark, word) = wording::outcome(verdict.outcome);
            page.tag("li", &[("class", super::verdicts::class(verdict.outcome))], |page| {
                page.tag("span", &[("class", "outcome")], |page| {
                    page.leaf("span", &[("aria-hidden", "true")], mark);
                    page.text(&format!(" {word}"));
                });
                page.leaf("a", &[("href", &format!("#v{at}"))], &verdict.claim);
            });
        }
    });
}

/// The best of each group, under the question of its experiment.
fn answers(results: &Results, page: &mut Markup) {
    let best = best::all(results);
    if best.is_empty() {
        return;
    }
    page.leaf("h2", &[], "The best, question by question");
    for (e, experiment) in results.experiments.iter().enumerate() {
        let of_this: Vec<&Best<'_>> = best.iter().filter(|best| best.place.0 == e).collect();
        if of_this.is_empty() {
            continue;
        }
        page.tag("h3", &[("class", "ask")], |page| {
            page.leaf("a", &[("href", &format!("#{}", experiment_id(e)))], &experiment.title)
        });
        page.tag("dl", &[("class", "best")], |page| {
            of_this.iter().for_each(|best| answer(best, page))
        });
    }
}

fn answer(best: &Best<'_>, page: &mut Markup) {
    page.tag("div", &[], |page| {
        page.tag("dt", &[], |page| {
            page.leaf("a", &[("href", &format!("#{}", group_id(best.place)))], &best.group.title)
        });
        page.tag("dd", &[], |page| {
            let (name, figure) = best.headline();
            page.leaf("b", &[], name);
            page.text(" ");
            page.leaf("span", &[("class", "figure")], figure);
            page.leaf("small", &[], &best.remark);
        });
    });
}

/// Writes the warnings with their remedies.
pub(super) fn warnings(results: &Results, page: &mut Markup) {
    if results.warnings.is_empty() {
        return;
    }
    page.tag("section", &[("id", "warnings"), ("aria-labelledby", "warnings-title")], |page| {
        page.leaf("h2", &[("id", "warnings-title")], "Warnings");
        page.tag("ul", &[("class", "warnings")], |page| {
            for warning in &results.warnings {
                page.tag("li", &[], |page| write_warning(results, warning, page));
            }
        });
    });
}

fn write_warning(results: &Results, warning: &Warning, page: &mut Markup) {
    page.tag("p", &[], |page| {
        page.leaf("b", &[], wording::warning(warning.kind));
        page.text(" ");
        if let Some(group) = &warning.group {
            super::verdicts::evidence(results, group, page);
        }
    });
    page.leaf("p", &[], &warning.message);
    page.tag("p", &[("class", "remedy")], |page| {
        page.leaf("b", &[], "Remedy: ");
        page.text(&warning.remedy);
    });
}

/// Writes what the run was made on.
pub(super) fn environment(results: &Results, page: &mut Markup) {
    page.tag(
        "section",
        &[("id", "environment"), ("aria-labelledby", "environment-title")],
        |page| {
            page.leaf("h2", &[("id", "environment-title")], "The machine");
            if results.environment.is_empty() {
                page.leaf("p", &[], "Nothing was recorded.");
                return;
            }
            page.tag("dl", &[("class", "facts")], |page| {
                for fact in &results.environment {
                    page.tag("div", &[], |page| {
                        page.leaf("dt", &[], &wording::name(&fact.name));
                        page.leaf("dd", &[], &fact.value);
                    });
                }
            });
            how(page);
        },
    );
}

/// How to read the figures; one short paragraph, the same on every page.
fn how(page: &mut Markup) {
    page.leaf("h3", &[], "How to read the figures");
    page.leaf(
        "p",
        &[("class", "question")],
        "Contestants of a group did the same work in turns. A figure is the median over the turns; the line over a bar \
         is an interval that encloses the true median with 95 %, where there were turns enough, and the dots are the \
         turns. A contestant is called faster or slower only where the interval of the ratios of neighbouring turns \
         lies wholly on one side of 1; else no difference was seen, which is not the same as none.",
    );
}
