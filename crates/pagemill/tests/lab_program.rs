//! `pagemill lab` and `pagemill advise` start the program `pagemill-lab`: which one, with what, and what comes of it.
//!
//! The program is a script that tells what it got. `pagemill` is linked into a folder of the test's own, so that nothing
//! lies beside it but what the test puts there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A folder with `pagemill` in `bin` and an empty `path`.
struct Installed(TempDir);

impl Installed {
    fn new() -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for folder in ["bin", "path"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let program = dir.path().join("bin/pagemill");
        fs::hard_link(env!("CARGO_BIN_EXE_pagemill"), &program)
            .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_pagemill"), &program).map(drop))
            .unwrap();
        Self(dir)
    }

    fn put(&self, folder: &str, script: &str) -> PathBuf {
        let path = self.0.path().join(folder).join("pagemill-lab");
        // By another process: a child that another test starts meanwhile would hold a file that we write open, and what is
        // open for writing cannot be executed.
        let written = Command::new("sh")
            .args(["-c", r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod 755 "$2""#, "sh", script])
            .arg(&path)
            .status()
            .unwrap();
        assert!(written.success());
        path
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.0.path().join("bin/pagemill"));
        command.args(words).env("PATH", self.0.path().join("path")).stdin(Stdio::null());
        command
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_words_reach_the_program_as_they_were_typed_and_its_status_comes_back() {
    let installed = Installed::new();
    installed.put("bin", r#"for word in "$@"; do echo "<$word>"; done; exit 7"#);
    let output = installed.run(&["lab", "--quick", "a b", "--experiment=device", "--seed", "3"]);
    assert_eq!(printed(&output), "<lab>\n<--quick>\n<a b>\n<--experiment=device>\n<--seed>\n<3>\n");
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    let output = installed.run(&["advise", "--from", "*", "--format", "sql"]);
    assert_eq!(printed(&output), "<advise>\n<--from>\n<*>\n<--format>\n<sql>\n");
}

#[test]
fn the_program_takes_the_place_of_the_process_with_its_input_and_its_signals() {
    let installed = Installed::new();
    installed.put("bin", "read line; echo \"$$ $line\"; kill -TERM $$");
    let mut child =
        installed.command(&["lab"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"typed\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(printed(&output), format!("{pid} typed\n"));
    assert_eq!(output.status.signal(), Some(15));
}

#[test]
fn the_one_beside_comes_before_the_one_in_path() {
    let installed = Installed::new();
    installed.put("path", "echo path");
    assert_eq!(printed(&installed.run(&["lab"])), "path\n");
    let beside = installed.put("bin", "echo beside");
    assert_eq!(printed(&installed.run(&["lab"])), "beside\n");
    // Not to be run is not the same as not being there.
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o644)).unwrap();
    let output = installed.run(&["lab"]);
    assert!(said(&output).contains(&format!("{}: Permission denied", beside.display())));
    assert_eq!((output.status.code(), printed(&output).as_str()), (Some(1), ""));
}

#[test]
fn without_the_program_the_way_to_install_it_is_said() {
    let installed = Installed::new();
    let commands: [(&[&str], &str, &str); 6] = [
        (&["lab"], "pagemill-lab", "pagemill"),
        (&["advise"], "pagemill-lab", "pagemill"),
        (&["sql", "-D", "x"], "pagemill-sql", "pagemill-sql"),
        (&["serve", "-D", "x"], "pagemill-serve", "pagemill-sql"),
        (&["worker", "-D", "x"], "pagemill-sql", "pagemill-sql"),
        (&["ls", "-D", "x", "-d", "y", "--ddl"], "pagemill-sql", "pagemill-sql"),
    ];
    for (command, program, package) in commands {
        let output = installed.run(command);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1));
        assert!(said.starts_with(&format!("pagemill: {} ", command[0])), "{said}");
        assert!(said.contains(&format!("needs the program {program}, which is neither in ")));
        assert!(said.contains(&format!("the package {package} of a release")), "{said}");
        let remedy = format!("cargo install --locked --path crates/{program}\n");
        assert!(said.ends_with(&remedy), "{said}");
        assert!(said.contains(&text(&installed.0.path().join("bin"))), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn help_and_wrong_flags_need_no_program() {
    let installed = Installed::new();
    for words in [&["lab", "--help"][..], &["help", "advise"], &["advise", "-h"]] {
        let output = installed.run(words);
        assert!(output.status.success() && printed(&output).contains("Usage: pagemill "));
    }
    let output = installed.run(&["lab", "--fast"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("--fast"), "{}", said(&output));
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
