//! A session with the server: one `psql` that lives on, asked one statement after the other.
//!
//! ```text
//! to psql    SELECT …;           from psql   rows
//!            \echo DONE                      Time: 12.345 ms
//!                                            DONE
//! ```
//!
//! The time of a statement is psql's own (`\timing`): from sending it to having its answer, so that the start of a process
//! or a session is never in it. Invariant: after an error the session is over; the caller begins another.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::cancel::Cancel;
use crate::error::{Error, Result};

/// What no answer has as a line.
const DONE: &str = "-- pagemill lab: done --";
/// What the line with the time begins with.
const TIME: &str = "Time: ";
/// How often somebody who waits for an answer looks whether the run shall end.
const PATIENCE: Duration = Duration::from_millis(50);

/// What a statement gave.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// Its rows, a line each.
    pub(super) text: String,
    /// How long it took.
    pub(super) time: Duration,
}

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    psql: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    errors: PathBuf,
    backend: u32,
}

impl Session {
    /// One through `psql`, which knows where to connect to; its complaints go to the file `errors`.
    pub(super) fn begin(mut psql: Command, errors: &Path, cancel: &Cancel) -> Result<Self> {
        let complaints = File::create(errors).map_err(Error::file(errors))?;
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(complaints);
        let mut psql = psql.spawn().map_err(Error::system("psql"))?;
        let (Some(input), Some(output)) = (psql.stdin.take(), psql.stdout.take()) else {
            return Err(Error::server("psql", "it cannot be talked to"));
        };
        let (lines, errors) = (lines_of(output)?, errors.to_owned());
        let mut session = Self { psql, input, lines, errors, backend: 0 };
        session.send("\\timing on").map_err(|_| session.fault("psql"))?;
        let answer = session.ask("SELECT pg_backend_pid()", cancel)?;
        session.backend = answer.text.parse().unwrap_or(0);
        Ok(session)
    }

    /// The process on the server's side.
    pub(super) fn backend(&self) -> u32 {
        self.backend
    }

    /// Runs a statement.
    pub(super) fn ask(&mut self, statement: &str, cancel: &Cancel) -> Result<Answer> {
        let text = format!("{statement};\n\\echo {DONE}");
        self.send(&text).map_err(|_| self.fault(statement))?;
        let mut lines = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line == DONE => break,
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Timeout) => cancel.check()?,
                Err(RecvTimeoutError::Disconnected) => return Err(self.fault(statement)),
            }
        }
        answer(&lines).ok_or_else(|| Error::server(statement, "psql told no time"))
    }

    fn send(&mut self, text: &str) -> std::io::Result<()> {
        self.input.write_all(format!("{text}\n").as_bytes())?;
        self.input.flush()
    }

    /// What psql complained of.
    fn fault(&self, statement: &str) -> Error {
        let said = std::fs::read_to_string(&self.errors).unwrap_or_default();
        let said: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
        let said = if said.is_empty() { "psql ended".into() } else { said.join("; ") };
        Error::server(statement, said)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It may be in the middle of a statement.
        let _ = self.psql.kill();
        let _ = self.psql.wait();
    }
}

/// The lines of an output, taken by a thread that ends with it.
fn lines_of(output: ChildStdout) -> Result<Receiver<String>> {
    let (sender, lines) = channel();
    let take = move || {
        for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    };
    let thread = std::thread::Builder::new().name("psql".into());
    thread.spawn(take).map_err(Error::system("a thread"))?;
    Ok(lines)
}

/// The last line tells the time; of several statements in one, each has its own.
fn answer(lines: &[String]) -> Option<Answer> {
    let time = lines.iter().filter_map(|line| time_in(line)).reduce(|sum, time| sum + time)?;
    let rows = lines.iter().filter(|line| time_in(line).is_none());
    let text = rows.map(String::as_str).collect::<Vec<_>>().join("\n");
    Some(Answer { text, time })
}

/// The time in `Time: 1234.567 ms (00:01.235)`.
fn time_in(line: &str) -> Option<Duration> {
    let number = line.strip_prefix(TIME)?.split(' ').next()?;
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? / 1000.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[&str]) -> Vec<String> {
        text.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn the_answer_is_told_apart_from_its_time() {
        let found = answer(&lines(&["1", "2", "Time: 1234.500 ms (00:01.235)"])).unwrap();
        assert_eq!(found, Answer { text: "1\n2".into(), time: Duration::from_micros(1_234_500) });
        let found = answer(&lines(&["Time: 0.500 ms"])).unwrap();
        assert_eq!(found, Answer { text: String::new(), time: Duration::from_micros(500) });
        assert_eq!(answer(&lines(&["1"])), None);
        assert_eq!(time_in("Time: -1 ms"), None);
    }

    /// Stands in for psql: tells its process, and then whatever it is told to.
    fn stand_in(directory: &Path, script: &str) -> Result<Session> {
        let mut command = Command::new("sh");
        command.args(["-c", script, "psql"]);
        Session::begin(command, &directory.join("errors"), &Cancel::default())
    }

    #[test]
    fn a_psql_that_ends_is_an_error_with_what_it_said() {
        let dir = tempfile::tempdir().unwrap();
        let error = stand_in(dir.path(), "echo FATAL: no >&2; exit 2").unwrap_err();
        assert!(error.to_string().contains("FATAL: no"), "{error}");
    }

    #[test]
    fn a_statement_that_takes_long_ends_with_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let script = format!("echo 7; echo Time: 1 ms; echo '{DONE}'; exec sleep 60");
        let mut session = stand_in(dir.path(), &script).unwrap();
        assert_eq!(session.backend(), 7);
        let cancel = Cancel::default();
        cancel.cancel();
        let begin = std::time::Instant::now();
        let outcome = session.ask("SELECT pg_sleep(60)", &cancel);
        assert!(matches!(outcome, Err(Error::Interrupted)), "{outcome:?}");
        drop(session);
        assert!(begin.elapsed() < Duration::from_secs(30));
    }
}
