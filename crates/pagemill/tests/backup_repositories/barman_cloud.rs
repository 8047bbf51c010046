//! What `barman-cloud-backup` puts into a bucket, as CloudNativePG does: archives in parts, plain and compressed, and WAL.
//!
//! The bucket shows a directory of this machine, so what is in it is read here, too.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pagemill_testbucket::{BUCKET, TestBucket};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, each_of, skipped};

use super::support::{done, start_load, stop_load, succeed};
use super::tables::{LOAD, archive_all, make_tables, rows, same_rows};

const BACKUP: &str = "/usr/bin/barman-cloud-backup";
const WAL_ARCHIVE: &str = "/usr/bin/barman-cloud-wal-archive";

/// Ways of keeping archives; the first has parts of few megabytes.
const WAYS: [&[&str]; 2] = [&["--max-archive-size", "5MB"], &["--gzip"]];
/// Ways of keeping WAL, the last as it is.
const WAL_WAYS: [&str; 2] = ["--gzip", "--bzip2"];

fn cloud(bucket: &TestBucket, cluster: &TestCluster, program: &str) -> Command {
    let mut command = cluster.account().command(Path::new(program));
    let psql = cluster.psql_command("postgres");
    command.envs(psql.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env_remove("PGDATABASE").envs(bucket.environment());
    command.args(["--endpoint-url", &bucket.endpoint()]);
    command
}

fn reads_buckets(install: &PgInstall) -> Result<()> {
    let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
    let (root, archived) = (tempfile::tempdir()?, cluster.root().join("archived"));
    cluster.account().create_dir(&archived)?;
    let to = archived.display();
    cluster.psql("postgres", "alter system set archive_mode = on")?;
    cluster.psql("postgres", &format!("alter system set archive_command = 'cp %p {to}/%f'"))?;
    cluster.stop()?;
    cluster.start()?;
    make_tables(&cluster)?;
    let bucket = TestBucket::start(root.path())?;
    let url = format!("s3://{BUCKET}/barman");
    let psql = cluster.psql_command("postgres");
    let variable = |name: &str| psql.get_envs().find(|(known, _)| *known == name)?.1?.to_str();
    let connection = ["PGHOST", "PGPORT", "PGUSER"].map(|name| variable(name).unwrap_or_default());
    let [host, port, user] = connection;
    for (number, way) in WAYS.into_iter().enumerate() {
        // Rows change while the first is taken.
        let load = (number == 0).then(|| start_load(&cluster, LOAD)).transpose()?;
        let mut backup = cloud(&bucket, &cluster, BACKUP);
        backup.args(["-h", host, "-p", port, "-U", user, "--immediate-checkpoint", "-J", "2"]);
        let taken = succeed(backup.args(way).args([&url, "shop"]));
        load.map_or(Ok(()), |load| stop_load(&cluster, load))?;
        taken?;
    }
    let moment = cluster.psql("postgres", "select now()")?;
    let expected = rows(&cluster)?;
    cluster.psql("postgres", "delete from orders; drop table long")?;
    archive_all(&cluster)?;
    for (number, segment) in std::fs::read_dir(&archived)?.enumerate() {
        let segment = segment?.path();
        let mut archive = cloud(&bucket, &cluster, WAL_ARCHIVE);
        match WAL_WAYS.get(number) {
            Some(way) => drop(succeed(archive.arg(way).args([&url, "shop"]).arg(segment))?),
            // As the program does it, which needs a second for each.
            None => {
                let name = segment.file_name().and_then(|name| name.to_str()).context("a name")?;
                let to = root.path().join("barman/shop/wals").join(&name[..16]);
                std::fs::create_dir_all(&to)?;
                std::fs::copy(&segment, to.join(name))?;
            }
        }
    }
    let until = format!("time:{}", moment.trim());
    compared(&bucket, &root.path().join("barman/shop"), (&until, &expected))
}

/// What is read of the bucket, and of its files here, is what the server had.
fn compared(bucket: &TestBucket, here: &Path, (until, expected): (&str, &[String])) -> Result<()> {
    let base = here.join("base");
    let mut labels = Vec::new();
    for entry in std::fs::read_dir(&base)? {
        labels.push(entry?.file_name().into_string().ok().context("a label")?);
    }
    labels.sort();
    ensure!(labels.len() == WAYS.len(), "{labels:?}");
    ensure!(base.join(&labels[0]).join("data_0001.tar").exists(), "parts");
    for label in &labels {
        same_rows(here, &["--backup", label, "--until", until], expected)?;
    }
    let there = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
        command.args(words).args([
            "-D",
            &format!("s3://{BUCKET}/barman/shop"),
            "--remote-cache",
            "none",
        ]);
        succeed(command.env_remove("PGDATA").envs(bucket.environment()))
    };
    ensure!(there(&["ls"])? == done(&["ls"], here)?, "the listing");
    for label in [&labels[0], &labels[1]] {
        let words =
            ["export", "-d", "postgres", "-t", "apart", "--backup", label, "--until", until];
        ensure!(there(&words)? == done(&words, here)?, "{label}");
    }
    Ok(())
}

#[test]
fn backups_of_barman_cloud_have_the_rows_of_their_server_here_and_in_the_bucket() {
    if !Path::new(BACKUP).exists() {
        skipped("barman-cloud: install the package barman-cli-cloud");
        return;
    }
    let installs: Vec<PgInstall> = PgInstall::find(15).into_iter().collect();
    each_of(&installs, reads_buckets);
}
