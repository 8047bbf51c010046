//! Changing a data directory: the right to do it, and a change that takes place wholly or not at all.
//!
//! Invariant: nothing outside of this module writes to a data directory.

mod catalog_indexes;
mod catalog_pages;
mod catalog_table;
mod class_rows;
mod cluster_change;
mod commit_log;
mod commit_timestamps;
mod database_creation;
mod database_removal;
mod database_row;
mod lock;
mod oid_counter;
mod pending;
mod replay;
mod shared_rows;
mod state_check;
mod transaction;
mod wal_segments;

pub use class_rows::ClassChange;
pub use cluster_change::ClusterChange;
pub use database_creation::{
    DatabaseCreation, DatabaseDirectory, check_new_database, database_directories,
};
pub use database_removal::{check_drop, drop_database};
pub use database_row::NewDatabase;
pub use lock::ClusterLock;
pub use oid_counter::OidCounter;
pub use pending::Leftover;
pub use state_check::{has_leftovers, leftovers, make_ready};
