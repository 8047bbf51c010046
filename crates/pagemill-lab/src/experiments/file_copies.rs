//! Files of relations copied into a new directory, one after the other, and made to last.
//!
//! ```text
//! way              reads                                 writes
//! block by block   8 kB                                  8 kB
//! 64 kB            64 kB                                 64 kB
//! read stream      neighbours together, up to 16 blocks  8 kB
//! both streams     as auto has it                        neighbours together, up to 1 MB, as auto has it
//! the others       of the kernel, or past the page cache: `pagemill_io::file_copy`
//! ```
//!
//! With WAL each page is logged before it is written, and the WAL is on the device before the files are synced. Invariant: after
//! a turn the new directory holds the same bytes under the same names, and all of it lasts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork};
use pagemill_io::{
    CopyMethod, Create, FileExtension, ForkFiles, IoMethod, OpenForWrite, ReadSettings,
    RealFileSystem, Storage, WritableFile,
};
use pagemill_stream::{
    ReadStream, ReadStreamOptions, Run, WriteStream, WriteStreamOptions, create_fork,
};

use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::{Error, Result};
use crate::experiments::page_log::{PageLog, Records};

/// Blocks that a record of WAL holds, and so a read that feeds it.
const BATCH: u32 = 32;

/// A way to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyVariant {
    /// So many blocks at a time.
    Blocks(usize),
    ReadStream,
    BothStreams,
    Whole(CopyMethod),
}

impl CopyVariant {
    fn name(self) -> String {
        match self {
            Self::Blocks(1) => "block by block".into(),
            Self::Blocks(blocks) => format!("{} kB", blocks * BLOCK_SIZE / 1024),
            Self::ReadStream => "read stream".into(),
            Self::BothStreams => "both streams".into(),
            Self::Whole(method) => method.name().into(),
        }
    }

    fn storage(self) -> Storage {
        let io_method = if self == Self::ReadStream { Some(IoMethod::Pread) } else { None };
        let settings = ReadSettings { io_method, ..ReadSettings::default() };
        Storage::with_settings(Arc::new(RealFileSystem), settings).untimed()
    }
}

/// What is copied to where.
#[derive(Debug, Clone)]
pub(crate) struct FileCopies {
    pub(crate) files: Vec<PathBuf>,
    /// Made anew for each turn.
    pub(crate) target: PathBuf,
    /// Likewise.
    pub(crate) wal: PathBuf,
}

impl FileCopies {
    /// One who copies them so, with or without WAL.
    pub(crate) fn contestant(&self, way: CopyVariant, wal: Option<Records>) -> Contestant<'static> {
        let (copies, fresh) = (self.clone(), self.clone());
        let name = match wal {
            None => way.name(),
            Some(Records::Single) => format!("{}, single records", way.name()),
            Some(Records::Batches) => format!("{}, batches of 32", way.name()),
        };
        let records = wal.map_or("none", |records| match records {
            Records::Single => "single",
            Records::Batches => "batches",
        });
        Contestant::new(name, move |cancel| copies.perform(way, wal, cancel))
            .prepared(move || fresh.start_afresh())
            .parameter("method", way.name())
            .parameter("wal", records)
    }

    fn start_afresh(&self) -> Result<()> {
        for directory in [&self.target, &self.wal] {
            match std::fs::remove_dir_all(directory) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::file(directory)(error));
                }
                _ => std::fs::create_dir(directory).map_err(Error::file(directory))?,
            }
        }
        // The sync ends what the removal set going.
        Ok(Storage::real().sync_dir(&self.target)?)
    }

    fn perform(&self, way: CopyVariant, wal: Option<Records>, cancel: &Cancel) -> Result<Work> {
        let storage = way.storage();
        // Its first segment is there before, as a cluster's is.
        let log = wal.map(|records| PageLog::begin(&storage, &self.wal, records)).transpose()?;
        let before = storage.counters().snapshot();
        let mut copying = Copying { storage: &storage, way, wal: log, cancel };
        let begin = Instant::now();
        let mut written = Vec::new();
        for (number, file) in (0..).zip(&self.files) {
            let target = self.target.join(file.file_name().unwrap_or_default());
            written.push(copying.copy(number, file, &target)?);
        }
        let copied = Instant::now();
        if let Some(wal) = &mut copying.wal {
            wal.sync()?;
        }
        written.iter().try_for_each(Written::sync)?;
        storage.sync_dir(&self.target)?;
        let counted = storage.counters().snapshot().since(&before);
        let work = Work { elapsed: Some(begin.elapsed()), ..Work::default() };
        Ok(Work { operations: self.files.len() as u64, ..work }
            .with_counted("pread", &counted)
            .with_calls("copy_file_range", counted.copy_calls)
            .with_part("copy", copied - begin)
            .with_part("sync", copied.elapsed()))
    }
}

