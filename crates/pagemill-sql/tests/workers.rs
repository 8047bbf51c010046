//! Statements on several workers, which are programs of their own: the same rows as from one, whatever is asked; and an error, soon,
//! where a worker ends, hangs, sees another cluster or does not know who asks.

mod workers_support;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

use workers_support::{Asked, Asking, ENGINES, SECRET, Worker, signal};

const TABLES: &str = r#"
create table item(id int primary key, grp int, big bigint, price numeric(12, 2), ratio float8, exact numeric, name text,
    code char(8), at timestamp, moment timestamptz, day date, flag bool, gone int);
insert into item select i, i % 97, i::bigint * 1000003, (i % 10007) / 100.0, i / 7.0, i / 3.0, 'name ' || (i * 7919 % 1000),
    'c' || i % 13, timestamp '2020-01-01' + i * interval '17 minutes', timestamptz '2021-01-01 00:00+00' + i * interval '1 hour',
    date '2022-01-01' + i % 700, i % 3 = 0, nullif(i % 5, 2) from generate_series(1, 60000) i;
alter table item drop column gone;
delete from item where id % 11 = 0;
create table grp(grp int, title text);
insert into grp select i, 'group ' || i from generate_series(0, 120) i;
create unlogged table loose(id int, word text);
insert into loose select i, repeat('w', i % 40) from generate_series(1, 40000) i;
create table part(id int, day date, v int) partition by range(day);
create table part_1 partition of part for values from (minvalue) to ('2022-03-01');
create table part_2 partition of part for values from ('2022-03-01') to ('2022-09-01');
create table part_3 partition of part for values from ('2022-09-01') to (maxvalue);
insert into part select i, date '2022-01-01' + i % 365, i % 10 from generate_series(1, 50000) i;
create table nan(id int, n numeric(10, 2));
insert into nan select i, i / 100.0 from generate_series(1, 40000) i;
insert into nan values (0, 'NaN');
create table zero(id int, d int);
insert into zero select i, 40000 - i from generate_series(1, 40000) i;
create table same(g int, pad text);
insert into same select i % 3, repeat('x', 60) from generate_series(1, 60000) i;
"#;

/// Statements that workers have to run.
const DIVIDED: [&str; 33] = [
    "select count(*) from item",
    "select count(*), count(flag), count(name) from item",
    "select count(*) from item where grp < 10",
    "select count(*) from item where name like 'name 1%' and price > 20",
    "select count(*) from loose",
    "select count(*), sum(length(word)) from loose where id % 2 = 0",
    "select count(*) from part",
    "select count(*), sum(v) from part where day >= '2022-06-01'",
    "select grp, count(*), sum(id), sum(big), avg(price), sum(price) from item group by grp",
    "select code, min(name), max(name), min(at), max(moment) from item group by code",
    "select name, count(*) from item group by name",
    "select day, sum(exact), avg(exact), min(exact) from item group by day",
    "select flag, count(*), sum(price * 2 + 1) from item where flag is not null group by flag",
    "select extract(year from at), count(*) from item group by 1",
    "select grp, count(distinct code) from item group by grp",
    "select count(distinct grp) from item",
    "select grp, sum(price) from item group by grp having sum(price) > 27000",
    "select grp, count(*) filter (where flag) from item group by grp",
    "select title, count(*), sum(price) from item join grp using (grp) group by title",
    "select a.code, count(*) from item a join item b on a.id = b.id + 1 where b.flag group by a.code",
    "select g.grp, count(i.id) from grp g left join item i on i.grp = g.grp group by g.grp",
    "select count(*) from grp g full join item i on i.grp = g.grp and i.grp > 50",
    "select count(*) from item i where exists (select 1 from part p where p.id = i.id and p.v = 3)",
    "select count(*) from item i where not exists (select 1 from part p where p.id = i.id and p.v = 3)",
    "select count(*), sum(i.id) from item i where i.grp in (select grp from grp where title like '%1')",
    "select id, name, price from item order by price desc, id limit 20",
    "select id, code, day from item where grp = 5 order by id",
    "select grp, sum(big) from item group by grp order by 2 desc, 1 limit 7 offset 3",
    "select p.v, i.code, count(*) from part p join item i on i.id = p.id group by p.v, i.code order by 1, 2",
    "select day, count(*) from part group by day order by day limit 5",
    "select sum(n) from nan",
    "select count(*) from item where flag and (grp = 0 or 10 / nullif(grp, 0) > 3)",
    "select distinct grp, code from item",
];

