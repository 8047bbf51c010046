//! CRC-32 and CRC-32C.
//!
//! Both go over the bits of a byte from the lowest on; they differ in the polynomial.
//!
//! Source: `crc32_bytea`, `crc32c_bytea` in `src/backend/utils/adt/varlena.c`, PostgreSQL 18; ISO 3309, RFC 3720.

/// The remainders of single bytes.
const fn remainders(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let (mut rest, mut bit) = (byte as u32, 0);
        while bit < 8 {
            rest = rest >> 1 ^ if rest & 1 == 1 { polynomial } else { 0 };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
}

const ISO: [u32; 256] = remainders(0xEDB8_8320);
const CASTAGNOLI: [u32; 256] = remainders(0x82F6_3B78);

fn checksum(table: &[u32; 256], bytes: &[u8]) -> u32 {
    let step = |rest: u32, byte: &u8| rest >> 8 ^ table[usize::from(rest as u8 ^ byte)];
    !bytes.iter().fold(u32::MAX, step)
}

pub(super) fn crc32(bytes: &[u8]) -> u32 {
    checksum(&ISO, bytes)
}

pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    checksum(&CASTAGNOLI, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standards() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!((crc32(b""), crc32c(b"")), (0, 0));
    }
}
