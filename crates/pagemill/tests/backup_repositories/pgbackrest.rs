//! Repositories of pgBackRest: full, differential and incremental backups of each way of storing files, taken while rows change.
//!
//! One cluster is backed up into one repository for each way; its WAL goes to all of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, each_of, skipped};
use serde_json::Value;

use super::damage;
use super::support::{
    done, pagemill, pagemill_command, refused, said, start_load, stop_load, succeed,
};
use super::tables::{LOAD, archive_all, make_tables, rows, rows_once_recovered, same_rows};

/// What happens between the backups of a chain, each line in a transaction of its own.
const CHANGES: [&str; 2] = [
    "update orders set note = 'changed ' || id where id % 97 = 0;
update long set v = md5(v) where i % 4000 < 20;
delete from shrinks where i > 500;
vacuum shrinks;",
    "update long set v = 'again' where i between 100 and 120;
insert into shrinks select i, repeat('back', 50) from generate_series(1, 2000) i;
delete from apart where id % 5 = 0;
insert into apart select i, 'new ' || i from generate_series(20000, 20500) i on conflict do nothing;",
];

/// How a repository stores files, and what it is compressed by; encrypted ones are behind the others.
const WAYS: [(&str, &[&str]); 6] = [
    ("", &["none", "gz"]),
    ("bundle=y", &["lz4"]),
    ("bundle=y block=y", &["zst", "bz2"]),
    ("cipher-type=aes-256-cbc cipher-pass=flour", &["gz"]),
    ("bundle=y cipher-type=aes-256-cbc cipher-pass=flour", &["none"]),
    ("bundle=y block=y cipher-type=aes-256-cbc cipher-pass=flour", &["zst"]),
];

/// The environment's name for what the encrypted repositories are encrypted by.
const PASSPHRASE: &str = "PGBACKREST_REPO1_CIPHER_PASS";

