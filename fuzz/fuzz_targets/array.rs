//! Arrays of any bytes, of every element type of the catalog and of types that the bytes choose.
//!
//! Counts and bounds are checked before they are believed; quotes in quotes do not explode.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::output::TypeOutput;

use pagemill_fuzz::{oids, print_payload, print_stored};

fuzz_target!(|bytes: &[u8]| {
    for oid in oids(|output| matches!(output, TypeOutput::Array(_) | TypeOutput::AnyArray)) {
        print_payload(oid, bytes);
        print_stored(oid, bytes);
    }
});
