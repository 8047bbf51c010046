//! What is refused, and the words it is refused with: each of these once said something that was not so, or nothing
//! that helped.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Output;

use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{PgInstall, Program, TestCluster};

fn running(statements: &[&str]) -> TestCluster {
    let install = PgInstall::find(15).expect("PostgreSQL 15 is needed");
    let mut cluster = empty_cluster(&install).unwrap();
    cluster.start().unwrap();
    for statement in statements {
        cluster.psql("postgres", statement).unwrap();
    }
    cluster
}

fn asked(cluster: &TestCluster, args: &[&str]) -> (Option<i32>, String, String) {
    let program = Program::new(env!("CARGO_BIN_EXE_pagemill"));
    let Output { status, stdout, stderr } = program.run(&cluster.data_dir(), args).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// One column a run was named, and each was told to be an extension's, where a plain C function had been created.
#[test]
fn columns_that_cannot_be_printed_are_named_at_once_with_the_library() {
    let mut cluster = running(&[
        "CREATE TYPE odd",
        "CREATE FUNCTION odd_in(cstring) RETURNS odd AS 'textin' LANGUAGE internal STRICT IMMUTABLE",
        "CREATE FUNCTION odd_out(odd) RETURNS cstring AS '$libdir/dict_snowball', 'dsnowball_init' \
         LANGUAGE c STRICT IMMUTABLE",
        "CREATE TYPE odd (INPUT = odd_in, OUTPUT = odd_out, INTERNALLENGTH = VARIABLE)",
        "CREATE TABLE t (first odd, i int, \"la\nst\" odd[])",
    ]);
    cluster.stop().unwrap();
    let export = ["export", "-d", "postgres", "-t", "t"];
    let (status, printed, said) = asked(&cluster, &export);
    assert!(status == Some(1) && printed.is_empty(), "{status:?} {printed}");
    for part in
        ["column first: ", "column la\\nst: ", "odd_out", "$libdir/dict_snowball", "--columns"]
    {
        assert!(said.contains(part), "{part:?} is missing in {said:?}");
    }
    assert!(!said.contains("extension") && said.lines().count() == 1, "{said:?}");
    let (status, _, said) = asked(&cluster, &[&export[..], &["--columns", "i"]].concat());
    assert_eq!((status, &*said), (Some(0), ""));
}

/// A name with a line feed in it made two lines of one, and a count that a script took for another table's.
#[test]
fn names_with_control_characters_stay_on_their_line() {
    let mut cluster = running(&[
        "CREATE TABLE \"a\nb\tc\" AS SELECT 1",
        "CREATE SCHEMA \"s\nt\"",
        "CREATE VIEW \"s\nt\".\"v\u{1b}[2J\" AS SELECT 1",
    ]);
    cluster.stop().unwrap();
    let (status, printed, said) = asked(&cluster, &["count", "-d", "postgres", "-t", "public.*"]);
    assert_eq!((status, &*printed, &*said), (Some(0), "public.a\\nb\\tc\t1\n", ""));
    let (status, _, said) =
        asked(&cluster, &["count", "-d", "postgres", "-t", "\"s\nt\".\"v\u{1b}[2J\""]);
    assert_eq!(
        (status, said.lines().count(), said.contains('\u{1b}')),
        (Some(1), 1, false),
        "{said:?}"
    );
    let (_, _, said) = asked(&cluster, &["count", "-v", "-d", "postgres", "-t", "\"a\nb\tc\""]);
    assert!(said.lines().all(|line| line.starts_with("pagemill: ")), "{said:?}");
    let (status, _, said) = asked(&cluster, &["count", "-d", "postgres", "-t", "\"no\nsuch\""]);
    assert_eq!((status, said.lines().count()), (Some(2), 1), "{said:?}");
}

/// "table  was not found", and a table of that name with the quote folded away.
#[test]
fn a_pattern_that_names_nothing_or_leaves_a_quote_open_is_told() {
    let mut cluster = running(&[]);
    cluster.stop().unwrap();
    for (pattern, part) in [
        ("", "names nothing"),
        ("\"\"", "names nothing"),
        ("public.", "names nothing"),
        (".t", "names nothing"),
        ("\"abc", "does not close it"),
        ("public.\"abc", "does not close it"),
    ] {
        for args in
            [["count", "-t", pattern], ["inspect", "-t", pattern], ["export", "-n", pattern]]
        {
            if args[1] == "-n" && pattern.starts_with("public") {
                continue;
            }
            let (status, printed, said) = asked(&cluster, &args);
            assert!(status == Some(2) && printed.is_empty(), "{args:?}: {status:?} {printed}");
            assert!(said.contains(part), "{args:?}: {said}");
        }
    }
}

/// Random bytes were the control file of a newer version.
#[test]
fn a_control_file_of_other_bytes_is_corrupt_and_not_newer() {
    let mut cluster = running(&[]);
    cluster.stop().unwrap();
    let path = cluster.data_dir().join("global/pg_control");
    let sound = fs::read(&path).unwrap();
    let mut state = 7u32;
    let noise: Vec<u8> = (0..8192)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect();
    for bytes in [noise, vec![0; 8192], vec![0xFF; 8192]] {
        fs::write(&path, bytes).unwrap();
        for args in [&["ls"][..], &["inspect"]] {
            let (status, _, said) = asked(&cluster, args);
            assert!(status == Some(1) && said.contains("corrupt"), "{args:?}: {said}");
            assert!(!said.contains("newer") && !said.contains("older"), "{args:?}: {said}");
        }
    }
    fs::write(&path, sound).unwrap();
    assert_eq!(asked(&cluster, &["ls"]).0, Some(0));
}

/// The system's words for it were printed, with its number.
#[test]
fn links_that_lead_to_each_other_are_told_in_words() {
    let mut cluster = running(&["CREATE TABLE t AS SELECT 1"]);
    let file = cluster.psql("postgres", "SELECT pg_relation_filepath('t')").unwrap();
    cluster.stop().unwrap();
    let file = cluster.data_dir().join(file);
    fs::remove_file(&file).unwrap();
    symlink(&file, &file).unwrap();
    let (status, _, said) = asked(&cluster, &["count", "-d", "postgres", "-t", "t"]);
    assert!(status == Some(1) && said.contains("links lead in a circle"), "{said}");
    let round = cluster.root().join("round");
    symlink(&round, &round).unwrap();
    let program = Program::new(env!("CARGO_BIN_EXE_pagemill"));
    let output = program.run(&round, &["ls"]).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("links lead in a circle"), "{said}");
}
