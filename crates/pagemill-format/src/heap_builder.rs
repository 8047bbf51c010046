//! Packs tuples into heap pages whose place in the relation is not known yet.
//!
//! Several builders work side by side, each on a buffer of its own. Only when a buffer is written is
//! it known which blocks its pages become: until then tuples are addressed by the page's number in
//! the buffer, and [`assign_blocks`] writes the real block numbers into the tuples.
//!
//! Invariants: a page is sound after every tuple added; no tuple crosses pages; after `assign_blocks`
//! each tuple's `ctid` is its own place. The first tuple of a page is added whatever the fill factor.
//!
//! Sources: `heap_multi_insert` in `src/backend/access/heap/heapam.c`, `RelationPutHeapTuple` in
//! `src/backend/access/heap/hio.c`, PostgreSQL 14 to 18.

use crate::error::Result;
use crate::ids::{BLOCK_SIZE, BlockBytes, BlockNumber, Tid};
use crate::page::{LinePointerState, Page};
use crate::page_builder::{PageBuilder, max_align};
use crate::tuple_builder::{CTID, TupleForm, TupleSize, TupleStamp, block_halves, set_ctid};
use crate::tuple_data_builder::Row;

/// What a heap is filled to, in percent, unless its `fillfactor` says otherwise.
pub const HEAP_DEFAULT_FILLFACTOR: u8 = 100;

/// Fills a buffer of whole blocks with tuples.
#[derive(Debug)]
pub struct HeapBuilder<B> {
    buffer: B,
    /// Pages begun; tuples go to the last of them.
    pages: usize,
    kept_free: usize,
    all_visible: bool,
}

impl<B: AsMut<[u8]>> HeapBuilder<B> {
    /// Starts at the first block of the buffer; a rest that is no whole block is not used. `fillfactor`
    /// is in percent; `all_visible` marks the pages as such, for frozen tuples only.
    pub fn new(buffer: B, fillfactor: u8, all_visible: bool) -> Self {
        let kept_free = BLOCK_SIZE * usize::from(100 - fillfactor.min(100)) / 100;
        Self { buffer, pages: 0, kept_free, all_visible }
    }

    /// Adds a row as a tuple: its place, the block counted from the buffer's start. `None` when the buffer
    /// is full, and nothing was added.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] when the row is too big for any page; [`TupleForm::measure`]'s.
    #[inline]
    pub fn add<R: Row + ?Sized>(
        &mut self,
        form: &TupleForm,
        row: &R,
        stamp: TupleStamp,
    ) -> Result<Option<Tid>> {
        self.add_measured(form, row, form.measure(row)?, stamp)
    }

    /// The same for a row that was measured.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] when it is too big for any page.
    #[inline]
    pub fn add_measured<R: Row + ?Sized>(
        &mut self,
        form: &TupleForm,
        row: &R,
        size: TupleSize,
        stamp: TupleStamp,
    ) -> Result<Option<Tid>> {
        let needed = size.on_page()? + self.kept_free;
        if self.last_page().is_none_or(|page| page.heap_free_space() < needed) && !self.begin_page()
        {
            return Ok(None);
        }
        let block = BlockNumber((self.pages - 1) as u32);
        let mut page = self.last_page().expect("a page was begun"); // infallible: above
        let reserved = page.reserve(size.bytes());
        let (line_pointer, room) = reserved.expect("a page with room for a tuple takes it"); // infallible: room was asked for
        let tid = Tid { block, line_pointer };
        form.write(row, size, stamp, room);
        set_ctid(room, tid);
        Ok(Some(tid))
    }

    /// Adds a tuple that was formed before, as it is but for its place, which [`assign_blocks`] and this correct. `None` when
    /// the buffer is full, and nothing was added.
    pub fn add_formed(&mut self, tuple: &[u8]) -> Option<Tid> {
        let needed = max_align(tuple.len()) + self.kept_free;
        if self.last_page().is_none_or(|page| page.heap_free_space() < needed) && !self.begin_page()
        {
            return None;
        }
        let block = BlockNumber((self.pages - 1) as u32);
        let mut page = self.last_page().expect("a page was begun"); // infallible: above
        let reserved = page.reserve(tuple.len());
        let (line_pointer, room) = reserved.expect("a page with room for a tuple takes it"); // infallible: room was asked for
        room.copy_from_slice(tuple);
        let tid = Tid { block, line_pointer };
        set_ctid(room, tid);
        Some(tid)
    }

    #[inline]
    fn last_page(&mut self) -> Option<PageBuilder<'_>> {
        let blocks = self.buffer.as_mut().as_chunks_mut::<BLOCK_SIZE>().0;
        Some(PageBuilder::trusted(blocks.get_mut(self.pages.checked_sub(1)?)?))
    }

    fn begin_page(&mut self) -> bool {
        let blocks = self.buffer.as_mut().as_chunks_mut::<BLOCK_SIZE>().0;
        let Some(block) = blocks.get_mut(self.pages) else { return false };
        let mut page = PageBuilder::init(block, 0);
        if self.all_visible {
            page.set_all_visible();
        }
        self.pages += 1;
        true
    }

    /// Pages begun so far.
    pub fn page_count(&self) -> usize {
        self.pages
    }

    /// The buffer, and how many of its blocks are pages now.
    pub fn finish(self) -> (B, usize) {
        (self.buffer, self.pages)
    }
}

/// Tells the tuples of finished pages that these become the blocks from `first` on.
pub fn assign_blocks(pages: &mut [BlockBytes], first: BlockNumber) {
    for (page, block) in pages.iter_mut().zip(first.0..) {
        assign_block(page, BlockNumber(block));
    }
}

fn assign_block(page: &mut BlockBytes, block: BlockNumber) {
    let halves = block_halves(block).to_le_bytes();
    for number in 1..=Page::new(page).line_pointer_count() {
        let Some(pointer) = Page::new(page).line_pointer(number) else { return };
        let at = pointer.offset() + CTID;
        if pointer.state() == LinePointerState::Normal {
            page[at..at + halves.len()].copy_from_slice(&halves);
        }
    }
}

#[cfg(test)]
mod tests;
