//! The two directories of `bench tables`, and the server that is there or out of the way.
//!
//! The server runs on the first; pagemill reads the second, a copy that was stopped cleanly and stays so. With
//! `--same-directory` pagemill reads the first too. Invariant: the server is stopped then, before pagemill runs, and
//! started again by whoever asks it something.

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};

use super::options::Options;
use super::output_of;
use crate::bench::server::{Cluster, Contents, LaunchOptions, Server};
use crate::workspace;

/// Bytes of one row on its page, header and line pointer included.
const T_ROW_BYTES: u64 = 690;
const BIGTABLE_ROW_BYTES: u64 = 45;

const MAJOR: u32 = 15;

/// A loaded cluster and its copy.
pub(super) struct Twins {
    pub(super) cluster: Cluster,
}

impl Twins {
    /// Finds the loaded clusters, or makes them.
    pub(super) fn prepare(options: &Options) -> Result<Self> {
        let default = || workspace::root().join("target/bench");
        let directory = options.run.directory.clone().unwrap_or_else(default);
        let twins = Self { cluster: Cluster::open(&directory, MAJOR)? };
        let mark = mark(options);
        if !options.fresh && twins.cluster.holds(&mark) {
            eprintln!("reusing the clusters in {}", twins.cluster.directory.display());
        } else {
            twins.make(options, mark)?;
        }
        Ok(twins)
    }

    fn make(&self, options: &Options, mark: Value) -> Result<()> {
        let (rows, bigtable_rows) = (options.rows, options.bigtable_rows);
        let tables = rows * T_ROW_BYTES + bigtable_rows * BIGTABLE_ROW_BYTES;
        self.cluster.announce("two clusters and two exports", 4 * tables + (1 << 30))?;
        for old in [self.twin(), self.exports()] {
            if old.exists() {
                std::fs::remove_dir_all(old)?;
            }
        }
        eprintln!("loading t ({rows} rows) and bigtable ({bigtable_rows} rows) ...");
        let statements = statements(options);
        let contents =
            Contents { data_checksums: options.data_checksums, statements: &statements, mark };
        self.cluster.make(&contents, launch(options), |cluster| {
            cluster.own_directory(&self.exports())?;
            let mut copy = Command::new("cp");
            copy.args(["-a", "--reflink=auto"]).arg(cluster.data()).arg(self.twin());
            output_of(&mut copy).map(drop)
        })
    }

    /// The cleanly stopped copy.
    pub(super) fn twin(&self) -> PathBuf {
        self.cluster.directory.join("twin")
    }

    /// Where exports go, of both sides.
    pub(super) fn exports(&self) -> PathBuf {
        self.cluster.directory.join("exports")
    }

    /// The data directories that are read.
    pub(super) fn directories(&self, options: &Options) -> Vec<PathBuf> {
        let twin = (!options.same_directory).then(|| self.twin());
        std::iter::once(self.cluster.data()).chain(twin).collect()
    }
}

fn launch(options: &Options) -> LaunchOptions<'_> {
    LaunchOptions {
        core: Some(options.core),
        shared_buffers: &options.sides.shared_buffers,
        group: None,
        settings: &[],
    }
}

fn statements(options: &Options) -> Vec<String> {
    let (rows, bigtable_rows) = (options.rows, options.bigtable_rows);
    let t = format!(
        "create table t as select repeat('a', 100) || i || repeat('b', 500) as filler \
         from generate_series(1, {rows}) i"
    );
    let bigtable = format!(
        "create table bigtable as select (random() * 2147483647)::int4 as a, \
         (random() * 2147483647)::int4 as b, (random() * 2147483647)::int4 as c \
         from generate_series(1, {bigtable_rows})"
    );
    let others = [
        "select setseed(0.25)",
        "vacuum (freeze, analyze) t",
        "vacuum (freeze, analyze) bigtable",
        "checkpoint",
    ];
    let [seed, rest @ ..] = others.map(str::to_owned);
    [t, seed, bigtable].into_iter().chain(rest).collect()
}

/// What the loaded cluster holds; two clusters with equal contents are interchangeable.
fn mark(options: &Options) -> Value {
    json!({
        "rows": options.rows,
        "bigtable_rows": options.bigtable_rows,
        "data_checksums": options.data_checksums,
    })
}

/// The server, started when it is asked and stopped when pagemill wants its directory.
pub(super) struct Host<'a> {
    twins: &'a Twins,
    options: &'a Options,
    server: RefCell<Option<Server<'a>>>,
}

impl<'a> Host<'a> {
    pub(super) fn new(twins: &'a Twins, options: &'a Options) -> Self {
        Self { twins, options, server: RefCell::new(None) }
    }

    pub(super) fn exports(&self) -> PathBuf {
        self.twins.exports()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.server.borrow().is_none()
    }

    /// Stops the server where pagemill reads its directory.
    pub(super) fn make_way(&self) -> Result<()> {
        if self.options.same_directory {
            self.server.borrow_mut().take();
        }
        Ok(())
    }

    pub(super) fn psql(&self, statements: &[&str]) -> Result<String> {
        self.ask(|server| server.psql(statements))
    }

    pub(super) fn timed(&self, statement: &str) -> Result<(String, f64)> {
        self.ask(|server| server.timed(statement))
    }

    fn ask<T>(&self, question: impl FnOnce(&Server<'_>) -> Result<T>) -> Result<T> {
        let mut server = self.server.borrow_mut();
        let server = match &mut *server {
            Some(server) => server,
            none => none.insert(self.twins.cluster.start(launch(self.options))?),
        };
        question(server)
    }
}
