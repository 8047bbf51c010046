#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod ahead;
mod compression;
mod error;
mod finding;
mod fork_records;
mod index;
mod reader;
mod record_description;
mod wal_directory;
mod wal_source;
mod writer;

pub use ahead::{PlainEnd, PlainRecords, RecordPlace};
pub use compression::Compression;
pub use error::{Damage, Error, MissingCause, Refusal, Result};
pub use finding::Finding;
pub use fork_records::{BlockRecord, ForkRecords, TransactionEnding};
pub use index::{
    BlockKey, DatabaseDirectory, DirectoryLife, Entry, EntryKind, FetchedRecord, FileLife,
    ForkHistory, ForkKey, LogPages, RecordFetch, Transactions, WalIndex, WalIndexBuilder,
};
pub use reader::{EndOfWal, Portion, WalReader, WalRecord};
pub use record_description::record_description;
pub use wal_directory::WalDirectory;
pub use wal_source::{WalSource, is_compression_suffix};
pub use writer::{WalWriter, WriterOptions};
