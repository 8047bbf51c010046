//! Clauses of forms of SQL/JSON as calls: what is passed, types as casts, behaviors, and columns with clauses of their own.
//!
//! Invariant: a clause that is not complete is none, and the form stays as it is.
//!
//! Source: `json_passing_clause_opt`, `json_returning_clause_opt`, `json_wrapper_behavior`, `json_table_column_definition` in
//! `src/backend/parser/gram.y`, PostgreSQL 17 and 18.

use std::ops::Range;

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{CLAUSE, Forms, MOST_LEVELS, Tokens, is_text};

impl Forms {
    /// A clause as an argument, and where it ends.
    pub(super) fn clause(
        &self,
        at: usize,
        end: usize,
        level: usize,
        out: &mut Tokens,
    ) -> Option<usize> {
        let place = self.tokens.get(at)?;
        let mut call = Call::new(place)?;
        let next = match () {
            () if self.is(at, "passing") => self.passing(at + 1, end, level, &mut call)?,
            () if self.is(at, "returning") => self.returning(at + 1, end, &mut call)?,
            () if self.is(at, "as") => {
                call.text(&self.name(at + 1)?);
                at + 2
            }
            () if self.is(at, "format") => {
                self.encoding(at).iter().for_each(|encoding| call.text(encoding));
                self.end_of_format(at)
            }
            () if self.is(at, "path") && is_text(self.token(at + 1)) => {
                call.argument(|out| self.plain(at + 1..at + 2, level, out));
                at + 2
            }
            () if self.begins_wrapper(at) => self.wrapper(at, &mut call)?,
            () if self.is_any(at, &["keep", "omit"]) && self.is(at + 1, "quotes") => {
                let is_long = self.is(at + 2, "on") && self.is(at + 3, "scalar");
                if is_long && self.is(at + 4, "string") { at + 5 } else { at + 2 }
            }
            () if self.is(at, "columns") => self.columns(at + 1, end, level, &mut call)?,
            () => self.behavior(at, end, level, &mut call)?,
        };
        if next > end {
            return None;
        }
        out.push(TokenWithSpan { token: Token::Comma, ..place.clone() });
        out.extend(call.done());
        Some(next)
    }

    fn wrapper(&self, at: usize, call: &mut Call) -> Option<usize> {
        let is_conditional = self.is(at + 1, "conditional");
        let mut next = at + 1 + usize::from(self.is_any(at + 1, &["conditional", "unconditional"]));
        next += usize::from(self.is(next, "array"));
        // Without one there are no conditions.
        let is_good = self.is(next, "wrapper") && (self.is(at, "with") || next <= at + 2);
        call.text(if is_conditional { "CONDITIONAL" } else { "UNCONDITIONAL" });
        is_good.then_some(next + 1)
    }

    /// Each value and its name by turns.
    fn passing(&self, start: usize, end: usize, level: usize, call: &mut Call) -> Option<usize> {
        let mut at = start;
        loop {
            let format = self.end_of_operand(at, end);
            let behind = match self.is(format, "format") {
                true => self.end_of_format(format),
                false => format,
            };
            if !self.is(behind, "as") || behind + 1 >= end {
                return None;
            }
            let mut made = Tokens::new();
            self.value(at..format, behind, level, &mut made)?;
            call.argument(|out| out.append(&mut made));
            call.text(&self.name(behind + 1)?);
            at = behind + 2;
            if self.token(at) != Some(&Token::Comma) || at >= end {
                return Some(at);
            }
            at += 1;
        }
    }

    /// A type as a cast to it, and the word of a format.
    pub(super) fn returning(&self, start: usize, end: usize, call: &mut Call) -> Option<usize> {
        let behind = self.end_of_operand(start, end);
        if behind == start {
            return None;
        }
        self.type_of(start..behind, call);
        if !self.is(behind, "format") {
            return Some(behind);
        }
        call.text("FORMAT");
        self.encoding(behind).iter().for_each(|encoding| call.text(encoding));
        Some(self.end_of_format(behind))
    }

    fn type_of(&self, range: Range<usize>, call: &mut Call) {
        let named = self.tokens.get(range).unwrap_or_default().to_vec(); // default: a cast to nothing is no syntax
        let put = |token: Token| TokenWithSpan { token, ..call.place.clone() };
        let words = [Token::make_keyword("CAST"), Token::LParen, Token::make_keyword("NULL")];
        let mut cast: Tokens = words.into_iter().map(put).collect();
        cast.push(put(Token::make_keyword("AS")));
        cast.extend(named);
        cast.push(put(Token::RParen));
        call.argument(|out| out.append(&mut cast));
    }

