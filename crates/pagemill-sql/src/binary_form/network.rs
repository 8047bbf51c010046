//! Addresses and strings of bits in binary form.
//!
//! They come in by way of their texts, whose input functions check what they are; what cannot be one is refused before.
//!
//! Source: `network_recv`, `network_send` in `src/backend/utils/adt/network.c`, `varbit_recv`, `varbit_send` in `varbit.c`, PostgreSQL 18.

use std::net::{Ipv4Addr, Ipv6Addr};

use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::wrong;
use crate::error::Result;

/// `PGSQL_AF_INET` and `PGSQL_AF_INET6`.
const FAMILIES: (u8, u8) = (2, 3);

/// Family, bits, whether it is a network, length, address; in a payload without the third and fourth.
pub(super) fn put_address(ty: Oid, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let [family, bits, address @ ..] = payload else { return wrong() };
    let length = if *family == FAMILIES.0 { 4 } else { 16 };
    let Some(address) = address.get(..length) else { return wrong() };
    out.extend([*family, *bits, u8::from(ty == oid::CIDR), length as u8]);
    out.extend_from_slice(address);
    Ok(())
}

/// The text of an address.
pub(super) fn address_text(bytes: &[u8]) -> Result<String> {
    let [family, bits, is_network, length, address @ ..] = bytes else { return wrong() };
    if *is_network > 1 || usize::from(*length) != address.len() {
        return wrong();
    }
    let v4 = <[u8; 4]>::try_from(address).ok().filter(|_| *family == FAMILIES.0 && *bits <= 32);
    let v6 = <[u8; 16]>::try_from(address).ok().filter(|_| *family == FAMILIES.1 && *bits <= 128);
    match (v4, v6) {
        (Some(address), _) => Ok(format!("{}/{bits}", Ipv4Addr::from(address))),
        (_, Some(address)) => Ok(format!("{}/{bits}", Ipv6Addr::from(address))),
        (None, None) => wrong(),
    }
}

/// The number of bits, big-endian, and the bits.
pub(super) fn put_bits(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let Some((length, bits)) = payload.split_first_chunk::<4>() else { return wrong() };
    out.extend(length.iter().rev());
    out.extend_from_slice(bits);
    Ok(())
}

/// The text of a string of bits.
pub(super) fn bits_text(bytes: &[u8]) -> Result<String> {
    let Some((length, bits)) = bytes.split_first_chunk::<4>() else { return wrong() };
    let length = usize::try_from(i32::from_be_bytes(*length)).ok();
    let Some(length) = length.filter(|length| length.div_ceil(8) == bits.len()) else {
        return wrong();
    };
    let mut text: String = bits.iter().map(|byte| format!("{byte:08b}")).collect();
    text.truncate(length);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_bits_come_back() {
        let mut bytes = Vec::new();
        put_address(oid::INET, &[2, 24, 10, 0, 0, 7], &mut bytes).unwrap();
        assert_eq!(bytes, [2, 24, 0, 4, 10, 0, 0, 7]);
        assert_eq!(address_text(&bytes).unwrap(), "10.0.0.7/24");
        let mut bytes = Vec::new();
        put_bits(&[10, 0, 0, 0, 0b1010_1010, 0b1100_0000], &mut bytes).unwrap();
        assert_eq!(bits_text(&bytes).unwrap(), "1010101011");
    }

    #[test]
    fn what_is_none_is_refused() {
        for bytes in [
            &[2, 33, 0, 4, 1, 2, 3, 4][..],
            &[2, 24, 0, 4, 1],
            &[4, 1, 0, 0],
            &[3, 129, 0, 16],
            &[],
        ] {
            assert!(address_text(bytes).is_err(), "{bytes:?}");
        }
        for bytes in [&[0, 0, 0, 9, 1][..], &[255, 255, 255, 255], &[0, 0]] {
            assert!(bits_text(bytes).is_err(), "{bytes:?}");
        }
    }
}
