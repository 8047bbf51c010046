//! `inet` and `cidr`: networks in networks, masks, and addresses as numbers.
//!
//! A payload is the family, the bits of the netmask and the address, the highest byte first; which of both types a value has is
//! not in it.
//!
//! Invariant: a family is IPv4 or IPv6, the netmask not longer than the address; any other payload is damaged.
//!
//! Source: `src/backend/utils/adt/network.c`, `src/include/utils/inet.h`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use arrow::array::ArrayRef;

use super::super::rows::{Given, Held, Outcome, Plain, one, two};
use super::abbreviated::{of_v4, of_v6};
use crate::error::{SqlState, StatementError};

pub(super) fn plain(key: &str) -> Option<Plain> {
    relation(key).or_else(|| part(key)).or_else(|| number(key))
}

/// How one network lies to another.
fn relation(key: &str) -> Option<Plain> {
    Some(match key {
        "network_sub" => |a| both(a, |x, y| Ok(x.bits > y.bits && x.is_in(y))),
        "network_subeq" => |a| both(a, |x, y| Ok(x.is_in(y))),
        "network_sup" => |a| both(a, |x, y| Ok(x.bits < y.bits && y.is_in(x))),
        "network_supeq" => |a| both(a, |x, y| Ok(y.is_in(x))),
        "network_overlap" => |a| both(a, |x, y| Ok(x.is_in(y) || y.is_in(x))),
        // No network_cmp: how far apart two are is up to the C library.
        "network_larger" => |a| both(a, |x, y| Ok(x.unless(y.compare(x).is_ge(), y).payload())),
        "network_smaller" => |a| both(a, |x, y| Ok(x.unless(y.compare(x).is_le(), y).payload())),
        "inet_same_family" => |a| both(a, |x, y| Ok(x.is_v6 == y.is_v6)),
        "inet_merge" => |a| both(a, merged),
        _ => return None,
    })
}

/// Parts of an address, as texts and as addresses.
fn part(key: &str) -> Option<Plain> {
    Some(match key {
        "network_host" => |a| alone(a, |x| x.host()),
        "network_show" => |a| alone(a, |x| Ok(format!("{}/{}", x.host()?, x.bits))),
        "inet_abbrev" => |a| alone(a, Address::text),
        "cidr_abbrev" => |a| alone(a, |x| Ok(x.abbreviated())),
        "network_masklen" => |a| alone(a, |x| Ok(i32::from(x.bits))),
        "network_family" => |a| alone(a, |x| Ok(if x.is_v6 { 6 } else { 4 })),
        "network_network" | "inet_to_cidr" => |a| alone(a, |x| Ok(x.cut(x.bits).payload())),
        "network_broadcast" => {
            |a| alone(a, |x| Ok(Address { number: x.number | x.host_mask(), ..x }.payload()))
        }
        "network_netmask" => |a| alone(a, |x| Ok(x.alone(x.most() ^ x.host_mask()).payload())),
        "network_hostmask" => |a| alone(a, |x| Ok(x.alone(x.host_mask()).payload())),
        "inet_set_masklen" => |a| {
            with_number(a, |x, bits: i32| Ok(Address { bits: x.mask_length(bits)?, ..x }.payload()))
        },
        "cidr_set_masklen" => {
            |a| with_number(a, |x, bits: i32| Ok(x.cut(x.mask_length(bits)?).payload()))
        }
        _ => return None,
    })
}

/// Addresses as numbers.
fn number(key: &str) -> Option<Plain> {
    Some(match key {
        "inetnot" => |a| alone(a, |x| Ok(Address { number: x.number ^ x.most(), ..x }.payload())),
        "inetand" => |a| both(a, |x, y| x.combined(y, "AND", |x, y| x & y)),
        "inetor" => |a| both(a, |x, y| x.combined(y, "OR", |x, y| x | y)),
        "inetpl" => |a| with_number(a, |x, by: i64| x.plus(by)),
        // The least number has no other sign.
        "inetmi_int8" => |a| with_number(a, |x, by: i64| x.plus(by.wrapping_neg())),
        "inetmi" => |a| both(a, difference),
        _ => return None,
    })
}

fn alone<G: Given>(arguments: &[ArrayRef], of: fn(Address) -> Outcome<G>) -> Outcome<ArrayRef> {
    one(arguments, |x: &[u8]| of(Address::read(x)?))
}

fn both<G: Given>(
    arguments: &[ArrayRef],
    of: fn(Address, Address) -> Outcome<G>,
) -> Outcome<ArrayRef> {
    two(arguments, |x: &[u8], y: &[u8]| of(Address::read(x)?, Address::read(y)?))
}

