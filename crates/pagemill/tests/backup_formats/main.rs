//! Backups in other forms than that of a data directory, read where they lie: archives, and chains of incremental backups.
//!
//! Servers of 15 and later write archives themselves, when they are asked by the command that `pg_basebackup` sends;
//! where that program is there, it makes some too.

mod archives;
mod incremental;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, ReplicationConnection, TestCluster};
use support::succeed;

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
    succeed(tar.arg("-xf").arg(archive).arg("-C").arg(to)).map(drop)
}
