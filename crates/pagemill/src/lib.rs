//! Read PostgreSQL tables straight from their files, with no server running.
//!
//! A [`Cluster`] is an open data directory: one that was shut down, that of a server that crashed, a file-system snapshot, or
//! an unpacked base backup, with its archive up to any moment ([`RecoveryOptions`]). Its [`Database`]s have [`Table`]s, and these have [`Rows`], as a server started on the
//! files would show them to its first query: committed and not deleted, TOAST values fetched, columns that were added
//! later with their defaults. PostgreSQL 14 to 18, Linux, little-endian.
//!
//! ```no_run
//! use pagemill::{Cluster, Value};
//!
//! fn main() -> pagemill::Result<()> {
//!     let shop = Cluster::open("/var/lib/postgresql/15/main")?.database("shop")?;
//!     let orders = shop.table("public.orders")?;
//!     println!("{} rows", orders.count()?);
//!
//!     let mut rows = orders.rows(&["id", "state"])?;
//!     while let Some(mut row) = rows.next_row()? {
//!         let paid = matches!(row.value(1)?, Some(Value::Text(b"paid")));
//!         if paid {
//!             println!("{}", row.text(0)?.unwrap_or_default());
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! Reading changes no file. A [`LockedCluster`] is a stopped cluster that this process alone may change: rows are loaded from
//! any reader or iterator, databases are cloned and dropped, each change atomic and crash-safe.
//!
//! ```no_run
//! use pagemill::{LoadOptions, LockedCluster};
//!
//! # fn main() -> pagemill::Result<()> {
//! let cluster = LockedCluster::open("/var/lib/postgresql/15/main")?;
//! let rows = (1..=1000).map(|id: u32| [Some(id.to_string()), None]);
//! let loaded = cluster.load_rows("shop", "public.orders", rows, LoadOptions::default())?;
//! assert_eq!(loaded.rows, 1000);
//! # Ok(())
//! # }
//! ```
//!
//! Damage is an error that names file, fork, block and offset, never a shorter table. Every
//! page is verified by its checksum where the cluster has checksums.
//!
//! This is the front of several crates that can be used by themselves: `pagemill-engine` (scans, COPY, loading, cloning),
//! `pagemill-cluster` (catalogs, visibility), `pagemill-stream` and `pagemill-io` (how blocks are read), `pagemill-types`
//! (values), `pagemill-format` (the bytes).
#![forbid(unsafe_code)]

mod library;

pub use library::{
    Cluster, Column, CopyFrom, Database, LockedCluster, RecoveryOptions, Row, Rows, Table,
};
pub use pagemill_cluster::recovery::plan::{TargetPlace, TimelineChoice};
pub use pagemill_cluster::{BackupName, OpenOptions, Passphrase, RedoneWal};
pub use pagemill_engine::clone::database::CloneSummary;
pub use pagemill_engine::copy::from::{CopyFromOptions, Header};
pub use pagemill_engine::load::ReadBack;
pub use pagemill_engine::{
    CopyOptions, Error, ExportOptions, ForcedColumns, Format, LoadOptions, LoadSummary, Progress,
    Result, ScanOptions,
};
pub use pagemill_format::{BlockNumber, Oid, PgVersion, Tid};
pub use pagemill_io::{HostFiles, MemoryFiles, Storage};
pub use pagemill_types::value::{
    ArrayValue, Bound, CompositeValue, Date, Interval, MultirangeValue, Numeric, RangeValue,
    Timestamp, Value,
};
