//! CREATE TABLE, CREATE VIEW and their kin: the statement that makes a relation, its columns and what belongs into it.
//!
//! A default that needs a sequence of the table itself is set afterwards, once that is there. A partition is made as a table, and
//! attached afterwards, as its columns may lie in another order than its parent's.
//!
//! Source: `dumpTableSchema`, `createViewAsClause` and `dumpSequence` in `src/bin/pg_dump/pg_dump.c`, PostgreSQL 15 to 18.

use std::collections::HashMap;

use pagemill_format::Oid;

use super::damaged;
use super::parts::{CREATE_SEQUENCE, OPTIONS, OWN_SEQUENCES, SEQUENCE_OPTIONS, foreign_options};
use super::query::{Catalogs, Row};
use crate::error::{Result, unsupported};

/// What is asked of a relation, a column of the answer each.
const RELATION: [&str; 14] = [
    "c.oid",
    "quote_ident(n.nspname) || '.' || quote_ident(c.relname)",
    "c.relkind",
    "c.relpersistence",
    "case when c.relkind <> 'p' and a.amname <> 'heap' then quote_ident(a.amname) end",
    "quote_ident(s.spcname)",
    "case when c.relkind = 'p' then pg_get_partkeydef(c.oid) end",
    "case when c.reloftype <> 0 then format_type(c.reloftype, null) end",
    "{options}",
    "case when c.relkind in ('v', 'm') then rtrim(pg_get_viewdef(c.oid), ';') end",
    "case when 'check_option=local' = any (c.reloptions) then 'LOCAL' when 'check_option=cascaded' = any (c.reloptions) \
     then 'CASCADED' end",
    "nullif(array_to_string(array(select quote_ident(pn.nspname) || '.' || quote_ident(p.relname) from pg_catalog.pg_inherits i \
     join pg_catalog.pg_class p on p.oid = i.inhparent join pg_catalog.pg_namespace pn on pn.oid = p.relnamespace \
     where i.inhrelid = c.oid and not c.relispartition order by i.inhseqno), ', '), '')",
    "quote_ident(fs.srvname)",
    "{foreign options}",
];

/// A relation, as the statement needs it.
struct Relation {
    oid: String,
    name: String,
    kind: String,
    is_unlogged: bool,
    access_method: Option<String>,
    tablespace: Option<String>,
    partition_key: Option<String>,
    options: Option<String>,
    query: Option<String>,
    check_option: Option<String>,
    parents: Option<String>,
    server: Option<String>,
    server_options: Option<String>,
}

/// The statements that make the relations, in this order. Sequences of chosen tables are made after them, by another part.
pub(super) fn statements(catalogs: &Catalogs<'_>, chosen: &[Oid]) -> Result<Vec<String>> {
    let lines = lines(catalogs, chosen)?;
    let sequences = sequences(catalogs, chosen)?;
    let mut relations = relations(catalogs, chosen)?;
    let mut statements = Vec::new();
    for oid in chosen {
        let missing = || damaged(format!("relation {} is in a namespace that is not there", oid.0));
        let relation = relations.remove(&oid.0.to_string()).ok_or_else(missing)?;
        let none = Vec::new();
        let lines = lines.get(&relation.oid).unwrap_or(&none);
        match &*relation.kind {
            // Those of a chosen table are made after it.
            "S" => statements.extend(sequences.get(&relation.oid).cloned()),
            "v" => statements.push(view(&relation)?),
            "m" => statements.push(materialized_view(&relation)?),
            _ => statements.push(table(&relation, lines)),
        }
    }
    Ok(statements)
}

