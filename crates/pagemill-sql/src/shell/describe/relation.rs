//! One relation, as `\d NAME` shows it: columns, and below them indexes, constraints, partitions and what else there is.
//!
//! Source: `describeOneTableDetails` in `src/bin/psql/describe.c`, PostgreSQL 15.

use std::collections::{HashMap, HashSet};

use pagemill_cluster::partition_bounds::PartitionBound;
use pagemill_format::Oid;

use super::constraints::{self, Constraint};
use super::expression::{UNWRITTEN, Writer};
use super::indexes::{self, Definitions, Index};
use super::names::{Class, Names, oids_and_names};
use super::objects;
use super::partitions::{bound_text, inheritance, partition_footers};
use crate::catalog::quote_identifier;
use crate::definitions::{self, ConstraintWriter, Style};
use crate::error::{Result, unsupported};
use crate::output::Table;
use crate::system_rows::for_each_row;
use crate::types::DEFAULT_COLLATION;

/// A row of `pg_attribute`.
struct Attribute {
    number: i16,
    name: String,
    type_oid: Oid,
    modifier: i32,
    is_not_null: bool,
    has_default: bool,
    identity: u8,
    generated: u8,
    collation: Oid,
    storage: u8,
    compression: u8,
    statistics: Option<i32>,
}

pub(super) fn describe(names: &Names<'_>, class: &Class, is_verbose: bool) -> Result<Table> {
    match class.kind {
        b'S' => return sequence(names, class),
        b'f' => return unsupported(format!("\\d of the foreign table \"{}\"", class.name)),
        _ => {}
    }
    let mut footers = partition_footers(names, class, is_verbose)?;
    let table = match class.kind {
        b'i' | b'I' => {
            let of = indexes::read(names, |_, index| index == class.oid)?;
            let of = of.first().cloned();
            let definitions = Definitions::new(names)?;
            footers.extend(
                of.as_ref().map(|index| index_footer(names, &definitions, index)).transpose()?,
            );
            if class.kind == b'I' {
                footers.extend(tablespace(names, class)?);
                children(names, class, is_verbose, &mut footers)?;
                if is_verbose {
                    footers.extend(access_method(names, class)?);
                }
            }
            index_columns(names, (class, is_verbose), of.as_ref(), &definitions)?
        }
        _ => {
            if matches!(class.kind, b'r' | b'm' | b'f' | b'p' | b't') {
                footers.extend(table_footers(names, class, is_verbose)?);
            }
            if is_verbose && matches!(class.kind, b'v' | b'm') {
                footers.splice(0..0, [String::from("View definition:"), view_query(names, class)?]);
            }
            columns(names, class, is_verbose)?
        }
    };
    if is_verbose && let Some(options) = &class.options {
        let items = options.trim_start_matches('{').trim_end_matches('}').replace(',', ", ");
        footers.push(format!("Options: {items}"));
    }
    let is_unwritten = |text: &String| text.contains(UNWRITTEN);
    if footers.iter().any(is_unwritten) || table.rows.iter().flatten().flatten().any(is_unwritten) {
        footers.push(format!("{UNWRITTEN}: one whose text is not written out here"));
    }
    Ok(Table { title: Some(title(class)), footers: Some(footers), ..table })
}

fn title(class: &Class) -> String {
    let is_unlogged = class.persistence == b'u';
    let kind = match (class.kind, is_unlogged) {
        (b'r', false) => "Table",
        (b'r', true) => "Unlogged table",
        (b'v', _) => "View",
        (b'm', false) => "Materialized view",
        (b'm', true) => "Unlogged materialized view",
        (b'i', false) => "Index",
        (b'i', true) => "Unlogged index",
        (b'I', false) => "Partitioned index",
        (b'I', true) => "Unlogged partitioned index",
        (b't', _) => "TOAST table",
        (b'c', _) => "Composite type",
        (b'f', _) => "Foreign table",
        (b'p', false) => "Partitioned table",
        (b'p', true) => "Unlogged partitioned table",
        _ => "Relation",
    };
    format!("{kind} \"{}.{}\"", class.schema, class.name)
}

