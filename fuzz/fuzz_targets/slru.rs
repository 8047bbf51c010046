//! Any entry of a transaction log's page that repeats these bytes.
//!
//! The place of an entry is arithmetic on its id alone, and lies on a page for every id.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::slru::*;
use pagemill_format::{BLOCK_SIZE, MultiXactId, TransactionId};

fuzz_target!(|input: (u32, &[u8])| {
    let (index, data) = input;
    let mut page = [0; BLOCK_SIZE];
    for (to, from) in page.iter_mut().zip(data.iter().cycle()) {
        *to = *from;
    }
    let _ = status_in_page(&page, TransactionId(index));
    let _ = parent_in_page(&page, TransactionId(index));
    let _ = multixact_offset_in_page(&page, MultiXactId(index));
    let _ = member_in_page(&page, index);
    assert!(multixact_member_position(index).byte < BLOCK_SIZE);
});
