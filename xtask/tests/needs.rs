//! `ci/needs.sh` on a machine that reaches nothing: its last words say what to do.
//!
//! The machine is a `PATH` with the tools the script cannot do without, and programs that pretend.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use pagemill_testkit::in_checkout;
use tempfile::TempDir;

const TOOLS: [&str; 8] = ["bash", "cat", "env", "grep", "id", "sed", "sh", "uname"];

/// A Debian with every package that is asked for and none newer, whose curl reaches nobody.
const PRETENDED: [(&str, &str); 4] = [
    ("curl", "echo 'curl: (6) Could not resolve host' >&2; exit 6"),
    ("dpkg-query", "echo 'install ok installed'"),
    ("apt-get", "exit 0"),
    ("apt-cache", "echo '  Candidate: (none)'"),
];

fn program(directory: &Path, name: &str, script: &str) {
    let path = directory.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn machine() -> TempDir {
    let machine = tempfile::tempdir().unwrap();
    for tool in TOOLS {
        let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
        let found = found.iter().find(|path| path.exists()).unwrap();
        symlink(found, machine.path().join(tool)).unwrap();
    }
    PRETENDED.iter().for_each(|(name, script)| program(machine.path(), name, script));
    // Whoever runs this may be no root.
    program(machine.path(), "sudo", "exec \"$@\"");
    machine
}

/// What the function says before it fails.
fn complaint(machine: &TempDir, call: &str) -> String {
    let output = Command::new("/bin/bash")
        .args(["-euo", "pipefail", "-c", &format!(". ci/needs.sh; {call}; echo REACHED")])
        .current_dir(in_checkout(""))
        .env_clear()
        .env("PATH", machine.path())
        .env("HOME", machine.path())
        .output()
        .unwrap();
    let (out, err) = (&output.stdout, String::from_utf8(output.stderr).unwrap());
    assert!(!output.status.success() && !String::from_utf8_lossy(out).contains("REACHED"), "{err}");
    err
}

/// The last words were curl's: "(6) Could not resolve host: sh.rustup.rs".
#[test]
fn without_a_network_rust_is_named_with_the_way_to_carry_it_here() {
    let said = complaint(&machine(), "need_rust");
    assert!(said.starts_with("error: Rust 1.88 or newer is needed"), "{said}");
    assert!(said.contains("standalone installer") && said.contains("cargo vendor"), "{said}");
    assert!(!said.contains("curl"), "{said}");
}

#[test]
fn an_old_rust_and_a_rustup_that_reaches_nothing_are_told_apart_from_none() {
    let machine = machine();
    program(machine.path(), "cargo", "echo 'cargo 1.63.0 (made up)'");
    program(machine.path(), "rustup", "exit 1");
    let said = complaint(&machine, "need_rust");
    assert!(said.contains("found cargo 1.63.0") && said.contains("the stable toolchain"), "{said}");
}

#[test]
fn packages_that_cannot_be_had_are_named() {
    let machine = machine();
    program(machine.path(), "dpkg-query", "exit 1");
    program(machine.path(), "apt-get", "exit 100");
    let said = complaint(&machine, "need_packages gcc libc6-dev");
    assert!(said.contains("could not install gcc libc6-dev: without a network"), "{said}");
}
