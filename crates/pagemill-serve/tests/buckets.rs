//! `pagemill serve` over a bucket: clients get what the files here give, also pg_dump and many clients at once, and a store that is slow,
//! refuses or changes ends statements, not the server.
//!
//! Invariant: what the bucket shows is the directory that the other server reads.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use pagemill_testbucket::{BUCKET, Fault, Requests, TestBucket};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use support::Served;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls};

const TABLES: &str = "
create table item(id int primary key, grp int, price numeric(12, 2), name text, doc text);
alter table item alter doc set storage external;
insert into item select i, i % 97, (i % 10007) / 100.0, 'name ' || i,
    case when i % 500 = 0 then repeat(md5(i::text), 300) end from generate_series(1, 60000) i;
create view dear as select id, name from item where price > 99;
create table late as select i from generate_series(1, 1000) i;
create table later as select i from generate_series(1, 1000) i;
analyze";

const STATEMENTS: [&str; 5] = [
    "select * from item where id = 4242",
    "select id, length(doc), md5(doc) from item where doc is not null order by id",
    "select grp, count(*), sum(price) from item group by grp order by grp",
    "select count(*), max(name collate \"C\") from dear",
    "copy (select id from item order by id desc limit 7) to stdout",
];

/// Longer than any of the tests waits for what should end at once.
const SLOW: Duration = Duration::from_secs(20);

struct Stored {
    cluster: TestCluster,
    bucket: TestBucket,
    url: String,
}

fn stored() -> Result<Stored> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    cluster.psql("postgres", TABLES)?;
    cluster.stop()?;
    let bucket = TestBucket::start(cluster.root())?;
    let data = cluster.data_dir();
    let key = data.strip_prefix(cluster.root()).context("it is below the root")?;
    let url = format!("s3://{BUCKET}/{}", key.display());
    Ok(Stored { cluster, bucket, url })
}

impl Stored {
    fn served(&self, flags: &[&str]) -> Result<Served> {
        Served::by(|command| {
            command.envs(self.bucket.environment());
            command.args(["-q", "serve", "-D", &self.url]).args(flags)
        })
    }

    /// What a program that speaks to a server prints.
    fn printed(&self, served: &Served, program: &str, words: &[&str]) -> Result<String> {
        let program = self.cluster.install().psql().with_file_name(program);
        let mut command = Command::new(program);
        command.arg("-h").arg(served.directory.path()).args(["-U", "postgres", "-d", "postgres"]);
        let output = command.args(words).stdin(Stdio::null()).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{said}{}", served.log()?);
        Ok(String::from_utf8(output.stdout)?)
    }

