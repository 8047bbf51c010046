//! Damaged, incomplete and running clusters: refused or reported with file, fork, block and line
//! pointer, never a panic and never a silent loss. Each test damages its own copy of a cluster
//! that a real server made and stopped.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Output;

use anyhow::Result;
use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::prepared::{empty_cluster, filled_cluster};
use pagemill_testkit::program::READ_VARIABLE;
use pagemill_testkit::{Medium, PgInstall, Program, TestCluster};

const BLOCK: u64 = 8192;

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pagemill"))
}

/// True, and said, when the flags of all commands are those of a mapping: nothing is mapped under a running server.
fn maps_files() -> bool {
    let maps = std::env::var(READ_VARIABLE).is_ok_and(|flags| flags.contains("mmap"));
    if maps {
        println!("SKIPPED: nothing is mapped under a running server");
    }
    maps
}

fn installed() -> PgInstall {
    PgInstall::find(REQUIRED_MAJOR).expect("PostgreSQL 15 is needed")
}

/// Runs these statements, and says where the file of `t` is.
fn fill(cluster: &TestCluster, statements: &[&str]) -> Result<String> {
    for statement in statements {
        cluster.psql("postgres", statement)?;
    }
    cluster.psql("postgres", "SELECT pg_relation_filepath('t')")
}

/// A stopped cluster with a table `t` of its own.
struct Fixture {
    cluster: TestCluster,
    file: PathBuf,
}

impl Fixture {
    fn new(statements: &[&str]) -> Self {
        let mut cluster = empty_cluster(&installed()).unwrap();
        cluster.start().unwrap();
        let file = fill(&cluster, statements).unwrap();
        cluster.stop().unwrap();
        let file = cluster.data_dir().join(file);
        Self { cluster, file }
    }

    /// 2000 rows on several pages, frozen.
    fn with_numbers() -> Self {
        const STATEMENTS: [&str; 2] = [
            "CREATE TABLE t AS SELECT i, repeat('x', 100) AS filler FROM generate_series(1, 2000) i",
            "VACUUM (FREEZE, ANALYZE) t",
        ];
        let source = ("numbers", include_str!("damage.rs"));
        let filled = filled_cluster(&installed(), source, Medium::Memory, |cluster| {
            fill(cluster, &STATEMENTS)
        });
        let filled = filled.unwrap();
        let file = filled.cluster.data_dir().join(filled.notes());
        Self { cluster: filled.cluster, file }
    }

    fn run(&self, args: &[&str]) -> CommandResult {
        CommandResult::of(program().run(&self.cluster.data_dir(), args).unwrap())
    }

    fn export(&self, more: &[&str]) -> CommandResult {
        self.run(&[&["export", "-d", "postgres", "-t", "public.t"], more].concat())
    }

    fn edit(&self) -> File {
        OpenOptions::new().read(true).write(true).open(&self.file).unwrap()
    }

    fn poke(&self, offset: u64, bytes: &[u8]) {
        self.edit().write_all_at(bytes, offset).unwrap();
    }

    fn peek(&self, offset: u64) -> u32 {
        let mut word = [0; 4];
        self.edit().read_exact_at(&mut word, offset).unwrap();
        u32::from_le_bytes(word)
    }

    /// Where the tuple of a line pointer (from 1) of block 0 starts in the file.
    fn tuple(&self, line_pointer: u64) -> u64 {
        u64::from(self.peek(24 + 4 * (line_pointer - 1)) & 0x7FFF)
    }
}

#[derive(Debug)]
struct CommandResult {
    status: i32,
    rows: usize,
    said: String,
}

