//! Tables that are read by an index alone, held against the server's answers: where the visibility map speaks for all blocks,
//! for most of them and for few; after deletes, updates and a rollback; stopped, killed, and with a damaged index.
//!
//! Invariant under test: which blocks an index answers for changes no row, whatever its columns are called and keep.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

const TABLES: &str = "
    create type mood as enum ('sad', 'ok', 'happy');
    create domain price as numeric(9,2);
    create table kept(k int8 primary key, c int, d date, n numeric(12,2), t text, nm name, m mood, x price, pad text)
        with (autovacuum_enabled = off);
    insert into kept select i, case when i % 500 = 0 then null else (i * 7919) % 4000 end, date '1992-01-01' + (i % 900)::int,
            (i % 3000) / 7.0, case when i % 11 = 0 then null else 't' || i % 300 end, 'n' || i % 50,
            (array['sad', 'ok', 'happy'])[1 + i % 3]::mood, i % 777, repeat('z', 60)
        from generate_series(1, 40000) i;
    create index kept_c on kept (c);
    create index kept_dn on kept (d desc, n);
    create index kept_t on kept (t collate \"C\" text_pattern_ops);
    create index kept_nm on kept (nm);
    create index kept_m on kept (m) include (c);
    create index kept_x on kept (x, c) with (deduplicate_items = off);
    create index kept_e on kept ((c + 1)) include (t);
    alter table kept rename column d to day;
    alter table kept rename column n to d;
";
/// Few blocks are left to the table.
const CHANGES: &str = "
    update kept set c = c + 1 where k between 5000 and 6000;
    delete from kept where k between 9000 and 9500;
    delete from kept where k = 40000;
";
/// Rows as long as the others, which have no room on their blocks.
const ROLLED_BACK: &str = "
    begin;
    insert into kept select i, i, null, 1, 'x', 'y', 'ok', 1, repeat('z', 90) from generate_series(90000, 90300) i;
    rollback;
";
/// Too many.
const MORE_CHANGES: &str = "update kept set c = c - 1 where k % 50 = 3";

/// Each with the index that tells all, if one does.
const ASKED: [(&str, Option<&str>); 17] = [
    ("select count(c), sum(c), count(*), count(distinct c) from kept", Some("kept_c")),
    ("select c, count(*) from kept group by c order by 2 desc, 1 limit 20", Some("kept_c")),
    ("select count(*) from kept where c > 1500", Some("kept_c")),
    ("select day, min(d), max(d), sum(d) from kept group by day order by 1", Some("kept_dn")),
    ("select count(distinct day) from kept where day > '1993-01-01'", Some("kept_dn")),
    ("select t, count(*) from kept group by t order by t collate \"C\"", Some("kept_t")),
    ("select nm, count(*) from kept group by nm order by 1", None),
    ("select m, count(*), sum(c) from kept group by m order by 1", Some("kept_m")),
    ("select x, count(*), sum(c) from kept group by x order by 1 limit 50", Some("kept_x")),
    ("select sum(c + 1), count(t) from kept", None),
    ("select sum(k) from kept", Some("kept_pkey")),
    ("select count(*) from kept where k > 100", Some("kept_pkey")),
    ("select ctid, c from kept where c = 17 order by 1", None),
    ("select max(pad), sum(c) from kept", None),
    ("select count(*) from kept a where not exists (select from kept b where b.c = a.k)", None),
    (
        "select count(*) from kept a where exists (select from kept b where b.c = a.k and b.c <> 5)",
        None,
    ),
    ("select c from (select c from kept offset 39490) s where c is null and c > 0", Some("kept_c")),
];

fn answer(cluster: &TestCluster, arguments: &[&str]) -> Result<std::process::Output> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
    program.arg("sql").arg("-D").arg(cluster.data_dir()).args(["-d", "postgres"]);
    Ok(program.args(["-j", "2", "--format", "csv"]).args(arguments).output()?)
}

fn answered(cluster: &TestCluster, statement: &str) -> Result<String> {
    let output = answer(cluster, &[statement])?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{statement}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

fn known(cluster: &TestCluster) -> Result<Vec<String>> {
    let of = |(statement, _): &(&str, Option<&str>)| {
        cluster.psql("postgres", &format!("copy ({statement}) to stdout csv header"))
    };
    ASKED.iter().map(of).collect()
}

/// The answers are those that the server gave; where `by_index`, from the indexes.
fn check(cluster: &TestCluster, known: &[String], by_index: bool) -> Result<()> {
    for ((statement, index), known) in ASKED.iter().zip(known) {
        assert_eq!(answered(cluster, statement)?.trim_end(), known.trim_end(), "{statement}");
        let told = answered(cluster, &format!("explain analyze {statement}"))?;
        match index.filter(|_| by_index) {
            Some(index) => {
                let by = format!("access=index {index} alone, ");
                assert!(told.contains(&by), "{statement}: {told}");
            }
            None if by_index && statement.contains("exists") => {}
            None => assert!(!told.contains(" alone, "), "{statement}: {told}"),
        }
    }
    Ok(())
}

#[test]
fn an_index_alone_answers_as_its_table_does() -> Result<()> {
    let install = PgInstall::find(15).context("no PostgreSQL 15")?;
    let options = ClusterOptions { data_checksums: Some(true), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    cluster.psql("postgres", TABLES)?;
    cluster.psql("postgres", "vacuum analyze kept")?;
    let expected = known(&cluster)?;
    let shown = "select c, c + 1 from kept";
    let in_order =
        cluster.psql("postgres", &format!("copy ({shown} order by ctid) to stdout csv"))?;
    cluster.stop()?;
    check(&cluster, &expected, true)?;
    // Rows that are only shown come as they lie in the table.
    let told = answered(&cluster, shown)?;
    assert_eq!(told.lines().skip(1).collect::<Vec<_>>(), in_order.lines().collect::<Vec<_>>());
    check_damage(&cluster)?;
    cluster.start()?;
    cluster.psql("postgres", CHANGES)?;
    cluster.psql("postgres", ROLLED_BACK)?;
    let expected = known(&cluster)?;
    // What the map no longer promises is in the WAL alone.
    cluster.kill()?;
    check(&cluster, &expected, true)?;
    cluster.start()?;
    cluster.psql("postgres", MORE_CHANGES)?;
    let expected = known(&cluster)?;
    cluster.stop()?;
    check(&cluster, &expected, false)
}

/// A damaged leaf is an error with its place; where damage is left out, the table has all rows.
fn check_damage(cluster: &TestCluster) -> Result<()> {
    let told = answered(cluster, "select pg_relation_filepath('kept_c'), count(*) from kept")?;
    let line = told.lines().nth(1).context("no answer")?;
    let (file, rows) = line.split_once(',').context("no path")?;
    let path = cluster.data_dir().join(file);
    let sound = std::fs::read(&path)?;
    let mut bytes = sound.clone();
    bytes[3 * 8192 + 4000..3 * 8192 + 4010].fill(0xEE);
    std::fs::write(&path, bytes)?;
    let asked = "select count(*) from kept where c is null or c < 9000";
    let output = answer(cluster, &[asked])?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains(file) && errors.contains("block 3"),
        "{errors}"
    );
    let output = answer(cluster, &["--on-damage", "skip", asked])?;
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("count\n{rows}\n"));
    std::fs::write(&path, sound)?;
    Ok(())
}
