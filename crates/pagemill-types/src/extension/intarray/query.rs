//! `query_int`: what an array of `integer` is asked, `1&(2|!3)`: its text, its payload, and the answer.
//!
//! ```text
//! items, i32 | { type i16: 2 number, 3 operator | i16: where the left operand's top is, from here | number or character i32 } …
//! ```
//!
//! Items come in postfix order. Numbers are read as C's `strtol` reads them with base 0 (`010` is 8), and a lone `-` is 0.
//!
//! Invariant: nothing here recurses, so that no text and no payload exhausts the stack; parentheses nest up to [`MAX_NESTING`], where the
//! server's limit is its stack. Source: `contrib/intarray/_int_bool.c`, PostgreSQL 14 to 18.

use pagemill_format::error::{Error, Result};
use pagemill_format::reader::Reader;

use crate::input::InputError;

/// Deepest nesting of parentheses.
pub const MAX_NESTING: usize = 5_000;
/// Operators that wait for their right operand, within a pair of parentheses.
const MAX_WAITING: usize = 16;
/// Characters of a number.
const MAX_DIGITS: usize = 15;
const NUMBER: i16 = 2;
const OPERATOR: i16 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Number(i32),
    /// `!`, `&` or `|`.
    Operator(u8),
}

/// Appends the payload of a `query_int`.
///
/// # Errors
/// When the text is none, or too much waits or lies between an operator and its left operand.
pub fn read_query_int(text: &[u8], _typmod: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let mut parser = Parser { rest: text, items: Vec::new(), waiting: vec![Vec::new()] };
    parser.run()?;
    let starts = starts(&parser.items).ok_or_else(syntax_error)?;
    out.extend_from_slice(&(parser.items.len() as u32).to_le_bytes());
    for (at, item) in parser.items.iter().enumerate() {
        let (kind, left, value) = match item {
            Item::Number(number) => (NUMBER, 0, *number),
            Item::Operator(b'!') => (OPERATOR, -1, i32::from(b'!')),
            Item::Operator(sign) => (OPERATOR, distance(&starts, at)?, i32::from(*sign)),
        };
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&left.to_le_bytes());
        out.extend_from_slice(&value.to_le_bytes());
    }
    Ok(())
}

/// How far the top of a binary operator's left operand is.
fn distance(starts: &[usize], at: usize) -> Result<i16, InputError> {
    let right = at.checked_sub(1).and_then(|top| starts.get(top)).copied().unwrap_or_default();
    let back = (at + 1).saturating_sub(right);
    i64::try_from(back)
        .ok()
        .and_then(|back| i16::try_from(-back).ok())
        .ok_or_else(|| error("54000", "query_int expression is too complex"))
}

/// For every item the first one of its operands and of theirs; `None` where an operand misses.
fn starts(items: &[Item]) -> Option<Vec<usize>> {
    let mut starts: Vec<usize> = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let before = |top: usize| top.checked_sub(1).and_then(|top| starts.get(top)).copied();
        let start = match item {
            Item::Number(_) => at,
            Item::Operator(b'!') => before(at)?,
            Item::Operator(_) => before(before(at)?)?,
        };
        starts.push(start);
    }
    Some(starts)
}

#[cold]
fn syntax_error() -> InputError {
    error("42601", "syntax error")
}

#[cold]
fn error(state: &'static str, message: &str) -> InputError {
    InputError { state: Some(state), ..InputError::new(message) }
}

struct Parser<'a> {
    rest: &'a [u8],
    /// In postfix order.
    items: Vec<Item>,
    /// Operators that wait, for every open parenthesis and for what is outside of all.
    waiting: Vec<Vec<u8>>,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<(), InputError> {
        loop {
            self.operand()?;
            if !self.behind_operand()? {
                return Ok(());
            }
        }
    }

    /// The next byte that is no space, 0 at the end.
    fn next(&mut self) -> u8 {
        while let Some((byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            if *byte != b' ' {
                return *byte;
            }
        }
        0
    }

    /// A number, with all signs and parentheses before it.
    fn operand(&mut self) -> Result<(), InputError> {
        loop {
            match self.next() {
                b'!' => self.wait(b'!')?,
                b'(' if self.waiting.len() <= MAX_NESTING => self.waiting.push(Vec::new()),
                b'(' => return Err(error("54001", "stack depth limit exceeded")),
                first @ (b'-' | b'0'..=b'9') => return self.number(first),
                _ => return Err(syntax_error()),
            }
        }
    }

    fn number(&mut self, first: u8) -> Result<(), InputError> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (more, rest) = self.rest.split_at_checked(digits).unwrap_or_default();
        let is_negative = first == b'-';
        let digits = if is_negative { more.to_vec() } else { [&[first], more].concat() };
        let magnitude = magnitude(&digits).filter(|_| more.len() < MAX_DIGITS);
        let number = magnitude.map(|found| if is_negative { -found } else { found });
        let number = number.and_then(|found| i32::try_from(found).ok()).ok_or_else(syntax_error)?;
        // The server's parser looks for an open parenthesis already here.
        if rest.is_empty() && self.waiting.len() > 1 {
            return Err(syntax_error());
        }
        self.rest = rest;
        self.items.push(Item::Number(number));
        self.settle();
        Ok(())
    }

    /// Operators that bind at once to the operand that has just ended.
    fn settle(&mut self) {
        let Some(waiting) = self.waiting.last_mut() else { return };
        while let Some(sign) = waiting.pop_if(|sign| *sign != b'|') {
            self.items.push(Item::Operator(sign));
        }
    }

    /// All closing parentheses, and an operator: true. Or the end.
    fn behind_operand(&mut self) -> Result<bool, InputError> {
        loop {
            match self.next() {
                b')' if self.waiting.len() > 1 => self.close(),
                sign @ (b'&' | b'|') => {
                    self.wait(sign)?;
                    return Ok(true);
                }
                0 if self.rest.is_empty() && self.waiting.len() == 1 => {
                    self.close();
                    return Ok(false);
                }
                _ => return Err(syntax_error()),
            }
        }
    }

    fn close(&mut self) {
        let waiting = self.waiting.pop().unwrap_or_default();
        self.items.extend(waiting.into_iter().rev().map(Item::Operator));
        self.settle();
    }

    /// An `|` behind another binds that one's operands.
    fn wait(&mut self, sign: u8) -> Result<(), InputError> {
        let Some(waiting) = self.waiting.last_mut() else { return Err(syntax_error()) };
        if sign == b'|' && !waiting.is_empty() {
            self.items.push(Item::Operator(sign));
            return Ok(());
        }
        if waiting.len() == MAX_WAITING {
            return Err(error("54001", "statement too complex"));
        }
        waiting.push(sign);
        Ok(())
    }
}

