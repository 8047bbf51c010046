//! `xml` of any bytes: declarations that are whole, broken off, or only look like one.
//!
//! The declaration is parsed by hand, so every place it can end at is tried.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::xml::write_xml;

use pagemill_fuzz::print_with;

fuzz_target!(|payload: &[u8]| print_with(&[write_xml], payload));
