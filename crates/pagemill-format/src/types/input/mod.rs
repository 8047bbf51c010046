//! Input functions: a value's text, as `COPY … FROM` reads it, to the bytes a tuple holds.
//!
//! A [`ScalarReader`] appends a value's *payload* to a buffer: of a type of fixed length exactly
//! `typlen` bytes, of a varlena type the bytes after the length word. It needs nothing but the text,
//! which is already in the server's encoding, and the type modifier. Which reader a type has depends
//! on the server's version and encoding, so it is looked up once, for a column ([`scalar_reader`]).
//! `money` is not in the table, as its reader needs a locale ([`money::read_money`]).
//!
//! Rules: messages are PostgreSQL's, word for word; no text panics; nothing is allocated for a value
//! that is accepted, beyond the caller's buffer; after an error that buffer may hold part of the
//! value (the caller cuts it off).

mod acl;
mod array;
mod array_text;
mod c_integer;
mod characters;
mod composite;
mod datum;
mod digits;
mod float_hex;
mod hexadecimal;
mod lexeme;
mod line_equation;
mod multirange;
mod numeric_packing;
mod range;

mod bits;
mod bytea;
pub mod datetime;
pub mod document;
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
pub mod text;
pub mod tree;
pub mod tsquery;
pub mod tsvector;
pub mod uuid;
pub mod vector;
pub mod xml;

#[cfg(test)]
mod tree_tests;

use crate::ids::{Oid, PgVersion};

pub use characters::Characters;

/// Appends the payload of the value that a text says, given its type modifier (-1 for none).
pub type ScalarReader = fn(&[u8], i32, &mut Vec<u8>) -> Result<(), InputError>;

/// Why a text is no value of its type, in PostgreSQL's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InputError {
    /// The server's primary message. What is no UTF-8 in it was replaced.
    pub message: String,
}

impl InputError {
    /// An error with a message of its own.
    #[cold]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
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

/// The input function of a scalar type that needs neither a catalog nor a locale, dates and times
/// aside: as `version` reads it, in an encoding with these characters.
pub fn scalar_reader(version: PgVersion, characters: Characters, oid: Oid) -> Option<ScalarReader> {
    version_reader(version, oid).or_else(|| fixed_reader(oid)).or_else(|| match characters {
        Characters::Single => text_reader::<characters::Single>(oid),
        Characters::Utf8 => text_reader::<characters::Utf8>(oid),
        Characters::Euc => text_reader::<characters::Euc>(oid),
        Characters::EucTw => text_reader::<characters::EucTw>(oid),
        Characters::Mule => text_reader::<characters::Mule>(oid),
    })
}

/// The types that older versions read differently.
fn version_reader(version: PgVersion, oid: Oid) -> Option<ScalarReader> {
    let extended = version >= PgVersion::V16;
    let since_16 = |now: ScalarReader, before: ScalarReader| if extended { now } else { before };
    Some(match oid.0 {
        18 if version < PgVersion::V15 => text::read_char_14,
        18 => text::read_char,
        20 => since_16(integer::read_int8, integer::read_int8_before_16),
        21 => since_16(integer::read_int2, integer::read_int2_before_16),
        22 if version < PgVersion::V15 => vector::read_int2vector_14,
        22 => vector::read_int2vector,
        23 => since_16(integer::read_int4, integer::read_int4_before_16),
        26 => since_16(identifier::read_oid, identifier::read_oid_before_16),
        27 if version < PgVersion::V15 => identifier::read_tid_14,
        27 => identifier::read_tid,
        28 => since_16(identifier::read_xid, identifier::read_xid_before_16),
        29 => since_16(identifier::read_cid, identifier::read_xid_before_16),
        30 if version < PgVersion::V15 => vector::read_oidvector_14,
        30 => since_16(vector::read_oidvector, vector::read_oidvector_15),
        700 => since_16(float::read_float4, float::read_float4_before_16),
        1700 => since_16(numeric::read_numeric, numeric::read_numeric_before_16),
        5069 => since_16(identifier::read_xid8, identifier::read_xid8_before_16),
        _ => return None,
    })
}

/// The types that every version reads alike, whatever the encoding.
fn fixed_reader(oid: Oid) -> Option<ScalarReader> {
    Some(match oid.0 {
        16 => integer::read_bool,
        25 | 1790 => text::read_text,
        650 => network::read_cidr,
        701 => float::read_float8,
        774 => hardware_address::read_macaddr8,
        829 => hardware_address::read_macaddr,
        869 => network::read_inet,
        2950 => uuid::read_uuid,
        2970 | 5038 => identifier::read_pg_snapshot,
        3220 => identifier::read_pg_lsn,
        _ => return None,
    })
}

/// The types whose lengths or messages depend on the encoding.
fn text_reader<E: characters::Encoding>(oid: Oid) -> Option<ScalarReader> {
    Some(match oid.0 {
        17 => bytea::read_bytea::<E>,
        19 => text::read_name::<E>,
        1042 => text::read_bpchar::<E>,
        1043 => text::read_varchar::<E>,
        1560 => bits::read_bit::<E>,
        1562 => bits::read_varbit::<E>,
        _ => return None,
    })
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

    fn all_readers() -> impl Iterator<Item = (PgVersion, Oid, ScalarReader)> {
        let versions = [PgVersion::V14, PgVersion::V15, PgVersion::V18];
        let ways = versions.into_iter().flat_map(|v| ENCODINGS.map(|e| (v, e)));
        let types = |(v, e)| {
            (0..6000).map(Oid).filter_map(move |oid| Some((v, oid, scalar_reader(v, e, oid)?)))
        };
        ways.flat_map(types)
    }

    #[test]
    fn every_scalar_type_that_prints_has_a_reader_here_or_elsewhere() {
        // Documents, geometry, dates and times are read elsewhere; pseudo-types not at all.
        let elsewhere = [
            114, 142, 194, 600, 601, 602, 603, 604, 628, 705, 718, 1082, 1083, 1114, 1184, 1186,
            1266, 2275, 2278,
        ];
        for oid in (0..6000).map(Oid) {
            let prints = super::super::scalar::scalar_by_oid(oid).is_some();
            let reads = scalar_reader(PgVersion::V15, Characters::Utf8, oid).is_some();
            assert_eq!(prints && !elsewhere.contains(&oid.0), reads, "{oid}");
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
                    let scalar = super::super::scalar::scalar_in(version, oid).unwrap();
                    prop_assert!((scalar.write)(&out[4..], &mut Vec::new()).is_ok(), "{oid}");
                }
            }
        }
    }
}