fn with_number<'a, N: Held<'a>>(
    arguments: &'a [ArrayRef],
    of: fn(Address, N) -> Outcome<Vec<u8>>,
) -> Outcome<ArrayRef> {
    two(arguments, |x: &[u8], number: N| of(Address::read(x)?, number))
}

/// `PGSQL_AF_INET` and `PGSQL_AF_INET6`.
const FAMILIES: [u8; 2] = [2, 3];

#[derive(Debug, Clone, Copy, PartialEq)]
struct Address {
    is_v6: bool,
    bits: u8,
    number: u128,
}

#[cold]
fn damaged(payload: &[u8]) -> StatementError {
    let message = format!("a network address of {} bytes is damaged", payload.len());
    StatementError::new(SqlState::DATA_CORRUPTED, message)
}

#[cold]
fn refused(message: String) -> StatementError {
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}

#[cold]
fn out_of_range() -> StatementError {
    StatementError::new(SqlState::NUMERIC_OUT_OF_RANGE, "result is out of range")
}

impl Address {
    fn read(payload: &[u8]) -> Outcome<Self> {
        let (is_v6, bits, number) = match *payload {
            [2, bits @ ..=32, a, b, c, d] => (false, bits, u32::from_be_bytes([a, b, c, d]).into()),
            [3, bits @ ..=128, ref address @ ..] => match <[u8; 16]>::try_from(address) {
                Ok(address) => (true, bits, u128::from_be_bytes(address)),
                Err(_) => return Err(damaged(payload)),
            },
            _ => return Err(damaged(payload)),
        };
        Ok(Self { is_v6, bits, number })
    }

    fn payload(self) -> Vec<u8> {
        let mut out = vec![FAMILIES[usize::from(self.is_v6)], self.bits];
        match self.is_v6 {
            true => out.extend(self.number.to_be_bytes()),
            false => out.extend(self.v4()),
        }
        out
    }

    /// The bytes of an address of IPv4.
    fn v4(self) -> [u8; 4] {
        // The upper part of the number is 0.
        (self.number as u32).to_be_bytes()
    }

    /// How many bits the address has.
    fn width(self) -> u8 {
        if self.is_v6 { 128 } else { 32 }
    }

    /// The highest address.
    fn most(self) -> u128 {
        if self.is_v6 { u128::MAX } else { u32::MAX.into() }
    }

    /// The bits behind the netmask.
    fn host_mask(self) -> u128 {
        self.most().checked_shr(self.bits.into()).unwrap_or(0) // default: no bits are left
    }

    /// The first so many bits.
    fn cut(self, bits: u8) -> Self {
        let cut = Self { bits, ..self };
        Self { number: self.number & !cut.host_mask(), ..cut }
    }

    /// Another address, by itself.
    fn alone(self, number: u128) -> Self {
        Self { number, bits: self.width(), ..self }
    }

    /// True for an address of the network, or a network in it.
    fn is_in(self, network: Self) -> bool {
        self.is_v6 == network.is_v6
            && self.bits >= network.bits
            && self.cut(network.bits).number == network.cut(network.bits).number
    }

    /// The network as far as both have one, then the length of it, then the address.
    fn compare(self, other: Self) -> Ordering {
        let common = self.bits.min(other.bits);
        let families = self.is_v6.cmp(&other.is_v6);
        families
            .then_with(|| self.cut(common).number.cmp(&other.cut(common).number))
            .then_with(|| self.bits.cmp(&other.bits))
            .then_with(|| self.number.cmp(&other.number))
    }

    fn unless(self, is_other: bool, other: Self) -> Self {
        if is_other { other } else { self }
    }

