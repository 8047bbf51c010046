//! Pages filled by the builder, read back.
//!
//! Whole tables against a server are in `tests/heap_bytes.rs`.

use proptest::prelude::*;

use super::*;
use crate::TransactionId;
use crate::tuple::{AttributeLayout, HeapTuple};
use crate::tuple_data_builder::{AttributeStorage, ColumnLayout};
use crate::varlena::Compression;

fn form() -> TupleForm {
    let column = ColumnLayout {
        layout: AttributeLayout { len: -1, align: 4 },
        storage: AttributeStorage::Extended,
        compression: Compression::Pglz,
        dropped: false,
    };
    TupleForm::new(&[column]).unwrap()
}

fn tid(tuple: &HeapTuple<'_>) -> Tid {
    tuple.ctid()
}

#[test]
fn a_full_buffer_is_told_and_holds_what_was_added() {
    let stamp = TupleStamp::inserted(TransactionId(5), 0);
    let value = [b'x'; 4000];
    let row: &[Option<&[u8]>] = &[Some(&value)];
    let mut heap = HeapBuilder::new(vec![0; 2 * BLOCK_SIZE + 100], 100, false);
    let places: Vec<_> = std::iter::from_fn(|| heap.add(&form(), row, stamp).unwrap())
        .map(|t| t.to_string())
        .collect();
    assert_eq!(places, ["(0,1)", "(0,2)", "(1,1)", "(1,2)"]);
    assert_eq!(heap.finish().1, 2);
}

#[test]
fn a_fill_factor_leaves_room_but_never_a_page_empty() {
    let stamp = TupleStamp::frozen(TransactionId(5), 0);
    let mut heap = HeapBuilder::new(vec![0; 9 * BLOCK_SIZE], 10, true);
    let (small, large) = ([b'x'; 300], [b'x'; 5000]);
    let rows: [&[Option<&[u8]>]; 4] =
        [&[Some(&small)], &[Some(&small)], &[Some(&small)], &[Some(&large)]];
    let places: Vec<_> = rows
        .iter()
        .map(|row| heap.add(&form(), *row, stamp).unwrap().unwrap().to_string())
        .collect();
    assert_eq!(places, ["(0,1)", "(0,2)", "(1,1)", "(2,1)"]);
    let (buffer, pages) = heap.finish();
    assert_eq!(pages, 3);
    assert!(Page::new(buffer.as_chunks().0.first().unwrap()).is_all_visible());
}

proptest! {
    #[test]
    fn every_tuple_is_where_it_was_said_to_be(
        lengths in prop::collection::vec(0_usize..3000, 1..40), first in 0_u32..u32::MAX - 100,
    ) {
        let (form, stamp) = (form(), TupleStamp::inserted(TransactionId(5), 0));
        let mut heap = HeapBuilder::new(vec![0xAA; 40 * BLOCK_SIZE], 100, false);
        let mut places = Vec::new();
        for length in &lengths {
            let value = vec![*length as u8; *length];
            let row: &[Option<&[u8]>] = &[Some(&value)];
            places.push(heap.add(&form, row, stamp).unwrap().unwrap());
        }
        let (mut buffer, pages) = heap.finish();
        let pages = &mut buffer.as_chunks_mut::<BLOCK_SIZE>().0[..pages];
        assign_blocks(pages, BlockNumber(first));
        for (place, length) in places.iter().zip(&lengths) {
            let page = Page::new(&pages[place.block.0 as usize]);
            page.check_header().unwrap();
            let item = page.item(page.line_pointer(place.line_pointer).unwrap()).unwrap();
            let tuple = HeapTuple::parse(item).unwrap();
            let block = BlockNumber(first + place.block.0);
            prop_assert_eq!(tid(&tuple), Tid { block, ..*place });
            prop_assert!(tuple.data().data.ends_with(&vec![*length as u8; *length]));
        }
    }
}
