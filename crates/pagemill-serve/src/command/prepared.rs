//! Prepared statements in words: `PREPARE`, `EXECUTE` and `DEALLOCATE`.
//!
//! Invariant: values are constants, each as the text that its type reads.

use std::sync::Arc;

use pagemill_sql::StatementError;
use sqlparser::tokenizer::Token;

use super::{Command, Piece, Result};

impl Piece<'_, '_> {
    pub(super) fn deallocate(&self) -> Result<Command> {
        let at = if self.word(1) == "PREPARE" { 2 } else { 1 };
        match self.word(at).as_str() {
            "ALL" => Ok(Command::Deallocate(None)),
            _ => Ok(Command::Deallocate(Some(self.name(at)?))),
        }
    }

    /// `PREPARE NAME [(TYPE, …)] AS QUERY`
    pub(super) fn prepare(&self) -> Result<Command> {
        let name = self.name(1)?;
        let (mut at, mut types) = (2, Vec::new());
        if self.words.get(at) == Some(&&Token::LParen) {
            let (mut depth, mut begin) = (1, self.behind(at));
            while depth > 0 {
                at += 1;
                match self.words.get(at) {
                    Some(Token::LParen) => depth += 1,
                    Some(Token::RParen) => depth -= 1,
                    None => return Err(self.syntax()),
                    _ => {}
                }
                if depth == 0 || depth == 1 && self.words[at] == &Token::Comma {
                    // A comma and a parenthesis have one byte each.
                    types.push(self.text[begin..self.behind(at) - 1].trim().to_owned());
                    begin = self.behind(at);
                }
            }
            at += 1;
        }
        if self.word(at) != "AS" {
            return Err(self.syntax());
        }
        let query = Arc::new(self.statement_behind(at)?);
        Ok(Command::Prepare { name, types, query })
    }

    /// `EXECUTE NAME [(VALUE, …)]`, of which values are constants.
    pub(super) fn execute(&self) -> Result<Command> {
        let name = self.name(1)?;
        let given = match (self.words.get(2), self.words.last()) {
            (None, _) => &[],
            (Some(Token::LParen), Some(Token::RParen)) => &self.words[3..self.words.len() - 1],
            _ => return Err(self.syntax()),
        };
        let values = match given {
            [] => Vec::new(),
            given => {
                given.split(|token| **token == Token::Comma).map(constant).collect::<Result<_>>()?
            }
        };
        Ok(Command::Execute { name, values })
    }
}

/// A value in words, as a text.
fn constant(words: &[&Token]) -> Result<Option<String>> {
    match words {
        [Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)] => {
            Ok(Some(text.clone()))
        }
        [Token::Number(digits, _)] => Ok(Some(digits.clone())),
        [Token::Minus, Token::Number(digits, _)] => Ok(Some(format!("-{digits}"))),
        [Token::Word(word)] if word.quote_style.is_none() => {
            match word.value.to_uppercase().as_str() {
                "NULL" => Ok(None),
                value @ ("TRUE" | "FALSE") => Ok(Some(value.to_owned())),
                _ => Err(StatementError::unsupported("EXECUTE with a value that is no constant")),
            }
        }
        _ => Err(StatementError::unsupported("EXECUTE with a value that is no constant")),
    }
}
