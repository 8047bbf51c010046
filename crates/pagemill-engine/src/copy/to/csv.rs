//! COPY's CSV format: quoting.
//!
//! Rules from `CopyAttributeOutCSV` in `src/backend/commands/copyto.c` (PostgreSQL 14 to 18
//! agree): a value is quoted when it is forced to be, when it equals the NULL string, when it
//! contains the delimiter, the quote, a newline or a carriage return, or when it is `\.` in a
//! line of a single column. A zero byte ends a value as it ends a C string. Inside quotes, quote and escape are preceded by the escape. Leading and
//! trailing blanks are no reason to quote.
//!
//! Invariant: quoting in place ([`CsvRules::quote_tail`]) and quoting while copying
//! ([`CsvRules::write`]) give the same bytes.

use memchr::{memchr2, memchr2_iter, memrchr2};

use super::text::until_zero;
use crate::byte_scan::{ByteScan, ByteTest};

/// What older readers take for the end of the data when it stands alone on a line.
const END_OF_DATA: &[u8] = br"\.";

#[derive(Clone, Copy, Debug)]
struct CsvSpecial {
    delimiter: u8,
    quote: u8,
}

impl ByteTest for CsvSpecial {
    #[inline(always)]
    fn is_special(self, byte: u8) -> bool {
        let ends_line = (byte == b'\n') | (byte == b'\r');
        (byte == self.delimiter) | (byte == self.quote) | ends_line | (byte == 0)
    }
}

/// CSV format for one set of option values.
#[derive(Clone, Debug)]
pub(crate) struct CsvRules {
    scan: ByteScan<CsvSpecial>,
    quote: u8,
    escape: u8,
    null: Vec<u8>,
    single_column: bool,
}

impl CsvRules {
    pub(crate) fn new(
        delimiter: u8,
        [quote, escape]: [u8; 2],
        null: Vec<u8>,
        single_column: bool,
    ) -> Self {
        let scan = ByteScan::new(CsvSpecial { delimiter, quote });
        CsvRules { scan, quote, escape, null, single_column }
    }

    /// Appends a value, quoted when it has to be or when `forced`.
    #[inline]
    pub(crate) fn write(&self, bytes: &[u8], forced: bool, out: &mut Vec<u8>) {
        if !(forced || self.needs_quotes(bytes)) {
            return out.extend_from_slice(bytes);
        }
        match until_zero(bytes) {
            whole if whole.len() == bytes.len() => self.write_quoted(bytes, out),
            start => self.write(start, forced, out),
        }
    }

    #[inline]
    fn needs_quotes(&self, bytes: &[u8]) -> bool {
        bytes == self.null.as_slice()
            || (self.single_column && bytes == END_OF_DATA)
            || !self.scan.is_clean(bytes)
    }

    fn write_quoted(&self, bytes: &[u8], out: &mut Vec<u8>) {
        out.reserve(bytes.len() + bytes.len() / 8 + 2);
        out.push(self.quote);
        let mut rest = bytes;
        while let Some(position) = memchr2(self.quote, self.escape, rest) {
            let Some((clean, tail)) = rest.split_at_checked(position) else { break };
            let Some((&special, tail)) = tail.split_first() else { break };
            out.extend_from_slice(clean);
            out.extend_from_slice(&[self.escape, special]);
            rest = tail;
        }
        out.extend_from_slice(rest);
        out.push(self.quote);
    }

    /// Quotes `out[start..]`, which was appended as it is, when it has to be or when `forced`.
    #[inline]
    pub(crate) fn quote_tail(&self, start: usize, forced: bool, out: &mut Vec<u8>) {
        let Some(raw) = out.get(start..) else { return };
        if forced || self.needs_quotes(raw) {
            let whole = until_zero(raw).len();
            if whole < raw.len() {
                out.truncate(start + whole);
                return self.quote_tail(start, forced, out);
            }
            let specials = memchr2_iter(self.quote, self.escape, raw).count();
            self.open_gaps(start, specials, out);
        }
    }

