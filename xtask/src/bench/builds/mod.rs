//! `cargo xtask bench builds`: this build of pagemill against an earlier one, so that a change that should cost nothing is
//! seen to cost nothing.
//!
//! ```text
//! cluster ──► row by row: both once, answers compared ──► turns, who begins changes with each ──► runs/
//! ```
//!
//! Both work on one cluster of PostgreSQL 15, its files in the page cache as the server wrote them, timed as whole processes.
//! Invariant: a row whose answers differ has no figures.

mod options;
mod report;
mod rows;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use pagemill_testkit::page_cache::read_files;
use serde_json::json;

use super::server::{Cluster, Contents, LaunchOptions};
use super::settling::settle;
use super::{artifact, binary, environment, files_below, output_of, settling, shown};
use crate::workspace;
pub(super) use options::Options;
use rows::Row;

const MAJOR: u32 = 15;
/// Bytes of a row in all that is written of it: table, copy, input, export and WAL.
const T_ROW_BYTES: u64 = 6 * 690;
const BIGTABLE_ROW_BYTES: u64 = 600;

/// The milliseconds of a row's turns, pair by pair.
struct RowResult {
    row: Row,
    before: Vec<f64>,
    after: Vec<f64>,
    fault: Option<String>,
}

/// The two programs, in this order.
struct Builds {
    before: PathBuf,
    after: PathBuf,
}

/// Where both work.
struct Stand {
    cluster: Cluster,
}

