//! What a text asks for: statements for the database, and commands for the session.
//!
//! ```text
//! text ── cut at semicolons ──► pieces ── first word ──► Command: one of the session's, COPY, or a statement
//! ```
//!
//! Invariant: a text is understood whole before any of it is done.

mod cursors;
mod prepared;
mod set_config;
mod settings;

use std::sync::Arc;

pub use set_config::SetConfig;

use pagemill_sql::session::Session;
use pagemill_sql::statement_texts::{StatementText, StatementTexts};
use pagemill_sql::{SqlState, StatementError};
use sqlparser::ast::Statement;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

/// What is to be done.
#[derive(Debug, Clone)]
pub enum Command {
    /// A statement that gives rows.
    Query(Arc<StatementText>),
    /// `COPY … TO STDOUT`, by its text.
    Copy(String),
    /// A transaction begins.
    Begin {
        /// The tag.
        tag: &'static str,
        /// Its level of isolation, if it is not the session's.
        isolation: Option<String>,
    },
    /// A transaction ends.
    End {
        /// True where it ends well.
        is_commit: bool,
        /// True where the next begins at once.
        is_chained: bool,
    },
    /// A place in a transaction to come back to.
    Savepoint(String),
    /// Such a place is forgotten.
    Release(String),
    /// Within a transaction, back to a place in it.
    RollbackTo(String),
    /// What has nothing to do where nothing is changed, by its tag.
    Nothing(&'static str),
    /// A setting gets a value.
    Set(SetSetting),
    /// `SELECT set_config(…)`, which sets and gives a row.
    SetConfig(SetConfig),
    /// All settings get their defaults; the tag.
    ResetAll(&'static str),
    /// A setting is shown.
    Show(String),
    /// All settings are shown.
    ShowAll,
    /// A statement is prepared in words.
    Prepare {
        /// Its name.
        name: String,
        /// The names of its parameters' types.
        types: Vec<String>,
        /// What is prepared.
        query: Arc<StatementText>,
    },
    /// A prepared statement runs with these values.
    Execute {
        /// Its name.
        name: String,
        /// The values as texts.
        values: Vec<Option<String>>,
    },
    /// A prepared statement is forgotten; `None` for all.
    Deallocate(Option<String>),
    /// All that a session keeps is forgotten.
    DiscardAll,
    /// A cursor for a query.
    Declare {
        /// Its name.
        name: String,
        /// Its query.
        query: Arc<StatementText>,
        /// How it moves and how long it lives.
        options: CursorOptions,
    },
    /// Rows of a cursor.
    Fetch(Fetch),
    /// A cursor is no longer needed; `None` for all.
    CloseCursor(Option<String>),
}

/// A value for a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetSetting {
    /// Its name.
    pub name: String,
    /// What it is to be; `None` for its default.
    pub value: Option<String>,
    /// True for the transaction only.
    pub is_local: bool,
}

/// What a cursor is declared with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CursorOptions {
    /// How it may move.
    pub scroll: Scroll,
    /// True where it outlives the transaction that made it, once that is committed.
    pub is_held: bool,
    /// True where its values are in binary form for who sends texts.
    pub is_binary: bool,
}

/// How a cursor may move.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scroll {
    /// Nothing was said of it.
    #[default]
    Unsaid,
    /// `SCROLL`: in any way.
    Any,
    /// `NO SCROLL`.
    Forward,
}

/// `FETCH` and `MOVE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// The cursor.
    pub name: String,
    /// Which rows.
    pub direction: Direction,
    /// True where the rows are not wanted.
    pub is_move: bool,
}

/// Which rows of a cursor, seen from where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// So many of the next ones, `None` for all; that on which it stands for 0.
    Forward(Option<u64>),
    /// So many of those before, the nearest first, `None` for all; that on which it stands for 0.
    Backward(Option<u64>),
    /// One, by its number from the first on; from the last where it is negative.
    Absolute(i64),
    /// One, by its number from where it stands.
    Relative(i64),
}

/// A command of a text.
#[derive(Debug, Clone)]
pub struct SentCommand {
    /// What it is.
    pub command: Command,
    /// At which byte of the text it begins.
    pub begin: usize,
}

impl SentCommand {
    /// Where errors of its statement are in the text; what is written within another command is not found again.
    pub fn place<'t>(&self, text: &'t str) -> impl Fn(StatementError) -> StatementError + use<'t> {
        let begin = matches!(self.command, Command::Query(_)).then_some(self.begin);
        move |error| match begin {
            Some(begin) => error.within(text, begin),
            None => error,
        }
    }
}

type Result<T, E = StatementError> = std::result::Result<T, E>;

