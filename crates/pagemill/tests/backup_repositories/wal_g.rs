//! Folders of WAL-G: full and delta backups that the program in `PAGEMILL_WAL_G` takes while rows change.
//!
//! What it restores of a delta backup is recovered by a server, whose rows are compared.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, each_of, skipped};
use serde_json::Value;

use super::support::{done, refused, start_load, stop_load, succeed};
use super::tables::{LOAD, archive_all, make_tables, rows, rows_once_recovered, same_rows};

/// What happens before each delta backup.
const CHANGES: [&str; 2] = [
    "update long set v = md5(v) where i % 4000 < 20; delete from shrinks where i > 500; vacuum shrinks; checkpoint",
    "insert into shrinks select i, repeat('back', 50) from generate_series(1, 2000) i; delete from apart where id % 5 = 0; checkpoint",
];

struct Backups {
    cluster: TestCluster,
    program: PathBuf,
}

impl Backups {
    fn new(install: &PgInstall, program: &Path) -> Result<Self> {
        let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
        // The account may not get to where it was built.
        let copy = cluster.root().join("wal-g");
        std::fs::copy(program, &copy)?;
        cluster.account().create_dir(&cluster.root().join("folder"))?;
        let folder = cluster.root().join("folder");
        let archive = format!(
            "WALG_FILE_PREFIX={} WALG_COMPRESSION_METHOD=lz4 {} wal-push %p",
            folder.display(),
            copy.display()
        );
        cluster.psql("postgres", "alter system set archive_mode = on")?;
        cluster.psql("postgres", &format!("alter system set archive_command = '{archive}'"))?;
        cluster.stop()?;
        cluster.start()?;
        make_tables(&cluster)?;
        Ok(Self { cluster, program: copy })
    }

    fn folder(&self) -> PathBuf {
        self.cluster.root().join("folder")
    }

    fn command(&self, compression: &str) -> Command {
        let mut command = self.cluster.account().command(&self.program);
        let psql = self.cluster.psql_command("postgres");
        command.envs(psql.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("WALG_FILE_PREFIX", self.folder()).env("WALG_DELTA_MAX_STEPS", "6");
        command.env("WALG_COMPRESSION_METHOD", compression);
        command
    }

    fn push(&self, compression: &str, words: &[&str]) -> Result<()> {
        // Rows change while full and delta backups are taken that others build on.
        let has_load = compression == "lz4";
        let load = has_load.then(|| start_load(&self.cluster, LOAD)).transpose()?;
        let mut push = self.command(compression);
        let pushed = succeed(push.arg("backup-push").arg(self.cluster.data_dir()).args(words));
        load.map_or(Ok(()), |load| stop_load(&self.cluster, load))?;
        pushed.map(drop)
    }

    fn labels(&self) -> Result<Vec<String>> {
        let listed: Value = serde_json::from_str(&done(&["ls", "--json"], &self.folder())?)?;
        let backups = listed[0]["backups"].as_array().context("backups")?;
        Ok(backups.iter().filter_map(|backup| Some(backup["label"].as_str()?.to_owned())).collect())
    }

    /// The rows of a server on what WAL-G restores, recovered until a moment.
    fn restored_rows(&self, label: &str, moment: &str) -> Result<Vec<String>> {
        let root = self.cluster.root().join("restored");
        self.cluster.account().create_dir(&root)?;
        let mut server = TestCluster::at(self.cluster.install(), root.clone())?;
        let data = server.data_dir();
        let mut fetch = self.command("lz4");
        succeed(fetch.arg("backup-fetch").arg(&data).arg(label))?;
        // It leaves the tablespace where a server wants a link.
        let inside =
            std::fs::read_dir(data.join("pg_tblspc"))?.next().context("a tablespace")??;
        std::fs::rename(inside.path(), root.join("space"))?;
        std::os::unix::fs::symlink(root.join("space"), inside.path())?;
        std::fs::remove_file(data.join("tablespace_map"))?;
        let restore = format!(
            "WALG_FILE_PREFIX={} {} wal-fetch %f %p",
            self.folder().display(),
            self.program.display()
        );
        let settings = format!(
            "\narchive_mode=off\nrestore_command='{restore}'\nrecovery_target_time='{moment}'\nrecovery_target_action=promote\n"
        );
        let path = data.join("postgresql.auto.conf");
        std::fs::write(&path, std::fs::read_to_string(&path)? + &settings)?;
        std::fs::write(data.join("recovery.signal"), "")?;
        self.cluster.account().own(&data.join("recovery.signal"))?;
        rows_once_recovered(&mut server)
    }
}

fn reads_folders(install: &PgInstall, program: &Path) -> Result<()> {
    let mut backups = Backups::new(install, program)?;
    backups.push("lz4", &[])?;
    for changes in CHANGES {
        changes.split(';').try_for_each(|line| backups.cluster.psql("postgres", line).map(drop))?;
        backups.push("lz4", &[])?;
    }
    backups.push("zstd", &["--full"])?;
    backups.push("none", &["--full"])?;
    let moment = backups.cluster.psql("postgres", "select now()")?;
    let rows_at_moment = rows(&backups.cluster)?;
    backups.cluster.psql("postgres", "delete from orders; drop table long")?;
    backups.cluster.psql("postgres", "create table long (i int, v text)")?;
    archive_all(&backups.cluster)?;
    let (folder, rows_now) = (backups.folder(), rows(&backups.cluster)?);
    backups.cluster.stop()?;
    let (labels, until) = (backups.labels()?, format!("time:{}", moment.trim()));
    ensure!(labels.len() == 5 && labels[2].contains("_D_"), "{labels:?}");
    for label in &labels {
        same_rows(&folder, &["--backup", label, "--until", &until], &rows_at_moment)?;
    }
    same_rows(&folder, &["--backup", "latest"], &rows_now)?;
    let restored = backups.restored_rows(&labels[2], moment.trim())?;
    same_rows(&folder, &["--backup", &labels[2], "--until", &until], &restored)?;
    let part =
        folder.join("basebackups_005").join(&labels[0]).join("tar_partitions/part_001.tar.lz4");
    std::fs::write(&part, "what libsodium writes")?;
    let said =
        refused(&["count", "-d", "postgres", "-t", "long", "--backup", &labels[1]], &folder)?;
    ensure!(said.contains("part_001.tar.lz4 is not what its name says"), "{said}");
    Ok(())
}

#[test]
fn backups_of_wal_g_have_the_rows_of_the_server_they_are_restored_to() {
    let Some(program) = std::env::var_os("PAGEMILL_WAL_G").map(PathBuf::from) else {
        skipped("WAL-G: name its program for PostgreSQL in PAGEMILL_WAL_G");
        return;
    };
    let installs: Vec<PgInstall> = PgInstall::find(15).into_iter().collect();
    each_of(&installs, |install| reads_folders(install, &program));
}
