#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod reader;
mod wal_directory;
mod writer;

pub use error::{Damage, Error, Result};
pub use reader::{EndOfWal, WalReader, WalRecord};
pub use wal_directory::WalDirectory;
pub use writer::{WalWriter, WriterOptions};
