//! The input of the system's own identifiers: `oid`, `xid`, `xid8`, `cid`, `tid`, `pg_lsn` and
//! `pg_snapshot` (and its old name `txid_snapshot`).
//!
//! They are read by `strtoul` of the C library, which takes a minus for a way to count from the
//! other end. Up to PostgreSQL 15 `xid`, `xid8` and `cid` refuse nothing at all; from 16 on they are
//! checked, and an `oid` may be hexadecimal or octal, as they always could.
//! Sources in `src/backend/utils/adt`, PostgreSQL 14 to 18: `oidin` (`oid.c`), `xidin`, `xid8in` and
//! `cidin` (`xid.c`), `uint32in_subr` and `uint64in_subr` (`numutils.c`, from 16 on), `tidin`
//! (`tid.c`), `pg_lsn_in` (`pg_lsn.c`), `parse_snapshot` (`xid8funcs.c`).

use super::InputError;
use super::c_integer::CInteger;
use super::digits::{all_blank, byte_at, whole};

/// `oid`.
///
/// # Errors
/// When the text is no number, or one out of range.
pub fn read_oid(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    push_u32(text, "oid", 0, out)
}

/// `oid`, up to PostgreSQL 15.
///
/// # Errors
/// When the text is no number, or one out of range.
pub fn read_oid_before_16(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    push_u32(text, "oid", 10, out)
}

/// `xid`.
///
/// # Errors
/// When the text is no number, or one out of range.
pub fn read_xid(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    push_u32(text, "xid", 0, out)
}

/// `cid`.
///
/// # Errors
/// When the text is no number, or one out of range.
pub fn read_cid(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    push_u32(text, "cid", 0, out)
}

/// `xid` and `cid`, up to PostgreSQL 15: what is no number is 0.
///
/// # Errors
/// None.
pub fn read_xid_before_16(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let value = CInteger::read(text, 0).map_or(0, CInteger::unsigned_or_max);
    out.extend_from_slice(&(value as u32).to_le_bytes());
    Ok(())
}

/// `xid8`.
///
/// # Errors
/// When the text is no number, or one out of range.
pub fn read_xid8(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let syntax = || InputError::syntax("xid8", text);
    let number = CInteger::read(text, 0).ok_or_else(syntax)?;
    let value = number.unsigned().ok_or_else(|| InputError::out_of_range("xid8", text))?;
    if !all_blank(text.get(number.end..).unwrap_or_default()) {
        return Err(syntax());
    }
    out.extend_from_slice(&value.to_le_bytes());
    Ok(())
}

/// `xid8`, up to PostgreSQL 15: what is no number is 0.
///
/// # Errors
/// None.
pub fn read_xid8_before_16(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let value = CInteger::read(text, 0).map_or(0, CInteger::unsigned_or_max);
    out.extend_from_slice(&value.to_le_bytes());
    Ok(())
}

#[inline]
fn push_u32(text: &[u8], name: &str, base: u32, out: &mut Vec<u8>) -> Result<(), InputError> {
    out.extend_from_slice(&read_u32(text, name, base)?.to_le_bytes());
    Ok(())
}

/// The number that a text is, as `strtoul` reads it in a base.
#[inline]
pub(super) fn read_u32(text: &[u8], name: &str, base: u32) -> Result<u32, InputError> {
    match plain_u32(text) {
        Some(value) => Ok(value),
        None => u32_to_the_end(text, name, base),
    }
}

/// A number of digits only, without a zero in front, which might mean octal.
#[inline]
fn plain_u32(text: &[u8]) -> Option<u32> {
    if text.first() == Some(&b'0') {
        return None;
    }
    u32::try_from(whole(text)?).ok()
}

#[cold]
fn u32_to_the_end(text: &[u8], name: &str, base: u32) -> Result<u32, InputError> {
    let number = u32_number(text, name, base)?;
    if !all_blank(text.get(number.end..).unwrap_or_default()) {
        return Err(InputError::syntax(name, text));
    }
    as_u32(number).ok_or_else(|| InputError::out_of_range(name, text))
}

/// The number that a text starts with, if 64 bits hold it.
pub(super) fn u32_number(text: &[u8], name: &str, base: u32) -> Result<CInteger, InputError> {
    let number = CInteger::read(text, base).ok_or_else(|| InputError::syntax(name, text))?;
    match number.unsigned() {
        Some(_) => Ok(number),
        None => Err(InputError::out_of_range(name, text)),
    }
}

/// A number of 32 bits, which may be the negative of one of 31.
pub(super) fn as_u32(number: CInteger) -> Option<u32> {
    let wide = number.unsigned()?;
    let value = wide as u32;
    (wide == u64::from(value) || wide == value as i32 as u64).then_some(value)
}

