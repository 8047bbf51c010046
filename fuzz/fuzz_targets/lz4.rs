//! Any bytes as a lz4 value of any size: exactly that size comes out, or nothing.
//!
//! What was in the output before stays.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::lz4::decompress;

fuzz_target!(|input: (u16, &[u8])| {
    let (raw_size, data) = (usize::from(input.0), input.1);
    let mut out = vec![7];
    let expected = match decompress(data, raw_size, &mut out) {
        Ok(()) => 1 + raw_size,
        Err(_) => 1,
    };
    assert_eq!((out[0], out.len()), (7, expected));
});
