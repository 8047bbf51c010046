//! Sequential scans in every order, held against a server: what it returns by `ctid`, what a cursor
//! returns backward, and where its own synchronized scans begin.
//!
//! The tables have rows that were deleted, updated within their page and rolled back, so that the
//! tuples of a page are not simply all of its line pointers.

use std::process::Output;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::server::ClusterOptions;
use pagemill_testkit::session::Session;
use pagemill_testkit::{PgInstall, Program, TestCluster, each_of};

const SETUP: &str = "
CREATE TABLE holes (id int, word text) WITH (autovacuum_enabled = off);
INSERT INTO holes SELECT n, repeat(chr(97 + n % 26), n % 700) FROM generate_series(1, 4000) n;
DELETE FROM holes WHERE id % 7 = 3;
UPDATE holes SET word = 'changed' WHERE id % 11 = 5;
BEGIN; INSERT INTO holes SELECT n, 'never' FROM generate_series(1, 500) n; ROLLBACK;
DELETE FROM holes WHERE id BETWEEN 2000 AND 2400;
VACUUM holes;
INSERT INTO holes SELECT n, 'late' FROM generate_series(5001, 5100) n;
CREATE TABLE nothing (id int);
CREATE TABLE short (id int); INSERT INTO short SELECT generate_series(1, 1000);
CREATE TABLE parts (id int, word text) PARTITION BY LIST ((id % 3));
CREATE TABLE parts_long PARTITION OF parts FOR VALUES IN (0);
CREATE TABLE parts_none PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_short PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT 3 * n, repeat('x', 500) FROM generate_series(1, 300) n;
INSERT INTO parts SELECT 3 * n + 2, 'y' FROM generate_series(1, 600) n;
";

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

/// Runs a check on a fresh cluster of some versions.
fn every_install(settings: &[&str], check: impl Fn(&mut TestCluster) -> Result<()> + Sync) {
    let settings = settings.iter().map(|line| (*line).to_owned()).collect();
    let options = ClusterOptions { settings, ..ClusterOptions::default() };
    each_of(&PgInstall::spread(), |install| {
        let mut cluster = TestCluster::create(install, &options)?;
        cluster.psql_file_from_text("postgres", SETUP)?;
        check(&mut cluster)
    });
}

trait RunsText {
    fn psql_file_from_text(&self, db: &str, text: &str) -> Result<()>;
}

impl RunsText for TestCluster {
    /// Each statement in a transaction of its own.
    fn psql_file_from_text(&self, db: &str, text: &str) -> Result<()> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), text)?;
        self.psql_file(db, file.path(), &[])
    }
}

fn rows(cluster: &TestCluster, query: &str) -> Result<Vec<u8>> {
    cluster.copy_out("postgres", &format!("COPY ({query}) TO STDOUT"))
}

fn exported(cluster: &TestCluster, args: &[&str]) -> Result<Vec<u8>> {
    program().succeed(&cluster.data_dir(), &[&["export", "-d", "postgres"], args].concat())
}

fn counted(cluster: &TestCluster, args: &[&str]) -> Result<String> {
    let args = [&["count", "-d", "postgres"], args].concat();
    Ok(String::from_utf8(program().succeed(&cluster.data_dir(), &args)?)?.trim().to_owned())
}

fn refused(cluster: &TestCluster, args: &[&str]) -> Result<Output> {
    let output = program()
        .run(&cluster.data_dir(), &[&args[..1], &["-d", "postgres"], &args[1..]].concat())?;
    ensure!(!output.status.success() && output.stdout.is_empty(), "{args:?} was not refused");
    Ok(output)
}

/// An order as flags, and as a server is asked for it.
struct Order {
    flags: Vec<String>,
    by: String,
}

fn orders(last: u32) -> Vec<Order> {
    let flags = |words: &str| words.split_whitespace().map(str::to_owned).collect();
    let mut all = vec![
        Order { flags: flags(""), by: "ctid".into() },
        Order { flags: flags("--backward"), by: "ctid DESC".into() },
    ];
    for start in [0, 1, 17, last - 1, last] {
        let by = format!("ctid < '({start},0)', ctid");
        all.push(Order { flags: flags(&format!("--start-block {start}")), by });
        let by = format!("ctid >= '({},0)', ctid DESC", start + 1);
        all.push(Order { flags: flags(&format!("--backward --start-block {start}")), by });
    }
    all
}

