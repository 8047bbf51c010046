//! Constants of types by their names, `inet '10.0.0.1'`, as the casts that they stand for: `'10.0.0.1'::inet`.
//!
//! The parser takes the string of those whose types it does not know for an alias, which PostgreSQL's grammar has no place for.
//!
//! Invariant: only a name of this list right before a string is moved, and no name behind a point, `::` or AS; so no other
//! statement changes.
//!
//! Source: `AexprConst` in `src/backend/parser/gram.y`, PostgreSQL 14 to 18.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

const NAMES: [&str; 40] = [
    "aclitem",
    "bpchar",
    "cid",
    "cidr",
    "datemultirange",
    "daterange",
    "inet",
    "int2vector",
    "int4multirange",
    "int4range",
    "int8multirange",
    "int8range",
    "jsonpath",
    "macaddr",
    "macaddr8",
    "money",
    "name",
    "nummultirange",
    "numrange",
    "oid",
    "oidvector",
    "pg_lsn",
    "pg_snapshot",
    "regcollation",
    "regconfig",
    "regdictionary",
    "regnamespace",
    "regoper",
    "regoperator",
    "regproc",
    "regprocedure",
    "regrole",
    "regtype",
    "tid",
    "tsmultirange",
    "tsrange",
    "tstzmultirange",
    "tstzrange",
    "xid",
    "xid8",
];

/// The tokens with such constants as casts.
pub(crate) fn as_casts(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut moved: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // A name that the next string is of, if one comes.
    let mut name: Option<usize> = None;
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) => moved.push(token),
            Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) => {
                push_string(&mut moved, name.take(), token);
            }
            found => {
                let is_type = is_name(found) && !is_behind_part(&moved);
                name = is_type.then_some(moved.len());
                moved.push(token);
            }
        }
    }
    moved
}

/// Appends a string, behind it the cast to the name that stands before it.
fn push_string(moved: &mut Vec<TokenWithSpan>, name: Option<usize>, string: TokenWithSpan) {
    let Some(place) = name.filter(|place| *place < moved.len()) else { return moved.push(string) };
    let word = moved[place].clone();
    moved[place] = string;
    let cast = TokenWithSpan { token: Token::DoubleColon, ..word.clone() };
    moved.splice(place + 1..place + 1, [cast, word]);
}

fn is_name(token: &Token) -> bool {
    let Token::Word(word) = token else { return false };
    word.quote_style.is_none() && NAMES.iter().any(|name| word.value.eq_ignore_ascii_case(name))
}

/// True behind a point, `::` or AS.
fn is_behind_part(before: &[TokenWithSpan]) -> bool {
    let last = before.iter().rev().find(|each| !matches!(each.token, Token::Whitespace(_)));
    match last.map(|last| &last.token) {
        Some(Token::Period | Token::DoubleColon) => true,
        Some(Token::Word(word)) => word.keyword == Keyword::AS,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn spelled(text: &str) -> String {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().unwrap();
        as_casts(tokens).iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn a_name_before_a_string_is_a_cast_of_it() {
        for (text, expected) in [
            ("select inet '::1' << INET'::2'", "select '::1'::inet  << '::2'::INET"),
            ("select f(money '1', 'x')", "select f('1'::money , 'x')"),
            ("select inet, name from inet", "select inet, name from inet"),
            ("select a.inet 'x'", "select a.inet 'x'"),
            ("select '1'::inet 'x'", "select '1'::inet 'x'"),
            ("select 1 as name 'x'", "select 1 as name 'x'"),
            ("select \"inet\" 'x', other 'x'", "select \"inet\" 'x', other 'x'"),
        ] {
            assert_eq!(spelled(text), expected);
        }
    }
}
