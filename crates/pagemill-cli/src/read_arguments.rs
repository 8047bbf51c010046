//! The flags that say how blocks are read, and the settings they make.
//!
//! Names are PostgreSQL's where it has such a setting, and values that contradict each other are
//! refused before anything is opened.

use std::sync::Arc;

use anyhow::Result;
use clap::{Args, ValueEnum};
use pagemill_io::{
    Caching, IoMethod, MAX_EFFECTIVE_IO_CONCURRENCY, MapAdvice, ReadSettings, Readahead,
    RealFileSystem, Storage,
};

use crate::failure::UsageError;

const HEADING: &str = "How to read";

/// How blocks are read.
#[derive(Debug, Clone, Args)]
pub struct ReadArguments {
    /// The calls that fetch blocks; "auto" measures and chooses
    #[arg(long, help_heading = HEADING, value_enum, value_name = "METHOD", default_value = "auto")]
    pub io_method: MethodChoice,
    /// Bypass the kernel's page cache (O_DIRECT)
    #[arg(long, help_heading = HEADING)]
    pub direct: bool,
    /// Maximum number of blocks in one read call (1 to 128); of an object store as many as 8 MiB have are asked for at once
    #[arg(
        long,
        help_heading = HEADING,
        value_name = "N",
        default_value_t = 16,
        value_parser = clap::value_parser!(u32).range(1..=128)
    )]
    pub io_combine_limit: u32,
    /// Maximum number of reads in flight (1 to 1000), for worker and io_uring; by default the setting of the
    /// tablespace, or 16
    #[arg(
        long,
        help_heading = HEADING,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_EFFECTIVE_IO_CONCURRENCY))
    )]
    pub effective_io_concurrency: Option<u32>,
    /// Advise the kernel of blocks that are read later, with methods that use its page cache
    #[arg(long, help_heading = HEADING, value_enum, value_name = "STRATEGY", default_value = "auto")]
    pub readahead: ReadaheadChoice,
    /// How far ahead --readahead looks, in blocks
    #[arg(
        long,
        help_heading = HEADING,
        value_name = "BLOCKS",
        default_value_t = pagemill_io::DEFAULT_READAHEAD_DISTANCE,
        value_parser = clap::value_parser!(u32).range(1..=1_048_576)
    )]
    pub readahead_distance: u32,
    /// Advise the kernel of how a mapping is read, with mmap
    #[arg(long, help_heading = HEADING, value_enum, value_name = "ADVICE", default_value = "populate")]
    pub madvise: MapAdviceChoice,
    /// Maximum number of segment files kept open
    #[arg(
        long,
        help_heading = HEADING,
        value_name = "N",
        default_value_t = 512,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub max_open_files: u32,
    /// Maximum number of bytes kept mapped, with mmap: a number, or one with kB, MB, GB or TB
    #[arg(long, help_heading = HEADING, value_name = "SIZE", default_value = "1TB", value_parser = size)]
    pub max_mapped_bytes: u64,
}

/// The value of `--io-method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum MethodChoice {
    /// Whatever suits the storage and the page cache best; --stats reports which and why
    Auto,
    /// lseek and read, block by block, as PostgreSQL did up to 11
    Seek,
    /// pread of adjacent blocks at once
    Pread,
    /// preadv of adjacent blocks at once
    Preadv,
    /// No read call: the files mapped into memory
    Mmap,
    /// pread by a pool of threads, ahead of the scan
    Worker,
    /// Requests to the kernel in a ring, ahead of the scan
    IoUring,
}

/// The value of `--readahead`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReadaheadChoice {
    /// Nothing
    None,
    /// Each block, one distance (--readahead-distance) before it is read
    EveryPage,
    /// The blocks of the next window while the first, third, fifth … window is read; a window is one distance long
    Window,
    /// As window, and those of the window after next while the others are read
    DoubleWindow,
    /// Nothing for blocks in order; blocks in random order far enough ahead
    Auto,
}

