//! The leaf walk over trees made here, sound and damaged.
//!
//! A made tree has its pages in any order in the file, pages about to be deleted, pages split
//! without their parent knowing, and posting lists; what the walk gives is compared with the list of
//! entries it was made from.

use std::collections::HashSet;

use pagemill_format::{BLOCK_SIZE, Fork, Oid, Tid};
use proptest::prelude::*;

use super::*;
use crate::error::Damage;
use crate::refusal::Refusal;

const SPECIAL: usize = BLOCK_SIZE - 16;
const LEAF: u16 = 1;
const META: u16 = 8;
const HALF_DEAD: u16 = 16;
const INCOMPLETE_SPLIT: u16 = 128;

struct SyntheticTree {
    pages: Vec<BlockBytes>,
    expected: HashSet<BlockNumber>,
}

impl TreePages for SyntheticTree {
    fn page(&mut self, block: BlockNumber) -> Result<&BlockBytes> {
        self.pages
            .get(block.0 as usize)
            .ok_or_else(|| Error::refused(Refusal::NoFiles(Oid(block.0))))
    }

    fn holds(&self, block: BlockNumber) -> bool {
        self.expected.contains(&block)
    }

    fn will_want(&mut self, blocks: &[BlockNumber]) {
        self.expected.extend(blocks);
    }

    fn blocks(&self) -> u32 {
        self.pages.len() as u32
    }

    fn damage(&self, block: BlockNumber, what: String) -> Error {
        Damage::in_block("made", Fork::Main, block, what).into()
    }
}

/// The entries of one leaf: each a list of heap blocks, several of them being a posting list.
#[derive(Debug, Clone)]
struct SyntheticLeaf {
    entries: Vec<Vec<u32>>,
    half_dead: bool,
    /// No downlink leads here, as after a split that was not finished.
    unknown_above: bool,
}

fn tid_bytes(block: u32, line_pointer: u16) -> [u8; 6] {
    let mut bytes = [0; 6];
    bytes[..2].copy_from_slice(&((block >> 16) as u16).to_le_bytes());
    bytes[2..4].copy_from_slice(&(block as u16).to_le_bytes());
    bytes[4..].copy_from_slice(&line_pointer.to_le_bytes());
    bytes
}

fn tuple(tid: [u8; 6], flags: u16, body: &[u8]) -> Vec<u8> {
    let size = (8 + body.len()).next_multiple_of(8);
    let mut bytes = tid.to_vec();
    bytes.extend(((size as u16) | flags).to_le_bytes());
    bytes.extend(body);
    bytes.resize(size, 0);
    bytes
}

fn entry(blocks: &[u32]) -> Vec<u8> {
    let [only] = blocks else {
        let mut body = vec![0; 8];
        body.extend(blocks.iter().flat_map(|block| tid_bytes(*block, 1)));
        return tuple(tid_bytes(16, 0x2000 | blocks.len() as u16), 0x2000, &body);
    };
    tuple(tid_bytes(*only, 1), 0, &[0; 8])
}

fn page(items: &[Vec<u8>], links: [u32; 2], level: u32, flags: u16) -> BlockBytes {
    let mut page = [0; BLOCK_SIZE];
    let mut upper = SPECIAL;
    let high_key = (links[1] != 0).then(|| tuple(tid_bytes(0, 1), 0x2000, &[0; 8]));
    let items: Vec<&Vec<u8>> = high_key.iter().chain(items).collect();
    for (n, item) in items.iter().enumerate() {
        upper -= item.len();
        page[upper..upper + item.len()].copy_from_slice(item);
        let pointer = upper as u32 | 1 << 15 | (item.len() as u32) << 17;
        page[24 + n * 4..28 + n * 4].copy_from_slice(&pointer.to_le_bytes());
    }
    let words = [24 + items.len() * 4, upper, SPECIAL];
    for (n, word) in words.into_iter().enumerate() {
        page[12 + n * 2..14 + n * 2].copy_from_slice(&(word as u16).to_le_bytes());
    }
    for (n, word) in [links[0], links[1], level, u32::from(flags)].into_iter().enumerate() {
        page[SPECIAL + n * 4..SPECIAL + 4 + n * 4].copy_from_slice(&word.to_le_bytes());
    }
    page
}

fn meta(root: u32, level: u32) -> BlockBytes {
    let mut page = page(&[], [0, 0], 0, META);
    for (n, word) in [0x0005_3162, 4, root, level, root, level].into_iter().enumerate() {
        page[24 + n * 4..28 + n * 4].copy_from_slice(&u32::to_le_bytes(word));
    }
    page
}