fn attributes(names: &Names<'_>, relation: Oid) -> Result<Vec<Attribute>> {
    let columns = [
        "attrelid",
        "attnum",
        "attname",
        "atttypid",
        "atttypmod",
        "attnotnull",
        "atthasdef",
        "attidentity",
        "attgenerated",
        "attcollation",
        "attstorage",
        "attcompression",
        "attstattarget",
        "attisdropped",
    ];
    let is_short = names.catalog.database().cluster().version().major() >= 17;
    let mut found = Vec::new();
    for_each_row(names.catalog.values(), "pg_attribute", &columns, |row| {
        if row.oid(0) != relation || row.int2(1) <= 0 || row.bool(13) {
            return Ok(());
        }
        let statistics = match is_short {
            true => i32::from(row.int2(12)),
            false => row.int4(12),
        };
        found.push(Attribute {
            number: row.int2(1),
            name: row.name(2),
            type_oid: row.oid(3),
            modifier: row.int4(4),
            is_not_null: row.bool(5),
            has_default: row.bool(6),
            identity: row.byte(7),
            generated: row.byte(8),
            collation: row.oid(9),
            storage: row.byte(10),
            compression: row.byte(11),
            statistics: Some(statistics).filter(|target| *target >= 0 && !row.is_null(12)),
        });
        Ok(())
    })?;
    found.sort_by_key(|column| column.number);
    Ok(found)
}

fn storage(letter: u8) -> &'static str {
    match letter {
        b'p' => "plain",
        b'm' => "main",
        b'x' => "extended",
        b'e' => "external",
        _ => "???",
    }
}

/// The query of a view.
fn view_query(names: &Names<'_>, class: &Class) -> Result<String> {
    let rule = definitions::view_rule(names.catalog, class.oid)?;
    let written = rule.map(|rule| {
        definitions::view(names.catalog, &rule, Style::new(true)).map(|query| query + ";")
    });
    Ok(written.and_then(std::result::Result::ok).unwrap_or_else(|| format!("    {UNWRITTEN}")))
}

/// The texts of defaults, by number of the column.
fn defaults(names: &Names<'_>, relation: Oid) -> Result<HashMap<i16, String>> {
    let writer = Writer::new(names, relation);
    let style = Style::new(true);
    let mut found = HashMap::new();
    for_each_row(names.catalog.values(), "pg_attrdef", &["adrelid", "adnum", "adbin"], |row| {
        if row.oid(0) == relation {
            let tree = row.text(2)?.unwrap_or_default();
            let text = writer.text(&tree, style).unwrap_or_else(|| UNWRITTEN.to_owned());
            found.insert(row.int2(1), text);
        }
        Ok(())
    })?;
    Ok(found)
}

fn columns(names: &Names<'_>, class: &Class, is_verbose: bool) -> Result<Table> {
    let has_details = matches!(class.kind, b'r' | b'v' | b'm' | b'f' | b'c' | b'p');
    let has_compression = matches!(class.kind, b'r' | b'm' | b'p');
    let mut titles = vec!["Column", "Type"];
    if has_details {
        titles.extend(["Collation", "Nullable", "Default"]);
    }
    if is_verbose {
        titles.push("Storage");
        titles.extend(has_compression.then_some("Compression"));
        titles.extend(
            matches!(class.kind, b'r' | b'i' | b'I' | b'm' | b'f' | b'p').then_some("Stats target"),
        );
        titles.extend(
            matches!(class.kind, b'r' | b'v' | b'm' | b'f' | b'p' | b'c').then_some("Description"),
        );
    }
    let defaults = defaults(names, class.oid)?;
    let comments =
        if is_verbose { super::comments(names.catalog, "pg_class")? } else { HashMap::new() };
    let type_collations = type_collations(names)?;
    let mut table = Table::list("", &titles);
    for column in attributes(names, class.oid)? {
        let mut row = vec![column.name.clone(), names.type_name(column.type_oid, column.modifier)];
        if has_details {
            row.push(collation(names, &column, &type_collations));
            row.push(if column.is_not_null { "not null" } else { "" }.to_owned());
            row.push(default(&column, defaults.get(&column.number)));
        }
        if is_verbose {
            row.push(storage(column.storage).to_owned());
            if has_compression {
                let method = match column.compression {
                    b'p' => "pglz",
                    b'l' => "lz4",
                    _ => "",
                };
                row.push(method.to_owned());
            }
            if titles.contains(&"Stats target") {
                row.push(column.statistics.map_or(String::new(), |target| target.to_string()));
            }
            if titles.contains(&"Description") {
                let key = (class.oid, i32::from(column.number));
                row.push(comments.get(&key).cloned().unwrap_or_default());
            }
        }
        table.rows.push(row.into_iter().map(Some).collect());
    }
    Ok(table)
}

