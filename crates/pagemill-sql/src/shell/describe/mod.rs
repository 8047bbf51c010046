//! `\d` and its kin: what psql shows of a database, from the cluster's own catalogs.
//!
//! ```text
//! pg_class, pg_attribute … ──Names──► lists, relations ──► Table ──► the shell's style
//!                          └─stored trees──definitions──► defaults, CHECK, predicates as the server writes them
//! ```
//!
//! Invariant: a stored expression is written as the server writes it, or `(expression)` stands in its place, with a footnote.

mod constraints;
mod expression;
mod indexes;
mod lists;
mod names;
mod objects;
mod partitions;
mod pattern;
mod relation;

use std::collections::HashMap;
use std::sync::Arc;

use pagemill_format::Oid;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::functions::system::comments;
use crate::output::Table;
use names::{Class, Names};
use pattern::Pattern;

/// What is shown: tables, and what is said where there is nothing to show.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub(super) tables: Vec<Table>,
    pub(super) message: Option<String>,
}

impl Described {
    fn table(table: Table) -> Self {
        Self { tables: vec![table], message: None }
    }

    fn message(message: String) -> Self {
        Self { tables: Vec::new(), message: Some(message) }
    }
}

/// The commands that are answered here.
pub(super) fn is_known(name: &str) -> bool {
    let letters = name.trim_end_matches(['+', 'S']);
    let is_list = letters.starts_with('d') && letters[1..].chars().all(|c| "tisvmE".contains(c));
    is_list || matches!(letters, "d" | "dn" | "du" | "dg" | "dT" | "l" | "list")
}

/// What a command shows.
///
/// # Errors
/// When a catalog cannot be read; what is not supported here.
pub(super) fn describe(
    catalog: &Arc<Catalog>,
    name: &str,
    pattern: Option<&str>,
) -> Result<Described> {
    let parsed = match Pattern::parse(pattern) {
        Ok(parsed) => parsed,
        Err(message) => return Ok(Described::message(message)),
    };
    let is_verbose = name.contains('+');
    let letters = name.replace('+', "");
    let is_plain = matches!(letters.as_str(), "d" | "dS");
    if is_verbose && (!is_plain || parsed.is_empty()) {
        return Ok(Described::message(format!("\\{name} is not supported here; \\{letters} is")));
    }
    match letters.as_str() {
        "l" | "list" => return lists::databases(catalog, &parsed),
        "dn" | "dnS" => return lists::schemas(catalog, &parsed),
        "du" | "dg" | "duS" | "dgS" => return lists::roles(catalog, &parsed),
        _ => {}
    }
    let names = Names::read(catalog)?;
    match letters.as_str() {
        "dT" | "dTS" => lists::types(&names, letters.ends_with('S'), &parsed),
        _ if is_plain && parsed.is_empty() => {
            let letters = if letters == "dS" { "tvmsES" } else { "tvmsE" };
            lists::relations(&names, letters, &parsed)
        }
        _ if is_plain => relations(&names, &parsed, (letters == "dS", is_verbose), pattern),
        _ => lists::relations(&names, &letters[1..], &parsed),
    }
}

/// Each relation that a pattern means, described.
fn relations(
    names: &Names<'_>,
    pattern: &Pattern,
    (_, is_verbose): (bool, bool),
    text: Option<&str>,
) -> Result<Described> {
    let is_meant = |class: &&Class| {
        pattern.matches(&class.schema, &class.name)
            && (pattern.has_schema() || names.is_visible(class))
    };
    let mut found: Vec<&Class> = names.classes.iter().filter(is_meant).collect();
    found.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
    if found.is_empty() {
        let text = text.unwrap_or_default();
        return Ok(Described::message(format!("Did not find any relation named \"{text}\".")));
    }
    let describe = |class: &&Class| relation::describe(names, class, is_verbose);
    let tables = found.iter().map(describe).collect::<Result<Vec<Table>>>()?;
    Ok(Described { tables, message: None })
}

fn none_found(what: &str, pattern: &Pattern) -> String {
    format!("Did not find any {what} named \"{}\".", pattern.text())
}

/// Comments on objects of one catalog, by object and column.
fn comments(catalog: &Arc<Catalog>, of: &str) -> Result<HashMap<(Oid, i32), String>> {
    let class = comments::class(catalog, of).unwrap_or(Oid(0));
    let all = comments::comments(catalog)?.into_iter();
    Ok(all.filter(|((_, of, _), _)| *of == class).map(|((o, _, c), text)| ((o, c), text)).collect())
}
