//! Text to statements, and which of them are for nobody who only reads.
//!
//! Invariant: what PostgreSQL's lexer refuses is refused, whatever the parser makes of it.

use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::Session;
use crate::collated::in_parentheses;
use crate::error::{Result, SqlState, StatementError, unsupported};
use crate::forms::known_forms;
use crate::spelling::spelled;
use crate::{json_spelling, lexical, typed_texts};

impl Session {
    /// The statements of a text.
    ///
    /// # Errors
    /// Where it is no SQL.
    pub fn parse(text: &str) -> Result<Vec<Statement>> {
        Self::parse_checked(text).map_err(|error| match Self::writes(text) {
            // Whatever of it is not known here: who sends it has to know that nothing is written.
            Some(command) => read_only(&command).into(),
            None => error,
        })
    }

    /// The command of a text that begins with one that writes.
    fn writes(text: &str) -> Option<String> {
        let words = Self::tokens(text).ok()??;
        let words = words.into_iter().filter_map(|token| match token.token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_uppercase()),
            _ => None,
        });
        writing(&words.take(7).collect::<Vec<_>>())
    }

    fn parse_checked(text: &str) -> Result<Vec<Statement>> {
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

#[cold]
fn read_only(command: &str) -> StatementError {
    let message = format!("cannot execute {command} in a read-only transaction");
    StatementError::new(SqlState::READ_ONLY, message)
}

/// Words that change what a command is about, and not which command it is.
const QUALIFIERS: [&str; 14] = [
    "CONSTRAINT",
    "DEFAULT",
    "GLOBAL",
    "LOCAL",
    "OR",
    "PROCEDURAL",
    "RECURSIVE",
    "REPLACE",
    "TEMP",
    "TEMPORARY",
    "TRUSTED",
    "UNIQUE",
    "UNLOGGED",
    "FORCE",
];

/// The kind of object that words begin with, as the server's tags have it.
fn object_kind(words: &[String]) -> Option<String> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let length = match (word(0), word(1)) {
        ("", _) => return None,
        ("TEXT", _) | ("FOREIGN", "DATA") => 3,
        ("ACCESS" | "EVENT" | "FOREIGN" | "LARGE" | "MATERIALIZED", _)
        | ("OPERATOR", "CLASS" | "FAMILY")
        | ("USER", "MAPPING") => 2,
        ("USER" | "GROUP", _) => return Some("ROLE".to_owned()),
        ("PRIVILEGES", _) => return Some("DEFAULT PRIVILEGES".to_owned()),
        _ => 1,
    };
    Some(words[..length.min(words.len())].join(" "))
}

/// The command of a statement that writes, by its first words as the server's tags have it; `None` for any other.
///
/// Source: `src/include/tcop/cmdtaglist.h`, PostgreSQL 14 to 18.
fn writing(words: &[String]) -> Option<String> {
    let first = words.first()?.as_str();
    match first {
        "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "COMMENT" | "GRANT" | "REVOKE" | "REINDEX"
        | "CLUSTER" | "VACUUM" | "ANALYZE" => Some(first.to_owned()),
        "TRUNCATE" => Some("TRUNCATE TABLE".to_owned()),
        "REFRESH" => Some("REFRESH MATERIALIZED VIEW".to_owned()),
        "REASSIGN" => Some("REASSIGN OWNED".to_owned()),
        "SECURITY" => Some("SECURITY LABEL".to_owned()),
        "IMPORT" => Some("IMPORT FOREIGN SCHEMA".to_owned()),
        "CREATE" | "ALTER" | "DROP" => {
            let at = words.iter().skip(1).position(|word| !QUALIFIERS.contains(&&**word))?;
            let kind = object_kind(&words[at + 1..])?;
            Some(format!("{first} {kind}"))
        }
        _ => None,
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
    let text = statement.to_string().to_uppercase();
    let words: Vec<String> = text.split_whitespace().take(7).map(str::to_owned).collect();
    if let Statement::Copy { .. } = statement {
        return Err(read_only("COPY FROM").into());
    }
    match writing(&words) {
        Some(command) => Err(read_only(&command).into()),
        None => unsupported(words.into_iter().next().unwrap_or_else(|| "this".to_owned())),
    }
}