fn type_collations(names: &Names<'_>) -> Result<HashMap<Oid, Oid>> {
    let mut found = HashMap::new();
    for_each_row(names.catalog.values(), "pg_type", &["oid", "typcollation"], |row| {
        found.insert(row.oid(0), row.oid(1));
        Ok(())
    })?;
    Ok(found)
}

fn collation(names: &Names<'_>, column: &Attribute, of_types: &HashMap<Oid, Oid>) -> String {
    if of_types.get(&column.type_oid) == Some(&column.collation) || column.collation == Oid(0) {
        return String::new();
    }
    let row = names.catalog.collation(column.collation);
    // The row for the database's default is one of ours.
    match column.collation {
        DEFAULT_COLLATION => "default".to_owned(),
        _ => row.map_or(String::new(), |row| row.name.clone()),
    }
}

fn default(column: &Attribute, text: Option<&String>) -> String {
    let text = text.filter(|_| column.has_default).map_or("", String::as_str);
    match (column.identity, column.generated) {
        (b'a', _) => "generated always as identity".to_owned(),
        (b'd', _) => "generated by default as identity".to_owned(),
        (_, b's') => format!("generated always as ({}) stored", inner(text)),
        (_, b'v') => format!("generated always as ({})", inner(text)),
        _ => text.to_owned(),
    }
}

/// What is not written out has its own parentheses.
fn inner(text: &str) -> &str {
    if text == UNWRITTEN { "expression" } else { text }
}

fn index_columns(
    names: &Names<'_>,
    (class, is_verbose): (&Class, bool),
    index: Option<&Index>,
    definitions: &Definitions,
) -> Result<Table> {
    let mut titles = vec!["Column", "Type", "Key?", "Definition"];
    if is_verbose {
        titles.extend(["Storage", "Stats target"]);
    }
    let mut table = Table::list("", &titles);
    for (place, column) in attributes(names, class.oid)?.into_iter().enumerate() {
        let is_key = index.is_some_and(|index| place < index.key_columns);
        let definition = index.map_or(String::new(), |index| definitions.key(index, place));
        let mut row = vec![
            column.name.clone(),
            names.type_name(column.type_oid, column.modifier),
            if is_key { "yes" } else { "no" }.to_owned(),
            definition,
        ];
        if is_verbose {
            row.push(storage(column.storage).to_owned());
            row.push(column.statistics.map_or(String::new(), |target| target.to_string()));
        }
        table.rows.push(row.into_iter().map(Some).collect());
    }
    Ok(table)
}

fn index_footer(names: &Names<'_>, definitions: &Definitions, index: &Index) -> Result<String> {
    let mut text = match (index.is_primary, index.is_unique, index.nulls_are_equal) {
        (true, ..) => "primary key, ",
        (_, true, true) => "unique nulls not distinct, ",
        (_, true, false) => "unique, ",
        _ => "",
    }
    .to_owned();
    let schema = names.class(index.oid).map_or("", |class| &class.schema);
    let table = names.class(index.table).map_or("", |class| &class.name);
    text.push_str(&format!("{}, for table \"{schema}.{table}\"", definitions.method(index)));
    if let Some(predicate) = definitions.predicate(index) {
        text.push_str(&format!(", predicate {predicate}"));
    }
    let constraints = constraints::read(names)?;
    let own =
        constraints.iter().find(|c| c.index == index.oid && matches!(c.kind, b'p' | b'u' | b'x'));
    for (is_so, word) in [
        (index.is_clustered, ", clustered"),
        (!index.is_valid, ", invalid"),
        (own.is_some_and(|c| c.is_deferrable), ", deferrable"),
        (own.is_some_and(|c| c.is_deferred), ", initially deferred"),
        (index.is_replica_identity, ", replica identity"),
    ] {
        text.push_str(if is_so { word } else { "" });
    }
    Ok(text)
}

