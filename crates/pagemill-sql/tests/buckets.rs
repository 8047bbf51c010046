//! SQL over object stores: the answers of the files here, also by workers, which export into the same bucket; and of an
//! encrypted repository of pgBackRest.
//!
//! Invariant: what a bucket shows does not change under a test, but for what is exported into it.

mod workers_support;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use pagemill_testbucket::{BUCKET, Fault, Requests, TestBucket};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, skipped};
use workers_support::{Asked, Running, SECRET, Worker, begun, signal};

const TABLES: &str = "
create table item(id int primary key, grp int, price numeric(12, 2), name text, doc text);
alter table item alter doc set storage external;
insert into item select i, i % 97, (i % 10007) / 100.0, 'name ' || i,
    case when i % 500 = 0 then repeat(md5(i::text), 300) end from generate_series(1, 60000) i;
create table grp as select i as grp, 'group ' || i as title from generate_series(0, 96) i;
analyze;
delete from item where id % 13 = 0;";

const STATEMENTS: [&str; 6] = [
    "select * from item where id = 4242",
    "select id, length(doc), md5(doc) from item where doc is not null order by id",
    "select title, count(*), sum(price) from item join grp using (grp) group by title order by title",
    "select id from item order by id desc limit 7",
    "select count(*), min(name collate \"C\"), max(id) from item",
    "select relname, relkind from pg_class where relname like 'item%' order by relname",
];

/// Where the tests' passphrase stands; the name is pgBackRest's.
const PASSPHRASE: (&str, &str) = ("PGBACKREST_REPO1_CIPHER_PASS", "flour");

fn cluster_with(settings: &[&str]) -> Result<TestCluster> {
    let install = PgInstall::find(15).context("no PostgreSQL 15")?;
    let settings = settings.iter().map(|line| (*line).to_owned()).collect();
    let options = ClusterOptions { locale: "C".to_owned(), settings, ..ClusterOptions::default() };
    TestCluster::create(&install, &options)
}

/// A statement asked of a directory, with what a bucket wants of the environment.
fn asked(bucket: &TestBucket, directory: &str, words: &[&str]) -> Result<Asked> {
    asking(bucket, directory, words, &[])?.end()
}

fn asking(
    bucket: &TestBucket,
    directory: &str,
    words: &[&str],
    variables: &[(&str, &str)],
) -> Result<Running> {
    begun(Some(SECRET), |command: &mut Command| {
        command.args(["sql", "-d", "postgres", "--format", "csv", "-D", directory]).args(words);
        in_bucket(command, bucket).envs(variables.iter().copied())
    })
}

fn in_bucket<'a>(command: &'a mut Command, bucket: &TestBucket) -> &'a mut Command {
    command.env_remove(PASSPHRASE.0).envs(bucket.environment())
}

/// The URL of a path below what the bucket shows.
fn url(cluster: &TestCluster, path: &Path) -> Result<String> {
    let key = path.strip_prefix(cluster.root()).context("it is not in the bucket")?;
    Ok(format!("s3://{BUCKET}/{}", key.display()))
}

fn worker(bucket: &TestBucket, directory: &str, words: &[&str]) -> Result<Worker> {
    Worker::begun(Some(SECRET), |command: &mut Command| {
        command.args(["-D", directory, "--remote-cache", "none"]).args(words);
        in_bucket(command, bucket)
    })
}

/// A cluster with the tables that is shut down, and a bucket over its root.
struct Stored {
    cluster: TestCluster,
    bucket: TestBucket,
    /// The data directory by its path, and in the bucket.
    here: String,
    there: String,
}

fn stored() -> Result<Stored> {
    let mut cluster = cluster_with(&[])?;
    cluster.psql("postgres", TABLES)?;
    cluster.stop()?;
    let bucket = TestBucket::start(cluster.root())?;
    let there = url(&cluster, &cluster.data_dir())?;
    let here = cluster.data_dir().to_str().context("a path")?.to_owned();
    Ok(Stored { cluster, bucket, here, there })
}

#[test]
fn a_bucket_answers_as_the_files_do() -> Result<()> {
    let Stored { bucket, here, there, cluster: _cluster } = stored()?;
    let cache = tempfile::tempdir()?;
    let cache = cache.path().to_str().context("a path")?.to_owned();
    for statement in STATEMENTS {
        let known = asked(&bucket, &here, &[statement])?.succeeded()?;
        ensure!(known.lines().count() > 1, "{statement}: {known}");
        for cache in ["none", &cache, &cache] {
            let found = asked(&bucket, &there, &["--remote-cache", cache, statement])?;
            ensure!(found.succeeded()? == known, "{statement}, cache {cache}");
        }
    }
    // What cannot be read is an error with the place, and what the store says.
    bucket.break_requests(Requests::Gets, "1259", Fault::Refusal(403, "AccessDenied"), None);
    let Asked { is_success, said, .. } =
        asked(&bucket, &there, &["--remote-cache", "none", STATEMENTS[0]])?;
    ensure!(!is_success && said.contains("AccessDenied") && said.contains("1259"), "{said}");
    Ok(())
}

