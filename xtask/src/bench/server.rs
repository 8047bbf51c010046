//! PostgreSQL's side: a loaded cluster and the running server.
//!
//! A cluster is made once and kept. After it is loaded, vacuumed and frozen, the server is stopped cleanly. Invariant:
//! `ready.json` is written last, so a directory without it is an unfinished one and is made anew.
//!
//! A server runs where it is told to: on one core, in a control group. It stops when its value is dropped, so that
//! pagemill may read the same directory.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use pagemill_server::{Account, InitdbOptions, Postmaster, Shutdown, never};
use pagemill_testkit::{ControlGroup, PgInstall};
use serde_json::Value;

use super::output_of;

const GIB: f64 = (1_u64 << 30) as f64;

/// Settings that speed the loading up, or keep the server from working on its own while it is timed.
pub(super) const SETTINGS: &str = "
autovacuum = off
wal_level = minimal
max_wal_senders = 0
max_wal_size = '256MB'
";

/// What a cluster is made of.
pub(super) struct Contents<'a> {
    pub(super) data_checksums: bool,
    /// The statements that load it, run in one session.
    pub(super) statements: &'a [String],
    /// What tells it from others; two clusters with equal contents are interchangeable.
    pub(super) mark: Value,
}

/// What every server here is started with: sessions in one process, and no work on plans.
const ONE_PROCESS: [&str; 2] = ["max_parallel_workers_per_gather=0", "jit=off"];

/// Where a server runs, and with which settings.
#[derive(Clone, Copy)]
pub(super) struct LaunchOptions<'a> {
    /// The one core it is pinned to.
    pub(super) core: Option<usize>,
    pub(super) shared_buffers: &'a str,
    /// The control group it starts in.
    pub(super) group: Option<&'a ControlGroup>,
    /// More settings, `name=value` each, over those of the cluster.
    pub(super) settings: &'a [&'a str],
}

/// A stopped cluster: `data` below its directory.
pub(super) struct Cluster {
    pub(super) directory: PathBuf,
    server: pagemill_server::Server,
    major: u32,
}

impl Cluster {
    /// The cluster of this directory, which is made if need be, and of this major version. The server of a benchmark that
    /// was interrupted is stopped.
    pub(super) fn open(directory: &Path, major: u32) -> Result<Self> {
        let cluster = Self::at(directory, major)?;
        if let Ok(leftover) = cluster.server.running() {
            eprintln!("a server was left running: it is stopped");
            leftover.stop(Shutdown::Fast)?;
        }
        Ok(cluster)
    }

    fn at(directory: &Path, major: u32) -> Result<Self> {
        let account = Account::for_server(&["postgres"])?;
        account.create_dir(directory)?;
        let directory = directory.canonicalize()?;
        let installation = install(major)?.installation()?;
        let server = pagemill_server::Server::new(installation, account, &directory)?;
        Ok(Self { directory, server, major })
    }

    pub(super) fn data(&self) -> PathBuf {
        self.server.data()
    }

    pub(super) fn version(&self) -> String {
        format!("postgres (PostgreSQL) {}", self.server.installation().version())
    }

    /// Whether it was loaded with these contents.
    pub(super) fn holds(&self, mark: &Value) -> bool {
        let Ok(text) = std::fs::read(self.directory.join("ready.json")) else { return false };
        serde_json::from_slice::<Value>(&text).is_ok_and(|ready| ready == *mark)
    }

    /// Makes it anew, stopped at the end; what `finish` does belongs to the making.
    pub(super) fn make(
        &self,
        contents: &Contents<'_>,
        launch: LaunchOptions<'_>,
        finish: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        let ready = self.directory.join("ready.json");
        std::fs::remove_file(&ready).ok();
        if self.data().exists() {
            std::fs::remove_dir_all(self.data())?;
        }
        let options = InitdbOptions {
            data_checksums: Some(contents.data_checksums),
            settings: SETTINGS,
            ..InitdbOptions::default()
        };
        self.server.initdb(&options).context("give another place with --dir")?;
        let server = self.start(launch)?;
        let statements: Vec<&str> = contents.statements.iter().map(String::as_str).collect();
        server.psql(&statements)?;
        drop(server);
        finish(self)?;
        std::fs::write(ready, contents.mark.to_string())?;
        Ok(())
    }

    /// A copy of this stopped cluster in another directory.
    pub(super) fn copy_to(&self, directory: &Path) -> Result<Self> {
        let copied = Self::at(directory, self.major)?;
        let mut copy = Command::new("cp");
        output_of(copy.args(["-a", "--reflink=auto"]).arg(self.data()).arg(directory))?;
        Ok(copied)
    }

    /// Says how much space something will take here, and refuses when there is less.
    pub(super) fn announce(&self, what: &str, bytes: u64) -> Result<()> {
        let needed = bytes as f64 / GIB;
        let mut df = Command::new("df");
        let listing = output_of(df.args(["--output=avail", "-B1"]).arg(&self.directory))?;
        let free: f64 = listing.split_whitespace().last().unwrap_or("0").parse()?;
        let free = free / GIB;
        let place = self.directory.display();
        eprintln!("{what}: {needed:.1} GiB in {place} ({free:.1} GiB free)");
        if free < needed {
            bail!("not enough space; choose another place with --dir, or fewer --rows");
        }
        Ok(())
    }

