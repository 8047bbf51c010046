//! Strings and names with escapes, `E'\u0061'`, `U&'\0061'` and `U&"d!0061t" UESCAPE '!'`, read before the parser sees them.
//!
//! ```text
//! U&'d!0061t' UESCAPE '!'   is cut as   'xxxxxxxxxx'              what it means stands beside, by its place
//! ```
//!
//! The parser has neither UESCAPE nor the server's errors. The text that it cuts has as many characters, and as many lines, as
//! the one that was given.
//!
//! Invariant: no other part of a text is changed. Bytes beyond ASCII that are written as numbers, which mean characters of the
//! database's encoding, are refused.
//!
//! Source: `src/backend/parser/scan.l`, `base_yylex` and `str_udeescape` in `parser.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use sqlparser::tokenizer::{Location, Token};

use crate::error::{SqlState, StatementError};

type Found<T> = Result<T, StatementError>;

/// A text without escapes.
#[derive(Debug, Default)]
pub(crate) struct Masked {
    pub(crate) text: String,
    /// What stands at a place, in the place of the string or name that is cut there.
    pub(crate) tokens: HashMap<Location, Token>,
}

/// The text with its escapes read; `None` of one that has none, or is cut in the middle of something.
///
/// # Errors
/// Where the server has one.
pub(crate) fn masked(text: &str) -> Found<Option<Masked>> {
    let has_bare_mark =
        text.match_indices('?').any(|(at, _)| is_lone(text[at + 1..].chars().next()));
    let may_have =
        has_bare_mark || text.contains('\\') || text.contains("U&") || text.contains("u&");
    if !may_have {
        return Ok(None);
    }
    let mut scanner =
        Scanner { chars: text.chars().collect(), at: 0, tokens: HashMap::new(), last: None };
    scanner.run()?;
    let is_changed = !scanner.tokens.is_empty();
    Ok(is_changed
        .then(|| Masked { text: scanner.chars.into_iter().collect(), tokens: scanner.tokens }))
}

/// True where a question mark with this behind it is a token of its own.
fn is_lone(behind: Option<char>) -> bool {
    behind.is_some_and(|c| !c.is_whitespace() && !"|&-#".contains(c))
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    tokens: HashMap<Location, Token>,
    /// A character and where it stands.
    last: Option<(usize, Location)>,
}

impl Scanner {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn run(&mut self) -> Found<()> {
        while let Some(next) = self.peek(0) {
            match (next, self.peek(1)) {
                ('\'' | '"', _) => drop(self.quoted(next)),
                ('-', Some('-')) => self.line_comment(),
                ('/', Some('*')) => self.comment(),
                ('$', _) => self.dollar(),
                ('e' | 'E', Some('\'')) => self.escaped()?,
                ('u' | 'U', Some('&')) if matches!(self.peek(2), Some('\'' | '"')) => {
                    self.unicode()?;
                }
                ('?', behind) if is_lone(behind) => self.question_mark(),
                _ if is_name(next) => self.name(),
                _ => self.at += 1,
            }
        }
        Ok(())
    }

    /// The tokenizer takes the character behind it for a part of it.
    fn question_mark(&mut self) {
        let place = self.location(self.at);
        self.tokens.insert(place, Token::Question);
        self.chars[self.at] = ',';
        self.at += 1;
    }

    fn name(&mut self) {
        while self.peek(0).is_some_and(|c| is_name(c) || c == '$') {
            self.at += 1;
        }
    }

