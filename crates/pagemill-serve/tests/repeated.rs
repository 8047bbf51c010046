//! Statements that are prepared once and run with other values each time, by plans that are kept, give what the server gives.
//!
//! Invariant: each runs more than twice, so that a kept plan, where there is one, has run with values it was not made for.

#[path = "support/driver.rs"]
mod driver;
mod support;

use anyhow::{Context as _, Result};
use driver::{Values, asked, connect, runtime, server_client, user};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use support::Served;

/// Tables of many blocks and of few, with indexes of one column and two, in partitions, and with values that no decimal is.
const TABLES: &str = "
    create type mood as enum ('sad', 'ok', 'fine');
    create table accounts(id int primary key, branch int, name text, price numeric(9,2), wide numeric, at timestamptz, m mood, pad text);
    insert into accounts select i, i % 100, 'name ' || i, i / 7.0, i * 1e20 / 7, '2024-01-01 UTC'::timestamptz + i * interval '1 min',
        (array['sad', 'ok', 'fine'])[1 + i % 3]::mood, repeat('x', 100) from generate_series(1, 20000) i;
    insert into accounts(id, branch, price, wide) values (30000, 7, 'NaN', 'NaN'), (30001, null, null, null);
    create index on accounts(branch, name);
    create index on accounts(name text_pattern_ops);
    create index on accounts(at);
    create table branches(id int primary key, title varchar(30));
    insert into branches select i, 'branch ' || i from generate_series(0, 99) i;
    create table days(day date not null, n int) partition by range (day);
    create table days_1 partition of days for values from ('2024-01-01') to ('2024-02-01');
    create table days_2 partition of days for values from ('2024-02-01') to ('2024-03-01');
    insert into days select '2024-01-01'::date + i % 60, i from generate_series(0, 5000) i where i % 60 < 60;
    delete from accounts where id % 1000 = 0;
    update accounts set name = 'changed' where id % 500 = 1;
    analyze;
    checkpoint;
";