    /// What it is for, then what DEFAULT says, or what is empty.
    fn behavior(&self, at: usize, end: usize, level: usize, call: &mut Call) -> Option<usize> {
        if !self.is(at, "default") {
            let on = self.on_of_behavior(at)?;
            call.text(self.word(on + 1)?);
            if on == at + 2 {
                call.text(self.word(at + 1)?);
            }
            return Some(on + 2);
        }
        let mut depth = 0_usize;
        let on = (at + 1..end).find(|place| {
            match self.token(*place) {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && self.is_on(*place) && self.ends_operand(*place - 1)
        })?;
        if on == at + 1 {
            return None;
        }
        call.text(self.word(on + 1)?);
        call.argument(|out| self.plain(at + 1..on, level, out));
        Some(on + 2)
    }

    /// The columns between parentheses, each as a clause.
    fn columns(&self, open: usize, end: usize, level: usize, call: &mut Call) -> Option<usize> {
        if level >= MOST_LEVELS || self.token(open) != Some(&Token::LParen) {
            return None;
        }
        let close = self.closing(open, end)?;
        let mut start = open + 1;
        while start < close {
            let behind = self.end_of_column(start, close);
            let column = self.column(start..behind, level + 1)?;
            call.argument(|out| out.extend(column.done()));
            start = behind + 1;
            if start == close {
                return None;
            }
        }
        (close > open + 1).then_some(close + 1)
    }

    fn end_of_column(&self, start: usize, close: usize) -> usize {
        let mut depth = 0_usize;
        let ends = |at: &usize| {
            match self.token(*at) {
                Some(Token::LParen | Token::LBracket) => depth += 1,
                Some(Token::RParen | Token::RBracket) => depth = depth.saturating_sub(1),
                Some(Token::Comma) => return depth == 0,
                _ => {}
            }
            false
        };
        (start..close).find(ends).unwrap_or(close)
    }

    fn column(&self, range: Range<usize>, level: usize) -> Option<Call> {
        let (start, end) = (range.start, range.end);
        let place = self.tokens.get(start)?;
        let path = start + 1 + usize::from(self.is(start + 1, "path"));
        if self.is(start, "nested") && is_text(self.token(path)) {
            let mut call = Call::new(place)?;
            call.argument(|out| self.plain(path..path + 1, level, out));
            return self.clauses(path + 1, end, level, call);
        }
        let name = self.name(start)?;
        if self.is(start + 1, "for") && self.is(start + 2, "ordinality") && start + 3 == end {
            let mut call = Call::named("ORDINALITY", place);
            call.text(&name);
            return Some(call);
        }
        let behind = self.end_of_operand(start + 1, end);
        let is_test = self.is(behind, "exists") && behind < end;
        let mut call = Call::named(if is_test { "EXISTS" } else { "COLUMN" }, place);
        call.text(&name);
        if behind == start + 1 {
            return None;
        }
        self.type_of(start + 1..behind, &mut call);
        self.clauses(behind + usize::from(is_test), end, level, call)
    }

    fn clauses(&self, start: usize, end: usize, level: usize, mut call: Call) -> Option<Call> {
        let (mut at, mut made) = (start, Tokens::new());
        while at < end {
            at = self.clause(at, end, level, &mut made)?;
        }
        // Each begins with its comma.
        call.arguments.append(&mut made);
        Some(call)
    }
}

/// A clause that is being made a call.
pub(super) struct Call {
    place: TokenWithSpan,
    name: String,
    arguments: Tokens,
}

impl Call {
    /// One that is called as its first word.
    pub(super) fn new(place: &TokenWithSpan) -> Option<Self> {
        match &place.token {
            Token::Word(word) => Some(Self::named(&word.value, place)),
            _ => None,
        }
    }

    fn named(word: &str, place: &TokenWithSpan) -> Self {
        let name = format!("{CLAUSE}{word}");
        Self { place: place.clone(), name, arguments: Tokens::new() }
    }

    pub(super) fn argument(&mut self, put: impl FnOnce(&mut Tokens)) {
        if !self.arguments.is_empty() {
            self.arguments.push(TokenWithSpan { token: Token::Comma, ..self.place.clone() });
        }
        put(&mut self.arguments);
    }

    pub(super) fn text(&mut self, text: &str) {
        let token = Token::SingleQuotedString(text.to_owned());
        let token = TokenWithSpan { token, ..self.place.clone() };
        self.argument(|out| out.push(token));
    }

    pub(super) fn done(self) -> Tokens {
        let put = |token: Token| TokenWithSpan { token, ..self.place.clone() };
        let mut tokens = vec![put(Token::make_word(&self.name, Some('"'))), put(Token::LParen)];
        let end = put(Token::RParen);
        tokens.extend(self.arguments);
        tokens.push(end);
        tokens
    }
}
