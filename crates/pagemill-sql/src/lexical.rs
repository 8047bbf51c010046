//! What PostgreSQL's scanner sees otherwise than the parser here, refused before the parse.
//!
//! The parser takes `0b101` for the number 0 that is called `b101`, `2^-1` for two operators, a string behind a string
//! for an alias, and a chain of comparisons for a nest of them. PostgreSQL refuses such texts or means something else;
//! none of them may be answered. Sources: `src/backend/parser/scan.l`, `gram.y`, PostgreSQL 18.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Ident, Query, Select, SelectItem, SetExpr, Statement, Visit, Visitor,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};

use crate::depth::check_depth;
use crate::error::{Result, SqlState, StatementError};
use crate::precedence::binds_alike;

/// Where the words stand that follow AS.
pub(crate) type Labels = HashSet<Location>;

/// Checks a text, token by token.
///
/// # Errors
/// Where PostgreSQL's scanner finds other tokens. A text that cannot be cut at all is left to the parser.
pub(crate) fn check_tokens(text: &str) -> Result<Labels> {
    let dialect = PostgreSqlDialect {};
    let Ok(tokens) = Tokenizer::new(&dialect, text).tokenize_with_location() else {
        return Ok(Labels::new());
    };
    for pair in tokens.windows(2) {
        check_number(&pair[0], &pair[1].token)?;
    }
    if let Some(last) = tokens.last() {
        check_number(last, &Token::EOF)?;
    }
    check_depth(&tokens)?;
    check_strings(&tokens)?;
    check_not_null(&tokens)?;
    check_intervals(&tokens)?;
    check_frames(&tokens)?;
    check_operators(&tokens)?;
    Ok(labels(&tokens))
}

fn labels(tokens: &[TokenWithSpan]) -> Labels {
    let is_seen = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let seen: Vec<&TokenWithSpan> = tokens.iter().filter(is_seen).collect();
    let is_as =
        |token: &TokenWithSpan| matches!(&token.token, Token::Word(w) if w.keyword == Keyword::AS);
    seen.windows(2).filter(|pair| is_as(pair[0])).map(|pair| pair[1].span.start).collect()
}

/// The name that [`spelled`] gives a list of functions.
pub(crate) const ROWS_FROM: &str = "rows from";

/// The name that [`spelled`] gives ONLY, whose table is then its argument.
pub(crate) const ONLY: &str = "only rows";

