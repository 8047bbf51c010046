//! `SELECT set_config(…)`: the one function that changes something, if only for its session, in the forms in which clients send it.
//!
//! ```text
//! SELECT [current_setting('NAME') [AS a],] set_config(NAME, VALUE, IS_LOCAL) [AS b]
//!        [FROM { pg_settings | pg_show_all_settings() } WHERE name = 'NAME']
//! ```
//!
//! Invariant: an argument is a constant or a parameter; whatever else is written makes it another statement.

use pagemill_format::Oid;
use pagemill_sql::parameters::ParameterValue;
use pagemill_sql::{SqlState, StatementError};
use pagemill_types::builtin::oid;
use sqlparser::tokenizer::Token;

use super::{Command, Piece, Result, SetSetting};
use crate::settings::boolean;

/// The call of a function that sets, and what stands around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetConfig {
    /// A setting that is shown before, and the name of its column.
    pub shown_before: Option<(String, String)>,
    /// The name of the column that shows what was set.
    pub column: String,
    /// The setting's name.
    name: Argument,
    /// Its value.
    value: Argument,
    /// Whether it is for the transaction only.
    is_local: Argument,
    /// True where no row is given of a setting that there is not.
    pub if_known: bool,
}

/// What stands in the call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Argument {
    /// `None` for NULL.
    Constant(Option<String>),
    /// A parameter, counted from 1.
    Parameter(usize),
}

impl SetConfig {
    /// The types of its parameters, of which a client may have named some.
    ///
    /// # Errors
    /// For a parameter that does not stand there, and a type that is none of a text or a truth value.
    pub fn types(&self, named: &[Oid]) -> Result<Vec<Oid>> {
        let arguments =
            [(&self.name, oid::TEXT), (&self.value, oid::TEXT), (&self.is_local, oid::BOOL)];
        let number = |argument: &Argument| match argument {
            Argument::Parameter(number) => Some(*number),
            Argument::Constant(_) => None,
        };
        let most = arguments.iter().filter_map(|(argument, _)| number(argument)).max();
        let of = |at: usize| {
            let mut found = arguments.iter().filter(|(argument, _)| number(argument) == Some(at));
            let Some((_, own)) = found.next() else {
                let message = format!("could not determine data type of parameter ${at}");
                return Err(StatementError::new(SqlState("42P18"), message));
            };
            let asked =
                named.get(at - 1).copied().filter(|asked| ![Oid(0), UNKNOWN].contains(asked));
            match asked {
                None => Ok(*own),
                Some(asked) if asked == *own => Ok(asked),
                Some(asked) if asked == oid::VARCHAR && *own == oid::TEXT => Ok(asked),
                Some(asked) => {
                    let message = format!("set_config with a parameter of type {}", asked.0);
                    Err(StatementError::unsupported(message))
                }
            }
        };
        (1..=most.unwrap_or(0)).map(of).collect()
    }

    /// What is to be set, by the values of its parameters.
    ///
    /// # Errors
    /// Without a name, or for what is no text or no truth value.
    pub fn setting(&self, values: &[ParameterValue]) -> Result<SetSetting> {
        let Some(name) = self.name.text(values)? else {
            let message = "SET requires parameter name";
            return Err(StatementError::new(SqlState("22004"), message));
        };
        let is_local = match self.is_local.text(values)? {
            // NULL is false.
            None => false,
            Some(word) => boolean(&word).ok_or_else(|| {
                let message = format!("invalid input syntax for type boolean: \"{word}\"");
                StatementError::new(SqlState("22P02"), message)
            })?,
        };
        Ok(SetSetting { name, value: self.value.text(values)?, is_local })
    }
}

const UNKNOWN: Oid = pagemill_sql::types::UNKNOWN;

impl Argument {
    fn text(&self, values: &[ParameterValue]) -> Result<Option<String>> {
        let number = match self {
            Self::Constant(text) => return Ok(text.clone()),
            Self::Parameter(number) => *number,
        };
        let Some(given) = values.get(number - 1) else {
            let message = format!("there is no parameter ${number}");
            return Err(StatementError::new(SqlState("42P02"), message));
        };
        let Some(bytes) = &given.value else { return Ok(None) };
        if given.is_binary && given.type_oid == oid::BOOL {
            return Ok(Some(if bytes == &[1] { "true" } else { "false" }.to_owned()));
        }
        let text = String::from_utf8(bytes.clone());
        text.map(Some).map_err(|_| {
            StatementError::new(SqlState("22021"), "invalid byte sequence for encoding \"UTF8\"")
        })
    }
}

