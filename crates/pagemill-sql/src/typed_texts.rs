//! Constants of types by their names, `inet '10.0.0.1'`, as the casts that they stand for: `'10.0.0.1'::inet`.
//!
//! The parser takes the string of those whose types it does not know for an alias, which PostgreSQL's grammar has no place for.
//!
//! Invariant: what is moved stands right before a string, and not behind `::` or AS: a name of this list, one in quotes, one
//! with a schema, or one that is no word of the parser's; so no other statement changes.
//!
//! Source: `AexprConst` in `src/backend/parser/gram.y`, PostgreSQL 14 to 18.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

const NAMES: [&str; 41] = [
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
    "xml",
];

/// The tokens with such constants as casts.
pub(crate) fn as_casts(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut moved: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // Where a name begins that the next string is of, if one comes.
    let mut name: Option<usize> = None;
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) => moved.push(token),
            Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) => {
                push_string(&mut moved, name.take(), token);
            }
            found => {
                name = name_to(found, &moved);
                moved.push(token);
            }
        }
    }
    moved
}

/// Pushes a string, behind it the cast to the name that stands before it.
fn push_string(moved: &mut Vec<TokenWithSpan>, name: Option<usize>, string: TokenWithSpan) {
    let Some(begin) = name.filter(|begin| *begin < moved.len()) else { return moved.push(string) };
    let cast = TokenWithSpan { token: Token::DoubleColon, ..moved[begin].clone() };
    moved.splice(begin..begin, [string, cast]);
}

/// Where the name of a type begins that ends with this word, behind what is before it.
fn name_to(last: &Token, before: &[TokenWithSpan]) -> Option<usize> {
    let Token::Word(word) = last else { return None };
    let is_listed = word.quote_style.is_none()
        && NAMES.iter().any(|name| word.value.eq_ignore_ascii_case(name));
    let is_plain = word.quote_style.is_some() || word.keyword == Keyword::NoKeyword;
    let mut begin = before.len();
    let mut has_schema = false;
    while let [.., schema, point] = &before[..begin]
        && point.token == Token::Period
        && matches!(schema.token, Token::Word(_))
    {
        begin -= 2;
        has_schema = true;
    }
    let is_type = is_listed || is_plain || has_schema;
    if is_xml_option(word, before) {
        return None;
    }
    (is_type && !is_behind_part(&before[..begin])).then_some(begin)
}

/// True for what XMLPARSE begins with.
fn is_xml_option(word: &Word, before: &[TokenWithSpan]) -> bool {
    let is = |word: &Word, known: &str| word.value.eq_ignore_ascii_case(known);
    let [.., call, parenthesis] = before else { return false };
    let is_parsed = matches!(&call.token, Token::Word(name) if is(name, "xmlparse"));
    parenthesis.token == Token::LParen && is_parsed && (is(word, "content") || is(word, "document"))
}

/// True behind a point, `::`, AS, or what ends an expression, whose alias the name is then.
fn is_behind_part(before: &[TokenWithSpan]) -> bool {
    let last = before.iter().rev().find(|each| !matches!(each.token, Token::Whitespace(_)));
    match last.map(|last| &last.token) {
        Some(Token::Period | Token::DoubleColon | Token::RParen | Token::RBracket) => true,
        Some(Token::Number(..) | Token::SingleQuotedString(_)) => true,
        Some(Token::Word(word)) => {
            word.quote_style.is_some() || matches!(word.keyword, Keyword::AS | Keyword::NoKeyword)
        }
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
            (
                "select pg_catalog.inet '::1', \"char\" 'x'",
                "select '::1'::pg_catalog.inet , 'x'::\"char\" ",
            ),
            ("select rainbow 'red', a inet 'x'", "select 'red'::rainbow , a inet 'x'"),
            (
                "select a like 'x' escape 'y', b in ('x')",
                "select a like 'x' escape 'y', b in ('x')",
            ),
            ("select '1'::inet 'x'", "select '1'::inet 'x'"),
            ("select 1 as name 'x'", "select 1 as name 'x'"),
            ("select 1 other 'x', f(1) \"inet\" 'x'", "select 1 other 'x', f(1) \"inet\" 'x'"),
        ] {
            assert_eq!(spelled(text), expected);
        }
    }
}
