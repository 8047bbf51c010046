//! Writing the visibility map, whose bits are described in [`crate::visibility_map`].
//!
//! A load marks the blocks it filled with frozen rows and leaves the others as they were, so a page of
//! the map is either read and changed, or begun.
//!
//! Invariant: only the bits of the blocks named are changed.
//!
//! Source: `visibilitymap_set` in `src/backend/access/heap/visibilitymap.c`, PostgreSQL 14 to 18.

use std::ops::Range;

use crate::checksum::is_new;
use crate::ids::{BlockBytes, BlockNumber};
use crate::page_builder::PageBuilder;
use crate::visibility_map::{BLOCKS_PER_PAGE, VisibilityPosition};

/// What is promised of a block's tuples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// Every transaction can see them.
    AllVisible,
    /// So it will be for all time.
    AllFrozen,
}

impl Promise {
    fn bits(self) -> u8 {
        match self {
            Self::AllVisible => 1,
            Self::AllFrozen => 3,
        }
    }
}

/// The pages of the map that tell of these heap blocks.
pub fn map_blocks(heap_blocks: Range<u32>) -> Range<u32> {
    if heap_blocks.is_empty() {
        return 0..0;
    }
    heap_blocks.start / BLOCKS_PER_PAGE..(heap_blocks.end - 1) / BLOCKS_PER_PAGE + 1
}

/// Sets the bits of those of the heap blocks that `page`, block `map_block` of the map, covers. A page of
/// zeros is initialised first.
pub fn set_visible(
    page: &mut BlockBytes,
    map_block: BlockNumber,
    heap_blocks: Range<u32>,
    promise: Promise,
) {
    if is_new(page) {
        PageBuilder::init(page, 0);
    }
    let first = map_block.0.saturating_mul(BLOCKS_PER_PAGE);
    let covered =
        heap_blocks.start.max(first)..heap_blocks.end.min(first.saturating_add(BLOCKS_PER_PAGE));
    for block in covered {
        let position = VisibilityPosition::of(BlockNumber(block));
        page[position.byte] |= promise.bits() << position.shift;
    }
}

/// Takes back what is promised of a heap block, on the page of the map that tells of it; true when there was something.
pub fn clear_visible(page: &mut BlockBytes, heap_block: BlockNumber) -> bool {
    let position = VisibilityPosition::of(heap_block);
    let byte = &mut page[position.byte];
    let bits = Promise::AllFrozen.bits() << position.shift;
    let had = *byte & bits != 0;
    *byte &= !bits;
    had
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::BLOCK_SIZE;
    use crate::page::Page;

    #[test]
    fn the_pages_of_some_blocks_are_those_that_tell_of_them() {
        assert_eq!(map_blocks(5..5), 0..0);
        assert_eq!(map_blocks(0..1), 0..1);
        assert_eq!(map_blocks(32_671..32_673), 0..2);
        assert_eq!(map_blocks(32_672..32_673), 1..2);
        assert_eq!(map_blocks(0..u32::MAX), 0..131_458);
    }

    proptest! {
        #[test]
        fn just_the_blocks_named_are_promised(
            start in 0_u32..70_000, length in 0_u32..70_000, frozen: bool, before in 0_u32..70_000,
        ) {
            let blocks = start..start + length;
            let promise = if frozen { Promise::AllFrozen } else { Promise::AllVisible };
            for map_block in map_blocks(blocks.clone()) {
                let mut page = [0; BLOCK_SIZE];
                set_visible(&mut page, BlockNumber(map_block), before..before + 1, Promise::AllVisible);
                set_visible(&mut page, BlockNumber(map_block), blocks.clone(), promise);
                Page::new(&page).check_header().unwrap();
                let first = map_block * BLOCKS_PER_PAGE;
                for block in first..first + BLOCKS_PER_PAGE {
                    let found = VisibilityPosition::of(BlockNumber(block)).bits(&page);
                    let named = blocks.contains(&block);
                    prop_assert_eq!(found.all_visible(), named || block == before);
                    prop_assert_eq!(found.all_frozen(), named && frozen);
                }
            }
        }
    }
}
