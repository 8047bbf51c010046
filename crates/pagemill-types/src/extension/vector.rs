//! pgvector's `vector`: numbers of single precision.
//!
//! ```text
//! dimensions, u16 | 2 bytes | numbers, f32 each
//! ```
//!
//! Source: `src/vector.h` and `vector_out` in `src/vector.c` of pgvector 0.4 to 0.8.

use pagemill_format::error::{Error, Result};
use pagemill_format::reader::Reader;

use crate::float::write_float4;

/// The numbers of a payload, four little-endian bytes each.
///
/// # Errors
/// When there are not as many as it says.
pub fn numbers(payload: &[u8]) -> Result<&[[u8; 4]]> {
    let mut reader = Reader::new("vector", payload);
    let dimensions = usize::from(reader.u16()?);
    reader.u16()?;
    match reader.rest().as_chunks() {
        (numbers, []) if numbers.len() == dimensions => Ok(numbers),
        _ => Err(Error::corrupt("vector", 0, format!("not {dimensions} numbers"))),
    }
}

/// `vector`: `[1,2.5,3]`.
///
/// # Errors
/// As [`numbers`].
pub fn write_vector(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.push(b'[');
    for (number, bytes) in numbers(payload)?.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write_float4(bytes, out)?;
    }
    out.push(b']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed;

    #[test]
    fn numbers_print_in_brackets() {
        let head = [3u16, 0].map(u16::to_le_bytes).concat();
        let payload = [head, [1f32, 2.5, -3e20].map(f32::to_le_bytes).concat()].concat();
        assert_eq!(printed(write_vector, &payload), "[1,2.5,-3e+20]");
        assert!(write_vector(&payload[..12], &mut Vec::new()).is_err());
    }
}
