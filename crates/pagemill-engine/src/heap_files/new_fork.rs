//! A fork in files that did not exist before, with a stream that fills it.
//!
//! Why here: a load makes such files inside a cluster, and `generate` makes them where there is none; both extend and
//! write them the same way.
//!
//! Invariant: no file that was there is opened, so nothing that belongs to somebody else is overwritten.

use std::path::Path;
use std::sync::Arc;

use pagemill_format::Fork;
use pagemill_io::{
    Caching, Create, FileExtension, OpenForWrite, Result, Storage, WritableFork, WriteSettings,
};
use pagemill_stream::{WriteStream, WriteStreamOptions, create_fork};

/// How the files of a relation are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewFork {
    pub(crate) fork: Fork,
    pub(crate) writing: WriteSettings,
    /// Pages carry checksums.
    pub(crate) checksums: bool,
    /// About how many blocks it will have; 0 where that is not known.
    pub(crate) expected: u32,
}

impl NewFork {
    /// Makes the first file of the fork, beside `base` or in its place, and a stream of pages to it.
    ///
    /// # Errors
    /// When the file is there already, or cannot be made.
    pub(crate) fn create(self, storage: &Storage, base: &Path) -> Result<WriteStream> {
        self.create_for(storage, base, WriteStreamOptions::default().io_combine_limit)
    }

    /// The same for runs of at most so many blocks.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub(crate) fn create_for(
        self,
        storage: &Storage,
        base: &Path,
        io_combine_limit: u32,
    ) -> Result<WriteStream> {
        let files = match self.writing {
            WriteSettings { io_method: None, direct: false, .. } => {
                create_fork(storage, base, self.fork, self.expected)?
            }
            WriteSettings { direct, .. } => {
                let caching = if direct { Caching::Direct } else { Caching::Buffered };
                let how = OpenForWrite { create: Create::New, caching };
                WritableFork::open(storage, base, self.fork, how)?
            }
        };
        let extend_method = self.writing.extend_method;
        let space = FileExtension::new(Arc::new(files), 0, extend_method).interruptible();
        let space = Arc::new(space);
        space.expect_blocks(self.expected);
        let options = WriteStreamOptions {
            io_method: self.writing.io_method,
            checksums: self.checksums,
            io_combine_limit,
            ..WriteStreamOptions::default()
        };
        WriteStream::new(space, options, None)
    }
}

/// The block behind `pages` pages from `first` on; `None` past the last that a relation can have.
pub(crate) fn end_of(first: u32, pages: usize) -> Option<u32> {
    let end = u32::try_from(pages).ok().and_then(|pages| first.checked_add(pages));
    end.filter(|&end| end < u32::MAX)
}
