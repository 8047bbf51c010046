//! From the tokens of a path to its items.
//!
//! Binary operators are parsed by climbing their precedence: or, and, comparisons, sums, products; signs
//! bind stronger, and accessors strongest.
//!
//! Source: `src/backend/utils/adt/jsonpath_gram.y`, PostgreSQL 14 to 18.

use super::super::InputError;
use super::super::integer::{read_int4, read_int4_before_16};
use super::super::numeric::{read_numeric, read_numeric_before_16};
use super::super::tree::InputContext;
use super::MAX_NESTING;
use super::item::{Chain, Item, kind};
use super::keyword::{DATETIME, Keyword};
use super::lexer::{Lexer, Token};
use crate::ids::PgVersion;

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

const OR: u8 = 1;
const AND: u8 = 2;
const COMPARISON: u8 = 3;
const SUM: u8 = 4;
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

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    depth: usize,
}

impl Parser<'_> {
    #[cold]
    fn refused(&self) -> InputError {
        self.lexer.syntax_error()
    }

    fn version(&self) -> PgVersion {
        self.lexer.context().version
    }

    /// Goes on to the next token; returns the one before.
    fn advance(&mut self) -> Result<Token, InputError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.token, Token::Sign(found) if found == sign)
    }

    fn take(&mut self, sign: &str) -> Result<bool, InputError> {
        let found = self.is(sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, sign: &str) -> Result<(), InputError> {
        if self.take(sign)? { Ok(()) } else { Err(self.refused()) }
    }

    fn expect_keyword(&mut self, wanted: Keyword) -> Result<(), InputError> {
        match self.token {
            Token::Keyword(found, _) if found == wanted => self.advance().map(drop),
            _ => Err(self.refused()),
        }
    }

    fn expect_string(&mut self) -> Result<Vec<u8>, InputError> {
        match self.advance_if(|token| matches!(token, Token::String(_)))? {
            Some(Token::String(text)) => Ok(text),
            _ => Err(self.refused()),
        }
    }

    fn advance_if(&mut self, wanted: impl Fn(&Token) -> bool) -> Result<Option<Token>, InputError> {
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
    fn value(&mut self, least: u8) -> Result<Chain, InputError> {
        match self.expression(least)? {
            Parsed { items, is_predicate: false } => Ok(items),
            _ => Err(self.refused()),
        }
    }

    fn predicate(&mut self, least: u8) -> Result<Chain, InputError> {
        match self.expression(least)? {
            Parsed { items, is_predicate: true } => Ok(items),
            _ => Err(self.refused()),
        }
    }

    /// Operators of at least this precedence, and their operands.
    fn expression(&mut self, least: u8) -> Result<Parsed, InputError> {
        let mut left = self.nested(Self::operand)?;
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
        self.expect_keyword(Keyword::With)?;
        let wanted = |token: &Token| matches!(token, Token::String(_) | Token::Variable(_));
        let initial = match self.advance_if(wanted)? {
            Some(Token::String(text)) => Item::Text(kind::STRING, text),
            Some(Token::Variable(name)) => Item::Text(kind::VARIABLE, name),
            _ => return Err(self.refused()),
        };
        Ok(Item::Binary(kind::STARTS_WITH, Some(operand), Some(vec![initial])))
    }

    fn like_regex(&mut self, operand: Chain) -> Result<Item, InputError> {
        let pattern = self.expect_string()?;
        let mut flags = 0;
        if let Token::Keyword(Keyword::Flag, _) = self.token {
            self.advance()?;
            flags = regex_flags(&self.expect_string()?)?;
        }
        Ok(Item::LikeRegex { operand, pattern, flags })
    }

    /// What stands between binary operators: signs, `!`, brackets, and paths.
    fn operand(&mut self) -> Result<Parsed, InputError> {
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
            return self.parenthesized();
        }
        let primary = self.primary()?;
        Ok(Parsed::value(self.accessors(vec![primary])?))
    }

    /// What may follow `!`: a predicate in parentheses, or `exists (…)`.
    fn delimited(&mut self) -> Result<Chain, InputError> {
        if let Token::Keyword(Keyword::Exists, _) = self.token {
            self.advance()?;
            self.expect("(")?;
            let operand = self.value(SUM)?;
            self.expect(")")?;
            return Ok(vec![Item::Unary(kind::EXISTS, Some(operand))]);
        }
        self.expect("(")?;
        let inner = self.predicate(OR)?;
        self.expect(")")?;
        Ok(inner)
    }

    fn parenthesized(&mut self) -> Result<Parsed, InputError> {
        let Parsed { items, is_predicate } = self.expression(OR)?;
        self.expect(")")?;
        if is_predicate && matches!(self.token, Token::Keyword(Keyword::Is, _)) {
            self.advance()?;
            self.expect_keyword(Keyword::Unknown)?;
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

    fn numeric(&self, digits: &[u8]) -> Result<Item, InputError> {
        let mut payload = Vec::new();
        match self.version() < PgVersion::V16 {
            true => read_numeric_before_16(digits, -1, &mut payload)?,
            false => read_numeric(digits, -1, &mut payload)?,
        }
        Ok(Item::Numeric(payload))
    }

    /// Everything that is applied to what stands before it.
    fn accessors(&mut self, mut items: Chain) -> Result<Chain, InputError> {
        loop {
            if self.take(".")? {
                items.push(self.behind_dot()?);
            } else if self.take("[")? {
                items.push(self.subscripts()?);
            } else if self.take("?")? {
                self.expect("(")?;
                let filter = self.predicate(OR)?;
                self.expect(")")?;
                items.push(Item::Unary(kind::FILTER, Some(filter)));
            } else {
                return Ok(items);
            }
        }
    }

    fn subscripts(&mut self) -> Result<Item, InputError> {
        if self.take("*")? {
            self.expect("]")?;
            return Ok(Item::Plain(kind::ANY_ARRAY));
        }
        let mut subscripts = Vec::new();
        loop {
            let from = self.value(SUM)?;
            let mut to = None;
            if let Token::Keyword(Keyword::To, _) = self.token {
                self.advance()?;
                to = Some(self.value(SUM)?);
            }
            subscripts.push((from, to));
            if !self.take(",")? {
                self.expect("]")?;
                return Ok(Item::Subscripts(subscripts));
            }
        }
    }

    fn behind_dot(&mut self) -> Result<Item, InputError> {
        if self.take("*")? {
            return Ok(Item::Plain(kind::ANY_KEY));
        }
        if self.take("**")? {
            return self.levels();
        }
        let wanted = |token: &Token| {
            matches!(token, Token::Name(_) | Token::String(_) | Token::Keyword(_, _))
        };
        let Some(token) = self.advance_if(wanted)? else { return Err(self.refused()) };
        let called = self.is("(");
        match token {
            Token::Keyword(Keyword::Method(kind), _) if called => {
                self.advance()?;
                self.expect(")")?;
                Ok(Item::Plain(kind))
            }
            Token::Keyword(Keyword::MethodOfOne(kind), _) if called => self.method_of_one(kind),
            Token::Keyword(Keyword::Decimal, _) if called => self.decimal(),
            Token::Name(name) | Token::String(name) | Token::Keyword(_, name) => {
                Ok(Item::Text(kind::KEY, name))
            }
            _ => Err(self.refused()),
        }
    }

    fn method_of_one(&mut self, kind: u8) -> Result<Item, InputError> {
        self.advance()?;
        let argument = match &self.token {
            Token::String(text) if kind == DATETIME => Some(Item::Text(kind::STRING, text.clone())),
            Token::Integer(digits) if kind != DATETIME => Some(self.numeric(&digits.clone())?),
            _ => None,
        };
        if argument.is_some() {
            self.advance()?;
        }
        self.expect(")")?;
        Ok(Item::Unary(kind, argument.map(|argument| vec![argument])))
    }

    /// `.decimal(precision, scale)`, of which both may be missing.
    fn decimal(&mut self) -> Result<Item, InputError> {
        self.advance()?;
        let mut arguments = Vec::new();
        while !self.is(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            let sign = match self.token {
                Token::Sign("+") => Some(kind::PLUS),
                Token::Sign("-") => Some(kind::MINUS),
                _ => None,
            };
            if sign.is_some() {
                self.advance()?;
            }
            let Token::Integer(digits) = &self.token else { return Err(self.refused()) };
            let number = vec![self.numeric(&digits.clone())?];
            self.advance()?;
            arguments.push(match sign {
                Some(sign) => vec![signed(sign, number)],
                None => number,
            });
        }
        self.advance()?;
        let mut arguments = arguments.into_iter();
        let (precision, scale) = (arguments.next(), arguments.next());
        match arguments.next() {
            None => Ok(Item::Binary(kind::DECIMAL, precision, scale)),
            Some(_) => Err(InputError::new("invalid input syntax for type jsonpath")),
        }
    }

    /// What may follow `**`: `{level}` or `{level to level}`.
    fn levels(&mut self) -> Result<Item, InputError> {
        if !self.take("{")? {
            return Ok(Item::AnyLevels(0, u32::MAX));
        }
        let first = self.level()?;
        let mut last = first;
        if let Token::Keyword(Keyword::To, _) = self.token {
            self.advance()?;
            last = self.level()?;
        }
        self.expect("}")?;
        Ok(Item::AnyLevels(first, last))
    }

    fn level(&mut self) -> Result<u32, InputError> {
        let mut level = Vec::new();
        match &self.token {
            Token::Keyword(Keyword::Last, _) => level.extend_from_slice(&[0xFF; 4]),
            Token::Integer(digits) if self.version() < PgVersion::V16 => {
                read_int4_before_16(digits, -1, &mut level)?;
            }
            Token::Integer(digits) => read_int4(digits, -1, &mut level)?,
            _ => return Err(self.refused()),
        }
        self.advance()?;
        Ok(level.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }
}

/// A sign before an operand; it goes into a number.
fn signed(sign: u8, mut operand: Chain) -> Item {
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
    const QUOTE: u32 = 16;
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
