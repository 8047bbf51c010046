//! The tokens of a `jsonpath` text.
//!
//! As in the server's lexer, the longest match wins: `1ab` is a name, `1a` a number with junk behind
//! it. Names end at spaces and special characters, and may have escapes, as strings have.
//!
//! A token remembers what the server would show of it in a message, which of a name is what ended it:
//! nothing, or the spaces behind it.
//!
//! Source: `src/backend/utils/adt/jsonpath_scan.l`, PostgreSQL 14 to 18.

use pagemill_format::ids::PgVersion;

use super::super::InputError;
use super::super::jsonb::push_character;
use super::super::tree::InputContext;
use super::keyword::Keyword;
use super::number::{Match, number_match};

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name that is no key word.
    Name(Vec<u8>),
    /// A key word, and how it was written.
    Keyword(Keyword, Vec<u8>),
    String(Vec<u8>),
    Variable(Vec<u8>),
    Integer(Vec<u8>),
    Number(Vec<u8>),
    /// An operator or a special character.
    Sign(&'static str),
    End,
}

/// Operators and special characters, the longer ones first.
const SIGNS: [&str; 32] = [
    "&&", "||", "**", "<=", "==", "<>", "!=", ">=", "!", "<", ">", "$", "@", "(", ")", "[", "]",
    "{", "}", ".", ",", "?", "*", "/", "%", "+", "-", ":", "#", "&", "|", "=",
];

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0C)
}

/// True for the bytes that names are made of.
pub(super) fn is_other(byte: u8) -> bool {
    let special = b"?%$.[]{}()|&!=<>@#,*:-+/\\\"";
    !special.contains(&byte) && !is_blank(byte)
}

pub(super) struct Lexer<'a> {
    context: &'a InputContext,
    rest: &'a [u8],
    /// What a message shows of the last token.
    shown: &'a [u8],
}

/// How a version words what is wrong.
struct Words {
    unended: &'static str,
    unicode: &'static str,
    hexadecimal: &'static str,
}

const WORDS: Words = Words {
    unended: "unterminated quoted string",
    unicode: "invalid Unicode escape sequence",
    hexadecimal: "invalid hexadecimal character sequence",
};

const WORDS_BEFORE_16: Words = Words {
    unended: "unexpected end of quoted string",
    unicode: "invalid unicode sequence",
    hexadecimal: "invalid hex character sequence",
};

