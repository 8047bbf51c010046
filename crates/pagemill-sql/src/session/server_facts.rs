//! What a session is told of the server that it is in, of its own connection, and of the sessions beside it.
//!
//! Invariant: a server tells of all its sessions; whose work is hidden from whom is decided where a statement asks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use pagemill_format::Oid;

/// Of a session and its server.
#[derive(Debug, Clone)]
pub struct ServerFacts {
    /// The number by which its client cancels statements.
    pub process: i32,
    /// Where its client is, for TCP.
    pub client: Option<SocketAddr>,
    /// How its client has proved who it is, and as whom: `scram-sha-256:ROLE`; `None` where it did not have to.
    pub identity: Option<String>,
    /// Where its client found the server, for TCP.
    pub server: Option<SocketAddr>,
    /// When the server began.
    pub started: SystemTime,
    /// When it read its configuration, and opened the files.
    pub loaded: SystemTime,
    /// All sessions on the same cluster.
    pub sessions: Sessions,
}

/// Asks for all sessions.
#[derive(Clone)]
pub struct Sessions(pub Arc<dyn Fn() -> Vec<SessionFacts> + Send + Sync>);

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sessions")
    }
}

/// A session as `pg_stat_activity` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFacts {
    /// Its number.
    pub process: i32,
    /// Its database.
    pub database: Oid,
    /// Whose it is.
    pub role: Oid,
    /// What its client calls itself.
    pub application: String,
    /// As `pg_stat_activity` calls it.
    pub state: &'static str,
    /// The statement that it works on, or was the last.
    pub text: String,
    /// Where its client is, for TCP.
    pub client: Option<SocketAddr>,
    /// What it agreed on with its client, within TLS.
    pub tls: Option<TlsFacts>,
    /// When its client came.
    pub began: SystemTime,
    /// When its transaction began, where it is in one.
    pub transaction_began: Option<SystemTime>,
    /// When its last statement began.
    pub statement_began: Option<SystemTime>,
    /// Since when it is in its state.
    pub since: SystemTime,
}

/// How a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsFacts {
    /// As `TLSv1.3`.
    pub version: &'static str,
    /// The name by which OpenSSL knows the cipher suite.
    pub cipher: &'static str,
    /// Of its key.
    pub bits: i32,
}
