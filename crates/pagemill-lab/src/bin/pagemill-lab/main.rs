//! `pagemill-lab`: the experiments on storage and the advice that follows, as a program of its own, which
//! `pagemill lab` and `pagemill advise` start.
//!
//! It has the simulated disk and all the charts with it, which the small command has no use for. Its command line is that
//! of `pagemill`: the words behind the program's name are passed on as they are.
#![forbid(unsafe_code)]

mod advise;
mod lab;
mod lab_compare;
mod lab_display;
mod lab_documents;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use pagemill_cli::{
    advise_arguments, failure, lab_arguments, output_paths, progress, standard_output, text_table,
};

use advise_arguments::AdviseArguments;
use failure::UsageError;
use lab_arguments::LabArguments;

/// Measure storage, and say which settings follow
///
/// The part of Pagemill that `pagemill lab` and `pagemill advise` start.
#[derive(Debug, Parser)]
#[command(name = "pagemill-lab", bin_name = "pagemill", version, max_term_width = 100)]
#[command(arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
enum Command {
    Lab(LabArguments),
    Advise(AdviseArguments),
}

fn main() -> ExitCode {
    let command = match Arguments::try_parse() {
        Ok(arguments) => arguments.command,
        Err(error) => return failure::of_command_line(&error),
    };
    let result = match &command {
        Command::Lab(arguments) => lab::run(arguments),
        Command::Advise(arguments) => advise::run(arguments),
    };
    failure::exit_code(result.map_err(as_usage))
}

/// An error of the lab that means that the command line cannot be followed, as such.
fn as_usage(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<pagemill_lab::Error>() {
        Some(wrong) if wrong.is_usage() => UsageError(wrong.to_string()).into(),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use pagemill_cli::sizes;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_least_size_that_is_taken_is_the_least_that_is_measured() {
        assert_eq!(sizes::LEAST_LAB_SIZE, pagemill_lab::experiments::LEAST_SIZE);
    }

    #[test]
    fn a_version_that_is_not_known_is_wrong_usage() {
        let wrong = "13".parse::<pagemill_lab::Version>().unwrap_err();
        let said = wrong.to_string();
        let error = as_usage(anyhow::Error::from(wrong).context("--pg-version"));
        assert!(failure::is_usage(&error) && error.to_string() == said, "{error:#}");
    }
}
