//! Tables as directories by the values of columns, and arrays as JSON, read back and compared with what the server printed.
//!
//! Must hold: names and files together have every row once, and of what is refused nothing is left.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int32Type;
use arrow_array::{Array as _, RecordBatch};
use pagemill_arrow::{ArrayChoice, ArrowExport, ArrowOptions, Error, FileFormat};
use pagemill_cluster::{Cluster, OpenOptions, UnknownTypes, ValueCatalog};
use pagemill_engine::{
    DamageLog, OnDamage, PatternTexts, Patterns, Progress, RowSource, ScanOptions,
};
use pagemill_io::{HostFiles, OutputDirectory, Storage};
use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{PgInstall, TestCluster};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// A stopped cluster with tables that these statements made.
fn filled(statements: &[&str]) -> TestCluster {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut cluster = empty_cluster(&install).unwrap();
    cluster.start().unwrap();
    for statement in statements {
        cluster.psql("postgres", statement).unwrap();
    }
    cluster
}

/// Works with one table of a stopped cluster.
fn with_table<T>(
    cluster: &TestCluster,
    table: &str,
    options: &ArrowOptions,
    work: impl FnOnce(&ArrowExport<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let opened = Cluster::open(Storage::real(), &cluster.data_dir(), OpenOptions::default())?;
    let database = opened.database("postgres")?;
    let catalog = ValueCatalog::new(&database, UnknownTypes::Refuse)?;
    let tables = [table.to_owned()];
    let texts = PatternTexts { tables: &tables, ..PatternTexts::default() };
    let selected = Patterns::parse(texts).unwrap().select(&database)?;
    let sources = RowSource::all(&database, &selected)?;
    work(&ArrowExport::prepare(&sources[0], &catalog, options, &Progress::default())?)
}

fn by(columns: &[&str], jobs: usize) -> ArrowOptions {
    ArrowOptions {
        partition_by: columns.iter().map(|name| name.as_bytes().into()).collect(),
        scan: ScanOptions { jobs, ..ScanOptions::default() },
        ..ArrowOptions::default()
    }
}

fn partitioned(
    cluster: &TestCluster,
    table: &str,
    options: &ArrowOptions,
    target: &Path,
) -> Result<u64, Error> {
    with_table(cluster, table, options, |export| {
        let directory = OutputDirectory::new(&HostFiles::real(), target).unwrap();
        let mut damage = DamageLog::new(OnDamage::Stop);
        let done = export.write_partitioned(&directory, &Progress::default(), &mut damage)?;
        directory.finish().unwrap();
        Ok(done.rows)
    })
}

/// What a directory's name stands for, without the column's.
fn value_of(name: &str) -> String {
    let (_, value) = name.split_once('=').unwrap();
    let (mut bytes, mut rest) = (Vec::new(), value.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            plain => plain,
        });
    }
    String::from_utf8(bytes).unwrap()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn batches(file: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(file).unwrap()).unwrap();
    reader.build().unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn the_rows_of_all_directories_are_those_of_the_table() {
    let mut cluster = filled(&[
        "CREATE TABLE t AS SELECT i AS v, CASE WHEN i % 7 = 0 THEN NULL ELSE 'a/b=ü%' || i % 5 END AS k, \
         i % 3 = 0 AS b, timestamp '2024-01-01' + (i % 4) * interval '90 min' AS at FROM generate_series(1, 50000) i",
    ]);
    let copy =
        "COPY (SELECT v, coalesce(k, '__HIVE_DEFAULT_PARTITION__'), b::text, at FROM t) TO STDOUT";
    let text = String::from_utf8(cluster.copy_out("postgres", copy).unwrap()).unwrap();
    cluster.stop().unwrap();
    let wanted: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    let dir = tempfile::tempdir().unwrap();
    for jobs in [1, 3] {
        let target = dir.path().join(format!("by{jobs}"));
        let rows = partitioned(&cluster, "t", &by(&["k", "b", "at"], jobs), &target).unwrap();
        assert_eq!(rows, 50_000);
        let mut found = BTreeSet::new();
        for file in files(&target) {
            let names = file.strip_prefix(&target).unwrap().iter().map(|n| n.to_str().unwrap());
            let names: Vec<&str> = names.collect();
            let values: Vec<String> = names[..3].iter().map(|name| value_of(name)).collect();
            assert!(names[3].starts_with("part-") && names[3].ends_with(".parquet"), "{names:?}");
            assert!(values[0] != NULL || names[0] == format!("k={NULL}"));
            let mut last = 0;
            for batch in batches(&file) {
                assert_eq!(batch.num_columns(), 1, "columns in names are not in files");
                for v in batch.column(0).as_primitive::<Int32Type>().values() {
                    assert!(*v > last, "rows are in the order of the table");
                    last = *v;
                    assert!(found.insert(format!("{v}\t{}", values.join("\t"))), "twice");
                }
            }
        }
        assert!(found == wanted, "jobs: {jobs}");
    }
}

