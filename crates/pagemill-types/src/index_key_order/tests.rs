//! Entries in order, with nulls and directions.
//! Invariant under test: abbreviations, keys and heap TIDs make one order.

use pagemill_format::ids::{BlockNumber, Oid, Tid};
use pagemill_format::index_tuple_builder::IndexForm;
use pagemill_format::tuple_data_builder::{AttributeStorage, ColumnLayout};
use pagemill_format::varlena::Compression;
use proptest::prelude::*;

use super::*;
use crate::order::TextCollation;

const INT: AttributeLayout = AttributeLayout { len: 4, align: 4 };
const TEXT: AttributeLayout = AttributeLayout { len: -1, align: 4 };

fn key(layout: AttributeLayout, oid: u32, descending: bool, nulls_first: bool) -> KeyColumn {
    let order = ValueOrder::of_type(Oid(oid), &TextCollation::C).unwrap();
    KeyColumn { layout, order, descending, nulls_first }
}

fn form(layouts: &[AttributeLayout]) -> IndexForm {
    let column = |layout: &AttributeLayout| ColumnLayout {
        layout: *layout,
        storage: AttributeStorage::Extended,
        compression: Compression::Pglz,
        dropped: false,
    };
    IndexForm::new("i", &layouts.iter().map(column).collect::<Vec<_>>()).unwrap()
}

fn entry(number: Option<i32>, text: Option<&[u8]>, line_pointer: u16) -> Vec<u8> {
    let number = number.map(i32::to_le_bytes);
    let row: &[Option<&[u8]>] = &[number.as_ref().map(|bytes| &bytes[..]), text];
    let mut out = Vec::new();
    let tid = Tid { block: BlockNumber(1), line_pointer };
    form(&[INT, TEXT]).form(row, tid, &mut out).unwrap();
    out
}

#[test]
fn columns_decide_one_after_the_other_and_then_the_heap_tid() {
    let order = KeyOrder::new(vec![key(INT, 23, false, false), key(TEXT, 25, true, true)]);
    let ascending = [
        entry(Some(-5), None, 9),
        entry(Some(-5), Some(b"b"), 1),
        entry(Some(-5), Some(b"b"), 2),
        entry(Some(-5), Some(b"a"), 1),
        entry(Some(3), None, 1),
        entry(None, None, 1),
        entry(None, Some(b"z"), 1),
    ];
    for pair in ascending.windows(2) {
        assert_eq!(order.compare(&pair[0], &pair[1]), Ordering::Less);
        assert!(order.abbreviate(&pair[0]) <= order.abbreviate(&pair[1]));
    }
    assert!(order.same_key(&ascending[1], &ascending[2]));
    assert!(!order.same_key(&ascending[2], &ascending[3]));
    let nulls: Vec<_> = ascending.iter().map(|entry| order.has_null(entry)).collect();
    assert_eq!(nulls, [true, false, false, false, true, true, true]);
}

#[test]
fn a_compressed_value_is_ordered_by_what_it_was() {
    let order = KeyOrder::new(vec![key(INT, 23, false, false), key(TEXT, 25, false, false)]);
    let (long, longer) = ([b'm'; 2000], [b'm'; 2001]);
    let short = [entry(Some(1), Some(b"l"), 1), entry(Some(1), Some(b"n"), 1)];
    let (a, b) = (entry(Some(1), Some(&long), 1), entry(Some(1), Some(&longer), 1));
    assert!(a.len() < 200);
    for pair in [&short[0], &a, &b, &short[1]].windows(2) {
        assert_eq!(order.compare_keys(pair[0], pair[1]), Ordering::Less);
    }
}

#[test]
fn what_is_kept_of_an_entry_ends_with_the_column_that_differs() {
    let order = KeyOrder::new(vec![key(INT, 23, false, false), key(TEXT, 25, false, false)]);
    let kept = |a: &[u8], b: &[u8]| {
        let kept = order.truncation(a, b);
        (kept.columns, kept.key_bytes, kept.has_nulls, kept.has_variable_widths, kept.needs_tid)
    };
    let a = entry(Some(1), Some(b"abc"), 1);
    assert_eq!(kept(&a, &entry(Some(2), Some(b"x"), 1)), (1, 4, false, false, false));
    assert_eq!(kept(&a, &entry(None, Some(b"x"), 1)), (1, 0, true, false, false));
    assert_eq!(kept(&a, &entry(Some(1), Some(b"x"), 1)), (2, 6, false, true, false));
    assert_eq!(kept(&a, &entry(Some(1), None, 1)), (2, 4, true, false, false));
    assert_eq!(kept(&a, &entry(Some(1), Some(b"abc"), 2)), (2, 8, false, true, true));
}

proptest! {
    #[test]
    fn arbitrary_bytes_have_some_order(
        a in prop::collection::vec(any::<u8>(), 0..60), b in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let keys = vec![key(TEXT, 25, true, false), key(INT, 23, false, true), key(TEXT, 1700, false, false)];
        let order = KeyOrder::new(keys);
        prop_assert_eq!(order.compare(&a, &b), order.compare(&b, &a).reverse());
        let _ = (order.abbreviate(&a), order.has_null(&a), order.truncation(&a, &b).columns);
    }
}
