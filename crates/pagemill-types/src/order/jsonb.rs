//! The order of jsonb: null, strings, numbers, booleans, arrays, objects; containers by their size, then child by child.
//!
//! A lone scalar is an array of one, and lower than an array of one. An empty array at the top is lower than any
//! scalar, as it has fewer children: so it is on the server.
//!
//! Hashes of values are made of the same tokens.
//!
//! Invariant: a value is compared as the sequence of its tokens, which damage ends early, so that the order is total.
//! Source: `compareJsonbContainers` and `JsonbHashScalarValueExtended` in `src/backend/utils/adt/jsonb_util.c`,
//! `jsonb_hash_extended` in `jsonb_op.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use super::{TextCollation, numeric};
use crate::embedded::embedded_value;
use crate::jenkins_hash::hash_bytes;
use crate::jsonb::{Child, Container, Shape};
use crate::value_hash::{ValueHash, rotated};

/// What a walk through a value meets.
enum Token<'a> {
    End,
    Null,
    /// A key too.
    String(&'a [u8]),
    /// The payload.
    Numeric(&'a [u8]),
    Bool(bool),
    Array {
        count: usize,
        is_scalar: bool,
    },
    Object {
        count: usize,
    },
}

impl Token<'_> {
    fn rank(&self) -> u8 {
        match self {
            Self::End => 0,
            Self::Null => 1,
            Self::String(_) => 2,
            Self::Numeric(_) => 3,
            Self::Bool(_) => 4,
            Self::Array { .. } => 5,
            Self::Object { .. } => 6,
        }
    }

    fn compare(&self, other: &Self, strings: &TextCollation) -> Ordering {
        match (self, other) {
            (Self::String(a), Self::String(b)) => strings.compare(a, b),
            (Self::Numeric(a), Self::Numeric(b)) => numeric::compare(a, b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (
                Self::Array { count: a, is_scalar: a_scalar },
                Self::Array { count: b, is_scalar: b_scalar },
            ) => a.cmp(b).then_with(|| b_scalar.cmp(a_scalar)),
            (Self::Object { count: a }, Self::Object { count: b }) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

/// A container that is walked through.
struct Level {
    container: Container,
    /// The value of the pair whose key was met comes next.
    has_key: bool,
}

struct Tokens<'a> {
    value: &'a [u8],
    levels: Vec<Level>,
    is_begun: bool,
}

impl<'a> Tokens<'a> {
    fn new(value: &'a [u8]) -> Self {
        Self { value, levels: Vec::new(), is_begun: false }
    }

    fn enter(&mut self, container: Container) -> Token<'a> {
        let (count, shape) = (container.left, container.shape);
        self.levels.push(Level { container, has_key: false });
        match shape {
            Shape::Object => Token::Object { count },
            _ => Token::Array { count, is_scalar: shape == Shape::Scalar },
        }
    }

    fn child(&mut self, child: &Child) -> Option<Token<'a>> {
        let value = self.value;
        Some(match child.kind {
            0 => Token::String(child.bytes(value)),
            1 => {
                let bytes = value.get(child.aligned()..child.end)?;
                Token::Numeric(embedded_value("jsonb", bytes).ok()?.0)
            }
            2 => Token::Bool(false),
            3 => Token::Bool(true),
            4 => Token::Null,
            5 => {
                let container = Container::open(value, child.aligned(), child.end).ok()?;
                return Some(self.enter(container));
            }
            _ => return None,
        })
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if !self.is_begun {
            self.is_begun = true;
            let root = Container::open(self.value, 0, self.value.len()).ok()?;
            return Some(self.enter(root));
        }
        let value = self.value;
        let level = self.levels.last_mut()?;
        if level.container.left == 0 {
            self.levels.pop();
            return Some(Token::End);
        }
        if level.container.shape == Shape::Object && !level.has_key {
            let mut keys = level.container.keys;
            let key = level.container.child(value, &mut keys).ok()?;
            level.container.keys = keys;
            level.has_key = true;
            return Some(Token::String(key.bytes(value)));
        }
        level.has_key = false;
        level.container.left -= 1;
        let mut values = level.container.values;
        let child = level.container.child(value, &mut values).ok()?;
        level.container.values = values;
        self.child(&child)
    }
}

pub(super) fn compare(strings: &TextCollation, a: &[u8], b: &[u8]) -> Ordering {
    let (mut a, mut b) = (Tokens::new(a), Tokens::new(b));
    loop {
        match (a.next(), b.next()) {
            (Some(x), Some(y)) => match x.compare(&y, strings) {
                Ordering::Equal => {}
                other => return other,
            },
            (x, y) => return x.is_some().cmp(&y.is_some()),
        }
    }
}

/// The extended hash; an empty container at the top has none of its own.
pub(crate) fn hash(value: &[u8], seed: u64) -> u64 {
    const ARRAY: u64 = 0x4000_0000_4000_0000;
    const OBJECT: u64 = 0x2000_0000_2000_0000;
    let mut tokens = Tokens::new(value).peekable();
    if matches!(tokens.peek(), Some(Token::Array { count: 0, .. } | Token::Object { count: 0 })) {
        return seed;
    }
    tokens.fold(0, |hash, token| match token {
        Token::Array { .. } => hash ^ ARRAY,
        Token::Object { .. } => hash ^ OBJECT,
        Token::End => hash,
        scalar => rotated(hash) ^ scalar_hash(&scalar, seed),
    })
}

fn scalar_hash(scalar: &Token<'_>, seed: u64) -> u64 {
    match scalar {
        Token::String(text) => hash_bytes(text, seed),
        Token::Numeric(number) => ValueHash::Numeric.hash(number, seed),
        Token::Bool(value) if seed == 0 => {
            if *value {
                2
            } else {
                4
            }
        }
        Token::Bool(value) => ValueHash::Signed.hash(&[u8::from(*value)], seed),
        _ => seed.wrapping_add(1),
    }
}
