//! What programs of their own do: `pagemill lab` and `advise` in `pagemill-lab`, `pagemill sql`,
//! `pagemill ls --ddl` and `pagemill export --workers` in `pagemill-sql`, `pagemill serve` in `pagemill-serve`. They are started as
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

/// A program that does commands of this one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OtherProgram {
    name: &'static str,
    /// The package of a release that has it.
    package: &'static str,
}

/// The lab, and advice from it.
pub(crate) const LAB: OtherProgram = OtherProgram { name: "pagemill-lab", package: "pagemill" };
/// Statements.
pub(crate) const SQL: OtherProgram = OtherProgram { name: "pagemill-sql", package: "pagemill-sql" };
/// PostgreSQL's clients.
pub(crate) const SERVE: OtherProgram =
    OtherProgram { name: "pagemill-serve", package: "pagemill-sql" };

/// Becomes the program that does the command; returns only where it could not be started.
pub(crate) fn run(program: OtherProgram, command: &str) -> Result<Completion> {
    let OtherProgram { name, package } = program;
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(name));
    if let Some(beside) = &beside {
        let error = start(beside.as_os_str());
        if error.kind() != ErrorKind::NotFound {
            return Err(error).with_context(|| beside.display().to_string());
        }
    }
    let error = start(OsStr::new(name));
    if error.kind() != ErrorKind::NotFound {
        return Err(error).context(name);
    }
    let place = beside.as_deref().and_then(|beside| beside.parent());
    let place = place
        .map_or_else(|| "not".to_owned(), |place| format!("neither in {} nor", place.display()));
    bail!(
        "{command} needs the program {name}, which is {place} in PATH: it comes with the package {package} of \
         a release; from a checkout, cargo install --locked --path crates/{name}"
    )
}

/// Why the program could not take this process's place.
fn start(program: &OsStr) -> io::Error {
    Command::new(program).args(std::env::args_os().skip(1)).exec()
}
