//! A server that listens on TCP, its certificates, and psql as its client.
//!
//! Invariant: it listens on the loopback address only, and ends with its value.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::wire;

const OBJECTS: &str = include_str!("objects.sql");

/// A stopped cluster with roles of all kinds.
pub(crate) fn cluster() -> Result<TestCluster> {
    let mut cluster = running()?;
    cluster.stop()?;
    Ok(cluster)
}

fn running() -> Result<TestCluster> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    for statement in OBJECTS.split(";\n").filter(|statement| !statement.trim().is_empty()) {
        // Each in a transaction of its own, as a database is made in; one that sets something goes with the next.
        if let Some(next) = statement.strip_prefix("create role aged") {
            cluster.psql(
                "postgres",
                &format!("set password_encryption = md5; create role aged{next}"),
            )?;
        } else if !statement.starts_with("set ") {
            cluster.psql("postgres", statement)?;
        }
    }
    Ok(cluster)
}

/// The same, and the salt that its own server gave a role there.
pub(crate) fn cluster_with_salt(user: &str) -> Result<(TestCluster, String)> {
    let mut cluster = running()?;
    let rules = cluster.data_dir().join("pg_hba.conf");
    let before = std::fs::read_to_string(&rules)?;
    std::fs::write(&rules, format!("local all {user} scram-sha-256\n{before}"))?;
    cluster.stop()?;
    cluster.start()?;
    let command = cluster.psql_command("postgres");
    let of = |wanted: &str| {
        let found = command.get_envs().find(|(name, _)| *name == wanted);
        let value = found.and_then(|(_, value)| value).context("psql is told the place")?;
        anyhow::Ok(value.to_string_lossy().into_owned())
    };
    let socket = format!("{}/.s.PGSQL.{}", of("PGHOST")?, of("PGPORT")?);
    let salt = wire::Wire::socket(&socket)?.salt(user)?;
    cluster.stop()?;
    Ok((cluster, salt))
}

/// A server of ours, ended when it goes.
pub(crate) struct Served {
    child: Child,
    directory: tempfile::TempDir,
    port: u16,
    psql: PathBuf,
}

/// A port that nobody has, and no other test of this process will be given: below those that the kernel hands out to clients.
fn free_port() -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 600)? * 20;
    for _ in 0..200 {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed) % 700;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port is free")
}

impl Served {
    pub(crate) fn start(cluster: &TestCluster, flags: &[&str]) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let port = free_port()?;
        let mut command = command(cluster, flags, &directory);
        command.args(["-p", &port.to_string()]);
        let log = std::fs::File::create(directory.path().join("log"))?;
        let child = command.stderr(log).spawn()?;
        let psql = cluster.install().psql().to_owned();
        let mut served = Self { child, directory, port, psql };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = served.child.try_wait()?;
            ensure!(ended.is_none(), "{}", served.log()?);
            ensure!(start.elapsed() < Duration::from_secs(60), "nothing listens");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(served)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(stream)
    }

    /// What it said on standard error.
    pub(crate) fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.directory.path().join("log"))?)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(cluster: &TestCluster, flags: &[&str], socket: &tempfile::TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill-serve"));
    command.arg("serve").arg("-D").arg(cluster.data_dir()).args(flags);
    if !flags.contains(&"--exec") {
        command.arg("-k").arg(socket.path());
    }
    command.stdout(Stdio::null());
    command
}

/// The exit status and the words of a server that does not start.
pub(crate) fn fails_to_start(cluster: &TestCluster, flags: &[&str]) -> Result<(i32, String)> {
    let directory = tempfile::tempdir()?;
    let mut child = command(cluster, flags, &directory).stderr(Stdio::piped()).spawn()?;
    let start = Instant::now();
    while child.try_wait()?.is_none() {
        if start.elapsed() > Duration::from_secs(20) {
            child.kill()?;
            child.wait()?;
            anyhow::bail!("{flags:?}: it started");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output()?;
    let code = output.status.code().context("an exit status")?;
    Ok((code, String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// psql, by words of a connection string and a password.
pub(crate) fn client(served: &Served, place: &str, password: &str) -> Command {
    let mut command = Command::new(&served.psql);
    let host = if place.contains("host=") { "" } else { "host=127.0.0.1" };
    let database = if place.contains("dbname=") { "" } else { "dbname=postgres" };
    let place = format!("{host} hostaddr=127.0.0.1 port={} {database} {place}", served.port);
    command.args(["-X", "-w", "-A", "-t", "-d", &place]).env("PGPASSWORD", password);
    for name in ["PGHOST", "PGHOSTADDR", "PGSERVICE", "PGSSLMODE", "PGOPTIONS", "PGUSER"] {
        command.env_remove(name);
    }
    command
}

/// What it prints.
pub(crate) fn printed(mut client: Command, statement: &str) -> Result<String> {
    let output = client.args(["-c", statement]).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{:?}: {errors}", client.get_args());
    Ok(String::from_utf8(output.stdout)?)
}

/// What it complains of.
pub(crate) fn failed(mut client: Command, statement: &str) -> Result<String> {
    let output = client.args(["-c", statement]).output()?;
    ensure!(!output.status.success(), "{:?}: it came in", client.get_args());
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Who signs certificates, and one that it signed for localhost.
pub(crate) struct Authority {
    directory: tempfile::TempDir,
    paths: [String; 2],
}

impl Authority {
    pub(crate) fn new() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "An authority of tests");
        let root_key = KeyPair::generate()?;
        let root = params.self_signed(&root_key)?;
        let issuer = Issuer::new(params, root_key);
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, "localhost");
        let certificate = params.signed_by(&key, &issuer)?;
        let write = |name: &str, text: String| std::fs::write(directory.path().join(name), text);
        write("root.crt", root.pem())?;
        write("server.crt", certificate.pem())?;
        write("server.key", key.serialize_pem())?;
        let path = |name: &str| directory.path().join(name).display().to_string();
        let paths = [path("server.crt"), path("server.key")];
        let authority = Self { directory, paths };
        authority.set_key_mode(0o600)?;
        Ok(authority)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// These flags, and those of the certificate.
    pub(crate) fn flags<'f>(&'f self, flags: &[&'f str]) -> Vec<&'f str> {
        let [certificate, key] = &self.paths;
        [flags, &["--tls-cert", certificate, "--tls-key", key]].concat()
    }

    pub(crate) fn set_key_mode(&self, mode: u32) -> Result<()> {
        let mode = std::fs::Permissions::from_mode(mode);
        Ok(std::fs::set_permissions(self.path("server.key"), mode)?)
    }
}
