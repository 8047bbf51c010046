//! Exports asked for in every way the command line knows, compared byte by byte with what the server answered to
//! the same request: options of `COPY`, columns, encodings, partitioned tables. And the ways that must make no
//! difference: several jobs, other read sizes, a running server.
//!
//! The requests, SQL beside flags, are those of `pagemill_testkit::requests`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::program::READ_VARIABLE;
use pagemill_testkit::{
    CopyFormat, PgInstall, Prepared, Program, Request, TestCluster, compare, every_version,
    requests, two_versions,
};
use serde_json::Value;

/// A table of several thousand blocks, and the database it is in.
const MANY_BLOCKS: [&str; 4] = ["-d", "ddl", "-t", "public.many_blocks"];

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

/// Every request the version understands gets the server's answer.
fn answers_are_the_servers(requests: &[Request]) {
    every_version(|prepared| {
        let mut differences = Vec::new();
        for request in requests.iter().filter(|request| request.since <= prepared.major()) {
            if let Err(error) = answer_is_the_servers(prepared, request) {
                differences.push(format!("{} {:?}: {error:#}", request.name, request.args));
            }
        }
        ensure!(
            differences.is_empty(),
            "{} answers differ:\n{}",
            differences.len(),
            differences.join("\n")
        );
        Ok(())
    });
}

fn answer_is_the_servers(prepared: &Prepared, request: &Request) -> Result<()> {
    let expected = prepared.answer(request)?;
    ensure!(!expected.is_empty(), "the server answered nothing");
    let actual = program().answer(prepared, request, &[])?;
    Ok(compare(request.format, &[], &expected, &actual)?)
}

#[test]
fn every_option_of_copy_gives_the_servers_bytes() {
    answers_are_the_servers(&requests::copy_options());
}

#[test]
fn columns_are_written_in_the_order_asked_for() {
    answers_are_the_servers(&requests::columns());
}

#[test]
fn text_is_converted_as_the_server_converts_it_for_a_client() {
    answers_are_the_servers(&requests::encodings());
}

#[test]
fn names_of_columns_and_the_text_for_null_are_converted_like_values() {
    answers_are_the_servers(&requests::converted_names());
}

/// `COPY`'s options, and the flags that say the same.
const REFUSED: [(&str, &[&str]); 14] = [
    ("DELIMITER 'a'", &["--delimiter", "a"]),
    ("DELIMITER '0'", &["--delimiter", "0"]),
    ("DELIMITER '.'", &["--delimiter", "."]),
    ("DELIMITER '\\'", &["--delimiter", "\\\\"]),
    ("DELIMITER E'\\n'", &["--delimiter", "\\n"]),
    ("NULL E'a\\nb'", &["--null", "a\nb"]),
    ("NULL 'a|b', DELIMITER '|'", &["--null", "a|b", "--delimiter", "|"]),
    ("QUOTE 'x'", &["--quote", "x"]),
    ("ESCAPE 'x'", &["--escape", "x"]),
    ("FORCE_QUOTE *", &["--force-quote", "*"]),
    ("FORMAT csv, DELIMITER '\"'", &["--format", "csv", "--delimiter", "\""]),
    ("FORMAT csv, NULL 'a,b'", &["--format", "csv", "--null", "a,b"]),
    ("FORMAT csv, NULL 'a\"b'", &["--format", "csv", "--null", "a\"b"]),
    ("FORMAT csv, FORCE_QUOTE (c)", &["--format", "csv", "--force-quote", "c"]),
];

#[test]
fn options_that_copy_refuses_are_refused_and_leave_no_file() {
    let mut cluster = running_cluster();
    cluster.psql("postgres", "CREATE TABLE t AS SELECT 1 AS a, 'x' AS b").unwrap();
    for (options, _) in REFUSED {
        let copied = cluster.copy_out("postgres", &format!("COPY t TO STDOUT WITH ({options})"));
        assert!(copied.is_err(), "the server does not refuse {options}");
    }
    cluster.stop().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out").display().to_string();
    for (_, flags) in REFUSED {
        let args = [&["export", "-d", "postgres", "-t", "t", "-o", &file], flags].concat();
        let output = program().run(&cluster.data_dir(), &args).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {said}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{flags:?}: a file is left");
    }
}

fn running_cluster() -> TestCluster {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut cluster = empty_cluster(&install).unwrap();
    cluster.start().unwrap();
    cluster
}

/// The server refuses such a value too, and says as much as its bytes.
#[test]
fn a_character_without_equivalent_is_an_error_that_shows_it() {
    every_version(|prepared| {
        let args = ["export", "-d", "types", "-t", "public.t_varchar", "--encoding", "LATIN1"];
        let output = program().run(&prepared.data_dir(), &args)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.code() == Some(1), "{}: {said}", output.status);
        ensure!(said.contains("0xe6 0x97 0xa5") && said.contains("LATIN1"), "{said}");
        Ok(())
    });
}

