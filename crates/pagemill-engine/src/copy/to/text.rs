//! COPY's text format: backslash escapes.
//!
//! Rules from `CopyAttributeOutText` in `src/backend/commands/copyto.c` (PostgreSQL 14 to 18
//! agree): the six control characters from backspace to carriage return become a backslash and a
//! letter, a backslash or delimiter is preceded by a backslash, every other byte is copied, and a
//! zero byte, which no text should have, ends the value as it ends a C string. A value that reads like the NULL string is not marked; COPY does not mark it either.
//!
//! Invariant: escaping in place ([`TextRules::escape_tail`]) and escaping while copying
//! ([`TextRules::write`]) give the same bytes.

use crate::byte_scan::{ByteScan, ByteTest};

#[derive(Clone, Copy, Debug)]
struct TextSpecial {
    delimiter: u8,
}

impl ByteTest for TextSpecial {
    #[inline(always)]
    fn is_special(self, byte: u8) -> bool {
        // Backspace, tab, newline, vertical tab, form feed and carriage return are neighbours.
        (byte.wrapping_sub(8) < 6) | (byte == b'\\') | (byte == self.delimiter) | (byte == 0)
    }
}

/// Text format for one delimiter.
#[derive(Clone, Debug)]
pub(crate) struct TextRules {
    scan: ByteScan<TextSpecial>,
}

impl TextRules {
    pub(crate) fn new(delimiter: u8) -> Self {
        TextRules { scan: ByteScan::new(TextSpecial { delimiter }) }
    }

    /// Appends a value, escaped.
    #[inline]
    pub(crate) fn write(&self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.scan.is_clean(bytes) {
            out.extend_from_slice(bytes);
        } else {
            self.write_escaped(until_zero(bytes), out);
        }
    }

    fn write_escaped(&self, bytes: &[u8], out: &mut Vec<u8>) {
        out.reserve(bytes.len() + bytes.len() / 8);
        let mut rest = bytes;
        while let Some((clean, tail)) = rest.split_at_checked(self.scan.clean_prefix(rest)) {
            out.extend_from_slice(clean);
            let Some((&special, tail)) = tail.split_first() else { return };
            out.extend_from_slice(&[b'\\', escape_letter(special)]);
            rest = tail;
        }
    }

    /// Escapes `out[start..]`, which was appended as it is.
    #[inline]
    pub(crate) fn escape_tail(&self, start: usize, out: &mut Vec<u8>) {
        let Some(raw) = out.get(start..) else { return };
        if !self.scan.is_clean(raw) {
            let raw = until_zero(raw);
            let specials = self.scan.count(raw);
            out.truncate(start + raw.len());
            self.open_gaps(start, specials, out);
        }
    }

    /// Moves the bytes behind each special byte to their place, the last run first.
    fn open_gaps(&self, start: usize, specials: usize, out: &mut Vec<u8>) {
        let mut read = out.len();
        let mut write = read + specials;
        out.resize(write, 0);
        while read < write {
            let run = self.scan.clean_suffix(&out[start..read]);
            out.copy_within(read - run..read, write - run);
            read -= run + 1;
            write -= run + 2;
            out[write + 1] = escape_letter(out[read]);
            out[write] = b'\\';
        }
    }
}

/// The bytes before the first zero byte.
pub(crate) fn until_zero(bytes: &[u8]) -> &[u8] {
    memchr::memchr(0, bytes).map_or(bytes, |end| &bytes[..end])
}

/// What follows the backslash. A delimiter that is one of the named control characters gets the
/// letter, as every other occurrence of that character does.
fn escape_letter(special: u8) -> u8 {
    match special {
        0x08 => b'b',
        0x09 => b't',
        0x0a => b'n',
        0x0b => b'v',
        0x0c => b'f',
        0x0d => b'r',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(delimiter: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        TextRules::new(delimiter).write(bytes, &mut out);
        out
    }

    /// What COPY FROM makes of a field, reduced to what COPY TO writes.
    fn unescaped(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = bytes.iter();
        while let Some(&byte) = rest.next() {
            let byte = if byte == b'\\' {
                match rest.next().expect("a byte after the backslash") {
                    b'b' => 8,
                    b't' => 9,
                    b'n' => 10,
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => 13,
                    &other => other,
                }
            } else {
                byte
            };
            out.push(byte);
        }
        out
    }

    #[test]
    fn control_characters_become_letters_and_others_stay() {
        assert_eq!(written(b'\t', b"\x08\t\n\x0b\x0c\r"), br"\b\t\n\v\f\r");
        assert_eq!(written(b'\t', b"a\x01\x1f\x7f b"), b"a\x01\x1f\x7f b");
        assert_eq!(written(b'\t', br"c:\dir"), br"c:\\dir");
        assert_eq!(written(b'|', b"a|b\tc"), br"a\|b\tc");
        assert_eq!(written(0x0b, b"a\x0bb"), br"a\vb");
        assert_eq!(written(0x01, b"a\x01b"), b"a\\\x01b");
    }

    /// A function in C can store text that its reader never sees whole; COPY shows what the reader
    /// sees.
    #[test]
    fn a_zero_byte_ends_the_value() {
        assert_eq!(written(b'\t', b"caf\0 \t"), b"caf");
        let mut out = b"x|a\tb\0c".to_vec();
        TextRules::new(b'\t').escape_tail(2, &mut out);
        assert_eq!(out, b"x|a\\tb");
    }

    #[test]
    fn bytes_of_multibyte_characters_are_copied() {
        assert_eq!(written(b'\t', "zażółć €".as_bytes()), "zażółć €".as_bytes());
    }

    proptest! {
        #[test]
        fn a_value_survives_escaping(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            delimiter in prop::sample::select(b"\t|,\x01\x0b~A".to_vec()),
        ) {
            let escaped = written(delimiter, &bytes);
            prop_assert_eq!(unescaped(&escaped), until_zero(&bytes));
            prop_assert!(!escaped.contains(&b'\n'));
        }

        #[test]
        fn escaping_in_place_gives_the_same_bytes(
            bytes in prop::collection::vec(0u8..16, 0..200),
            clean in 0usize..200,
        ) {
            let rules = TextRules::new(b'\t');
            let mut value = vec![b'x'; clean];
            value.extend_from_slice(&bytes);
            value.extend(std::iter::repeat_n(b'y', clean));
            let mut expected = b"before\\".to_vec();
            let mut out = expected.clone();
            rules.write(&value, &mut expected);
            out.extend_from_slice(&value);
            rules.escape_tail(7, &mut out);
            prop_assert_eq!(out, expected);
        }
    }
}
