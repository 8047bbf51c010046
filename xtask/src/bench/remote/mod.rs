//! `cargo xtask bench remote`: a cluster read from an object store that is far away and slow, against the link's rate, and from
//! the cache on disk, against the same files here.
//!
//! ```text
//! cluster ──► pagemill-testbucket over it: latency, rate ──► ls, lookup, scan, warm scan and local scan in turns ──► runs/
//! ```
//!
//! The server is another process, its requests counted by `--stats`, which the tests hold against the server's log. Invariant: a
//! row whose answer is not that of the files here has no figures.

mod options;
mod report;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::process::{Said, timed};
use super::server::{Cluster, Contents, LaunchOptions};
use super::{artifact, binary, environment, files_below, output_of, settling, shown};
use crate::workspace;
pub(super) use options::Options;
use pagemill_testkit::page_cache::read_files;

const MAJOR: u32 = 15;
/// Bytes that a row takes.
const ROW_BYTES: u64 = 690;

/// What is measured, and what for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// Names from nothing.
    Ls,
    /// A row by its key, from nothing.
    Lookup,
    /// All pages of a table, from nothing.
    Scan,
    /// The same out of the cache on disk, in turns with the files here.
    Warm,
}

/// What a row came to.
#[derive(Debug)]
pub(super) struct RowResult {
    pub(super) row: Row,
    /// Milliseconds, turn by turn.
    pub(super) times: Vec<f64>,
    /// Those of the files here, in the same turns.
    pub(super) local: Vec<f64>,
    /// Requests, and bytes from the network, of the last turn.
    pub(super) requests: u64,
    pub(super) bytes: u64,
    /// How many of them came one after the other, as the server saw it.
    pub(super) in_a_row: u64,
    pub(super) fault: Option<String>,
}

/// The programs, the cluster and the server over it.
struct Stand {
    pagemill: PathBuf,
    /// What answers SQL, where it was named.
    pagemill_sql: Option<PathBuf>,
    /// The key of the row that is looked up.
    key: u64,
    cluster: Cluster,
    cache: PathBuf,
    server: Child,
    /// What it says: its address, then a number for each line it is given.
    answers: BufReader<ChildStdout>,
    endpoint: String,
}

