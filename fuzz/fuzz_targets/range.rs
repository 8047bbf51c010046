//! Ranges of any bytes, over types of fixed and of variable length, and over rows.
//!
//! The flags decide which bounds there are; a bound that is cut off is an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::output::TypeOutput;

use pagemill_fuzz::{oids, print_payload, print_stored};

fuzz_target!(|bytes: &[u8]| {
    for oid in oids(|output| matches!(output, TypeOutput::Range(_))) {
        print_payload(oid, bytes);
        print_stored(oid, bytes);
    }
});
