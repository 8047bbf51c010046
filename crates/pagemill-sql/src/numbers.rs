//! Numbers as PostgreSQL's scanner cuts them: `0x1F`, `0o17`, `0b101`, `1_000`, and those with letters right behind them.
//!
//! Which of them a cluster's version knows is told where they are bound: here a number only becomes one token, with the text
//! that PostgreSQL 18 takes for it. What does not end where one of the parser's tokens does is left as it is.
//!
//! Invariant: a token that is changed covers the same places as the ones that it stands for.
//!
//! Source: `src/backend/parser/scan.l`, `process_integer_literal`; `make_const` in `parse_node.c`, PostgreSQL 14 to 18.

use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

/// A longer number in another base than ten is refused: to write it in digits takes the square of its length.
const LONGEST: usize = 10_000;

/// What a text of a number means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// Digits in base ten, perhaps with a point and an exponent.
    Number(String),
    /// The server's message.
    Invalid(String),
    /// What only an older version reads, or none.
    Unknown,
}

/// Whether the text of a token is none that all versions read as a number.
pub(crate) fn is_odd(text: &str) -> bool {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    exponent.is_empty() || !is_plain(digits) || !is_plain(exponent)
}

/// Reads the text of a token as a version does.
pub(crate) fn read(text: &str, major: u32) -> Read {
    if !is_odd(text) {
        return Read::Number(text.to_owned());
    }
    let scan = scanned(text);
    match (major, scan.kind) {
        // A number, and a name behind it.
        (..=14, _) => Read::Unknown,
        // It cuts this one before the point.
        (15, _) if text.contains('.') && text.contains('_') => Read::Unknown,
        (15, _) | (_, Kind::Junk) => {
            Read::Invalid(format!("trailing junk after numeric literal at or near \"{text}\""))
        }
        (_, Kind::Empty(base)) => {
            Read::Invalid(format!("invalid {base} integer at or near \"{text}\""))
        }
        (_, Kind::Plain) => Read::Number(text.replace('_', "")),
        (_, Kind::Based(base)) if text.len() <= LONGEST => Read::Number(in_tens(text, base)),
        (_, Kind::Based(_)) => Read::Unknown,
    }
}

/// The digits behind `0x` and its kin in base ten.
fn in_tens(text: &str, base: u32) -> String {
    // The lowest first.
    let mut tens: Vec<u8> = vec![0];
    for digit in text.chars().skip(2).filter_map(|c| c.to_digit(base)) {
        let mut carry = digit;
        for ten in &mut tens {
            let sum = u32::from(*ten) * base + carry;
            *ten = u8::try_from(sum % 10).unwrap_or(0); // default: it is below ten
            carry = sum / 10;
        }
        while carry > 0 {
            tens.push(u8::try_from(carry % 10).unwrap_or(0)); // default: as above
            carry /= 10;
        }
    }
    tens.iter().rev().map(|ten| char::from(b'0' + ten)).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Based(u32),
    Junk,
    /// `0x` without a digit, by what it is called.
    Empty(&'static str),
}

#[derive(Debug, Clone, Copy)]
struct Scan {
    /// In bytes.
    len: usize,
    kind: Kind,
}

/// The longest number, or what is taken for one, at the beginning of a text; of two as long the one that stands first here.
fn scanned(text: &str) -> Scan {
    let (len, open) = plain(text);
    let junk = len + name(&text[len..]);
    let found = [
        Some(Scan { len, kind: Kind::Plain }),
        based(text),
        open.map(|len| Scan { len, kind: Kind::Junk }),
        Some(Scan { len: junk, kind: Kind::Junk }),
    ];
    let longer = |a: Scan, b: Scan| if b.len > a.len { b } else { a };
    found.into_iter().flatten().reduce(longer).unwrap_or(Scan { len, kind: Kind::Junk }) // default: there is one
}

/// How long a number in base ten is, and with a sign of an exponent that has no digits.
fn plain(text: &str) -> (usize, Option<usize>) {
    let mut len = digits(text, 10);
    let rest = &text[len..];
    if let Some(part) = rest.strip_prefix('.')
        && !(part.starts_with('.') && len > 0)
    {
        len += 1 + digits(part, 10);
    }
    let mut open = None;
    if let Some(exponent) = text[len..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        match digits(&exponent[sign..], 10) {
            0 => open = (sign > 0).then_some(len + 2),
            count => len += 1 + sign + count,
        }
    }
    (len, open)
}

/// How long digits are, each behind one underscore at most, the first behind none.
fn digits(text: &str, base: u32) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(|byte| char::from(*byte).is_digit(base));
    let mut len = 0;
    loop {
        if is_digit(len) {
            len += 1;
        } else if len > 0 && bytes[len..].first() == Some(&b'_') && is_digit(len + 1) {
            len += 2;
        } else {
            return len;
        }
    }
}

