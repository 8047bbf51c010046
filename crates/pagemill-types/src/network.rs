//! `inet` and `cidr`: a family (2 is IPv4, 3 is IPv6), the bits of the netmask, and an address
//! of 4 or 16 bytes, the highest byte first.
//!
//! Sources: `inet_out` and `cidr_out` in `src/backend/utils/adt/network.c`, `inet_struct` in
//! `src/include/utils/inet.h`, `pg_inet_net_ntop` in `src/port/inet_net_ntop.c`, PostgreSQL 14
//! to 18.

use std::net::IpAddr;
use std::ops::Range;

use pagemill_format::error::{Error, Result};

use super::bytea::pair as hex_pair;
use super::digits::push_integer;

/// `inet`: the address, and the netmask unless it is the whole address.
///
/// # Errors
/// When the family is neither of the two, the netmask too long for it, or the address is not
/// exactly as long as it has to be.
pub fn write_inet(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_address("inet", value, false, out)
}

/// `cidr`: the address and the netmask.
///
/// # Errors
/// As [`write_inet`].
pub fn write_cidr(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_address("cidr", value, true, out)
}

fn push_address(
    structure: &'static str,
    value: &[u8],
    always_mask: bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    let (bits, whole) = match *value {
        [2, bits, a, b, c, d] if bits <= 32 => {
            push_dotted([a, b, c, d], out);
            (bits, 32)
        }
        [3, bits, ref address @ ..] if bits <= 128 => {
            let Ok(address) = address.try_into() else {
                return Err(malformed(structure, value));
            };
            push_v6(address, out);
            (bits, 128)
        }
        _ => return Err(malformed(structure, value)),
    };
    if always_mask || bits != whole {
        out.push(b'/');
        push_integer(bits, out);
    }
    Ok(())
}

/// The address and the bits of the netmask.
pub(super) fn parse(value: &[u8]) -> Result<(IpAddr, u8)> {
    match *value {
        [2, bits, a, b, c, d] if bits <= 32 => Ok((IpAddr::from([a, b, c, d]), bits)),
        [3, bits, ref address @ ..] if bits <= 128 => match <[u8; 16]>::try_from(address) {
            Ok(address) => Ok((IpAddr::from(address), bits)),
            Err(_) => Err(malformed("inet", value)),
        },
        _ => Err(malformed("inet", value)),
    }
}

#[cold]
fn malformed(structure: &'static str, value: &[u8]) -> Error {
    let (family, bits) = (value.first().copied(), value.get(1).copied());
    let length = value.len();
    Error::corrupt(structure, 0, format!("family {family:?}, netmask {bits:?}, {length} bytes"))
}

fn push_dotted(bytes: [u8; 4], out: &mut Vec<u8>) {
    for (i, byte) in bytes.into_iter().enumerate() {
        if i > 0 {
            out.push(b'.');
        }
        push_integer(byte, out);
    }
}

/// Appends eight hexadecimal words, the longest run of zeros as `::`, and the last two words
/// dotted where the address embeds one of IPv4.
fn push_v6(address: [u8; 16], out: &mut Vec<u8>) {
    let (pairs, _) = address.as_chunks::<2>();
    let words: [u16; 8] =
        std::array::from_fn(|i| pairs.get(i).copied().map(u16::from_be_bytes).unwrap_or_default());
    let run = longest_zero_run(&words);
    let dotted = embeds_v4(&words, &run);
    for (i, &word) in words.iter().enumerate() {
        if run.contains(&i) {
            if i == run.start {
                out.push(b':');
            }
            continue;
        }
        if i > 0 {
            out.push(b':');
        }
        if i == 6 && dotted {
            let [.., a, b, c, d] = address;
            push_dotted([a, b, c, d], out);
            return;
        }
        push_word(word, out);
    }
    if run.end == words.len() {
        out.push(b':');
    }
}

/// Appends a word in hexadecimal, without zeros in front.
fn push_word(word: u16, out: &mut Vec<u8>) {
    let digits = word.to_be_bytes().map(hex_pair);
    let zeros = word.leading_zeros() as usize / 4;
    out.extend_from_slice(digits.as_flattened().get(zeros.min(3)..).unwrap_or_default());
}

/// The first of the longest runs of zero words, of two words at least, else an empty range.
fn longest_zero_run(words: &[u16; 8]) -> Range<usize> {
    let mut longest = 0..0;
    let mut start = 0;
    for (i, &word) in words.iter().enumerate() {
        if word != 0 {
            start = i + 1;
        } else if i + 1 - start > longest.len().max(1) {
            longest = start..i + 1;
        }
    }
    longest
}

/// True for `::a.b.c.d`, but not for `::1`, and for `::ffff:a.b.c.d`.
fn embeds_v4(words: &[u16; 8], run: &Range<usize>) -> bool {
    let [.., sixth, _, last] = *words;
    run.start == 0
        && match run.len() {
            5 => sixth == 0xFFFF,
            6 => true,
            7 => last != 1,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    fn v6(words: [u16; 8], bits: u8) -> String {
        let mut value = vec![3, bits];
        value.extend(words.iter().flat_map(|w| w.to_be_bytes()));
        printed(write_inet, &value)
    }

    #[test]
    fn inet_leaves_the_full_netmask_out_and_cidr_does_not() {
        assert_eq!(printed(write_inet, &[2, 32, 10, 0, 0, 255]), "10.0.0.255");
        assert_eq!(printed(write_inet, &[2, 8, 10, 0, 0, 255]), "10.0.0.255/8");
        assert_eq!(printed(write_cidr, &[2, 32, 10, 0, 0, 255]), "10.0.0.255/32");
    }

    #[test]
    fn the_longest_run_of_zeros_shrinks() {
        assert_eq!(v6([0; 8], 128), "::");
        assert_eq!(v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "::1");
        assert_eq!(v6([0x2001, 0xDB8, 0, 0, 1, 0, 0, 1], 64), "2001:db8::1:0:0:1/64");
        assert_eq!(v6([1, 0, 2, 3, 4, 5, 6, 7], 128), "1:0:2:3:4:5:6:7");
        assert_eq!(v6([0xFE80, 0, 0, 0, 0, 0, 0, 0], 10), "fe80::/10");
    }

    #[test]
    fn an_embedded_ipv4_address_is_dotted() {
        assert_eq!(v6([0, 0, 0, 0, 0, 0xFFFF, 0x7F00, 1], 128), "::ffff:127.0.0.1");
        assert_eq!(v6([0, 0, 0, 0, 0, 0, 0x102, 0x304], 128), "::1.2.3.4");
        assert_eq!(v6([0, 0, 0, 0, 0, 0, 0, 5], 128), "::5");
    }

    #[test]
    fn an_address_of_the_wrong_family_or_length_is_corrupt() {
        for value in [&[][..], &[2], &[2, 33, 1, 2, 3, 4], &[2, 8, 1, 2, 3], &[4, 8, 1, 2, 3, 4]] {
            assert!(write_inet(value, &mut Vec::new()).is_err(), "{value:?}");
        }
        assert!(write_inet(&[3; 17], &mut Vec::new()).is_err());
    }
}
