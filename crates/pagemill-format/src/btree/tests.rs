//! Pages of a PostgreSQL 18 cluster against what `pageinspect` says of them, and damaged ones.
//!
//! Damaged pages are built here or made of those; none may do more than fail to parse.

use proptest::prelude::*;

use super::*;
use crate::ids::Tid;

/// The used parts of a page, put where they were.
fn page(start: &[u8], end: &[u8]) -> BlockBytes {
    let mut page = [0; BLOCK_SIZE];
    page[..start.len()].copy_from_slice(start);
    page[BLOCK_SIZE - end.len()..].copy_from_slice(end);
    page
}

macro_rules! fixture {
    ($name:literal) => {
        page(
            include_bytes!(concat!("../../fixtures/btree/", $name, "-start.bin")),
            include_bytes!(concat!("../../fixtures/btree/", $name, "-end.bin")),
        )
    };
}

fn tid(block: u32, line_pointer: u16) -> Tid {
    Tid { block: BlockNumber(block), line_pointer }
}

fn tuples(page: BtreePage<'_>) -> Vec<IndexTuple<'_>> {
    page.items().map(Result::unwrap).collect()
}

/// A tuple of `t_tid`, flags in `t_info`, and a body.
fn tuple(tid: Tid, flags: u16, body: &[u8]) -> Vec<u8> {
    let block = tid.block.0;
    let halves = [(block >> 16) as u16, block as u16, tid.line_pointer];
    let size = (8 + body.len()) as u16;
    let mut bytes: Vec<u8> =
        halves.into_iter().chain([size | flags]).flat_map(u16::to_le_bytes).collect();
    bytes.extend(body);
    bytes
}

/// A page of these tuples; `special` is previous, next, level, flags.
fn built(tuples: &[Vec<u8>], special: [u32; 4]) -> BlockBytes {
    let mut page = [0; BLOCK_SIZE];
    let mut upper = SPECIAL_OFFSET;
    for (n, tuple) in tuples.iter().enumerate() {
        upper -= tuple.len();
        page[upper..upper + tuple.len()].copy_from_slice(tuple);
        let pointer = upper as u32 | 1 << 15 | (tuple.len() as u32) << 17;
        page[24 + n * 4..28 + n * 4].copy_from_slice(&pointer.to_le_bytes());
    }
    for (n, value) in [24 + tuples.len() * 4, upper, SPECIAL_OFFSET].into_iter().enumerate() {
        page[12 + n * 2..14 + n * 2].copy_from_slice(&(value as u16).to_le_bytes());
    }
    page[SPECIAL_OFFSET..].copy_from_slice(&special.map(u32::to_le_bytes).concat());
    page
}

const LEAF: u32 = 1;

#[test]
fn the_meta_page_names_the_root() {
    let meta = BtreeMeta::parse(&fixture!("meta-18")).unwrap();
    let expected = BtreeMeta {
        version: 4,
        root: Some(BlockNumber(1)),
        level: 0,
        fast_root: Some(BlockNumber(1)),
        fast_level: 0,
        all_equal_image: true,
    };
    assert_eq!(meta, expected);
    assert!(meta.has_heap_key());
}

#[test]
fn a_toast_index_has_value_id_and_chunk_number_as_plain_words() {
    let bytes = fixture!("toast-leaf-18");
    let page = BtreePage::parse(&bytes).unwrap();
    assert!(page.is_leaf() && page.flags().is_root() && !page.has_high_key());
    assert_eq!((page.previous(), page.next(), page.data_item_count()), (None, None, 6));
    let fourth = tuples(page)[3];
    assert_eq!(fourth.key(), [0x4B, 0x40, 0, 0, 1, 0, 0, 0]);
    assert_eq!(fourth.heap_tid(), Some(tid(0, 4)));
    assert!(fourth.null_bitmap().is_none() && fourth.key_columns().is_none());
}

#[test]
fn equal_keys_share_a_posting_list_and_nulls_have_a_bitmap() {
    let bytes = fixture!("posting-leaf-18");
    let tuples = tuples(BtreePage::parse(&bytes).unwrap());
    let tids = |n: usize| tuples[n].heap_tids().collect::<Vec<_>>();
    assert_eq!(tids(0), [tid(0, 1), tid(0, 2), tid(0, 3)]);
    assert_eq!(tids(1), [tid(0, 4)]);
    assert_eq!(tids(2), [tid(0, 5), tid(0, 6)]);
    assert_eq!(tuples[0].key(), [5, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(tuples[2].key(), b"");
    assert_eq!(tuples[2].null_bitmap().unwrap()[0] & 1, 0);
    assert!(tuples[0].is_posting() && !tuples[1].is_posting() && !tuples[0].is_marked_pivot());
}

#[test]
fn a_root_leads_to_the_blocks_below_and_starts_at_minus_infinity() {
    let bytes = fixture!("root-18");
    let page = BtreePage::parse(&bytes).unwrap();
    assert_eq!((page.level(), page.is_leaf(), page.flags().is_root()), (1, false, true));
    let tuples = tuples(page);
    let downlinks: Vec<_> = tuples.iter().map(|tuple| tuple.downlink().0).collect();
    assert_eq!(downlinks, [1, 2, 4, 5]);
    let columns: Vec<_> = tuples.iter().map(|tuple| tuple.key_columns().unwrap()).collect();
    assert_eq!(columns, [0, 2, 2, 2]);
    assert_eq!((tuples[0].key(), tuples[1].key().len()), (&b""[..], 312));
    assert!(tuples.iter().all(|tuple| tuple.is_marked_pivot() && tuple.heap_tid().is_none()));
}

#[test]
fn a_page_with_a_right_sibling_has_a_high_key_that_is_no_entry() {
    let high_key = tuple(tid(0, 0x1001), 0x2000, &[9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 7, 0]);
    let entry = tuple(tid(0x0001_0002, 3), 0, &[5, 0, 0, 0, 0, 0, 0, 0]);
    let bytes = built(&[high_key, entry], [3, 4, 0, LEAF]);
    let page = BtreePage::parse(&bytes).unwrap();
    assert_eq!((page.previous(), page.next()), (Some(BlockNumber(3)), Some(BlockNumber(4))));
    assert_eq!((page.item_count(), page.data_item_count(), page.first_data_item()), (2, 1, 2));
    let tuples = tuples(page);
    assert_eq!(tuples[0].heap_tids().collect::<Vec<_>>(), [tid(0x0001_0002, 3)]);
    let high_key = page.high_key().unwrap().unwrap();
    assert_eq!(high_key.key_columns(), Some(1));
    assert_eq!(high_key.pivot_heap_tid(), Some(tid(1, 7)));
    assert_eq!(high_key.key(), [9, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_deleted_page_has_a_next_one_and_no_items() {
    let mut bytes = built(&[], [3, 4, 0, LEAF | 0x104]);
    bytes[12..14].copy_from_slice(&32_u16.to_le_bytes());
    let page = BtreePage::parse(&bytes).unwrap();
    assert!(page.flags().is_ignored() && page.flags().has_full_xid());
    assert_eq!((page.item_count(), page.data_item_count()), (0, 0));
    assert_eq!(page.next(), Some(BlockNumber(4)));
    assert!(page.high_key().unwrap().is_none());
}

#[test]
fn a_dead_item_keeps_its_tuple() {
    let mut bytes = built(&[tuple(tid(1, 1), 0, &[0; 8])], [0, 0, 0, LEAF]);
    bytes[25] |= 1 << 7;
    bytes[26] |= 1;
    assert!(tuples(BtreePage::parse(&bytes).unwrap())[0].is_dead());
}

fn refusal(page: &BlockBytes) -> String {
    BtreePage::parse(page).and_then(|page| page.item(1).map(|_| ())).unwrap_err().to_string()
}

#[test]
fn damaged_pages_are_named() {
    assert!(refusal(&[0; BLOCK_SIZE]).contains("special space at 0, where a B-tree's is at 8176"));
    assert!(refusal(&built(&[], [0, 0, 1, LEAF])).contains("the flags say a leaf, on level 1"));
    assert!(refusal(&built(&[], [0, 0, 0, 8])).contains("the meta page where a tree page"));
    assert!(refusal(&built(&[], [0, 0, 0, LEAF])).contains("item 1 of 0"));
    let mut bytes = built(&[], [0, 0, 0, LEAF]);
    bytes[12] = 23;
    assert!(refusal(&bytes).contains("free space from 23 to 8176"));
}

#[test]
fn damaged_items_are_named() {
    let refused =
        |tid, flags, body: &[u8]| refusal(&built(&[tuple(tid, flags, body)], [0, 0, 0, LEAF]));
    let posting = refused(tid(16, 0x2003), 0x2000, &[0; 16]);
    assert!(posting.contains("a posting list of 3 TIDs at 16 in a tuple of 24 bytes"), "{posting}");
    assert!(refused(tid(4, 0x2001), 0x2000, &[0; 8]).contains("no room for a key"));
    assert!(refused(tid(1, 1), 0x8000, &[0; 4]).contains("no room for a key in 12 bytes"));
    assert!(refused(tid(1, 0x1001), 0x2000, &[0; 4]).contains("no room for a key"));
    assert!(refused(tid(1, 1), 1, &[0; 8]).contains("size 17 under a line pointer of 16"));
    let mut bytes = built(&[tuple(tid(1, 1), 0, &[0; 8])], [0, 0, 0, LEAF]);
    bytes[24..28].copy_from_slice(&[0; 4]);
    assert!(refusal(&bytes).contains("line pointer of state 0 to 0 bytes at 0"));
}

#[test]
fn a_meta_page_of_something_else_is_refused() {
    let refusal = |page: &BlockBytes| BtreeMeta::parse(page).unwrap_err().to_string();
    assert!(refusal(&built(&[], [0, 0, 0, LEAF])).contains("are not those of a meta page"));
    let mut meta = fixture!("meta-18");
    meta[28] = 5;
    assert!(refusal(&meta).contains("B-tree version 5; 2, 3 and 4 are read"));
    meta[24] = 0;
    assert!(refusal(&meta).contains("magic number 00053100"));
}

/// Asks everything of a page.
fn read_all(bytes: &BlockBytes) {
    let _ = BtreeMeta::parse(bytes);
    let Ok(page) = BtreePage::parse(bytes) else { return };
    let _ = page.high_key();
    for tuple in page.items().flatten() {
        let _ = (tuple.key(), tuple.null_bitmap(), tuple.key_columns(), tuple.pivot_heap_tid());
        tuple.heap_tids().for_each(drop);
    }
}

proptest! {
    #[test]
    fn arbitrary_changes_to_a_page_never_panic(
        changes in prop::collection::vec((0..1200_usize, any::<u8>()), 1..40),
        which in 0..3_usize,
    ) {
        let mut bytes =
            [fixture!("toast-leaf-18"), fixture!("posting-leaf-18"), fixture!("root-18")][which];
        for (offset, byte) in changes {
            // The first bytes are header and line pointers, the others tuples and special space.
            let offset = if offset < 60 { offset } else { BLOCK_SIZE - 1200 + offset };
            bytes[offset] = byte;
        }
        read_all(&bytes);
    }

    #[test]
    fn arbitrary_line_pointers_never_panic(words in prop::collection::vec(any::<u32>(), 0..40)) {
        let mut bytes = built(&vec![Vec::new(); words.len()], [0, 1, 0, LEAF]);
        for (n, word) in words.iter().enumerate() {
            bytes[24 + n * 4..28 + n * 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[14..16].copy_from_slice(&400_u16.to_le_bytes());
        read_all(&bytes);
    }
}