/// The commands of a text, with what is known of `texts` that came before.
///
/// # Errors
/// Where it is no SQL.
pub fn commands(text: &str, texts: &StatementTexts) -> Result<Vec<SentCommand>> {
    let Ok(Some(tokens)) = Session::tokens(text) else {
        // Not even words: the parser says where.
        return match Session::parse(text) {
            Err(error) => Err(error.report().within(text, 0)),
            Ok(_) => Err(StatementError::new(SqlState::SYNTAX_ERROR, "syntax error")),
        };
    };
    let starts = line_starts(text);
    let is_ascii = text.is_ascii();
    let at = |place: Location| {
        let line = starts[usize::try_from(place.line).map_or(0, |line| line - 1)];
        let column = usize::try_from(place.column).map_or(0, |column| column - 1);
        let within = match is_ascii {
            true => Some(line + column),
            false => text[line..].char_indices().nth(column).map(|(at, _)| line + at),
        };
        within.map_or(text.len(), |at| at.min(text.len()))
    };
    let mut commands = Vec::new();
    let mut begin = 0;
    for part in tokens.split_inclusive(|token| token.token == Token::SemiColon) {
        let end = match part.last() {
            Some(last) if last.token == Token::SemiColon => at(last.span.start),
            _ => text.len(),
        };
        let given = || part.iter().filter(|token| is_word(&token.token));
        let words: Vec<&Token> = given().map(|token| &token.token).collect();
        if !words.is_empty() {
            let ends = given().map(|token| at(token.span.end) - begin).collect();
            let first = (begin == 0).then_some(First { tokens: part, at: &at, texts });
            let piece = Piece { text: &text[begin..end], words, ends, first };
            let command = piece.command().map_err(|error| error.within(text, begin))?;
            commands.push(SentCommand { command, begin });
        }
        begin = (end + 1).min(text.len());
    }
    Ok(commands)
}

