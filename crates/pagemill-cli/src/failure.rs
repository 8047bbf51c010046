//! From a result to an exit status, and to one line on standard error.
//!
//! | status | when |
//! | --- | --- |
//! | 0 | all was done, and a signal that came later did not change that; or the reader of standard output went away, as `head` does |
//! | 1 | the work failed, or damage was found |
//! | 2 | the command line cannot be followed |
//! | the signal | SIGINT, SIGTERM or SIGHUP ended the work, which undid itself: shells show 130, 143, 129 |
//!
//! A reader that went away knows why it did, so nothing is said, as ripgrep does it. The process ends by the signal
//! itself, so that a shell's loop ends with it.
//!
//! Invariant: whoever is told that the work was interrupted finds nothing changed; a change that a server has to finish
//! is a failure.

use std::fmt;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::error::ErrorKind;
use pagemill_cluster::Error as ClusterError;
use pagemill_engine::Error as EngineError;
use pagemill_io::Error as IoError;

use crate::standard_output::print;
use crate::text_table::printable;

const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;

/// How work ended that did not end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// All of it was done.
    Done,
    /// Some of it could not be done, and what that is was said.
    Incomplete,
}

/// The command line cannot be followed.
#[derive(Debug)]
pub struct UsageError(
    /// What cannot be followed, and why.
    pub String,
);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Only errors are wanted on standard error.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on nothing but errors is said.
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// True when nothing but errors is to be said.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// What the program makes of the message of an error.
type Wording = dyn Fn(&anyhow::Error, String) -> String + Send + Sync;

static WORDING: OnceLock<Box<Wording>> = OnceLock::new();

/// From now on messages of errors are said as `wording` makes them: libraries know no flags, and a program may add what to
/// type instead. Only the first call counts.
pub fn set_wording(wording: impl Fn(&anyhow::Error, String) -> String + Send + Sync + 'static) {
    let _ = WORDING.set(Box::new(wording));
}

fn worded(error: &anyhow::Error, message: String) -> String {
    match WORDING.get() {
        Some(wording) => wording(error, message),
        None => message,
    }
}

/// Says something that is no error on standard error, on one line, unless that is not wanted.
pub fn say(message: impl fmt::Display) {
    if !is_quiet() {
        complain(message);
    }
}

