//! Entries and pivots built here, read by the reader of B-tree pages.
//! Invariant under test: key, heap TIDs and flags come back as they went in.

use proptest::prelude::*;

use super::*;
use crate::noise::noise;
use crate::tuple::AttributeLayout;
use crate::varlena::Compression;

fn column(len: i16, align: u8, storage: AttributeStorage) -> ColumnLayout {
    let layout = AttributeLayout::new(len, align).unwrap();
    ColumnLayout { layout, storage, compression: Compression::Pglz, dropped: false }
}

fn int() -> ColumnLayout {
    column(4, b'i', AttributeStorage::Plain)
}

fn text() -> ColumnLayout {
    column(-1, b'i', AttributeStorage::Extended)
}

fn tid(block: u32, line_pointer: u16) -> Tid {
    Tid { block: BlockNumber(block), line_pointer }
}

fn formed(columns: &[ColumnLayout], row: &[Option<&[u8]>]) -> Result<Vec<u8>> {
    let mut out = b"before".to_vec();
    let result = IndexForm::new("i", columns).unwrap().form(row, tid(0x1_0002, 3), &mut out);
    assert_eq!(&out[..6], b"before");
    assert!(result.is_ok() || out.len() == 6);
    result.map(|()| out.split_off(6))
}

#[test]
fn an_entry_has_a_bitmap_only_for_nulls() {
    let entry = formed(&[int(), int()], &[Some(&[1; 4]), Some(&[2; 4])]).unwrap();
    assert_eq!(entry, [1, 0, 2, 0, 3, 0, 16, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    let entry = formed(&[int(), text()], &[None, Some(b"ab")]).unwrap();
    let expected =
        [1, 0, 2, 0, 3, 0, 24, 0xC0, 2, 0, 0, 0, 0, 0, 0, 0, 7, b'a', b'b', 0, 0, 0, 0, 0];
    assert_eq!(entry, expected);
}

#[test]
fn a_name_is_kept_up_to_its_first_zero() {
    let mut name = [0; 64];
    name[..3].copy_from_slice(b"abc");
    let entry = formed(&[column(-2, b'c', AttributeStorage::Plain)], &[Some(&name)]).unwrap();
    assert_eq!(&entry[6..], [16, 0x40, b'a', b'b', b'c', 0, 0, 0, 0, 0]);
}

#[test]
fn long_values_are_compressed_and_too_long_ones_refused() {
    let entry = formed(&[text()], &[Some(&[b'x'; 5000])]).unwrap();
    assert!(entry.len() < 200);
    let plain = formed(&[column(-1, b'i', AttributeStorage::External)], &[Some(&[b'x'; 2000])]);
    assert_eq!(plain.unwrap().len(), 8 + 4 + 2000 + 4);
    let error = formed(&[text()], &[Some(&noise(2693))]).unwrap_err();
    let message = "index row size 2712 exceeds btree version 4 maximum 2704 for index \"i\"";
    assert_eq!(error.to_string(), message);
    let error = formed(&[text()], &[Some(&noise(9000))]).unwrap_err();
    assert_eq!(error.to_string(), "index row requires 9016 bytes, maximum size is 8191");
}

#[test]
fn an_index_of_33_columns_is_refused() {
    assert!(IndexForm::new("i", &[int(); 33]).is_err());
}

proptest! {
    #[test]
    fn posting_lists_are_made_and_taken_apart(
        values in prop::collection::vec(prop::option::of(any::<[u8; 4]>()), 1..20),
        word in prop::collection::vec(any::<u8>(), 0..40),
        tids in prop::collection::vec((any::<u32>(), 1_u16..300), 2..50),
    ) {
        let columns: Vec<_> = values.iter().map(|_| int()).chain([text()]).collect();
        let mut row: Vec<Option<&[u8]>> = values.iter().map(|v| v.as_ref().map(|v| &v[..])).collect();
        row.push(Some(&word));
        let base = formed(&columns, &row).unwrap();
        let tids: Vec<_> = tids.into_iter().map(|(block, item)| tid(block, item)).collect();
        let stored: Vec<u8> = tids.iter().flat_map(|tid| tid_bytes(*tid)).collect();
        let mut posting = Vec::new();
        form_posting(&base, &stored, &mut posting);
        let read = IndexTuple::parse(&posting, 0, false).unwrap();
        prop_assert!(read.is_posting());
        prop_assert_eq!(read.heap_tids().collect::<Vec<_>>(), tids.clone());
        prop_assert_eq!(Some(tid_bytes(tids[tids.len() - 1])), last_tid(&posting));
        for heap_tid in tids {
            let mut entry = Vec::new();
            copy_entry(&read, heap_tid, &mut entry);
            prop_assert_eq!(entry_tid(&entry), heap_tid);
            prop_assert!(has_same_image(&entry, &base));
            prop_assert_eq!(IndexTuple::parse(&entry, 0, false).unwrap().heap_tid(), Some(heap_tid));
        }
    }

    #[test]
    fn arbitrary_bytes_are_no_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..60), other in prop::collection::vec(any::<u8>(), 0..60),
        columns in 0_usize..40, key_bytes in 0_usize..100, has_nulls: bool, needs_tid: bool,
    ) {
        let _ = (entry_tid(&bytes), entry_key_end(&bytes), last_tid(&bytes), key_start(&bytes));
        let truncation = Truncation { columns, key_bytes, has_nulls, has_variable_widths: true, needs_tid };
        let formed = form_high_key(&bytes, &other, &truncation, &mut Vec::new());
        prop_assert!(formed.is_err() || key_start(&other) + key_bytes <= other.len());
    }
}

#[test]
fn a_high_key_of_columns_that_an_entry_does_not_have_is_damage() {
    let entry = [0; 24];
    let kept = Truncation {
        columns: 1,
        key_bytes: 16,
        has_nulls: false,
        has_variable_widths: false,
        needs_tid: false,
    };
    let form = |kept| form_high_key(&entry, &entry, &kept, &mut Vec::new());
    assert!(form(kept).is_ok());
    assert!(form(Truncation { key_bytes: 17, ..kept }).is_err());
    assert!(form(Truncation { has_nulls: true, ..kept }).is_err());
}

#[test]
#[should_panic(expected = "whole heap TIDs")]
fn a_posting_list_of_half_a_tid_is_a_mistake() {
    form_posting(&[0; 16], &[0; 9], &mut Vec::new());
}
