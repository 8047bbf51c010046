//! From the tokens of a path to its items.
//!
//! Binary operators are parsed by climbing their precedence: or, and, comparisons, sums, products; signs
//! bind stronger, and accessors strongest.
//!
//! Source: `src/backend/utils/adt/jsonpath_gram.y`, PostgreSQL 14 to 18.

use pagemill_format::ids::PgVersion;

use super::super::InputError;
use super::super::numeric::{read_numeric, read_numeric_before_16};
use super::super::tree::InputContext;
use super::MAX_NESTING;
use super::item::{Chain, Item, kind};
use super::keyword::Keyword;
use super::lexer::{Lexer, Token};
use super::pattern::{self, QUOTE};

/// A path.
pub(super) struct Path {
    pub(super) lax: bool,
    pub(super) items: Chain,
}

/// Parses a text; `None` when there is nothing in it.
pub(super) fn parse(text: &[u8], context: &InputContext) -> Result<Option<Path>, InputError> {
    let mut lexer = Lexer::new(text, context);
    let token = lexer.next()?;
    if token == Token::End {
        return Ok(None);
    }
    let mut parser = Parser { lexer, token, depth: 0 };
    let mode = match parser.token {
        Token::Keyword(Keyword::Strict, _) => Some(false),
        Token::Keyword(Keyword::Lax, _) => Some(true),
        _ => None,
    };
    if mode.is_some() {
        parser.advance()?;
    }
    let parsed = parser.expression(OR)?;
    if parser.token != Token::End {
        return Err(parser.refused());
    }
    Ok(Some(Path { lax: mode.unwrap_or(true), items: parsed.items }))
}

/// A part of a path. Predicates may not stand where values are wanted, nor the other way round.
struct Parsed {
    items: Chain,
    is_predicate: bool,
}

impl Parsed {
    fn value(items: Chain) -> Self {
        Self { items, is_predicate: false }
    }

    fn predicate(item: Item) -> Self {
        Self { items: vec![item], is_predicate: true }
    }
}

pub(super) const OR: u8 = 1;
const AND: u8 = 2;
const COMPARISON: u8 = 3;
pub(super) const SUM: u8 = 4;
const PRODUCT: u8 = 5;
const SIGN: u8 = 6;

/// The type and the precedence of a binary operator.
fn operator(token: &Token) -> Option<(u8, u8)> {
    let Token::Sign(sign) = token else {
        return match token {
            Token::Keyword(Keyword::Starts, _) => Some((kind::STARTS_WITH, COMPARISON)),
            Token::Keyword(Keyword::LikeRegex, _) => Some((kind::LIKE_REGEX, COMPARISON)),
            _ => None,
        };
    };
    Some(match *sign {
        "||" => (kind::OR, OR),
        "&&" => (kind::AND, AND),
        "==" => (kind::EQUAL, COMPARISON),
        "!=" | "<>" => (kind::NOT_EQUAL, COMPARISON),
        "<" => (kind::LESS, COMPARISON),
        ">" => (kind::GREATER, COMPARISON),
        "<=" => (kind::LESS_OR_EQUAL, COMPARISON),
        ">=" => (kind::GREATER_OR_EQUAL, COMPARISON),
        "+" => (kind::ADD, SUM),
        "-" => (kind::SUBTRACT, SUM),
        "*" => (kind::MULTIPLY, PRODUCT),
        "/" => (kind::DIVIDE, PRODUCT),
        "%" => (kind::MODULO, PRODUCT),
        _ => return None,
    })
}

pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    pub(super) token: Token,
    depth: usize,
}

