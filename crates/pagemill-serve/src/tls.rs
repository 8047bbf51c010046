//! TLS for connections over TCP: the certificate and its key, read once, and handshakes with them.
//!
//! Invariants: a key that others can read is refused, as PostgreSQL refuses it; nothing of a session is kept for another one (no tickets, no
//! cache), so that a client sees the certificate each time, as its binding needs; a handshake that fails ends its connection only.
//!
//! Source: `check_ssl_key_file_permissions` in `src/backend/libpq/be-secure-common.c`, `be_tls_init` in `be-secure-openssl.c`, and
//! `PG_ALPN_PROTOCOL` in `src/include/libpq/pqcomm.h`, PostgreSQL 18.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_io::HostFiles;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::NoServerSessionStorage;
use tokio_rustls::rustls::{self, ServerConfig};

use crate::certificate::end_point;
use crate::endpoints::Stream;

/// The protocol's name, by which clients ask for it in a handshake.
const ALPN: &[u8] = b"postgresql";
/// Bytes of a file with certificates, or a key.
const MOST_BYTES: u64 = 1 << 20;

/// For all but the owner: any right; for a file of root's, any but its group's to read.
const OTHERS: u32 = 0o077;
const OTHERS_OF_ROOT: u32 = 0o037;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] pagemill_io::Error),
    /// A key that is not secret.
    #[error(
        "{}: others than its owner have access to this private key: it has to have mode 0600 or less, or 0640 or less if it is root's",
        .0.display()
    )]
    Exposed(PathBuf),
    /// A file holds nothing of its kind.
    #[error("{}: no {what} in it that can be read: PEM is, without a passphrase", .path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// A file is no PEM.
    #[error("{}: {source}", .path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// Why.
        source: pem::Error,
    },
    /// The two do not fit together, or cannot be used.
    #[error("{}: {source}", .path.display())]
    Unfit {
        /// The file with the certificate.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

type Result<T> = std::result::Result<T, TlsError>;

/// How a client came to ask for TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// By a request in PostgreSQL's protocol before.
    Requested,
    /// With its first byte, as clients of PostgreSQL 17 can.
    Direct,
}

/// A certificate with its key.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    end_point: Option<Arc<[u8]>>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads a certificate, with those that lead to its root behind it, and its key.
    ///
    /// # Errors
    /// When one of them cannot be read or used, or the key is not secret.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self> {
        let chain = certificates(certificate)?;
        let digest = chain.first().and_then(|first| end_point(first));
        let key = private_key(key)?;
        let unfit = |source| TlsError::Unfit { path: certificate.to_owned(), source };
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unfit)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(unfit)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { acceptor: Arc::new(config).into(), end_point: digest.map(Arc::from) })
    }

    /// What a client can bind its proof to.
    pub(crate) fn end_point(&self) -> Option<&[u8]> {
        self.end_point.as_deref()
    }

    /// The bytes within TLS.
    ///
    /// # Errors
    /// When the client does not speak TLS, or another protocol in it.
    pub(crate) async fn accept(
        &self,
        stream: Box<dyn Stream>,
        handshake: Handshake,
    ) -> io::Result<Box<dyn Stream>> {
        let stream = self.acceptor.accept(stream).await?;
        // Bytes that were meant for a server of another protocol are not to be taken for ours.
        if handshake == Handshake::Direct && stream.get_ref().1.alpn_protocol() != Some(ALPN) {
            return Err(io::Error::other("TLS without a request, and without naming the protocol"));
        }
        Ok(Box::new(stream))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let bytes = HostFiles::real().read_file(path, MOST_BYTES)?;
    let failed = |source| TlsError::Pem { path: path.to_owned(), source };
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<std::result::Result<Vec<_>, _>>();
    match found.map_err(failed)? {
        none if none.is_empty() => {
            Err(TlsError::Nothing { path: path.to_owned(), what: "certificate" })
        }
        found => Ok(found),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let files = HostFiles::real();
    let access = files.access(path)?;
    let mask = if access.owner == 0 { OTHERS_OF_ROOT } else { OTHERS };
    if access.mode & mask != 0 {
        return Err(TlsError::Exposed(path.to_owned()));
    }
    let bytes = files.read_file(path, MOST_BYTES)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            TlsError::Nothing { path: path.to_owned(), what: "private key" }
        }
        source => TlsError::Pem { path: path.to_owned(), source },
    })
}