/// Statements, each with the values of its runs.
const REPEATED: [(&str, &[Values<'_>]); 19] = [
    (
        "select * from accounts where id = $1",
        &[
            &[Some("5")],
            &[Some("77")],
            &[None],
            &[Some("1000")],
            &[Some("501")],
            &[Some("30000")],
            &[Some("-1")],
        ],
    ),
    (
        "select name, $2 || name, id + $3 from accounts where id = $1",
        &[
            &[Some("5"), Some("a"), Some("1")],
            &[Some("77"), None, Some("2")],
            &[Some("2"), Some("b"), None],
            &[Some("3"), Some("c"), Some("2147483647")],
        ],
    ),
    (
        "select count(*), min(id), max(name) from accounts where branch = $1",
        &[&[Some("1")], &[Some("99")], &[Some("7")], &[Some("100")], &[None]],
    ),
    (
        "select id, name from accounts where branch = $1 and name = $2",
        &[
            &[Some("5"), Some("name 105")],
            &[Some("6"), Some("name 105")],
            &[Some("1"), Some("changed")],
        ],
    ),
    (
        "select id from accounts where id in ($1, $2, $3) order by id",
        &[
            &[Some("1"), Some("2"), Some("3")],
            &[Some("9"), Some("9"), None],
            &[Some("1000"), Some("19999"), Some("4")],
        ],
    ),
    (
        "select id from accounts where id between $1 and $2 order by id",
        &[
            &[Some("10"), Some("12")],
            &[Some("12"), Some("10")],
            &[Some("990"), Some("1010")],
            &[None, Some("1")],
        ],
    ),
    (
        "select id from accounts where name like $1 order by id",
        &[&[Some("name 1999%")], &[Some("%9999")], &[Some("changed")], &[Some("bad\\")], &[None]],
    ),
    (
        "select id, at from accounts where at >= $1 and at < $2 order by at",
        &[
            &[Some("2024-01-01 00:05+00"), Some("2024-01-01 00:09+00")],
            &[Some("2024-01-10 00:00+00"), Some("2024-01-10 00:03+00")],
            &[Some("infinity"), Some("infinity")],
        ],
    ),
    (
        "select a.id, b.title from accounts a join branches b on b.id = a.branch where a.id = $1 and b.title <> $2",
        &[&[Some("5"), Some("x")], &[Some("6"), Some("branch 6")], &[Some("8"), Some("x")]],
    ),
    (
        "select id, price from accounts where branch = $1 order by price desc, id limit 3",
        &[&[Some("5")], &[Some("7")], &[Some("8")]],
    ),
    (
        "select id from accounts where branch < $1 order by id limit $2 offset $3",
        &[
            &[Some("5"), Some("3"), Some("1")],
            &[Some("7"), None, Some("1390")],
            &[Some("8"), Some("-1"), None],
        ],
    ),
    (
        "select sum(price), sum(wide), count(wide) from accounts where id > $1",
        &[&[Some("19990")], &[Some("30000")], &[Some("19980")], &[Some("40000")]],
    ),
    (
        "select id from accounts where wide = $1 or price = $2 order by id",
        &[
            &[Some("NaN"), Some("0.14")],
            &[Some("1"), Some("1.00")],
            &[Some("100000000000000000000"), Some("NaN")],
        ],
    ),
    (
        "select m, count(*) from accounts where m > $1 group by m order by m",
        &[&[Some("sad")], &[Some("ok")], &[Some("fine")], &[Some("none")]],
    ),
    (
        "select count(*), min(n), max(n) from days where day = $1",
        &[&[Some("2024-01-05")], &[Some("2024-02-05")], &[Some("2025-01-01")], &[None]],
    ),
    (
        "select day, n from days where day >= $1 and n < $2 order by n, day limit 4",
        &[
            &[Some("2024-01-05"), Some("100")],
            &[Some("2024-02-20"), Some("100")],
            &[Some("2024-01-01"), None],
        ],
    ),
    (
        "select (select title from branches where id = $1), exists (select 1 from accounts where branch = $1)",
        &[&[Some("1")], &[Some("2")], &[Some("200")]],
    ),
    (
        "select 100 / (id - $1) from accounts where id = $2",
        &[&[Some("1"), Some("2")], &[Some("2"), Some("2")], &[Some("3"), Some("2")]],
    ),
    (
        "select id from branches where title = $1 union all select id from branches where id = $2 order by 1",
        &[&[Some("branch 4"), Some("5")], &[Some("branch 5"), Some("5")], &[None, Some("6")]],
    ),
];

async fn all(client: &tokio_postgres::Client) -> Vec<String> {
    let mut answers = Vec::new();
    for (statement, runs) in REPEATED {
        answers.push(asked(client, statement, runs).await);
    }
    answers
}

#[test]
fn each_run_gives_what_the_server_gives() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql("postgres", TABLES)?;
    let expected =
        runtime()?.block_on(async { anyhow::Ok(all(&server_client(&cluster).await?).await) })?;
    cluster.stop()?;
    let served = Served::start(&cluster, &["-p", "5432"])?;
    runtime()?.block_on(async {
        let client = connect(served.directory.path(), 5432, &user(&cluster)?).await?;
        for (((statement, _), found), wanted) in
            REPEATED.iter().zip(all(&client).await).zip(expected)
        {
            assert_eq!(found, wanted, "{statement}");
        }
        Ok(())
    })
}

/// What depends on when a statement runs is not kept from an earlier run, nor what a search path finds.
#[test]
fn a_kept_plan_does_not_outlive_what_it_was_made_for() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    let tables = "create schema one; create schema two;
        create table one.t(id int primary key, w text); insert into one.t values (1, 'one');
        create table two.t(id int primary key, w text); insert into two.t values (1, 'two'); checkpoint";
    cluster.psql("postgres", tables)?;
    cluster.stop()?;
    let served = Served::start(&cluster, &["-p", "5432"])?;
    runtime()?.block_on(async {
        let client = connect(served.directory.path(), 5432, &user(&cluster)?).await?;
        client.batch_execute("set search_path = one").await?;
        let prepared = client.prepare("select w from t where id = $1").await?;
        let found = async |id: i32| -> Result<String> {
            Ok(client.query_one(&prepared, &[&id]).await?.get::<_, String>(0))
        };
        for path in ["one", "two", "one", "two"] {
            client.batch_execute(&format!("set search_path = {path}")).await?;
            assert_eq!(found(1).await?, path);
            assert_eq!(found(1).await?, path);
        }
        let now = client.prepare("select now() from one.t where id = $1").await?;
        let mut before = None;
        for _ in 0..3 {
            let at: std::time::SystemTime = client.query_one(&now, &[&1]).await?.get(0);
            assert!(before < Some(at), "{before:?}, then {at:?}");
            before = Some(at);
        }
        Ok(())
    })
}
