//! Changing a data directory: the right to do it, and a change that takes place wholly or not at all.
//!
//! Invariant: nothing outside of this module writes to a data directory.

mod class_indexes;
mod class_rows;
mod class_versions;
mod cluster_change;
mod commit_log;
mod lock;
mod oid_counter;
mod pending;
mod replay;

pub use class_rows::ClassChange;
pub use cluster_change::ClusterChange;
pub use lock::ClusterLock;
pub use oid_counter::OidCounter;
