//! The types of a path's items: which number stands for which, how each looks and binds.
//!
//! The numbers are part of the stored format and do not change; new ones are appended.
//!
//! Sources: `src/include/utils/jsonpath.h` (`JsonPathItemType`), `src/backend/utils/adt/jsonpath.c`
//! (`printJsonPathItem`, `operationPriority`), PostgreSQL 14 to 18.

/// What one type of item has, and how it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing but its text.
    Word(&'static str),
    String,
    Key,
    Variable,
    Numeric,
    Bool,
    /// `left op right`, brackets as priorities need them.
    Binary(&'static str),
    /// `+x`, `-x`
    Sign(&'static str),
    /// An operand between fixed texts.
    Enclosed(&'static str, &'static str),
    LikeRegex,
    AnyKey,
    AnyLevels,
    Subscripts,
    /// A method with an argument that may be missing.
    Method(&'static str),
    /// A method with two arguments that may be missing.
    MethodOfTwo(&'static str),
}

impl Kind {
    /// The kind numbered `number` in `JsonPathItemType`.
    pub(super) fn of(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Word("null"),
            1 => Self::String,
            2 => Self::Numeric,
            3 => Self::Bool,
            4 => Self::Binary(" && "),
            5 => Self::Binary(" || "),
            6 => Self::Enclosed("!(", ")"),
            7 => Self::Enclosed("(", ") is unknown"),
            8 => Self::Binary(" == "),
            9 => Self::Binary(" != "),
            10 => Self::Binary(" < "),
            11 => Self::Binary(" > "),
            12 => Self::Binary(" <= "),
            13 => Self::Binary(" >= "),
            14 => Self::Binary(" + "),
            15 => Self::Binary(" - "),
            16 => Self::Binary(" * "),
            17 => Self::Binary(" / "),
            18 => Self::Binary(" % "),
            19 => Self::Sign("+"),
            20 => Self::Sign("-"),
            21 => Self::Word("[*]"),
            22 => Self::AnyKey,
            23 => Self::Subscripts,
            24 => Self::AnyLevels,
            25 => Self::Key,
            26 => Self::Word("@"),
            27 => Self::Word("$"),
            28 => Self::Variable,
            29 => Self::Enclosed("?(", ")"),
            30 => Self::Enclosed("exists (", ")"),
            31 => Self::Word(".type()"),
            32 => Self::Word(".size()"),
            33 => Self::Word(".abs()"),
            34 => Self::Word(".floor()"),
            35 => Self::Word(".ceiling()"),
            36 => Self::Word(".double()"),
            37 => Self::Method(".datetime("),
            38 => Self::Word(".keyvalue()"),
            // 39, an array subscript, exists only while a path is parsed.
            40 => Self::Word("last"),
            41 => Self::Binary(" starts with "),
            42 => Self::LikeRegex,
            43 => Self::Word(".bigint()"),
            44 => Self::Word(".boolean()"),
            45 => Self::Word(".date()"),
            46 => Self::MethodOfTwo(".decimal("),
            47 => Self::Word(".integer()"),
            48 => Self::Word(".number()"),
            49 => Self::Word(".string()"),
            50 => Self::Method(".time("),
            51 => Self::Method(".time_tz("),
            52 => Self::Method(".timestamp("),
            53 => Self::Method(".timestamp_tz("),
            _ => return None,
        })
    }
}

/// How strongly the kind of this number binds.
pub(super) fn priority(number: u8) -> u8 {
    match number {
        5 => 0,
        4 => 1,
        8..=13 | 41 => 2,
        14 | 15 => 3,
        16..=18 => 4,
        19 | 20 => 5,
        _ => 6,
    }
}
