//! The characters of a text to be parsed, each with its place, and a cursor over them.
//!
//! Messages tell places as numbers of characters, values are made of bytes; so both are kept. The text is UTF-8; a byte that is not
//! is a character of its own that nothing accepts.
//!
//! Invariant: places ascend, and the cursor never passes the end.
//!
//! Source: the parsers in `contrib/ltree/ltree_io.c` and `contrib/ltree/ltxtquery_io.c`, PostgreSQL 14 to 18.

/// A cursor over the characters of a text.
pub(super) struct Characters<'a> {
    text: &'a [u8],
    places: Vec<(usize, char)>,
    at: usize,
}

impl<'a> Characters<'a> {
    /// Stands on the first character.
    pub(super) fn new(text: &'a [u8]) -> Self {
        let mut places = Vec::with_capacity(text.len());
        let mut start = 0;
        for chunk in text.utf8_chunks() {
            let valid = chunk.valid();
            places.extend(valid.char_indices().map(|(at, one)| (start + at, one)));
            start += valid.len();
            places.extend((0..chunk.invalid().len()).map(|at| (start + at, '\u{FFFD}')));
            start += chunk.invalid().len();
        }
        Self { text, places, at: 0 }
    }

    /// The character it stands on; `None` at the end.
    pub(super) fn peek(&self) -> Option<char> {
        self.places.get(self.at).map(|(_, one)| *one)
    }

    /// Goes on by one character.
    pub(super) fn advance(&mut self) {
        self.at = (self.at + 1).min(self.places.len());
    }

    /// The number of the character it stands on, from 1.
    pub(super) fn position(&self) -> usize {
        self.at + 1
    }

    /// The byte at which that character begins.
    pub(super) fn byte(&self) -> usize {
        self.places.get(self.at).map_or(self.text.len(), |(at, _)| *at)
    }

    /// True for a character of several bytes.
    pub(super) fn is_wide(&self) -> bool {
        let next = self.places.get(self.at + 1).map_or(self.text.len(), |(at, _)| *at);
        next > self.byte() + 1
    }

    /// The bytes from one place up to another.
    pub(super) fn slice(&self, from: usize, to: usize) -> &'a [u8] {
        self.text.get(from..to).unwrap_or_default()
    }

    /// How often a character is in the whole text.
    pub(super) fn count(&self, wanted: char) -> usize {
        self.places.iter().filter(|(_, one)| *one == wanted).count()
    }

    /// The number that the digits from here on make, cut to 32 bits as C's `atoi` does it.
    pub(super) fn number(&self) -> i32 {
        let digits = self.places.iter().skip(self.at).map_while(|(_, one)| one.to_digit(10));
        let more = |sum: i64, digit| sum.saturating_mul(10).saturating_add(i64::from(digit));
        digits.fold(0, more) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_characters_of_their_own() {
        let mut found = Characters::new(b"\xC3\xA9\xFF.");
        assert_eq!((found.peek(), found.position(), found.byte()), (Some('é'), 1, 0));
        assert!(found.is_wide());
        found.advance();
        assert_eq!((found.peek(), found.position(), found.byte()), (Some('\u{FFFD}'), 2, 2));
        assert!(!found.is_wide());
        found.advance();
        found.advance();
        found.advance();
        assert_eq!((found.peek(), found.position(), found.byte()), (None, 4, 4));
        assert_eq!(found.count('.'), 1);
    }

    #[test]
    fn numbers_overflow_as_in_c() {
        let number = |text: &str| Characters::new(text.as_bytes()).number();
        assert_eq!(number("12,"), 12);
        assert_eq!(number("99999999999"), 1_215_752_191);
        assert_eq!(number("99999999999999999999"), -1);
    }
}