#[test]
fn a_partitioned_table_has_the_rows_of_all_its_partitions() {
    every_version(|prepared| {
        for request in requests::partitioned() {
            let expected = prepared.answer(&request)?;
            ensure!(lines(&expected) > 20, "{}: too few rows", request.name);
            for jobs in ["1", "3"] {
                let actual = program().answer(prepared, &request, &["-j", jobs])?;
                compare(request.format, &[], &expected, &actual)
                    .with_context(|| format!("{} -j {jobs}", request.name))?;
            }
        }
        Ok(())
    });
}

#[test]
fn a_partitioned_table_counts_the_rows_of_all_its_partitions() {
    every_version(|prepared| {
        let texts = |request: &Request| request.format == CopyFormat::Text;
        for request in requests::partitioned().into_iter().filter(texts) {
            let rows = lines(&prepared.answer(&request)?);
            let table = request.args.get(2).context("no table")?;
            let counted = program()
                .succeed(&prepared.data_dir(), &["count", "-d", request.database, "-t", table])?;
            let counted = String::from_utf8(counted)?;
            ensure!(counted == format!("{rows}\n"), "{table}: {counted:?} instead of {rows}");
        }
        Ok(())
    });
}

fn lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// An export of the table of many blocks, and what the server printed of it.
fn many_blocks_exported(prepared: &Prepared, flags: &[&str]) -> Result<()> {
    let database = prepared.database("ddl")?;
    let table = database.tables.iter().find(|t| t.name == "many_blocks").context("no table")?;
    let format = CopyFormat::Text;
    let expected = database.expected(table, format)?;
    let args = [&["export"], &MANY_BLOCKS[..], flags].concat();
    let actual = program().succeed(&prepared.data_dir(), &args)?;
    compare(format, &table.columns, &expected, &actual).with_context(|| format!("{flags:?}"))
}

#[test]
fn several_jobs_write_a_table_in_the_order_of_its_pages() {
    two_versions(|prepared| {
        many_blocks_exported(prepared, &["-j", "2"])?;
        many_blocks_exported(prepared, &["-j", "4"])
    });
}

/// Quoted values and the header come from whichever job has the first page, and only once.
#[test]
fn several_jobs_write_the_same_csv_as_one() {
    two_versions(|prepared| {
        let export = |jobs: &str| {
            let flags = ["--format", "csv", "--header", "--force-quote", "v", "-j", jobs];
            let args = [&["export"], &MANY_BLOCKS[..], &flags].concat();
            program().succeed(&prepared.data_dir(), &args)
        };
        let one = export("1")?;
        ensure!(one.starts_with(b"id,v\n1,\"bbb"), "{}", String::from_utf8_lossy(&one[..40]));
        for jobs in ["2", "4"] {
            compare(CopyFormat::Csv, &[], &one, &export(jobs)?)
                .with_context(|| format!("-j {jobs}"))?;
        }
        Ok(())
    });
}

#[test]
fn tables_and_databases_in_other_tablespaces_are_found_there() {
    every_version(|prepared| {
        let placed = [
            ("ddl", "in_side"),
            ("ddl", "moved_to_side"),
            ("ddl", "moved_back"),
            ("ddl", "unlogged_in_side"),
            ("ddl", "matview_in_side"),
            ("in_side", "here"),
            ("in_side", "Odd Table"),
        ];
        for (name, table) in placed {
            let database = prepared.database(name)?;
            let table = database.tables.iter().find(|t| t.name == table).context("no table")?;
            let expected = database.expected(table, CopyFormat::Text)?;
            ensure!(!expected.is_empty(), "{}: no rows", table.quoted());
            let args = ["export", "-d", name, "-t", &table.quoted()];
            let actual = program().succeed(&prepared.data_dir(), &args)?;
            compare(CopyFormat::Text, &table.columns, &expected, &actual)
                .with_context(|| table.quoted())?;
        }
        Ok(())
    });
}

#[test]
fn the_size_of_reads_changes_nothing_that_is_written() {
    two_versions(|prepared| {
        for limit in ["1", "16", "128"] {
            many_blocks_exported(prepared, &["--io-combine-limit", limit])?;
        }
        many_blocks_exported(prepared, &["--io-combine-limit", "7", "-j", "3"])
    });
}

/// One job's files are compared with the server elsewhere; here every file of several jobs with them.
#[test]
fn several_jobs_export_a_whole_database_as_one_does() {
    two_versions(|prepared| {
        for (database, format) in [("types", "csv"), ("toast", "text"), ("mvcc", "text")] {
            let (one, many) = (tempfile::tempdir()?, tempfile::tempdir()?);
            for (dir, jobs) in [(&one, "1"), (&many, "3")] {
                let out = format!("{}/", dir.path().display());
                let args = ["export", "-d", database, "-t", "*.*", "--format", format];
                let args = [&args[..], &["-j", jobs, "-o", &out]].concat();
                program().succeed(&prepared.data_dir(), &args)?;
            }
            same_files(one.path(), many.path()).with_context(|| database.to_owned())?;
        }
        Ok(())
    });
}

