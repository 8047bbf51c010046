//! What else a table has: policies, statistics objects, rules, publications, triggers.
//!
//! Source: `describeOneTableDetails` in `src/bin/psql/describe.c`, PostgreSQL 15.

use std::collections::HashMap;

use pagemill_format::Oid;

use super::expression::{UNWRITTEN, Writer};
use super::names::{Class, Names, oids_and_names};
use crate::catalog::quote_identifier;
use crate::definitions::{self, Rule, Style};
use crate::error::Result;
use crate::system_rows::for_each_row;

/// Appends the lists of a table's objects.
pub(super) fn push(names: &Names<'_>, class: &Class, footers: &mut Vec<String>) -> Result<()> {
    policies(names, class, footers)?;
    statistics(names, class, footers)?;
    rules(names, class, footers)?;
    publications(names, class, footers)?;
    triggers(names, class, footers)
}

fn policies(names: &Names<'_>, class: &Class, footers: &mut Vec<String>) -> Result<()> {
    let (mut is_enabled, mut is_forced) = (false, false);
    let columns = ["oid", "relrowsecurity", "relforcerowsecurity"];
    for_each_row(names.catalog.values(), "pg_class", &columns, |row| {
        if row.oid(0) == class.oid {
            (is_enabled, is_forced) = (row.bool(1), row.bool(2));
        }
        Ok(())
    })?;
    let found = policy_texts(names, class)?;
    let title = match (is_enabled, is_forced, found.is_empty()) {
        (false, _, true) => return Ok(()),
        (true, false, false) => "Policies:",
        (true, true, false) => "Policies (forced row security enabled):",
        (true, false, true) => "Policies (row security enabled): (none)",
        (true, true, true) => "Policies (forced row security enabled): (none)",
        (false, _, false) => "Policies (row security disabled):",
    };
    footers.push(title.to_owned());
    footers.extend(found);
    Ok(())
}

/// Each policy with what it is for, by name.
fn policy_texts(names: &Names<'_>, class: &Class) -> Result<Vec<String>> {
    let roles = oids_and_names(names.catalog, ("pg_authid", "oid", "rolname"))?;
    let writer = Writer::new(names, class.oid);
    let columns =
        ["polrelid", "polname", "polcmd", "polpermissive", "polroles", "polqual", "polwithcheck"];
    let mut found = Vec::new();
    for_each_row(names.catalog.values(), "pg_policy", &columns, |row| {
        if row.oid(0) != class.oid {
            return Ok(());
        }
        let mut text = format!("    POLICY \"{}\"", row.name(1));
        text.push_str(if row.bool(3) { "" } else { " AS RESTRICTIVE" });
        text.push_str(match row.byte(2) {
            b'r' => " FOR SELECT",
            b'a' => " FOR INSERT",
            b'w' => " FOR UPDATE",
            b'd' => " FOR DELETE",
            _ => "",
        });
        let to = row.oids(4)?;
        if to != [Oid(0)] {
            let mut to: Vec<&str> = to.iter().filter_map(|o| Some(&**roles.get(o)?)).collect();
            to.sort_unstable();
            text.push_str(&format!("\n      TO {}", to.join(",")));
        }
        for (column, word) in [(5, "USING"), (6, "WITH CHECK")] {
            if let Some(tree) = row.text(column)? {
                let written = writer.text(&tree, Style::new(false));
                let written = written.map_or(UNWRITTEN.to_owned(), |text| format!("({text})"));
                text.push_str(&format!("\n      {word} {written}"));
            }
        }
        found.push((row.name(1), text));
        Ok(())
    })?;
    found.sort();
    Ok(found.into_iter().map(|(_, text)| text).collect())
}

