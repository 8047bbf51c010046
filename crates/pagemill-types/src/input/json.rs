//! `json` from its text, which is kept as it is once it was found to be JSON, and the parser that
//! `jsonb` has in common with it.
//!
//! Invariant: nesting costs heap, not stack, and is limited to [`MAX_JSON_DEPTH`]. The server's limit
//! is its stack (`max_stack_depth`): some 13,000 levels as it comes.
//!
//! Source: `src/common/jsonapi.c`, `json_in` in `src/backend/utils/adt/json.c`,
//! PostgreSQL 14 to 18.

use super::InputError;
use super::tree::InputContext;

/// Deepest nesting of arrays and objects.
pub const MAX_JSON_DEPTH: usize = 10_000;

/// Appends the payload of a `json`: its text.
///
/// # Errors
/// When it is not JSON. Escapes are looked at only for their form, as on the server.
pub fn read_json(text: &[u8], _: &InputContext, out: &mut Vec<u8>) -> Result<(), InputError> {
    parse(text, &mut Ignored)?;
    out.extend_from_slice(text);
    Ok(())
}

/// What is told of a JSON text, in order.
pub(super) trait JsonSink {
    fn begin(&mut self, is_object: bool) -> Result<(), InputError>;
    fn end(&mut self) -> Result<(), InputError>;
    /// A string or a key, its quotes taken off, its escapes as written.
    fn string(&mut self, raw: &[u8]) -> Result<(), InputError>;
    /// What there is of a string before a place that is wrong; what is wrong before that place is told instead.
    fn broken_string(&mut self, _raw: &[u8]) -> Result<(), InputError> {
        Ok(())
    }
    fn number(&mut self, digits: &[u8]) -> Result<(), InputError>;
    /// `true`, `false` or, for `None`, `null`.
    fn word(&mut self, value: Option<bool>) -> Result<(), InputError>;
}

struct Ignored;

impl JsonSink for Ignored {
    fn begin(&mut self, _: bool) -> Result<(), InputError> {
        Ok(())
    }
    fn end(&mut self) -> Result<(), InputError> {
        Ok(())
    }
    fn string(&mut self, _: &[u8]) -> Result<(), InputError> {
        Ok(())
    }
    fn number(&mut self, _: &[u8]) -> Result<(), InputError> {
        Ok(())
    }
    fn word(&mut self, _: Option<bool>) -> Result<(), InputError> {
        Ok(())
    }
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Nothing,
}

/// A piece of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Open(bool),
    Close(bool),
    Comma,
    Colon,
    String(&'a [u8]),
    Number(&'a [u8]),
    Word(Option<bool>),
    End,
}

/// Tells `sink` what a JSON text says.
pub(super) fn parse(text: &[u8], sink: &mut dyn JsonSink) -> Result<(), InputError> {
    let mut lexer = Lexer { rest: text, broken: &[] };
    let mut around: Vec<bool> = Vec::new();
    let mut expected = Expected::Value;
    loop {
        let Some(token) = lexer.next() else {
            sink.broken_string(lexer.broken)?;
            return Err(refused());
        };
        expected = match (token, expected) {
            (Token::Open(is_object), Expected::Value | Expected::ValueOrEnd) => {
                if around.len() >= MAX_JSON_DEPTH {
                    return Err(InputError::new("stack depth limit exceeded"));
                }
                sink.begin(is_object)?;
                around.push(is_object);
                if is_object { Expected::KeyOrEnd } else { Expected::ValueOrEnd }
            }
            (Token::Close(is_object), _) if ends(expected, is_object, &around) => {
                sink.end()?;
                around.pop();
                after_value(&around)
            }
            (Token::String(raw), Expected::Key | Expected::KeyOrEnd) => {
                sink.string(raw)?;
                Expected::Colon
            }
            (Token::String(raw), Expected::Value | Expected::ValueOrEnd) => {
                sink.string(raw)?;
                after_value(&around)
            }
            (Token::Number(digits), Expected::Value | Expected::ValueOrEnd) => {
                sink.number(digits)?;
                after_value(&around)
            }
            (Token::Word(value), Expected::Value | Expected::ValueOrEnd) => {
                sink.word(value)?;
                after_value(&around)
            }
            (Token::Colon, Expected::Colon) => Expected::Value,
            (Token::Comma, Expected::CommaOrEnd) => match around.last() {
                Some(true) => Expected::Key,
                _ => Expected::Value,
            },
            (Token::End, Expected::Nothing) => return Ok(()),
            _ => return Err(refused()),
        };
    }
}

fn ends(expected: Expected, is_object: bool, around: &[bool]) -> bool {
    let empty = if is_object { Expected::KeyOrEnd } else { Expected::ValueOrEnd };
    around.last() == Some(&is_object) && (expected == empty || expected == Expected::CommaOrEnd)
}

fn after_value(around: &[bool]) -> Expected {
    if around.is_empty() { Expected::Nothing } else { Expected::CommaOrEnd }
}

#[cold]
pub(super) fn refused() -> InputError {
    InputError::new("invalid input syntax for type json")
}

struct Lexer<'a> {
    rest: &'a [u8],
    /// Of a string that is none, what is before the place that is wrong.
    broken: &'a [u8],
}

