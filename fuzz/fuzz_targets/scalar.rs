//! Any bytes as every scalar and every document type there is, as every version prints it.
//!
//! A type that is not plain may print anything; a plain one never needs an escape.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::types::document::document_by_oid;
use pagemill_format::types::scalar::scalar_in;
use pagemill_format::{Oid, PgVersion};
use pagemill_fuzz::print_with;

const HIGHEST_OID: u32 = 6000;

fuzz_target!(|payload: &[u8]| {
    for version in PgVersion::ALL {
        for oid in (0..HIGHEST_OID).map(Oid) {
            if let Some(write) = document_by_oid(oid, version) {
                print_with(&[write], payload);
            }
            let Some(scalar) = scalar_in(version, oid) else { continue };
            print_with(&[scalar.write], payload);
            let mut out = Vec::new();
            if scalar.plain && (scalar.write)(payload, &mut out).is_ok() {
                let escaped = |byte: &u8| *byte < b' ' || b"\\,\"".contains(byte);
                assert!(!out.is_empty() && !out.iter().any(escaped), "{}", scalar.name);
            }
        }
    }
});
