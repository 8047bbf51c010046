//! `pagemill-sql`: the program that `pagemill sql` starts, with the words of that command line.
//!
//! Answers go to standard output, everything else to standard error, as with all of pagemill.
#![forbid(unsafe_code)]

use std::io::{self, BufWriter, IsTerminal as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use pagemill_cli::cluster_arguments::DamageChoice;
use pagemill_cli::failure::{self, Completion, UsageError};
use pagemill_cli::remedies::Remedies;
use pagemill_cli::session::Session as Opened;
use pagemill_cli::session::stats::Work;
use pagemill_cli::sql_arguments::{FormatChoice, SqlArguments};
use pagemill_engine::{OnDamage, ScanOrder};
use pagemill_io::HostFiles;
use pagemill_sql::output::{Output, OutputFormat};
use pagemill_sql::session::{Session, SessionOptions};
use pagemill_sql::{Error, StatementError};

/// Most bytes of a file of statements.
const MOST_BYTES: u64 = 1 << 30;

/// The part of pagemill that answers SQL
#[derive(Debug, Parser)]
#[command(name = "pagemill", version, max_term_width = 100)]
struct Arguments {
    /// Print nothing but errors on standard error: no notices, no progress
    #[arg(short, long, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Sql(Box<SqlArguments>),
}

fn format_of(choice: FormatChoice) -> OutputFormat {
    match choice {
        FormatChoice::Aligned => OutputFormat::Aligned,
        FormatChoice::Expanded => OutputFormat::Expanded,
        FormatChoice::Csv => OutputFormat::Csv,
        FormatChoice::Json => OutputFormat::Json,
        FormatChoice::Markdown => OutputFormat::Markdown,
    }
}

fn main() -> ExitCode {
    pagemill_io::survive_file_size_limit();
    let matches = Arguments::command().try_get_matches();
    let parsed = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    let Arguments { quiet, command } = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return failure::of_command_line(&error),
    };
    failure::set_quiet(quiet);
    failure::set_wording(|error, message| Remedies::READING.apply(error, message));
    let Command::Sql(arguments) = command;
    failure::exit_code(run(&arguments))
}

fn run(arguments: &SqlArguments) -> Result<Completion> {
    let texts = statements(arguments)?;
    let opened = Opened::new(&arguments.common)?.recovered(&arguments.recovery);
    let database = opened.database(&arguments.database.dbname)?;
    let jobs = usize::from(arguments.common.jobs);
    let options = SessionOptions {
        jobs,
        memory: arguments.memory,
        scan: opened.scan_options(ScanOrder::default()),
        on_damage: match arguments.common.on_damage {
            DamageChoice::Stop => OnDamage::Stop,
            DamageChoice::Skip => OnDamage::Skip,
        },
    };
    let session = Session::open(&database, options).map_err(told)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(jobs).build()?;
    let out = BufWriter::new(io::stdout());
    let mut work = Work::default();
    let output = Output::new(format_of(arguments.format), out);
    let answered = answer((&runtime, &session), &texts, output, &mut work);
    opened.finish(&work);
    answered
}

/// The error as the command tells it: what lies below is known there by its own type.
fn told(error: Error) -> anyhow::Error {
    match error {
        Error::Engine(error) => error.into(),
        Error::System(error) => error.into(),
        other => other.into(),
    }
}

fn answer<W: io::Write + Send>(
    (runtime, session): (&tokio::runtime::Runtime, &Session),
    texts: &[String],
    mut output: Output<W>,
    work: &mut Work,
) -> Result<Completion> {
    let mut completion = Completion::Done;
    for text in texts {
        let parsed = match Session::parse(text) {
            Err(Error::Statement(error)) => return Ok(complain(&error)),
            parsed => parsed.map_err(told)?,
        };
        for statement in parsed {
            let answer = match runtime.block_on(session.run(&statement, &mut output)) {
                Ok(answer) => answer,
                Err(Error::Statement(error)) => {
                    // What was answered before it stands.
                    output.into_inner().flush()?;
                    return Ok(complain(&error));
                }
                Err(error) => return Err(told(error)),
            };
            work.rows += answer.rows;
            work.pages += answer.pages;
            for loss in &answer.losses {
                failure::complain(format!("skipped: {loss}"));
                completion = Completion::Incomplete;
            }
        }
    }
    output.into_inner().flush()?;
    Ok(completion)
}

/// Tells what is wrong with a statement, and what to do instead on a line of its own.
fn complain(error: &StatementError) -> Completion {
    failure::complain(error);
    if let Some(hint) = &error.hint {
        failure::complain(format!("hint: {hint}"));
    }
    Completion::Incomplete
}

/// The texts that were given, in the order: the argument, -c, -f; standard input where it is no terminal.
fn statements(arguments: &SqlArguments) -> Result<Vec<String>> {
    let mut texts: Vec<String> = arguments.statement.iter().cloned().collect();
    texts.extend(arguments.commands.iter().cloned());
    for file in &arguments.files {
        texts.push(match file.as_os_str() == "-" {
            true => io::read_to_string(io::stdin())?,
            false => {
                let bytes = HostFiles::real().read_file(file, MOST_BYTES)?;
                String::from_utf8(bytes).with_context(|| file.display().to_string())?
            }
        });
    }
    if texts.is_empty() && !io::stdin().is_terminal() {
        texts.push(io::read_to_string(io::stdin())?);
    }
    if texts.is_empty() {
        return Err(
            UsageError("no statement: give one as an argument, with -c or with -f".into()).into()
        );
    }
    Ok(texts)
}
