//! What `ls`, `count` and `inspect` say of clusters, databases, relations and blocks, compared with the functions
//! and programs PostgreSQL has for it: `pg_relation_size`, `pg_class`, `pg_controldata`, `pageinspect`.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::{
    CopyFormat, PgInstall, Prepared, Program, TestCluster, every_version, requests,
};
use serde_json::{Value, json};

/// Bytes by which a server's own files in a database's directory (`pg_internal.init`) may differ once it ran.
const CACHE_FILES: u64 = 512 * 1024;

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

fn rows(bytes: &[u8]) -> Result<Vec<Value>> {
    match serde_json::from_slice(bytes)? {
        Value::Array(rows) => Ok(rows),
        other => anyhow::bail!("not an array: {other}"),
    }
}

#[test]
fn ls_lists_the_databases_as_pg_database_has_them() {
    every_version(|prepared| {
        let request = requests::databases();
        let expected = rows(&prepared.answer(&request)?)?;
        let actual = rows(&program().succeed(&prepared.data_dir(), &["ls", "--json"])?)?;
        ensure!(actual.len() == expected.len(), "{} databases", actual.len());
        for (mut actual, mut expected) in actual.into_iter().zip(expected) {
            let (bytes, server) = (take_bytes(&mut actual)?, take_bytes(&mut expected)?);
            ensure!(actual == expected, "{actual} instead of {expected}");
            ensure!(
                bytes.abs_diff(server) < CACHE_FILES,
                "{actual}: {bytes} and not {server} bytes"
            );
        }
        Ok(())
    });
}

fn take_bytes(row: &mut Value) -> Result<u64> {
    row["bytes"].take().as_u64().context("no bytes")
}

/// Names, kinds, blocks, estimated rows, bytes of all forks, and those of TOAST, in order.
#[test]
fn ls_lists_every_relation_with_the_sizes_the_server_tells() {
    every_version(|prepared| {
        for database in requests::LISTED {
            let request = requests::relations(database);
            let expected = rows(&prepared.answer(&request)?)?;
            ensure!(expected.len() > 90, "{database}: only {} relations", expected.len());
            let mut actual = rows(&program().answer(prepared, &request, &[])?)?;
            actual.retain(|row| !is_temporary(row));
            let differing: Vec<String> = actual
                .iter()
                .zip(&expected)
                .filter(|(actual, expected)| actual != expected)
                .map(|(actual, expected)| format!("{actual}\n  instead of {expected}"))
                .collect();
            let counts = (actual.len(), expected.len());
            ensure!(
                differing.is_empty() && counts.0 == counts.1,
                "{database}: {} of {counts:?} relations differ:\n{}",
                differing.len(),
                differing.iter().take(5).cloned().collect::<Vec<_>>().join("\n")
            );
        }
        Ok(())
    });
}

/// Left behind by a session that crashed; the server does not tell sizes of other sessions' tables.
fn is_temporary(row: &Value) -> bool {
    let schema = row["schema"].as_str().unwrap_or_default();
    schema.starts_with("pg_temp_") || schema.starts_with("pg_toast_temp_")
}

#[test]
fn ls_without_the_system_lists_the_users_relations_in_text_too() {
    every_version(|prepared| {
        let data_dir = prepared.data_dir();
        let listed = String::from_utf8(program().succeed(&data_dir, &["ls", "-d", "types"])?)?;
        let tables = prepared.database("types")?.tables.iter();
        let tables: Vec<_> = tables.filter(|t| t.schema == "public" && t.kind == 'r').collect();
        ensure!(tables.len() > 50, "only {} tables", tables.len());
        let words: Vec<&str> = listed.split_whitespace().collect();
        for table in tables {
            ensure!(words.contains(&&*table.name), "ls does not name {}", table.quoted());
        }
        ensure!(!listed.contains("pg_catalog") && !listed.contains("pg_toast"), "{listed}");
        Ok(())
    });
}

#[test]
fn the_catalogs_are_counted_like_tables() {
    every_version(|prepared| {
        for name in ["ddl", "mvcc", "in_side"] {
            let database = prepared.database(name)?;
            let args = ["count", "-d", name, "-t", "pg_catalog.*"];
            let printed = String::from_utf8(program().succeed(&prepared.data_dir(), &args)?)?;
            let counted: BTreeMap<&str, &str> =
                printed.lines().filter_map(|line| line.split_once('\t')).collect();
            let catalogs = database.tables.iter().filter(|t| t.schema == "pg_catalog");
            let mut compared = 0;
            for table in catalogs {
                let expected = database.expected(table, CopyFormat::Text)?;
                let rows = expected.iter().filter(|byte| **byte == b'\n').count().to_string();
                let named = format!("pg_catalog.{}", table.name);
                let counted = counted.get(&*named).copied();
                ensure!(counted == Some(&*rows), "{name}: {named}: {counted:?}, not {rows}");
                compared += 1;
            }
            ensure!(compared > 60 && counted.len() == compared, "{name}: {compared} catalogs");
        }
        Ok(())
    });
}

