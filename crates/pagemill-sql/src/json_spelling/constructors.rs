//! Forms of SQL/JSON that make documents, as calls: JSON_OBJECT, JSON_ARRAY, JSON_OBJECTAGG, JSON_ARRAYAGG,
//! JSON_SERIALIZE and JSON.
//!
//! ```text
//! JSON_OBJECT('a': x FORMAT JSON NULL ON NULL WITH UNIQUE KEYS RETURNING text)
//! JSON_OBJECT('a': "/FORMAT"(x), "/NULL"(), "/WITH"('UNIQUE'), "/RETURNING"(CAST(NULL AS text)))
//! JSON_ARRAY(SELECT x FROM t RETURNING text)
//! JSON_ARRAY("/SELECT"((SELECT JSON_ARRAYAGG("q"."a", "/RETURNING"(CAST(NULL AS text))) FROM (SELECT x FROM t) "q"("a"))))
//! ```
//!
//! Invariant: ORDER BY of JSON_ARRAYAGG comes behind the clauses, where the parser has it.
//!
//! Source: `json_name_and_value_list`, `json_value_expr`, `json_aggregate_func` in `src/backend/parser/gram.y`,
//! `transformJsonArrayQueryConstructor` in `parse_expr.c`, PostgreSQL 16 to 18.

use std::ops::Range;

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::clauses::Call;
use super::{Form, Forms, Tokens};

/// What stands behind a query in parentheses that is the first part of another.
const BEHIND_PART: [&str; 8] =
    ["union", "intersect", "except", "order", "limit", "offset", "fetch", "for"];

impl Forms {
    /// What stands between the parentheses: values, then clauses.
    pub(super) fn constructed(
        &self,
        (form, level): (Form, usize),
        range: Range<usize>,
        out: &mut Tokens,
    ) -> Option<()> {
        if form == Form::Array && self.begins_query(range.start, range.end) {
            return self.array_of_query(level, range, out);
        }
        let mut at = range.start;
        if !self.is_made_clause(at) {
            at = self.items(level, range.clone(), out)?;
        }
        let order = at;
        if self.is(at, "order") {
            let ends = |place: &usize| self.ends_operand(*place - 1) && self.is_made_clause(*place);
            at = self.outside(at + 1..range.end).find(ends).unwrap_or(range.end);
        }
        let order = order..at;
        while at < range.end {
            at = self.made_clause(at, range.end, out)?;
        }
        self.plain(order, level, out);
        Some(())
    }

    /// The values and their names, and where they end.
    fn items(&self, level: usize, range: Range<usize>, out: &mut Tokens) -> Option<usize> {
        let mut at = range.start;
        while at < range.end {
            let format = self.end_of_item(at, range.end);
            if format == at {
                return None;
            }
            let behind = match self.is(format, "format") && format < range.end {
                true => self.end_of_format(format),
                false => format,
            };
            let value = self.value_of_item(at..format);
            self.plain(at..value, level, out);
            self.value(value..format, behind, level, out)?;
            at = behind;
            if at >= range.end || self.token(at) != Some(&Token::Comma) {
                return Some(at);
            }
            out.push(self.tokens.get(at)?.clone());
            at += 1;
        }
        // Nothing at all, or a comma at the end.
        (range.start == range.end).then_some(at)
    }

    /// A document with its format, and whether its names are to be there once.
    pub(super) fn parsed(&self, level: usize, range: Range<usize>, out: &mut Tokens) -> Option<()> {
        let format = self.end_of_operand(range.start, range.end);
        let behind = match self.is(format, "format") {
            true => self.end_of_format(format),
            false => format,
        };
        if format == range.end {
            return None;
        }
        self.value(range.start..format, behind, level, out)?;
        if behind == range.end {
            return Some(());
        }
        let end = behind + if self.is(behind + 2, "keys") { 3 } else { 2 };
        if !self.is_any(behind, &["with", "without"]) || end != range.end {
            return None;
        }
        let place = self.tokens.get(behind)?;
        let mut call = Call::new(place)?;
        call.text("UNIQUE");
        out.push(TokenWithSpan { token: Token::Comma, ..place.clone() });
        out.extend(call.done());
        Some(())
    }

    /// The places in no parentheses of their own.
    fn outside(&self, range: Range<usize>) -> impl Iterator<Item = usize> {
        let mut depth = 0_usize;
        range.filter(move |at| {
            match self.token(*at) {
                Some(Token::LParen | Token::LBracket) => depth += 1,
                Some(Token::RParen | Token::RBracket) => depth = depth.saturating_sub(1),
                _ => return depth == 0,
            }
            false
        })
    }

