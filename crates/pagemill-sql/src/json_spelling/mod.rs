//! Forms of SQL/JSON as calls that the parser knows: `IS JSON`, `JSON_EXISTS`, `JSON_VALUE`, `JSON_QUERY`, `JSON_TABLE`, `JSON`, and
//! those that make documents, whose clauses become arguments.
//!
//! ```text
//! JSON_VALUE(j, '$.a' PASSING 1 AS x RETURNING int NULL ON ERROR)
//! JSON_VALUE(j, '$.a', "/PASSING"(1, 'x'), "/RETURNING"(CAST(NULL AS int)), "/NULL"('ERROR'))
//! j IS NOT JSON OBJECT    ──►    j NOT IN ("/JSON"('OBJECT'))
//! ```
//!
//! Invariants: a clause is called as its first word is written, behind a slash, and stands where that stood; so whoever does not know it
//! can tell at which word the server's grammar ends. What is no such form stays as it is.
//!
//! Source: `func_expr_common_subexpr`, `json_table`, `json_behavior`, `json_predicate_type_constraint` in
//! `src/backend/parser/gram.y`, PostgreSQL 16 to 18.

mod clauses;
mod constructors;
#[cfg(test)]
mod tests;

use std::ops::Range;

use sqlparser::ast::{Expr, Function, ObjectNamePart};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::lexical::is_word;
use clauses::Call;

/// The name that the form JSON_TABLE gets.
pub(crate) const JSON_TABLE: &str = "json table";

/// What the names of clauses begin with.
pub(crate) const CLAUSE: char = '/';

/// How deep forms may be within each other.
const MOST_LEVELS: usize = 40;

type Tokens = Vec<TokenWithSpan>;

/// The tokens with such forms as calls.
pub(crate) fn as_calls(tokens: Tokens) -> Tokens {
    let is_form = |token: &TokenWithSpan| form_of(Some(&token.token)).is_some();
    if !tokens.iter().any(is_form) {
        return tokens;
    }
    let is_seen = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let forms = Forms { tokens: tokens.iter().filter(is_seen).cloned().collect() };
    let mut out = Tokens::with_capacity(forms.tokens.len() + 16);
    forms.plain(0..forms.tokens.len(), 0, &mut out);
    if out.len() == forms.tokens.len() { tokens } else { out }
}

