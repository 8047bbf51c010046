//! `pagemill completions`: a script that teaches a shell the commands and flags, made from the
//! definitions that parse them.

use anyhow::Result;

use crate::arguments::{CompletionsArguments, definition};
use crate::failure::Completion;
use crate::standard_output::print;

pub(crate) fn run(arguments: &CompletionsArguments) -> Result<Completion> {
    // Into memory first: the generator panics where writing fails.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut definition(), "pagemill", &mut script);
    print(&script)?;
    Ok(Completion::Done)
}
