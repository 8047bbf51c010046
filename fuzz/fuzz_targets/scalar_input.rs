//! Any text as a value of every scalar type there is a reader for, as every version and encoding
//! reads it.
//!
//! A value that is accepted can be printed, and the text that was there before stays.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pagemill_format::{Oid, PgVersion};
use pagemill_types::builtin::BuiltinType;
use pagemill_types::input::{Characters, ScalarReader, scalar_reader};

const HIGHEST_OID: u32 = 6000;
/// SQL_ASCII, EUC_JP, EUC_TW, UTF8, MULE_INTERNAL.
const ENCODINGS: [i32; 5] = [0, 1, 4, 6, 7];
const BEFORE: &[u8] = b"before ";

static READERS: LazyLock<Vec<(PgVersion, Oid, ScalarReader)>> = LazyLock::new(|| {
    let mut readers = Vec::new();
    for version in PgVersion::ALL {
        for characters in ENCODINGS.into_iter().filter_map(Characters::of_encoding) {
            let reader = |oid| Some((version, oid, scalar_reader(version, characters, oid)?));
            readers.extend((0..HIGHEST_OID).map(Oid).filter_map(reader));
        }
    }
    readers
});

fuzz_target!(|input: (i32, &[u8])| {
    let (typmod, text) = input;
    for (version, oid, read) in READERS.iter() {
        let mut out = BEFORE.to_vec();
        let accepted = read(text, typmod, &mut out).is_ok();
        assert!(out.starts_with(BEFORE), "{oid}: reading changed what was there before");
        let builtin = BuiltinType::by_oid(*oid).and_then(|one| one.print_in(*version).writer());
        if accepted && let Some(write) = builtin {
            let printed = write(&out[BEFORE.len()..], &mut Vec::new());
            assert!(printed.is_ok(), "{oid}: {printed:?}");
        }
    }
});
