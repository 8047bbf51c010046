//! The command line: commands and flags, spelled as psql and pg_dump spell them. Help, shell
//! completions and the manual page all come from these definitions.
//!
//! Invariant: a flag of the common ones is taken by every command that opens a data directory, so
//! that scripts need not know which of them a command has a use for; help shows only those that
//! matter to it.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::clone_arguments::{CleanArguments, CloneArguments, DropArguments};
use crate::generate_arguments::GenerateArguments;
use crate::history_arguments::HistoryArguments;
use crate::load_arguments::LoadArguments;
use crate::wal_arguments::WalArguments;
use clap::{Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use pagemill_cli::advise_arguments::AdviseArguments;
use pagemill_cli::cluster_arguments::{CommonArguments, DatabaseArgument, RecoveryArguments};
use pagemill_cli::export_arguments::ExportArguments;
use pagemill_cli::lab_arguments::LabArguments;
use pagemill_cli::ls_arguments::LsArguments;
use pagemill_cli::read_arguments::ReadArguments;
use pagemill_cli::remedies::Remedies;
use pagemill_cli::serve_arguments::ServeArguments;
use pagemill_cli::sql_arguments::SqlArguments;
use pagemill_cli::table_arguments::{OrderArguments, SelectionArguments};
use pagemill_cli::worker_arguments::WorkerArguments;

/// Read, load and copy PostgreSQL's tables and databases in their files, with no server running
///
/// Pagemill reads the data directory of a stopped PostgreSQL 14 to 18 (or a snapshot, or an
/// unpacked backup of one) and prints what a server started on it would print. Only `load`, `clone`,
/// `drop` and `clean` change a data directory.
#[derive(Debug, Parser)]
#[command(name = "pagemill", version, max_term_width = 100)]
#[command(after_help = "\
Data goes to standard output, everything else to standard error.
Exit status: 0 done, also when the reader of standard output went away; 1 the work failed, or damage was found;
2 wrong usage. A signal ends the program as a signal, once what was begun is undone: shells show 130 for Ctrl-C
(SIGINT), 143 for SIGTERM, 129 for SIGHUP. What was done before the signal could stop it gives 0.")]
struct Arguments {
    /// Print nothing but errors on standard error: no notices, no progress
    #[arg(short, long, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Ls(LsArguments),
    Count(CountArguments),
    Export(Box<ExportArguments>),
    Inspect(InspectArguments),
    History(HistoryArguments),
    Load(Box<LoadArguments>),
    Clone(Box<CloneArguments>),
    Drop(DropArguments),
    Clean(CleanArguments),
    Generate(GenerateArguments),
    Wal(WalArguments),
    Sql(Box<SqlArguments>),
    Serve(Box<ServeArguments>),
    Worker(Box<WorkerArguments>),
    Lab(LabArguments),
    Advise(AdviseArguments),
    Probe(ProbeArguments),
    Completions(CompletionsArguments),
    Man(ManArguments),
}

impl Command {
    /// What flags of this command can do about errors.
    pub(crate) fn remedies(&self) -> Remedies {
        match self {
            Self::History(_) => Remedies::READING.looking_back(),
            Self::Ls(_) | Self::Count(_) | Self::Export(_) | Self::Inspect(_) | Self::Wal(_) => {
                Remedies::READING
            }
            Self::Clone(arguments) if arguments.cluster && arguments.verify => {
                Remedies::CHANGING.verifying()
            }
            _ => Remedies::CHANGING,
        }
    }
}

/// Count the rows of tables
///
/// Prints what `select count(*)` would print: the rows that are committed and not deleted. One
/// table by its name gives the bare number; several, or a pattern, one line each: name, tab,
/// rows. A partitioned table has the rows of its partitions.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill count -D /var/lib/postgresql/15/main -d shop -t orders
  pagemill count -D /var/lib/postgresql/15/main -d shop \\
      -t 'sales.*' -T '*_old' -j 4")]
pub(crate) struct CountArguments {
    #[command(flatten)]
    pub(crate) common: CommonArguments,
    #[command(flatten)]
    pub(crate) recovery: RecoveryArguments,
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
    #[command(flatten)]
    pub(crate) order: OrderArguments,
    /// Print JSON: an array with schema, name and rows of each table
    #[arg(long)]
    pub(crate) json: bool,
}

/// COPY's formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatChoice {
    /// Tab-separated, escaped with backslashes
    Text,
    /// Comma-separated values, quoted
    Csv,
}

