//! Input functions: a value's text, as `COPY … FROM` reads it, to the bytes a tuple holds.
//!
//! A [`ScalarReader`] appends a value's *payload* to a buffer: of a type of fixed length exactly
//! `typlen` bytes, of a varlena type the bytes after the length word. It needs nothing but the text,
//! which is already in the server's encoding, and the type modifier. Which reader a type has depends
//! on the server's version and encoding, so it is looked up once, for a column
//! ([`BuiltinType::input_in`](crate::builtin::BuiltinType::input_in)). `money` needs a locale ([`money::read_money`]).
//!
//! Rules: messages are PostgreSQL's, word for word; no text panics; nothing is allocated for a value
//! that is accepted, beyond the caller's buffer; after an error that buffer may hold part of the
//! value (the caller cuts it off).

mod acl;
mod array;
mod array_text;
mod c_integer;
pub(crate) mod characters;
mod composite;
pub(crate) mod datum;
mod digits;
mod float_hex;
mod hexadecimal;
mod lexeme;
mod line_equation;
mod multirange;
mod numeric_packing;

pub(crate) mod bits;
pub(crate) mod bytea;
pub mod datetime;
pub mod float;
pub mod geometry;
pub mod hardware_address;
pub mod identifier;
pub mod integer;
pub mod json;
pub mod jsonb;
pub mod jsonpath;
pub mod money;
pub mod network;
pub mod numeric;
pub mod range;
pub mod text;
pub mod tree;
pub mod tsquery;
pub mod tsvector;
pub mod uuid;
pub mod vector;
pub mod xml;

#[cfg(test)]
mod tree_tests;

use pagemill_format::ids::{Oid, PgVersion};

use crate::builtin::BuiltinType;
use crate::extension::call::CallError;
use tree::TypeInput;

pub use characters::Characters;

/// Appends the payload of the value that a text says, given its type modifier (-1 for none).
pub type ScalarReader = fn(&[u8], i32, &mut Vec<u8>) -> Result<(), InputError>;

/// Why a text is no value of its type, in PostgreSQL's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InputError {
    /// The server's primary message. What is no UTF-8 in it was replaced.
    pub message: String,
    /// The SQLSTATE where it does not follow from the message, as of extensions.
    pub state: Option<&'static str>,
    /// More of what is wrong.
    pub detail: Option<Box<str>>,
}

impl From<CallError> for InputError {
    fn from(error: CallError) -> Self {
        let detail = error.detail.map(Into::into);
        Self { message: error.message, state: Some(error.state), detail }
    }
}

impl InputError {
    /// An error with a message of its own.
    #[cold]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), state: None, detail: None }
    }

    /// `invalid input syntax for type NAME: "TEXT"`.
    #[cold]
    pub fn syntax(type_name: &str, text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        Self::new(format!("invalid input syntax for type {type_name}: \"{text}\""))
    }

    /// `value "TEXT" is out of range for type NAME`.
    #[cold]
    pub fn out_of_range(type_name: &str, text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        Self::new(format!("value \"{text}\" is out of range for type {type_name}"))
    }
}

/// The input function of a scalar type that needs neither a catalog nor a locale nor a session: as `version` reads it, in
/// an encoding with these characters.
pub fn scalar_reader(version: PgVersion, characters: Characters, oid: Oid) -> Option<ScalarReader> {
    match BuiltinType::by_oid(oid)?.input_in(version, characters)? {
        TypeInput::Scalar(read) => Some(read),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The payload of a text that is accepted.
    pub(super) fn value(read: ScalarReader, text: impl AsRef<[u8]>) -> Vec<u8> {
        let mut out = Vec::new();
        if let Err(error) = read(text.as_ref(), -1, &mut out) {
            panic!("{error}");
        }
        out
    }

    /// The message about a text that is refused.
    pub(super) fn refused(read: ScalarReader, text: impl AsRef<[u8]>) -> String {
        match read(text.as_ref(), -1, &mut Vec::new()) {
            Ok(()) => panic!("{:?} was accepted", String::from_utf8_lossy(text.as_ref())),
            Err(error) => error.message,
        }
    }

    #[test]
    fn errors_speak_as_the_server_does() {
        let message = InputError::syntax("integer", b"abc").to_string();
        assert_eq!(message, "invalid input syntax for type integer: \"abc\"");
        let message = InputError::out_of_range("smallint", b"99999").to_string();
        assert_eq!(message, "value \"99999\" is out of range for type smallint");
    }

    const ENCODINGS: [Characters; 5] = [
        Characters::Single,
        Characters::Utf8,
        Characters::Euc,
        Characters::EucTw,
        Characters::Mule,
    ];

    fn builtin(oid: Oid) -> Option<&'static BuiltinType> {
        BuiltinType::by_oid(oid)
    }

    fn all_readers() -> impl Iterator<Item = (PgVersion, Oid, ScalarReader)> {
        let versions = [PgVersion::V14, PgVersion::V15, PgVersion::V18];
        let ways = versions.into_iter().flat_map(|v| ENCODINGS.map(|e| (v, e)));
        let types = |(v, e)| {
            (0..6000).map(Oid).filter_map(move |oid| Some((v, oid, scalar_reader(v, e, oid)?)))
        };
        ways.flat_map(types)
    }

    #[test]
    fn every_scalar_type_that_prints_is_read() {
        // pg_node_tree, unknown and the pseudo-types, and what statistics and indexes keep, are not written by people.
        let never = [194, 705, 2275, 2278, 3361, 3402, 3642, 4600, 5017];
        for one in BuiltinType::all() {
            let prints = one.print_in(PgVersion::V15).writer().is_some();
            let input = one.input_in(PgVersion::V15, Characters::Utf8);
            let reads = matches!(
                input,
                Some(TypeInput::Scalar(_) | TypeInput::Document(_) | TypeInput::DateTime(_))
            );
            assert_eq!(prints && !never.contains(&one.oid.0), reads, "{}", one.name);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn arbitrary_bytes_never_panic(
            text in prop::collection::vec(any::<u8>(), 0..80),
            typmod: i32,
        ) {
            for (_, _, read) in all_readers() {
                for typmod in [-1, typmod % 40, typmod | 1 << 30] {
                    let _ = read(&text, typmod, &mut Vec::new());
                }
            }
        }

        /// Texts of the bytes that mean something get past the first checks. What was in the buffer
        /// stays, and what is accepted can be printed.
        #[test]
        fn what_is_accepted_is_sound(
            text in "[-+ 0-9a-fox.,:/_(){}\\\\]{0,60}",
            typmod in -1i32..70_000,
        ) {
            for (version, oid, read) in all_readers() {
                let mut out = b"kept".to_vec();
                let accepted = read(text.as_bytes(), typmod, &mut out).is_ok();
                prop_assert!(out.starts_with(b"kept"));
                if accepted {
                    let write = builtin(oid).unwrap().print_in(version).writer().unwrap();
                    prop_assert!(write(&out[4..], &mut Vec::new()).is_ok(), "{oid}");
                }
            }
        }
    }
}
