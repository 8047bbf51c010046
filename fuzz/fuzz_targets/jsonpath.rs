//! `jsonpath` of any bytes, as printed before 15 and since: items whose links lead anywhere.
//!
//! Links that lead back must not make printing run in circles, nor multiply the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::jsonpath::{write_jsonpath, write_jsonpath_before_15};

use pagemill_fuzz::print_with;

fuzz_target!(|payload: &[u8]| print_with(&[write_jsonpath, write_jsonpath_before_15], payload));
