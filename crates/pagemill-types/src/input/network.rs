//! The input of `inet` and `cidr`.
//!
//! An IPv4 address of an `inet` may lack octets if a netmask follows, and one of a `cidr` may also
//! be hexadecimal or leave its netmask to the class of the network. A colon makes it IPv6, which is
//! read the same way for both; a `cidr` has no bits right of its netmask.
//! Sources: `network_in` in `src/backend/utils/adt/network.c` and `pg_inet_net_pton` in
//! `inet_net_pton.c`, PostgreSQL 14 to 18.

use super::InputError;
use super::digits::byte_at;
use super::hexadecimal::digit_value;

const FAMILY_IPV4: u8 = 2;
const FAMILY_IPV6: u8 = 3;

/// `inet`: a host's address, with the netmask of its network.
///
/// # Errors
/// When the text is none.
pub fn read_inet(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let syntax = || InputError::syntax("inet", text);
    if text.contains(&b':') {
        let (address, bits) = parse_ipv6(text).ok_or_else(syntax)?;
        push(FAMILY_IPV6, bits, &address, out);
    } else {
        let (address, bits) = parse_ipv4_host(text).ok_or_else(syntax)?;
        push(FAMILY_IPV4, bits, &address, out);
    }
    Ok(())
}

/// `cidr`: a network's address.
///
/// # Errors
/// When the text is none, or the address has bits right of the netmask.
pub fn read_cidr(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let syntax = || InputError::syntax("cidr", text);
    let is_network = if text.contains(&b':') {
        let (address, bits) = parse_ipv6(text).ok_or_else(syntax)?;
        push(FAMILY_IPV6, bits, &address, out);
        u128::from_be_bytes(address).checked_shl(bits.into()).unwrap_or(0) == 0
    } else {
        let (address, bits) = parse_ipv4_network(text).ok_or_else(syntax)?;
        push(FAMILY_IPV4, bits, &address, out);
        u32::from_be_bytes(address).checked_shl(bits.into()).unwrap_or(0) == 0
    };
    if !is_network {
        let text = String::from_utf8_lossy(text);
        return Err(InputError::new(format!("invalid cidr value: \"{text}\"")));
    }
    Ok(())
}

fn push(family: u8, bits: u8, address: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&[family, bits]);
    out.extend_from_slice(address);
}

/// A number at the start of the text, if it is no more than `limit`, and its length.
fn number(text: &[u8], limit: u32) -> Option<(u8, usize)> {
    let mut value = 0;
    let mut length = 0;
    while byte_at(text, length).is_ascii_digit() {
        value = value * 10 + u32::from(byte_at(text, length) - b'0');
        if value > limit {
            return None;
        }
        length += 1;
    }
    (length > 0).then_some((value as u8, length))
}

/// Octets with points between them.
struct Dotted {
    octets: [u8; 4],
    count: usize,
    /// Bytes read; a point behind the last octet is read too.
    length: usize,
    ends_in_point: bool,
}

fn dotted(text: &[u8]) -> Option<Dotted> {
    let mut found = Dotted { octets: [0; 4], count: 0, length: 0, ends_in_point: false };
    loop {
        let rest = text.get(found.length..).unwrap_or_default();
        if !byte_at(rest, 0).is_ascii_digit() {
            return Some(found);
        }
        let (octet, length) = number(rest, 255)?;
        *found.octets.get_mut(found.count)? = octet;
        found.count += 1;
        found.length += length;
        found.ends_in_point = byte_at(rest, length) == b'.';
        if !found.ends_in_point {
            return Some(found);
        }
        found.length += 1;
    }
}

/// The netmask behind an address of IPv4, to the end of the text; `Some(None)` when there is none.
fn ipv4_mask(text: &[u8]) -> Option<Option<u8>> {
    match text {
        [] => Some(None),
        [b'/', digits @ ..] => {
            let (bits, length) = number(digits, 32)?;
            (length == digits.len()).then_some(Some(bits))
        }
        _ => None,
    }
}

/// An address of IPv4 for `inet`. As for the server, a point may follow the last octet.
fn parse_ipv4_host(text: &[u8]) -> Option<([u8; 4], u8)> {
    let found = dotted(text)?;
    let mask = ipv4_mask(text.get(found.length..)?)?;
    let bits = match (mask, found.count) {
        (None, 4) => 32,
        (Some(bits), 1..) if usize::from(bits / 8) <= found.count => bits,
        _ => return None,
    };
    Some((found.octets, bits))
}

