//! How deep a statement is before it is parsed, so that no text is deeper than the stack of the thread that plans it.
//!
//! ```text
//! a + b + c   2 levels: each operator of a chain is one, until a comma or the next clause
//! f(a + (b))  those within parentheses come on top of those around them
//! ```
//!
//! Invariant: what is counted is at least what the parser makes of it.
//!
//! Source: `check_stack_depth` in `src/backend/tcop/postgres.c`, PostgreSQL 15, which raises the same error, later.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlState, StatementError};

/// Levels of operators, or of joins and set operations: so many are planned on a stack of
/// [`PLANNING_STACK`](crate::PLANNING_STACK) bytes without optimization.
const MOST_LEVELS: usize = 1000;

/// Of what is between two parentheses.
#[derive(Default)]
struct Levels {
    /// Operators in a chain.
    operators: usize,
    /// Joins and set operations.
    relations: usize,
}

/// Refuses a statement that is too deep.
pub(crate) fn check_depth(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut open = vec![Levels::default()];
    let (mut operators, mut relations) = (0, 0);
    for token in tokens {
        let is_within = open.len() > 1;
        let top = open.last_mut().expect("the outermost is never closed"); // infallible: see below
        match &token.token {
            Token::LParen | Token::LBracket => open.push(Levels::default()),
            Token::RParen | Token::RBracket if is_within => {
                operators -= top.operators;
                relations -= top.relations;
                open.pop();
            }
            Token::SemiColon => (open, operators, relations) = (vec![Levels::default()], 0, 0),
            found if ends_chain(found) => operators -= std::mem::take(&mut top.operators),
            found if is_operator(found) => {
                top.operators += 1;
                operators += 1;
            }
            _ => {}
        }
        if let (Token::Word(word), Some(top)) = (&token.token, open.last_mut())
            && is_of_relations(word.keyword)
        {
            top.relations += 1;
            relations += 1;
        }
        if operators > MOST_LEVELS || relations > MOST_LEVELS {
            let message = format!(
                "stack depth limit exceeded: more than {MOST_LEVELS} operators, joins or queries in a row"
            );
            let hint = "IN (…) takes any number of values.";
            return Err(StatementError::new(SqlState("54001"), message).with_hint(hint).into());
        }
    }
    Ok(())
}

fn is_of_relations(word: Keyword) -> bool {
    use Keyword::{EXCEPT, INTERSECT, JOIN, UNION};
    matches!(word, JOIN | UNION | EXCEPT | INTERSECT)
}

fn ends_chain(token: &Token) -> bool {
    use Keyword::{FROM, GROUP, HAVING, LIMIT, ON, ORDER, SELECT, WHERE};
    match token {
        Token::Comma => true,
        Token::Word(word) => {
            matches!(word.keyword, SELECT | FROM | WHERE | ON | GROUP | ORDER | HAVING | LIMIT)
                || is_of_relations(word.keyword)
        }
        _ => false,
    }
}

fn is_operator(token: &Token) -> bool {
    use Keyword::{AND, AT, BETWEEN, COLLATE, ILIKE, IN, IS, LIKE, NOT, OR, SIMILAR};
    match token {
        Token::Word(word) => matches!(
            word.keyword,
            AND | OR | NOT | IS | LIKE | ILIKE | SIMILAR | IN | BETWEEN | COLLATE | AT
        ),
        Token::Number(..) | Token::Whitespace(_) | Token::Period | Token::Placeholder(_) => false,
        other => !is_text(other),
    }
}

fn is_text(token: &Token) -> bool {
    use Token::{
        DollarQuotedString, EscapedStringLiteral, HexStringLiteral, NationalStringLiteral,
        SingleQuotedByteStringLiteral, SingleQuotedString, UnicodeStringLiteral,
    };
    matches!(
        token,
        SingleQuotedString(_)
            | EscapedStringLiteral(_)
            | DollarQuotedString(_)
            | HexStringLiteral(_)
            | NationalStringLiteral(_)
            | SingleQuotedByteStringLiteral(_)
            | UnicodeStringLiteral(_)
    )
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn is_too_deep(text: &str) -> bool {
        let dialect = PostgreSqlDialect {};
        check_depth(&Tokenizer::new(&dialect, text).tokenize_with_location().unwrap()).is_err()
    }

    #[test]
    fn chains_are_counted_and_lists_are_not() {
        let of = |part: &str, between: &str, count: usize| vec![part; count].join(between);
        assert!(!is_too_deep(&format!("select {}", of("1", "+", 1000))));
        assert!(is_too_deep(&format!("select {}", of("1", "+", 1002))));
        assert!(is_too_deep(&format!("select 1 where {}", of("a = 1", " or ", 600))));
        assert!(is_too_deep(&format!("select x{}", of("::int", "", 1001))));
        assert!(is_too_deep(&format!("select {}", of("1+(", "", 1001))));
        assert!(is_too_deep(&of("select a, b", " union ", 1002)));
        assert!(!is_too_deep(&format!("select {}", of("-1 + 2", ", ", 5000))));
        assert!(!is_too_deep(&format!("select a in ({})", of("'x'::text", ",", 5000))));
        assert!(!is_too_deep(&format!("select {}", of("(1 + 2)", ", ", 5000))));
        assert!(!is_too_deep(&of("select 1 + 1", ";", 5000)));
    }
}
