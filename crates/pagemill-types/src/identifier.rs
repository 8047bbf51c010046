//! The system's own identifiers: `oid`, `xid`, `xid8`, `cid`, `tid`, `pg_lsn`, `pg_snapshot`
//! (and its old name `txid_snapshot`), `int2vector` and `oidvector`.
//!
//! Unlike SQL's integers they are unsigned. Sources in `src/backend/utils/adt`, PostgreSQL 14 to
//! 18: `oidout` and `oidvectorout` (`oid.c`), `xidout`, `xid8out` and `cidout` (`xid.c`),
//! `tidout` (`tid.c`), `pg_lsn_out` (`pg_lsn.c`), `pg_snapshot_out` (`xid8funcs.c`),
//! `int2vectorout` (`int.c`). A vector is an array of one dimension without nulls:
//!
//! ```text
//! ndim i32 = 1 | dataoffset i32 = 0 | elemtype u32 | dim i32 | lbound i32 | dim elements
//! ```
//!
//! and a snapshot is `nxip u32 | xmin u64 | xmax u64 | nxip times u64`.

use std::io::Write as _;

use pagemill_format::error::Result;
use pagemill_format::reader::Reader;

use super::digits::push_integer;
use super::payload::fixed;

/// `oid`.
///
/// # Errors
/// When the value is not 4 bytes.
pub fn write_oid(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_integer(u32::from_le_bytes(fixed("oid", value)?), out);
    Ok(())
}

/// `xid`, a transaction id of 32 bits.
///
/// # Errors
/// When the value is not 4 bytes.
pub fn write_xid(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_integer(u32::from_le_bytes(fixed("xid", value)?), out);
    Ok(())
}

/// `cid`, the number of a command within its transaction.
///
/// # Errors
/// When the value is not 4 bytes.
pub fn write_cid(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_integer(u32::from_le_bytes(fixed("cid", value)?), out);
    Ok(())
}

/// `xid8`, a transaction id with its epoch.
///
/// # Errors
/// When the value is not 8 bytes.
pub fn write_xid8(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_integer(u64::from_le_bytes(fixed("xid8", value)?), out);
    Ok(())
}

/// `tid`: `(block,line pointer)`. The block number is stored as two halves, the high one first.
///
/// # Errors
/// When the value is not 6 bytes.
pub fn write_tid(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let [a, b, c, d, e, f] = fixed("tid", value)?;
    let high = u32::from(u16::from_le_bytes([a, b]));
    let low = u32::from(u16::from_le_bytes([c, d]));
    out.push(b'(');
    push_integer(high << 16 | low, out);
    out.push(b',');
    push_integer(u16::from_le_bytes([e, f]), out);
    out.push(b')');
    Ok(())
}

/// `pg_lsn`: both halves in hexadecimal, unpadded.
///
/// # Errors
/// When the value is not 8 bytes.
pub fn write_pg_lsn(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let lsn = pagemill_format::ids::Lsn(u64::from_le_bytes(fixed("pg_lsn", value)?));
    // Writing to a `Vec` cannot fail.
    let _ = write!(out, "{lsn}");
    Ok(())
}

/// `pg_snapshot` and `txid_snapshot`: `xmin:xmax:xip,xip,…`.
///
/// # Errors
/// When the value is shorter than its count of transactions asks for.
pub fn write_pg_snapshot(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut r = Reader::new("pg_snapshot", value);
    let nxip = r.u32()?;
    push_integer(r.u64()?, out);
    out.push(b':');
    push_integer(r.u64()?, out);
    out.push(b':');
    for i in 0..nxip {
        if i > 0 {
            out.push(b',');
        }
        push_integer(r.u64()?, out);
    }
    Ok(())
}

/// `int2vector`: its elements, with a space between them.
///
/// # Errors
/// When the array header is not that of an `int2vector`, or the elements do not fit.
pub fn write_int2vector(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut r = Reader::new("int2vector", value);
    for i in 0..vector_length(&mut r, 21)? {
        if i > 0 {
            out.push(b' ');
        }
        push_integer(r.i16()?, out);
    }
    Ok(())
}

/// `oidvector`: its elements, with a space between them.
///
/// # Errors
/// When the array header is not that of an `oidvector`, or the elements do not fit.
pub fn write_oidvector(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut r = Reader::new("oidvector", value);
    for i in 0..vector_length(&mut r, 26)? {
        if i > 0 {
            out.push(b' ');
        }
        push_integer(r.u32()?, out);
    }
    Ok(())
}

/// Reads the array header, which must be that of a vector of `element`, and says its length.
/// The lower bound may be anything, as for the server.
fn vector_length(r: &mut Reader<'_>, element: u32) -> Result<i32> {
    let (ndim, dataoffset, elemtype) = (r.i32()?, r.i32()?, r.u32()?);
    if ndim != 1 || dataoffset != 0 || elemtype != element {
        return Err(r.corrupt(format!(
            "{ndim} dimensions, data offset {dataoffset}, element type {elemtype}, \
             where 1, 0 and {element} belong"
        )));
    }
    let length = r.i32()?;
    r.i32()?;
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    #[test]
    fn identifiers_are_unsigned() {
        assert_eq!(printed(write_oid, &[0xFF; 4]), "4294967295");
        assert_eq!(printed(write_xid8, &[0xFF; 8]), "18446744073709551615");
    }

    #[test]
    fn a_tid_keeps_its_block_in_halves_high_first() {
        assert_eq!(printed(write_tid, &[1, 0, 2, 0, 7, 0]), "(65538,7)");
    }

    #[test]
    fn an_lsn_is_not_padded() {
        assert_eq!(printed(write_pg_lsn, &0x16_0000_000Au64.to_le_bytes()), "16/A");
    }

    #[test]
    fn a_snapshot_lists_what_was_in_progress() {
        let mut value = 2u32.to_le_bytes().to_vec();
        for xid in [10u64, 20, 10, 14] {
            value.extend(xid.to_le_bytes());
        }
        assert_eq!(printed(write_pg_snapshot, &value), "10:20:10,14");
        value.truncate(value.len() - 1);
        assert!(write_pg_snapshot(&value, &mut Vec::new()).is_err());
    }

    #[test]
    fn a_vector_of_the_wrong_element_type_is_corrupt() {
        let mut value = Vec::new();
        for field in [1i32, 0, 21, 2, 0] {
            value.extend(field.to_le_bytes());
        }
        value.extend([1, 0, 0xFE, 0xFF]);
        assert_eq!(printed(write_int2vector, &value), "1 -2");
        assert!(write_oidvector(&value, &mut Vec::new()).is_err());
    }
}
