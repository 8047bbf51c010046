#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod counters;
pub mod error;
mod file_cache;
pub mod file_damage;
pub mod fork_files;
pub mod input;
pub mod mapped_blocks;
pub mod method_use;
pub mod output;
pub mod place;
pub mod probe;
pub mod queued_reads;
pub mod read_settings;
pub mod real_files;
mod ring_queue;
pub mod scratch_file;
pub mod seam;
pub mod segment_listing;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;
pub mod spool;
pub mod storage;
mod worker_queue;

pub use counters::{Counters, CountersSnapshot};
pub use error::{Error, ErrorKind, Result};
pub use file_damage::{FileDamage, FileDamageKind};
pub use fork_files::ForkFiles;
pub use input::{InputStream, MappedInput};
pub use mapped_blocks::MappedBlocks;
pub use method_use::MethodUse;
pub use output::Output;
pub use pagemill_sys::MapAdvice;
pub use place::Place;
pub use probe::device;
pub use queued_reads::{QueuedReads, ReadHints, Ticket};
pub use read_settings::{
    DEFAULT_EFFECTIVE_IO_CONCURRENCY, DEFAULT_READAHEAD_DISTANCE, IoMethod,
    MAX_EFFECTIVE_IO_CONCURRENCY, ReadSettings, Readahead,
};
pub use real_files::RealFileSystem;
pub use scratch_file::ScratchFile;
pub use seam::{
    Advice, Caching, DirEntry, File, FileSystem, FinishedRead, Lane, Metadata, QueueKind,
    QueuedRead, ReadQueue, Residency,
};
pub use segment_listing::SegmentListing;
pub use spool::Spool;
pub use storage::Storage;
