//! A client that sends what it is told to, within TLS or not: what no library would send is sent by it.
//!
//! Invariant: whatever the server answers, it waits for a bounded time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::served::{Authority, Served};

trait Bytes: Read + Write {}
impl<B: Read + Write> Bytes for B {}

/// A connection.
pub(crate) struct Wire {
    stream: Box<dyn Bytes>,
}

/// The packet that asks for a session.
pub(crate) fn startup(user: &str) -> Vec<u8> {
    let body = [&(3_i32 << 16).to_be_bytes()[..], b"user\0", user.as_bytes(), b"\0\0"].concat();
    [&(body.len() as i32 + 4).to_be_bytes()[..], &body].concat()
}

/// All that comes until the end, or until it is reset.
pub(crate) fn rest(stream: &mut impl Read) -> Vec<u8> {
    let mut told = Vec::new();
    let _ = stream.read_to_end(&mut told);
    told
}

impl Wire {
    pub(crate) fn plain(served: &Served) -> Result<Self> {
        Ok(Self { stream: Box::new(served.connect()?) })
    }

    pub(crate) fn socket(path: &str) -> Result<Self> {
        Ok(Self { stream: Box::new(UnixStream::connect(path)?) })
    }

    /// Within TLS, from the first byte on.
    pub(crate) fn direct(
        served: &Served,
        authority: &Authority,
        protocol: Option<&str>,
    ) -> Result<Self> {
        Self::within_tls(served.connect()?, authority, protocol)
    }

    /// Within TLS, after a request.
    pub(crate) fn requested(
        served: &Served,
        authority: &Authority,
        protocol: Option<&str>,
    ) -> Result<Self> {
        let mut stream = served.connect()?;
        stream.write_all(&8_i32.to_be_bytes())?;
        stream.write_all(&(1234 << 16 | 5679_i32).to_be_bytes())?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        ensure!(&answer == b"S", "{answer:?}");
        Self::within_tls(stream, authority, protocol)
    }

    fn within_tls(
        stream: TcpStream,
        authority: &Authority,
        protocol: Option<&str>,
    ) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority.path("root.crt"))?)?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocol.iter().map(|name| name.as_bytes().to_vec()).collect();
        let session = ClientConnection::new(Arc::new(config), "localhost".try_into()?)?;
        Ok(Self { stream: Box::new(StreamOwned::new(session, stream)) })
    }

    pub(crate) fn send(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        let length = (body.len() as i32 + 4).to_be_bytes();
        self.stream.write_all(&[&[kind][..], &length, body].concat())?;
        Ok(self.stream.flush()?)
    }

    /// The next message.
    pub(crate) fn next(&mut self) -> Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head)?;
        let length = i32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; usize::try_from(length)? - 4];
        self.stream.read_exact(&mut body)?;
        Ok((head[0], body))
    }

    /// What a request to authenticate holds.
    fn request(&mut self, code: i32) -> Result<Vec<u8>> {
        let (kind, body) = self.next()?;
        let found = body
            .split_at_checked(4)
            .filter(|_| kind == b'R')
            .map(|(code, rest)| (code.to_vec(), rest.to_vec()));
        let (found, rest) = found.with_context(|| String::from_utf8_lossy(&body).into_owned())?;
        ensure!(found == code.to_be_bytes(), "{found:?}");
        Ok(rest)
    }

    /// The ways to authenticate that are offered.
    pub(crate) fn offered(&mut self, user: &str) -> Result<Vec<u8>> {
        self.stream.write_all(&startup(user))?;
        self.stream.flush()?;
        self.request(10)
    }

    /// Chooses one, with a first message.
    pub(crate) fn respond(&mut self, mechanism: &str, first: &str) -> Result<()> {
        let length = (first.len() as i32).to_be_bytes();
        self.send(b'p', &[mechanism.as_bytes(), b"\0", &length, first.as_bytes()].concat())
    }

    /// The salt and the iterations that a role is given.
    pub(crate) fn salt(&mut self, user: &str) -> Result<String> {
        self.offered(user)?;
        self.respond("SCRAM-SHA-256", "n,,n=,r=abc")?;
        let told = String::from_utf8(self.request(11)?)?;
        let (_, salt) = told.split_once(',').context("a nonce and a salt")?;
        Ok(salt.to_owned())
    }
}
