//! Tests of what records of tables change and no comparison with a server's pages can see, since it is left out there: who
//! locks a row, and tokens of insertions that may be taken back. And of what only newer servers write.

use pagemill_format::page::LinePointerState;
use pagemill_format::wal::ResourceManager;
use pagemill_format::{BLOCK_SIZE, BlockBytes, PgVersion};

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

/// What a record of pruning and freezing has of tuples, from 17 on: one plan for lines 5 and 6, a redirection from 1 to 2, a
/// dead line pointer 3 and an unused one 4.
fn pruned_and_frozen() -> Vec<u8> {
    let plan = [9, 0, 0, 0, 1, 0x80, 0, 0x0B, 0x02, 0, 2, 0];
    let numbers: [u16; 10] = [1, 1, 2, 1, 3, 1, 4, 5, 6, 0];
    let numbers = numbers[..9].iter().flat_map(|number| number.to_le_bytes());
    [1, 0, 0, 0].into_iter().chain(plan).chain(numbers).collect()
}

#[test]
fn one_record_redirects_kills_frees_and_freezes_and_moves_tuples_only_under_a_lock() {
    const ALL: u8 = 0x10 | 0x20 | 0x40 | 0x80;
    let row = |number: u16| {
        let mut tuple = [0; TUPLE_BYTES];
        tuple[22] = 24;
        tuple[24..26].copy_from_slice(&number.to_le_bytes());
        tuple
    };
    for (flags, horizon, is_moved) in [(0x04, &[][..], true), (0x08, &[7, 0, 0, 0], false)] {
        let mut page = [0; BLOCK_SIZE];
        let mut items = PageItems::init(&mut page, 0);
        for number in 1..=6 {
            items.add(&row(number), number, Numbering::Heap).unwrap();
        }
        let (main, data) = ([&[0, ALL | flags], horizon].concat(), pruned_and_frozen());
        let block = Block { data: &data, ..Block::default() };
        TestRecord::new(ResourceManager::HEAP2, 0x10, &main, vec![block])
            .redo(&mut page, 0)
            .unwrap();
        let items = PageItems::open(&mut page).unwrap();
        let state = |number| items.line_pointer(number).unwrap().state();
        let states: Vec<_> = (1..=6).map(state).collect();
        use LinePointerState::{Dead, Normal, Redirect, Unused};
        assert_eq!(states, [Redirect, Normal, Dead, Unused, Normal, Normal], "{flags:02X}");
        assert_eq!(items.line_pointer(1).unwrap().offset(), 2);
        for (number, is_frozen) in [(2, false), (5, true), (6, true)] {
            let item = items.item(number).unwrap();
            let xmax = if is_frozen { 9 } else { 0 };
            assert_eq!(item[4..8], [xmax, 0, 0, 0], "{number}");
            assert_eq!(item[18..22] == [1, 0x80, 0, 0x0B], is_frozen, "{number}");
            assert_eq!(item[8..12] == [2, 0, 0, 0], is_frozen, "{number}");
            assert_eq!(item[24..26], number.to_le_bytes());
        }
        let kept = if is_moved { 3 } else { 6 };
        assert_eq!(items.upper(), BLOCK_SIZE - kept * TUPLE_BYTES, "{flags:02X}");
    }
}

/// A page of a table with three rows, each with its number in its data.
fn page_with_three() -> BlockBytes {
    let mut page = [0; BLOCK_SIZE];
    let mut items = PageItems::init(&mut page, 0);
    for number in 1..=3u16 {
        let mut tuple = [0; TUPLE_BYTES];
        tuple[22] = 24;
        tuple[24..26].copy_from_slice(&number.to_le_bytes());
        items.add(&tuple, number, Numbering::Heap).unwrap();
    }
    page
}

fn states(page: &mut BlockBytes) -> (Vec<LinePointerState>, usize) {
    let items = PageItems::open(page).unwrap();
    let numbers = 1..=items.count();
    let state = |number| items.line_pointer(number).unwrap().state();
    (numbers.map(state).collect(), items.upper())
}

#[test]
fn a_record_that_only_redirects_gives_space_back_too() {
    let mut page = page_with_three();
    let block = Block { data: &[1, 0, 1, 0, 2, 0], ..Block::default() };
    let main = [0, 0x04 | 0x20];
    TestRecord::new(ResourceManager::HEAP2, 0x10, &main, vec![block]).redo(&mut page, 0).unwrap();
    use LinePointerState::{Normal, Redirect};
    let expected = (vec![Redirect, Normal, Normal], BLOCK_SIZE - 2 * TUPLE_BYTES);
    assert_eq!(states(&mut page), expected);
}

