//! Functions of extensions over any bytes, and any text as a value of their types.
//!
//! A call gives a value or an error; what is read from a text can be printed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::PgVersion;
use pagemill_types::extension::call::{Argument, Letters};
use pagemill_types::extension::{ExtensionType, functions};

/// Letters as Unicode has them.
struct Unicode;

impl Letters for Unicode {
    fn major(&self) -> u32 {
        18
    }

    fn lower(&self, text: &str) -> String {
        text.to_lowercase()
    }

    fn is_alphanumeric(&self, character: char) -> bool {
        character.is_alphanumeric()
    }
}

fuzz_target!(|input: (i32, &[u8], &[u8])| {
    let (number, one, other) = input;
    for kind in ExtensionType::all() {
        for version in PgVersion::ALL {
            let Some(read) = kind.read_in(version) else { continue };
            let mut payload = Vec::new();
            if read(one, -1, &mut payload).is_ok() {
                (kind.write)(&payload, &mut Vec::new()).expect("what was read is printed");
            }
        }
        let _ = (kind.write)(one, &mut Vec::new());
    }
    let text = String::from_utf8_lossy(other);
    let (a, b) = (Argument::Payload(one), Argument::Payload(other));
    let (text, number) = (Argument::Text(&text), Argument::Int4(number));
    let calls: [&[Argument<'_>]; 7] =
        [&[a], &[a, b], &[a, text], &[a, number], &[text, text], &[a, number, number], &[text]];
    for function in functions() {
        for arguments in calls {
            let _ = (function.call)(&Unicode, arguments);
        }
    }
});
