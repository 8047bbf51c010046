//! `LIKE`: a pattern of literal characters, `_` for any one and `%` for any number of them; a backslash makes the next
//! character literal.
//!
//! Invariant: matching never takes more than text times pattern steps.
//! Source: `MatchText` in `src/backend/utils/adt/like_match.c`, PostgreSQL 14 to 18.

use crate::input::Characters;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Byte(u8),
    AnyCharacter,
    AnyRun,
}

/// A pattern.
#[derive(Debug, Clone)]
pub struct LikePattern {
    parts: Vec<Part>,
    characters: Characters,
}

impl LikePattern {
    /// The pattern of this text; none for one that ends with a backslash, which a server refuses once it gets there.
    pub fn new(pattern: &[u8], characters: Characters) -> Option<Self> {
        let mut parts = Vec::new();
        let mut bytes = pattern.iter();
        while let Some(&byte) = bytes.next() {
            parts.push(match byte {
                b'%' => Part::AnyRun,
                b'_' => Part::AnyCharacter,
                b'\\' => Part::Byte(*bytes.next()?),
                literal => Part::Byte(literal),
            });
        }
        Some(Self { parts, characters })
    }

    /// True when the whole text matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        let (mut at, mut part) = (0, 0);
        // Where the last run of any characters stands in the pattern, and up to where in the text it reaches.
        let mut run: Option<(usize, usize)> = None;
        loop {
            match (self.parts.get(part), text.get(at)) {
                (None, None) => return true,
                (Some(Part::AnyRun), _) => {
                    part += 1;
                    run = Some((part, at));
                    continue;
                }
                (Some(Part::Byte(wanted)), Some(found)) if wanted == found => {
                    (at, part) = (at + 1, part + 1);
                    continue;
                }
                (Some(Part::AnyCharacter), Some(first)) => {
                    (at, part) = (at + self.characters.width(*first), part + 1);
                    continue;
                }
                _ => {}
            }
            // Let the last run reach one character further.
            let Some((behind, reach)) = run else { return false };
            let Some(first) = text.get(reach) else { return false };
            let reach = reach + self.characters.width(*first);
            (run, at, part) = (Some((behind, reach)), reach, behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(text: &str, pattern: &str) -> bool {
        LikePattern::new(pattern.as_bytes(), Characters::Utf8).unwrap().matches(text.as_bytes())
    }

    #[test]
    fn patterns_match_whole_texts() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("a", "", false),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "a_c", true),
            ("aéc", "a_c", true),
            ("é", "__", false),
            ("abcbc", "%bc", true),
            ("abcbd", "%bc%_d", true),
            ("abcd", "%bc%_d", false),
            ("a%", "a\\%", true),
            ("ab", "a\\%", false),
            ("x@y.z", "%_@_%._%", true),
            ("aaaa", "%a%a%a%a%a%", false),
            ("éé", "%é", true),
        ] {
            assert_eq!(matches(text, pattern), expected, "{text} {pattern}");
        }
        assert!(LikePattern::new(b"a\\", Characters::Utf8).is_none());
    }
}
