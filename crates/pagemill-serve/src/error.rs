//! The one error: what ends a connection, or the server.
//!
//! Invariant: what a statement does wrong is no error here; it is answered, and its session goes on.

use std::io;
use std::path::PathBuf;

use pagemill_sql::{SqlState, StatementError};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Where clients are to connect cannot be opened.
    #[error("{place}: {source}")]
    Listen {
        /// The socket, or the address.
        place: String,
        /// Why.
        source: io::Error,
    },
    /// Another server has the socket.
    #[error("{}: a server listens here already", .0.display())]
    SocketInUse(PathBuf),
    /// A connection ended, or could not be read or written.
    #[error("{0}")]
    Connection(#[from] io::Error),
    /// What a client is told before its connection is closed.
    #[error(transparent)]
    Fatal(#[from] StatementError),
}

impl Error {
    /// A client that does not keep to the protocol.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::Fatal(StatementError::new(PROTOCOL_VIOLATION, message))
    }
}

impl From<pagemill_protocol::Error> for Error {
    fn from(error: pagemill_protocol::Error) -> Self {
        let state = match error {
            pagemill_protocol::Error::Violation(_) => PROTOCOL_VIOLATION,
            pagemill_protocol::Error::UnsupportedVersion { .. } => SqlState::FEATURE_NOT_SUPPORTED,
        };
        Self::Fatal(StatementError::new(state, error.to_string()))
    }
}

/// `protocol_violation`.
pub const PROTOCOL_VIOLATION: SqlState = SqlState("08P01");

/// Results here.
pub type Result<T, E = Error> = std::result::Result<T, E>;
