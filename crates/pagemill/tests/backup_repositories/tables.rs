//! What the clusters have whose backups the tests take, and what is compared of it.
//!
//! Rows are compared as COPY writes them, in any order.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use pagemill_testkit::TestCluster;

use super::support::{done, sorted};

/// Tables of two tablespaces, one of them longer than what is unpacked into memory, with TOAST values and indexes.
const TABLES: &str = "\
create table orders (id int primary key, note text);
alter table orders alter note set storage external;
insert into orders select i, repeat(md5(i::text), i % 150) from generate_series(1, 2000) i;
create table apart (id int primary key, v text) tablespace elsewhere;
insert into apart select i, 'row ' || i from generate_series(1, 5000) i;
create table long as select i, repeat(md5(i::text), 4) as v from generate_series(1, 40000) i;
create index on long (i);
create table shrinks as select i, repeat('row ' || i, 20) as v from generate_series(1, 3000) i;
create table empty (i int);
create table stopped ();";

const TABLE_NAMES: [&str; 5] = ["orders", "apart", "long", "shrinks", "empty"];

/// Changes in many transactions, until a column is added to `stopped`.
pub(super) const LOAD: &str = "\
do $$ begin for n in 1..1000000 loop
  update orders set note = repeat(md5(n::text), n % 150) where id = 1 + n * 7 % 2000;
  update long set v = 'load ' || n where i = 1 + n * 13 % 40000;
  commit;
  exit when exists (select from pg_attribute where attrelid = 'stopped'::regclass and attnum > 0);
end loop; end $$";

/// The tables, one of them in a tablespace.
pub(super) fn make_tables(cluster: &TestCluster) -> Result<()> {
    let space = cluster.tablespace_dir("elsewhere")?;
    cluster
        .psql("postgres", &format!("create tablespace elsewhere location '{}'", space.display()))?;
    cluster.psql("postgres", TABLES).map(drop)
}

/// All WAL was given to `archive_command`.
pub(super) fn archive_all(cluster: &TestCluster) -> Result<()> {
    // Of the place that it tells: the current one may be in the next segment already.
    let last = cluster.psql("postgres", "select pg_walfile_name(pg_switch_wal())")?;
    for _ in 0..600 {
        let archived =
            cluster.psql("postgres", "select last_archived_wal from pg_stat_archiver")?;
        if archived.trim() >= last.trim() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    bail!("{last} was not archived")
}

/// Starts a server on what a tool restored, and waits for its recovery.
pub(super) fn rows_once_recovered(server: &mut TestCluster) -> Result<Vec<String>> {
    server.start()?;
    for _ in 0..600 {
        if server.psql("postgres", "select pg_is_in_recovery()")?.trim() == "f" {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    rows(server)
}

/// The rows of all tables, as COPY writes them.
pub(super) fn rows(cluster: &TestCluster) -> Result<Vec<String>> {
    let copy = |table: &&str| cluster.psql("postgres", &format!("copy {table} to stdout"));
    TABLE_NAMES.iter().map(copy).collect()
}

/// The rows of all tables of a backup are these.
pub(super) fn same_rows(repository: &Path, flags: &[&str], rows: &[String]) -> Result<()> {
    let output = tempfile::tempdir()?;
    let to = format!("{}/rows/", output.path().display());
    let tables = TABLE_NAMES.iter().flat_map(|table| ["-t", table]).collect::<Vec<_>>();
    let words = [&["export", "-d", "postgres", "-o", &to][..], &tables, flags].concat();
    done(&words, repository)?;
    for (table, rows) in TABLE_NAMES.iter().zip(rows) {
        let exported = std::fs::read_to_string(format!("{to}public.{table}.txt"))?;
        ensure!(
            sorted(&exported) == sorted(rows),
            "{table}: {words:?} of {}",
            repository.display()
        );
    }
    Ok(())
}