/// Show the control file, a relation's files, or what lies on one block
///
/// Without -t, what pg_controldata prints; this works on a running server too. With -t, the
/// relation: its files, forks, segments and columns. With --block, that block: header, checksum
/// found and computed, line pointers, and of a table each tuple's header and whether it is
/// visible. Damage is shown beside what is damaged, and gives exit status 1.
///
/// Where WAL is redone first (of a crashed cluster, a base backup, a snapshot), a block is shown as after it, with what redo
/// began from and the records that it looked at.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill inspect -D /var/lib/postgresql/15/main
  pagemill inspect -D /var/lib/postgresql/15/main -d shop -t orders
  pagemill inspect -D /var/lib/postgresql/15/main -d shop -t orders --block 0")]
pub(crate) struct InspectArguments {
    #[command(flatten)]
    pub(crate) common: CommonArguments,
    #[command(flatten)]
    pub(crate) recovery: RecoveryArguments,
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// The relation: a table, index, sequence, TOAST table
    #[arg(short, long, value_name = "[SCHEMA.]NAME")]
    pub(crate) table: Option<String>,
    /// The block, counted from 0 over all segments
    #[arg(long, value_name = "N", requires = "table")]
    pub(crate) block: Option<u32>,
    /// The fork the block is in
    #[arg(long, value_enum, value_name = "FORK", default_value = "main", requires = "block")]
    pub(crate) fork: ForkChoice,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A fork of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ForkChoice {
    /// The relation's own data
    Main,
    /// The free space map
    Fsm,
    /// The visibility map
    Vm,
    /// What an unlogged relation is reset to
    Init,
}

/// Test what kernel, file system and sandbox offer in a directory
///
/// Each call is tried, never assumed: reading, advice (checked against the page cache), io_uring,
/// direct I/O, allocation and copying; each failure is explained, with a remedy where there is one.
/// Also shown: file system, block devices, mirrors, limits. The calls are tried on anonymous files of
/// 1 MiB, which are gone at the end. Where none can be made, an existing file is read. Probe
/// the directories of tablespaces separately.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill probe
  pagemill probe /var/lib/postgresql/15/main
  pagemill probe --json /mnt/snapshot")]
pub(crate) struct ProbeArguments {
    /// The directory to test [default: that of -D, else the current directory]
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The data directory, if DIR is not given
    // No PathBuf, which may not be empty: an empty PGDATA is none.
    #[arg(short = 'D', long, value_name = "DIR", env = "PGDATA", hide_env_values = true)]
    pub(crate) pgdata: Option<OsString>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_long_help = "\
Example:
  pagemill completions bash \\
      > ~/.local/share/bash-completion/completions/pagemill")]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Print the manual page
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill man | man -l -
  pagemill man --dir /usr/local/share/man/man1")]
pub(crate) struct ManArguments {
    /// Write one page for each command into this directory instead
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// The whole definition, for parsing as for help, completions and the manual.
pub(crate) fn definition() -> clap::Command {
    let unused = |command: clap::Command| {
        let reading = ReadArguments::names();
        ["progress", "shared_buffers", "jobs", "on_damage"]
            .into_iter()
            .chain(reading.iter().map(String::as_str))
            .fold(command, |command, name| command.mut_arg(name, |arg| arg.hide(true)))
    };
    Arguments::command().arg_required_else_help(true).mut_subcommands(|command| {
        match command.get_name() {
            "ls" | "inspect" | "history" => unused(command),
            "wal" => command.mut_subcommands(|command| {
                ["live", "allow_unclean", "no_verify_checksums"]
                    .iter()
                    .fold(unused(command), |command, name| {
                        command.mut_arg(name, |arg| arg.hide(true))
                    })
            }),
            // Answers go where a bar would be drawn.
            "sql" | "serve" | "worker" => command.mut_arg("progress", |arg| arg.hide(true)),
            _ => command,
        }
    })
}

/// Reads a command line: the command, and whether it is to be quiet.
pub(crate) fn parse(
    words: impl IntoIterator<Item = OsString>,
) -> Result<(Command, bool), clap::Error> {
    let words: Vec<OsString> = words.into_iter().collect();
    let at_once = definition_of_one(&words).map(|command| command.try_get_matches_from(&words));
    let matches = match at_once {
        Some(Ok(matches)) => matches,
        _ => definition().try_get_matches_from(words)?,
    };
    let Arguments { command, quiet } = Arguments::from_arg_matches(&matches)?;
    Ok((command, quiet))
}

/// The definition of the command that is asked for and of no other, where it is one that may be done within
/// milliseconds: defining all takes one. Help and errors need the whole definition.
fn definition_of_one(words: &[OsString]) -> Option<clap::Command> {
    let command = match words.get(1)?.to_str()? {
        "ls" => LsArguments::augment_args(clap::Command::new("ls")),
        "count" => CountArguments::augment_args(clap::Command::new("count")),
        "export" => ExportArguments::augment_args(clap::Command::new("export")),
        "load" => LoadArguments::augment_args(clap::Command::new("load")),
        _ => return None,
    };
    let quiet = Arg::new("quiet").short('q').long("quiet").global(true);
    let quiet = quiet.action(clap::ArgAction::SetTrue);
    Some(clap::Command::new("pagemill").arg(quiet).subcommand(command))
}

#[cfg(test)]
mod tests {
    use pagemill_cli::cluster_arguments::StatsForm;