    fn asked(&self, served: &Served, statement: &str) -> Result<String> {
        let words = ["-XAtq", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", "-c", statement];
        self.printed(served, "psql", &words)
    }
}

/// A dump without the key that is another one each time.
fn dump(text: &str) -> String {
    let is_own = |line: &&str| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict");
    text.lines().filter(is_own).map(|line| format!("{line}\n")).collect()
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

async fn client(served: &Served) -> Result<Client> {
    let mut config = tokio_postgres::Config::new();
    config.host_path(served.directory.path()).user("postgres").dbname("postgres");
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

#[test]
fn clients_get_what_the_files_give() -> Result<()> {
    let stored = stored()?;
    let cache = tempfile::tempdir()?;
    let cache = cache.path().to_str().context("a path")?.to_owned();
    let here = Served::start(&stored.cluster, &[])?;
    let known_dump = dump(&stored.printed(&here, "pg_dump", &[])?);
    ensure!(known_dump.lines().count() > 60_000, "there is much to compare");
    // With an empty cache, and with what the one before left in it.
    for cache in ["none", &cache, &cache] {
        let there = stored.served(&["--remote-cache", cache])?;
        for statement in STATEMENTS {
            let known = stored.asked(&here, statement)?;
            ensure!(!known.is_empty(), "{statement}");
            ensure!(stored.asked(&there, statement)? == known, "{statement}, cache {cache}");
        }
        let found = dump(&stored.printed(&there, "pg_dump", &[])?);
        ensure!(found == known_dump, "another dump, cache {cache}");
        dumped_by_several(&stored, &there, &known_dump)?;
    }
    runtime()?.block_on(many_at_once(&stored))
}

/// `pg_dump -j`, whose connections see one snapshot.
fn dumped_by_several(stored: &Stored, there: &Served, known: &str) -> Result<()> {
    let place = tempfile::tempdir()?;
    let place = place.path().join("dump");
    let place = place.to_str().context("a path")?;
    stored.printed(there, "pg_dump", &["-j", "3", "-Fd", "-f", place])?;
    let program = stored.cluster.install().psql().with_file_name("pg_restore");
    let output = Command::new(program).args(["-f", "-", place]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    ensure!(dump(&String::from_utf8(output.stdout)?) == known, "another dump by several");
    Ok(())
}

/// Each of many clients that come at once gets its own rows, and what is read for one is there for the others.
async fn many_at_once(stored: &Stored) -> Result<()> {
    let there = stored.served(&["--remote-cache", "none", "-N", "60"])?;
    let ask = |number: i32| {
        let there = &there;
        async move {
            let client = client(there).await?;
            for id in (number..60_000).step_by(6000) {
                let rows = client.query("select name from item where id = $1", &[&id]).await?;
                ensure!(rows.len() == 1 && rows[0].get::<_, &str>(0) == format!("name {id}"));
            }
            Ok(())
        }
    };
    futures::future::try_join_all((1..=50).map(ask)).await?;
    let requests = stored.bucket.take_log().len();
    ensure!(requests < 1000, "{requests} requests for 500 rows");
    Ok(())
}

#[test]
fn what_waits_for_a_store_ends_when_it_is_told_to() -> Result<()> {
    let stored = stored()?;
    let served = stored.served(&["--remote-cache", "none"])?;
    stored.asked(&served, "select 1 from pg_class limit 1")?;
    stored.bucket.set_latency(SLOW);
    let begun = Instant::now();
    runtime()?.block_on(async {
        let slow = "select count(*), sum(price) from item";
        let asking = client(&served).await?;
        let cancel = asking.cancel_token();
        let (ended, _) = tokio::join!(asking.query(slow, &[]), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cancel.cancel_query(NoTls).await
        });
        let ended = ended.err().context("it was cancelled")?;
        ensure!(format!("{ended:?}").contains("57014"), "{ended:?}");
        asking.batch_execute("set statement_timeout = 300").await?;
        let ended = asking.query(slow, &[]).await.err().context("it took too long")?;
        ensure!(format!("{ended:?}").contains("57014"), "{ended:?}");
        // What needs nothing of the store is answered meanwhile.
        ensure!(asking.query_one("select 42", &[]).await?.get::<_, i32>(0) == 42);
        anyhow::Ok(())
    })?;
    ensure!(begun.elapsed() < SLOW, "it waited for the store");
    stored.bucket.set_latency(Duration::ZERO);
    ensure!(stored.asked(&served, "select count(*) from item")? == "60000\n");
    Ok(())
}

#[test]
fn what_a_store_does_to_one_statement_is_told_and_over() -> Result<()> {
    let stored = stored()?;
    let served = stored.served(&["--remote-cache", "none"])?;
    let path = path_of(&stored, &served, "late")?;
    let refusal = Fault::Refusal(403, "AccessDenied");
    stored.bucket.break_requests(Requests::Gets, &path, refusal, None);
    let failed =
        stored.asked(&served, "select sum(i) from late").err().context("it was refused")?;
    let failed = failed.to_string();
    ensure!(failed.contains("58030") && failed.contains("AccessDenied"), "{failed}");
    ensure!(failed.contains(&path), "{failed}");
    ensure!(stored.asked(&served, "select count(*) from item")? == "60000\n", "others go on");
    stored.bucket.mend();
    ensure!(stored.asked(&served, "select sum(i) from late")? == "500500\n");
    changes(&stored, &served)
}

fn path_of(stored: &Stored, served: &Served, table: &str) -> Result<String> {
    let path = stored.asked(served, &format!("select pg_relation_filepath('{table}')"))?;
    Ok(path.trim_end().to_owned())
}

/// Another object in the place of one that was there when the directory was opened is no answer; once it is opened anew, it is.
fn changes(stored: &Stored, served: &Served) -> Result<()> {
    let path = path_of(stored, served, "later")?;
    replace(&stored.cluster.data_dir().join(path))?;
    let failed = stored.asked(served, "select sum(i) from later").err().context("it is another")?;
    let failed = failed.to_string();
    ensure!(failed.contains("replaced") && failed.contains("58030"), "{failed}");
    let id = served.child.id().to_string();
    ensure!(Command::new("kill").args(["-HUP", &id]).status()?.success(), "kill");
    let begun = Instant::now();
    while stored.asked(served, "select sum(i) from later").ok().as_deref() != Some("500500\n") {
        ensure!(begun.elapsed() < SLOW, "it was not opened anew: {}", served.log()?);
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// The same bytes in another file, whose time of change is another one.
fn replace(path: &Path) -> Result<()> {
    let copy = path.with_extension("copy");
    std::thread::sleep(Duration::from_millis(1100));
    std::fs::write(&copy, std::fs::read(path)?)?;
    std::fs::rename(&copy, path)?;
    Ok(())
}
