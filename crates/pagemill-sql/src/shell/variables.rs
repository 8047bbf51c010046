//! Variables of a shell: what `\set` gives a name, and what `:name` stands for.
//!
//! ```text
//! :name      the value, read as if it was typed
//! :'name'    the value as a constant
//! :"name"    the value as a name
//! :{?name}   TRUE where there is such a variable, else FALSE
//! ```
//!
//! Invariant: a name that no variable has stands for itself.
//!
//! Source: `src/fe_utils/psqlscan.l`, `src/bin/psql/variables.c`, PostgreSQL 15.

use std::collections::BTreeMap;

use crate::functions::text::quote_literal;

/// The variables, by name.
#[derive(Debug, Default)]
pub(super) struct Variables(BTreeMap<String, String>);

/// What stands in place of a variable.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Substitute {
    /// Read on as if it was typed; the name of the variable.
    Typed(String, String),
    /// Taken as it is.
    Whole(String),
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

/// True for a name that a variable can have.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_of_name)
}

impl Variables {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), value);
    }

    pub(super) fn unset(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// What a text that begins with a colon has in place of a variable, and how many characters say so; `None` where they say
    /// nothing.
    pub(super) fn substitute(&self, text: &[char]) -> Option<(Substitute, usize)> {
        let name = |from: usize| -> String {
            text.iter().skip(from).take_while(|c| is_of_name(**c)).collect()
        };
        match text.get(1)? {
            quote @ ('\'' | '"') => {
                let name = name(2);
                let len = 2 + name.chars().count();
                if text.get(len) != Some(quote) {
                    return None;
                }
                let value = self.get(&name)?;
                let whole = match quote {
                    '\'' => quote_literal(value),
                    _ => format!("\"{}\"", value.replace('"', "\"\"")),
                };
                Some((Substitute::Whole(whole), len + 1))
            }
            '{' if text.get(2) == Some(&'?') => {
                let name = name(3);
                let len = 3 + name.chars().count();
                if text.get(len) != Some(&'}') || name.is_empty() {
                    return None;
                }
                let is_set = if self.get(&name).is_some() { "TRUE" } else { "FALSE" };
                Some((Substitute::Whole(is_set.to_owned()), len + 1))
            }
            _ => {
                let name = name(1);
                let len = 1 + name.chars().count();
                let value = self.get(&name)?.to_owned();
                Some((Substitute::Typed(name, value), len))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Substitute, Variables};

    #[test]
    fn a_variable_stands_for_its_value_in_four_ways() {
        let mut variables = Variables::default();
        variables.set("x", "it's \"it\"".to_owned());
        let found = |text: &str| variables.substitute(&text.chars().collect::<Vec<char>>());
        let whole = |text: &str, len| Some((Substitute::Whole(text.to_owned()), len));
        let typed = Substitute::Typed("x".to_owned(), "it's \"it\"".to_owned());
        assert_eq!(found(":x + 1"), Some((typed, 2)));
        assert_eq!(found(":'x'"), whole("'it''s \"it\"'", 4));
        assert_eq!(found(":\"x\""), whole("\"it's \"\"it\"\"\"", 4));
        assert_eq!(found(":{?x}"), whole("TRUE", 5));
        assert_eq!(found(":{?y}"), whole("FALSE", 5));
        for nothing in [":y", ":'y'", ":'x", "::x", ":", ":{x}", ": x"] {
            assert_eq!(found(nothing), None, "{nothing}");
        }
    }
}
