//! A program that was built without Parquet and Arrow: what asks for them is answered on one line that says how to build
//! them in, before anything is opened or made.
//!
//! `cargo xtask ci` runs it beside the suite, which is built with the feature.
#![cfg(not(feature = "arrow"))]

use assert_cmd::Command;

fn answer(flags: &[&str]) -> (Option<i32>, String) {
    let command = ["export", "-D", "/nonexistent", "-t", "t"];
    let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    let output = program.args(command).args(flags).output().unwrap();
    assert!(output.stdout.is_empty());
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_was_not_built_in_is_answered_with_how_to_build_it_in() {
    for (flags, named) in [
        (&["--format", "parquet"][..], "--format parquet"),
        (&["--format", "arrow", "--compression", "zstd:3"], "--format arrow"),
        (&["--format=arrow-stream"], "--format arrow-stream"),
        (&["--numeric", "text"], "--numeric"),
        (&["--partition-by", "day"], "--partition-by"),
        (&["--format", "csv", "--row-group-size", "7"], "--row-group-size"),
    ] {
        let (status, told) = answer(flags);
        let says = format!("pagemill: {named}: this program was built without Parquet and Arrow; ");
        assert_eq!(status, Some(2), "{told}");
        assert!(told.starts_with(&says), "{told}");
        assert!(told.ends_with("cargo install --locked --path crates/pagemill --features arrow\n"));
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn text_csv_and_json_need_nothing_of_it() {
    for flags in [&["--format", "text"][..], &["--format", "csv", "--header"], &["--format=json"]] {
        let (status, told) = answer(flags);
        // That there is no such directory is wrong usage, too.
        assert_eq!(status, Some(2), "{told}");
        assert!(
            told.starts_with("pagemill: /nonexistent: not a PostgreSQL data directory"),
            "{told}"
        );
    }
}
