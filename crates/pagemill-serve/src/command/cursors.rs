//! Cursors in words: `DECLARE`, `FETCH` and `MOVE`.
//!
//! Invariant: what a cursor cannot do here, to go back or to outlive its transaction, is refused when it is asked for.

use std::sync::Arc;

use pagemill_sql::StatementError;
use sqlparser::tokenizer::Token;

use super::{Command, Fetch, Piece, Result};

impl Piece<'_, '_> {
    /// `DECLARE NAME [ASENSITIVE | INSENSITIVE] [NO SCROLL] CURSOR [WITHOUT HOLD] FOR QUERY`
    pub(super) fn declare(&self) -> Result<Command> {
        let name = self.name(1)?;
        let mut at = 2;
        while matches!(self.word(at).as_str(), "ASENSITIVE" | "INSENSITIVE") {
            at += 1;
        }
        match (self.word(at).as_str(), self.word(at + 1).as_str()) {
            ("NO", "SCROLL") => at += 2,
            ("SCROLL", _) => return Err(StatementError::unsupported("a cursor with SCROLL")),
            ("BINARY", _) => return Err(StatementError::unsupported("a binary cursor")),
            _ => {}
        }
        if self.word(at) != "CURSOR" {
            return Err(self.syntax());
        }
        at += match (self.word(at + 1).as_str(), self.word(at + 2).as_str()) {
            ("WITH", "HOLD") => return Err(StatementError::unsupported("a cursor WITH HOLD")),
            ("WITHOUT", "HOLD") => 3,
            _ => 1,
        };
        if self.word(at) != "FOR" {
            return Err(self.syntax());
        }
        let query = Arc::new(self.statement_behind(at)?);
        Ok(Command::Declare { name, query })
    }

    /// `FETCH [NEXT | FORWARD] [COUNT | ALL] [FROM | IN] NAME`
    pub(super) fn fetch(&self, is_move: bool) -> Result<Command> {
        let mut at = 1;
        let is_forward = matches!(self.word(at).as_str(), "NEXT" | "FORWARD");
        at += usize::from(is_forward);
        let is_all = self.word(at) == "ALL";
        let backward = ["BACKWARD", "PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE"];
        let most_rows = match self.words.get(at) {
            _ if is_all => None,
            Some(Token::Number(digits, _)) if digits != "0" => {
                Some(digits.parse().map_err(|_| self.syntax())?)
            }
            Some(Token::Number(..) | Token::Minus) => {
                return Err(StatementError::unsupported("FETCH but forward"));
            }
            _ if backward.contains(&self.word(at).as_str()) && self.words.len() > at + 1 => {
                return Err(StatementError::unsupported("FETCH but forward"));
            }
            _ => Some(1),
        };
        at += usize::from(is_all || matches!(self.words.get(at), Some(Token::Number(..))));
        at += usize::from(matches!(self.word(at).as_str(), "FROM" | "IN"));
        if self.words.len() != at + 1 {
            return Err(self.syntax());
        }
        Ok(Command::Fetch(Fetch { name: self.name(at)?, most_rows, is_move }))
    }
}
