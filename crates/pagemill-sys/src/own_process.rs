//! Tests that end their process or change it for good: each runs in a process of its own, which is
//! this test binary, started again for that test alone.
//!
//! Such a test is called in the ordinary run too, and does nothing there: it asks [`is_alone`] first.

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};

const ALONE: &str = "PAGEMILL_SYS_TEST_ALONE";

/// Runs the test named by its full path alone, and says how the process ended.
pub(crate) fn run(test: &str) -> io::Result<ExitStatus> {
    run_with(test, ALONE, "yes".as_ref())
}

/// As [`run`], with a variable in its environment.
pub(crate) fn run_with(test: &str, variable: &str, value: &Path) -> io::Result<ExitStatus> {
    let mut this = Command::new(std::env::current_exe()?);
    this.env(variable, value);
    this.args(["--exact", test, "--test-threads=1"]).env(ALONE, "yes");
    let output = this.output()?;
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("running 1 test"), "there is no test {test}: {told}");
    Ok(output.status)
}

/// Whether this process was started by [`run`].
pub(crate) fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}
