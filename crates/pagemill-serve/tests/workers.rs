//! `pagemill serve --workers`: clients get from several workers what they get from one machine, by their own rights, paths and settings.
//!
//! Invariant: every statement that is compared is one that workers run, as EXPLAIN says; in the end they are taken away, and it fails.
#![cfg(feature = "workers")]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use pagemill_cluster::{Cluster, OpenOptions};
use pagemill_engine::ScanOptions;
use pagemill_io::Storage;
use pagemill_sql::workers::{
    Access, ServedDirectory, Tls, TlsFiles, WorkerOptions, WorkerServer, directory_name,
};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use support::Served;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

const TABLES: &str = "
    create table item as select i as id, i % 97 as grp, i % 3 as tenant, (i % 1000) / 10.0 as price from generate_series(1, 60000) i;
    create schema other;
    create table other.item as select i as id, i % 7 as grp, 0 as tenant, 1.5 as price from generate_series(1, 50000) i;
    alter table item enable row level security;
    create role reader login;
    create role nobody login;
    grant usage on schema other to reader;
    grant select on item, other.item to reader;
    create policy own on item to reader using (tenant = current_setting('app.tenant')::int);
    create index on item(id)";

/// Statements, each of them after what a client sets.
const DIVIDED: [(&str, &str, &str); 7] = [
    ("postgres", "", "select grp, count(*), sum(price) from item group by grp order by grp"),
    (
        "postgres",
        "set search_path = other",
        "select grp, count(*), sum(price) from item group by grp order by grp",
    ),
    (
        "postgres",
        "set app.tenant = '2'",
        "select count(*), sum(id) from item where tenant = current_setting('app.tenant')::int",
    ),
    ("postgres", "", "select count(*), min(current_user::text) from item where price < 50"),
    (
        "reader",
        "set app.tenant = '1'",
        "select tenant, count(*), sum(price) from item group by tenant",
    ),
    (
        "reader",
        "set app.tenant = '2'",
        "select grp, count(*) from item where price > 10 group by grp order by grp limit 9",
    ),
    ("reader", "set search_path = other", "select count(distinct grp), sum(price) from item"),
];

fn psql(served: &Served, cluster: &TestCluster, user: &str, commands: &[&str]) -> Result<Output> {
    let mut command = Command::new(cluster.install().psql());
    command.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", "-h"]);
    command.arg(served.directory.path()).args(["-U", user, "-d", "postgres"]);
    for text in commands.iter().filter(|text| !text.is_empty()) {
        command.args(["-c", text]);
    }
    Ok(command.stdin(Stdio::null()).output()?)
}

fn answer(output: Output) -> Result<String> {
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// A worker in this process, on a runtime that ends with it.
fn worker(cluster: &TestCluster, access: Access) -> Result<(Runtime, String)> {
    let path = cluster.data_dir();
    let name = directory_name(&path);
    let opener = move || Ok(Cluster::open(Storage::real(), &path, OpenOptions::default())?);
    let directories = vec![ServedDirectory { name, opener: Box::new(opener) }];
    let scan = ScanOptions { jobs: 1, ..ScanOptions::default() };
    let server = WorkerServer::new(WorkerOptions {
        directories,
        memory: None,
        scan,
        access,
        export_to: Vec::new(),
    })?;
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?.to_string();
    runtime.spawn(server.run(listener, std::future::pending()));
    Ok((runtime, address))
}

/// By their rights, paths and settings.
fn answers_are_those_of_one(cluster: &TestCluster, alone: &Served, served: &Served) -> Result<()> {
    for (user, setting, statement) in DIVIDED {
        let plan = psql(served, cluster, user, &[setting, &format!("explain {statement}")])?;
        let plan = answer(plan)?;
        ensure!(plan.contains("Stage 1"), "{statement}: {plan}");
        let expected = answer(psql(alone, cluster, user, &[setting, statement])?)?;
        // Again and again: a plan that is kept is none that takes the statement from the workers.
        let several = psql(served, cluster, user, &[setting, statement, statement, statement])?;
        ensure!(answer(several)? == expected.repeat(3), "{statement}");
    }
    let words = "prepare p(int) as select count(*), sum(price) from item where grp < $1";
    let asked = [words, "execute p(5)", "execute p(50)", "execute p(null)"];
    let expected = answer(psql(alone, cluster, "postgres", &asked)?)?;
    let told = answer(psql(served, cluster, "postgres", &asked)?)?;
    ensure!(told == expected && told.ends_with("0|\n"), "{told}");
    // A row by its key needs no worker, and is read without one below, too.
    let by_key = "select grp from item where id = 4711";
    ensure!(
        answer(psql(served, cluster, "postgres", &[by_key, by_key, by_key])?)? == "55\n".repeat(3)
    );
    let denied = psql(served, cluster, "nobody", &["select count(*) from item"])?;
    ensure!(String::from_utf8_lossy(&denied.stderr).contains("42501"));
    Ok(())
}

fn stopped_cluster() -> Result<TestCluster> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    cluster.psql("postgres", TABLES)?;
    cluster.stop()?;
    Ok(cluster)
}