    use super::*;

    fn parsed(line: &str) -> Result<Command, clap::Error> {
        parse(line.split(' ').map(OsString::from)).map(|(command, _)| command)
    }

    #[test]
    fn the_definition_is_consistent() {
        definition().debug_assert();
    }

    #[test]
    fn a_command_by_its_own_definition_is_what_it_is_by_the_whole() {
        for line in [
            "ls -D x -d db -S --json",
            "count -D x -t a -T b --order-by i --backward -j 1",
            "export -D x -t a --format csv --header",
            "load -D x -d db -t a --freeze file",
        ] {
            let words: Vec<_> = format!("pagemill {line}").split(' ').map(OsString::from).collect();
            let one = definition_of_one(&words).unwrap().try_get_matches_from(&words).unwrap();
            let whole = definition().try_get_matches_from(&words).unwrap();
            let command = |matches| Arguments::from_arg_matches(&matches).unwrap().command;
            assert_eq!(format!("{:?}", command(one)), format!("{:?}", command(whole)), "{line}");
        }
    }

    #[test]
    fn stats_need_no_form_and_take_one_after_an_equals_sign() {
        let stats = |line| match parsed(line).unwrap() {
            Command::Count(arguments) => arguments.common.stats,
            _ => None,
        };
        assert_eq!(stats("pagemill count -t a"), None);
        assert_eq!(stats("pagemill count -t a --stats"), Some(StatsForm::Table));
        assert_eq!(stats("pagemill count --stats=json -t a"), Some(StatsForm::Json));
    }

    #[test]
    fn a_table_a_schema_or_an_exclusion_has_to_be_named() {
        assert!(parsed("pagemill count -D x").is_err());
        for line in ["count -t a", "count -n s", "export -T a", "export -N s", "count -t a -t b"] {
            assert!(parsed(&format!("pagemill {line}")).is_ok(), "{line}");
        }
    }

    #[test]
    fn flags_that_belong_together_are_asked_for_together() {
        let alone = ["count -t a --start-block 1 --order-by i", "export -t a --no-index-only"];
        for line in ["ls -t a", "ls -S", "inspect --block 1", "inspect -t a --fork vm"]
            .into_iter()
            .chain(alone)
        {
            assert!(parsed(&format!("pagemill {line}")).is_err(), "{line}");
        }
        for line in ["ls -d db -t a", "inspect -t a --block 1 --fork vm", "ls -j 2"] {
            assert!(parsed(&format!("pagemill {line}")).is_ok(), "{line}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for flags in [
            "-j 0",
            "--io-combine-limit 0",
            "--io-combine-limit 129",
            "-j x",
            "--shared-buffers 15",
        ] {
            assert!(parsed(&format!("pagemill count -t a {flags}")).is_err(), "{flags}");
        }
    }
}
