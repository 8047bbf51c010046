//! Databases, tablespaces, schemas and relations, and who may do what with them.
//!
//! Invariant: a relation that is hidden behind another of its name is shown only where its schema is asked for.

use super::super::list::{Asked, List, Named};
use super::{ACCESS, acl, by_bytes};

/// The version in which a column of locales that are not the C library's has another name.
const OTHER_LOCALES: u32 = 17;

/// A type of relation in words.
const KIND: &str = "CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' \
    WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' \
    WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END";

pub(super) fn databases(asked: &Asked<'_>) -> Result<List, String> {
    let (icu, provider) = match asked.major {
        ..=14 => ("NULL::text", "'libc'"),
        major => (
            if major < OTHER_LOCALES { "d.daticulocale" } else { "d.datlocale" },
            "CASE d.datlocprovider WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu' WHEN 'b' THEN 'builtin' END",
        ),
    };
    let size = "CASE WHEN has_database_privilege(d.datname, 'CONNECT') \
        THEN pg_size_pretty(pg_database_size(d.datname)) ELSE 'No Access' END";
    let more = [
        ("Size", size),
        ("Tablespace", "(SELECT t.spcname FROM pg_tablespace t WHERE t.oid = d.dattablespace)"),
        ("Description", "shobj_description(d.oid, 'pg_database')"),
    ];
    List::new("List of databases", "pg_database d", "1")
        .columns(&[("Name", "d.datname"), ("Owner", "pg_get_userbyid(d.datdba)")])
        .columns(&[("Encoding", "pg_encoding_to_char(d.encoding)"), ("Collate", "d.datcollate")])
        .columns(&[("Ctype", "d.datctype"), ("ICU Locale", icu), ("Locale Provider", provider)])
        .columns(&[(ACCESS, &acl("d.datacl"))])
        .columns_if(asked.is_verbose, &more)
        .named(asked, &Named { names: &["d.datname"], ..Named::default() })
}

pub(super) fn tablespaces(asked: &Asked<'_>) -> Result<List, String> {
    let access = acl("s.spcacl");
    let more = [
        (ACCESS, access.as_str()),
        ("Options", "s.spcoptions"),
        ("Size", "pg_size_pretty(pg_tablespace_size(s.oid))"),
        ("Description", "shobj_description(s.oid, 'pg_tablespace')"),
    ];
    List::new("List of tablespaces", "pg_tablespace s", "1")
        .columns(&[("Name", "s.spcname"), ("Owner", "pg_get_userbyid(s.spcowner)")])
        .columns(&[("Location", "pg_tablespace_location(s.oid)")])
        .columns_if(asked.is_verbose, &more)
        .named(asked, &Named { names: &["s.spcname"], ..Named::default() })
}

pub(super) fn schemas(asked: &Asked<'_>) -> Result<List, String> {
    let access = acl("n.nspacl");
    let more =
        [(ACCESS, access.as_str()), ("Description", "obj_description(n.oid, 'pg_namespace')")];
    let list = List::new("List of schemas", "pg_namespace n", "1")
        .columns(&[("Name", "n.nspname"), ("Owner", "pg_get_userbyid(n.nspowner)")])
        .columns_if(asked.is_verbose, &more)
        .named(asked, &Named { names: &["n.nspname"], ..Named::default() })?;
    Ok(match asked.shows_system || asked.pattern.text().is_some() {
        true => list,
        false => list.only("n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"),
    })
}

/// The kinds of relations that letters of a command stand for; `None` for other letters.
pub(super) fn kinds(letters: &str) -> Option<String> {
    let kinds = match letters {
        "" => "tvmsE",
        letters => letters,
    };
    kinds.chars().all(|c| "tisvmE".contains(c)).then(|| kinds.to_owned())
}