fn is_word(token: &Token) -> bool {
    !matches!(token, Token::Whitespace(_) | Token::SemiColon | Token::EOF)
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// One statement's text, and its words.
struct Piece<'t, 'a> {
    text: &'t str,
    words: Vec<&'t Token>,
    /// Where each word ends in the text.
    ends: Vec<usize>,
    /// Of the first statement, the tokens of which stand where they would stand if it were alone.
    first: Option<First<'t, 'a>>,
}

/// The tokens of a first statement.
struct First<'t, 'a> {
    tokens: &'t [TokenWithSpan],
    /// The byte of a place.
    at: &'a dyn Fn(Location) -> usize,
    texts: &'a StatementTexts,
}

impl Piece<'_, '_> {
    /// A word in capitals; empty for what is no plain word.
    fn word(&self, number: usize) -> String {
        match self.words.get(number) {
            Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_uppercase(),
            _ => String::new(),
        }
    }

    fn is_whole(&self, words: &[&str]) -> bool {
        self.words.len() == words.len()
            && words.iter().enumerate().all(|(number, word)| self.word(number) == *word)
    }

    fn command(&self) -> Result<Command> {
        let first = self.word(0);
        match first.as_str() {
            "BEGIN" => Ok(Command::Begin { tag: "BEGIN", isolation: self.isolation() }),
            "START" if self.word(1) == "TRANSACTION" => {
                Ok(Command::Begin { tag: "START TRANSACTION", isolation: self.isolation() })
            }
            "COMMIT" | "END" if self.word(1) != "PREPARED" => Ok(self.end(true)),
            "ABORT" => Ok(self.end(false)),
            "ROLLBACK" if (1..3).any(|number| self.word(number) == "TO") => self.roll_back_to(),
            "ROLLBACK" if self.word(1) != "PREPARED" => Ok(self.end(false)),
            "SAVEPOINT" => Ok(Command::Savepoint(self.last_name(1)?)),
            "RELEASE" => {
                let at = if self.word(1) == "SAVEPOINT" && self.words.len() > 2 { 2 } else { 1 };
                Ok(Command::Release(self.last_name(at)?))
            }
            "LOCK" => self.lock(),
            "SET" => self.set(),
            "RESET" if self.is_whole(&["RESET", "ALL"]) => Ok(Command::ResetAll("RESET")),
            "RESET" => {
                Ok(Command::Set(SetSetting { name: self.name(1)?, value: None, is_local: false }))
            }
            "SHOW" if self.is_whole(&["SHOW", "ALL"]) => Ok(Command::ShowAll),
            "SHOW" => Ok(Command::Show(self.name(1)?)),
            "SELECT" => match self.set_config() {
                Some(set) => Ok(set),
                None => self.query(),
            },
            "PREPARE" if self.word(1) != "TRANSACTION" => self.prepare(),
            "EXECUTE" => self.execute(),
            "DEALLOCATE" => self.deallocate(),
            "DISCARD" if self.is_whole(&["DISCARD", "ALL"]) => Ok(Command::DiscardAll),
            // There are none, but plans, which are the same again.
            "DISCARD" if self.is_whole(&["DISCARD", "PLANS"]) => {
                Ok(Command::Nothing("DISCARD PLANS"))
            }
            "DISCARD" if self.is_whole(&["DISCARD", "SEQUENCES"]) => {
                Ok(Command::Nothing("DISCARD SEQUENCES"))
            }
            "DISCARD"
                if self.is_whole(&["DISCARD", "TEMP"])
                    || self.is_whole(&["DISCARD", "TEMPORARY"]) =>
            {
                Ok(Command::Nothing("DISCARD TEMP"))
            }
            "DECLARE" => self.declare(),
            "FETCH" | "MOVE" => self.fetch(first == "MOVE"),
            "CLOSE" if self.word(1) == "ALL" => Ok(Command::CloseCursor(None)),
            "CLOSE" => Ok(Command::CloseCursor(Some(self.name(1)?))),
            "UNLISTEN" => Ok(Command::Nothing("UNLISTEN")),
            "COPY" => Ok(Command::Copy(self.text.trim().to_owned())),
            _ => self.query(),
        }
    }

    /// `COMMIT` and `ROLLBACK`, perhaps with `AND CHAIN`.
    fn end(&self, is_commit: bool) -> Command {
        let last: Vec<String> = (1..self.words.len()).map(|number| self.word(number)).collect();
        let is_chained = last.ends_with(&["AND", "CHAIN"].map(str::to_owned));
        Command::End { is_commit, is_chained }
    }

    fn query(&self) -> Result<Command> {
        let Some(First { tokens, at, texts }) = &self.first else {
            return self.statement(self.text).map(|statement| Command::Query(Arc::new(statement)));
        };
        let read = texts.read(self.text, tokens, at).map_err(|error| error.report());
        read.map(|statement| Command::Query(Arc::new(statement)))
    }

    fn statement(&self, text: &str) -> Result<StatementText> {
        let parsed = Session::parse(text).map_err(|error| error.report())?;
        match <[Statement; 1]>::try_from(parsed) {
            Ok([statement]) => Ok(statement.into()),
            Err(_) => Err(self.syntax()),
        }
    }

    /// The statement that is written behind a word.
    fn statement_behind(&self, word: usize) -> Result<StatementText> {
        let statement = self.statement(&self.text[self.behind(word)..]);
        statement.map_err(StatementError::without_position)
    }

    /// Where the text goes on behind a word.
    fn behind(&self, number: usize) -> usize {
        self.ends[number]
    }

    /// `ROLLBACK [WORK | TRANSACTION] TO [SAVEPOINT] NAME`
    fn roll_back_to(&self) -> Result<Command> {
        let mut at = if self.word(1) == "TO" { 2 } else { 3 };
        if self.word(at) == "SAVEPOINT" && self.words.len() > at + 1 {
            at += 1;
        }
        Ok(Command::RollbackTo(self.last_name(at)?))
    }

    /// A name behind which nothing stands.
    fn last_name(&self, at: usize) -> Result<String> {
        match self.words.get(at..) {
            Some([Token::Word(word)]) if word.quote_style.is_none() => {
                Ok(word.value.to_lowercase())
            }
            Some([Token::Word(word)]) => Ok(word.value.clone()),
            _ => Err(self.syntax()),
        }
    }

    /// Nobody writes: a lock that only keeps writers away is there already.
    fn lock(&self) -> Result<Command> {
        let mut last: Vec<String> = (0..self.words.len()).map(|number| self.word(number)).collect();
        last.pop_if(|word| word == "NOWAIT");
        let is_share = last.ends_with(&["ACCESS", "SHARE", "MODE"].map(str::to_owned));
        if is_share {
            return Ok(Command::Nothing("LOCK TABLE"));
        }
        let message = "cannot execute LOCK TABLE in a read-only transaction";
        Err(StatementError::new(SqlState::READ_ONLY, message))
    }

    /// A name, perhaps one with a dot in it; plain words in small letters.
    fn name(&self, at: usize) -> Result<String> {
        let part = |number: usize| match self.words.get(number) {
            Some(Token::Word(word)) if word.quote_style.is_none() => Ok(word.value.to_lowercase()),
            Some(Token::Word(word)) => Ok(word.value.clone()),
            _ => Err(self.syntax()),
        };
        let first = part(at)?;
        match (first.as_str(), self.word(at + 1).as_str(), self.words.get(at + 1)) {
            ("time", "ZONE", _) => Ok("timezone".to_owned()),
            ("transaction", "ISOLATION", _) => Ok("transaction_isolation".to_owned()),
            ("session", "AUTHORIZATION", _) => Ok("session_authorization".to_owned()),
            (_, _, Some(Token::Period)) => Ok(format!("{first}.{}", part(at + 2)?)),
            _ => Ok(first),
        }
    }

    fn syntax(&self) -> StatementError {
        let near = self.words.last().map_or_else(String::new, |token| token.to_string());
        let message = format!("syntax error at or near \"{near}\"");
        StatementError::new(SqlState::SYNTAX_ERROR, message)
    }
}

#[cfg(test)]
mod tests;
