//! Cursors in words: `DECLARE`, `FETCH` and `MOVE`.
//!
//! Invariant: a word that may be the name of a cursor is one where nothing comes behind it.
//!
//! Source: `DeclareCursorStmt`, `cursor_options` and `fetch_args` in `src/backend/parser/gram.y`, PostgreSQL 14 to 18.

use std::sync::Arc;

use sqlparser::tokenizer::Token;

use super::{Command, CursorOptions, Direction, Fetch, Piece, Result, Scroll};

impl Piece<'_, '_> {
    /// `DECLARE NAME [BINARY | ASENSITIVE | INSENSITIVE | [NO] SCROLL]… CURSOR [{WITH | WITHOUT} HOLD] FOR QUERY`
    pub(super) fn declare(&self) -> Result<Command> {
        let name = self.name(1)?;
        let (mut at, mut options) = (2, CursorOptions::default());
        loop {
            match (self.word(at).as_str(), self.word(at + 1).as_str()) {
                ("ASENSITIVE" | "INSENSITIVE", _) => {}
                ("BINARY", _) => options.is_binary = true,
                ("SCROLL", _) if options.scroll != Scroll::Forward => options.scroll = Scroll::Any,
                ("NO", "SCROLL") if options.scroll != Scroll::Any => {
                    options.scroll = Scroll::Forward;
                    at += 1;
                }
                ("CURSOR", _) => break,
                _ => return Err(self.syntax()),
            }
            at += 1;
        }
        at += match (self.word(at + 1).as_str(), self.word(at + 2).as_str()) {
            (with @ ("WITH" | "WITHOUT"), "HOLD") => {
                options.is_held = with == "WITH";
                3
            }
            _ => 1,
        };
        if self.word(at) != "FOR" {
            return Err(self.syntax());
        }
        let query = Arc::new(self.statement_behind(at)?);
        Ok(Command::Declare { name, query, options })
    }

    /// `FETCH [DIRECTION] [FROM | IN] NAME`
    pub(super) fn fetch(&self, is_move: bool) -> Result<Command> {
        let mut at = 1;
        let direction = match self.words.len() > at + 1 {
            true => self.direction(&mut at)?,
            false => Direction::Forward(Some(1)),
        };
        at += usize::from(matches!(self.word(at).as_str(), "FROM" | "IN"));
        if self.words.len() != at + 1 {
            return Err(self.syntax());
        }
        Ok(Command::Fetch(Fetch { name: self.name(at)?, direction, is_move }))
    }

    fn direction(&self, at: &mut usize) -> Result<Direction> {
        let word = self.word(*at);
        *at += 1;
        Ok(match word.as_str() {
            "NEXT" => Direction::Forward(Some(1)),
            "PRIOR" => Direction::Backward(Some(1)),
            "FIRST" => Direction::Absolute(1),
            "LAST" => Direction::Absolute(-1),
            "ALL" => Direction::Forward(None),
            "ABSOLUTE" => Direction::Absolute(self.count(at)?.ok_or_else(|| self.syntax())?),
            "RELATIVE" => Direction::Relative(self.count(at)?.ok_or_else(|| self.syntax())?),
            "FORWARD" | "BACKWARD" if self.word(*at) == "ALL" => {
                *at += 1;
                if word == "FORWARD" { Direction::Forward(None) } else { Direction::Backward(None) }
            }
            "FORWARD" => towards(self.count(at)?.unwrap_or(1)), // default: one row
            "BACKWARD" => towards(-self.count(at)?.unwrap_or(1)), // default: one row
            _ => {
                *at -= 1;
                towards(self.count(at)?.unwrap_or(1)) // default: one row
            }
        })
    }

    /// A number with its sign, if one stands there.
    fn count(&self, at: &mut usize) -> Result<Option<i64>> {
        let sign = match self.words.get(*at) {
            Some(Token::Minus) => -1,
            Some(Token::Plus) => 1,
            _ => 0,
        };
        let behind = *at + usize::from(sign != 0);
        let Some(Token::Number(digits, _)) = self.words.get(behind) else {
            return if sign == 0 { Ok(None) } else { Err(self.syntax()) };
        };
        let number: i32 = digits.parse().map_err(|_| self.syntax())?;
        *at = behind + 1;
        Ok(Some(i64::from(number) * if sign < 0 { -1 } else { 1 }))
    }
}

/// So many rows forward, or backward where there are less than none.
fn towards(count: i64) -> Direction {
    let rows = Some(count.unsigned_abs());
    if count < 0 { Direction::Backward(rows) } else { Direction::Forward(rows) }
}
