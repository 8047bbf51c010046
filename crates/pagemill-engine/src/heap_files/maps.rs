//! The maps beside a heap in new files: how much room its pages have, and which of them everybody sees.
//!
//! Invariant: pages come with the number of their block, each once; where they go, and whether they are logged, is the
//! sink's matter.

use pagemill_format::free_space_map_builder::{FreeSpaceMapBuilder, category};
use pagemill_format::page::Page;
use pagemill_format::visibility_map_builder::{Promise, map_blocks, set_visible};
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber};

use crate::error::{Error, Result};

/// What the free-space map says of a page of the heap.
pub(crate) fn room_category(page: &BlockBytes) -> u8 {
    category(room(page))
}

/// Bytes for another tuple and its line pointer.
fn room(page: &BlockBytes) -> usize {
    let header = Page::new(page).header();
    usize::from(header.upper.saturating_sub(header.lower)).saturating_sub(4)
}

/// The free-space map of a heap whose pages have these categories, page by page.
///
/// # Errors
/// The sink's.
pub(crate) fn free_space_pages(
    categories: &[u8],
    mut sink: impl FnMut(BlockNumber, &BlockBytes) -> Result<()>,
) -> Result<()> {
    let mut builder = FreeSpaceMapBuilder::new();
    let mut sink = |block: BlockNumber, page: &mut BlockBytes| sink(block, page);
    for &category in categories {
        builder.add::<Error, _>(category, &mut sink)?;
    }
    builder.finish::<Error, _>(&mut sink)
}

/// The visibility map of a heap of so many blocks, all frozen, page by page.
///
/// # Errors
/// The sink's.
pub(crate) fn visibility_pages(
    blocks: u32,
    mut sink: impl FnMut(BlockNumber, &BlockBytes) -> Result<()>,
) -> Result<()> {
    let mut page = Box::new([0; BLOCK_SIZE]);
    for block in map_blocks(0..blocks) {
        page.fill(0);
        set_visible(&mut page, BlockNumber(block), 0..blocks, Promise::AllFrozen);
        sink(BlockNumber(block), &page)?;
    }
    Ok(())
}
