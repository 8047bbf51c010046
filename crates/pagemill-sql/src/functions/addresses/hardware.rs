//! `macaddr` and `macaddr8`: bits, the maker's part, and one as the other.
//!
//! Invariant: an address has six or eight bytes; any other payload is damaged.
//!
//! Source: `src/backend/utils/adt/mac.c`, `mac8.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use super::super::rows::{Outcome, Plain, one, two};
use crate::error::{SqlState, StatementError};

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "macaddr_not" => |a| one(a, |x: &[u8]| Ok(address::<6>(x)?.map(|byte| !byte).to_vec())),
        "macaddr_and" => |a| two(a, |x: &[u8], y: &[u8]| both::<6>(x, y, |x, y| x & y)),
        "macaddr_or" => |a| two(a, |x: &[u8], y: &[u8]| both::<6>(x, y, |x, y| x | y)),
        "macaddr_trunc" => |a| one(a, |x: &[u8]| Ok(of_maker(address::<6>(x)?))),
        "macaddr_cmp" => |a| two(a, compare::<6>),
        "macaddr8_not" => |a| one(a, |x: &[u8]| Ok(address::<8>(x)?.map(|byte| !byte).to_vec())),
        "macaddr8_and" => |a| two(a, |x: &[u8], y: &[u8]| both::<8>(x, y, |x, y| x & y)),
        "macaddr8_or" => |a| two(a, |x: &[u8], y: &[u8]| both::<8>(x, y, |x, y| x | y)),
        "macaddr8_trunc" => |a| one(a, |x: &[u8]| Ok(of_maker(address::<8>(x)?))),
        "macaddr8_cmp" => |a| two(a, compare::<8>),
        "macaddr8_set7bit" => |a| one(a, modified),
        "macaddrtomacaddr8" => |a| one(a, lengthened),
        "macaddr8tomacaddr" => |a| one(a, shortened),
        _ => return None,
    })
}

fn address<const N: usize>(payload: &[u8]) -> Outcome<[u8; N]> {
    payload.try_into().map_err(|_| damaged(payload.len()))
}

#[cold]
fn damaged(length: usize) -> StatementError {
    let message = format!("a hardware address of {length} bytes is damaged");
    StatementError::new(SqlState::DATA_CORRUPTED, message)
}

fn both<const N: usize>(x: &[u8], y: &[u8], of: fn(u8, u8) -> u8) -> Outcome<Vec<u8>> {
    let (x, y) = (address::<N>(x)?, address::<N>(y)?);
    Ok(x.iter().zip(y).map(|(x, y)| of(*x, y)).collect())
}

fn compare<const N: usize>(x: &[u8], y: &[u8]) -> Outcome<i32> {
    Ok(match address::<N>(x)?.cmp(&address::<N>(y)?) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    })
}

/// The first three bytes, which tell who made it.
fn of_maker<const N: usize>(mut address: [u8; N]) -> Vec<u8> {
    address.iter_mut().skip(3).for_each(|byte| *byte = 0);
    address.to_vec()
}

/// As the interfaces of IPv6 have it.
fn modified(payload: &[u8]) -> Outcome<Vec<u8>> {
    let [first, rest @ ..] = address::<8>(payload)?;
    Ok([&[first | 2][..], &rest].concat())
}

/// What stands in the middle of the longer form of an address.
const BETWEEN: [u8; 2] = [0xFF, 0xFE];

fn lengthened(payload: &[u8]) -> Outcome<Vec<u8>> {
    let [a, b, c, rest @ ..] = address::<6>(payload)?;
    Ok([&[a, b, c][..], &BETWEEN, &rest].concat())
}

fn shortened(payload: &[u8]) -> Outcome<Vec<u8>> {
    let [a, b, c, d, e, rest @ ..] = address::<8>(payload)?;
    if [d, e] != BETWEEN {
        let message = "macaddr8 data out of range to convert to macaddr";
        let hint = "Only addresses that have FF and FE as values in the 4th and 5th bytes from the \
                    left, for example xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from \
                    macaddr8 to macaddr.";
        let error = StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, message);
        return Err(error.with_hint(hint));
    }
    Ok([&[a, b, c][..], &rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_lengthened_and_shortened() {
        let short = [1, 2, 3, 4, 5, 6];
        let long = lengthened(&short).unwrap();
        assert_eq!(long, [1, 2, 3, 0xFF, 0xFE, 4, 5, 6]);
        assert_eq!(shortened(&long).unwrap(), short);
        assert!(shortened(&[0; 8]).is_err() && shortened(&short).is_err());
        assert_eq!(modified(&long).unwrap()[0], 3);
        assert_eq!(of_maker(short), [1, 2, 3, 0, 0, 0]);
    }
}
