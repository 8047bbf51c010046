//! Every relation of every fixture, exported by the built program and compared byte by byte with what the
//! PostgreSQL server printed for it.
//!
//! Runs on PostgreSQL 15, which must be installed, and on each further version found on this machine. Catalogs,
//! TOAST tables, sequences and materialized views are compared like tables.

use std::fs;
use std::path::Path;
use std::process::Output;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::{
    CopyFormat, Fixture, Prepared, PreparedDatabase, Program, Table, compare, every_version,
};

/// How many differences of a database are told in full.
const TOLD: usize = 20;

/// Fewer relations, or fewer with rows, than every version has: a list that was cut proves nothing.
fn fewest(database: &str) -> (usize, usize) {
    match database {
        "types" => (220, 135),
        "toast" => (130, 75),
        "mvcc" => (150, 75),
        "ddl" => (330, 190),
        _ => (100, 45),
    }
}

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

fn pagemill(prepared: &Prepared, args: &[&str]) -> Result<Output> {
    program().run(&prepared.data_dir(), args)
}

fn succeed(prepared: &Prepared, args: &[&str]) -> Result<Vec<u8>> {
    program().succeed(&prepared.data_dir(), args)
}

fn exports_equal(fixture: Fixture) {
    every_version(|prepared| {
        let mut differences = Vec::new();
        for name in fixture.databases() {
            let database = prepared.database(name)?;
            for format in fixture.formats() {
                differences.extend(differences_in(prepared, database, *format)?);
            }
        }
        let (count, told) = (differences.len(), differences.iter().take(TOLD).cloned());
        ensure!(count == 0, "{count} exports differ:\n{}", told.collect::<Vec<_>>().join("\n"));
        Ok(())
    });
}

/// Exports the whole database into a directory, then judges file by file.
fn differences_in(
    prepared: &Prepared,
    database: &PreparedDatabase,
    format: CopyFormat,
) -> Result<Vec<String>> {
    let dir = tempfile::tempdir()?;
    let out = format!("{}/", dir.path().display());
    let args = ["export", "-d", &database.name, "-t", "*.*", "--format", format.name(), "-o", &out];
    let whole = pagemill(prepared, &args)?;
    let mut differences = Vec::new();
    let (mut relations, mut with_rows) = (0, 0);
    if !whole.status.success() {
        let said = String::from_utf8_lossy(&whole.stderr).into_owned();
        differences
            .push(format!("{}: the export ended with {}: {said}", database.name, whole.status));
    }
    for table in &database.tables {
        let actual = exported(prepared, database, table, format, dir.path());
        let expected = database.expected(table, format)?;
        (relations, with_rows) = (relations + 1, with_rows + usize::from(!expected.is_empty()));
        let told = match actual {
            Ok(actual) => {
                compare(format, &table.columns, &expected, &actual).err().map(|d| d.to_string())
            }
            Err(error) => Some(format!("{error:#}")),
        };
        let place = || format!("{} {} ({})", database.name, table.quoted(), format.name());
        differences.extend(told.map(|told| format!("{}: {told}", place())));
    }
    let (fewest, fewest_with_rows) = fewest(&database.name);
    ensure!(
        relations >= fewest && with_rows >= fewest_with_rows,
        "{}: only {relations} relations, {with_rows} with rows",
        database.name
    );
    Ok(differences)
}

/// The export's file, or, for a name that no file can have, an export of its own to standard output.
fn exported(
    prepared: &Prepared,
    database: &PreparedDatabase,
    table: &Table,
    format: CopyFormat,
    dir: &Path,
) -> Result<Vec<u8>> {
    match table.file_stem() {
        Some(stem) => {
            let file = dir.join(format!("{stem}.{}", format.extension()));
            fs::read(&file).with_context(|| format!("no export {}", file.display()))
        }
        None => {
            let args =
                ["export", "-d", &database.name, "-t", &table.quoted(), "--format", format.name()];
            succeed(prepared, &args)
        }
    }
}

#[test]
fn every_type_prints_as_the_server_prints_it() {
    exports_equal(Fixture::Types);
}

#[test]
fn long_values_come_back_whole() {
    exports_equal(Fixture::Toast);
}

#[test]
fn only_the_rows_a_new_snapshot_sees_are_exported() {
    exports_equal(Fixture::Mvcc);
}

#[test]
fn altered_odd_and_system_relations_are_read_like_any_other() {
    exports_equal(Fixture::Ddl);
}

#[test]
fn databases_of_other_encodings_keep_their_bytes() {
    exports_equal(Fixture::Encodings);
}

/// In the text format a line feed inside a value is escaped, so there is one line per row.
#[test]
fn count_says_how_many_rows_the_server_sees() {
    every_version(|prepared| {
        let database = prepared.database("mvcc")?;
        let tables = database.tables.iter().filter(|table| table.schema == "public");
        ensure!(tables.clone().count() >= 30, "only {} tables", tables.count());
        for table in tables {
            let expected = database.expected(table, CopyFormat::Text)?;
            let rows = expected.iter().filter(|byte| **byte == b'\n').count();
            let printed = succeed(prepared, &["count", "-d", "mvcc", "-t", &table.quoted()])?;
            let printed = String::from_utf8_lossy(&printed).trim().to_owned();
            ensure!(printed == rows.to_string(), "{}: {printed} instead of {rows}", table.quoted());
        }
        Ok(())
    });
}

#[test]
fn a_single_table_goes_to_standard_output() {
    every_version(|prepared| {
        let database = prepared.database("types")?;
        let table = database.tables.iter().find(|t| t.name == "everything").context("no table")?;
        let printed = succeed(prepared, &["export", "-d", "types", "-t", "public.everything"])?;
        compare(
            CopyFormat::Text,
            &table.columns,
            &database.expected(table, CopyFormat::Text)?,
            &printed,
        )?;
        Ok(())
    });
}
