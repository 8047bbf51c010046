//! `pg_brin_bloom_summary` and `pg_brin_minmax_multi_summary`, printed as their output functions
//! do. Both occur in BRIN indexes only.
//!
//! ```text
//! bloom         flags (2) | hash functions (1) | gap | bits | bits set | the filter
//! minmax-multi  type (OID) | ranges | single values | limit | two bounds per range, the values
//! ```
//!
//! The bounds lie back to back, unaligned, each as its type is stored: so the type's length
//! and its output function have to come from the catalogs.
//!
//! Sources: `src/backend/access/brin/brin_bloom.c` (`BloomFilter`), `brin_minmax_multi.c`
//! (`SerializedRanges`, `brin_minmax_multi_summary_out`), `src/backend/utils/adt/arrayfuncs.c`
//! (`array_out`'s quoting), PostgreSQL 14 to 18.

use pagemill_format::error::{Error, Result};
use pagemill_format::ids::Oid;
use pagemill_format::reader::Reader;

use super::embedded::embedded_value;
use super::jsonb::check_text_length;

const MINMAX: &str = "pg_brin_minmax_multi_summary";

/// Appends a `pg_brin_bloom_summary` as `brin_bloom_summary_out` prints it.
///
/// # Errors
/// When the value is damaged.
pub fn write_pg_brin_bloom_summary(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut reader = Reader::new("pg_brin_bloom_summary", value);
    reader.u16()?;
    let hashes = reader.u8()?;
    reader.align(4);
    let (bits, set) = (reader.u32()?, reader.u32()?);
    let text = format!("{{mode: hashed  nhashes: {hashes}  nbits: {bits}  nbits_set: {set}}}");
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// What a summary of bounds needs to know of the bounds' type.
pub trait BoundTypes {
    /// The type's `typlen`: a length in bytes, -1 for a varlena, -2 for a C string.
    ///
    /// # Errors
    /// When there is no such type.
    fn length(&mut self, type_oid: Oid) -> Result<i16>;

    /// Appends one value's text, given its payload: the bytes of a fixed-length type, a varlena
    /// without its length word, a C string without its zero.
    ///
    /// # Errors
    /// When the value is damaged.
    fn write(&mut self, type_oid: Oid, payload: &[u8], out: &mut Vec<u8>) -> Result<()>;
}

/// Appends a `pg_brin_minmax_multi_summary` as `brin_minmax_multi_summary_out` prints it.
///
/// # Errors
/// When the value is damaged, and those of `types`.
pub fn write_pg_brin_minmax_multi_summary(
    value: &[u8],
    types: &mut dyn BoundTypes,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut reader = Reader::new(MINMAX, value);
    let type_oid = Oid(reader.u32()?);
    let (ranges, values, limit) = (reader.i32()?, reader.i32()?, reader.i32()?);
    if ranges < 0 || values < 0 {
        return Err(reader.corrupt(format!("{ranges} ranges and {values} values")));
    }
    let text = format!("{{nranges: {ranges}  nvalues: {values}  maxvalues: {limit}");
    out.extend_from_slice(text.as_bytes());
    let mut bounds = Bounds { type_oid, length: types.length(type_oid)?, reader, types };
    bounds.write_array(" ranges: ", ranges, 2, out)?;
    bounds.write_array(" values: ", values, 1, out)?;
    out.push(b'}');
    Ok(())
}

/// The bounds that are left.
struct Bounds<'a> {
    type_oid: Oid,
    length: i16,
    reader: Reader<'a>,
    types: &'a mut dyn BoundTypes,
}

impl<'a> Bounds<'a> {
    /// Appends `count` elements of `width` bounds each in the form of a text array.
    fn write_array(
        &mut self,
        title: &str,
        count: i32,
        width: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let start = out.len();
        out.extend_from_slice(title.as_bytes());
        let mut element = Vec::new();
        for i in 0..count {
            out.push(if i == 0 { b'{' } else { b',' });
            element.clear();
            for bound in 0..width {
                element.extend_from_slice(if bound == 0 { b"" } else { b" ... " });
                let payload = self.payload()?;
                self.types.write(self.type_oid, payload, &mut element)?;
            }
            write_array_element(&element, out);
            check_text_length(MINMAX, out.len() - start)?;
        }
        out.push(b'}');
        Ok(())
    }

