#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod counters;
pub mod error;
pub mod file_damage;
pub mod fork_files;
mod open_segments;
pub mod output;
pub mod probe;
pub mod segment_listing;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;
pub mod spool;
pub mod storage;

pub use counters::{Counters, CountersSnapshot};
pub use error::{Error, ErrorKind, Result};
pub use file_damage::{FileDamage, FileDamageKind};
pub use fork_files::ForkFiles;
pub use output::Output;
pub use probe::device;
pub use segment_listing::SegmentListing;
pub use spool::Spool;
pub use storage::{DirEntry, File, FileSystem, Metadata, RealFileSystem, Storage};
