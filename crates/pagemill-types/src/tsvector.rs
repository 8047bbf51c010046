//! `tsvector`, and `gtsvector` (its key in a GiST index), printed as their output functions do.
//!
//! ```text
//! number of lexemes | one word per lexeme | lexemes, each followed by its positions
//! word              bit 0: has positions; 11 bits of length; 20 bits of place behind the words
//! positions         at the next multiple of 2: their number, then each in 16 bits, the upper
//!                   two of them the weight (3 is A)
//! ```
//!
//! Invariant: lexemes do not overlap in a sound value, so together they may not claim more bytes
//! than there are; that bounds the text of a damaged value too.
//!
//! Sources: `src/include/tsearch/ts_type.h`, `src/backend/utils/adt/tsvector.c` (`tsvectorout`),
//! `tsgistidx.c` (`gtsvectorout`), PostgreSQL 14 to 18.

use pagemill_format::error::{Error, Result};
use pagemill_format::reader::Reader;

const STRUCTURE: &str = "tsvector";

/// Appends a `tsvector` as `tsvectorout` prints it.
///
/// # Errors
/// When the value is damaged.
pub fn write_tsvector(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut reader = Reader::new(STRUCTURE, value);
    let count = reader.u32()? as usize;
    let mut words = Reader::new(STRUCTURE, reader.bytes(count.saturating_mul(4))?);
    let data = reader.rest();
    let mut unclaimed = data.len();
    for i in 0..count {
        if i > 0 {
            out.push(b' ');
        }
        let claimed = write_lexeme(words.u32()?, data, out)?;
        let Some(left) = unclaimed.checked_sub(claimed) else {
            return Err(Error::corrupt(STRUCTURE, 0, "lexemes overlap"));
        };
        unclaimed = left;
    }
    Ok(())
}

/// Prints the lexeme that `word` describes; returns how many bytes of `data` it has.
fn write_lexeme(word: u32, data: &[u8], out: &mut Vec<u8>) -> Result<usize> {
    let (has_positions, len, place) = (word & 1, (word >> 1) & 0x7FF, (word >> 12) as usize);
    let mut reader = Reader::new(STRUCTURE, data);
    reader.seek(place)?;
    write_quoted(reader.bytes(len as usize)?, out);
    if has_positions == 0 {
        return Ok(reader.pos() - place);
    }
    reader.align(2);
    let count = reader.u16()?;
    for i in 0..count {
        out.push(if i == 0 { b':' } else { b',' });
        let position = reader.u16()?;
        out.extend_from_slice(itoa::Buffer::new().format(position & 0x3FFF).as_bytes());
        match position >> 14 {
            3 => out.push(b'A'),
            2 => out.push(b'B'),
            1 => out.push(b'C'),
            _ => {}
        }
    }
    Ok(reader.pos() - place)
}

/// Appends a lexeme in single quotes, with quotes and backslashes doubled.
pub(super) fn write_quoted(lexeme: &[u8], out: &mut Vec<u8>) {
    out.reserve(lexeme.len() + 2);
    out.push(b'\'');
    if !lexeme.iter().any(|&byte| byte == b'\'' || byte == b'\\') {
        out.extend_from_slice(lexeme);
        out.push(b'\'');
        return;
    }
    for &byte in lexeme {
        if byte == b'\'' || byte == b'\\' {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'\'');
}

/// Appends a `gtsvector` as PostgreSQL 17 and 18 print it.
///
/// # Errors
/// When the value is damaged.
pub fn write_gtsvector(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    write_key(value, true, out)
}

/// Appends a `gtsvector` as PostgreSQL 14 to 16 print it: a signature of which all bits are true
/// is stored without its bits, and these versions counted the stored ones.
///
/// # Errors
/// When the value is damaged.
pub fn write_gtsvector_before_17(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    write_key(value, false, out)
}

/// A key is a word of flags, then hashes of words (on leaf pages) or a signature.
fn write_key(value: &[u8], names_all_true: bool, out: &mut Vec<u8>) -> Result<()> {
    const HASHES: u32 = 1;
    const ALL_TRUE: u32 = 4;
    let mut reader = Reader::new("gtsvector", value);
    let flags = reader.u32()?;
    let rest = reader.rest();
    let text = if flags & HASHES != 0 {
        format!("{} unique words", rest.len() / 4)
    } else if flags & ALL_TRUE != 0 && names_all_true {
        "all true bits".to_owned()
    } else if flags & ALL_TRUE != 0 {
        format!("{} true bits, 0 false bits", rest.len() * 8)
    } else {
        let ones: usize = rest.iter().map(|byte| byte.count_ones() as usize).sum();
        format!("{ones} true bits, {} false bits", rest.len() * 8 - ones)
    };
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known_value_tests::{assert_known, mutation, mutations};
    use proptest::prelude::*;

    /// Payloads and texts of a PostgreSQL 15 server.
    const KNOWN: &[(&str, &str)] = &[
        ("00000000", ""),
        ("010000000200000061", "'a'"),
        ("0200000002000000021000006162", "'a' 'b'"),
        ("03000000060000000630000008600000625c7363206469742773", r#"'b\\s' 'c d' 'it''s'"#),
        (
            "03000000030000000360000003c000006100010001006200010002c063000300038004400500",
            "'a':1 'b':2A 'c':3B,4C,5",
        ),
        ("010000000300000061000100ffff", "'a':16383A"),
        ("02000000020000000b1000007ac3a9e6bca201000700", "'z' 'é漢':7"),
        (
            "\
             03000000050000000760000009e00000616201000200616263000100010061626364020003000400",
            "'ab':2 'abc':1 'abcd':3,4",
        ),
    ];

    #[test]
    fn values_of_a_real_server_print_as_it_prints_them() {
        assert_known(write_tsvector, KNOWN);
    }

    #[test]
    fn keys_of_a_real_index_print_as_the_server_prints_them() {
        let common = [
            ("0100000089815db1413430df775e14fa7c73d50240159442", "5 unique words"),
            ("02000000fffffff7ffffffff", "63 true bits, 1 false bits"),
        ];
        assert_known(write_gtsvector, &common);
        assert_known(write_gtsvector_before_17, &common);
        assert_known(write_gtsvector, &[("06000000", "all true bits")]);
        assert_known(write_gtsvector_before_17, &[("06000000", "0 true bits, 0 false bits")]);
    }

    #[test]
    fn lexemes_that_overlap_are_damage() {
        let twice = [2, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, b'a', b'b'];
        let error = write_tsvector(&twice, &mut Vec::new()).unwrap_err().to_string();
        assert_eq!(error, "corrupt tsvector: lexemes overlap (byte 0)");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(value: Vec<u8>) {
            let _ = write_tsvector(&value, &mut Vec::new());
            let _ = write_gtsvector(&value, &mut Vec::new());
        }

        #[test]
        fn damaged_values_never_panic(change in mutation(KNOWN.len())) {
            for value in mutations(KNOWN, &change) {
                let mut out = Vec::new();
                let _ = write_tsvector(&value, &mut out);
                // The lexeme at which the damage shows may be printed before it does.
                prop_assert!(out.len() <= 10 * value.len());
            }
        }
    }
}
