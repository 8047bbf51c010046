//! The tokens of a pattern of `like_regex`, and the options it may begin with.
//!
//! The next token is read before the parser looks at the one before it, as on the server, so that of two things that are
//! wrong the same one is told.
//!
//! Source: `src/backend/regex/regc_lex.c`, PostgreSQL 14 to 18.

use super::super::tree::InputContext;
use super::pattern::{BAD_OPERAND, BAD_REPETITION, BASIC, BY_LOCALE, Refusal};
use crate::input::Characters;

const BAD_ESCAPE: Refusal = "invalid escape \\ sequence";
const BAD_OPTION: Refusal = "invalid embedded option";
const BRACKETS: Refusal = "brackets [] not balanced";
const BRACES: Refusal = "braces {} not balanced";
const VERSION_ASKED: Refusal = "invalid regexp (reg version 0.8)";

/// The highest number of a character.
const LAST_CHARACTER: u32 = 0x7FFF_FFFE;

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// Nothing was read yet.
    Start,
    End,
    Plain(u32),
    Any,
    /// `\w` and its like, and their opposites.
    Class,
    NoClass,
    Alternative,
    /// How often at least, and at most.
    Quantifier(u32, Option<u32>),
    OpenBound,
    Digit(u32),
    Comma,
    CloseBound,
    /// A bracket, and whether it captures.
    Open(bool),
    LookAround,
    Close,
    /// Anchors and borders of words.
    Constraint,
    BackReference(u32),
    Bracket,
    CloseBracket,
    Range,
    Element,
    Equivalence,
    NamedClass,
    EndOfName,
}

/// What the next character belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Context {
    Pattern,
    Literal,
    Bound,
    Bracket,
    /// A name that this mark and a bracket end.
    Name(u8),
}

pub(super) struct Lexer {
    characters: Vec<u32>,
    at: usize,
    context: Context,
    /// False after the option `e`: an extended regular expression only.
    advanced: bool,
    /// After the option `x`: white space and comments do not count.
    expanded: bool,
    pub(super) token: Token,
    /// Capturing groups that were opened.
    pub(super) groups: u32,
}

type Read = Result<Token, Refusal>;

impl Lexer {
    /// Reads the options that the pattern begins with.
    pub(super) fn new(pattern: &[u8], context: &InputContext) -> Result<Self, Refusal> {
        let mut lexer = Self {
            characters: characters_of(pattern, context)?,
            at: 0,
            context: Context::Pattern,
            advanced: true,
            expanded: false,
            token: Token::Start,
            groups: 0,
        };
        lexer.prefixes()?;
        Ok(lexer)
    }

    /// How many characters the pattern has.
    pub(super) fn characters(&self) -> usize {
        self.characters.len()
    }

    pub(super) fn is_advanced(&self) -> bool {
        self.advanced
    }

    /// Goes on to the next token.
    pub(super) fn advance(&mut self) -> Result<(), Refusal> {
        self.token = self.next()?;
        Ok(())
    }

    /// The character so far ahead.
    fn peek(&self, ahead: usize) -> Option<u32> {
        self.characters.get(self.at + ahead).copied()
    }

    fn is_at(&self, text: &str) -> bool {
        let rest = self.characters.get(self.at..).unwrap_or_default();
        rest.len() >= text.len()
            && rest.iter().zip(text.bytes()).all(|(&c, byte)| c == u32::from(byte))
    }

    fn take(&mut self, text: &str) -> bool {
        let is_there = self.is_at(text);
        if is_there {
            self.at += text.len();
        }
        is_there
    }

    /// `***` and what follows it, and options in brackets.
    fn prefixes(&mut self) -> Result<(), Refusal> {
        if self.is_at("***") && self.peek(3).is_some() {
            if self.take("***=") {
                self.context = Context::Literal;
                return Ok(());
            }
            if !self.take("***:") {
                return Err(if self.is_at("***?") { VERSION_ASKED } else { BAD_OPERAND });
            }
        }
        let is_letter = |c: u32| char::from_u32(c).is_some_and(char::is_alphabetic);
        if self.is_at("(?") && self.peek(2).is_some_and(is_letter) {
            self.at += 2;
            self.options()?;
        }
        Ok(())
    }

    fn options(&mut self) -> Result<(), Refusal> {
        // Literal, extended, advanced.
        let (mut literal, mut extended) = (false, true);
        while let Some(letter) =
            self.peek(0).filter(|c| char::from_u32(*c).is_some_and(char::is_alphabetic))
        {
            self.at += 1;
            match u8::try_from(letter).unwrap_or(0) {
                b'b' => (literal, extended, self.advanced) = (false, false, false),
                b'e' => (literal, extended, self.advanced) = (false, true, false),
                b'q' => (literal, extended, self.advanced) = (true, false, false),
                b't' => self.expanded = false,
                b'x' => self.expanded = true,
                b'c' | b'i' | b'm' | b'n' | b'p' | b's' | b'w' => {}
                _ => return Err(BAD_OPTION),
            }
        }
        if !self.take(")") {
            return Err(BAD_OPTION);
        }
        match (literal, extended) {
            (true, _) => self.context = Context::Literal,
            (false, false) => return Err(BASIC),
            _ => {}
        }
        Ok(())
    }

