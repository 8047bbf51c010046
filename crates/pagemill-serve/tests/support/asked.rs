//! Scripts of one statement a line, asked of two by psql.
//!
//! Invariant: of errors the SQLSTATE and the message are compared, of rows all that psql prints.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// What psql prints of a script, a line before each statement, with the states of errors.
pub(crate) fn asked(mut psql: Command, script: &str) -> Result<String> {
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=0", "-f", "-"]).env("PGTZ", "UTC");
    psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = psql.spawn()?;
    let mut text = String::new();
    for statement in script.lines().filter(|line| !line.is_empty() && !line.starts_with("--")) {
        let quoted = statement.replace('\'', "''");
        let end = if statement.ends_with(';') { "" } else { ";" };
        text += &format!("\\echo '== {quoted}'\n{statement}{end}\n");
        text += "\\echo :SQLSTATE :LAST_ERROR_MESSAGE\n";
        text += "\\set LAST_ERROR_MESSAGE ''\n";
    }
    child.stdin.take().context("a pipe")?.write_all(text.as_bytes())?;
    Ok(String::from_utf8(child.wait_with_output()?.stdout)?)
}

/// What the server answered, statement by statement.
pub(crate) fn compare(found: &str, expected: &str) -> Result<()> {
    let parts = found.split("\n== ").zip(expected.split("\n== "));
    let wrong: Vec<String> = parts
        .filter(|(found, expected)| found != expected)
        .map(|(found, expected)| format!("{found}\n--- the server:\n{expected}\n"))
        .collect();
    ensure!(wrong.is_empty(), "{} statements:\n{}", wrong.len(), wrong.join("\n"));
    ensure!(found.lines().count() == expected.lines().count(), "all is compared");
    Ok(())
}
