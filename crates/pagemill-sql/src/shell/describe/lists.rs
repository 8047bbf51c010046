//! The lists: databases, schemas, relations, roles, types.
//!
//! Source: `listAllDbs`, `listSchemas`, `listTables`, `describeRoles`, `describeTypes` in `src/bin/psql/describe.c`, PostgreSQL 15.

use std::collections::HashMap;
use std::sync::Arc;

use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use pagemill_types::encoding::encoding_name;

use super::names::{Class, Names, is_system, kind_name, oids_and_names};
use super::pattern::Pattern;
use super::{Described, none_found};
use crate::catalog::Catalog;
use crate::error::Result;
use crate::functions::text_form::text_of_payload;
use crate::output::Table;
use crate::system_rows::for_each_row;

/// `aclitem[]`.
const ACL_ARRAY: Oid = Oid(1034);

type Row = Vec<Option<String>>;

/// Rows in the order of their columns' bytes, as names have it under the collation C.
fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

/// An access list, an item a line.
fn acl(catalog: &Arc<Catalog>, payload: Option<Vec<u8>>) -> Result<Option<String>> {
    let Some(payload) = payload else { return Ok(None) };
    let items = text_of_payload(catalog, ACL_ARRAY, &payload)?;
    let inner = items.trim_start_matches('{').trim_end_matches('}');
    // Items have neither commas nor quotes in them, unless a role's name has.
    Ok(Some(inner.replace(',', "\n")))
}

pub(super) fn databases(catalog: &Arc<Catalog>, pattern: &Pattern) -> Result<Described> {
    let roles = oids_and_names(catalog, ("pg_authid", "oid", "rolname"))?;
    let major = catalog.database().cluster().version().major();
    let mut columns = vec!["datname", "datdba", "encoding", "datcollate", "datctype", "datacl"];
    match major {
        14 => {}
        15 | 16 => columns.extend(["daticulocale", "datlocprovider"]),
        _ => columns.extend(["datlocale", "datlocprovider"]),
    }
    let mut rows = Vec::new();
    for_each_row(catalog.values(), "pg_database", &columns, |row| {
        let name = row.name(0);
        if !pattern.matches("", &name) {
            return Ok(());
        }
        let access = row.payload(5)?.map(<[u8]>::to_vec);
        // A name until 14, a text since.
        let locale = |row: &mut crate::system_rows::SystemRow<'_>, column| match major {
            14 => Ok(Some(row.name(column))),
            _ => row.text(column),
        };
        let (collate, ctype) = (locale(row, 3)?, locale(row, 4)?);
        let icu = if major > 14 { row.text(6)? } else { None };
        let provider = match (major, if major > 14 { row.byte(7) } else { b'c' }) {
            (14, _) | (_, b'c') => "libc",
            (_, b'i') => "icu",
            (_, b'b') => "builtin",
            _ => "",
        };
        let encoding = encoding_name(row.int4(2)).unwrap_or_default().to_owned();
        rows.push(vec![
            Some(name),
            roles.get(&row.oid(1)).cloned(),
            Some(encoding),
            collate,
            ctype,
            icu,
            Some(provider.to_owned()),
            acl(catalog, access)?,
        ]);
        Ok(())
    })?;
    let names = [
        "Name",
        "Owner",
        "Encoding",
        "Collate",
        "Ctype",
        "ICU Locale",
        "Locale Provider",
        "Access privileges",
    ];
    Ok(Described::table(Table { rows: sorted(rows), ..Table::list("List of databases", &names) }))
}

pub(super) fn schemas(catalog: &Arc<Catalog>, pattern: &Pattern) -> Result<Described> {
    let roles = oids_and_names(catalog, ("pg_authid", "oid", "rolname"))?;
    let mut rows = Vec::new();
    for_each_row(catalog.values(), "pg_namespace", &["nspname", "nspowner"], |row| {
        let name = row.name(0);
        let is_system = name.starts_with("pg_") || name == "information_schema";
        if pattern.matches("", &name) && !(pattern.is_empty() && is_system) {
            rows.push(vec![Some(name), roles.get(&row.oid(1)).cloned()]);
        }
        Ok(())
    })?;
    let names = ["Name", "Owner"];
    Ok(Described::table(Table { rows: sorted(rows), ..Table::list("List of schemas", &names) }))
}

