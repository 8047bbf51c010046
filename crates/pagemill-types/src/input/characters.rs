//! Characters in the server's encoding: how long one is, how many there are.
//!
//! Lengths of types count characters, and messages show whole ones. Text is valid in its encoding;
//! where it is not, a character ends with the text at the latest.
//! Source: the `mblen` functions in `src/common/wchar.c`, `pg_mbstrlen_with_len`, `pg_mbcliplen` and
//! `pg_mbcharcliplen` in `src/backend/utils/mb/mbutils.c`, PostgreSQL 14 to 18.

use std::borrow::Cow;

/// How a server encoding makes characters of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Characters {
    /// Each byte is one: SQL_ASCII, the Latin ones, the Windows ones and their like.
    Single,
    /// UTF8.
    Utf8,
    /// EUC_JP, EUC_CN, EUC_KR, EUC_JIS_2004.
    Euc,
    /// EUC_TW.
    EucTw,
    /// MULE_INTERNAL.
    Mule,
}

impl Characters {
    /// Those of a server encoding, given its number (`pg_database.encoding`).
    pub fn of_encoding(encoding: i32) -> Option<Self> {
        match encoding {
            1 | 2 | 3 | 5 => Some(Self::Euc),
            4 => Some(Self::EucTw),
            6 => Some(Self::Utf8),
            7 => Some(Self::Mule),
            0 | 8..=34 => Some(Self::Single),
            _ => None,
        }
    }

    /// The bytes of the character that starts with `first`.
    pub fn width(self, first: u8) -> usize {
        match self {
            Self::Single => Single::width(first),
            Self::Utf8 => Utf8::width(first),
            Self::Euc => Euc::width(first),
            Self::EucTw => EucTw::width(first),
            Self::Mule => Mule::width(first),
        }
    }

    /// The characters in a text.
    pub fn count(self, text: &[u8]) -> usize {
        match self {
            Self::Single => Single::count(text),
            Self::Utf8 => Utf8::count(text),
            Self::Euc => Euc::count(text),
            Self::EucTw => EucTw::count(text),
            Self::Mule => Mule::count(text),
        }
    }
}

/// A way to make characters of bytes, as a type, so that the functions that count are compiled for
/// each of them.
pub(crate) trait Encoding {
    /// The bytes of the character that starts with `first`.
    fn width(first: u8) -> usize;

    /// The characters in a text.
    #[inline]
    fn count(text: &[u8]) -> usize {
        let (mut at, mut count) = (0, 0);
        while let Some(first) = text.get(at) {
            at += Self::width(*first);
            count += 1;
        }
        count
    }

    /// The bytes of the first `characters` of a text.
    #[inline]
    fn bytes_of(text: &[u8], characters: usize) -> usize {
        let mut at = 0;
        for _ in 0..characters {
            let Some(first) = text.get(at) else { break };
            at += Self::width(*first);
        }
        at.min(text.len())
    }

    /// The text cut to `bytes` at most, and no character cut in two.
    #[inline]
    fn cut(text: &[u8], bytes: usize) -> &[u8] {
        let mut end = 0;
        while let Some(first) = text.get(end) {
            if end + Self::width(*first) > bytes {
                break;
            }
            end += Self::width(*first);
        }
        text.get(..end).unwrap_or(text)
    }

    /// The first character, to be shown in a message.
    #[cold]
    fn first(text: &[u8]) -> Cow<'_, str> {
        String::from_utf8_lossy(text.get(..Self::bytes_of(text, 1)).unwrap_or_default())
    }
}

pub(crate) struct Single;
pub(crate) struct Utf8;
pub(crate) struct Euc;
pub(crate) struct EucTw;
pub(crate) struct Mule;

impl Encoding for Single {
    fn width(_first: u8) -> usize {
        1
    }

    fn count(text: &[u8]) -> usize {
        text.len()
    }
}

impl Encoding for Utf8 {
    #[inline]
    fn width(first: u8) -> usize {
        match first {
            0xC0..0xE0 => 2,
            0xE0..0xF0 => 3,
            0xF0..0xF8 => 4,
            _ => 1,
        }
    }

    /// The bytes that continue no character, which vector instructions count.
    #[inline]
    fn count(text: &[u8]) -> usize {
        text.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
    }
}

/// The single shifts of EUC.
const SS2: u8 = 0x8E;
const SS3: u8 = 0x8F;

impl Encoding for Euc {
    fn width(first: u8) -> usize {
        match first {
            SS3 => 3,
            0x80.. => 2,
            _ => 1,
        }
    }
}

impl Encoding for EucTw {
    fn width(first: u8) -> usize {
        match first {
            SS2 => 4,
            SS3 => 3,
            0x80.. => 2,
            _ => 1,
        }
    }
}

impl Encoding for Mule {
    fn width(first: u8) -> usize {
        match first {
            0x81..=0x8D => 2,
            0x90..=0x9B => 3,
            0x9C | 0x9D => 4,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_server_encoding_has_its_characters() {
        for encoding in 0..=34 {
            assert!(Characters::of_encoding(encoding).is_some(), "{encoding}");
        }
        assert_eq!(Characters::of_encoding(35), None);
        assert_eq!(Characters::of_encoding(-1), None);
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(Utf8::cut("aä€😀".as_bytes(), 5), "aä".as_bytes());
        assert_eq!(Utf8::cut("aä€😀".as_bytes(), 6), "aä€".as_bytes());
        assert_eq!(Euc::cut(b"\xB0\xA1\x8F\xB0\xA1", 4), b"\xB0\xA1");
        assert_eq!(EucTw::count(b"\x8E\xA2\xA1\xA1x\xC4\xE3"), 3);
        assert_eq!(Mule::count(b"\x81\xC0\x92\xB0\xA1a"), 3);
    }

    proptest! {
        #[test]
        fn utf8_counts_as_the_standard_library_counts(text in ".{0,40}", n in 0usize..50) {
            prop_assert_eq!(Utf8::count(text.as_bytes()), text.chars().count());
            let start: String = text.chars().take(n).collect();
            prop_assert_eq!(Utf8::bytes_of(text.as_bytes(), n), start.len());
        }

        #[test]
        fn no_bytes_panic(text in prop::collection::vec(any::<u8>(), 0..20), n in 0usize..25) {
            fn all<E: Encoding>(text: &[u8], n: usize) {
                let _ = (E::count(text), E::bytes_of(text, n), E::cut(text, n), E::first(text));
            }
            all::<Single>(&text, n);
            all::<Utf8>(&text, n);
            all::<Euc>(&text, n);
            all::<EucTw>(&text, n);
            all::<Mule>(&text, n);
        }
    }
}
