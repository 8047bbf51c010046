//! What PostgreSQL's scanner sees otherwise than the parser here, refused before the parse.
//!
//! The parser takes `0b101` for the number 0 that is called `b101`, `2^-1` for two operators, a string behind a string
//! for an alias, and a chain of comparisons for a nest of them. PostgreSQL refuses such texts or means something else;
//! none of them may be answered. Sources: `src/backend/parser/scan.l`, `gram.y`, PostgreSQL 18.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Ident, ObjectName, Query, Select, SelectItem, SetExpr, Statement,
    TableFactor, Visit, Visitor,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{
    Location, Token, TokenWithSpan, Tokenizer, TokenizerError, Whitespace, Word,
};

use crate::depth::check_depth;
use crate::error::{Result, SqlState, StatementError};
use crate::escapes::masked;
use crate::json_spelling::is_predicate;
use crate::numbers::merged;
use crate::precedence::binds_alike;
use crate::reserved;

/// Where the words stand that follow AS.
pub(crate) type Labels = HashSet<Location>;

/// The tokens of a text, numbers and strings as PostgreSQL cuts and reads them; or why it cannot be cut.
///
/// # Errors
/// Where PostgreSQL's scanner has one.
pub(crate) fn tokens_of(
    text: &str,
) -> Result<std::result::Result<Vec<TokenWithSpan>, TokenizerError>> {
    let masked = masked(text)?.unwrap_or_default();
    let cut = if masked.tokens.is_empty() { text } else { &*masked.text };
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, cut).tokenize_with_location();
    Ok(tokens.map(|mut tokens| {
        for token in tokens.iter_mut().filter(|_| !masked.tokens.is_empty()) {
            if let Some(read) = masked.tokens.get(&token.span.start) {
                token.token = read.clone();
            }
        }
        whole_operators(continued(merged(cut, tokens)))
    }))
}

/// Strings on lines one below the other as one.
fn continued(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut all: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // Where the last string is, and whether a line has ended behind it.
    let mut last: Option<(usize, bool)> = None;
    for token in tokens {
        last = match (&token.token, last) {
            (Token::SingleQuotedString(text), Some((at, true))) => {
                let (Token::SingleQuotedString(before) | Token::EscapedStringLiteral(before)) =
                    &all[at].token
                else {
                    continue;
                };
                // Not the token that texts of statements have constants of.
                all[at].token = Token::EscapedStringLiteral(format!("{before}{text}"));
                all[at].span.end = token.span.end;
                all.truncate(at + 1);
                last = Some((at, false));
                continue;
            }
            (Token::SingleQuotedString(_), _) => Some((all.len(), false)),
            (Token::Whitespace(blank), Some((at, has_ended))) => match blank {
                Whitespace::Space | Whitespace::Tab => Some((at, has_ended)),
                Whitespace::Newline | Whitespace::SingleLineComment { .. } => Some((at, true)),
                Whitespace::MultiLineComment(_) => None,
            },
            _ => None,
        };
        all.push(token);
    }
    all
}

/// Checks a text, token by token.
///
/// # Errors
/// Where PostgreSQL's scanner finds other tokens. A text that cannot be cut at all is left to the parser.
pub(crate) fn check_tokens(text: &str) -> Result<Labels> {
    let Ok(tokens) = tokens_of(text)? else { return Ok(Labels::new()) };
    for pair in tokens.windows(2) {
        check_number(&pair[0], &pair[1].token)?;
    }
    if let Some(last) = tokens.last() {
        check_number(last, &Token::EOF)?;
    }
    check_depth(&tokens)?;
    check_quotes(&tokens)?;
    check_words(&tokens)?;
    check_strings(&tokens)?;
    check_not_null(&tokens)?;
    check_operators(&tokens)?;
    check_unequal(&tokens, text)?;
    Ok(labels(&tokens))
}

