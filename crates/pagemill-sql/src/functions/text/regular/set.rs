//! Sets of characters: what one character of a pattern may be.
//!
//! Invariant: ranges are in order and do not touch, so that a character is looked up by halves: a class of a locale has hundreds.

use std::fmt::Write as _;
use std::sync::Arc;

/// Characters from one to another.
pub(super) type Range = (char, char);

/// The characters of ranges, or all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Set {
    /// Shared, as parts of patterns are written out more than once.
    ranges: Arc<[Range]>,
    is_other: bool,
}

impl Set {
    pub(super) fn of(ranges: Vec<Range>) -> Self {
        Self { ranges: joined(ranges).into(), is_other: false }
    }

    /// All characters but those of ranges.
    pub(super) fn other_than(ranges: Vec<Range>) -> Self {
        Self { ranges: joined(ranges).into(), is_other: true }
    }

    pub(super) fn has(&self, letter: char) -> bool {
        let at = self.ranges.partition_point(|range| range.1 < letter);
        self.ranges.get(at).is_some_and(|range| range.0 <= letter) != self.is_other
    }

    /// Appends it in the library's syntax.
    pub(super) fn write(&self, out: &mut String) {
        match (self.ranges.is_empty(), self.is_other) {
            (true, true) => return out.push_str("(?s:.)"),
            // Nothing is in it.
            (true, false) => return out.push_str("[^\\x{0}-\\x{10FFFF}]"),
            _ => {}
        }
        out.push_str(if self.is_other { "[^" } else { "[" });
        for (start, end) in self.ranges.iter() {
            // Writing to a string does not fail.
            let _ = write!(out, "\\x{{{:X}}}-\\x{{{:X}}}", u32::from(*start), u32::from(*end));
        }
        out.push(']');
    }
}

/// All characters that are in none of the ranges.
pub(super) fn others(ranges: Vec<Range>) -> Vec<Range> {
    let (mut others, mut next) = (Vec::new(), Some('\0'));
    for (start, end) in joined(ranges) {
        if let Some(first) = next.filter(|first| *first < start) {
            // Behind the last surrogate comes none that is smaller.
            others.extend((first..start).next_back().map(|last| (first, last)));
        }
        next = (end..=char::MAX).nth(1);
    }
    others.extend(next.map(|first| (first, char::MAX)));
    others
}

/// Ranges in order, those that touch as one.
fn joined(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let mut joined: Vec<Range> = Vec::new();
    for (start, end) in ranges {
        match joined.last_mut() {
            Some(last) if u32::from(start) <= u32::from(last.1) + 1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(set: &Set) -> String {
        let mut text = String::new();
        set.write(&mut text);
        text
    }

    #[test]
    fn ranges_that_touch_are_one_and_what_is_between_them_is_not_in_it() {
        let set = Set::of(vec![('x', 'z'), ('a', 'c'), ('b', 'd'), ('e', 'e')]);
        assert_eq!(written(&set), "[\\x{61}-\\x{65}\\x{78}-\\x{7A}]");
        let is_in: Vec<bool> = ['`', 'a', 'e', 'f', 'x', 'z', '{'].map(|c| set.has(c)).into();
        assert_eq!(is_in, [false, true, true, false, true, true, false]);
        let other = Set::other_than(vec![('\n', '\n')]);
        assert!(other.has('a') && !other.has('\n'));
    }

    #[test]
    fn what_is_in_no_range_is_between_them() {
        let found = others(vec![('b', 'c'), ('\0', 'a'), ('\u{E000}', '\u{10FFFE}')]);
        assert_eq!(found, [('d', '\u{D7FF}'), ('\u{10FFFF}', '\u{10FFFF}')]);
        assert_eq!(others(Vec::new()), [('\0', char::MAX)]);
        assert!(others(vec![('\0', char::MAX)]).is_empty());
    }

    #[test]
    fn all_and_nothing_are_sets_too() {
        let (all, none) = (Set::other_than(Vec::new()), Set::of(Vec::new()));
        assert!(all.has('\u{0}') && all.has('\u{10FFFF}') && !none.has('a'));
        assert_eq!(
            (written(&all), written(&none)),
            ("(?s:.)".to_owned(), "[^\\x{0}-\\x{10FFFF}]".to_owned())
        );
    }
}
