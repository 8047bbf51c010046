//! Settings in words: `SET`.
//!
//! Invariant: a value is the text that the setting would be shown with, or `None` for its default.

use pagemill_cluster::names::quote_identifier;
use pagemill_format::PgVersion;
use pagemill_sql::{SqlState, StatementError};
use sqlparser::tokenizer::Token;

use super::{Command, Piece, Result, SetSetting};

/// Settings that are no lists.
const SINGLE: [&str; 4] = ["bytea_output", "extra_float_digits", "intervalstyle", "timezone"];

impl Piece<'_, '_> {
    /// `SET [SESSION | LOCAL] NAME { TO | = } VALUE, …`, and what has words of its own.
    pub(super) fn set(&self) -> Result<Command> {
        let at = match self.word(1).as_str() {
            "SESSION" if self.word(2) == "CHARACTERISTICS" => {
                return Ok(self.set_isolation("default_transaction_isolation", false));
            }
            "SESSION" if self.word(2) == "AUTHORIZATION" => 1,
            "SESSION" | "LOCAL" if self.word(2) != "TO" => 2,
            _ => 1,
        };
        let is_local = self.word(1) == "LOCAL" && at == 2;
        let set = |name: &str, value| {
            Ok(Command::Set(SetSetting { name: name.to_owned(), value, is_local }))
        };
        match self.word(at).as_str() {
            "TRANSACTION" => return Ok(self.set_isolation("transaction_isolation", true)),
            "CONSTRAINTS" => return Ok(Command::Nothing("SET CONSTRAINTS")),
            "TIME" if self.word(at + 1) == "ZONE" => {
                let is_local = self.word(at + 2) == "LOCAL" && self.words.len() == at + 3;
                return set("timezone", if is_local { None } else { self.zone(at + 2)? });
            }
            "NAMES" => {
                return set("client_encoding", self.value(at + 1)?);
            }
            "ROLE" if self.word(at + 1) != "TO" && self.words.get(at + 1) != Some(&&Token::Eq) => {
                return set("role", self.role(at + 1)?);
            }
            "SESSION" if self.word(at + 1) == "AUTHORIZATION" => {
                return set("session_authorization", self.role(at + 2)?);
            }
            "SESSION" | "XML" => {
                return Err(StatementError::unsupported(format!("SET {}", self.word(at))));
            }
            _ => {}
        }
        let name = self.name(at)?;
        let behind = at + 1 + 2 * name.matches('.').count();
        let is_assigned = self.word(behind) == "TO" || self.words.get(behind) == Some(&&Token::Eq);
        match is_assigned {
            true if name == "role" || name == "session_authorization" => {
                set(&name, self.role(behind + 1)?)
            }
            true if name == "search_path" => set(&name, self.names(behind + 1)?),
            true if SINGLE.contains(&&*name)
                && self.words[behind + 1..].contains(&&Token::Comma) =>
            {
                self.value(behind + 1)?;
                let message = format!("SET {name} takes only one argument");
                Err(StatementError::new(SqlState::INVALID_PARAMETER, message))
            }
            true => set(&name, self.value(behind + 1)?),
            false => Err(self.syntax()),
        }
    }

    /// The modes of a transaction, of which only the level of isolation is kept: nothing writes.
    fn set_isolation(&self, name: &str, is_local: bool) -> Command {
        match self.isolation() {
            None => Command::Nothing("SET"),
            value => Command::Set(SetSetting { name: name.to_owned(), value, is_local }),
        }
    }

    /// The level behind `ISOLATION LEVEL`.
    pub(super) fn isolation(&self) -> Option<String> {
        let mut all = 0..self.words.len();
        let at = all.find(|at| self.word(*at) == "ISOLATION" && self.word(at + 1) == "LEVEL")? + 2;
        let level = match self.word(at).as_str() {
            "SERIALIZABLE" => self.word(at),
            first => format!("{first} {}", self.word(at + 1)),
        };
        Some(level.to_lowercase())
    }

    /// A zone's name, or how far it is from UTC: in hours, or `INTERVAL 'HOURS:MINUTES'`, which counts eastwards.
    fn zone(&self, at: usize) -> Result<Option<String>> {
        if self.word(at) != "INTERVAL" {
            return self.value(at);
        }
        let Some(Token::SingleQuotedString(text)) = self.words.get(at + 1) else {
            return Err(self.syntax());
        };
        let fields: Vec<String> =
            (at + 2..self.words.len()).map(|number| self.word(number)).collect();
        let is_plain = fields.is_empty() || fields == ["HOUR", "TO", "MINUTE"];
        let zone = zone_of_interval(text).filter(|_| is_plain);
        let what = || StatementError::unsupported(format!("SET TIME ZONE by INTERVAL '{text}'"));
        zone.map(Some).ok_or_else(what)
    }

    /// A role's name, or a text; `NONE` as it is.
    fn role(&self, at: usize) -> Result<Option<String>> {
        match self.words.get(at..) {
            Some([Token::Word(_)]) if self.word(at) == "DEFAULT" => Ok(None),
            Some([Token::Word(word)]) if word.quote_style.is_none() => {
                Ok(Some(word.value.to_lowercase()))
            }
            Some([Token::Word(word)]) => Ok(Some(word.value.clone())),
            _ => self.value(at),
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
                // A reserved word.
                Token::Word(word)
                    if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("null") =>
                {
                    let message = format!("syntax error at or near \"{}\"", word.value);
                    return Err(StatementError::new(SqlState::SYNTAX_ERROR, message));
                }
                Token::Word(word) if word.quote_style.is_none() => {
                    value.push_str(&word.value.to_lowercase());
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

    /// The names from here on as one text, each quoted where it must be; `None` for DEFAULT.
    fn names(&self, at: usize) -> Result<Option<String>> {
        if self.words.len() == at + 1 && self.word(at) == "DEFAULT" {
            return Ok(None);
        }
        let parts: Vec<_> = self.words.get(at..).unwrap_or_default().iter().collect();
        let name = |part: &[&&Token]| match part {
            [Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)] => {
                Ok(quoted(text))
            }
            [Token::Word(word)] if word.quote_style.is_some() => Ok(quoted(&word.value)),
            [Token::Word(word)] => Ok(quoted(&word.value.to_lowercase())),
            _ => Err(self.syntax()),
        };
        let names = parts.split(|token| ***token == Token::Comma).map(name);
        Ok(Some(names.collect::<Result<Vec<_>>>()?.join(", ")))
    }
}

/// `+1:30` as a zone of POSIX, which counts westwards, with a name that says what it is.
fn zone_of_interval(text: &str) -> Option<String> {
    let (is_west, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = digits.split_once(':')?;
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    if minutes > 59 {
        return None;
    }
    let (name, offset) = if is_west { ('-', '+') } else { ('+', '-') };
    let time = match minutes {
        0 => format!("{hours:02}"),
        _ => format!("{hours:02}:{minutes:02}"),
    };
    Some(format!("<{name}{time}>{offset}{time}"))
}

/// A name in quotes, unless it reads the same without: to the newest server, whose key words include those of older ones.
fn quoted(name: &str) -> String {
    let mut out = Vec::new();
    quote_identifier(name.as_bytes(), PgVersion::V18, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}