/// Runs the benchmark with these options; false when a row failed or its answers differed.
pub(super) fn run(options: &Options) -> Result<bool> {
    let root = workspace::root();
    let rows = rows::selected(&options.selected)?;
    let before = binary(Some(&options.before), &root)?;
    let builds = Builds { before, after: binary(options.after.as_deref(), &root)? };
    let stand = Stand::make(options)?;
    let mut environment = environment::collect(&stand.cluster, None, &root);
    environment.push(settling::told());
    let results: Vec<RowResult> =
        rows.into_iter().map(|row| stand.measure(row, &builds, options.run.repetitions)).collect();
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

impl Stand {
    fn make(options: &Options) -> Result<Self> {
        let default = || workspace::root().join("target/bench-builds");
        let directory = options.run.directory.clone().unwrap_or_else(default);
        let stand = Self { cluster: Cluster::open(&directory, MAJOR)? };
        let bytes = options.rows * T_ROW_BYTES + options.bigtable_rows * BIGTABLE_ROW_BYTES;
        stand.cluster.announce("a cluster, its copies and its exports", bytes + (2 << 30))?;
        eprintln!("loading t and bigtable ...");
        stand.cluster.own_directory(&stand.files())?;
        let statements = stand.statements(options);
        let contents =
            Contents { data_checksums: false, statements: &statements, mark: json!(null) };
        let launch =
            LaunchOptions { core: None, shared_buffers: "128MB", group: None, settings: &[] };
        stand.cluster.make(&contents, launch, |_| Ok(()))?;
        Ok(stand)
    }

    fn files(&self) -> PathBuf {
        self.cluster.directory.join("files")
    }

    fn statements(&self, options: &Options) -> Vec<String> {
        let (rows, bigtable_rows) = (options.rows, options.bigtable_rows);
        let copy = |(_, table): &(&str, &str)| {
            let file = self.files().join(table);
            format!("copy {table} to '{}' (format csv)", file.display())
        };
        let mut statements = vec![
            format!(
                "create table t as select repeat('a', 100) || i || repeat('b', 500) as filler \
                 from generate_series(1, {rows}) i"
            ),
            "select setseed(0.25)".to_owned(),
            // Multiplied by a prime, the first column has each number once, as a key has to, and not in order.
            format!(
                "create table bigtable as select ((i * 7919) % {bigtable_rows})::int4 as a, \
                 (random() * 2147483647)::int4 as b, (random() * 2147483647)::int4 as c \
                 from generate_series(1::int8, {bigtable_rows}) i"
            ),
        ];
        let others = [
            "create index bigtable_a on bigtable (a)",
            "create table loaded_t (like t)",
            "create table loaded_bigtable (like bigtable)",
            "create table loaded_key (a int4 primary key, b int4, c int4)",
            "vacuum (freeze, analyze) t",
            "vacuum (freeze, analyze) bigtable",
        ];
        statements.extend(others.map(str::to_owned));
        statements.extend(rows::INPUTS.iter().map(copy));
        statements.push("checkpoint".to_owned());
        statements
    }

    fn measure(&self, row: Row, builds: &Builds, turns: usize) -> RowResult {
        eprintln!("{} ...", row.id);
        let mut result = RowResult { row, before: Vec::new(), after: Vec::new(), fault: None };
        if let Err(error) = self.take_turns(&mut result, builds, turns) {
            result.fault = Some(self.without_places(&format!("{error:#}")));
            (result.before, result.after) = (Vec::new(), Vec::new());
        }
        result
    }

    fn take_turns(&self, result: &mut RowResult, builds: &Builds, turns: usize) -> Result<()> {
        let row = result.row;
        // One of each is not timed: its answers are compared.
        let (_, first) = self.turn(&row, &builds.before)?;
        let (_, second) = self.turn(&row, &builds.after)?;
        ensure!(first == second, "the answers differ");
        for turn in 0..turns {
            let mut timed = |program: &Path, figures: fn(&mut RowResult) -> &mut Vec<f64>| {
                let (milliseconds, _) = self.turn(&row, program)?;
                figures(result).push(milliseconds);
                anyhow::Ok(())
            };
            // By turns, as whoever comes second may find the machine in another state.
            if turn % 2 == 0 {
                timed(&builds.before, |result| &mut result.before)?;
                timed(&builds.after, |result| &mut result.after)?;
            } else {
                timed(&builds.after, |result| &mut result.after)?;
                timed(&builds.before, |result| &mut result.before)?;
            }
        }
        Ok(())
    }

    /// Does a row's work once: the milliseconds of the whole process, and its answer.
    fn turn(&self, row: &Row, program: &Path) -> Result<(f64, Vec<u8>)> {
        if row.writes {
            settle(&self.cluster.directory)?;
        }
        read_files(&files_below(&self.cluster.data().join("base"))?)?;
        let mut command = self.command(program, row.command);
        let start = Instant::now();
        let answer = match row.into_pipe {
            true => through_pipe(&mut command)?,
            false => output_of(&mut command)?.into_bytes(),
        };
        let milliseconds = start.elapsed().as_secs_f64() * 1000.0;
        if let Some(undo) = row.undo {
            output_of(&mut self.command(program, undo))?;
        }
        let exported = self.files().join(rows::FILE);
        if !exported.exists() {
            return Ok((milliseconds, answer));
        }
        let sum = output_of(Command::new("sha256sum").arg(&exported))?.into_bytes();
        std::fs::remove_file(&exported)?;
        Ok((milliseconds, sum))
    }

    fn command(&self, program: &Path, line: &str) -> Command {
        let path = |word: &str| match word {
            rows::DATA => self.cluster.data().into_os_string(),
            rows::FILE => self.files().join(rows::FILE).into_os_string(),
            word => match rows::INPUTS.iter().find(|(name, _)| *name == word) {
                Some((_, table)) => self.files().join(table).into_os_string(),
                None => word.into(),
            },
        };
        let mut command = Command::new(program);
        command.args(line.split(' ').map(path)).stdin(Stdio::null());
        command
    }

    /// A text with words for the directories of this machine.
    fn without_places(&self, text: &str) -> String {
        text.replace(&*self.cluster.directory.to_string_lossy(), "DIR")
    }

    /// Takes everything away; gives the directory.
    fn remove(self) -> Result<PathBuf> {
        std::fs::remove_dir_all(self.files())?;
        std::fs::remove_dir_all(self.cluster.data())?;
        std::fs::remove_file(self.cluster.directory.join("ready.json"))?;
        Ok(self.cluster.directory)
    }
}

/// Runs a command whose output a program throws away; gives the sum of what went through.
fn through_pipe(command: &mut Command) -> Result<Vec<u8>> {
    let mut child = command.stdout(Stdio::piped()).spawn().context(shown(command))?;
    let pipe = child.stdout.take().context("no output")?;
    let counted = Command::new("wc").arg("-c").stdin(pipe).output();
    if !child.wait()?.success() {
        bail!("failed: {}", shown(command));
    }
    Ok(counted?.stdout)
}
