//! Rows in the order of an index, held against a server that scans the same index.
//!
//! For every B-tree index of a database the server is made to read it from end to end, forward and
//! backward: sorting and other ways are forbidden, all other indexes of the table are hidden from
//! the planner, and its plan is looked at, because any order that merely agrees on the keys
//! would say nothing about rows with equal ones. What it prints is compared byte by byte.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::prepared::{Prepared, filled_cluster};
use pagemill_testkit::scratch::cluster_root;
use pagemill_testkit::{
    CopyFormat, Medium, PgInstall, Program, TestCluster, compare, each_of, in_checkout,
};

const BLOCK: u64 = 8192;
/// How many differences are told in full.
const TOLD: usize = 10;

/// Every complete B-tree index with the orders it has, forward and backward, in operators of its
/// own families.
const INDEXES: &str = "
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname), quote_ident(x.relname),
       n.nspname LIKE 'pg\\_%',
       (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_catalog.pg_attribute
        WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''),
       o.forward, o.backward, c.oid, x.oid
FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid JOIN pg_catalog.pg_am m ON m.oid = x.relam
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace,
LATERAL (
  SELECT string_agg(key || operator(d) || nulls(f), ', ' ORDER BY k) AS forward,
         string_agg(key || operator(NOT d) || nulls(NOT f), ', ' ORDER BY k) AS backward
  FROM (SELECT k, '(' || pg_get_indexdef(i.indexrelid, k, false) || ')' || coalesce(
                 (SELECT ' COLLATE ' || quote_ident(cn.nspname) || '.' || quote_ident(collname)
                  FROM pg_catalog.pg_collation l JOIN pg_catalog.pg_namespace cn ON cn.oid = collnamespace
                  WHERE l.oid = i.indcollation[k - 1]), '') AS key,
               i.indoption[k - 1] & 1 = 1 AS d, i.indoption[k - 1] & 2 = 2 AS f, i.indclass[k - 1] AS class
        FROM generate_series(1, i.indnkeyatts) k) keys,
  LATERAL (SELECT (SELECT p.oprname FROM pg_catalog.pg_amop a JOIN pg_catalog.pg_operator p ON p.oid = amopopr
                   JOIN pg_catalog.pg_opclass oc ON oc.oid = class AND amopfamily = opcfamily
                     AND amoplefttype = opcintype AND amoprighttype = opcintype
                   WHERE amopstrategy = 1) AS less,
                  (SELECT p.oprname FROM pg_catalog.pg_amop a JOIN pg_catalog.pg_operator p ON p.oid = amopopr
                   JOIN pg_catalog.pg_opclass oc ON oc.oid = class AND amopfamily = opcfamily
                     AND amoplefttype = opcintype AND amoprighttype = opcintype
                   WHERE amopstrategy = 5) AS greater) ops,
  LATERAL (SELECT 1) one) o
WHERE m.amname = 'btree' AND c.relkind IN ('r', 'm', 't') AND i.indisvalid AND i.indpred IS NULL
  AND c.relpersistence <> 't'
ORDER BY 1, 2";

const FORCED: &str = "
SET enable_seqscan = off; SET enable_sort = off; SET enable_incremental_sort = off;
SET enable_bitmapscan = off; SET enable_tidscan = off; SET enable_material = off;
";

/// An index, and what a server reads through it.
struct Indexed {
    table: String,
    index: String,
    of_system: bool,
    columns: String,
    /// Forward and backward.
    orders: [String; 2],
    table_oid: String,
    index_oid: String,
}

fn indexes(cluster: &TestCluster, db: &str) -> Result<Vec<Indexed>> {
    let operator = "(CASE WHEN $1 THEN ' USING OPERATOR(pg_catalog.' || greater || ')' ELSE ' USING OPERATOR(pg_catalog.' || less || ')' END)";
    let nulls = "(CASE WHEN $1 THEN ' NULLS FIRST' ELSE ' NULLS LAST' END)";
    let mut sql = INDEXES.to_owned();
    for (argument, short) in [("d", "d"), ("NOT d", "NOT d")] {
        sql = sql.replace(&format!("operator({short})"), &operator.replace("$1", argument));
    }
    for argument in ["f", "NOT f"] {
        sql = sql.replace(&format!("nulls({argument})"), &nulls.replace("$1", argument));
    }
    let args = ["-A", "-t", "-F", "\u{1f}", "-R", "\u{1e}", "-c", &sql];
    let listed = String::from_utf8(cluster.psql_bytes(db, &args)?)?;
    let rows = listed.trim_end_matches('\n').split('\u{1e}').filter(|row| !row.is_empty());
    rows.map(|row| {
        let fields: Vec<String> = row.split('\u{1f}').map(Into::into).collect();
        let [table, index, system, columns, forward, backward, table_oid, index_oid] =
            <[String; 8]>::try_from(fields).ok().context("a row of eight fields")?;
        let (of_system, orders) = (system == "t", [forward, backward]);
        Ok(Indexed { table, index, of_system, columns, orders, table_oid, index_oid })
    })
    .collect()
}

