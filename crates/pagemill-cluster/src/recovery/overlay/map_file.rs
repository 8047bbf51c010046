//! [`MapFile`]: a segment of a visibility map that promises nothing about blocks of the heap that records changed.
//!
//! A bit on disk can be wrong only where a record since cleared it, and that record is one of the heap block too. So no record
//! of the map itself is redone: each heap block that has an entry loses its bits. So do those behind a truncation.
//!
//! A page of the map that is damaged stays so, and promises nothing either.
//!
//! Source: `src/backend/access/heap/visibilitymap.c`, PostgreSQL 14 to 18.

use std::io;
use std::sync::Arc;

use pagemill_format::page_builder::set_checksum;
use pagemill_format::visibility_map::{BLOCKS_PER_PAGE, VisibilityPosition};
use pagemill_format::{BlockBytes, BlockNumber, SEGMENT_BLOCKS};
use pagemill_io::File;
use pagemill_wal::{ForkHistory, ForkKey};

use super::composed_file::{Composition, read_pages};
use super::page_redo::{PageRedo, of_index};
use crate::page_check::find_fault;

/// Both bits of a heap block.
const BITS: u8 = 3;

/// Where the pages of a map come from.
#[derive(Debug)]
pub(super) struct MapFile {
    pub(super) redo: Arc<PageRedo>,
    /// The main fork of the table.
    pub(super) heap: ForkKey,
    pub(super) segment: u32,
    pub(super) base: Box<dyn File>,
    /// Whole blocks of the file.
    pub(super) blocks: u32,
}

impl MapFile {
    fn clear(&self, block: BlockNumber, page: &mut BlockBytes) -> io::Result<()> {
        let has_checksums = self.redo.rules().has_checksums;
        // What is damaged must not get a checksum that says otherwise.
        if find_fault(has_checksums, block, page).is_some() {
            return Ok(());
        }
        if let Some(heap) = self.redo.index().fork(self.heap)
            && clear_changed(heap, block, page)?
            && has_checksums
        {
            set_checksum(page, block);
        }
        Ok(())
    }
}

/// Clears the bits of heap blocks that a history has something about; true if there were any.
fn clear_changed(
    heap: &ForkHistory,
    map_block: BlockNumber,
    page: &mut BlockBytes,
) -> io::Result<bool> {
    let first = map_block.0.saturating_mul(BLOCKS_PER_PAGE);
    let covered = first..first.saturating_add(BLOCKS_PER_PAGE);
    let cut = heap.base_blocks().max(covered.start)..covered.end;
    let mut is_changed = false;
    let mut clear = |block| {
        let position = VisibilityPosition::of(block);
        if let Some(byte) = page.get_mut(position.byte) {
            is_changed |= *byte & BITS << position.shift != 0;
            *byte &= !(BITS << position.shift);
        }
    };
    cut.map(BlockNumber).for_each(&mut clear);
    heap.visit_touched(covered, clear).map_err(of_index)?;
    Ok(is_changed)
}

impl Composition for MapFile {
    fn pages(&self) -> u32 {
        self.blocks
    }

    fn fill(&self, first: u32, pages: &mut [BlockBytes]) -> io::Result<usize> {
        let read = read_pages(&*self.base, first, pages)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let start = self.segment.saturating_mul(SEGMENT_BLOCKS).saturating_add(first);
        for (number, page) in (start..).zip(&mut pages[..read]) {
            self.clear(BlockNumber(number), page)?;
        }
        Ok(read)
    }
}
