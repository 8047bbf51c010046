//! Every relation of every fixture as lines of JSON, compared byte for byte with the server's `row_to_json`.
//!
//! The server is asked on a copy of the fixtures' cluster, which is exported when it has stopped. It is asked for blanks in the
//! place of line breaks, which JSON values may have between their tokens, as a row is a line here.

use anyhow::{Result, bail, ensure};
use pagemill_cluster::{Cluster, Database, OpenOptions, UnknownTypes, ValueCatalog};
use pagemill_engine::{
    DamageLog, Error, ExportOptions, OnDamage, PatternTexts, Patterns, Progress, RowForm,
    RowSource, ScanOptions,
};
use pagemill_io::{Storage, WriterSink};
use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::oracle::Table;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{Fixture, PgInstall, TestCluster, every_version};

/// What the server says to the columns that an export has, in UTF-8; `None` when it refuses a text.
fn asked(cluster: &TestCluster, database: &str, table: &Table) -> Option<Vec<u8>> {
    let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
    let columns: Vec<String> = table.columns.iter().map(quoted).collect();
    let rows = format!("SELECT {} FROM ONLY {}", columns.join(", "), table.quoted());
    let line = r"translate(row_to_json(of_table)::text, E'\n\r', '  ')";
    let copy = format!(
        "COPY (SELECT {line} FROM ({rows}) of_table) TO STDOUT \
         WITH (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02', ENCODING 'UTF8')"
    );
    let args = ["-q", "-c", "SET client_encoding = 'UTF8'", "-c", &copy];
    cluster.psql_bytes(database, &args).ok()
}

fn exported(database: &Database, name: &str, scan: ScanOptions) -> Result<Vec<u8>, Error> {
    let catalog = ValueCatalog::new(database, UnknownTypes::Refuse)?;
    let tables = [name.to_owned()];
    let texts = PatternTexts { tables: &tables, ..PatternTexts::default() };
    let selected = Patterns::parse(texts)?.select(database)?;
    let sources = RowSource::all(database, &selected)?;
    let options = ExportOptions { form: RowForm::Json, scan, ..ExportOptions::default() };
    let mut out = Vec::new();
    let mut sink = WriterSink::new(&mut out, "memory");
    let mut damage = DamageLog::new(OnDamage::Stop);
    let export = sources[0].export(&catalog, &options);
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
        for table in pagemill_testkit::oracle::expected_tables(cluster, name)? {
            // The catalogs are of no other types than the rest, but for statistics; and a server changes them as it stops.
            if table.schema != "pg_catalog" || table.name == "pg_statistic" {
                answers.push((name, asked(cluster, name, &table), table));
            }
        }
    }
    cluster.stop()?;
    let opened = Cluster::open(Storage::real(), &cluster.data_dir(), OpenOptions::default())?;
    let mut differences = Vec::new();
    for (name, wanted, table) in &answers {
        let scan = ScanOptions { jobs: 2, ..ScanOptions::default() };
        let actual = exported(&opened.database(name)?, &table.quoted(), scan);
        let found = match (actual, wanted) {
            (Ok(actual), Some(wanted)) if actual == *wanted => continue,
            (Err(_), None) => continue,
            (Ok(actual), Some(wanted)) => first_difference(&actual, wanted),
            (Ok(_), None) => "the server refuses it".to_owned(),
            (Err(error), Some(_)) => error.to_string(),
        };
        differences.push(format!("{name} {}: {found}", table.quoted()));
    }
    let told: Vec<_> = differences.iter().take(20).cloned().collect();
    ensure!(differences.is_empty(), "{} differ:\n{}", differences.len(), told.join("\n"));
    Ok(answers.len())
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
    let answers: Vec<_> = own.iter().map(|table| asked(cluster, "postgres", table)).collect();
    cluster.stop()?;
    let opened = Cluster::open(Storage::real(), &cluster.data_dir(), OpenOptions::default())?;
    let database = opened.database("postgres")?;
    for (table, wanted) in own.iter().zip(&answers) {
        let Some(wanted) = wanted else { bail!("{}: no answer", table.name) };
        let actual = exported(&database, &table.quoted(), ScanOptions::default())?;
        ensure!(actual == *wanted, "{}: {}", table.name, first_difference(&actual, wanted));
    }
    Ok(own.len())
}
