//! Conditions by which BRIN indexes leave blocks out, held against the server's answers: keys of many types, several columns, NULLs, ranges
//! without a summary and without rows.
//!
//! Invariant under test: whichever blocks are left out, the answer is the server's; and few ranges take few blocks.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::versions::each_of;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

/// In rising order with some noise, so that ranges overlap a little; rows without values, a range of nothing but those, and one that is empty.
const TABLES: &str = "
    create table logged(nm name, id int8, at timestamptz, day date, n numeric, f float8, t text collate \"C\", b char(9), u uuid, x text, o oid, i inet)
        with (autovacuum_enabled = off);
    create function fill(first int, last int) returns void language sql as $$
        insert into logged select left(lpad((g / 7)::text, 5, chr(48)), 5), g + h % 40, timestamptz '2024-01-01 00:00+00' + (g + h % 90) * interval '1 minute',
            case when g between 9000 and 11000 then null else date '2024-01-01' + (g / 50) end,
            case when h % 97 = 0 then null when g % 5001 = 0 then 'NaN' else (g - 9000)::numeric / 7 end,
            case when h % 50 = 0 then null else (g - 5000) / 16.0 end, lpad((g + h % 9)::text, 8, '0'),
            'b' || lpad((g / 3)::text, 6, '0'), lpad(to_hex(g), 32, '0')::uuid, lpad(g::text, 8, '0'), g,
            inet '10.0.0.0' + g
        from (select g, hashint4(g) & 2147483647 as h from generate_series(first, last) g) s $$;
    select fill(1, 18000);
    create index logged_id on logged using brin (id) with (pages_per_range = 4);
    create index logged_several on logged using brin (at, day, n, t) with (pages_per_range = 8);
    create index logged_others on logged using brin (f, b, u) with (pages_per_range = 3);
    create index logged_bloom on logged using brin (o oid_bloom_ops, n);
    create index logged_multi on logged using brin (o oid_minmax_multi_ops);
    create index logged_expression on logged using brin ((id + 1), f);
    create index logged_collated on logged using brin (x, o) with (pages_per_range = 16);
    create index logged_name on logged using brin (nm) with (pages_per_range = 4);
    create index logged_inet on logged using brin (i inet_minmax_ops) with (pages_per_range = 8);
    select brin_desummarize_range('logged_id', 40);
    delete from logged where id between 3000 and 6000;
    select fill(18001, 20000);
    update logged set t = '00000001' where id % 1009 = 0;
    create table bare(id int);
    create index bare_id on bare using brin (id);
";

const CONDITIONS: [&str; 32] = [
    "nm = '01000'",
    "nm <= '00002'",
    "id = 17",
    "id in (5, 12000, 19999, 70000)",
    "id between 7000 and 7100",
    "id < 100",
    "id > 19900",
    "id >= 2990 and id <= 3010",
    "id = 4500",
    "id is null",
    "at between '2024-01-05' and '2024-01-05 03:00'",
    "at < '2024-01-01 01:00+00' and t >= '00000010'",
    "day = '2024-03-01'",
    "day is null",
    "day is null and id < 9050",
    "day between '2024-06-20' and '2024-08-20'",
    "day is not null and id between 8990 and 9010",
    "n = 'NaN'",
    "n > 1500",
    "n between -3 and 3",
    "n is null and day < '2024-01-09'",
    "t = '00000001'",
    "t like '000190%'",
    "t > '00019990'",
    "f < -310 or f is null and id < 50",
    "f between 0 and 0.5",
    "b = 'b000100'",
    "u = '00000000-0000-0000-0000-000000000fff'",
    "x = '00015000'",
    "o = 15000",
    "i between '10.0.3.1' and '10.0.3.9'",
    "id = 500 and day = '2024-01-11' and f < 0",
];

/// The same order with values from elsewhere among them, so that a lowest and a highest value tell little.
const CLASSED: &str = "
    create table classed(id int, big int8, n numeric, f float8, r float4, d date, at timestamptz, tm time, tz timetz, iv interval,
        i inet, m macaddr, u uuid, p pg_lsn, t text, b char(12), nm name, y bytea, c \"char\", bx box, rg int4range, z date)
        with (autovacuum_enabled = off);
    create function classify(first int, last int) returns void language sql as $$
        insert into classed select x, x * 10000000000::int8, case when x % 97 = 0 then 'NaN' else round(x / 7.0, x % 4) end, x / 16.0, x / 4.0,
            date '2001-01-01' + x, timestamptz '2024-01-01 00:00+00' + x * interval '1 minute', time '00:00' + x * interval '1 second',
            (time '00:00' + x * interval '1 second')::timetz, case x % 2 when 0 then make_interval(hours => x) else make_interval(days => x / 24) end,
            inet '10.0.0.0' + x, ('08:00:2b:' || lpad(to_hex(x / 65536), 2, '0') || ':' || lpad(to_hex(x / 256 % 256), 2, '0') || ':' || lpad(to_hex(x % 256), 2, '0'))::macaddr,
            (lpad(to_hex(x), 8, '0') || md5('u'))::varchar(32)::uuid, ('0/' || lpad(to_hex(x), 8, '0'))::pg_lsn, 't' || x, 'b' || x / 3, 'n' || x / 5, decode(md5(x::text), 'hex'),
            chr(65 + x / 1000 % 26)::\"char\", case when g between 4000 and 4500 then null else box(point(x, x), point(x + 1, x + 1)) end,
            int4range(x, x + 3), case when x % 3 = 0 then null else date '2001-01-01' + x end
        from (select g, case when hashint4(g) % 71 = 0 then hashint4(g) & 16383 else g end as x from generate_series(first, last) g) s $$;
    select classify(1, 8000);
    create index classed_numbers on classed using brin (id int4_minmax_multi_ops, big int8_minmax_multi_ops, n numeric_minmax_multi_ops, f float8_minmax_multi_ops,
        r float4_minmax_multi_ops) with (pages_per_range = 4);
    create index classed_times on classed using brin (d date_minmax_multi_ops, at timestamptz_minmax_multi_ops, tm time_minmax_multi_ops, tz timetz_minmax_multi_ops,
        iv interval_minmax_multi_ops) with (pages_per_range = 4);
    create index classed_addresses on classed using brin (i inet_minmax_multi_ops, m macaddr_minmax_multi_ops, u uuid_minmax_multi_ops (values_per_range = 16),
        p pg_lsn_minmax_multi_ops) with (pages_per_range = 4);
    create index classed_texts on classed using brin (t text_bloom_ops (n_distinct_per_range = 300), b bpchar_bloom_ops (n_distinct_per_range = 100), nm name_bloom_ops,
        y bytea_bloom_ops (n_distinct_per_range = 300, false_positive_rate = 0.001), c char_bloom_ops) with (pages_per_range = 4);
    create index classed_filters on classed using brin (n numeric_bloom_ops (n_distinct_per_range = 300), f float8_bloom_ops (n_distinct_per_range = 300), tz timetz_bloom_ops,
        iv interval_bloom_ops, i inet_bloom_ops (n_distinct_per_range = 300)) with (pages_per_range = 2);
    create index classed_behind on classed using brin (i inet_inclusion_ops, bx, rg, z date_bloom_ops (n_distinct_per_range = 300)) with (pages_per_range = 4);
    delete from classed where id between 3000 and 3300;
    select classify(8001, 9000);
";

const CLASSED_CONDITIONS: [&str; 38] = [
    "id = 500",
    "id in (17, 4000, 8999, 100000)",
    "id between 700 and 720",
    "id < 20",
    "id > 16000",
    "id = 3100",
    "id is not null and big = 50000000000000",
    "big between 10000000000000 and 10300000000000",
    "n = 'NaN'",
    "n = 100",
    "n = 100.00",
    "n between 10 and 12.5",
    "n < 0",
    "f = 31.25",
    "f in (0.5, 31.25, 7)",
    "f between 100 and 101",
    "r < 3",
    "d = '2003-01-01'",
    "d between '2003-01-01' and '2003-02-01' and iv < '90 days'",
    "at < '2024-01-01 01:00+00'",
    "tm = '01:00'",
    "tz = '01:00+00'",
    "tz between '01:00+00' and '01:01+00'",
    "iv = '10 days'",
    "iv = '240:00:00'",
    "iv > '350 days'",
    "i = '10.0.3.3'",
    "i between '10.0.3.1' and '10.0.3.9'",
    "m = '08:00:2b:00:10:10'",
    "u = '000003e8-7b77-4eff-e4a3-49c6dd82ad4f'",
    "p = '0/1000'",
    "p > '0/3F00'",
    "t = 't4711'",
    "t in ('t4711', 't1', 'none') and b = 'b1570'",
    "b = 'b100'",
    "nm = 'n1000'",
    "y = decode('b52340b4de4566b804c9880aa0b4af5f', 'hex')",
    "z = '2010-01-01' and c = 'D'",
];

fn answered(cluster: &TestCluster, statement: &str) -> Result<String> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
    program.arg("sql").arg("-D").arg(cluster.data_dir());
    let output = program.args(["-d", "postgres", "--format", "csv", statement]).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{statement}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Which way the table is read, in words.
fn path(cluster: &TestCluster, statement: &str) -> Result<String> {
    let told = answered(cluster, &format!("explain analyze {statement}"))?;
    let path = told.split("access=").nth(1).context(told.clone())?;
    Ok(path.split(", metrics").next().unwrap_or_default().to_owned())
}

/// How many blocks an index left, of how many.
fn left(path: &str, index: &str) -> Result<(u32, u32)> {
    let rest =
        path.strip_prefix(&format!("index {index}, which leaves ")).context(path.to_owned())?;
    let mut numbers = rest.split_whitespace().filter_map(|word| word.parse().ok());
    Ok((numbers.next().context("blocks")?, numbers.next().context("of blocks")?))
}

/// Answers to the same statement under each condition are the server's, which stops meanwhile.
fn check_answers(
    cluster: &mut TestCluster,
    conditions: &[&str],
    statement: impl Fn(&str) -> String,
) -> Result<()> {
    let known = conditions.iter().map(|condition| {
        let copied = format!("copy ({}) to stdout (format csv, header)", statement(condition));
        cluster.psql("postgres", &copied)
    });
    let known = known.collect::<Result<Vec<_>>>()?;
    cluster.stop()?;
    for (condition, known) in conditions.iter().zip(known) {
        let found = answered(cluster, &statement(condition))?;
        assert_eq!(found.trim_end(), known.trim_end(), "{condition}");
    }
    Ok(())
}

/// An index leaves so few blocks of a table for each condition.
fn check_places(cluster: &TestCluster, table: &str, places: &[(&str, &str, u32)]) -> Result<()> {
    for (condition, index, most) in places {
        let path = path(cluster, &format!("select t from {table} where {condition}"))?;
        let (blocks, all) = left(&path, index).with_context(|| (*condition).to_owned())?;
        ensure!(blocks <= *most && all > 200, "{condition}: {blocks} of {all}");
    }
    Ok(())
}

fn check(install: &PgInstall) -> Result<()> {
    let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
    cluster.psql("postgres", TABLES)?;
    check_answers(&mut cluster, &CONDITIONS, |condition| {
        format!("select count(*), sum(id), min(t), max(x) from logged where {condition}")
    })?;
    // Forty are behind the last summary.
    let places = [
        ("id = 17", "logged_id", 60),
        ("id in (5, 12000, 19999, 70000)", "logged_id", 130),
        ("at between '2024-01-05' and '2024-01-05 03:00'", "logged_several", 80),
        ("day = '2024-03-01'", "logged_several", 80),
        ("t like '000190%'", "logged_several", 160),
        ("f between 0 and 0.5", "logged_others", 110),
        ("u = '00000000-0000-0000-0000-000000000fff'", "logged_others", 110),
    ];
    check_places(&cluster, "logged", &places)?;
    for (condition, told) in [
        ("o = 15000", "index logged_collated, which leaves"),
        ("day is null", "whole table"),
        ("id >= 0", "logged_id (leaves all blocks)"),
    ] {
        let path = path(&cluster, &format!("select x from logged where {condition}"))?;
        ensure!(path.contains(told), "{condition}: {path}");
    }
    assert_eq!(answered(&cluster, "select count(*) from bare where id = 1")?, "count\n0\n");
    Ok(())
}

#[test]
fn whichever_blocks_are_left_out_the_answer_is_the_servers() {
    each_of(&PgInstall::spread(), check);
}

/// Conditions, the index that leaves the fewest blocks, and how many at most: about forty are behind the last summary.
const PLACES: [(&str, &str, u32); 15] = [
    ("id = 500", "classed_numbers", 60),
    ("id between 700 and 720", "classed_numbers", 70),
    ("n between 10 and 12.5", "classed_numbers", 60),
    ("f between 100 and 101", "classed_numbers", 60),
    ("d = '2003-01-01'", "classed_times", 60),
    ("at < '2024-01-01 01:00+00'", "classed_times", 60),
    ("i between '10.0.3.1' and '10.0.3.9'", "classed_addresses", 60),
    ("m = '08:00:2b:00:10:10'", "classed_addresses", 60),
    ("p = '0/1000'", "classed_addresses", 60),
    ("t = 't4711'", "classed_texts", 60),
    ("b = 'b100'", "classed_texts", 60),
    ("nm = 'n1000'", "classed_texts", 70),
    ("y = decode('b52340b4de4566b804c9880aa0b4af5f', 'hex')", "classed_texts", 60),
    ("c = 'D'", "classed_texts", 200),
    ("z = '2010-01-01'", "classed_behind", 70),
];

fn check_classes(install: &PgInstall) -> Result<()> {
    let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
    cluster.psql("postgres", CLASSED)?;
    check_answers(&mut cluster, &CLASSED_CONDITIONS, |condition| {
        format!("select count(*), sum(id), min(t), max(d) from classed where {condition}")
    })?;
    check_places(&cluster, "classed", &PLACES)
}

/// Whatever an operator class keeps of a range of blocks, it leaves out no row.
#[test]
fn blocks_are_left_out_by_extents_and_filters() {
    each_of(&PgInstall::spread(), check_classes);
}

/// What is wrong with an index is no error of a statement: the table is read as a whole.
#[test]
fn a_damaged_index_is_not_used() -> Result<()> {
    let install = PgInstall::find(15).context("no PostgreSQL 15")?;
    let options = ClusterOptions { data_checksums: Some(false), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    cluster.psql("postgres", TABLES)?;
    let file = cluster.psql("postgres", "select pg_relation_filepath('logged_id')")?;
    cluster.stop()?;
    let file = cluster.data_dir().join(file.trim());
    let sound = std::fs::read(&file)?;
    let asked = "select count(*) from logged where id between 7000 and 7100";
    let known = answered(&cluster, asked)?;
    // The magic number, places in the range map, kinds of pages.
    for at in [24, 8192 + 24 + 6, 8192 + 28, 8190, 2 * 8192 - 2, 3 * 8192 - 2] {
        let mut bytes = sound.clone();
        bytes[at..at + 2].copy_from_slice(&[0xA5, 0x5A]);
        std::fs::write(&file, bytes)?;
        ensure!(answered(&cluster, asked)? == known, "byte {at}");
    }
    std::fs::write(&file, &sound[..8192])?;
    ensure!(answered(&cluster, asked)? == known, "a file that was cut");
    Ok(())
}
