//! The built program's manners: help, completions, the manual page, wrong usage, exit statuses.
//!
//! Nothing here needs PostgreSQL: what is read at most pretends to be a data directory.

use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

fn pagemill(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    command.args(words).env_remove("PGDATA").env_remove("PGDATABASE");
    command
}

fn stdout(words: &[&str]) -> String {
    let output = pagemill(words).assert().success().get_output().clone();
    assert!(output.stderr.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What is said on standard error: one line that begins with the program's name.
fn complaint(words: &[&str], status: i32) -> String {
    let output = pagemill(words).assert().code(status).get_output().clone();
    assert!(output.stdout.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&output.stdout));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("pagemill: ") && said.ends_with('\n'), "{words:?}: {said:?}");
    assert_eq!(said.lines().count(), 1, "{words:?}: {said}");
    said
}

/// A directory with the version file and nothing behind it.
fn pretended_data_directory(version: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("PG_VERSION"), version).unwrap();
    std::fs::create_dir(dir.path().join("global")).unwrap();
    dir
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_version_is_that_of_the_package() {
    assert_eq!(stdout(&["--version"]), format!("pagemill {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_command_has_help_with_an_example() {
    let help = stdout(&["--help"]);
    for command in [
        "ls",
        "count",
        "export",
        "inspect",
        "load",
        "clean",
        "generate",
        "wal",
        "advise",
        "probe",
        "completions",
        "man",
    ] {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
        let own = stdout(&[command, "--help"]);
        assert!(own.contains("Example") && own.contains(&format!("  pagemill {command}")), "{own}");
        assert!(stdout(&[command, "-h"]).len() <= own.len());
    }
    assert!(stdout(&["wal", "show", "--help"]).contains("  pagemill wal show -D"));
    assert_eq!(stdout(&["help", "count"]), stdout(&["count", "--help"]));
}

#[test]
fn help_shows_the_flags_a_command_has_a_use_for() {
    let (ls, count) = (stdout(&["ls", "--help"]), stdout(&["count", "--help"]));
    for flag in ["--pgdata", "--live", "--allow-unclean", "--no-verify-checksums", "--stats"] {
        assert!(ls.contains(flag) && count.contains(flag), "{flag}");
    }
    for flag in ["--jobs", "--io-combine-limit", "--shared-buffers", "--on-damage", "--progress"] {
        assert!(!ls.contains(flag) && count.contains(flag), "{flag}");
    }
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&["completions", shell]);
        assert!(script.contains("export") && script.contains("io-combine-limit"), "{shell}");
    }
    complaint(&["completions", "tcsh"], 2);
}

#[test]
fn the_manual_is_one_page_or_one_file_for_each_command() {
    let page = stdout(&["man"]);
    assert!(page.contains(".TH pagemill 1") && page.contains("PAGEMILL EXPORT"), "{page}");
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(stdout(&["man", "--dir", text(dir.path())]), "");
    for name in ["pagemill.1", "pagemill-ls.1", "pagemill-export.1", "pagemill-wal-show.1"] {
        assert!(dir.path().join(name).is_file(), "{name}");
    }
    complaint(&["man", "--dir", "/nonexistent/man1"], 1);
}

#[test]
fn a_wrong_command_line_ends_with_status_2_and_one_line() {
    for words in [
        &["cuont", "-t", "a"][..],
        &["count"],
        &["count", "-t"],
        &["count", "-t", "a", "-j", "0"],
        &["count", "-t", "a", "--io-combine-limit", "129"],
        &["count", "-t", "a", "--shared-buffers", "120kB"],
        &["count", "-t", "a", "--shared-buffers", "many"],
        &["count", "-t", "a", "--on-damage", "ignore"],
        &["count", "-t", "a", "--stats=xml"],
        &["export", "-t", "a", "--format", "binary"],
        &["inspect", "--block", "0"],
        &["ls", "-S"],
    ] {
        complaint(words, 2);
    }
    let nothing = pagemill(&[]).assert().code(2).get_output().clone();
    assert!(
        nothing.stdout.is_empty() && String::from_utf8_lossy(&nothing.stderr).contains("Usage")
    );
}

#[test]
fn without_a_data_directory_the_two_ways_to_name_one_are_told() {
    for words in [&["ls"][..], &["count", "-t", "a"], &["export", "-t", "a"], &["inspect"]] {
        let said = complaint(words, 2);
        assert!(said.contains("-D") && said.contains("PGDATA"), "{said}");
    }
    pagemill(&["ls"]).env("PGDATA", "").assert().code(2);
}

#[test]
fn what_is_no_data_directory_is_wrong_usage() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["ls", "inspect"] {
        assert!(complaint(&[command, "-D", text(dir.path())], 2).contains("not a PostgreSQL data"));
        assert!(complaint(&[command, "-D", "/nonexistent"], 2).contains("no such directory"));
    }
    let from_environment = pagemill(&["ls"]).env("PGDATA", dir.path()).assert().code(2);
    let said = String::from_utf8_lossy(&from_environment.get_output().stderr).into_owned();
    assert!(said.contains("not a PostgreSQL data directory"), "{said}");
}

#[test]
fn a_version_that_cannot_be_read_is_refused_by_name() {
    for (version, named) in
        [("13\n", "PostgreSQL 13"), ("9.6\n", "PostgreSQL 9"), ("20", "PostgreSQL 20")]
    {
        let dir = pretended_data_directory(version);
        let said = complaint(&["ls", "-D", text(dir.path())], 1);
        assert!(said.contains(named) && said.contains("14 to 18"), "{said}");
    }
}

#[test]
fn a_running_server_is_refused_and_the_flag_to_insist_is_told() {
    let dir = pretended_data_directory("15\n");
    let pid = format!("{}\n", std::process::id());
    std::fs::write(dir.path().join("postmaster.pid"), pid).unwrap();
    let said = complaint(&["ls", "-D", text(dir.path())], 1);
    assert!(said.contains("a server is running") && said.contains("--live"), "{said}");
}

#[test]
fn a_control_file_of_noise_is_damage_with_the_file_named() {
    let dir = pretended_data_directory("15\n");
    std::fs::write(dir.path().join("global/pg_control"), [0x5A; 8192]).unwrap();
    for command in ["ls", "inspect"] {
        let said = complaint(&[command, "-D", text(dir.path())], 1);
        assert!(said.contains("global/pg_control"), "{said}");
    }
    std::fs::write(dir.path().join("global/pg_control"), [0; 100]).unwrap();
    complaint(&["inspect", "-D", text(dir.path())], 1);
}

#[test]
fn option_values_are_judged_before_the_directory_is_opened() {
    let export = |flags: &[&str]| {
        let words = [&["export", "-t", "a", "-D", "/nonexistent"], flags].concat();
        complaint(&words, 2)
    };
    assert!(export(&["--delimiter", "ab"]).contains("delimiter"));
    assert!(export(&["--columns", "a,,b"]).contains("--columns"));
    assert!(export(&["--force-quote", "\"a"]).contains("--force-quote"));
    assert!(export(&["--delimiter", "\\t"]).contains("no such directory"));
}

#[test]
fn a_reader_that_goes_away_ends_the_program_in_silence() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_pagemill"))
        .arg("man")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{}", output.status);
}
