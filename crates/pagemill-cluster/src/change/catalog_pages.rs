//! Pages of a catalog on which rows are added, replaced and deleted by a transaction.
//!
//! Which version of a row is seen is up to the commit log, as after the same by a server: an old version stays, so that
//! whoever replays the WAL and stops before the commit finds it.
//!
//! Invariants: a tuple that is there keeps its place; the visibility map may promise nothing of the pages changed here,
//! which the caller sees to.
//!
//! Source: `heap_insert`, `heap_update` and `heap_delete` in `src/backend/access/heap/heapam.c`, PostgreSQL 14 to 18.

use std::collections::BTreeMap;

use pagemill_format::page::Page;
use pagemill_format::page_builder::{PageBuilder, max_align};
use pagemill_format::tuple_update::{delete, place, succeed, supersede};
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Tid, TransactionId};
use pagemill_io::ForkFiles;

use crate::error::{Error, Result};
use crate::refusal::CatalogRowCause;

/// The pages of one catalog with their changes.
pub(super) struct CatalogPages<'a, F> {
    files: &'a ForkFiles,
    xid: TransactionId,
    /// Pages that were changed otherwise before.
    changed: F,
    blocks: u32,
    pub(super) pages: BTreeMap<BlockNumber, Box<BlockBytes>>,
}

impl<'a, F: Fn(BlockNumber) -> Option<Box<BlockBytes>>> CatalogPages<'a, F> {
    pub(super) fn new(files: &'a ForkFiles, xid: TransactionId, changed: F) -> Self {
        Self { files, xid, changed, blocks: files.blocks(), pages: BTreeMap::new() }
    }

    /// The tuple at a place.
    ///
    /// # Errors
    /// When there is none, or the page cannot be read.
    pub(super) fn tuple(&mut self, tid: Tid) -> Result<Vec<u8>> {
        let page = Page::new(self.page(tid.block)?);
        let lp = page.line_pointer(tid.line_pointer);
        let lp = lp.ok_or_else(|| Error::refused(CatalogRowCause::LostLinePointer))?;
        Ok(page.item(lp)?.to_vec())
    }

    /// Adds a row that was not there, and returns its place.
    ///
    /// # Errors
    /// When the last page cannot be read, or the tuple is longer than a page.
    pub(super) fn insert(&mut self, tuple: &[u8]) -> Result<Tid> {
        let tid = self.add(BlockNumber(self.blocks.saturating_sub(1)), tuple)?;
        self.change_bytes(tid, |tuple| place(tuple, tid))?;
        // A recovery that stops before the commit must not show it.
        PageBuilder::resume(self.page(tid.block)?)?.clear_all_visible();
        Ok(tid)
    }

    /// Gives the row at `old` a new version.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub(super) fn update(&mut self, old: Tid, tuple: &[u8]) -> Result<Tid> {
        let new = self.add(old.block, tuple)?;
        let xid = self.xid;
        self.change_tuple(new, |tuple| succeed(tuple, xid, new))?;
        self.change_tuple(old, |tuple| supersede(tuple, xid, new))?;
        Ok(new)
    }

    /// Deletes the row at a place.
    ///
    /// # Errors
    /// When the page cannot be read.
    pub(super) fn delete(&mut self, tid: Tid) -> Result<()> {
        let xid = self.xid;
        self.change_tuple(tid, |tuple| delete(tuple, xid, tid))
    }

    /// Overwrites bytes of a tuple's data, behind its header of `header` bytes, in no transaction.
    ///
    /// # Errors
    /// When the page cannot be read, or the row ends before them.
    pub(super) fn overwrite(&mut self, tid: Tid, at: usize, bytes: &[u8]) -> Result<()> {
        let mut fits = false;
        self.change_bytes(tid, |tuple| {
            if let Some(field) = tuple.get_mut(at..at + bytes.len()) {
                field.copy_from_slice(bytes);
                fits = true;
            }
        })?;
        if fits { Ok(()) } else { Err(Error::refused(CatalogRowCause::EndsEarly)) }
    }

    /// Puts the tuple where there is room: on the page `beside`, else on the last one, else on a new one.
    fn add(&mut self, beside: BlockNumber, tuple: &[u8]) -> Result<Tid> {
        let there = [beside, BlockNumber(self.blocks.saturating_sub(1))];
        let blocks = self.blocks;
        for block in there.into_iter().filter(|block| block.0 < blocks) {
            let mut page = PageBuilder::resume(self.page(block)?)?;
            if page.heap_free_space() >= max_align(tuple.len())
                && let Some(line_pointer) = page.add(tuple)
            {
                return Ok(Tid { block, line_pointer });
            }
        }
        let block = BlockNumber(self.blocks);
        self.blocks += 1;
        let mut page = Box::new([0; BLOCK_SIZE]);
        let added = PageBuilder::init(&mut page, 0).add(tuple);
        self.pages.insert(block, page);
        let full = || Error::refused(CatalogRowCause::NoRoom);
        Ok(Tid { block, line_pointer: added.ok_or_else(full)? })
    }

    fn change_tuple(&mut self, tid: Tid, change: impl FnOnce(&mut [u8])) -> Result<()> {
        let xid = self.xid;
        self.change_bytes(tid, change)?;
        PageBuilder::resume(self.page(tid.block)?)?.set_prunable(xid);
        Ok(())
    }

    fn change_bytes(&mut self, tid: Tid, change: impl FnOnce(&mut [u8])) -> Result<()> {
        let page = self.page(tid.block)?;
        let lp = Page::new(page).line_pointer(tid.line_pointer);
        let tuple = lp.and_then(|lp| page.get_mut(lp.offset()..lp.offset() + lp.len()));
        change(tuple.ok_or_else(|| Error::refused(CatalogRowCause::LostLinePointer))?);
        Ok(())
    }

    /// A page with all its changes so far.
    fn page(&mut self, block: BlockNumber) -> Result<&mut Box<BlockBytes>> {
        use std::collections::btree_map::Entry;
        match self.pages.entry(block) {
            Entry::Occupied(found) => Ok(found.into_mut()),
            Entry::Vacant(place) => {
                let page = match (self.changed)(block) {
                    Some(page) => page,
                    None => {
                        let mut page = Box::new([0; BLOCK_SIZE]);
                        self.files.read_block(block, &mut page)?;
                        page
                    }
                };
                Ok(place.insert(page))
            }
        }
    }
}
