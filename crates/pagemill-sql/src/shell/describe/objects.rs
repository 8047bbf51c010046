//! What else a table has: triggers and statistics objects written out, policies and rules by their names.
//!
//! Source: `describeOneTableDetails` in `src/bin/psql/describe.c`, `pg_get_triggerdef_worker` and
//! `pg_get_statisticsobj_worker` in `src/backend/utils/adt/ruleutils.c`, PostgreSQL 15.

use std::collections::HashMap;

use pagemill_format::Oid;

use super::expression::{UNWRITTEN, Writer};
use super::names::{Class, Names, literal, oids_and_names};
use crate::catalog::quote_identifier;
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
    let found = named(names, ("pg_policy", "polrelid", "polname"), class)?;
    let title = match (is_enabled, is_forced, found.is_empty()) {
        (false, _, true) => return Ok(()),
        (true, false, false) => "Policies:",
        (true, true, false) => "Policies (forced row security enabled):",
        (true, false, true) => "Policies (row security enabled): (none)",
        (true, true, true) => "Policies (forced row security enabled): (none)",
        (false, _, false) => "Policies (row security disabled):",
    };
    footers.push(title.to_owned());
    footers.extend(found.iter().map(|name| format!("    POLICY \"{name}\" {UNWRITTEN}")));
    Ok(())
}

fn rules(names: &Names<'_>, class: &Class, footers: &mut Vec<String>) -> Result<()> {
    let found = named(names, ("pg_rewrite", "ev_class", "rulename"), class)?;
    let mut found = found.iter().filter(|name| *name != "_RETURN").peekable();
    if found.peek().is_some() {
        footers.push("Rules:".to_owned());
        footers.extend(found.map(|name| format!("    {} {UNWRITTEN}", quote_identifier(name))));
    }
    Ok(())
}

/// Names of what belongs to a table, in their order.
fn named(
    names: &Names<'_>,
    (catalog, relation, name): (&str, &str, &str),
    class: &Class,
) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for_each_row(names.catalog.values(), catalog, &[relation, name], |row| {
        if row.oid(0) == class.oid {
            found.push(row.name(1));
        }
        Ok(())
    })?;
    found.sort();
    Ok(found)
}

fn statistics(names: &Names<'_>, class: &Class, footers: &mut Vec<String>) -> Result<()> {
    let schemas = oids_and_names(names.catalog, ("pg_namespace", "oid", "nspname"))?;
    let columns = names.column_names(class.oid)?;
    let writer = Writer::new(names, class.oid)?;
    let wanted =
        ["stxrelid", "stxname", "stxnamespace", "stxkind", "stxkeys", "stxexprs", "stxstattarget"];
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
        let numbers = row.int2s(4)?;
        let mut parts: Vec<String> = numbers
            .iter()
            .map(|number| columns.get(number).map_or("?".to_owned(), |name| quote_identifier(name)))
            .collect();
        if let Some(tree) = row.text(5)? {
            parts.extend(writer.texts(&tree).into_iter().map(|written| match written {
                Some(written) if written.is_call => written.text,
                Some(written) => format!("({})", written.text),
                None => UNWRITTEN.to_owned(),
            }));
        }
        let schema = schemas.get(&row.oid(2)).cloned().unwrap_or_default();
        let mut line = format!("    \"{schema}.{}\"", row.name(1));
        if !some.is_empty() && some.len() < all.len() {
            line.push_str(&format!(" ({})", some.join(", ")));
        }
        line.push_str(&format!(" ON {} FROM {}", parts.join(", "), names.relation(class.oid)));
        let target = if is_short { i32::from(row.int2(6)) } else { row.int4(6) };
        if target >= 0 && !row.is_null(6) {
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

fn read_triggers(
    names: &Names<'_>,
    writer: &Writer<'_, '_>,
    class: &Class,
) -> Result<Vec<Trigger>> {
    let wanted = [
        "oid",
        "tgrelid",
        "tgparentid",
        "tgname",
        "tgenabled",
        "tgisinternal",
        "tgtype",
        "tgfoid",
        "tgconstraint",
        "tgattr",
        "tgargs",
        "tgqual",
        "tgoldtable",
        "tgnewtable",
    ];
    let columns = names.column_names(class.oid)?;
    let mut found = Vec::new();
    for_each_row(names.catalog.values(), "pg_trigger", &wanted, |row| {
        let is_odd = row.oid(8) != Oid(0) || [11, 12, 13].iter().any(|&at| !row.is_null(at));
        let (kind, attributes) = (row.int2(6), row.int2s(9)?);
        let arguments = row.payload(10)?.unwrap_or_default().to_vec();
        let text = || {
            let function = writer.function(row.oid(7))?;
            let attributes: Option<Vec<String>> = attributes
                .iter()
                .map(|at| columns.get(at).map(|name| quote_identifier(name)))
                .collect();
            let (name, table) = (quote_identifier(&row.name(3)), names.relation(class.oid));
            let call = format!("{function}({})", literals(&arguments));
            Some(format!(
                "{name} {} ON {table} {} EXECUTE FUNCTION {call}",
                events(kind, &attributes?),
                each(kind)
            ))
        };
        let text = if is_odd || row.oid(1) != class.oid { None } else { text() };
        found.push(Trigger {
            oid: row.oid(0),
            table: row.oid(1),
            parent: row.oid(2),
            name: row.name(3),
            enabled: row.byte(4),
            is_internal: row.bool(5),
            text,
        });
        Ok(())
    })?;
    Ok(found)
}

/// Source: `src/include/catalog/pg_trigger.h`, PostgreSQL 15, for the bits of `tgtype`.
fn events(kind: i16, attributes: &[String]) -> String {
    let when = match kind {
        kind if kind & 64 != 0 => "INSTEAD OF",
        kind if kind & 2 != 0 => "BEFORE",
        _ => "AFTER",
    };
    let update = match attributes {
        [] => "UPDATE".to_owned(),
        some => format!("UPDATE OF {}", some.join(", ")),
    };
    let all = [
        (4, "INSERT".to_owned()),
        (8, "DELETE".to_owned()),
        (16, update),
        (32, "TRUNCATE".to_owned()),
    ];
    let events: Vec<String> =
        all.into_iter().filter(|(bit, _)| kind & bit != 0).map(|(_, word)| word).collect();
    format!("{when} {}", events.join(" OR "))
}

fn each(kind: i16) -> &'static str {
    if kind & 1 != 0 { "FOR EACH ROW" } else { "FOR EACH STATEMENT" }
}

/// The arguments, each with a zero behind it.
fn literals(arguments: &[u8]) -> String {
    let texts = arguments.split_inclusive(|byte| *byte == 0);
    let text = |bytes: &[u8]| {
        literal(&String::from_utf8_lossy(bytes.strip_suffix(b"\0").unwrap_or(bytes)))
    };
    texts.map(text).collect::<Vec<_>>().join(", ")
}

fn triggers(names: &Names<'_>, class: &Class, footers: &mut Vec<String>) -> Result<()> {
    let writer = Writer::new(names, class.oid)?;
    let all = read_triggers(names, &writer, class)?;
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
