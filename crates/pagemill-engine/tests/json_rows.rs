//! Every relation of every fixture as lines of JSON, compared byte for byte with the server's `row_to_json`.
//!
//! The server is asked on a copy of the fixtures' cluster, which is exported when it has stopped. It is asked for blanks in the
//! place of line breaks, which JSON values may have between their tokens, as a row is a line here.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use pagemill_cluster::{Cluster, OpenOptions, UnknownTypes, ValueCatalog};
use pagemill_engine::{
    DamageLog, Error, ExportOptions, OnDamage, PatternTexts, Patterns, Progress, RowForm,
    RowSource, ScanOptions,
};
use pagemill_io::{Storage, WriterSink};
use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::oracle::Table;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{Fixture, PgInstall, TestCluster, every_version};

/// A table, and what the server says to the columns that an export of it has, in UTF-8; `None` when it refuses a text.
type Answer = (Table, Option<Vec<u8>>);

/// What COPY writes in the rows' place.
fn copy(table: &Table, to: &Path) -> String {
    let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
    let columns: Vec<String> = table.columns.iter().map(quoted).collect();
    let rows = format!("SELECT {} FROM ONLY {}", columns.join(", "), table.quoted());
    // Not of every line: of half a character at its end, which "char" of version 14 is, it reads on behind it.
    let line = r"CASE WHEN strpos(line, E'\n') + strpos(line, E'\r') > 0 THEN translate(line, E'\n\r', '  ') ELSE line END";
    let lines =
        format!("SELECT row_to_json(of_table)::text AS line FROM ({rows}) of_table OFFSET 0");
    format!(
        "COPY (SELECT {line} FROM ({lines}) lines) TO '{}' \
         WITH (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02', ENCODING 'UTF8');",
        to.display()
    )
}

/// The answers of a server for tables of a database: one session, in which it writes the files itself.
fn asked(cluster: &TestCluster, database: &str, tables: Vec<Table>) -> Result<Vec<Answer>> {
    let dir = cluster.root().join("json");
    cluster.account().create_dir(&dir)?;
    let file = |table: &Table| dir.join(table.oid.to_string());
    let mut script = String::from("SET client_encoding = 'UTF8';\n");
    for table in &tables {
        // The number of the table is printed where it was not refused.
        let copy = copy(table, &file(table));
        script += &format!("{copy}\n\\if :ERROR\n\\else\n\\qecho {}\n\\endif\n", table.oid);
    }
    let path = dir.join("script.sql");
    fs::write(&path, script)?;
    let arguments = [OsStr::new("-v"), OsStr::new("ON_ERROR_STOP=0"), OsStr::new("-f")];
    let printed = cluster.psql_bytes(database, &[&arguments[..], &[path.as_os_str()]].concat())?;
    let printed = String::from_utf8(printed)?;
    let answered: BTreeSet<u32> = printed.lines().map(str::parse).collect::<Result<_, _>>()?;
    let answer = |table: Table| {
        let is_answered = answered.contains(&table.oid);
        let text = is_answered.then(|| fs::read(file(&table))).transpose()?;
        Ok((table, text))
    };
    tables.into_iter().map(answer).collect()
}

fn exported(catalog: &ValueCatalog, name: &str, scan: ScanOptions) -> Result<Vec<u8>, Error> {
    let database = catalog.database();
    let tables = [name.to_owned()];
    let texts = PatternTexts { tables: &tables, ..PatternTexts::default() };
    let selected = Patterns::parse(texts)?.select(database)?;
    let sources = RowSource::all(database, &selected)?;
    let options = ExportOptions { form: RowForm::Json, scan, ..ExportOptions::default() };
    let mut out = Vec::new();
    let mut sink = WriterSink::new(&mut out, "memory");
    let mut damage = DamageLog::new(OnDamage::Stop);
    let export = sources[0].export(catalog, &options);
    let done = export.write(&mut sink, &Progress::default(), &mut damage)?;
    let lines = out.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines as u64, done.rows, "a row is a line");
    Ok(out)
}

fn first_difference(actual: &[u8], wanted: &[u8]) -> String {
    let lines = |bytes: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
    };
    let (actual, wanted) = (lines(actual), lines(wanted));
    let pairs = actual.iter().zip(&wanted).enumerate();
    let differing = pairs.into_iter().find(|(_, (one, other))| one != other);
    match differing {
        Some((number, (one, other))) => {
            let common = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
            let shown = |text: &str| -> String {
                text.chars().skip(common.saturating_sub(40)).take(120).collect()
            };
            format!("row {number}: {}\n  wanted {}", shown(one), shown(other))
        }
        None => format!("{} rows, wanted {}", actual.len(), wanted.len()),
    }
}

