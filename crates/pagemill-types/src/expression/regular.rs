//! `~`: the regular expressions that mean the same to PostgreSQL and to the library that matches here.
//!
//! Those are literal characters, `.`, `^`, `$`, brackets of ASCII characters and ranges, groups, alternatives and the
//! quantifiers `*`, `+`, `?`, `{m}`, `{m,}`, `{m,n}`. Whether there is a match does not depend on which of several is
//! preferred. Classes by name (`\w`, `[:alpha:]`) depend on the collation, back references, look-around and embedded
//! options are PostgreSQL's own: none of them has a [`RegularPattern`].
//!
//! Invariant: every character reaches the library escaped, so that it gives it no other meaning.
//! Source: `src/backend/regex/regc_lex.c`, `regcomp.c`, `re_syntax.n`, PostgreSQL 14 to 18.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

use regex_lite::{Regex, RegexBuilder};

/// `DUPMAX`.
const MOST_REPEATS: u32 = 255;
/// What the library may make of a pattern.
const MOST_BYTES: usize = 1 << 20;
/// Groups within each other.
const MAX_DEPTH: usize = 50;

/// A pattern.
#[derive(Debug, Clone)]
pub struct RegularPattern(Regex);

impl RegularPattern {
    /// The pattern of this text, in UTF-8; none for one that might mean something else here.
    pub fn new(pattern: &str) -> Option<Self> {
        // The server takes these for the kind of expression.
        if pattern.starts_with("***") {
            return None;
        }
        let mut translation = Translation { rest: pattern.chars().peekable(), out: String::new() };
        translation.alternatives(0)?;
        if translation.rest.next().is_some() {
            return None;
        }
        // A dot and a bracket that excludes match the end of a line too.
        let mut builder = RegexBuilder::new(&translation.out);
        builder.dot_matches_new_line(true).size_limit(MOST_BYTES);
        builder.build().ok().map(Self)
    }

    /// True when some part of the text matches. Bytes that are no UTF-8 match nothing.
    pub fn matches(&self, text: &[u8]) -> bool {
        std::str::from_utf8(text).is_ok_and(|text| self.0.is_match(text))
    }
}

struct Translation<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
}

