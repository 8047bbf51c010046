//! Composite values of any bytes: rows with every type of the catalog, rows in arrays in rows.
//!
//! Attributes lie within the value; quotes in quotes do not explode.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::output::TypeOutput;

use pagemill_fuzz::{oids, print_payload, print_stored};

fuzz_target!(|bytes: &[u8]| {
    for oid in oids(|output| matches!(output, TypeOutput::Composite(_))) {
        print_payload(oid, bytes);
        print_stored(oid, bytes);
    }
});
