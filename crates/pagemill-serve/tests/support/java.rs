//! PostgreSQL's driver for Java: where it is, and a port for it, as it knows ports only.
//!
//! It is looked for in Maven's local repository and where Debian has it, or is what `PAGEMILL_PGJDBC` names.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use pagemill_testkit::in_checkout;

/// A driver that can be asked for.
pub(crate) struct JavaDriver {
    archive: PathBuf,
}

impl JavaDriver {
    /// The driver, if it is on this machine and Java with a compiler is.
    pub(crate) fn find() -> Option<Self> {
        let told = Command::new("java").args(["--list-modules"]).output().ok()?;
        let has_compiler = String::from_utf8_lossy(&told.stdout).contains("jdk.compiler");
        archive().filter(|_| has_compiler).map(|archive| Self { archive })
    }

    /// Runs a program of one file with the address of a server at this socket, a user, and what is added.
    pub(crate) fn command(&self, program: &str, socket: &Path, user: &str) -> Result<Command> {
        let port = forwarded(socket.to_owned())?;
        let mut java = Command::new("java");
        java.arg("-Duser.timezone=UTC").arg("-Dfile.encoding=UTF-8").arg("-cp").arg(&self.archive);
        java.arg(in_checkout("crates/pagemill-serve/tests").join(program));
        java.arg(format!("jdbc:postgresql://{}:{port}/postgres", Ipv4Addr::LOCALHOST)).arg(user);
        Ok(java)
    }
}

fn archive() -> Option<PathBuf> {
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

/// Brings what goes to a port of this machine to a socket.
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
