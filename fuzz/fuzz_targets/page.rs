//! Pages of any bytes, and pages whose header is sound: line pointers, items and tuples.
//!
//! An item lies within the page whatever its line pointer says, and a page that passes
//! `check_header` has its areas in order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::page::Page;
use pagemill_format::tuple::HeapTuple;
use pagemill_fuzz::{heap_page_of, page_of};

fuzz_target!(|data: &[u8]| {
    for bytes in [page_of(data), heap_page_of(data)] {
        let page = Page::new(&bytes);
        let _ = (page.check_header(), page.header(), page.is_new(), page.special());
        for number in 0..=page.line_pointer_count() {
            let Some(line_pointer) = page.line_pointer(number) else { continue };
            let Ok(item) = page.item(line_pointer) else { continue };
            assert_eq!(item.len(), line_pointer.len());
            let _ = HeapTuple::parse(item).map(HeapTuple::data);
        }
    }
});