/// An address of IPv4 for `cidr`.
fn parse_ipv4_network(text: &[u8]) -> Option<([u8; 4], u8)> {
    let (octets, count, rest) = match text {
        [b'0', b'x' | b'X', digits @ ..] if byte_at(digits, 0).is_ascii_hexdigit() => {
            hexadecimal_octets(digits)?
        }
        _ => {
            let found = dotted(text)?;
            if found.ends_in_point {
                return None;
            }
            (found.octets, found.count, text.get(found.length..)?)
        }
    };
    if count == 0 {
        return None;
    }
    let bits = ipv4_mask(rest)?.unwrap_or_else(|| class_bits(octets, count));
    Some((octets, bits))
}

/// The octets that hexadecimal digits say, how many they are, and what is behind them.
fn hexadecimal_octets(text: &[u8]) -> Option<([u8; 4], usize, &[u8])> {
    let length = text.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let (digits, rest) = text.split_at_checked(length)?;
    let mut octets = [0; 4];
    for (pair, at) in digits.chunks(2).zip(0..) {
        // A digit that is left over is the high one.
        let high = pair.first().and_then(|&b| digit_value(b))?;
        let low = pair.get(1).map_or(Some(0), |&b| digit_value(b))?;
        *octets.get_mut(at)? = high << 4 | low;
    }
    Some((octets, digits.len().div_ceil(2), rest))
}

/// The netmask of a network that has none: by its class, but no shorter than what is given.
fn class_bits(octets: [u8; 4], count: usize) -> u8 {
    let [first, ..] = octets;
    let class = match first {
        240.. => 32,
        224.. => 8,
        192.. => 24,
        128.. => 16,
        _ => 8,
    };
    let bits = class.max(8 * count as u8);
    if bits == 8 && first == 224 { 4 } else { bits }
}

/// A number without zeros in front, to the end of the text.
fn strict_number(text: &[u8], limit: u32) -> Option<u8> {
    let (value, length) = number(text, limit)?;
    let is_strict = length == 1 || byte_at(text, 0) != b'0';
    (is_strict && length == text.len()).then_some(value)
}

/// An address of IPv6, with a netmask or without.
fn parse_ipv6(text: &[u8]) -> Option<([u8; 16], u8)> {
    let (address, mask) = match text.iter().position(|&b| b == b'/') {
        Some(at) => (text.get(..at)?, Some(text.get(at + 1..)?)),
        None => (text, None),
    };
    let bits = match mask {
        Some(mask) => strict_number(mask, 128)?,
        None => 128,
    };
    let mut parts = Ipv6::default();
    parts.read(address, mask.is_some())?;
    Some((parts.assembled()?, bits))
}

/// An address of IPv6 while it is read: what is left and right of a double colon, side by side.
#[derive(Default)]
struct Ipv6 {
    address: [u8; 16],
    length: usize,
    /// Where the double colon stands.
    gap: Option<usize>,
}

