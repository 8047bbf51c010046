//! The server's state over HTTP: a page for people, numbers for Prometheus, and whether clients can be answered.
//!
//! ```text
//!   /         page.rs: a page             /metrics  exposition.rs: Prometheus' text format
//!   /ready    503 while files have changed underneath      /healthz  200 while there is a server
//! ```
//!
//! Invariants: whoever connects changes nothing, holds one of a few places, and those for seconds only; PostgreSQL's clients
//! are answered alike meanwhile.

mod exposition;
mod page;
mod request;
mod view;

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::error::{Error, Result};
use crate::server::Server;
use request::{MOST_BYTES, Refusal, Request};
use view::View;
pub(crate) use view::since_1970;

/// How many can ask at a time.
const MOST_CONNECTIONS: usize = 16;
/// How long a request may take to come, and its answer to go.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long, and for how many bytes, it is waited for who goes on sending.
const DRAINED: (Duration, usize) = (Duration::from_millis(500), 64 << 10);

/// Where the state is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusPlace {
    name: String,
    addresses: Vec<SocketAddr>,
}

impl StatusPlace {
    /// What `HOST:PORT` stands for.
    ///
    /// # Errors
    /// When it stands for nothing.
    pub fn resolve(place: &str) -> Result<Self> {
        let failed = |source| Error::Listen { place: place.to_owned(), source };
        let addresses: Vec<SocketAddr> = place.to_socket_addrs().map_err(failed)?.collect();
        let name = place.rsplit_once(':').map_or(place, |(name, _)| name);
        Ok(Self { name: name.to_owned(), addresses })
    }

    /// True where only this machine can connect.
    pub fn is_loopback(&self) -> bool {
        self.addresses.iter().all(|address| is_own(address.ip()))
    }
}

fn is_own(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Tells the state.
#[derive(Debug)]
pub struct StatusListener {
    listener: TcpListener,
    name: String,
    /// Whether only this machine can connect.
    is_loopback: bool,
}

/// What is answered.
struct Answer {
    status: &'static str,
    content_type: &'static str,
    body: String,
}

impl Answer {
    fn plain(status: &'static str, body: &str) -> Self {
        let content_type = "text/plain; charset=utf-8";
        Self { status, content_type, body: format!("{body}\n") }
    }

    fn bytes(&self, is_head: bool) -> Vec<u8> {
        let Self { status, content_type, body } = self;
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; \
             base-uri 'none'; form-action 'none'\r\n{}\r\n",
            body.len(),
            if *status == Refusal::OtherMethod.status() { "Allow: GET, HEAD\r\n" } else { "" }
        );
        let body = if is_head { "" } else { body };
        [head.as_bytes(), body.as_bytes()].concat()
    }
}

impl StatusListener {
    /// Listens at the first of a place's addresses that can be had.
    ///
    /// # Errors
    /// When none can.
    pub async fn bind(place: &StatusPlace) -> Result<Self> {
        let failed = |source| Error::Listen { place: place.name.clone(), source };
        let listener = TcpListener::bind(&place.addresses[..]).await.map_err(failed)?;
        Ok(Self { listener, name: place.name.clone(), is_loopback: place.is_loopback() })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Tells whoever asks, until it is dropped.
    pub async fn run(self, server: Arc<Server>) {
        let (listener, places) = (Arc::new(self), Arc::new(Semaphore::new(MOST_CONNECTIONS)));
        loop {
            let Ok((stream, peer)) = listener.listener.accept().await else {
                // No descriptors are left, or it is gone already.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            // Who comes when all places are taken is told nothing.
            let Ok(place) = places.clone().try_acquire_owned() else { continue };
            let (listener, server) = (listener.clone(), server.clone());
            tokio::spawn(async move {
                let _ = listener.serve(stream, peer, server).await;
                drop(place);
            });
        }
    }

    async fn serve(
        &self,
        mut stream: TcpStream,
        peer: SocketAddr,
        server: Arc<Server>,
    ) -> io::Result<()> {
        let (is_head, answer) = match timeout(PATIENCE, asked(&mut stream)).await?? {
            Ok(request) => (request.is_head, self.answer(&request, peer, server).await),
            Err(refusal) => (false, Answer::plain(refusal.status(), refusal.status())),
        };
        let bytes = answer.bytes(is_head);
        timeout(PATIENCE, stream.write_all(&bytes)).await??;
        stream.shutdown().await?;
        drain(&mut stream).await;
        Ok(())
    }

    async fn answer(&self, request: &Request, peer: SocketAddr, server: Arc<Server>) -> Answer {
        let is_named = request.is_for(&self.name);
        if self.is_loopback && !is_named {
            let status = Refusal::OtherHost.status();
            return Answer::plain(status, status);
        }
        // Who comes by way of a name that is not ours may have been led here by a page of somebody else's.
        let is_local = is_own(peer.ip()) && is_named;
        let path = request.path.clone();
        // It looks into files, which may take long where they are far away.
        let told = tokio::task::spawn_blocking(move || told(&path, &server, is_local)).await;
        told.unwrap_or_else(|_| Answer::plain("500 Internal Server Error", "a defect of pagemill"))
    }
}

/// The request, or why there is none that is answered.
async fn asked(stream: &mut TcpStream) -> io::Result<Result<Request, Refusal>> {
    let mut bytes = Vec::new();
    loop {
        match Request::parse(&bytes) {
            Ok(Some(request)) => return Ok(Ok(request)),
            Err(refusal) => return Ok(Err(refusal)),
            Ok(None) => {}
        }
        let mut more = [0; 1024];
        let room = more.len().min(MOST_BYTES - bytes.len());
        match stream.read(&mut more[..room]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => bytes.extend_from_slice(&more[..read]),
        }
    }
}

/// Reads what is still on its way: closing before would take the answer from who sent it.
async fn drain(stream: &mut TcpStream) {
    let (patience, most) = DRAINED;
    let mut rest = stream.take(most as u64);
    let _ = timeout(patience, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}

fn told(path: &str, server: &Server, is_local: bool) -> Answer {
    let ok = "200 OK";
    match path {
        "/" => {
            let body = page::page(&View::of(server), is_local);
            Answer { status: ok, content_type: page::CONTENT_TYPE, body }
        }
        "/metrics" => {
            let body = exposition::metrics(&View::of(server));
            Answer { status: ok, content_type: exposition::CONTENT_TYPE, body }
        }
        "/healthz" => Answer::plain(ok, "ok"),
        "/ready" => {
            let opened = server.opened();
            let changed = opened.clusters().iter().find_map(|served| {
                let change = served.cluster().check_unchanged().err()?;
                Some(format!("the data directory {} has changed: {change}", served.name()))
            });
            match changed {
                None => Answer::plain(ok, "ready"),
                Some(why) => Answer::plain("503 Service Unavailable", &why),
            }
        }
        _ => Answer::plain(Refusal::UnknownPath.status(), Refusal::UnknownPath.status()),
    }
}