#[test]
fn what_cannot_be_a_name_is_refused_and_nothing_is_left() {
    let mut cluster = filled(&[
        "CREATE TABLE empty AS SELECT 1 AS v, ''::text AS k",
        "CREATE TABLE null_word AS SELECT 1 AS v, '__HIVE_DEFAULT_PARTITION__' AS k",
        "CREATE TABLE long AS SELECT 1 AS v, repeat('x', 300) AS k",
        "CREATE TABLE many AS SELECT i AS v, i AS k FROM generate_series(1, 4097) i",
        "CREATE TABLE bytes AS SELECT 1 AS v, 'x'::bytea AS k",
        "CREATE TABLE alone AS SELECT 1 AS k",
    ]);
    cluster.stop().unwrap();
    let refused = [
        ("empty", "column \"k\" cannot be partitioned by: it has an empty text"),
        ("null_word", "which readers take for NULL"),
        ("long", "a value too long for a name"),
        ("many", "more than 4096 different values to partition by"),
        ("bytes", "values of bytea are no names of directories"),
        ("alone", "no column is left for the files"),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (table, words) in refused {
        for jobs in [1, 2] {
            let target = dir.path().join("t");
            let error = partitioned(&cluster, table, &by(&["k"], jobs), &target).unwrap_err();
            assert!(error.to_string().contains(words), "{table}: {error}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{table}: something is left");
        }
    }
    let error = partitioned(&cluster, "empty", &by(&["k", "k"], 1), dir.path()).unwrap_err();
    assert!(error.to_string().contains("twice"), "{error}");
}

/// As many values as there may be, a few rows each: none of them makes a row group before the end.
#[test]
fn as_many_files_as_there_may_be_are_written_with_one_open_at_a_time() {
    let mut cluster = filled(&[
        "CREATE TABLE t AS SELECT i AS v, i % 4096 AS k FROM generate_series(0, 20000) i",
    ]);
    cluster.stop().unwrap();
    let dir = tempfile::tempdir().unwrap();
    for format in [FileFormat::Parquet, FileFormat::ArrowStream] {
        let target = dir.path().join(format.extension());
        let options = ArrowOptions { format, ..by(&["k"], 1) };
        assert_eq!(partitioned(&cluster, "t", &options, &target).unwrap(), 20_001);
        assert_eq!(files(&target).len(), 4096);
    }
}

#[test]
fn arrays_as_json_are_what_the_server_makes_of_them() {
    let mut cluster = filled(&[
        "CREATE TYPE pair AS (n int, d timestamptz)",
        "CREATE TABLE t AS SELECT '{{1,NULL},{3,4}}'::int[] AS i, '[0:1]={a,\"b\\\"c\"}'::text[] AS t, \
         ARRAY[ROW(1, '2024-01-01 00:00+00')::pair, NULL] AS p, '1 2'::int2vector AS v, \
         ARRAY['NaN', '1.50']::numeric[] AS n UNION ALL SELECT '{}', NULL, NULL, '', '{}'",
    ]);
    let columns = ["i", "t", "p", "v", "n"];
    let each = columns.map(|name| format!("to_json({name})")).join(", ");
    let copy = format!(
        "COPY (SELECT {each} FROM t) TO STDOUT WITH (QUOTE E'\\x01', FORMAT csv, DELIMITER '|', NULL '-')"
    );
    let wanted = String::from_utf8(cluster.copy_out("postgres", &copy).unwrap()).unwrap();
    cluster.stop().unwrap();
    let options = ArrowOptions { arrays: ArrayChoice::Json, ..ArrowOptions::default() };
    let found = with_table(&cluster, "t", &options, |export| {
        let progress = Progress::default();
        let mut batches = export.batches(&progress);
        let extension = batches.schema().field(0).metadata()["ARROW:extension:name"].clone();
        assert_eq!(extension, "arrow.json");
        let batch = batches.next_batch(&mut DamageLog::new(OnDamage::Stop))?.unwrap();
        let cell = |column: usize, row| {
            let texts = batch.column(column).as_string::<i32>();
            if texts.is_null(row) { "-" } else { texts.value(row) }.to_owned()
        };
        let row =
            |row| (0..columns.len()).map(|at| cell(at, row)).collect::<Vec<_>>().join("|") + "\n";
        Ok((0..batch.num_rows()).map(row).collect::<String>())
    });
    assert_eq!(found.unwrap(), wanted);
}
