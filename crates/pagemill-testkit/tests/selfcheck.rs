//! The oracle checked against itself: fixtures load on every version, and a dump is the same every time.
//!
//! Without this, a difference found by the other tests could be the oracle's own.

use std::collections::BTreeSet;

use anyhow::Result;
use pagemill_testkit::prepared::dump_all;
use pagemill_testkit::{
    CopyFormat, CopyOptions, Fixture, PgInstall, Prepared, TestCluster, oracle,
};

/// Tables nobody may have read since they were written.
const UNHINTED: [&str; 3] =
    ["unhinted_committed", "unhinted_same_transaction", "overlap_interleaved"];

fn every_version(check: impl Fn(&Prepared) -> Result<()>) {
    assert!(PgInstall::find(15).is_some(), "PostgreSQL 15 is needed (ci/install-postgres.sh)");
    for install in PgInstall::all() {
        let started = std::time::Instant::now();
        let prepared = Prepared::shared(&install).unwrap();
        check(&prepared).unwrap_or_else(|error| panic!("PostgreSQL {}: {error:?}", install.major));
        eprintln!("PostgreSQL {} checked in {:.1?}", install.major, started.elapsed());
    }
}

#[test]
fn the_fixtures_load_on_every_version() {
    every_version(|prepared| {
        let names: BTreeSet<&str> = prepared.databases().iter().map(|d| d.name.as_str()).collect();
        for fixture in Fixture::ALL {
            for name in fixture.databases() {
                assert!(names.contains(name), "no database {name}");
            }
        }
        assert!(prepared.database("types")?.tables.len() > 150);
        Ok(())
    });
}

/// Otherwise a difference between Pagemill and the server would prove nothing.
#[test]
fn dumps_are_the_same_before_and_after_a_restart() {
    every_version(|prepared| {
        let mut copy = prepared.copy()?;
        for _ in 0..2 {
            copy.start()?;
            let dir = copy.root().join("again");
            dump_all(&copy, &dir)?;
            copy.stop()?;
            assert_same_dump(prepared, &dir)?;
            std::fs::remove_dir_all(&dir)?;
        }
        Ok(())
    });
}

fn assert_same_dump(prepared: &Prepared, dir: &std::path::Path) -> Result<()> {
    for database in prepared.databases() {
        let dir = dir.join(database.oid.to_string());
        for table in &database.tables {
            let formats = Fixture::of_database(&database.name).map_or(&[][..], Fixture::formats);
            for format in formats {
                let again = std::fs::read(oracle::expected_file(&dir, table, *format))?;
                let expected = database.expected(table, *format)?;
                if let Err(diff) =
                    pagemill_testkit::compare(*format, &table.columns, &expected, &again)
                {
                    panic!("{} {}: {diff}", database.name, table.quoted());
                }
            }
        }
    }
    Ok(())
}

/// The copy that is dumped must be the one read: one `COPY` by itself gives the same bytes.
#[test]
fn a_copy_through_the_client_is_what_the_server_writes_to_a_file() {
    every_version(|prepared| {
        let mut copy = prepared.copy()?;
        copy.start()?;
        for (name, table) in
            [("types", "t_text"), ("mvcc", "overlap_prepared"), ("latin1", "Tabelle ü")]
        {
            let database = prepared.database(name)?;
            let table = database.tables.iter().find(|t| t.name == table).unwrap();
            let options = CopyOptions::default();
            let bytes = oracle::expected_copy(&copy, name, table, &options)?;
            assert!(bytes == database.expected(table, options.format)?, "{}", table.quoted());
        }
        Ok(())
    });
}

/// A server that read these tables before it stopped would have hinted them, and hidden the hard case.
#[test]
fn rows_that_must_be_unhinted_are_unhinted() {
    every_version(|prepared| {
        let mut copy = prepared.copy()?;
        copy.start()?;
        if copy.psql("mvcc", "CREATE EXTENSION pageinspect").is_err() {
            eprintln!("SKIPPED: no pageinspect for PostgreSQL {}", copy.major());
            return Ok(());
        }
        for table in UNHINTED {
            assert_eq!(hinted_rows(&copy, table)?, "0", "{table} has hinted rows");
        }
        assert_ne!(hinted_rows(&copy, "hinted_mixture")?, "0");
        Ok(())
    });
}

/// A reader that knows only the first segment would lose most of these rows, and notice nothing.
#[test]
fn a_table_has_a_second_segment_with_rows() {
    every_version(|prepared| {
        let ddl = prepared.database("ddl")?;
        let table = ddl.tables.iter().find(|t| t.name == "two_segments").unwrap();
        let rows = ddl.expected(table, CopyFormat::Text)?;
        assert_eq!(rows.iter().filter(|byte| **byte == b'\n').count(), 100);
        let base = prepared.data_dir().join(format!("base/{}", ddl.oid));
        let second = std::fs::read_dir(base)?.filter_map(|entry| Some(entry.ok()?.file_name()));
        assert!(second.into_iter().any(|name| name.to_string_lossy().ends_with(".1")));
        Ok(())
    });
}

/// HEAP_XMIN_COMMITTED is 0x0100, HEAP_XMIN_INVALID 0x0200.
fn hinted_rows(cluster: &TestCluster, table: &str) -> Result<String> {
    cluster.psql(
        "mvcc",
        &format!(
            "SELECT count(*) FROM generate_series(0, pg_relation_size('{table}') / 8192 - 1) b, \
             heap_page_items(get_raw_page('{table}', b::int)) WHERE t_infomask & 768 <> 0"
        ),
    )
}
