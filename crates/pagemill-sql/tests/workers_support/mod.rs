//! Workers as programs of their own, and statements that are asked of them.
//!
//! Invariant: none outlives its test.

use std::borrow::Borrow;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

/// What workers and those who ask them know.
pub(crate) const SECRET: &str = "a secret of the tests, and of no others";
/// No statement of a test takes so long.
const LONGEST: Duration = Duration::from_secs(60);
/// What divides statements; the first does where nothing else is said.
pub(crate) const ENGINES: [&str; 2] = ["distributed", "ballista"];
const VARIABLE: &str = "PAGEMILL_WORKER_SECRET";

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
    command.env_remove(VARIABLE);
    command
}

/// Sends a signal to a process of ours.
pub(crate) fn signal(id: u32, name: &str) -> Result<()> {
    let status = Command::new("kill").arg(format!("-{name}")).arg(id.to_string()).status()?;
    ensure!(status.success(), "kill -{name} {id}");
    Ok(())
}

/// A worker; it ends when it is dropped.
pub(crate) struct Worker {
    child: Child,
    address: String,
}

impl Worker {
    #[allow(dead_code)] // Not all tests have workers that do not export.
    pub(crate) fn start(directory: &Path, secret: Option<&str>) -> Result<Self> {
        Self::with(directory, secret, &[])
    }

    /// One that may write below a place.
    #[allow(dead_code)] // Likewise.
    pub(crate) fn exporting(directory: &Path, place: &str) -> Result<Self> {
        Self::with(directory, Some(SECRET), &["--export-to", place])
    }

    fn with(directory: &Path, secret: Option<&str>, words: &[&str]) -> Result<Self> {
        Self::begun(secret, |command| command.arg("-D").arg(directory).args(words))
    }

    /// One with these words and variables.
    pub(crate) fn begun(
        secret: Option<&str>,
        words: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Result<Self> {
        let mut command = program();
        command.args(["worker", "--listen", "127.0.0.1:0", "--jobs", "2"]);
        if let Some(secret) = secret {
            command.env(VARIABLE, secret);
        }
        words(&mut command);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let errors = child.stderr.take().context("no pipe")?;
        let mut lines = BufReader::new(errors);
        let mut said = String::new();
        let address = loop {
            let begin = said.len();
            if lines.read_line(&mut said)? == 0 {
                child.kill()?;
                anyhow::bail!("the worker says: {said}");
            }
            if let Some((_, address)) = said[begin..].trim().rsplit_once(" are run at ") {
                break address.to_owned();
            }
        };
        // Nobody waits for what else it says.
        std::thread::spawn(move || {
            lines.lines().map_while(Result::ok).for_each(|line| eprintln!("worker: {line}"))
        });
        Ok(Self { child, address })
    }

    #[allow(dead_code)] // Likewise.
    /// What a worker without a secret says that is to listen there.
    pub(crate) fn refused(directory: &Path, listen: &str) -> Result<String> {
        let output =
            program().args(["worker", "--listen", listen, "-D"]).arg(directory).output()?;
        ensure!(!output.status.success(), "it listens");
        Ok(String::from_utf8(output.stderr)?)
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How statements are asked.
#[derive(Debug, Clone)]
#[allow(dead_code)] // Not all tests ask statements.
pub(crate) struct Asking {
    directory: PathBuf,
    workers: Vec<String>,
    jobs: String,
    secret: Option<String>,
    engine: &'static str,
    words: Vec<String>,
}

#[allow(dead_code)] // Likewise.
impl Asking {
    pub(crate) fn alone(directory: &Path) -> Self {
        let jobs = "2".to_owned();
        let (directory, workers) = (directory.to_owned(), Vec::new());
        let words = Vec::new();
        Self { directory, workers, jobs, secret: None, engine: ENGINES[0], words }
    }

    pub(crate) fn of<W: Borrow<Worker>>(
        directory: &Path,
        workers: impl IntoIterator<Item = W>,
    ) -> Self {
        let workers = workers.into_iter().map(|worker| worker.borrow().address.clone());
        let (workers, secret) = (workers.collect(), Some(SECRET.to_owned()));
        Self { workers, secret, ..Self::alone(directory) }
    }

    pub(crate) fn with_jobs(self, jobs: &str) -> Self {
        Self { jobs: jobs.to_owned(), ..self }
    }

    pub(crate) fn by(self, engine: &'static str) -> Self {
        Self { engine, ..self }
    }

    /// With these flags, too.
    pub(crate) fn with_words(self, words: &[String]) -> Self {
        Self { words: words.to_vec(), ..self }
    }

    pub(crate) fn with_secret(self, secret: &str) -> Self {
        Self { secret: Some(secret.to_owned()), ..self }
    }

    pub(crate) fn without_secret(self) -> Self {
        Self { secret: None, ..self }
    }

    pub(crate) fn begin(&self, statement: &str) -> Result<Running> {
        begun(self.secret.as_deref(), |command| {
            command.args(["sql", "-d", "postgres", "--format", "csv", "--jobs", &self.jobs, "-D"]);
            command.arg(&self.directory);
            if !self.workers.is_empty() {
                command.args(["--workers", &self.workers.join(","), "--worker-share", "1MB"]);
                command.args(["--worker-engine", self.engine]);
            }
            command.args(&self.words).arg(statement)
        })
    }

    pub(crate) fn ask(&self, statement: &str) -> Result<Asked> {
        self.begin(statement)?.end()
    }
}

/// The program with these words, and a secret in its environment.
pub(crate) fn begun(
    secret: Option<&str>,
    words: impl FnOnce(&mut Command) -> &mut Command,
) -> Result<Running> {
    let mut command = program();
    if let Some(secret) = secret {
        command.env(VARIABLE, secret);
    }
    words(&mut command).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn()?;
    let (ended, told) = channel();
    let id = child.id();
    // What never ends ends the test.
    std::thread::spawn(move || match told.recv_timeout(LONGEST) {
        Err(RecvTimeoutError::Timeout) => signal(id, "KILL"),
        _ => Ok(()),
    });
    Ok(Running { child, _ended: ended })
}

/// A statement that runs.
pub(crate) struct Running {
    child: Child,
    _ended: Sender<()>,
}

impl Running {
    #[allow(dead_code)] // Not all tests send it signals.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn end(self) -> Result<Asked> {
        let output = self.child.wait_with_output()?;
        Ok(Asked {
            is_success: output.status.success(),
            answer: String::from_utf8(output.stdout)?,
            said: String::from_utf8(output.stderr)?,
        })
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) is_success: bool,
    pub(crate) answer: String,
    pub(crate) said: String,
}

impl Asked {
    pub(crate) fn succeeded(self) -> Result<String> {
        ensure!(self.is_success, "{}", self.said);
        Ok(self.answer)
    }
}
