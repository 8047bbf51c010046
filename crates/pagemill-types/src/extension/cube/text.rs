//! Cubes in text: `(1, 2),(3, 4)`, `(1, 2)` for a point.
//!
//! Read are also `[(1, 2), (3, 4)]`, and a point without parentheses. Blanks are where they like between numbers and signs; the vertical
//! tab is one of them, as since PostgreSQL 16. A text is refused at the first sign that fits nowhere, but a whole value before that sign is
//! looked at first: so does the server's parser. A byte from 0x80 up ends the text, and what follows it is not looked at: on x86 the
//! server's scanner takes it for a negative number, its parser that for the end.
//!
//! Invariant: a value that was read prints, and reads back as the same bytes unless it has a box of equal corners.
//! Source: `contrib/cube/cubescan.l`, `contrib/cube/cubeparse.y` and `cube_out` in `contrib/cube/cube.c`, PostgreSQL 14 to 18.

use pagemill_format::error::Result as FormatResult;

use super::{Cube, MAX_DIMENSIONS};
use crate::extension::call::CallError;
use crate::float::push_float8;
use crate::input::InputError;
use crate::input::float::read_float8;

/// `cube`: `(1, 2),(3, 4)`.
///
/// # Errors
/// When the payload is cut off.
pub fn write_cube(payload: &[u8], out: &mut Vec<u8>) -> FormatResult<()> {
    let cube = Cube::of_payload(payload)?;
    push_corner(cube.sides.iter().map(|side| side.0), out);
    if !cube.has_one_corner() {
        out.push(b',');
        push_corner(cube.sides.iter().map(|side| side.1), out);
    }
    Ok(())
}

fn push_corner(coordinates: impl Iterator<Item = f64>, out: &mut Vec<u8>) {
    out.push(b'(');
    for (number, coordinate) in coordinates.enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        push_float8(coordinate, out);
    }
    out.push(b')');
}

/// `cube`, as a [`ScalarReader`](crate::input::ScalarReader).
///
/// # Errors
/// As [`parse`], without state and detail.
pub fn read_cube(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let cube = parse(text)?;
    out.extend_from_slice(&cube.payload());
    Ok(())
}

/// The value that a text says.
///
/// # Errors
/// When the text is no cube, has too many dimensions, or a number out of range: with state and detail as the server has them.
pub fn parse(text: &[u8]) -> Result<Cube, CallError> {
    let mut scanner = Scanner { rest: text };
    let cube = match scanner.peek() {
        Token::OpenBracket => {
            scanner.next();
            let first = scanner.corner()?;
            scanner.require(Token::Comma)?;
            let second = scanner.corner()?;
            scanner.require(Token::CloseBracket)?;
            between(&first, &second)?
        }
        Token::Open => {
            let first = scanner.corner()?;
            if scanner.peek() == Token::Comma {
                scanner.next();
                between(&first, &scanner.corner()?)?
            } else {
                point(&first)?
            }
        }
        _ => point(&scanner.list()?)?,
    };
    match scanner.next() {
        Token::End | Token::Other([0x80..=0xFF]) => Ok(cube),
        token => Err(unexpected(token)),
    }
}

fn point(coordinates: &[&[u8]]) -> Result<Cube, CallError> {
    check_dimensions(coordinates.len())?;
    Ok(Cube::point(numbers(coordinates)?))
}

fn between(first: &[&[u8]], second: &[&[u8]]) -> Result<Cube, CallError> {
    if first.len() != second.len() {
        let shown = |list: &[&[u8]]| String::from_utf8_lossy(&list.join(&b","[..])).into_owned();
        let (first, second) = (shown(first), shown(second));
        let detail = format!("Different point dimensions in ({first}) and ({second}).");
        return Err(refused(detail));
    }
    check_dimensions(first.len())?;
    Ok(Cube::between(numbers(first)?.into_iter().zip(numbers(second)?).collect()))
}

fn check_dimensions(dimensions: usize) -> Result<(), CallError> {
    if dimensions > MAX_DIMENSIONS {
        let detail = format!("A cube cannot have more than {MAX_DIMENSIONS} dimensions.");
        return Err(refused(detail));
    }
    Ok(())
}

#[cold]
fn refused(detail: String) -> CallError {
    CallError { detail: Some(detail), ..CallError::new("22P02", "invalid input syntax for cube") }
}

fn numbers(texts: &[&[u8]]) -> Result<Vec<f64>, CallError> {
    let number = |text: &&[u8]| {
        let mut bytes = Vec::new();
        read_float8(text, -1, &mut bytes)
            .map_err(|error| CallError::new("22003", error.message))?;
        Ok(bytes.try_into().map_or(f64::NAN, f64::from_le_bytes))
    };
    texts.iter().map(number).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    Number(&'t [u8]),
    Open,
    Close,
    OpenBracket,
    CloseBracket,
    Comma,
    /// What starts no token.
    Other(&'t [u8]),
    End,
}

struct Scanner<'t> {
    rest: &'t [u8],
}

impl<'t> Scanner<'t> {
    /// The next token, and what is behind it.
    fn split(&self) -> (Token<'t>, &'t [u8]) {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C);
        let blanks = self.rest.iter().take_while(|byte| blank(byte)).count();
        let text = self.rest.get(blanks..).unwrap_or_default();
        let length = number_length(text);
        if let Some((number, rest)) = text.split_at_checked(length).filter(|_| length > 0) {
            return (Token::Number(number), rest);
        }
        let Some((one, rest)) = text.split_at_checked(1) else { return (Token::End, text) };
        let token = match one {
            b"(" => Token::Open,
            b")" => Token::Close,
            b"[" => Token::OpenBracket,
            b"]" => Token::CloseBracket,
            b"," => Token::Comma,
            _ => Token::Other(one),
        };
        (token, rest)
    }

    fn peek(&self) -> Token<'t> {
        self.split().0
    }

    fn next(&mut self) -> Token<'t> {
        let (token, rest) = self.split();
        self.rest = rest;
        token
    }

    fn require(&mut self, expected: Token<'_>) -> Result<(), CallError> {
        let token = self.next();
        if token == expected { Ok(()) } else { Err(unexpected(token)) }
    }

    /// Numbers in parentheses, or nothing there.
    fn corner(&mut self) -> Result<Vec<&'t [u8]>, CallError> {
        self.require(Token::Open)?;
        let list = if self.peek() == Token::Close { Vec::new() } else { self.list()? };
        self.require(Token::Close)?;
        Ok(list)
    }

    /// One number or more, with commas between them.
    fn list(&mut self) -> Result<Vec<&'t [u8]>, CallError> {
        let mut list = Vec::new();
        loop {
            match self.next() {
                Token::Number(number) => list.push(number),
                token => return Err(unexpected(token)),
            }
            if self.peek() != Token::Comma {
                return Ok(list);
            }
            self.next();
        }
    }
}

