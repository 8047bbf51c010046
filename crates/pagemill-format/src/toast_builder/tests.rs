//! Toasting never changes a value, and makes rows as short as can be.
//!
//! Whole tables against a server are in `tests/heap_bytes.rs`.

use proptest::prelude::*;

use super::*;
use crate::noise::noise;
use crate::varlena::{decompress, decompress_stored};

#[derive(Default)]
struct Chunks(Vec<(Oid, u32, Vec<u8>)>);

impl ToastSink for Chunks {
    type Error = Error;

    fn next_value_id(&mut self) -> Result<Oid> {
        Ok(Oid(self.0.last().map_or(16_384, |(id, ..)| id.0 + 1)))
    }

    fn chunk(&mut self, chunk: &ToastChunk<'_>) -> Result<()> {
        self.0.push((chunk.value_id(), chunk.sequence(), chunk.data().to_vec()));
        Ok(())
    }
}

fn text(storage: AttributeStorage, compression: Compression) -> ColumnLayout {
    let layout = AttributeLayout { len: -1, align: 4 };
    ColumnLayout { layout, storage, compression, dropped: false }
}

fn payload(value: Value<'_>, chunks: &Chunks) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match value {
        Value::Null => return None,
        Value::Plain(payload) => out.extend(payload),
        Value::Compressed(stored) => {
            let (word, data) = stored.split_first_chunk::<4>().unwrap();
            let word = u32::from_le_bytes(*word);
            let method = if word >> 30 == 0 { Compression::Pglz } else { Compression::Lz4 };
            decompress(method, data, (word & 0x3FFF_FFFF) as usize, &mut out).unwrap();
        }
        Value::External(pointer) => {
            let own = chunks.0.iter().filter(|(id, ..)| *id == pointer.value_id);
            let stored: Vec<u8> = own.flat_map(|(.., data)| data.clone()).collect();
            assert_eq!(stored.len(), pointer.stored_size as usize);
            match pointer.compression {
                Some(_) => decompress_stored(&pointer, &stored, &mut out).unwrap(),
                None => out = stored,
            }
            assert_eq!(pointer.raw_size as usize, out.len() + 4);
        }
    }
    Some(out)
}

#[test]
fn a_long_value_goes_out_in_chunks_of_1996_bytes() {
    let columns = [text(AttributeStorage::External, Compression::Pglz)];
    let mut builder = ToastBuilder::new(&columns, Some(Oid(99)), None).unwrap();
    let (value, mut chunks) = (noise(5000), Chunks::default());
    let row: &[Option<&[u8]>] = &[Some(&value)];
    let toasted = builder.toast(row, &mut chunks).unwrap();
    let Value::External(pointer) = toasted.value(0) else { panic!() };
    assert_eq!((pointer.raw_size, pointer.stored_size, pointer.compression), (5004, 5000, None));
    assert_eq!((pointer.value_id, pointer.toast_relation), (Oid(16_384), Oid(99)));
    let shape: Vec<_> = chunks.0.iter().map(|(id, n, data)| (id.0, *n, data.len())).collect();
    assert_eq!(shape, [(16_384, 0, 1996), (16_384, 1, 1996), (16_384, 2, 1008)]);
}

#[test]
fn without_a_toast_table_a_row_is_only_compressed() {
    let columns = [text(AttributeStorage::Extended, Compression::Lz4); 2];
    let mut builder = ToastBuilder::new(&columns, None, None).unwrap();
    let (first, second) = (vec![b'a'; 3000], noise(3000));
    let row: &[Option<&[u8]>] = &[Some(&first), Some(&second)];
    let toasted = builder.toast(row, &mut Chunks::default()).unwrap();
    assert!(matches!(toasted.value(0), Value::Compressed(_)));
    assert_eq!(toasted.value(1), Value::Plain(&second));
}

fn any_text() -> impl Strategy<Value = ColumnLayout> {
    use AttributeStorage::{Extended, External, Main, Plain};
    let storage = prop::sample::select(&[Plain, External, Extended, Main][..]);
    let method = prop::sample::select(&[Compression::Pglz, Compression::Lz4][..]);
    (storage, method, prop::bool::weighted(0.1))
        .prop_map(|(storage, method, dropped)| ColumnLayout { dropped, ..text(storage, method) })
}

fn any_payload() -> impl Strategy<Value = Option<Vec<u8>>> {
    let value = prop_oneof![
        (0_usize..6000).prop_map(noise),
        (0_usize..9000, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]),
        prop::collection::vec(any::<u8>(), 0..200),
    ];
    prop::option::weighted(0.9, value)
}

proptest! {
    #[test]
    fn toasted_rows_have_the_values_they_had(
        fields in prop::collection::vec((any_text(), any_payload()), 1..8),
        relation in prop::option::of(Just(Oid(5))),
        target in prop::option::of(128_usize..8000),
    ) {
        let (columns, payloads): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
        let values: Vec<Option<&[u8]>> = payloads.iter().map(Option::as_deref).collect();
        let mut builder = ToastBuilder::new(&columns, relation, target).unwrap();
        let before = TupleForm::new(&columns).unwrap().measure(values.as_slice()).unwrap();
        let mut chunks = Chunks::default();
        // Twice, so that nothing of a row is left over for the next.
        builder.toast(values.as_slice(), &mut chunks).unwrap();
        chunks.0.clear();
        let toasted = builder.toast(values.as_slice(), &mut chunks).unwrap();
        let after = TupleForm::new(&columns).unwrap().measure(&toasted).unwrap();
        prop_assert!(after.bytes() <= before.bytes());
        for (column, value) in values.iter().enumerate() {
            let found = payload(toasted.value(column), &chunks);
            prop_assert_eq!(found.as_deref(), *value);
        }
        let all_movable = columns.iter().all(|c| c.storage != AttributeStorage::Plain);
        if relation.is_some() && all_movable {
            prop_assert!(after.on_page().is_ok());
        }
    }
}
