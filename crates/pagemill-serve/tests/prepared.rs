//! A driver that prepares its statements, and takes values in binary form, gets from the files what it got from the server.
//!
//! Each question is asked of both by the same code, and all that the driver was told is compared: types, names, values, errors.

#[path = "support/driver.rs"]
mod driver;
mod support;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use driver::{Values, asked, connect, runtime, server_client, told, user};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use support::Served;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

const TABLES: &str = "
    create type mood as enum ('sad', 'ok');
    create table kinds(id int primary key, small int2, big int8, name varchar(20), price numeric(8,2), wide numeric, at timestamptz,
        day date, clock time, span interval, ok bool, doc jsonb, raw bytea, f float8, g float4, u uuid, m mood, c char(4));
    insert into kinds select i, i, i * 10000000000, 'name '||i, i/3.0, i*1e20/7, '2024-01-01'::timestamptz + i * interval '1 hour',
        date '1999-12-30' + i, '00:00'::time + i * interval '1 second', i * interval '1 month 2 days 3 seconds', i % 2 = 0,
        jsonb_build_object('a', i), decode(md5(i::text), 'hex'), i/7.0, i/7.0, md5(i::text)::uuid, 'ok', i
        from generate_series(1, 3000) i;
    insert into kinds(id) values (3001);
    create view seen as select name as n, id, small + 1 as more from kinds;
    create table gone (first int, middle int, later int) partition by range (later);
    alter table gone drop middle;
    create table gone_1 partition of gone for values from (0) to (10);
    insert into gone values (1, 2), (3, 4);
    checkpoint;
";

/// Statements with values as texts, of whatever types the parameters turn out to have.
const ASKED: [(&str, Values<'_>); 25] = [
    ("select * from kinds where id = $1", &[Some("7")]),
    (
        "select * from kinds where id >= $1 order by id limit $2 offset $3",
        &[Some("2990"), Some("5"), None],
    ),
    (
        "select count(*), sum(wide), avg(price) from kinds where price < $1 and name like $2",
        &[Some("99.5"), Some("%1")],
    ),
    (
        "select id from kinds where at between $1 and $2 order by 1",
        &[Some("2024-01-01 05:00+00"), Some("2024-01-02")],
    ),
    ("select $1, $2::int + 1", &[Some("a"), None]),
    (
        "select id from kinds where ok and m = $1 and u <> $2 order by id limit 3",
        &[Some("ok"), Some("c4ca4238-a0b9-2382-0dcc-509a6f75849b")],
    ),
    (
        "select coalesce(name, $1), case when $2 then 1 else 2 end from kinds where id > 2999",
        &[Some("none"), Some("t")],
    ),
    ("select sum(id) from kinds where id in ($1, $2, $3)", &[Some("1"), Some("2"), Some("3")]),
    ("select count(*) from kinds group by $1::text", &[Some("x")]),
    ("select id / $1 from kinds where id = 10", &[Some("0")]),
    ("select $1 is null", &[Some("x")]),
    ("select $1 + $1 where $2 = length($3)", &[Some("2"), Some("3"), Some("abc")]),
    ("select id from kinds where id = $1", &[Some("seven")]),
    (
        "select id from kinds where day = $1 and span > $2 and clock <= $3",
        &[Some("2000-01-03"), Some("1 mon"), Some("01:00")],
    ),
    ("select id from kinds where id = $2", &[Some("x"), Some("7")]),
    ("select nothing from kinds", &[]),
    // Where columns come from.
    (
        "select k.id, (k.name) as n, id + 1, ok::text, s.id, s.n from kinds k join seen s on s.id = k.id where k.id < 3 order by 1",
        &[],
    ),
    (
        "select * from (select name, day as d, 1 as one from kinds) x natural join (select 'name 5'::varchar as name) y",
        &[],
    ),
    (
        "with w as (select small, big from kinds) select w.big, w.small, count(*) from w group by big, small order by 1 limit 2",
        &[],
    ),
    ("select id from kinds where id < 3 union select id from kinds where id < 4 order by id", &[]),
    ("select distinct on (ok) ok, f from kinds order by ok, f", &[]),
    ("select later, tableoid::regclass, gone.* from gone order by later", &[]),
    (
        "select relname, (select max(id) from kinds), o.oid from pg_class o where relname = 'kinds'",
        &[],
    ),
    (
        "select id, f, g, wide, span, c from kinds where raw = $1",
        &[Some("\\xc4ca4238a0b923820dcc509a6f75849b")],
    ),
    (
        "values ($1::numeric), (-0.000123), ('NaN'), ('-Infinity'), (120000)",
        &[Some("1234567890123.4500")],
    ),
];

async fn all(client: &Client) -> Vec<String> {
    let mut answers = Vec::new();
    for (statement, values) in ASKED {
        // The second time by a plan that is kept, if there is one.
        answers.push(asked(client, statement, &[values, values, values]).await);
    }
    answers
}

fn stopped_cluster() -> Result<(TestCluster, Vec<String>)> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql("postgres", TABLES)?;
    let answers =
        runtime()?.block_on(async { anyhow::Ok(all(&server_client(&cluster).await?).await) })?;
    cluster.stop()?;
    Ok((cluster, answers))
}

