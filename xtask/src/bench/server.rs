//! PostgreSQL's side: a loaded cluster and the running server.
//!
//! A cluster is made once and kept. After it is loaded, vacuumed and frozen, the server is stopped cleanly. Invariant:
//! `ready.json` is written last, so a directory without it is an unfinished one and is made anew.
//!
//! A server runs where it is told to: on one core, in a control group. It stops when its value is dropped, so that
//! pagemill may read the same directory.
//!
//! PostgreSQL refuses to run as root; its programs then run as the `postgres` account.

use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use pagemill_testkit::{ControlGroup, PgInstall};
use serde_json::Value;

use super::output_of;

const GIB: f64 = (1_u64 << 30) as f64;

/// Settings that speed the loading up, or keep the server from working on its own while it is timed.
pub(super) const SETTINGS: &str = "
listen_addresses = ''
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

/// How a server runs.
#[derive(Clone, Copy)]
pub(super) struct Conduct<'a> {
    /// The one core it is pinned to.
    pub(super) core: Option<usize>,
    pub(super) shared_buffers: &'a str,
    /// The control group it starts in.
    pub(super) group: Option<&'a ControlGroup>,
    /// More settings, as options of `postgres`; they override those of the cluster.
    pub(super) settings: &'a str,
}

/// A stopped cluster: `data` below its directory.
pub(super) struct Cluster {
    pub(super) directory: PathBuf,
    install: PgInstall,
    is_root: bool,
}

