//! The tablespaces of a cluster, as a list of Python: `[('name', 16384, '/directory'), …]`.
//!
//! Only the numbers are wanted; texts are passed over by their quotes, within which a backslash takes the next character with it.
//!
//! Source: `output_tablespace_list` in `barman/infofile.py`, Barman 3.4 to 3.17; string literals in Python's reference.

use crate::ids::Oid;

/// The numbers, if it is such a list.
pub(super) fn numbers(literal: &str) -> Option<Vec<Oid>> {
    let mut rest = Rest(literal);
    let mut numbers = Vec::new();
    rest.take('[')?;
    while rest.take(']').is_none() {
        rest.take('(')?;
        rest.text()?;
        rest.take(',')?;
        numbers.push(rest.number()?);
        rest.take(',')?;
        rest.text()?;
        rest.take(')')?;
        // Behind the last one, too, it may stand.
        if rest.take(',').is_none() && !rest.0.trim_start().starts_with(']') {
            return None;
        }
    }
    rest.0.trim().is_empty().then_some(numbers)
}

/// What is left of the list.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    /// Passes over this character, and spaces before it.
    fn take(&mut self, wanted: char) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(wanted)?;
        Some(())
    }

    fn number(&mut self) -> Option<Oid> {
        let rest = self.0.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        self.0 = &rest[end..];
        rest[..end].parse().ok().map(Oid)
    }

    /// Passes over a text.
    fn text(&mut self) -> Option<()> {
        let rest = self.0.trim_start();
        // Of Python 2.
        let rest = rest.strip_prefix('u').unwrap_or(rest);
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let mut characters = rest.char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => drop(characters.next()),
                end if end == quote => {
                    self.0 = &rest[at + 1..];
                    return Some(());
                }
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_whatever_names_and_directories_are() {
        for (literal, expected) in [
            ("[]", &[][..]),
            ("[('a', 1, '/a')]", &[1]),
            ("[(u'a', 1, u'/a'), (\"b'\", 22 , '\\'],(/b\\\\'),]", &[1, 22]),
        ] {
            let expected: Vec<_> = expected.iter().map(|number| Oid(*number)).collect();
            assert_eq!(numbers(literal), Some(expected), "{literal}");
        }
        for other in
            ["", "[", "[('a', 1, '/a')", "[('a', 1, '/a') ('b', 2, '/b')]", "[('a', -1, '')]"]
        {
            assert_eq!(numbers(other), None, "{other}");
        }
    }
}
