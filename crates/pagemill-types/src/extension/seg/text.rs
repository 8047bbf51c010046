//! Segs in text: `1 .. 2`, `~1.0`, `.. 3`, and `5 (+-) 0.3` for `4.7 .. 5.3`.
//!
//! What is read first may be refused before what is behind it is looked at: a number out of range, swapped ends. The vertical tab is a
//! blank, as since PostgreSQL 16. A byte from 0x80 up ends the text, as on servers whose `char` is signed. The sign of the upper end is
//! printed as PostgreSQL 15.20 does; up to 15.18 that of the lower end said whether a `~` is printed there.
//!
//! Invariant: a payload that was made here is one that the server makes from the same text.
//! Source: `contrib/seg/segscan.l`, `contrib/seg/segparse.y` and `seg_out` in `contrib/seg/seg.c`, PostgreSQL 14 to 18.

use pagemill_format::error::Result as FormatResult;

use super::digits::{general, restored, significant_digits};
use super::{End, Seg, UNKNOWN};
use crate::extension::call::CallError;
use crate::input::InputError;
use crate::input::float::read_float4;

/// `seg`: `1 .. 2`.
///
/// # Errors
/// When the payload is cut off.
pub fn write_seg(payload: &[u8], out: &mut Vec<u8>) -> FormatResult<()> {
    let Seg { lower, upper } = Seg::of_payload(payload)?;
    let push = |end: End, out: &mut Vec<u8>| {
        out.extend_from_slice(restored(end.number, end.digits).as_bytes());
    };
    if matches!(lower.sign, b'<' | b'>' | b'~') {
        out.push(lower.sign);
    }
    if lower.number == upper.number && lower.sign == upper.sign {
        push(lower, out);
        return Ok(());
    }
    if lower.sign != UNKNOWN {
        push(lower, out);
        out.push(b' ');
    }
    out.extend_from_slice(b"..");
    if upper.sign != UNKNOWN {
        out.push(b' ');
        if matches!(upper.sign, b'<' | b'>' | b'~') {
            out.push(upper.sign);
        }
        push(upper, out);
    }
    Ok(())
}

/// `seg`, as a [`ScalarReader`](crate::input::ScalarReader).
///
/// # Errors
/// As [`parse`], without state and detail.
pub fn read_seg(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let seg = parse(text)?;
    out.extend_from_slice(&seg.payload());
    Ok(())
}

/// The value that a text says.
///
/// # Errors
/// When the text is no seg, its ends are swapped, or a number is out of range: with state and detail as the server has them.
pub fn parse(text: &[u8]) -> Result<Seg, CallError> {
    let mut scanner = Scanner { rest: text };
    let seg = match scanner.peek() {
        Token::Range => {
            scanner.next();
            let lower = End { number: f32::NEG_INFINITY, digits: 0, sign: UNKNOWN };
            Seg { lower, upper: scanner.end()? }
        }
        _ => {
            let first = scanner.end()?;
            scanner.behind(first)?
        }
    };
    let last = scanner.next();
    match (last.token, last.text) {
        (Token::Nothing, _) | (Token::Other, [0x80..=0xFF]) => Ok(seg),
        _ => Err(unexpected(&last)),
    }
}

/// A number and how far it may be off.
fn around(middle: End, deviation: End) -> Seg {
    let most = middle.digits.max(deviation.digits);
    let end = |number: f32| {
        let digits = significant_digits(general(number).as_bytes()).max(most);
        End { number, digits, sign: 0 }
    };
    Seg {
        lower: end(middle.number - deviation.number),
        upper: end(middle.number + deviation.number),
    }
}

fn between(lower: End, upper: End) -> Result<Seg, CallError> {
    if lower.number > upper.number {
        let (lower, upper) = (general(lower.number), general(upper.number));
        let message = format!("swapped boundaries: {lower} is greater than {upper}");
        return Err(CallError::new("22023", message));
    }
    Ok(Seg { lower, upper })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    Number(&'t [u8]),
    /// `..`, `...`.
    Range,
    /// `(+-)`, `'+-'`.
    PlusMinus,
    /// `<`, `>`, `~`.
    Sign(u8),
    Other,
    Nothing,
}

struct Scanner<'t> {
    rest: &'t [u8],
}

/// A token with its text, and what is behind it.
struct Split<'t> {
    token: Token<'t>,
    text: &'t [u8],
    rest: &'t [u8],
}

impl<'t> Scanner<'t> {
    fn split(&self) -> Split<'t> {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C);
        let blanks = self.rest.iter().take_while(|byte| blank(byte)).count();
        let text = self.rest.get(blanks..).unwrap_or_default();
        let number = number_length(text);
        let (length, kind) = match text {
            [] => (0, Token::Nothing),
            _ if number > 0 => (number, Token::Number(text.get(..number).unwrap_or_default())),
            [b'.', b'.', b'.', ..] => (3, Token::Range),
            [b'.', b'.', ..] => (2, Token::Range),
            [b'(', b'+', b'-', b')', ..] | [b'\'', b'+', b'-', b'\'', ..] => (4, Token::PlusMinus),
            [sign @ (b'<' | b'>' | b'~'), ..] => (1, Token::Sign(*sign)),
            _ => (1, Token::Other),
        };
        let (text, rest) = text.split_at_checked(length).unwrap_or((text, &[]));
        Split { token: kind, text, rest }
    }

    fn peek(&self) -> Token<'t> {
        self.split().token
    }

    fn next(&mut self) -> Split<'t> {
        let split = self.split();
        self.rest = split.rest;
        split
    }
}

