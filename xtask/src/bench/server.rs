//! PostgreSQL's side: the cluster, its twin, and the running server.
//!
//! The cluster is made once and kept. After it is loaded, vacuumed and frozen, the server is stopped
//! and the whole directory copied: the server runs on the first, pagemill reads the second, which
//! was stopped cleanly and stays so. Invariant: `ready.json` is written last, so a directory
//! without it is an unfinished one and is made anew.
//!
//! PostgreSQL refuses to run as root; its programs then run as the `postgres` account.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::options::Options;
use super::output_of;
use crate::workspace;

/// Bytes of one row on its page, header and line pointer included.
const T_ROW_BYTES: u64 = 690;
const BIGTABLE_ROW_BYTES: u64 = 45;
const GIB: f64 = (1_u64 << 30) as f64;

/// Settings that speed the loading up, or keep the server from working on its own while it is timed.
pub(super) const SETTINGS: &str = "
listen_addresses = ''
autovacuum = off
wal_level = minimal
max_wal_senders = 0
max_wal_size = '256MB'
";

/// A loaded cluster and its twin.
pub(super) struct Cluster {
    pub(super) directory: PathBuf,
    programs: PathBuf,
    is_root: bool,
}

impl Cluster {
    /// Finds the programs and the loaded cluster, or makes it.
    pub(super) fn prepare(options: &Options) -> Result<Self> {
        let default = || workspace::root().join("target/bench");
        let directory = options.directory.clone().unwrap_or_else(default);
        std::fs::create_dir_all(&directory)?;
        let cluster = Self {
            directory: directory.canonicalize()?,
            programs: programs()?,
            is_root: output_of(Command::new("id").arg("-u"))?.trim() == "0",
        };
        cluster.stop_leftover();
        let wanted = contents(options);
        if !options.fresh && cluster.ready().is_some_and(|ready| ready == wanted) {
            eprintln!("reusing the clusters in {}", cluster.directory.display());
        } else {
            cluster.make(options, &wanted)?;
        }
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

    /// The cleanly stopped copy.
    pub(super) fn twin(&self) -> PathBuf {
        self.directory.join("twin")
    }

    /// Where exports go, of both sides.
    pub(super) fn exports(&self) -> PathBuf {
        self.directory.join("exports")
    }

    pub(super) fn version(&self) -> Option<String> {
        let mut command = Command::new(self.programs.join("postgres"));
        Some(output_of(command.arg("--version")).ok()?.trim().to_owned())
    }

    fn ready(&self) -> Option<Value> {
        let text = std::fs::read(self.directory.join("ready.json")).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn make(&self, options: &Options, wanted: &Value) -> Result<()> {
        self.announce(options)?;
        std::fs::remove_file(self.directory.join("ready.json")).ok();
        for old in [self.data(), self.twin(), self.exports()] {
            if old.exists() {
                std::fs::remove_dir_all(old)?;
            }
        }
        self.give_to_server(&self.directory)?;
        self.initialize(options)?;
        let server = self.start(options)?;
        server.load(options)?;
        drop(server);
        output_of(self.program("mkdir").arg(self.exports()))?;
        let mut copy = Command::new("cp");
        output_of(copy.args(["-a", "--reflink=auto"]).arg(self.data()).arg(self.twin()))?;
        std::fs::write(self.directory.join("ready.json"), wanted.to_string())?;
        Ok(())
    }

    fn announce(&self, options: &Options) -> Result<()> {
        let tables = options.rows * T_ROW_BYTES + options.bigtable_rows * BIGTABLE_ROW_BYTES;
        let needed = (4 * tables + (1 << 30)) as f64 / GIB;
        let mut df = Command::new("df");
        let listing = output_of(df.args(["--output=avail", "-B1"]).arg(&self.directory))?;
        let free: f64 = listing.split_whitespace().last().unwrap_or("0").parse()?;
        let free = free / GIB;
        let place = self.directory.display();
        eprintln!("two clusters and two exports: {needed:.1} GiB in {place} ({free:.1} GiB free)");
        if free < needed {
            bail!("not enough space; choose another place with --dir, or fewer --rows");
        }
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

    fn initialize(&self, options: &Options) -> Result<()> {
        let mut initdb = self.server_program("initdb");
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N", "-D"]);
        initdb.arg(self.data());
        if options.data_checksums {
            initdb.arg("--data-checksums");
        }
        output_of(&mut initdb)?;
        let path = self.data().join("postgresql.conf");
        let text = std::fs::read_to_string(&path)?;
        std::fs::write(&path, text + SETTINGS)?;
        Ok(())
    }

    /// Any program, run as the account of the server.
    fn program(&self, name: impl AsRef<Path>) -> Command {
        let mut command = if self.is_root {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(name.as_ref());
            command
        } else {
            Command::new(name.as_ref())
        };
        command.current_dir("/").env("LC_ALL", "C");
        command
    }

    fn server_program(&self, name: &str) -> Command {
        self.program(self.programs.join(name))
    }

    /// Starts the server, pinned to the benchmark's core; it stops when the value is dropped.
    pub(super) fn start(&self, options: &Options) -> Result<Server<'_>> {
        let sockets = std::env::temp_dir().join(format!("pagemill-bench-{}", std::process::id()));
        std::fs::create_dir_all(&sockets)?;
        self.give_to_server(&sockets)?;
        let server = Server { cluster: self, sockets };
        let mut start = self.program("taskset");
        start.args(["-c", &options.core.to_string()]).arg(self.programs.join("pg_ctl"));
        start.args(["-w", "-D"]).arg(self.data()).arg("-l").arg(self.directory.join("log"));
        let socket = server.sockets.display();
        let buffers = &options.shared_buffers;
        start.arg("-o").arg(format!("-k '{socket}' -c shared_buffers={buffers}")).arg("start");
        // The server inherits the pipes of its starter and would keep them open for ever.
        start.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let status = start.status().context("could not start taskset")?;
        if !status.success() {
            let log = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(5).collect();
            bail!(
                "the server did not start; the end of its log, last line first:\n{}",
                tail.join("\n")
            );
        }
        Ok(server)
    }
}

/// The directory of PostgreSQL 15's programs.
fn programs() -> Result<PathBuf> {
    let given = std::env::var_os("PAGEMILL_PG15_BINDIR");
    let directory = given.map_or_else(|| "/usr/lib/postgresql/15/bin".into(), PathBuf::from);
    if !directory.join("initdb").is_file() {
        let place = directory.display();
        bail!("no PostgreSQL 15 in {place}; install postgresql-15, or set PAGEMILL_PG15_BINDIR");
    }
    Ok(directory)
}

/// What the loaded cluster holds; two clusters with equal contents are interchangeable.
fn contents(options: &Options) -> Value {
    json!({
        "rows": options.rows,
        "bigtable_rows": options.bigtable_rows,
        "data_checksums": options.data_checksums,
    })
}

/// A running server.
pub(super) struct Server<'a> {
    pub(super) cluster: &'a Cluster,
    sockets: PathBuf,
}

impl Server<'_> {
    fn load(&self, options: &Options) -> Result<()> {
        let (rows, bigtable_rows) = (options.rows, options.bigtable_rows);
        eprintln!("loading t ({rows} rows) and bigtable ({bigtable_rows} rows) ...");
        let t = format!(
            "create table t as select repeat('a', 100) || i || repeat('b', 500) as filler \
             from generate_series(1, {rows}) i"
        );
        let bigtable = format!(
            "create table bigtable as select (random() * 2147483647)::int4 as a, \
             (random() * 2147483647)::int4 as b, (random() * 2147483647)::int4 as c \
             from generate_series(1, {bigtable_rows})"
        );
        let seed = "select setseed(0.25)";
        let freeze =
            ["vacuum (freeze, analyze) t", "vacuum (freeze, analyze) bigtable", "checkpoint"];
        self.psql(&[&[&t, seed, &bigtable], freeze.as_slice()].concat())?;
        Ok(())
    }

    /// Runs statements in one session, one process on the server's side, and gives what psql prints.
    pub(super) fn psql(&self, statements: &[&str]) -> Result<String> {
        let mut psql = Command::new(self.cluster.programs.join("psql"));
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

    /// Runs one statement and gives its output with its time in milliseconds, as psql measures it.
    pub(super) fn timed(&self, statement: &str) -> Result<(String, f64)> {
        let output = self.psql(&["\\timing on", statement])?;
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