    /// Moves the bytes behind each quote or escape to their place, the last run first.
    fn open_gaps(&self, start: usize, specials: usize, out: &mut Vec<u8>) {
        let mut read = out.len();
        let mut write = read + specials + 1;
        out.resize(write, 0);
        out.push(self.quote);
        for _ in 0..specials {
            let Some(found) = memrchr2(self.quote, self.escape, &out[start..read]) else { break };
            let special = start + found;
            let run = read - special;
            out.copy_within(special..read, write - run);
            write -= run + 1;
            out[write] = self.escape;
            read = special;
        }
        out.copy_within(start..read, start + 1);
        out[start] = self.quote;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules(single_column: bool) -> CsvRules {
        CsvRules::new(b',', [b'"', b'"'], Vec::new(), single_column)
    }

    fn written(rules: &CsvRules, bytes: &[u8], forced: bool) -> Vec<u8> {
        let mut out = Vec::new();
        rules.write(bytes, forced, &mut out);
        out
    }

    /// One field as a CSV reader sees it; None stands for an unquoted empty field.
    fn parsed(bytes: &[u8], quote: u8, escape: u8) -> Option<Vec<u8>> {
        if bytes.first() != Some(&quote) {
            return (!bytes.is_empty()).then(|| bytes.to_vec());
        }
        let mut out = Vec::new();
        let mut rest = bytes[1..].iter().copied().peekable();
        while let Some(byte) = rest.next() {
            let next = rest.peek().copied();
            if byte == escape && (next == Some(quote) || next == Some(escape)) {
                out.extend(rest.next());
            } else if byte == quote {
                assert_eq!(rest.next(), None, "nothing follows the closing quote");
                return Some(out);
            } else {
                out.push(byte);
            }
        }
        panic!("no closing quote in {bytes:?}");
    }

    #[test]
    fn a_value_is_quoted_only_when_it_has_to_be() {
        let rules = rules(false);
        assert_eq!(written(&rules, b" a b ", false), b" a b ");
        assert_eq!(written(&rules, b"a,b", false), b"\"a,b\"");
        assert_eq!(written(&rules, b"a\nb", false), b"\"a\nb\"");
        assert_eq!(written(&rules, b"a\rb", false), b"\"a\rb\"");
        assert_eq!(written(&rules, b"a\tb", false), b"a\tb");
        assert_eq!(written(&rules, b"say \"hi\"", false), b"\"say \"\"hi\"\"\"");
        assert_eq!(written(&rules, b"", false), b"\"\"");
        assert_eq!(written(&rules, b"a", true), b"\"a\"");
    }

    #[test]
    fn the_end_of_data_mark_is_quoted_alone_on_a_line_only() {
        assert_eq!(written(&rules(true), br"\.", false), br#""\.""#);
        assert_eq!(written(&rules(false), br"\.", false), br"\.");
        assert_eq!(written(&rules(true), br"\.b", false), br"\.b");
    }

    #[test]
    fn an_escape_of_its_own_is_doubled_inside_quotes_only() {
        let rules = CsvRules::new(b';', [b'\'', b'\\'], b"NULL".to_vec(), false);
        assert_eq!(written(&rules, br"a\b", false), br"a\b");
        assert_eq!(written(&rules, br"a\b;'c'", false), br"'a\\b;\'c\''");
        assert_eq!(written(&rules, b"", false), b"");
        assert_eq!(written(&rules, b"NULL", false), b"'NULL'");
    }

    proptest! {
        #[test]
        fn a_value_survives_quoting(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x20u8..0x30, Just(b'\\')], 0..300),
            escape in prop::sample::select(b"\"\\'".to_vec()),
            forced: bool,
        ) {
            let rules = CsvRules::new(b',', [b'"', escape], Vec::new(), false);
            let quoted = written(&rules, &bytes, forced);
            prop_assert_eq!(parsed(&quoted, b'"', escape), Some(until_zero(&bytes).to_vec()));
        }

        #[test]
        fn quoting_in_place_gives_the_same_bytes(
            bytes in prop::collection::vec(0x20u8..0x30, 0..100),
            clean in 0usize..100,
            escape in prop::sample::select(b"\"'a".to_vec()),
            forced: bool,
        ) {
            let rules = CsvRules::new(b',', [b'"', escape], Vec::new(), true);
            let mut value = vec![b'x'; clean];
            value.extend_from_slice(&bytes);
            value.extend(std::iter::repeat_n(b'y', clean));
            let mut expected = b"before,".to_vec();
            let mut out = expected.clone();
            rules.write(&value, forced, &mut expected);
            out.extend_from_slice(&value);
            rules.quote_tail(7, forced, &mut out);
            prop_assert_eq!(out, expected);
        }
    }
}