fn tablespace(names: &Names<'_>, class: &Class) -> Result<Option<String>> {
    if class.tablespace == Oid(0) {
        return Ok(None);
    }
    let all = oids_and_names(names.catalog, ("pg_tablespace", "oid", "spcname"))?;
    Ok(all.get(&class.tablespace).map(|name| format!("Tablespace: \"{name}\"")))
}

fn table_footers(names: &Names<'_>, class: &Class, is_verbose: bool) -> Result<Vec<String>> {
    let mut footers = Vec::new();
    if class.kind == b't' {
        let owner = names.catalog.database().classes().iter().find(|c| c.toast == class.oid);
        let owner = owner.and_then(|owner| names.class(owner.oid));
        footers.extend(owner.map(|of| format!("Owning table: \"{}.{}\"", of.schema, of.name)));
    }
    let constraints = constraints::read(names)?;
    let own: Vec<&Constraint> = constraints.iter().filter(|c| c.table == class.oid).collect();
    index_list(names, class, &own, &mut footers)?;
    check_list(names, &own, &mut footers)?;
    key_lists(names, class, &constraints, &mut footers)?;
    objects::push(names, class, &mut footers)?;
    children(names, class, is_verbose, &mut footers)?;
    if class.of_type != Oid(0) {
        footers.push(format!("Typed table of type: {}", names.catalog.type_name(class.of_type)));
    }
    footers.extend(tablespace(names, class)?);
    if is_verbose {
        footers.extend(access_method(names, class)?);
    }
    Ok(footers)
}

fn access_method(names: &Names<'_>, class: &Class) -> Result<Option<String>> {
    let methods = oids_and_names(names.catalog, ("pg_am", "oid", "amname"))?;
    Ok(methods.get(&class.access_method).map(|name| format!("Access method: {name}")))
}

fn index_list(
    names: &Names<'_>,
    class: &Class,
    own: &[&Constraint],
    footers: &mut Vec<String>,
) -> Result<()> {
    let mut found = indexes::read(names, |table, _| table == class.oid)?;
    if found.is_empty() {
        return Ok(());
    }
    let name = |index: &Index| names.class(index.oid).map_or("", |class| &class.name).to_owned();
    found.sort_by_key(|index| (!index.is_primary, name(index)));
    let definitions = Definitions::new(names)?;
    footers.push("Indexes:".to_owned());
    for index in &found {
        let of = |c: &&&Constraint| c.index == index.oid && matches!(c.kind, b'p' | b'u' | b'x');
        let constraint = own.iter().find(of);
        let mut line = format!("    \"{}\"", name(index));
        if constraint.is_some_and(|c| c.kind == b'x') {
            let operators = constraint.map_or(&[][..], |c| &c.exclusion);
            let definition = definitions.exclusion(index, operators);
            line.push_str(&format!(" {definition}"));
            line.push_str(constraint.map_or("", |c| c.deferral()));
        } else {
            let is_unique_constraint = constraint.is_some_and(|c| c.kind == b'u');
            line.push_str(match (index.is_primary, index.is_unique, is_unique_constraint) {
                (true, ..) => " PRIMARY KEY,",
                (_, true, true) => " UNIQUE CONSTRAINT,",
                (_, true, false) => " UNIQUE,",
                _ => "",
            });
            line.push_str(&format!(" {}", definitions.definition(index)));
            if let Some(constraint) = constraint {
                line.push_str(constraint.deferral());
            }
        }
        for (is_so, word) in [
            (index.is_clustered, " CLUSTER"),
            (!index.is_valid, " INVALID"),
            (index.is_replica_identity, " REPLICA IDENTITY"),
        ] {
            line.push_str(if is_so { word } else { "" });
        }
        if let Some(class) = names.class(index.oid)
            && let Some(place) = tablespace(names, class)?
        {
            line.push_str(&format!(", {}", place.replace("Tablespace: ", "tablespace ")));
        }
        footers.push(line);
    }
    Ok(())
}

