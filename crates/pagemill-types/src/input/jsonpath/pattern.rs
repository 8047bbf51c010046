//! Whether the pattern of `like_regex` is one to the server, which compiles it before it takes a path.
//!
//! A pattern is an advanced regular expression, or, by the flag `q` or an option of its own, a literal text. Its grammar is
//! followed token by token, so that what is wrong first is told first, in the server's words.
//!
//! Some things only a server can say: what a basic regular expression is (option `b`), what its locale takes for a space or
//! a digit beyond ASCII, and whether a large pattern becomes too complex. Such a pattern is refused by name, never loaded.
//!
//! Source: `src/backend/regex/regcomp.c` (`parse`, `parsebranch`, `parseqatom`, `brackpart`) and `regc_locale.c`,
//! `makeItemLikeRegex` and `jspConvertRegexFlags` in `src/backend/utils/adt/jsonpath_gram.y`, PostgreSQL 14 to 18.

use super::super::InputError;
use super::super::tree::InputContext;
use super::pattern_lexer::{Lexer, Token};
use super::pattern_size::Size;

/// The flag `q` of a path: the pattern is a literal text.
pub(super) const QUOTE: u32 = 16;

/// Deepest nesting of brackets that is followed.
const MAX_NESTING: usize = 200;
/// Most repetitions that a bound may ask for (`DUPMAX`).
const MOST_REPETITIONS: u32 = 255;

const CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "xdigit", "word",
];

/// The names of characters, with the characters.
const ELEMENTS: [(&str, u8); 95] = [
    ("NUL", 0),
    ("SOH", 1),
    ("STX", 2),
    ("ETX", 3),
    ("EOT", 4),
    ("ENQ", 5),
    ("ACK", 6),
    ("BEL", 7),
    ("alert", 7),
    ("BS", 8),
    ("backspace", 8),
    ("HT", 9),
    ("tab", 9),
    ("LF", 10),
    ("newline", 10),
    ("VT", 11),
    ("vertical-tab", 11),
    ("FF", 12),
    ("form-feed", 12),
    ("CR", 13),
    ("carriage-return", 13),
    ("SO", 14),
    ("SI", 15),
    ("DLE", 16),
    ("DC1", 17),
    ("DC2", 18),
    ("DC3", 19),
    ("DC4", 20),
    ("NAK", 21),
    ("SYN", 22),
    ("ETB", 23),
    ("CAN", 24),
    ("EM", 25),
    ("SUB", 26),
    ("ESC", 27),
    ("IS4", 28),
    ("FS", 28),
    ("IS3", 29),
    ("GS", 29),
    ("IS2", 30),
    ("RS", 30),
    ("IS1", 31),
    ("US", 31),
    ("space", b' '),
    ("exclamation-mark", b'!'),
    ("quotation-mark", b'"'),
    ("number-sign", b'#'),
    ("dollar-sign", b'$'),
    ("percent-sign", b'%'),
    ("ampersand", b'&'),
    ("apostrophe", b'\''),
    ("left-parenthesis", b'('),
    ("right-parenthesis", b')'),
    ("asterisk", b'*'),
    ("plus-sign", b'+'),
    ("comma", b','),
    ("hyphen", b'-'),
    ("hyphen-minus", b'-'),
    ("period", b'.'),
    ("full-stop", b'.'),
    ("slash", b'/'),
    ("solidus", b'/'),
    ("zero", b'0'),
    ("one", b'1'),
    ("two", b'2'),
    ("three", b'3'),
    ("four", b'4'),
    ("five", b'5'),
    ("six", b'6'),
    ("seven", b'7'),
    ("eight", b'8'),
    ("nine", b'9'),
    ("colon", b':'),
    ("semicolon", b';'),
    ("less-than-sign", b'<'),
    ("equals-sign", b'='),
    ("greater-than-sign", b'>'),
    ("question-mark", b'?'),
    ("commercial-at", b'@'),
    ("left-square-bracket", b'['),
    ("backslash", b'\\'),
    ("reverse-solidus", b'\\'),
    ("right-square-bracket", b']'),
    ("circumflex", b'^'),
    ("circumflex-accent", b'^'),
    ("underscore", b'_'),
    ("low-line", b'_'),
    ("grave-accent", b'`'),
    ("left-brace", b'{'),
    ("left-curly-bracket", b'{'),
    ("vertical-line", b'|'),
    ("right-brace", b'}'),
    ("right-curly-bracket", b'}'),
    ("tilde", b'~'),
    ("DEL", 127),
];