#[test]
fn tables_come_in_every_order_as_a_server_orders_them_by_ctid() {
    every_install(&[], |cluster| {
        let last = cluster.psql("postgres", "SELECT pg_relation_size('holes') / 8192 - 1")?;
        let orders = orders(last.parse()?);
        let expected: Vec<Vec<u8>> = orders
            .iter()
            .map(|order| rows(cluster, &format!("SELECT * FROM holes ORDER BY {}", order.by)))
            .collect::<Result<_>>()?;
        let count = cluster.psql("postgres", "SELECT count(*) FROM holes")?;
        let cursor = "BEGIN; DECLARE c SCROLL CURSOR FOR SELECT * FROM holes; \
                      MOVE FORWARD ALL IN c; FETCH BACKWARD ALL FROM c";
        let args = ["-A", "-t", "-F", "\t", "-c", cursor];
        ensure!(cluster.psql_bytes("postgres", &args)? == expected[1], "a cursor goes otherwise");
        cluster.stop()?;
        for (order, expected) in orders.iter().zip(&expected) {
            let flags: Vec<&str> = order.flags.iter().map(String::as_str).collect();
            for jobs in ["1", "3"] {
                let args = [&["-t", "holes", "-j", jobs], &flags[..]].concat();
                ensure!(exported(cluster, &args)? == *expected, "{args:?}");
                ensure!(counted(cluster, &args)? == count, "{args:?}");
            }
            let args = [&["-t", "holes", "--io-method", "mmap"], &flags[..]].concat();
            ensure!(exported(cluster, &args)? == *expected, "{args:?}");
            let args =
                [&["-t", "holes", "--io-combine-limit", "3", "--io-method", "worker"], &flags[..]]
                    .concat();
            ensure!(exported(cluster, &args)? == *expected, "{args:?}");
        }
        Ok(())
    });
}

#[test]
fn of_partitions_and_of_several_tables_each_is_scanned_in_the_order() {
    every_install(&[], |cluster| {
        let mut expected = Vec::new();
        for part in ["parts_long", "parts_none", "parts_short"] {
            let by = if part == "parts_long" { "ctid >= '(6,0)', ctid DESC" } else { "ctid DESC" };
            expected.extend(rows(cluster, &format!("SELECT * FROM {part} ORDER BY {by}"))?);
        }
        cluster.stop()?;
        let order = ["--backward", "--start-block", "5"];
        let args = [&["-t", "parts"], &order[..]].concat();
        ensure!(exported(cluster, &args)? == expected, "partitions differ");
        ensure!(counted(cluster, &args)? == "900");
        let several = counted(cluster, &["-t", "short", "-t", "holes", "--backward"])?;
        ensure!(several.lines().count() == 2, "{several}");
        let of_none = counted(cluster, &["-t", "nothing", "--start-block", "0", "--backward"])?;
        ensure!(of_none == "0", "{of_none}");
        Ok(())
    });
}

#[test]
fn a_block_past_the_end_is_refused_before_anything_is_written() {
    every_install(&[], |cluster| {
        cluster.stop()?;
        for (table, block, told) in [
            ("short", "5", "its last block is 4"),
            ("parts", "4000000000", "its last block is"),
            ("nothing", "1", "it has no blocks"),
        ] {
            for command in ["count", "export"] {
                let flags = [command, "-t", table, "--start-block", block];
                let output = refused(cluster, &flags)?;
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let found = format!("a scan of public.{table} cannot begin with block {block}");
                ensure!(said.contains(&found) && said.contains(told), "{flags:?}: {said}");
            }
        }
        let header = ["export", "-t", "short", "--start-block", "5", "--header"];
        refused(cluster, &header)?;
        for flags in [
            &["count", "-t", "short", "--start-block", "-1"][..],
            &["count", "-t", "short", "--start-block", "1", "--order-by", "x"],
        ] {
            ensure!(refused(cluster, flags)?.status.code() == Some(2), "{flags:?}");
        }
        Ok(())
    });
}

