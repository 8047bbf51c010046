//! Numbers in `jsonpath` texts, as far as they reach.
//!
//! Source: `src/backend/utils/adt/jsonpath_scan.l`, PostgreSQL 14 to 18.

use pagemill_format::ids::PgVersion;

use super::lexer::is_other;

/// What a text begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    Integer,
    Number,
    /// Something like a number, and what the server says about it.
    Refused(&'static str),
}

/// The number that a text begins with, and its bytes.
pub(super) fn number_match(text: &[u8], version: PgVersion) -> Option<(Match, usize)> {
    let scan = Scan { text, separators: version >= PgVersion::V16 };
    if version < PgVersion::V15 {
        return scan.old_number();
    }
    let based = if scan.separators { scan.based_integer() } else { None };
    let (found, len) = based.or_else(|| scan.number())?;
    // One more byte that names are made of is junk.
    let junk = text.get(len).is_some_and(|byte| is_other(*byte));
    match found {
        Match::Refused(_) => Some((found, len)),
        _ if junk && based.is_none() => {
            Some((Match::Refused("trailing junk after numeric literal"), len + 1))
        }
        _ => Some((found, len)),
    }
}

struct Scan<'a> {
    text: &'a [u8],
    /// Whether single underscores may stand between digits.
    separators: bool,
}

impl Scan<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    /// How many bytes of digits there are from `at` on.
    fn digits(&self, at: usize, is_digit: fn(&u8) -> bool) -> usize {
        let mut end = at;
        loop {
            let separated = self.separators && end > at && self.byte(end) == Some(b'_');
            let next = end + usize::from(separated);
            match self.text.get(next) {
                Some(byte) if is_digit(byte) => end = next + 1,
                _ => return end - at,
            }
        }
    }

    fn decimal_digits(&self, at: usize) -> usize {
        self.digits(at, u8::is_ascii_digit)
    }

    /// A decimal integer: no zeros before other digits.
    fn integer(&self) -> usize {
        match self.byte(0) {
            Some(b'0') => 1,
            Some(b'1'..=b'9') => self.decimal_digits(0),
            _ => 0,
        }
    }

    /// An integer in base 16, 8 or 2.
    fn based_integer(&self) -> Option<(Match, usize)> {
        let is_digit: fn(&u8) -> bool = match (self.byte(0)?, self.byte(1)?) {
            (b'0', b'x' | b'X') => u8::is_ascii_hexdigit,
            (b'0', b'o' | b'O') => |byte| matches!(byte, b'0'..=b'7'),
            (b'0', b'b' | b'B') => |byte| matches!(byte, b'0' | b'1'),
            _ => return None,
        };
        match self.digits(2, is_digit) {
            0 => None,
            digits => Some((Match::Integer, 2 + digits)),
        }
    }

    fn number(&self) -> Option<(Match, usize)> {
        let integer = self.integer();
        let (mut found, mut len) = (Match::Integer, integer);
        if self.byte(len) == Some(b'.') {
            let fraction = self.decimal_digits(len + 1);
            if integer + fraction > 0 {
                (found, len) = (Match::Number, len + 1 + fraction);
            }
        }
        if len == 0 {
            return None;
        }
        if !matches!(self.byte(len), Some(b'e' | b'E')) {
            return Some((found, len));
        }
        let sign = usize::from(matches!(self.byte(len + 1), Some(b'+' | b'-')));
        match self.decimal_digits(len + 1 + sign) {
            0 if sign > 0 => Some((Match::Refused("invalid numeric literal"), len + 2)),
            0 => Some((found, len)),
            digits => Some((Match::Number, len + 1 + sign + digits)),
        }
    }

    /// A number as 14 has it: with digits on both sides of the point, and whatever behind it.
    fn old_number(&self) -> Option<(Match, usize)> {
        let integer = self.integer();
        if integer == 0 {
            return None;
        }
        let (mut found, mut len) = (Match::Integer, integer);
        if self.byte(len) == Some(b'.') && self.decimal_digits(len + 1) > 0 {
            (found, len) = (Match::Number, len + 1 + self.decimal_digits(len + 1));
        }
        if !matches!(self.byte(len), Some(b'e' | b'E')) {
            return Some((found, len));
        }
        let sign = usize::from(matches!(self.byte(len + 1), Some(b'+' | b'-')));
        match self.decimal_digits(len + 1 + sign) {
            0 => Some((Match::Refused("invalid floating point number"), len + 1 + sign)),
            digits => Some((Match::Number, len + 1 + sign + digits)),
        }
    }
}