/// `tid`: `(block,line pointer)`.
///
/// # Errors
/// When the text is none.
pub fn read_tid(text: &[u8], typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let is_block =
        |&(block, _): &(u64, u16)| block == u64::from(block as u32) || block == block as i32 as u64;
    let found = parse_tid(text).filter(is_block);
    found.ok_or_else(|| InputError::syntax("tid", text))?;
    read_tid_14(text, typmod, out)
}

/// `tid` as PostgreSQL 14 reads it: only the low 32 bits of the block are looked at.
///
/// # Errors
/// When the text is none.
pub fn read_tid_14(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let (block, pointer) = parse_tid(text).ok_or_else(|| InputError::syntax("tid", text))?;
    for word in [(block >> 16) as u16, block as u16, pointer] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    Ok(())
}

fn parse_tid(text: &[u8]) -> Option<(u64, u16)> {
    // A bracket counts as the first mark only; without one a comma does. Neither brackets nor what
    // is around them are looked at otherwise.
    let mut marks = text.iter().take_while(|&&b| b != b')').enumerate();
    let (first, _) = marks.find(|(_, b)| matches!(b, b'(' | b','))?;
    let (second, _) = marks.find(|(_, b)| **b == b',')?;
    let block = c_number(text.get(first + 1..)?, b',')?;
    let pointer = c_number(text.get(second + 1..)?, b')')?;
    Some((block, pointer.try_into().ok()?))
}

/// A number as `strtoul` returns it, 0 if there is none, that `end` follows.
fn c_number(text: &[u8], end: u8) -> Option<u64> {
    let (value, length) = match CInteger::read(text, 10) {
        Some(number) => (number.unsigned()?, number.end),
        None => (0, 0),
    };
    (byte_at(text, length) == end).then_some(value)
}

/// `pg_lsn`: two hexadecimal numbers of up to 8 digits.
///
/// # Errors
/// When the text is none.
pub fn read_pg_lsn(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let lsn = parse_lsn(text).ok_or_else(|| InputError::syntax("pg_lsn", text))?;
    out.extend_from_slice(&lsn.to_le_bytes());
    Ok(())
}

fn parse_lsn(text: &[u8]) -> Option<u64> {
    let slash = text.iter().position(|&b| b == b'/')?;
    let half = |digits: &[u8]| {
        let add = |sum, b: &u8| Some(sum << 4 | u64::from(char::from(*b).to_digit(16)?));
        (1..=8).contains(&digits.len()).then(|| digits.iter().try_fold(0, add)).flatten()
    };
    Some(half(text.get(..slash)?)? << 32 | half(text.get(slash + 1..)?)?)
}

/// `pg_snapshot` and `txid_snapshot`: `xmin:xmax:xip,xip,…`, the latter in order; one that is named
/// twice is stored once.
///
/// # Errors
/// When the text is none.
pub fn read_pg_snapshot(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    push_snapshot(text, out).ok_or_else(|| InputError::syntax("pg_snapshot", text))
}

fn push_snapshot(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (xmin, rest) = c_prefix(text);
    let (xmax, rest) = c_prefix(rest.strip_prefix(b":")?);
    let mut rest = rest.strip_prefix(b":")?;
    // Of the 64 bits only the lower half tells whether there is a transaction.
    if xmin as u32 == 0 || xmax as u32 == 0 || xmax < xmin {
        return None;
    }
    let count_at = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&xmin.to_le_bytes());
    out.extend_from_slice(&xmax.to_le_bytes());
    let (mut count, mut last) = (0u32, 0);
    while !rest.is_empty() {
        let (xip, behind) = c_prefix(rest);
        if xip < xmin || xip >= xmax || xip < last {
            return None;
        }
        if xip != last {
            out.extend_from_slice(&xip.to_le_bytes());
            count += 1;
        }
        last = xip;
        rest = if behind.is_empty() { behind } else { behind.strip_prefix(b",")? };
    }
    out.get_mut(count_at..count_at + 4)?.copy_from_slice(&count.to_le_bytes());
    Some(())
}

