//! Tuples built from rows are read back by the reader of this crate.
//!
//! Whole tables against a server are in `tests/heap_bytes.rs`.

use proptest::prelude::*;

use super::*;
use crate::tuple::{AttributeLayout, HeapTuple, Span, TupleLayout};
use crate::tuple_data_builder::{AttributeStorage, SpannedRow, Value};
use crate::varlena::{Compression, ToastPointer, Varlena};

pub(crate) fn column(len: i16, align: u8, storage: AttributeStorage) -> ColumnLayout {
    let layout = AttributeLayout::new(len, align).unwrap();
    ColumnLayout { layout, storage, compression: Compression::Pglz, dropped: false }
}

fn built<R: Row + ?Sized>(columns: &[ColumnLayout], row: &R) -> Vec<u8> {
    let form = TupleForm::new(columns).unwrap();
    let size = form.measure(row).unwrap();
    let mut out = vec![0; size.bytes()];
    let ctid = Tid { block: BlockNumber(0x1_0002), line_pointer: 7 };
    form.write(row, size, TupleStamp::inserted(TransactionId(9), 3), &mut out);
    set_ctid(&mut out, ctid);
    out
}

fn spans(columns: &[ColumnLayout], bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let layout = TupleLayout::new(columns.iter().map(|column| column.layout).collect());
    let tuple = HeapTuple::parse(bytes).unwrap();
    let mut spans = Vec::new();
    layout.spans(&tuple.data(), columns.len(), &mut spans).unwrap();
    spans.iter().map(|span| span.of(tuple.data().data).map(<[u8]>::to_vec)).collect()
}

#[test]
fn the_header_says_who_inserted_the_tuple_and_what_is_in_it() {
    let columns =
        [column(4, b'i', AttributeStorage::Plain), column(-1, b'i', AttributeStorage::Extended)];
    let row: &[Option<&[u8]>] = &[None, Some(b"abc")];
    let bytes = built(&columns, row);
    let tuple = HeapTuple::parse(&bytes).unwrap();
    assert_eq!((tuple.xmin(), tuple.xmax(), tuple.cid()), (TransactionId(9), 0, 3));
    assert_eq!(tuple.ctid(), Tid { block: BlockNumber(0x1_0002), line_pointer: 7 });
    assert_eq!(tuple.infomask2(), 2);
    assert_eq!(tuple.infomask(), 0x0803);
    assert_eq!(&bytes[22..], [24, 0b10, 0x09, b'a', b'b', b'c']);
}

#[test]
fn a_dropped_column_is_null_whatever_the_row_says() {
    let mut columns = [column(4, b'i', AttributeStorage::Plain); 2];
    columns[0].dropped = true;
    let row: &[Option<&[u8]>] = &[Some(&[1; 4]), Some(&[2; 4])];
    assert_eq!(spans(&columns, &built(&columns, row)), [None, Some(vec![2; 4])]);
}

#[test]
fn values_that_lie_in_one_piece_of_memory_are_taken_from_there() {
    let columns = [column(2, b's', AttributeStorage::Plain); 3];
    let spans_in = [Span::new(2, 4), Span::NULL, Span::new(0, 2)];
    let row = SpannedRow { bytes: &[1, 2, 3, 4], spans: &spans_in };
    assert_eq!(spans(&columns, &built(&columns, &row)), [Some(vec![3, 4]), None, Some(vec![1, 2])]);
}

#[test]
fn a_value_of_the_wrong_length_is_refused() {
    let columns = [column(4, b'i', AttributeStorage::Plain)];
    let row: &[Option<&[u8]>] = &[Some(&[1; 5])];
    let error = TupleForm::new(&columns).unwrap().measure(row).unwrap_err();
    assert_eq!(error.to_string(), "corrupt row: 5 bytes for column 1, which has 4 (byte 0)");
}

#[test]
fn what_is_known_of_the_inserter_is_in_the_hint_bits() {
    let mask = |stamp: TupleStamp| stamp.mask;
    let xid = TransactionId(7);
    assert_eq!(mask(TupleStamp::inserted(xid, 0)), 0x0800);
    assert_eq!(mask(TupleStamp::committed(xid, 0)), 0x0900);
    assert_eq!(mask(TupleStamp::frozen(xid, 0)), 0x0B00);
}