/// A number in another base than ten.
fn based(text: &str) -> Option<Scan> {
    let (base, called) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, "hexadecimal"),
        [b'0', b'o' | b'O', ..] => (8, "octal"),
        [b'0', b'b' | b'B', ..] => (2, "binary"),
        _ => return None,
    };
    let behind = usize::from(text[2..].starts_with('_'));
    Some(match digits(&text[2 + behind..], base) {
        0 => Scan { len: 2 + behind, kind: Kind::Empty(called) },
        count => Scan { len: 2 + behind + count, kind: Kind::Based(base) },
    })
}

/// How long a name is at the beginning of a text.
fn name(text: &str) -> usize {
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    if !text.starts_with(starts) {
        return 0;
    }
    let ends = |c: char| !(starts(c) || c.is_ascii_digit() || c == '$');
    text.find(ends).unwrap_or(text.len())
}

/// The tokens with each such number as one.
pub(crate) fn merged(text: &str, tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let may_be_odd = |pair: &[TokenWithSpan]| {
        let is_number = |token: &Token| matches!(token, Token::Number(..));
        match (&pair[0].token, pair.get(1).map(|next| &next.token)) {
            (Token::HexStringLiteral(_), _) => true,
            (Token::Number(digits, is_long), next) => {
                *is_long
                    || digits.contains('_')
                    || next.is_some_and(|next| is_number(next) || matches!(next, Token::Word(_)))
            }
            _ => false,
        }
    };
    let places: Vec<usize> =
        (0..tokens.len()).filter(|at| may_be_odd(&tokens[*at..tokens.len().min(at + 2)])).collect();
    if places.is_empty() {
        return tokens;
    }
    let lines = Lines::new(text);
    let (mut all, mut upto) = (Vec::with_capacity(tokens.len()), 0);
    for at in places {
        if at < upto {
            continue;
        }
        if let Some((token, end)) = lines.number(&tokens, at) {
            all.extend_from_slice(&tokens[upto..at]);
            all.push(token);
            upto = end;
        }
    }
    all.extend_from_slice(&tokens[upto..]);
    all
}

/// Where the lines of a text begin.
struct Lines<'t> {
    text: &'t str,
    begins: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Self {
        let behind = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, begins: std::iter::once(0).chain(behind).collect() }
    }

    /// The byte of a place.
    fn byte(&self, place: Location) -> Option<usize> {
        let line = usize::try_from(place.line.checked_sub(1)?).ok()?;
        let begin = *self.begins.get(line)?;
        let column = usize::try_from(place.column.checked_sub(1)?).ok()?;
        let mut places = self.text[begin..].char_indices().map(|(at, _)| begin + at);
        places.nth(column).or(Some(self.text.len()))
    }

    /// The number that begins with this token, and the token behind it.
    fn number(&self, tokens: &[TokenWithSpan], at: usize) -> Option<(TokenWithSpan, usize)> {
        let first = &tokens[at];
        let begin = self.byte(first.span.start)?;
        let rest = &self.text[begin..];
        if !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return None;
        }
        let end = begin + scanned(rest).len;
        let mut behind = at;
        while self.byte(tokens.get(behind)?.span.end)? < end {
            behind += 1;
        }
        if self.byte(tokens[behind].span.end)? != end {
            return None;
        }
        let mut token = first.clone();
        token.token = Token::Number(self.text[begin..end].to_owned(), false);
        token.span.end = tokens[behind].span.end;
        Some((token, behind + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Read {
        Read::Number(text.to_owned())
    }

    #[test]
    fn numbers_are_read_as_the_version_does() {
        for (text, expected) in [
            ("1", "1"),
            ("1.5e-3", "1.5e-3"),
            (".5", ".5"),
            ("0x1F", "31"),
            ("0X_1_f", "31"),
            ("0o17", "15"),
            ("0b_101", "5"),
            ("1_000.000_5e0_1", "1000.0005e01"),
            ("0xFFFFFFFFFFFFFFFFFFFFFFFFF", "1267650600228229401496703205375"),
        ] {
            assert_eq!(read(text, 16), number(expected), "{text}");
        }
        assert_eq!(read("0x1F", 14), Read::Unknown);
        let junk = |text: &str| {
            Read::Invalid(format!("trailing junk after numeric literal at or near \"{text}\""))
        };
        assert_eq!(read("0x1F", 15), junk("0x1F"));
        for text in ["123abc", "0x0o", "1_000_", "1_000._5", "100_", "1e", "1.5e+", "0b2", "0xg"] {
            assert_eq!(read(text, 18), junk(text), "{text}");
        }
        let empty = Read::Invalid("invalid octal integer at or near \"0o_\"".to_owned());
        assert_eq!(read("0o_", 18), empty);
    }

    #[test]
    fn a_number_is_as_long_as_the_scanner_has_it() {
        for (text, len) in [
            ("0x1F,", 4),
            ("1..10", 1),
            ("1_000_.5", 6),
            ("1e+ ", 3),
            ("1E'x'", 2),
            ("0b12", 4),
            ("0b1.", 3),
            ("12$1", 2),
            ("1a$b+", 4),
        ] {
            assert_eq!(scanned(text).len, len, "{text}");
        }
    }
}