    /// A directory that the server may write to.
    pub(super) fn own_directory(&self, directory: &Path) -> Result<()> {
        Ok(self.server.account().create_dir(directory)?)
    }

    /// Starts the server; it stops when the value is dropped.
    pub(super) fn start(&self, launch: LaunchOptions<'_>) -> Result<Server<'_>> {
        let LaunchOptions { core, shared_buffers, group, settings } = launch;
        let env = || Command::new("env");
        let mut wrapper = group.map_or_else(env, |group| group.command("env"));
        if let Some(core) = core {
            wrapper.args(["taskset", "-c", &core.to_string()]);
        }
        let mut all = vec![format!("shared_buffers={shared_buffers}")];
        all.extend(ONE_PROCESS.iter().chain(settings).map(|setting| (*setting).to_owned()));
        let postmaster = Some(self.server.start_through(wrapper, &all)?);
        Ok(Server { cluster: self, postmaster })
    }
}

/// The installation of a version. Where the environment names its programs, those and no others.
fn install(major: u32) -> Result<PgInstall> {
    let variable = format!("PAGEMILL_PG{major}_BINDIR");
    let found = match std::env::var_os(&variable) {
        Some(given) => Some(PgInstall { bindir: given.into(), major }),
        None => PgInstall::find(major),
    };
    let usable = found.filter(|install| install.program("initdb").is_file());
    usable.with_context(|| {
        format!("no PostgreSQL {major}; install it (see ci/), or set {variable} to its programs")
    })
}

/// A running server.
pub(super) struct Server<'a> {
    pub(super) cluster: &'a Cluster,
    /// `None` once it has ended.
    postmaster: Option<Postmaster>,
}

impl Server<'_> {
    /// Runs statements in one session, one process on the server's side, and gives what psql prints.
    pub(super) fn psql(&self, statements: &[&str]) -> Result<String> {
        Ok(self.cluster.server.psql("postgres", statements)?)
    }

    /// Has a client connect to it.
    pub(super) fn connect(&self, client: &mut Command) {
        self.cluster.server.connect(client, "postgres");
    }

    /// Runs a COPY from standard input, with what is written as its rows.
    pub(super) fn copy_in(
        &self,
        copy: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let mut psql = self.cluster.server.psql_command("postgres");
        psql.args(["-c", copy]).stdin(Stdio::piped());
        let mut child = psql.spawn()?;
        let written = write(&mut child.stdin.take().context("no input")?);
        ensure!(child.wait()?.success(), "psql failed: {copy}");
        Ok(written?)
    }

    /// Runs a COPY to standard output into another program, and waits for both.
    pub(super) fn copy_out(&self, copy: &str, mut reader: Command) -> Result<()> {
        let mut psql = self.cluster.server.psql_command("postgres");
        let mut psql = psql.args(["-c", copy]).stdout(Stdio::piped()).spawn()?;
        let read = reader.stdin(psql.stdout.take().context("no output")?).status();
        // It holds the pipe's end: psql would wait forever for a reader that has failed.
        drop(reader);
        ensure!(psql.wait()?.success(), "psql failed: {copy}");
        ensure!(read?.success(), "its reader failed: {copy}");
        Ok(())
    }

    /// The command that copies the whole cluster into a directory that is not there.
    pub(super) fn basebackup(&self, destination: &Path) -> Command {
        let server = &self.cluster.server;
        let program = server.installation().program("pg_basebackup");
        let mut command = server.account().command(&program);
        server.connect(&mut command, "postgres");
        command.arg("--checkpoint=fast").arg("-D").arg(destination);
        command
    }

    /// Ends the server as a crash would: nothing is written out, and the directory is left as it lies.
    pub(super) fn kill(mut self) -> Result<()> {
        let postmaster = self.postmaster.take().context("a server without a process")?;
        Ok(postmaster.stop(Shutdown::Immediate)?)
    }

    /// Runs one statement and gives its output with its time in milliseconds, as psql measures it.
    pub(super) fn timed(&self, statement: &str) -> Result<(String, f64)> {
        self.timed_after(&[], statement)
    }

    /// The same after other statements of the session, which are not timed. None has a semicolon in a literal.
    pub(super) fn timed_after(&self, before: &[&str], statement: &str) -> Result<(String, f64)> {
        let mut session = self.cluster.server.session("postgres")?;
        // Several in one go to the server together, as one transaction if they begin none.
        let query = |statement: &str| format!("{};", statement.replace(';', "\\;"));
        let mut ask = |statement: &str| session.ask(&query(statement), &never);
        before.iter().try_for_each(|statement| ask(statement).map(drop))?;
        let answer = ask(statement)?;
        let time = answer.time.context("psql printed no time")?;
        Ok((answer.text.trim().to_owned(), time.as_secs_f64() * 1000.0))
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        let stopped = self.postmaster.take().map(|postmaster| postmaster.stop(Shutdown::Fast));
        if let Some(Err(error)) = stopped {
            eprintln!("the server did not stop: {error}");
        }
    }
}