/// Statements that run here, and a word of why.
const UNDIVIDED: [(&str, &str); 7] = [
    ("select * from grp", "only shows what it reads"),
    ("select title, count(*) from grp group by title", "no table"),
    ("select id, row_number() over (order by id) from item order by id limit 3", "a step"),
    (
        "select count(*) from item i where grp = (select max(grp) from grp g where g.grp < i.grp % 5)",
        "here",
    ),
    ("select count(*) from generate_series(1, 1000)", "reads no table"),
    ("select count(*) from item, generate_series(1, 3)", "a step"),
    ("select relname, count(*) from pg_class group by relname order by 1 limit 2", "no table"),
];

fn stopped_cluster() -> Result<TestCluster> {
    let install = PgInstall::find(15).context("no PostgreSQL 15")?;
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    cluster.psql("postgres", &format!("set timezone = 'UTC'; {TABLES}"))?;
    cluster.psql("postgres", "vacuum item, grp, part")?;
    cluster.stop()?;
    Ok(cluster)
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn workers_give_the_rows_that_one_gives() -> Result<()> {
    let cluster = stopped_cluster()?;
    let directory = cluster.data_dir();
    let alone = Asking::alone(&directory);
    let workers: Vec<Worker> =
        (0..3).map(|_| Worker::start(&directory, Some(SECRET))).collect::<Result<_>>()?;
    let known = DIVIDED.iter().map(|statement| alone.ask(statement)?.succeeded());
    let known = known.collect::<Result<Vec<_>>>()?;
    ensure!(known.iter().all(|answer| answer.lines().count() > 1), "statements without rows");
    let mut wrong = Vec::new();
    // All of them once, and then some of them again.
    let divisions = [(3, "2", 1), (2, "1", 5), (2, "3", 4)];
    for ((count, jobs, step), engine) in divisions.iter().flat_map(|d| ENGINES.map(|e| (d, e))) {
        let several = Asking::of(&directory, &workers[..*count]).with_jobs(jobs).by(engine);
        for (statement, known) in DIVIDED.iter().zip(&known).step_by(*step) {
            let Asked { answer, said, .. } = several.ask(statement)?;
            let is_same = match statement.contains("order by") {
                true => answer == *known,
                false => sorted(&answer) == sorted(known),
            };
            if said.contains("runs here") || !is_same {
                let lines = answer.lines().count();
                wrong
                    .push(format!("{engine}, {count} workers: {statement}: {lines} lines: {said}"));
            }
        }
    }
    let several = Asking::of(&directory, &workers);
    for ((statement, why), engine) in UNDIVIDED.iter().flat_map(|s| ENGINES.map(|e| (s, e))) {
        let known = alone.ask(statement)?.succeeded()?;
        let Asked { answer, said, .. } = several.clone().by(engine).ask(statement)?;
        if !said.contains("runs here, not on workers")
            || !said.contains(why)
            || sorted(&answer) != sorted(&known)
        {
            wrong.push(format!("{engine}: {statement}: {said}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    let plan = several.ask("explain select grp, count(*) from item group by grp")?.succeeded()?;
    ensure!(plan.contains("Stage 1") && plan.contains("tasks=3"), "{plan}");
    let by_ballista = several.clone().by("ballista");
    let plan = by_ballista.ask("explain select grp, count(*) from item group by grp")?;
    let plan = plan.succeeded()?;
    ensure!(plan.contains("Stage 2") && plan.contains("SortShuffleWriterExec"), "{plan}");
    let plan =
        several.ask("explain select title, count(*) from grp group by title")?.succeeded()?;
    ensure!(plan.contains("runs here, not on workers"), "{plan}");
    Ok(())
}

#[test]
fn errors_of_a_statement_are_the_same_from_workers() -> Result<()> {
    let cluster = stopped_cluster()?;
    let directory = cluster.data_dir();
    let workers = [Worker::start(&directory, None)?, Worker::start(&directory, None)?];
    for engine in ENGINES {
        let several = Asking::of(&directory, &workers).without_secret().by(engine);
        let asked = several.ask("select sum(10 / d) from zero")?;
        ensure!(!asked.is_success && asked.said.contains("division by zero"), "{}", asked.said);
        // The worker goes on.
        assert_eq!(several.ask("select count(*) from zero")?.succeeded()?, "count\n40000\n");
    }
    Ok(())
}

#[test]
fn a_worker_that_ends_or_hangs_ends_the_statement() -> Result<()> {
    let cluster = stopped_cluster()?;
    let directory = cluster.data_dir();
    // Some 4 x 10^8 pairs of rows.
    let statement = "select a.g, count(*) from same a join same b on a.g = b.g where a.pad < b.pad || 'y' group by a.g";
    for (name, within) in [("KILL", 10), ("STOP", 25)] {
        let workers =
            [Worker::start(&directory, Some(SECRET))?, Worker::start(&directory, Some(SECRET))?];
        let several = Asking::of(&directory, &workers);
        let plan = several.ask(&format!("explain {statement}"))?.succeeded()?;
        ensure!(plan.contains("Stage 1"), "{plan}");
        let running = several.begin(statement)?;
        std::thread::sleep(Duration::from_secs(3));
        signal(workers[1].id(), name)?;
        let since = Instant::now();
        let Asked { is_success, said, .. } = running.end()?;
        let took = since.elapsed();
        ensure!(!is_success, "{name}: the statement is too short for the test");
        ensure!(said.contains(&format!("the worker {}", workers[1].address())), "{name}: {said}");
        ensure!(took < Duration::from_secs(within), "{name}: {took:?}");
        signal(workers[1].id(), "CONT").ok();
    }
    // One that is not there.
    let worker = Worker::start(&directory, Some(SECRET))?;
    let gone = Worker::start(&directory, Some(SECRET))?;
    let several = Asking::of(&directory, [&worker, &gone]);
    signal(gone.id(), "KILL")?;
    let asked = several.ask("select count(*) from item")?;
    ensure!(!asked.is_success && asked.said.contains(gone.address()), "{}", asked.said);
    Ok(())
}

#[test]
fn by_ballista_a_statement_goes_on_without_a_lost_worker() -> Result<()> {
    let cluster = stopped_cluster()?;
    let directory = cluster.data_dir();
    // Some 6 x 10^6 pairs of rows, which go through three stages.
    let statement = "select a.grp, count(*), min(a.id), max(b.id) from item a join item b on a.grp = b.grp \
        where a.name < b.name || 'y' and b.id < 12000 group by a.grp order by a.grp";
    let known = Asking::alone(&directory).ask(statement)?.succeeded()?;
    let workers: Vec<Worker> =
        (0..3).map(|_| Worker::start(&directory, Some(SECRET))).collect::<Result<_>>()?;
    let since = Instant::now();
    let answer = Asking::of(&directory, &workers).by("ballista").ask(statement)?.succeeded()?;
    let whole = since.elapsed();
    ensure!(answer == known, "{answer}");
    let mut wrong = Vec::new();
    for (name, at, lost) in [("KILL", 20, 1), ("KILL", 60, 1), ("KILL", 40, 2), ("STOP", 40, 1)] {
        let workers: Vec<Worker> =
            (0..3).map(|_| Worker::start(&directory, Some(SECRET))).collect::<Result<_>>()?;
        let running = Asking::of(&directory, &workers).by("ballista").begin(statement)?;
        std::thread::sleep(whole * at / 100);
        for worker in &workers[..lost] {
            signal(worker.id(), name)?;
        }
        let Asked { is_success, said, answer } = running.end()?;
        signal(workers[0].id(), "CONT").ok();
        if !is_success || answer != known || !said.contains("has begun anew without a worker") {
            wrong.push(format!("{lost} by {name} at {at} %: {said}: {answer}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    // When all are gone, it ends.
    let workers =
        [Worker::start(&directory, Some(SECRET))?, Worker::start(&directory, Some(SECRET))?];
    let running = Asking::of(&directory, &workers).by("ballista").begin(statement)?;
    std::thread::sleep(whole / 5);
    for worker in &workers {
        signal(worker.id(), "KILL")?;
    }
    let since = Instant::now();
    let asked = running.end()?;
    ensure!(!asked.is_success && asked.said.contains("the worker 127.0.0.1:"), "{}", asked.said);
    ensure!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    Ok(())
}

#[test]
fn what_is_interrupted_leaves_nothing_on_workers() -> Result<()> {
    let cluster = stopped_cluster()?;
    let directory = cluster.data_dir();
    let kept = tempfile::tempdir()?;
    let workers = (0..2).map(|_| {
        Worker::begun(Some(SECRET), |command| {
            command.env("TMPDIR", kept.path()).arg("-D").arg(&directory)
        })
    });
    let workers: Vec<Worker> = workers.collect::<Result<_>>()?;
    let statement = "select a.g, count(*) from same a join same b on a.g = b.g where a.pad < b.pad || 'y' group by a.g";
    for engine in ENGINES {
        let running = Asking::of(&directory, &workers).by(engine).begin(statement)?;
        std::thread::sleep(Duration::from_secs(3));
        ensure!(engine == ENGINES[0] || keeps_rows(kept.path())?, "nothing is kept");
        signal(running.id(), "KILL")?;
        ensure!(!running.end()?.is_success, "{engine}: the statement is too short for the test");
        let since = Instant::now();
        while workers.iter().any(|worker| computes(worker.id()).unwrap_or(true)) {
            ensure!(since.elapsed() < Duration::from_secs(15), "{engine}: workers go on");
        }
        ensure!(!keeps_rows(kept.path())?, "{engine}: files stay");
    }
    Ok(())
}

/// Whether rows of stages are in a directory for temporary files.
fn keeps_rows(directory: &std::path::Path) -> Result<bool> {
    let names = directory.read_dir()?.map(|entry| Ok(entry?.file_name()));
    let names = names.collect::<std::io::Result<Vec<_>>>()?;
    Ok(names.iter().any(|name| name.to_string_lossy().starts_with("pagemill-stages-")))
}

/// Whether a process takes time of a processor.
fn computes(id: u32) -> Result<bool> {
    let taken = || -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        let fields = text.rsplit_once(')').context("no name")?.1.split_whitespace();
        let ticks: Vec<u64> = fields.skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
        Ok(ticks.iter().sum())
    };
    let before = taken()?;
    std::thread::sleep(Duration::from_millis(500));
    Ok(taken()? > before + 10)
}

#[test]
fn a_worker_refuses_who_it_does_not_know_and_what_it_does_not_see() -> Result<()> {
    let mut cluster = stopped_cluster()?;
    let directory = cluster.data_dir();
    let statement = "select count(*) from item";
    let workers =
        [Worker::start(&directory, Some(SECRET))?, Worker::start(&directory, Some(SECRET))?];
    let several = Asking::of(&directory, &workers);
    several.ask(statement)?.succeeded()?;
    let by_ballista = several.clone().by("ballista");
    for asking in [
        several.clone().without_secret(),
        several.clone().with_secret("another secret of some bytes"),
        by_ballista.clone().without_secret(),
    ] {
        let asked = asking.ask(statement)?;
        ensure!(
            !asked.is_success && asked.said.contains("the secret is not the worker's"),
            "{}",
            asked.said
        );
    }
    let refused = Worker::refused(&directory, "0.0.0.0:0")?;
    ensure!(refused.contains("or a secret by --secret-file"), "{refused}");

    // A copy of the cluster in another directory.
    let root = tempfile::tempdir()?;
    let copy = cluster.copy_to(&root.path().join("copy"))?;
    for engine in ENGINES {
        let asked = Asking::of(&copy.data_dir(), &workers).by(engine).ask(statement)?;
        ensure!(
            !asked.is_success && asked.said.contains("does not serve the data directory"),
            "{engine}: {}",
            asked.said
        );
    }

    garbage(workers[0].address())?;
    several.ask(statement)?.succeeded()?;

    // The cluster has changed: workers open it anew, and see what is seen here.
    cluster.start()?;
    cluster.psql(
        "postgres",
        "insert into item(id) select 100000 + i from generate_series(1, 1000) i",
    )?;
    cluster.stop()?;
    assert_eq!(several.ask(statement)?.succeeded()?, "count\n55546\n");

    // Crashed, it is redone by all.
    cluster.start()?;
    cluster.psql(
        "postgres",
        "insert into item(id) select 200000 + i from generate_series(1, 500) i",
    )?;
    cluster.kill()?;
    assert_eq!(several.ask(statement)?.succeeded()?, "count\n56046\n");
    assert_eq!(by_ballista.ask(statement)?.succeeded()?, "count\n56046\n");

    // A worker whose name for the directory leads to a copy by now, which has not got these rows.
    let link = root.path().join("link");
    std::os::unix::fs::symlink(&directory, &link)?;
    let strayed = [Worker::start(&link, Some(SECRET))?, Worker::start(&directory, Some(SECRET))?];
    std::fs::remove_file(&link)?;
    std::os::unix::fs::symlink(copy.data_dir(), &link)?;
    cluster.start()?;
    cluster.psql(
        "postgres",
        "insert into item(id) select 300000 + i from generate_series(1, 500) i",
    )?;
    cluster.stop()?;
    for engine in ENGINES {
        let asked = Asking::of(&directory, &strayed).by(engine).ask(statement)?;
        ensure!(
            !asked.is_success && asked.said.contains("the worker sees another cluster"),
            "{engine}: {}",
            asked.said
        );
        ensure!(asked.said.matches("system identifier").count() == 2, "{}", asked.said);
    }
    Ok(())
}

/// Bytes that are no requests, and requests that are cut off.
fn garbage(address: &str) -> Result<()> {
    use std::io::Write as _;
    for bytes in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0xFF; 9000], b""]
    {
        let mut stream = std::net::TcpStream::connect(address)?;
        stream.write_all(bytes)?;
        stream.write_all(&[0, 0xFF, 0xFF, 1, 4, 0, 0, 0, 1]).ok();
    }
    Ok(())
}