/// The tokens as the parser knows them: `ROWS FROM (…)` and `ONLY t` as functions, no LATERAL before a function, which is
/// so in any case, and `TABLE t` as `SELECT * FROM t`.
pub(crate) fn spelled(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let seen: Vec<usize> =
        (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let (mut left_out, mut lists, mut tables) = (Vec::new(), Vec::new(), Vec::new());
    for (number, at) in seen.iter().enumerate() {
        let next = |count: usize| seen.get(number + count).map(|at| &tokens[*at].token);
        if is_word(next(0), "lateral") && next(1) != Some(&Token::LParen) {
            left_out.push(*at);
        }
        let starts_with = |words: &[&str]| {
            words.iter().enumerate().all(|(count, word)| is_word(next(count), word))
        };
        // What a frame leaves out where nothing is said.
        if starts_with(&["exclude", "no", "others"]) {
            left_out.extend(&seen[number..number + 3]);
        }
        // The parser knows plain operators only before ANY and ALL.
        let is_plain = is_word(next(0), "operator")
            && is_word(next(2), "pg_catalog")
            && next(3) == Some(&Token::Period)
            && next(5) == Some(&Token::RParen);
        if is_plain && ["any", "all", "some"].iter().any(|word| is_word(next(6), word)) {
            let around = (number..number + 6).filter(|place| *place != number + 4);
            left_out.extend(around.map(|place| seen[place]));
        }
        let before = number.checked_sub(1).map(|before| &tokens[seen[before]].token);
        let starts_query = matches!(before, None | Some(Token::SemiColon | Token::LParen))
            || ["union", "all", "distinct", "except", "intersect"]
                .iter()
                .any(|w| is_word(before, w));
        if starts_query && is_word(next(0), "table") && matches!(next(1), Some(Token::Word(_))) {
            tables.push(*at);
        }
        let starts_item = before == Some(&Token::Comma)
            || ["from", "join", "lateral"].iter().any(|word| is_word(before, word));
        let is_list = is_word(next(0), "rows")
            && is_word(next(1), "from")
            && next(2) == Some(&Token::LParen)
            && matches!(next(3), Some(Token::Word(_)))
            && next(4) == Some(&Token::LParen);
        if starts_item && is_list {
            lists.push(*at);
            left_out.push(seen[number + 1]);
        }
    }
    let commas = words_of_substrings(&tokens, &seen);
    let (mut opened, mut closed) = bare_sets(&tokens, &seen);
    let (own, own_opened, own_closed) = bare_tables(&tokens, &seen);
    opened.extend(own_opened);
    closed.extend(own_closed);
    let nameless = nameless_definitions(&tokens, &seen);
    let mut spelled = Vec::with_capacity(tokens.len());
    for (at, mut token) in tokens.into_iter().enumerate() {
        if left_out.contains(&at) {
            continue;
        }
        if tables.contains(&at) {
            let words = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
            spelled.extend(words.map(|word| TokenWithSpan { token: word, ..token.clone() }));
            continue;
        }
        if lists.contains(&at) {
            token.token = Token::make_word(ROWS_FROM, Some('"'));
        }
        if own.contains(&at) {
            token.token = Token::make_word(ONLY, Some('"'));
        }
        if commas.contains(&at) {
            token.token = Token::Comma;
        }
        let name = nameless.iter().find(|(place, _)| *place == at).map(|(_, name)| name);
        let name = name.map(|name| Token::make_word(name, Some('"')));
        let name = name.map(|word| TokenWithSpan { token: word, ..token.clone() });
        let like = |paren: Token| TokenWithSpan { token: paren, ..token.clone() };
        let (before, behind) = (like(Token::LParen), like(Token::RParen));
        spelled.extend(opened.contains(&at).then_some(before));
        spelled.push(token);
        spelled.extend(closed.contains(&at).then_some(behind));
        spelled.extend(name);
    }
    spelled
}

/// Each AS behind a call that a list of column definitions follows, `f(…) AS (a int)`, and the function's name, which the item has
/// then; the parser wants one.
fn nameless_definitions(tokens: &[TokenWithSpan], seen: &[usize]) -> Vec<(usize, String)> {
    const QUERIES: [&str; 8] =
        ["select", "with", "values", "table", "insert", "update", "delete", "merge"];
    let token = |number: usize| seen.get(number).map(|at| &tokens[*at].token);
    let mut found = Vec::new();
    for (number, place) in seen.iter().enumerate().skip(1) {
        let is_list = is_word(token(number), "as")
            && token(number - 1) == Some(&Token::RParen)
            && token(number + 1) == Some(&Token::LParen)
            && matches!(token(number + 2), Some(Token::Word(_)))
            && matches!(token(number + 3), Some(Token::Word(_)))
            && !QUERIES.iter().any(|word| is_word(token(number + 2), word));
        let begin = is_list.then(|| opening(&token, number - 1));
        if let Some(Token::Word(word)) = begin.and_then(|at| token(at.checked_sub(1)?)) {
            let name = match word.quote_style {
                Some(_) => word.value.clone(),
                None => word.value.to_lowercase(),
            };
            found.push((*place, name));
        }
    }
    found
}

/// Where the parenthesis opens that closes here; the beginning, where it does not.
fn opening<'t>(token: &impl Fn(usize) -> Option<&'t Token>, close: usize) -> usize {
    let mut depth = 0_usize;
    for at in (0..=close).rev() {
        match token(at) {
            Some(Token::RParen) => depth += 1,
            Some(Token::LParen) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    0
}

/// SIMILAR and ESCAPE in `SUBSTRING(text SIMILAR pattern ESCAPE letter)`, which stand for commas: it is a call with three arguments.
fn words_of_substrings(tokens: &[TokenWithSpan], seen: &[usize]) -> Vec<usize> {
    let token = |number: usize| seen.get(number).map(|at| &tokens[*at].token);
    let mut found = Vec::new();
    for number in 0..seen.len() {
        if !is_word(token(number), "substring") || token(number + 1) != Some(&Token::LParen) {
            continue;
        }
        let (mut depth, mut words) = (0usize, Vec::new());
        for (at, place) in seen.iter().enumerate().skip(number + 2) {
            match token(at) {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) if depth == 0 => break,
                Some(Token::RParen) => depth -= 1,
                word if depth == 0 => {
                    let wanted = if words.is_empty() { "similar" } else { "escape" };
                    let is_operator = is_word(token(at + 1), "to");
                    if is_word(word, wanted) && !is_operator {
                        words.push(*place);
                    }
                }
                _ => {}
            }
        }
        if words.len() == 2 {
            found.extend(words);
        }
    }
    found
}

/// Where ONLY stands before an item of FROM, and where its table begins and ends that has no parentheses around it.
fn bare_tables(tokens: &[TokenWithSpan], seen: &[usize]) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
    let (mut only, mut opened, mut closed) = (Vec::new(), Vec::new(), Vec::new());
    let token = |number: usize| seen.get(number).map(|at| &tokens[*at].token);
    for number in 1..seen.len() {
        let before = token(number - 1);
        let starts_item = before == Some(&Token::Comma)
            || ["from", "join"].iter().any(|word| is_word(before, word));
        if !starts_item || !is_word(token(number), "only") {
            continue;
        }
        match token(number + 1) {
            Some(Token::LParen) => only.push(seen[number]),
            Some(Token::Word(_)) => {
                let mut last = number + 1;
                while token(last + 1) == Some(&Token::Period) && token(last + 2).is_some() {
                    last += 2;
                }
                only.push(seen[number]);
                opened.push(seen[number + 1]);
                closed.push(seen[last]);
            }
            _ => {}
        }
    }
    (only, opened, closed)
}

