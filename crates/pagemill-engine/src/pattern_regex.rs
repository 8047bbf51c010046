//! PostgreSQL's advanced regular expressions, rewritten for the `regex-lite` crate.
//!
//! Both agree on nearly everything a name pattern is made of. Rewritten here is what they spell
//! differently (word boundaries, a brace that is no bound, brackets inside brackets) or what
//! PostgreSQL refuses (a quantifier with nothing to repeat). What `regex-lite` cannot do is
//! refused. `(?` never arrives: a `?` in a pattern is a wildcard. Syntax from
//! `src/backend/regex/regc_lex.c` and `re_syntax.n` (PostgreSQL 15).

use std::iter::Peekable;
use std::str::Chars;

/// The largest number of repetitions PostgreSQL counts (`DUPMAX`).
const MOST_REPETITIONS: u32 = 255;

/// Why an expression cannot be used.
#[derive(Debug)]
pub(crate) struct UnsupportedRegex(pub(crate) String);

/// Rewrites an expression; a dot matches any character, newlines too.
pub(crate) fn translate(expression: &str) -> Result<String, UnsupportedRegex> {
    let mut translation = Translation {
        rest: expression.chars().peekable(),
        out: "(?s)".to_owned(),
        repeatable: false,
    };
    while let Some(ch) = translation.rest.next() {
        translation.token(ch)?;
    }
    Ok(translation.out)
}

struct Translation<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
    /// Whether what was read last can be repeated.
    repeatable: bool,
}

impl Translation<'_> {
    fn token(&mut self, ch: char) -> Result<(), UnsupportedRegex> {
        match ch {
            '\\' => return self.escape(),
            '[' => return self.bracket(),
            '{' if self.rest.peek().is_some_and(char::is_ascii_digit) => return self.bound(),
            '*' | '+' => {
                self.quantify()?;
                self.out.push(ch);
            }
            '(' | '|' | '^' | '$' => {
                self.out.push(ch);
                self.repeatable = false;
            }
            ')' | '.' => {
                self.out.push(ch);
                self.repeatable = true;
            }
            _ => self.literal(ch),
        }
        Ok(())
    }

    fn literal(&mut self, ch: char) {
        if ch.is_ascii_punctuation() && ch != '<' && ch != '>' {
            self.out.push('\\');
        }
        self.out.push(ch);
        self.repeatable = true;
    }

    fn quantify(&mut self) -> Result<(), UnsupportedRegex> {
        if !std::mem::replace(&mut self.repeatable, false) {
            return unsupported("a quantifier has nothing to repeat");
        }
        Ok(())
    }

    /// `{n}`, `{n,}` or `{n,m}`, the brace already read.
    fn bound(&mut self) -> Result<(), UnsupportedRegex> {
        self.quantify()?;
        let mut text = String::new();
        loop {
            match self.rest.next() {
                Some('}') => break,
                Some(ch) if ch.is_ascii_digit() || ch == ',' => text.push(ch),
                _ => return unsupported("a repetition count is not closed"),
            }
        }
        let counts: Vec<&str> = text.splitn(2, ',').collect();
        let in_range = |count: &&str| count.parse().is_ok_and(|n: u32| n <= MOST_REPETITIONS);
        let open_ended = counts.get(1) == Some(&"");
        if !counts.iter().filter(|count| !(open_ended && count.is_empty())).all(in_range) {
            return unsupported("a repetition count is above 255 or malformed");
        }
        self.out.push_str(&format!("{{{text}}}"));
        Ok(())
    }

    /// An escape outside brackets, the backslash already read.
    fn escape(&mut self) -> Result<(), UnsupportedRegex> {
        let constraint = match self.rest.peek() {
            Some('m') => Some("\\b{start}"),
            Some('M') => Some("\\b{end}"),
            Some('y') => Some("\\b"),
            Some('Y') => Some("\\B"),
            Some('A') => Some("\\A"),
            Some('Z') => Some("\\z"),
            _ => None,
        };
        if let Some(constraint) = constraint {
            self.rest.next();
            self.out.push_str(constraint);
            self.repeatable = false;
            return Ok(());
        }
        self.character_escape()?;
        self.repeatable = true;
        Ok(())
    }

    /// An escape that stands for characters, inside brackets or outside.
    fn character_escape(&mut self) -> Result<(), UnsupportedRegex> {
        match self.rest.next() {
            Some(ch @ ('d' | 's' | 'w' | 'D' | 'S' | 'W' | 'n' | 'r' | 't' | 'f' | 'v')) => {
                self.out.extend(['\\', ch]);
            }
            Some('a') => self.out.push_str("\\x07"),
            Some('b') => self.out.push_str("\\x08"),
            Some('B') => self.out.push_str("\\\\"),
            Some('e') => self.out.push_str("\\x1B"),
            Some(ch) if ch.is_ascii_alphanumeric() => {
                return unsupported(&format!("the escape \\{ch} is not supported"));
            }
            Some(ch) => self.literal(ch),
            None => return unsupported("it ends with a backslash"),
        }
        Ok(())
    }

    /// A bracket expression, the bracket already read.
    fn bracket(&mut self) -> Result<(), UnsupportedRegex> {
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        loop {
            match self.rest.next() {
                None => return unsupported("a bracket expression is not closed"),
                Some(']') if !first => break,
                Some('\\') => self.character_escape()?,
                Some('[') => self.inner_bracket()?,
                // A minus between two characters makes a range; elsewhere it is one itself.
                Some('-') if !first && self.rest.peek() != Some(&']') => self.out.push('-'),
                Some(ch) => self.literal(ch),
            }
            first = false;
        }
        self.out.push(']');
        self.repeatable = true;
        Ok(())
    }

    /// A bracket within a bracket expression: a class such as `[:digit:]`, or itself.
    fn inner_bracket(&mut self) -> Result<(), UnsupportedRegex> {
        match self.rest.peek() {
            Some('.' | '=') => return unsupported("collating elements are not supported"),
            Some(':') => {}
            _ => {
                self.literal('[');
                return Ok(());
            }
        }
        self.out.push('[');
        for ch in self.rest.by_ref() {
            match ch {
                ':' | '^' => self.out.push(ch),
                _ if ch.is_ascii_alphabetic() => self.out.push(ch),
                ']' => {
                    self.out.push(']');
                    return Ok(());
                }
                _ => break,
            }
        }
        unsupported("a character class is malformed")
    }
}

