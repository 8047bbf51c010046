//! `pagemill export --workers`: the rows of the tables, each once, whatever becomes of workers and of who asks them.
//!
//! Invariant: what is compared is read back from the files.

mod workers_support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use workers_support::{Asked, Running, SECRET, Worker, begun, signal};

const TABLES: &str = r#"
create table item(id int, grp int, price numeric(12, 2), name text, at timestamp, tags int[], doc text);
insert into item select i, i % 97, (i % 10007) / 100.0, 'name ' || i, timestamp '2020-01-01' + i * interval '1 minute',
    array[i, i + 1], case when i % 5000 = 0 then repeat(md5(i::text), 500) end from generate_series(1, 120000) i;
delete from item where id % 13 = 0;
create table part(id int, day date, v int) partition by range(day);
create table part_1 partition of part for values from (minvalue) to ('2022-06-01');
create table part_2 partition of part for values from ('2022-06-01') to (maxvalue);
insert into part select i, date '2022-01-01' + i % 365, i % 10 from generate_series(1, 50000) i;
create table empty(a int, "B/c" text);
create schema "od.d%";
create table "od.d%"."t/x"(n int);
insert into "od.d%"."t/x" values (1), (2);
create table open(n numeric);
insert into open values (1.5), (NULL);
"#;

fn stopped_cluster() -> Result<TestCluster> {
    let install = PgInstall::find(15).context("no PostgreSQL 15")?;
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    cluster.psql("postgres", &format!("set timezone = 'UTC'; {TABLES}"))?;
    cluster.stop()?;
    Ok(cluster)
}

/// An export by these workers.
fn export(cluster: &TestCluster, workers: &[&Worker], words: &[&str]) -> Result<Running> {
    let addresses: Vec<&str> = workers.iter().map(|worker| worker.address()).collect();
    begun(Some(SECRET), |command: &mut Command| {
        command.args([
            "export",
            "-d",
            "postgres",
            "--format",
            "parquet",
            "--part-size",
            "1MB",
            "-D",
        ]);
        command.arg(cluster.data_dir()).args(["--workers", &addresses.join(",")]).args(words)
    })
}

/// What a statement gives on files of an export.
fn read_back(cluster: &TestCluster, files: &[PathBuf], statement: &str) -> Result<String> {
    let mut all = String::new();
    for file in files {
        let running = begun(None, |command: &mut Command| {
            command
                .args(["sql", "-d", "postgres", "--format", "csv", "-D"])
                .arg(cluster.data_dir());
            command.arg("--table").arg(format!("f={}", file.display())).arg(statement)
        })?;
        all.extend(running.end()?.succeeded()?.lines().skip(1).flat_map(|line| [line, "\n"]));
    }
    Ok(all)
}

fn files_below(place: &Path) -> Result<BTreeMap<PathBuf, SystemTime>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(place)? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(files_below(&path)?),
            false => drop(found.insert(path.clone(), path.metadata()?.modified()?)),
        }
    }
    Ok(found)
}

fn parts(place: &Path, table: &str) -> Result<Vec<PathBuf>> {
    let found = files_below(&place.join(table));
    let all = || format!("{table}: {:?}", files_below(place).map(BTreeMap::into_keys));
    Ok(found.with_context(all)?.into_keys().collect())
}

