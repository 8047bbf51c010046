//! A throw-away PostgreSQL server on a private Unix socket.
//!
//! Everything of a cluster lies under one directory: `data`, `tblspc/NAME` and `server.log`. It is removed when
//! the value is dropped, unless it was [kept](TestCluster::keep). No TCP port is opened, so any number of
//! clusters run beside each other.
//!
//! Must hold: with the settings written here two dumps of an untouched table are byte for byte the same. So no
//! autovacuum, no synchronized or parallel scans, and a fixed spelling of dates, times and floats.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail, ensure};
use pagemill_server::{Account, InitdbOptions, Postmaster, Server, Shutdown, never};

pub use pagemill_server::SUPERUSER;

use crate::account;
use crate::frozen::Frozen;
use crate::initialized::initialized;
use crate::install::PgInstall;
use crate::scratch::{Medium, cluster_root};

/// The settings of every test cluster.
const SETTINGS: &str = "
autovacuum = off
bytea_output = hex
client_min_messages = warning
datestyle = 'ISO, MDY'
extra_float_digits = 1
fsync = off
intervalstyle = postgres
jit = off
lc_messages = C
logging_collector = off
max_locks_per_transaction = 256
max_parallel_workers_per_gather = 0
max_prepared_transactions = 20
max_wal_size = 64MB
min_wal_size = 32MB
synchronize_seqscans = off
timezone = UTC
xmlbinary = base64
";

/// How a cluster is initialized.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// Data checksums on or off; `None` leaves it to the version's `initdb`.
    pub data_checksums: Option<bool>,
    /// The encoding of the template databases.
    pub encoding: String,
    /// The locale of the template databases.
    pub locale: String,
    /// Further flags for `initdb`.
    pub initdb_flags: Vec<String>,
    /// Further lines for `postgresql.conf`.
    pub settings: Vec<String>,
    /// Where the cluster is created; a temporary directory when `None`.
    pub root: Option<PathBuf>,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        ClusterOptions {
            data_checksums: None,
            encoding: "UTF8".into(),
            locale: "C.UTF-8".into(),
            initdb_flags: Vec::new(),
            settings: Vec::new(),
            root: None,
        }
    }
}

/// A cluster made for a test, running or stopped.
#[derive(Debug)]
pub struct TestCluster {
    install: PgInstall,
    /// Ends before the directory of its socket goes.
    running: Option<Postmaster>,
    server: Server,
    kept: bool,
}

impl TestCluster {
    /// Initializes a cluster and starts it.
    pub fn create(install: &PgInstall, options: &ClusterOptions) -> Result<TestCluster> {
        let root = match &options.root {
            Some(root) => root.clone(),
            None => cluster_root(Medium::Memory)?,
        };
        let mut cluster = initialized(install, options, &root)?;
        cluster.set(&options.settings)?;
        cluster.start()?;
        Ok(cluster)
    }

    /// A stopped cluster that already lies under `root`.
    pub fn at(install: &PgInstall, root: PathBuf) -> Result<TestCluster> {
        let account = account::for_server()?;
        account.create_dir(&root)?;
        std::fs::set_permissions(&root, Permissions::from_mode(0o755))?;
        let server = Server::new(install.installation()?, account, &root)?;
        Ok(TestCluster { install: install.clone(), running: None, server, kept: false })
    }

    /// Has `initdb` make it, with the settings of every test cluster and no others.
    pub(crate) fn initialize(&self, options: &ClusterOptions) -> Result<()> {
        Ok(self.server.initdb(&InitdbOptions {
            data_checksums: options.data_checksums,
            encoding: &options.encoding,
            locale: &options.locale,
            flags: &options.initdb_flags,
            settings: SETTINGS,
        })?)
    }

    /// Further lines for `postgresql.conf`.
    fn set(&self, lines: &[String]) -> Result<()> {
        let path = self.data_dir().join("postgresql.conf");
        let mut file = File::options().append(true).open(path)?;
        Ok(file.write_all(format!("{}\n", lines.join("\n")).as_bytes())?)
    }