/// Lays a level's pages out, linked to each other; gives back the downlinks to them.
fn level(
    pages: &mut [BlockBytes],
    blocks: &[u32],
    level: u32,
    contents: impl Fn(usize) -> (Vec<Vec<u8>>, u16),
) {
    for (n, block) in blocks.iter().enumerate() {
        let link = |n: Option<usize>| n.and_then(|n| blocks.get(n)).copied().unwrap_or(0);
        let (items, flags) = contents(n);
        let links = [link(n.checked_sub(1)), link(Some(n + 1))];
        pages[*block as usize] = page(&items, links, level, flags);
    }
}

impl SyntheticTree {
    /// Two levels above the leaves where there are many of them, or one, or none. `order` says
    /// where in the file the pages are.
    fn new(leaves: &[SyntheticLeaf], fanout: usize, order: &[prop::sample::Index]) -> Self {
        let known: Vec<usize> = (0..leaves.len())
            .filter(|n| *n == 0 || !(leaves[*n].unknown_above || leaves[*n].half_dead))
            .collect();
        let parents = known.len().div_ceil(fanout);
        let total = 1 + leaves.len() + parents + 1;
        let mut free: Vec<u32> = (1..total as u32).collect();
        let mut picks = order.iter().cycle();
        let mut take = |count: usize| -> Vec<u32> {
            let mut one = || match picks.next() {
                Some(pick) => free.swap_remove(pick.index(free.len())),
                None => free.remove(0),
            };
            (0..count).map(|_| one()).collect()
        };
        let (leaf_blocks, parent_blocks, root) = (take(leaves.len()), take(parents), take(1)[0]);
        let mut pages = vec![[0; BLOCK_SIZE]; total];
        level(&mut pages, &leaf_blocks, 0, |n| {
            let leaf = &leaves[n];
            let split = leaves.get(n + 1).is_some_and(|next| next.unknown_above);
            let flags = LEAF
                | if leaf.half_dead { HALF_DEAD } else { 0 }
                | if split { INCOMPLETE_SPLIT } else { 0 };
            let entries = if leaf.half_dead { &[][..] } else { &leaf.entries };
            (entries.iter().map(|blocks| entry(blocks)).collect(), flags)
        });
        let downlink = |block: &u32| tuple(tid_bytes(*block, 0), 0x2000, &[]);
        level(&mut pages, &parent_blocks, 1, |n| {
            let below = known.iter().skip(n * fanout).take(fanout);
            (below.map(|leaf| downlink(&leaf_blocks[*leaf])).collect(), 0)
        });
        level(&mut pages, &[root], 2, |_| (parent_blocks.iter().map(downlink).collect(), 2));
        pages[0] = meta(root, 2);
        Self { pages, expected: HashSet::new() }
    }

    fn walk(&mut self, direction: Direction) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        let mut walk = LeafWalk::start(self, direction, true)?;
        while let Some((_, page)) = walk.next(self)? {
            leaf_entries(&page, direction, |_, tuple| {
                let tids = tuple?.heap_tids();
                found.extend(tids.map(|tid: Tid| tid.block.0));
                Ok::<(), Error>(())
            })?;
        }
        Ok(found)
    }
}

fn in_order(leaves: &[SyntheticLeaf], direction: Direction) -> Vec<u32> {
    let in_use = leaves.iter().filter(|leaf| !leaf.half_dead);
    let mut entries: Vec<&Vec<u32>> = in_use.flat_map(|leaf| &leaf.entries).collect();
    if direction == Direction::Backward {
        entries.reverse();
    }
    entries.into_iter().flatten().copied().collect()
}

fn some_leaves() -> impl Strategy<Value = Vec<SyntheticLeaf>> {
    let entries = prop::collection::vec(prop::collection::vec(any::<u32>(), 1..4), 0..5);
    let leaf = (entries, 0u8..8, 0u8..8).prop_map(|(entries, dead, unknown)| SyntheticLeaf {
        entries,
        half_dead: dead == 0,
        unknown_above: unknown == 0,
    });
    prop::collection::vec(leaf, 1..40).prop_map(|mut leaves| {
        // The first leaf has a downlink always, and the last page of a level stays.
        leaves[0].unknown_above = false;
        leaves[0].half_dead = false;
        if let Some(last) = leaves.last_mut() {
            last.half_dead = false;
        }
        leaves
    })
}

