//! The constants of a text, and the text without them.
//!
//! ```text
//! where id = 5 and name = 'x'  ─►  "where id =  and name = ", with an int4 cut out here and a text there
//! ```
//!
//! A number is of the first type that it fits, as the server has it, and of no other whatever sign stands before it: those that are
//! of another type with a sign stay in the text.
//!
//! Source: `make_const` in `src/backend/parser/parse_node.c`, PostgreSQL 18.

use pagemill_types::builtin::oid;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::types::{PgType, UNKNOWN, numeric_modifier};

/// What a decimal has room for.
const MOST_DIGITS: usize = 38;
/// Words that are another moment each time they are read.
const MOMENTS: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];

/// A constant of a text.
#[derive(Debug, Clone)]
pub(crate) struct Constant {
    pub(crate) ty: ConstantType,
    /// Without quotes.
    pub(crate) text: String,
}

/// What says as what a constant is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ConstantType {
    Int4,
    Int8,
    /// So many digits, and so many of them behind the point.
    Numeric(u8, u8),
    /// What it is follows from where it stands.
    Text,
}

impl ConstantType {
    /// The type, as far as it is known.
    pub(crate) fn pg_type(self) -> PgType {
        match self {
            Self::Int4 => PgType::new(oid::INT4),
            Self::Int8 => PgType::new(oid::INT8),
            Self::Numeric(precision, scale) => {
                let modifier = numeric_modifier(precision.into(), scale.into());
                PgType::new(oid::NUMERIC).with_modifier(modifier)
            }
            Self::Text => PgType::new(UNKNOWN),
        }
    }
}

/// A constant that might be another, and where it stands.
pub(super) struct Candidate {
    pub(super) constant: Constant,
    pub(super) place: Location,
    /// Bytes of the text.
    pub(super) begin: usize,
    pub(super) end: usize,
}

/// A text without some of its constants, and what was cut out, in bytes of what is left.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Skeleton {
    pub(super) text: String,
    cut: Vec<(usize, ConstantType)>,
}

impl Skeleton {
    /// Without those that are to be cut out.
    pub(super) fn new<'c>(text: &str, cut: impl Iterator<Item = &'c Candidate>) -> Self {
        let mut skeleton = Self { text: String::with_capacity(text.len()), cut: Vec::new() };
        let mut from = 0;
        for candidate in cut {
            skeleton.text.push_str(&text[from..candidate.begin]);
            skeleton.cut.push((skeleton.text.len(), candidate.constant.ty));
            from = candidate.end;
        }
        skeleton.text.push_str(&text[from..]);
        skeleton
    }
}

/// The constants of a text that might be others; `at` tells the byte of a place. `None` of a text that means something else each
/// time it is read.
pub(super) fn candidates(
    tokens: &[TokenWithSpan],
    at: impl Fn(Location) -> usize,
) -> Option<Vec<Candidate>> {
    let mut found = Vec::new();
    for TokenWithSpan { token, span } in tokens {
        let (ty, text) = match token {
            Token::Number(digits, false) => match type_of_number(digits) {
                Some(ty) => (ty, digits),
                None => continue,
            },
            Token::SingleQuotedString(text) => (ConstantType::Text, text),
            _ => {
                if is_other_string(token) && names_a_moment(&token.to_string()) {
                    return None;
                }
                continue;
            }
        };
        if names_a_moment(text) {
            return None;
        }
        let constant = Constant { ty, text: text.clone() };
        let (place, begin, end) = (span.start, at(span.start), at(span.end));
        found.push(Candidate { constant, place, begin, end });
    }
    Some(found)
}

/// The type of a number that is written in digits, perhaps with a point between them.
fn type_of_number(text: &str) -> Option<ConstantType> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let are_digits = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !are_digits(whole) || !are_digits(part) || text.ends_with('.') {
        return None;
    }
    if part.is_empty() {
        /// These are of the shorter type behind a minus sign.
        const BORDERS: [i128; 2] = [1 << 31, 1 << 63];
        match whole.parse::<i128>() {
            Ok(number) if BORDERS.contains(&number) => return None,
            Ok(number) if i32::try_from(number).is_ok() => return Some(ConstantType::Int4),
            Ok(number) if i64::try_from(number).is_ok() => return Some(ConstantType::Int8),
            _ => {}
        }
    }
    let digits = whole.trim_start_matches('0').len() + part.len();
    if digits > MOST_DIGITS {
        return None;
    }
    Some(ConstantType::Numeric(u8::try_from(digits.max(1)).ok()?, u8::try_from(part.len()).ok()?))
}

fn is_other_string(token: &Token) -> bool {
    matches!(
        token,
        Token::DollarQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
    )
}

fn names_a_moment(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphabetic());
    words.any(|word| MOMENTS.iter().any(|moment| word.eq_ignore_ascii_case(moment)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_of_the_type_that_it_has_with_either_sign() {
        for (text, ty) in [
            ("0", Some(ConstantType::Int4)),
            ("007", Some(ConstantType::Int4)),
            ("2147483647", Some(ConstantType::Int4)),
            ("2147483648", None),
            ("2147483649", Some(ConstantType::Int8)),
            ("9223372036854775807", Some(ConstantType::Int8)),
            ("9223372036854775808", None),
            ("9223372036854775809", Some(ConstantType::Numeric(19, 0))),
            ("0.50", Some(ConstantType::Numeric(2, 2))),
            ("0.0", Some(ConstantType::Numeric(1, 1))),
            ("12.345", Some(ConstantType::Numeric(5, 3))),
            ("99999999999999999999999999999999999999", Some(ConstantType::Numeric(38, 0))),
            ("999999999999999999999999999999999999999", None),
            ("1.", None),
            (".5", None),
            ("1e5", None),
            ("1_000", None),
        ] {
            assert_eq!(type_of_number(text), ty, "{text}");
        }
    }

    #[test]
    fn a_moment_is_a_word_of_its_own() {
        for (text, names) in [
            ("now", true),
            ("Today 10:00", true),
            ("infinity, yesterday", true),
            ("tomorrow+1", true),
            ("snow", false),
            ("nowhere", false),
            ("2024-01-01", false),
        ] {
            assert_eq!(names_a_moment(text), names, "{text}");
        }
    }
}
