//! The pages of one fork of a relation, from the run that was built to WAL and file.
//!
//! Where the fork goes depends on what becomes of it. A new file is written at once, as nobody knows of it; a fork that
//! lives on gets its pages only after the commit, out of the WAL, which has to hold them all.
//!
//! Invariant: blocks come in ascending order, each once.

use pagemill_cluster::change::ClusterChange;
use pagemill_format::heap_builder::assign_blocks;
use pagemill_format::page_builder::set_lsn;
use pagemill_format::wal::RelFileLocator;
use pagemill_format::{BlockBytes, BlockNumber, Fork};
use pagemill_io::{WriteMethod, WriteSettings, check_interrupt};
use pagemill_stream::WriteStream;
use pagemill_wal::ForkKey;

use crate::error::{Error, Result};
use crate::heap_files::new_fork::{NewFork, end_of};
use crate::heap_files::page_run::{Piece, Pieces};
use crate::refusal::LoadRefusal;

use super::read_back::ReadBack;

/// Images in one record.
const IMAGES_PER_RECORD: usize = 32;

/// How the new files of a relation are written.
#[derive(Debug, Clone)]
pub(super) struct Writing {
    /// Their pages are logged.
    pub(super) wal: bool,
    pub(super) settings: WriteSettings,
    /// Blocks of the pieces that runs come in.
    pub(super) piece_blocks: usize,
    pub(super) read_back: ReadBack,
}

/// Where the pages of a fork go.
#[derive(Debug)]
pub(super) struct ForkWriter {
    file: RelFileLocator,
    fork: Fork,
    /// The new file; `None` for a fork that lives on.
    stream: Option<WriteStream>,
    is_logged: bool,
    read_back: ReadBack,
    next: u32,
    /// Single pages that wait to be logged together.
    waiting: Vec<(BlockNumber, Box<BlockBytes>)>,
}

