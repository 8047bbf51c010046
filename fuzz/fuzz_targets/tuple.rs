//! Tuples of any bytes under a layout that the input chooses too, as heap tuples and composites.
//!
//! Every span that is found lies within the tuple's data, and there are as many as were wanted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::tuple::{AttributeLayout, HeapTuple, Span, TupleData, TupleLayout};

fuzz_target!(|input: (Vec<(i8, u8)>, &[u8])| {
    let (shapes, bytes) = input;
    let shape = |&(len, align): &(i8, u8)| {
        AttributeLayout::new(len.into(), b"csid"[usize::from(align % 4)]).ok()
    };
    let layout = TupleLayout::new(shapes.iter().filter_map(shape).collect());
    let heap = HeapTuple::parse(bytes).map(HeapTuple::data).ok();
    let composite = TupleData::parse_composite(bytes).map(|(_, _, tuple)| tuple).ok();
    let mut spans = Vec::new();
    for tuple in heap.into_iter().chain(composite) {
        let wanted = layout.attributes().len();
        if layout.spans(&tuple, wanted, &mut spans).is_err() {
            continue;
        }
        assert_eq!(spans.len(), wanted);
        let absent = |span: &Span| *span == Span::NULL || *span == Span::MISSING;
        assert!(spans.iter().all(|span| absent(span) || span.of(tuple.data).is_some()));
    }
});