impl Indexed {
    fn query(&self, order: usize) -> String {
        format!("SELECT {} FROM ONLY {} ORDER BY {}", self.columns, self.table, self.orders[order])
    }

    fn file(&self, dir: &Path, order: usize) -> PathBuf {
        dir.join(format!("{}.{order}", self.index_oid))
    }

    fn script(&self, dir: &Path) -> String {
        let mut script = String::new();
        if !self.of_system {
            script += &format!(
                "BEGIN; UPDATE pg_catalog.pg_index SET indisvalid = false WHERE indrelid = {} AND \
                 indexrelid <> {};\n",
                self.table_oid, self.index_oid
            );
        }
        for order in 0..2 {
            let query = self.query(order);
            script += &format!("\\qecho @{} {order}\n", self.index_oid);
            script += &format!("EXPLAIN (COSTS off) {query};\n");
            let file = self.file(dir, order);
            script += &format!("COPY ({query}) TO '{}';\n", file.display());
        }
        if !self.of_system {
            script += "ROLLBACK;\n";
        }
        script
    }
}

/// The plans the server chose, by index and order.
fn plans(printed: &str) -> Vec<(String, usize, String)> {
    let pieces = printed.split('@').skip(1);
    pieces
        .filter_map(|piece| {
            let (head, plan) = piece.split_once('\n')?;
            let (oid, order) = head.split_once(' ')?;
            Some((oid.to_owned(), order.parse().ok()?, plan.to_owned()))
        })
        .collect()
}

fn is_scan_of(plan: &str, index: &str, order: usize) -> bool {
    let backward = plan.contains(" Backward using ");
    plan.contains(&format!(" using {index} on "))
        && !plan.contains("Sort")
        && backward == (order == 1)
}

/// Has the server print all indexes of a database into `dir`; gives back those it scanned.
fn expected(
    cluster: &TestCluster,
    (db, with_catalogs): (&str, bool),
    dir: &Path,
) -> Result<Vec<(Indexed, [bool; 2])>> {
    cluster.account().create_dir(dir)?;
    let mut all = indexes(cluster, db)?;
    all.retain(|one| with_catalogs || !one.table.starts_with("pg_catalog."));
    // The expression of its index inserts rows when it is computed.
    all.retain(|one| one.table != "public.superseded");
    let script: String = all.iter().map(|one| one.script(dir)).collect();
    let path = dir.join("script.sql");
    fs::write(&path, format!("{FORCED}{script}"))?;
    let mut command = cluster.psql_command(db);
    let output = command.args(["-A", "-t", "-f"]).arg(&path).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let plans = plans(&String::from_utf8(output.stdout)?);
    let mut scanned = Vec::new();
    for one in all {
        let mut good = [false; 2];
        // TOAST tables without a row are compared with the catalogs, of which most are.
        if !with_catalogs && one.of_system && fs::metadata(one.file(dir, 0))?.len() == 0 {
            continue;
        }
        for (_, order, plan) in plans.iter().filter(|(oid, ..)| *oid == one.index_oid) {
            good[*order] = is_scan_of(plan, &one.index, *order);
            // The planner may prefer another index of a catalog, where none can be hidden.
            ensure!(good[*order] || one.of_system, "{} {order}: {plan}", one.index);
        }
        scanned.push((one, good));
    }
    Ok(scanned)
}

/// What one index gives, in all the ways it can be asked for.
fn differences(data: &Path, db: &str, one: &Indexed, good: [bool; 2], dir: &Path) -> Vec<String> {
    let program = Program::new(env!("CARGO_BIN_EXE_pagemill"));
    let mut found = Vec::new();
    for (order, _) in good.iter().enumerate().filter(|(_, good)| **good) {
        for heap in [false, true] {
            let base = ["-d", db, "-t", &one.table, "--order-by", &one.index];
            let mut args = base.to_vec();
            args.extend((order == 1).then_some("--backward"));
            // Little room, so that pages of both table and index give way to others.
            args.extend(
                heap.then_some(["--no-index-only", "--shared-buffers=512kB"]).iter().flatten(),
            );
            let judged = fs::read(one.file(dir, order)).map_err(Into::into).and_then(|expected| {
                let run = |verb: &str| program.succeed(data, &[&[verb], &args[..]].concat());
                let columns: Vec<String> = one.columns.split(", ").map(Into::into).collect();
                compare(CopyFormat::Text, &columns, &expected, &run("export")?)?;
                let rows = expected.iter().filter(|byte| **byte == b'\n').count();
                let counted = String::from_utf8(run("count")?)?;
                ensure!(counted.trim() == rows.to_string(), "{rows} rows, counted {counted}");
                Ok(())
            });
            if let Err(error) = judged {
                found.push(format!("{} {args:?}: {error}", one.table));
            }
        }
    }
    found
}

