//! Text to statements, and which of them are for nobody who only reads.
//!
//! Invariant: what PostgreSQL's lexer refuses is refused, whatever the parser makes of it.

use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::TokenWithSpan;

use super::Session;
use crate::collated::in_parentheses;
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::forms::known_forms;
use crate::spelling::spelled;
use crate::{json_spelling, lexical, typed_texts};

impl Session {
    /// The statements of a text.
    ///
    /// # Errors
    /// Where it is no SQL.
    pub fn parse(text: &str) -> Result<Vec<Statement>> {
        let labels = lexical::check_tokens(text)?;
        let statements = Self::parse_unchecked(text)?;
        statements.iter().try_for_each(|statement| lexical::check_statement(statement, &labels))?;
        Ok(statements)
    }

    /// The tokens of a text as statements are cut of them; `None` of one that cannot be cut.
    ///
    /// # Errors
    /// Where PostgreSQL's scanner has one.
    pub fn tokens(text: &str) -> Result<Option<Vec<TokenWithSpan>>> {
        Ok(lexical::tokens_of(text)?.ok())
    }

    pub(crate) fn parse_unchecked(text: &str) -> Result<Vec<Statement>> {
        let dialect = PostgreSqlDialect {};
        let tokens = lexical::tokens_of(text)?;
        let parsed = tokens.map_err(ParserError::from).and_then(|tokens| {
            let spelled = spelled(json_spelling::as_calls(tokens));
            let tokens = typed_texts::as_casts(known_forms(in_parentheses(spelled)));
            Parser::new(&dialect).with_tokens_with_locations(tokens).parse_statements()
        });
        parsed.map_err(|error| {
            let message = error.to_string();
            let message = message.trim_start_matches("sql parser error: ");
            let (message, position) = parted(message);
            // Before some words there is a mark of the spelling, which is nobody's.
            let message = message.replace('\0', "");
            // The parser does not know all that PostgreSQL's grammar does.
            let message =
                format!("a syntax error, or a syntax that is not supported here: {message}");
            StatementError { position, ..StatementError::new(SqlState::SYNTAX_ERROR, message) }
                .into()
        })
    }
}

/// What the parser says, and where that is, which it says as the last of it.
fn parted(message: &str) -> (&str, Option<(u64, u64)>) {
    let parted = message.rsplit_once(" at Line: ").and_then(|(message, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        Some((message, (line.parse().ok()?, column.parse().ok()?)))
    });
    match parted {
        Some((message, position)) => (message, Some(position)),
        None => (message, None),
    }
}

/// What is no query.
pub(super) fn refuse<T>(statement: &Statement) -> Result<T> {
    let text = statement.to_string();
    let word = text.split_whitespace().next().unwrap_or("this").to_uppercase();
    match statement {
        Statement::Insert(_)
        | Statement::Update { .. }
        | Statement::Delete(_)
        | Statement::Merge { .. }
        | Statement::Truncate { .. }
        | Statement::Drop { .. }
        | Statement::CreateTable(_)
        | Statement::CreateView { .. }
        | Statement::CreateIndex(_)
        | Statement::AlterTable { .. }
        | Statement::Copy { .. } => {
            fail(SqlState::READ_ONLY, format!("cannot execute {word} in a read-only transaction"))
        }
        _ => unsupported(word),
    }
}
