//! Tables to Parquet by several workers: each file has the rows of some blocks of a table, and is written by one worker as a whole.
//!
//! ```text
//! coordinator (`export --workers`)                         worker (`pagemill worker --export-to`), one of several
//! tables ─► ranges of blocks ─► what is not there yet ───► secret ─► directory ─► snapshot ─► place allowed?
//!    │                          _export.json               range ─► rows ─► an object, which is there once it is whole
//!    └─ all there: _manifest.json ◄─────────────────────── its rows and bytes
//! ```
//!
//! Who is gone leaves what it was writing to the others; whoever begins again finds what is there already.
//!
//! Invariants:
//! - The files of a table, in the order of their names, have its rows in its order, each row once: ranges have no block in common, and
//!   a file is there as a whole or not at all.
//! - In a place there is one export: the same cluster at the same moment, the same tables and options ([`plan`]); any other is refused.
//! - The manifest is written last.
//! - A worker writes nowhere but below the places that it was started with, and never into a cluster.

mod coordinator;
mod doing;
pub(super) mod plan;
mod rpc;
mod sent;

pub use coordinator::{ExportOrder, ExportSummary, run};
pub(super) use doing::Exporter;
