//! B-tree pages whose header and line pointers, and whose tuples and special space, are any bytes.
//!
//! A heap TID takes six bytes, so no tuple can yield more of them than a page holds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::BLOCK_SIZE;
use pagemill_format::btree::{BtreeMeta, BtreePage};
use pagemill_fuzz::page_of;

fuzz_target!(|data: &[u8]| {
    let mut bytes = page_of(data);
    bytes[16..18].copy_from_slice(&8176_u16.to_le_bytes());
    let _ = BtreeMeta::parse(&bytes);
    let Ok(page) = BtreePage::parse(&bytes) else { return };
    let _ = page.high_key();
    for tuple in page.items().flatten() {
        let _ = (tuple.key(), tuple.null_bitmap(), tuple.key_columns(), tuple.pivot_heap_tid());
        assert!(tuple.heap_tids().count() <= BLOCK_SIZE / 6);
    }
});
