//! Chains of incremental backups: every row as the server had it at the end of the newest one, with nothing combined.
//!
//! The newest is taken at rest, so that the server that wrote it says which rows those are.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::{PgInstall, TestCluster, each_of};

use super::support::{done, refused, sorted, start_load, stop_load, succeed};
use super::{LOAD, by_server, cluster, unpack};

/// Relations that become longer, shorter, others, and none.
const FIRST_CHANGES: &str = "\
update orders set note = 'changed ' || id where id % 97 = 0;
delete from shrinks where i > 500;
vacuum shrinks;
insert into grows select i, repeat('later', 100) from generate_series(1, 3000) i;
drop table dropped;
create table made as select i, md5(i::text) as v from generate_series(1, 4000) i;
truncate emptied;
insert into emptied select generate_series(1, 10);";
const SECOND_CHANGES: &str = "\
update made set v = 'again' where i = 7;
insert into shrinks select i, repeat('back', 50) from generate_series(1, 2000) i;
delete from apart where id % 5 = 0;
alter table orders add column added int default 5;";

const TABLES: [&str; 7] = ["orders", "apart", "shrinks", "grows", "made", "emptied", "still"];

fn changing(install: &PgInstall) -> Result<TestCluster> {
    let cluster = cluster(install, &["summarize_wal=on"])?;
    for table in ["shrinks", "grows", "dropped", "still"] {
        let create = format!(
            "create table {table} as select i, repeat('row ' || i, 20) as v from generate_series(1, 3000) i"
        );
        cluster.psql("postgres", &create)?;
    }
    cluster.psql("postgres", "create table emptied as select generate_series(1, 20000) as i")?;
    Ok(cluster)
}

/// Each line in a transaction of its own, as VACUUM needs it.
fn change(cluster: &TestCluster, lines: &str) -> Result<()> {
    lines.lines().try_for_each(|line| cluster.psql("postgres", line).map(drop))
}

fn reads_chains(install: &PgInstall) -> Result<()> {
    if install.major < 17 {
        return Ok(());
    }
    let cluster = changing(install)?;
    let full = by_server(&cluster, "full", None, "")?;
    change(&cluster, FIRST_CHANGES)?;
    let load = start_load(&cluster, LOAD)?;
    let first = by_server(&cluster, "first", Some(&full), "")?;
    stop_load(&cluster, load)?;
    change(&cluster, SECOND_CHANGES)?;
    let second = by_server(&cluster, "second", Some(&first), "")?;

    let plain = cluster.root().join("plain");
    unpack(&cluster, &second.join("base.tar"), &plain)?;
    let (full_name, first_name) = (text(&full)?, text(&first)?);
    let chain = ["--base", first_name, "--base", full_name];
    let turned = ["--base", full_name, "--base", first_name];
    for table in TABLES {
        let rows = cluster.psql("postgres", &format!("copy {table} to stdout"))?;
        let export = ["export", "-d", "postgres", "-t", table];
        let exported = done(&[&export[..], &chain].concat(), &second)?;
        ensure!(sorted(&exported) == sorted(&rows), "{table} of archives");
        // Its tablespaces are links that lead to the live ones.
        if table != "apart" {
            let exported = done(&[&export[..], &turned].concat(), &plain)?;
            ensure!(sorted(&exported) == sorted(&rows), "{table} of a plain backup");
        }
    }
    let ordered = ["export", "-d", "postgres", "-t", "orders", "--order-by", "orders_pkey"];
    let rows = cluster.psql("postgres", "copy orders to stdout")?;
    ensure!(sorted(&done(&[&ordered[..], &chain].concat(), &second)?) == sorted(&rows), "ordered");
    let plan = done(&[&["wal", "plan"][..], &chain].concat(), &second)?;
    ensure!(plan.contains("at the end of the backup that began"), "{plan}");
    let listed = done(&[&["ls", "-d", "postgres"][..], &chain].concat(), &second)?;
    ensure!(listed.contains("made") && !listed.contains("dropped"), "{listed}");
    broken_chains(&cluster, [&full, &first, &second])
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path in ASCII")
}

fn broken_chains(cluster: &TestCluster, [full, first, second]: [&Path; 3]) -> Result<()> {
    let count = ["count", "-d", "postgres", "-t", "made"];
    let (full_name, first_name, second_name) = (text(full)?, text(first)?, text(second)?);
    for (directory, bases, says) in [
        (second, &[][..], "this is an incremental backup"),
        (second, &[full_name], "second: it builds on a backup that began at"),
        (second, &[first_name], "first: it builds on a backup that began at"),
        (first, &[full_name, second_name], "second: none of the other backups builds on this one"),
        (full, &[first_name], "first: none of the other backups builds on this one"),
    ] {
        let flags: Vec<&str> = bases.iter().flat_map(|base| ["--base", *base]).collect();
        let said = refused(&[&count[..], &flags].concat(), directory)?;
        ensure!(said.contains(says), "{says}: {said}");
        let is_missing = !says.contains("none of");
        ensure!(said.contains("--base") == is_missing, "what to type: {said}");
    }
    // A file that the full backup should have, and lacks.
    let plain = cluster.root().join("plain-full");
    unpack(cluster, &full.join("base.tar"), &plain)?;
    let path = cluster.psql("postgres", "select pg_relation_filepath('still')")?;
    let file = plain.join(path.trim());
    let still =
        ["count", "-d", "postgres", "-t", "still", "--base", first_name, "--base", text(&plain)?];
    done(&still, second)?;
    std::fs::remove_file(&file)?;
    let said = refused(&still, second)?;
    ensure!(said.contains("an older backup lacks it"), "{said}");
    succeed(std::process::Command::new("rm").arg("-r").arg(&plain)).map(drop)
}

#[test]
fn a_chain_of_incremental_backups_has_the_rows_of_its_newest_one() {
    each_of(&PgInstall::all(), reads_chains);
}
