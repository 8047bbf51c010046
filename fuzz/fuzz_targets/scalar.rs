//! Any bytes as every scalar and every document type there is, as every version prints it.
//!
//! A type that is not plain may print anything; a plain one never needs an escape.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pagemill_format::types::ScalarWriter;
use pagemill_format::types::document::document_by_oid;
use pagemill_format::types::scalar::{Scalar, scalar_in};
use pagemill_format::{Oid, PgVersion};
use pagemill_fuzz::print_with;

const HIGHEST_OID: u32 = 6000;

static TYPES: LazyLock<Vec<(PgVersion, Oid)>> = LazyLock::new(|| {
    let all = |version| (0..HIGHEST_OID).map(move |oid| (version, Oid(oid)));
    let known = |&(version, oid): &(PgVersion, Oid)| {
        scalar_in(version, oid).is_some() || document_by_oid(oid, version).is_some()
    };
    PgVersion::ALL.into_iter().flat_map(all).filter(known).collect()
});

fuzz_target!(|payload: &[u8]| {
    let documents = TYPES.iter().filter_map(|&(version, oid)| document_by_oid(oid, version));
    print_with(&documents.collect::<Vec<ScalarWriter>>(), payload);
    TYPES.iter().filter_map(|&(version, oid)| scalar_in(version, oid)).for_each(|scalar| {
        print_with(&[scalar.write], payload);
        check_plain(scalar, payload);
    });
});

fn check_plain(scalar: &Scalar, payload: &[u8]) {
    let mut out = Vec::new();
    if scalar.plain && (scalar.write)(payload, &mut out).is_ok() {
        let escaped = |byte: &u8| *byte < b' ' || b"\\,\"".contains(byte);
        assert!(!out.is_empty() && !out.iter().any(escaped), "{}", scalar.name);
    }
}