fn rules(names: &Names<'_>, class: &Class, footers: &mut Vec<String>) -> Result<()> {
    let all = definitions::rules(names.catalog)?;
    let mut found: Vec<&Rule> =
        all.values().filter(|rule| rule.is_of(class.oid) && !rule.is_of_view()).collect();
    found.sort_by_key(|rule| rule.name());
    if !found.is_empty() {
        footers.push("Rules:".to_owned());
    }
    for rule in found {
        let written = definitions::rule(names.catalog, rule, Style::new(true));
        let cut = |text: String| {
            let rest = text.split_once("RULE ")?.1;
            Some(rest.trim_end_matches(';').to_owned())
        };
        let written = written.ok().and_then(cut);
        let unwritten = || format!("{} {UNWRITTEN}", quote_identifier(rule.name()));
        footers.push(format!("    {}", written.unwrap_or_else(unwritten)));
    }
    Ok(())
}

fn statistics(names: &Names<'_>, class: &Class, footers: &mut Vec<String>) -> Result<()> {
    let schemas = oids_and_names(names.catalog, ("pg_namespace", "oid", "nspname"))?;
    let objects = definitions::statistics(names.catalog)?;
    let wanted = ["stxrelid", "stxname", "stxnamespace", "stxkind", "oid", "stxstattarget"];
    let is_short = names.catalog.database().cluster().version().major() >= 17;
    let mut found = Vec::new();
    for_each_row(names.catalog.values(), "pg_statistic_ext", &wanted, |row| {
        if row.oid(0) != class.oid {
            return Ok(());
        }
        // One dimension of single characters behind the array's header.
        let kinds = row.payload(3)?.and_then(|bytes| bytes.get(20..)).unwrap_or_default().to_vec();
        let all = [(b'd', "ndistinct"), (b'f', "dependencies"), (b'm', "mcv")];
        let some: Vec<&str> = all
            .iter()
            .filter(|(letter, _)| kinds.contains(letter))
            .map(|(_, word)| *word)
            .collect();
        let parts = objects
            .get(&row.oid(4))
            .and_then(|of| definitions::statistics_columns(names.catalog, of).ok());
        let parts = parts.unwrap_or_else(|| vec![UNWRITTEN.to_owned()]);
        let schema = schemas.get(&row.oid(2)).cloned().unwrap_or_default();
        let mut line = format!("    \"{schema}.{}\"", row.name(1));
        if !some.is_empty() && some.len() < all.len() {
            line.push_str(&format!(" ({})", some.join(", ")));
        }
        line.push_str(&format!(" ON {} FROM {}", parts.join(", "), names.relation(class.oid)));
        let target = if is_short { i32::from(row.int2(5)) } else { row.int4(5) };
        if target >= 0 && !row.is_null(5) {
            line.push_str(&format!("; STATISTICS {target}"));
        }
        found.push(line);
        Ok(())
    })?;
    if !found.is_empty() {
        found.sort();
        footers.push("Statistics objects:".to_owned());
        footers.extend(found);
    }
    Ok(())
}

/// Publications of all tables, or of this one; of one's schema, from 15 on.
fn publications(names: &Names<'_>, class: &Class, footers: &mut Vec<String>) -> Result<()> {
    let catalog = names.catalog;
    let (mut publications, mut found) = (HashMap::new(), Vec::new());
    for_each_row(catalog.values(), "pg_publication", &["oid", "pubname", "puballtables"], |row| {
        publications.insert(row.oid(0), row.name(1));
        if row.bool(2) && matches!(class.kind, b'r' | b'p') && class.persistence == b'p' {
            found.push((row.name(1), ""));
        }
        Ok(())
    })?;
    let major = catalog.database().cluster().version().major();
    let mut columns = vec!["prpubid", "prrelid"];
    if major >= 15 {
        columns.extend(["prattrs", "prqual"]);
    }
    for_each_row(catalog.values(), "pg_publication_rel", &columns, |row| {
        if row.oid(1) == class.oid {
            let is_part = columns.len() > 2 && !(row.is_null(2) && row.is_null(3));
            let name = publications.get(&row.oid(0)).cloned().unwrap_or_default();
            found.push((name, if is_part { UNWRITTEN } else { "" }));
        }
        Ok(())
    })?;
    if major >= 15 {
        let columns = ["pnpubid", "pnnspid"];
        for_each_row(catalog.values(), "pg_publication_namespace", &columns, |row| {
            if row.oid(1) == class.namespace {
                found.push((publications.get(&row.oid(0)).cloned().unwrap_or_default(), ""));
            }
            Ok(())
        })?;
    }
    // The system's own tables are in none.
    if !found.is_empty() && !super::names::is_system(class) {
        found.sort();
        found.dedup();
        footers.push("Publications:".to_owned());
        let line = |(name, rest): &(String, &str)| match *rest {
            "" => format!("    \"{name}\""),
            rest => format!("    \"{name}\" {rest}"),
        };
        footers.extend(found.iter().map(line));
    }
    Ok(())
}

