//! Building the free-space map: which heap page has room for how much.
//!
//! The map is a tree of three levels of pages. A page holds a binary tree of bytes, whose leaves are its
//! slots and whose other nodes are the higher of the two below. A slot of the lowest level tells of a
//! heap block, one of the others of a page below. What it tells is the free space in 32nds of a
//! page's kB: 255 steps of 32 bytes. Pages lie in the file depth first: root, its first child, and that
//! one's children.
//!
//! Invariants: heap blocks come in order from 0; every page's nodes fit its slots, and every slot the top
//! of the page below; three pages are in memory, whatever the size.
//!
//! Sources: `src/backend/storage/freespace/{freespace,fsmpage}.c`,
//! `src/include/storage/fsm_internals.h`, PostgreSQL 14 to 18.

use crate::ids::{BLOCK_SIZE, BlockBytes, BlockNumber};
use crate::page_builder::PageBuilder;

const LEVELS: usize = 3;
/// Page header, and the hint where to search next.
const NODES_AT: usize = 24 + 4;
/// Nodes above the slots, and slots (`NonLeafNodesPerPage`, `SlotsPerFSMPage`).
const INNER_NODES: usize = BLOCK_SIZE / 2 - 1;
const SLOTS: usize = BLOCK_SIZE - NODES_AT - INNER_NODES;
const _: () = assert!(SLOTS == 4069);

/// Bytes that one step of a category stands for.
const STEP: usize = 32;
/// Free space that fits the largest tuple has the highest category to itself.
const LARGEST_TUPLE: usize = 8160;

/// What the map says for so many free bytes (`PageGetHeapFreeSpace`, which
/// [`PageBuilder::heap_free_space`] tells): a page of that category has `category * 32` bytes at least.
pub fn category(free_bytes: usize) -> u8 {
    if free_bytes >= LARGEST_TUPLE { u8::MAX } else { (free_bytes / STEP).min(254) as u8 }
}

/// Where the map keeps a heap block's category: the block of its fork, and the byte in that.
pub fn position(heap_block: BlockNumber) -> (BlockNumber, usize) {
    let page = heap_block.0 as usize / SLOTS;
    (BlockNumber(place_of(0, page)), NODES_AT + INNER_NODES + heap_block.0 as usize % SLOTS)
}

/// Builds a map from the heap's blocks in order.
#[derive(Debug)]
pub struct FreeSpaceMapBuilder {
    /// The page in hand of each level, lowest first.
    levels: [Level; LEVELS],
}

#[derive(Debug)]
struct Level {
    page: Box<BlockBytes>,
    /// The page's number among those of its level.
    number: usize,
    /// Slots filled.
    slots: usize,
}

impl Default for FreeSpaceMapBuilder {
    fn default() -> Self {
        let level = || Level { page: new_page(), number: 0, slots: 0 };
        Self { levels: [level(), level(), level()] }
    }
}

impl FreeSpaceMapBuilder {
    /// A map of no blocks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next heap block by its category; of a block the old map does not tell of, that is 0. Pages
    /// that are done go to `sink` with their block of the map's fork; the checksum is still to be set.
    ///
    /// # Errors
    /// The sink's.
    pub fn add<E, S>(&mut self, category: u8, sink: &mut S) -> Result<(), E>
    where
        S: FnMut(BlockNumber, &mut BlockBytes) -> Result<(), E>,
    {
        self.add_to_level(0, category, sink)
    }

    fn add_to_level<E, S>(&mut self, level: usize, category: u8, sink: &mut S) -> Result<(), E>
    where
        S: FnMut(BlockNumber, &mut BlockBytes) -> Result<(), E>,
    {
        if level == LEVELS {
            // Nothing is above the root.
            return Ok(());
        }
        if self.levels[level].slots == SLOTS {
            assert!(level + 1 < LEVELS, "the root of a free-space map has room for every block");
            self.finish_page(level, sink)?;
        }
        let page = &mut self.levels[level];
        page.page[NODES_AT + INNER_NODES + page.slots] = category;
        page.slots += 1;
        Ok(())
    }

    fn finish_page<E, S>(&mut self, level: usize, sink: &mut S) -> Result<(), E>
    where
        S: FnMut(BlockNumber, &mut BlockBytes) -> Result<(), E>,
    {
        let page = &mut self.levels[level];
        let top = fill_inner_nodes(&mut page.page);
        sink(BlockNumber(place_of(level, page.number)), &mut page.page)?;
        page.page = new_page();
        page.number += 1;
        page.slots = 0;
        self.add_to_level(level + 1, top, sink)
    }