/// The engines of this build.
fn engines() -> &'static [&'static str] {
    if cfg!(feature = "ballista") { &["distributed", "ballista"] } else { &["distributed"] }
}

#[test]
fn clients_are_answered_by_workers() -> Result<()> {
    let cluster = stopped_cluster()?;
    let workers = [worker(&cluster, Access::default())?, worker(&cluster, Access::default())?];
    let named = format!("{},{}", workers[0].1, workers[1].1);
    let alone = Served::start(&cluster, &[])?;
    let served: Vec<Served> = engines()
        .iter()
        .map(|engine| {
            let words = ["--workers", &named, "--worker-share", "1MB", "--worker-engine", engine];
            Served::start(&cluster, &words)
        })
        .collect::<Result<_>>()?;
    for served in &served {
        answers_are_those_of_one(&cluster, &alone, served)?;
    }
    for (runtime, _) in workers {
        runtime.shutdown_background();
    }
    let by_key = "select grp from item where id = 4711";
    for served in &served {
        for (user, setting, statement) in DIVIDED {
            let told = psql(served, &cluster, user, &[setting, statement])?;
            let told = String::from_utf8_lossy(&told.stderr).into_owned();
            ensure!(told.contains("08006") && told.contains("the worker"), "{statement}: {told}");
        }
        ensure!(answer(psql(served, &cluster, "postgres", &[by_key])?)? == "55\n");
    }
    Ok(())
}

/// An authority, and a certificate of it for this machine, in a directory.
fn certificates(place: &Path) -> Result<TlsFiles> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let file = |name: &str| place.join(name);
    std::fs::write(file("authority.crt"), params.self_signed(&key)?.pem())?;
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
    std::fs::write(file("w.crt"), certificate.signed_by(&key, &issuer)?.pem())?;
    std::fs::write(file("w.key"), key.serialize_pem())?;
    std::fs::set_permissions(file("w.key"), std::fs::Permissions::from_mode(0o600))?;
    let authority = file("authority.crt");
    Ok(TlsFiles { certificate: file("w.crt"), key: file("w.key"), authority })
}

#[test]
fn workers_are_asked_within_tls() -> Result<()> {
    let (cluster, place) = (stopped_cluster()?, tempfile::tempdir()?);
    let files = certificates(place.path())?;
    let access = Access { secret: None, tls: Some(Tls::load(files.clone())?) };
    let workers = [worker(&cluster, access.clone())?, worker(&cluster, access)?];
    let named = format!("{},{}", workers[0].1, workers[1].1);
    let [certificate, key, authority] =
        [files.certificate, files.key, files.authority].map(|file| file.display().to_string());
    let within = ["--worker-tls-cert", &certificate, "--worker-tls-key", &key];
    let within = [&within[..], &["--worker-tls-ca", &authority]].concat();
    let statement = "select grp, count(*), sum(price) from item group by grp order by grp";
    let alone = Served::start(&cluster, &[])?;
    let known = answer(psql(&alone, &cluster, "postgres", &[statement])?)?;
    for engine in engines() {
        let words = ["--workers", &named, "--worker-share", "1MB", "--worker-engine", engine];
        let served = Served::start(&cluster, &[&words[..], &within].concat())?;
        let told = answer(psql(&served, &cluster, "postgres", &[statement])?)?;
        ensure!(told == known, "{engine}: {told}");
        let plan = format!("explain analyze {statement}");
        let plan = answer(psql(&served, &cluster, "postgres", &[&plan])?)?;
        let is_told = plan.contains("Stage 1") && plan.contains("60000 tuples alive");
        ensure!(is_told, "{engine}: {plan}");
        let without = Served::start(&cluster, &words)?;
        let told = psql(&without, &cluster, "postgres", &[statement])?;
        let told = String::from_utf8_lossy(&told.stderr).into_owned();
        ensure!(told.contains("08004") && told.contains("within TLS only"), "{engine}: {told}");
    }
    Ok(())
}