/// True for the list that stands for `IS JSON`.
pub(crate) fn is_predicate(list: &[Expr]) -> bool {
    let [Expr::Function(Function { name, .. })] = list else { return false };
    matches!(&name.0[..], [ObjectNamePart::Identifier(name)]
        if name.quote_style.is_some() && name.value.eq_ignore_ascii_case("/json"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// JSON_EXISTS, JSON_VALUE and JSON_QUERY.
    Search,
    Table,
    /// JSON(…) with clauses.
    Parse,
    /// JSON_ARRAY, which a query can be in.
    Array,
    /// What else makes documents.
    Made,
}

/// Forms that make documents.
const MADE: [&str; 4] = ["json_object", "json_objectagg", "json_arrayagg", "json_serialize"];

fn form_of(token: Option<&Token>) -> Option<Form> {
    match token {
        token if is_word(token, "json_table") => Some(Form::Table),
        token if is_word(token, "json") => Some(Form::Parse),
        token if ["json_exists", "json_value", "json_query"].iter().any(|w| is_word(token, w)) => {
            Some(Form::Search)
        }
        token if is_word(token, "json_array") => Some(Form::Array),
        token if MADE.iter().any(|word| is_word(token, word)) => Some(Form::Made),
        _ => None,
    }
}

/// The tokens without the blanks between them.
struct Forms {
    tokens: Tokens,
}

impl Forms {
    fn token(&self, at: usize) -> Option<&Token> {
        self.tokens.get(at).map(|token| &token.token)
    }

    fn is(&self, at: usize, word: &str) -> bool {
        is_word(self.token(at), word)
    }

    fn is_any(&self, at: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(at, word))
    }

    /// Where the parenthesis closes that opens here.
    fn closing(&self, open: usize, end: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for at in open..end {
            match self.token(at) {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// What may have forms in it.
    fn plain(&self, range: Range<usize>, level: usize, out: &mut Tokens) {
        let mut at = range.start;
        while at < range.end {
            let is_part = at > range.start && self.token(at - 1) == Some(&Token::Period);
            let next = match is_part || level >= MOST_LEVELS {
                true => None,
                false => self
                    .form(at, range.end, level, out)
                    .or_else(|| self.predicate(at, range.end, out)),
            };
            at = next.unwrap_or_else(|| {
                out.extend(self.tokens.get(at).cloned());
                at + 1
            });
        }
    }

    /// A form that begins here, and where it ends; nothing is appended where there is none.
    fn form(&self, at: usize, end: usize, level: usize, out: &mut Tokens) -> Option<usize> {
        let form = form_of(self.token(at))?;
        if self.token(at + 1) != Some(&Token::LParen) {
            return None;
        }
        let close = self.closing(at + 1, end)?;
        let mut made = Tokens::new();
        match form {
            Form::Parse => self.parsed(level + 1, at + 2..close, &mut made)?,
            Form::Array | Form::Made => {
                self.constructed((form, level + 1), at + 2..close, &mut made)?;
            }
            _ => self.arguments((form, level + 1), at + 2..close, &mut made)?,
        }
        let word = self.tokens.get(at)?.clone();
        let name = match form {
            Form::Table => Token::make_word(JSON_TABLE, Some('"')),
            _ => word.token.clone(),
        };
        out.push(TokenWithSpan { token: name, ..word.clone() });
        out.push(TokenWithSpan { token: Token::LParen, ..word });
        out.append(&mut made);
        out.push(self.tokens.get(close)?.clone());
        Some(close + 1)
    }

    /// `IS [NOT] JSON …`, as a list of one clause.
    fn predicate(&self, at: usize, end: usize, out: &mut Tokens) -> Option<usize> {
        let is_negated = self.is(at + 1, "not");
        let json = at + 1 + usize::from(is_negated);
        if !self.is(at, "is") || !self.is(json, "json") || at == 0 || json >= end {
            return None;
        }
        let mut next = json + 1;
        let mut said = Vec::new();
        if self.is_any(next, &["value", "array", "object", "scalar"]) {
            said.push(self.word(next)?.to_uppercase());
            next += 1;
        }
        if self.is_any(next, &["with", "without"]) && self.is(next + 1, "unique") {
            said.extend(self.is(next, "with").then(|| "UNIQUE".to_owned()));
            next += if self.is(next + 2, "keys") { 3 } else { 2 };
        }
        let place = self.tokens.get(json)?;
        let put = |token: Token| TokenWithSpan { token, ..place.clone() };
        out.extend(is_negated.then(|| put(Token::make_keyword("NOT"))));
        out.extend([put(Token::make_keyword("IN")), put(Token::LParen)]);
        let mut call = Call::new(place)?;
        for word in said {
            call.text(&word);
        }
        out.extend(call.done());
        out.push(put(Token::RParen));
        Some(next)
    }

    fn word(&self, at: usize) -> Option<&str> {
        match self.token(at)? {
            Token::Word(word) => Some(&word.value),
            _ => None,
        }
    }

    /// A name as the server folds it.
    fn name(&self, at: usize) -> Option<String> {
        match self.token(at)? {
            Token::Word(word) if word.quote_style.is_some() => Some(word.value.clone()),
            Token::Word(word) => Some(word.value.to_lowercase()),
            _ => None,
        }
    }

    /// Document, path, clauses.
    fn arguments(
        &self,
        (form, level): (Form, usize),
        range: Range<usize>,
        out: &mut Tokens,
    ) -> Option<()> {
        let comma = self.end_of_operand(range.start, range.end);
        let format = comma;
        let comma = match self.is(format, "format") {
            true => self.end_of_format(format),
            false => comma,
        };
        if self.token(comma) != Some(&Token::Comma) || comma >= range.end {
            return None;
        }
        self.value(range.start..format, comma, level, out)?;
        out.push(self.tokens.get(comma)?.clone());
        let end = self.end_of_operand(comma + 1, range.end);
        if end == comma + 1 || self.token(end) == Some(&Token::Comma) {
            return None;
        }
        self.plain(comma + 1..end, level, out);
        let mut at = end;
        let mut has_columns = false;
        while at < range.end {
            has_columns |= self.is(at, "columns");
            at = self.clause(at, range.end, level, out)?;
        }
        (has_columns == (form == Form::Table)).then_some(())
    }

    /// An expression, and its format behind it if it has one.
    fn value(&self, range: Range<usize>, end: usize, level: usize, out: &mut Tokens) -> Option<()> {
        if range.is_empty() {
            return None;
        }
        if range.end == end {
            self.plain(range, level, out);
            return Some(());
        }
        let mut call = Call::new(self.tokens.get(range.end)?)?;
        call.argument(|out| self.plain(range.clone(), level, out));
        if let Some(encoding) = self.encoding(range.end) {
            call.text(&encoding);
        }
        out.extend(call.done());
        Some(())
    }

    /// Behind `FORMAT JSON [ENCODING name]`.
    fn end_of_format(&self, at: usize) -> usize {
        if self.is(at + 2, "encoding") { at + 4 } else { at + 2 }
    }

    fn encoding(&self, format: usize) -> Option<String> {
        self.is(format + 2, "encoding").then(|| self.name(format + 3)).flatten()
    }

    /// Where an operand ends: at a comma or at a clause.
    fn end_of_operand(&self, start: usize, end: usize) -> usize {
        let mut depth = 0_usize;
        for at in start..end {
            match self.token(at) {
                Some(Token::LParen | Token::LBracket) => depth += 1,
                Some(Token::RParen | Token::RBracket) => depth = depth.saturating_sub(1),
                Some(Token::Comma) if depth == 0 => return at,
                Some(_) if depth == 0 && at > start && self.begins_clause(at) => return at,
                _ => {}
            }
        }
        end
    }

    fn begins_clause(&self, at: usize) -> bool {
        self.ends_operand(at - 1)
            && (self.is_any(at, &["passing", "returning", "as", "default", "exists"])
                || (self.is(at, "format") && self.is(at + 1, "json"))
                || (self.is(at, "columns") && self.token(at + 1) == Some(&Token::LParen))
                || (self.is(at, "path") && is_text(self.token(at + 1)))
                || (self.is_any(at, &["keep", "omit"]) && self.is(at + 1, "quotes"))
                || self.begins_wrapper(at)
                || (self.is_any(at, &["with", "without"]) && self.is(at + 1, "unique"))
                || self.on_of_behavior(at).is_some())
    }

    fn begins_wrapper(&self, at: usize) -> bool {
        let is_kind = ["conditional", "unconditional", "array", "wrapper"];
        self.is_any(at, &["with", "without"]) && self.is_any(at + 1, &is_kind)
    }

    /// Where ON stands behind a behavior other than DEFAULT.
    fn on_of_behavior(&self, at: usize) -> Option<usize> {
        let on = match () {
            () if self.is_any(at, &["error", "null", "true", "false", "unknown"]) => at + 1,
            () if self.is(at, "empty") && self.is_any(at + 1, &["array", "object"]) => at + 2,
            () if self.is(at, "empty") => at + 1,
            () => return None,
        };
        self.is_on(on).then_some(on)
    }

    fn is_on(&self, at: usize) -> bool {
        self.is(at, "on") && self.is_any(at + 1, &["empty", "error"])
    }

    fn ends_operand(&self, at: usize) -> bool {
        match self.token(at) {
            Some(Token::Word(word)) if word.quote_style.is_none() => {
                let before = self.is_any(at, &BEFORE_OPERAND);
                !before || (at > 0 && self.token(at - 1) == Some(&Token::Period))
            }
            Some(
                Token::Word(_)
                | Token::RParen
                | Token::RBracket
                | Token::Number(..)
                | Token::Placeholder(_),
            ) => true,
            token => is_text(token),
        }
    }
}

fn is_text(token: Option<&Token>) -> bool {
    matches!(
        token,
        Some(
            Token::SingleQuotedString(_)
                | Token::DollarQuotedString(_)
                | Token::EscapedStringLiteral(_)
                | Token::UnicodeStringLiteral(_)
                | Token::SingleQuotedByteStringLiteral(_)
                | Token::HexStringLiteral(_)
        )
    )
}

/// Words with an operand behind them.
const BEFORE_OPERAND: [&str; 27] = [
    "all",
    "and",
    "any",
    "as",
    "between",
    "by",
    "case",
    "cast",
    "collate",
    "default",
    "distinct",
    "else",
    "escape",
    "from",
    "ilike",
    "in",
    "is",
    "like",
    "not",
    "operator",
    "or",
    "select",
    "similar",
    "symmetric",
    "then",
    "to",
    "when",
];
