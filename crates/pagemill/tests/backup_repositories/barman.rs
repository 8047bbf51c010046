//! Servers of Barman: backups by rsync, by `pg_basebackup` and as compressed archives of it, with WAL that is compressed in several ways.
//!
//! Barman takes them of one cluster, and restores some of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, each_of, skipped};
use serde_json::Value;

use super::support::{done, pagemill, refused, said, start_load, stop_load, succeed};
use super::tables::{LOAD, archive_all, make_tables, rows, rows_once_recovered, same_rows};

const BARMAN: &str = "/usr/bin/barman";

/// Ways of taking a backup, each with that of keeping WAL.
const WAYS: [&str; 3] = [
    "backup_method=local-rsync",
    "backup_method=postgres\ncompression=pybzip2",
    "backup_method=postgres\nbackup_compression=gzip\ncompression=gzip",
];

/// Barman on a cluster.
struct Backups {
    cluster: TestCluster,
}

impl Backups {
    fn new(install: &PgInstall) -> Result<Self> {
        let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
        let home = cluster.root().join("barman");
        for directory in
            [&home, &home.join("shop"), &home.join("shop/incoming"), &home.join("staging")]
        {
            cluster.account().create_dir(directory)?;
        }
        let incoming = home.join("shop/incoming");
        let to = incoming.display();
        let set = |name: &str, value: &str| {
            cluster.psql("postgres", &format!("alter system set {name} = '{value}'"))
        };
        set("archive_mode", "on")?;
        set("archive_command", &format!("cp %p {to}/.%f && mv {to}/.%f {to}/%f"))?;
        cluster.stop()?;
        cluster.start()?;
        let backups = Self { cluster };
        for (number, way) in WAYS.iter().enumerate() {
            let text = backups.configuration(way)?;
            std::fs::write(backups.configuration_file(number), text)?;
        }
        make_tables(&backups.cluster)?;
        archive_all(&backups.cluster)?;
        backups.run(0, &["archive-wal", "shop"])?;
        Ok(backups)
    }

    fn configuration_file(&self, way: usize) -> PathBuf {
        self.cluster.root().join(format!("barman{way}.conf"))
    }

    fn configuration(&self, way: &str) -> Result<String> {
        let root = self.cluster.root().display();
        let psql = self.cluster.psql_command("postgres");
        let variable = |name: &str| {
            let found = psql.get_envs().find(|(known, _)| *known == name);
            let value = found.and_then(|(_, value)| value).and_then(|value| value.to_str());
            value.map(str::to_owned).with_context(|| format!("no {name}"))
        };
        let programs = self.cluster.install().program("pg_basebackup");
        let programs = programs.parent().context("a directory of programs")?.display();
        let account = succeed(self.cluster.account().command(Path::new("/usr/bin/id")).arg("-un"))?;
        let connection = format!(
            "host={} port={} user={}",
            variable("PGHOST")?,
            variable("PGPORT")?,
            variable("PGUSER")?
        );
        Ok(format!(
            "[barman]\nbarman_home={root}/barman\nbarman_user={}\nlog_file={root}/barman/log\n\
             [shop]\nconninfo={connection} dbname=postgres\nstreaming_conninfo={connection}\narchiver=on\n\
             path_prefix={programs}\nimmediate_checkpoint=true\nrecovery_staging_path={root}/barman/staging\n\
             local_staging_path={root}/barman/staging\n{way}\n",
            account.trim()
        ))
    }

    fn run(&self, way: usize, words: &[&str]) -> Result<String> {
        let mut command = self.cluster.account().command(Path::new(BARMAN));
        succeed(command.arg("-c").arg(self.configuration_file(way)).args(words))
    }

    fn server(&self) -> PathBuf {
        self.cluster.root().join("barman/shop")
    }

    /// What `ls` tells of the backups.
    fn listed(&self) -> Result<Vec<Value>> {
        let listed: Value = serde_json::from_str(&done(&["ls", "--json"], &self.server())?)?;
        ensure!(listed[0]["server"] == "shop", "{listed}");
        Ok(listed[0]["backups"].as_array().context("backups")?.clone())
    }

    /// The rows of a server on what Barman restores.
    fn restored_rows(&self, way: usize, label: &str, target: &[&str]) -> Result<Vec<String>> {
        let root = self.cluster.root().join("restored");
        self.cluster.account().create_dir(&root)?;
        let mut server = TestCluster::at(self.cluster.install(), root.clone())?;
        let data = server.data_dir();
        let (data, space) =
            (data.display().to_string(), format!("elsewhere:{}/space", root.display()));
        let words =
            ["recover", "shop", label, &data, "--tablespace", &space, "--target-action", "promote"];
        self.run(way, &[&words[..], target].concat())?;
        let rows = rows_once_recovered(&mut server)?;
        server.stop()?;
        drop(server);
        match std::fs::remove_dir_all(&root) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(rows),
        }
    }
}

