//! `tsvector` and `gtsvector` of any bytes: lexemes and positions that lie anywhere.
//!
//! Lexemes that overlap must not multiply the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::tsvector::*;

use pagemill_fuzz::print_with;

fuzz_target!(|payload: &[u8]| print_with(
    &[write_tsvector, write_gtsvector, write_gtsvector_before_17],
    payload
));
