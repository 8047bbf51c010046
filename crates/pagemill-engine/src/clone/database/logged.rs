//! `wal_log`: every relation of the template read as a stream, logged as images of its pages, and written as a stream.
//!
//! What standbys get is what a server's CREATE DATABASE would log: the directory, the relation map, each file, each
//! page. Unlogged relations are written without being logged, but for their init forks, from which a recovery makes
//! them anew. Relations of sessions that are gone are left out.
//!
//! Small forks are written in one call each and synced together, by several threads. Large ones go through a write stream.
//!
//! Invariants: images of a page are appended to the WAL before the page is written; every fork is durable when
//! [`copy`] returns, but for the names of small ones.
//!
//! Source: `CreateDatabaseUsingWalLog` in `src/backend/commands/dbcommands.c`, `RelationCopyStorageUsingBuffer` in
//! `src/backend/storage/buffer/bufmgr.c`, PostgreSQL 15 to 18.

use pagemill_cluster::change::DatabaseCreation;
use pagemill_cluster::{ClassRow, Persistence};
use pagemill_format::page_builder::set_lsn;
use pagemill_format::wal::RelFileLocator;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, checksum};
use pagemill_io::{Create, ForkFiles, OpenForWrite, WritableFork, check_interrupt, sync_all};
use pagemill_stream::{MAX_IO_COMBINE_LIMIT, ReadStream, ReadStreamOptions, Run, WriteStream};
use pagemill_sys::{AlignedBuffer, WriteBack};

use super::page_guard::PageGuard;
use super::{CloneOptions, CloneSummary, cluster_error};
use crate::clone::comparison::compare_forks;
use crate::error::{Error, Result};
use crate::heap_files::new_fork::NewFork;

/// Images in one record.
const IMAGES_PER_RECORD: usize = 32;
/// Forks up to this many blocks are written at once.
const SMALL_FORK: u32 = 128;
/// Small forks that wait for their sync together.
const UNSYNCED: usize = 256;

const READING: ReadStreamOptions = ReadStreamOptions {
    io_combine_limit: MAX_IO_COMBINE_LIMIT,
    effective_io_concurrency: pagemill_io::DEFAULT_EFFECTIVE_IO_CONCURRENCY,
    ramp_up: false,
};

/// Copies and logs all relations. The directories are there.
///
/// # Errors
/// When a page is damaged, or the system fails.
pub(super) fn copy(
    creation: &mut DatabaseCreation,
    options: &CloneOptions,
) -> Result<CloneSummary> {
    let template = creation.template().clone();
    let mut copying = Copying {
        guard: PageGuard::new(template.cluster(), options.verify_checksums),
        creation,
        options,
        unsynced: Vec::new(),
        buffer: AlignedBuffer::zeroed(SMALL_FORK as usize * BLOCK_SIZE),
        summary: CloneSummary::default(),
    };
    for class in template.classes().iter().filter(|class| is_copied(class)) {
        copying.relation(class)?;
    }
    copying.sync()?;
    if options.verify {
        for class in template.classes().iter().filter(|class| is_copied(class)) {
            copying.compare(class)?;
        }
    }
    Ok(copying.summary)
}

/// True for relations that a new database gets.
pub(super) fn is_copied(class: &ClassRow) -> bool {
    class.kind.has_files() && !class.shared && class.persistence != Persistence::Temporary
}

/// True for forks that standbys get.
pub(super) fn is_logged(class: &ClassRow, fork: Fork) -> bool {
    class.persistence == Persistence::Permanent || fork == Fork::Init
}

struct Copying<'a> {
    creation: &'a mut DatabaseCreation,
    options: &'a CloneOptions,
    guard: PageGuard,
    unsynced: Vec<WritableFork>,
    /// The pages of a small fork.
    buffer: AlignedBuffer,
    summary: CloneSummary,
}

