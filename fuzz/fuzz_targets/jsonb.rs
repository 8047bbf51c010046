//! `jsonb` of any bytes: containers in containers, ends before starts, keys of other types.
//!
//! Nesting must not use the stack, and bytes that are shared must not multiply the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::jsonb::write_jsonb;

use pagemill_fuzz::print_with;

fuzz_target!(|payload: &[u8]| print_with(&[write_jsonb], payload));
