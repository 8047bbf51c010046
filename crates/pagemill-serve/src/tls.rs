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
use pagemill_sql::session::TlsFacts;
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
    ) -> io::Result<(Box<dyn Stream>, Option<TlsFacts>)> {
        let stream = self.acceptor.accept(stream).await?;
        // Bytes that were meant for a server of another protocol are not to be taken for ours.
        if handshake == Handshake::Direct && stream.get_ref().1.alpn_protocol() != Some(ALPN) {
            return Err(io::Error::other("TLS without a request, and without naming the protocol"));
        }
        let facts = facts(stream.get_ref().1);
        Ok((Box::new(stream), facts))
    }
}

/// What both sides agreed on, in the words that servers have of it.
fn facts(connection: &rustls::ServerConnection) -> Option<TlsFacts> {
    let version = match connection.protocol_version()? {
        rustls::ProtocolVersion::TLSv1_3 => "TLSv1.3",
        rustls::ProtocolVersion::TLSv1_2 => "TLSv1.2",
        _ => return None,
    };
    let (cipher, bits) = cipher(connection.negotiated_cipher_suite()?.suite())?;
    Some(TlsFacts { version, cipher, bits })
}

/// The name by which OpenSSL knows a cipher suite, and the bits of its key.
fn cipher(suite: rustls::CipherSuite) -> Option<(&'static str, i32)> {
    use rustls::CipherSuite as Suite;
    Some(match suite {
        Suite::TLS13_AES_256_GCM_SHA384 => ("TLS_AES_256_GCM_SHA384", 256),
        Suite::TLS13_AES_128_GCM_SHA256 => ("TLS_AES_128_GCM_SHA256", 128),
        Suite::TLS13_CHACHA20_POLY1305_SHA256 => ("TLS_CHACHA20_POLY1305_SHA256", 256),
        Suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => ("ECDHE-ECDSA-AES256-GCM-SHA384", 256),
        Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => ("ECDHE-ECDSA-AES128-GCM-SHA256", 128),
        Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => {
            ("ECDHE-ECDSA-CHACHA20-POLY1305", 256)
        }
        Suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => ("ECDHE-RSA-AES256-GCM-SHA384", 256),
        Suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => ("ECDHE-RSA-AES128-GCM-SHA256", 128),
        Suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => ("ECDHE-RSA-CHACHA20-POLY1305", 256),
        _ => return None,
    })
}