impl Copying<'_> {
    fn relation(&mut self, class: &ClassRow) -> Result<()> {
        let template = self.creation.template().clone();
        let base = template.base_path(class)?;
        let file = self.creation.file_of(class)?;
        let main = template.cluster().main_fork(&base)?;
        self.fork(ForkCopy { source: &main, file, is_logged: is_logged(class, Fork::Main) })?;
        for fork in Fork::ALL.into_iter().filter(|&fork| fork != Fork::Main) {
            let Some(source) = template.cluster().fork(&base, fork)? else { continue };
            self.fork(ForkCopy { source: &source, file, is_logged: is_logged(class, fork) })?;
        }
        self.summary.relations += 1;
        Ok(())
    }

    /// Compares the copy of a relation with it.
    fn compare(&self, class: &ClassRow) -> Result<()> {
        let template = self.creation.template();
        let cluster = template.cluster();
        check_interrupt(cluster.path()).map_err(cluster_error)?;
        let (base, (storage, copy)) =
            (template.base_path(class)?, self.place_of(self.creation.file_of(class)?));
        for fork in Fork::ALL {
            let Some(source) = cluster.fork(&base, fork)? else { continue };
            match ForkFiles::open(&storage, &copy, fork).map_err(cluster_error)? {
                Some(target) => compare_forks(&source, &target)?,
                None => return Err(Error::Differs { copy, original: base, offset: 0 }),
            }
        }
        Ok(())
    }

    fn fork(&mut self, copy: ForkCopy<'_>) -> Result<()> {
        let ForkCopy { source, file, is_logged } = copy;
        self.guard.check_files(source)?;
        let fork = source.fork();
        if is_logged {
            self.creation.log_file(file, fork)?;
        }
        if source.blocks() <= SMALL_FORK {
            self.small(copy)?;
        } else {
            self.large(copy)?;
        }
        self.summary.files += 1;
        self.summary.blocks += u64::from(source.blocks());
        Ok(())
    }

    fn small(&mut self, copy: ForkCopy<'_>) -> Result<()> {
        let how = OpenForWrite { create: Create::New, ..OpenForWrite::default() };
        let (source, (storage, base)) = (copy.source, self.place_of(copy.file));
        let target = WritableFork::open(&storage, &base, source.fork(), how);
        let target = target.map_err(cluster_error)?;
        let blocks = (0..source.blocks()).map(BlockNumber);
        let mut stream = ReadStream::new(source, blocks, READING);
        let mut filled = 0;
        while let Some(run) = stream.next_run() {
            let Run { first, pages, .. } = run.map_err(cluster_error)?;
            let end = filled + pages.len() * BLOCK_SIZE;
            // Infallible: the fork has no more blocks than the buffer has room for.
            let room = &mut self.buffer[filled..end];
            room.copy_from_slice(pages.as_flattened());
            let room = room.as_chunks_mut().0;
            copy.take(self.creation, &self.guard, first, room)?;
            filled = end;
        }
        if filled > 0 {
            target.write_blocks(BlockNumber(0), &self.buffer[..filled]).map_err(cluster_error)?;
        }
        self.options.progress.add_pages((filled / BLOCK_SIZE) as u64);
        let (written, _) = target.file(BlockNumber(0)).map_err(cluster_error)?;
        written.write_back(0..filled as u64, WriteBack::Begin).map_err(cluster_error)?;
        self.unsynced.push(target);
        if self.unsynced.len() < UNSYNCED { Ok(()) } else { self.sync() }
    }

    fn large(&mut self, copy: ForkCopy<'_>) -> Result<()> {
        let (source, (storage, base)) = (copy.source, self.place_of(copy.file));
        let new = NewFork {
            fork: source.fork(),
            writing: self.options.writing,
            // They are computed here, so that a page that is damaged stays so.
            checksums: false,
            expected: source.blocks(),
        };
        let mut target = new.create(&storage, &base).map_err(cluster_error)?;
        let blocks = (0..source.blocks()).map(BlockNumber);
        let mut stream = ReadStream::new(source, blocks, READING);
        let mut piece = Piece::new(&mut target)?;
        while let Some(run) = stream.next_run() {
            let Run { first, mut pages, .. } = run.map_err(cluster_error)?;
            let mut block = first;
            while !pages.is_empty() {
                let taken = piece.fill(block, pages);
                assert!(
                    (1..=pages.len()).contains(&taken),
                    "a piece that is not full takes a page"
                );
                pages = &pages[taken..];
                block.0 += taken as u32;
                if piece.is_full() {
                    self.write(&mut target, &mut piece, copy)?;
                }
            }
        }
        self.write(&mut target, &mut piece, copy)?;
        self.summary.write_method = Some(target.method().0);
        target.finish().map_err(cluster_error)
    }

    fn write(
        &mut self,
        target: &mut WriteStream,
        piece: &mut Piece,
        copy: ForkCopy<'_>,
    ) -> Result<()> {
        if piece.pages == 0 {
            return Ok(());
        }
        let (first, count) = (piece.first, piece.pages);
        copy.take(self.creation, &self.guard, first, piece.filled())?;
        let full = std::mem::replace(piece, Piece::new(target)?);
        target.write_run(first, full.buffer, count).map_err(cluster_error)?;
        self.options.progress.add_pages(count as u64);
        Ok(())
    }

    fn place_of(&self, file: RelFileLocator) -> (pagemill_io::Storage, std::path::PathBuf) {
        let cluster = self.creation.template().cluster();
        let directory = cluster.tablespace_path(file.tablespace, file.database);
        (cluster.storage().clone(), directory.join(file.number.to_string()))
    }

    fn sync(&mut self) -> Result<()> {
        let unsynced = std::mem::take(&mut self.unsynced);
        sync_all(&unsynced, |fork| fork.sync_files().map_err(cluster_error))
    }
}

