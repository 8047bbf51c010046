//! TLS for connections over TCP: the certificate and its key, read once, and handshakes with them.
//!
//! Invariants: nothing of a session is kept for another one (no tickets, no
//! cache), so that a client sees the certificate each time, as its binding needs; a handshake that fails ends its connection only.
//!
//! Source: `be_tls_init` in `src/backend/libpq/be-secure-openssl.c`, and `PG_ALPN_PROTOCOL` in `src/include/libpq/pqcomm.h`, PostgreSQL 18.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_sql::key_files::{KeyFileError, certificates, private_key};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::server::NoServerSessionStorage;
use tokio_rustls::rustls::{self, ServerConfig};

use crate::certificate::end_point;
use crate::endpoints::Stream;

/// The protocol's name, by which clients ask for it in a handshake.
const ALPN: &[u8] = b"postgresql";

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file gives nothing.
    #[error(transparent)]
    File(#[from] KeyFileError),
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
