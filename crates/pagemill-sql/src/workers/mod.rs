//! A statement that several machines run: workers, each of which opens the cluster by itself, scan parts of its tables and hand
//! rows to each other, by the engine `datafusion-distributed`.
//!
//! ```text
//! coordinator (`sql --workers`, `serve --workers`)              worker (`pagemill worker`), one of several
//! bound and planned ─► may it travel? ─► stages ──────────────► secret ─► directory ─► snapshot ─► bound and planned
//!    │ no: it runs here, with a notice     │ the statement,              refused where one of them is another, or the plan is
//!                                          │ the snapshot,       stage ─► decoded on the parts of that plan ─► rows
//!                                          │ a stage's plan
//! ```
//!
//! What travels is the statement: its text, when it began, and what else its plan follows from ([`Travelling`](travelling::Travelling)).
//! A worker binds and plans it by its own catalogs, and has to come to the very plan. Of the plan of a stage the steps travel as the
//! engine writes them, while scans, functions and aggregates are numbers of those in the worker's own plan (`plan_codec.rs`): none of
//! them has to be taken apart, and none can be asked for that the statement has not got. Credentials of stores do not travel: each
//! worker has its own.
//!
//! Invariants:
//! - All see one truth: a worker whose cluster is not the one that was pinned ([`Snapshot`]), or whose plan differs, refuses. It looks
//!   at the directory once more when a stage has ended.
//! - Whether a statement travels is decided before it runs. A plan travels only if what comes out of its encoding is equal to it, and
//!   if all of its steps are known to be right where each task has a part of the rows (`steps.rs`).
//! - A scan is cut into ranges that have no block in common (`shares.rs`): no row is read twice.
//! - When the request of a statement ends, what it has going on a worker does (`requests.rs`).
//! - Who has certificates speaks with no worker, and answers nobody, without TLS (`tls.rs`).
//! - A worker that ends, hangs or is cut off ends the statement with an error: nothing is tried again (`channels.rs`).

mod accounts;
mod arrived;
#[cfg(feature = "ballista")]
mod ballista;
mod changed_rows;
mod channels;
mod coordinator;
mod errors;
mod export;
mod listening;
mod one_question;
mod plain_codec;
mod plan_codec;
mod requests;
mod secret;
mod server;
mod shares;
mod snapshot;
mod stage;
mod steps;
mod tls;
mod travelling;
mod until_cancelled;
mod whole_statement;

pub(crate) use accounts::account_name;
pub use channels::Access;
pub(crate) use coordinator::Distributed;
pub use coordinator::{Workers, worker_address};
pub use export::{ExportOrder, ExportSummary, run as export};
pub use secret::{SECRET_VARIABLE, Secret};
pub use server::{ServedDirectory, WorkerOptions, WorkerServer};
pub use snapshot::{Snapshot, directory_name};
pub use tls::{Tls, TlsError, TlsFiles};
pub(crate) use travelling::{Asked, Asker, Planning, Travelling};

/// Beside what the program's own version says, what both sides have to agree on.
const PROTOCOL: &str = concat!("pagemill ", env!("CARGO_PKG_VERSION"), ", protocol 2");