/// Refuses a pattern that the server refuses, or that only it can judge.
pub(super) fn check(pattern: &[u8], flags: u32, context: &InputContext) -> Result<(), InputError> {
    if flags & QUOTE != 0 {
        return Ok(());
    }
    let checked = parse_pattern(pattern, context);
    checked.map_err(|refusal| InputError::new(format!("invalid regular expression: {refusal}")))
}

/// Why a pattern is refused: the server's words about it, or ours.
pub(super) type Refusal = &'static str;

pub(super) const BAD_REPETITION: Refusal = "invalid repetition count(s)";
pub(super) const BAD_OPERAND: Refusal = "quantifier operand invalid";
pub(super) const PARENTHESES: Refusal = "parentheses () not balanced";
const BAD_RANGE: Refusal = "invalid character range";
const BAD_ELEMENT: Refusal = "invalid collating element";
const BAD_CLASS: Refusal = "invalid character class";
const BAD_REFERENCE: Refusal = "invalid backreference number";
pub(super) const BASIC: Refusal =
    "whether this basic regular expression is valid, only a server can tell";
pub(super) const BY_LOCALE: Refusal =
    "whether this pattern is valid depends on a locale, and only a server can tell";
const LARGE: Refusal = "whether this pattern is too complex, only a server can tell";

fn parse_pattern(pattern: &[u8], context: &InputContext) -> Result<(), Refusal> {
    let lexer = Lexer::new(pattern, context)?;
    let colors = lexer.characters() as f64 + 1.0;
    let mut parser = Parser { lexer, groups: Vec::new(), depth: 0, colors, constraints: 0.0 };
    parser.lexer.advance()?;
    let size = parser.alternatives(false, false)?;
    let fits = size.is_simple(parser.constraints);
    if fits { Ok(()) } else { Err(LARGE) }
}

struct Parser {
    lexer: Lexer,
    /// The size of each capturing group, once it is closed.
    groups: Vec<Option<Size>>,
    depth: usize,
    /// How many kinds of characters a bracket may have to tell apart.
    colors: f64,
    /// Arcs of constraints and of what is looked around at.
    constraints: f64,
}

impl Parser {
    fn token(&self) -> Token {
        self.lexer.token
    }

    /// Branches, up to a closing bracket or the end.
    fn alternatives(&mut self, in_brackets: bool, looks_around: bool) -> Result<Size, Refusal> {
        if self.depth > MAX_NESTING {
            return Err(LARGE);
        }
        self.depth += 1;
        let mut all: Option<Size> = None;
        loop {
            let mut branch = Size::EMPTY;
            while !self.ends_branch(in_brackets) {
                branch = branch.then(self.quantified(looks_around)?);
            }
            all = Some(all.map_or(branch, |all| all.or(branch)));
            if self.token() != Token::Alternative {
                break;
            }
            self.lexer.advance()?;
        }
        self.depth -= 1;
        if in_brackets && self.token() == Token::End {
            return Err(PARENTHESES);
        }
        Ok(all.unwrap_or(Size::EMPTY))
    }

    fn ends_branch(&self, in_brackets: bool) -> bool {
        match self.token() {
            Token::Alternative | Token::End => true,
            Token::Close => in_brackets,
            _ => false,
        }
    }

    /// An atom with its quantifier, or a constraint, which has none.
    fn quantified(&mut self, looks_around: bool) -> Result<Size, Refusal> {
        let atom = match self.token() {
            Token::Constraint => {
                self.constraints += 1.0;
                self.lexer.advance()?;
                return Ok(Size::EMPTY);
            }
            Token::LookAround => {
                self.lexer.advance()?;
                let inner = self.alternatives(true, true)?;
                self.constraints += inner.arcs + 1.0;
                self.lexer.advance()?;
                return Ok(Size::EMPTY);
            }
            Token::Quantifier(..) | Token::OpenBound => return Err(BAD_OPERAND),
            Token::Close if self.lexer.is_advanced() => return Err(PARENTHESES),
            Token::Open(captures) => self.group(captures && !looks_around, looks_around)?,
            Token::BackReference(number) => self.reference(number, looks_around)?,
            Token::Bracket => {
                self.bracket()?;
                Size::atom(self.colors)
            }
            Token::Class | Token::NoClass => {
                self.lexer.advance()?;
                Size::atom(self.colors)
            }
            _ => {
                self.lexer.advance()?;
                Size::atom(1.0)
            }
        };
        self.quantifier(atom)
    }