fn check_list(names: &Names<'_>, own: &[&Constraint], footers: &mut Vec<String>) -> Result<()> {
    let checks: Vec<&&Constraint> = own.iter().filter(|c| c.kind == b'c').collect();
    if checks.is_empty() {
        return Ok(());
    }
    let writer = ConstraintWriter::new(names.catalog, Style::new(true))?;
    footers.push("Check constraints:".to_owned());
    footers.extend(checks.iter().map(|c| format!("    \"{}\" {}", c.name, c.definition(&writer))));
    Ok(())
}

/// Foreign keys of this table, and those that refer to it; of a partition those of the tables above, too.
fn key_lists(
    names: &Names<'_>,
    class: &Class,
    all: &[Constraint],
    footers: &mut Vec<String>,
) -> Result<()> {
    let parents = inheritance(names)?;
    let mut line_up = HashSet::from([class.oid]);
    let mut current = class;
    while current.is_partition
        && let Some((_, parent)) = parents.iter().find(|(child, _)| *child == current.oid)
        && let Some(above) = names.class(*parent)
        && line_up.insert(above.oid)
    {
        current = above;
    }
    let writer = ConstraintWriter::new(names.catalog, Style::new(true))?;
    let is_key = |c: &&Constraint| c.kind == b'f' && c.parent == Oid(0);
    let mut keys: Vec<&Constraint> =
        all.iter().filter(is_key).filter(|c| line_up.contains(&c.table)).collect();
    keys.sort_by_key(|c| c.table != class.oid);
    if !keys.is_empty() {
        footers.push("Foreign-key constraints:".to_owned());
    }
    for key in keys {
        let definition = key.definition(&writer);
        footers.push(match key.table == class.oid {
            true => format!("    \"{}\" {definition}", key.name),
            false => {
                let table = names.relation(key.table);
                format!("    TABLE \"{table}\" CONSTRAINT \"{}\" {definition}", key.name)
            }
        });
    }
    let mut referring =
        all.iter().filter(is_key).filter(|c| line_up.contains(&c.referenced)).peekable();
    if referring.peek().is_some() {
        footers.push("Referenced by:".to_owned());
    }
    for key in referring {
        let (table, definition) = (names.relation(key.table), key.definition(&writer));
        footers.push(format!("    TABLE \"{table}\" CONSTRAINT \"{}\" {definition}", key.name));
    }
    Ok(())
}

fn children(
    names: &Names<'_>,
    class: &Class,
    is_verbose: bool,
    footers: &mut Vec<String>,
) -> Result<()> {
    let pairs = inheritance(names)?;
    if !class.is_partition {
        let parents = pairs.iter().filter(|(child, _)| *child == class.oid);
        let parents: Vec<String> = parents.map(|(_, parent)| names.relation(*parent)).collect();
        push_list("Inherits", &parents, footers);
    }
    let is_partitioned = matches!(class.kind, b'p' | b'I');
    let mut below: Vec<Oid> =
        pairs.iter().filter(|(_, parent)| *parent == class.oid).map(|(child, _)| *child).collect();
    if is_partitioned && (below.is_empty() || !is_verbose) {
        let how = if below.is_empty() { "" } else { " (Use \\d+ to list them.)" };
        footers.push(format!("Number of partitions: {}{how}", below.len()));
        return Ok(());
    }
    if !is_verbose {
        if !below.is_empty() {
            footers
                .push(format!("Number of child tables: {} (Use \\d+ to list them.)", below.len()));
        }
        return Ok(());
    }
    let bounds: HashMap<Oid, PartitionBound> = match class.kind == b'p' {
        true => names.catalog.database().partitions_of(class.oid)?.into_iter().collect(),
        false => HashMap::new(),
    };
    let writer = Writer::new(names, class.oid);
    // The default one is the last.
    below.sort_by_key(|oid| {
        (bounds.get(oid) == Some(&PartitionBound::Default), names.relation(*oid))
    });
    let line = |oid: &Oid| {
        let mut line = names.relation(*oid);
        if let Some(bound) = bounds.get(oid) {
            line.push_str(&format!(" {}", bound_text(&writer, bound)));
        }
        if names.class(*oid).is_some_and(|c| matches!(c.kind, b'p' | b'I')) {
            line.push_str(", PARTITIONED");
        }
        line
    };
    let lines: Vec<String> = below.iter().map(line).collect();
    push_list(if is_partitioned { "Partitions" } else { "Child tables" }, &lines, footers);
    Ok(())
}