fn relations(catalogs: &Catalogs<'_>, chosen: &[Oid]) -> Result<HashMap<String, Relation>> {
    let columns = RELATION.join(", ").replace("{options}", OPTIONS);
    let columns = columns.replace("{foreign options}", &foreign_options("ft.ftoptions"));
    let statement = format!(
        "select {columns} from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
         left join pg_catalog.pg_am a on a.oid = c.relam left join pg_catalog.pg_tablespace s on s.oid = c.reltablespace \
         left join pg_catalog.pg_class tc on tc.oid = c.reltoastrelid \
         left join pg_catalog.pg_foreign_table ft on ft.ftrelid = c.oid \
         left join pg_catalog.pg_foreign_server fs on fs.oid = ft.ftserver \
         where c.oid = any ({{chosen}})"
    );
    let rows = catalogs.rows(&statement, chosen)?;
    rows.into_iter().map(|row| relation(row).map(|found| (found.oid.clone(), found))).collect()
}

fn relation(row: Row) -> Result<Relation> {
    let mut values = row.into_iter();
    let mut next = || values.next().flatten();
    let mut needed =
        |what: &str| next().ok_or_else(|| damaged(format!("a relation has no {what}")));
    let (oid, name) = (needed("oid")?, needed("name")?);
    let (kind, persistence) = (needed("kind")?, needed("persistence")?);
    let (access_method, tablespace, partition_key, of_type) = (next(), next(), next(), next());
    if let Some(of_type) = of_type {
        return unsupported(format!("the definition of {name}, a table of the type {of_type}"));
    }
    let is_unlogged = persistence == "u";
    let (options, query, check_option) = (next(), next(), next());
    let (parents, server, server_options) = (next(), next(), next());
    Ok(Relation {
        oid,
        name,
        kind,
        is_unlogged,
        access_method,
        tablespace,
        partition_key,
        options,
        query,
        check_option,
        parents,
        server,
        server_options,
    })
}

/// The lines between the parentheses, by relation: columns in their order, then constraints that are checked for each row.
fn lines(catalogs: &Catalogs<'_>, chosen: &[Oid]) -> Result<HashMap<String, Vec<String>>> {
    let columns = columns_statement(catalogs.major());
    let checks = "select k.conrelid, 'CONSTRAINT ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid) \
                  from pg_catalog.pg_constraint k join pg_catalog.pg_class c on c.oid = k.conrelid \
                  where k.conrelid = any ({chosen}) and k.contype = 'c' and k.convalidated and (k.conislocal or c.relispartition) \
                  order by k.conrelid, k.conname";
    let mut found: HashMap<String, Vec<String>> = HashMap::new();
    for statement in [&*columns, checks] {
        for (relation, line) in catalogs.pairs(statement, chosen)? {
            found.entry(relation).or_default().push(line);
        }
    }
    Ok(found)
}

/// Columns that a table has itself, each with its line. Of a partition, all: it is made before it is one.
fn columns_statement(major: u32) -> String {
    // From 18 on NOT NULL is a constraint with a name, which is said where it is not the usual one.
    let (not_null, of_constraint) = match major {
        18.. => (
            "case when k.oid is null then '' else case when k.conname = c.relname || '_' || a.attname || '_not_null' then '' \
             else ' CONSTRAINT ' || quote_ident(k.conname) end || ' NOT NULL' \
             || case when k.connoinherit then ' NO INHERIT' else '' end end",
            "left join pg_catalog.pg_constraint k on k.conrelid = a.attrelid and k.contype = 'n' and k.conkey[1] = a.attnum \
             and k.convalidated and (k.conislocal or c.relispartition)",
        ),
        // Where a parent says it, a child need not.
        _ => (
            "case when a.attnotnull and (c.relispartition or inherited.attname is null) then ' NOT NULL' else '' end",
            "left join (select distinct i.inhrelid, p.attname from pg_catalog.pg_inherits i join pg_catalog.pg_attribute p \
             on p.attrelid = i.inhparent where p.attnotnull and p.attnum > 0 and not p.attisdropped) inherited \
             on inherited.inhrelid = a.attrelid and inherited.attname = a.attname",
        ),
    };
    format!(
        "select a.attrelid, quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod) \
         || case when a.attgenerated = 's' then ' GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid) || ') STORED' \
            when a.attgenerated = 'v' then ' GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid) || ')' \
            when d.oid is not null and own.objid is null then ' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) else '' end \
         || {not_null} \
         || case when a.attcollation <> t.typcollation and a.attcollation <> 0 \
            then ' COLLATE ' || quote_ident(ln.nspname) || '.' || quote_ident(l.collname) else '' end \
         from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid \
         join pg_catalog.pg_type t on t.oid = a.atttypid \
         left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum {OWN_SEQUENCES} {of_constraint} \
         left join pg_catalog.pg_collation l on l.oid = a.attcollation left join pg_catalog.pg_namespace ln on ln.oid = l.collnamespace \
         where a.attrelid = any ({{chosen}}) and a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'p', 'f') \
         and (a.attislocal or c.relispartition) order by a.attrelid, a.attnum"
    )
}

