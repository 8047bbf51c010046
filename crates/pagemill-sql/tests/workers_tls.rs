//! Statements on workers within TLS: right certificates answer, by both engines and from worker to worker; nobody without one, or with one
//! of another authority, is answered or asked.
//!
//! Invariant: workers have no secret here but where it is said: it is the certificate that lets in.

mod worker_certificates;
mod workers_support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use worker_certificates::{Authority, HERE, Side, set_mode};
use workers_support::{Asked, Asking, ENGINES, SECRET, Worker, begun, signal};

const TABLES: &str = "
create table item as select i as id, i % 97 as grp, (i % 1000) / 10.0 as price from generate_series(1, 60000) i";
const COUNT: &str = "select count(*) from item";
/// Rows go from worker to worker.
const GROUPED: &str = "select a.grp, count(*), sum(b.price) from item a join item b on a.id = b.id + 1 group by a.grp order by a.grp";

fn stopped_cluster() -> Result<TestCluster> {
    let install = PgInstall::find(15).context("no PostgreSQL 15")?;
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    cluster.psql("postgres", TABLES)?;
    cluster.stop()?;
    Ok(cluster)
}

fn worker(directory: &Path, side: &Side) -> Result<Worker> {
    Worker::begun(None, |command| command.arg("-D").arg(directory).args(side.flags()))
}

fn refused(asking: &Asking, statement: &str, words: &[&str]) -> Result<()> {
    for engine in ENGINES {
        let Asked { is_success, said, answer } = asking.clone().by(engine).ask(statement)?;
        let is_so =
            !is_success && answer.is_empty() && words.iter().all(|word| said.contains(word));
        ensure!(is_so, "{engine}: {words:?}: {said}");
        ensure!(!said.contains("begun anew"), "{engine}: {said}");
    }
    Ok(())
}

#[test]
fn right_certificates_answer() -> Result<()> {
    let (cluster, authority) = (stopped_cluster()?, Authority::new()?);
    let directory = cluster.data_dir();
    let workers = ["w1", "w2", "w3"].map(|name| worker(&directory, &authority.side(name, HERE)?));
    let workers = workers.into_iter().collect::<Result<Vec<_>>>()?;
    let asker = authority.side("asker", "asker.example")?;
    let asking = Asking::of(&directory, &workers).without_secret().with_words(&asker.asking());
    for statement in [COUNT, GROUPED] {
        let known = Asking::alone(&directory).ask(statement)?.succeeded()?;
        for engine in ENGINES {
            let Asked { is_success, said, answer } = asking.clone().by(engine).ask(statement)?;
            ensure!(is_success && said.is_empty() && answer == known, "{engine}: {said}: {answer}");
        }
    }
    let plan = asking.ask(&format!("explain {GROUPED}"))?.succeeded()?;
    ensure!(plan.contains("Stage 2") && plan.contains("tasks=3"), "{plan}");
    // What is no TLS, or none that goes on, keeps nobody else out.
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[22, 3, 1, 0, 200, 1], &[0xFF; 9000], b""] {
        TcpStream::connect(workers[0].address())?.write_all(bytes)?;
    }
    let held: Vec<TcpStream> =
        (0..20).map(|_| TcpStream::connect(workers[0].address())).collect::<Result<_, _>>()?;
    ensure!(asking.ask(COUNT)?.succeeded()? == "count\n60000\n");
    drop(held);
    Ok(())
}

#[test]
fn nobody_is_answered_without_a_right_certificate() -> Result<()> {
    let (cluster, authority, other) = (stopped_cluster()?, Authority::new()?, Authority::new()?);
    let directory = cluster.data_dir();
    let workers = ["w1", "w2"].map(|name| worker(&directory, &authority.side(name, HERE)?));
    let workers = workers.into_iter().collect::<Result<Vec<_>>>()?;
    let asking = Asking::of(&directory, &workers).without_secret();
    // Which of the two is asked first is by chance.
    let place = "the worker 127.0.0.1:";

    refused(&asking, COUNT, &[place, "it takes connections within TLS only", "--worker-tls-cert"])?;
    let foreign = other.side("foreign", HERE)?;
    let knowing = Side { authority: authority.path("authority.crt"), ..foreign.clone() };
    let words = [place, "it does not take the certificate of who asks", "UnknownCA"];
    refused(&asking.clone().with_words(&knowing.asking()), COUNT, &words)?;
    let words = [place, "its certificate is not taken", "UnknownIssuer"];
    refused(&asking.clone().with_words(&foreign.asking()), COUNT, &words)?;

    certificate_required(workers[0].address(), &authority)?;
    // It goes on for others.
    ensure!(asking.with_words(&authority.side("asker", HERE)?.asking()).ask(COUNT)?.is_success);
    Ok(())
}

/// Who trusts the worker and shows no certificate is told why it is not answered.
fn certificate_required(address: &str, authority: &Authority) -> Result<()> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes())?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), HERE.try_into()?)?;
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address)?);
    let told = stream.read(&mut [0; 100]).err().context("it is answered")?.to_string();
    ensure!(told.contains("CertificateRequired"), "{told}");
    Ok(())
}