/// The value of digits, of which a 0 in front says that they are octal; what is no octal digit then ends them.
fn magnitude(digits: &[u8]) -> Option<i64> {
    let base = if digits.first() == Some(&b'0') { 8 } else { 10 };
    let values = digits.iter().map_while(|digit| char::from(*digit).to_digit(base));
    values.map(i64::from).try_fold(0i64, |sum, digit| {
        sum.checked_mul(i64::from(base)).and_then(|sum| sum.checked_add(digit))
    })
}

/// The items of a payload, of which every operator has its operands, and where those start.
fn items(payload: &[u8]) -> Result<(Vec<Item>, Vec<usize>)> {
    let mut reader = Reader::new("query_int", payload);
    let count = reader.u32()? as usize;
    let (found, _) = reader.bytes(count.saturating_mul(8))?.as_chunks::<8>();
    let item = |[a, b, _, _, value @ ..]: &[u8; 8]| {
        let value = i32::from_le_bytes(*value);
        match (i16::from_le_bytes([*a, *b]), u8::try_from(value)) {
            (NUMBER, _) => Some(Item::Number(value)),
            (OPERATOR, Ok(sign @ (b'!' | b'&' | b'|'))) => Some(Item::Operator(sign)),
            _ => None,
        }
    };
    let items: Option<Vec<Item>> = found.iter().map(item).collect();
    let items = items.filter(|items| !items.is_empty());
    let both = items.and_then(|items| starts(&items).map(|starts| (items, starts)));
    both.filter(|(_, starts)| starts.last() == Some(&0))
        .ok_or_else(|| Error::corrupt("query_int", 0, "operators and operands that do not fit"))
}

/// What is still to be printed.
enum Part {
    /// The item at this place with its operands, and whether no parentheses are due around it.
    Item(usize, bool),
    Text(&'static [u8]),
}

/// Appends a `query_int`'s text.
///
/// # Errors
/// When the payload is damaged.
pub fn write_query_int(payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (items, starts) = items(payload)?;
    // The last comes first.
    let mut parts = vec![Part::Item(items.len().saturating_sub(1), true)];
    while let Some(part) = parts.pop() {
        let (at, is_first) = match part {
            Part::Text(text) => {
                out.extend_from_slice(text);
                continue;
            }
            Part::Item(at, is_first) => (at, is_first),
        };
        match items.get(at) {
            Some(Item::Number(number)) => {
                out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
            }
            Some(Item::Operator(b'!')) => push_negation(&items, at, &mut parts),
            Some(Item::Operator(sign)) => {
                let right = at.checked_sub(1).and_then(|top| starts.get(top)).copied();
                let left = right.unwrap_or_default().saturating_sub(1);
                let operands = [left, at.saturating_sub(1)];
                push_operation(*sign == b'|', is_first, operands, &mut parts);
            }
            None => {}
        }
    }
    Ok(())
}

fn push_negation(items: &[Item], at: usize, parts: &mut Vec<Part>) {
    let operand = at.saturating_sub(1);
    if matches!(items.get(operand), Some(Item::Number(_))) {
        parts.extend([Part::Item(operand, true), Part::Text(b"!")]);
    } else {
        parts.extend([Part::Text(b" )"), Part::Item(operand, true), Part::Text(b"!( ")]);
    }
}

/// Only `|` is put in parentheses.
fn push_operation(is_or: bool, is_first: bool, [left, right]: [usize; 2], parts: &mut Vec<Part>) {
    let sign: &[u8] = if is_or { b" | " } else { b" & " };
    let operation = [Part::Item(right, false), Part::Text(sign), Part::Item(left, false)];
    if is_or && !is_first {
        parts.push(Part::Text(b" )"));
        parts.extend(operation);
        parts.push(Part::Text(b"( "));
    } else {
        parts.extend(operation);
    }
}

/// True when a query holds, given which numbers are there.
///
/// # Errors
/// When the payload is damaged.
pub fn holds(payload: &[u8], is_there: impl Fn(i32) -> bool) -> Result<bool> {
    let (items, _) = items(payload)?;
    let mut truths: Vec<bool> = Vec::new();
    for item in items {
        let mut operand = || truths.pop().unwrap_or_default();
        let truth = match item {
            Item::Number(number) => is_there(number),
            Item::Operator(b'!') => !operand(),
            Item::Operator(b'&') => operand() & operand(),
            Item::Operator(_) => operand() | operand(),
        };
        truths.push(truth);
    }
    Ok(truths.pop().unwrap_or_default())
}