fn any_column() -> impl Strategy<Value = ColumnLayout> {
    let fixed = (1_i16..40, prop::sample::select(&b"csid"[..]))
        .prop_map(|(len, align)| column(len, align, AttributeStorage::Plain));
    let storage = prop_oneof![Just(AttributeStorage::Plain), Just(AttributeStorage::Main)];
    let varlena =
        (prop::sample::select(&b"id"[..]), storage).prop_map(|(align, s)| column(-1, align, s));
    (prop_oneof![fixed, varlena], prop::bool::weighted(0.1))
        .prop_map(|(column, dropped)| ColumnLayout { dropped, ..column })
}

fn any_value(column: ColumnLayout) -> impl Strategy<Value = Option<Vec<u8>>> {
    let length = usize::try_from(column.layout.len).map_or(0..300, |len| len..len + 1);
    prop::option::weighted(0.8, prop::collection::vec(any::<u8>(), length))
}

fn table() -> impl Strategy<Value = (Vec<ColumnLayout>, Vec<Option<Vec<u8>>>)> {
    prop::collection::vec(any_column(), 0..20).prop_flat_map(|columns| {
        let row: Vec<_> = columns.iter().map(|column| any_value(*column)).collect();
        (Just(columns), row)
    })
}

proptest! {
    #[test]
    fn any_row_is_read_back_as_it_was((columns, row) in table()) {
        let values: Vec<Option<&[u8]>> = row.iter().map(Option::as_deref).collect();
        let bytes = built(&columns, values.as_slice());
        // A tuple without data is shorter than the reader takes, and a server writes none.
        prop_assume!(bytes.len() > TUPLE_HEADER_BYTES);
        for ((column, value), found) in columns.iter().zip(&row).zip(spans(&columns, &bytes)) {
            let value = value.clone().filter(|_| !column.dropped);
            let found = found.map(|bytes| match column.layout.len {
                -1 => match Varlena::parse(&bytes).unwrap() {
                    Varlena::Plain(payload) => payload.to_vec(),
                    other => panic!("{other:?}"),
                },
                _ => bytes,
            });
            prop_assert_eq!(found, value);
        }
    }

    #[test]
    fn stored_values_keep_their_kind(stored in prop::collection::vec(any::<u8>(), 4..50), id: u32) {
        let columns = [column(1, b'c', AttributeStorage::Plain), column(-1, b'i', AttributeStorage::Extended)];
        let pointer = ToastPointer {
            raw_size: 5000,
            stored_size: 100,
            compression: Some(Compression::Lz4),
            value_id: crate::Oid(id),
            toast_relation: crate::Oid(4),
        };
        let row = [Value::Plain(b"x"), Value::External(pointer)];
        let found = spans(&columns, &built(&columns, &row[..]));
        prop_assert_eq!(Varlena::parse(found[1].as_ref().unwrap()).unwrap(), Varlena::External(pointer));
        let mut stored = stored;
        stored[..4].copy_from_slice(&Compression::Lz4.size_word(77));
        let row = [Value::Plain(b"x"), Value::Compressed(&stored)];
        let found = spans(&columns, &built(&columns, &row[..]));
        let expected = Varlena::Compressed { raw_bytes: 77, method: Compression::Lz4, data: &stored[4..] };
        prop_assert_eq!(Varlena::parse(found[1].as_ref().unwrap()).unwrap(), expected);
    }

}

#[test]
#[should_panic(expected = "the room that was measured")]
fn a_tuple_that_has_too_little_room_is_a_mistake() {
    let form = TupleForm::new(&[]).unwrap();
    let row: [Option<&[u8]>; 0] = [];
    let size = form.measure(&row[..]).unwrap();
    let stamp = TupleStamp::frozen(TransactionId(9), 3);
    form.write(&row[..], size, stamp, &mut vec![0; size.bytes() - 1]);
}
