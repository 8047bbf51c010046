//! `hstore`: keys with texts or NULL.
//!
//! ```text
//! count | flag 1<<31, u32 | ends of key, value, key, value …, u32 each | the texts, one after the other
//! ```
//!
//! An end counts from the first text; 1<<30 in that of a value says NULL, 1<<31 marks the first of all.
//! Source: `contrib/hstore/hstore.h`, `hstore_out` in `contrib/hstore/hstore_io.c`, PostgreSQL 14 to 18.

use pagemill_format::error::{Error, Result};
use pagemill_format::reader::Reader;

const HSTORE: &str = "hstore";
const NEW_VERSION: u32 = 1 << 31;
const COUNT: u32 = 0x0FFF_FFFF;
const IS_NULL: u32 = 1 << 30;
const END: u32 = IS_NULL - 1;

/// A key, and its value unless that is NULL.
pub type Pair<'v> = (&'v [u8], Option<&'v [u8]>);

/// The pairs of a payload, in the order they are kept in.
///
/// # Errors
/// When the payload is cut off, an end lies before the one before it, or the value is in the layout of PostgreSQL 8.4.
pub fn pairs(payload: &[u8]) -> Result<impl Iterator<Item = Result<Pair<'_>>>> {
    let mut reader = Reader::new(HSTORE, payload);
    let head = if payload.is_empty() { NEW_VERSION } else { reader.u32()? };
    if head & NEW_VERSION == 0 {
        return Err(Error::corrupt(HSTORE, 0, "the layout of before PostgreSQL 9.0"));
    }
    let count = (head & COUNT) as usize;
    let ends = reader.bytes(count.saturating_mul(8))?;
    let texts = reader.rest();
    let mut start = 0;
    Ok(ends.as_chunks::<8>().0.iter().map(move |[a, b, c, d, e, f, g, h]| {
        let value_end = u32::from_le_bytes([*e, *f, *g, *h]);
        let mut text = |end: u32| {
            let from = std::mem::replace(&mut start, (end & END) as usize);
            let found = texts.get(from..(end & END) as usize);
            found.ok_or_else(|| Error::corrupt(HSTORE, from, "a text ends out of bounds"))
        };
        let key = text(u32::from_le_bytes([*a, *b, *c, *d]))?;
        let value = text(value_end)?;
        Ok((key, (value_end & IS_NULL == 0).then_some(value)))
    }))
}

/// `hstore`: `"key"=>"value", "other"=>NULL`.
///
/// # Errors
/// As [`pairs`].
pub fn write_hstore(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    for (number, pair) in pairs(payload)?.enumerate() {
        let (key, value) = pair?;
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        write_quoted(key, out);
        out.extend_from_slice(b"=>");
        match value {
            Some(value) => write_quoted(value, out),
            None => out.extend_from_slice(b"NULL"),
        }
    }
    Ok(())
}

fn write_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
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
    use crate::printed;

    #[test]
    fn pairs_print_with_quotes() {
        // '"a\"b"=>"1", c=>NULL'
        let words = [2 | NEW_VERSION, 3 | 1 << 31, 4, 5, 5 | IS_NULL].map(u32::to_le_bytes);
        let payload = [&words.concat()[..], b"a\"b1c"].concat();
        assert_eq!(printed(write_hstore, &payload), r#""a\"b"=>"1", "c"=>NULL"#);
        assert_eq!(printed(write_hstore, &NEW_VERSION.to_le_bytes()), "");
        assert!(write_hstore(&payload[..payload.len() - 2], &mut Vec::new()).is_err());
        assert!(write_hstore(&2u32.to_le_bytes(), &mut Vec::new()).is_err());
    }
}