impl Ipv6 {
    /// Reads an address. In front of a netmask the server lets a single colon pass, and an empty
    /// last octet.
    fn read(&mut self, text: &[u8], masked: bool) -> Option<()> {
        let mut at = match text {
            [b':', b':', ..] => 1,
            [b':', ..] => return None,
            _ => 0,
        };
        loop {
            let rest = text.get(at..)?;
            let digits = rest.iter().take_while(|b| b.is_ascii_hexdigit()).count();
            match (digits, byte_at(rest, digits)) {
                // Nothing, at the end or before the second colon of two.
                (0, 0) => return Some(()),
                (0, b':') if self.gap.is_none() => self.gap = Some(self.length),
                (0..=4, b'.') => return self.push_dotted(rest, masked),
                (1..=4, 0) => return self.push_word(rest),
                // A single colon at the end is one too many.
                (1..=4, b':') if rest.len() > digits + 1 || masked => {
                    self.push_word(rest.get(..digits)?)?;
                }
                _ => return None,
            }
            at += digits + 1;
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.length + bytes.len();
        self.address.get_mut(self.length..end)?.copy_from_slice(bytes);
        self.length = end;
        Some(())
    }

    fn push_word(&mut self, digits: &[u8]) -> Option<()> {
        let word = digits
            .iter()
            .fold(0, |word, digit| word << 4 | u16::from(digit_value(*digit).unwrap_or_default()));
        self.push(&word.to_be_bytes())
    }

    /// An address of IPv4 at the end. As for the server, octets may be empty and the last ones
    /// missing, and are zero then.
    fn push_dotted(&mut self, text: &[u8], masked: bool) -> Option<()> {
        if text.ends_with(b".") && !masked {
            return None;
        }
        let mut octets = [0; 4];
        for (part, at) in text.split(|&b| b == b'.').zip(0..) {
            let octet = if part.is_empty() { 0 } else { strict_number(part, 255)? };
            *octets.get_mut(at)? = octet;
        }
        self.push(&octets)
    }

    /// The address with zeros where the double colon stands, which must stand for some.
    fn assembled(&self) -> Option<[u8; 16]> {
        let Some(gap) = self.gap else {
            return (self.length == self.address.len()).then_some(self.address);
        };
        if self.length == self.address.len() {
            return None;
        }
        let mut address = [0; 16];
        address.get_mut(..gap)?.copy_from_slice(self.address.get(..gap)?);
        let right = self.address.get(gap..self.length)?;
        address.get_mut(16 - right.len()..)?.copy_from_slice(right);
        Some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{refused, value};
    use super::*;
    use crate::network as written;
    use proptest::prelude::*;

    fn inet(text: &str) -> String {
        let mut out = Vec::new();
        written::write_inet(&value(read_inet, text), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn cidr(text: &str) -> String {
        let mut out = Vec::new();
        written::write_cidr(&value(read_cidr, text), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_host_may_lack_octets_if_a_netmask_follows() {
        assert_eq!(value(read_inet, "10.0.0.255/8"), [2, 8, 10, 0, 0, 255]);
        assert_eq!(inet("10.1/12"), "10.1.0.0/12");
        assert_eq!(inet("10./8"), "10.0.0.0/8");
        assert_eq!(inet("1.2.3.4."), "1.2.3.4");
        assert_eq!(inet("1.2.3.4/032"), "1.2.3.4");
        for text in ["", "1", "1.2.3", "1.2.3.4.5", "1.2.3.4/33", "1.2.3.256", " 1.2.3.4", "10/16"]
        {
            let message = format!("invalid input syntax for type inet: \"{text}\"");
            assert_eq!(refused(read_inet, text), message);
        }
    }

    #[test]
    fn a_network_may_leave_its_netmask_to_its_class() {
        assert_eq!(cidr("10"), "10.0.0.0/8");
        assert_eq!(cidr("10.1.2"), "10.1.2.0/24");
        assert_eq!(cidr("128.1"), "128.1.0.0/16");
        assert_eq!(cidr("192.168.1"), "192.168.1.0/24");
        assert_eq!(cidr("224"), "224.0.0.0/4");
        assert_eq!(cidr("240"), "240.0.0.0/32");
        assert_eq!(cidr("0xC0A80/20"), "192.168.0.0/20");
        assert_eq!(refused(read_cidr, "10.1/8"), "invalid cidr value: \"10.1/8\"");
        assert_eq!(refused(read_cidr, "::1/64"), "invalid cidr value: \"::1/64\"");
        for text in ["", "0x", "10.", "10.1.2.3.4", "10/33", "0x1234567890", "1.2.3.4/", "300"] {
            let message = format!("invalid input syntax for type cidr: \"{text}\"");
            assert_eq!(refused(read_cidr, text), message);
        }
    }

    #[test]
    fn ipv6_is_words_with_one_gap() {
        assert_eq!(inet("::"), "::");
        assert_eq!(inet("1::"), "1::");
        assert_eq!(inet("2001:DB8::1/64"), "2001:db8::1/64");
        assert_eq!(inet("1:2:3:4:5:6:7:8"), "1:2:3:4:5:6:7:8");
        assert_eq!(inet("::ffff:1.2.3.4"), "::ffff:1.2.3.4");
        assert_eq!(inet("::1.2/128"), "::1.2.0.0");
        assert_eq!(inet("1:2:3:4:5:6:7:8:/9"), "1:2:3:4:5:6:7:8/9");
        assert_eq!(cidr("ff00::/8"), "ff00::/8");
        for text in [
            ":",
            ":::",
            ":1",
            "1:",
            "1:2",
            "1::2::3",
            "12345::",
            "1:2:3:4:5:6:7:8:9",
            "::1/129",
            "::1/01",
            "::01.2.3.4",
            "::1.2.3.4.5",
            "1:2:3:4:5:6:7:1.2.3.4",
            "::1.2.3.",
            "::g",
            "::1/",
            "::1 ",
        ] {
            let message = format!("invalid input syntax for type inet: \"{text}\"");
            assert_eq!(refused(read_inet, text), message);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(v4: [u8; 4], v6: [u8; 16], zeros: u16, bits in 0u8..=128) {
            let mut v6 = v6;
            for (word, at) in v6.chunks_mut(2).zip(0..) {
                if zeros >> at & 1 == 1 {
                    word.fill(0);
                }
            }
            let v4 = [[2, bits % 33].as_slice(), &v4].concat();
            let v6 = [[3, bits].as_slice(), &v6].concat();
            for address in [v4, v6] {
                let mut text = Vec::new();
                written::write_inet(&address, &mut text).unwrap();
                prop_assert_eq!(value(read_inet, &text), address);
            }
        }
    }
}
