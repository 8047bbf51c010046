//! PostgreSQL's messages, from bytes and to bytes: protocol 3.0 and 3.2, a server's side.
//!
//! ```text
//!   client ──► Incoming: StartupRequest, then FrontendMessage …    (length words checked before anything is kept)
//!   client ◄── ResponseBuffer: rows and answers, whole messages only
//! ```
//!
//! Invariant: no bytes of a client panic, and none of them make the server keep more than a message's limit. Source: the chapter
//! "Frontend/Backend Protocol" of PostgreSQL 18's documentation, `src/include/libpq/protocol.h` and `pqcomm.h`.

#![forbid(unsafe_code)]

mod error;
mod frontend;
mod incoming;
mod response;
pub mod scram;
mod startup;

pub use error::{Error, Result};
pub use frontend::{
    Bind, Described, Execute, FrontendMessage, FunctionCall, Parse, SaslInitialResponse,
};
pub use incoming::Incoming;
pub use response::{ColumnDescription, ResponseBuffer, Severity, TransactionStatus};
pub use startup::{Startup, StartupRequest};