fn labels(tokens: &[TokenWithSpan]) -> Labels {
    let is_seen = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let seen: Vec<&TokenWithSpan> = tokens.iter().filter(is_seen).collect();
    let is_as =
        |token: &TokenWithSpan| matches!(&token.token, Token::Word(w) if w.keyword == Keyword::AS);
    seen.windows(2).filter(|pair| is_as(pair[0])).map(|pair| pair[1].span.start).collect()
}

/// Whether a token is this word, without quotes and in letters of either case.
pub(crate) fn is_word(token: Option<&Token>, wanted: &str) -> bool {
    let is_it = |word: &Word| word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted);
    matches!(token, Some(Token::Word(word)) if is_it(word))
}

fn syntax_error<T>(at: &TokenWithSpan, message: String) -> Result<T> {
    let start = at.span.start;
    Err(StatementError::new(SqlState::SYNTAX_ERROR, message).at(start.line, start.column).into())
}

fn unsupported_at<T>(at: &TokenWithSpan, what: &str) -> Result<T> {
    let start = at.span.start;
    Err(StatementError::unsupported(what).at(start.line, start.column).into())
}

/// A number ends where nothing begins that PostgreSQL's scanner would cut otherwise.
fn check_number(number: &TokenWithSpan, next: &Token) -> Result<()> {
    if !matches!(number.token, Token::Number(..)) {
        return Ok(());
    }
    match next {
        Token::Word(_)
        | Token::Number(..)
        | Token::Placeholder(_)
        | Token::SingleQuotedByteStringLiteral(_)
        | Token::HexStringLiteral(_)
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

/// A name in quotes has a letter, and the tag of a string between dollars begins with none of the digits.
fn check_quotes(tokens: &[TokenWithSpan]) -> Result<()> {
    for token in tokens {
        match &token.token {
            Token::Word(word) if word.quote_style.is_some() && word.value.is_empty() => {
                return unsupported_at(token, "a name without letters");
            }
            Token::Placeholder(name)
                if name
                    .strip_prefix('$')
                    .is_some_and(|rest| !rest.chars().all(|c| c.is_ascii_digit())) =>
            {
                return unsupported_at(token, "a parameter with letters behind its number");
            }
            Token::DollarQuotedString(text)
                if text
                    .tag
                    .as_ref()
                    .is_some_and(|tag| tag.starts_with(|c: char| c.is_ascii_digit())) =>
            {
                return unsupported_at(token, "a string whose tag begins with a digit");
            }
            _ => {}
        }
    }
    Ok(())
}

/// Words that the parser takes for names where PostgreSQL has them end what is before them.
fn check_words(tokens: &[TokenWithSpan]) -> Result<()> {
    let is_seen = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let seen: Vec<&TokenWithSpan> = tokens.iter().filter(is_seen).collect();
    for three in seen.windows(3) {
        let [first, second, third] = [0, 1, 2].map(|at| Some(&three[at].token));
        let is_quantified = ["any", "all", "some"].iter().any(|word| is_word(third, word));
        if is_word(first, "similar") && is_word(second, "to") && is_quantified {
            return unsupported_at(three[2], "SIMILAR TO ANY");
        }
    }
    check_ends(&seen)?;
    for pair in seen.windows(2) {
        let [first, second] = [0, 1].map(|at| Some(&pair[at].token));
        if is_word(first, "distinct") && is_word(second, "all") {
            return unsupported_at(pair[1], "DISTINCT ALL");
        }
        if is_word(first, "table") && is_word(second, "only") {
            return unsupported_at(pair[0], "TABLE ONLY");
        }
    }
    Ok(())
}

/// The parser takes END for the end of all, and nothing behind it counts; LATERAL stands in FROM only.
fn check_ends(seen: &[&TokenWithSpan]) -> Result<()> {
    let mut cases = 0_usize;
    for (at, token) in seen.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &seen[before].token);
        if before == Some(&Token::Period) || is_word(before, "as") {
            continue;
        }
        let word = Some(&token.token);
        let starts = matches!(before, None | Some(Token::SemiColon));
        if is_word(word, "case") {
            cases += 1;
        } else if is_word(word, "end") && cases > 0 {
            cases -= 1;
        } else if is_word(word, "end") && !starts {
            return unsupported_at(token, "END in this place");
        }
        let is_item = before == Some(&Token::Comma)
            || ["from", "join"].iter().any(|word| is_word(before, word));
        if is_word(word, "lateral") && !is_item {
            return unsupported_at(token, "LATERAL in this place");
        }
    }
    Ok(())
}

