//! The greater and the lesser of OIDs, transactions and TIDs, how vectors of OIDs compare, and `"char"` as an integer, from one and from
//! texts.
//!
//! Source: `oidlarger`, `btoidcmp`, `btoidvectorcmp` in `src/backend/utils/adt/oid.c` and `nbtcompare.c`, `xid.c`, `tid.c`, `char.c`,
//! PostgreSQL 14 to 18.

use std::cmp::Ordering;

use arrow::array::ArrayRef;

use super::integers::out_of_range;
use super::rows::{Outcome, Plain, one, run, two};
use super::{Implementation, KernelCall};

pub(crate) fn find(key: &str) -> Option<Implementation> {
    if plain(key).is_some() {
        return Some(Implementation::Kernel(|call, arguments| run(plain, call, arguments)));
    }
    match key {
        "text_char" => Some(Implementation::Kernel(of_text)),
        _ => None,
    }
}

/// Functions that depend on their arguments alone.
pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "oidlarger" => |a| two(a, |x: u32, y: u32| Ok(x.max(y))),
        "oidsmaller" => |a| two(a, |x: u32, y: u32| Ok(x.min(y))),
        "btoidcmp" => |a| two(a, |x: u32, y: u32| Ok(sign(x.cmp(&y)))),
        "xid8_larger" => |a| two(a, |x: u64, y: u64| Ok(x.max(y))),
        "xid8_smaller" => |a| two(a, |x: u64, y: u64| Ok(x.min(y))),
        "xid8cmp" => |a| two(a, |x: u64, y: u64| Ok(sign(x.cmp(&y)))),
        // The epoch is left out.
        "xid8toxid" => |a| one(a, |x: u64| Ok(x as u32)),
        "tidlarger" => {
            |a| two(a, |x: &[u8], y: &[u8]| Ok(if places(x) >= places(y) { x } else { y }.to_vec()))
        }
        "tidsmaller" => {
            |a| two(a, |x: &[u8], y: &[u8]| Ok(if places(x) <= places(y) { x } else { y }.to_vec()))
        }
        "bttidcmp" => |a| two(a, |x: &[u8], y: &[u8]| Ok(sign(places(x).cmp(&places(y))))),
        "btcharcmp" => |a| two(a, |x: &[u8], y: &[u8]| Ok(i32::from(byte(x)) - i32::from(byte(y)))),
        "oidvectoreq" => |a| vectors(a, Ordering::is_eq),
        "oidvectorne" => |a| vectors(a, Ordering::is_ne),
        "oidvectorlt" => |a| vectors(a, Ordering::is_lt),
        "oidvectorle" => |a| vectors(a, Ordering::is_le),
        "oidvectorgt" => |a| vectors(a, Ordering::is_gt),
        "oidvectorge" => |a| vectors(a, Ordering::is_ge),
        "chartoi4" => |a| one(a, |x: &[u8]| Ok(i32::from(byte(x).cast_signed()))),
        "i4tochar" => |a| {
            one(a, |x: i32| match i8::try_from(x) {
                Ok(found) => Ok(vec![found.cast_unsigned()]),
                Err(_) => Err(out_of_range("\"char\"")),
            })
        },
        _ => return None,
    })
}

fn sign(ordering: Ordering) -> i32 {
    match ordering {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

fn vectors(arguments: &[ArrayRef], of: fn(Ordering) -> bool) -> Outcome<ArrayRef> {
    two(arguments, |x: &[u8], y: &[u8]| Ok(of(vector_order_key(x).cmp(&vector_order_key(y)))))
}

/// Bytes that sort as vectors of OIDs do: how many there are, then each, the highest byte first.
pub(super) fn vector_order_key(payload: &[u8]) -> Vec<u8> {
    /// Bytes of an array's header without the length word, of one dimension.
    const HEADER: usize = 20;
    let numbers = payload.get(HEADER..).unwrap_or_default().as_chunks::<4>().0;
    let mut key = (numbers.len() as u64).to_be_bytes().to_vec();
    key.extend(numbers.iter().flat_map(|number| u32::from_le_bytes(*number).to_be_bytes()));
    key
}

/// The one byte of a `"char"`.
fn byte(payload: &[u8]) -> u8 {
    payload.first().copied().unwrap_or(0) // default: no byte is the zero byte
}

/// The block and the line pointer of a TID, the higher half of the block's number first.
fn places(payload: &[u8]) -> Option<[u16; 3]> {
    let [a, b, c, d, e, f] = *payload.first_chunk::<6>()?;
    Some([[a, b], [c, d], [e, f]].map(u16::from_le_bytes))
}

/// From 15 on a backslash and three octal digits are one byte.
fn of_text(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let has_octal = call.catalog.database().cluster().version().major() >= 15;
    one(arguments, |text: &str| Ok(vec![first_byte(text.as_bytes(), has_octal)]))
}

fn first_byte(text: &[u8], has_octal: bool) -> u8 {
    match *text {
        [b'\\', a @ b'0'..=b'7', b @ b'0'..=b'7', c @ b'0'..=b'7'] if has_octal => {
            // Of the first digit two bits have room.
            (a - b'0') << 6 | (b - b'0') << 3 | (c - b'0')
        }
        [first, ..] => first,
        [] => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_char_is_the_first_byte_or_octal() {
        assert_eq!(first_byte(b"abc", true), b'a');
        assert_eq!(first_byte(b"", true), 0);
        assert_eq!(first_byte(b"\\101", true), b'A');
        assert_eq!(first_byte(b"\\377", true), 0xFF);
        assert_eq!(first_byte(b"\\777", true), 0xFF);
        assert_eq!(first_byte(b"\\101", false), b'\\');
    }

    #[test]
    fn tids_sort_by_block_and_line_pointer() {
        assert!(places(&[0, 0, 1, 0, 9, 0]) < places(&[0, 0, 2, 0, 1, 0]));
        assert!(places(&[0, 0, 255, 255, 1, 0]) < places(&[1, 0, 0, 0, 1, 0]));
    }
}