    /// Hands out the pages in hand, the root last. A heap without blocks has a map of no use, but a sound one.
    ///
    /// # Errors
    /// The sink's.
    pub fn finish<E, S>(mut self, sink: &mut S) -> Result<(), E>
    where
        S: FnMut(BlockNumber, &mut BlockBytes) -> Result<(), E>,
    {
        (0..LEVELS).try_for_each(|level| self.finish_page(level, sink))
    }
}

fn new_page() -> Box<BlockBytes> {
    let mut page = Box::new([0; BLOCK_SIZE]);
    PageBuilder::init(&mut page, 0);
    page
}

/// Makes each inner node the higher of those below it; the topmost is returned.
fn fill_inner_nodes(page: &mut BlockBytes) -> u8 {
    let nodes = &mut page[NODES_AT..];
    for node in (0..INNER_NODES).rev() {
        let below = |n: usize| nodes.get(n).copied().unwrap_or(0);
        nodes[node] = below(2 * node + 1).max(below(2 * node + 2));
    }
    nodes[0]
}

/// The block of the fork that page `number` of a level lies at.
fn place_of(level: usize, number: usize) -> u32 {
    let first_leaf = number * SLOTS.pow(level as u32);
    // All pages up to that leaf, on each level, less those below the page.
    let pages = (first_leaf + 1) + (first_leaf / SLOTS + 1) + (first_leaf / SLOTS / SLOTS + 1);
    (pages - level - 1) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;
    use crate::page::Page;

    fn built(categories: impl IntoIterator<Item = u8>) -> HashMap<u32, BlockBytes> {
        let mut pages = HashMap::new();
        let mut sink = |block: BlockNumber, page: &mut BlockBytes| -> Result<(), Infallible> {
            Page::new(page).check_header().unwrap();
            assert!(pages.insert(block.0, *page).is_none());
            Ok(())
        };
        let mut builder = FreeSpaceMapBuilder::new();
        for category in categories {
            builder.add(category, &mut sink).unwrap();
        }
        builder.finish(&mut sink).unwrap();
        pages
    }

    #[test]
    fn categories_are_steps_of_32_bytes_and_the_last_fits_every_tuple() {
        let categories = [0, 31, 32, 8128, 8159, 8160, 8164].map(category);
        assert_eq!(categories, [0, 0, 1, 254, 254, 255, 255]);
    }

    #[test]
    fn pages_lie_depth_first() {
        assert_eq!([place_of(2, 0), place_of(1, 0), place_of(0, 0), place_of(0, 1)], [0, 1, 2, 3]);
        assert_eq!(place_of(0, 4068), 4070);
        assert_eq!([place_of(1, 1), place_of(0, 4069)], [4071, 4072]);
    }

    #[test]
    fn a_heap_without_blocks_has_three_empty_pages() {
        let pages = built([]);
        assert_eq!(pages.len(), 3);
        assert!(pages.values().all(|page| page[NODES_AT..].iter().all(|node| *node == 0)));
    }

    #[test]
    fn a_second_page_of_the_middle_level_follows_what_is_below_the_first() {
        let count = SLOTS * SLOTS + 1;
        let pages = built((0..count).map(|block| if block == count - 1 { 200 } else { 3 }));
        assert_eq!(pages.len(), 4069 + 1 + 2 + 1);
        assert_eq!(pages[&0][NODES_AT], 200);
        assert_eq!(pages[&1][NODES_AT], 3);
        assert_eq!(pages[&4071][NODES_AT], 200);
        assert_eq!(position(BlockNumber(count as u32 - 1)).0, BlockNumber(4072));
    }

    proptest! {
        #[test]
        fn the_way_down_leads_to_the_page_with_most_room(
            categories in prop::collection::vec(any::<u8>(), 1..9000),
        ) {
            let pages = built(categories.iter().copied());
            for (block, category) in (0..).zip(&categories) {
                let (page, byte) = position(BlockNumber(block));
                prop_assert_eq!(pages[&page.0][byte], *category);
            }
            let highest = *categories.iter().max().unwrap();
            prop_assert_eq!(pages[&0][NODES_AT], highest);
            let (mut level, mut number) = (LEVELS - 1, 0);
            loop {
                let nodes = &pages[&place_of(level, number)][NODES_AT..];
                prop_assert_eq!(nodes[0], highest);
                let mut node = 0;
                while node < INNER_NODES {
                    node = if nodes[2 * node + 1] == highest { 2 * node + 1 } else { 2 * node + 2 };
                }
                number = number * SLOTS + node - INNER_NODES;
                if level == 0 {
                    break;
                }
                level -= 1;
            }
            prop_assert_eq!(categories[number], highest);
        }
    }
}