fn reads_servers(install: &PgInstall) -> Result<()> {
    let backups = Backups::new(install)?;
    for way in 0..WAYS.len() {
        // Rows change while the first is taken.
        let load = (way == 0).then(|| start_load(&backups.cluster, LOAD)).transpose()?;
        let taken = backups.run(way, &["backup", "shop", "--name", &format!("way{way}")]);
        load.map_or(Ok(()), |load| stop_load(&backups.cluster, load))?;
        taken?;
        archive_all(&backups.cluster)?;
        backups.run(way, &["archive-wal", "shop"])?;
    }
    let moment = backups.cluster.psql("postgres", "select now()")?;
    let rows_at_moment = rows(&backups.cluster)?;
    backups.cluster.psql("postgres", "delete from orders; drop table long")?;
    backups.cluster.psql("postgres", "create table long (i int, v text)")?;
    archive_all(&backups.cluster)?;
    backups.run(0, &["archive-wal", "shop"])?;
    let (server, rows_now) = (backups.server(), rows(&backups.cluster)?);
    let (moment, until) = (moment.trim(), format!("time:{}", moment.trim()));
    let labels: Vec<String> = backups
        .listed()?
        .iter()
        .filter_map(|backup| Some(backup["label"].as_str()?.to_owned()))
        .collect();
    ensure!(labels.len() == WAYS.len(), "{labels:?}");
    for label in &labels {
        same_rows(&server, &["--backup", label, "--until", &until], &rows_at_moment)?;
    }
    same_rows(&server, &["--backup", "latest"], &rows_now)?;
    let restored = backups.restored_rows(0, &labels[0], &["--target-time", moment])?;
    same_rows(&server, &["--backup", "way0", "--until", &until], &restored)?;
    let restored = backups.restored_rows(2, &labels[2], &["--target-immediate"])?;
    same_rows(&server, &["--backup", &labels[2], "--until", "consistent"], &restored)?;
    tells(&backups, &labels, moment)?;
    damaged(&backups, &labels)
}

/// What the listing and other commands say.
fn tells(backups: &Backups, labels: &[String], moment: &str) -> Result<()> {
    let (server, text) = (backups.server(), done(&["ls"], &backups.server())?);
    let day = moment.split(' ').next().context("a day")?;
    ensure!(text.lines().last().is_some_and(|line| line.contains(day)), "{text}");
    ensure!(text.contains("named way1") && text.contains("named way2, compressed"), "{text}");
    let first = &backups.listed()?[0];
    let shown = backups.run(0, &["show-backup", "shop", &labels[0]])?;
    for key in ["start_segment", "stop_segment"] {
        let segment = first[key].as_str().context("a segment")?;
        ensure!(shown.contains(segment), "{segment}: {shown}");
    }
    let plan = done(&["wal", "plan", "--backup", "latest"], &server)?;
    ensure!(plan.contains("at the end of the backup that began"), "{plan}");
    let words = ["count", "-d", "postgres", "-t", "apart", "--until", "consistent", "--backup"];
    let told = said(&pagemill(&[&words[..], &[&labels[2]]].concat(), &server)?);
    ensure!(told.contains("base.tar.gz: compressed, so it is unpacked"), "{told}");
    let told = said(&pagemill(&[&words[..], &[&labels[1]]].concat(), &server)?);
    ensure!(!told.contains("unpacked"), "a directory: {told}");
    Ok(())
}

/// Backups that are not whole, and WAL that is missing.
fn damaged(backups: &Backups, labels: &[String]) -> Result<()> {
    let server = backups.server();
    let count = |label: &str, until: &str| {
        let words = ["count", "-d", "postgres", "-t", "long", "--until", until, "--backup", label];
        refused(&words, &server)
    };
    let info = server.join("base").join(&labels[1]).join("backup.info");
    let text = std::fs::read_to_string(&info)?;
    std::fs::write(
        &info,
        text.replace("status=DONE", "status=FAILED").replace("error=None", "error=no space"),
    )?;
    let said = count(&labels[1], "consistent")?;
    ensure!(said.contains("is not whole: its status is FAILED (no space)"), "{said}");
    ensure!(done(&["ls"], &server)?.contains("not whole: FAILED (no space)"), "listed");
    std::fs::write(&info, text)?;
    let said = count("way9", "consistent")?;
    ensure!(said.contains("server \"shop\" has no backup \"way9\": it has "), "{said}");
    let said = refused(&["count", "-d", "postgres", "-t", "long"], &server)?;
    ensure!(said.contains("with --backup: latest, or a label that ls shows"), "{said}");
    let first = &backups.listed()?[0];
    let segment = first["start_segment"].as_str().context("a segment")?;
    let path = server.join("wals").join(&segment[..16]).join(segment);
    std::fs::rename(&path, server.join("aside"))?;
    let said = count(&labels[0], "consistent")?;
    ensure!(said.contains(segment), "{segment}: {said}");
    std::fs::rename(server.join("aside"), &path)?;
    let spaces = succeed(Command::new("ls").arg(server.join("base").join(&labels[0])))?;
    let oid = spaces.lines().find(|name| name.parse::<u32>().is_ok()).context("a tablespace")?;
    let space = server.join("base").join(&labels[0]).join(oid);
    std::fs::rename(&space, server.join("aside"))?;
    let said = count(&labels[0], "consistent")?;
    ensure!(said.contains(&format!("lacks its tablespace {oid}")), "{said}");
    Ok(())
}

#[test]
fn backups_of_barman_have_the_rows_of_the_server_they_are_restored_to() {
    if !Path::new(BARMAN).exists() || !Path::new("/usr/bin/rsync").exists() {
        skipped("Barman: install the packages barman, barman-cli-cloud and rsync");
        return;
    }
    let installs: Vec<PgInstall> = PgInstall::find(15).into_iter().collect();
    each_of(&installs, reads_servers);
}
