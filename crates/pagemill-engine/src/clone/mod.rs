//! Copies of what a cluster is made of: of a [`database`] within its cluster, and of a whole [`cluster`].
//!
//! A database is copied by a change to the cluster, with WAL and a commit; a cluster into a directory of its own.

pub mod cluster;
mod comparison;
pub mod database;

use crate::error::Error;

/// An error of a file of the cluster.
fn cluster_error(error: pagemill_io::Error) -> Error {
    pagemill_cluster::Error::from(error).into()
}