fn plain(count: u32) -> Vec<SyntheticLeaf> {
    (0..count)
        .map(|n| SyntheticLeaf { entries: vec![vec![n]], half_dead: false, unknown_above: false })
        .collect()
}

fn fails(tree: &mut SyntheticTree, direction: Direction, parts: &[&str]) {
    let error = tree.walk(direction).unwrap_err().to_string();
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn an_index_that_never_had_an_entry_has_no_leaves() {
    let mut tree = SyntheticTree { pages: vec![meta(0, 0)], expected: HashSet::new() };
    assert!(tree.walk(Direction::Forward).unwrap().is_empty());
    assert!(tree.walk(Direction::Backward).unwrap().is_empty());
}

#[test]
fn a_root_that_is_a_leaf_is_the_whole_index() {
    let root = page(&[entry(&[5]), entry(&[6, 7])], [0, 0], 0, LEAF | 2);
    let mut tree = SyntheticTree { pages: vec![meta(1, 0), root], expected: HashSet::new() };
    assert_eq!(tree.walk(Direction::Forward).unwrap(), [5, 6, 7]);
    assert_eq!(tree.walk(Direction::Backward).unwrap(), [6, 7, 5]);
}

#[test]
fn leaves_are_asked_for_before_they_are_needed_and_each_once() {
    let mut tree = SyntheticTree::new(&plain(30), 7, &[]);
    tree.walk(Direction::Forward).unwrap();
    assert!((1..=30).all(|block| tree.expected.contains(&BlockNumber(block))));
}

#[test]
fn a_circle_of_leaves_ends_the_walk() {
    let mut tree = SyntheticTree::new(&plain(5), 7, &[]);
    // The last leaf, block 5, goes on to the second, and that one agrees.
    tree.pages[5][SPECIAL + 4] = 2;
    tree.pages[2][SPECIAL] = 5;
    fails(&mut tree, Direction::Forward, &["block 2", "left link here to block 5"]);
    tree.pages[5][SPECIAL + 4] = 1;
    tree.pages[1][SPECIAL] = 5;
    fails(&mut tree, Direction::Forward, &["block"]);
    fails(&mut tree, Direction::Backward, &["circle"]);
}

#[test]
fn damaged_links_and_levels_are_told_with_their_block() {
    let sound = || SyntheticTree::new(&plain(5), 7, &[]);
    let mut tree = sound();
    tree.pages[3][SPECIAL + 4] = 200;
    fails(&mut tree, Direction::Forward, &["block 200", "the index has 8"]);
    let mut tree = sound();
    tree.pages[3][SPECIAL + 4] = 6;
    fails(&mut tree, Direction::Forward, &["block 6", "level 1"]);
    let mut tree = sound();
    tree.pages[3][SPECIAL + 4] = 5;
    fails(&mut tree, Direction::Forward, &["block 5", "right link of block 3", "block 4"]);
    fails(&mut tree, Direction::Backward, &["block 3", "left link of block 4", "block 5"]);
    let mut tree = sound();
    tree.pages[6][SPECIAL + 8] = 2;
    fails(&mut tree, Direction::Forward, &["block 6", "level 2", "level 1"]);
    let mut tree = sound();
    tree.pages[1][SPECIAL] = 3;
    fails(&mut tree, Direction::Forward, &["block 3", "left of block 1"]);
}

proptest! {
    #[test]
    fn every_entry_comes_once_and_in_order_both_ways(
        leaves in some_leaves(), fanout in 1usize..9,
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..50),
    ) {
        for direction in [Direction::Forward, Direction::Backward] {
            let mut tree = SyntheticTree::new(&leaves, fanout, &order);
            prop_assert_eq!(tree.walk(direction).unwrap(), in_order(&leaves, direction));
        }
    }

    #[test]
    fn damaged_trees_end_without_panic_and_without_more_than_they_hold(
        leaves in some_leaves(), fanout in 1usize..9,
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), 0usize..40, any::<u8>(), any::<bool>()), 1..6,
        ),
    ) {
        let mut tree = SyntheticTree::new(&leaves, fanout, &[]);
        for (block, at, byte, in_front) in changes {
            let block = block.index(tree.pages.len());
            let at = if in_front { at } else { BLOCK_SIZE - 16 + at % 16 };
            // Small numbers lead to other pages of the tree.
            tree.pages[block][at] = if byte < 128 { byte % 16 } else { byte };
        }
        for direction in [Direction::Forward, Direction::Backward] {
            tree.expected.clear();
            let _ = tree.walk(direction);
        }
    }
}