    fn next(&mut self) -> Read {
        if self.expanded && matches!(self.context, Context::Pattern | Context::Bound) {
            self.skip()?;
        }
        let Some(character) = self.peek(0) else {
            return match self.context {
                Context::Pattern | Context::Literal => Ok(Token::End),
                Context::Bound => Err(BRACES),
                Context::Bracket | Context::Name(_) => Err(BRACKETS),
            };
        };
        self.at += 1;
        match self.context {
            Context::Pattern => self.pattern(character),
            Context::Literal => Ok(Token::Plain(character)),
            Context::Bound => self.bound(character),
            Context::Bracket => self.bracket(character),
            Context::Name(mark) => Ok(self.name(character, mark)),
        }
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<(), Refusal> {
        loop {
            let spaces = [9, 10, 11, 12, 13, 32];
            while let Some(character) = self.peek(0) {
                if character >= 0x80 && char::from_u32(character).is_none_or(char::is_whitespace) {
                    return Err(BY_LOCALE);
                }
                if !spaces.contains(&character) {
                    break;
                }
                self.at += 1;
            }
            if !self.is_at("#") {
                return Ok(());
            }
            while self.peek(0).is_some_and(|character| character != 10) {
                self.at += 1;
            }
        }
    }

    fn bound(&mut self, character: u32) -> Read {
        match u8::try_from(character).unwrap_or(0) {
            digit @ b'0'..=b'9' => Ok(Token::Digit(u32::from(digit - b'0'))),
            b',' => Ok(Token::Comma),
            b'}' => {
                self.context = Context::Pattern;
                if self.advanced {
                    self.take("?");
                }
                Ok(Token::CloseBound)
            }
            _ => Err(BAD_REPETITION),
        }
    }

    fn bracket(&mut self, character: u32) -> Read {
        let is_first = self.token == Token::Bracket;
        let name = |lexer: &mut Self, mark, token| {
            lexer.context = Context::Name(mark);
            Ok(token)
        };
        match u8::try_from(character).unwrap_or(0) {
            b']' if !is_first => {
                self.context = Context::Pattern;
                Ok(Token::CloseBracket)
            }
            b'\\' if self.advanced => {
                if self.peek(0).is_none() {
                    return Err(BAD_ESCAPE);
                }
                match self.escape()? {
                    token @ (Token::Plain(_) | Token::Class | Token::NoClass) => Ok(token),
                    _ => Err(BAD_ESCAPE),
                }
            }
            b'-' if !is_first && !self.is_at("]") => Ok(Token::Range),
            b'[' if self.peek(0).is_none() => Err(BRACKETS),
            b'[' if self.take(".") => name(self, b'.', Token::Element),
            b'[' if self.take("=") => name(self, b'=', Token::Equivalence),
            b'[' if self.take(":") => name(self, b':', Token::NamedClass),
            _ => Ok(Token::Plain(character)),
        }
    }

    fn name(&mut self, character: u32, mark: u8) -> Token {
        if character == u32::from(mark) && self.take("]") {
            self.context = Context::Bracket;
            return Token::EndOfName;
        }
        Token::Plain(character)
    }

    /// The tokens between brackets and bounds.
    fn pattern(&mut self, character: u32) -> Read {
        let quantifier = |lexer: &mut Self, least, most| {
            if lexer.advanced {
                lexer.take("?");
            }
            Ok(Token::Quantifier(least, most))
        };
        match u8::try_from(character).unwrap_or(0) {
            b'|' => Ok(Token::Alternative),
            b'*' => quantifier(self, 0, None),
            b'+' => quantifier(self, 1, None),
            b'?' => quantifier(self, 0, Some(1)),
            b'{' => self.brace(),
            b'(' if self.advanced && self.take("?") => self.extension(),
            b'(' => Ok(Token::Open(true)),
            b')' => Ok(Token::Close),
            b'[' if self.take("[:<:]]") || self.take("[:>:]]") => Ok(Token::Constraint),
            b'[' => {
                self.context = Context::Bracket;
                self.take("^");
                Ok(Token::Bracket)
            }
            b'.' => Ok(Token::Any),
            b'^' | b'$' => Ok(Token::Constraint),
            b'\\' => match self.peek(0) {
                None => Err(BAD_ESCAPE),
                Some(_) if self.advanced => self.escape(),
                Some(plain) => {
                    self.at += 1;
                    Ok(Token::Plain(plain))
                }
            },
            _ => Ok(Token::Plain(character)),
        }
    }

    /// A brace begins a bound where a digit follows.
    fn brace(&mut self) -> Read {
        if self.expanded {
            self.skip()?;
        }
        match self.peek(0) {
            Some(digit) if (0x30..=0x39).contains(&digit) => {
                self.context = Context::Bound;
                Ok(Token::OpenBound)
            }
            Some(other) if other >= 0x80 && char::from_u32(other).is_none_or(char::is_numeric) => {
                Err(BY_LOCALE)
            }
            _ => Ok(Token::Plain(u32::from(b'{'))),
        }
    }

    /// What may follow `(?`.
    fn extension(&mut self) -> Read {
        if self.take("#") {
            while self.peek(0).is_some_and(|character| character != u32::from(b')')) {
                self.at += 1;
            }
            self.take(")");
            return self.next();
        }
        if self.take(":") {
            return Ok(Token::Open(false));
        }
        let is_look = ["=", "!", "<=", "<!"].into_iter().any(|mark| self.take(mark));
        if is_look { Ok(Token::LookAround) } else { Err(BAD_OPERAND) }
    }

    /// What follows a backslash, of which there is something.
    fn escape(&mut self) -> Read {
        let Some(character) = self.peek(0) else { return Err(BAD_ESCAPE) };
        self.at += 1;
        let plain = |byte: u8| Ok(Token::Plain(byte.into()));
        match u8::try_from(character).unwrap_or(0) {
            b'a' => plain(7),
            b'b' => plain(8),
            b'B' => plain(b'\\'),
            b'c' => {
                let control = self.peek(0).ok_or(BAD_ESCAPE)?;
                self.at += 1;
                Ok(Token::Plain(control & 0o37))
            }
            b'd' | b's' | b'w' => Ok(Token::Class),
            b'D' | b'S' | b'W' => Ok(Token::NoClass),
            b'e' => plain(0o33),
            b'f' => plain(0x0C),
            b'n' => plain(b'\n'),
            b'r' => plain(b'\r'),
            b't' => plain(b'\t'),
            b'v' => plain(0x0B),
            b'A' | b'm' | b'M' | b'y' | b'Y' | b'Z' => Ok(Token::Constraint),
            b'u' => self.hexadecimal(4, 4),
            b'U' => self.hexadecimal(8, 8),
            b'x' => self.hexadecimal(1, 255),
            b'0' => self.octal(),
            b'1'..=b'9' => self.reference(),
            other if other.is_ascii_alphabetic() => Err(BAD_ESCAPE),
            _ => Ok(Token::Plain(character)),
        }
    }

    fn hexadecimal(&mut self, least: usize, most: usize) -> Read {
        match self.digits(16, least, most)? {
            number if number <= LAST_CHARACTER => Ok(Token::Plain(number)),
            _ => Err(BAD_ESCAPE),
        }
    }

    /// A reference to a group, or, if there is no such group, an octal number of more than one digit.
    fn reference(&mut self) -> Read {
        let first = self.at;
        self.at -= 1;
        let number = self.digits(10, 1, 255)?;
        if self.at == first || (1..=self.groups).contains(&number) {
            return Ok(Token::BackReference(number));
        }
        self.at = first;
        self.octal()
    }

    /// Up to three octal digits, the first of which was taken already; two, where three were more than a byte.
    fn octal(&mut self) -> Read {
        self.at -= 1;
        let mut number = self.digits(8, 1, 3)?;
        if number > 0xFF {
            self.at -= 1;
            number >>= 3;
        }
        Ok(Token::Plain(number))
    }

    /// A number, of which only the lower 32 bits count.
    fn digits(&mut self, base: u32, least: usize, most: usize) -> Result<u32, Refusal> {
        let (mut number, mut len) = (0u32, 0);
        while len < most
            && let Some(digit) =
                self.peek(0).and_then(char::from_u32).and_then(|c| c.to_digit(base))
        {
            number = number.wrapping_mul(base).wrapping_add(digit);
            self.at += 1;
            len += 1;
        }
        if len < least { Err(BAD_ESCAPE) } else { Ok(number) }
    }
}

/// The characters of a text in the database's encoding, as numbers in the server's order.
fn characters_of(text: &[u8], context: &InputContext) -> Result<Vec<u32>, Refusal> {
    if text.is_ascii() {
        return Ok(text.iter().copied().map(u32::from).collect());
    }
    match Characters::of_encoding(context.encoding) {
        Some(Characters::Utf8) => {
            Ok(String::from_utf8_lossy(text).chars().map(u32::from).collect())
        }
        Some(Characters::Single) => Ok(text.iter().copied().map(u32::from).collect()),
        Some(Characters::Euc) => Ok(euc_characters(text)),
        _ => Err(BY_LOCALE),
    }
}

/// A character of an EUC encoding is the number that its bytes make.
fn euc_characters(text: &[u8]) -> Vec<u32> {
    let mut rest = text;
    let mut all = Vec::new();
    while let Some(&first) = rest.first() {
        let len = match first {
            0x8F => 3,
            0x80.. => 2,
            _ => 1,
        };
        let (character, behind) = rest.split_at_checked(len).unwrap_or((rest, &[]));
        all.push(character.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)));
        rest = behind;
    }
    all
}
