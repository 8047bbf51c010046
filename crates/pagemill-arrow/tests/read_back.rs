//! Every relation of every fixture as Parquet and as an Arrow stream, read back and compared value by value with what the
//! PostgreSQL server printed for it with COPY.
//!
//! What was read back is printed again by the type of its Arrow array. A table with a value that does not fit is refused first,
//! by the name of its row, and then written with the options that let everything through.

mod printing;

use std::fs::File;

use anyhow::{Context as _, Result, bail, ensure};
use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_schema::DataType;
use pagemill_arrow::{
    ArrayChoice, ArrowExport, ArrowOptions, Error, FileFormat, InfinityChoice, NumericChoice,
};
use pagemill_cluster::{Cluster, OpenOptions, UnknownTypes, ValueCatalog};
use pagemill_engine::{
    DamageLog, OnDamage, PatternTexts, Patterns, Progress, RowSource, ScanOptions, encoding,
};
use pagemill_io::{HostFiles, Output, Storage};
use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{CopyFormat, Fixture, PgInstall, Prepared, every_version};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use printing::{Printed, printed_rows};

/// What a server printed: rows of texts, in UTF-8.
fn expected_rows(bytes: &[u8], from: i32, width: usize) -> Result<Vec<Vec<Printed>>> {
    let mut text = Vec::new();
    match encoding::Transcoder::new(from, "UTF8")? {
        Some(transcoder) => transcoder.convert(bytes, &mut text)?,
        None => text.extend_from_slice(bytes),
    }
    // PostgreSQL 14 prints every byte of "char" as it is.
    str::from_utf8(&text).context("a text that is not UTF-8")?;
    let lines = text.strip_suffix(b"\n").map(|text| text.split(|byte| *byte == b'\n'));
    let fields = |line: &[u8]| match width {
        0 => Vec::new(),
        _ => line.split(|byte| *byte == b'\t').map(unescaped).collect(),
    };
    Ok(lines.into_iter().flatten().map(fields).collect())
}

/// A field of COPY's text format.
fn unescaped(field: &[u8]) -> Printed {
    if field == b"\\N" {
        return None;
    }
    let (mut found, mut bytes) = (Vec::new(), field.iter());
    while let Some(byte) = bytes.next() {
        found.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'b') => 8,
                Some(b'f') => 12,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'v') => 11,
                other => *other.unwrap_or(&b'\\'),
            },
            plain => *plain,
        });
    }
    Some(String::from_utf8_lossy(&found).into_owned())
}

fn export(
    catalog: &ValueCatalog,
    source: &RowSource<'_>,
    options: &ArrowOptions,
) -> Result<Vec<RecordBatch>, Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let progress = Progress::default();
    let options = &ArrowOptions { redo_end: Some("0/1".to_owned()), ..options.clone() };
    let export = ArrowExport::prepare(source, catalog, options, &progress)?;
    let mut output = Output::file(&HostFiles::real(), &path).unwrap();
    let mut damage = DamageLog::new(OnDamage::Stop);
    let done = export.write(&mut output, &progress, &mut damage)?;
    output.finish().unwrap();
    let file = File::open(&path).unwrap();
    let batches: Vec<RecordBatch> = match options.format {
        FileFormat::Parquet => {
            let reader = ParquetRecordBatchReaderBuilder::try_new(file)?.build()?;
            reader.collect::<Result<_, _>>()?
        }
        _ => StreamReader::try_new(file, None)?.collect::<Result<_, _>>()?,
    };
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows as u64, done.rows);
    Ok(batches)
}

/// Options with which nothing is refused.
fn lenient(options: &ArrowOptions) -> ArrowOptions {
    ArrowOptions {
        numeric: NumericChoice::Text,
        infinity: InfinityChoice::Null,
        arrays: ArrayChoice::Text,
        ..options.clone()
    }
}

/// True for what `InfinityChoice::Null` makes NULL, and for what has it inside.
fn may_be_null(text: &str) -> bool {
    let is_late = |word: &str| {
        word.len() == 6 && word.bytes().all(|b| b.is_ascii_digit()) && word >= "294247"
    };
    ["infinity", "24:00:00"].iter().any(|word| text.contains(word))
        || text.split(['-', '"', '(', ',', '{']).any(is_late)
}

#[derive(Default)]
struct Tally {
    tables: usize,
    values: usize,
    refused: usize,
}

/// What the server printed of a table, and its columns.
struct Expected<'a> {
    text: Vec<u8>,
    columns: &'a [String],
}

