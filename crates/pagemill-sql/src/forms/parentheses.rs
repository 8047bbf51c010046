//! Forms that the parser wants in parentheses.
//!
//! ```text
//! a join b join c on d on e       a join (b join c on d) on e
//! a is distinct from b and c      (a is distinct from b) and c
//! ((select 1) union select 2)     (select * from ((select 1) union select 2) u)
//! ```
//!
//! Invariants: the parentheses stand where PostgreSQL's grammar groups what is in them. The parser takes all that is behind IS DISTINCT
//! FROM for its operand; where it is not plain what PostgreSQL takes, the form is left as it is.
//!
//! Source: `joined_table`, `a_expr` and its precedences, `select_with_parens` in `src/backend/parser/gram.y`,
//! PostgreSQL 14 to 18.

use sqlparser::tokenizer::Token;

use super::brief::{BEFORE_OPERAND, named};
use super::{Change, Changes, Seen};
use crate::lexical::is_word;

/// Words behind which the first operand of a test begins.
const BEFORE_TEST: [&str; 17] = [
    "and", "or", "not", "where", "on", "when", "then", "else", "select", "having", "by",
    "distinct", "all", "return", "between", "is", "filter",
];

/// Words before which the second operand ends without AND or OR.
const BEHIND_TEST: [&str; 35] = [
    "as",
    "asc",
    "between",
    "cross",
    "desc",
    "else",
    "end",
    "except",
    "fetch",
    "for",
    "from",
    "full",
    "group",
    "having",
    "inner",
    "intersect",
    "is",
    "isnull",
    "join",
    "left",
    "limit",
    "natural",
    "not",
    "notnull",
    "nulls",
    "offset",
    "on",
    "order",
    "returning",
    "right",
    "then",
    "union",
    "using",
    "when",
    "where",
];

/// `a IS [NOT] DISTINCT FROM b` before AND or OR.
pub(super) fn distinct(seen: &Seen<'_>, number: usize) -> Changes {
    let from = number + 2 + usize::from(seen.is(number + 1, "not"));
    let is_test = seen.is(number, "is") && seen.is(from - 1, "distinct") && seen.is(from, "from");
    if !is_test {
        return Changes::new();
    }
    match (operand_begin(seen, number), operand_end(seen, from + 1)) {
        (Some(begin), Some(end)) if begin < number && end > from + 1 => {
            vec![(begin, Change::Before(Token::LParen)), (end, Change::Before(Token::RParen))]
        }
        _ => Changes::new(),
    }
}