/// Compares the indexes of a database, or those of its catalogs too; `running` is a copy with a
/// server on it.
fn orders_equal(
    running: &TestCluster,
    data: &Path,
    (db, with_catalogs): (&str, bool),
) -> Result<usize> {
    let dir = running.root().join(format!("orders-{db}"));
    let scanned = expected(running, (db, with_catalogs), &dir)?;
    let mut found = Vec::new();
    for (one, good) in &scanned {
        found.extend(differences(data, db, one, *good, &dir));
    }
    let told = found.iter().take(TOLD).cloned().collect::<Vec<_>>().join("\n");
    ensure!(found.is_empty(), "{} of database {db} differ:\n{told}", found.len());
    Ok(scanned.iter().filter(|(_, good)| good[0] && good[1]).count())
}

/// A stopped cluster with the tables of `order_by.sql`.
fn fixture(install: &PgInstall) -> Result<TestCluster> {
    let source = ("orders", include_str!("order_by.sql"));
    let filled = filled_cluster(install, source, Medium::Memory, |cluster| {
        let script = in_checkout("crates/pagemill/tests/order_by.sql");
        cluster.psql_file("postgres", &script, &[])?;
        Ok(String::new())
    })?;
    Ok(filled.cluster)
}

fn running_copy(cluster: &TestCluster) -> Result<TestCluster> {
    let root = cluster_root(Medium::Memory)?;
    let mut copy = cluster.copy_to(&root)?;
    copy.start()?;
    Ok(copy)
}

#[test]
fn rows_come_in_the_order_of_every_index_made_for_it() {
    // Of two: each index takes eight runs of the program, and a third version brings no other B-trees.
    each_of(&PgInstall::two(), |install| {
        let cluster = fixture(install)?;
        let mut copy = running_copy(&cluster)?;
        let count = orders_equal(&copy, &cluster.data_dir(), ("postgres", true))?;
        copy.stop()?;
        ensure!(count > 130, "only {count} indexes were compared");
        Ok(())
    });
}

fn fixtures_in_order(install: &PgInstall) -> Result<()> {
    let prepared = Prepared::shared(install)?;
    let mut copy = prepared.copy()?;
    copy.start()?;
    for (db, fewest) in [("mvcc", 16), ("toast", 14), ("ddl", 7), ("types", 8)] {
        let count = orders_equal(&copy, &prepared.data_dir(), (db, false))?;
        ensure!(count > fewest, "only {count} indexes of {db} were compared");
    }
    copy.stop()
}

/// B-trees are the same in every version.
#[test]
fn rows_come_in_the_order_of_the_indexes_of_every_fixture() {
    each_of(&PgInstall::two(), fixtures_in_order);
}

/// A stopped cluster of the required version, to ask and to damage.
struct Fixture {
    cluster: TestCluster,
    files: Vec<(String, PathBuf)>,
}

#[derive(Debug)]
struct CommandResult {
    status: i32,
    printed: Vec<u8>,
    said: String,
}

impl Fixture {
    fn new(relations: &[&str]) -> Self {
        let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
        let mut cluster = fixture(&install).unwrap();
        cluster.start().unwrap();
        let file = |relation: &&str| {
            let sql = format!("SELECT pg_relation_filepath('{relation}')");
            let path = cluster.psql("postgres", &sql).unwrap();
            ((*relation).to_owned(), cluster.data_dir().join(path))
        };
        let files = relations.iter().map(file).collect();
        cluster.stop().unwrap();
        Self { cluster, files }
    }

