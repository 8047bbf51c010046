//! TLS between workers and those who ask them, and among workers: each side shows a certificate of one authority, and has the other
//! side's checked.
//!
//! ```text
//! who asks ── TLS 1.3, "h2" ──► worker     the worker's certificate: of the authority, and for the name of --workers
//!          ◄─────────────────── HTTP/2     the other side's: of the authority; its first bytes come when it is taken
//! ```
//!
//! Invariants: who has certificates neither speaks nor answers without TLS; a connection counts only when both sides have taken each other's
//! certificate; nothing of a session is kept for another one, so that each is checked anew.
//!
//! Source: RFC 8446, section 5.1, for the first byte of who speaks TLS, and RFC 9113, section 3.4, for who speaks first within it.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};
use tonic::Status;
use tonic::body::Body;
use tower::service_fn;

use super::errors::Distrust;
use crate::key_files::{KeyFileError, certificates, private_key};

/// The protocol's name in a handshake.
const ALPN: &[u8] = b"h2";
/// What the first byte is of who speaks TLS.
const HANDSHAKE: u8 = 22;
/// What is told to who does not.
pub(super) const WITHIN_TLS: &str = "it takes connections within TLS only";

/// The files of one side.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate, with those that lead to the authority's behind it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authority's certificates.
    pub authority: PathBuf,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file gives nothing.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// What is in it cannot be used.
    #[error("{}: {why}", .path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// A certificate with its key, and whose certificates are taken.
#[derive(Clone)]
pub struct Tls {
    files: TlsFiles,
    read: Arc<RwLock<Configured>>,
}

#[derive(Clone)]
struct Configured {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// When one of them cannot be read or used, or the key is not secret.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let read = Arc::new(RwLock::new(Configured::load(&files)?));
        Ok(Self { files, read })
    }

    /// Reads them anew, for connections from now on.
    ///
    /// # Errors
    /// The same; what was read before then stays.
    pub fn load_again(&self) -> Result<(), TlsError> {
        let read = Configured::load(&self.files)?;
        *self.read.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }

    fn configured(&self) -> Configured {
        self.read.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The bytes within TLS to the worker of this name or address, which has taken this side's certificate.
    ///
    /// # Errors
    /// When the two do not take each other.
    pub(super) async fn connect(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> io::Result<BufReader<client::TlsStream<TcpStream>>> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| distrust("no certificate is for such a name".to_owned()))?;
        let connected = self.configured().connector.connect(name, stream).await;
        let stream = connected.map_err(|error| told(&error))?;
        if stream.get_ref().1.alpn_protocol() != Some(ALPN) {
            return Err(distrust("it speaks another protocol within TLS".to_owned()));
        }
        // What it has to say of the certificate comes after the handshake, and a worker that takes it speaks first.
        let mut stream = BufReader::new(stream);
        match stream.fill_buf().await {
            Ok([]) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(stream),
            Err(error) => Err(told(&error)),
        }
    }

    /// The bytes within TLS of who connected.
    ///
    /// # Errors
    /// When it does not speak TLS, or has no certificate that is taken.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<server::TlsStream<TcpStream>> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 1 && first[0] != HANDSHAKE {
            return Err(refuse(stream).await);
        }
        let stream = self.configured().acceptor.accept(stream).await?;
        match stream.get_ref().1.alpn_protocol() {
            Some(ALPN) => Ok(stream),
            _ => Err(io::Error::other("another protocol within TLS")),
        }
    }
}

/// Tells who speaks HTTP/2 without TLS, whatever it asks, that nothing is answered so. No service of the worker sees any of it.
async fn refuse(stream: TcpStream) -> io::Error {
    let refusal = service_fn(async |_: http::Request<_>| {
        Ok::<_, Infallible>(Status::permission_denied(WITHIN_TLS).into_http::<Body>())
    });
    let server = Builder::new(TokioExecutor::new()).http2_only();
    let service = TowerToHyperService::new(refusal);
    // How it ends is nobody's concern.
    drop(server.serve_connection(TokioIo::new(stream), service).await);
    io::Error::other("no TLS")
}

impl Configured {
    fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let chain = certificates(&files.certificate)?;
        let key = private_key(&files.key)?;
        let roots = Arc::new(roots(&files.authority)?);
        let provider = Arc::new(default_provider());
        let unfit = |why: rustls::Error| unfit(&files.certificate, &why);
        let client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(unfit)?
            .with_root_certificates(roots.clone())
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(unfit)?;
        let server = accepting(&files.authority, roots, &provider)?
            .with_single_cert(chain, key)
            .map_err(unfit)?;
        Ok(Self { acceptor: bound(server), connector: binding(client) })
    }
}

type Accepting = rustls::ConfigBuilder<ServerConfig, rustls::server::WantsServerCert>;

/// A worker's side, that takes certificates of these authorities.
fn accepting(
    path: &Path,
    roots: Arc<RootCertStore>,
    provider: &Arc<CryptoProvider>,
) -> Result<Accepting, TlsError> {
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
    let verifier = verifier.build().map_err(|why| unfit(path, &why))?;
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let builder = builder.with_protocol_versions(&[&TLS13]).map_err(|why| unfit(path, &why))?;
    Ok(builder.with_client_cert_verifier(verifier))
}

fn bound(mut server: ServerConfig) -> TlsAcceptor {
    server.alpn_protocols = vec![ALPN.to_vec()];
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    Arc::new(server).into()
}

fn binding(mut client: ClientConfig) -> TlsConnector {
    client.alpn_protocols = vec![ALPN.to_vec()];
    client.resumption = Resumption::disabled();
    Arc::new(client).into()
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|why| unfit(path, &why))?;
    }
    Ok(roots)
}

fn unfit(path: &Path, why: &dyn fmt::Display) -> TlsError {
    TlsError::Unfit { path: path.to_owned(), why: why.to_string() }
}

/// What has become of a handshake with a worker, in words of who asks it.
fn told(error: &io::Error) -> io::Error {
    let found = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let words = match found {
        Some(rustls::Error::InvalidMessage(_)) => {
            format!("it does not speak TLS: {error}")
        }
        Some(rustls::Error::AlertReceived(_)) => {
            format!("it does not take the certificate of who asks: {error}")
        }
        Some(rustls::Error::InvalidCertificate(_)) => {
            format!("its certificate is not taken: {error}")
        }
        Some(_) => format!("TLS with it has failed: {error}"),
        None => return io::Error::new(error.kind(), error.to_string()),
    };
    distrust(words)
}

fn distrust(words: String) -> io::Error {
    io::Error::other(Distrust(words))
}
