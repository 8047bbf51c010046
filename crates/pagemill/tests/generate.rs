//! `pagemill generate`, with PostgreSQL as the judge: the files it makes are put in the place of those of a table of
//! the same shape, and a server of every installed version reads them, checks them and goes on working with them.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::program::end_signals;
use pagemill_testkit::{PgInstall, TestCluster, each_of};

const DATABASE: &str = "postgres";
/// Enough for several batches of pages.
const T_ROWS: u64 = 13_000;
const BIGTABLE_ROWS: u64 = 200_000;
const SEED: u64 = 7;

fn generate(directory: &Path, words: &str) -> Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    command.arg("generate").arg(directory).args(words.split(' '));
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{words}: {}: {said}", output.status);
    Ok(output)
}

/// What COPY should print of `bigtable`: SplitMix64, of which the upper 31 bits are taken.
fn bigtable_text() -> String {
    let integer = |place: u64| {
        let mut x = SEED.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) >> 33
    };
    (1..=BIGTABLE_ROWS).fold(String::new(), |mut text, row| {
        let [a, b, c] = [0, 1, 2].map(|column| integer(row * 3 + column));
        let _ = writeln!(text, "{a}\t{b}\t{c}");
        text
    })
}

/// Puts the files made in `directory` in the place of those of a table of the stopped cluster.
fn put_in_place(
    cluster: &TestCluster,
    directory: &Path,
    table: &str,
    file_path: &str,
) -> Result<()> {
    for suffix in ["", "_fsm", "_vm"] {
        let place = cluster.data_dir().join(format!("{file_path}{suffix}"));
        fs::rename(directory.join(format!("{table}{suffix}")), &place)
            .with_context(|| place.display().to_string())?;
        cluster.account().own(&place)?;
    }
    Ok(())
}

fn check(cluster: &TestCluster, sql: &str, expected: &str) -> Result<()> {
    let given = cluster.psql(DATABASE, sql)?;
    ensure!(given == expected, "{sql}: {given} instead of {expected}");
    Ok(())
}

/// Reads, verifies and changes a table whose files were made.
fn judge(cluster: &TestCluster, (table, column): (&str, &str), rows: u64) -> Result<()> {
    let count = format!("SELECT count(*) FROM {table}");
    let verify = format!(
        "SELECT count(*) FROM verify_heapam('{table}', check_toast => false, skip => 'none')"
    );
    let blocks = format!("SELECT pg_relation_size('{table}') / 8192");
    check(cluster, &count, &rows.to_string())?;
    check(cluster, &verify, "0")?;
    let visible = format!(
        "SELECT count(*) FILTER (WHERE all_visible AND all_frozen) FROM pg_visibility_map('{table}')"
    );
    check(cluster, &visible, &cluster.psql(DATABASE, &blocks)?)?;
    check(cluster, &format!("SELECT count(*) FROM pg_check_frozen('{table}')"), "0")?;
    cluster.psql(DATABASE, &format!("VACUUM (DISABLE_PAGE_SKIPPING, FREEZE) {table}"))?;
    cluster.psql(DATABASE, &format!("INSERT INTO {table} SELECT * FROM {table} LIMIT 100"))?;
    cluster.psql(DATABASE, &format!("DELETE FROM {table} WHERE ctid < '(1,1)'"))?;
    cluster.psql(DATABASE, &format!("VACUUM {table}"))?;
    cluster.psql(DATABASE, &format!("CREATE INDEX ON {table} ({column})"))?;
    check(cluster, &verify, "0")
}