impl<'a> Lexer<'a> {
    /// The next token, or `None` where there is none.
    fn next(&mut self) -> Option<Token<'a>> {
        let spaces = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let spaces = self.rest.iter().take_while(spaces).count();
        self.rest = self.rest.get(spaces..)?;
        let Some((&first, after)) = self.rest.split_first() else { return Some(Token::End) };
        let token = match first {
            b'{' => Token::Open(true),
            b'}' => Token::Close(true),
            b'[' => Token::Open(false),
            b']' => Token::Close(false),
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => return self.string(after),
            b'-' | b'0'..=b'9' => return self.number(),
            _ => return self.word(),
        };
        self.rest = after;
        Some(token)
    }

    fn string(&mut self, text: &'a [u8]) -> Option<Token<'a>> {
        let mut at = 0;
        loop {
            let plain = |byte: &&u8| !matches!(byte, b'"' | b'\\' | 0..b' ');
            at += text.get(at..)?.iter().take_while(plain).count();
            self.broken = text.get(..at)?;
            match text.get(at)? {
                b'"' => break,
                b'\\' => at += escape_bytes(text.get(at..)?)?,
                _ => return None,
            }
        }
        self.broken = &[];
        self.rest = text.get(at + 1..)?;
        Some(Token::String(text.get(..at)?))
    }

    fn number(&mut self) -> Option<Token<'a>> {
        let text = self.rest;
        let digits = |at: usize| {
            let rest = text.get(at..).unwrap_or_default();
            rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
        };
        let mut at = usize::from(text.first() == Some(&b'-'));
        at += match text.get(at) {
            Some(b'0') => 1,
            _ => Some(digits(at)).filter(|count| *count > 0)?,
        };
        if text.get(at) == Some(&b'.') {
            at += 1 + Some(digits(at + 1)).filter(|count| *count > 0)?;
        }
        if matches!(text.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
            at += 1 + sign + Some(digits(at + 1 + sign)).filter(|count| *count > 0)?;
        }
        let (number, rest) = text.split_at_checked(at)?;
        if rest.first().is_some_and(is_word_byte) {
            return None;
        }
        self.rest = rest;
        Some(Token::Number(number))
    }

    fn word(&mut self) -> Option<Token<'a>> {
        let len = self.rest.iter().take_while(|byte| is_word_byte(byte)).count();
        let (word, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        match word {
            b"true" => Some(Token::Word(Some(true))),
            b"false" => Some(Token::Word(Some(false))),
            b"null" => Some(Token::Word(None)),
            _ => None,
        }
    }
}

fn is_word_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii()
}

/// How many bytes the escape has that `text` begins with.
fn escape_bytes(text: &[u8]) -> Option<usize> {
    match text.get(1)? {
        b'u' => text.get(2..6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        _ => None,
    }
}
