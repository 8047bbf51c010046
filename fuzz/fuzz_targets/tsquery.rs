//! `tsquery` of any bytes: operators whose operands are missing, shared or deep.
//!
//! Nesting must not use the stack, and each node is printed at most once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::tsquery::write_tsquery;

use pagemill_fuzz::print_with;

fuzz_target!(|payload: &[u8]| print_with(&[write_tsquery], payload));