fn server_takes_files(install: &PgInstall) -> Result<()> {
    let mut cluster = empty_cluster(install)?;
    cluster.start()?;
    for extension in ["amcheck", "pg_visibility"] {
        cluster.psql(DATABASE, &format!("CREATE EXTENSION {extension}"))?;
    }
    let mut paths = Vec::new();
    for (table, columns) in [("t", "filler text"), ("bigtable", "a int, b int, c int")] {
        cluster.psql(DATABASE, &format!("CREATE TABLE {table} ({columns})"))?;
        // What the server makes of the same rows has as many blocks.
        cluster.psql(DATABASE, &format!("CREATE TABLE like_{table} (LIKE {table})"))?;
        let path = format!("SELECT pg_relation_filepath('{table}')");
        paths.push((table, cluster.psql(DATABASE, &path)?));
    }
    cluster.stop()?;
    let directory = cluster.root().join("made");
    generate(&directory, &format!("--table t --rows {T_ROWS} --checksums"))?;
    let bigtable = format!("--table bigtable --rows {BIGTABLE_ROWS} --seed {SEED} --checksums");
    generate(&directory, &bigtable)?;
    for (table, path) in &paths {
        put_in_place(&cluster, &directory, table, path)?;
    }
    cluster.start()?;
    let wrong = format!(
        "SELECT count(*) FROM t FULL JOIN generate_series(1, {T_ROWS}) i \
         ON filler = repeat('a', 100) || i || repeat('b', 500) WHERE filler IS NULL OR i IS NULL"
    );
    check(&cluster, &wrong, "0")?;
    let printed = cluster.copy_out(DATABASE, "COPY bigtable TO STDOUT")?;
    ensure!(printed == bigtable_text().as_bytes(), "bigtable has other rows");
    for (table, column, rows) in [("t", "filler", T_ROWS), ("bigtable", "a", BIGTABLE_ROWS)] {
        let sizes =
            format!("SELECT pg_relation_size('{table}') = pg_relation_size('like_{table}')");
        cluster.psql(DATABASE, &format!("INSERT INTO like_{table} SELECT * FROM {table}"))?;
        check(&cluster, &sizes, "t")?;
        judge(&cluster, (table, column), rows)?;
    }
    Ok(())
}

#[test]
fn servers_take_the_files_for_those_of_a_table_of_their_own() {
    each_of(&PgInstall::all(), server_takes_files);
}

#[test]
fn what_was_made_is_told_on_one_line_and_never_made_over() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let told = String::from_utf8(generate(directory.path(), "-t bigtable --rows 400")?.stdout)?;
    let start = format!("{}: 400 rows in 3 blocks, ", directory.path().join("bigtable").display());
    assert!(told.starts_with(&start) && told.ends_with(" s\n"), "{told}");
    let before = fs::read(directory.path().join("bigtable"))?;
    let again = generate(directory.path(), "-t bigtable --rows 4").unwrap_err().to_string();
    assert!(again.contains("bigtable") && again.contains("exit status: 1"), "{again}");
    assert_eq!(fs::read(directory.path().join("bigtable"))?, before);
    let nowhere = directory.path().join("missing/directory");
    let nowhere = generate(&nowhere, "-t bigtable --rows 4").unwrap_err().to_string();
    assert!(nowhere.contains("there is no directory to create it in"), "{nowhere}");
    let half = generate(&directory.path().join("half"), "-t bigtable --rows 400 --fillfactor 50");
    assert!(String::from_utf8(half?.stdout)?.contains("400 rows in 5 blocks"), "half as full");
    Ok(())
}

/// It left gigabytes of a table that nobody had finished when it was stopped at the terminal.
#[test]
fn a_signal_leaves_no_file_behind() -> Result<()> {
    for (name, number) in end_signals() {
        let directory = tempfile::tempdir()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
        command.arg("generate").arg(directory.path()).args(["-t", "t", "--rows", "20000000"]);
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let first = directory.path().join("t");
        while !fs::metadata(&first).is_ok_and(|found| found.len() > 0) {
            ensure!(child.try_wait()?.is_none(), "{name}: it ended by itself");
            thread::sleep(Duration::from_millis(5));
        }
        Command::new("kill").arg(name).arg(child.id().to_string()).status()?;
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(number), "{said}");
        assert!(said.contains("what was made so far is removed"), "{said}");
        assert_eq!(fs::read_dir(directory.path())?.count(), 0, "{name}: {said}");
    }
    Ok(())
}
