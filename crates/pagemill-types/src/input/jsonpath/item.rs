//! The items of a path while it is parsed.
//!
//! Source: `JsonPathParseItem` and `JsonPathItemType` in `src/include/utils/jsonpath.h`,
//! PostgreSQL 14 to 18.

/// A chain of items, each applied to what the one before yields.
pub(super) type Chain = Vec<Item>;

/// The types of items, as they are stored.
pub(super) mod kind {
    pub(crate) const NULL: u8 = 0;
    pub(crate) const STRING: u8 = 1;
    pub(crate) const NUMERIC: u8 = 2;
    pub(crate) const BOOL: u8 = 3;
    pub(crate) const AND: u8 = 4;
    pub(crate) const OR: u8 = 5;
    pub(crate) const NOT: u8 = 6;
    pub(crate) const IS_UNKNOWN: u8 = 7;
    pub(crate) const EQUAL: u8 = 8;
    pub(crate) const NOT_EQUAL: u8 = 9;
    pub(crate) const LESS: u8 = 10;
    pub(crate) const GREATER: u8 = 11;
    pub(crate) const LESS_OR_EQUAL: u8 = 12;
    pub(crate) const GREATER_OR_EQUAL: u8 = 13;
    pub(crate) const ADD: u8 = 14;
    pub(crate) const SUBTRACT: u8 = 15;
    pub(crate) const MULTIPLY: u8 = 16;
    pub(crate) const DIVIDE: u8 = 17;
    pub(crate) const MODULO: u8 = 18;
    pub(crate) const PLUS: u8 = 19;
    pub(crate) const MINUS: u8 = 20;
    pub(crate) const ANY_ARRAY: u8 = 21;
    pub(crate) const ANY_KEY: u8 = 22;
    pub(crate) const SUBSCRIPTS: u8 = 23;
    pub(crate) const ANY_LEVELS: u8 = 24;
    pub(crate) const KEY: u8 = 25;
    pub(crate) const CURRENT: u8 = 26;
    pub(crate) const ROOT: u8 = 27;
    pub(crate) const VARIABLE: u8 = 28;
    pub(crate) const FILTER: u8 = 29;
    pub(crate) const EXISTS: u8 = 30;
    pub(crate) const LAST: u8 = 40;
    pub(crate) const STARTS_WITH: u8 = 41;
    pub(crate) const LIKE_REGEX: u8 = 42;
    pub(crate) const DECIMAL: u8 = 46;
}

/// An item. Operators in a row nest on the left as deep as they are many, for which no stack is taken.
#[derive(Debug)]
pub(super) enum Item {
    /// Nothing but its type.
    Plain(u8),
    /// A string, a key or a variable.
    Text(u8, Vec<u8>),
    /// The payload of a numeric.
    Numeric(Vec<u8>),
    Bool(bool),
    /// An item with one operand, which a method need not have.
    Unary(u8, Option<Chain>),
    /// An item with two operands, which only a method need not have.
    Binary(u8, Option<Chain>, Option<Chain>),
    LikeRegex {
        operand: Chain,
        pattern: Vec<u8>,
        flags: u32,
    },
    /// Single subscripts, and ranges of them.
    Subscripts(Vec<(Chain, Option<Chain>)>),
    /// `**`, with its first and last level.
    AnyLevels(u32, u32),
}

impl Drop for Item {
    fn drop(&mut self) {
        let Self::Binary(_, Some(left), _) = self else { return };
        let mut operand = std::mem::take(left);
        while let [Self::Binary(_, Some(left), _)] = &mut operand[..] {
            let left = std::mem::take(left);
            // What goes here has no left operand any more.
            operand = left;
        }
    }
}