/// Says an error on standard error, on one line.
pub fn complain(message: impl fmt::Display) {
    use std::io::Write as _;
    // Paths and patterns may have line feeds in them, and more.
    let line = format!("pagemill: {}\n", printable(message.to_string().as_bytes()));
    // A reader of standard error that went away cannot be told.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Says an error of PostgreSQL's on standard error, with the lines of detail, hint and context that it has.
fn complain_in_lines(message: impl fmt::Display) {
    use std::io::Write as _;
    let message = message.to_string();
    // A row in a context keeps its tabs, as a server shows it.
    let shown = |line: &str| {
        let cells: Vec<_> = line.split('\t').map(|cell| printable(cell.as_bytes())).collect();
        cells.join("\t")
    };
    let lines: Vec<String> = message.lines().map(shown).collect();
    // A reader of standard error that went away cannot be told.
    let _ = std::io::stderr().write_all(format!("pagemill: {}\n", lines.join("\n")).as_bytes());
}

/// The exit status of a command, its error said. Does not return where a signal ended the work.
pub fn exit_code(result: anyhow::Result<Completion>) -> ExitCode {
    let is_undone = match &result {
        Ok(outcome) => *outcome == Completion::Incomplete,
        Err(error) => !is_broken_pipe(error) && !is_for_a_server(error),
    };
    let status = match result {
        Ok(Completion::Done) => return ExitCode::SUCCESS,
        Ok(Completion::Incomplete) => FAILED,
        Err(error) if is_broken_pipe(&error) => return ExitCode::SUCCESS,
        Err(error) => {
            match error.downcast_ref::<EngineError>() {
                Some(found) if found.has_lines() => complain_in_lines(found),
                _ => complain(text_of(&error)),
            }
            if is_usage(&error) { WRONG_USAGE } else { FAILED }
        }
    };
    match pagemill_io::interrupted_by() {
        Some(signal) if is_undone => pagemill_io::end_by(signal),
        _ => ExitCode::from(status),
    }
}

/// An error with what it led to, and what to type instead; of an interruption what it led to says all.
pub fn text_of(error: &anyhow::Error) -> String {
    match is_interruption(error) && error.chain().count() > 1 {
        true => format!("interrupted: {error}"),
        false => worded(error, format!("{error:#}")),
    }
}

/// True when work was given up because a signal asked for it.
pub fn is_interruption(error: &anyhow::Error) -> bool {
    error.downcast_ref::<EngineError>().is_some_and(EngineError::is_interruption)
        || error.downcast_ref::<ClusterError>().is_some_and(ClusterError::is_interruption)
        || error.downcast_ref::<IoError>().is_some_and(IoError::is_interruption)
}

/// True when a change was decided and only the start of a server finishes it, or nobody knows.
fn is_for_a_server(error: &anyhow::Error) -> bool {
    let cluster = match error.downcast_ref() {
        Some(EngineError::Cluster(cluster)) => Some(cluster),
        _ => error.downcast_ref(),
    };
    matches!(cluster, Some(ClusterError::Unfinished { .. } | ClusterError::Undecided { .. }))
}

/// True when the request was wrong, and not the data or the system.
pub fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<UsageError>()
        || error.downcast_ref::<EngineError>().is_some_and(EngineError::is_usage)
        || error.downcast_ref::<ClusterError>().is_some_and(ClusterError::is_usage)
}

/// True when nothing more can be written.
pub fn is_output_error(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(EngineError::Output(_))) || is_broken_pipe(error)
}

/// True when whoever read the output went away.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
        || error.downcast_ref::<EngineError>().is_some_and(EngineError::is_broken_pipe)
        || error.downcast_ref::<IoError>().is_some_and(IoError::is_broken_pipe)
}

/// The exit status of a command line that asks for help, or is wrong.
pub fn of_command_line(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let is_colored = std::io::stdout().is_terminal();
            let text = error.render();
            let text = if is_colored { text.ansi().to_string() } else { text.to_string() };
            exit_code(print(text).map(|()| Completion::Done))
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(WRONG_USAGE)
        }
        _ => {
            complain(on_one_line(&error.render().to_string()));
            ExitCode::from(WRONG_USAGE)
        }
    }
}

/// Clap's message without its label and its usage lines, which `--help` shows.
fn on_one_line(rendered: &str) -> String {
    let message = rendered.split("\n\nUsage:").next().unwrap_or_default();
    let message = message.split("\n\nFor more information").next().unwrap_or_default();
    let message = message.replace("\n\n  tip:", "; tip:");
    let words: Vec<&str> = message.split_whitespace().collect();
    let message = words.join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    format!("{message} (--help shows the usage)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_command_line_is_told_on_one_line() {
        let rendered = "error: unexpected argument '--x' found\n\n  tip: a similar argument exists\
                        \n\nUsage: pagemill ls\n\nFor more information, try '--help'.\n";
        assert_eq!(
            on_one_line(rendered),
            "unexpected argument '--x' found; tip: a similar argument exists (--help shows the usage)"
        );
    }

    #[test]
    fn a_missing_table_is_wrong_usage_and_damage_is_not() {
        let missing = ClusterError::NotFound { what: "table t".into(), near: Vec::new() };
        assert!(is_usage(&missing.into()));
        assert!(is_usage(&UsageError("no".into()).into()));
        assert!(!is_usage(
            &ClusterError::refused(pagemill_cluster::Refusal::NoFiles(pagemill_format::Oid(1)))
                .into()
        ));
    }
}