/// Runs the benchmark with these options; false when a row failed.
pub(super) fn run(options: &Options) -> Result<bool> {
    let root = workspace::root();
    let pagemill = binary(options.pagemill.as_deref(), &root)?;
    let server = match &options.testbucket {
        Some(path) => path.clone(),
        None => build_server(&root)?,
    };
    let mut stand = Stand::make(options, pagemill, &server)?;
    let mut environment = environment::collect(&stand.cluster, None, &root);
    environment.push(settling::told());
    let mut rows = vec![Row::Ls, Row::Lookup, Row::Scan, Row::Warm];
    rows.retain(|row| *row != Row::Lookup || options.pagemill_sql.is_some());
    let results: Vec<_> =
        rows.into_iter().map(|row| stand.measure(row, options.run.repetitions)).collect();
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

/// The server as a program.
pub(super) fn build_server(root: &Path) -> Result<PathBuf> {
    eprintln!("building pagemill-testbucket, release ...");
    let mut command = workspace::cargo();
    command.args(["build", "--release", "--quiet", "-p", "pagemill-testbucket"]).current_dir(root);
    if !command.status()?.success() {
        bail!("failed: {}", shown(&command));
    }
    Ok(workspace::target_directory(root).join("release/pagemill-testbucket"))
}

impl Stand {
    fn make(options: &Options, pagemill: PathBuf, server: &Path) -> Result<Self> {
        let default = || workspace::root().join("target/bench-remote");
        let directory = options.run.directory.clone().unwrap_or_else(default);
        let cluster = Cluster::open(&directory, MAJOR)?;
        cluster
            .announce("a cluster and a cache of it", 2 * options.rows * ROW_BYTES + (1 << 30))?;
        eprintln!("loading t ...");
        let statements = [
            format!(
                "create table t as select i as a, repeat('a', 100) || i || repeat('b', 500) as filler \
                 from generate_series(1, {}) i",
                options.rows
            ),
            "alter table t add primary key (a)".to_owned(),
            "vacuum (freeze, analyze) t".to_owned(),
            "checkpoint".to_owned(),
        ];
        let contents =
            Contents { data_checksums: false, statements: &statements, mark: json!(null) };
        let launch =
            LaunchOptions { core: None, shared_buffers: "128MB", group: None, settings: &[] };
        cluster.make(&contents, launch, |_| Ok(()))?;
        let cache = directory.join("cache");
        let rate = (options.rate * 1_000_000).to_string();
        let mut command = Command::new(server);
        command.arg(cluster.data()).args([options.latency.to_string(), rate]);
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut endpoint = String::new();
        let mut answers = BufReader::new(server.stdout.take().context("no output")?);
        answers.read_line(&mut endpoint)?;
        let endpoint = endpoint.trim().to_owned();
        let (pagemill_sql, key) = (options.pagemill_sql.clone(), options.rows / 2);
        Ok(Self { pagemill, pagemill_sql, key, cluster, cache, server, answers, endpoint })
    }

    fn measure(&mut self, row: Row, turns: usize) -> RowResult {
        eprintln!("{row:?} ...");
        let mut result = RowResult {
            row,
            times: Vec::new(),
            local: Vec::new(),
            requests: 0,
            bytes: 0,
            in_a_row: 0,
            fault: None,
        };
        if let Err(error) = self.take_turns(&mut result, turns) {
            let text = format!("{error:#}");
            result.fault = Some(text.replace(&*self.cluster.directory.to_string_lossy(), "DIR"));
        }
        result
    }

    fn take_turns(&mut self, result: &mut RowResult, turns: usize) -> Result<()> {
        let warm = result.row == Row::Warm;
        let here = self.command(result.row, &self.cluster.data().to_string_lossy(), true);
        ensure!(output_of(&mut self.there(result.row, warm))? == output_of(&mut { here })?);
        for _ in 0..turns {
            if warm {
                read_files(&files_below(&self.cluster.data().join("base"))?)?;
                let data = self.cluster.data().to_string_lossy().into_owned();
                result
                    .local
                    .push(timed(self.command(Row::Warm, &data, true).arg("--stats=json"))?.0);
            }
            self.in_a_row()?;
            let (milliseconds, said) = timed(self.there(result.row, warm).arg("--stats=json"))?;
            result.times.push(milliseconds);
            result.requests = requests(&said)?;
            result.bytes = said.number("network_bytes")?;
            result.in_a_row = self.in_a_row()?;
        }
        Ok(())
    }

    /// How many requests came one after the other since this was asked last.
    fn in_a_row(&mut self) -> Result<u64> {
        self.server.stdin.as_mut().context("the server has no input")?.write_all(b"\n")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        line.trim().parse().with_context(|| format!("the server said {line:?}"))
    }

    fn there(&self, row: Row, warm: bool) -> Command {
        // The server calls its bucket so.
        self.command(row, "s3://snapshots", warm)
    }

    fn command(&self, row: Row, directory: &str, caches: bool) -> Command {
        let lookup = format!("select * from t where a = {}", self.key);
        let (program, words): (_, &[&str]) = match row {
            Row::Ls => (None, &["ls", "-d", "postgres"]),
            Row::Lookup => (self.pagemill_sql.as_ref(), &["sql", "-d", "postgres", "-c", &lookup]),
            Row::Scan | Row::Warm => {
                (None, &["export", "-d", "postgres", "-t", "t", "-o", "/dev/null"])
            }
        };
        let mut command = Command::new(program.unwrap_or(&self.pagemill));
        command.arg(words[0]).args(["-D", directory]).args(&words[1..]).env_remove("PGDATA");
        command.env("AWS_ENDPOINT_URL", &self.endpoint).env("AWS_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", "AKIATESTBUCKET").env("NO_PROXY", "127.0.0.1");
        command.env("AWS_SECRET_ACCESS_KEY", "secret of the test bucket");
        match caches {
            true => command.arg("--remote-cache").arg(&self.cache),
            false => command.args(["--remote-cache", "none"]),
        };
        command
    }

    /// Takes everything away; gives the directory.
    fn remove(mut self) -> Result<PathBuf> {
        drop(self.server.stdin.take());
        self.server.wait()?;
        std::fs::remove_dir_all(self.cluster.data())?;
        let _ = std::fs::remove_dir_all(&self.cache);
        std::fs::remove_file(self.cluster.directory.join("ready.json"))?;
        Ok(self.cluster.directory)
    }
}

fn requests(said: &Said) -> Result<u64> {
    let names = ["list_requests", "get_requests", "head_requests"];
    names.iter().map(|name| said.number(name)).sum()
}