/// Relations of these kinds; `S` among the letters asks for those of the system, too.
pub(super) fn relations(names: &Names<'_>, letters: &str, pattern: &Pattern) -> Result<Described> {
    let kinds: Vec<u8> = letters.bytes().flat_map(kinds_of).copied().collect();
    let roles = oids_and_names(names.catalog, ("pg_authid", "oid", "rolname"))?;
    let is_shown = |class: &&Class| {
        let wants_system = letters.contains('S') || !pattern.is_empty();
        kinds.contains(&class.kind)
            && (wants_system || !is_system(class))
            && (!class.schema.starts_with("pg_toast") || !pattern.is_empty() && class.kind == b't')
            && pattern.matches(&class.schema, &class.name)
            && (pattern.has_schema() || names.is_visible(class))
    };
    let has_tables = letters.contains('i');
    let tables = if has_tables { indexed_tables(names)? } else { HashMap::new() };
    let row = |class: &Class| {
        let mut row = vec![
            Some(class.schema.clone()),
            Some(class.name.clone()),
            Some(kind_name(class.kind).to_owned()),
            roles.get(&class.owner).cloned(),
        ];
        if has_tables {
            let table = tables.get(&class.oid).and_then(|table| names.class(*table));
            row.push(table.map(|table| table.name.clone()));
        }
        row
    };
    let mut rows: Vec<Row> = names.classes.iter().filter(is_shown).map(row).collect();
    rows.sort_by(|a, b| a[..2].cmp(&b[..2]));
    if rows.is_empty() {
        return Ok(Described::message(match pattern.is_empty() {
            true => "Did not find any relations.".to_owned(),
            false => none_found("relation", pattern),
        }));
    }
    let mut titles = vec!["Schema", "Name", "Type", "Owner"];
    titles.extend(has_tables.then_some("Table"));
    Ok(Described::table(Table { rows, ..Table::list("List of relations", &titles) }))
}

fn kinds_of(letter: u8) -> &'static [u8] {
    match letter {
        b't' => b"rp",
        b'i' => b"iI",
        b'v' => b"v",
        b'm' => b"m",
        b's' => b"S",
        b'E' => b"f",
        _ => b"",
    }
}

fn indexed_tables(names: &Names<'_>) -> Result<HashMap<Oid, Oid>> {
    let mut found = HashMap::new();
    for_each_row(names.catalog.values(), "pg_index", &["indexrelid", "indrelid"], |row| {
        found.insert(row.oid(0), row.oid(1));
        Ok(())
    })?;
    Ok(found)
}

