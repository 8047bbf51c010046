//! What a reader should know first, and what stands last: the numbers, the settings, how far to trust them; then what
//! disturbed the run, and the machine.
//!
//! Invariant: a disturbed run says so on the first screen.

use crate::report::headline;
use crate::report::units::duration;
use crate::report::wording;
use crate::results::{Results, Warning};

use super::markup::Markup;

/// Writes the head of the page.
pub(super) fn write(results: &Results, page: &mut Markup) {
    page.tag("header", &[("id", "summary")], |page| {
        page.leaf("p", &[("class", "kicker")], "pagemill lab");
        page.leaf("h1", &[], "What this storage does");
        page.leaf("p", &[("class", "work")], &line(results));
        interrupted(results, page);
        numbers(results, page);
        changes(results, page);
        trust(results, page);
    });
}

/// The six numbers as tiles, each a link to its group.
fn numbers(results: &Results, page: &mut Markup) {
    page.tag("ul", &[("class", "numbers")], |page| {
        for number in headline::numbers(results) {
            page.tag("li", &[], |page| {
                page.tag("p", &[("class", "label")], |page| {
                    super::verdicts::link(results, number.group, number.label, page);
                });
                page.tag("p", &[("class", "value")], |page| {
                    page.leaf("b", &[], &number.value);
                    if !number.span.is_empty() {
                        page.text(" ");
                        page.leaf("small", &[], &number.span);
                    }
                });
                page.leaf("p", &[("class", "remark")], &number.remark);
            });
        }
    });
}

fn changes(results: &Results, page: &mut Markup) {
    let changes = headline::changes(results);
    page.leaf("h2", &[], &format!("Settings of PostgreSQL {} that matter here", changes.version));
    if !changes.first.is_empty() {
        page.tag("ul", &[("class", "changes")], |page| {
            for change in &changes.first {
                page.tag("li", &[], |page| {
                    page.leaf("b", &[("class", "factor")], &change.factor);
                    page.tag("span", &[], |page| {
                        page.leaf("code", &[], &change.line);
                        page.leaf(
                            "small",
                            &[],
                            &format!("{}; default {}", change.why, change.default),
                        );
                    });
                });
            }
        });
    }
    if !changes.rest.is_empty() {
        page.leaf("p", &[("class", "note")], &changes.rest);
    }
}

fn trust(results: &Results, page: &mut Markup) {
    let class = if results.warnings.is_empty() { "calm" } else { "alert" };
    page.tag("p", &[("class", class)], |page| {
        page.leaf("b", &[], "Trust: ");
        page.text(&headline::trust(results));
        if !results.warnings.is_empty() {
            page.text(" ");
            page.leaf("a", &[("href", "#warnings")], "Warnings");
        }
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

/// Writes the warnings with their remedies.
pub(super) fn warnings(results: &Results, page: &mut Markup) {
    if results.warnings.is_empty() {
        return;
    }
    page.tag("section", &[("id", "warnings"), ("aria-labelledby", "warnings-title")], |page| {
        page.leaf("h2", &[("id", "warnings-title")], "Warnings");
        for doubts in wording::doubts(&results.warnings) {
            page.tag("details", &[("class", "item doubt")], |page| {
                page.tag("summary", &[], |page| {
                    page.leaf("b", &[], &doubts.title());
                    page.leaf("span", &[("class", "remedy")], &doubts.remedies().join("; "));
                });
                page.tag("ul", &[("class", "warnings")], |page| {
                    for warning in &doubts.warnings {
                        page.tag("li", &[], |page| write_warning(results, warning, page));
                    }
                });
            });
        }
    });
}

fn write_warning(results: &Results, warning: &Warning, page: &mut Markup) {
    if let Some(group) = &warning.group {
        super::verdicts::link(results, group, group, page);
        page.text(": ");
    }
    page.text(&warning.message);
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
            how(page);
            page.tag("dl", &[("class", "facts")], |page| {
                for fact in &results.environment {
                    page.tag("div", &[], |page| {
                        page.leaf("dt", &[], &wording::name(&fact.name));
                        page.leaf("dd", &[], &fact.value);
                    });
                }
            });
        },
    );
}

/// How to read the figures; one short paragraph, the same on every page.
fn how(page: &mut Markup) {
    page.leaf("h3", &[], "How to read the figures");
    page.leaf(
        "p",
        &[("class", "question")],
        "All rows of a group did the same work, in turns. A figure is the median of the turns. The line over a bar is \
         the interval of the true median, at 95 % confidence where there were enough turns; the dots are the turns. A \
         row is called faster or slower only where the whole interval of the ratios between turns side by side is on \
         one side of 1. Otherwise no difference was seen, which does not prove that there is none. Cached: all of the \
         files in the page cache; cold: none of them. To print a table or chart that is folded away, open it first.",
    );
}
