//! SCRAM-SHA-256 and SCRAM-SHA-256-PLUS, as a server has to speak them: a client proves that it knows a password, which neither side sends.
//!
//! ```text
//!   client-first ──► Exchange::begin ──► server-first   (a nonce, the salt, how many times to hash)
//!   client-final ──► Exchange::finish ─► server-final   (proof that the server has the verifier), or: that was wrong
//! ```
//!
//! Invariants: secrets are compared in constant time; who has no verifier goes through an exchange that looks like everybody's and fails
//! at its end; no bytes of a client panic.
//!
//! Source: RFC 5802, RFC 7677 (SHA-256), RFC 5929 (`tls-server-end-point`), and `src/backend/libpq/auth-scram.c`, PostgreSQL 18, for which
//! mistakes end the exchange with which words.

mod exchange;
mod verifier;

use pagemill_protocol::scram::ScramError as ScramMessage;
use pagemill_sql::{SqlState, StatementError};

pub use exchange::{ChannelBinding, Exchange, Mechanism};
pub use verifier::Verifier;

use crate::error::PROTOCOL_VIOLATION;

/// Why an exchange ends before a password could be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// What the client sent is no message, or not one that is taken.
    #[error(transparent)]
    Message(#[from] ScramMessage),
    /// Another nonce than that of this exchange.
    #[error("invalid SCRAM response: the nonce does not match")]
    Nonce,
    /// The mechanism binds to the channel, and the message does not.
    #[error("the client selected SCRAM-SHA-256-PLUS, but its message has no channel binding")]
    NoBinding,
    /// The message binds to the channel, and the mechanism does not.
    #[error("the client selected SCRAM-SHA-256 without channel binding, but its message has one")]
    UnwantedBinding,
    /// Another way to bind than by the server's certificate.
    #[error("unsupported SCRAM channel-binding type")]
    BindingType,
    /// What the client repeats of its first message is something else.
    #[error("unexpected SCRAM channel-binding attribute in the last message")]
    BindingAttribute,
    /// The client was made to believe that the server cannot bind.
    #[error(
        "SCRAM channel binding negotiation error: the client believes that the server does not support it, and the server does"
    )]
    Downgrade,
    /// The client sees another certificate than the server's.
    #[error("SCRAM channel binding check failed")]
    OtherChannel,
    /// The system gives no random bytes.
    #[error("no random bytes for a nonce")]
    NoRandomBytes,
}

impl From<ScramError> for StatementError {
    fn from(error: ScramError) -> Self {
        let state = match error {
            ScramError::Message(
                ScramMessage::AuthorizationIdentity | ScramMessage::MandatoryExtension,
            ) => SqlState::FEATURE_NOT_SUPPORTED,
            ScramError::Downgrade | ScramError::OtherChannel => SqlState("28000"),
            ScramError::NoRandomBytes => SqlState("XX000"),
            _ => PROTOCOL_VIOLATION,
        };
        Self::new(state, error.to_string())
    }
}

/// Results here.
pub type Result<T> = std::result::Result<T, ScramError>;
