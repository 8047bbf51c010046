//! The indexes of a table that is loaded: entries formed and sorted batch by batch, kept as runs in memory or
//! aside, cut with the old index's into parts that several threads merge, and built into B-trees.
//!
//! ```text
//!  rows ─► keys ─► runs ─┐
//!                        ├─► sources ─► parts ─► merge ─► unique ─► build
//!    old_entries ────────┘
//! ```

mod build;
mod keys;
mod merge;
mod old_entries;
mod parts;
mod plan;
mod runs;
mod sort;
mod sources;
mod unique;

pub(super) use build::IndexTarget;
pub(super) use keys::{KeyFormer, KeyRun, TupleLocations};
pub(super) use old_entries::OldEntries;
pub(super) use plan::IndexPlan;
pub(super) use runs::MergeShare;
pub(super) use unique::TakenKey;
