//! The report as one page: no network, no script needed to read it, light and dark, phone and paper.
//!
//! The order is that of a reader in a hurry: six numbers, the settings that matter and how far to trust them; then each
//! experiment, a line per group with its charts folded below it; then the claims, the warnings, the machine. What is folded
//! away is not printed either. Invariants: the page is well-formed XML as well as HTML (`markup` closes what it opens and
//! escapes what it is given); it fetches nothing, which its policy forbids the browser too, and the one address outside itself
//! that it links to is the public archive of PostgreSQL's mailing lists; each chart has its figures beside it as text or
//! in a table below it.

pub(super) mod axis;
pub(super) mod bars;
mod flame;
mod group;
mod lines;
pub(super) mod markup;
pub(super) mod page;
mod series;
mod summary;
pub(super) mod tables;
mod timelines;
pub(super) mod verdicts;

use std::io::Write;

use crate::results::{Experiment, Group, Results};

use super::error::Result;
use super::wording;
use markup::Markup;

/// Writes the page.
pub fn html(results: &Results, out: &mut dyn Write) -> Result<()> {
    let mut page = Markup::default();
    page::document(&mut page, "Storage report", |page| {
        page::contents(page, &entries(results));
        page.tag("main", &[], |page| body(results, page));
    });
    out.write_all(page.finish().as_bytes())?;
    Ok(())
}

/// Links of the table of contents: target, text, depth.
fn entries(results: &Results) -> Vec<(String, String, usize)> {
    let mut entries = vec![("summary".to_owned(), "What to know".to_owned(), 0)];
    for (e, experiment) in results.experiments.iter().enumerate() {
        entries.push((experiment_id(e), experiment.name.clone(), 0));
        let groups = experiment.groups.iter().enumerate();
        entries.extend(groups.map(|(g, group)| {
            let place = GroupPlace { experiment: e, group: g };
            (group_id(place), entry(group), 1)
        }));
    }
    if !results.verdicts.is_empty() {
        entries.push(("claims".to_owned(), "The claims".to_owned(), 0));
    }
    if !results.warnings.is_empty() {
        entries.push(("warnings".to_owned(), "Warnings".to_owned(), 0));
    }
    entries.push(("environment".to_owned(), "The machine".to_owned(), 0));
    entries
}

/// The name of a group for the contents: short, and with the state of the page cache.
fn entry(group: &Group) -> String {
    let name = group.name.replace('-', " ");
    match wording::state(group) {
        Some(state) if !name.contains(state) => format!("{name}, {state}"),
        _ => name,
    }
}

fn body(results: &Results, page: &mut Markup) {
    summary::write(results, page);
    for (e, experiment) in results.experiments.iter().enumerate() {
        write_experiment(e, experiment, page);
    }
    verdicts::write(results, page);
    summary::warnings(results, page);
    summary::environment(results, page);
}

fn write_experiment(e: usize, experiment: &Experiment, page: &mut Markup) {
    let id = experiment_id(e);
    let heading = format!("{id}-title");
    page.tag("section", &[("id", &id), ("aria-labelledby", &heading)], |page| {
        page.leaf("p", &[("class", "kicker")], &experiment.name);
        page.leaf("h2", &[("id", &heading)], &experiment.title);
        if !experiment.question.is_empty() {
            page.leaf("p", &[("class", "question")], &experiment.question);
        }
        for (g, each) in experiment.groups.iter().enumerate() {
            group::write(GroupPlace { experiment: e, group: g }, experiment, each, page);
        }
        skipped(experiment, page);
    });
}

fn skipped(experiment: &Experiment, page: &mut Markup) {
    if experiment.skipped.is_empty() {
        return;
    }
    page.tag("ul", &[("class", "skipped")], |page| {
        for part in &experiment.skipped {
            page.tag("li", &[], |page| {
                page.text("Not run: ");
                page.leaf("b", &[], &part.what);
                page.text(": ");
                page.text(&part.why);
            });
        }
    });
}

/// Where a group stands in the results.
#[derive(Debug, Clone, Copy)]
struct GroupPlace {
    /// The number of its experiment, from 0.
    experiment: usize,
    /// Its number within that, from 0.
    group: usize,
}

/// The anchor of an experiment: by place, as names may hold anything.
fn experiment_id(e: usize) -> String {
    format!("e{e}")
}

/// The anchor of a group.
fn group_id(place: GroupPlace) -> String {
    let GroupPlace { experiment, group } = place;
    format!("e{experiment}g{group}")
}
