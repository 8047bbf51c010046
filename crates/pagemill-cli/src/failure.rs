//! From a result to an exit status, and to one line on standard error.
//!
//! 0: done. 1: the work failed, or damage was found. 2: the command line cannot be followed. When
//! the reader of standard output went away, nothing is said: that is how pipelines end.

use std::fmt;
use std::process::ExitCode;

use clap::error::ErrorKind;
use pagemill_cluster::Error as ClusterError;
use pagemill_engine::Error as EngineError;

const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;

/// How work ended that did not end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
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

/// Says something on standard error, on one line.
pub fn say(message: impl fmt::Display) {
    use std::io::Write as _;
    let line = format!("pagemill: {}\n", message.to_string().replace('\n', " "));
    // A reader of standard error that went away cannot be told.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The exit status of a command, its error said.
pub fn exit_code(result: anyhow::Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Incomplete) => ExitCode::from(FAILED),
        Err(error) => {
            if !is_broken_pipe(&error) {
                say(format!("{error:#}"));
            }
            ExitCode::from(if is_usage(&error) { WRONG_USAGE } else { FAILED })
        }
    }
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

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
        || error.downcast_ref::<EngineError>().is_some_and(EngineError::is_broken_pipe)
}

/// The exit status of a command line that asks for help, or is wrong.
pub fn of_command_line(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match error.print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(FAILED),
        },
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(WRONG_USAGE)
        }
        _ => {
            say(on_one_line(&error.render().to_string()));
            ExitCode::from(WRONG_USAGE)
        }
    }
}

/// Clap's message without its label and its usage lines, which `--help` shows.
fn on_one_line(rendered: &str) -> String {
    let message = rendered.split("\n\nUsage:").next().unwrap_or_default();
    let message = message.split("\n\nFor more information").next().unwrap_or_default();
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
            "unexpected argument '--x' found tip: a similar argument exists (--help shows the usage)"
        );
    }

    #[test]
    fn a_missing_table_is_wrong_usage_and_damage_is_not() {
        let missing = ClusterError::NotFound { what: "table t".into(), near: Vec::new() };
        assert!(is_usage(&missing.into()));
        assert!(is_usage(&UsageError("no".into()).into()));
        assert!(!is_usage(&ClusterError::refused("it is a view").into()));
    }
}
