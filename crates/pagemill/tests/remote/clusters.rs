//! Clusters that were shut down, that were killed, and backups, here and in a bucket.
//!
//! Each answer is compared with that of the same files on this machine, which other tests compare with a server's.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::stored::{Stored, cluster, install, printed, refused};

/// What is asked of each cluster.
const ASKED: [&[&str]; 8] = [
    &["ls"],
    &["ls", "-d", "shop"],
    &["count", "-d", "shop", "-t", "orders"],
    &["count", "-d", "shop", "-t", "wide", "--jobs", "3"],
    &["count", "-d", "postgres", "-t", "nothing"],
    &["export", "-d", "postgres", "-t", "orders"],
    &["export", "-d", "shop", "-t", "wide", "--format", "csv"],
    &["export", "-d", "shop", "-t", "wide", "--order-by", "wide_id"],
];

#[test]
fn a_cluster_that_was_shut_down_reads_the_same() -> Result<()> {
    let Some(install) = install() else { return Ok(()) };
    let mut cluster = cluster(&install)?;
    cluster.stop()?;
    let stored = Stored::new(cluster.root())?;
    for words in ASKED {
        stored.same(words, &cluster.data_dir())?;
    }
    let url = stored.url(&cluster.data_dir())?;
    for words in [&["load", "-t", "orders", "/dev/null"][..], &["drop", "shop"], &["clean"]] {
        let told = refused(&mut stored_command(&stored, words, &url))?;
        ensure!(told.contains("what lies on an object store is only read"), "{told}");
    }
    Ok(())
}

/// The command as it is for those that change something: they have no flags for stores.
fn stored_command(stored: &Stored, words: &[&str], url: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    command.arg(words[0]).args(["-D", url]).args(&words[1..]).envs(stored.bucket.environment());
    command
}

#[test]
fn a_killed_cluster_reads_the_same_with_its_wal_in_the_bucket_or_beside_it() -> Result<()> {
    let Some(install) = install() else { return Ok(()) };
    let mut cluster = cluster(&install)?;
    cluster.psql(
        "shop",
        "checkpoint; delete from orders where id % 7 = 0; update wide set pad = 'x' where id < 99",
    )?;
    cluster.kill()?;
    let stored = Stored::new(cluster.root())?;
    for words in ASKED {
        stored.same(words, &cluster.data_dir())?;
    }
    let data = cluster.data_dir();
    let url = stored.url(&data)?;
    let local = data.to_str().context("not a text")?;
    let plan = |directory: &str| {
        let printed = printed(&mut stored.command(&["wal", "plan"], directory))?;
        anyhow::Ok(String::from_utf8(printed)?.replace(directory, "DIR"))
    };
    ensure!(plan(&url)? == plan(local)?, "{}", plan(&url)?);
    // A cluster here whose archive is in the bucket.
    let archive = stored.url(&data.join("pg_wal"))?;
    let words = ["count", "-d", "shop", "-t", "orders", "--wal", &archive];
    let beside = printed(&mut stored.command(&words, local))?;
    ensure!(beside == stored.same(&["count", "-d", "shop", "-t", "orders"], &data)?);
    Ok(())
}

#[test]
fn a_backup_in_tar_format_is_read_in_the_bucket() -> Result<()> {
    let Some(install) = install() else { return Ok(()) };
    let mut cluster = cluster(&install)?;
    let target = cluster.root().join("backup");
    let mut command = cluster.account().command(&install.program("pg_basebackup"));
    let psql = cluster.psql_command("postgres");
    command.envs(psql.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env_remove("PGDATABASE");
    command.args(["--format", "tar", "--checkpoint", "fast", "-D"]).arg(&target);
    let output = command.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    cluster.stop()?;
    let stored = Stored::new(cluster.root())?;
    for words in ASKED {
        stored.same(words, &target)?;
    }
    Ok(())
}