impl CommandResult {
    fn of(output: Output) -> Self {
        Self {
            status: output.status.code().expect("ended by a signal"),
            rows: output.stdout.iter().filter(|&&b| b == b'\n').count(),
            said: String::from_utf8(output.stderr).unwrap(),
        }
    }

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
fn a_flipped_bit_is_found_by_the_checksum_and_only_its_page_is_lost() {
    let fixture = Fixture::with_numbers();
    let at = 3 * BLOCK + 5000;
    fixture.poke(at, &(fixture.peek(at) ^ 1).to_le_bytes());
    let place = ["fork main, block 3", "checksum", "computed"];
    fixture.export(&[]).fails_saying(1, &place);
    fixture.run(&["count", "-d", "postgres", "-t", "t"]).fails_saying(1, &place);
    let rest = fixture.export(&["--on-damage", "skip"]);
    rest.fails_saying(1, &place);
    assert!(rest.rows > 1900 && rest.rows < 2000, "{rest:?}");
    let unchecked = fixture.export(&["--no-verify-checksums"]);
    assert_eq!((unchecked.status, unchecked.rows), (0, 2000), "{unchecked:?}");
}

#[test]
fn several_jobs_report_the_same_damage_as_one() {
    let fixture = Fixture::with_numbers();
    for block in [0, 7, 20] {
        fixture.poke(block * BLOCK + 6000, b"damage");
    }
    let one = fixture.export(&["--on-damage", "skip"]);
    let many = fixture.export(&["--on-damage", "skip", "-j", "3"]);
    one.fails_saying(1, &["block 0:", "block 7:", "block 20:"]);
    assert_eq!((one.rows, &one.said), (many.rows, &many.said));
    fixture.export(&["-j", "3"]).fails_saying(1, &["block 0:"]);
}

#[test]
fn a_page_moved_to_another_block_does_not_pass() {
    let fixture = Fixture::with_numbers();
    let mut page = [0; BLOCK as usize];
    fixture.edit().read_exact_at(&mut page, BLOCK).unwrap();
    fixture.poke(5 * BLOCK, &page);
    fixture.export(&[]).fails_saying(1, &["block 5", "checksum"]);
}

#[test]
fn a_page_header_that_cannot_be_is_named() {
    let fixture = Fixture::with_numbers();
    fixture.poke(2 * BLOCK + 12, &9000u16.to_le_bytes());
    let unchecked = ["--no-verify-checksums"];
    fixture.export(&unchecked).fails_saying(1, &["block 2", "page header", "lower 9000"]);
}

#[test]
fn a_bad_line_pointer_loses_one_row() {
    let fixture = Fixture::with_numbers();
    let beyond_the_page = 0x7FF8u32 | 1 << 15 | 100 << 17;
    fixture.poke(24 + 4 * 2, &beyond_the_page.to_le_bytes());
    let unchecked = ["--no-verify-checksums"];
    fixture.export(&unchecked).fails_saying(1, &["block 0, line pointer 3", "line pointer"]);
    let rest = fixture.export(&["--no-verify-checksums", "--on-damage", "skip"]);
    rest.fails_saying(1, &["line pointer 3"]);
    assert_eq!(rest.rows, 1999);
}

#[test]
fn a_corrupt_varlena_names_its_column() {
    let fixture = Fixture::with_numbers();
    // The text starts behind a header of 24 bytes and an integer of 4; its length is one byte.
    fixture.poke(fixture.tuple(5) + 28, &[0xFF]);
    let unchecked = fixture.export(&["--no-verify-checksums"]);
    unchecked.fails_saying(1, &["block 0, line pointer 5", "varlena"]);
}

#[test]
fn a_file_cut_in_the_middle_of_a_block_is_damage() {
    let fixture = Fixture::with_numbers();
    let len = fixture.edit().metadata().unwrap().len();
    fixture.edit().set_len(len - 3000).unwrap();
    let place = ["fork main", "middle of a block", "5192 of 8192 bytes"];
    fixture.export(&[]).fails_saying(1, &place);
    let rest = fixture.export(&["--on-damage", "skip"]);
    rest.fails_saying(1, &place);
    assert!(rest.rows > 1900, "{rest:?}");
}

#[test]
fn a_lost_file_is_damage_and_not_an_empty_table() {
    let fixture = Fixture::with_numbers();
    fs::remove_file(&fixture.file).unwrap();
    fixture.export(&[]).fails_saying(1, &["public.t", "missing"]);
    let rest = fixture.export(&["--on-damage", "skip"]);
    rest.fails_saying(1, &["missing"]);
    assert_eq!(rest.rows, 0);
}

/// The first segment is a sparse file of a full gigabyte of pages never written, so the test costs
/// no disk. PostgreSQL itself would take the table for empty after such a loss.
#[test]
fn a_lost_segment_before_others_is_damage() {
    let fixture = Fixture::with_numbers();
    let later = PathBuf::from(format!("{}.2", fixture.file.display()));
    fs::copy(&fixture.file, later).unwrap();
    fixture.edit().set_len(1 << 30).unwrap();
    let place = [".1:", "blocks 131072 to 262143", "the segment file is missing"];
    fixture.export(&["--no-verify-checksums"]).fails_saying(1, &place);
    let rest = fixture.export(&["--no-verify-checksums", "--on-damage", "skip"]);
    rest.fails_saying(1, &place);
    assert_eq!(rest.rows, 4000);
}

#[test]
fn a_lost_last_segment_is_told_by_the_size_that_the_last_vacuum_noted() {
    let fixture = Fixture::new(&[
        "CREATE TABLE t AS SELECT 1 AS i",
        "UPDATE pg_class SET relpages = 131100 WHERE relname = 't'",
    ]);
    fixture.edit().set_len(1 << 30).unwrap();
    let place = [".1:", "blocks 131072 to 131099", "the segment file is missing"];
    fixture.export(&[]).fails_saying(1, &place);
}

#[test]
fn a_toast_value_without_all_its_chunks_names_the_row_and_the_chunk() {
    let fixture = Fixture::new(&[
        "CREATE TABLE t (i int, v text)",
        "ALTER TABLE t ALTER v SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT i, repeat('y', 50000) FROM generate_series(1, 3) i",
        "VACUUM FREEZE t",
    ]);
    let sql = "SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE relname = 't'";
    let Fixture { mut cluster, file } = fixture;
    cluster.start().unwrap();
    let toast = cluster.psql("postgres", sql).unwrap();
    cluster.stop().unwrap();
    // A page of zeros is a sound page: only the missing chunks tell.
    let path = cluster.data_dir().join(toast);
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(&[0; 8192], 8 * BLOCK).unwrap();
    let fixture = Fixture { cluster, file };
    let place = ["line pointer", "column v", "TOAST value", "chunk"];
    fixture.export(&[]).fails_saying(1, &place);
    let rest = fixture.export(&["--on-damage", "skip"]);
    rest.fails_saying(1, &place);
    assert_eq!(rest.rows, 2);
}

#[test]
fn a_lost_commit_log_is_named_with_the_transaction_that_needs_it() {
    let fixture = Fixture::new(&["CREATE TABLE t (i int)", "INSERT INTO t VALUES (1)"]);
    let log = fixture.cluster.data_dir().join("pg_xact/0000");
    fs::rename(&log, log.with_extension("away")).unwrap();
    let asked = fixture.run(&["count", "-d", "postgres", "-t", "t"]);
    asked.fails_saying(1, &["pg_xact/0000", "missing", "transaction"]);
}

#[test]
fn a_running_server_is_refused_unless_its_files_are_asked_for_as_they_are() {
    if maps_files() {
        return;
    }
    let mut fixture = Fixture::with_numbers();
    fixture.cluster.start().unwrap();
    fixture.export(&[]).fails_saying(1, &["a server is running", "--live"]);
    let live = fixture.export(&["--live"]);
    assert_eq!((live.status, live.rows), (0, 2000), "{live:?}");
    assert!(live.said.contains("advisory"), "{live:?}");
}

#[test]
fn an_unclean_cluster_is_read_as_after_redo_or_as_its_files_lie() {
    let mut fixture = Fixture::with_numbers();
    fixture.cluster.start().unwrap();
    fixture.cluster.psql("postgres", "CREATE UNLOGGED TABLE u AS SELECT 1").unwrap();
    fixture.cluster.psql("postgres", "CHECKPOINT").unwrap();
    fixture.cluster.kill().unwrap();
    let redone: &[_] = &["was not shut down", "after redo of its WAL"];
    let as_they_lie: &[_] = &["\"in production\"", "advisory"];
    for (flag, says) in [(&[][..], redone), (&["--allow-unclean"], as_they_lie)] {
        let read = fixture.export(flag);
        assert_eq!((read.status, read.rows), (0, 2000), "{read:?}");
        assert!(says.iter().all(|words| read.said.contains(words)), "{read:?}");
        // A server would empty the unlogged table before anybody could read it.
        let unlogged = fixture.run(&[&["export", "-d", "postgres", "-t", "u"], flag].concat());
        assert_eq!((unlogged.status, unlogged.rows), (0, 0), "{unlogged:?}");
    }
}

#[test]
fn a_damaged_control_file_is_damage_and_another_block_size_a_refusal() {
    let fixture = Fixture::with_numbers();
    let path = fixture.cluster.data_dir().join("global/pg_control");
    let sound = fs::read(&path).unwrap();
    let mut bytes = sound.clone();
    bytes[100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    fixture.run(&["ls"]).fails_saying(1, &["pg_control", "CRC"]);
    fs::write(&path, &sound[..200]).unwrap();
    fixture.run(&["ls"]).fails_saying(1, &["pg_control"]);
    fs::write(&path, sound).unwrap();
    fs::write(fixture.cluster.data_dir().join("PG_VERSION"), "19\n").unwrap();
    fixture.run(&["ls"]).fails_saying(1, &["PostgreSQL 19", "14 to 18"]);
}

#[test]
fn damage_to_the_catalogs_is_never_skipped() {
    let fixture = Fixture::with_numbers();
    let base = fixture.file.parent().unwrap();
    let map = fs::read(base.join("pg_filenode.map")).unwrap();
    let mut broken = map.clone();
    broken[20] ^= 1;
    fs::write(base.join("pg_filenode.map"), &broken).unwrap();
    fixture.export(&["--on-damage", "skip"]).fails_saying(1, &["pg_filenode.map"]);
    fs::write(base.join("pg_filenode.map"), map).unwrap();
    let listed = fixture.run(&["inspect", "-d", "postgres", "-t", "pg_attribute", "--json"]);
    assert_eq!(listed.status, 0, "{listed:?}");
}

#[test]
fn names_that_do_not_exist_suggest_the_near_ones() {
    let fixture = Fixture::with_numbers();
    fixture
        .run(&["ls", "-d", "postgrse"])
        .fails_saying(2, &["postgrse", "did you mean", "postgres"]);
    let asked = fixture.run(&["count", "-d", "postgres", "-t", "pg_clas"]);
    asked.fails_saying(2, &["pg_clas", "did you mean", "pg_class"]);
    let asked = fixture.export(&["--columns", "i,fillre"]);
    asked.fails_saying(2, &["fillre", "did you mean", "filler"]);
}

/// 30000 segments are missing before it, which is as many losses; the blocks they would have had
/// are not looked at one by one.
#[test]
fn a_stray_segment_of_a_high_number_does_not_keep_a_scan_busy() {
    let fixture = Fixture::with_numbers();
    let stray = PathBuf::from(format!("{}.30000", fixture.file.display()));
    let mut first_page = vec![0; BLOCK as usize];
    fixture.edit().read_exact_at(&mut first_page, 0).unwrap();
    fs::write(stray, first_page).unwrap();
    let skip = ["--no-verify-checksums", "--on-damage", "skip"];
    let one = fixture.export(&skip);
    one.fails_saying(1, &["blocks 131072 to 262143", "30000 losses"]);
    assert!(one.rows > 2000, "{}", one.rows);
    let count = [&["count", "-d", "postgres", "-t", "t", "-j", "3"], &skip[..]].concat();
    for other in [fixture.export(&[&skip[..], &["-j", "3"]].concat()), fixture.run(&count)] {
        assert_eq!((other.status, &other.said), (1, &one.said));
    }
}

#[test]
fn a_count_of_several_jobs_reports_losses_in_the_order_of_blocks() {
    let fixture = Fixture::with_numbers();
    let blocks = fixture.edit().metadata().unwrap().len() / BLOCK;
    // The table is made long enough for every job to have several shares of it.
    fixture.edit().set_len(8000 * BLOCK).unwrap();
    let damaged: Vec<u64> = (blocks..8000).step_by(97).collect();
    for block in &damaged {
        fixture.poke(block * BLOCK + 18, b"damage");
    }
    let count =
        |more: &[&str]| fixture.run(&[&["count", "-d", "postgres", "-t", "t"], more].concat());
    let one = count(&["--on-damage", "skip"]);
    one.fails_saying(1, &[&format!("{} losses", damaged.len())]);
    for _ in 0..3 {
        assert_eq!(count(&["--on-damage", "skip", "-j", "4"]).said, one.said);
        let stopped = count(&["-j", "4"]);
        stopped.fails_saying(1, &[&format!("block {blocks}:")]);
        assert_eq!(stopped.said, count(&[]).said);
    }
}

#[test]
fn an_export_of_large_values_by_several_jobs_is_that_of_one() {
    let fixture = Fixture::new(&[
        "CREATE TABLE t (i int, v text)",
        "ALTER TABLE t ALTER v SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT i, repeat(chr(64 + i), 3000000) FROM generate_series(1, 9) i",
        "VACUUM FREEZE t",
    ]);
    let export = |jobs: &str| {
        let args = ["export", "-d", "postgres", "-t", "public.t", "-j", jobs];
        program().run(&fixture.cluster.data_dir(), &args).unwrap()
    };
    let (one, many) = (export("1"), export("3"));
    assert!(one.status.success() && one.stdout.len() > 27_000_000);
    assert!(one.stdout == many.stdout && many.status.success());
}

#[test]
fn a_partition_that_cannot_be_read_is_refused_before_anything_is_written() {
    let fixture = Fixture::new(&[
        "CREATE TABLE p (i int) PARTITION BY RANGE (i)",
        "CREATE TABLE t PARTITION OF p FOR VALUES FROM (0) TO (100)",
        "INSERT INTO t SELECT generate_series(1, 50)",
        "CREATE FOREIGN DATA WRAPPER w",
        "CREATE SERVER s FOREIGN DATA WRAPPER w",
        "CREATE FOREIGN TABLE z PARTITION OF p FOR VALUES FROM (100) TO (200) SERVER s",
    ]);
    let refused = fixture.run(&["export", "-d", "postgres", "-t", "p", "--header"]);
    refused.fails_saying(1, &["public.z is a foreign table"]);
    assert_eq!(refused.rows, 0);
    fixture.run(&["count", "-d", "postgres", "-t", "p"]).fails_saying(1, &["public.z"]);
}

#[test]
fn the_statistics_are_printed_for_work_that_failed_too() {
    let fixture = Fixture::with_numbers();
    fixture.poke(3 * BLOCK + 5000, b"damage");
    let failed = fixture.export(&["--stats=json"]);
    failed.fails_saying(1, &["block 3: checksum", "\"read_calls\":"]);
    fixture.run(&["ls", "-d", "none", "--stats=json"]).fails_saying(2, &["\"read_calls\":"]);
}

/// The server keeps the old length in its catalogs, the file is shorter by the time it is read.
#[test]
fn a_table_that_a_running_server_truncates_ends_there() {
    if maps_files() {
        return;
    }
    let mut fixture = Fixture::new(&[
        "CREATE TABLE t AS SELECT i, repeat('x', 1000) AS filler FROM generate_series(1, 200000) i",
    ]);
    fixture.cluster.start().unwrap();
    let args = ["export", "--live", "-d", "postgres", "-t", "public.t"];
    let mut child = program()
        .command(&fixture.cluster.data_dir(), &args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // One byte tells that the export runs; the pipe's size keeps it from running far.
    let mut out = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut out, &mut [0]).unwrap();
    let len = 100 * BLOCK;
    fixture.edit().set_len(len).unwrap();
    let rows = std::io::Read::bytes(std::io::BufReader::new(out));
    let rows = rows.filter(|byte| *byte.as_ref().unwrap() == b'\n').count();
    let ended = CommandResult::of(child.wait_with_output().unwrap());
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(!ended.said.contains("short read"), "{ended:?}");
    assert!((700..200_000).contains(&rows), "{rows}");
}

#[test]
fn what_a_crash_leaves_of_unlogged_relations_is_what_they_were_made_with() {
    let mut fixture = Fixture::with_numbers();
    fixture.cluster.start().unwrap();
    for statement in [
        "CREATE UNLOGGED TABLE u (i int, s text)",
        "INSERT INTO u SELECT 1, 'x'",
        "CREATE UNLOGGED SEQUENCE s START 7",
        "SELECT nextval('s'), nextval('s')",
        "CHECKPOINT",
    ] {
        fixture.cluster.psql("postgres", statement).unwrap();
    }
    let file = fixture.cluster.psql("postgres", "SELECT pg_relation_filepath('s')").unwrap();
    fixture.cluster.kill().unwrap();
    let export = |name, more: &[&str]| {
        let args = ["export", "--allow-unclean", "-d", "postgres", "-t", name];
        fixture.run(&[&args, more].concat())
    };
    let (table, sequence) = (export("u", &[]), export("s", &[]));
    assert_eq!((table.status, table.rows, sequence.status, sequence.rows), (0, 0, 0, 1));
    let init = fixture.cluster.data_dir().join(format!("{file}_init"));
    let sound = fs::read(&init).unwrap();
    fs::write(&init, [&sound[..8000], &[1; 192]].concat()).unwrap();
    export("s", &[]).fails_saying(1, &["_init: fork init, block 0"]);
    fs::remove_file(&init).unwrap();
    export("s", &[]).fails_saying(1, &["fork init", "missing"]);
}

#[test]
fn a_materialized_view_never_filled_is_refused_by_name_and_passed_over_by_wildcards() {
    let fixture = Fixture::new(&[
        "CREATE TABLE t AS SELECT 1 AS i",
        "CREATE MATERIALIZED VIEW tv AS SELECT * FROM t WITH NO DATA",
    ]);
    let remedy = ["public.tv", "has not been populated", "REFRESH MATERIALIZED VIEW"];
    fixture.run(&["export", "-d", "postgres", "-t", "tv"]).fails_saying(1, &remedy);
    let both = fixture.run(&["count", "-d", "postgres", "-t", "t", "-t", "public.tv"]);
    both.fails_saying(1, &remedy);
    assert_eq!(both.rows, 1);
    for pattern in ["t*", "tv*"] {
        let passed = fixture.run(&["count", "-d", "postgres", "-t", pattern]);
        passed.fails_saying(0, &["public.tv: passed over", "not been populated"]);
        assert_eq!(passed.rows, usize::from(pattern == "t*"));
    }
}