/// The number that a text starts with, 0 if there is none, and what is behind it.
fn c_prefix(text: &[u8]) -> (u64, &[u8]) {
    let (value, end) = match CInteger::read(text, 10) {
        Some(number) => (number.unsigned_or_max(), number.end),
        None => (0, 0),
    };
    (value, text.get(end..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{refused, value};
    use super::*;
    use crate::identifier as written;
    use proptest::prelude::*;

    #[test]
    fn an_oid_may_be_negative_but_not_too_large() {
        assert_eq!(value(read_oid, " 4294967295 "), [0xFF; 4]);
        assert_eq!(value(read_oid, "-1"), [0xFF; 4]);
        assert_eq!(value(read_oid, "0x10"), 16u32.to_le_bytes());
        assert_eq!(value(read_oid_before_16, "010"), 10u32.to_le_bytes());
        let out_of_range = "value \"4294967296\" is out of range for type oid";
        assert_eq!(refused(read_oid, "4294967296"), out_of_range);
        assert!(refused(read_oid, "-4294967295").contains("out of range"));
        for text in ["", " ", "x", "1 2", "-", "1x"] {
            let message = format!("invalid input syntax for type oid: \"{text}\"");
            assert_eq!(refused(read_oid, text), message);
            assert_eq!(refused(read_oid_before_16, text), message);
        }
    }

    #[test]
    fn transaction_ids_are_checked_from_version_16_on() {
        assert_eq!(value(read_xid_before_16, "rubbish"), [0; 4]);
        assert_eq!(value(read_xid_before_16, "0x1F!"), 31u32.to_le_bytes());
        assert_eq!(value(read_xid8_before_16, "99999999999999999999999"), [0xFF; 8]);
        assert_eq!(value(read_xid, "017"), 15u32.to_le_bytes());
        assert!(refused(read_xid, "rubbish").starts_with("invalid input syntax for type xid:"));
        assert!(refused(read_cid, "4294967296").ends_with("out of range for type cid"));
        assert!(refused(read_xid8, "1 x").starts_with("invalid input syntax for type xid8:"));
    }

    #[test]
    fn a_tid_is_two_numbers_whatever_is_around_them() {
        assert_eq!(value(read_tid, "(65538,7)"), [1, 0, 2, 0, 7, 0]);
        assert_eq!(value(read_tid, "x( 1, 2)y"), [0, 0, 1, 0, 2, 0]);
        assert_eq!(value(read_tid, ",1,2)"), [0, 0, 1, 0, 2, 0]);
        assert_eq!(value(read_tid, "(-1,0)"), [0xFF, 0xFF, 0xFF, 0xFF, 0, 0]);
        assert_eq!(value(read_tid, "(,)"), [0; 6]);
        for text in ["", "(1,2", "(1)", "1,2", "(1,65536)", "(4294967296,1)", "(1 ,2)", "(1,-1)"] {
            let message = format!("invalid input syntax for type tid: \"{text}\"");
            assert_eq!(refused(read_tid, text), message);
        }
        assert_eq!(value(read_tid_14, "(4294967297,2)"), [0, 0, 1, 0, 2, 0]);
    }

    #[test]
    fn an_lsn_has_two_halves_of_up_to_8_digits() {
        assert_eq!(value(read_pg_lsn, "16/b374D848"), 0x16_B374_D848u64.to_le_bytes());
        for text in ["", "/", "1/", "/1", "123456789/0", "0/123456789", " 0/0", "0/0 ", "0/0/0"] {
            let message = format!("invalid input syntax for type pg_lsn: \"{text}\"");
            assert_eq!(refused(read_pg_lsn, text), message);
        }
    }

    #[test]
    fn a_snapshot_is_in_order_and_within_its_bounds() {
        let once = value(read_pg_snapshot, "10:20:10,14");
        assert_eq!(value(read_pg_snapshot, "10:20:10,14,14,"), once);
        // Bounds at a multiple of 2^32, which no server takes, were loaded; within them one may be.
        let far = value(read_pg_snapshot, "4294967295:4294967297:4294967296");
        assert_eq!(far.len(), 4 + 3 * 8);
        for text in [
            "",
            "10:20",
            "0:5:",
            "20:10:",
            "10:20:9",
            "10:20:20",
            "10:20:14,12",
            "1:2:x",
            "4294967296:4294967297:",
            "1:8589934592:",
        ] {
            let message = format!("invalid input syntax for type pg_snapshot: \"{text}\"");
            assert_eq!(refused(read_pg_snapshot, text), message);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(n: u64) {
            let check = |read, write: crate::ScalarWriter, bytes: &[u8]| {
                let mut text = Vec::new();
                write(bytes, &mut text).unwrap();
                value(read, &text) == bytes
            };
            let narrow = (n as u32).to_le_bytes();
            prop_assert!(check(read_oid, written::write_oid, &narrow));
            prop_assert!(check(read_oid_before_16, written::write_oid, &narrow));
            prop_assert!(check(read_xid, written::write_xid, &narrow));
            prop_assert!(check(read_xid_before_16, written::write_xid, &narrow));
            prop_assert!(check(read_xid8, written::write_xid8, &n.to_le_bytes()));
            prop_assert!(check(read_tid, written::write_tid, &n.to_le_bytes()[..6]));
            prop_assert!(check(read_pg_lsn, written::write_pg_lsn, &n.to_le_bytes()));
        }
    }
}
