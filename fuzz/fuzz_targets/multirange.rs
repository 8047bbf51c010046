//! Multiranges of any bytes: counts, offsets and lengths that lead anywhere.
//!
//! Ranges that share their bytes must not multiply the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::output::TypeOutput;

use pagemill_fuzz::{oids, print_payload, print_stored};

fuzz_target!(|bytes: &[u8]| {
    for oid in oids(|output| matches!(output, TypeOutput::Multirange(_))) {
        print_payload(oid, bytes);
        print_stored(oid, bytes);
    }
});
