//! `bool`, `int2`, `int4` and `int8`.
//!
//! Stored as little-endian integers of 1, 2, 4 and 8 bytes.
//! Sources: `boolout` in `src/backend/utils/adt/bool.c`, `int2out` and `int4out` in `int.c`,
//! `int8out` in `int8.c`, PostgreSQL 14 to 18.

use pagemill_format::error::Result;

use super::digits::{push_int4_fields, push_signed, push_signed_then};
use super::payload::fixed;

/// `bool`: `t` or `f`; any byte but 0 is true, as for the server.
///
/// # Errors
/// When the value is not 1 byte.
pub fn write_bool(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let [byte] = fixed("bool", value)?;
    out.push(if byte != 0 { b't' } else { b'f' });
    Ok(())
}

/// `int2`, alias `smallint`.
///
/// # Errors
/// When the value is not 2 bytes.
pub fn write_int2(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_signed(i64::from(i16::from_le_bytes(fixed("int2", value)?)), out);
    Ok(())
}

/// `int4`, alias `integer`.
///
/// # Errors
/// When the value is not 4 bytes.
pub fn write_int4(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_signed(i64::from(i32::from_le_bytes(fixed("int4", value)?)), out);
    Ok(())
}

/// `int4`, then the byte `end`: what most columns of a table are, and what follows them.
///
/// # Errors
/// When the value is not 4 bytes.
#[inline]
pub fn write_int4_then(value: &[u8], end: u8, out: &mut Vec<u8>) -> Result<()> {
    push_signed_then(i64::from(i32::from_le_bytes(fixed("int4", value)?)), end, out);
    Ok(())
}

/// A row of nothing but `int4` values, each followed by a byte: where each begins in `data`, and that byte. Bytes that
/// `data` does not have are zeros: the caller has looked at its length.
#[inline]
pub fn write_int4_row(data: &[u8], fields: &[(usize, u8)], out: &mut Vec<u8>) {
    let value = |&(start, end): &(usize, u8)| {
        let bytes = data.get(start..).and_then(|rest| rest.first_chunk()).copied();
        (i32::from_le_bytes(bytes.unwrap_or_default()), end)
    };
    push_int4_fields(fields.iter().map(value), out);
}

/// `int8`, alias `bigint`.
///
/// # Errors
/// When the value is not 8 bytes.
pub fn write_int8(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_signed(i64::from_le_bytes(fixed("int8", value)?), out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn extremes_print_in_full() {
        assert_eq!(printed(write_int2, &i16::MIN.to_le_bytes()), "-32768");
        assert_eq!(printed(write_int4, &i32::MIN.to_le_bytes()), "-2147483648");
        assert_eq!(printed(write_int8, &i64::MIN.to_le_bytes()), "-9223372036854775808");
        assert_eq!(printed(write_int8, &0i64.to_le_bytes()), "0");
    }

    #[test]
    fn every_nonzero_bool_is_true() {
        assert_eq!(printed(write_bool, &[0]), "f");
        assert_eq!(printed(write_bool, &[1]), "t");
        assert_eq!(printed(write_bool, &[2]), "t");
        assert!(write_bool(&[], &mut Vec::new()).is_err());
    }

    proptest! {
        #[test]
        fn integers_read_back(n: i64) {
            prop_assert_eq!(printed(write_int8, &n.to_le_bytes()).parse::<i64>().unwrap(), n);
            prop_assert_eq!(
                printed(write_int4, &(n as i32).to_le_bytes()).parse::<i32>().unwrap(),
                n as i32
            );
            prop_assert_eq!(
                printed(write_int2, &(n as i16).to_le_bytes()).parse::<i16>().unwrap(),
                n as i16
            );
        }
    }
}