/// Where the items of GROUPING SETS begin and end that have no parentheses around them.
fn bare_sets(tokens: &[TokenWithSpan], seen: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let (mut opened, mut closed) = (Vec::new(), Vec::new());
    let token = |number: usize| seen.get(number).map(|at| &tokens[*at].token);
    for number in 0..seen.len() {
        let is_list = is_word(token(number), "grouping")
            && is_word(token(number + 1), "sets")
            && token(number + 2) == Some(&Token::LParen);
        if !is_list {
            continue;
        }
        let (mut depth, mut begins, mut is_bare) = (0usize, true, false);
        for at in number + 3..seen.len() {
            let found = &tokens[seen[at]].token;
            if std::mem::take(&mut begins) && *found != Token::LParen {
                opened.push(seen[at]);
                is_bare = true;
            }
            match found {
                Token::LParen => depth += 1,
                Token::RParen | Token::Comma if depth == 0 => {
                    closed.extend(std::mem::take(&mut is_bare).then(|| seen[at - 1]));
                    begins = *found == Token::Comma;
                    if !begins {
                        break;
                    }
                }
                Token::RParen => depth -= 1,
                _ => {}
            }
        }
    }
    (opened, closed)
}

fn is_word(token: Option<&Token>, wanted: &str) -> bool {
    let is_it = |word: &Word| word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted);
    matches!(token, Some(Token::Word(word)) if is_it(word))
}

/// `interval(0) '…'` has a precision, which the parser forgets.
fn check_intervals(tokens: &[TokenWithSpan]) -> Result<()> {
    let is_seen = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let tokens: Vec<&TokenWithSpan> = tokens.iter().filter(is_seen).collect();
    for [word, open, number, close, string] in
        tokens.windows(5).filter_map(|five| <&[&TokenWithSpan; 5]>::try_from(five).ok())
    {
        let is_interval =
            matches!(&word.token, Token::Word(w) if w.value.eq_ignore_ascii_case("interval"));
        if is_interval
            && open.token == Token::LParen
            && matches!(number.token, Token::Number(..))
            && close.token == Token::RParen
            && is_string(&string.token)
        {
            return unsupported_at(word, "an interval with a precision before its text");
        }
    }
    Ok(())
}

/// Frames without some of their rows, which the parser does not know.
fn check_frames(tokens: &[TokenWithSpan]) -> Result<()> {
    let is_seen = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let tokens: Vec<&TokenWithSpan> = tokens.iter().filter(is_seen).collect();
    for pair in tokens.windows(2) {
        let what = ["current", "group", "ties"];
        let is_left_out = what.iter().any(|word| is_word(Some(&pair[1].token), word));
        if is_word(Some(&pair[0].token), "exclude") && is_left_out {
            return unsupported_at(pair[0], "EXCLUDE in a window frame");
        }
    }
    Ok(())
}