    fn text(self) -> Outcome<String> {
        let mut out = Vec::new();
        pagemill_types::network::write_inet(&self.payload(), &mut out)
            .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    /// Without the netmask.
    fn host(self) -> Outcome<String> {
        self.alone(self.number).text()
    }

    fn abbreviated(self) -> String {
        let network = self.cut(self.bits);
        match self.is_v6 {
            true => of_v6(network.number.to_be_bytes(), self.bits),
            false => of_v4(network.v4(), self.bits),
        }
    }

    /// A length for a netmask, -1 for the whole address.
    fn mask_length(self, bits: i32) -> Outcome<u8> {
        match u8::try_from(bits).ok().filter(|bits| *bits <= self.width()) {
            Some(bits) => Ok(bits),
            None if bits == -1 => Ok(self.width()),
            None => Err(refused(format!("invalid mask length: {bits}"))),
        }
    }

    fn combined(self, other: Self, name: &str, of: fn(u128, u128) -> u128) -> Outcome<Vec<u8>> {
        if self.is_v6 != other.is_v6 {
            return Err(refused(format!("cannot {name} inet values of different sizes")));
        }
        let (number, bits) = (of(self.number, other.number), self.bits.max(other.bits));
        Ok(Self { number, bits, ..self }.payload())
    }

    fn plus(self, by: i64) -> Outcome<Vec<u8>> {
        let found = match by {
            0.. => self.number.checked_add(by.unsigned_abs().into()),
            _ => self.number.checked_sub(by.unsigned_abs().into()),
        };
        let number = found.filter(|number| *number <= self.most()).ok_or_else(out_of_range)?;
        Ok(Self { number, ..self }.payload())
    }
}

fn difference(x: Address, y: Address) -> Outcome<i64> {
    if x.is_v6 != y.is_v6 {
        return Err(refused("cannot subtract inet values of different sizes".to_owned()));
    }
    let size = i128::try_from(x.number.abs_diff(y.number)).map_err(|_| out_of_range())?;
    let found = if x.number < y.number { -size } else { size };
    i64::try_from(found).map_err(|_| out_of_range())
}

/// The smallest network that both are in.
fn merged(x: Address, y: Address) -> Outcome<Vec<u8>> {
    if x.is_v6 != y.is_v6 {
        let message = "cannot merge addresses from different families";
        return Err(refused(message.to_owned()));
    }
    let above = (x.number ^ y.number).leading_zeros() - (128 - u32::from(x.width()));
    let common = u32::from(x.bits.min(y.bits)).min(above);
    // No address has more than 128 bits.
    Ok(x.cut(common as u8).payload())
}

/// Bytes that sort as addresses do: the family, the network, the length of its mask, the address.
///
/// Source: `network_cmp_internal` in `src/backend/utils/adt/network.c`, PostgreSQL 14 to 18.
pub(crate) fn order_key(payload: &[u8]) -> Outcome<Vec<u8>> {
    let address = Address::read(payload)?;
    let network = address.cut(address.bits).payload();
    let (Some((head, network)), Some(own)) = (network.split_first_chunk::<2>(), payload.get(2..))
    else {
        return Err(damaged(payload));
    };
    Ok([&head[..1], network, &head[1..], own].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(address: [u8; 4], bits: u8) -> Address {
        Address { is_v6: false, bits, number: u32::from_be_bytes(address).into() }
    }

    #[test]
    fn networks_are_in_networks() {
        let (host, network) = (v4([10, 1, 2, 3], 32), v4([10, 1, 0, 0], 16));
        assert!(host.is_in(network) && !network.is_in(host) && network.is_in(network));
        assert_eq!(v4([10, 1, 2, 3], 16).cut(16), network);
        assert_eq!(network.host_mask(), 0xFFFF);
        assert_eq!(host.host_mask(), 0);
        assert_eq!(v4([1, 2, 3, 4], 0).cut(0).number, 0);
    }

    #[test]
    fn addresses_are_numbers_with_ends() {
        let address = v4([255, 255, 255, 254], 24);
        assert_eq!(address.plus(1).unwrap(), [2, 24, 255, 255, 255, 255]);
        assert!(address.plus(2).is_err() && address.plus(i64::MIN).is_err());
        assert_eq!(difference(v4([0; 4], 32), v4([0, 0, 1, 0], 32)).unwrap(), -256);
        assert_eq!(
            merged(v4([10, 1, 2, 3], 32), v4([10, 1, 3, 4], 24)).unwrap(),
            [2, 23, 10, 1, 2, 0]
        );
    }

    #[test]
    fn keys_sort_as_addresses_do() {
        let addresses = [
            v4([10, 0, 0, 0], 8),
            v4([10, 0, 0, 1], 8),
            v4([10, 0, 0, 0], 32),
            v4([10, 0, 0, 1], 32),
            v4([11, 0, 0, 0], 8),
            Address { is_v6: true, bits: 0, number: 0 },
        ];
        for pair in addresses.windows(2) {
            let keys = [pair[0], pair[1]].map(|address| order_key(&address.payload()).unwrap());
            assert!(keys[0] < keys[1], "{pair:?}");
            assert!(pair[0].compare(pair[1]).is_lt());
        }
    }

    #[test]
    fn a_damaged_address_is_an_error() {
        for payload in [&[][..], &[2, 33, 1, 2, 3, 4], &[2, 8, 1, 2, 3], &[3, 129], &[4, 0, 0]] {
            assert!(Address::read(payload).is_err(), "{payload:?}");
        }
    }
}