impl ForkWriter {
    /// A fork in a new file, which is to have about so many blocks.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub(super) fn new_file(
        change: &ClusterChange,
        key: ForkKey,
        expected: u32,
        how: Writing,
    ) -> Result<Self> {
        let ForkKey { locator: file, fork } = key;
        let cluster = change.database().cluster();
        let base = cluster.tablespace_path(file.tablespace, file.database);
        let base = base.join(file.number.to_string());
        let checksums = cluster.control().has_data_checksums();
        let new = NewFork { fork, writing: how.settings, checksums, expected };
        let window = u32::try_from(how.piece_blocks).unwrap_or(u32::MAX);
        let stream = new.create_for(cluster.storage(), &base, window).map_err(cluster_error)?;
        // Servers do not log free-space maps either.
        let is_logged = how.wal && fork != Fork::Fsm;
        Ok(Self {
            file,
            fork,
            stream: Some(stream),
            is_logged,
            read_back: how.read_back,
            next: 0,
            waiting: Vec::new(),
        })
    }

    fn key(&self) -> ForkKey {
        ForkKey { locator: self.file, fork: self.fork }
    }

    /// A fork that lives on, behind its `blocks` blocks.
    pub(super) fn behind(
        file: RelFileLocator,
        fork: Fork,
        blocks: u32,
        read_back: &ReadBack,
    ) -> Self {
        Self {
            file,
            fork,
            stream: None,
            is_logged: true,
            read_back: read_back.clone(),
            next: blocks,
            waiting: Vec::new(),
        }
    }

    /// The relation's files.
    pub(super) fn file(&self) -> RelFileLocator {
        self.file
    }

    /// How the new file is written.
    pub(super) fn write_method(&self) -> Option<WriteMethod> {
        self.stream.as_ref().map(|stream| stream.method().0)
    }

    /// Blocks so far.
    pub(super) fn blocks(&self) -> u32 {
        self.next
    }

    /// Adds heap pages, whose tuples learn where they are, and gives their memory back. Returns the first block.
    ///
    /// # Errors
    /// When WAL or file cannot be written.
    pub(super) fn add_heap(
        &mut self,
        change: &mut ClusterChange,
        pieces: Vec<Piece>,
        store: &Pieces,
    ) -> Result<BlockNumber> {
        let first = self.next;
        for mut piece in pieces {
            let block = BlockNumber(self.next);
            assign_blocks(piece.filled_mut(), block);
            self.add(change, piece, store)?;
        }
        Ok(BlockNumber(first))
    }

    /// Adds pages as they are.
    ///
    /// # Errors
    /// When WAL or file cannot be written.
    pub(super) fn add(
        &mut self,
        change: &mut ClusterChange,
        mut piece: Piece,
        store: &Pieces,
    ) -> Result<()> {
        check_interrupt(change.database().cluster().path()).map_err(cluster_error)?;
        let first = BlockNumber(self.next);
        let end = end_of(self.next, piece.pages);
        self.next = end.ok_or_else(|| Error::refused(LoadRefusal::TooManyBlocks))?;
        if self.is_logged {
            // WAL before data: the page goes to the file with the LSN of the record that has its image.
            self.log(change, first, piece.filled_mut())?;
        }
        // As it goes to the file, with its LSN.
        self.read_back.note(self.key(), first, piece.filled_mut());
        match &mut self.stream {
            Some(stream) => {
                stream.write_run(first, piece.buffer, piece.pages).map_err(cluster_error)?;
                store.put(stream.buffer().map_err(cluster_error)?);
            }
            None => {
                assert!(self.is_logged, "pages of a fork that lives on come out of the WAL");
                store.put(piece.buffer);
            }
        }
        Ok(())
    }

    /// Adds a page whose number is given, of pages that come nearly in order.
    ///
    /// # Errors
    /// When WAL or file cannot be written.
    pub(super) fn add_page(
        &mut self,
        change: &mut ClusterChange,
        block: BlockNumber,
        page: &BlockBytes,
    ) -> Result<()> {
        let end = end_of(block.0, 1).ok_or_else(|| Error::refused(LoadRefusal::TooManyBlocks))?;
        self.waiting.push((block, Box::new(*page)));
        self.next = self.next.max(end);
        if self.waiting.len() < IMAGES_PER_RECORD { Ok(()) } else { self.flush(change) }
    }

    /// Logs and writes the pages that wait.
    ///
    /// # Errors
    /// When WAL or file cannot be written.
    pub(super) fn flush(&mut self, change: &mut ClusterChange) -> Result<()> {
        let mut pages = std::mem::take(&mut self.waiting);
        if pages.is_empty() {
            return Ok(());
        }
        check_interrupt(change.database().cluster().path()).map_err(cluster_error)?;
        if self.is_logged {
            let images: Vec<_> = pages.iter().map(|(block, page)| (*block, &**page)).collect();
            let lsn = change.log_images(self.file, self.fork, &images)?;
            pages.iter_mut().for_each(|(_, page)| set_lsn(page, lsn));
        }
        for (block, page) in &pages {
            self.read_back.note(self.key(), *block, std::slice::from_ref(page));
        }
        let Some(stream) = &mut self.stream else { return Ok(()) };
        pages
            .iter()
            .try_for_each(|(block, page)| stream.write_page(*block, page))
            .map_err(cluster_error)
    }

    fn log(
        &self,
        change: &mut ClusterChange,
        first: BlockNumber,
        pages: &mut [BlockBytes],
    ) -> Result<()> {
        for (record, pages) in (0..).zip(pages.chunks_mut(IMAGES_PER_RECORD)) {
            let block = first.0 + record * IMAGES_PER_RECORD as u32;
            let images: Vec<_> = (block..).map(BlockNumber).zip(&*pages).collect();
            let lsn = change.log_images(self.file, self.fork, &images)?;
            pages.iter_mut().for_each(|page| set_lsn(page, lsn));
        }
        Ok(())
    }

    /// Makes a new file durable.
    ///
    /// # Errors
    /// When it cannot be.
    pub(super) fn finish(self) -> Result<()> {
        match self.stream {
            Some(stream) => stream.finish().map_err(cluster_error),
            None => Ok(()),
        }
    }
}

fn cluster_error(error: pagemill_io::Error) -> Error {
    pagemill_cluster::Error::from(error).into()
}
