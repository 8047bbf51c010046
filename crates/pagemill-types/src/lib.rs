#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

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
pub mod encoding;
pub mod expression;
pub mod extension;
pub mod float;
pub mod geometry;
pub mod identifier;
pub mod index_key_order;
pub mod index_key_range;
pub mod input;
pub mod integer;
pub mod interval;
pub mod interval_fields;
pub mod jenkins_hash;
pub mod json;
pub mod jsonb;
pub mod jsonpath;
pub mod money;
pub mod network;
pub mod numeric;
pub mod order;
pub mod output;
pub mod partition_hash;
pub mod range;
pub mod statistics;
pub mod styled;
pub mod text;
pub mod time_zone;
pub mod tsquery;
pub mod tsvector;
pub mod value;
pub mod value_extent;
pub mod value_extents;
pub mod value_filter;
pub mod value_hash;
pub mod value_network;
pub mod value_styles;
pub mod xml;

/// Appends the text of one value of a *scalar* type, given its payload: a fixed-length type's bytes, or a
/// variable-length type's bytes without the length word, detoasted. It needs nothing else; types that need the
/// catalogs (arrays, composites, enums, `regclass` and its kin) are built from [`output::TypeOutput`].
///
/// On an error the buffer may hold part of the value; the caller cuts it off.
pub type ScalarWriter = fn(&[u8], &mut Vec<u8>) -> pagemill_format::Result<()>;

/// What a writer makes of a sound value whose text is UTF-8.
#[cfg(test)]
fn printed(write: ScalarWriter, value: &[u8]) -> String {
    let mut out = Vec::new();
    write(value, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}
