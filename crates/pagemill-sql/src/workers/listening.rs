//! Connections that a worker takes: within TLS where it has a certificate.
//!
//! Invariants: a handshake that fails, or takes too long, ends its connection and no other; so many handshakes go on at a time, and no more.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _, unfold};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::{Connected, TcpIncoming};

use super::tls::Tls;

/// How long a handshake may take.
const SHAKING_HANDS: Duration = Duration::from_secs(5);
/// Handshakes at a time.
const MOST_HANDSHAKES: usize = 256;

/// A connection.
#[derive(Debug)]
pub(super) enum Connection {
    Plain(TcpStream),
    Within(Box<TlsStream<TcpStream>>),
}

/// Those that come to a listener.
pub(super) fn connections(
    listener: TcpListener,
    tls: Option<Tls>,
) -> BoxStream<'static, io::Result<Connection>> {
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    match tls {
        None => incoming.map_ok(Connection::Plain).boxed(),
        Some(tls) => {
            let handshakes = Handshakes { incoming, tls, going: JoinSet::new() };
            unfold(handshakes, Handshakes::next).boxed()
        }
    }
}

/// Connections of which it is not known yet who they are with.
struct Handshakes {
    incoming: TcpIncoming,
    tls: Tls,
    going: JoinSet<Option<Connection>>,
}

impl Handshakes {
    async fn next(mut self) -> Option<(io::Result<Connection>, Self)> {
        loop {
            tokio::select! {
                Some(ended) = self.going.join_next() => {
                    if let Ok(Some(connection)) = ended {
                        return Some((Ok(connection), self));
                    }
                }
                accepted = self.incoming.next(), if self.going.len() < MOST_HANDSHAKES => {
                    match accepted? {
                        Ok(stream) => drop(self.going.spawn(within(self.tls.clone(), stream))),
                        Err(error) => return Some((Err(error), self)),
                    }
                }
            }
        }
    }
}

async fn within(tls: Tls, stream: TcpStream) -> Option<Connection> {
    let stream = timeout(SHAKING_HANDS, tls.accept(stream)).await.ok()?.ok()?;
    Some(Connection::Within(Box::new(stream)))
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, bytes),
            Self::Within(stream) => Pin::new(stream).poll_read(context, bytes),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Within(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, bytes),
            Self::Within(stream) => Pin::new(stream).poll_write_vectored(context, bytes),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Within(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Within(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Within(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
