//! EXPLAIN ANALYZE of statements that workers run: what their scans met, as one machine tells it.
//!
//! Invariant: what is compared are statements of which one machine reads neither more nor less than several.

mod workers_support;

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

use workers_support::{Asked, Asking, ENGINES, SECRET, Worker, signal};

const TABLES: &str = "
create table item as select i as id, i % 97 as grp, (i % 1000) / 10.0 as price from generate_series(1, 60000) i;
delete from item where id % 11 = 0;
create table long as select i as id,
    (select string_agg(md5(i || ' ' || j), '') from generate_series(1, 500) j) as text from generate_series(1, 40) i;
create table pad as select i as id, repeat('x', 200) as pad from generate_series(1, 20000) i";

/// Statements, and how many scans they have.
const DIVIDED: [(&str, usize); 5] = [
    ("select count(*) from item", 1),
    ("select grp, sum(price) from item group by grp", 1),
    ("select count(*) from item where id < 1000 and price > 50", 1),
    ("select count(distinct pad) from pad where id % 7 = 0", 1),
    ("select count(*) from item full join pad on item.id = pad.id", 2),
];

fn stopped_cluster() -> Result<TestCluster> {
    let install = PgInstall::find(15).context("no PostgreSQL 15")?;
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    cluster.psql("postgres", TABLES)?;
    cluster.psql("postgres", "vacuum pad")?;
    cluster.stop()?;
    Ok(cluster)
}

/// What is told of scans.
fn met(asking: &Asking, statement: &str) -> Result<(Vec<String>, String)> {
    let said = asking.ask(&format!("explain analyze {statement}"))?.succeeded()?;
    let lines = said.lines().map(|line| line.trim_matches('"'));
    let told = lines.filter(|line| line.starts_with("Scan of ")).map(told_of);
    let mut told = told.collect::<Result<Vec<_>>>()?;
    // Which side of a join stands first is each plan's own.
    told.sort_unstable();
    Ok((told, said))
}

/// A line with blocks in one number: whether they are read or mapped is up to what is in memory.
fn told_of(line: &str) -> Result<String> {
    let (name, counts) = line.split_once(": ").context("no name")?;
    let (read, counts) = counts.split_once(" blocks read, ").context("no blocks read")?;
    let (mapped, counts) = counts.split_once(" mapped, ").context("no blocks mapped")?;
    let blocks = read.parse::<u64>()? + mapped.parse::<u64>()?;
    Ok(format!("{name}: {blocks} blocks, {counts}"))
}

#[test]
fn scans_on_workers_tell_what_they_met() -> Result<()> {
    let cluster = stopped_cluster()?;
    let directory = cluster.data_dir();
    let workers: Vec<Worker> =
        (0..3).map(|_| Worker::start(&directory, Some(SECRET))).collect::<Result<_>>()?;
    let alone = Asking::alone(&directory);
    for (statement, scans) in DIVIDED {
        let (known, said) = met(&alone, statement)?;
        ensure!(known.len() == scans, "{statement}: {said}");
        for engine in ENGINES {
            let asking = Asking::of(&directory, &workers).by(engine);
            // One account after the other.
            for _ in 0..2 {
                let (told, said) = met(&asking, statement)?;
                ensure!(said.contains("Stage 1") && told == known, "{engine}: {statement}: {said}");
            }
        }
    }
    let statement = "select sum(length(text)), count(*) from long, item where item.id = long.id";
    for engine in ENGINES {
        let (told, said) = met(&Asking::of(&directory, &workers).by(engine), statement)?;
        let is_whole = told.len() == 2
            && told.iter().any(|line| line.contains("40 TOAST values"))
            && told.iter().any(|line| line.contains("54546 tuples alive"));
        ensure!(is_whole, "{engine}: {said}");
        // Scans that end before they are through.
        let statement = "select id, count(*) from item group by id limit 3";
        let (told, said) = met(&Asking::of(&directory, &workers).by(engine), statement)?;
        ensure!(told.len() == 1 && !said.contains("Without what"), "{engine}: {said}");
    }
    Ok(())
}

#[test]
fn a_worker_that_is_lost_tells_nothing() -> Result<()> {
    let cluster = stopped_cluster()?;
    let directory = cluster.data_dir();
    let workers: Vec<Worker> =
        (0..3).map(|_| Worker::start(&directory, Some(SECRET))).collect::<Result<_>>()?;
    signal(workers[2].id(), "KILL")?;
    let asking = Asking::of(&directory, &workers).by("ballista");
    let Asked { is_success, said, answer } =
        asking.ask("explain analyze select count(*) from item")?;
    let lost = format!("Without what scans met on the worker {}", workers[2].address());
    ensure!(is_success && answer.contains(&lost), "{said}: {answer}");
    ensure!(answer.contains("54546 tuples alive"), "{answer}");
    Ok(())
}