#[cold]
fn unexpected(token: Token<'_>) -> CallError {
    let text = match token {
        Token::Number(text) | Token::Other(text) => String::from_utf8_lossy(text),
        Token::Open => "(".into(),
        Token::Close => ")".into(),
        Token::OpenBracket => "[".into(),
        Token::CloseBracket => "]".into(),
        Token::Comma => ",".into(),
        Token::End => return refused("syntax error at end of input".to_owned()),
    };
    refused(format!("syntax error at or near \"{text}\""))
}

/// The length of the number that a text starts with, 0 for none.
fn number_length(text: &[u8]) -> usize {
    let starts = |text: &[u8], word: &str| {
        text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
    };
    if starts(text, "nan") {
        return 3;
    }
    let sign = sign_length(text);
    let unsigned = text.get(sign..).unwrap_or_default();
    let length = match ["infinity", "inf"].iter().find(|word| starts(unsigned, word)) {
        Some(word) => word.len(),
        None => decimal_length(unsigned),
    };
    if length == 0 { 0 } else { sign + length }
}

fn decimal_length(text: &[u8]) -> usize {
    let digits = |from: usize| {
        text.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let whole = digits(0);
    let fraction = if text.get(whole) == Some(&b'.') { 1 + digits(whole + 1) } else { 0 };
    let mantissa = whole + fraction;
    if whole == 0 && fraction < 2 {
        return 0;
    }
    let behind = text.get(mantissa + 1..).unwrap_or_default();
    let sign = sign_length(behind);
    match (text.get(mantissa), digits(mantissa + 1 + sign)) {
        (Some(b'e' | b'E'), power @ 1..) => mantissa + 1 + sign + power,
        _ => mantissa,
    }
}

fn sign_length(text: &[u8]) -> usize {
    usize::from(matches!(text.first(), Some(b'+' | b'-')))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::printed;

    fn read(text: &str) -> String {
        let payload = parse(text.as_bytes()).unwrap().payload();
        printed(write_cube, &payload)
    }

    fn refused(text: &str) -> (&'static str, String, Option<String>) {
        let error = parse(text.as_bytes()).unwrap_err();
        (error.state, error.message, error.detail)
    }

    /// As a PostgreSQL 15 server prints them.
    #[test]
    fn texts_are_read_and_printed() {
        assert_eq!(read("1"), "(1)");
        assert_eq!(read(" 1 , +.5e1,2. "), "(1, 5, 2)");
        assert_eq!(read("[(1,2),(3,4)]"), "(1, 2),(3, 4)");
        assert_eq!(read("(1,2),(1,2)"), "(1, 2)");
        assert_eq!(read("(NaN),(nan)"), "(NaN),(NaN)");
        assert_eq!(read("-inf, Infinity"), "(-Infinity, Infinity)");
        assert_eq!(read("()"), "()");
        assert_eq!(read("(),()"), "()");
        assert_eq!(read("(1e-7,-0)"), "(1e-07, -0)");
        assert_eq!(read("(1)\u{e9} and so on"), "(1)");
    }

    #[test]
    fn refusals_have_the_servers_words() {
        let syntax = |detail: &str| {
            ("22P02", "invalid input syntax for cube".to_owned(), Some(detail.to_owned()))
        };
        assert_eq!(refused(""), syntax("syntax error at end of input"));
        assert_eq!(refused("1e"), syntax("syntax error at or near \"e\""));
        assert_eq!(refused("(1) 2.5"), syntax("syntax error at or near \"2.5\""));
        assert_eq!(refused("[(1),(2)"), syntax("syntax error at end of input"));
        let different = "Different point dimensions in (1,2) and (3).";
        assert_eq!(refused("( 1 , 2 ),(3) x"), syntax(different));
        let many = vec!["0"; 101].join(",");
        assert_eq!(refused(&many), syntax("A cube cannot have more than 100 dimensions."));
        let range = "\"1e400\" is out of range for type double precision".to_owned();
        assert_eq!(refused("1e400 x"), ("22003", range, None));
    }

    proptest! {
        #[test]
        fn what_was_read_reads_back(text in "[-+(), 0-9.eEinfaN\\[\\]]{0,24}") {
            if let Ok(cube) = parse(text.as_bytes()) {
                let payload = cube.payload();
                let again = parse(printed(write_cube, &payload).as_bytes()).unwrap();
                prop_assert_eq!(again.payload(), payload);
            }
        }

        #[test]
        fn any_bytes_are_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = parse(&bytes);
            let _ = write_cube(&bytes, &mut Vec::new());
        }
    }
}
