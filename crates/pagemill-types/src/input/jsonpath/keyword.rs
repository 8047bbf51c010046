//! The key words of `jsonpath`. All of them may be keys too.
//!
//! Source: `keywords` in `src/backend/utils/adt/jsonpath_scan.l`, PostgreSQL 14 to 18.

use pagemill_format::ids::PgVersion;

/// A key word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    Null,
    True,
    False,
    Is,
    Unknown,
    Exists,
    To,
    Last,
    Strict,
    Lax,
    Starts,
    With,
    LikeRegex,
    Flag,
    /// A method without arguments, by its number among the types of items.
    Method(u8),
    /// A method that may have one argument: `.datetime()` a template, the others a precision.
    MethodOfOne(u8),
    Decimal,
}

/// `.datetime()` among the types of items.
pub(super) const DATETIME: u8 = 37;

impl Keyword {
    /// The key word that a name is. Case counts only for the words of JSON.
    pub(super) fn of(name: &[u8], version: PgVersion) -> Option<Self> {
        match name {
            b"null" => return Some(Self::Null),
            b"true" => return Some(Self::True),
            b"false" => return Some(Self::False),
            _ => {}
        }
        let lower = name.to_ascii_lowercase();
        Self::of_lower(&lower).or_else(|| {
            let known = version >= PgVersion::V17;
            known.then(|| Self::since_17(&lower)).flatten()
        })
    }

    fn of_lower(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"is" => Self::Is,
            b"to" => Self::To,
            b"abs" => Self::Method(33),
            b"lax" => Self::Lax,
            b"flag" => Self::Flag,
            b"last" => Self::Last,
            b"size" => Self::Method(32),
            b"type" => Self::Method(31),
            b"with" => Self::With,
            b"floor" => Self::Method(34),
            b"double" => Self::Method(36),
            b"exists" => Self::Exists,
            b"starts" => Self::Starts,
            b"strict" => Self::Strict,
            b"ceiling" => Self::Method(35),
            b"unknown" => Self::Unknown,
            b"datetime" => Self::MethodOfOne(DATETIME),
            b"keyvalue" => Self::Method(38),
            b"like_regex" => Self::LikeRegex,
            _ => return None,
        })
    }

    fn since_17(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"bigint" => Self::Method(43),
            b"boolean" => Self::Method(44),
            b"date" => Self::Method(45),
            b"decimal" => Self::Decimal,
            b"integer" => Self::Method(47),
            b"number" => Self::Method(48),
            b"string" => Self::Method(49),
            b"time" => Self::MethodOfOne(50),
            b"time_tz" => Self::MethodOfOne(51),
            b"timestamp" => Self::MethodOfOne(52),
            b"timestamp_tz" => Self::MethodOfOne(53),
            _ => return None,
        })
    }
}
