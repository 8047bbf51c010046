//! `cargo xtask bench workers`: statements over a table on an object store, by three workers and by one, in turns.
//!
//! ```text
//! cluster ──► a pagemill-testbucket for each worker: latency, rate ──► workers ──► `sql --workers`, one or three ──► runs/
//! ```
//!
//! Each worker has a link of its own, which is slow enough that a machine of few cores does not hold them back. Nothing is kept
//! on disk. Invariant: a row whose answers are not equal, and not those of the files here, has no figures.

mod options;
mod report;

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::server::{Cluster, Contents, LaunchOptions};
use super::{artifact, environment, output_of, settling, shown};
use crate::workspace;
pub(super) use options::Options;

const MAJOR: u32 = 15;
/// Bytes that a row takes.
const ROW_BYTES: u64 = 690;
const WORKERS: usize = 3;
/// How long a worker may take until it listens: it opens the cluster over its link.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is asked.
const STATEMENTS: [(&str, &str); 3] = [
    ("aggregate", "select count(*), sum(a), min(filler), max(filler) from t"),
    ("filter", "select count(*) from t where filler like '%99b%'"),
    ("group", "select a % 50 as g, count(*), sum(a), max(filler) from t group by 1 order by 1"),
];

/// What divides statements among workers.
const ENGINES: [&str; 2] = ["distributed", "ballista"];

/// What a row came to.
#[derive(Debug, Default)]
pub(super) struct RowResult {
    pub(super) name: &'static str,
    pub(super) engine: &'static str,
    /// Milliseconds, turn by turn.
    pub(super) one: Vec<f64>,
    pub(super) three: Vec<f64>,
    pub(super) fault: Option<String>,
}

/// A process that ends with its value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A worker, and the store that it reads from.
struct Worker {
    _bucket: Running,
    _worker: Running,
    address: String,
}

/// The programs, the cluster and the workers.
struct Stand {
    program: PathBuf,
    cluster: Cluster,
    workers: Vec<Worker>,
    /// Of the one who asks.
    _bucket: Running,
    endpoint: String,
}

/// Runs the benchmark with these options; false when a row failed.
pub(super) fn run(options: &Options) -> Result<bool> {
    let root = workspace::root();
    let program = match &options.pagemill_sql {
        Some(path) => path.clone(),
        None => build_program(&root)?,
    };
    let bucket = match &options.testbucket {
        Some(path) => path.clone(),
        None => super::remote::build_server(&root)?,
    };
    let stand = Stand::make(options, program, &bucket)?;
    let mut environment = environment::collect(&stand.cluster, None, &root);
    environment.push(settling::told());
    let turns = options.run.repetitions;
    let rows = ENGINES.iter().flat_map(|engine| STATEMENTS.map(|row| (engine, row)));
    let results: Vec<RowResult> =
        rows.map(|(engine, row)| stand.measure(engine, row, turns)).collect();
    let page = report::markdown(options, &environment, &results);
    println!("\n{page}");
    let directory = stand.remove()?;
    let place = if options.run.quick { directory } else { root.join("runs") };
    let numbers = report::raw(options, &environment, &results);
    for path in artifact::keep(&place, &options.run.name, &environment, &page, &numbers)? {
        println!("kept: {}", path.display());
    }
    Ok(results.iter().all(|result| result.fault.is_none()))
}

fn build_program(root: &Path) -> Result<PathBuf> {
    eprintln!("building pagemill-sql with workers, release ...");
    let mut command = workspace::cargo();
    command.args(["build", "--release", "--quiet", "--features=pagemill-sql/ballista", "--bins"]);
    let target = workspace::target_directory(root).join("sql");
    command.arg("--target-dir").arg(&target).current_dir(root.join("crates/pagemill-sql"));
    if !command.status()?.success() {
        bail!("failed: {}", shown(&command));
    }
    Ok(target.join("release/pagemill-sql"))
}

impl Stand {
    fn make(options: &Options, program: PathBuf, bucket: &Path) -> Result<Self> {
        let default = || workspace::root().join("target/bench-workers");
        let directory = options.run.directory.clone().unwrap_or_else(default);
        let cluster = Cluster::open(&directory, MAJOR)?;
        cluster.announce("a cluster", options.rows * ROW_BYTES + (1 << 30))?;
        eprintln!("loading t ...");
        let statements = [
            format!(
                "create table t as select i as a, repeat('a', 100) || i || repeat('b', 500) as filler \
                 from generate_series(1, {}) i",
                options.rows
            ),
            "vacuum (freeze, analyze) t".to_owned(),
            "checkpoint".to_owned(),
        ];
        let contents =
            Contents { data_checksums: false, statements: &statements, mark: json!(null) };
        let launch =
            LaunchOptions { core: None, shared_buffers: "128MB", group: None, settings: &[] };
        cluster.make(&contents, launch, |_| Ok(()))?;
        let workers = (0..WORKERS).map(|_| Worker::start(&program, bucket, &cluster, options));
        let workers = workers.collect::<Result<_>>()?;
        let (own, endpoint) = start_bucket(bucket, &cluster, options)?;
        Ok(Self { program, cluster, workers, _bucket: own, endpoint })
    }