fn syntax_error<T>(at: &TokenWithSpan, message: String) -> Result<T> {
    let start = at.span.start;
    Err(StatementError::new(SqlState::SYNTAX_ERROR, message).at(start.line, start.column).into())
}

fn unsupported_at<T>(at: &TokenWithSpan, what: &str) -> Result<T> {
    let start = at.span.start;
    Err(StatementError::unsupported(what).at(start.line, start.column).into())
}

/// A number ends where no word and no other number begins, and is written in digits without underscores.
fn check_number(number: &TokenWithSpan, next: &Token) -> Result<()> {
    let Token::Number(digits, _) = &number.token else {
        return match number.token {
            // Written 0x1F or X'1f', which are a number and a bit string.
            Token::HexStringLiteral(_) => unsupported_at(number, "a hexadecimal literal"),
            _ => Ok(()),
        };
    };
    if digits.contains('_') {
        return unsupported_at(number, "a number with underscores");
    }
    match next {
        Token::Word(_)
        | Token::Number(..)
        | Token::Placeholder(_)
        | Token::SingleQuotedByteStringLiteral(_)
        | Token::EscapedStringLiteral(_)
        | Token::UnicodeStringLiteral(_)
        | Token::NationalStringLiteral(_) => {
            unsupported_at(number, "a number with letters or digits right behind it")
        }
        _ => Ok(()),
    }
}

fn is_string(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::HexStringLiteral(_)
    )
}

/// Strings on lines one below the other are one string to PostgreSQL; on one line they are an error.
fn check_strings(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut behind_string = false;
    for token in tokens.iter().filter(|t| !matches!(t.token, Token::Whitespace(_))) {
        let string = is_string(&token.token);
        if string && behind_string {
            return unsupported_at(token, "a string behind a string");
        }
        behind_string = string;
    }
    Ok(())
}

/// `x NOT NULL` is no test for NULL; behind a word like WHERE it is the negation of one.
fn check_not_null(tokens: &[TokenWithSpan]) -> Result<()> {
    let is_seen = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let seen: Vec<&TokenWithSpan> = tokens.iter().filter(is_seen).collect();
    for three in seen.windows(3) {
        let ends_operand = match &three[0].token {
            Token::Word(word) => !BEFORE_OPERAND.contains(&word.keyword),
            Token::RParen | Token::RBracket | Token::Number(..) | Token::Placeholder(_) => true,
            token => is_string(token),
        };
        if ends_operand
            && is_word(Some(&three[1].token), "not")
            && is_word(Some(&three[2].token), "null")
        {
            return syntax_error(
                three[1],
                format!("syntax error at or near \"{}\"", three[1].token),
            );
        }
    }
    Ok(())
}

/// Words with an operand behind them.
const BEFORE_OPERAND: [Keyword; 19] = [
    Keyword::IS,
    Keyword::WHERE,
    Keyword::AND,
    Keyword::OR,
    Keyword::NOT,
    Keyword::SELECT,
    Keyword::ALL,
    Keyword::DISTINCT,
    Keyword::FROM,
    Keyword::ON,
    Keyword::WHEN,
    Keyword::THEN,
    Keyword::ELSE,
    Keyword::CASE,
    Keyword::HAVING,
    Keyword::BY,
    Keyword::LIMIT,
    Keyword::OFFSET,
    Keyword::BETWEEN,
];

/// The characters of PostgreSQL's operators.
const OPERATOR: &str = "+-*/<>=~!@#%^&|`?";
/// An operator with one of these may end in a plus or minus sign.
const ENDS_FREELY: &str = "~!@#%^&|`?";

