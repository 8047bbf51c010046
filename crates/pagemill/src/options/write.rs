//! The flags that say how new files are made longer and filled.
//!
//! Invariant: none of them changes what is written.

use std::str::FromStr;

use anyhow::Result;
use clap::{Args, ValueEnum};
use pagemill_format::wal::ImageCompression;
use pagemill_io::{FileExtendMethod, WriteMethod, WriteSettings};

use crate::failure::UsageError;

/// How new files are written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Writing")]
pub(crate) struct WriteArguments {
    /// How pages get into new files: auto, pwrite, pwritev, mmap, worker or io_uring
    #[arg(long, value_name = "METHOD", default_value = "auto", value_parser = automatic::<WriteMethod>)]
    pub(crate) io_method: Choice<WriteMethod>,
    /// Bypass the page cache for new files, including small ones
    #[arg(long)]
    pub(crate) direct: bool,
    /// How new files get their space: auto, posix_fallocate or write_zeros
    #[arg(long, value_name = "METHOD", default_value = "auto", value_parser = automatic::<FileExtendMethod>)]
    pub(crate) file_extend_method: Choice<FileExtendMethod>,
}

/// What was named, or nothing for `auto`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice<T>(Option<T>);

fn automatic<T: FromStr>(name: &str) -> Result<Choice<T>, String>
where
    T::Err: ToString,
{
    match name {
        "auto" => Ok(Choice(None)),
        name => {
            name.parse().map(|named| Choice(Some(named))).map_err(|error: T::Err| error.to_string())
        }
    }
}

impl WriteArguments {
    /// The settings they make.
    ///
    /// # Errors
    /// When they contradict each other.
    pub(crate) fn settings(&self) -> Result<WriteSettings> {
        if self.direct && matches!(self.io_method.0, Some(WriteMethod::Mmap)) {
            let reason =
                "--io-method mmap cannot be used with --direct: a mapping is the page cache";
            return Err(UsageError(reason.into()).into());
        }
        Ok(WriteSettings {
            io_method: self.io_method.0,
            direct: self.direct,
            extend_method: self.file_extend_method.0,
        })
    }
}

/// How page images are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompressionChoice {
    /// Not at all
    Off,
    /// PostgreSQL's own
    Pglz,
    /// LZ4 (15 and later, if the server was built with it)
    Lz4,
    /// Zstandard (15 and later, if the server was built with it)
    Zstd,
}

impl CompressionChoice {
    /// What the WAL is written with.
    pub(crate) fn compression(self) -> ImageCompression {
        match self {
            Self::Off => ImageCompression::Off,
            Self::Pglz => ImageCompression::Pglz,
            Self::Lz4 => ImageCompression::Lz4,
            Self::Zstd => ImageCompression::Zstd,
        }
    }
}