    fn measure(
        &self,
        engine: &'static str,
        (name, statement): (&'static str, &str),
        turns: usize,
    ) -> RowResult {
        eprintln!("{engine}: {name} ...");
        let mut result = RowResult { name, engine, ..RowResult::default() };
        if let Err(error) = self.take_turns(&mut result, statement, turns) {
            let text = format!("{error:#}");
            result.fault = Some(text.replace(&*self.cluster.directory.to_string_lossy(), "DIR"));
        }
        result
    }

    fn take_turns(&self, result: &mut RowResult, statement: &str, turns: usize) -> Result<()> {
        let mut here = Command::new(&self.program);
        here.args(["sql", "-q", "-d", "postgres", "--format", "csv", "-c", statement, "-D"]);
        let expected = output_of(here.arg(self.cluster.data()).env_remove("PGDATA"))?;
        for turn in 0..=turns {
            for workers in if turn % 2 == 0 { [1, WORKERS] } else { [WORKERS, 1] } {
                let mut command = self.asking(statement, (workers, result.engine));
                let begin = Instant::now();
                let output = command.output().with_context(|| shown(&command))?;
                let milliseconds = begin.elapsed().as_secs_f64() * 1000.0;
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                // A notice says why it does not run on workers.
                ensure!(output.status.success() && said.is_empty(), "{said}");
                ensure!(String::from_utf8(output.stdout)? == expected, "another answer");
                // The first turn makes connections.
                if turn > 0 {
                    let times = if workers == 1 { &mut result.one } else { &mut result.three };
                    times.push(milliseconds);
                }
            }
        }
        Ok(())
    }

    fn asking(&self, statement: &str, (workers, engine): (usize, &str)) -> Command {
        let addresses: Vec<&str> =
            self.workers[..workers].iter().map(|worker| &*worker.address).collect();
        let mut command = Command::new(&self.program);
        command.args(["sql", "-q", "-D", "s3://snapshots", "-d", "postgres", "--format", "csv"]);
        command.args(["-c", statement, "--remote-cache", "none", "--worker-engine", engine]);
        command.arg("--workers").arg(addresses.join(","));
        store(&mut command, &self.endpoint);
        command
    }

    /// Takes everything away; gives the directory.
    fn remove(self) -> Result<PathBuf> {
        let Self { cluster, workers, .. } = self;
        drop(workers);
        std::fs::remove_dir_all(cluster.data())?;
        std::fs::remove_file(cluster.directory.join("ready.json"))?;
        Ok(cluster.directory)
    }
}

impl Worker {
    fn start(program: &Path, bucket: &Path, cluster: &Cluster, options: &Options) -> Result<Self> {
        let (bucket, endpoint) = start_bucket(bucket, cluster, options)?;
        let free = TcpListener::bind("127.0.0.1:0")?;
        let address = free.local_addr()?.to_string();
        drop(free);
        let mut command = Command::new(program);
        command.args(["worker", "-q", "-D", "s3://snapshots", "--remote-cache", "none"]);
        command.args(["-j", "1", "--listen", &address]);
        store(&mut command, &endpoint);
        let mut worker = Running(command.stdin(Stdio::null()).spawn()?);
        let begin = Instant::now();
        while TcpStream::connect(&address).is_err() {
            if let Some(status) = worker.0.try_wait()? {
                bail!("a worker ended: {status}");
            }
            ensure!(begin.elapsed() < PATIENCE, "a worker does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { _bucket: bucket, _worker: worker, address })
    }
}

/// A server of the cluster's files, and its address.
fn start_bucket(program: &Path, cluster: &Cluster, options: &Options) -> Result<(Running, String)> {
    let mut command = Command::new(program);
    let rate = (options.rate * 1_000_000).to_string();
    command.arg(cluster.data()).args([options.latency.to_string(), rate]);
    let mut bucket = Running(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
    let mut endpoint = String::new();
    let output = bucket.0.stdout.take().context("no output")?;
    BufReader::new(output).read_line(&mut endpoint)?;
    Ok((bucket, endpoint.trim().to_owned()))
}

/// Where the store is, and who asks it.
fn store(command: &mut Command, endpoint: &str) {
    command.env("AWS_ENDPOINT_URL", endpoint).env("AWS_REGION", "us-east-1").env_remove("PGDATA");
    command.env("AWS_ACCESS_KEY_ID", "AKIATESTBUCKET").env("NO_PROXY", "127.0.0.1");
    command.env("AWS_SECRET_ACCESS_KEY", "secret of the test bucket");
}
