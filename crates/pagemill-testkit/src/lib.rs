//! Real PostgreSQL servers as the oracle of Pagemill's tests.
//!
//! A test asks for a [`Prepared`] cluster of some major version. The first to ask has a server built, filled by
//! the scripts under `fixtures/` and stopped; what the server itself prints for every relation is kept beside
//! the data directory. Every test then compares those bytes with what Pagemill reads from the same files.
//!
//! ```text
//! PgInstall ──► TestCluster ──► Fixture::load ──► stop ──► data directory as the server left it
//!                                                   └─ copy ─► start ─► dump ─► expected bytes
//! ```
//!
//! What a run can be told by the environment: `PAGEMILL_PG<N>_BINDIR` (where version N is installed),
//! `PAGEMILL_TEST_MAJORS` (only these versions), `PAGEMILL_TEST_SCRATCH` (where clusters are kept), `TMPDIR` (where
//! copies of them lie; in memory where it is not set and there is room),
//! `PAGEMILL_REQUIRE_DEVICES=1` (a machine without loop devices or control groups fails instead of skipping).
//!
//! Must hold:
//! 1. The data directory handed to a test was not read by a server after its last checkpoint: a read sets hint
//!    bits and prunes pages, and would hide the cases the fixtures exist for. The oracle dumps a copy.
//! 2. Nothing here depends on a crate that knows PostgreSQL's formats, so no mistake can be on both sides.
//! 3. Everything runs as root (the server then under another account) and as an ordinary user.
#![forbid(unsafe_code)]

mod account;
mod checkout;
pub mod compare;
pub mod control_group;
pub mod devices;
pub mod fixtures;
mod frozen;
mod index_page_mask;
mod initialized;
pub mod install;
pub mod mvcc;
pub mod oracle;
pub mod page_cache;
pub mod page_mask;
pub mod prepared;
pub mod program;
pub mod replication;
pub mod requests;
pub mod samples;
pub mod scratch;
pub mod server;
pub mod session;
mod skips;
pub mod versions;

pub use checkout::in_checkout;
pub use compare::{Diff, compare};
pub use control_group::{ControlGroup, ReadLimit};
pub use devices::{FileSystem, LoopDevice, Unavailable, Volume};
pub use fixtures::Fixture;
pub use install::{MAJORS, PgInstall};
pub use oracle::{CopyFormat, CopyOptions, Table};
pub use prepared::{Prepared, PreparedDatabase};
pub use program::{Program, every_version, two_versions};
pub use replication::ReplicationConnection;
pub use requests::Request;
pub use scratch::Medium;
pub use server::{ClusterOptions, TestCluster};
pub use session::Session;
pub use skips::skipped;
pub use versions::{each_of, is_before_15_20};