fn unsupported<T>(reason: &str) -> Result<T, UnsupportedRegex> {
    Err(UnsupportedRegex(reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex_lite::Regex;

    fn matches(expression: &str, text: &str) -> bool {
        let translated = translate(&format!("^({expression})$")).expect(expression);
        Regex::new(&translated).expect(expression).is_match(text)
    }

    #[test]
    fn braces_that_are_no_bound_are_characters() {
        assert!(matches("a{b}", "a{b}"));
        assert!(matches("a{2,3}", "aaa") && !matches("a{2,3}", "a") && matches("a{1,}", "aaaa"));
        for refused in ["a{256}", "a{2,x}", "a{1,2,3}", "{2}"] {
            assert!(translate(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn brackets_hold_brackets_and_operators_as_characters() {
        assert!(matches("[[a]", "[") && matches("[]a]", "]") && matches("[^]a]", "b"));
        assert!(matches("[a&&b]", "&") && matches("[a~~b]", "~") && matches("[a-]", "-"));
        assert!(matches("[[:digit:]x]+", "1x2") && matches("[\\d_]+", "1_2"));
        assert!(translate("[[.a.]]").is_err() && translate("[[=a=]]").is_err());
    }

    #[test]
    fn word_boundaries_are_spelled_anew() {
        assert!(matches("a \\mb\\M", "a b") && matches("a\\y b", "a b"));
        assert!(!matches("a\\yb", "ab"));
    }

    #[test]
    fn a_quantifier_with_nothing_to_repeat_is_refused() {
        for refused in ["+", "(*a)", "a|+", "a**", "^+"] {
            assert!(translate(refused).is_err(), "{refused}");
        }
    }
}