#[test]
fn nobody_is_asked_without_a_right_certificate() -> Result<()> {
    let (cluster, authority) = (stopped_cluster()?, Authority::new()?);
    let directory = cluster.data_dir();
    let words = authority.side("asker", HERE)?.asking();
    let right = worker(&directory, &authority.side("w1", HERE)?)?;
    let elsewhere = worker(&directory, &authority.side("w2", "w2.example")?)?;
    let asking = Asking::of(&directory, [&right, &elsewhere]).without_secret().with_words(&words);
    let told = ["its certificate is not taken", "w2.example", elsewhere.address()];
    refused(&asking, COUNT, &told)?;

    let plain =
        [Worker::start(&directory, Some(SECRET))?, Worker::start(&directory, Some(SECRET))?];
    let asking = Asking::of(&directory, &plain).with_words(&words);
    refused(&asking, COUNT, &["the worker 127.0.0.1:", "it does not speak TLS"])?;

    // With both, both count.
    let secret = "another secret, of no tests";
    let side = authority.side("w3", HERE)?;
    let guarded = (0..2).map(|_| {
        Worker::begun(Some(SECRET), |command| command.arg("-D").arg(&directory).args(side.flags()))
    });
    let guarded = guarded.collect::<Result<Vec<_>>>()?;
    let asking = Asking::of(&directory, &guarded).with_words(&words);
    asking.ask(COUNT)?.succeeded()?;
    refused(&asking.with_secret(secret), COUNT, &["the secret is not the worker's"])
}

#[test]
fn workers_check_each_other_and_read_certificates_anew() -> Result<()> {
    let (cluster, ours, other) = (stopped_cluster()?, Authority::new()?, Authority::new()?);
    let directory = cluster.data_dir();
    let asker = other.side("asker", HERE)?.taking("ours.crt", &[&ours])?;
    // Both take who asks, and the second one not the first.
    let first = ours.side("w1", HERE)?.taking("both.crt", &[&ours, &other])?;
    let second = ours.side("w2", HERE)?.taking("other.crt", &[&other])?;
    let workers = [worker(&directory, &first)?, worker(&directory, &second)?];
    let asking = Asking::of(&directory, &workers).without_secret().with_words(&asker.asking());
    // Which of the two is the first to say so is by chance.
    refused(&asking, GROUPED, &["the worker 127.0.0.1:", "certificate"])?;

    // It does when its file says so, and it is told to look.
    std::fs::write(&second.authority, format!("{}{}", ours.pem(), other.pem()))?;
    signal(workers[1].id(), "HUP")?;
    let known = Asking::alone(&directory).ask(GROUPED)?.succeeded()?;
    let since = Instant::now();
    while !asking.ask(GROUPED)?.is_success {
        ensure!(since.elapsed() < Duration::from_secs(20), "it goes by the old file");
    }
    for engine in ENGINES {
        let answer = asking.clone().by(engine).ask(GROUPED)?.succeeded()?;
        ensure!(answer == known, "{engine}: {answer}");
    }
    // What cannot be read leaves it with what it has.
    std::fs::write(&second.authority, "no certificates")?;
    signal(workers[1].id(), "HUP")?;
    std::thread::sleep(Duration::from_millis(500));
    ensure!(asking.ask(GROUPED)?.succeeded()? == known);
    Ok(())
}

#[test]
fn files_that_cannot_be_used_are_told_at_the_start() -> Result<()> {
    let (cluster, authority) = (stopped_cluster()?, Authority::new()?);
    let directory = cluster.data_dir();
    let side = authority.side("w", HERE)?;
    let fails = |side: &Side, told: &str| -> Result<()> {
        let words = ["worker", "--listen", "127.0.0.1:0", "-D"];
        let running =
            begun(None, |command| command.args(words).arg(&directory).args(side.flags()))?;
        let worker = running.end()?;
        ensure!(!worker.is_success && worker.said.contains(told), "{told}: {}", worker.said);
        let asking = Asking::of::<Worker>(&directory, []).without_secret();
        let words = [&["--workers".to_owned(), "h:1".to_owned()][..], &side.asking()].concat();
        let asked = asking.with_words(&words).ask(COUNT)?;
        ensure!(!asked.is_success && asked.said.contains(told), "{told}: {}", asked.said);
        Ok(())
    };
    let other = authority.side("other", HERE)?;
    fails(&Side { key: other.key.clone(), ..side.clone() }, "w.crt")?;
    fails(&Side { key: other.certificate, ..side.clone() }, "other.crt")?;
    fails(&Side { authority: side.key.clone(), ..side.clone() }, "no certificate in it")?;
    fails(&Side { authority: authority.path("none.crt"), ..side.clone() }, "none.crt")?;
    set_mode(&side.key, 0o644)?;
    fails(&side, "others than its owner have access to this private key")?;
    let half = begun(None, |command| {
        command.args(["worker", "-D"]).arg(&directory).arg("--tls-cert").arg(&side.certificate)
    });
    let half = half?.end()?;
    ensure!(!half.is_success && half.said.contains("--tls-key"), "{}", half.said);
    Ok(())
}

#[test]
fn exports_go_within_tls() -> Result<()> {
    let (cluster, authority) = (stopped_cluster()?, Authority::new()?);
    let (directory, place) = (cluster.data_dir(), tempfile::tempdir()?);
    let side = authority.side("w", HERE)?;
    let worker = Worker::begun(None, |command| {
        command.arg("-D").arg(&directory).args(side.flags()).arg("--export-to").arg(place.path())
    })?;
    let export = |words: &[String], name: &str| {
        let running = begun(None, |command| {
            command.args(["export", "-d", "postgres", "-t", "item", "--numeric", "double"]);
            command.args(["--format", "parquet", "-D"]);
            command.arg(&directory).args(["--workers", worker.address()]).args(words);
            command.arg("-o").arg(place.path().join(name))
        });
        running?.end()
    };
    let told = export(&[], "plain")?;
    ensure!(!told.is_success && told.said.contains("within TLS only"), "{}", told.said);
    export(&authority.side("asker", HERE)?.asking(), "within")?.succeeded()?;
    ensure!(place.path().join("within/_manifest.json").exists());
    Ok(())
}