pub(super) fn roles(catalog: &Arc<Catalog>, pattern: &Pattern) -> Result<Described> {
    let names = oids_and_names(catalog, ("pg_authid", "oid", "rolname"))?;
    let mut members: HashMap<Oid, Vec<String>> = HashMap::new();
    for_each_row(catalog.values(), "pg_auth_members", &["roleid", "member"], |row| {
        let role = names.get(&row.oid(0)).cloned().unwrap_or_default();
        members.entry(row.oid(1)).or_default().push(role);
        Ok(())
    })?;
    let columns = [
        "oid",
        "rolname",
        "rolsuper",
        "rolinherit",
        "rolcreaterole",
        "rolcreatedb",
        "rolcanlogin",
        "rolreplication",
        "rolbypassrls",
        "rolconnlimit",
        "rolvaliduntil",
    ];
    let mut rows = Vec::new();
    for_each_row(catalog.values(), "pg_authid", &columns, |row| {
        let name = row.name(1);
        if !pattern.matches("", &name) || pattern.is_empty() && name.starts_with("pg_") {
            return Ok(());
        }
        let words = [
            (row.bool(2), "Superuser"),
            (!row.bool(3), "No inheritance"),
            (row.bool(4), "Create role"),
            (row.bool(5), "Create DB"),
            (!row.bool(6), "Cannot login"),
            (row.bool(7), "Replication"),
            (row.bool(8), "Bypass RLS"),
        ];
        let words: Vec<&str> =
            words.iter().filter(|(has, _)| *has).map(|(_, word)| *word).collect();
        let mut lines: Vec<String> = Vec::new();
        if !words.is_empty() {
            lines.push(words.join(", "));
        }
        match row.int4(9) {
            ..=-1 => {}
            0 => lines.push("No connections".to_owned()),
            1 => lines.push("1 connection".to_owned()),
            limit => lines.push(format!("{limit} connections")),
        }
        if !row.is_null(10) {
            let until = text_of_payload(catalog, oid::TIMESTAMPTZ, &row.int8(10).to_le_bytes())?;
            lines.push(format!("Password valid until {until}"));
        }
        let groups = members.remove(&row.oid(0)).unwrap_or_default();
        let groups: Vec<String> = groups.iter().map(|name| array_item(name)).collect();
        rows.push(vec![
            Some(name),
            Some(lines.join("\n")),
            Some(format!("{{{}}}", groups.join(","))),
        ]);
        Ok(())
    })?;
    let titles = ["Role name", "Attributes", "Member of"];
    // This list alone has no count below it.
    let table = Table { rows: sorted(rows), ..Table::list("List of roles", &titles) };
    Ok(Described::table(Table { footers: Some(Vec::new()), ..table }))
}

/// A text as an item of an array's text.
fn array_item(text: &str) -> String {
    let needs = text.is_empty()
        || text.eq_ignore_ascii_case("null")
        || text.contains(|c: char| c.is_whitespace() || "{},\"\\".contains(c));
    match needs {
        true => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        false => text.to_owned(),
    }
}

pub(super) fn types(names: &Names<'_>, wants_system: bool, pattern: &Pattern) -> Result<Described> {
    let catalog = names.catalog;
    let schemas = oids_and_names(catalog, ("pg_namespace", "oid", "nspname"))?;
    let comments = super::comments(catalog, "pg_type")?;
    let columns = ["oid", "typname", "typnamespace", "typrelid", "typelem", "typtype"];
    let mut rows = Vec::new();
    let mut arrays = std::collections::HashSet::new();
    for_each_row(catalog.values(), "pg_type", &["typarray"], |row| {
        arrays.insert(row.oid(0));
        Ok(())
    })?;
    for_each_row(catalog.values(), "pg_type", &columns, |row| {
        let (type_oid, name, relation) = (row.oid(0), row.name(1), row.oid(3));
        let schema = schemas.get(&row.oid(2)).cloned().unwrap_or_default();
        let is_row = relation != Oid(0) && names.class(relation).is_none_or(|c| c.kind != b'c');
        let is_system = matches!(schema.as_str(), "pg_catalog" | "information_schema");
        let shown = catalog.type_name(type_oid);
        let matches = pattern.matches(&schema, &name)
            || pattern.matches(&schema, shown.rsplit('.').next().unwrap_or(&shown));
        let is_visible = pattern.has_schema() || catalog.search_path().contains(&row.oid(2));
        if is_row || arrays.contains(&type_oid) || !matches || !is_visible {
            return Ok(());
        }
        if is_system && pattern.is_empty() && !wants_system {
            return Ok(());
        }
        rows.push(vec![Some(schema), Some(shown), comments.get(&(type_oid, 0)).cloned()]);
        Ok(())
    })?;
    let titles = ["Schema", "Name", "Description"];
    Ok(Described::table(Table { rows: sorted(rows), ..Table::list("List of data types", &titles) }))
}
