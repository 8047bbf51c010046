//! BRIN pages of any bytes: the meta page, the range map, and summaries of any number of columns.
//!
//! The values of a summary lie within its page, whatever it says of where they begin.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::BLOCK_SIZE;
use pagemill_format::brin::{
    BrinMeta, KIND_MAP, KIND_META, KIND_SUMMARIES, RANGES_PER_MAP_PAGE, RangeSummary,
    summary_places,
};
use pagemill_fuzz::page_of;

fuzz_target!(|data: &[u8]| {
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
        }
    }
});
