//! The visible tuples of a page of any bytes, with a log that answers from the ids themselves.
//!
//! Each line pointer is visited once at most, in order, and what is visited parses.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_cluster::Result;
use pagemill_cluster::heap::{count_tuples, visit_tuples};
use pagemill_cluster::visibility::TransactionLog;
use pagemill_format::page::Page;
use pagemill_format::{MultiXactId, TransactionId};
use pagemill_fuzz::{heap_page_of, page_of};

struct Log;

impl TransactionLog for Log {
    fn committed(&mut self, xid: TransactionId) -> Result<bool> {
        Ok(xid.0.is_multiple_of(2))
    }

    fn updater(&mut self, multi: MultiXactId) -> Result<Option<TransactionId>> {
        Ok((!multi.0.is_multiple_of(3)).then_some(TransactionId(multi.0)))
    }
}

fuzz_target!(|data: &[u8]| {
    for bytes in [page_of(data), heap_page_of(data)] {
        let page = Page::new(&bytes);
        let (mut last, mut visible) = (0, 0);
        let _ = visit_tuples(page, &mut Log, |number, tuple| -> std::result::Result<(), ()> {
            assert!(number > last && number <= page.line_pointer_count());
            last = number;
            visible += u64::from(tuple.map(|tuple| tuple.data()).is_ok());
            Ok(())
        });
        let counted = count_tuples(page, &mut Log, |_, _| Ok::<(), ()>(()));
        assert_eq!(counted, Ok(visible));
    }
});
