//! How a pattern is meant: the letters that stand for options, given beside it or within it.
//!
//! Invariant: a letter whose meaning is not followed here is told, never skipped.
//!
//! Source: `parse_re_flags` in `src/backend/utils/adt/regexp.c`, `prefixes` in `src/backend/regex/regc_lex.c`, PostgreSQL 14 to 18.

/// How a pattern is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Options {
    pub(crate) ignores_case: bool,
    /// `REG_NLSTOP`: a dot and the complement of a set take no line break.
    pub(crate) stops_at_lines: bool,
    /// `REG_NLANCH`: `^` and `$` match at line breaks as well.
    pub(crate) anchors_at_lines: bool,
    /// `REG_EXPANDED`: spaces and comments between the parts count for nothing.
    pub(crate) is_expanded: bool,
}

impl Options {
    /// Follows a letter that stands for an option; nothing for one whose meaning is not known here.
    pub(super) fn read(&mut self, letter: char) -> Option<()> {
        match letter {
            'i' => self.ignores_case = true,
            'c' => self.ignores_case = false,
            'm' | 'n' => (self.stops_at_lines, self.anchors_at_lines) = (true, true),
            'p' => (self.stops_at_lines, self.anchors_at_lines) = (true, false),
            's' => (self.stops_at_lines, self.anchors_at_lines) = (false, false),
            'w' => (self.stops_at_lines, self.anchors_at_lines) = (false, true),
            't' => self.is_expanded = false,
            'x' => self.is_expanded = true,
            _ => return None,
        }
        Some(())
    }
}

/// `(?i)` and the like, which stand only at the start.
pub(super) fn embedded_options(pattern: &str, options: Options) -> Option<(&str, Options)> {
    let Some(rest) = pattern.strip_prefix("(?") else { return Some((pattern, options)) };
    if !rest.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return Some((pattern, options));
    }
    let (letters, rest) = rest.split_once(')')?;
    let mut options = options;
    letters.chars().try_for_each(|letter| options.read(letter))?;
    Some((rest, options))
}