#[test]
fn up_to_16_pruning_kills_and_tidies_up_and_vacuum_cuts_off() {
    use LinePointerState::{Dead, Normal, Unused};
    let redo = |kind: u8, main: &[u8], data: &[u8], page: &mut BlockBytes| {
        let block = Block { data, ..Block::default() };
        let made =
            TestRecord::new(ResourceManager::HEAP2, kind, main, vec![block]).of(PgVersion::V16);
        made.redo(page, 0).unwrap();
    };
    let mut page = page_with_three();
    // None redirected, 2 dead, 1 unused.
    redo(0x10, &[7, 0, 0, 0, 0, 0, 1, 0], &[2, 0, 1, 0], &mut page);
    let expected = (vec![Unused, Dead, Normal], BLOCK_SIZE - TUPLE_BYTES);
    assert_eq!(states(&mut page), expected);
    let mut page = page_with_three();
    redo(0x10, &[7, 0, 0, 0, 0, 0, 1, 0], &[3, 0], &mut page);
    redo(0x20, &[1, 0], &[3, 0], &mut page);
    assert_eq!(states(&mut page), (vec![Normal, Normal], BLOCK_SIZE - 2 * TUPLE_BYTES));
}

#[test]
fn rows_that_are_inserted_frozen_leave_the_page_all_visible() {
    let tuple = [0, 0, 0, 0, 24, 0];
    let data: Vec<u8> = [1, 0].into_iter().chain(tuple[..5].iter().copied()).chain([9]).collect();
    for (flags, is_visible) in [(0x20, true), (0x00, false)] {
        let mut page = page_with_row([0, 0, 7, 0, 1, 0]);
        let block = Block { data: &data, ..Block::default() };
        let main = [flags, 0, 1, 0, 2, 0];
        TestRecord::new(ResourceManager::HEAP2, 0x50, &main, vec![block])
            .redo(&mut page, 0)
            .unwrap();
        assert_eq!(page[10] & 0x04 != 0, is_visible, "{flags:02X}");
    }
}

#[test]
fn a_lock_takes_the_place_of_an_update_that_was_rolled_back_and_of_earlier_lockers() {
    // It leads to another version, whose transaction is among the members of a multixact.
    let mut page = page_with_row([0, 0, 9, 0, 5, 0]);
    page[TUPLE + 18..TUPLE + 22].copy_from_slice(&[1, 0xC0, 0x10, 0x30]);
    // A lock of the whole row: XMAX_LOCK_ONLY and XMAX_EXCL_LOCK, and keys count as updated.
    let main = [0x21, 0x03, 0, 0, 1, 0, 0x02 | 0x04 | 0x10, 0];
    let block = Block { number: 7, ..Block::default() };
    TestRecord::new(ResourceManager::HEAP, 0x60, &main, vec![block]).redo(&mut page, 0).unwrap();
    assert_eq!(page[TUPLE + 4..TUPLE + 8], [0x21, 0x03, 0, 0], "who");
    assert_eq!(page[TUPLE + 12..TUPLE + 18], [0, 0, 7, 0, 1, 0], "it leads nowhere");
    assert_eq!(page[TUPLE + 18..TUPLE + 20], [1, 0xA0], "HOT no more, keys updated");
    assert_eq!(page[TUPLE + 20..TUPLE + 22], [0xC0, 0x20], "how, and nothing of before");
}

#[test]
fn the_new_version_of_a_row_has_the_lockers_that_the_record_gives_it() {
    let mut page = page_with_row([0, 0, 7, 0, 1, 0]);
    // Of the old version: transaction, line pointer, bits, flags; of the new one: lockers and line pointer.
    let main = [0x99, 0, 0, 0, 1, 0, 0, 0, 0x21, 0x03, 0, 0, 2, 0];
    let block = Block { number: 7, data: &[1, 0, 0x90, 0, 24, 0, 5], ..Block::default() };
    TestRecord::new(ResourceManager::HEAP, 0x20, &main, vec![block]).redo(&mut page, 0).unwrap();
    let items = PageItems::open(&mut page).unwrap();
    assert_eq!(items.item(1).unwrap()[4..8], [0x99, 0, 0, 0]);
    assert_eq!(items.item(2).unwrap()[4..8], [0x21, 0x03, 0, 0]);
}

#[test]
fn line_pointers_that_were_vacuumed_are_cut_off_where_no_tuple_may_be_moved() {
    let mut page = page_with_row([0, 0, 7, 0, 1, 0]);
    let tuple = page[TUPLE..].to_vec();
    PageItems::open(&mut page).unwrap().add(&tuple, 2, Numbering::Heap).unwrap();
    let block = Block { data: &[1, 0, 2, 0], ..Block::default() };
    TestRecord::new(ResourceManager::HEAP2, 0x20, &[0, 0x80], vec![block])
        .redo(&mut page, 0)
        .unwrap();
    assert_eq!(PageItems::open(&mut page).unwrap().count(), 1);
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