#[test]
fn inspect_names_the_tablespace_and_the_file_of_a_table() {
    every_version(|prepared| {
        let expected = rows(&prepared.answer(&requests::tablespaces())?)?;
        ensure!(expected.len() >= 4, "only {} relations in tablespaces", expected.len());
        for row in expected {
            let table = format!("public.\"{}\"", row["name"].as_str().context("no name")?);
            let args = ["inspect", "-d", "ddl", "--json", "-t", &table];
            let shown: Value =
                serde_json::from_slice(&program().succeed(&prepared.data_dir(), &args)?)?;
            let file = shown["file"].as_str().context("no file")?;
            ensure!(shown["tablespace"] == row["tablespace"], "{table}: {}", shown["tablespace"]);
            ensure!(row["file"].as_str().is_some_and(|f| file.ends_with(f)), "{table}: {file}");
        }
        Ok(())
    });
}

#[test]
fn inspect_shows_the_control_file_as_pg_controldata_does() {
    every_version(|prepared| {
        let install = PgInstall::find(prepared.major()).context("no installation")?;
        let program_file = install.program("pg_controldata");
        if !program_file.is_file() {
            eprintln!("SKIPPED: no pg_controldata for PostgreSQL {}", prepared.major());
            return Ok(());
        }
        let utc = |command: &mut Command| command.env("TZ", "UTC").env("LC_ALL", "C").output();
        let theirs = utc(Command::new(program_file).arg("-D").arg(prepared.data_dir()))?;
        let ours = utc(&mut program().command(&prepared.data_dir(), &["inspect"]))?;
        let (theirs, ours) = (String::from_utf8(theirs.stdout)?, String::from_utf8(ours.stdout)?);
        ensure!(theirs.lines().count() > 40, "{theirs}");
        for (theirs, ours) in theirs.lines().zip(ours.lines()) {
            ensure!(theirs == ours, "{ours:?} instead of {theirs:?}");
        }
        ensure!(theirs == ours, "{ours}\ninstead of\n{theirs}");
        Ok(())
    });
}

/// Tables with line pointers and tuples of every kind: dead, redirected, locked, in multixacts, frozen, with nulls.
const INSPECTED: [(&str, &str); 3] = [
    ("mvcc", "true"),
    ("types", "relname IN ('everything', 't_text', 'bits_41')"),
    ("ddl", "relname IN ('added_columns', 'dropped_columns', 'wide_1600', 'many_blocks')"),
];

#[test]
fn inspect_takes_a_block_apart_as_pageinspect_does() {
    every_version(|prepared| {
        let mut copy = prepared.copy()?;
        copy.start()?;
        for (database, which) in INSPECTED {
            if copy.psql(database, "CREATE EXTENSION pageinspect").is_err() {
                eprintln!("SKIPPED: no pageinspect for PostgreSQL {}", prepared.major());
                return Ok(());
            }
            let blocks = pageinspect(&copy, database, which)?;
            ensure!(blocks.len() >= 3, "{database}: only {} blocks", blocks.len());
            for block in blocks {
                let shown = inspected(prepared, database, &block)?;
                ensure!(
                    shown == block,
                    "{database}: {}",
                    first_difference("", &shown, &block).unwrap_or_default()
                );
            }
        }
        Ok(())
    });
}