    fn payload(&mut self) -> Result<&'a [u8]> {
        match self.length {
            -2 => self.reader.cstr(),
            -1 => {
                let (payload, len) = embedded_value(MINMAX, self.reader.clone().rest())?;
                self.reader.bytes(len)?;
                Ok(payload)
            }
            len => match usize::try_from(len) {
                Ok(len) if len > 0 => self.reader.bytes(len),
                _ => Err(Error::corrupt(MINMAX, 0, format!("a type of length {len}"))),
            },
        }
    }
}

/// Appends an element of a text array, in double quotes where `array_out` puts them.
fn write_array_element(element: &[u8], out: &mut Vec<u8>) {
    let special =
        |byte: &u8| matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',' | b' ' | b'\t'..=b'\r');
    let quoted =
        element.is_empty() || element.eq_ignore_ascii_case(b"null") || element.iter().any(special);
    if !quoted {
        out.extend_from_slice(element);
        return;
    }
    out.push(b'"');
    for &byte in element {
        if byte == b'"' || byte == b'\\' {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known_value_tests::{assert_known, payload};
    use proptest::prelude::*;

    /// Bounds of a fixed length as numbers, the others as they are.
    struct Bytes(i16);

    impl BoundTypes for Bytes {
        fn length(&mut self, _: Oid) -> Result<i16> {
            Ok(self.0)
        }

        fn write(&mut self, _: Oid, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
            match payload.first_chunk() {
                Some(bytes) if self.0 == 4 => {
                    out.extend_from_slice(i32::from_le_bytes(*bytes).to_string().as_bytes());
                }
                _ => out.extend_from_slice(payload),
            }
            Ok(())
        }
    }

    fn text(value: &[u8], length: i16) -> Result<String> {
        let mut out = Vec::new();
        write_pg_brin_minmax_multi_summary(value, &mut Bytes(length), &mut out)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn a_filter_of_a_real_index_prints_as_the_server_prints_it() {
        let filter = "0000030090000000520000007dec550fa1deffa299f69895578deb866d2c";
        let known = "{mode: hashed  nhashes: 3  nbits: 144  nbits_set: 82}";
        assert_known(write_pg_brin_bloom_summary, &[(filter, known)]);
    }

    #[test]
    fn bounds_of_a_real_index_print_as_the_server_prints_them() {
        let value = payload(
            "17000000010000000700000010000000400100006806000028000000\
             5000000078000000a0000000c8000000f000000018010000",
        );
        assert_eq!(
            text(&value, 4).unwrap(),
            "{nranges: 1  nvalues: 7  maxvalues: 16 \
             ranges: {\"320 ... 1640\"} values: {40,80,120,160,200,240,280}}"
        );
    }

    #[test]
    fn bounds_of_every_storage_are_found_and_quoted() {
        let head = payload("19000000000000000400000010000000");
        let short = [&head[..], b"\x03", b"\x05a", b"\x0bnull", b"\x07\"\\"].concat();
        let expected = r#"{nranges: 0  nvalues: 4  maxvalues: 16 values: {"",a,"null","\"\\"}}"#;
        assert_eq!(text(&short, -1).unwrap(), expected);
        let strings = [&head[..], b"a\0b c\0d,e\0{}\0"].concat();
        let expected = r#"{nranges: 0  nvalues: 4  maxvalues: 16 values: {a,"b c","d,e","{}"}}"#;
        assert_eq!(text(&strings, -2).unwrap(), expected);
        assert!(text(&strings, 0).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(value: Vec<u8>, length in -3_i16..9) {
            let _ = text(&value, length);
            let _ = write_pg_brin_bloom_summary(&value, &mut Vec::new());
        }
    }
}
