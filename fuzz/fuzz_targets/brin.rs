//! BRIN summaries of any bytes; the bounds of a minmax-multi one are of any type of the catalog.
//!
//! The numbers of ranges and values are never believed beyond the bytes there are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::brin::write_pg_brin_bloom_summary;
use pagemill_types::output::TypeOutput;

use pagemill_fuzz::{oids, print_payload, print_with};

fuzz_target!(|payload: &[u8]| {
    print_with(&[write_pg_brin_bloom_summary], payload);
    for oid in oids(|output| matches!(output, TypeOutput::MinMaxSummary)) {
        print_payload(oid, payload);
    }
});