/// The first and the last block of each table, each as one JSON object.
fn pageinspect(copy: &TestCluster, database: &str, which: &str) -> Result<Vec<Value>> {
    let sql = format!(
        "SELECT json_agg(json_build_object('table', relname, 'block', b, \
           'header', json_build_object('lsn', lsn::text, 'flags', flags, 'lower', lower, \
             'upper', upper, 'special', special, 'page_size', pagesize, 'version', version, \
             'prune_xid', prune_xid::text::bigint, 'stored', checksum & 65535, \
             'computed', page_checksum(page, b::bigint) & 65535), \
           'line_pointers', (SELECT coalesce(json_agg(json_build_object('number', lp, 'state', lp_flags, \
             'offset', lp_off, 'length', lp_len, 'xmin', t_xmin::text::bigint, \
             'xmax', t_xmax::text::bigint, 'cid', t_field3, 'ctid', t_ctid::text, \
             'infomask', t_infomask, 'infomask2', t_infomask2, 'hoff', t_hoff, 'null_bitmap', t_bits) \
             ORDER BY lp), '[]') FROM heap_page_items(page)))) \
         FROM pg_class c, LATERAL (SELECT pg_relation_size(c.oid) / 8192 AS blocks) s, \
           LATERAL (SELECT DISTINCT b::int FROM unnest(ARRAY[0, blocks - 1]) b) n, \
           LATERAL (SELECT get_raw_page(c.oid::regclass::text, 'main', b) AS page) p, \
           page_header(page) \
         WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND blocks > 0 AND {which}"
    );
    rows(copy.psql(database, &sql)?.as_bytes())
}

/// The same object from `inspect --json`.
fn inspected(prepared: &Prepared, database: &str, block: &Value) -> Result<Value> {
    let table = format!("public.\"{}\"", block["table"].as_str().context("no name")?);
    let number = block["block"].to_string();
    let args = ["inspect", "-d", database, "-t", &table, "--block", &number, "--json"];
    let shown: Value = serde_json::from_slice(&program().succeed(&prepared.data_dir(), &args)?)?;
    ensure!(shown["is_damaged"] == json!(false), "{table}: {shown}");
    let verdict = if prepared.major() % 2 == 1 { "right" } else { "not verified" };
    ensure!(shown["checksum"]["verdict"] == json!(verdict), "{table}: {}", shown["checksum"]);
    let mut header = shown["header"].clone();
    for name in ["flag_names", "fault"] {
        header.as_object_mut().context("no header")?.remove(name);
    }
    for name in ["stored", "computed"] {
        header[name] = shown["checksum"][name].clone();
    }
    let pointers = shown["line_pointers"].as_array().context("no line pointers")?;
    let expected = block["line_pointers"].as_array().context("no line pointers")?;
    let pointers: Vec<Value> =
        pointers.iter().enumerate().map(|(i, lp)| as_item(lp, expected.get(i))).collect();
    Ok(json!({
        "table": block["table"],
        "block": shown["block"],
        "header": header,
        "line_pointers": pointers,
    }))
}

/// A line pointer with the names of `heap_page_items`. That fills the null bitmap up to a whole byte, with bits
/// that mean nothing, so they are taken over from it.
fn as_item(lp: &Value, expected: Option<&Value>) -> Value {
    let states = ["unused", "normal", "redirect", "dead"];
    let state = states.iter().position(|state| lp["state"] == json!(state));
    let tuple = &lp["tuple"];
    let theirs = expected.and_then(|item| item["null_bitmap"].as_str()).unwrap_or_default();
    let bitmap = tuple["null_bitmap"].as_str().map(|ours| {
        let rest = theirs.get(ours.len()..).unwrap_or_default();
        if rest.len() < 8 { format!("{ours}{rest}") } else { ours.to_owned() }
    });
    json!({
        "number": lp["number"],
        "state": state,
        "offset": lp["offset"],
        "length": lp["length"],
        "xmin": tuple["xmin"],
        "xmax": tuple["xmax"],
        "cid": tuple["cid"],
        "ctid": tuple["ctid"],
        "infomask": tuple["infomask"],
        "infomask2": tuple["infomask2"],
        "hoff": tuple["hoff"],
        "null_bitmap": bitmap,
    })
}

/// Where two JSON values part, as a path.
fn first_difference(path: &str, ours: &Value, theirs: &Value) -> Option<String> {
    match (ours, theirs) {
        _ if ours == theirs => None,
        (Value::Object(ours), Value::Object(theirs)) if ours.len() == theirs.len() => {
            let differing = ours.iter().find(|(name, value)| theirs.get(*name) != Some(value));
            differing.and_then(|(name, value)| {
                let other = theirs.get(name).unwrap_or(&Value::Null);
                first_difference(&format!("{path}.{name}"), value, other)
            })
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            let pairs = ours.iter().zip(theirs).enumerate();
            pairs.into_iter().find_map(|(i, (ours, theirs))| {
                first_difference(&format!("{path}[{i}]"), ours, theirs)
            })
        }
        _ => Some(format!("{path}: {ours} instead of {theirs}")),
    }
}
