//! What programs of their own do: `pagemill lab` and `advise` in `pagemill-lab`, `pagemill sql` and
//! `pagemill ls --ddl` in `pagemill-sql`, `pagemill serve` in `pagemill-serve`. They are started as
//! git and cargo start their parts.
//!
//! The program takes the place of this process, so that terminal, signals and exit status are its own. It gets the words
//! of this command line as they were typed. The one beside this program is taken, since both were installed together;
//! else that of `PATH`.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::failure::Completion;

/// The lab, and advice from it.
pub(crate) const LAB: &str = "pagemill-lab";
/// Statements.
pub(crate) const SQL: &str = "pagemill-sql";
/// PostgreSQL's clients.
pub(crate) const SERVE: &str = "pagemill-serve";

/// Becomes the program that does the command; returns only where it could not be started.
pub(crate) fn run(program: &'static str, command: &str) -> Result<Completion> {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(program));
    if let Some(beside) = &beside {
        let error = start(beside.as_os_str());
        if error.kind() != ErrorKind::NotFound {
            return Err(error).with_context(|| beside.display().to_string());
        }
    }
    let error = start(OsStr::new(program));
    if error.kind() != ErrorKind::NotFound {
        return Err(error).context(program);
    }
    let place = beside.as_deref().and_then(|beside| beside.parent());
    let place =
        place.map_or_else(String::new, |place| format!(", neither in {} nor", place.display()));
    bail!(
        "{command} is done by the program {program}, which is not installed{place} in PATH: \
         cargo install --locked --path crates/{program}"
    )
}

/// Why the program could not take this process's place.
fn start(program: &OsStr) -> io::Error {
    Command::new(program).args(std::env::args_os().skip(1)).exec()
}
