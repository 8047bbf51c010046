//! Tests of what records of tables change and no comparison with a server's pages can see, since it is left out there: who
//! locks a row, and tokens of insertions that may be taken back. And of what only newer servers write.

use pagemill_format::wal::ResourceManager;
use pagemill_format::{BLOCK_SIZE, BlockBytes};

use crate::index_tests::{Block, TestRecord};
use crate::page_items::{Numbering, PageItems};

const TUPLE_BYTES: usize = 32;
const TUPLE: usize = BLOCK_SIZE - TUPLE_BYTES;

/// A page of a table with one row, and the bytes of its `ctid`.
fn page_with_row(ctid: [u8; 6]) -> BlockBytes {
    let mut page = [0; BLOCK_SIZE];
    let mut tuple = [0; TUPLE_BYTES];
    tuple[12..18].copy_from_slice(&ctid);
    tuple[22] = 24;
    PageItems::init(&mut page, 0).add(&tuple, 1, Numbering::Heap).unwrap();
    page
}

#[test]
fn an_insertion_that_is_confirmed_points_to_itself() {
    let mut page = page_with_row([0, 0, 9, 0, 0xFE, 0xFF]);
    let block = Block { number: 7, ..Block::default() };
    TestRecord::new(ResourceManager::HEAP, 0x50, &[1, 0], vec![block]).redo(&mut page, 0).unwrap();
    assert_eq!(page[TUPLE + 12..TUPLE + 18], [0, 0, 7, 0, 1, 0]);
}

#[test]
fn the_newer_version_of_a_locked_row_says_who_locks_it_and_how() {
    let mut page = page_with_row([0, 0, 7, 0, 1, 0]);
    // A share lock on the key: XMAX_LOCK_ONLY and XMAX_KEYSHR_LOCK.
    let main = [0x21, 0x03, 0, 0, 1, 0, 0x02 | 0x08, 0];
    let block = Block { number: 7, ..Block::default() };
    TestRecord::new(ResourceManager::HEAP2, 0x60, &main, vec![block]).redo(&mut page, 0).unwrap();
    assert_eq!(page[TUPLE + 4..TUPLE + 8], [0x21, 0x03, 0, 0]);
    assert_eq!(page[TUPLE + 20..TUPLE + 22], [0x80 | 0x10, 0]);
}

#[test]
fn a_lock_leaves_a_page_all_visible_that_is_not_all_frozen_any_more() {
    let blocks = || {
        let heap = Block { number: 3, ..Block::default() };
        vec![heap, Block { id: 1, is_map: true, ..Block::default() }]
    };
    let main = [0x21, 0x03, 0, 0, 1, 0, 0x02 | 0x04, 1];
    for (kind, left) in [(0x60, 1), (0x10, 0)] {
        let mut map = [0; BLOCK_SIZE];
        PageItems::init(&mut map, 0);
        map[24] = 0xFF;
        TestRecord::new(ResourceManager::HEAP, kind, &main, blocks()).redo(&mut map, 1).unwrap();
        assert_eq!(map[24], left << 6 | 0x3F, "kind {kind:02X}");
    }
}
