//! `ltree`: labels with dots between them.
//!
//! ```text
//! labels, u16 | 2 bytes | { length u16 | text, up to a multiple of 8 from the length word } …
//! ```
//!
//! Source: `contrib/ltree/ltree.h`, `ltree_out` in `contrib/ltree/ltree_io.c`, PostgreSQL 14 to 18.

use pagemill_format::error::Result;
use pagemill_format::reader::Reader;

/// `ltree`: `Top.Science.Astronomy`.
///
/// # Errors
/// When the payload is cut off.
pub fn write_ltree(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut reader = Reader::new("ltree", payload);
    let labels = reader.u16()?;
    for number in 0..usize::from(labels) {
        // Labels lie at multiples of 8 from the length word, which is 4 bytes before the payload.
        let at = (reader.pos() + 4).next_multiple_of(8) - 4;
        reader.seek(at)?;
        let length = reader.u16()?;
        let label = reader.bytes(length.into())?;
        if number > 0 {
            out.push(b'.');
        }
        out.extend_from_slice(label);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed;

    #[test]
    fn labels_print_with_dots() {
        let payload = *b"\x02\0\0\0\x03\0Top\0\0\0\x07\0Science";
        assert_eq!(printed(write_ltree, &payload), "Top.Science");
        assert_eq!(printed(write_ltree, b"\0\0\0\0"), "");
        assert!(write_ltree(&payload[..16], &mut Vec::new()).is_err());
    }
}
