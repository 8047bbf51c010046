//! A fleet of workers that read a cluster from an object store, as a model in virtual time: how long a scan, a lookup or the opening of a
//! database takes, how many requests that is, what they cost, and what holds it back.
//!
//! ```text
//! worker: so many bytes asked for ahead ─► the store's requests a second ─► first byte, by chance ─► the request's own rate
//!            ▲                                                                                              │
//!            └──────── room, once they were read ◄── its cores ◄── its link ◄── all answers together ◄──────┘
//! ```
//!
//! What is left out: requests above a store's rate wait in line, where a real one answers 503 and is asked again; workers begin at once
//! and die never; a store does not grow under load, as S3's prefixes do within minutes; links have no congestion but their rate.
//!
//! Invariants: the same run takes the same nanoseconds; every byte of a work is read once. Stores come from what their makers and
//! others have published, named at each sheet, and a reader's window from `pagemill-stream` and `pagemill-remote`; no number is
//! fitted to a measurement that the model is compared with.

mod fleet;
mod store_sheet;
pub mod tables;
mod works;

pub use fleet::{Fleet, Forecast, HeldBackBy, WorkerSheet};
pub use store_sheet::StoreSheet;
pub use works::{Opening, TPCH_TABLES, TpchTable, Work};
