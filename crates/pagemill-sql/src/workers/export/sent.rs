//! What travels between the coordinator of an export and its workers.
//!
//! Invariant: no credentials.

use pagemill_arrow::{
    ArrayChoice, ArrowOptions, Compression, FileFormat, InfinityChoice, NumericChoice,
};
use pagemill_engine::ScanOptions;
use serde::{Deserialize, Serialize};

use super::super::{PROTOCOL, Snapshot};

/// An export: what all of its files have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SentExport {
    /// Which program sent it.
    pub(super) protocol: String,
    /// The data directory, as [`directory_name`](super::super::directory_name) calls it.
    pub(super) directory: String,
    pub(super) snapshot: Snapshot,
    pub(super) database: String,
    /// Up to where WAL was redone.
    pub(super) redo_end: Option<String>,
    pub(super) options: SentOptions,
    /// The path or URL that names of files are below.
    pub(super) output: String,
}

impl SentExport {
    /// # Errors
    /// Where another program sent it.
    pub(super) fn check_protocol(&self) -> Result<(), String> {
        match self.protocol == PROTOCOL {
            true => Ok(()),
            false => Err(format!("it is asked by {:?}, and is {PROTOCOL}", self.protocol)),
        }
    }
}

/// What becomes of values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SentOptions {
    columns: Option<Vec<Vec<u8>>>,
    #[serde(with = "NumericDef")]
    numeric: NumericChoice,
    #[serde(with = "InfinityDef")]
    infinity: InfinityChoice,
    #[serde(with = "ArrayDef")]
    arrays: ArrayChoice,
    compression: Option<SentCompression>,
    row_group_rows: Option<usize>,
    /// Types that only an extension's code can print are bytes.
    pub(super) unknown_as_hex: bool,
}

impl SentOptions {
    pub(super) fn new(options: &ArrowOptions, unknown_as_hex: bool) -> Self {
        let columns = options.columns.as_ref();
        Self {
            columns: columns.map(|names| names.iter().map(|name| name.to_vec()).collect()),
            numeric: options.numeric,
            infinity: options.infinity,
            arrays: options.arrays,
            compression: options.compression.map(SentCompression),
            row_group_rows: options.row_group_rows,
            unknown_as_hex,
        }
    }

    pub(super) fn arrow(&self, scan: ScanOptions, redo_end: Option<&str>) -> ArrowOptions {
        let columns = self.columns.as_ref();
        ArrowOptions {
            columns: columns.map(|names| names.iter().map(|name| name[..].into()).collect()),
            partition_by: Vec::new(),
            numeric: self.numeric,
            infinity: self.infinity,
            arrays: self.arrays,
            format: FileFormat::Parquet,
            compression: self.compression.map(|sent| sent.0),
            row_group_rows: self.row_group_rows,
            scan,
            redo_end: redo_end.map(str::to_owned),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct SentCompression(#[serde(with = "CompressionDef")] Compression);

#[derive(Serialize, Deserialize)]
#[serde(remote = "NumericChoice")]
enum NumericDef {
    Auto,
    Text,
    Double,
    Decimal(u8, u8),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "InfinityChoice")]
enum InfinityDef {
    Error,
    Null,
    Clamp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ArrayChoice")]
enum ArrayDef {
    List,
    Text,
    Json,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Compression")]
enum CompressionDef {
    None,
    Zstd(Option<i32>),
    Snappy,
    Lz4,
    Gzip(Option<u32>),
}

/// A file that is to be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SentFile {
    /// Its name below the output, with slashes.
    pub(super) name: String,
    pub(super) schema: String,
    pub(super) table: String,
    /// The OID of the table.
    pub(super) oid: u32,
    /// Its blocks; none for a file without rows.
    pub(super) blocks: Option<SentBlocks>,
    /// A fingerprint of its columns.
    pub(super) columns: u64,
}

/// Blocks of a relation that holds rows of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SentBlocks {
    /// Which of them, from 0, and its OID.
    pub(super) part: usize,
    pub(super) oid: u32,
    pub(super) first: u32,
    pub(super) end: u32,
}

/// What a worker is asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Asked {
    /// Whether it takes part.
    Begin(SentExport),
    /// To write a file.
    File(SentExport, SentFile),
}

/// What it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answered {
    /// It takes part, with so many files at a time.
    Ready(usize),
    /// The file is there.
    Written(Written),
}

/// A file that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Written {
    pub(super) rows: u64,
    pub(super) bytes: u64,
}