/// Where the operand begins that ends before a place; `None` where it is not plain.
fn operand_begin(seen: &Seen<'_>, end: usize) -> Option<usize> {
    let (mut depth, mut cases) = (0_usize, 0_usize);
    for at in (0..end).rev() {
        match seen.token(at)? {
            Token::RParen | Token::RBracket => depth += 1,
            Token::LParen | Token::LBracket if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            _ if seen.is(at, "end") => cases += 1,
            _ if cases > 0 => cases -= usize::from(seen.is(at, "case")),
            Token::LParen | Token::LBracket | Token::Comma | Token::SemiColon => {
                return Some(at + 1);
            }
            Token::RArrow | Token::Assignment => return Some(at + 1),
            _ if seen.is(at, "case") => return Some(at + 1),
            // AND can be that of BETWEEN.
            _ if seen.is(at, "and") => return is_junction(seen, at).then_some(at + 1),
            _ if seen.is_any(at, &["between", "is"]) => return None,
            _ if seen.is_any(at, &BEFORE_TEST) => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// True for an AND before which no BETWEEN waits for one.
fn is_junction(seen: &Seen<'_>, and: usize) -> bool {
    let mut depth = 0_usize;
    for at in (0..and).rev() {
        match seen.token(at) {
            Some(Token::RParen | Token::RBracket) => depth += 1,
            Some(Token::LParen | Token::LBracket) if depth > 0 => depth -= 1,
            Some(Token::LParen | Token::LBracket | Token::Comma) if depth == 0 => return true,
            _ if depth > 0 => {}
            _ if seen.is(at, "between") => return false,
            _ if seen.is_any(at, &["and", "or", "where", "on", "when", "select"]) => return true,
            _ => {}
        }
    }
    true
}

/// The AND or OR behind an operand; `None` where something else ends it.
fn operand_end(seen: &Seen<'_>, begin: usize) -> Option<usize> {
    let ends = |at: &usize| {
        matches!(seen.token(*at), Some(Token::Comma | Token::SemiColon))
            || seen.is_any(*at, &["and", "or"])
            || seen.is_any(*at, &BEHIND_TEST)
    };
    seen.beside(begin).find(ends).filter(|at| seen.is_any(*at, &["and", "or"]))
}

/// A query in an expression of which a query in parentheses is the first part.
pub(super) fn united(seen: &Seen<'_>, number: usize) -> Changes {
    let is_double = seen.token(number) == Some(&Token::LParen)
        && seen.token(number + 1) == Some(&Token::LParen);
    let is_expression = match seen.before(number) {
        Some(Token::Word(_)) => number.checked_sub(1).is_some_and(|at| {
            seen.is_any(at, &BEFORE_OPERAND)
                && !seen.is_any(at, &["as", "from", "in", "materialized"])
        }),
        Some(Token::RParen | Token::RBracket) | None => false,
        Some(_) => true,
    };
    let first = (number..seen.places.len()).find(|at| seen.token(*at) != Some(&Token::LParen));
    let is_query = first.is_some_and(|at| seen.is_any(at, &["select", "with", "values", "table"]));
    if !is_double || !is_expression || !is_query {
        return Changes::new();
    }
    let (Some(inner), Some(close)) = (seen.other_end(number + 1), seen.other_end(number)) else {
        return Changes::new();
    };
    if !seen.is_any(inner + 1, &["union", "intersect", "except"]) {
        return Changes::new();
    }
    let mut opened = vec![Token::LParen, Token::make_keyword("SELECT"), Token::Mul];
    opened.extend([Token::make_keyword("FROM"), Token::LParen]);
    let closed = vec![Token::RParen, named("u"), Token::RParen];
    vec![(number, Change::To(opened)), (close, Change::To(closed))]
}

/// A join whose condition has not come yet.
struct Open {
    join: usize,
    /// True where what it joins is a join itself.
    is_nested: bool,
}

/// Parentheses around what a join has before its condition, where that is a join itself.
pub(super) fn nested_joins(seen: &Seen<'_>) -> Changes {
    let mut changes = Changes::new();
    let mut around: Vec<Vec<Open>> = vec![Vec::new()];
    for number in 0..seen.places.len() {
        match seen.token(number) {
            Some(Token::LParen) => around.push(Vec::new()),
            Some(Token::RParen) if around.len() > 1 => drop(around.pop()),
            _ => {}
        }
        let Some(open) = around.last_mut() else { continue };
        if seen.is(number, "select") {
            open.clear();
        }
        if seen.is(number, "join") {
            open.iter_mut().rev().take(1).for_each(|last| last.is_nested = true);
            if !is_without_condition(seen, number) {
                open.push(Open { join: number, is_nested: false });
            }
        }
        if seen.is_any(number, &["on", "using"])
            && let Some(done) = open.pop()
            && done.is_nested
        {
            changes.push((done.join + 1, Change::Before(Token::LParen)));
            changes.push((number, Change::Before(Token::RParen)));
        }
    }
    changes
}

/// CROSS JOIN and NATURAL JOIN.
fn is_without_condition(seen: &Seen<'_>, join: usize) -> bool {
    let kinds = ["inner", "left", "right", "full", "outer"];
    let first = (0..join).rev().find(|at| !kinds.iter().any(|kind| is_word(seen.token(*at), kind)));
    first.is_some_and(|at| seen.is_any(at, &["cross", "natural"]))
}