#[test]
fn all_rows_are_exported_once_and_what_is_there_is_kept() -> Result<()> {
    let mut cluster = stopped_cluster()?;
    let root = tempfile::tempdir()?;
    let place = root.path().join("out");
    let to = [root.path().to_str().context("a path")?];
    let directory = cluster.data_dir();
    let workers = [Worker::exporting(&directory, to[0])?, Worker::exporting(&directory, to[0])?];
    let both = [&workers[0], &workers[1]];
    let output = place.to_str().context("a path")?.to_owned();

    let asked = export(&cluster, &both, &["-t", "public.*", "-o", &output])?.end()?;
    ensure!(!asked.is_success && asked.said.contains("--numeric text"), "{}", asked.said);
    // A pattern chooses partitions and not what they are of, which is named.
    let tables = ["-t", "public.*", "-t", "part", "-t", "od*.*"];
    let values = ["--numeric", "text", "--arrays", "text", "-o", &output];
    let words = [&tables[..], &values].concat();
    let Asked { is_success, said, .. } = export(&cluster, &both, &words)?.end()?;
    ensure!(is_success && said.contains("rows in"), "{said}");
    let item = parts(&place, "public.item")?;
    ensure!(item.len() > 5, "{item:?}");
    // In the order of the table, as one machine writes it.
    let rows =
        read_back(&cluster, &item, "select id, grp, price, name, at, tags, length(doc) from f")?;
    let known = begun(None, |command: &mut Command| {
        command.args(["sql", "-d", "postgres", "--format", "csv", "-D"]).arg(&directory);
        command.arg("select id, grp, price, name, at, tags, length(doc) from item")
    })?;
    let known = known.end()?.succeeded()?;
    ensure!(known.split_once('\n').context("lines")?.1 == rows, "rows of item");
    let sums = read_back(&cluster, &parts(&place, "public.part")?, "select id from f")?;
    let mut ids: Vec<u32> = sums.lines().map(str::parse).collect::<Result<_, _>>()?;
    ids.sort_unstable();
    ensure!(ids == (1..=50000).collect::<Vec<_>>(), "rows of part");
    assert_eq!(
        read_back(&cluster, &parts(&place, "public.empty")?, "select count(*) from f")?,
        "0\n"
    );
    assert_eq!(
        read_back(&cluster, &parts(&place, "od%2Ed%25.t%2Fx")?, "select sum(n) from f")?,
        "3\n"
    );
    let manifest = std::fs::read_to_string(place.join("_manifest.json"))?;
    ensure!(manifest.contains(r#""rows": 110770"#), "{manifest}");

    // Once more: nothing is written but the manifest; what is missing comes again.
    let before = files_below(&place)?;
    std::fs::remove_file(&item[2])?;
    let Asked { is_success, said, .. } = export(&cluster, &both, &words)?.end()?;
    ensure!(is_success && said.contains("were there"), "{said}");
    for (path, at) in files_below(&place)? {
        let is_new = path == item[2] || path.ends_with("_manifest.json");
        ensure!(is_new || before.get(&path) == Some(&at), "{} was written again", path.display());
    }
    // Other options, a cluster that has changed, a place that no worker may write to, and one with something else in it.
    let asked = export(&cluster, &both, &["-t", "item", "-o", &output])?.end()?;
    ensure!(!asked.is_success && asked.said.contains("another export is in it"), "{}", asked.said);
    cluster.start()?;
    cluster.psql("postgres", "insert into item(id) values (-1)")?;
    cluster.stop()?;
    let asked = export(&cluster, &both, &words)?.end()?;
    ensure!(!asked.is_success && asked.said.contains("another export is in it"), "{}", asked.said);
    let elsewhere = tempfile::tempdir()?;
    let elsewhere = elsewhere.path().to_str().context("a path")?.to_owned();
    let asked = export(&cluster, &both, &["-t", "item", "-o", &elsewhere])?.end()?;
    ensure!(!asked.is_success && asked.said.contains("--export-to"), "{}", asked.said);
    let asked = export(&cluster, &both, &["-t", "item", "-o", to[0]])?.end()?;
    ensure!(!asked.is_success && asked.said.contains("something else in it"), "{}", asked.said);
    let inside = directory.join("base");
    let asked = export(&cluster, &both, &["-t", "item", "-o", inside.to_str().context("a path")?])?
        .end()?;
    ensure!(
        !asked.is_success && asked.said.contains("only the server may write"),
        "{}",
        asked.said
    );
    for wrong in [
        &["-t", "item", "--header", "-o", "x/"][..],
        &["-t", "item"],
        &["-t", "item", "--order-by", "i", "-o", "x/"],
    ] {
        ensure!(!export(&cluster, &both, wrong)?.end()?.is_success, "{wrong:?}");
    }
    Ok(())
}

#[test]
fn a_worker_that_is_gone_leaves_its_files_to_others_and_a_killed_export_goes_on() -> Result<()> {
    let cluster = stopped_cluster()?;
    let root = tempfile::tempdir()?;
    let place = root.path().join("out");
    let to = root.path().to_str().context("a path")?;
    let directory = cluster.data_dir();
    let output = place.to_str().context("a path")?.to_owned();
    let words = ["-t", "item", "-t", "part", "-o", &output];
    let worker = || Worker::exporting(&directory, to);

    // Who asks is killed once some files are there.
    let first = worker()?;
    let running = export(&cluster, &[&first], &words)?;
    let begun_at = Instant::now();
    while !place.join("public.item").is_dir() || parts(&place, "public.item")?.is_empty() {
        ensure!(begun_at.elapsed() < Duration::from_secs(30), "no file appeared");
        std::thread::sleep(Duration::from_millis(2));
    }
    signal(running.id(), "KILL")?;
    running.end()?;
    let there = files_below(&place)?;
    ensure!(!place.join("_manifest.json").exists(), "the export ended before it was killed");

    // Then it goes on, with one worker that hangs and is found out, and one that does it all.
    let gone = worker()?;
    let asking = export(&cluster, &[&first, &gone], &words)?;
    signal(gone.id(), "STOP")?;
    let Asked { is_success, said, .. } = asking.end()?;
    signal(gone.id(), "CONT")?;
    // Where it was through before it was stopped, nobody missed it.
    ensure!(is_success || said.contains(gone.address()), "{said}");
    if !is_success {
        export(&cluster, &[&first], &words)?.end()?.succeeded()?;
    }
    let ids = read_back(&cluster, &parts(&place, "public.item")?, "select id from f")?;
    let ids: Vec<u32> = ids.lines().map(str::parse).collect::<Result<_, _>>()?;
    ensure!(ids == (1..=120000).filter(|id| id % 13 != 0).collect::<Vec<_>>(), "rows of item");
    for (path, at) in
        there.iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "parquet"))
    {
        ensure!(path.metadata()?.modified()? == *at, "{} was written again", path.display());
    }

    // With no worker left the export ends in an error, and says how to go on.
    let second = root.path().join("second");
    let output = second.to_str().context("a path")?.to_owned();
    drop(first);
    let asked = export(&cluster, &[&gone], &["-t", "item", "-o", &output])?;
    signal(gone.id(), "KILL")?;
    let Asked { is_success, said, .. } = asked.end()?;
    ensure!(is_success || said.contains(gone.address()), "{said}");
    Ok(())
}