/// The value of `--madvise`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MapAdviceChoice {
    /// Nothing
    Normal,
    /// Sequential order
    Sequential,
    /// Random order
    Random,
    /// Each run wanted soon
    Willneed,
    /// Each run wanted now
    Populate,
}

impl ReadArguments {
    /// The names of these flags, by which a command can leave them out of its help.
    pub fn names() -> Vec<String> {
        let all = Self::augment_args(clap::Command::new(""));
        all.get_arguments().map(|arg| arg.get_id().to_string()).collect()
    }

    /// Storage on the operating system's files, read as these flags say.
    ///
    /// # Errors
    /// When flags contradict each other, or the platform does not offer the method asked for by name.
    pub fn storage(&self, live: bool) -> Result<Storage> {
        self.refuse_contradictions(live)?;
        let settings = self.settings(live);
        let storage = Storage::with_settings(Arc::new(RealFileSystem), settings);
        if let Some(method) = settings.io_method {
            storage.check_method(method)?;
        }
        Ok(storage)
    }

    fn refuse_contradictions(&self, live: bool) -> Result<()> {
        let mapped = self.io_method == MethodChoice::Mmap;
        let refused = if mapped && live {
            "--io-method mmap cannot be used with --live: files change while they are mapped"
        } else if mapped && self.direct {
            "--io-method mmap cannot be used with --direct: a mapping is the page cache"
        } else if self.direct && self.readahead != ReadaheadChoice::Auto {
            "--readahead cannot be used with --direct: it fills the page cache, which is not read"
        } else {
            return Ok(());
        };
        Err(UsageError(refused.into()).into())
    }

    fn settings(&self, live: bool) -> ReadSettings {
        ReadSettings {
            io_method: self.io_method.method(),
            may_map: !live,
            madvise: self.madvise.advice(),
            caching: if self.direct { Caching::Direct } else { Caching::Buffered },
            readahead: self.readahead.strategy(),
            readahead_distance: self.readahead_distance,
            effective_io_concurrency: self.effective_io_concurrency,
            max_open_files: self.max_open_files as usize,
            max_mapped_bytes: self.max_mapped_bytes,
        }
    }
}

impl MethodChoice {
    fn method(self) -> Option<IoMethod> {
        match self {
            Self::Auto => None,
            Self::Seek => Some(IoMethod::Seek),
            Self::Pread => Some(IoMethod::Pread),
            Self::Preadv => Some(IoMethod::Preadv),
            Self::Mmap => Some(IoMethod::Mmap),
            Self::Worker => Some(IoMethod::Worker),
            Self::IoUring => Some(IoMethod::IoUring),
        }
    }
}

impl ReadaheadChoice {
    fn strategy(self) -> Readahead {
        match self {
            Self::None => Readahead::None,
            Self::EveryPage => Readahead::EveryPage,
            Self::Window => Readahead::Window,
            Self::DoubleWindow => Readahead::DoubleWindow,
            Self::Auto => Readahead::Auto,
        }
    }
}

impl MapAdviceChoice {
    fn advice(self) -> MapAdvice {
        match self {
            Self::Normal => MapAdvice::Normal,
            Self::Sequential => MapAdvice::Sequential,
            Self::Random => MapAdvice::Random,
            Self::Willneed => MapAdvice::WillNeed,
            Self::Populate => MapAdvice::PopulateRead,
        }
    }
}

/// A number of bytes, with one of PostgreSQL's units or none.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "" | "B" => 0,
        "kB" => 10,
        "MB" => 20,
        "GB" => 30,
        "TB" => 40,
        _ => return Err("the units are B, kB, MB, GB and TB".into()),
    };
    let number: u64 = digits.trim_end().parse().map_err(|_| "not a whole number".to_owned())?;
    let bytes = number.checked_mul(1 << scale).ok_or("too large")?;
    if bytes == 0 { Err("at least one byte".into()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_postgresqls_units() {
        assert_eq!(size("8192"), Ok(8192));
        assert_eq!(size("64kB"), Ok(65_536));
        assert_eq!(size("2 GB"), Ok(2 << 30));
        for wrong in ["", "kB", "1 mb", "1KB", "-1", "0", "99999999TB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
