//! A client that asks one thing and then waits: no library and no process of its own, so that hundreds cost nothing here.
//!
//! Source of the messages: "Message Formats" in PostgreSQL's documentation.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// Protocol 3.0.
const VERSION: i32 = 196_608;
/// No answer of such a small question is longer.
const LONGEST: usize = 1 << 16;

/// A session.
pub(super) struct IdleClient(UnixStream);

impl IdleClient {
    /// Connects, asks, and has read the answer.
    pub(super) fn asking(socket: &Path, statement: &str) -> Result<Self> {
        let mut client = Self(UnixStream::connect(socket)?);
        let mut startup = VERSION.to_be_bytes().to_vec();
        startup.extend_from_slice(b"user\0postgres\0database\0postgres\0\0");
        client.send(None, &startup)?;
        client.until_ready()?;
        client.send(Some(b'Q'), format!("{statement}\0").as_bytes())?;
        client.until_ready()?;
        Ok(client)
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) -> Result<()> {
        let mut message = Vec::from_iter(kind);
        message.extend_from_slice(&u32::try_from(body.len() + 4)?.to_be_bytes());
        message.extend_from_slice(body);
        Ok(self.0.write_all(&message)?)
    }

    /// Reads to `ReadyForQuery`.
    fn until_ready(&mut self) -> Result<()> {
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head).context("the server hung up")?;
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            ensure!((4..LONGEST).contains(&length), "a message of {length} bytes");
            let mut body = vec![0; length - 4];
            self.0.read_exact(&mut body)?;
            match head[0] {
                b'Z' => return Ok(()),
                b'E' => bail!("refused: {}", String::from_utf8_lossy(&body).replace('\0', " ")),
                _ => {}
            }
        }
    }
}
