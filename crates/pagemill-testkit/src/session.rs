//! A client session that stays open, so that transactions of several sessions overlap.
//!
//! It is a `psql` fed through a pipe. After each piece of SQL it echoes a mark, and the caller waits for that
//! mark: when [`Session::run`] returns, the statements are done and their locks are held.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, bail};

use crate::server::TestCluster;

/// Echoed by psql after each piece of SQL; no fixture prints it.
const MARK: &str = "--pagemill-done--";

/// One open connection.
#[derive(Debug)]
pub struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Session {
    /// Connects to `db`.
    pub fn open(cluster: &TestCluster, db: &str) -> Result<Session> {
        let mut child = cluster
            .psql_command(db)
            .args(["-A", "-t"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting psql")?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().context("no output pipe")?);
        Ok(Session { child, input, output })
    }

    /// Runs SQL, waits for its end and returns what it printed.
    pub fn run(&mut self, sql: &str) -> Result<String> {
        let input = self.input.as_mut().context("the session is closed")?;
        writeln!(input, "{sql}\n\\echo {MARK}")?;
        input.flush()?;
        let mut printed = String::new();
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                bail!("the session ended in {sql}\n{}", self.errors());
            }
            if line.trim_end() == MARK {
                return Ok(printed.trim_end().to_owned());
            }
            printed.push_str(&line);
        }
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _ = stderr.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Closing the pipe ends psql; what is open in it is rolled back, as by any client that goes away.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