/// A statement that would run for a very long time, without a row.
const LONG: &str = "select count(*) from kinds a, kinds b, kinds c where a.f * b.f * c.f < 0";

/// One whose inner query is run for each row.
const NESTED: &str = "select sum((select b.id from kinds b where b.f * b.id > a.f * a.id order by b.f, b.id limit 1)) from kinds a";

#[test]
fn a_driver_is_answered_as_by_the_server() -> Result<()> {
    let (cluster, expected) = stopped_cluster()?;
    let served = Served::start(&cluster, &["-p", "5432", "-N", "3"])?;
    runtime()?.block_on(async {
        let user = user(&cluster)?;
        let mut client = connect(served.directory.path(), 5432, &user).await?;
        let answers = all(&client).await;
        for (((statement, _), found), wanted) in ASKED.iter().zip(answers).zip(expected) {
            assert_eq!(found, wanted, "{statement}");
        }
        in_portions(&mut client).await?;
        by_cursor(&mut client).await?;
        ends_early(&client, &served, &user).await
    })
}

/// A portal gives as many rows as are asked for, and the rest later.
async fn in_portions(client: &mut Client) -> Result<()> {
    let transaction = client.transaction().await?;
    let portal = transaction.bind("select id from kinds order by id", &[]).await?;
    let mut seen = Vec::new();
    loop {
        let rows = transaction.query_portal(&portal, 700).await?;
        if rows.is_empty() {
            break;
        }
        ensure!(rows.len() == 700 || seen.len() + rows.len() == 3001, "{} rows", rows.len());
        seen.extend(rows.iter().map(|row| row.get::<_, i32>(0)));
    }
    ensure!(seen == (1..=3001).collect::<Vec<i32>>());
    transaction.rollback().await?;
    Ok(())
}

/// A driver asks for binary values of `FETCH`, too.
async fn by_cursor(client: &mut Client) -> Result<()> {
    let transaction = client.transaction().await?;
    transaction
        .batch_execute("declare c scroll cursor for select id from kinds order by id")
        .await?;
    let mut seen = Vec::new();
    for fetch in ["fetch 2 from c", "fetch prior from c", "fetch last from c"] {
        let rows = transaction.query(fetch, &[]).await?;
        seen.extend(rows.iter().map(|row| row.get::<_, i32>(0)));
    }
    ensure!(seen == [1, 2, 1, 3001], "{seen:?}");
    let refused = transaction.simple_query("fetch 1 from c").await.expect_err("texts of it");
    let refused = refused.as_db_error().map(|error| error.message().to_owned());
    ensure!(refused.is_some_and(|message| message.contains("in several forms")));
    transaction.rollback().await?;
    Ok(())
}

/// Cancel requests and timeouts end a statement, and the session goes on; there is room for so many clients.
async fn ends_early(client: &Client, served: &Served, user: &str) -> Result<()> {
    let cancel = client.cancel_token();
    let (failed, _) = tokio::join!(client.query(LONG, &[]), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel_query(NoTls).await
    });
    let failed = failed.err().context("it was cancelled")?;
    assert_eq!(told(&failed), "57014 canceling statement due to user request\n");
    client.batch_execute("set statement_timeout = '200ms'").await?;
    for statement in [LONG, NESTED] {
        let failed = client.query(statement, &[]).await.err().context("it took too long")?;
        assert_eq!(told(&failed), "57014 canceling statement due to statement timeout\n");
    }
    let socket = served.directory.path();
    let (_second, _third) =
        (connect(socket, 5432, user).await?, connect(socket, 5432, user).await?);
    let refused = connect(socket, 5432, user).await.err().context("there is no room")?;
    ensure!(format!("{refused:#}").contains("too many clients"), "{refused:#}");
    let stranger = connect(socket, 5432, "nobody").await;
    ensure!(stranger.is_err());
    let answer = client.simple_query("reset statement_timeout; select 41 + 1").await?;
    let is_it = |message: &SimpleQueryMessage| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("42"));
    ensure!(answer.iter().any(is_it));
    Ok(())
}
