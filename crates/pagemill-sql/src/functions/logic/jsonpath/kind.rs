//! What the items of a path are, and the numbers by which they are stored.
//!
//! The numbers are part of the stored format; those from `.bigint()` on came with PostgreSQL 17.
//!
//! Source: `JsonPathItemType` in `src/include/utils/jsonpath.h`, `jspOperationName` in `src/backend/utils/adt/jsonpath.c`,
//! PostgreSQL 14 to 18.

use std::ops::Range;

use super::path::NodeId;

pub(super) const NULL: u8 = 0;
pub(super) const STRING: u8 = 1;
pub(super) const NUMERIC: u8 = 2;
pub(super) const BOOL: u8 = 3;
pub(super) const NOT: u8 = 6;
pub(super) const IS_UNKNOWN: u8 = 7;
pub(super) const PLUS: u8 = 19;
pub(super) const MINUS: u8 = 20;
pub(super) const SUBSCRIPTS: u8 = 23;
pub(super) const ANY_LEVELS: u8 = 24;
pub(super) const KEY: u8 = 25;
pub(super) const VARIABLE: u8 = 28;
pub(super) const FILTER: u8 = 29;
pub(super) const EXISTS: u8 = 30;
pub(super) const LIKE_REGEX: u8 = 42;

/// What an item is. Ranges are of the path's bytes.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Null,
    String(Range<usize>),
    /// The payload.
    Numeric(Range<usize>),
    Bool(bool),
    Binary(Operator, NodeId, NodeId),
    Not(NodeId),
    IsUnknown(NodeId),
    /// `+x`, and `-x` where true.
    Sign(bool, NodeId),
    Word(Word),
    Subscripts(Vec<(NodeId, Option<NodeId>)>),
    /// `**` from a level to another; `u32::MAX` is `last`.
    AnyLevels(u32, u32),
    Key(Range<usize>),
    Variable(Range<usize>),
    Filter(NodeId),
    Exists(NodeId),
    LikeRegex {
        operand: NodeId,
        pattern: Range<usize>,
        flags: u32,
    },
    Method(Method, [Option<NodeId>; 2]),
}

/// Items of nothing but their type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    AnyArray,
    AnyKey,
    Current,
    Root,
    Last,
}

impl Word {
    pub(super) fn of(number: u8) -> Option<Self> {
        Some(match number {
            21 => Self::AnyArray,
            22 => Self::AnyKey,
            26 => Self::Current,
            27 => Self::Root,
            40 => Self::Last,
            _ => return None,
        })
    }
}

/// Operators with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    And,
    Or,
    StartsWith,
    Equal,
    NotEqual,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Operator {
    pub(super) fn of(number: u8) -> Option<Self> {
        Some(match number {
            4 => Self::And,
            5 => Self::Or,
            8 => Self::Equal,
            9 => Self::NotEqual,
            10 => Self::Less,
            11 => Self::Greater,
            12 => Self::LessOrEqual,
            13 => Self::GreaterOrEqual,
            14 => Self::Add,
            15 => Self::Subtract,
            16 => Self::Multiply,
            17 => Self::Divide,
            18 => Self::Modulo,
            41 => Self::StartsWith,
            _ => return None,
        })
    }

    /// As error messages name those of arithmetic; the others are in none.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
            _ => "",
        }
    }

    /// Whether it makes a predicate.
    pub(super) fn is_predicate(self) -> bool {
        self.name().is_empty()
    }
}

/// Methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Type,
    Size,
    Abs,
    Floor,
    Ceiling,
    Double,
    DateTime,
    KeyValue,
    Bigint,
    Boolean,
    Date,
    Decimal,
    Integer,
    Number,
    String,
    Time,
    TimeTz,
    Timestamp,
    TimestampTz,
}

impl Method {
    pub(super) fn of(number: u8) -> Option<Self> {
        Some(match number {
            31 => Self::Type,
            32 => Self::Size,
            33 => Self::Abs,
            34 => Self::Floor,
            35 => Self::Ceiling,
            36 => Self::Double,
            37 => Self::DateTime,
            38 => Self::KeyValue,
            43 => Self::Bigint,
            44 => Self::Boolean,
            45 => Self::Date,
            46 => Self::Decimal,
            47 => Self::Integer,
            48 => Self::Number,
            49 => Self::String,
            50 => Self::Time,
            51 => Self::TimeTz,
            52 => Self::Timestamp,
            53 => Self::TimestampTz,
            _ => return None,
        })
    }

    /// How many links to arguments are stored.
    pub(super) fn arguments(self) -> usize {
        match self {
            Self::Decimal => 2,
            Self::DateTime | Self::Time | Self::TimeTz | Self::Timestamp | Self::TimestampTz => 1,
            _ => 0,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Size => "size",
            Self::Abs => "abs",
            Self::Floor => "floor",
            Self::Ceiling => "ceiling",
            Self::Double => "double",
            Self::DateTime => "datetime",
            Self::KeyValue => "keyvalue",
            Self::Bigint => "bigint",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Decimal => "decimal",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Time => "time",
            Self::TimeTz => "time_tz",
            Self::Timestamp => "timestamp",
            Self::TimestampTz => "timestamp_tz",
        }
    }
}