/// The message about a place in a text.
#[cold]
pub(super) fn about(message: &str, shown: &[u8]) -> InputError {
    InputError::new(match shown {
        [] => format!("{message} at end of jsonpath input"),
        shown => {
            let shown = String::from_utf8_lossy(shown);
            format!("{message} at or near \"{shown}\" of jsonpath input")
        }
    })
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a [u8], context: &'a InputContext) -> Self {
        Self { context, rest: text, shown: &[] }
    }

    fn words(&self) -> &'static Words {
        if self.context.version < PgVersion::V16 { &WORDS_BEFORE_16 } else { &WORDS }
    }

    pub(super) fn context(&self) -> &'a InputContext {
        self.context
    }

    /// `syntax error at or near …` the last token.
    #[cold]
    pub(super) fn syntax_error(&self) -> InputError {
        about("syntax error", self.shown)
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at_checked(count).unwrap_or((self.rest, &[]));
        (self.rest, self.shown) = (rest, taken);
        taken
    }

    fn count(&self, from: usize, wanted: impl Fn(u8) -> bool) -> usize {
        let rest = self.rest.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| wanted(**byte)).count()
    }

    pub(super) fn next(&mut self) -> Result<Token, InputError> {
        loop {
            let blanks = self.count(0, is_blank);
            self.take(blanks);
            if self.rest.starts_with(b"/*") {
                self.comment()?;
                continue;
            }
            match self.rest {
                [] => {
                    self.shown = &[];
                    return Ok(Token::End);
                }
                [b'$', b'"', ..] => {
                    self.take(2);
                    return Ok(Token::Variable(self.quoted()?));
                }
                [b'$', byte, ..] if is_other(*byte) => {
                    let len = self.count(1, is_other);
                    let text = self.take(1 + len);
                    return Ok(Token::Variable(text.get(1..).unwrap_or_default().to_vec()));
                }
                [b'"', ..] => {
                    self.take(1);
                    return Ok(Token::String(self.quoted()?));
                }
                _ => {}
            }
            if let Some(token) = self.number()? {
                return Ok(token);
            }
            let sign = SIGNS.iter().find(|sign| self.rest.starts_with(sign.as_bytes()));
            if let Some(sign) = sign {
                self.take(sign.len());
                return Ok(Token::Sign(sign));
            }
            if let Some(name) = self.name()? {
                return Ok(match Keyword::of(&name, self.context.version) {
                    Some(keyword) => Token::Keyword(keyword, name),
                    None => Token::Name(name),
                });
            }
        }
    }

    fn comment(&mut self) -> Result<(), InputError> {
        match self.rest.windows(2).skip(2).position(|pair| pair == b"*/") {
            Some(inside) => {
                self.take(inside + 4);
                Ok(())
            }
            None => Err(about("unexpected end of comment", &[])),
        }
    }

    fn number(&mut self) -> Result<Option<Token>, InputError> {
        let Some((found, len)) = number_match(self.rest, self.context.version) else {
            return Ok(None);
        };
        if self.count(0, is_other) > len {
            return Ok(None);
        }
        let text = self.take(len);
        match found {
            Match::Integer => Ok(Some(Token::Integer(text.to_vec()))),
            Match::Number => Ok(Some(Token::Number(text.to_vec()))),
            Match::Refused(message) => Err(about(message, text)),
        }
    }

    /// A name; none where a comment follows it, which has the server forget it.
    fn name(&mut self) -> Result<Option<Vec<u8>>, InputError> {
        let mut name = Vec::new();
        loop {
            let len = self.count(0, is_other);
            name.extend_from_slice(self.take(len));
            match self.rest.first() {
                Some(b'\\') => self.escape(&mut name)?,
                Some(byte) if is_blank(*byte) => {
                    let blanks = self.count(0, is_blank);
                    self.take(blanks);
                    return Ok(Some(name));
                }
                _ if self.rest.starts_with(b"/*") => {
                    self.comment()?;
                    return Ok(None);
                }
                _ => {
                    self.shown = &[];
                    return Ok(Some(name));
                }
            }
        }
    }

    fn quoted(&mut self) -> Result<Vec<u8>, InputError> {
        let mut text = Vec::new();
        loop {
            let len = self.count(0, |byte| byte != b'"' && byte != b'\\');
            text.extend_from_slice(self.take(len));
            match self.rest.first() {
                Some(b'\\') => self.escape(&mut text)?,
                Some(_) => {
                    self.take(1);
                    return Ok(text);
                }
                None => return Err(about(self.words().unended, &[])),
            }
        }
    }

    /// Resolves an escape, or several `\u` ones.
    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), InputError> {
        let Some(letter) = self.rest.get(1) else {
            return Err(about("unexpected end after backslash", self.rest));
        };
        let byte = match letter {
            b'u' => return self.unicode(out),
            b'x' => return self.hexadecimal(out),
            // The one byte that no rule takes behind a backslash.
            b'\n' => return Err(about("unexpected end after backslash", b"\\")),
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0B,
            other => *other,
        };
        out.push(byte);
        self.take(2);
        Ok(())
    }

    fn hexadecimal(&mut self, out: &mut Vec<u8>) -> Result<(), InputError> {
        let digits = self.count(2, |byte| byte.is_ascii_hexdigit()).min(2);
        let text = self.take(2 + digits);
        if digits < 2 {
            return Err(about(self.words().hexadecimal, text));
        }
        self.push(number(text.get(2..).unwrap_or_default()), out)
    }

    /// Reads a run of `\u` escapes; of two that are halves, both make one character.
    fn unicode(&mut self, out: &mut Vec<u8>) -> Result<(), InputError> {
        let run = self.rest;
        let mut codes = Vec::new();
        let mut len = 0;
        while let Some(text) = run.get(len..).filter(|text| text.starts_with(b"\\u")) {
            let (code, bytes) = unicode_escape(text);
            len += bytes;
            match code {
                Some(code) => codes.push(code),
                None => {
                    let shown = run.get(..len).unwrap_or_default();
                    return Err(about(self.words().unicode, shown));
                }
            }
        }
        self.take(len);
        let mut high = None;
        for code in codes {
            let refused = || InputError::new("invalid input syntax for type jsonpath");
            let code = match (high.take(), code) {
                (None, 0xD800..=0xDBFF) => {
                    high = Some(code);
                    continue;
                }
                (Some(high), 0xDC00..=0xDFFF) => {
                    0x1_0000 + ((high - 0xD800) << 10) + (code - 0xDC00)
                }
                (Some(_), _) | (None, 0xDC00..=0xDFFF) => return Err(refused()),
                (None, code) => code,
            };
            self.push(code, out)?;
        }
        match high {
            Some(_) => Err(InputError::new("invalid input syntax for type jsonpath")),
            None => Ok(()),
        }
    }

    fn push(&self, code: u32, out: &mut Vec<u8>) -> Result<(), InputError> {
        if code == 0 {
            return Err(InputError::new("unsupported Unicode escape sequence"));
        }
        let character = char::from_u32(code);
        let character = character.ok_or_else(|| InputError::new("invalid Unicode code point"))?;
        push_character(character, self.context, None, out)
    }
}

/// The code of the `\u` escape that a text begins with, and how many bytes it has; no code where it is
/// cut off.
fn unicode_escape(text: &[u8]) -> (Option<u32>, usize) {
    let digits = |from: usize, most: usize| {
        let digits = text.get(from..).unwrap_or_default().iter().take(most);
        digits.take_while(|byte| byte.is_ascii_hexdigit()).count()
    };
    let code = |from: usize, len: usize| number(text.get(from..from + len).unwrap_or_default());
    if text.get(2) == Some(&b'{') {
        let len = digits(3, 6);
        return match text.get(3 + len) {
            Some(b'}') if len > 0 => (Some(code(3, len)), 4 + len),
            _ => (None, 3 + len),
        };
    }
    match digits(2, 4) {
        4 => (Some(code(2, 4)), 6),
        len => (None, 2 + len),
    }
}

fn number(digits: &[u8]) -> u32 {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0);
    digits.iter().fold(0, |number, byte| number << 4 | digit(byte))
}
