//! What a text asks for: statements for the database, and commands for the session.
//!
//! ```text
//! text ── cut at semicolons ──► pieces ── first word ──► Command: one of the session's, COPY, or a statement
//! ```
//!
//! Invariant: a text is understood whole before any of it is done.

use pagemill_sql::session::Session;
use pagemill_sql::{SqlState, StatementError};
use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Location, Token, Tokenizer};

/// What is to be done.
#[derive(Debug, Clone)]
pub enum Command {
    /// A statement that gives rows.
    Query(Box<Statement>),
    /// `COPY … TO STDOUT`, by its text.
    Copy(String),
    /// A transaction begins; the tag.
    Begin(&'static str),
    /// A transaction ends well.
    Commit,
    /// A transaction ends.
    Rollback,
    /// Within a transaction, back to a place in it.
    RollbackTo,
    /// What has nothing to do where nothing is changed, by its tag.
    Nothing(&'static str),
    /// A setting gets a value; `None` for its default.
    Set {
        /// Its name.
        name: String,
        /// What it is to be.
        value: Option<String>,
    },
    /// All settings get their defaults; the tag.
    ResetAll(&'static str),
    /// A setting is shown.
    Show(String),
    /// A prepared statement is forgotten; `None` for all.
    Deallocate(Option<String>),
    /// All that a session keeps is forgotten.
    DiscardAll,
    /// A cursor for a query.
    Declare {
        /// Its name.
        name: String,
        /// Its query.
        query: Box<Statement>,
    },
    /// Rows of a cursor.
    Fetch(Fetch),
    /// A cursor is no longer needed; `None` for all.
    CloseCursor(Option<String>),
}

/// `FETCH` and `MOVE`, which go forward only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// The cursor.
    pub name: String,
    /// How many rows at most, `None` for all.
    pub most_rows: Option<u32>,
    /// True where the rows are not wanted.
    pub is_move: bool,
}

type Result<T, E = StatementError> = std::result::Result<T, E>;

/// The commands of a text.
///
/// # Errors
/// Where it is no SQL.
pub fn commands(text: &str) -> Result<Vec<Command>> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location();
    let Ok(tokens) = tokens else {
        // Not even words: the parser says where.
        return match Session::parse(text) {
            Err(error) => Err(error.report()),
            Ok(_) => Err(StatementError::new(SqlState::SYNTAX_ERROR, "syntax error")),
        };
    };
    let starts = line_starts(text);
    let at = |place: Location| {
        let line = starts[usize::try_from(place.line).map_or(0, |line| line - 1)];
        let column = usize::try_from(place.column).map_or(0, |column| column - 1);
        let within = text[line..].char_indices().nth(column).map(|(at, _)| line + at);
        within.unwrap_or(text.len())
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
            let piece = Piece { text: &text[begin..end], words, ends };
            commands.push(piece.command().map_err(|mut error| {
                if begin > 0 {
                    // A place in a later piece is none in the text.
                    error.position = None;
                }
                error
            })?);
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
struct Piece<'t> {
    text: &'t str,
    words: Vec<&'t Token>,
    /// Where each word ends in the text.
    ends: Vec<usize>,
}

impl Piece<'_> {
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
            "BEGIN" => Ok(Command::Begin("BEGIN")),
            "START" if self.word(1) == "TRANSACTION" => Ok(Command::Begin("START TRANSACTION")),
            "COMMIT" | "END" if self.word(1) != "PREPARED" => Ok(Command::Commit),
            "ABORT" => Ok(Command::Rollback),
            "ROLLBACK" if (1..4).any(|number| self.word(number) == "TO") => Ok(Command::RollbackTo),
            "ROLLBACK" if self.word(1) != "PREPARED" => Ok(Command::Rollback),
            "SAVEPOINT" => Ok(Command::Nothing("SAVEPOINT")),
            "RELEASE" => Ok(Command::Nothing("RELEASE")),
            "LOCK" => self.lock(),
            "SET" => self.set(),
            "RESET" if self.is_whole(&["RESET", "ALL"]) => Ok(Command::ResetAll("RESET")),
            "RESET" => Ok(Command::Set { name: self.name(1)?, value: None }),
            "SHOW" => Ok(Command::Show(self.name(1)?)),
            "DEALLOCATE" => self.deallocate(),
            "DISCARD" if self.is_whole(&["DISCARD", "ALL"]) => Ok(Command::DiscardAll),
            "DECLARE" => self.declare(),
            "FETCH" | "MOVE" => self.fetch(first == "MOVE"),
            "CLOSE" if self.word(1) == "ALL" => Ok(Command::CloseCursor(None)),
            "CLOSE" => Ok(Command::CloseCursor(Some(self.name(1)?))),
            "UNLISTEN" => Ok(Command::Nothing("UNLISTEN")),
            "COPY" => Ok(Command::Copy(self.text.trim().to_owned())),
            _ => self.query(),
        }
    }

    fn query(&self) -> Result<Command> {
        self.statement(self.text).map(|statement| Command::Query(Box::new(statement)))
    }

    fn statement(&self, text: &str) -> Result<Statement> {
        let parsed = Session::parse(text).map_err(|error| error.report())?;
        match <[Statement; 1]>::try_from(parsed) {
            Ok([statement]) => Ok(statement),
            Err(_) => Err(self.syntax()),
        }
    }

    /// `DECLARE NAME [ASENSITIVE | INSENSITIVE] [NO SCROLL] CURSOR [WITHOUT HOLD] FOR QUERY`
    fn declare(&self) -> Result<Command> {
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
        let query = Box::new(self.statement(&self.text[self.behind(at)..])?);
        Ok(Command::Declare { name, query })
    }

    /// `FETCH [NEXT | FORWARD] [COUNT | ALL] [FROM | IN] NAME`
    fn fetch(&self, is_move: bool) -> Result<Command> {
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

    /// Where the text goes on behind a word.
    fn behind(&self, number: usize) -> usize {
        self.ends[number]
    }

    /// Nobody writes: a lock that only keeps writers away is there already.
    fn lock(&self) -> Result<Command> {
        let last: Vec<String> = (0..self.words.len()).map(|number| self.word(number)).collect();
        let is_share = last.ends_with(&["ACCESS", "SHARE", "MODE"].map(str::to_owned));
        if is_share {
            return Ok(Command::Nothing("LOCK TABLE"));
        }
        let message = "cannot execute LOCK TABLE in a read-only transaction";
        Err(StatementError::new(SqlState::READ_ONLY, message))
    }

    fn deallocate(&self) -> Result<Command> {
        let at = if self.word(1) == "PREPARE" { 2 } else { 1 };
        match self.word(at).as_str() {
            "ALL" => Ok(Command::Deallocate(None)),
            _ => Ok(Command::Deallocate(Some(self.name(at)?))),
        }
    }

    /// `SET [SESSION | LOCAL] NAME { TO | = } VALUE, …`, and what has words of its own.
    fn set(&self) -> Result<Command> {
        let at = match self.word(1).as_str() {
            "SESSION" if self.word(2) == "CHARACTERISTICS" => return Ok(Command::Nothing("SET")),
            "SESSION" | "LOCAL" if self.word(2) != "TO" => 2,
            _ => 1,
        };
        match self.word(at).as_str() {
            "TRANSACTION" | "CONSTRAINTS" => return Ok(Command::Nothing("SET")),
            "TIME" if self.word(at + 1) == "ZONE" => {
                let value = self.value(at + 2)?;
                return Ok(Command::Set { name: "timezone".to_owned(), value });
            }
            "NAMES" => {
                let value = self.value(at + 1)?;
                return Ok(Command::Set { name: "client_encoding".to_owned(), value });
            }
            "ROLE" | "SESSION" | "XML" => {
                return Err(StatementError::unsupported(format!("SET {}", self.word(at))));
            }
            _ => {}
        }
        let name = self.name(at)?;
        let behind = at + 1 + 2 * name.matches('.').count();
        let is_assigned = self.word(behind) == "TO" || self.words.get(behind) == Some(&&Token::Eq);
        match is_assigned {
            true => Ok(Command::Set { name, value: self.value(behind + 1)? }),
            false => Err(self.syntax()),
        }
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

    /// The values from here on as one text; `None` for DEFAULT.
    fn value(&self, at: usize) -> Result<Option<String>> {
        if self.words.len() <= at {
            return Err(self.syntax());
        }
        if self.words.len() == at + 1 && self.word(at) == "DEFAULT" {
            return Ok(None);
        }
        let mut value = String::new();
        for token in &self.words[at..] {
            match token {
                Token::Comma => value.push_str(", "),
                Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => {
                    value.push_str(text);
                }
                Token::Word(word) => value.push_str(&word.value),
                Token::Number(digits, _) => value.push_str(digits),
                Token::Minus => value.push('-'),
                Token::Plus => {}
                _ => return Err(self.syntax()),
            }
        }
        Ok(Some(value))
    }

    fn syntax(&self) -> StatementError {
        let near = self.words.last().map_or_else(String::new, |token| token.to_string());
        let message = format!("syntax error at or near \"{near}\"");
        StatementError::new(SqlState::SYNTAX_ERROR, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Command {
        let mut commands = commands(text).unwrap();
        assert_eq!(commands.len(), 1, "{text}");
        commands.remove(0)
    }

    #[test]
    fn a_text_is_cut_where_statements_end() {
        let all = commands("select ';' ; /* ; */ begin; -- ;\n select 1;;").unwrap();
        assert!(
            matches!(&all[..], [Command::Query(_), Command::Begin("BEGIN"), Command::Query(_)]),
            "{all:?}"
        );
        assert!(commands(" ; -- nothing").unwrap().is_empty());
        assert!(commands("select 1; selec 2").is_err());
        assert!(commands("select 'open").is_err());
    }

    #[test]
    fn settings_have_names_and_values() {
        let set = |text: &str| match one(text) {
            Command::Set { name, value } => (name, value),
            other => panic!("{other:?}"),
        };
        let of = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        assert_eq!(set("set datestyle to ISO, 'MDY'"), of("datestyle", "ISO, MDY"));
        assert_eq!(set("SET SESSION Statement_Timeout = 5"), of("statement_timeout", "5"));
        assert_eq!(set("set local my.own to -1"), of("my.own", "-1"));
        assert_eq!(set("set time zone 'UTC'"), of("timezone", "UTC"));
        assert_eq!(set("set search_path = default"), ("search_path".to_owned(), None));
        assert!(matches!(one("show transaction isolation level"),
            Command::Show(name) if name == "transaction_isolation"));
        assert!(commands("set x").is_err() && commands("set role postgres").is_err());
    }

    #[test]
    fn cursors_go_forward() {
        let fetch = |text: &str| match one(text) {
            Command::Fetch(Fetch { name, most_rows, is_move }) => (name, most_rows, is_move),
            other => panic!("{other:?}"),
        };
        assert_eq!(fetch("fetch c"), ("c".to_owned(), Some(1), false));
        assert_eq!(fetch("FETCH FORWARD 10 FROM \"C\""), ("C".to_owned(), Some(10), false));
        assert_eq!(fetch("fetch next in c"), ("c".to_owned(), Some(1), false));
        assert_eq!(fetch("move all from c"), ("c".to_owned(), None, true));
        let declared =
            one("declare \"x y\" no scroll cursor without hold for\nselect 'ä; for' from t");
        let Command::Declare { name, query } = declared else { panic!("{declared:?}") };
        assert_eq!((&*name, query.to_string()), ("x y", "SELECT 'ä; for' FROM t".to_owned()));
        for wrong in
            ["fetch backward 1 from c", "fetch -1 from c", "fetch 0 c", "fetch", "fetch 1 2 c"]
        {
            assert!(commands(wrong).is_err(), "{wrong}");
        }
        assert!(commands("declare c scroll cursor for select 1").is_err());
    }

    #[test]
    fn locks_that_keep_readers_away_are_refused() {
        assert!(matches!(one("lock table only t in access share mode"), Command::Nothing(_)));
        assert!(commands("lock table t").is_err());
    }
}