/// A fork that is copied.
#[derive(Clone, Copy)]
struct ForkCopy<'a> {
    source: &'a ForkFiles,
    /// The relation file in the new database.
    file: RelFileLocator,
    is_logged: bool,
}

impl ForkCopy<'_> {
    /// Checks pages on their way, and logs them, after which they name their record.
    fn take(
        self,
        creation: &mut DatabaseCreation,
        guard: &PageGuard,
        first: BlockNumber,
        pages: &mut [BlockBytes],
    ) -> Result<()> {
        let Self { source, file, is_logged } = self;
        check_interrupt(creation.template().cluster().path()).map_err(cluster_error)?;
        for (block, page) in (first.0..).map(BlockNumber).zip(&*pages) {
            guard.check(source, block, page)?;
        }
        if !is_logged {
            return Ok(());
        }
        for (record, pages) in (0..).zip(pages.chunks_mut(IMAGES_PER_RECORD)) {
            let block = first.0 + record * IMAGES_PER_RECORD as u32;
            let images: Vec<_> = (block..).map(BlockNumber).zip(&*pages).collect();
            let lsn = creation.log_images(file, source.fork(), &images)?;
            for (block, page) in (block..).map(BlockNumber).zip(pages) {
                // A page of zeros is one that nobody wrote yet.
                if !checksum::is_new(page) {
                    guard.change(block, page, |page| set_lsn(page, lsn));
                }
            }
        }
        Ok(())
    }
}

/// Neighbouring pages on their way into a stream.
struct Piece {
    buffer: AlignedBuffer,
    first: BlockNumber,
    pages: usize,
}

impl Piece {
    fn new(target: &mut WriteStream) -> Result<Self> {
        let buffer = target.buffer().map_err(cluster_error)?;
        Ok(Self { buffer, first: BlockNumber(0), pages: 0 })
    }

    /// Takes as many pages as there is room for, and says how many.
    fn fill(&mut self, block: BlockNumber, pages: &[BlockBytes]) -> usize {
        if self.pages == 0 {
            self.first = block;
        }
        let room = self.buffer.as_chunks_mut::<BLOCK_SIZE>().0;
        assert!(self.pages <= room.len(), "a piece has no more pages than its buffer has room for");
        let room = &mut room[self.pages..];
        let taken = room.len().min(pages.len());
        for (to, from) in room.iter_mut().zip(pages) {
            *to = *from;
        }
        self.pages += taken;
        taken
    }

    fn is_full(&self) -> bool {
        self.pages * BLOCK_SIZE == self.buffer.len()
    }

    fn filled(&mut self) -> &mut [BlockBytes] {
        let room = self.buffer.as_chunks_mut::<BLOCK_SIZE>().0;
        assert!(self.pages <= room.len(), "a piece has no more pages than its buffer has room for");
        &mut room[..self.pages]
    }
}
