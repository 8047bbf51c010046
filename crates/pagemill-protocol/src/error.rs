//! Why bytes are no message.
//!
//! Invariant: the words are those that PostgreSQL has for it, as they are what a client is told before its connection ends.

/// What is wrong with the bytes of a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// They do not keep to the protocol.
    #[error("{0}")]
    Violation(String),
    /// They are of another protocol than 3.
    #[error("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.2")]
    UnsupportedVersion {
        /// The protocol.
        major: i32,
        /// The version within it.
        minor: i32,
    },
}

impl Error {
    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::Violation(message.into())
    }
}

/// Results here.
pub type Result<T, E = Error> = std::result::Result<T, E>;
