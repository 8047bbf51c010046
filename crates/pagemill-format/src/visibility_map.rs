//! The visibility map: two bits for each heap block, "every tuple visible to all" and "every
//! tuple frozen".
//!
//! A page of the map is a page header and then nothing but bits, the first heap block in the
//! lowest two bits of the first byte. Blocks that the map is too short for have both bits clear.
//! A set bit may be trusted only where the map's page may be: after a clean shutdown, or with the
//! WAL replayed.
//!
//! Sources: `src/backend/access/heap/visibilitymap.c`, `src/include/access/visibilitymapdefs.h`,
//! PostgreSQL 14 to 18.

use crate::ids::{BLOCK_SIZE, BlockBytes, BlockNumber};

/// Bytes of the page header before the bits.
const HEADER_BYTES: usize = 24;
const MAP_BYTES: usize = BLOCK_SIZE - HEADER_BYTES;
const BITS_PER_BLOCK: u32 = 2;
const BLOCKS_PER_BYTE: u32 = 8 / BITS_PER_BLOCK;
/// Heap blocks that one page of the map covers.
pub const BLOCKS_PER_PAGE: u32 = MAP_BYTES as u32 * BLOCKS_PER_BYTE;
const _: () = assert!(BLOCKS_PER_PAGE == 32_672);

const ALL_VISIBLE: u8 = 1;
const ALL_FROZEN: u8 = 2;

/// Where the bits of a heap block are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VisibilityPosition {
    /// The block of the map's fork.
    pub block: BlockNumber,
    /// The byte in that page, header included: always less than the block size.
    pub byte: usize,
    /// The lower of the two bits in that byte: 0, 2, 4 or 6.
    pub shift: u32,
}

impl VisibilityPosition {
    /// The place of `heap_block`'s bits.
    pub fn of(heap_block: BlockNumber) -> Self {
        let in_page = heap_block.0 % BLOCKS_PER_PAGE;
        Self {
            block: BlockNumber(heap_block.0 / BLOCKS_PER_PAGE),
            byte: HEADER_BYTES + (in_page / BLOCKS_PER_BYTE) as usize,
            shift: in_page % BLOCKS_PER_BYTE * BITS_PER_BLOCK,
        }
    }

    /// The two bits in `page`, which is the map's block [`Self::block`].
    pub fn bits(self, page: &BlockBytes) -> Visibility {
        Visibility(page.get(self.byte).map_or(0, |byte| byte >> self.shift & 3))
    }
}

/// What the map says about one heap block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Visibility(u8);

impl Visibility {
    /// Every tuple of the block is visible to every transaction.
    pub fn all_visible(self) -> bool {
        self.0 & ALL_VISIBLE != 0
    }

    /// Every tuple of the block is frozen.
    pub fn all_frozen(self) -> bool {
        self.0 & ALL_FROZEN != 0
    }
}

/// The bits of the heap blocks that `page`, a block of the map, covers, from its first on.
pub fn page_bits(page: &BlockBytes) -> impl Iterator<Item = Visibility> + '_ {
    page[HEADER_BYTES..]
        .iter()
        .flat_map(|byte| (0..8).step_by(2).map(move |shift| Visibility(byte >> shift & 3)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_start_after_the_page_header() {
        let at = |block, byte, shift| VisibilityPosition { block: BlockNumber(block), byte, shift };
        assert_eq!(VisibilityPosition::of(BlockNumber(0)), at(0, 24, 0));
        assert_eq!(VisibilityPosition::of(BlockNumber(3)), at(0, 24, 6));
        assert_eq!(VisibilityPosition::of(BlockNumber(4)), at(0, 25, 0));
        assert_eq!(VisibilityPosition::of(BlockNumber(32_671)), at(0, 8191, 6));
        assert_eq!(VisibilityPosition::of(BlockNumber(32_672)), at(1, 24, 0));
        assert_eq!(VisibilityPosition::of(BlockNumber(u32::MAX)), at(131_457, 1071, 6));
    }

    #[test]
    fn visible_is_the_lower_bit_and_frozen_the_upper() {
        let mut page = [0; BLOCK_SIZE];
        page[24] = 0b1101_0000;
        let bits = |block| VisibilityPosition::of(BlockNumber(block)).bits(&page);
        assert!(!bits(1).all_visible() && !bits(1).all_frozen());
        assert!(bits(2).all_visible() && !bits(2).all_frozen());
        assert!(bits(3).all_visible() && bits(3).all_frozen());
    }

    #[test]
    fn the_walk_over_a_page_agrees_with_the_single_look_up() {
        let mut page = [0; BLOCK_SIZE];
        for (n, byte) in page.iter_mut().enumerate() {
            *byte = (n * 7) as u8;
        }
        let walked: Vec<_> = page_bits(&page).collect();
        assert_eq!(walked.len(), BLOCKS_PER_PAGE as usize);
        for (block, bits) in walked.into_iter().enumerate() {
            assert_eq!(VisibilityPosition::of(BlockNumber(block as u32)).bits(&page), bits);
        }
    }
}