/// pgBackRest on a cluster.
pub(super) struct Backups {
    pub(super) cluster: TestCluster,
    program: PathBuf,
    ways: Vec<(&'static str, &'static [&'static str])>,
}

impl Backups {
    fn new(install: &PgInstall, program: PathBuf, has_blocks: bool) -> Result<Self> {
        let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
        let ways = WAYS.into_iter().filter(|(way, _)| has_blocks || !way.contains("block"));
        // The account may not get to where it was built.
        let copy = cluster.root().join("pgbackrest");
        std::fs::copy(&program, &copy).with_context(|| program.display().to_string())?;
        cluster.account().own(&copy)?;
        std::fs::create_dir(cluster.root().join("log"))?;
        cluster.account().own(&cluster.root().join("log"))?;
        let set = |name: &str, value: &str| {
            cluster.psql("postgres", &format!("alter system set {name} = '{value}'"))
        };
        let conf = cluster.root().join("pgbackrest.conf");
        let (program, config) = (copy.display(), conf.display());
        set("archive_mode", "on")?;
        set(
            "archive_command",
            &format!("{program} --config={config} --stanza=shop archive-push %p"),
        )?;
        cluster.stop()?;
        cluster.start()?;
        let backups = Self { cluster, program: copy, ways: ways.collect() };
        std::fs::write(&conf, backups.configuration(backups.cluster.data_dir().as_path())?)?;
        backups.run(&["stanza-create"])?;
        make_tables(&backups.cluster)?;
        Ok(backups)
    }

    fn configuration(&self, data: &Path) -> Result<String> {
        let root = self.cluster.root().display();
        let psql = self.cluster.psql_command("postgres");
        let variable = |name: &str| {
            let found = psql.get_envs().find(|(known, _)| *known == name);
            let value = found.and_then(|(_, value)| value).and_then(|value| value.to_str());
            value.map(str::to_owned).with_context(|| format!("no {name}"))
        };
        let mut text = format!(
            "[global]\nlog-path={root}/log\nlock-path={root}/lock\nspool-path={root}/spool\nstart-fast=y\n"
        );
        for (number, (way, _)) in self.ways.iter().enumerate() {
            let number = number + 1;
            text +=
                &format!("repo{number}-path={root}/repo{number}\nrepo{number}-retention-full=99\n");
            way.split_whitespace().for_each(|option| text += &format!("repo{number}-{option}\n"));
        }
        text += &format!(
            "[shop]\npg1-path={}\npg1-socket-path={}\n",
            data.display(),
            variable("PGHOST")?
        );
        text += &format!("pg1-port={}\npg1-user={}\n", variable("PGPORT")?, variable("PGUSER")?);
        Ok(text)
    }

    fn command(&self) -> Command {
        let mut command = self.cluster.account().command(&self.program);
        let config = self.cluster.root().join("pgbackrest.conf");
        command.arg(format!("--config={}", config.display())).arg("--stanza=shop");
        command
    }

    fn run(&self, words: &[&str]) -> Result<String> {
        succeed(self.command().args(words))
    }

    pub(super) fn repository(&self, number: usize) -> PathBuf {
        self.cluster.root().join(format!("repo{number}"))
    }

    /// A full backup, a differential and an incremental one, with changes between them and while they are taken.
    fn chain(&self, number: usize, compression: &str) -> Result<()> {
        let repository = format!("--repo={number}");
        let compression = format!("--compress-type={compression}");
        for (at, kind) in ["--type=full", "--type=diff", "--type=incr"].into_iter().enumerate() {
            if let Some(lines) = at.checked_sub(1).and_then(|at| CHANGES.get(at)) {
                lines.lines().try_for_each(|line| self.cluster.psql("postgres", line).map(drop))?;
            }
            let load = start_load(&self.cluster, LOAD)?;
            let taken = self.run(&["backup", &repository, &compression, kind]);
            stop_load(&self.cluster, load)?;
            taken?;
        }
        Ok(())
    }

    /// The labels of a repository's backups, in order.
    pub(super) fn labels(&self, number: usize) -> Result<Vec<String>> {
        let listed: Value =
            serde_json::from_str(&done(&["ls", "--json"], &self.repository(number))?)?;
        let backups = listed[0]["backups"].as_array().context("backups")?;
        Ok(backups
            .iter()
            .filter_map(|backup| backup["label"].as_str())
            .map(str::to_owned)
            .collect())
    }

    /// The rows of a server on what pgBackRest restores.
    fn restored_rows(&self, words: &[&str]) -> Result<Vec<String>> {
        let root = self.cluster.root().join("restored");
        let mut server = TestCluster::at(self.cluster.install(), root.clone())?;
        let data = server.data_dir();
        std::fs::create_dir_all(&data)?;
        std::fs::set_permissions(&data, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        server.account().own(&root)?;
        server.account().own(&data)?;
        let spaces = root.join("spaces");
        std::fs::create_dir(&spaces)?;
        server.account().own(&spaces)?;
        let mut restore = self.command();
        restore.args(words).arg("--archive-mode=off").arg(format!("--pg1-path={}", data.display()));
        succeed(restore.arg(format!("--tablespace-map-all={}", spaces.display())).arg("restore"))?;
        let rows = rows_once_recovered(&mut server)?;
        server.stop()?;
        drop(server);
        std::fs::remove_dir_all(&root).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        Ok(rows)
    }
}

fn other_commands(backups: &Backups, number: usize, label: &str) -> Result<()> {
    let repository = backups.repository(number);
    let chosen = ["--stanza", "shop", "--backup", label];
    let until = ["--until", "consistent"];
    let with = |words: &[&str]| done(&[words, &chosen].concat(), &repository);
    let long = [&["count", "-d", "postgres", "-t", "long", "-j", "2"], &until[..]].concat();
    let count = with(&long)?;
    ensure!(count.contains("40000"), "{count}");
    let orders = ["count", "-d", "postgres", "-t", "orders", "--order-by", "orders_pkey"];
    with(&[&orders, &until[..]].concat())?;
    with(&["count", "-d", "postgres", "-t", "apart", "--io-method", "pread"])?;
    ensure!(with(&["ls", "-d", "postgres"])?.contains("shrinks"), "tables");
    ensure!(with(&["wal", "plan"])?.contains("at the end of the backup that began"), "a plan");
    ensure!(!with(&["wal", "show", "-n", "3"])?.is_empty(), "records");
    ensure!(with(&["inspect"])?.contains("in production"), "the control file");
    let direct = refused(
        &[&["count", "-d", "postgres", "-t", "long", "--direct"][..], &chosen].concat(),
        &repository,
    )?;
    ensure!(direct.contains("leave out --direct"), "{direct}");
    let text = done(&["ls"], &repository)?;
    ensure!(text.contains(label) && text.contains("15-1") && text.contains("incr"), "{text}");
    Ok(())
}

/// What is unpacked to disk is told before, once, with its bytes.
fn tells_what_is_unpacked(backups: &Backups, number: usize, label: &str) -> Result<()> {
    let words =
        ["count", "-d", "postgres", "-t", "long", "--until", "consistent", "--backup", label];
    let told = said(&pagemill(&words, &backups.repository(number))?);
    ensure!(told.matches("unpacked to a temporary file in").count() == 1, "{told}");
    let other = ["count", "-d", "postgres", "-t", "apart", "--backup", label];
    let told = said(&pagemill(&other, &backups.repository(number))?);
    ensure!(!told.contains("unpacked to a temporary file"), "a file that nobody reads: {told}");
    Ok(())
}

fn reads_repositories(install: &PgInstall, program: PathBuf, has_blocks: bool) -> Result<()> {
    let backups = Backups::new(install, program, has_blocks)?;
    for (at, (_, compressions)) in backups.ways.iter().enumerate() {
        compressions.iter().try_for_each(|compression| backups.chain(at + 1, compression))?;
    }
    let moment = backups.cluster.psql("postgres", "select now()")?;
    let rows_at_moment = rows(&backups.cluster)?;
    backups.cluster.psql("postgres", "delete from orders; drop table long")?;
    backups.cluster.psql("postgres", "create table long (i int, v text)")?;
    archive_all(&backups.cluster)?;
    let rows_now = rows(&backups.cluster)?;
    let until = format!("time:{}", moment.trim());
    for (at, (_, compressions)) in backups.ways.iter().enumerate() {
        let (number, repository) = (at + 1, backups.repository(at + 1));
        let labels = backups.labels(number)?;
        let text = done(&["ls"], &repository)?;
        let day = moment.split(' ').next().context("a day")?;
        ensure!(text.lines().last().is_some_and(|line| line.contains(day)), "{text}");
        ensure!(labels.len() == 3 * compressions.len(), "{labels:?}");
        for label in &labels {
            same_rows(&repository, &["--backup", label, "--until", &until], &rows_at_moment)?;
        }
        same_rows(&repository, &["--backup", "latest"], &rows_now)?;
        let (first, last) = (&labels[1], &labels[labels.len() - 1]);
        let (of, target) = (format!("--repo={number}"), format!("--target={}", moment.trim()));
        let time = ["--type=time", &target, "--target-action=promote"];
        let set = format!("--set={last}");
        let restored = backups.restored_rows(&[&[&*of, &*set][..], &time].concat())?;
        same_rows(&repository, &["--backup", last, "--until", &until], &restored)?;
        let set = format!("--set={first}");
        let immediate = ["--type=immediate", "--target-action=promote"];
        let restored = backups.restored_rows(&[&[&*of, &*set][..], &immediate].concat())?;
        same_rows(&repository, &["--backup", first, "--until", "consistent"], &restored)?;
    }
    let last = backups.labels(1)?.pop().context("a label")?;
    other_commands(&backups, 1, &last)?;
    if has_blocks {
        let last = backups.labels(3)?.pop().context("a label")?;
        other_commands(&backups, 3, &last)?;
    }
    let packed = &backups.labels(1)?[3];
    tells_what_is_unpacked(&backups, 1, packed)?;
    encrypted_by_another(&backups)?;
    damage::damaged(&backups)
}

/// Without its passphrase, and with another one, an encrypted repository is refused, and it is said why.
fn encrypted_by_another(backups: &Backups) -> Result<()> {
    let is_encrypted = |(way, _): &(&str, _)| way.contains("cipher");
    let at = backups.ways.iter().position(is_encrypted).context("an encrypted repository")?;
    let repository = backups.repository(at + 1);
    let asked = |passphrase: Option<&str>, words: &[&str]| -> Result<String> {
        let mut command = pagemill_command(words, &repository);
        command.env_remove(PASSPHRASE);
        passphrase.map(|passphrase| command.env(PASSPHRASE, passphrase));
        let output = command.output()?;
        ensure!(output.status.code() == Some(1), "{words:?}: {}", said(&output));
        Ok(said(&output))
    };
    for words in [&["ls"][..], &["count", "-d", "postgres", "-t", "orders", "--backup", "latest"]] {
        let without = asked(None, words)?;
        ensure!(
            without.contains("backup.info: this pgBackRest repository is encrypted"),
            "{without}"
        );
        ensure!(without.contains(PASSPHRASE), "{without}");
        let with_another = asked(Some("bran"), words)?;
        ensure!(
            with_another.contains("is not the one that this file was encrypted by"),
            "{with_another}"
        );
        ensure!(!with_another.contains("bran"), "a passphrase is told: {with_another}");
    }
    Ok(())
}

/// `pgBackRest 2.45`: the second number.
fn minor_version(program: &Path) -> Option<u32> {
    let output = Command::new(program).arg("version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.trim().strip_prefix("pgBackRest 2.")?.split('.').next()?.parse().ok()
}

#[test]
fn backups_in_pgbackrest_repositories_have_the_rows_of_the_server_they_are_restored_to() {
    let named = std::env::var_os("PAGEMILL_PGBACKREST").map(PathBuf::from);
    let program = named.unwrap_or_else(|| "/usr/bin/pgbackrest".into());
    let Some(minor) = minor_version(&program) else {
        skipped(format!("{}: no pgBackRest: install the package pgbackrest", program.display()));
        return;
    };
    let has_blocks = minor >= 46;
    if !has_blocks {
        skipped(format!(
            "files stored by blocks: pgBackRest 2.{minor} has none; name a newer one in PAGEMILL_PGBACKREST"
        ));
    }
    let installs: Vec<PgInstall> = PgInstall::find(15).into_iter().collect();
    each_of(&installs, |install| reads_repositories(install, program.clone(), has_blocks));
}