/// A row of `pg_trigger`.
struct Trigger {
    oid: Oid,
    table: Oid,
    parent: Oid,
    name: String,
    enabled: u8,
    is_internal: bool,
    /// What follows `TRIGGER` in the statement that makes it; `None` where that is not known.
    text: Option<String>,
}

fn read_triggers(names: &Names<'_>, class: &Class) -> Result<Vec<Trigger>> {
    let definitions = definitions::triggers(names.catalog)?;
    let wanted = ["oid", "tgrelid", "tgparentid", "tgname", "tgenabled", "tgisinternal"];
    let mut found = Vec::new();
    for_each_row(names.catalog.values(), "pg_trigger", &wanted, |row| {
        let own = definitions.get(&row.oid(0)).filter(|_| row.oid(1) == class.oid);
        let written =
            own.and_then(|of| definitions::trigger(names.catalog, of, Style::new(true)).ok());
        found.push(Trigger {
            oid: row.oid(0),
            table: row.oid(1),
            parent: row.oid(2),
            name: row.name(3),
            enabled: row.byte(4),
            is_internal: row.bool(5),
            text: written.and_then(|text| Some(text.split_once(" TRIGGER ")?.1.to_owned())),
        });
        Ok(())
    })?;
    Ok(found)
}

fn triggers(names: &Names<'_>, class: &Class, footers: &mut Vec<String>) -> Result<()> {
    let all = read_triggers(names, class)?;
    let by_oid: HashMap<Oid, &Trigger> = all.iter().map(|trigger| (trigger.oid, trigger)).collect();
    let mut own: Vec<&Trigger> = all.iter().filter(|trigger| trigger.table == class.oid).collect();
    own.sort_by(|a, b| a.name.cmp(&b.name));
    for (title, letter, is_internal) in [
        ("Triggers", b'O', false),
        ("Disabled user triggers", b'D', false),
        ("Disabled internal triggers", b'D', true),
        ("Triggers firing always", b'A', false),
        ("Triggers firing on replica only", b'R', false),
    ] {
        let is_here = |t: &&&Trigger| t.enabled == letter && t.is_internal == is_internal;
        let mut found = own.iter().filter(is_here).peekable();
        if found.peek().is_some() {
            footers.push(format!("{title}:"));
        }
        for trigger in found {
            let unwritten = || format!("{} {UNWRITTEN}", quote_identifier(&trigger.name));
            let mut line = format!("    {}", trigger.text.clone().unwrap_or_else(unwritten));
            if let Some(first) = origin(trigger, &by_oid) {
                line.push_str(&format!(", ON TABLE {}", names.relation(first.table)));
            }
            footers.push(line);
        }
    }
    Ok(())
}

/// The trigger of the partitioned table that a partition's was made for.
fn origin<'t>(trigger: &Trigger, all: &HashMap<Oid, &'t Trigger>) -> Option<&'t Trigger> {
    let mut current = *all.get(&trigger.parent)?;
    // No line of parents is longer than there are triggers.
    for _ in 0..all.len() {
        match all.get(&current.parent) {
            Some(above) => current = above,
            None => break,
        }
    }
    Some(current)
}
