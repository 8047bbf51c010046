//! `bit` and `varbit`: a bit count (i32), then the bits, the first one the highest of its byte.
//!
//! Source: `varbit_out` in `src/backend/utils/adt/varbit.c` and `VarBit` in
//! `src/include/utils/varbit.h`, PostgreSQL 14 to 18.

use pagemill_format::error::Result;
use pagemill_format::reader::Reader;

/// `bit` and `varbit`: one digit for each bit.
///
/// # Errors
/// When the bit count is negative, or the bytes are too few for it.
pub fn write_varbit(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (count, bytes) = parse(value)?;
    let start = out.len();
    out.reserve(bytes.len() * 8);
    for byte in bytes {
        out.extend(std::array::from_fn::<u8, 8, _>(|bit| b'0' + (byte >> (7 - bit) & 1)));
    }
    out.truncate(start + count);
    Ok(())
}

/// How many bits there are, and the bytes they are in.
pub(super) fn parse(value: &[u8]) -> Result<(usize, &[u8])> {
    let mut r = Reader::new("varbit", value);
    let count = r.i32()?;
    let Ok(count) = usize::try_from(count) else {
        return Err(r.corrupt(format!("a length of {count} bits")));
    };
    Ok((count, r.bytes(count.div_ceil(8))?))
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    #[test]
    fn bits_of_the_last_byte_stop_at_the_count() {
        assert_eq!(printed(write_varbit, &[10, 0, 0, 0, 0b1010_0001, 0b1100_0000]), "1010000111");
        assert_eq!(printed(write_varbit, &[0, 0, 0, 0]), "");
    }

    #[test]
    fn a_count_beyond_the_bytes_is_corrupt() {
        assert!(write_varbit(&[9, 0, 0, 0, 0xFF], &mut Vec::new()).is_err());
        assert!(write_varbit(&[0xFF; 5], &mut Vec::new()).is_err());
    }
}
