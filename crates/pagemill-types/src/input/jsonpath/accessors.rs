//! What follows a part of a path: `.key`, `.*`, `.**{1 to 2}`, `[…]`, `.method()`, `?(…)`.
//!
//! Source: `accessor_op` in `src/backend/utils/adt/jsonpath_gram.y`, PostgreSQL 14 to 18.

use pagemill_format::ids::PgVersion;

use super::super::InputError;
use super::super::integer::{read_int4, read_int4_before_16};
use super::item::{Chain, Item, kind};
use super::keyword::{DATETIME, Keyword};
use super::lexer::Token;
use super::parser::{OR, Parser, SUM, signed};

impl Parser<'_> {
    /// Everything that is applied to what stands before it.
    pub(super) fn accessors(&mut self, mut items: Chain) -> Result<Chain, InputError> {
        loop {
            if self.take(".")? {
                items.push(self.behind_dot()?);
            } else if self.take("[")? {
                items.push(self.subscripts()?);
            } else if self.take("?")? {
                self.require("(")?;
                let filter = self.predicate(OR)?;
                self.require(")")?;
                items.push(Item::Unary(kind::FILTER, Some(filter)));
            } else {
                return Ok(items);
            }
        }
    }

    fn subscripts(&mut self) -> Result<Item, InputError> {
        if self.take("*")? {
            self.require("]")?;
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
                self.require("]")?;
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
                self.require(")")?;
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
        self.require(")")?;
        Ok(Item::Unary(kind, argument.map(|argument| vec![argument])))
    }

    /// `.decimal(precision, scale)`, of which both may be missing.
    fn decimal(&mut self) -> Result<Item, InputError> {
        self.advance()?;
        let mut arguments = Vec::new();
        while !self.is(")") {
            if !arguments.is_empty() {
                self.require(",")?;
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
        self.require("}")?;
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