/// Names below each other, the first behind the title.
fn push_list(title: &str, lines: &[String], footers: &mut Vec<String>) {
    for (place, line) in lines.iter().enumerate() {
        let before = if place == 0 { format!("{title}:") } else { " ".repeat(title.len() + 1) };
        let comma = if place + 1 < lines.len() { "," } else { "" };
        footers.push(format!("{before} {line}{comma}"));
    }
}

fn sequence(names: &Names<'_>, class: &Class) -> Result<Table> {
    let titles = ["Type", "Start", "Minimum", "Maximum", "Increment", "Cycles?", "Cache"];
    let columns = [
        "seqrelid",
        "seqtypid",
        "seqstart",
        "seqmin",
        "seqmax",
        "seqincrement",
        "seqcycle",
        "seqcache",
    ];
    let mut table = Table::list("", &titles);
    table.to_right = vec![false, true, true, true, true, false, true];
    for_each_row(names.catalog.values(), "pg_sequence", &columns, |row| {
        if row.oid(0) == class.oid {
            let number = |column| row.int8(column).to_string();
            let cycles = if row.bool(6) { "yes" } else { "no" }.to_owned();
            let of = names.catalog.type_name(row.oid(1));
            let texts = [of, number(2), number(3), number(4), number(5), cycles, number(7)];
            table.rows.push(texts.into_iter().map(Some).collect());
        }
        Ok(())
    })?;
    let owner = sequence_owner(names, class.oid)?;
    let unlogged = if class.persistence == b'u' { "Unlogged sequence" } else { "Sequence" };
    let title = Some(format!("{unlogged} \"{}.{}\"", class.schema, class.name));
    Ok(Table { title, footers: Some(owner.into_iter().collect()), ..table })
}

fn sequence_owner(names: &Names<'_>, sequence: Oid) -> Result<Option<String>> {
    let columns = ["classid", "objid", "refclassid", "refobjid", "refobjsubid", "deptype"];
    let class_oid = |name: &[u8]| {
        names
            .catalog
            .database()
            .classes()
            .iter()
            .find(|c| *c.name == *name)
            .map_or(Oid(0), |c| c.oid)
    };
    let pg_class = class_oid(b"pg_class");
    let mut found = None;
    for_each_row(names.catalog.values(), "pg_depend", &columns, |row| {
        let is_owned = matches!(row.byte(5), b'a' | b'i') && row.int4(4) > 0;
        if row.oid(1) == sequence && row.oid(0) == pg_class && row.oid(2) == pg_class && is_owned {
            found = Some((row.oid(3), row.int4(4), row.byte(5)));
        }
        Ok(())
    })?;
    let Some((table, number, kind)) = found else { return Ok(None) };
    let columns = names.column_names(table)?;
    let column = i16::try_from(number).ok().and_then(|number| columns.get(&number));
    let (Some(class), Some(column)) = (names.class(table), column) else { return Ok(None) };
    let (schema, name) = (quote_identifier(&class.schema), quote_identifier(&class.name));
    let what = if kind == b'i' { "Sequence for identity column" } else { "Owned by" };
    Ok(Some(format!("{what}: {schema}.{name}.{}", quote_identifier(column))))
}
