//! `pagemill man`: the manual page, made from the definitions that parse the command line.
//!
//! On standard output it is one page with a section for each command. In a directory there is a
//! page for each command, as `man` looks them up.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use clap_mangen::Man;

use crate::arguments::{ManArguments, definition};
use crate::failure::Completion;
use crate::output_paths::refuse_in_any_cluster;
use crate::standard_output::print;

pub(crate) fn run(arguments: &ManArguments) -> Result<Completion> {
    match &arguments.dir {
        Some(dir) => {
            refuse_in_any_cluster("--dir", dir)?;
            clap_mangen::generate_to(definition(), dir)
                .with_context(|| dir.display().to_string())?;
        }
        None => print(&page()?)?,
    }
    Ok(Completion::Done)
}

fn page() -> Result<Vec<u8>> {
    let mut definition = definition().disable_help_subcommand(true);
    definition.build();
    let mut page = Vec::new();
    let man = Man::new(definition.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    for command in definition.get_subcommands() {
        write_commands(command, &mut page)?;
    }
    man.render_extra_section(&mut page)?;
    man.render_version_section(&mut page)?;
    Ok(page)
}

/// A command, and the commands below it.
fn write_commands(command: &clap::Command, page: &mut Vec<u8>) -> Result<()> {
    write_command(command, page)?;
    // What `help` says of the commands below is said here by their own sections.
    let below = command.get_subcommands().filter(|command| command.get_name() != "help");
    below.into_iter().try_for_each(|command| write_commands(command, page))
}

/// A command's own page would have these as sections; here they are below the command.
fn write_command(command: &clap::Command, page: &mut Vec<u8>) -> Result<()> {
    let man = Man::new(command.clone());
    let mut sections = Vec::new();
    man.render_synopsis_section(&mut sections)?;
    man.render_description_section(&mut sections)?;
    man.render_options_section(&mut sections)?;
    man.render_extra_section(&mut sections)?;
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let name = name.replace('-', " ").to_uppercase();
    writeln!(page, ".SH \"{name}\"")?;
    let sections = String::from_utf8_lossy(&sections).replace("\n.SH ", "\n.SS ");
    let sections = sections.strip_prefix(".SH ").map_or(sections.clone(), |s| format!(".SS {s}"));
    page.extend_from_slice(sections.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_section_for_every_command() {
        let page = String::from_utf8(page().unwrap()).unwrap();
        for command in [
            "LS",
            "COUNT",
            "EXPORT",
            "INSPECT",
            "LOAD",
            "CLEAN",
            "GENERATE",
            "WAL",
            "WAL SHOW",
            "PROBE",
            "COMPLETIONS",
            "MAN",
        ] {
            assert!(page.contains(&format!(".SH \"PAGEMILL {command}\"")), "{command}");
        }
        assert_eq!(page.matches(".TH ").count(), 1);
        assert_eq!(page.matches(".SH NAME").count(), 1);
    }
}
