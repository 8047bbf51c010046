//! The lines of a configuration file: `name = value`, `name value`, comments.
//!
//! A value is a bare word, a number with an optional unit, or a string in single quotes. In a
//! string `''` is a quote and a backslash begins an escape; a string ends on its line. As in a
//! lexer, the longest possible token is taken, and of equally long ones the first in the order
//! of [`Token`]: this is why `a.b` is a (refused) qualified name and `a.b.c` a bare word.
//!
//! Source: the rules and `DeescapeQuotedString` in `src/backend/utils/misc/guc-file.l`,
//! PostgreSQL 14 to 18.

/// Why a line was not understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineError(pub(super) String);

/// A setting's name in lower case and its value without quotes.
type Entry = (String, Vec<u8>);

/// The entries of a file, each with its line number from 1. Blank lines yield nothing.
pub(super) fn entries(bytes: &[u8]) -> impl Iterator<Item = (usize, Result<Entry, LineError>)> {
    let lines = bytes.split(|&byte| byte == b'\n').enumerate();
    lines.filter_map(|(i, line)| Some((i + 1, entry(line)?)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Name,
    QualifiedName,
    String,
    Word,
    Integer,
    Real,
    Equals,
    Unknown,
}

fn entry(line: &[u8]) -> Option<Result<Entry, LineError>> {
    let mut rest = line;
    let (token, name) = next_token(&mut rest)?;
    if !matches!(token, Token::Name | Token::QualifiedName) {
        return Some(Err(unexpected(name)));
    }
    let mut value = next_token(&mut rest);
    if matches!(value, Some((Token::Equals, _))) {
        value = next_token(&mut rest);
    }
    let text = match value {
        Some((Token::String, text)) => unescaped(text),
        Some((Token::Name | Token::Word | Token::Integer | Token::Real, text)) => text.to_vec(),
        Some((_, text)) => return Some(Err(unexpected(text))),
        None => return Some(Err(LineError("syntax error near the end of the line".into()))),
    };
    Some(match next_token(&mut rest) {
        None => Ok((String::from_utf8_lossy(name).to_ascii_lowercase(), text)),
        Some((_, text)) => Err(unexpected(text)),
    })
}

fn unexpected(token: &[u8]) -> LineError {
    LineError(format!("syntax error near \"{}\"", String::from_utf8_lossy(token)))
}

/// Takes the next token off `rest`; `None` at the end of the line or at a comment.
fn next_token<'a>(rest: &mut &'a [u8]) -> Option<(Token, &'a [u8])> {
    let blank = run(rest, |byte| matches!(byte, b' ' | b'\t' | b'\r'));
    let text = rest.get(blank..)?;
    if matches!(text.first(), None | Some(b'#')) {
        return None;
    }
    let name = name_length(text);
    let lengths = [
        (Token::Name, name),
        (Token::QualifiedName, qualified_name_length(text, name)),
        (Token::String, string_length(text)),
        (Token::Word, word_length(text)),
        (Token::Integer, integer_length(text)),
        (Token::Real, real_length(text)),
        (Token::Equals, usize::from(text.starts_with(b"="))),
        (Token::Unknown, 1),
    ];
    let mut longest = (Token::Unknown, 0);
    for (token, length) in lengths {
        if length > longest.1 {
            longest = (token, length);
        }
    }
    let (found, after) = text.split_at_checked(longest.1)?;
    *rest = after;
    Some((longest.0, found))
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_letter_or_digit(byte: u8) -> bool {
    is_letter(byte) || byte.is_ascii_digit()
}

/// How many bytes at the start of `text` satisfy `accepts`.
fn run(text: &[u8], accepts: impl Fn(u8) -> bool) -> usize {
    text.iter().take_while(|&&byte| accepts(byte)).count()
}

/// As [`run`], `from` bytes into `text`.
fn run_from(text: &[u8], from: usize, accepts: impl Fn(u8) -> bool) -> usize {
    run(text.get(from..).unwrap_or_default(), accepts)
}

fn starts_with_letter(text: &[u8]) -> bool {
    text.first().is_some_and(|&byte| is_letter(byte))
}

fn name_length(text: &[u8]) -> usize {
    if starts_with_letter(text) { run(text, is_letter_or_digit) } else { 0 }
}

fn qualified_name_length(text: &[u8], name: usize) -> usize {
    match text.get(name..) {
        Some([b'.', second @ ..]) if name > 0 && starts_with_letter(second) => {
            name + 1 + name_length(second)
        }
        _ => 0,
    }
}

fn word_length(text: &[u8]) -> usize {
    let in_word =
        |byte| is_letter_or_digit(byte) || matches!(byte, b'-' | b'.' | b'_' | b':' | b'/');
    if starts_with_letter(text) { run(text, in_word) } else { 0 }
}

/// The length with both quotes, 0 when the string does not end.
fn string_length(text: &[u8]) -> usize {
    if text.first() != Some(&b'\'') {
        return 0;
    }
    let mut at = 1;
    loop {
        match (text.get(at), text.get(at + 1)) {
            (Some(b'\\'), Some(_)) | (Some(b'\''), Some(b'\'')) => at += 2,
            (Some(b'\''), _) => return at + 1,
            (None, _) | (Some(b'\\'), None) => return 0,
            _ => at += 1,
        }
    }
}

fn sign_length(text: &[u8]) -> usize {
    usize::from(matches!(text.first(), Some(b'-' | b'+')))
}

fn integer_length(text: &[u8]) -> usize {
    let sign = sign_length(text);
    let digits = run_from(text, sign, |byte| byte.is_ascii_digit());
    if digits == 0 {
        return 0;
    }
    let end = sign + digits;
    let decimal = end + run_from(text, end, |byte| byte.is_ascii_alphabetic());
    let mut hexadecimal = 0;
    if text.get(sign..).is_some_and(|number| number.starts_with(b"0x")) {
        let digits = run_from(text, sign + 2, |byte| byte.is_ascii_hexdigit());
        if digits > 0 {
            let end = sign + 2 + digits;
            hexadecimal = end + run_from(text, end, |byte| byte.is_ascii_alphabetic());
        }
    }
    decimal.max(hexadecimal)
}

fn real_length(text: &[u8]) -> usize {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let mut end = sign_length(text);
    end += run_from(text, end, is_digit);
    if text.get(end) != Some(&b'.') {
        return 0;
    }
    end += 1;
    end += run_from(text, end, is_digit);
    if let Some([b'E' | b'e', exponent @ ..]) = text.get(end..) {
        let sign = sign_length(exponent);
        match run_from(exponent, sign, is_digit) {
            0 => {}
            digits => end += 1 + sign + digits,
        }
    }
    end
}

/// The contents of a string token.
fn unescaped(token: &[u8]) -> Vec<u8> {
    let mut rest = token.get(1..token.len().saturating_sub(1)).unwrap_or_default();
    let mut out = Vec::with_capacity(rest.len());
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'\\', [b'0'..=b'7', ..]) => {
                let digits = run(after, |byte| matches!(byte, b'0'..=b'7')).min(3);
                let (octal, after) = after.split_at(digits);
                rest = after;
                out.push(
                    octal.iter().fold(0, |value: u8, digit| {
                        value.wrapping_mul(8).wrapping_add(digit - b'0')
                    }),
                );
            }
            (b'\\', [escaped, after @ ..]) => {
                rest = after;
                out.push(match escaped {
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => *other,
                });
            }
            (b'\'', [b'\'', after @ ..]) => {
                rest = after;
                out.push(b'\'');
            }
            _ => out.push(*first),
        }
    }
    out
}
