//! Backups in tar format: every row as the server has it that the archives were restored to; and damaged ones.
//!
//! The backups are taken while rows change.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use pagemill_testkit::{PgInstall, TestCluster, each_of};

use super::support::{done, pagemill, refused, said, sorted, start_load, stop_load, succeed};
use super::{LOAD, by_server, cluster, unpack};

fn by_pg_basebackup(cluster: &TestCluster, wal: &str) -> Result<PathBuf> {
    let target = cluster.root().join(format!("by-{wal}"));
    let mut command = cluster.account().command(&cluster.install().program("pg_basebackup"));
    let psql = cluster.psql_command("postgres");
    let set = psql.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.envs(set).env_remove("PGDATABASE");
    succeed(command.args(["-c", "fast", "-F", "t", "-X", wal, "-D"]).arg(&target))?;
    Ok(target)
}

/// A server on what `tar` makes of the archives.
fn restored(install: &PgInstall, backup: &Path) -> Result<TestCluster> {
    let restored = TestCluster::at(install, backup.with_extension("restored"))?;
    let data = restored.data_dir();
    let unpack = |archive: &str, to: &Path| unpack(&restored, &backup.join(archive), to);
    unpack("base.tar", &data)?;
    std::fs::set_permissions(&data, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    let map_file = data.join("tablespace_map");
    let map = std::fs::read_to_string(&map_file)?;
    let (oid, _) = map.split_once(' ').context("no tablespace in the map")?;
    let space = restored.root().join("tblspc/elsewhere");
    unpack(&format!("{oid}.tar"), &space)?;
    std::fs::write(&map_file, format!("{oid} {}\n", space.display()))?;
    if backup.join("pg_wal.tar").exists() {
        unpack("pg_wal.tar", &data.join("pg_wal"))?;
    }
    Ok(restored)
}

fn same_rows(install: &PgInstall, backup: &Path) -> Result<()> {
    let mut server = restored(install, backup)?;
    server.start()?;
    for table in ["orders", "apart"] {
        let rows = server.psql("postgres", &format!("copy {table} to stdout"))?;
        for flags in [&[][..], &["--io-method", "worker"], &["--io-method", "pread", "-j", "2"]] {
            let words = [&["export", "-d", "postgres", "-t", table], flags].concat();
            let exported = done(&words, backup)?;
            ensure!(sorted(&exported) == sorted(&rows), "{words:?} of {}", backup.display());
        }
        let count = done(&["count", "-d", "postgres", "-t", table], backup)?;
        ensure!(count.contains(&rows.lines().count().to_string()), "{count}");
        let ordered =
            ["export", "-d", "postgres", "-t", table, "--order-by", &format!("{table}_pkey")];
        ensure!(sorted(&done(&ordered, backup)?) == sorted(&rows), "{ordered:?}");
    }
    server.stop()
}

fn other_commands(backup: &Path) -> Result<()> {
    let listed = done(&["ls", "-d", "postgres"], backup)?;
    ensure!(listed.contains("orders") && listed.contains("apart"), "{listed}");
    let plan = done(&["wal", "plan"], backup)?;
    ensure!(plan.contains("at the end of the backup that began"), "{plan}");
    ensure!(done(&["inspect"], backup)?.contains("in production"), "the control file");
    ensure!(done(&["inspect", "-t", "apart"], backup)?.contains("pg_tblspc"), "its file");
    ensure!(!done(&["wal", "show", "-n", "3"], backup)?.is_empty(), "records");
    let count = ["count", "-d", "postgres", "-t", "orders"];
    done(&[&count[..], &["--until", "consistent"]].concat(), backup)?;
    // What cannot be mapped is read.
    done(&[&count[..], &["--io-method", "mmap"]].concat(), backup)?;
    let direct = refused(&[&count[..], &["--direct"]].concat(), backup)?;
    ensure!(direct.contains("leave out --direct"), "{direct}");
    let lacks = refused(&["drop", "some"], backup)?;
    ensure!(lacks.contains("a backup in tar format, which is only read"), "{lacks}");
    Ok(())
}

/// Each way of damage to a copy of a backup: the message names the archive.
fn damaged(backup: &Path) -> Result<()> {
    let copy = backup.with_extension("damaged");
    let ls = ["ls", "-d", "postgres"];
    let base = std::fs::read(backup.join("base.tar"))?;
    let mut flipped = base.clone();
    flipped[0] ^= 1;
    let mut zeroed = base.clone();
    zeroed[..512].fill(0);
    for (bytes, says) in [
        (&base[..base.len() / 2], "it was cut short"),
        (&base[..100], "it was cut short"),
        (&flipped, "its checksum is"),
        (&zeroed, "a header was zeroed"),
        (&[&base[..base.len() - 1024], &base].concat(), "comes a second time"),
    ] {
        std::fs::create_dir(&copy)?;
        std::fs::write(copy.join("base.tar"), bytes)?;
        let said = refused(&ls, &copy)?;
        std::fs::remove_dir_all(&copy)?;
        ensure!(said.contains("base.tar: offset ") && said.contains(says), "{says}: {said}");
    }
    std::fs::create_dir(&copy)?;
    std::os::unix::fs::symlink(backup.join("base.tar"), copy.join("base.tar"))?;
    let said = refused(&ls, &copy)?;
    std::fs::remove_dir_all(&copy)?;
    ensure!(said.contains(".tar: no such file: it is the archive of tablespace"), "{said}");
    Ok(())
}

fn reads_archives(install: &PgInstall) -> Result<()> {
    // Else a slow machine removes what the backup wants to fetch last.
    let cluster = cluster(install, &["wal_keep_size=1GB"])?;
    let load = start_load(&cluster, LOAD)?;
    let mut backups = Vec::new();
    if install.major >= 15 {
        backups.push(by_server(&cluster, "by-server", None, "")?);
    }
    if install.program("pg_basebackup").exists() {
        backups.push(by_pg_basebackup(&cluster, "stream")?);
        backups.push(by_pg_basebackup(&cluster, "fetch")?);
    }
    stop_load(&cluster, load)?;
    for backup in &backups {
        same_rows(install, backup)?;
    }
    match backups.first() {
        Some(first) => other_commands(first).and_then(|()| damaged(first)),
        None => {
            eprintln!("SKIPPED: PostgreSQL {} came without pg_basebackup", install.major);
            Ok(())
        }
    }
}

/// A backup of the cluster at rest, compressed: the rows are those of the cluster.
fn reads_compressed(install: &PgInstall) -> Result<()> {
    if install.major < 15 {
        return Ok(());
    }
    let cluster = cluster(install, &[])?;
    for compression in ["gzip", "lz4", "zstd"] {
        let option = format!("COMPRESSION '{compression}', ");
        let backup = match by_server(&cluster, compression, None, &option) {
            Err(error) if error.to_string().contains("does not support") => {
                eprintln!("SKIPPED: this PostgreSQL {} has no {compression}", install.major);
                continue;
            }
            backup => backup?,
        };
        for table in ["orders", "apart"] {
            let rows = cluster.psql("postgres", &format!("copy {table} to stdout"))?;
            let output = pagemill(&["export", "-d", "postgres", "-t", table], &backup)?;
            let told = said(&output);
            ensure!(output.status.success(), "{compression}: {told}");
            ensure!(sorted(&String::from_utf8(output.stdout)?) == sorted(&rows), "{compression}");
            ensure!(told.matches("unpacked to a temporary file in").count() == 2, "{told}");
        }
        damaged_compressed(&backup)?;
    }
    Ok(())
}

fn damaged_compressed(backup: &Path) -> Result<()> {
    let entries = std::fs::read_dir(backup)?.collect::<std::io::Result<Vec<_>>>()?;
    let mut paths = entries.iter().map(std::fs::DirEntry::path);
    let is_base = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == "base.tar");
    let base = paths.find(is_base).context("no compressed base.tar")?;
    let whole = std::fs::read(&base)?;
    for bytes in [&whole[..whole.len() / 2], b"no compression"] {
        std::fs::write(&base, bytes)?;
        let said = refused(&["ls"], backup)?;
        let says = ["cannot be decompressed", "it was cut short", "unpack it first"];
        ensure!(
            said.contains("base.tar.") && says.iter().any(|says| said.contains(says)),
            "{said}"
        );
    }
    Ok(())
}

#[test]
fn compressed_backups_have_the_rows_of_the_server() {
    each_of(&PgInstall::two(), reads_compressed);
}

#[test]
fn backups_in_tar_format_have_the_rows_of_the_server_they_are_restored_to() {
    each_of(&PgInstall::all(), reads_archives);
}