/// A server with little memory for pages makes a second scan join the first. Where it begins is what
/// `--start-block` is to be told to give its rows in its order.
#[test]
fn the_order_of_a_servers_synchronized_scan_is_that_from_its_start_block() {
    every_install(&["shared_buffers = 1MB", "synchronize_seqscans = on"], |cluster| {
        let mut first = Session::open(cluster, "postgres")?;
        first.run("BEGIN; DECLARE c CURSOR FOR SELECT * FROM holes; MOVE 1500 IN c;")?;
        let joined = rows(cluster, "SELECT *, ctid FROM holes")?;
        drop(first);
        cluster.stop()?;
        let text = String::from_utf8(joined)?;
        let lines = text.lines().map(|line| line.rsplit_once('\t').context("no ctid"));
        let lines = lines.collect::<Result<Vec<_>>>()?;
        let start = lines[0].1.trim_matches('(').split(',').next().context("no block")?;
        ensure!(start != "0", "the server's scan did not join: the table is too small");
        let expected: String = lines.iter().map(|(row, _)| format!("{row}\n")).collect();
        let found = exported(cluster, &["-t", "holes", "--start-block", start])?;
        ensure!(found == expected.as_bytes(), "from block {start}");
        Ok(())
    });
}

/// What `count -v` tells of a table, without the program's name.
fn told(cluster: &TestCluster, flags: &[&str]) -> Result<String> {
    let args = [&["count", "-d", "postgres", "-v"], flags].concat();
    let output = program().run(&cluster.data_dir(), &args)?;
    ensure!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr)?;
    let lines = said.lines().filter(|line| line.contains("io_concurrency"));
    Ok(lines.map(|line| line.trim_start_matches("pagemill: ").to_owned() + "\n").collect())
}

fn inspected(cluster: &TestCluster, table: &str) -> Result<serde_json::Value> {
    let args = ["inspect", "-d", "postgres", "-t", table, "--json"];
    Ok(serde_json::from_slice(&program().succeed(&cluster.data_dir(), &args)?)?)
}

#[test]
fn a_tablespace_has_settings_of_its_own_and_else_those_of_a_session() {
    every_install(&[], |cluster| {
        let fast = cluster.tablespace_dir("fast")?;
        let script = format!(
            "CREATE TABLESPACE fast LOCATION '{}';
             ALTER TABLESPACE fast SET (effective_io_concurrency = '0x40', random_page_cost = 1.1);
             CREATE TABLE quick (id int) TABLESPACE fast; INSERT INTO quick VALUES (1), (2);
             CREATE TABLE other (id int); INSERT INTO other VALUES (1);
             CREATE TABLE twain (id int) PARTITION BY LIST (id);
             CREATE TABLE twain_1 PARTITION OF twain FOR VALUES IN (1) TABLESPACE fast;
             CREATE TABLE twain_2 PARTITION OF twain DEFAULT;
             ALTER TABLE twain ADD PRIMARY KEY (id); INSERT INTO twain VALUES (1), (2);
             CREATE DATABASE elsewhere TABLESPACE fast;",
            fast.display()
        );
        cluster.psql_file_from_text("postgres", &script)?;
        cluster.psql("elsewhere", "CREATE TABLE own (id int)")?;
        cluster.stop()?;
        let own = "effective_io_concurrency 64: set for tablespace \"fast\"\n";
        let default = "effective_io_concurrency 16: the default\n";
        ensure!(told(cluster, &["-t", "quick"])? == own, "{}", told(cluster, &["-t", "quick"])?);
        ensure!(told(cluster, &["-t", "other"])? == default);
        let both = told(cluster, &["-t", "twain"])?;
        ensure!(
            both.contains(own) && both.contains(default) && both.lines().count() == 2,
            "{both}"
        );
        let flag = told(cluster, &["-t", "quick", "--effective-io-concurrency", "3"])?;
        ensure!(flag == "effective_io_concurrency 3: --effective-io-concurrency\n", "{flag}");
        let args = ["count", "-d", "elsewhere", "-v", "-t", "own"];
        let output = program().run(&cluster.data_dir(), &args)?;
        ensure!(String::from_utf8_lossy(&output.stderr).contains(own.trim_end()), "{output:?}");
        let settings = &inspected(cluster, "quick")?["tablespace_settings"];
        ensure!(settings["random_page_cost"]["value"] == 1.1, "{settings}");
        ensure!(settings["seq_page_cost"]["value"] == 1.0, "{settings}");
        ensure!(settings["effective_io_concurrency"]["value"] == 64, "{settings}");
        let maintenance = if cluster.major() >= 18 { 16 } else { 10 };
        let found = &settings["maintenance_io_concurrency"];
        ensure!(found["value"] == maintenance && found["from"] == "the default", "{settings}");

        cluster.start()?;
        let effective = "SHOW maintenance_io_concurrency";
        ensure!(cluster.psql("postgres", effective)? == maintenance.to_string());
        cluster.psql("postgres", "ALTER SYSTEM SET effective_io_concurrency = 0")?;
        cluster.psql("postgres", "ALTER TABLESPACE fast RESET (effective_io_concurrency)")?;
        cluster.stop()?;
        let file = "postgresql.auto.conf:3";
        for table in ["quick", "other"] {
            let found = told(cluster, &["-t", table])?;
            ensure!(found.starts_with("effective_io_concurrency 0: set in "), "{found}");
            ensure!(found.trim_end().ends_with(file), "{found}");
        }
        let rows = exported(cluster, &["-t", "holes", "--io-method", "worker"])?;
        ensure!(rows == exported(cluster, &["-t", "holes", "--io-method", "pread"])?);

        cluster.start()?;
        cluster.psql("postgres", "ALTER DATABASE postgres SET effective_io_concurrency = 5")?;
        cluster
            .psql("postgres", "ALTER TABLESPACE pg_default SET (effective_io_concurrency = 2)")?;
        cluster.stop()?;
        ensure!(
            told(cluster, &["-t", "quick"])?.starts_with("effective_io_concurrency 5: set on ")
        );
        let found = told(cluster, &["-t", "other"])?;
        ensure!(found.starts_with("effective_io_concurrency 2: set for tablespace \"pg_default\""));
        Ok(())
    });
}