/// Strings on one line are no string; those that PostgreSQL takes for one are one token here already.
fn check_strings(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut before: Option<&Token> = None;
    for token in tokens.iter().filter(|t| !matches!(t.token, Token::Whitespace(_))) {
        match (before, &token.token) {
            (Some(Token::SingleQuotedString(_)), Token::SingleQuotedString(text))
                if !text.contains('\'') =>
            {
                return syntax_error(token, format!("syntax error at or near \"'{text}'\""));
            }
            (Some(string), also) if is_string(string) && is_string(also) => {
                return unsupported_at(token, "a string behind a string");
            }
            _ => {}
        }
        before = Some(&token.token);
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

fn is_operator(token: &TokenWithSpan) -> bool {
    use Token::{Comma, LParen, Number, Period, Placeholder, RParen, SemiColon, Word};
    // Most tokens of a long text, which are not to be written out.
    let is_other = matches!(
        token.token,
        Token::Whitespace(_)
            | Word(_)
            | Placeholder(_)
            | Number(..)
            | LParen
            | RParen
            | Comma
            | Period
            | SemiColon
    );
    if is_other || is_string(&token.token) {
        return false;
    }
    let text = token.token.to_string();
    !text.is_empty() && text.chars().all(|c| OPERATOR.contains(c))
}

/// Operators that the tokenizer does not know, such as those of extensions, in one piece.
fn whole_operators(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut all = Vec::with_capacity(tokens.len());
    let mut run = Vec::new();
    for token in tokens {
        if is_operator(&token) {
            run.push(token);
        } else {
            all.append(&mut recut(std::mem::take(&mut run)));
            all.push(token);
        }
    }
    all.append(&mut recut(run));
    all
}

/// What is refused, or of which it is not known how it was written.
fn is_odd_sign(token: &Token) -> bool {
    let text = token.to_string();
    matches!(token, Token::Neq | Token::DoubleEq) || text.contains("/*") || text.contains("--")
}

/// Operators that stand together, cut anew.
fn recut(run: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_known = match &run[..] {
        [] => true,
        [only] => !matches!(only.token, Token::CustomBinaryOperator(_) | Token::Spaceship),
        _ => false,
    };
    if is_known || run.iter().any(|token| is_odd_sign(&token.token)) {
        return run;
    }
    let text: String = run.iter().map(|token| token.token.to_string()).collect();
    let mut column = run[0].span.start.column;
    let one = |operator: String| {
        let mut made = run[0].clone();
        made.span.start.column = column;
        column += operator.len() as u64;
        made.span.end.column = column;
        made.token = token_of(operator);
        made
    };
    scanned_operators(&text).into_iter().map(one).collect()
}

/// The token of an operator that stands alone.
fn token_of(operator: String) -> Token {
    let cut = Tokenizer::new(&PostgreSqlDialect {}, &operator).tokenize();
    match cut.as_deref() {
        // The parser gives <=> the precedence of a comparison, and the tokenizer takes ?~ for a question mark.
        Ok([only]) if *only != Token::Spaceship && only.to_string() == operator => only.clone(),
        _ => Token::CustomBinaryOperator(operator),
    }
}

/// Operators that stand together are cut as PostgreSQL cuts them.
fn check_operators(tokens: &[TokenWithSpan]) -> Result<()> {
    for run in tokens.chunk_by(|a, b| is_operator(a) == is_operator(b)) {
        if !is_operator(&run[0]) {
            continue;
        }
        // The parser takes it for `=`.
        if let Some(odd) = run.iter().find(|token| token.token == Token::DoubleEq) {
            return unsupported_at(odd, "the operator ==");
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

/// `1!=-1`, where PostgreSQL has one operator `!=-`: the tokens do not tell it from `1<>-1`.
fn check_unequal(tokens: &[TokenWithSpan], text: &str) -> Result<()> {
    if !["!=+", "!=-"].iter().any(|odd| text.contains(odd)) {
        return Ok(());
    }
    let is_odd = |pair: &&[TokenWithSpan]| {
        pair[0].token == Token::Neq && matches!(pair[1].token, Token::Plus | Token::Minus)
    };
    match tokens.windows(2).find(is_odd) {
        Some(pair) => unsupported_at(&pair[0], "a sign right behind the operator !="),
        None => Ok(()),
    }
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
    match statement.visit(&mut Grammar { labels, depth: 0 }) {
        ControlFlow::Break(error) => Err(error.into()),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Grammar<'l> {
    labels: &'l Labels,
    /// How many queries are around; options of statements are words of any kind.
    depth: usize,
}

impl Visitor for Grammar<'_> {
    type Break = StatementError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<StatementError> {
        self.depth += 1;
        reserved::check_query(query)?;
        check_aliases(&query.body, self.labels)
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<StatementError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, item: &TableFactor) -> ControlFlow<StatementError> {
        reserved::check_item(item)
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<StatementError> {
        match self.depth {
            0 => ControlFlow::Continue(()),
            _ => reserved::check_relation(name),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<StatementError> {
        if self.depth > 0 {
            reserved::check_expr(expr)?;
        }
        let sides: Vec<(&Expr, u8)> = match expr {
            Expr::InList { list, .. } if is_predicate(list) => return binding(expr),
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
                let error = StatementError::unsupported("a chain of comparisons");
                ControlFlow::Break(error.with_hint("Put parentheses around what belongs together."))
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
        Expr::InList { list, .. } if is_predicate(list) => None,
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
        for text in ["select 1..10", "select 1E'a'", "select 'a' 'b'", "select 'a' /* c\n */ 'b'"] {
            assert!(check_tokens(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_it_sees_alike_is_left() {
        for text in [
            "select 1 a, 2.5e-3 as b, -1, 2*-1, 1=-1, 1<-1, 2 ^ -1, 1 - -1, count(*), t.*, 'a'||'b', a->>'x', 1<>2, 1!=2",
            "select 'a' as x, 'b', e'a', $$x$$ from t where a in ('a','b') and b like 'a' escape 'b'",
            "select 0b101, 0o17, 123abc, 1.e, 1_000.5e0_1, 100_, 0.0e1a",
            "select 'a'\n'b', 'a' -- c\n 'b'",
            "select a[1:2], '1'::int, 1::text, -1::int, f(a => 1), u&'x' uescape '!', 1.5, .5, 5., 7/2, 7%3, ~1, |/ 25.0",
        ] {
            assert!(check_tokens(text).is_ok(), "{text}: {:?}", check_tokens(text).err());
        }
    }

    #[test]
    fn operators_are_cut_as_the_server_cuts_them() {
        let cut = |text: &str| {
            let tokens = super::tokens_of(text).unwrap().unwrap();
            let ends = tokens.last().unwrap().span.end.column as usize;
            assert_eq!(ends, text.len() + 1, "{text}");
            tokens.iter().map(|token| token.token.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(cut("5<=-1"), ["5", "<=", "-", "1"]);
        assert_eq!(cut("5<>-1"), ["5", "<>", "-", "1"]);
        assert_eq!(cut("j->-1"), ["j", "->", "-", "1"]);
        assert_eq!(cut("3-+2"), ["3", "-", "+", "2"]);
        assert_eq!(cut("2^-1"), ["2", "^-", "1"]);
        assert_eq!(cut("a?@>b"), ["a", "?@>", "b"]);
        assert_eq!(cut("a<=>b"), ["a", "<=>", "b"]);
        assert_eq!(cut("a?~b"), ["a", "?~", "b"]);
        assert_eq!(cut("j?'a'"), ["j", "?", "'a'"]);
        assert_eq!(cut("j?|b"), ["j", "?|", "b"]);
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
            ("select label 'x'", true),
            ("select a as x", true),
            ("select a isnull", true),
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
