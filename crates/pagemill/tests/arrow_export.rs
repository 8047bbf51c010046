//! Exports as Parquet and Arrow by the built program: what is refused and with which words, that nothing is left of what was
//! refused, and that several jobs write the same rows.
//!
//! That the values are the server's is proved in `pagemill-arrow`.
#![cfg(feature = "arrow")]

use std::fs;
use std::process::Output;

use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{PgInstall, Prepared, Program, TestCluster};

fn run(cluster: &TestCluster, args: &[&str]) -> Output {
    let args = [&["export", "-d", "postgres"], args].concat();
    Program::new(env!("CARGO_BIN_EXE_pagemill")).run(&cluster.data_dir(), &args).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_does_not_fit_is_refused_with_its_row_and_the_way_out() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut cluster = empty_cluster(&install).unwrap();
    cluster.start().unwrap();
    for statement in [
        "CREATE TABLE d AS SELECT 1 a, date '2000-01-01' d UNION ALL SELECT 2, 'infinity'",
        "CREATE TABLE l AS SELECT '{{1,2}}'::int[] l",
        "CREATE TABLE n AS SELECT 'NaN'::numeric(5,2) n",
    ] {
        cluster.psql("postgres", statement).unwrap();
    }
    cluster.stop().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.parquet");
    let path = file.to_str().unwrap();
    let refused = [
        ("d", "public.d: row (0,2), column \"d\": an infinite date: --infinity null"),
        ("l", "public.l: row (0,1), column \"l\": an array of 2 dimensions"),
        ("n", "public.n: row (0,1), column \"n\": NaN, which no decimal is: --numeric text"),
    ];
    for (table, words) in refused {
        let output = run(&cluster, &["-t", table, "--format", "parquet", "-o", path]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "something is left");
    }
    // Of several tables, each is named once.
    let all = dir.path().join("all/");
    let output =
        run(&cluster, &["-n", "public", "--format", "parquet", "-o", all.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert_eq!(told.lines().count(), refused.len(), "{told}");
    for (line, (_, words)) in told.lines().zip(refused) {
        assert!(line.starts_with(&format!("pagemill: {words}")), "{told}");
    }
    let ways = [("d", "--infinity=clamp"), ("l", "--arrays=text"), ("n", "--numeric=text")];
    for (table, way) in ways {
        let output = run(&cluster, &["-t", table, "--format", "parquet", way]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(output.stdout.starts_with(b"PAR1") && output.stdout.ends_with(b"PAR1"));
    }
    let wrong: [(&[&str], &str); 4] = [
        (&["--format", "parquet", "--header"], "--header means nothing for --format parquet"),
        (&["--format", "csv", "--numeric", "text"], "--numeric means nothing for --format csv"),
        (&["--format", "arrow", "--row-group-size", "5"], "--row-group-size means nothing"),
        (&["--format", "arrow", "--compression", "gzip"], "zstd or lz4"),
    ];
    for (args, words) in wrong {
        let output = run(&cluster, &[&["-t", "l", "--arrays", "text"], args].concat());
        let output = match args.contains(&"csv") {
            true => run(&cluster, &[&["-t", "l"], args].concat()),
            false => output,
        };
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

#[test]
fn several_jobs_write_the_same_stream_of_rows() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let prepared = Prepared::shared(&install).unwrap();
    let rows = |jobs: &str| {
        let args = ["export", "-d", "ddl", "-t", "public.many_blocks", "--format", "parquet"];
        let more = ["-j", jobs, "--row-group-size", "1000", "--stats=json"];
        let args = [&args[..], &more].concat();
        let program = Program::new(env!("CARGO_BIN_EXE_pagemill"));
        let output = program.run(&prepared.data_dir(), &args).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let stats: serde_json::Value = serde_json::from_str(said.trim()).unwrap();
        stats["rows"].as_u64().unwrap()
    };
    let one = rows("1");
    assert!(one > 10_000);
    assert_eq!(rows("3"), one);
}

#[test]
fn a_directory_by_values_appears_whole_and_only_where_there_is_none() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let prepared = Prepared::shared(&install).unwrap();
    let export = |more: &[&str]| {
        let args = ["export", "-d", "ddl", "-t", "public.by_list", "--format", "parquet"];
        let program = Program::new(env!("CARGO_BIN_EXE_pagemill"));
        program.run(&prepared.data_dir(), &[&args[..], more].concat()).unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("t");
    let path = target.to_str().unwrap();
    let done = export(&["--partition-by", "b", "-j", "2", "-o", path]);
    assert!(done.status.success(), "{}", stderr(&done));
    let names: Vec<_> = fs::read_dir(&target).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!names.is_empty());
    assert!(names.iter().all(|name| name.to_str().unwrap().starts_with("b=")), "{names:?}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "something is beside it");
    let wrong: [(&[&str], i32, &str); 4] = [
        (&["--partition-by", "b", "-o", path], 1, "exists already"),
        (&["--partition-by", "b"], 2, "--partition-by writes a directory: name it with -o DIR"),
        (&["--partition-by", "b", "-t", "public.many_blocks", "-o", path], 2, "2 tables match"),
        (&["--partition-by", "nothing", "-o", path], 2, "column \"nothing\""),
    ];
    for (args, status, words) in wrong {
        let output = export(args);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}