impl Parser<'_> {
    #[cold]
    pub(super) fn refused(&self) -> InputError {
        self.lexer.syntax_error()
    }

    pub(super) fn version(&self) -> PgVersion {
        self.lexer.context().version
    }

    /// Goes on to the next token; returns the one before.
    pub(super) fn advance(&mut self) -> Result<Token, InputError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    pub(super) fn is(&self, sign: &str) -> bool {
        matches!(self.token, Token::Sign(found) if found == sign)
    }

    pub(super) fn take(&mut self, sign: &str) -> Result<bool, InputError> {
        let found = self.is(sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(super) fn require(&mut self, sign: &str) -> Result<(), InputError> {
        if self.take(sign)? { Ok(()) } else { Err(self.refused()) }
    }

    fn require_keyword(&mut self, wanted: Keyword) -> Result<(), InputError> {
        match self.token {
            Token::Keyword(found, _) if found == wanted => self.advance().map(drop),
            _ => Err(self.refused()),
        }
    }

    fn require_string(&mut self) -> Result<Vec<u8>, InputError> {
        match self.advance_if(|token| matches!(token, Token::String(_)))? {
            Some(Token::String(text)) => Ok(text),
            _ => Err(self.refused()),
        }
    }

    pub(super) fn advance_if(
        &mut self,
        wanted: impl Fn(&Token) -> bool,
    ) -> Result<Option<Token>, InputError> {
        if wanted(&self.token) { self.advance().map(Some) } else { Ok(None) }
    }

    fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, InputError>,
    ) -> Result<T, InputError> {
        if self.depth >= MAX_NESTING {
            return Err(InputError::new("stack depth limit exceeded"));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// A value, or an error at the token behind what is none.
    pub(super) fn value(&mut self, least: u8) -> Result<Chain, InputError> {
        match self.expression(least)? {
            Parsed { items, is_predicate: false } => Ok(items),
            _ => Err(self.refused()),
        }
    }

    pub(super) fn predicate(&mut self, least: u8) -> Result<Chain, InputError> {
        match self.expression(least)? {
            Parsed { items, is_predicate: true } => Ok(items),
            _ => Err(self.refused()),
        }
    }

    /// Operators of at least this precedence, and their operands.
    fn expression(&mut self, least: u8) -> Result<Parsed, InputError> {
        let mut left = self.nested(|parser| parser.operand(least > COMPARISON))?;
        while let Some((kind, precedence)) = operator(&self.token).filter(|found| found.1 >= least)
        {
            if left.is_predicate != (precedence < COMPARISON) {
                return Err(self.refused());
            }
            self.advance()?;
            let items = left.items;
            left = match kind {
                kind::STARTS_WITH => Parsed::predicate(self.starts_with(items)?),
                kind::LIKE_REGEX => Parsed::predicate(self.like_regex(items)?),
                _ if precedence < COMPARISON => {
                    let right = self.predicate(precedence + 1)?;
                    Parsed::predicate(Item::Binary(kind, Some(items), Some(right)))
                }
                _ => {
                    let right = self.value(precedence + 1)?;
                    let item = Item::Binary(kind, Some(items), Some(right));
                    Parsed { items: vec![item], is_predicate: precedence == COMPARISON }
                }
            };
        }
        Ok(left)
    }

    fn starts_with(&mut self, operand: Chain) -> Result<Item, InputError> {
        self.require_keyword(Keyword::With)?;
        let wanted = |token: &Token| matches!(token, Token::String(_) | Token::Variable(_));
        let initial = match self.advance_if(wanted)? {
            Some(Token::String(text)) => Item::Text(kind::STRING, text),
            Some(Token::Variable(name)) => Item::Text(kind::VARIABLE, name),
            _ => return Err(self.refused()),
        };
        Ok(Item::Binary(kind::STARTS_WITH, Some(operand), Some(vec![initial])))
    }

    fn like_regex(&mut self, operand: Chain) -> Result<Item, InputError> {
        let pattern = self.require_string()?;
        let mut flags = 0;
        if let Token::Keyword(Keyword::Flag, _) = self.token {
            self.advance()?;
            flags = regex_flags(&self.require_string()?)?;
        }
        pattern::check(&pattern, flags, self.lexer.context())?;
        Ok(Item::LikeRegex { operand, pattern, flags })
    }

    /// What stands between binary operators: signs, `!`, brackets, and paths. Where only a value may
    /// stand, a predicate may be no more than the start of a path.
    fn operand(&mut self, is_value: bool) -> Result<Parsed, InputError> {
        let begins_predicate =
            self.is("!") || matches!(self.token, Token::Keyword(Keyword::Exists, _));
        if begins_predicate && is_value {
            return Err(self.refused());
        }
        if self.take("!")? {
            let inner = self.delimited()?;
            return Ok(Parsed::predicate(Item::Unary(kind::NOT, Some(inner))));
        }
        if let Token::Keyword(Keyword::Exists, _) = self.token {
            return Ok(Parsed { items: self.delimited()?, is_predicate: true });
        }
        if self.is("+") || self.is("-") {
            let sign = if self.is("+") { kind::PLUS } else { kind::MINUS };
            self.advance()?;
            let operand = self.value(SIGN)?;
            return Ok(Parsed::value(vec![signed(sign, operand)]));
        }
        if self.take("(")? {
            return self.parenthesized(is_value);
        }
        let primary = self.primary()?;
        Ok(Parsed::value(self.accessors(vec![primary])?))
    }

    /// What may follow `!`: a predicate in parentheses, or `exists (…)`.
    fn delimited(&mut self) -> Result<Chain, InputError> {
        if let Token::Keyword(Keyword::Exists, _) = self.token {
            self.advance()?;
            self.require("(")?;
            let operand = self.value(SUM)?;
            self.require(")")?;
            return Ok(vec![Item::Unary(kind::EXISTS, Some(operand))]);
        }
        self.require("(")?;
        let inner = self.predicate(OR)?;
        self.require(")")?;
        Ok(inner)
    }

    fn parenthesized(&mut self, is_value: bool) -> Result<Parsed, InputError> {
        let Parsed { items, is_predicate } = self.expression(OR)?;
        self.require(")")?;
        let tested = matches!(self.token, Token::Keyword(Keyword::Is, _));
        if is_predicate && tested && !is_value {
            self.advance()?;
            self.require_keyword(Keyword::Unknown)?;
            return Ok(Parsed::predicate(Item::Unary(kind::IS_UNKNOWN, Some(items))));
        }
        let accessed = self.is(".") || self.is("[") || self.is("?");
        let items = self.accessors(items)?;
        Ok(Parsed { items, is_predicate: is_predicate && !accessed })
    }

    fn primary(&mut self) -> Result<Item, InputError> {
        let item = match &mut self.token {
            Token::Sign("$") => Item::Plain(kind::ROOT),
            Token::Sign("@") => Item::Plain(kind::CURRENT),
            Token::Keyword(Keyword::Last, _) => Item::Plain(kind::LAST),
            Token::Keyword(Keyword::Null, _) => Item::Plain(kind::NULL),
            Token::Keyword(Keyword::True, _) => Item::Bool(true),
            Token::Keyword(Keyword::False, _) => Item::Bool(false),
            Token::String(text) => Item::Text(kind::STRING, std::mem::take(text)),
            Token::Variable(name) => Item::Text(kind::VARIABLE, std::mem::take(name)),
            Token::Integer(digits) | Token::Number(digits) => {
                let digits = std::mem::take(digits);
                self.numeric(&digits)?
            }
            _ => return Err(self.refused()),
        };
        self.advance()?;
        Ok(item)
    }

    pub(super) fn numeric(&self, digits: &[u8]) -> Result<Item, InputError> {
        let mut payload = Vec::new();
        match self.version() < PgVersion::V16 {
            true => read_numeric_before_16(digits, -1, &mut payload)?,
            false => read_numeric(digits, -1, &mut payload)?,
        }
        Ok(Item::Numeric(payload))
    }
}

/// A sign before an operand; it goes into a number.
pub(super) fn signed(sign: u8, mut operand: Chain) -> Item {
    if let [Item::Numeric(payload)] = &mut operand[..] {
        let mut payload = std::mem::take(payload);
        if sign == kind::MINUS {
            negate(&mut payload);
        }
        return Item::Numeric(payload);
    }
    Item::Unary(sign, Some(operand))
}

/// Turns a numeric's sign round; zero has none.
fn negate(payload: &mut [u8]) {
    let Some((high, rest)) = payload.get_mut(1..).and_then(<[u8]>::split_first_mut) else { return };
    match *high >> 6 {
        0b10 if !rest.is_empty() => *high ^= 0x20,
        0b00 | 0b01 if rest.len() > 2 => *high ^= 0x40,
        _ => {}
    }
}

fn regex_flags(text: &[u8]) -> Result<u32, InputError> {
    const WHITE_SPACE: u32 = 8;
    let mut flags = 0;
    for letter in text {
        flags |= match letter {
            b'i' => 1,
            b's' => 2,
            b'm' => 4,
            b'x' => WHITE_SPACE,
            b'q' => QUOTE,
            _ => return Err(InputError::new("invalid input syntax for type jsonpath")),
        };
    }
    if flags & WHITE_SPACE != 0 && flags & QUOTE == 0 {
        let what = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
        return Err(InputError::new(what));
    }
    Ok(flags)
}
