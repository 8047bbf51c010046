//! Backups in other forms than that of a data directory, read where they lie: archives, and chains of incremental backups.
//!
//! Servers of 15 and later write archives themselves, when they are asked by the command that `pg_basebackup` sends;
//! where that program is there, it makes some too.

mod archives;
mod incremental;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, ReplicationConnection, TestCluster};

/// Tables of two tablespaces, with TOAST values and indexes.
const TABLES: &str = "\
create table orders (id int primary key, note text);
alter table orders alter note set storage external;
insert into orders select i, repeat(md5(i::text), i % 150) from generate_series(1, 3000) i;
create table apart (id int primary key, v text) tablespace elsewhere;
insert into apart select i, 'row ' || i from generate_series(1, 5000) i;
create table stopped ();";

/// Changes in many transactions, until a column is added to `stopped`.
const LOAD: &str = "\
do $$ begin for i in 1..1000000 loop
  update orders set note = repeat(md5(i::text), i % 150) where id = 1 + i * 7 % 3000;
  delete from apart where id = i;
  insert into apart values (10000 + i, 'later ' || i);
  commit;
  exit when exists (select from pg_attribute where attrelid = 'stopped'::regclass and attnum > 0);
end loop; end $$";

fn pagemill(words: &[&str], data: &Path) -> Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    let (commands, rest) = words.split_at(if words[0] == "wal" { 2 } else { 1 });
    command.args(commands).arg("-D").arg(data).args(rest).env_remove("PGDATA");
    Ok(command.output()?)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn done(words: &[&str], data: &Path) -> Result<String> {
    let output = pagemill(words, data)?;
    ensure!(output.status.success(), "{words:?}: {}", said(&output));
    Ok(String::from_utf8(output.stdout)?)
}

/// What a command says that does not do its work; it neither prints nor panics.
fn refused(words: &[&str], data: &Path) -> Result<String> {
    let output = pagemill(words, data)?;
    let said = said(&output);
    ensure!(!output.status.success() && output.stdout.is_empty(), "{words:?}: {said}");
    ensure!(!said.contains("panicked"), "{words:?}: {said}");
    Ok(said)
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", said(&output));
    Ok(())
}

fn cluster(install: &PgInstall, settings: &[&str]) -> Result<TestCluster> {
    let settings = settings.iter().map(|line| (*line).to_owned()).collect();
    let cluster =
        TestCluster::create(install, &ClusterOptions { settings, ..ClusterOptions::default() })?;
    let space = cluster.tablespace_dir("elsewhere")?;
    let create = format!("create tablespace elsewhere location '{}'", space.display());
    cluster.psql("postgres", &create)?;
    cluster.psql("postgres", TABLES)?;
    Ok(cluster)
}

/// A session that changes rows until it is [stopped](stop_load).
fn start_load(cluster: &TestCluster) -> Result<Child> {
    let mut command = cluster.psql_command("postgres");
    Ok(command.args(["-c", LOAD]).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

fn stop_load(cluster: &TestCluster, mut load: Child) -> Result<()> {
    cluster.psql("postgres", "alter table stopped add column yes int")?;
    ensure!(load.wait()?.success(), "the load failed");
    cluster.psql("postgres", "alter table stopped drop column yes").map(drop)
}

/// A backup that the server writes to its own disk, in archives; its WAL is in `base.tar`. An incremental one if there is
/// another before it.
fn by_server(
    cluster: &TestCluster,
    name: &str,
    before: Option<&Path>,
    options: &str,
) -> Result<PathBuf> {
    let target = cluster.root().join(name);
    let incremental = if before.is_some() { "INCREMENTAL true, " } else { "" };
    let backup = format!(
        "BASE_BACKUP ({options}{incremental}LABEL 'x', CHECKPOINT 'fast', WAIT false, WAL true, TABLESPACE_MAP true, \
         MANIFEST 'yes', TARGET 'server', TARGET_DETAIL '{}')",
        target.display()
    );
    let mut connection = ReplicationConnection::open(cluster, "postgres")?;
    if let Some(before) = before {
        connection.upload_manifest(&std::fs::read(before.join("backup_manifest"))?)?;
    }
    connection.run(&backup)?;
    let manifest = std::fs::read_to_string(target.join("backup_manifest"))?;
    ensure!(manifest.contains("Manifest-Checksum"), "the backup is not whole");
    Ok(target)
}

/// Unpacks an archive into a directory, which is made.
fn unpack(cluster: &TestCluster, archive: &Path, to: &Path) -> Result<()> {
    cluster.account().create_dir(to)?;
    let mut tar = cluster.account().command(Path::new("tar"));
    succeed(tar.arg("-xf").arg(archive).arg("-C").arg(to))
}