/// Sequences that belong to no chosen table, by OID.
fn sequences(catalogs: &Catalogs<'_>, chosen: &[Oid]) -> Result<HashMap<String, String>> {
    let statement = format!(
        "select c.oid, {CREATE_SEQUENCE} || {SEQUENCE_OPTIONS} || ';' \
         from pg_catalog.pg_sequence s join pg_catalog.pg_class c on c.oid = s.seqrelid \
         join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = any ({{chosen}}) \
         and not exists (select 1 from pg_catalog.pg_depend d where d.objid = c.oid and d.classid = 'pg_class'::regclass \
         and d.refclassid = 'pg_class'::regclass and d.deptype in ('a', 'i') and d.refobjid = any ({{chosen}}))"
    );
    Ok(catalogs.pairs(&statement, chosen)?.into_iter().collect())
}

fn table(relation: &Relation, lines: &[String]) -> String {
    let unlogged = if relation.is_unlogged { "UNLOGGED " } else { "" };
    let foreign = if relation.kind == "f" { "FOREIGN " } else { "" };
    let mut text = format!("CREATE {unlogged}{foreign}TABLE {} (", relation.name);
    for (at, line) in lines.iter().enumerate() {
        text.push_str(if at == 0 { "\n    " } else { ",\n    " });
        text.push_str(line);
    }
    text.push_str("\n)");
    let parts = [
        (&relation.parents, "\nINHERITS (", ")"),
        (&relation.partition_key, "\nPARTITION BY ", ""),
        (&relation.server, "\nSERVER ", ""),
        (&relation.access_method, "\nUSING ", ""),
        (&relation.options, "\nWITH (", ")"),
        (&relation.tablespace, "\nTABLESPACE ", ""),
        (&relation.server_options, "\nOPTIONS (\n    ", "\n)"),
    ];
    for (part, before, after) in parts {
        if let Some(part) = part {
            text.extend([before, part, after]);
        }
    }
    text + ";"
}

fn query(relation: &Relation) -> Result<&str> {
    let missing = || damaged(format!("{} has no query", relation.name));
    relation.query.as_deref().ok_or_else(missing)
}

fn view(relation: &Relation) -> Result<String> {
    let with = relation.options.as_ref().map(|options| format!(" WITH ({options})"));
    let check = relation.check_option.as_ref().map(|kind| format!("\n  WITH {kind} CHECK OPTION"));
    let (with, check) = (with.unwrap_or_default(), check.unwrap_or_default());
    Ok(format!("CREATE VIEW {}{with} AS\n{}{check};", relation.name, query(relation)?))
}

fn materialized_view(relation: &Relation) -> Result<String> {
    let part = |part: &Option<String>, before: &str, after: &str| {
        part.as_ref().map_or_else(String::new, |part| format!("{before}{part}{after}"))
    };
    Ok(format!(
        "CREATE MATERIALIZED VIEW {}{}{}{} AS\n{}\n  WITH NO DATA;",
        relation.name,
        part(&relation.access_method, "\nUSING ", ""),
        part(&relation.options, "\nWITH (", ")"),
        part(&relation.tablespace, "\nTABLESPACE ", ""),
        query(relation)?
    ))
}
