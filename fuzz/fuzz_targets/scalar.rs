//! Any bytes as every built-in type that prints by itself, as every version prints it, and as a value of it.
//!
//! A type that is not plain may print anything; a plain one never needs an escape.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::PgVersion;
use pagemill_types::builtin::{BuiltinType, Print};
use pagemill_types::decode;

use pagemill_fuzz::print_with;

fuzz_target!(|payload: &[u8]| {
    for one in BuiltinType::all() {
        let _ = decode::scalar(one.decode, payload);
        for print in PgVersion::ALL.map(|version| one.print_in(version)) {
            print.writer().into_iter().for_each(|write| print_with(&[write], payload));
            check_plain(one.name, print, payload);
        }
    }
});

fn check_plain(name: &str, print: Print, payload: &[u8]) {
    let mut out = Vec::new();
    if let Print::Scalar { write, plain: true } = print
        && write(payload, &mut out).is_ok()
    {
        let escaped = |byte: &u8| *byte < b' ' || b"\\,\"".contains(byte);
        assert!(!out.is_empty() && !out.iter().any(escaped), "{name}");
    }
}