fn check(cluster: &mut TestCluster, fixtures: &[Fixture]) -> Result<usize> {
    let mut answers = Vec::new();
    cluster.start()?;
    for name in fixtures.iter().flat_map(|fixture| fixture.databases()) {
        let mut tables = pagemill_testkit::oracle::expected_tables(cluster, name)?;
        // The catalogs are of no other types than the rest, but for statistics; and a server changes them as it stops.
        tables.retain(|table| table.schema != "pg_catalog" || table.name == "pg_statistic");
        answers.push((name, asked(cluster, name, tables)?));
    }
    cluster.stop()?;
    let opened = Cluster::open(Storage::real(), &cluster.data_dir(), OpenOptions::default())?;
    let mut differences = Vec::new();
    for (name, of_database) in &answers {
        let database = opened.database(name)?;
        let catalog = ValueCatalog::new(&database, UnknownTypes::Refuse)?;
        let differing = of_database.iter().filter_map(|answer| difference(&catalog, answer));
        differences.extend(differing.map(|told| format!("{name} {told}")));
    }
    let told: Vec<_> = differences.iter().take(20).cloned().collect();
    ensure!(differences.is_empty(), "{} differ:\n{}", differences.len(), told.join("\n"));
    Ok(answers.iter().map(|(_, of_database)| of_database.len()).sum())
}

/// What is exported and what the server said, where they are not the same.
fn difference(catalog: &ValueCatalog, (table, wanted): &Answer) -> Option<String> {
    let scan = ScanOptions { jobs: 2, ..ScanOptions::default() };
    let found = match (exported(catalog, &table.quoted(), scan), wanted) {
        (Ok(actual), Some(wanted)) if actual == *wanted => return None,
        (Err(_), None) => return None,
        (Ok(actual), Some(wanted)) => first_difference(&actual, wanted),
        (Ok(_), None) => "the server refuses it".to_owned(),
        (Err(error), Some(_)) => error.to_string(),
    };
    Some(format!("{}: {found}", table.quoted()))
}

#[test]
fn every_type_is_written_as_the_server_writes_it() {
    every_version(|prepared| {
        let tables = check(&mut prepared.copy()?, &[Fixture::Types, Fixture::Toast])?;
        ensure!(tables > 200, "{tables} tables");
        Ok(())
    });
}

#[test]
fn other_encodings_become_utf8_and_what_is_none_is_refused() {
    every_version(|prepared| {
        let tables = check(&mut prepared.copy()?, &[Fixture::Encodings, Fixture::Ddl])?;
        ensure!(tables > 20, "{tables} tables");
        Ok(())
    });
}

/// What the fixtures have not: extensions, json with line breaks at every depth, objects of no attributes, names that need
/// escapes.
const ODD_TABLES: [(&str, &str); 6] = [
    (
        "hstore",
        "SELECT v::hstore AS h, ARRAY[v::hstore] AS a FROM unnest(ARRAY['a=>1, \"q\\\"\"=>NULL, ß=>\"\"', '', NULL]) v",
    ),
    ("citext", "SELECT 'Ä\"r'::citext AS c"),
    ("plpgsql", "SELECT E'{\"a\":\\n[1,\\r\\n2]}'::json AS j, ARRAY[E'[\\n]'::json] AS a"),
    ("plpgsql", "SELECT FROM generate_series(1, 3)"),
    ("plpgsql", "SELECT 1 AS \"a\"\"b\\c\", NULL::text AS \"ü\n\", '\u{1}'::text AS t"),
    (
        "plpgsql",
        "SELECT ARRAY[ROW(1, 'x')::pair, NULL] AS p, ROW(NULL, NULL)::pair AS q, '{}'::int[] AS e, '[0:1][2:3]={{1,2},{3,4}}'::int[] AS m",
    ),
];

#[test]
fn extensions_and_what_is_odd_are_written_as_the_server_writes_them() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut cluster = empty_cluster(&install).unwrap();
    cluster.start().unwrap();
    cluster.psql("postgres", "CREATE TYPE pair AS (a int, \"b\"\"\" text)").unwrap();
    for (number, (extension, query)) in ODD_TABLES.iter().enumerate() {
        let create = format!("CREATE EXTENSION IF NOT EXISTS {extension}");
        cluster.psql("postgres", &create).unwrap();
        cluster.psql("postgres", &format!("CREATE TABLE odd{number} AS {query}")).unwrap();
    }
    cluster.stop().unwrap();
    let tables = check_odd(&mut cluster).unwrap();
    assert_eq!(tables, ODD_TABLES.len());
}

fn check_odd(cluster: &mut TestCluster) -> Result<usize> {
    cluster.start()?;
    let tables = pagemill_testkit::oracle::expected_tables(cluster, "postgres")?;
    let own: Vec<Table> =
        tables.into_iter().filter(|table| table.name.starts_with("odd")).collect();
    let answers = asked(cluster, "postgres", own)?;
    cluster.stop()?;
    let opened = Cluster::open(Storage::real(), &cluster.data_dir(), OpenOptions::default())?;
    let database = opened.database("postgres")?;
    let catalog = ValueCatalog::new(&database, UnknownTypes::Refuse)?;
    for (table, wanted) in &answers {
        let Some(wanted) = wanted else { bail!("{}: no answer", table.name) };
        let actual = exported(&catalog, &table.quoted(), ScanOptions::default())?;
        ensure!(actual == *wanted, "{}: {}", table.name, first_difference(&actual, wanted));
    }
    Ok(answers.len())
}
