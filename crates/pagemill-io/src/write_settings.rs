//! How blocks are to be written. The names are those of the command line; what is chosen by looking is called
//! `auto` there.

use std::fmt;
use std::str::FromStr;

use crate::file_extension::FileExtendMethod;
use crate::seam::QueueKind;

/// How new files are made longer and filled; the default is `auto` for all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteSettings {
    /// The way to write; `None` for what suits the place and the file.
    pub io_method: Option<WriteMethod>,
    /// Past the page cache, whatever the size of the file.
    pub direct: bool,
    /// The way to make files longer; `None` for what suits the file system.
    pub extend_method: Option<FileExtendMethod>,
}

/// A way to get blocks into a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WriteMethod {
    /// `pwrite` from one buffer.
    Pwrite,
    /// `pwritev`, a buffer for each block.
    Pwritev,
    /// Copies to a mapping of the file, no write call at all.
    Mmap,
    /// `pwrite` by a pool of threads.
    Worker,
    /// A ring of requests that the kernel serves.
    IoUring,
}

impl WriteMethod {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Pwrite, Self::Pwritev, Self::Mmap, Self::Worker, Self::IoUring];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pwrite => "pwrite",
            Self::Pwritev => "pwritev",
            Self::Mmap => "mmap",
            Self::Worker => "worker",
            Self::IoUring => "io_uring",
        }
    }

    /// The queue that the method hands its writes to; `None` where the writer makes the calls itself.
    pub fn queue(self) -> Option<QueueKind> {
        match self {
            Self::Worker => Some(QueueKind::Worker),
            Self::IoUring => Some(QueueKind::IoUring),
            Self::Pwrite | Self::Pwritev | Self::Mmap => None,
        }
    }
}

impl fmt::Display for WriteMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no such way to write: there are pwrite, pwritev, mmap, worker and io_uring")]
pub struct UnknownWriteMethod;

impl FromStr for WriteMethod {
    type Err = UnknownWriteMethod;

    fn from_str(name: &str) -> Result<Self, UnknownWriteMethod> {
        Self::ALL.into_iter().find(|method| method.name() == name).ok_or(UnknownWriteMethod)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_found_by_its_name() {
        for method in WriteMethod::ALL {
            assert_eq!(method.name().parse(), Ok(method));
        }
        assert_eq!("sendfile".parse::<WriteMethod>(), Err(UnknownWriteMethod));
    }
}
