#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod capabilities;
pub mod counters;
mod creation_modes;
mod directory_changes;
pub mod error;
mod failed_sync;
mod file_cache;
pub mod file_copy;
pub mod file_damage;
pub mod file_extension;
mod file_tree;
mod file_window;
pub mod fork_files;
pub mod host_files;
pub mod input;
mod listed_files;
mod many_syncs;
pub mod mapped_blocks;
pub mod mapped_writes;
pub mod memory_files;
mod memory_limit;
pub mod output;
mod output_directory;
mod partial_file;
pub mod probe;
pub mod queued_reads;
pub mod queued_writes;
pub mod read_settings;
pub mod real_files;
mod redirected_files;
pub mod refusal;
mod ring_queue;
pub mod seam;
pub mod segment_listing;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;
#[cfg(any(test, feature = "simulated"))]
pub mod slow_files;
pub mod spool;
pub mod storage;
pub mod storage_traits;
pub mod tar_files;
mod temporary_file;
pub mod url_paths;
mod window_queue;
mod worker_queue;
pub mod writable_file;
pub mod writable_fork;
pub mod write_settings;

pub use capabilities::{Capabilities, FileCapabilities};
pub use counters::{Counters, CountersSnapshot};
pub use directory_changes::HeldLock;
pub use error::{Error, ErrorKind, Result, check_interrupt};
pub use file_copy::{CopiedFile, CopiedPiece, CopyMethod};
pub use file_damage::{FileDamage, FileDamageKind};
pub use file_extension::{FileExtendMethod, FileExtension};
pub use file_window::FileWindow;
pub use fork_files::ForkFiles;
pub use host_files::HostFiles;
pub use input::{InputStream, MappedInput};
pub use listed_files::{ListedFile, ListedFiles};
pub use many_syncs::sync_all;
pub use mapped_blocks::MappedBlocks;
pub use mapped_writes::MappedWrites;
pub use memory_files::MemoryFiles;
pub use output::{ByteSink, Output, WriterSink};
pub use output_directory::{DirectoryFile, OutputDirectory};
pub use pagemill_sys::{
    MapAdvice, WriteBack, end_by, interrupted, interrupted_by, standard_input_was_closed,
    standard_output_was_closed, survive_file_size_limit, take_interrupt_key, watch_interrupt_key,
    watch_interrupts,
};
pub use probe::device;
pub use queued_reads::{BlockRead, QueuedReads, ReadHints, Ticket};
pub use queued_writes::{FinishedWrite, QueuedWrites};
pub use read_settings::{
    DEFAULT_EFFECTIVE_IO_CONCURRENCY, DEFAULT_READAHEAD_DISTANCE, IoMethod,
    MAX_EFFECTIVE_IO_CONCURRENCY, ReadSettings, Readahead,
};
pub use real_files::RealFileSystem;
pub use redirected_files::{Redirect, RedirectedFiles};
pub use refusal::{NotShared, Refusal};
pub use seam::{
    Access, Advice, Caching, Create, DirEntry, Direction, File, FileState, FileSystem, FinishedIo,
    Identity, IoQueue, Lane, Metadata, Node, OpenForWrite, QueueKind, QueuedIo, Residency,
    SpaceLeft,
};
pub use segment_listing::SegmentListing;
pub use spool::Spool;
pub use storage::Storage;
pub use storage_traits::StorageTraits;
pub use tar_files::{TarFault, TarFiles};
pub use temporary_file::TemporaryFile;
pub use url_paths::{is_url, local_path};
pub use worker_queue::WORKERS;
pub use writable_file::WritableFile;
pub use writable_fork::WritableFork;
pub use write_settings::{WriteMethod, WriteSettings};
