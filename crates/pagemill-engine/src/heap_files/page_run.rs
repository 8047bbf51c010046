//! Pages that one thread builds for one relation, before it is known which blocks they become.
//!
//! They lie in pieces of memory of 1 MiB that are written as they are, and used again afterwards: memory fresh from the
//! kernel has to be zeroed page by page first.
//!
//! Invariant: a tuple's place counts blocks from the start of the run, and every piece but the last is full.

use std::sync::{Arc, Mutex, PoisonError};

use pagemill_format::heap_builder::HeapBuilder;
use pagemill_format::tuple_builder::{TupleForm, TupleSize, TupleStamp};
use pagemill_format::tuple_data_builder::Row;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Error as FormatError, Result, Tid};
use pagemill_sys::AlignedBuffer;

/// Blocks in a piece.
pub(crate) const PIECE_BLOCKS: usize = 128;
/// Pieces that wait to be used again, at most.
const KEPT_PIECES: usize = 32;

/// Pieces of memory, shared by those who fill them and those who empty them.
#[derive(Debug, Clone)]
pub(crate) struct Pieces {
    free: Arc<Mutex<Vec<AlignedBuffer>>>,
    blocks: usize,
}

impl Default for Pieces {
    fn default() -> Self {
        Self::of_blocks(PIECE_BLOCKS)
    }
}

impl Pieces {
    /// Of so many blocks each, for a load that fills many tables side by side.
    pub(crate) fn of_blocks(blocks: usize) -> Self {
        assert!((1..=PIECE_BLOCKS).contains(&blocks), "a piece has 1 to {PIECE_BLOCKS} blocks");
        Self { free: Arc::default(), blocks }
    }

    /// Blocks of each.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    /// One to be filled, with whatever was in it before.
    pub(crate) fn take(&self) -> AlignedBuffer {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.unwrap_or_else(|| AlignedBuffer::zeroed(self.blocks * BLOCK_SIZE))
    }

    /// Gives one back.
    pub(crate) fn put(&self, buffer: AlignedBuffer) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < KEPT_PIECES && buffer.len() == self.blocks * BLOCK_SIZE {
            free.push(buffer);
        }
    }
}

/// A piece with pages at its start.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) buffer: AlignedBuffer,
    pub(crate) pages: usize,
}

impl Piece {
    /// Its pages.
    pub(crate) fn filled(&self) -> &[BlockBytes] {
        let room = self.buffer.as_chunks::<BLOCK_SIZE>().0;
        assert!(self.pages <= room.len(), "a piece has no more pages than its buffer has room for");
        &room[..self.pages]
    }

    /// Its pages, to be changed.
    pub(crate) fn filled_mut(&mut self) -> &mut [BlockBytes] {
        let room = self.buffer.as_chunks_mut::<BLOCK_SIZE>().0;
        assert!(self.pages <= room.len(), "a piece has no more pages than its buffer has room for");
        &mut room[..self.pages]
    }
}

/// How a relation's pages are filled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageFill {
    pub(crate) fillfactor: u8,
    pub(crate) all_visible: bool,
    pub(crate) stamp: TupleStamp,
}

/// The pages of one relation that one thread builds from one batch of rows.
#[derive(Debug)]
pub(crate) struct PageRun {
    pieces: Pieces,
    fill: PageFill,
    full: Vec<Piece>,
    open: Option<HeapBuilder<AlignedBuffer>>,
}

impl PageRun {
    pub(crate) fn new(pieces: Pieces, fill: PageFill) -> Self {
        Self { pieces, fill, full: Vec::new(), open: None }
    }

    /// Adds a row, and tells its place.
    ///
    /// # Errors
    /// When it is too big for a page.
    pub(crate) fn add<R: Row + ?Sized>(
        &mut self,
        form: &TupleForm,
        row: &R,
        size: TupleSize,
    ) -> Result<Tid> {
        if let Some(tid) = self.try_add(form, row, size)? {
            return Ok(tid);
        }
        self.close();
        let added = self.try_add(form, row, size)?;
        added.ok_or_else(|| FormatError::limit("a row found no room on an empty page"))
    }

    fn try_add<R: Row + ?Sized>(
        &mut self,
        form: &TupleForm,
        row: &R,
        size: TupleSize,
    ) -> Result<Option<Tid>> {
        let PageFill { fillfactor, all_visible, stamp } = self.fill;
        let open = self
            .open
            .get_or_insert_with(|| HeapBuilder::new(self.pieces.take(), fillfactor, all_visible));
        let added = open.add_measured(form, row, size, stamp)?;
        let before = (self.full.len() * self.pieces.blocks()) as u32;
        Ok(added.map(|tid| Tid { block: BlockNumber(tid.block.0 + before), ..tid }))
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            let (buffer, pages) = open.finish();
            self.full.push(Piece { buffer, pages });
        }
    }

    /// The pieces, all but the last full.
    pub(crate) fn finish(mut self) -> Vec<Piece> {
        self.close();
        self.full
    }
}
