//! Copies of whole clusters on file systems that share blocks, between file systems, and onto one that is too small.
//!
//! What was shared is asked of the file system (`FIEMAP`), not of what was asked for. A machine that cannot make the devices
//! skips these tests, and says so.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use pagemill_testkit::devices::or_skip;
use pagemill_testkit::install::{PgInstall, REQUIRED_MAJOR};
use pagemill_testkit::prepared::{empty_cluster, scratch_dir};
use pagemill_testkit::{FileSystem, TestCluster, Volume};
use serde_json::Value;

const MIB: u64 = 1 << 20;
const DATABASE: &str = "postgres";

fn clone(strategy: &str, source: &Path, copy: &Path) -> Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    command
        .args(["clone", "--cluster", "--stats=json", "--strategy", strategy])
        .args([source, copy]);
    command.env_remove("PGDATA").output().context("starting the program")
}

/// The record of a copy that went well.
fn cloned(strategy: &str, source: &Path, copy: &Path) -> Result<Value> {
    let output = clone(strategy, source, copy)?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{told}");
    serde_json::from_str(told.lines().last().unwrap_or_default()).context("no record")
}

fn number(record: &Value, name: &str) -> u64 {
    record[name].as_u64().unwrap_or_else(|| panic!("{name} in {record}"))
}

fn volume(kind: FileSystem, bytes: u64) -> Result<Option<Volume>> {
    or_skip(kind.name(), Volume::create(kind, &scratch_dir()?, bytes))
}

/// A stopped cluster with a table of some megabytes, under `root`.
fn source(root: Option<&Path>) -> Result<TestCluster> {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut cluster = empty_cluster(&install)?;
    if let Some(root) = root {
        cluster = cluster.copy_to(root)?;
    }
    cluster.start()?;
    let rows = "SELECT i, repeat(md5(i::text), 10) AS t FROM generate_series(1, 20000) i";
    cluster.psql(DATABASE, &format!("CREATE TABLE rows AS {rows}"))?;
    cluster.stop()?;
    Ok(cluster)
}

fn check_served(copy: &mut TestCluster) -> Result<()> {
    copy.start()?;
    ensure!(copy.psql(DATABASE, "SELECT count(*), sum(length(t)) FROM rows")? == "20000|6400000");
    copy.stop()
}

#[test]
fn blocks_are_shared_where_the_file_system_shares_them_and_the_copy_is_its_own() -> Result<()> {
    for kind in [FileSystem::Xfs, FileSystem::Btrfs] {
        let Some(volume) = volume(kind, 512 * MIB)? else { continue };
        let mut source = source(Some(&volume.path().join("source")))?;
        for strategy in ["reflink", "auto"] {
            let root = volume.path().join(strategy);
            let mut copy = TestCluster::at(source.install(), root)?;
            let record = cloned(strategy, &source.data_dir(), &copy.data_dir())?;
            let (bytes, shared) = (number(&record, "file_bytes"), number(&record, "shared_bytes"));
            ensure!(record["copy_method"] == "reflink", "{record}");
            ensure!(shared * 10 > bytes * 9 && bytes > 8 * MIB, "{}: {record}", kind.name());
            ensure!(number(&record, "bytes_written") < MIB, "{record}");
            check_served(&mut copy)?;
            copy.start()?;
            copy.psql(DATABASE, "UPDATE rows SET t = 'other'")?;
            copy.stop()?;
            check_served(&mut source)?;
        }
        let copy = TestCluster::at(source.install(), volume.path().join("bytes"))?;
        let record = cloned("file_copy", &source.data_dir(), &copy.data_dir())?;
        ensure!(record["copy_method"] == "read_write", "{record}");
        ensure!(number(&record, "shared_bytes") == 0 && number(&record, "bytes_copied") == 0);
        ensure!(number(&record, "bytes_written") >= number(&record, "file_bytes"), "{record}");
    }
    Ok(())
}

#[test]
fn between_file_systems_bytes_are_copied_and_a_reflink_is_refused() -> Result<()> {
    let Some(volume) = volume(FileSystem::Xfs, 512 * MIB)? else { return Ok(()) };
    let source = source(None)?;
    let mut copy = TestCluster::at(source.install(), volume.path().join("copy"))?;
    let (from, to) = (source.data_dir(), copy.data_dir());
    let output = clone("reflink", &from, &to)?;
    ensure!(output.status.code() == Some(1) && !to.exists());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let says = format!(
        "pagemill: {}: cannot share blocks with {}: the two lie on different file systems: use --strategy file_copy, or \
         auto\n",
        to.display(),
        from.display()
    );
    ensure!(told.contains(&says), "{told}");
    let record = cloned("auto", &from, &to)?;
    ensure!(record["copy_method"] == "read_write", "{record}");
    check_served(&mut copy)
}

#[test]
fn what_does_not_fit_is_refused_with_the_sum_and_nothing_is_made() -> Result<()> {
    let Some(volume) = volume(FileSystem::Ext4, 16 * MIB)? else { return Ok(()) };
    let source = source(None)?;
    let copy = TestCluster::at(source.install(), volume.path().join("copy"))?;
    let output = clone("auto", &source.data_dir(), &copy.data_dir())?;
    ensure!(output.status.code() == Some(1));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let message = told.lines().find(|line| line.starts_with("pagemill: ")).context("no message")?;
    let begin = format!("pagemill: {}: the copy takes ", copy.data_dir().display());
    ensure!(message.starts_with(&begin), "{message}");
    ensure!(
        message.ends_with(" bytes are free: free some, or copy to another file system"),
        "{message}"
    );
    let sums: Vec<u64> = message.split(' ').filter_map(|word| word.parse().ok()).collect();
    ensure!(sums.len() == 2 && sums[0] > sums[1] && sums[1] < 16 * MIB, "{message}");
    ensure!(fs::read_dir(copy.root())?.next().is_none(), "something was made");
    Ok(())
}