impl Translation<'_> {
    /// Branches, up to the end or a closing parenthesis. One without anything in it has no translation.
    fn alternatives(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        loop {
            let mut atoms = 0;
            while self.rest.peek().is_some_and(|next| !matches!(next, '|' | ')')) {
                self.quantified(depth)?;
                atoms += 1;
            }
            if atoms == 0 {
                return None;
            }
            match self.rest.next_if_eq(&'|') {
                Some(_) => self.out.push('|'),
                None => return Some(()),
            }
        }
    }

    fn quantified(&mut self, depth: usize) -> Option<()> {
        let is_constraint = self.atom(depth)?;
        let quantifier = match self.rest.peek() {
            Some('*' | '+' | '?') => {
                let sign = self.rest.next()?;
                sign.to_string()
            }
            Some('{') => self.bound()?,
            _ => return Some(()),
        };
        // A second quantifier is an error, or asks for the shortest match.
        if is_constraint || matches!(self.rest.peek(), Some('*' | '+' | '?' | '{')) {
            return None;
        }
        self.out.push_str(&quantifier);
        Some(())
    }

    /// An atom, or a constraint, which is true.
    fn atom(&mut self, depth: usize) -> Option<bool> {
        match self.rest.next()? {
            anchor @ ('^' | '$') => {
                self.out.push(anchor);
                return Some(true);
            }
            '.' => self.out.push('.'),
            '[' => self.bracket()?,
            '(' => {
                if self.rest.next_if_eq(&'?').is_some() {
                    self.rest.next_if_eq(&':')?;
                }
                self.out.push_str("(?:");
                self.alternatives(depth + 1)?;
                self.rest.next_if_eq(&')')?;
                self.out.push(')');
            }
            '*' | '+' | '?' | '{' | '}' | ']' | ')' | '|' => return None,
            '\\' => self.escaped()?,
            literal => self.literal(literal),
        }
        Some(false)
    }

    fn literal(&mut self, character: char) {
        // Writing to a string does not fail.
        let _ = write!(self.out, "\\x{{{:X}}}", u32::from(character));
    }

    /// Behind a backslash: what is no letter and no digit stands for itself.
    fn escaped(&mut self) -> Option<()> {
        let character = self.rest.next().filter(|next| next.is_ascii_punctuation())?;
        self.literal(character);
        Some(())
    }

    /// `{m}`, `{m,}` or `{m,n}`.
    fn bound(&mut self) -> Option<String> {
        self.rest.next_if_eq(&'{')?;
        let least = self.number()?;
        let mut bound = format!("{{{least}");
        if self.rest.next_if_eq(&',').is_some() {
            bound.push(',');
            if self.rest.peek() != Some(&'}') {
                let most = self.number().filter(|most| *most >= least)?;
                bound.push_str(&most.to_string());
            }
        }
        self.rest.next_if_eq(&'}')?;
        bound.push('}');
        Some(bound)
    }

    fn number(&mut self) -> Option<u32> {
        let mut digits = String::new();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        digits.parse().ok().filter(|number| *number <= MOST_REPEATS)
    }

    /// A bracket expression, behind its opening bracket.
    fn bracket(&mut self) -> Option<()> {
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            // A closing bracket at the start stands for itself.
            if !is_first && self.rest.next_if_eq(&']').is_some() {
                self.out.push(']');
                return Some(());
            }
            let start = self.bracket_character(is_first)?;
            is_first = false;
            self.literal(start);
            if self.rest.next_if_eq(&'-').is_none() {
                continue;
            }
            // A hyphen at the end stands for itself.
            if self.rest.peek() == Some(&']') {
                self.literal('-');
                continue;
            }
            // Nor is a range taken that begins with a hyphen.
            let is_plain = |end: &char| *end >= start && *end != '-' && start != '-';
            let end = self.bracket_character(false).filter(is_plain)?;
            self.out.push('-');
            self.literal(end);
        }
    }

    /// A character of a bracket expression: ASCII, as classes and collating elements are not known here.
    fn bracket_character(&mut self, is_first: bool) -> Option<char> {
        let next = self.rest.next().filter(char::is_ascii)?;
        match next {
            '[' | ']' if !(is_first && next == ']') => None,
            '\\' => self.rest.next().filter(|next| next.is_ascii_punctuation()),
            // In the middle it would be the start of a range that begins with it.
            '-' if !is_first && self.rest.peek() != Some(&']') => None,
            other => Some(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_that_mean_the_same_match_the_same() {
        for (pattern, text, expected) in [
            ("^[A-Z]{2}[0-9]+$", "AB12", true),
            ("^[A-Z]{2}[0-9]+$", "AB12\n", false),
            ("b.d", "ab\nde", true),
            ("^(a|bc)*$", "abcbca", true),
            ("^[^@ ]+@[^@ ]+\\.[a-z]{2,}$", "x.y@example.org", true),
            ("^[^@ ]+@[^@ ]+\\.[a-z]{2,}$", "x y@example.org", false),
            ("[]a-]", "-", true),
            ("é?x", "x", true),
            ("^a#b c$", "a#b c", true),
        ] {
            let made = RegularPattern::new(pattern).unwrap();
            assert_eq!(made.matches(text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn patterns_of_another_meaning_have_no_translation() {
        for pattern in [
            "",
            "a|",
            "(a",
            "a)",
            "*",
            "a**",
            "a*?",
            "^*",
            "\\d",
            "\\w",
            "\\1",
            "[[:alpha:]]",
            "[a",
            "[é]",
            "(?i)a",
            "(?=a)",
            "***=a",
            "a{256}",
            "a{2,1}",
            "a{",
            "{",
            "()",
            "[z-a]",
            "a\\",
            "[a-\\d]",
            "\\mfoo",
            "[--a]",
        ] {
            assert!(RegularPattern::new(pattern).is_none(), "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn no_pattern_makes_the_translation_panic(pattern in ".{0,30}|[\\[\\](){}|*+?^$.a0\\\\,-]{0,30}", text: Vec<u8>) {
            if let Some(pattern) = RegularPattern::new(&pattern) {
                let _ = pattern.matches(&text);
            }
        }
    }
}