impl Scanner<'_> {
    /// A number with or without a sign.
    fn end(&mut self) -> Result<End, CallError> {
        let sign = match self.peek() {
            Token::Sign(sign) => {
                self.next();
                sign
            }
            _ => 0,
        };
        Ok(End { sign, ..self.number()? })
    }

    fn number(&mut self) -> Result<End, CallError> {
        let split = self.next();
        let Token::Number(text) = split.token else { return Err(unexpected(&split)) };
        let mut bytes = Vec::new();
        read_float4(text, -1, &mut bytes)
            .map_err(|error| CallError::new("22003", error.message))?;
        let number = bytes.try_into().map_or(f32::NAN, f32::from_le_bytes);
        Ok(End { number, digits: significant_digits(text), sign: 0 })
    }

    /// What a text says that starts with this end.
    fn behind(&mut self, first: End) -> Result<Seg, CallError> {
        match self.peek() {
            Token::PlusMinus => {
                self.next();
                Ok(around(first, self.number()?))
            }
            Token::Range => {
                self.next();
                match self.peek() {
                    Token::Number(_) | Token::Sign(_) => between(first, self.end()?),
                    _ => {
                        let upper = End { number: f32::INFINITY, digits: 0, sign: UNKNOWN };
                        Ok(Seg { lower: first, upper })
                    }
                }
            }
            _ => Ok(Seg { lower: first, upper: first }),
        }
    }
}

#[cold]
fn unexpected(split: &Split<'_>) -> CallError {
    let detail = match split.token {
        Token::Nothing => "syntax error at end of input".to_owned(),
        _ => format!("syntax error at or near \"{}\"", String::from_utf8_lossy(split.text)),
    };
    CallError { detail: Some(detail), ..CallError::new("42601", "bad seg representation") }
}

/// The length of the number that a text starts with, 0 for none.
fn number_length(text: &[u8]) -> usize {
    let digits = |from: usize| {
        text.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let sign = |at: usize| usize::from(matches!(text.get(at), Some(b'+' | b'-')));
    let whole = sign(0) + digits(sign(0));
    if whole == sign(0) {
        return 0;
    }
    let mantissa = match (text.get(whole), digits(whole + 1)) {
        (Some(b'.'), fraction @ 1..) => whole + 1 + fraction,
        _ => whole,
    };
    let power = mantissa + 1 + sign(mantissa + 1);
    match (text.get(mantissa), digits(power)) {
        (Some(b'e' | b'E'), count @ 1..) => power + count,
        _ => mantissa,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::printed;

    fn read(text: &str) -> String {
        let payload = parse(text.as_bytes()).unwrap().payload();
        printed(write_seg, &payload)
    }

    fn refused(text: &str) -> (&'static str, String, Option<String>) {
        let error = parse(text.as_bytes()).unwrap_err();
        (error.state, error.message, error.detail)
    }

    /// As a PostgreSQL 15 server prints them.
    #[test]
    fn texts_are_read_and_printed() {
        assert_eq!(read("1"), "1");
        assert_eq!(read("1.0"), "1.0");
        assert_eq!(read("1..2"), "1 .. 2");
        assert_eq!(read("1...2e1 "), "1 .. 2e1");
        assert_eq!(read(" <1.50 .. >2"), "<1.50 .. >2");
        assert_eq!(read("1 .."), "1 ..");
        assert_eq!(read(".. 1"), ".. 1");
        assert_eq!(read("5(+-)0.3"), "4.7 .. 5.3");
        assert_eq!(read("5 '+-' 0.300"), "4.70 .. 5.30");
        assert_eq!(read("~1 .. ~2"), "~1 .. ~2");
        assert_eq!(read("~1 .. 2"), "~1 .. 2");
        assert_eq!(read("1 .. ~2"), "1 .. ~2");
        assert_eq!(read("1 .. 1"), "1");
        assert_eq!(read("1e5"), "1e+05");
        assert_eq!(read("1 ..\u{e9} and so on"), "1 ..");
    }

    #[test]
    fn refusals_have_the_servers_words() {
        let syntax =
            |detail: &str| ("42601", "bad seg representation".to_owned(), Some(detail.to_owned()));
        assert_eq!(refused(""), syntax("syntax error at end of input"));
        assert_eq!(refused("1 2.5"), syntax("syntax error at or near \"2.5\""));
        assert_eq!(refused("1."), syntax("syntax error at or near \".\""));
        assert_eq!(refused("<> 1"), syntax("syntax error at or near \">\""));
        let swapped = "swapped boundaries: 2 is greater than 1".to_owned();
        assert_eq!(refused("2 .. 1 x"), ("22023", swapped, None));
        let range = "\"1e50\" is out of range for type real".to_owned();
        assert_eq!(refused("1e50 x"), ("22003", range, None));
    }

    proptest! {
        #[test]
        fn what_was_read_reads_back(text in "[<>]?-?[0-9]{1,5}(\\.[0-9]{1,3})?( \\.\\. ([<>]?[0-9]{1,5}(\\.[0-9]{1,3})?)?)?") {
            if let Ok(seg) = parse(text.as_bytes()) {
                let once = printed(write_seg, &seg.payload());
                prop_assert_eq!(read(&once), once);
            }
        }

        #[test]
        fn any_bytes_are_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..30), text in "[-+<>~.0-9e()' ]{0,16}") {
            let _ = parse(&bytes);
            let _ = parse(text.as_bytes());
            let _ = write_seg(&bytes, &mut Vec::new());
        }
    }
}
