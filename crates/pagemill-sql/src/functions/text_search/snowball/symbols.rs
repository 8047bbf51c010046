//! Programs in the Snowball language as symbols: names, numbers, strings and signs.
//!
//! Strings have their escapes replaced here: `{name}` stands for what `stringdef` said of the name, `{'}` for an apostrophe,
//! and `{U+00E4}` for a character by its number.
//!
//! Invariant: programs are those of this crate, so that what is not understood is a fault of the crate, told by name.
//!
//! Source: https://snowballstem.org/compiler/snowman.html, of PostgreSQL 14 to 18 the files named in `mod.rs`.

use std::collections::HashMap;

/// What does not make sense in a program.
pub(super) type Fault = String;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Symbol {
    Name(String),
    Number(i32),
    Text(String),
    Sign(&'static str),
}

/// Longer ones before those that they begin with.
const SIGNS: [&str; 24] = [
    "->", "=>", "<-", "<+", "<=", ">=", "==", "!=", "+=", "-=", "*=", "/=", "(", ")", "[", "]",
    "$", "<", ">", "=", "+", "-", "*", "/",
];

/// All symbols of a program.
pub(super) fn symbols(program: &str) -> Result<Vec<Symbol>, Fault> {
    let mut reader = Reader { rest: program, names: HashMap::new() };
    let mut found = Vec::new();
    while let Some(symbol) = reader.next()? {
        match &symbol {
            // They are braces in all programs.
            Symbol::Name(name) if name == "stringescapes" => {
                reader.take(reader.rest.find('}').map(|at| at + 1));
            }
            Symbol::Name(name) if name == "stringdef" => reader.definition()?,
            _ => found.push(symbol),
        }
    }
    Ok(found)
}

struct Reader<'p> {
    rest: &'p str,
    /// What escapes stand for.
    names: HashMap<String, String>,
}

impl<'p> Reader<'p> {
    fn next(&mut self) -> Result<Option<Symbol>, Fault> {
        self.skip_to_symbol();
        let Some(first) = self.rest.chars().next() else {
            return Ok(None);
        };
        if first == '\'' {
            return self.text().map(|text| Some(Symbol::Text(text)));
        }
        if first.is_ascii_alphanumeric() {
            let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let name = self.take(self.rest.find(|c| !of_name(c)));
            return Ok(Some(match name.parse() {
                Ok(number) => Symbol::Number(number),
                Err(_) => Symbol::Name(name.to_owned()),
            }));
        }
        let sign = SIGNS.into_iter().find(|sign| self.rest.starts_with(sign));
        let sign = sign.ok_or_else(|| format!("a sign that is unknown: {first}"))?;
        self.take(Some(sign.len()));
        Ok(Some(Symbol::Sign(sign)))
    }

    fn skip_to_symbol(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            let end = match () {
                () if self.rest.starts_with("//") => self.rest.find('\n'),
                () if self.rest.starts_with("/*") => self.rest.find("*/").map(|at| at + 2),
                () => return,
            };
            self.take(end);
        }
    }

    /// Up to there, or all that there is.
    fn take(&mut self, end: Option<usize>) -> &'p str {
        let (taken, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn word(&mut self) -> &'p str {
        self.rest = self.rest.trim_start();
        self.take(self.rest.find(char::is_whitespace))
    }

    fn definition(&mut self) -> Result<(), Fault> {
        let name = self.word().to_owned();
        match self.next()? {
            Some(Symbol::Text(text)) => self.names.insert(name, text),
            other => return Err(format!("no string of name {name} but {other:?}")),
        };
        Ok(())
    }

    fn text(&mut self) -> Result<String, Fault> {
        let mut text = String::new();
        self.take(Some(1));
        loop {
            let inside = self.take(self.rest.find(['\'', '{']));
            text.push_str(inside);
            let is_end = self.rest.starts_with('\'');
            self.take(Some(self.rest.len().min(1)));
            if is_end {
                return Ok(text);
            }
            let (name, rest) = self.rest.split_once('}').ok_or("a string without end")?;
            self.rest = rest;
            text.push_str(&self.escape(name)?);
        }
    }

    fn escape(&self, name: &str) -> Result<String, Fault> {
        if let Some(known) = self.names.get(name) {
            return Ok(known.clone());
        }
        let number = name.strip_prefix("U+").and_then(|hex| u32::from_str_radix(hex, 16).ok());
        match (name, number.and_then(char::from_u32)) {
            (_, Some(character)) => Ok(character.to_string()),
            ("'" | "{", None) => Ok(name.to_owned()),
            _ => Err(format!("an escape that is unknown: {name}")),
        }
    }
}