    /// What stands between two quotes, from the first on; two in it are one.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut inside = String::new();
        self.at += 1;
        while let Some(next) = self.peek(0) {
            self.at += 1;
            if next == quote {
                if self.peek(0) != Some(quote) {
                    return Some(inside);
                }
                self.at += 1;
            }
            inside.push(next);
        }
        None
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n' && c != '\r') {
            self.at += 1;
        }
    }

    fn comment(&mut self) {
        let mut depth = 0_usize;
        while let Some(next) = self.peek(0) {
            match (next, self.peek(1)) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            self.at += 2;
            if depth == 0 {
                return;
            }
        }
    }

    /// A string between dollars; a dollar alone is nothing.
    fn dollar(&mut self) {
        let rest = &self.chars[self.at + 1..];
        let len = rest.iter().take_while(|c| is_name(**c)).count();
        let is_tag = rest.get(len) == Some(&'$') && !rest.first().is_some_and(char::is_ascii_digit);
        if !is_tag {
            self.at += 1;
            return;
        }
        let tag = self.chars[self.at..self.at + len + 2].to_vec();
        self.at += tag.len();
        while self.at < self.chars.len() && !self.chars[self.at..].starts_with(&tag) {
            self.at += 1;
        }
        self.at = self.chars.len().min(self.at + tag.len());
    }

    /// Where a character stands, from the last one that was asked for on.
    fn location(&mut self, place: usize) -> Location {
        let (from, last) = match self.last {
            Some((from, last)) if from <= place => (from, last),
            _ => (0, Location::new(1, 1)),
        };
        let step = |at: Location, c: &char| match c {
            '\n' => Location::new(at.line + 1, 1),
            _ => Location::new(at.line, at.column + 1),
        };
        let found = self.chars[from..place].iter().fold(last, step);
        self.last = Some((place, found));
        found
    }

    /// Puts a token in the place of what stands from here to before `end`.
    fn replace(&mut self, from: usize, quote: char, token: Token) {
        for at in from..self.at {
            if self.chars[at] != '\n' {
                self.chars[at] = 'x';
            }
        }
        self.chars[from] = quote;
        self.chars[self.at - 1] = quote;
        let place = self.location(from);
        self.tokens.insert(place, token);
    }

    fn error(
        &mut self,
        place: usize,
        state: SqlState,
        message: impl Into<String>,
    ) -> StatementError {
        let place = self.location(place);
        StatementError::new(state, message.into()).at(place.line, place.column)
    }

    fn near(&mut self, (from, to): (usize, usize), message: &str) -> StatementError {
        let near: String = self.chars[from..to.min(self.chars.len())].iter().collect();
        let message = format!("{message} at or near \"{near}\"");
        self.error(from, SqlState::SYNTAX_ERROR, message)
    }

    /// `E'…'`.
    fn escaped(&mut self) -> Found<()> {
        let from = self.at;
        self.at += 2;
        let (mut text, mut pair) = (String::new(), None);
        loop {
            let place = self.at;
            // One that does not end is left to the parser.
            let Some(next) = self.peek(0) else { return Ok(()) };
            let is_unicode = next == '\\' && matches!(self.peek(1), Some('u' | 'U'));
            if pair.is_some() && !is_unicode {
                return Err(self.near((place, place + 1), PAIR));
            }
            match next {
                '\'' if self.peek(1) == Some('\'') => {
                    text.push('\'');
                    self.at += 2;
                }
                '\'' => break,
                '\\' if is_unicode => self.unicode_escape(&mut text, &mut pair)?,
                '\\' => {
                    let Some(letter) = self.plain_escape()? else { return Ok(()) };
                    text.push(letter);
                }
                _ => {
                    text.push(next);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        self.replace(from, '\'', Token::EscapedStringLiteral(text));
        Ok(())
    }

    /// `\n`, `\12`, `\x1f` and their kin.
    fn plain_escape(&mut self) -> Found<Option<char>> {
        let place = self.at;
        let Some(letter) = self.peek(1) else {
            self.at += 1;
            return Ok(None);
        };
        let (begin, base, most) = match letter {
            '0'..='7' => (1, 8, 3),
            'x' if self.peek(2).is_some_and(|c| c.is_ascii_hexdigit()) => (2, 16, 2),
            _ => {
                self.at += 2;
                return Ok(Some(match letter {
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'v' => '\u{b}',
                    other => other,
                }));
            }
        };
        self.at += begin;
        let mut byte = 0;
        for _ in 0..most {
            let Some(digit) = self.peek(0).and_then(|c| c.to_digit(base)) else { break };
            byte = (byte * base + digit) % 256;
            self.at += 1;
        }
        match byte {
            1..=127 => Ok(char::from_u32(byte)),
            _ => {
                let at = self.location(place);
                let what = "a byte beyond ASCII that is written as a number";
                Err(StatementError::unsupported(what).at(at.line, at.column))
            }
        }
    }

    /// `\u0061` and `\U00000061`.
    fn unicode_escape(&mut self, text: &mut String, pair: &mut Option<u32>) -> Found<()> {
        let place = self.at;
        let count = if self.peek(1) == Some('u') { 4 } else { 8 };
        self.at += 2;
        let Some(code) = self.digits(count) else {
            let state = SqlState("22025");
            let error = self.error(place, state, "invalid Unicode escape");
            return Err(error.with_hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX."));
        };
        let span = (place, self.at);
        match joined(code, pair) {
            Joined::First => Ok(()),
            Joined::Whole(letter) => {
                text.push(letter);
                Ok(())
            }
            Joined::NoPair => Err(self.near(span, PAIR)),
            Joined::NoCharacter => Err(self.near(span, "invalid Unicode escape value")),
        }
    }

    /// So many digits in base 16.
    fn digits(&mut self, count: usize) -> Option<u32> {
        let mut code: u32 = 0;
        for _ in 0..count {
            let digit = self.peek(0)?.to_digit(16)?;
            code = (code << 4) | digit;
            self.at += 1;
        }
        Some(code)
    }

    /// `U&'…'` and `U&"…"`, with UESCAPE behind them or without.
    fn unicode(&mut self) -> Found<()> {
        let from = self.at;
        self.at += 2;
        let quote = if self.peek(0) == Some('"') { '"' } else { '\'' };
        let Some(inside) = self.quoted(quote) else { return Ok(()) };
        let behind = self.at;
        let escape = match self.uescape()? {
            Some(escape) => escape,
            None => {
                self.at = behind;
                '\\'
            }
        };
        let place = self.location(from);
        let text =
            unescaped(&inside, escape).map_err(|error| error.at(place.line, place.column))?;
        let token = match quote {
            '"' => Token::make_word(&text, Some('"')),
            _ => Token::UnicodeStringLiteral(text),
        };
        self.replace(from, quote, token);
        Ok(())
    }

    /// The letter behind UESCAPE, where that is next.
    fn uescape(&mut self) -> Found<Option<char>> {
        self.blanks();
        let word: String = self.chars[self.at..].iter().take(7).collect();
        let ends = !self.peek(7).is_some_and(|c| is_name(c) || c == '$');
        if !word.eq_ignore_ascii_case("uescape") || !ends {
            return Ok(None);
        }
        self.at += 7;
        self.blanks();
        let place = self.at;
        if self.peek(0) != Some('\'') {
            let mut end = place + 1;
            while self.chars.get(end).is_some_and(|c| is_name(*c)) {
                end += 1;
            }
            // A string in another form, of which some are as good.
            if matches!(self.chars.get(end), Some('\'' | '&')) || self.peek(0) == Some('$') {
                let what = "UESCAPE before a string in this form";
                let place = self.location(place);
                return Err(StatementError::unsupported(what).at(place.line, place.column));
            }
            let message = "UESCAPE must be followed by a simple string literal";
            return Err(self.near((place, end), message));
        }
        let Some(letter) = self.quoted('\'') else { return Ok(None) };
        let is_letter = |c: char| {
            c.is_ascii()
                && !c.is_ascii_hexdigit()
                && !matches!(c, '+' | '\'' | '"' | ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
        };
        match letter.chars().next().filter(|c| letter.len() == 1 && is_letter(*c)) {
            Some(letter) => Ok(Some(letter)),
            None => Err(self.near((place, self.at), "invalid Unicode escape character")),
        }
    }

    /// Goes over blanks and comments.
    fn blanks(&mut self) {
        while let Some(next) = self.peek(0) {
            match (next, self.peek(1)) {
                ('-', Some('-')) => self.line_comment(),
                ('/', Some('*')) => self.comment(),
                (c, _) if c.is_ascii_whitespace() => self.at += 1,
                _ => return,
            }
        }
    }
}

const PAIR: &str = "invalid Unicode surrogate pair";

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

enum Joined {
    /// The first half of a character.
    First,
    Whole(char),
    NoPair,
    NoCharacter,
}

/// A code with the half of a character before it.
fn joined(code: u32, pair: &mut Option<u32>) -> Joined {
    let is_first = (0xD800..0xDC00).contains(&code);
    let is_second = (0xDC00..0xE000).contains(&code);
    match pair.take() {
        Some(first) if is_second => {
            let whole = 0x10000 + ((first & 0x3FF) << 10) + (code & 0x3FF);
            char::from_u32(whole).map_or(Joined::NoCharacter, Joined::Whole)
        }
        Some(_) => Joined::NoPair,
        None if is_first => {
            *pair = Some(code);
            Joined::First
        }
        None if is_second => Joined::NoPair,
        None => match char::from_u32(code).filter(|c| *c != '\0') {
            Some(letter) => Joined::Whole(letter),
            None => Joined::NoCharacter,
        },
    }
}

/// What is written between the quotes of `U&'…'`.
fn unescaped(inside: &str, escape: char) -> Found<String> {
    let syntax = |message: &str| StatementError::new(SqlState::SYNTAX_ERROR, message.to_owned());
    let (mut text, mut pair, mut rest) = (String::new(), None, inside);
    while let Some(next) = rest.chars().next() {
        let behind = &rest[next.len_utf8()..];
        let is_doubled = next == escape && behind.starts_with(escape);
        if next != escape || is_doubled {
            if pair.is_some() {
                return Err(syntax(PAIR));
            }
            text.push(next);
            rest = if is_doubled { &behind[escape.len_utf8()..] } else { behind };
            continue;
        }
        let (digits, count) = match behind.strip_prefix('+') {
            Some(digits) => (digits, 6),
            None => (behind, 4),
        };
        let code = digits.get(..count).filter(|code| code.chars().all(|c| c.is_ascii_hexdigit()));
        let Some(code) = code.and_then(|code| u32::from_str_radix(code, 16).ok()) else {
            let hint = "Unicode escapes must be \\XXXX or \\+XXXXXX.";
            return Err(syntax("invalid Unicode escape").with_hint(hint));
        };
        match joined(code, &mut pair) {
            Joined::First => {}
            Joined::Whole(letter) => text.push(letter),
            Joined::NoPair => return Err(syntax(PAIR)),
            Joined::NoCharacter => return Err(syntax("invalid Unicode escape value")),
        }
        rest = &digits[count..];
    }
    match pair {
        Some(_) => Err(syntax(PAIR)),
        None => Ok(text),
    }
}
