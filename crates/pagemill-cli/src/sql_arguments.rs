//! The flags of `pagemill sql`: for the command, whose help and completions have them, and for the program that it starts.
//!
//! Invariant: both parse the same words alike, as the one hands them to the other unread.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use pagemill_cluster::recovery::plan::TimelineChoice;

use crate::cluster_arguments::{
    CommonArguments, DatabaseArgument, RecoveryArguments, TextOrderChoice,
};
use crate::sizes::default_jobs;
use crate::values::memory_size;
use crate::worker_arguments::{OnWorkersArguments, WorkerStatementArguments};

/// A thread for each processor, as a word of the command line: statements compute much for each row.
static JOBS: LazyLock<String> = LazyLock::new(|| default_jobs().to_string());

/// Answer SELECT statements from a database's files
///
/// The statement is understood by the cluster's own catalogs and PostgreSQL's rules for names, types and overloads, and
/// computed as the server does. What is not known to give the server's answer is refused with a message. Nothing is
/// changed: there is no INSERT and no CREATE. The session's TimeZone is UTC, its DateStyle ISO. Without a statement
/// there is a shell at a terminal; elsewhere statements are read from standard input.
#[derive(Debug, Args)]
#[command(mut_arg("jobs", |arg| {
    arg.default_value(JOBS.as_str())
        .hide_default_value(true)
        .help("Threads that scan and compute [default: one for each processor]")
}))]
#[command(after_long_help = "\
Examples:
  pagemill sql -D /var/lib/postgresql/15/main -d shop \\
      'select count(*) from orders'
  pagemill sql -D backup -d shop --until 'time:2024-05-01 12:00:00' \\
      -c \"select * from orders where state = 'paid'\" --format csv
  pagemill sql -D snapshot -d shop 'select * from orders' \\
      --format parquet -o orders.parquet")]
pub struct SqlArguments {
    /// The data directory.
    #[command(flatten)]
    pub common: CommonArguments,
    /// Up to where WAL is redone.
    #[command(flatten)]
    pub recovery: RecoveryArguments,
    /// The database.
    #[command(flatten)]
    pub database: DatabaseArgument,
    /// A name for another data directory, whose tables are NAME.database.schema.table; repeatable
    ///
    /// It is read up to the end of its own WAL: --wal, --until and --base are those of -D. Databases of the one cluster need no such
    /// name: database.schema.table.
    #[arg(long = "cluster", value_name = "NAME=DIR", value_parser = OsStringValueParser::new().try_map(named_path))]
    pub clusters: Vec<NamedPath>,
    /// A CSV or Parquet file as a table of this name; repeatable
    ///
    /// By its ending, .csv or .parquet. The first line of a CSV file names its columns, which are texts; all columns have the names
    /// that they have in the file. A file is read whole into memory when a statement names it.
    #[arg(long = "table", value_name = "NAME=FILE", value_parser = OsStringValueParser::new().try_map(named_path))]
    pub tables: Vec<NamedPath>,
    /// The statement; several are separated by semicolons
    #[arg(value_name = "STATEMENT")]
    pub statement: Option<String>,
    /// A statement; repeatable
    #[arg(short, long = "command", value_name = "STATEMENT")]
    pub commands: Vec<String>,
    /// A file with statements; - for standard input; repeatable
    #[arg(short, long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// A variable: :NAME stands for VALUE in files, on standard input and in the shell, :'NAME' for it as a constant; repeatable
    ///
    /// As psql has it: not in a statement that is an argument or comes with -c. ON_ERROR_STOP=on ends a file at its first error.
    #[arg(long = "set", visible_alias = "variable", value_name = "NAME=VALUE", value_parser = variable)]
    pub variables: Vec<(String, String)>,
    /// How answers are printed
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "aligned")]
    pub format: FormatChoice,
    /// A file for the answers, which appears when all of them are there [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    #[arg(required_if_eq_any([("format", "parquet"), ("format", "arrow"), ("format", "arrow-stream")]))]
    pub output: Option<PathBuf>,
    /// Memory for sorts, joins and aggregates, which then spill to temporary files [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    pub memory: Option<usize>,
    /// What texts are ordered by where the cluster does not tell it for certain
    #[arg(long, value_enum, value_name = "HOW", default_value = "recorded")]
    pub text_order: TextOrderChoice,
    /// The workers that may run it.
    #[command(flatten)]
    pub on_workers: OnWorkersArguments,
    /// How they do.
    #[command(flatten)]
    pub dividing: WorkerStatementArguments,
}

/// A data directory or a file under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPath {
    /// The name in statements.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

/// Without a value, as psql has it, the variable is empty.
fn variable(given: &str) -> Result<(String, String), String> {
    let (name, value) = given.split_once('=').unwrap_or((given, ""));
    match name.is_empty() {
        true => Err("a name, = and a value are expected".to_owned()),
        false => Ok((name.to_owned(), value.to_owned())),
    }
}

fn named_path(given: OsString) -> Result<NamedPath, String> {
    let text = given.to_str().ok_or("the name and the path have to be UTF-8")?;
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok(NamedPath { name: name.to_owned(), path: path.into() })
        }
        _ => Err("a name, = and a path are expected".to_owned()),
    }
}

impl SqlArguments {
    /// The name of another cluster, and the flags that it is opened with: those of the first that say how files are read.
    pub fn beside(&self, named: &NamedPath) -> (String, CommonArguments, RecoveryArguments) {
        let common = CommonArguments {
            pgdata: Some(named.path.clone()),
            base: Vec::new(),
            backup: None,
            stanza: None,
            stats: None,
            ..self.common.clone()
        };
        let recovery = RecoveryArguments {
            wal: Vec::new(),
            until: None,
            exclusive: false,
            timeline: TimelineChoice::default(),
            ..self.recovery.clone()
        };
        (named.name.clone(), common, recovery)
    }
}

/// The value of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatChoice {
    /// Columns side by side, as psql prints them
    Aligned,
    /// A line for each column, as psql's \x prints them
    Expanded,
    /// CSV with a header
    Csv,
    /// An object per row and line
    Json,
    /// A table in Markdown
    Markdown,
    /// A Parquet file of one answer, with the types of `export`; needs --output
    Parquet,
    /// A file of Arrow IPC, likewise
    Arrow,
    /// A stream of Arrow IPC, likewise
    ArrowStream,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_a_name_before_it() {
        let named = named_path("old=/srv/a=b".into()).unwrap();
        assert_eq!((named.name.as_str(), named.path), ("old", PathBuf::from("/srv/a=b")));
        for wrong in ["old", "=dir", "old=", ""] {
            assert!(named_path(wrong.into()).is_err(), "{wrong}");
        }
    }
}