fn check_table(
    catalog: &ValueCatalog,
    quoted: &str,
    expected: &Expected<'_>,
    options: &ArrowOptions,
    tally: &mut Tally,
) -> Result<()> {
    let database = catalog.database();
    let tables = [quoted.to_owned()];
    let texts = PatternTexts { tables: &tables, ..PatternTexts::default() };
    let selected = Patterns::parse(texts)?.select(database)?;
    let sources = RowSource::all(database, &selected)?;
    let [source] = &sources[..] else { bail!("{} relations of this name", sources.len()) };
    let width = expected.columns.len();
    let Ok(wanted) = expected_rows(&expected.text, database.row().encoding, width) else {
        // What is no text in UTF-8, or cannot be made one, is refused.
        ensure!(export(catalog, source, options).is_err(), "a text that is not UTF-8 was written");
        return Ok(());
    };
    let (batches, is_lenient) = match export(catalog, source, options) {
        Ok(batches) => (batches, false),
        Err(Error::Unfit(unfit)) => {
            ensure!(expected.columns.contains(&unfit.column), "{unfit}");
            tally.refused += 1;
            (export(catalog, source, &lenient(options))?, true)
        }
        Err(Error::Encoding(_)) if width == 0 => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let actual: Vec<Vec<Printed>> = batches.iter().flat_map(printed_rows).collect();
    ensure!(actual.len() == wanted.len(), "{} rows, not {}", actual.len(), wanted.len());
    let types: Vec<DataType> = batches
        .first()
        .map(|batch| batch.schema().fields().iter().map(|f| f.data_type().clone()).collect())
        .unwrap_or_default();
    for (number, (actual, wanted)) in actual.iter().zip(&wanted).enumerate() {
        for (at, (actual, wanted)) in actual.iter().zip(wanted).enumerate() {
            let name = &expected.columns[at];
            let was_let_through = is_lenient && wanted.as_deref().is_some_and(may_be_null);
            ensure!(
                printing::same(&types[at], actual, wanted) || was_let_through,
                "row {number}, {name}: {actual:?}, not {wanted:?}"
            );
            tally.values += 1;
        }
    }
    tally.tables += 1;
    Ok(())
}

fn check_fixture(prepared: &Prepared, fixture: Fixture, options: &ArrowOptions) -> Result<Tally> {
    let cluster = Cluster::open(Storage::real(), &prepared.data_dir(), OpenOptions::default())?;
    let (mut tally, mut differences) = (Tally::default(), Vec::new());
    for name in fixture.databases() {
        let expected = prepared.database(name)?;
        let database = cluster.database(name)?;
        let catalog = ValueCatalog::new(&database, UnknownTypes::Refuse)?;
        for table in &expected.tables {
            let text = expected.expected(table, CopyFormat::Text)?;
            let printed = Expected { text, columns: &table.columns };
            let quoted = table.quoted();
            let done = check_table(&catalog, &quoted, &printed, options, &mut tally)
                .with_context(|| format!("{name} {quoted}"));
            differences.extend(done.err().map(|error| format!("{error:#}")));
        }
    }
    let told: Vec<_> = differences.iter().take(20).cloned().collect();
    ensure!(differences.is_empty(), "{} differ:\n{}", differences.len(), told.join("\n"));
    Ok(tally)
}

#[test]
fn every_type_is_read_back_from_parquet_as_the_server_prints_it() {
    every_version(|prepared| {
        let tally = check_fixture(prepared, Fixture::Types, &ArrowOptions::default())?;
        let Tally { tables, values, refused } = tally;
        ensure!(tables > 200 && values > 50_000 && refused > 2, "{tables} {values} {refused}");
        Ok(())
    });
}

#[test]
fn toasted_values_are_read_back_from_an_arrow_stream() {
    every_version(|prepared| {
        let scan = ScanOptions { jobs: 3, ..ScanOptions::default() };
        let format = FileFormat::ArrowStream;
        let options = ArrowOptions { format, scan, ..ArrowOptions::default() };
        check_fixture(prepared, Fixture::Toast, &options).map(drop)
    });
}

#[test]
fn rows_that_are_visible_and_those_of_other_encodings_are_read_back() {
    every_version(|prepared| {
        for fixture in [Fixture::Mvcc, Fixture::Ddl, Fixture::Encodings] {
            check_fixture(prepared, fixture, &ArrowOptions::default())?;
        }
        Ok(())
    });
}

/// Extensions, a column of each, and values of it.
const EXTENSIONS: [(&str, &str, &str); 6] = [
    ("hstore", "hstore", "('a=>1, \"q\\\"\"=>NULL, ß=>\"\"'), (''), (NULL)"),
    ("ltree", "ltree", "('Top.Science.Astronomy'), ('x'), (''), (NULL)"),
    ("citext", "citext", "('Ärger'), (NULL)"),
    ("vector", "vector(3)", "('[1,2.5,-3e20]'), (NULL), ('[0,0,1e-7]')"),
    ("vector", "vector", "('[1,2]'), (NULL), ('[7]')"),
    (
        "postgis",
        "geometry",
        "('POINT(1 2)'), ('SRID=4326;POLYGON((0 0,1 0,1 1,0 0))'), ('POINT EMPTY'), \
         ('GEOMETRYCOLLECTION(POINT Z (1 2 3), LINESTRING Z (0 0 1, 1 1 1))'), (NULL)",
    ),
];

#[test]
fn types_of_extensions_are_read_back() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut cluster = empty_cluster(&install).unwrap();
    cluster.start().unwrap();
    let mut made = Vec::new();
    for (number, (extension, column, values)) in EXTENSIONS.iter().enumerate() {
        let create = format!("CREATE EXTENSION IF NOT EXISTS {extension}");
        if let Err(error) = cluster.psql("postgres", &create) {
            println!("skipped {column}: {error:#}");
            continue;
        }
        let fill =
            format!("CREATE TABLE t{number} (v {column}); INSERT INTO t{number} VALUES {values}");
        cluster.psql("postgres", &fill).unwrap();
        let text = cluster.copy_out("postgres", &format!("COPY t{number} TO STDOUT")).unwrap();
        made.push((format!("t{number}"), text));
    }
    cluster.stop().unwrap();
    let opened =
        Cluster::open(Storage::real(), &cluster.data_dir(), OpenOptions::default()).unwrap();
    let database = opened.database("postgres").unwrap();
    let catalog = ValueCatalog::new(&database, UnknownTypes::Refuse).unwrap();
    assert!(made.len() >= 3, "hstore, ltree and citext are PostgreSQL's own");
    for (table, text) in made {
        let columns = ["v".to_owned()];
        let expected = Expected { text, columns: &columns };
        let mut tally = Tally::default();
        let options = ArrowOptions::default();
        check_table(&catalog, &table, &expected, &options, &mut tally)
            .unwrap_or_else(|error| panic!("{table}: {error:#}"));
    }
}