    fn group(&mut self, captures: bool, looks_around: bool) -> Result<Size, Refusal> {
        let number = self.groups.len();
        if captures {
            self.groups.push(None);
            self.lexer.groups += 1;
        }
        self.lexer.advance()?;
        let inner = self.alternatives(true, looks_around)?;
        self.lexer.advance()?;
        if let Some(group) = self.groups.get_mut(number).filter(|_| captures) {
            *group = Some(inner);
        }
        Ok(inner)
    }

    fn reference(&mut self, number: u32, looks_around: bool) -> Result<Size, Refusal> {
        let place = (number as usize).checked_sub(1).filter(|_| !looks_around);
        let group = place.and_then(|place| self.groups.get(place).copied().flatten());
        let size = group.ok_or(BAD_REFERENCE)?;
        self.lexer.advance()?;
        Ok(size)
    }

    fn quantifier(&mut self, atom: Size) -> Result<Size, Refusal> {
        let (least, most) = match self.token() {
            Token::Quantifier(least, most) => (least, most),
            Token::OpenBound => {
                self.lexer.advance()?;
                self.bound()?
            }
            _ => return Ok(atom),
        };
        self.lexer.advance()?;
        Ok(atom.repeated(least, most))
    }

    /// What is between braces; no upper number means no end.
    fn bound(&mut self) -> Result<(u32, Option<u32>), Refusal> {
        let least = self.repetitions()?;
        let mut most = Some(least);
        if self.token() == Token::Comma {
            self.lexer.advance()?;
            most = match self.token() {
                Token::Digit(_) => Some(self.repetitions()?),
                _ => None,
            };
            if most.is_some_and(|most| least > most) {
                return Err(BAD_REPETITION);
            }
        }
        if self.token() == Token::CloseBound { Ok((least, most)) } else { Err(BAD_REPETITION) }
    }

    fn repetitions(&mut self) -> Result<u32, Refusal> {
        let mut number = 0;
        while let Token::Digit(digit) = self.token() {
            if number >= MOST_REPETITIONS {
                return Err(BAD_REPETITION);
            }
            number = number * 10 + digit;
            self.lexer.advance()?;
        }
        if number > MOST_REPETITIONS { Err(BAD_REPETITION) } else { Ok(number) }
    }

    fn bracket(&mut self) -> Result<(), Refusal> {
        self.lexer.advance()?;
        while self.token() != Token::CloseBracket {
            self.bracket_item()?;
        }
        self.lexer.advance()
    }

    /// One item in a bracket: a character, a range, or what has a name.
    fn bracket_item(&mut self) -> Result<(), Refusal> {
        let first = match self.token() {
            Token::Plain(character) => {
                self.lexer.advance()?;
                character
            }
            Token::Element => element(&self.name()?)?,
            Token::Equivalence => return element(&self.name()?).map(|_| ()),
            Token::NamedClass => {
                let name = self.name()?;
                let is_known = CLASSES.iter().any(|class| is_named(&name, class));
                return if is_known { Ok(()) } else { Err(BAD_CLASS) };
            }
            Token::Class | Token::NoClass => return self.lexer.advance(),
            _ => return Err(BAD_RANGE),
        };
        if self.token() != Token::Range {
            return Ok(());
        }
        self.lexer.advance()?;
        let last = match self.token() {
            Token::Plain(character) => {
                self.lexer.advance()?;
                character
            }
            Token::Range => {
                self.lexer.advance()?;
                u32::from(b'-')
            }
            Token::Element => element(&self.name()?)?,
            _ => return Err(BAD_RANGE),
        };
        if first > last { Err(BAD_RANGE) } else { Ok(()) }
    }

    /// The name between `[.` and `.]` and their like.
    fn name(&mut self) -> Result<Vec<u32>, Refusal> {
        let mut name = Vec::new();
        self.lexer.advance()?;
        while let Token::Plain(character) = self.token() {
            name.push(character);
            self.lexer.advance()?;
        }
        self.lexer.advance()?;
        Ok(name)
    }
}

fn is_named(name: &[u32], known: &str) -> bool {
    name.iter().copied().eq(known.bytes().map(u32::from))
}

/// The character with a name; those with one character are their own.
fn element(name: &[u32]) -> Result<u32, Refusal> {
    if let [character] = name {
        return Ok(*character);
    }
    let found = ELEMENTS.iter().find(|(known, _)| is_named(name, known));
    found.map(|&(_, character)| character.into()).ok_or(BAD_ELEMENT)
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
