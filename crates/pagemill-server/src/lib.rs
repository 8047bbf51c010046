//! PostgreSQL servers of one's own: found, made, started, asked and stopped.
//!
//! ```text
//! Installation ┐
//! Account      ├─► Server ──initdb──► DIR/data ──start──► Postmaster
//! a directory  ┘      └─ psql, Session ─► .s.PGSQL.5432 ─────┘
//! ```
//!
//! Why: the lab, the tests and the benchmarks each need servers that nobody else uses, with other settings and in other places,
//! and a server that is started and stopped wrongly falsifies all of them alike.
//!
//! Invariants: no server but those that were made here is talked to; a server that was started ends, at the latest, when its
//! value is dropped; a clean stop that was none is an error.
#![forbid(unsafe_code)]

mod account;
mod error;
mod initdb;
mod installation;
mod postmaster;
mod server;
mod session;
mod socket_directory;

pub use account::Account;
pub use error::{Error, Result};
pub use initdb::InitdbOptions;
pub use installation::Installation;
pub use postmaster::{Postmaster, Shutdown};
pub use server::{SUPERUSER, Server};
pub use session::{Answer, Session};

/// Asked again and again by whatever waits; once it says true, the wait ends with [`Error::Canceled`].
pub type IsCanceled<'a> = &'a dyn Fn() -> bool;

/// For waits that nobody ends early.
pub fn never() -> bool {
    false
}
