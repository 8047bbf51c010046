//! `pagemill`: PostgreSQL's tables read from their files, loaded and copied there, with no server running.
//!
//! Data goes to standard output, everything else to standard error. What a command does is done
//! by the engine; here are its flags, its printing, and its exit status.
#![forbid(unsafe_code)]

mod arguments;
#[cfg(feature = "arrow")]
mod arrow_export;
#[cfg(not(feature = "arrow"))]
mod arrow_missing;
mod changing;
mod clean;
mod clone;
mod clone_arguments;
mod clone_cluster;
mod completions;
mod count;
mod drop_database;
mod export;
mod export_files;
mod generate;
mod generate_arguments;
mod history;
mod history_arguments;
mod inspect;
mod inspect_block;
mod inspect_relation;
mod load;
mod load_arguments;
mod ls;
mod ls_repository;
mod man_page;
mod options;
mod order;
mod other_program;
mod page_history;
mod probe;
mod probe_json;
mod probe_text;
mod tables;
#[cfg(test)]
mod tests;
mod tuple_changes;
mod wal;
mod wal_arguments;
mod wal_block;
mod wal_plan;
mod wal_plan_json;
mod wal_plan_text;
mod wal_summary;
mod wal_text;

use std::process::ExitCode;

use pagemill_cli::{failure, output_paths, progress, session, standard_output, text_table};

use arguments::Command;

fn main() -> ExitCode {
    pagemill_io::survive_file_size_limit();
    let (command, quiet) = match arguments::parse(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(error) => return failure::of_command_line(&error),
    };
    failure::set_quiet(quiet);
    let remedies = command.remedies();
    failure::set_wording(move |error, message| remedies.apply(error, message));
    failure::exit_code(match &command {
        Command::Ls(arguments) => ls::run(arguments),
        Command::Count(arguments) => count::run(arguments),
        Command::Export(arguments) => export::run(arguments),
        Command::Inspect(arguments) => inspect::run(arguments),
        Command::History(arguments) => history::run(arguments),
        Command::Load(arguments) => load::run(arguments),
        Command::Clone(arguments) => clone::run(arguments),
        Command::Drop(arguments) => drop_database::run(arguments),
        Command::Clean(arguments) => clean::run(arguments),
        Command::Generate(arguments) => generate::run(arguments),
        Command::Wal(arguments) => wal::run(arguments),
        Command::Lab(_) => other_program::run(other_program::LAB, "lab"),
        Command::Advise(_) => other_program::run(other_program::LAB, "advise"),
        Command::Sql(_) => other_program::run(other_program::SQL, "sql"),
        Command::Serve(_) => other_program::run(other_program::SERVE, "serve"),
        Command::Worker(_) => other_program::run(other_program::SQL, "worker"),
        Command::Probe(arguments) => probe::run(arguments),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Man(arguments) => man_page::run(arguments),
    })
}
