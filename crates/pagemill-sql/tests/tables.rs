//! Every relation of the fixtures, catalogs included, read by SELECT: the judge is what the server's COPY wrote of it.
//!
//! So each type that exists in them is carried and printed right, and nothing that a table can be makes a query shorter.

use anyhow::{Context as _, Result, ensure};
use pagemill_cluster::{Cluster, OpenOptions};
use pagemill_engine::{OnDamage, ScanOptions};
use pagemill_io::Storage;
use pagemill_sql::output::{Output, OutputFormat};
use pagemill_sql::session::{Session, SessionOptions, TextOrder};
use pagemill_testkit::prepared::{Prepared, PreparedDatabase};
use pagemill_testkit::{CopyFormat, PgInstall};
use tokio::runtime::{Builder, Runtime};

/// What may be refused: an order of bytes is not text in a database without an encoding; a number that is none does not fit a
/// column of declared digits; and of a type whose code is not there only the bytes are known.
const REFUSED: [&str; 3] =
    ["invalid byte sequence for encoding UTF8", "NaN, which no decimal is", "the text of type"];

#[test]
fn every_table_is_read_as_copy_writes_it() -> Result<()> {
    let install = PgInstall::find(15).context("no PostgreSQL 15")?;
    let prepared = Prepared::shared(&install)?;
    let cluster = Cluster::open(Storage::real(), &prepared.data_dir(), OpenOptions::default())?;
    let runtime = Builder::new_multi_thread().worker_threads(2).build()?;
    let (mut read, mut refused, mut wrong) = (0, 0, Vec::new());
    for database in prepared.databases() {
        let scan = ScanOptions::default();
        let options = SessionOptions {
            jobs: 2,
            memory: None,
            scan,
            on_damage: OnDamage::Stop,
            text_order: TextOrder::default(),
        };
        let session = match Session::open(&cluster.database(&database.name)?, options) {
            Err(error) if error.to_string().starts_with("SQL on a database in ") => continue,
            opened => opened?,
        };
        for table in &database.tables {
            match compare(&runtime, &session, database, table) {
                Ok(()) => read += 1,
                Err(error) if REFUSED.iter().any(|why| error.to_string().contains(why)) => {
                    refused += 1
                }
                Err(error) => {
                    wrong.push(format!("{}: {}: {error}", database.name, table.quoted()));
                }
            }
        }
    }
    ensure!(wrong.is_empty(), "{} tables:\n{}", wrong.len(), wrong.join("\n"));
    ensure!(read > 500 && refused < read / 20, "{read} read, {refused} refused");
    Ok(())
}

fn compare(
    runtime: &Runtime,
    session: &Session,
    database: &PreparedDatabase,
    table: &pagemill_testkit::Table,
) -> Result<()> {
    let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
    let columns: Vec<String> = table.columns.iter().map(quoted).collect();
    if columns.is_empty() {
        return Ok(());
    }
    let statement = format!("select {} from only {}", columns.join(", "), table.quoted());
    let mut output = Output::new(OutputFormat::Csv, Vec::new());
    for parsed in Session::parse(&statement)? {
        runtime.block_on(session.run(&parsed, &mut output))?;
    }
    let mut lines = copy_text(&String::from_utf8(output.into_inner())?, columns.len());
    ensure!(!lines.is_empty(), "no header");
    lines.remove(0);
    let expected =
        String::from_utf8_lossy(&database.expected(table, CopyFormat::Text)?).into_owned();
    let mut expected: Vec<&str> = expected.lines().collect();
    // Two threads hand over their rows as they come.
    lines.sort_unstable();
    expected.sort_unstable();
    let differing = lines.iter().zip(&expected).find(|(ours, theirs)| ours != theirs);
    ensure!(differing.is_none(), "{differing:?}");
    ensure!(lines.len() == expected.len(), "{} rows for {}", lines.len(), expected.len());
    Ok(())
}

/// CSV as lines of COPY's text format: a value without quotes and characters is NULL.
fn copy_text(csv: &str, width: usize) -> Vec<String> {
    let (mut lines, mut row): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut rest = csv;
    while !rest.is_empty() {
        let (value, after) = match rest.strip_prefix('"') {
            Some(quoted) => unquoted(quoted),
            None => {
                let end = rest.find([',', '\n']).unwrap_or(rest.len());
                let value = if end == 0 { "\\N".to_owned() } else { escaped(&rest[..end]) };
                (value, &rest[end..])
            }
        };
        row.push(value);
        rest = &after[1..];
        if row.len() == width {
            assert!(after.starts_with('\n'), "a row ends with its line");
            lines.push(row.join("\t"));
            row.clear();
        }
    }
    lines
}

/// A value up to its closing quote, and what comes behind that.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"').expect("a quote is closed");
        value.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                value.push('"');
                rest = more;
            }
            None => return (escaped(&value), rest),
        }
    }
}

fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c => out.push(c),
        }
    }
    out
}
