//! A client's bytes before it is let in: within TLS or not, up to the packet that asks for a session.
//!
//! ```text
//!   Unix socket ───────────────────────────────────────────► packet
//!   TCP ─┬─ first byte of TLS ── handshake, ALPN ──────────► packet
//!        └─ SSLRequest ── 'S', nothing behind it ── handshake ─► packet
//!        └─ a packet at once: refused, where there is a certificate
//! ```
//!
//! Invariant: no byte that came in the clear is taken for one that came within TLS.
//!
//! Source: `ProcessSSLStartup` and `ProcessStartupPacket` in `src/backend/tcop/backend_startup.c`, PostgreSQL 18; that bytes behind a request
//! are refused is its remedy for CVE-2021-23214.

use std::net::SocketAddr;
use std::sync::Arc;

use pagemill_sql::session::TlsFacts;
use pagemill_sql::{SqlState, StatementError};
use tokio::io::{AsyncWriteExt as _, WriteHalf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::{Reader, report};
use crate::endpoints::{Arrival, Stream};
use crate::error::{Error, Result};
use crate::opened::Opened;
use crate::protocol::{MessageReader, ResponseBuffer, Severity, Startup, StartupRequest};
use crate::server::Server;
use crate::tls::{Handshake, Tls};

/// What a client that speaks TLS begins with: the type of a record that has a handshake in it (RFC 8446, section 5.1).
const TLS_HANDSHAKE: u8 = 0x16;

/// A client that is not let in yet.
pub(super) struct Channel {
    pub(super) reader: Reader,
    pub(super) writer: WriteHalf<Box<dyn Stream>>,
    /// Where it is, for TCP.
    pub(super) address: Option<SocketAddr>,
    /// Where it found the server, for TCP.
    pub(super) server_address: Option<SocketAddr>,
    /// True within TLS.
    pub(super) is_encrypted: bool,
    /// What was agreed on there, where its names are known.
    pub(super) tls: Option<TlsFacts>,
    /// Until when it may take to say and prove who it is.
    pub(super) deadline: Instant,
    /// What was served when it came.
    pub(super) opened: Arc<Opened>,
}

/// The packet of a client that asks for a session. All others are answered here, or gone.
pub(super) async fn first(server: &Arc<Server>, arrival: Arrival) -> Option<(Channel, Startup)> {
    let deadline = Instant::now() + server.authentication_timeout;
    // Who is late is told nothing, as by PostgreSQL.
    let opened = tokio::time::timeout_at(deadline, open(server, arrival, deadline)).await;
    let channel = opened.ok().flatten()?;
    let asked = tokio::time::timeout_at(deadline, channel.session_packet(server)).await;
    asked.ok().flatten()
}

async fn open(server: &Arc<Server>, arrival: Arrival, deadline: Instant) -> Option<Channel> {
    let opened = server.opened();
    let come = |stream, address| Channel::new(stream, address, deadline, opened.clone());
    match arrival {
        Arrival::Socket(stream) => Some(come(Box::new(stream), None)),
        Arrival::Tcp(stream, address) => {
            let begins_tls = begins_tls(&stream).await;
            let server_address = stream.local_addr().ok();
            let channel = Channel { server_address, ..come(Box::new(stream), Some(address)) };
            match opened.tls() {
                Some(tls) if begins_tls => channel.secured(server, tls, Handshake::Direct).await,
                _ => Some(channel),
            }
        }
    }
}

/// Whether the first byte is one of TLS; it stays where it is.
async fn begins_tls(stream: &TcpStream) -> bool {
    let mut first = [0];
    matches!(stream.peek(&mut first).await, Ok(1)) && first == [TLS_HANDSHAKE]
}

impl Channel {
    fn new(
        stream: Box<dyn Stream>,
        address: Option<SocketAddr>,
        deadline: Instant,
        opened: Arc<Opened>,
    ) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        let reader = MessageReader::new(reader);
        let (server_address, is_encrypted, tls) = (None, false, None);
        Self { reader, writer, address, server_address, is_encrypted, tls, deadline, opened }
    }

    async fn session_packet(mut self, server: &Arc<Server>) -> Option<(Self, Startup)> {
        loop {
            let request = match self.reader.startup().await {
                Ok(request) => request?,
                Err(error) => return self.refuse(server, error).await,
            };
            match request {
                StartupRequest::Session(startup) => match self.admit(server) {
                    Ok(()) => return Some((self, startup)),
                    Err(error) => return self.refuse(server, error).await,
                },
                StartupRequest::Cancel { process, key } => {
                    server.registry.cancel(process, &key);
                    return None;
                }
                StartupRequest::Tls => self = self.secured_by_request(server).await?,
                StartupRequest::Gss => self.send(b"N").await.ok()?,
            }
        }
    }

    /// Refuses what goes over the network in the clear.
    fn admit(&self, server: &Server) -> Result<()> {
        if self.is_encrypted || self.address.is_none() || server.allows_plaintext {
            return Ok(());
        }
        let message = "connections over TCP without TLS are refused";
        let error = StatementError::new(SqlState("28000"), message);
        Err(error.with_hint("Connect with sslmode=require, or better with verify-full.").into())
    }

    /// Answers a client that asks for TLS.
    async fn secured_by_request(mut self, server: &Arc<Server>) -> Option<Self> {
        let opened = self.opened.clone();
        let Some(tls) = opened.tls().filter(|_| self.address.is_some() && !self.is_encrypted)
        else {
            // Nobody listens on a socket that only this user can open.
            self.send(b"N").await.ok()?;
            return Some(self);
        };
        if !self.reader.is_empty() {
            return self
                .refuse(server, Error::protocol("received unencrypted data after SSL request"))
                .await;
        }
        self.send(b"S").await.ok()?;
        self.secured(server, tls, Handshake::Requested).await
    }

    /// The same within TLS; `None` when that failed, which its client knows by then.
    async fn secured(self, server: &Arc<Server>, tls: &Tls, handshake: Handshake) -> Option<Self> {
        let Self { reader, writer, address, server_address, deadline, opened, .. } = self;
        let stream = reader.into_inner()?.unsplit(writer);
        match tls.accept(stream, handshake).await {
            Ok((stream, tls)) => {
                let channel = Self::new(stream, address, deadline, opened);
                Some(Self { is_encrypted: true, server_address, tls, ..channel })
            }
            Err(error) => {
                server.tell(|| format!("{}: no TLS: {error}", place(address)));
                None
            }
        }
    }

    /// Where the client is, in words.
    pub(super) fn place(&self) -> String {
        place(self.address)
    }

    /// Sends bytes at once.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.writer.write_all(bytes).await?;
        // Within TLS they would wait for more.
        self.writer.flush().await
    }

    /// Tells the client why it is not let in, and ends.
    pub(super) async fn refuse<T>(mut self, server: &Server, error: Error) -> Option<T> {
        server.metrics.refusals.add(1);
        tell_fatal(server, &mut self.writer, &error).await;
        None
    }
}

fn place(address: Option<SocketAddr>) -> String {
    address.map_or_else(|| "the socket".into(), |address| address.to_string())
}

/// Tells a client what ends its connection. It may be gone already.
pub(super) async fn tell_fatal(
    server: &Server,
    writer: &mut WriteHalf<Box<dyn Stream>>,
    error: &Error,
) {
    if let Error::Fatal(error) = error {
        server.metrics.error(error);
        let mut out = ResponseBuffer::default();
        report(&mut out, Severity::Fatal, error);
        let _ = writer.write_all(&out.take()).await;
        let _ = writer.shutdown().await;
    }
}
