//! Hexadecimal digits to bytes, many at once: what `bytea` and `uuid` are written in.
//!
//! A digit's value is worked out by arithmetic and not looked up, so that a block is decoded by
//! vector instructions, with one test at its end.

/// The value of a digit, whatever its case.
#[inline]
pub(super) fn digit_value(byte: u8) -> Option<u8> {
    let value = digit_or_more(byte);
    (value < 16).then_some(value)
}

/// The value of a digit; at least 16 for any other byte.
#[inline]
fn digit_or_more(byte: u8) -> u8 {
    let decimal = byte.wrapping_sub(b'0');
    let letter = (byte | 0x20).wrapping_sub(b'a');
    let letter = if letter < 6 { letter + 10 } else { 0xFF };
    if decimal < 10 { decimal } else { letter }
}

/// The `N` bytes that `2 × N` digits say, unless one of them is none.
#[inline]
pub(super) fn decode_block<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let (pairs, _) = text.as_chunks::<2>();
    let mut bytes = [0; N];
    let mut words = [0u16; N];
    let mut seen = 0;
    for (word, pair) in words.iter_mut().zip(pairs) {
        let [high, low] = pair.map(digit_or_more);
        *word = u16::from_le_bytes([high, low]);
        seen |= high | low;
    }
    for (byte, word) in bytes.iter_mut().zip(words) {
        *byte = (word << 4 | word >> 8) as u8;
    }
    (seen < 16 && pairs.len() >= N).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_a_digit_or_not() {
        for byte in 0..=255u8 {
            let expected = char::from(byte).to_digit(16).map(|digit| digit as u8);
            assert_eq!(digit_value(byte), expected, "{byte}");
        }
    }

    #[test]
    fn a_block_is_whole_or_nothing() {
        assert_eq!(decode_block::<2>(b"00fF"), Some([0, 0xFF]));
        assert_eq!(decode_block::<2>(b"00f"), None);
        assert_eq!(decode_block::<2>(b"00fg"), None);
    }
}
