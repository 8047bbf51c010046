//! The library against the server: every row of every fixture, pulled one by one, is what COPY prints, and each value
//! that is decoded says the same as its text.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use pagemill::{
    BlockNumber, Cluster, Error, ExportOptions, Progress, Row, ScanOptions, Tid, Value,
};
use pagemill_cluster::{ClassRow, Persistence, RelationKind};
use pagemill_engine::{
    DamageLog, OnDamage, RowFetch, ScanRequest, Table as EngineTable, TableScan, TupleRow,
};
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
    // The catalogs are much the same in all of them.
    let is_wanted = |schema: &str| name == "types" || schema != "pg_catalog";
    for expected in prepared_database.tables.iter().filter(|table| is_wanted(&table.schema)) {
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
    ensure!(with_rows > 10, "{name}: only {with_rows} tables have rows");
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

#[test]
fn rows_in_the_order_of_an_index_are_all_rows_in_that_order() {
    every_version(|prepared| {
        let database = Cluster::open(prepared.data_dir())?.database("mvcc")?;
        let table = database.table("pg_catalog.pg_attribute")?;
        let columns = ["attrelid", "attnum", "attname"];
        let mut keys = [false, true].map(|backward| {
            let mut rows =
                table.rows_in_order("pg_attribute_relid_attnum_index", backward, &columns)?;
            let mut keys = Vec::new();
            while let Some(mut row) = rows.next_row()? {
                let Some(Value::Oid(relation)) = row.value(0)? else { panic!("no oid") };
                let Some(Value::Int2(number)) = row.value(1)? else { panic!("no number") };
                keys.push((relation, number, row.tid()));
            }
            Ok::<_, Error>(keys)
        });
        let [forward, backward] = &mut keys;
        let (forward, backward) = (forward.as_mut().unwrap(), backward.as_mut().unwrap());
        ensure!(forward.is_sorted_by_key(|(relation, number, _)| (*relation, *number)));
        backward.reverse();
        ensure!(forward == backward && forward.len() as u64 == table.count()?);
        let wrong = table.rows_in_order("pg_class_oid_index", false, &columns).err();
        ensure!(wrong.context("found")?.to_string().contains("is an index of pg_class"));
        Ok(())
    });
}

#[test]
fn what_is_copied_to_any_writer_is_what_copy_prints() {
    every_version(|prepared| {
        let prepared_database = prepared.database("ddl")?;
        let database = Cluster::open(prepared.data_dir())?.database("ddl")?;
        for expected in &prepared_database.tables {
            let mut text = Vec::new();
            let table = database.table(&expected.quoted())?;
            let rows = table.copy_to(&mut text, &ExportOptions::default())?;
            ensure!(rows == table.count()?, "{}", table.name());
            let copied = prepared_database.expected(expected, CopyFormat::Text)?;
            ensure!(text == copied, "{} differs", table.name());
        }
        Ok(())
    });
}

/// Rows of the "mvcc" fixture have every kind of fate; each is asked for by its address, in another order than the file's.
#[test]
fn rows_fetched_by_address_are_those_that_a_scan_hands_out() {
    every_version(|prepared| {
        let storage = pagemill::Storage::real();
        let options = pagemill::OpenOptions::default();
        let cluster = pagemill_cluster::Cluster::open(storage, &prepared.data_dir(), options)?;
        let database = cluster.database("mvcc")?;
        let mut damage = DamageLog::new(OnDamage::Stop);
        let mut fetched = 0;
        let tables = database.classes().iter().filter(|class| class.kind == RelationKind::Table);
        let own =
            |class: &&ClassRow| class.oid.0 >= 16384 && class.persistence != Persistence::Temporary;
        for class in tables.filter(own) {
            let table = database.relation(class)?;
            let table = Arc::new(EngineTable::open(&database, table, &mut damage)?);
            let columns: Vec<usize> = (0..table.relation.columns.len()).collect();
            let (options, progress) = (ScanOptions::default(), Progress::default());
            let request =
                ScanRequest { cluster: &cluster, table: &table, options, progress: &progress };
            let mut scan = TableScan::new(request, &columns)?;
            let mut rows = Vec::new();
            let values = |row: &TupleRow<'_>| -> Vec<_> {
                (0..columns.len()).map(|column| row.raw(column).map(<[u8]>::to_vec)).collect()
            };
            while let Some(batch) = scan.next_batch(&mut damage)? {
                rows.extend(batch.rows().map(|row| (row.tid(), values(&row))));
            }
            rows.sort_by_key(|(tid, _)| (tid.line_pointer, tid.block.0));
            let mut fetch = RowFetch::new(request, &columns, 1 << 20);
            fetch.will_want(rows.iter().map(|(tid, _)| *tid));
            for (tid, expected) in &rows {
                let row =
                    fetch.fetch(*tid, &mut damage)?.context("a row that a scan saw is gone")?;
                ensure!(values(&row) == *expected, "{} {tid}", table.relation.display_name());
                fetched += 1;
            }
            let seen: HashSet<_> = rows.iter().map(|(tid, _)| *tid).collect();
            for tid in (0..table.blocks().min(3)).flat_map(|block| {
                (0..300).map(move |line_pointer| Tid { block: BlockNumber(block), line_pointer })
            }) {
                let there = fetch.fetch(tid, &mut damage)?.is_some();
                ensure!(there == seen.contains(&tid), "{} {tid}", table.relation.display_name());
            }
        }
        ensure!(fetched > 1000, "only {fetched} rows");
        Ok(())
    });
}
