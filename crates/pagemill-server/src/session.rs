//! A session with the server: one `psql` that lives on, asked one statement after the other.
//!
//! ```text
//! to psql    SELECT …;           from psql   rows
//!            \echo DONE                      Time: 12.345 ms
//!                                            DONE
//! ```
//!
//! The time of a statement is psql's own (`\timing`): from sending it to having its answer, so that the start of a process
//! or a session is never in it. Invariants: when an answer is there, the statements are done and their locks are held; after an
//! error the session is over, and the caller begins another.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::IsCanceled;
use crate::error::{Error, Result};

/// What no answer has as a line.
const DONE: &str = "-- pagemill: done --";
/// What the line with the time begins with.
const TIME: &str = "Time: ";
/// How often somebody who waits for an answer looks whether the wait shall end.
const PATIENCE: Duration = Duration::from_millis(50);

/// What statements gave.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// Their rows, a line each.
    pub text: String,
    /// How long they took together; `None` where psql sent nothing to the server.
    pub time: Option<Duration>,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    psql: Child,
    /// `None` when psql was told that nothing comes any more.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// What psql complains of, in memory.
    complaints: File,
    is_idle: bool,
}

impl Session {
    /// One through `psql`, which knows where to connect to.
    pub(crate) fn begin(mut psql: Command) -> Result<Self> {
        let complaints = memfd_create("psql", MemfdFlags::CLOEXEC).map(File::from);
        let complaints = complaints.map_err(|error| Error::system("psql")(error.into()))?;
        let own = complaints.try_clone().map_err(Error::system("psql"))?;
        psql.args(["-A", "-t"]).process_group(0);
        psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(complaints);
        let mut psql = psql.spawn().map_err(Error::system("psql"))?;
        let (input, output) = (psql.stdin.take(), psql.stdout.take());
        let lines = lines_of(output)?;
        let mut session = Self { psql, input, lines, complaints: own, is_idle: true };
        session.send("\\timing on").map_err(|_| session.fault("psql"))?;
        Ok(session)
    }

    /// Runs statements, each of which ends as psql wants it, and waits for them.
    ///
    /// # Errors
    /// When one is refused, or the connection is lost, or the wait was to end.
    pub fn ask(&mut self, statements: &str, is_canceled: IsCanceled<'_>) -> Result<Answer> {
        self.is_idle = false;
        let text = format!("{statements}\n\\echo {DONE}");
        self.send(&text).map_err(|_| self.fault(statements))?;
        let mut lines = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line == DONE => break,
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Timeout) if is_canceled() => return Err(Error::Canceled),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.fault(statements)),
            }
        }
        self.is_idle = true;
        Ok(answer(&lines))
    }

    fn send(&mut self, text: &str) -> std::io::Result<()> {
        let input = self.input.as_mut().ok_or(std::io::ErrorKind::BrokenPipe)?;
        input.write_all(format!("{text}\n").as_bytes())?;
        input.flush()
    }

    /// What psql complained of; it is at its end, or brought there.
    fn fault(&mut self, statement: &str) -> Error {
        self.end();
        let mut said = Vec::new();
        // What cannot be read was not said.
        let _ = self.complaints.rewind().and_then(|()| self.complaints.read_to_end(&mut said));
        let said = String::from_utf8_lossy(&said);
        let said: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
        let said = if said.is_empty() { "psql ended".into() } else { said.join("; ") };
        Error::Statement { statement: statement.into(), said }
    }

    /// Without input psql ends; what is open in it is rolled back, as by any client that goes away.
    fn end(&mut self) {
        drop(self.input.take());
        let _ = self.psql.wait();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.is_idle {
            // It is in the middle of a statement, or over.
            let _ = self.psql.kill();
        }
        self.end();
    }
}

/// The lines of an output, taken by a thread that ends with it.
fn lines_of(output: Option<ChildStdout>) -> Result<Receiver<String>> {
    let (sender, lines) = channel();
    let take = move || {
        for line in output.into_iter().flat_map(|output| BufReader::new(output).split(b'\n')) {
            let Ok(line) = line else { break };
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    };
    let thread = std::thread::Builder::new().name("psql".into());
    thread.spawn(take).map_err(Error::system("a thread"))?;
    Ok(lines)
}

/// Of several statements each has a line with its time.
fn answer(lines: &[String]) -> Answer {
    let time = lines.iter().filter_map(|line| time_in(line)).reduce(|sum, time| sum + time);
    let rows = lines.iter().filter(|line| time_in(line).is_none());
    let text = rows.map(String::as_str).collect::<Vec<_>>().join("\n");
    Answer { text, time }
}

/// The time in `Time: 1234.567 ms (00:01.235)`.
fn time_in(line: &str) -> Option<Duration> {
    let number = line.strip_prefix(TIME)?.split(' ').next()?;
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? / 1000.0).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::never;

    fn lines(text: &[&str]) -> Vec<String> {
        text.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn the_answer_is_told_apart_from_its_time() {
        let found = answer(&lines(&["1", "2", "Time: 1234.500 ms (00:01.235)"]));
        let time = Some(Duration::from_micros(1_234_500));
        assert_eq!(found, Answer { text: "1\n2".into(), time });
        let found = answer(&lines(&["Time: 0.500 ms", "1", "Time: 0.250 ms"]));
        let time = Some(Duration::from_micros(750));
        assert_eq!(found, Answer { text: "1".into(), time });
        assert_eq!(answer(&lines(&["1"])).time, None);
        assert_eq!(time_in("Time: -1 ms"), None);
    }

    /// Stands in for psql: does whatever it is told to.
    fn stand_in(script: &str) -> Session {
        let mut command = Command::new("sh");
        command.args(["-c", script, "psql"]);
        Session::begin(command).unwrap()
    }

    #[test]
    fn a_psql_that_ends_is_an_error_with_what_it_said() {
        let mut session = stand_in("read line; echo FATAL: no >&2; exit 2");
        let error = session.ask("SELECT 1;", &never).unwrap_err();
        assert!(error.to_string().contains("SELECT 1;: FATAL: no"), "{error}");
        let error = session.ask("SELECT 1;", &never).unwrap_err();
        assert!(matches!(error, Error::Statement { .. }), "{error}");
    }

    #[test]
    fn a_statement_that_takes_long_ends_when_the_caller_wants_no_more_of_it() {
        let script = format!("echo 7; echo Time: 1 ms; echo '{DONE}'; exec sleep 60");
        let mut session = stand_in(&script);
        assert_eq!(session.ask("SELECT 7;", &never).unwrap().text, "7");
        let begin = Instant::now();
        let outcome = session.ask("SELECT pg_sleep(60);", &|| true);
        assert!(matches!(outcome, Err(Error::Canceled)), "{outcome:?}");
        drop(session);
        assert!(begin.elapsed() < Duration::from_secs(30));
    }
}
