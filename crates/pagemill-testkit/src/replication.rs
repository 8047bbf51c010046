//! A replication connection: the commands that `pg_basebackup` sends, where that program is not installed.
//!
//! psql cannot stand in for it: since 15.20 it ends a connection whose server asks for data outside of COPY, as
//! `UPLOAD_MANIFEST` does.
//!
//! Must hold: a command has been done, or is an error with the server's words, when its function returns.
//! Source of messages and their order: "Frontend/Backend Protocol" and "Streaming Replication Protocol" in PostgreSQL 18's
//! documentation.

use std::io::{BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use crate::server::TestCluster;

/// Version 3.0 of the protocol.
const PROTOCOL: u32 = 3 << 16;
/// A server that says nothing for so long has failed.
const PATIENCE: Duration = Duration::from_secs(120);
/// The longest piece of COPY data that is sent at once.
const PIECE: usize = 64 << 10;

/// One open connection for replication commands.
#[derive(Debug)]
pub struct ReplicationConnection(BufReader<UnixStream>);

impl ReplicationConnection {
    /// Connects to `db`, so that both replication commands and SQL are understood.
    pub fn open(cluster: &TestCluster, db: &str) -> Result<Self> {
        let stream = UnixStream::connect(cluster.server().socket())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut connection = Self(BufReader::new(stream));
        let mut start = PROTOCOL.to_be_bytes().to_vec();
        for word in ["user", pagemill_server::SUPERUSER, "database", db, "replication", "database"]
        {
            start.extend_from_slice(word.as_bytes());
            start.push(0);
        }
        start.push(0);
        connection.send(None, &start)?;
        connection.wait_for(b'Z')?;
        Ok(connection)
    }

    /// Runs a command to its end. What it gives is left out.
    pub fn run(&mut self, command: &str) -> Result<()> {
        self.ask(command)?;
        self.wait_for(b'Z')
    }

    /// Hands over the manifest of the backup that the next one builds on.
    pub fn upload_manifest(&mut self, manifest: &[u8]) -> Result<()> {
        self.ask("UPLOAD_MANIFEST")?;
        self.wait_for(b'G')?;
        for piece in manifest.chunks(PIECE) {
            self.send(Some(b'd'), piece)?;
        }
        self.send(Some(b'c'), &[])?;
        self.wait_for(b'Z')
    }

    fn ask(&mut self, command: &str) -> Result<()> {
        self.send(Some(b'Q'), &[command.as_bytes(), &[0]].concat())
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) -> Result<()> {
        let length = u32::try_from(body.len() + 4)?.to_be_bytes();
        let mut message: Vec<u8> = kind.into_iter().collect();
        message.extend_from_slice(&length);
        message.extend_from_slice(body);
        Ok(self.0.get_mut().write_all(&message)?)
    }

    /// Reads up to a message of this kind.
    fn wait_for(&mut self, wanted: u8) -> Result<()> {
        loop {
            let (kind, body) = self.message()?;
            match kind {
                b'E' => bail!("{}", words(&body)),
                b'R' => ensure!(body == [0; 4], "the server wants a password"),
                _ => {}
            }
            if kind == wanted {
                return Ok(());
            }
        }
    }

    fn message(&mut self) -> Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        ensure!(length >= 4, "a message of {length} bytes");
        let mut body = vec![0; length - 4];
        self.0.read_exact(&mut body)?;
        Ok((head[0], body))
    }
}

/// The fields of an error, in a line.
fn words(body: &[u8]) -> String {
    let fields = body.split(|byte| *byte == 0).filter(|field| field.len() > 1);
    let texts: Vec<_> = fields.map(|field| String::from_utf8_lossy(&field[1..])).collect();
    texts.join(" | ")
}