impl Cluster {
    /// The cluster of this directory, which is made if need be, and of this major version.
    pub(super) fn open(directory: &Path, major: u32) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        let cluster = Self {
            directory: directory.canonicalize()?,
            install: install(major)?,
            is_root: output_of(Command::new("id").arg("-u"))?.trim() == "0",
        };
        cluster.stop_leftover();
        Ok(cluster)
    }

    /// Stops the server of a benchmark that was interrupted.
    fn stop_leftover(&self) {
        if self.data().join("postmaster.pid").exists() {
            let stopped = output_of(&mut self.stop_command());
            eprintln!(
                "a server was left running: {}",
                if stopped.is_ok() { "stopped" } else { "gone" }
            );
        }
    }

    fn stop_command(&self) -> Command {
        let mut stop = self.server_program("pg_ctl");
        stop.args(["-w", "-m", "fast", "-D"]).arg(self.data()).arg("stop");
        stop
    }

    pub(super) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    pub(super) fn version(&self) -> Option<String> {
        let mut command = Command::new(self.install.program("postgres"));
        Some(output_of(command.arg("--version")).ok()?.trim().to_owned())
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
        conduct: Conduct<'_>,
        finish: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        let ready = self.directory.join("ready.json");
        std::fs::remove_file(&ready).ok();
        if self.data().exists() {
            std::fs::remove_dir_all(self.data())?;
        }
        self.give_to_server(&self.directory)?;
        self.initialize(contents.data_checksums)?;
        let server = self.start(conduct)?;
        let statements: Vec<&str> = contents.statements.iter().map(String::as_str).collect();
        server.psql(&statements)?;
        drop(server);
        finish(self)?;
        std::fs::write(ready, contents.mark.to_string())?;
        Ok(())
    }

    /// A copy of this stopped cluster in another directory.
    pub(super) fn copy_to(&self, directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        self.give_to_server(directory)?;
        let mut copy = Command::new("cp");
        output_of(copy.args(["-a", "--reflink=auto"]).arg(self.data()).arg(directory))?;
        let (install, is_root) = (self.install.clone(), self.is_root);
        Ok(Self { directory: directory.canonicalize()?, install, is_root })
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
        output_of(self.program("mkdir").arg(directory))?;
        Ok(())
    }

    /// Lets the server's account own a directory, and makes sure it can get there.
    fn give_to_server(&self, directory: &Path) -> Result<()> {
        if !self.is_root {
            return Ok(());
        }
        output_of(Command::new("chown").arg("postgres").arg(directory))?;
        let reachable = output_of(self.program("test").arg("-w").arg(directory)).is_ok();
        if !reachable {
            let place = directory.display();
            bail!("the postgres account cannot reach {place}; give another place with --dir");
        }
        Ok(())
    }

    fn initialize(&self, data_checksums: bool) -> Result<()> {
        let mut initdb = self.server_program("initdb");
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N", "-D"]);
        initdb.arg(self.data());
        if data_checksums {
            initdb.arg("--data-checksums");
        } else if self.install.major >= 18 {
            initdb.arg("--no-data-checksums");
        }
        output_of(&mut initdb)?;
        let path = self.data().join("postgresql.conf");
        let text = std::fs::read_to_string(&path)?;
        std::fs::write(&path, text + SETTINGS)?;
        Ok(())
    }

    /// Any program, run as the account of the server.
    fn program(&self, name: impl AsRef<Path>) -> Command {
        self.program_in(None, name)
    }

    fn program_in(&self, group: Option<&ControlGroup>, name: impl AsRef<Path>) -> Command {
        let first = if self.is_root { Path::new("runuser") } else { name.as_ref() };
        let mut command = match group {
            Some(group) => group.command(first),
            None => Command::new(first),
        };
        if self.is_root {
            command.args(["-u", "postgres", "--"]).arg(name.as_ref());
        }
        command.current_dir("/").env("LC_ALL", "C");
        command
    }

    fn server_program(&self, name: &str) -> Command {
        self.program(self.install.program(name))
    }

    /// Starts the server; it stops when the value is dropped.
    pub(super) fn start(&self, conduct: Conduct<'_>) -> Result<Server<'_>> {
        let sockets = std::env::temp_dir().join(format!("pagemill-bench-{}", std::process::id()));
        std::fs::create_dir_all(&sockets)?;
        self.give_to_server(&sockets)?;
        let server = Server { cluster: self, sockets };
        let control = self.install.program("pg_ctl");
        let mut start = match conduct.core {
            Some(core) => {
                let mut taskset = self.program_in(conduct.group, "taskset");
                taskset.args(["-c", &core.to_string()]).arg(control);
                taskset
            }
            None => self.program_in(conduct.group, control),
        };
        start.args(["-w", "-D"]).arg(self.data()).arg("-l").arg(self.directory.join("log"));
        let Conduct { shared_buffers, settings, .. } = conduct;
        let socket = server.sockets.display();
        let options = format!("-k '{socket}' -c shared_buffers={shared_buffers} {settings}");
        start.arg("-o").arg(options).arg("start");
        // The server inherits the pipes of its starter and would keep them open for ever.
        start.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let status = start.status().context("could not start pg_ctl")?;
        if !status.success() {
            bail!("the server did not start; the end of its log, last line first:\n{}", self.log());
        }
        Ok(server)
    }

    fn log(&self) -> String {
        let log = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        log.lines().rev().take(5).collect::<Vec<_>>().join("\n")
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
    sockets: PathBuf,
}

impl Server<'_> {
    /// Runs statements in one session, one process on the server's side, and gives what psql prints.
    pub(super) fn psql(&self, statements: &[&str]) -> Result<String> {
        let mut psql = Command::new(self.cluster.install.psql());
        psql.args([
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "postgres",
            "-d",
            "postgres",
        ]);
        psql.arg("-h").arg(&self.sockets).env("LC_ALL", "C").env("PGPORT", "5432");
        psql.env("PGOPTIONS", "-c max_parallel_workers_per_gather=0 -c jit=off");
        statements.iter().for_each(|statement| {
            psql.args(["-c", statement]);
        });
        output_of(&mut psql)
    }

    /// The command that copies the whole cluster into a directory that is not there.
    pub(super) fn basebackup(&self, destination: &Path) -> Command {
        let mut command = self.cluster.server_program("pg_basebackup");
        command.args(["-U", "postgres", "--checkpoint=fast", "-h"]).arg(&self.sockets);
        command.arg("-D").arg(destination).env("PGPORT", "5432");
        command
    }

    /// Ends the server as a crash would: nothing is written out, and the directory is left as it lies.
    pub(super) fn kill(self) -> Result<()> {
        let server = ManuallyDrop::new(self);
        let mut stop = server.cluster.server_program("pg_ctl");
        stop.args(["-w", "-m", "immediate", "-D"]).arg(server.cluster.data()).arg("stop");
        output_of(&mut stop)?;
        std::fs::remove_dir_all(&server.sockets).ok();
        Ok(())
    }

    /// Runs one statement and gives its output with its time in milliseconds, as psql measures it.
    pub(super) fn timed(&self, statement: &str) -> Result<(String, f64)> {
        self.timed_after(&[], statement)
    }

    /// The same after other statements of the session, which are not timed and must print nothing.
    pub(super) fn timed_after(&self, before: &[&str], statement: &str) -> Result<(String, f64)> {
        let output = self.psql(&[before, &["\\timing on", statement]].concat())?;
        let (answer, time) = output.rsplit_once("Time: ").context("psql printed no time")?;
        let milliseconds = time.split_whitespace().next().unwrap_or_default();
        let milliseconds = milliseconds.parse().context("psql printed an odd time")?;
        Ok((answer.trim().to_owned(), milliseconds))
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if let Err(error) = output_of(&mut self.cluster.stop_command()) {
            eprintln!("the server did not stop: {error:#}");
        }
        std::fs::remove_dir_all(&self.sockets).ok();
    }
}