    /// Starts the server and waits until it accepts connections.
    pub fn start(&mut self) -> Result<()> {
        let started = self.server.start(&[], &never);
        let told = || std::fs::read_to_string(self.server.log()).unwrap_or_default();
        self.running = Some(started.with_context(told)?);
        Ok(())
    }

    /// Stops the server cleanly: a shutdown checkpoint is written.
    pub fn stop(&mut self) -> Result<()> {
        self.stop_by(Shutdown::Fast)
    }

    /// Stops the server as a crash would: no checkpoint, recovery at the next start.
    pub fn kill(&mut self) -> Result<()> {
        self.stop_by(Shutdown::Immediate)
    }

    /// Kills all of the server's processes at once (`SIGKILL`). A later server on another copy of the directory finds
    /// `postmaster.pid` there.
    pub fn kill_all(&mut self) -> Result<()> {
        let running = self.running.take().context("no server that was started here")?;
        Frozen::freeze(&running)?.kill(running, &self.data_dir())
    }

    /// Does something while all of the server's processes stand still, as a snapshot of its file system would find them.
    pub fn frozen<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let running = self.running.as_ref().context("no server that was started here")?;
        let processes = Frozen::freeze(running)?;
        let done = act();
        processes.thaw()?;
        done
    }

    /// Has a server without any other process recover this stopped cluster and write a shutdown checkpoint. It ends before
    /// it has a session, as there is no such database, so that it hardly reads a page for itself.
    pub fn recover(&self) -> Result<()> {
        let mut server = self.account().command(&self.install.program("postgres"));
        server.args(["--single", "-D"]).arg(self.data_dir()).arg("no such database");
        let output = server.output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(said.contains("\"no such database\" does not exist"), "recovery: {said}");
        ensure!(!self.data_dir().join("postmaster.pid").exists(), "recovery: {said}");
        Ok(())
    }

    fn stop_by(&mut self, shutdown: Shutdown) -> Result<()> {
        let postmaster = match self.running.take() {
            Some(postmaster) => postmaster,
            None => self.server.running()?,
        };
        Ok(postmaster.stop(shutdown)?)
    }

    /// What it is built on.
    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// The data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.server.data()
    }

    /// The directory everything of this cluster lies under.
    pub fn root(&self) -> &Path {
        self.server.directory()
    }

    /// The installation the server comes from.
    pub fn install(&self) -> &PgInstall {
        &self.install
    }

    /// The major version of the server.
    pub fn major(&self) -> u32 {
        self.install.major
    }

    /// The account the server runs under.
    pub fn account(&self) -> Account {
        self.server.account()
    }

    /// A directory, made if need be, in which a tablespace of this name can be created.
    pub fn tablespace_dir(&self, name: &str) -> Result<PathBuf> {
        let parent = self.root().join("tblspc");
        self.account().create_dir(&parent)?;
        let dir = parent.join(name);
        self.account().create_dir(&dir)?;
        Ok(dir)
    }

    /// A `psql` connected to `db` that stops at the first error and reads no `.psqlrc`.
    pub fn psql_command(&self, db: &str) -> Command {
        self.server.psql_command(db)
    }

    /// Runs SQL and returns what it prints, unaligned and without headings.
    pub fn psql(&self, db: &str, sql: &str) -> Result<String> {
        self.server.psql(db, &[sql]).with_context(|| format!("in database {db}"))
    }

    /// Runs `psql` with these arguments and returns what it prints.
    pub fn psql_bytes<S: AsRef<OsStr>>(&self, db: &str, args: &[S]) -> Result<Vec<u8>> {
        let mut command = self.psql_command(db);
        command.args(args);
        Ok(succeed(command).with_context(|| format!("in database {db}"))?.stdout)
    }

    /// Runs a script with the given psql variables.
    pub fn psql_file(&self, db: &str, file: &Path, variables: &[(&str, &str)]) -> Result<()> {
        self.psql_file_encoded(db, file, variables, None)
    }

    /// Runs a script that is in another encoding than the database.
    pub fn psql_file_encoded(
        &self,
        db: &str,
        file: &Path,
        variables: &[(&str, &str)],
        client_encoding: Option<&str>,
    ) -> Result<()> {
        let mut command = self.psql_command(db);
        command.args(["-o", "/dev/null"]);
        if let Some(encoding) = client_encoding {
            command.env("PGCLIENTENCODING", encoding);
        }
        for (name, value) in variables {
            command.arg("-v").arg(format!("{name}={value}"));
        }
        command.arg("-f").arg(file);
        succeed(command).with_context(|| format!("{} on {}", file.display(), self.major()))?;
        Ok(())
    }

    /// The bytes of a `COPY … TO STDOUT`.
    pub fn copy_out(&self, db: &str, copy: &str) -> Result<Vec<u8>> {
        self.psql_bytes(db, &["-c", copy])
    }

    /// A copy of this stopped cluster under another directory, with tablespaces of its own.
    pub fn copy_to(&self, root: &Path) -> Result<TestCluster> {
        ensure!(self.running.is_none(), "only a stopped cluster can be copied");
        let copy = TestCluster::at(&self.install, root.to_path_buf())?;
        for cp in self.copy_commands(root) {
            succeed(cp)?;
        }
        self.relink_tablespaces(&copy)?;
        Ok(copy)
    }

    /// The files under another directory as they are found one after the other while the server works: part of a backup, or a
    /// snapshot where it is [frozen](Self::frozen). The control file is copied last, and no lock file.
    pub fn copy_live(&self, root: &Path) -> Result<TestCluster> {
        let copy = TestCluster::at(&self.install, root.to_path_buf())?;
        for mut cp in self.copy_commands(root) {
            // It complains of files that are gone by then.
            cp.output().with_context(|| format!("starting {cp:?}"))?;
        }
        let control = "global/pg_control";
        std::fs::copy(self.data_dir().join(control), copy.data_dir().join(control))?;
        std::fs::remove_file(copy.data_dir().join("postmaster.pid"))?;
        self.relink_tablespaces(&copy)?;
        Ok(copy)
    }

    /// What copies all files.
    fn copy_commands(&self, root: &Path) -> Vec<Command> {
        let parts = ["data", "tblspc"].map(|part| self.root().join(part));
        let cp = |part: &PathBuf| {
            let mut cp = Command::new("cp");
            cp.args(["-a", "--reflink=auto"]).arg(part).arg(root);
            cp
        };
        parts.iter().filter(|part| part.exists()).map(cp).collect()
    }

    /// Points the copy's `pg_tblspc` links, and a backup's map of them, at the copy's directories instead of at the original's.
    fn relink_tablespaces(&self, copy: &TestCluster) -> Result<()> {
        for entry in std::fs::read_dir(copy.data_dir().join("pg_tblspc"))? {
            let link = entry?.path();
            let target = std::fs::read_link(&link)?;
            let inside =
                target.strip_prefix(self.root()).context("a tablespace outside the cluster")?;
            std::fs::remove_file(&link)?;
            std::os::unix::fs::symlink(copy.root().join(inside), &link)?;
        }
        let map = copy.data_dir().join("tablespace_map");
        if map.exists() {
            let (from, to) = (self.root().display(), copy.root().display());
            let text = std::fs::read_to_string(&map)?;
            std::fs::write(&map, text.replace(&format!(" {from}/"), &format!(" {to}/")))?;
        }
        Ok(())
    }

    /// Stops the server if it runs, and leaves the files behind.
    pub fn keep(mut self) -> Result<PathBuf> {
        if self.running.is_some() {
            self.stop()?;
        }
        self.kept = true;
        Ok(self.root().to_owned())
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        // Before its files go.
        drop(self.running.take());
        if !self.kept {
            let _ = std::fs::remove_dir_all(self.root());
        }
    }
}

/// Runs a command; an exit status other than 0 is an error with everything it printed.
pub(crate) fn succeed(mut command: Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{:?} failed ({}):\n{}{}",
            command.get_program(),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(output)
}
