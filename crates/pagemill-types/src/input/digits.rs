//! Decimal digits and blanks in text, read eight at a time where there are eight.
//!
//! A 64-bit word of eight digits is checked and put together with a few multiplications; what is
//! left goes four at a time, then one by one. Blanks are those of `isspace` in ASCII, vertical tab
//! and form feed among them.

/// The most digits whose value fits 64 bits, whatever they are.
pub(super) const MAX_DIGITS: usize = 19;

/// What `isspace` calls a blank.
#[inline]
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// The text without blanks in front.
#[inline]
pub(super) fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&b| is_blank(b)).count();
    text.get(blanks..).unwrap_or_default()
}

/// The text without blanks at either end.
#[inline]
pub(super) fn trim_blanks(text: &[u8]) -> &[u8] {
    let text = skip_blanks(text);
    let kept = text.iter().rposition(|&b| !is_blank(b)).map_or(0, |last| last + 1);
    text.get(..kept).unwrap_or_default()
}

/// True when there are only blanks.
#[inline]
pub(super) fn all_blank(text: &[u8]) -> bool {
    text.iter().all(|&b| is_blank(b))
}

/// The byte at a place, or 0 past the end, as a C string has it.
#[inline]
pub(super) fn byte_at(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

/// The digits at the start of the text: how many.
#[inline]
pub(super) fn leading_digits(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

/// The base that an integer's prefix tells where other bases are allowed (from PostgreSQL 16 on),
/// and the length of the prefix.
pub(super) fn base_of(text: &[u8]) -> (u32, usize) {
    match text {
        [b'0', b'x' | b'X', ..] => (16, 2),
        [b'0', b'o' | b'O', ..] => (8, 2),
        [b'0', b'b' | b'B', ..] => (2, 2),
        _ => (10, 0),
    }
}

/// The value of a text of 1 to 19 digits and nothing else.
#[inline]
pub(super) fn whole(text: &[u8]) -> Option<u64> {
    match text.len() {
        8..=16 => eight_to_sixteen(text),
        1..=MAX_DIGITS => append(0, text),
        _ => None,
    }
}

/// 8 to 16 digits: the last eight, and those before them with zeros in front. No branch depends on how many they are, as
/// that changes from one number to the next.
#[inline]
fn eight_to_sixteen(text: &[u8]) -> Option<u64> {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    let (first, last) = (*text.first_chunk::<8>()?, *text.last_chunk::<8>()?);
    // Of the first eight, those that are among the last eight as well are shifted out.
    let zeros = 8 * 16u32.saturating_sub(text.len() as u32);
    let high = u64::from_le_bytes(first).unbounded_shl(zeros) | ZEROS.unbounded_shr(64 - zeros);
    Some(eight_digits(high.to_le_bytes())? * 100_000_000 + eight_digits(last)?)
}

/// `value` with the digits of `text` behind it; they must be so few that it all fits 64 bits.
#[inline]
pub(super) fn append(mut value: u64, text: &[u8]) -> Option<u64> {
    let (eights, rest) = text.as_chunks::<8>();
    for eight in eights {
        value = value.wrapping_mul(100_000_000).wrapping_add(eight_digits(*eight)?);
    }
    let (fours, rest) = rest.as_chunks::<4>();
    for four in fours {
        value = value.wrapping_mul(10_000).wrapping_add(four_digits(*four)?);
    }
    for byte in rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.wrapping_mul(10).wrapping_add(digit.into());
    }
    Some(value)
}

/// Eight digits, the first the highest, unless one of them is none.
#[inline]
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    let word = u64::from_le_bytes(text);
    let high = word & 0xF0F0_F0F0_F0F0_F0F0;
    let carried = word.wrapping_add(0x0606_0606_0606_0606) & 0xF0F0_F0F0_F0F0_F0F0;
    if high != 0x3030_3030_3030_3030 || carried != high {
        return None;
    }
    // Pairs of digits, then pairs of pairs, then both halves.
    let digits = word & 0x0F0F_0F0F_0F0F_0F0F;
    let pairs = digits.wrapping_mul(10 << 8 | 1) >> 8 & 0x00FF_00FF_00FF_00FF;
    let quads = pairs.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_FFFF_0000_FFFF;
    Some(quads.wrapping_mul(10_000 << 32 | 1) >> 32)
}

/// Four digits, as [`eight_digits`].
#[inline]
fn four_digits(text: [u8; 4]) -> Option<u64> {
    let word = u32::from_le_bytes(text);
    let high = word & 0xF0F0_F0F0;
    if high != 0x3030_3030 || word.wrapping_add(0x0606_0606) & 0xF0F0_F0F0 != high {
        return None;
    }
    let pairs = (word & 0x0F0F_0F0F).wrapping_mul(10 << 8 | 1) >> 8 & 0x00FF_00FF;
    Some(u64::from(pairs.wrapping_mul(100 << 16 | 1) >> 16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_number_of_digits_has_its_value() {
        assert_eq!(whole(b""), None);
        assert_eq!(whole(b"0"), Some(0));
        assert_eq!(whole(b"9999999999999999999"), Some(9_999_999_999_999_999_999));
        assert_eq!(whole(b"00000000000000000001"), None);
    }

    #[test]
    fn one_byte_that_is_no_digit_spoils_the_number_wherever_it_stands() {
        for length in 1..=19 {
            for at in 0..length {
                for byte in (0..=255u8).filter(|b| !b.is_ascii_digit()) {
                    let mut text = vec![b'9'; length];
                    text[at] = byte;
                    assert_eq!(whole(&text), None, "{text:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn digits_read_back(n: u64) {
            let text = n.to_string();
            prop_assert_eq!(whole(text.as_bytes()), (text.len() < 20).then_some(n));
        }
    }
}