/// Relations of these kinds.
pub(super) fn relations(asked: &Asked<'_>, letters: &str) -> Result<List, String> {
    let is_named = asked.pattern.text().is_some();
    let has = |kinds: &[char]| letters.contains(kinds);
    let mut kinds: Vec<&str> = letters.chars().flat_map(kinds_of).copied().collect();
    if has(&['t']) && (asked.shows_system || is_named) {
        kinds.push("t");
    }
    let persistence = "CASE c.relpersistence WHEN 'p' THEN 'permanent' WHEN 't' THEN 'temporary' \
        WHEN 'u' THEN 'unlogged' END";
    let method = "(SELECT a.amname FROM pg_am a WHERE a.oid = c.relam)";
    let table = "(SELECT t.relname FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid WHERE i.indexrelid = c.oid)";
    let more = [
        ("Size", "pg_size_pretty(pg_table_size(c.oid))"),
        ("Description", "obj_description(c.oid, 'pg_class')"),
    ];
    let from = "pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace";
    let list = List::new("List of relations", from, "1, 2")
        .columns(&[("Schema", "n.nspname"), ("Name", "c.relname"), ("Type", KIND)])
        .columns(&[("Owner", "pg_get_userbyid(c.relowner)")])
        .columns_if(has(&['i']), &[("Table", table)])
        .columns_if(asked.is_verbose, &[("Persistence", persistence)])
        .columns_if(asked.is_verbose && has(&['t', 'm', 'i']), &[("Access method", method)])
        .columns_if(asked.is_verbose, &more)
        .only(format!("c.relkind IN ('{}')", kinds.join("', '")))
        .without_system(asked, "n.nspname")
        .only(if asked.shows_system || is_named { "true" } else { "n.nspname !~ '^pg_toast'" })
        .named(asked, &of_relations())?;
    Ok(list.or_absent("relation"))
}

fn kinds_of(letter: char) -> &'static [&'static str] {
    match letter {
        't' => &["r", "p"],
        'i' => &["i", "I"],
        'v' => &["v"],
        'm' => &["m"],
        's' => &["S"],
        'E' => &["f"],
        _ => &[],
    }
}

/// What a pattern of relations is held against.
pub(in crate::shell::describe) fn of_relations() -> Named {
    let visible = Some("pg_table_is_visible(c.oid)");
    Named { schema: Some("n.nspname"), names: &["c.relname"], visible }
}

pub(super) fn privileges(asked: &Asked<'_>) -> Result<List, String> {
    let columns = "array_to_string(ARRAY(SELECT a.attname || E':\\n  ' || array_to_string(a.attacl, E'\\n  ') \
        FROM pg_attribute a WHERE a.attrelid = c.oid AND NOT a.attisdropped AND a.attacl IS NOT NULL ORDER BY a.attnum), E'\\n')";
    let policies = "array_to_string(ARRAY(SELECT p.polname \
        || CASE WHEN p.polpermissive THEN '' ELSE ' (RESTRICTIVE)' END \
        || CASE WHEN p.polcmd = '*' THEN ':' ELSE ' (' || p.polcmd::text || '):' END \
        || coalesce(E'\\n  (u): ' || pg_get_expr(p.polqual, p.polrelid), '') \
        || coalesce(E'\\n  (c): ' || pg_get_expr(p.polwithcheck, p.polrelid), '') \
        || CASE WHEN p.polroles = '{0}' THEN '' ELSE E'\\n  to: ' || array_to_string(ARRAY( \
        SELECT r.rolname FROM pg_roles r WHERE r.oid = ANY (p.polroles) ORDER BY 1), ', ') END \
        FROM pg_policy p WHERE p.polrelid = c.oid), E'\\n')";
    let visible = Some("n.nspname !~ '^pg_' AND pg_table_is_visible(c.oid)");
    let from = "pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace";
    List::new("Access privileges", from, "1, 2")
        .columns(&[("Schema", "n.nspname"), ("Name", "c.relname"), ("Type", KIND)])
        .columns(&[
            (ACCESS, &acl("c.relacl")),
            ("Column privileges", columns),
            ("Policies", policies),
        ])
        .only("c.relkind IN ('r', 'v', 'm', 'S', 'f', 'p')")
        .named(asked, &Named { visible, ..of_relations() })
}

pub(super) fn default_privileges(asked: &Asked<'_>) -> Result<List, String> {
    let kind = "CASE d.defaclobjtype WHEN 'r' THEN 'table' WHEN 'S' THEN 'sequence' WHEN 'f' THEN 'function' \
        WHEN 'T' THEN 'type' WHEN 'n' THEN 'schema' WHEN 'L' THEN 'large object' END";
    let from = "pg_default_acl d LEFT JOIN pg_namespace n ON n.oid = d.defaclnamespace";
    List::new("Default access privileges", from, "1, 2, 3")
        .columns(&[("Owner", "pg_get_userbyid(d.defaclrole)"), ("Schema", "n.nspname")])
        .columns(&[("Type", &by_bytes(kind)), (ACCESS, &acl("d.defaclacl"))])
        .named(
            asked,
            &Named { names: &["n.nspname", "pg_get_userbyid(d.defaclrole)"], ..Named::default() },
        )
}
