//! `cargo xtask bench`: pagemill measured against PostgreSQL, against the device, and against itself.
//!
//! Twelve benchmarks share what stands here. `bench tables`, the default, asks what whole commands cost on twin
//! directories. `bench read` asks the same of every way to read, on one and the same directory, in a stated state of
//! the page cache, on devices that it makes slow, mirrored or short of memory itself. `bench extend` asks how files
//! grow: how fast, how durable, and in how many pieces. `bench load` asks how fast rows get into a table, against COPY.
//! `bench clone` asks how fast databases are made from others, against CREATE DATABASE. `bench wal` asks how fast killed clusters are read,
//! against servers that recover them. `bench sql` asks how fast statements are answered, against a server and DuckDB,
//! and `bench serve` what clients get of them. `bench device` asks whether the lab's own figures are those of fio and
//! pg_test_fsync, `bench builds` whether a build is slower than an earlier one, `bench remote` how fast an object store is read,
//! and `bench workers` what several workers gain there.
//!
//! What makes a figure of any of them worth keeping: answers are checked before and while anything is timed, contestants
//! run in turns so that a drift of the machine hits all of them, and the result is written down with its
//! environment, its raw numbers, and the rows that were lost.

mod artifact;
mod builds;
mod clone;
mod device;
pub(crate) mod environment;
mod extend;
mod figures;
mod fio_writes;
mod floor;
mod load;
mod options;
mod process;
mod read;
mod remote;
mod serve;
mod server;
mod settling;
mod sql;
mod tables;
mod targets;
mod twin_clusters;
mod wal;
mod workers;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use crate::workspace;
use pagemill_statistics as statistics;

const NOTE: &str = "Without the name of a benchmark, `tables`. `cargo xtask bench NAME --help` lists the flags of the
others.

";

/// Which benchmark, with its flags; `tables` unless another is named.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = [NOTE, options::PG15].concat()
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    benchmark: Option<Benchmark>,
    #[command(flatten)]
    tables: tables::Options,
}

/// A benchmark by name.
#[derive(Debug, Subcommand)]
enum Benchmark {
    Tables(tables::Options),
    Read(read::Options),
    Extend(extend::Options),
    Load(load::Options),
    Clone(clone::Options),
    Device(device::Options),
    Wal(wal::Options),
    Sql(sql::Options),
    Serve(serve::Options),
    Builds(builds::Options),
    Remote(remote::Options),
    Workers(workers::Options),
}

/// Runs the benchmark that was asked for; false when something in it failed.
pub(crate) fn run(arguments: Arguments) -> Result<bool> {
    match arguments.benchmark.unwrap_or(Benchmark::Tables(arguments.tables)) {
        Benchmark::Tables(options) => tables::run(options),
        Benchmark::Read(options) => read::run(options),
        Benchmark::Extend(options) => extend::run(&options),
        Benchmark::Load(options) => load::run(options),
        Benchmark::Clone(options) => clone::run(options),
        Benchmark::Device(options) => device::run(&options),
        Benchmark::Wal(options) => wal::run(options),
        Benchmark::Sql(options) => sql::run(options),
        Benchmark::Serve(options) => serve::run(options),
        Benchmark::Builds(options) => builds::run(&options),
        Benchmark::Remote(options) => remote::run(&options),
        Benchmark::Workers(options) => workers::run(&options),
    }
}

/// The given binary, or a release build of this tree.
fn binary(given: Option<&Path>, root: &Path) -> Result<PathBuf> {
    if let Some(path) = given {
        return path.canonicalize().with_context(|| path.display().to_string());
    }
    eprintln!("building pagemill, release ...");
    let mut command = workspace::cargo();
    // As it is released.
    command.args(["build", "--release", "--quiet", "-p", "pagemill", "--features", "arrow,remote"]);
    command.current_dir(root);
    if !command.status()?.success() {
        bail!("failed: {}", shown(&command));
    }
    Ok(workspace::target_directory(root).join("release/pagemill"))
}

/// The given program, or a release build of one of the workspace that has DataFusion.
fn sql_program(given: Option<&Path>, root: &Path, package: &str) -> Result<PathBuf> {
    if given.is_some() {
        return binary(given, root);
    }
    eprintln!("building {package}, release: half an hour from nothing on two cores ...");
    let target = workspace::target_directory(root).join("sql");
    let mut command = workspace::cargo();
    command.args(["build", "--release", "--locked", "--quiet", "-p", package, "--target-dir"]);
    command.arg(&target).current_dir(root.join("crates/pagemill-sql"));
    if !command.status()?.success() {
        bail!("failed: {}", shown(&command));
    }
    Ok(target.join("release").join(package))
}

/// What a binary says its version is.
fn version_of(binary: &Path) -> Option<String> {
    let output = output_of(Command::new(binary).arg("--version")).ok()?;
    Some(output.trim().to_owned())
}

/// Runs a command to its end and gives its standard output; a failure carries standard error.
fn output_of(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output = command.output().with_context(|| format!("could not start: {shown}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("failed ({}): {shown}\n{}", output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// All files below a directory.
fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        match path.is_dir() {
            true => files.extend(files_below(&path)?),
            false => files.push(path),
        }
    }
    Ok(files)
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
