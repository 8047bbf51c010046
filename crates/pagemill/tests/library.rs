//! The library against the server: every row of every fixture, pulled one by one, is what COPY prints, and each value
//! that is decoded says the same as its text.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use pagemill::{Cluster, Error, Progress, Row, Value};
use pagemill_engine::ScanOptions;
use pagemill_testkit::{CopyFormat, Prepared, every_version};

/// A field as COPY's text format has it.
fn escaped(text: Option<&[u8]>, line: &mut Vec<u8>) {
    let Some(text) = text else { return line.extend_from_slice(b"\\N") };
    for byte in text {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            8 => line.extend_from_slice(b"\\b"),
            9 => line.extend_from_slice(b"\\t"),
            10 => line.extend_from_slice(b"\\n"),
            11 => line.extend_from_slice(b"\\v"),
            12 => line.extend_from_slice(b"\\f"),
            13 => line.extend_from_slice(b"\\r"),
            other => line.push(*other),
        }
    }
}

/// What the text of a decoded value must be, where it is simple to say.
fn text_of(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::Bool(value) => if *value { "t" } else { "f" }.to_owned(),
        Value::Int2(value) => value.to_string(),
        Value::Int4(value) => value.to_string(),
        Value::Int8(value) => value.to_string(),
        Value::Numeric(numeric) => match numeric.scaled(0) {
            Some(whole) => whole.to_string(),
            None => return None,
        },
        Value::Inet { address: std::net::IpAddr::V4(address), bits: 32 } => address.to_string(),
        _ => return None,
    })
}

fn check_value(
    row: &mut Row<'_>,
    column: usize,
    is_xml: bool,
    seen: &mut BTreeMap<String, usize>,
) -> Result<()> {
    let value = row.value(column)?;
    let (name, expected, bytes) = match &value {
        None => ("null".to_owned(), None, None),
        // The server prints XML without the declaration that is stored.
        Some(Value::Text(text)) => ("Text".to_owned(), None, (!is_xml).then(|| text.to_vec())),
        Some(value) => {
            let name = format!("{value:?}");
            let end = name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len());
            (name[..end].to_owned(), text_of(value), None)
        }
    };
    let is_null = value.is_none();
    *seen.entry(name).or_default() += 1;
    let text = row.bytes(column)?;
    ensure!(is_null == text.is_none(), "NULL in one and not in the other");
    if let (Some(expected), Some(text)) = (expected, text) {
        let printed = String::from_utf8_lossy(text);
        let whole = printed.split_once('.').map_or(&*printed, |(whole, _)| whole);
        let same = [&*printed, whole].iter().any(|one| one.trim_end_matches("/32") == expected);
        ensure!(same, "decoded {expected}, printed {printed}");
    }
    if let Some(bytes) = bytes {
        ensure!(text == Some(&bytes[..]), "decoded another text than was printed");
    }
    Ok(())
}

fn rows_of(table: &pagemill::Table, seen: &mut BTreeMap<String, usize>) -> Result<(Vec<u8>, u64)> {
    let width = table.columns().len();
    let (mut text, mut count) = (Vec::new(), 0);
    let mut rows = table.rows(&[])?;
    while let Some(mut row) = rows.next_row()? {
        count += 1;
        for column in 0..width {
            let place = format!("{} {}, column {column}", table.name(), row.tid());
            check_value(&mut row, column, table.columns()[column].type_name == "xml", seen)
                .context(place)?;
            if column > 0 {
                text.push(b'\t');
            }
            escaped(row.bytes(column)?, &mut text);
        }
        text.push(b'\n');
    }
    Ok((text, count))
}

fn compare_database(prepared: &Prepared, name: &str) -> Result<BTreeMap<String, usize>> {
    let mut seen = BTreeMap::new();
    let prepared_database = prepared.database(name)?;
    let database = Cluster::open(prepared.data_dir())?.database(name)?;
    let mut with_rows = 0;
    for expected in &prepared_database.tables {
        let table = database.table(&expected.quoted())?;
        // COPY prints no generated columns.
        let generated = table.columns().len() != expected.columns.len();
        let (rows, count) = rows_of(&table, &mut seen)?;
        ensure!(count == table.count()?, "{}: rows and their count differ", table.name());
        if !generated {
            let copied = prepared_database.expected(expected, CopyFormat::Text)?;
            ensure!(rows == copied, "{name}: {} differs", table.name());
        }
        with_rows += usize::from(count > 0);
    }
    ensure!(with_rows > 40, "{name}: only {with_rows} tables have rows");
    Ok(seen)
}

#[test]
fn every_row_pulled_is_what_copy_prints_and_every_value_says_the_same() {
    every_version(|prepared| {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for name in ["types", "toast", "mvcc", "ddl"] {
            for (kind, count) in compare_database(prepared, name)? {
                *seen.entry(kind).or_default() += count;
            }
        }
        let kinds = [
            "Array",
            "Bits",
            "Bool",
            "Bytes",
            "Composite",
            "Date",
            "Float8",
            "Inet",
            "Int2",
            "Int4",
            "Int8",
            "Interval",
            "Jsonb",
            "Multirange",
            "Numeric",
            "Oid",
            "Point",
            "Range",
            "Text",
            "Time",
            "TimeTz",
            "Timestamp",
            "Uuid",
        ];
        for kind in kinds {
            ensure!(seen.contains_key(kind), "no value was decoded as {kind}: {seen:?}");
        }
        Ok(())
    });
}

#[test]
fn a_cancelled_scan_hands_out_nothing_more() {
    every_version(|prepared| {
        let table = Cluster::open(prepared.data_dir())?
            .database("types")?
            .table("pg_catalog.pg_attribute")?;
        let progress = Progress::default();
        let mut rows = table.rows_with(&["attname"], ScanOptions::default(), &progress)?;
        ensure!(rows.next_row()?.is_some());
        progress.cancel();
        let mut more = 0;
        let ended = loop {
            match rows.next_row() {
                Ok(Some(_)) => more += 1,
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        ensure!(matches!(ended, Some(Error::Cancelled)), "{ended:?}");
        ensure!(more < 200, "{more} rows after it was cancelled: more than a page has");
        Ok(())
    });
}

#[test]
fn what_does_not_exist_is_an_error_with_its_name() {
    every_version(|prepared| {
        let database = Cluster::open(prepared.data_dir())?.database("types")?;
        let missing = database.table("no_such_table").err().context("found")?.to_string();
        ensure!(missing.contains("no_such_table"), "{missing}");
        let table = database.table("pg_catalog.pg_class")?;
        let missing = table.rows(&["no_such_column"]).err().context("found")?.to_string();
        ensure!(missing.contains("no_such_column"), "{missing}");
        Ok(())
    });
}
