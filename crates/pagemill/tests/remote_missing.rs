//! A program that was built without object stores: a URL is answered on one line that says how to build them in, before anything
//! is opened; one of a file needs nothing of it.
//!
//! `cargo xtask ci` runs it beside the suite, which is built with the feature.
#![cfg(not(feature = "remote"))]

use assert_cmd::Command;

fn answer(arguments: &[&str]) -> (Option<i32>, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    let output = program.args(arguments).output().unwrap();
    assert!(output.stdout.is_empty());
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_url_is_answered_with_how_to_build_in_what_it_takes() {
    for arguments in [
        &["ls", "-D", "s3://bucket/x"][..],
        &["count", "-D", "/nonexistent", "--base", "s3://bucket/x", "-d", "a", "-t", "b"],
        &["ls", "-D", "/nonexistent", "--wal", "s3://bucket/x"],
    ] {
        let (status, told) = answer(arguments);
        assert_eq!(status, Some(2), "{told}");
        assert!(told.starts_with("pagemill: s3://bucket/x: this program was built without object"));
        assert!(told.ends_with("--path crates/pagemill --features remote\n"), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn the_url_of_a_file_is_a_path() {
    let (status, told) = answer(&["ls", "-D", "file:///nonexistent"]);
    assert_eq!(status, Some(2), "{told}");
    assert!(told.starts_with("pagemill: /nonexistent: not a PostgreSQL data directory"), "{told}");
}
