//! Statements end when they are cancelled, or have had their time, whatever they are at; and many clients at once each get their own
//! answers.
//!
//! Invariant: nothing of an ended statement goes on in the server: its processor time stands still afterwards.

mod support;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use support::Served;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

const TABLES: &str = "
create table t as select i, i % 10 as g, repeat('x', 400) || i as v from generate_series(1, 100000) i;
create table k(id int primary key, v text);
insert into k select i, 'value ' || i from generate_series(1, 20000) i;
create function slow(int) returns bigint language sql as 'select count(*) from t where i < $1';
analyze";

/// What a statement can be at for longer than anybody waits.
const PHASES: [(&str, &str); 17] = [
    (
        "a scan with a condition",
        "select count(*) from t a, generate_series(1, 2000) b where md5(v || b) like 'zz%'",
    ),
    ("a join by a condition", "select count(*) from t a, t b where a.i * 1.5 < -b.i"),
    (
        "a join by equality with many matches",
        "select count(*), sum(a.i) from t a join t b on a.g = b.g",
    ),
    (
        "a join that becomes large",
        "select a.v, b.v from t a join t b on a.g = b.g order by a.v, b.v",
    ),
    (
        "a sort",
        "select max(x) from (select md5(a.v) x from t a, generate_series(1, 100) b order by md5(a.v), b) s",
    ),
    (
        "groups",
        "select count(*) from (select a.i, b, count(*) from t a, generate_series(1, 1000) b group by a.i, b) s",
    ),
    ("distinct values", "select count(distinct a.v || b) from t a, generate_series(1, 1000) b"),
    (
        "windows",
        "select max(r) from (select rank() over (partition by a.g order by md5(a.v || b)) r from t a, generate_series(1, 300) b) s",
    ),
    ("rows of a function", "select count(*) from generate_series(1, 1000000000000)"),
    (
        "rows of a function in the select list",
        "select max(s) from (select generate_series(1, 1000000000000) s) t",
    ),
    (
        "recursion",
        "with recursive r(n) as (select 1 union all select n + 1 from r) select max(n) from r",
    ),
    (
        "recursion that keeps no rows twice",
        "with recursive r(n) as (select 1::bigint union select n + 1 from r) select max(n) from r",
    ),
    (
        "a query for each row",
        "select sum((select count(*) from t b where b.i < a.i and b.v <> a.v)) from t a",
    ),
    ("a function in SQL for each row", "select sum(slow(i)) from t"),
    (
        "a query in FROM for each row",
        "select count(*) from t a, lateral (select v from t b where b.i > a.i order by b.v limit 1) s",
    ),
    (
        "aggregates of long values",
        "select length(string_agg(a.v, ',')) from t a, generate_series(1, 100) b",
    ),
    ("arrays", "select array_length(array_agg(a.i), 1) from t a, generate_series(1, 10000) b"),
];

/// Far more than it takes, on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a statement runs before it is cancelled.
const WELL_ON_ITS_WAY: Duration = Duration::from_millis(400);

fn cluster() -> Result<TestCluster> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql("postgres", TABLES)?;
    cluster.stop()?;
    Ok(cluster)
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

fn config(served: &Served) -> Config {
    let mut config = Config::new();
    config.host_path(served.directory.path()).user("postgres").dbname("postgres");
    config
}

async fn client(served: &Served) -> Result<Client> {
    let (client, connection) = config(served).connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Ticks of the processor that the server has had.
fn ticks(served: &Served) -> Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", served.child.id()))?;
    let (_, fields) = stat.rsplit_once(") ").context("a name in parentheses")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    Ok(fields[11].parse::<u64>()? + fields[12].parse::<u64>()?)
}

/// That the server does nothing any more.
async fn is_idle(served: &Served, phase: &str) -> Result<()> {
    let begun = Instant::now();
    loop {
        let before = ticks(served)?;
        sleep(Duration::from_millis(300)).await;
        if ticks(served)? - before <= 2 {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "{phase}: it goes on");
    }
}

fn is_canceled(ended: &Result<Vec<SimpleQueryMessage>, tokio_postgres::Error>) -> bool {
    ended.as_ref().is_err_and(|error| error.code() == Some(&SqlState::QUERY_CANCELED))
}

#[test]
fn a_statement_ends_whatever_it_is_at() -> Result<()> {
    let cluster = cluster()?;
    let served = Served::start(&cluster, &["--memory", "2GB"])?;
    runtime()?.block_on(async {
        let asking = client(&served).await?;
        for (phase, statement) in PHASES {
            asking.batch_execute("reset statement_timeout").await?;
            let cancel = asking.cancel_token();
            let (ended, cancelled) = tokio::join!(asking.simple_query(statement), async {
                sleep(WELL_ON_ITS_WAY).await;
                let now = Instant::now();
                cancel.cancel_query(NoTls).await?;
                Ok::<_, tokio_postgres::Error>(now)
            });
            let took = cancelled?.elapsed();
            println!("{phase}: {} ms after it was cancelled", took.as_millis());
            ensure!(is_canceled(&ended), "{phase}: it ended otherwise: {ended:?}");
            ensure!(took < PATIENCE, "{phase}: {took:?}");
            is_idle(&served, phase).await?;

            let limit = WELL_ON_ITS_WAY.as_millis();
            asking.batch_execute(&format!("set statement_timeout = {limit}")).await?;
            let begun = Instant::now();
            let ended = asking.simple_query(statement).await;
            ensure!(is_canceled(&ended), "{phase}: it ended otherwise: {ended:?}");
            // A text that comes again may run by a plan that was kept.
            is_idle(&served, phase).await?;
            ensure!(
                begun.elapsed() < WELL_ON_ITS_WAY + 2 * PATIENCE,
                "{phase}: {:?}",
                begun.elapsed()
            );
        }
        asking.batch_execute("reset statement_timeout").await?;
        ensure!(asking.query_one("select count(*) from t", &[]).await?.get::<_, i64>(0) == 100_000);
        anyhow::Ok(())
    })
}

/// A hundred that read rows and a hundred that begin anew all the time; one more is told that there are too many.
#[test]
fn two_hundred_clients_at_once_get_their_own_answers() -> Result<()> {
    const CLIENTS: i32 = 200;
    let cluster = cluster()?;
    let served = Served::start(&cluster, &["-N", "200"])?;
    runtime()?.block_on(async {
        let clients = try_join_all((0..CLIENTS).map(|_| client(&served))).await?;
        let refused = config(&served).connect(NoTls).await.err().context("one too many")?;
        ensure!(refused.code() == Some(&SqlState::TOO_MANY_CONNECTIONS), "{refused:?}");
        let work = clients.iter().enumerate().map(async |(number, client)| {
            let number = i32::try_from(number)?;
            let by_key = client.prepare("select v from k where id = $1").await?;
            for round in 0..20 {
                let id = 1 + (number * 97 + round * 13) % 20_000;
                let row = client.query_one(&by_key, &[&id]).await?;
                ensure!(row.get::<_, &str>(0) == format!("value {id}"), "{number}: {id}");
            }
            let sum: i64 = client
                .query_one("select sum(id) from k where id % 200 = $1", &[&number])
                .await?
                .get(0);
            let expected: i64 = (1..=20_000).filter(|id| id % 200 == i64::from(number)).sum();
            ensure!(sum == expected, "{number}: {sum}");
            Ok(())
        });
        try_join_all(work).await?;
        drop(clients);
        // Their places are free again.
        let enter = async {
            while client(&served).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, enter).await.context("no place became free")
    })
}
