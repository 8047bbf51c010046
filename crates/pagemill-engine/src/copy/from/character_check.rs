//! Which bytes are characters of a server encoding.
//!
//! Every server encoding keeps ASCII bytes to themselves: what is checked here are the sequences
//! that start with a byte from 0x80 on. A zero byte is never text. Rules from the `verifychar` and
//! `mblen` functions of `src/common/wchar.c` (PostgreSQL 14 to 18).

use memchr::memchr;

/// How the bytes of an encoding are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CharacterCheck {
    /// UTF8.
    Utf8,
    /// Single-byte encodings and SQL_ASCII: everything but a zero byte.
    NoZero,
    /// EUC_JP and EUC_JIS_2004.
    EucJp,
    /// EUC_KR and EUC_CN.
    EucKr,
    /// EUC_TW.
    EucTw,
    /// MULE_INTERNAL.
    Mule,
}

/// Second and further bytes of most EUC sequences.
const EUC_BYTES: std::ops::RangeInclusive<u8> = 0xa1..=0xfe;

impl CharacterCheck {
    /// That of the encoding with this name.
    pub(super) fn of(encoding: &str) -> Self {
        match encoding {
            "UTF8" => Self::Utf8,
            "EUC_JP" | "EUC_JIS_2004" => Self::EucJp,
            "EUC_KR" | "EUC_CN" => Self::EucKr,
            "EUC_TW" => Self::EucTw,
            "MULE_INTERNAL" => Self::Mule,
            _ => Self::NoZero,
        }
    }

    /// True when each byte is a character.
    pub(super) fn is_single_byte(self) -> bool {
        self == Self::NoZero
    }

    /// How many bytes at the beginning are whole, valid characters.
    pub(super) fn valid_prefix(self, bytes: &[u8]) -> usize {
        let text = match memchr(0, bytes).and_then(|zero| bytes.get(..zero)) {
            Some(before) => before,
            None => bytes,
        };
        match self {
            Self::NoZero => text.len(),
            Self::Utf8 if simdutf8::basic::from_utf8(text).is_ok() => text.len(),
            Self::Utf8 => match simdutf8::compat::from_utf8(text) {
                Ok(_) => text.len(),
                Err(error) => error.valid_up_to(),
            },
            _ if text.is_ascii() => text.len(),
            _ => self.valid_sequences(text),
        }
    }

    fn valid_sequences(self, text: &[u8]) -> usize {
        let mut valid = 0;
        while let Some(&first) = text.get(valid) {
            let length = self.length(first);
            match text.get(valid..valid + length) {
                Some(sequence) if first < 0x80 || self.is_character(sequence) => valid += length,
                _ => break,
            }
        }
        valid
    }

    /// How many bytes a character takes that starts with this byte.
    pub(super) fn length(self, first: u8) -> usize {
        match (self, first) {
            (Self::NoZero, _) | (_, ..=0x7f) => 1,
            (Self::Utf8, 0xc0..=0xdf) => 2,
            (Self::Utf8, 0xe0..=0xef) => 3,
            (Self::Utf8, 0xf0..=0xf7) => 4,
            (Self::Utf8, _) => 1,
            (Self::EucJp, 0x8f) => 3,
            (Self::EucTw, 0x8e) => 4,
            (Self::EucTw, 0x8f) => 3,
            (Self::EucJp | Self::EucKr | Self::EucTw, _) => 2,
            (Self::Mule, 0x81..=0x8d) => 2,
            (Self::Mule, 0x90..=0x9b) => 3,
            (Self::Mule, 0x9c | 0x9d) => 4,
            (Self::Mule, _) => 1,
        }
    }

    /// Whether a sequence of the right length, which is no ASCII character, is well-formed.
    fn is_character(self, sequence: &[u8]) -> bool {
        let euc = |bytes: &[u8]| bytes.iter().all(|byte| EUC_BYTES.contains(byte));
        match (self, sequence) {
            (Self::EucJp, &[0x8e, kana]) => (0xa1..=0xdf).contains(&kana),
            (Self::EucJp, [0x8f, rest @ ..]) => euc(rest),
            (Self::EucJp | Self::EucKr, both) => euc(both),
            (Self::EucTw, [0x8e, plane, rest @ ..]) => (0xa1..=0xa7).contains(plane) && euc(rest),
            (Self::EucTw, [0x8f, ..]) => false,
            (Self::EucTw, [_, rest @ ..]) => euc(rest),
            (Self::Mule, [_, rest @ ..]) => rest.iter().all(|&byte| byte >= 0x80),
            _ => true,
        }
    }

    /// The longest part of at most `most` bytes at the beginning that breaks no character in two.
    pub(super) fn clipped(self, text: &[u8], most: usize) -> &[u8] {
        let mut end = 0;
        while let Some(&first) = text.get(end) {
            let next = end + self.length(first);
            if next > most {
                break;
            }
            end = next;
        }
        text.get(..end).unwrap_or(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_encoding_takes_its_own_sequences() {
        let valid = |encoding, bytes| CharacterCheck::of(encoding).valid_prefix(bytes);
        assert_eq!(valid("UTF8", "zażółć€".as_bytes()), 13);
        assert_eq!(valid("UTF8", b"ab\xed\xa0\x80"), 2);
        assert_eq!(valid("UTF8", b"ab\0c"), 2);
        assert_eq!(valid("LATIN1", b"ab\xff\0c"), 3);
        assert_eq!(valid("EUC_JP", b"\x8e\xb1\x8f\xa1\xa1\xa4\xa2a"), 8);
        assert_eq!(valid("EUC_JP", b"\x8e\xe1"), 0);
        assert_eq!(valid("EUC_KR", b"a\xb0\xa1\xb0"), 3);
        assert_eq!(valid("EUC_TW", b"\x8e\xa2\xa1\xa1\x8f\xa1\xa1"), 4);
        assert_eq!(valid("EUC_TW", b"\x80\xa1"), 2);
        assert_eq!(valid("MULE_INTERNAL", b"\x81\xa1\x92\xb0\xa1\x9c\x80\x80\x80"), 9);
        assert_eq!(valid("MULE_INTERNAL", b"\x81a"), 0);
    }

    #[test]
    fn text_is_clipped_between_characters() {
        let text = "aé€".as_bytes();
        let clipped = |most| CharacterCheck::Utf8.clipped(text, most).len();
        assert_eq!([clipped(0), clipped(2), clipped(3), clipped(5), clipped(6)], [0, 1, 3, 3, 6]);
        assert_eq!(CharacterCheck::NoZero.clipped(text, 2).len(), 2);
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_valid_prefix_and_no_longer_one(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            for encoding in ["UTF8", "LATIN1", "EUC_JP", "EUC_KR", "EUC_TW", "MULE_INTERNAL"] {
                let check = CharacterCheck::of(encoding);
                let valid = check.valid_prefix(&bytes);
                prop_assert_eq!(check.valid_prefix(&bytes[..valid]), valid);
                prop_assert!(check.clipped(&bytes, 10).len() <= 10);
                if check == CharacterCheck::Utf8 && !bytes.contains(&0) {
                    let expected = match std::str::from_utf8(&bytes) {
                        Ok(text) => text.len(),
                        Err(error) => error.valid_up_to(),
                    };
                    prop_assert_eq!(valid, expected);
                }
            }
        }
    }
}