/// The words that are left.
struct Words<'w, 't>(&'w [&'t Token]);

impl<'t> Words<'_, 't> {
    fn next(&mut self) -> Option<&'t Token> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn take(&mut self, token: &Token) -> Option<()> {
        (self.next()? == token).then_some(())
    }

    fn is_word(&self, wanted: &str) -> bool {
        matches!(self.0.first(), Some(Token::Word(word))
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
    }

    fn take_word(&mut self, wanted: &str) -> Option<()> {
        self.is_word(wanted).then(|| self.next())?.map(drop)
    }

    /// A name in the server's own schema, which may be named.
    fn take_own(&mut self, wanted: &str) -> Option<()> {
        if self.is_word("pg_catalog") {
            self.next();
            self.take(&Token::Period)?;
        }
        self.take_word(wanted)
    }

    fn text(&mut self) -> Option<String> {
        match self.next()? {
            Token::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// A constant or a parameter, perhaps with a type behind it.
    fn argument(&mut self) -> Option<Argument> {
        let argument = match self.next()? {
            Token::SingleQuotedString(text) => Argument::Constant(Some(text.clone())),
            Token::Placeholder(name) => {
                let number = name.strip_prefix('$')?.parse().ok().filter(|number| *number > 0)?;
                Argument::Parameter(number)
            }
            Token::Word(word) if word.quote_style.is_none() => {
                match word.value.to_lowercase().as_str() {
                    "null" => Argument::Constant(None),
                    value @ ("true" | "false") => Argument::Constant(Some(value.to_owned())),
                    _ => return None,
                }
            }
            _ => return None,
        };
        if self.0.first() == Some(&&Token::DoubleColon) {
            self.next();
            ["text", "varchar", "boolean", "bool"].iter().find_map(|ty| self.take_word(ty))?;
        }
        Some(argument)
    }

    /// `[AS] NAME`, or the function's own.
    fn alias(&mut self, own: &str) -> Option<String> {
        let has_word = self.take_word("as").is_some();
        match self.0.first() {
            Some(Token::Word(word)) if has_word || !self.is_word("from") => {
                self.next();
                let folded = || word.value.to_lowercase();
                Some(word.quote_style.map_or_else(folded, |_| word.value.clone()))
            }
            _ if has_word => None,
            _ => Some(own.to_owned()),
        }
    }
}

impl Piece<'_, '_> {
    pub(super) fn set_config(&self) -> Option<Command> {
        let mut words = Words(&self.words[1..]);
        let shown_before = shown_before(&mut words)?;
        words.take_own("set_config")?;
        words.take(&Token::LParen)?;
        let of_row = words.take_word("name");
        let name = if of_row.is_some() { None } else { Some(words.argument()?) };
        words.take(&Token::Comma)?;
        let value = words.argument()?;
        words.take(&Token::Comma)?;
        let is_local = words.argument()?;
        words.take(&Token::RParen)?;
        let column = words.alias("set_config")?;
        let (name, if_known) = match (name, words.0.is_empty()) {
            (Some(name), true) => (name, false),
            (None, true) => return None,
            (name, false) => (of_known(&mut words, name)?, true),
        };
        Some(Command::SetConfig(SetConfig {
            shown_before,
            column,
            name,
            value,
            is_local,
            if_known,
        }))
    }
}

/// `current_setting('NAME') [AS a],` if it stands there; `None` for something else.
fn shown_before(words: &mut Words<'_, '_>) -> Option<Option<(String, String)>> {
    let begin = words.0;
    if words.take_own("current_setting").is_none() {
        words.0 = begin;
        return Some(None);
    }
    words.take(&Token::LParen)?;
    let name = words.text()?;
    words.take(&Token::RParen)?;
    let column = words.alias("current_setting")?;
    words.take(&Token::Comma)?;
    Some(Some((name, column)))
}

/// `FROM pg_settings WHERE name = 'NAME'`, of the setting that is set.
fn of_known(words: &mut Words<'_, '_>, name: Option<Argument>) -> Option<Argument> {
    words.take_word("from")?;
    let begin = words.0;
    if words.take_own("pg_settings").is_none() {
        words.0 = begin;
        words.take_own("pg_show_all_settings")?;
        words.take(&Token::LParen)?;
        words.take(&Token::RParen)?;
    }
    words.take_word("where")?;
    words.take_word("name")?;
    words.take(&Token::Eq)?;
    let known = Argument::Constant(Some(words.text()?));
    (words.0.is_empty() && name.is_none_or(|name| name == known)).then_some(known)
}
