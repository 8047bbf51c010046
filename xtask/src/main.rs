//! The project's chores, as programs: `cargo xtask tidy`, `cargo xtask bench`, `cargo xtask ci`.
//!
//! Why a crate and not scripts: the rules are unit-tested, and the benchmark computes its own
//! statistics. Few dependencies, so that the first `cargo xtask` of a fresh checkout is quick.

#![forbid(unsafe_code)]

mod bench;
mod ci;
mod mutate;
mod test_programs;
mod tidy;
mod torture;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's chores.
#[derive(Debug, Parser)]
#[command(
    bin_name = "cargo xtask",
    max_term_width = 100,
    args_override_self = true,
    disable_help_subcommand = true
)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

/// A chore by name.
#[derive(Debug, Subcommand)]
enum Chore {
    /// Check the house rules; each finding names file:line, the rule and the remedy
    Tidy,
    /// Run fmt, clippy, tidy, tests, documentation: everything a change must pass, or the steps named
    Ci {
        /// What to run, in this order
        #[arg(value_name = "STEP")]
        steps: Vec<ci::Step>,
    },
    /// Measure pagemill against PostgreSQL, against the device, and against itself
    Bench(Box<bench::Arguments>),
    /// Break the functions that redo WAL, one way at a time, and tell which ways no test notices
    Mutate(mutate::Arguments),
    /// Cut loads short at every call, and have servers judge them: hours, kept under runs/
    #[command(disable_help_flag = true)]
    Torture {
        /// The flags of the program pagemill-torture, --help among them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().chore {
        Chore::Tidy => tidy::run(),
        Chore::Ci { steps } => ci::run(&steps),
        Chore::Bench(arguments) => bench::run(*arguments),
        Chore::Mutate(arguments) => mutate::run(&arguments),
        Chore::Torture { arguments } => torture::run(&arguments),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("xtask").chain(line.split_whitespace()))
    }

    #[test]
    fn the_commands_are_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_benchmark_without_a_name_is_that_of_tables() {
        for line in ["bench", "bench --quick count-t", "bench tables --quick", "bench read --list"]
        {
            parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        assert!(parse("bench --quick read --list").is_err());
    }

    #[test]
    fn what_torture_is_asked_goes_to_its_program() {
        let Ok(Arguments { chore: Chore::Torture { arguments } }) =
            parse("torture --call 3 --help --loss torn:7")
        else {
            panic!("refused")
        };
        assert_eq!(arguments, ["--call", "3", "--help", "--loss", "torn:7"]);
    }

    #[test]
    fn no_chore_and_an_unknown_one_are_refused() {
        for line in ["", "sweep", "tidy now", "bench --nonsense"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
