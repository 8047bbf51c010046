//! The place of any heap block's bits in the visibility map.
//!
//! It lies inside of a page, after its header, for every block number.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::visibility_map::VisibilityPosition;
use pagemill_format::{BLOCK_SIZE, BlockNumber};

fuzz_target!(|heap_block: u32| {
    let position = VisibilityPosition::of(BlockNumber(heap_block));
    assert!((24..BLOCK_SIZE).contains(&position.byte) && position.shift < 8);
});
