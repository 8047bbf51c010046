//! Columns that are computed when they are read (PostgreSQL 18 on): in conditions, joins, groups, views, under policies, of partitions
//! and of tables that inherit from others, whose expressions are other ones.
//!
//! Invariant under test: the answer is the server's.

use std::process::Command;

use anyhow::{Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, skipped};

const TABLES: &str = r#"
    create table v (id int primary key, a int, b text, price numeric(10,2), qty int, at timestamp, doc jsonb,
        twice int generated always as (a * 2) virtual,
        total numeric(12,2) generated always as (price * qty),
        up text generated always as (upper(b)) virtual,
        "Up 3" varchar(3) generated always as (substr(upper(b), 1, 3)) virtual,
        day date generated always as (at::date),
        k text generated always as (doc ->> 'k'),
        inv int generated always as (10 / (id - 7)),
        lng text collate "C" generated always as (b || repeat('x', a)),
        arr int[] generated always as (array[a, a + 1]),
        flag boolean not null generated always as (coalesce(a > 3, false)),
        cased text generated always as (case when a > 5 then 'big' when a > 2 then 'mid' else 'small' end) virtual,
        toid oid generated always as (tableoid) virtual,
        st int generated always as (a + 100) stored,
        fl double precision generated always as (a / 3.0) virtual);
    insert into v (id, a, b, price, qty, at, doc) select i, nullif(i % 11, 0), 'text' || i, i * 1.25, i % 7,
        timestamp '2024-01-01' + i * interval '7 hours', jsonb_build_object('k', 'v' || i % 5) from generate_series(1, 2000) i;
    insert into v (id) values (3000);
    alter table v add column late int generated always as (a * 7) virtual;
    create index on v (at);
    create index on v (upper(b));
    create table p (a int, b int generated always as (a + 1) virtual, c text) partition by range (a);
    create table p1 partition of p for values from (0) to (100);
    create table p2 (c text, a int, b int generated always as (a + 1000) virtual);
    alter table p attach partition p2 for values from (100) to (200);
    insert into p (a, c) select i, 'c' || i from generate_series(0, 199) i;
    create table par (a int, b int generated always as (a * 10) virtual);
    create table chi (c int, b int generated always as (a * 100) virtual) inherits (par);
    insert into par (a) values (1), (2);
    insert into chi (a, c) values (3, 4), (5, 6);
    create view vv as select id, twice, up from v where twice > 10;
"#;

const STATEMENTS: [&str; 27] = [
    "select id, a, b, twice, total, up, \"Up 3\", day, k, lng, arr, flag, cased, toid = 'v'::regclass, st, fl, late from v order by id",
    "select * from v where id in (1, 5, 2000)",
    "select count(*), sum(twice), count(up), count(total), sum(total) from v",
    "select count(*) from v where twice = 10",
    "select count(*) from v where flag and cased = 'big'",
    "select k, count(*), max(total) from v group by k order by k",
    "select id from v where day = '2024-02-01' order by id",
    "select id, up from v where up = 'TEXT77'",
    "select id, inv from v where id between 5 and 6 order by id",
    "select x.id, y.id from v x join v y on x.twice = y.a and x.id < 20 and y.id < 20 order by 1, 2",
    "select (select max(b.twice) from v b where b.a = o.a) from v o where o.id < 5 order by id",
    "select id from v order by up desc, id limit 3",
    "select min(twice), max(twice) from v",
    "select lng < 'text2', pg_typeof(\"Up 3\") from v where id = 1",
    "select v from v where id = 3",
    "select row_to_json(v) from v where id = 3",
    "select id from v where (twice, cased) in (select twice, cased from v where id = 4) order by id limit 5",
    "select a, b from p where a in (0, 99, 100, 150) order by a",
    "select sum(b), count(*) filter (where b > 150) from p",
    "select * from p1 where a = 5",
    "select * from p2 where a = 150",
    "select a, b, tableoid::regclass from par order by a",
    "select * from only par order by a",
    "select * from chi order by a",
    "select count(*), sum(twice), min(up) from vv",
    "with w as (select id, twice as t from v) select sum(t) from w where id < 50",
    "select row_number() over (order by total desc, id) as n, total from v order by n limit 3",
];

fn answered(cluster: &TestCluster, statement: &str) -> Result<(bool, String)> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
    program.args(["sql", "-d", "postgres", "--format", "csv", "-D"]).arg(cluster.data_dir());
    let output = program.arg(statement).output()?;
    let told = if output.status.success() { output.stdout } else { output.stderr };
    Ok((output.status.success(), String::from_utf8(told)?))
}

#[test]
fn what_is_computed_when_it_is_read_is_what_the_server_computes() -> Result<()> {
    let Some(install) = PgInstall::find(18) else {
        skipped("virtual generated columns, as there is no PostgreSQL 18");
        return Ok(());
    };
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql("postgres", TABLES)?;
    let ask = |statement: &&str| {
        cluster.psql("postgres", &format!("copy ({statement}) to stdout (format csv, header)"))
    };
    let known = STATEMENTS.iter().map(ask).collect::<Result<Vec<_>>>()?;
    cluster.stop()?;
    let mut others = Vec::new();
    for (statement, known) in STATEMENTS.iter().zip(known) {
        let (_, found) = answered(&cluster, statement)?;
        if found.trim_end() != known.trim_end() {
            others.push(format!("{statement}:\n{found}in place of\n{known}"));
        }
    }
    ensure!(others.is_empty(), "{}", others.join("\n"));
    // What cannot be computed is no matter of who does not ask for it.
    let (succeeds, told) = answered(&cluster, "select inv from v where id = 7")?;
    ensure!(!succeeds && told.contains("division by zero"), "{told}");
    let (_, path) = answered(&cluster, "explain analyze select id from v where up = 'TEXT77'")?;
    ensure!(path.contains("access=index v_upper_idx"), "{path}");
    Ok(())
}
