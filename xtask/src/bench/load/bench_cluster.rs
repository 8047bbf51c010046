//! The cluster that is loaded into, and the files that are loaded.
//!
//! Invariant: both are new for each run of the benchmark, and gone at its end.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::page_cache::{read_files, residency};
use serde_json::Value;

use super::options::Options;
use super::rows::{Input, Row};
use crate::bench::output_of;
use crate::bench::server::{Cluster, Contents, LaunchOptions, Server};
use crate::bench::settling::settle;
use crate::workspace;

/// Bytes of a row of `t`, and of three integers, in all that is written of them: input, table, index and WAL.
const T_ROW_BYTES: u64 = 3 * 690;
const BIGTABLE_ROW_BYTES: u64 = 250;

const MAJOR: u32 = 15;

/// The share of an input that must be in the page cache.
const CACHED: f64 = 0.999;

/// A cluster without tables, and the inputs.
pub(super) struct BenchCluster {
    pub(super) cluster: Cluster,
}

impl BenchCluster {
    pub(super) fn make(options: &Options) -> Result<Self> {
        let default = || workspace::root().join("target/bench-load");
        let directory = options.run.directory.clone().unwrap_or_else(default);
        let bench_cluster = Self { cluster: Cluster::open(&directory, MAJOR)? };
        bench_cluster.remove_inputs()?;
        let bytes = options.rows * T_ROW_BYTES + options.bigtable_rows * BIGTABLE_ROW_BYTES;
        bench_cluster.cluster.announce("a cluster, its WAL and three inputs", bytes + (2 << 30))?;
        let contents = Contents { data_checksums: false, statements: &[], mark: Value::Null };
        bench_cluster.cluster.make(&contents, launch(options, &[]), |cluster| {
            cluster.own_directory(&bench_cluster.inputs())?;
            let server = cluster.start(launch(options, &[]))?;
            for input in Input::ALL {
                eprintln!("writing {} ({} rows) ...", input.file_name(), input.rows(options));
                server.psql(&[
                    "select setseed(0.25)",
                    &input.statement(options, &bench_cluster.input(input)),
                ])?;
            }
            Ok(())
        })?;
        Ok(bench_cluster)
    }

    fn inputs(&self) -> PathBuf {
        self.cluster.directory.join("inputs")
    }

    pub(super) fn input(&self, input: Input) -> PathBuf {
        self.inputs().join(input.file_name())
    }

    fn remove_inputs(&self) -> Result<()> {
        if self.inputs().exists() {
            std::fs::remove_dir_all(self.inputs())?;
        }
        Ok(())
    }

    /// Reads an input into the page cache, makes sure that it stayed, and waits until nothing is left to be written.
    pub(super) fn settle(&self, input: Input) -> Result<()> {
        let files = [self.input(input)];
        settle(&self.cluster.directory)?;
        read_files(&files)?;
        let share = residency(&files)?.share();
        let percent = share * 100.0;
        ensure!(
            share >= CACHED,
            "only {percent:.1} % of the input is cached: memory is wanted by others"
        );
        Ok(())
    }

    pub(super) fn start(&self, options: &Options, row: &Row) -> Result<Server<'_>> {
        self.cluster.start(launch(options, row.settings()))
    }

    /// Segments of the relation whose first file this is, below the data directory.
    pub(super) fn segments(&self, relation: &str) -> Vec<PathBuf> {
        let first = self.cluster.data().join(relation);
        let further = |number: u32| self.cluster.data().join(format!("{relation}.{number}"));
        let further = (1..).map(further).take_while(|segment| segment.exists());
        std::iter::once(first).chain(further).collect()
    }

    /// Takes everything away, the result of a quick run excepted.
    pub(super) fn remove(self) -> Result<()> {
        self.remove_inputs()?;
        let directory = self.cluster.directory.clone();
        std::fs::remove_dir_all(self.cluster.data())?;
        for name in ["ready.json", "server.log"] {
            std::fs::remove_file(directory.join(name)).with_context(|| name.to_owned())?;
        }
        Ok(())
    }

    /// A text with words for the directories of this machine.
    pub(super) fn without_places(&self, text: &str) -> String {
        let (data, inputs) = (self.cluster.data(), self.inputs());
        text.replace(&*data.to_string_lossy(), "DATA").replace(&*inputs.to_string_lossy(), "INPUTS")
    }
}

fn launch<'a>(options: &'a Options, settings: &'a [&'a str]) -> LaunchOptions<'a> {
    LaunchOptions {
        core: None,
        shared_buffers: &options.sides.shared_buffers,
        group: None,
        settings,
    }
}

/// The pieces that a file lies in, as `filefrag` counts them; none where it cannot tell.
pub(super) fn pieces(file: &Path) -> Option<u64> {
    let printed = output_of(Command::new("filefrag").arg(file)).ok()?;
    printed.rsplit_once(": ")?.1.split(' ').next()?.parse().ok()
}