#[test]
fn workers_read_a_bucket_and_export_into_it() -> Result<()> {
    let Stored { cluster, bucket, here, there } = stored()?;
    let lake = format!("s3://{BUCKET}/lake/");
    let start = || worker(&bucket, &there, &["--export-to", &lake]);
    let (first, second) = (start()?, start()?);
    let both = format!("{},{}", first.address(), second.address());
    let by_both = ["--workers", &both, "--worker-share", "1MB", "--remote-cache", "none"];
    for statement in &STATEMENTS[1..3] {
        let known = asked(&bucket, &here, &[statement])?.succeeded()?;
        let found = asked(&bucket, &there, &[&by_both[..], &[*statement]].concat())?;
        ensure!(!found.said.contains("NOTICE"), "it was not run by workers: {}", found.said);
        ensure!(found.succeeded()? == known, "{statement}");
    }

    // An export that loses a worker, then who asks; then the same command ends it, and once more finds all there.
    let export = |addresses: &str| {
        begun(Some(SECRET), |command: &mut Command| {
            command.args(["export", "-d", "postgres", "--format", "parquet", "-t", "item"]);
            command.args(["--part-size", "1MB", "--remote-cache", "none", "-D", &there]);
            command.args(["-o", &format!("{lake}shop/"), "--workers", addresses]);
            in_bucket(command, &bucket)
        })
    };
    let place = cluster.root().join("lake/shop/public.item");
    // Far enough that it cannot end between its first file and the signals.
    bucket.set_latency(Duration::from_millis(150));
    let running = export(&both)?;
    let begun_at = Instant::now();
    while std::fs::read_dir(&place).map_or(0, Iterator::count) == 0 {
        ensure!(begun_at.elapsed() < Duration::from_secs(30), "no file appeared");
        std::thread::sleep(Duration::from_millis(2));
    }
    signal(running.id(), "KILL")?;
    signal(second.id(), "KILL")?;
    running.end()?;
    bucket.set_latency(Duration::ZERO);
    let manifest = cluster.root().join("lake/shop/_manifest.json");
    ensure!(!manifest.exists(), "the export ended before it was killed");
    let third = start()?;
    let rest = format!("{},{}", first.address(), third.address());
    let Asked { is_success, said, .. } = export(&rest)?.end()?;
    ensure!(is_success && said.contains("were there"), "{said}");
    let manifest = std::fs::read_to_string(manifest)?;
    ensure!(manifest.contains(r#""rows": 55385"#), "{manifest}");
    let before = std::fs::read_dir(&place)?.count();
    ensure!(export(&rest)?.end()?.is_success && std::fs::read_dir(&place)?.count() == before);
    let ids = exported_ids(&bucket, &here, &place)?;
    ensure!(ids == (1..=60000).filter(|id| id % 13 != 0).collect::<Vec<u32>>(), "rows");

    // Nothing may be written beside what the workers were started for, or into the cluster.
    for output in [format!("s3://{BUCKET}/other/"), there.clone()] {
        let asked = begun(Some(SECRET), |command: &mut Command| {
            command.args(["export", "-d", "postgres", "--format", "parquet", "-t", "item"]);
            command.args(["-D", &there, "-o", &output, "--workers", &rest]);
            in_bucket(command, &bucket)
        });
        let Asked { is_success, said, .. } = asked?.end()?;
        ensure!(!is_success && said.contains("--export-to"), "{output}: {said}");
    }
    Ok(())
}

/// The rows of the files of an export, in their order.
fn exported_ids(bucket: &TestBucket, here: &str, place: &Path) -> Result<Vec<u32>> {
    let mut files: Vec<_> =
        std::fs::read_dir(place)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    ensure!(files.len() > 3, "{files:?}");
    let mut ids = Vec::new();
    for file in files {
        let table = format!("f={}", file.display());
        let read = asked(bucket, here, &["--table", &table, "select id from f"])?.succeeded()?;
        for line in read.lines().skip(1) {
            ids.push(line.parse()?);
        }
    }
    Ok(ids)
}

#[test]
fn an_encrypted_repository_in_a_bucket_answers_to_who_has_its_passphrase() -> Result<()> {
    let Ok(version) = Command::new("pgbackrest").arg("version").output() else {
        skipped("encrypted repositories in a bucket: no pgbackrest");
        return Ok(());
    };
    ensure!(version.status.success(), "pgbackrest version");
    let mut cluster = cluster_with(&["archive_mode=on"])?;
    let known = backed_up(&mut cluster)?;
    let bucket = TestBucket::start(cluster.root())?;
    let there = url(&cluster, &cluster.root().join("repo"))?;
    let ask = |words: &[&str], variables: &[(&str, &str)]| {
        asking(
            &bucket,
            &there,
            &[&["--remote-cache", "none", "--backup", "latest"], words].concat(),
            variables,
        )?
        .end()
    };
    for (statement, known) in STATEMENTS.iter().zip(&known) {
        let found = ask(&[statement], &[PASSPHRASE])?.succeeded()?;
        ensure!(found.trim_end() == known.trim_end(), "{statement}: {found}");
    }
    let Asked { is_success, said, .. } = ask(&[STATEMENTS[0]], &[])?;
    ensure!(!is_success && said.contains(PASSPHRASE.0), "{said}");
    let Asked { is_success, said, .. } = ask(&[STATEMENTS[0]], &[(PASSPHRASE.0, "salt")])?;
    ensure!(!is_success && !said.contains("salt") && !said.contains("panicked"), "{said}");

    // Workers have it from their own environment: it does not travel with a statement.
    let worker = Worker::begun(Some(SECRET), |command: &mut Command| {
        command.args(["-D", &there, "--backup", "latest", "--remote-cache", "none"]);
        in_bucket(command, &bucket).env(PASSPHRASE.0, PASSPHRASE.1)
    })?;
    let words = ["--workers", worker.address(), "--worker-share", "1MB", STATEMENTS[2]];
    let found = ask(&words, &[PASSPHRASE])?;
    ensure!(!found.said.contains("NOTICE"), "it was not run by workers: {}", found.said);
    ensure!(found.succeeded()?.trim_end() == known[2].trim_end());
    Ok(())
}

/// Takes a backup of a cluster with the tables into `repo` below its root; what the server answers then.
fn backed_up(cluster: &mut TestCluster) -> Result<Vec<String>> {
    let root = cluster.root().display().to_string();
    let config = format!("{root}/pgbackrest.conf");
    let psql = cluster.psql_command("postgres");
    let variable = |name: &str| {
        let found = psql.get_envs().find(|(known, _)| *known == name);
        found.and_then(|(_, value)| value?.to_str().map(str::to_owned)).context("a variable")
    };
    let (socket, port, user) = (variable("PGHOST")?, variable("PGPORT")?, variable("PGUSER")?);
    let data = cluster.data_dir();
    std::fs::write(
        &config,
        format!(
            "[global]\nrepo1-path={root}/repo\nrepo1-retention-full=9\nrepo1-bundle=y\nrepo1-cipher-type=aes-256-cbc\n\
             repo1-cipher-pass={}\ncompress-type=gz\nlog-path={root}/log\nlock-path={root}/lock\nspool-path={root}/spool\n\
             start-fast=y\n[shop]\npg1-path={}\npg1-socket-path={socket}\npg1-port={port}\npg1-user={user}\n",
            PASSPHRASE.1,
            data.display()
        ),
    )?;
    for name in ["log", "repo"] {
        let path = cluster.root().join(name);
        std::fs::create_dir(&path)?;
        cluster.account().own(&path)?;
    }
    let push = format!("pgbackrest --config={config} --stanza=shop archive-push %p");
    cluster.psql("postgres", &format!("alter system set archive_command = '{push}'"))?;
    cluster.psql("postgres", "select pg_reload_conf()")?;
    let run = |word: &str| -> Result<()> {
        let mut command = cluster.account().command(Path::new("pgbackrest"));
        let output =
            command.args([&format!("--config={config}"), "--stanza=shop", word]).output()?;
        ensure!(output.status.success(), "{word}: {}", String::from_utf8_lossy(&output.stdout));
        Ok(())
    };
    run("stanza-create")?;
    cluster.psql("postgres", TABLES)?;
    run("backup")?;
    let mut known = Vec::new();
    for statement in STATEMENTS {
        let copied = format!("copy ({statement}) to stdout (format csv, header)");
        known.push(cluster.psql("postgres", &copied)?);
    }
    cluster.stop()?;
    Ok(known)
}