fn same_files(one: &Path, other: &Path) -> Result<()> {
    let names = |dir: &Path| -> Result<Vec<_>> {
        let mut names =
            fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    };
    let listed = names(one)?;
    ensure!(listed.len() > 100, "only {} files", listed.len());
    ensure!(listed == names(other)?, "not the same files");
    for name in listed {
        let same = fs::read(one.join(&name))? == fs::read(other.join(&name))?;
        ensure!(same, "{} differs", name.display());
    }
    Ok(())
}

/// What is on disk at a checkpoint, and not touched since, is what the server shows.
#[test]
fn a_quiet_table_of_a_running_server_is_exported_as_the_server_prints_it() {
    if std::env::var(READ_VARIABLE).is_ok_and(|flags| flags.contains("mmap")) {
        println!("SKIPPED: nothing is mapped under a running server");
        return;
    }
    let cluster = running_cluster();
    let sql = "CREATE TABLE quiet AS SELECT i, repeat(md5(i::text), i % 200) AS v FROM generate_series(1, 2000) i";
    cluster.psql("postgres", sql).unwrap();
    let sql = "DELETE FROM quiet WHERE i % 3 = 0";
    cluster.psql("postgres", sql).unwrap();
    cluster.psql("postgres", "CHECKPOINT").unwrap();
    let expected = cluster.copy_out("postgres", "COPY quiet TO STDOUT").unwrap();
    assert_eq!(lines(&expected), 1334);
    for jobs in ["1", "2"] {
        let args = ["export", "--live", "-t", "quiet", "-d", "postgres", "-j", jobs];
        let actual = program().succeed(&cluster.data_dir(), &args).unwrap();
        assert_eq!(compare(CopyFormat::Text, &[], &expected, &actual), Ok(()));
    }
    let args = ["count", "--live", "-t", "quiet", "-d", "postgres"];
    assert_eq!(program().succeed(&cluster.data_dir(), &args).unwrap(), b"1334\n");
}

/// An export named a file of the data directory once, and took its place.
#[test]
fn nothing_is_written_into_a_data_directory() {
    let mut cluster = running_cluster();
    cluster.psql("postgres", "CREATE TABLE one AS SELECT 1").unwrap();
    cluster.stop().unwrap();
    let data = cluster.data_dir();
    let before = fs::read(data.join("PG_VERSION")).unwrap();
    for place in ["PG_VERSION", "base/new", "new/", "base/../pg_wal/new"] {
        let place = data.join(place);
        let args = ["export", "-t", "one", "-d", "postgres", "-o", place.to_str().unwrap()];
        let output = program().run(&data, &args).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("where only the server may write"), "{said}");
        assert!(!data.join("new").exists() && !data.join("base/new").exists());
    }
    assert_eq!(fs::read(data.join("PG_VERSION")).unwrap(), before);
}

/// Long values lie chunk after chunk, value after value, and are fetched as a scan fetches its blocks.
#[test]
fn the_chunks_of_long_values_are_read_many_blocks_at_a_time() {
    let mut cluster = running_cluster();
    for statement in [
        "CREATE TABLE long (i int, v text)",
        "ALTER TABLE long ALTER v SET STORAGE EXTERNAL",
        "INSERT INTO long SELECT i, repeat('v', 3000 + i % 20 * 5000) FROM generate_series(1, 600) i",
    ] {
        cluster.psql("postgres", statement).unwrap();
    }
    let sql = "SELECT pg_relation_size(reltoastrelid) / 8192 FROM pg_class WHERE relname = 'long'";
    let blocks: u64 = cluster.psql("postgres", sql).unwrap().parse().unwrap();
    let expected = cluster.copy_out("postgres", "COPY long TO STDOUT").unwrap();
    cluster.stop().unwrap();
    let args = ["export", "-t", "long", "-d", "postgres", "--stats=json"];
    let output = program().run(&cluster.data_dir(), &args).unwrap();
    assert_eq!(compare(CopyFormat::Text, &[], &expected, &output.stdout), Ok(()));
    let stats: Value = serde_json::from_slice(&output.stderr).unwrap();
    let calls = stats["read_calls"].as_u64().unwrap();
    // lseek and read take one block at a time.
    let combined = if stats["seek_calls"] == 0 { blocks / 16 } else { blocks };
    assert!(blocks > 3000 && calls < combined + 400, "{calls} calls for {blocks} blocks");
}