    fn run(&self, args: &[&str]) -> CommandResult {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
        command.args(args).arg("-D").arg(self.cluster.data_dir()).env_remove("PGDATA");
        let output = command.output().unwrap();
        CommandResult {
            status: output.status.code().expect("ended by a signal"),
            printed: output.stdout,
            said: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn count(&self, table: &str, index: &str, more: &[&str]) -> CommandResult {
        let args = ["count", "-t", table, "--order-by", index, "--no-verify-checksums"];
        self.run(&[&args[..], more].concat())
    }

    fn file(&self, relation: &str) -> File {
        let (_, path) = self.files.iter().find(|(name, _)| name == relation).unwrap();
        OpenOptions::new().read(true).write(true).open(path).unwrap()
    }

    fn word(&self, relation: &str, offset: u64) -> u32 {
        let mut word = [0; 4];
        self.file(relation).read_exact_at(&mut word, offset).unwrap();
        u32::from_le_bytes(word)
    }

    /// Changes some bytes for the time of a check.
    fn damaged(&self, relation: &str, offset: u64, bytes: &[u8], check: impl Fn()) {
        let (file, mut before) = (self.file(relation), vec![0; bytes.len()]);
        file.read_exact_at(&mut before, offset).unwrap();
        file.write_all_at(bytes, offset).unwrap();
        check();
        file.write_all_at(&before, offset).unwrap();
    }
}

impl CommandResult {
    #[track_caller]
    fn fails_saying(&self, status: i32, parts: &[&str]) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(!self.said.contains("panicked"), "{self:?}");
        for part in parts {
            assert!(self.said.contains(part), "{part:?} is missing in {self:?}");
        }
    }
}

#[test]
fn what_cannot_give_all_rows_in_order_is_refused_with_what_can() {
    let fixture = Fixture::new(&[]);
    let refused = |table: &str, index: &str, parts: &[&str]| {
        fixture.count(table, index, &[]).fails_saying(1, parts);
    };
    let good = "the indexes public.choices can be ordered by: choices_good";
    refused("choices", "choices_god", &["choices_god", "did you mean choices_good?"]);
    refused("choices", "zzz", &["index zzz of public.choices does not exist", good]);
    refused("choices", "choices_partial", &["partial index", good]);
    refused("choices", "choices_hash", &["not a B-tree", good]);
    refused("choices", "choices_invalid", &["invalid index", "REINDEX", good]);
    refused("choices", "choices", &["is a table", good]);
    refused("choices", "orders_plain", &["an index of orders", good]);
    refused(
        "parted",
        "parted_id",
        &["partitioned", "-t public.parted_1 --order-by parted_1_id_idx"],
    );
    refused("one_page", "nothing.one_page_id", &["did you mean one_page_id?"]);
    fixture.count("one_page", "public.one_page_id", &["-j", "2"]).fails_saying(2, &["-j 2"]);
    fixture.count("o*", "one_page_id", &[]).fails_saying(2, &["tables match", "--order-by"]);
    fixture.count("one_page", "one_*", &[]).fails_saying(2, &["pattern"]);
    assert_eq!(fixture.count("parted_1", "parted_1_id_idx", &[]).printed, b"99\n");
    assert_eq!(fixture.count("one_page", "Public.One_Page_Id", &[]).printed, b"30\n");
}

#[test]
fn after_a_crash_an_unlogged_table_is_empty_and_the_visibility_map_is_not_believed() {
    let install = PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed");
    let mut cluster = fixture(&install).unwrap();
    cluster.start().unwrap();
    cluster.psql("postgres", "CHECKPOINT").unwrap();
    cluster.kill().unwrap();
    let fixture = Fixture { cluster, files: Vec::new() };
    let count = |table: &str, index: &str| fixture.count(table, index, &["--allow-unclean"]);
    assert_eq!(count("unlogged", "unlogged_id").printed, b"0\n");
    let seen = fixture.count("orders_seen", "orders_seen_plain", &["--allow-unclean", "--stats"]);
    assert_eq!(seen.printed, b"3014\n");
    let hits = seen.said.lines().find(|line| line.starts_with("buffer_hits")).unwrap();
    assert!(!hits.ends_with(" 0"), "the heap was not looked at: {hits}");
}

/// Where a link or the level of a page of an index is in its file.
fn special(block: u64, field: u64) -> u64 {
    block * BLOCK + BLOCK - 16 + 4 * field
}

#[test]
fn damaged_trees_are_told_with_their_block_and_never_looped_in() {
    let fixture = Fixture::new(&["scattered_id"]);
    let (table, index) = ("scattered", "scattered_id");
    let is_told = |parts: &[&str]| {
        let more = [&["--backward"][..], &[]];
        let said = more.map(|more| fixture.count(table, index, more));
        let found = said.iter().find(|outcome| parts.iter().all(|p| outcome.said.contains(p)));
        assert!(said.iter().all(|outcome| !outcome.said.contains("panicked")), "{said:?}");
        found.unwrap_or_else(|| panic!("{parts:?} is missing in {said:?}")).fails_saying(1, parts);
        let skipped = fixture.count(table, index, &["--on-damage", "skip"]);
        assert!(matches!(skipped.status, 0 | 1) && !skipped.said.contains("panicked"));
    };
    let first = 1;
    let second = u64::from(fixture.word(index, special(first, 1)));
    let third = u64::from(fixture.word(index, special(second, 1)));
    let to = |block: u64| (block as u32).to_le_bytes();
    let place = |block: u64| format!("fork main, block {block}:");
    // The right link of the second leaf leads to itself, to the first, past the end, to the meta page.
    for (target, what) in
        [(second, "link"), (first, "link"), (999_999, "the index has"), (3, "level 1")]
    {
        fixture
            .damaged(index, special(second, 1), &to(target), || is_told(&[&place(target), what]));
    }
    fixture.damaged(index, special(third, 0), &to(first), || {
        is_told(&[&place(third), &format!("right link of block {second} leads here")]);
    });
    fixture.damaged(index, special(second, 2), &[7], || is_told(&[&place(second)]));
    fixture.damaged(index, 24, &[0; 4], || is_told(&[&place(0), "magic"]));
    let root = u64::from(fixture.word(index, 32));
    fixture.damaged(index, 32, &to(first), || is_told(&[&place(first), "level"]));
    fixture.damaged(index, root * BLOCK + 12, &[24, 0], || is_told(&[&place(root), "no downlink"]));
    // Item 1 of the first leaf is its high key, item 2 its first entry.
    let pointer = fixture.word(index, first * BLOCK + 24 + 4);
    let tuple = first * BLOCK + u64::from(pointer & 0x7FFF);
    fixture.damaged(index, tuple, &[0xFF, 0x7F, 0, 0], || {
        is_told(&["fork main, block 1, line pointer 2", "leads to (2147418112,"]);
    });
    fixture.damaged(index, tuple + 4, &[0x2C, 1], || {
        is_told(&["line pointer 300", "an index entry leads here, past the last"]);
    });
}

#[test]
fn a_damaged_page_is_lost_alone_when_damage_is_skipped() {
    let fixture = Fixture::new(&["scattered", "scattered_id"]);
    let run = |verb: &str, more: &[&str]| {
        let args = [verb, "-t", "scattered", "--order-by", "scattered_id", "--no-index-only"];
        fixture.run(&[&args[..], more].concat())
    };
    let sound = run("export", &[]);
    fixture.damaged("scattered", 3 * BLOCK + 5000, b"damage", || {
        run("export", &[]).fails_saying(1, &["block 3", "checksum"]);
        run("count", &[]).fails_saying(1, &["block 3", "checksum"]);
        let rest = run("export", &["--on-damage", "skip"]);
        rest.fails_saying(1, &["block 3", "1 loss"]);
        let counted = run("count", &["--on-damage", "skip"]);
        counted.fails_saying(1, &["block 3", "1 loss"]);
        let rows = rest.printed.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(counted.printed, format!("{rows}\n").into_bytes());
        assert!(rows < 40_000 && rows > 39_000);
    });
    assert_eq!(run("export", &[]).printed, sound.printed);
    // The index ends early, and that is said.
    let leaf = u64::from(fixture.word("scattered_id", special(1, 1)));
    fixture.damaged("scattered_id", leaf * BLOCK + 5000, b"damage", || {
        let rest = run("count", &["--on-damage", "skip"]);
        rest.fails_saying(1, &["checksum", "the index is read no further"]);
    });
}

#[test]
fn statistics_tell_rows_and_pages_of_both_table_and_index() {
    let fixture = Fixture::new(&["scattered", "scattered_id"]);
    let args = ["--stats=json", "--no-index-only"];
    let said = fixture.count("scattered", "scattered_id", &args).said;
    let pages = |name: &str| fixture.file(name).metadata().unwrap().len() / BLOCK;
    let number = |name: &str| -> u64 {
        let (_, rest) = said.split_once(&format!("\"{name}\":")).unwrap();
        rest.split([',', '}']).next().unwrap().parse().unwrap()
    };
    let heap = pages("scattered");
    assert_eq!(number("rows"), 40_000);
    assert!(number("buffer_misses") >= heap && number("buffer_hits") >= 40_000 - heap, "{said}");
    // Few pages are read twice: those of the index that were met before it turned out scattered.
    assert!(number("pages") <= heap + pages("scattered_id") + 20, "{said}");
}
