//! Changing a data directory.

mod class_rows;
mod lock;
mod pending;

pub use class_rows::ClassChange;
pub use lock::ClusterLock;
pub use pending::RelationFile;