#[test]
fn options_that_a_server_would_not_take_are_named_and_change_nothing() {
    every_install(&["allow_system_table_mods = on"], |cluster| {
        let options = "ARRAY['effective_io_concurrency=lots', 'seq_page_cost', 'mood=good']";
        let update = format!(
            "SET allow_system_table_mods = on; \
             UPDATE pg_tablespace SET spcoptions = {options} WHERE spcname = 'pg_default'"
        );
        cluster.psql("postgres", &update)?;
        cluster.stop()?;
        let args = ["count", "-d", "postgres", "-t", "short", "-t", "parts"];
        let output = program().run(&cluster.data_dir(), &args)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success() && output.stdout.ends_with(b"1000\n"), "{output:?}");
        ensure!(said.lines().count() == 3, "{said}");
        for part in
            ["effective_io_concurrency = \"lots\"", "\"seq_page_cost\" has no value", "mood"]
        {
            ensure!(said.contains(part) && said.contains("pg_default"), "{said}");
        }
        Ok(())
    });
}

/// Read calls of a count in the order of an index whose entries lead all over the table.
fn calls_in_index_order(cluster: &TestCluster) -> Result<u64> {
    let args = ["count", "-d", "postgres", "-t", "shuffled", "--order-by", "shuffled_key"];
    let more = ["--no-index-only", "--io-method", "pread", "--stats=json"];
    let output = program().run(&cluster.data_dir(), &[&args[..], &more].concat())?;
    ensure!(output.status.success() && output.stdout == b"14000\n", "{output:?}");
    let said = String::from_utf8(output.stderr)?;
    let stats: serde_json::Value = serde_json::from_str(said.lines().last().unwrap_or_default())?;
    stats["read_calls"].as_u64().context("no such statistic")
}

#[test]
fn an_index_scan_reads_around_only_where_that_is_cheaper_by_the_page_costs() {
    every_install(&[], |cluster| {
        let table = "CREATE TABLE shuffled AS SELECT md5(n::text) AS key, repeat('x', 1000) AS pad \
                     FROM generate_series(1, 14000) n; CREATE INDEX shuffled_key ON shuffled (key);";
        cluster.psql("postgres", table)?;
        cluster.stop()?;
        let around = calls_in_index_order(cluster)?;
        cluster.start()?;
        let equal = "ALTER TABLESPACE pg_default SET (seq_page_cost = 1, random_page_cost = 1)";
        cluster.psql("postgres", equal)?;
        cluster.stop()?;
        let single = calls_in_index_order(cluster)?;
        println!("{around} {single}");
        ensure!(single > 2 * around, "{around} calls reading around, {single} without");
        Ok(())
    });
}
