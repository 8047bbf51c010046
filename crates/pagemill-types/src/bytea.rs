//! `bytea`, and the hexadecimal digits that `uuid`, `macaddr` and `macaddr8` share with it.
//!
//! Digits are lower case. Sources: `byteaout` in `src/backend/utils/adt/varlena.c`, `uuid_out` in
//! `uuid.c`, `macaddr_out` in `mac.c`, `macaddr8_out` in `mac8.c`, PostgreSQL 14 to 18.

use pagemill_format::error::Result;

use super::payload::fixed;

/// `bytea`: `\x` and two digits for each byte.
///
/// # Errors
/// None.
pub fn write_bytea(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(b"\\x");
    push_hex(value, out);
    Ok(())
}

/// `bytea` by `bytea_output = escape`: printable characters of ASCII as they are, a backslash twice, three
/// octal digits behind a backslash for every other byte.
pub(super) fn push_escaped(value: &[u8], out: &mut Vec<u8>) {
    out.reserve(value.len());
    for &byte in value {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b' '..=b'~' => out.push(byte),
            _ => {
                let digits = [byte >> 6, byte >> 3 & 7, byte & 7].map(|digit| digit + b'0');
                out.push(b'\\');
                out.extend_from_slice(&digits);
            }
        }
    }
}

/// `uuid`: 32 digits in groups of 8, 4, 4, 4 and 12.
///
/// # Errors
/// When the value is not 16 bytes.
pub fn write_uuid(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let uuid: [u8; 16] = fixed("uuid", value)?;
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = uuid.map(pair);
    let groups: [&[[u8; 2]]; 5] = [&[a, b, c, d], &[e, f], &[g, h], &[i, j], &[k, l, m, n, o, p]];
    out.reserve(36);
    for (i, group) in groups.into_iter().enumerate() {
        if i > 0 {
            out.push(b'-');
        }
        out.extend_from_slice(group.as_flattened());
    }
    Ok(())
}

/// `macaddr`: six bytes with colons between them.
///
/// # Errors
/// When the value is not 6 bytes.
pub fn write_macaddr(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_colon_separated(&fixed::<6>("macaddr", value)?, out);
    Ok(())
}

/// `macaddr8`: eight bytes with colons between them.
///
/// # Errors
/// When the value is not 8 bytes.
pub fn write_macaddr8(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    push_colon_separated(&fixed::<8>("macaddr8", value)?, out);
    Ok(())
}

fn push_colon_separated(bytes: &[u8], out: &mut Vec<u8>) {
    for (i, byte) in bytes.iter().enumerate() {
        if i > 0 {
            out.push(b':');
        }
        out.extend_from_slice(&pair(*byte));
    }
}

/// Appends two digits for each byte. The loop has no branch and no table, so that the compiler
/// turns it into vector code.
fn push_hex(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + 2 * bytes.len(), 0);
    let (places, _) = out[start..].as_chunks_mut::<2>();
    for (place, byte) in places.iter_mut().zip(bytes) {
        *place = pair(*byte);
    }
}

/// The two digits of a byte.
#[inline]
pub(super) fn pair(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|n| n + if n < 10 { b'0' } else { b'a' - 10 })
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    #[test]
    fn bytes_become_lower_case_hexadecimal() {
        assert_eq!(printed(write_bytea, b""), "\\x");
        assert_eq!(printed(write_bytea, &[0, 0x9A, 0xFF]), "\\x009aff");
        let mut escaped = Vec::new();
        push_escaped(b"\0a\\ \x7f\xff", &mut escaped);
        assert_eq!(escaped, br"\000a\\ \177\377");
    }

    #[test]
    fn a_uuid_has_its_hyphens_in_four_places() {
        let uuid: Vec<u8> = (0..16).map(|i| i * 17).collect();
        assert_eq!(printed(write_uuid, &uuid), "00112233-4455-6677-8899-aabbccddeeff");
    }

    #[test]
    fn hardware_addresses_have_colons() {
        assert_eq!(printed(write_macaddr, &[8, 0, 0x2B, 1, 2, 3]), "08:00:2b:01:02:03");
        assert_eq!(
            printed(write_macaddr8, &[8, 0, 0x2B, 0xFF, 0xFE, 1, 2, 3]),
            "08:00:2b:ff:fe:01:02:03"
        );
    }
}
