//! Every built-in type, printed as `COPY … TO` prints it.
//!
//! A *scalar* output function takes a value's payload (a fixed-length type's bytes, or a
//! variable-length type's bytes without the length word, detoasted) and appends its text to a
//! buffer. It needs nothing else. Types that need the catalogs (arrays, composites, enums,
//! `regclass` and its kin) are built from [`output::TypeOutput`].
//!
//! Settings are those of a plain dump: DateStyle ISO, TimeZone UTC, IntervalStyle postgres,
//! bytea_output hex, extra_float_digits 1.
//!
//! Rules: bounds are checked, nothing panics, nothing is allocated for a value that is sound and
//! of usual size, and on an error the buffer may hold part of the value (the caller cuts it off).

/// Appends the text of one value, given its payload.
pub type ScalarWriter = fn(&[u8], &mut Vec<u8>) -> crate::error::Result<()>;

mod digits;
mod embedded;
#[cfg(test)]
mod known_value_tests;
mod money_locale;
mod payload;

pub mod acl;
pub mod array;
pub mod bits;
pub mod brin;
pub mod builtin;
pub mod bytea;
pub mod composite;
pub mod datetime;
pub mod decode;
pub mod float;
pub mod geometry;
pub mod identifier;
pub mod input;
pub mod integer;
pub mod interval;
pub mod jsonb;
pub mod jsonpath;
pub mod money;
pub mod network;
pub mod numeric;
pub mod order;
pub mod output;
pub mod range;
pub mod statistics;
pub mod text;
pub mod tsquery;
pub mod tsvector;
pub mod value;
pub mod xml;

/// What a writer makes of a sound value whose text is UTF-8.
#[cfg(test)]
fn printed(write: ScalarWriter, value: &[u8]) -> String {
    let mut out = Vec::new();
    write(value, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}
