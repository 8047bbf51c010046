//! What tests of backups share: the command on a directory, and a session that changes rows while a backup is taken.
//!
//! Invariant: a command that fails prints nothing to standard output, and panics at nothing.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::TestCluster;

pub(crate) fn pagemill_command(words: &[&str], data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    let (commands, rest) = words.split_at(if words[0] == "wal" { 2 } else { 1 });
    command.args(commands).arg("-D").arg(data).args(rest).env_remove("PGDATA");
    command.env("PGBACKREST_REPO1_CIPHER_PASS", "flour");
    command
}

pub(crate) fn pagemill(words: &[&str], data: &Path) -> Result<Output> {
    Ok(pagemill_command(words, data).output()?)
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn done(words: &[&str], data: &Path) -> Result<String> {
    let output = pagemill(words, data)?;
    ensure!(output.status.success(), "{words:?}: {}", said(&output));
    Ok(String::from_utf8(output.stdout)?)
}

/// What a command says that does not do its work; it neither prints nor panics.
pub(crate) fn refused(words: &[&str], data: &Path) -> Result<String> {
    let output = pagemill(words, data)?;
    let said = said(&output);
    ensure!(!output.status.success() && output.stdout.is_empty(), "{words:?}: {said}");
    ensure!(!said.contains("panicked"), "{words:?}: {said}");
    Ok(said)
}

pub(crate) fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// What another program prints, which has to succeed.
pub(crate) fn succeed(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{command:?}: {printed}{}", said(&output));
    Ok(printed)
}

/// A session that changes rows by a statement that ends once it is [stopped](stop_load).
pub(crate) fn start_load(cluster: &TestCluster, load: &str) -> Result<Child> {
    let mut command = cluster.psql_command("postgres");
    Ok(command.args(["-c", load]).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

pub(crate) fn stop_load(cluster: &TestCluster, mut load: Child) -> Result<()> {
    cluster.psql("postgres", "alter table stopped add column yes int")?;
    ensure!(load.wait()?.success(), "the load failed");
    cluster.psql("postgres", "alter table stopped drop column yes").map(drop)
}