/// A new file whose bytes were written and may not last yet.
enum Written {
    File(WritableFile),
    Lasting,
}

impl Written {
    fn sync(&self) -> Result<()> {
        match self {
            Self::File(file) => Ok(file.sync_all()?),
            Self::Lasting => Ok(()),
        }
    }
}

/// A turn under way.
struct Copying<'c> {
    storage: &'c Storage,
    way: CopyVariant,
    wal: Option<PageLog>,
    cancel: &'c Cancel,
}

impl Copying<'_> {
    fn copy(&mut self, number: u32, from: &Path, to: &Path) -> Result<Written> {
        self.cancel.check()?;
        match self.way {
            CopyVariant::Blocks(blocks) => self.by_blocks(blocks, number, from, to),
            CopyVariant::ReadStream => self.by_read_stream(number, from, to),
            CopyVariant::BothStreams => self.by_both_streams(number, from, to),
            CopyVariant::Whole(method) => {
                let cancel = self.cancel;
                let mut watch = |_: pagemill_io::CopiedPiece<'_>| cancel.check();
                let copied = self.storage.copy_file(from, to, Some(method), &mut watch)?;
                Ok(Written::File(copied.file().clone()))
            }
        }
    }

    fn log(&mut self, number: u32, first: BlockNumber, pages: &[BlockBytes]) -> Result<()> {
        match &mut self.wal {
            Some(wal) => wal.log(number, first, pages),
            None => Ok(()),
        }
    }

    fn new_file(&self, to: &Path) -> Result<WritableFile> {
        let how = OpenForWrite { create: Create::New, ..OpenForWrite::default() };
        Ok(self.storage.open_for_write(to, how)?)
    }

    fn by_blocks(&mut self, blocks: usize, number: u32, from: &Path, to: &Path) -> Result<Written> {
        let source = self.storage.open(from)?;
        let target = self.new_file(to)?;
        let len = source.len().map_err(Error::file(from))?;
        let mut buffer = vec![[0; BLOCK_SIZE]; blocks];
        let mut at = 0;
        while at < len {
            self.cancel.check()?;
            let left = usize::try_from(len - at).unwrap_or(usize::MAX);
            let wanted = left.min(blocks * BLOCK_SIZE);
            let bytes = buffer.as_flattened_mut().get_mut(..wanted).unwrap_or_default();
            let got = self.storage.read_fully_at(source.as_ref(), bytes, at);
            if got.map_err(Error::file(from))? < wanted {
                let cut = std::io::ErrorKind::UnexpectedEof;
                return Err(Error::file(from)(cut.into()));
            }
            let first = u32::try_from(at / BLOCK_SIZE as u64).unwrap_or(u32::MAX);
            let pages = buffer.get(..wanted / BLOCK_SIZE).unwrap_or_default();
            self.log(number, BlockNumber(first), pages)?;
            target.write_all_at(pages.as_flattened(), at)?;
            at += wanted as u64;
        }
        Ok(Written::File(target))
    }

    /// Hands over runs of pages as the stream has read them.
    fn each_run(
        &mut self,
        from: &Path,
        mut take: impl FnMut(&mut Self, BlockNumber, &[BlockBytes]) -> Result<()>,
    ) -> Result<()> {
        let lost = || Error::file(from)(std::io::ErrorKind::NotFound.into());
        let files = ForkFiles::open(self.storage, from, Fork::Main)?.ok_or_else(lost)?;
        let mut options = ReadStreamOptions::default();
        if self.wal.as_ref().is_some_and(PageLog::takes_batches) {
            options.io_combine_limit = BATCH;
        }
        let blocks = (0..files.blocks()).map(BlockNumber);
        let mut stream = ReadStream::new(&files, blocks, options);
        while let Some(run) = stream.next_run() {
            self.cancel.check()?;
            let Run { first, pages, .. } = run?;
            take(self, first, pages)?;
        }
        Ok(())
    }

    fn by_read_stream(&mut self, number: u32, from: &Path, to: &Path) -> Result<Written> {
        let target = self.new_file(to)?;
        self.each_run(from, |copying, first, pages| {
            copying.log(number, first, pages)?;
            for (block, page) in (u64::from(first.0)..).zip(pages) {
                target.write_all_at(page, block * BLOCK_SIZE as u64)?;
            }
            Ok(())
        })?;
        Ok(Written::File(target))
    }

    fn by_both_streams(&mut self, number: u32, from: &Path, to: &Path) -> Result<Written> {
        let len = std::fs::metadata(from).map_err(Error::file(from))?.len();
        let blocks = u32::try_from(len / BLOCK_SIZE as u64).unwrap_or(u32::MAX);
        let fork = Arc::new(create_fork(self.storage, to, Fork::Main, blocks)?);
        let space = Arc::new(FileExtension::new(fork, 0, None));
        space.expect_blocks(blocks);
        let mut stream = WriteStream::new(space.clone(), WriteStreamOptions::default(), None)?;
        self.each_run(from, |copying, first, pages| {
            copying.log(number, first, pages)?;
            space.extend(u32::try_from(pages.len()).unwrap_or(u32::MAX))?;
            for (block, page) in (first.0..).zip(pages) {
                stream.write_page(BlockNumber(block), page)?;
            }
            Ok(())
        })?;
        // The WAL comes before the pages.
        if let Some(wal) = &mut self.wal {
            wal.sync()?;
        }
        stream.finish()?;
        Ok(Written::Lasting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::file_tree::{self, TreeSize};

    const BYTES: u64 = 4 << 20;

    fn copies(directory: &Path) -> FileCopies {
        let tree = directory.join("tree");
        let size = TreeSize { files: 20, bytes: BYTES };
        let files = file_tree::make(&tree, size, 1, &Cancel::default()).unwrap();
        FileCopies { files, target: directory.join("copy"), wal: directory.join("wal") }
    }

    fn perform(copies: &FileCopies, way: CopyVariant, wal: Option<Records>) -> Result<Work> {
        let mut contestant = copies.contestant(way, wal);
        contestant.prepare.as_mut().unwrap()().unwrap();
        let work = contestant.perform.as_mut().ok().unwrap()(&Cancel::default())?;
        for file in &copies.files {
            let copy = copies.target.join(file.file_name().unwrap());
            assert!(std::fs::read(file).unwrap() == std::fs::read(copy).unwrap(), "{way:?}");
        }
        Ok(work)
    }

    #[test]
    fn every_way_copies_every_byte_again_and_again() {
        let dir = tempfile::tempdir().unwrap();
        let copies = copies(dir.path());
        let ways = [
            CopyVariant::Blocks(1),
            CopyVariant::Blocks(8),
            CopyVariant::ReadStream,
            CopyVariant::BothStreams,
        ];
        for way in ways.into_iter().chain(CopyMethod::ALL.map(CopyVariant::Whole)) {
            for _ in 0..2 {
                match perform(&copies, way, None) {
                    Ok(work) => assert_eq!(work.operations, 20),
                    Err(error) => {
                        assert_eq!(way, CopyVariant::Whole(CopyMethod::Reflink), "{error}");
                        let absence = crate::contestant::absence(&error);
                        assert!(matches!(absence, Some(crate::results::Absence::Refused(_))));
                    }
                }
            }
        }
        for way in [CopyVariant::Blocks(1), CopyVariant::ReadStream, CopyVariant::BothStreams] {
            for records in [Records::Single, Records::Batches] {
                perform(&copies, way, Some(records)).unwrap();
            }
        }
    }

    #[test]
    fn a_stream_reads_with_a_sixteenth_of_the_calls() {
        let dir = tempfile::tempdir().unwrap();
        let copies = copies(dir.path());
        let blocks = BYTES / BLOCK_SIZE as u64;
        let calls = |way| perform(&copies, way, None).unwrap().calls;
        let (one, stream) = (calls(CopyVariant::Blocks(1)), calls(CopyVariant::ReadStream));
        assert_eq!((one["pread"], one["pwrite"]), (blocks, blocks));
        assert_eq!(stream["pwrite"], blocks);
        // Each file ends with a read of its own.
        assert!(stream["pread"] <= blocks.div_ceil(16) + 20, "{stream:?}");
        assert!(calls(CopyVariant::BothStreams)["pwrite"] < blocks / 4);
    }
}
