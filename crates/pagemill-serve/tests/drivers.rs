//! What drivers ask of the catalogs: the statements of pgJDBC's DatabaseMetaData as they were recorded, and the driver itself where
//! Java and it are on the machine. Each answer is the server's, row for row; where a statement has no order, in any.
//!
//! The driver is looked for in Maven's local repository and where Debian has it, or is what `PAGEMILL_PGJDBC` names. Where it
//! cannot run, the test says SKIPPED.

mod support;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use support::Served;

const OBJECTS: &str = include_str!("../../pagemill-sql/tests/information_schema/objects.sql");
const QUERIES: &str = include_str!("jdbc/queries.sql");

fn cluster() -> Result<TestCluster> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let cluster = TestCluster::create(&install, &options)?;
    cluster.psql("postgres", OBJECTS)?;
    cluster.psql("postgres", "checkpoint")?;
    Ok(cluster)
}

/// The statements, each behind a line that says its number.
fn script(directory: &Path) -> Result<PathBuf> {
    let statements = QUERIES.lines().filter(|line| !line.starts_with("--"));
    let numbered =
        statements.enumerate().map(|(at, statement)| format!("\\echo == {at}\n{statement}\n"));
    let path = directory.join("queries.sql");
    std::fs::write(&path, numbered.collect::<String>())?;
    Ok(path)
}

fn asked(mut psql: Command, script: &Path) -> Result<Vec<String>> {
    psql.args(["-X", "-q", "-A", "-P", "null=NULL", "-f"]).arg(script).env("PGTZ", "UTC");
    let output = psql.output()?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success() && !errors.contains("ERROR"), "{errors}");
    let text = String::from_utf8(output.stdout)?;
    Ok(text.split("== ").skip(1).map(str::to_owned).collect())
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn what_drivers_ask_is_answered_as_by_the_server() -> Result<()> {
    let mut cluster = cluster()?;
    let directory = tempfile::tempdir()?;
    let script = script(directory.path())?;
    let expected = asked(cluster.psql_command("postgres"), &script)?;
    cluster.stop()?;
    let mut served = Command::new(env!("CARGO_BIN_EXE_pagemill-serve"));
    served.args(["-q", "serve", "-D"]).arg(cluster.data_dir()).arg("--exec");
    served.arg(cluster.install().psql());
    let found = asked(served, &script)?;
    let statements: Vec<&str> = QUERIES.lines().filter(|line| !line.starts_with("--")).collect();
    ensure!(found.len() == expected.len() && found.len() == statements.len(), "all are answered");
    for ((found, expected), statement) in found.iter().zip(&expected).zip(statements) {
        let is_same = match statement.to_lowercase().contains("order by") {
            true => found == expected,
            false => sorted(found) == sorted(expected),
        };
        ensure!(is_same, "{statement}\n{found}\n{expected}");
    }
    Ok(())
}

/// The driver's archive, if there is one.
fn driver() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PAGEMILL_PGJDBC") {
        return Some(named.into());
    }
    let debian = PathBuf::from("/usr/share/java/postgresql.jar");
    if debian.exists() {
        return Some(debian);
    }
    let home = PathBuf::from(std::env::var_os("HOME")?);
    let versions = std::fs::read_dir(home.join(".m2/repository/org/postgresql/postgresql")).ok()?;
    let archives = versions.flatten().filter_map(|version| {
        let name = format!("postgresql-{}.jar", version.file_name().to_string_lossy());
        Some(version.path().join(name)).filter(|archive| archive.exists())
    });
    archives.max()
}

/// Brings what goes to a port of this machine to a socket, for the driver knows ports only.
fn forwarded(socket: PathBuf) -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = UnixStream::connect(&socket) else { continue };
            // A client whose way cannot be made sees its connection end.
            let _ = connect(client, server);
        }
    });
    Ok(port)
}

fn connect(client: TcpStream, server: UnixStream) -> std::io::Result<()> {
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    let (mut to_client, mut from_server) = (client, server);
    std::thread::spawn(move || {
        pump(&mut from_client, &mut to_server);
        // It may have ended already.
        let _ = to_server.shutdown(Shutdown::Both);
    });
    std::thread::spawn(move || {
        pump(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    Ok(())
}

fn pump(from: &mut impl Read, to: &mut impl Write) {
    let mut buffer = [0; 1 << 16];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

fn told(archive: &Path, port: u16) -> Result<Output> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jdbc/Metadata.java");
    let mut java = Command::new("java");
    java.arg("-cp").arg(archive).arg(program);
    java.arg(format!("jdbc:postgresql://{}:{port}/postgres", Ipv4Addr::LOCALHOST)).arg("postgres");
    Ok(java.output()?)
}

/// The parts of what the driver tells, those without an order sorted.
fn parts(output: &Output) -> Result<Vec<String>> {
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout.clone())?;
    let part = |part: &str| match part.starts_with("getTypeInfo") {
        true => sorted(part).join("\n"),
        false => part.to_owned(),
    };
    Ok(text.split("== ").skip(1).map(part).collect())
}

fn socket_of(psql: &Command) -> Result<PathBuf> {
    let of = |wanted: &str| {
        let found = psql.get_envs().find(|(name, _)| *name == wanted).and_then(|(_, value)| value);
        found.map(|value| value.to_string_lossy().into_owned()).with_context(|| wanted.to_owned())
    };
    Ok(Path::new(&of("PGHOST")?).join(format!(".s.PGSQL.{}", of("PGPORT")?)))
}

#[test]
fn the_driver_for_java_tells_what_it_told_of_the_server() -> Result<()> {
    let has_java =
        Command::new("java").arg("-version").output().is_ok_and(|told| told.status.success());
    let Some(archive) = driver().filter(|_| has_java) else {
        println!("SKIPPED: no Java, or no PostgreSQL driver for it, on this machine");
        return Ok(());
    };
    let mut cluster = cluster()?;
    let port = forwarded(socket_of(&cluster.psql_command("postgres"))?)?;
    let expected = parts(&told(&archive, port)?)?;
    cluster.stop()?;
    let served = Served::start(&cluster, &[])?;
    let found = parts(&told(&archive, forwarded(served.socket())?)?)?;
    ensure!(expected.len() > 50, "there is much to compare");
    for (found, expected) in found.iter().zip(&expected) {
        ensure!(found == expected, "{found}\n{expected}");
    }
    ensure!(found.len() == expected.len(), "as many answers");
    Ok(())
}