/// Operators that stand together are cut as PostgreSQL cuts them.
fn check_operators(tokens: &[TokenWithSpan]) -> Result<()> {
    let is_operator = |token: &TokenWithSpan| {
        let text = token.token.to_string();
        !is_string(&token.token)
            && !matches!(token.token, Token::Whitespace(_) | Token::Word(_) | Token::Placeholder(_))
            && !text.is_empty()
            && text.chars().all(|c| OPERATOR.contains(c))
    };
    for run in tokens.chunk_by(|a, b| is_operator(a) == is_operator(b)) {
        if !is_operator(&run[0]) {
            continue;
        }
        let ours: Vec<String> = run.iter().map(|token| token.token.to_string()).collect();
        if ours.iter().any(|one| one.contains("/*") || one.contains("--")) {
            return unsupported_at(&run[0], "a comment right behind an operator");
        }
        let theirs = scanned_operators(&ours.concat());
        // Two names of one operator.
        let same = |(a, b): (&String, &String)| a == b || (a == "<>" && b == "!=");
        if ours.len() != theirs.len() || !ours.iter().zip(&theirs).all(same) {
            let odd = theirs.iter().find(|o| !ours.contains(o)).unwrap_or(&theirs[0]);
            return unsupported_at(&run[0], &format!("the operator {odd}"));
        }
    }
    Ok(())
}

/// A run of operator characters, cut into operators.
fn scanned_operators(run: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = run;
    while !rest.is_empty() {
        let mut end = rest.len();
        if !rest.contains(|c| ENDS_FREELY.contains(c)) {
            while end > 1 && rest[..end].ends_with(['+', '-']) {
                end -= 1;
            }
        }
        found.push(rest[..end].to_owned());
        rest = &rest[end..];
    }
    found
}