    fn end_of_item(&self, start: usize, end: usize) -> usize {
        let ends = |at: &usize| {
            let is_comma = self.token(*at) == Some(&Token::Comma);
            is_comma || *at > start && self.ends_operand(*at - 1) && self.is_behind_value(*at)
        };
        self.outside(start..end).find(ends).unwrap_or(end)
    }

    fn is_behind_value(&self, at: usize) -> bool {
        (self.is(at, "format") && self.is(at + 1, "json"))
            || (self.is(at, "order") && self.is(at + 1, "by"))
            || self.is_made_clause(at)
    }

    fn is_made_clause(&self, at: usize) -> bool {
        self.is(at, "returning") || self.is_of_nulls(at) || self.is_of_names(at)
    }

    fn is_of_nulls(&self, at: usize) -> bool {
        self.is_any(at, &["null", "absent"]) && self.is(at + 1, "on") && self.is(at + 2, "null")
    }

    fn is_of_names(&self, at: usize) -> bool {
        self.is_any(at, &["with", "without"]) && self.is(at + 1, "unique")
    }

    /// Where the value begins of `name: value` and `name VALUE value`.
    fn value_of_item(&self, range: Range<usize>) -> usize {
        let start = range.start;
        let is_behind_name = |at: &usize| {
            let is_word = *at > start && self.is(*at, "value") && self.ends_operand(*at - 1);
            is_word || self.token(*at) == Some(&Token::Colon)
        };
        self.outside(range).find(is_behind_name).map_or(start, |at| at + 1)
    }

    /// A clause as an argument, and where it ends.
    fn made_clause(&self, at: usize, end: usize, out: &mut Tokens) -> Option<usize> {
        let place = self.tokens.get(at)?;
        let mut call = Call::new(place)?;
        let next = match () {
            () if self.is_of_nulls(at) => at + 3,
            () if self.is_of_names(at) => {
                call.text("UNIQUE");
                if self.is(at + 2, "keys") { at + 3 } else { at + 2 }
            }
            () if self.is(at, "returning") => self.returning(at + 1, end, &mut call)?,
            () => return None,
        };
        if next > end {
            return None;
        }
        let comma = TokenWithSpan { token: Token::Comma, ..place.clone() };
        out.extend((!out.is_empty()).then_some(comma));
        out.extend(call.done());
        Some(next)
    }

    fn begins_query(&self, at: usize, end: usize) -> bool {
        let first = (at..end).find(|at| self.token(*at) != Some(&Token::LParen));
        let is_query =
            first.is_some_and(|first| self.is_any(first, &["select", "with", "values", "table"]));
        match self.token(at) {
            Some(Token::LParen) if is_query => self
                .closing(at, end)
                .is_some_and(|close| close + 1 < end && self.is_any(close + 1, &BEHIND_PART)),
            _ => is_query,
        }
    }

    /// An array of what a query gives: the aggregate over it.
    fn array_of_query(&self, level: usize, range: Range<usize>, out: &mut Tokens) -> Option<()> {
        let is_behind = |at: &usize| {
            let is_format = self.is(*at, "format") && self.is(*at + 1, "json");
            (is_format || self.is(*at, "returning")) && self.ends_operand(*at - 1)
        };
        let format = self.outside(range.start + 1..range.end).find(is_behind).unwrap_or(range.end);
        let mut at = match self.is(format, "format") && format < range.end {
            true => self.end_of_format(format),
            false => format,
        };
        let place = self.tokens.get(range.start)?;
        let put = |token: Token| TokenWithSpan { token, ..place.clone() };
        let named = |name: &str| put(Token::make_word(name, Some('"')));
        let value = vec![named("q"), put(Token::Period), named("a")];
        let mut values = Tokens::new();
        match format == at {
            true => values.extend(value),
            false => {
                let mut call = Call::new(self.tokens.get(format)?)?;
                call.argument(|out| out.extend(value));
                self.encoding(format).iter().for_each(|encoding| call.text(encoding));
                values.extend(call.done());
            }
        }
        while at < range.end {
            at = self.made_clause(at, range.end, &mut values)?;
        }
        let mut made = vec![put(Token::LParen), put(Token::make_keyword("SELECT"))];
        made.extend([put(Token::make_word("JSON_ARRAYAGG", None)), put(Token::LParen)]);
        made.append(&mut values);
        made.extend([Token::RParen, Token::make_keyword("FROM"), Token::LParen].map(put));
        self.plain(range.start..format, level, &mut made);
        made.extend([put(Token::RParen), named("q"), put(Token::LParen), named("a")]);
        made.extend([put(Token::RParen), put(Token::RParen)]);
        let first = self.outside(range).find(|at| self.word(*at).is_some()).unwrap_or(0); // default: the word of the form, which is never asked for
        let mut call = Call::new(self.tokens.get(first)?).or_else(|| Call::new(place))?;
        call.argument(|out| out.append(&mut made));
        out.extend(call.done());
        Some(())
    }
}
