//! BRIN pages of any bytes: the meta page, the range map, and summaries of any number of columns.
//!
//! The values of a summary lie within its page, whatever it says of where they begin. What they say is asked as each operator class has it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::BLOCK_SIZE;
use pagemill_format::brin::{
    BrinMeta, KIND_MAP, KIND_META, KIND_SUMMARIES, RANGES_PER_MAP_PAGE, RangeSummary,
    summary_places,
};
use pagemill_fuzz::page_of;
use pagemill_types::value_extents::ValueExtents;
use pagemill_types::value_filter::ValueFilter;

/// Summaries of a page whose values are asked.
const ASKED: u16 = 8;

/// Extents of values of each length, and a filter: as many values are given out as the bytes have.
fn ask(payload: &[u8]) {
    for len in [-2, -1, 0, 1, 4, 64] {
        let Ok(mut extents) = ValueExtents::parse(payload, len) else { continue };
        let mut bytes = 0;
        while let Ok(Some(extent)) = extents.next_extent() {
            bytes += extent.highest.len().min(extent.lowest.len());
        }
        assert!(bytes <= payload.len());
    }
    if let Ok(filter) = ValueFilter::parse(payload) {
        let _ = (0..100).filter(|hash| filter.may_have(*hash)).count();
    }
}

fuzz_target!(|data: &[u8]| {
    ask(data);
    let mut bytes = page_of(data);
    let columns = 1 + usize::from(data.first().copied().unwrap_or_default());
    for kind in [KIND_META, KIND_MAP, KIND_SUMMARIES] {
        bytes[BLOCK_SIZE - 2..].copy_from_slice(&kind.to_le_bytes());
        let _ = BrinMeta::parse(&bytes);
        if let Ok(places) = summary_places(&bytes) {
            assert_eq!(places.len(), RANGES_PER_MAP_PAGE as usize);
        }
        for number in 0..=300 {
            let Ok(summary) = RangeSummary::parse(&bytes, number, columns) else { continue };
            assert!(summary.values().len() < BLOCK_SIZE);
            let _ = (0..columns).filter(|column| summary.is_all_null(*column)).count();
            if number < ASKED {
                ask(summary.values());
            }
        }
    }
});