/// Checks what was parsed.
///
/// # Errors
/// Where PostgreSQL's grammar has no such statement.
pub(crate) fn check_statement(statement: &Statement, labels: &Labels) -> Result<()> {
    match statement.visit(&mut Grammar { labels }) {
        ControlFlow::Break(error) => Err(error.into()),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Grammar<'l> {
    labels: &'l Labels,
}

impl Visitor for Grammar<'_> {
    type Break = StatementError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<StatementError> {
        check_aliases(&query.body, self.labels)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<StatementError> {
        let sides: Vec<(&Expr, u8)> = match expr {
            Expr::BinaryOp { left, op, right } if is_comparison(op) => vec![(left, 1), (right, 1)],
            Expr::Between { expr, .. }
            | Expr::InList { expr, .. }
            | Expr::InSubquery { expr, .. }
            | Expr::Like { expr, .. }
            | Expr::ILike { expr, .. }
            | Expr::SimilarTo { expr, .. } => vec![(expr, 2)],
            _ => return binding(expr),
        };
        match sides.into_iter().any(|(side, level)| level_of(side) == Some(level)) {
            true => {
                let message = "syntax error: comparisons do not chain: put one into parentheses";
                ControlFlow::Break(StatementError::new(SqlState::SYNTAX_ERROR, message))
            }
            false => binding(expr),
        }
    }
}

/// Operators that the parser lets bind otherwise are refused.
fn binding(expr: &Expr) -> ControlFlow<StatementError> {
    if binds_alike(expr) {
        return ControlFlow::Continue(());
    }
    let what = "operators that bind in this order without parentheses";
    let error = StatementError::unsupported(format!("{expr}: {what}"));
    ControlFlow::Break(error.with_hint("Put parentheses around what belongs together."))
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// Which of the levels that do not associate an expression without parentheses is on.
fn level_of(expr: &Expr) -> Option<u8> {
    match expr {
        Expr::BinaryOp { op, .. } if is_comparison(op) => Some(1),
        Expr::AnyOp { .. } | Expr::AllOp { .. } => Some(1),
        Expr::Between { .. }
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::SimilarTo { .. } => Some(2),
        _ => None,
    }
}

/// Words that name a column only behind AS.
///
/// Source: those marked `AS_LABEL` in `src/include/parser/kwlist.h`, PostgreSQL 18.
const NO_BARE_LABELS: [&str; 40] = [
    "array",
    "as",
    "char",
    "character",
    "create",
    "day",
    "except",
    "fetch",
    "filter",
    "for",
    "from",
    "grant",
    "group",
    "having",
    "hour",
    "intersect",
    "into",
    "isnull",
    "limit",
    "minute",
    "month",
    "notnull",
    "offset",
    "on",
    "order",
    "over",
    "overlaps",
    "precision",
    "returning",
    "second",
    "to",
    "union",
    "varying",
    "where",
    "window",
    "with",
    "within",
    "without",
    "year",
    "collate",
];

#[cold]
fn no_bare_label(alias: &Ident) -> StatementError {
    let at = alias.span.start;
    let error = match alias.value.to_ascii_lowercase().as_str() {
        word @ ("isnull" | "notnull" | "overlaps" | "over" | "filter" | "within") => {
            StatementError::unsupported(word.to_uppercase())
        }
        word => {
            let message = format!("syntax error at or near \"{word}\"");
            StatementError::new(SqlState::SYNTAX_ERROR, message)
        }
    };
    error.at(at.line, at.column)
}

/// An alias is no string: `select label 'x'` is a literal of the type label.
fn check_aliases(body: &SetExpr, labels: &Labels) -> ControlFlow<StatementError> {
    match body {
        SetExpr::Select(select) => check_select(select, labels),
        SetExpr::SetOperation { left, right, .. } => {
            check_aliases(left, labels)?;
            check_aliases(right, labels)
        }
        _ => ControlFlow::Continue(()),
    }
}

fn check_select(select: &Select, labels: &Labels) -> ControlFlow<StatementError> {
    for item in &select.projection {
        if let SelectItem::ExprWithAlias { alias, .. } = item
            && alias.quote_style == Some('\'')
        {
            return ControlFlow::Break(StatementError::unsupported(
                "a string behind an expression",
            ));
        }
        if let SelectItem::ExprWithAlias { alias, .. } = item
            && alias.quote_style.is_none()
            && NO_BARE_LABELS.contains(&alias.value.to_ascii_lowercase().as_str())
            && !labels.contains(&alias.span.start)
        {
            return ControlFlow::Break(no_bare_label(alias));
        }
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::{check_statement, check_tokens, scanned_operators};
    use crate::session::Session;

    /// Each was refused by a server of PostgreSQL 18, or is no operator, number or string as it stands.
    #[test]
    fn what_the_scanner_sees_otherwise_is_refused() {
        for text in [
            "select 0b101",
            "select 0o17",
            "select 123abc",
            "select 1.e",
            "select 1_000.5e0_1",
            "select 100_",
            "select 2^-1",
            "select 'a' 'b'",
            "select 'a'\n'b'",
            "select 'a' -- c\n 'b'",
            "select 0.0e1a",
        ] {
            assert!(check_tokens(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_it_sees_alike_is_left() {
        for text in [
            "select 1 a, 2.5e-3 as b, -1, 2*-1, 1=-1, 1<-1, 2 ^ -1, 1 - -1, count(*), t.*, 'a'||'b', a->>'x', 1<>2, 1!=2",
            "select 'a' as x, 'b', e'a', $$x$$ from t where a in ('a','b') and b like 'a' escape 'b'",
            "select a[1:2], '1'::int, 1::text, -1::int, f(a => 1), u&'x' uescape '!', 1.5, .5, 5., 7/2, 7%3, ~1, |/ 25.0",
        ] {
            assert!(check_tokens(text).is_ok(), "{text}: {:?}", check_tokens(text).err());
        }
    }

    #[test]
    fn signs_end_an_operator_only_behind_certain_characters() {
        assert_eq!(scanned_operators("*-"), ["*", "-"]);
        assert_eq!(scanned_operators("^-"), ["^-"]);
        assert_eq!(scanned_operators("<=-"), ["<=", "-"]);
        assert_eq!(scanned_operators("+-"), ["+", "-"]);
    }

    #[test]
    fn comparisons_do_not_chain() {
        for (text, good) in [
            ("select 1 < 2 = true", false),
            ("select (1 < 2) = true", true),
            ("select 1 = 1 = true", false),
            ("select a in (1) = true", true),
            ("select a from t where a = 1 and b = 2", true),
            ("select a between 1 and 2 in (true)", false),
            ("select label 'x'", false),
            ("select a as x", true),
            ("select a isnull", false),
            ("select 1 day", false),
            ("select 1 as day, 1 days", true),
        ] {
            let statements = Session::parse_unchecked(text).expect("it parses");
            assert_eq!(
                check_statement(&statements[0], &check_tokens(text).unwrap()).is_ok(),
                good,
                "{text}"
            );
        }
    }
}
