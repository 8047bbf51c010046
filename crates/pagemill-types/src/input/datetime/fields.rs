//! The text of a date, a time or an interval, cut into fields.
//!
//! Letters become small; spaces and most punctuation only separate. What a field is called says how
//! it begins, not what it will turn out to be: `America/New_York` is a [`FieldKind::Date`].
//!
//! Invariants: at most 25 fields, each of ASCII bytes; together they fit the buffer that the server
//! has for the type, and texts that it finds too long are refused here as well.
//! Source: `ParseDateTime` in `src/backend/utils/adt/datetime.c`, PostgreSQL 14 to 18.

use pagemill_format::ids::PgVersion;

use super::fault::{Fault, Result};
use super::words;

/// Fields at most.
const MOST_FIELDS: usize = 25;
/// The largest of the server's buffers.
const MOST_BYTES: usize = 256;

/// What a field looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// Digits, perhaps with a point.
    Number,
    /// Digits or letters with `-`, `/` or `.` between them; also the names of time zones.
    Date,
    /// Digits with colons.
    Time,
    /// A sign and digits.
    Zone,
    /// Letters.
    Word,
    /// A sign and letters.
    SignedWord,
}

/// The fields of one text.
pub(super) struct Fields {
    buffer: [u8; MOST_BYTES],
    fields: [(FieldKind, u16, u16); MOST_FIELDS],
    count: usize,
}

impl Fields {
    /// Cuts a text into fields. `room` is the size in bytes of the server's buffer for the type;
    /// each field takes one byte more than its length.
    ///
    /// # Errors
    /// When there is too much of it, or a byte that cannot be in it.
    pub(super) fn split(text: &[u8], room: usize) -> Result<Self> {
        let fields = Self {
            buffer: [0; MOST_BYTES],
            fields: [(FieldKind::Number, 0, 0); MOST_FIELDS],
            count: 0,
        };
        let mut splitter = Splitter { text, fields, used: 0, room: room.min(MOST_BYTES) };
        while let [first, rest @ ..] = splitter.text {
            if is_space(*first) {
                splitter.text = rest;
            } else if splitter.fields.count >= MOST_FIELDS {
                return Err(Fault::Syntax);
            } else if first.is_ascii_alphanumeric() || matches!(first, b'.' | b'+' | b'-') {
                splitter.field(*first)?;
            } else if first.is_ascii_punctuation() {
                splitter.text = rest;
            } else {
                return Err(Fault::Syntax);
            }
        }
        Ok(splitter.fields)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The kind of one of them.
    pub(super) fn kind(&self, number: usize) -> Option<FieldKind> {
        self.get(number).map(|(kind, _)| kind)
    }

    /// One of them.
    pub(super) fn get(&self, number: usize) -> Option<(FieldKind, &[u8])> {
        let (kind, start, end) = *self.fields.get(..self.count)?.get(number)?;
        Some((kind, self.buffer.get(usize::from(start)..usize::from(end))?))
    }
}

/// What C's `isspace` says.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

struct Splitter<'a> {
    text: &'a [u8],
    fields: Fields,
    used: usize,
    room: usize,
}

impl Splitter<'_> {
    fn field(&mut self, first: u8) -> Result<()> {
        let start = self.used;
        let kind = match first {
            b'0'..=b'9' => self.number_field()?,
            b'.' => {
                self.take()?;
                self.take_while(|byte| byte.is_ascii_digit())?;
                FieldKind::Number
            }
            b'+' | b'-' => self.signed_field()?,
            _ => self.word_field(start)?,
        };
        if let Some(field) = self.fields.fields.get_mut(self.fields.count) {
            // The buffer has 256 bytes.
            *field = (kind, start as u16, self.used as u16);
        }
        self.fields.count += 1;
        // The server ends each field with a NUL.
        self.used += 1;
        Ok(())
    }

    fn peek(&self) -> u8 {
        self.text.first().copied().unwrap_or(0)
    }

    /// Moves one byte to the buffer, as a small letter.
    fn take(&mut self) -> Result<()> {
        if self.used + 1 >= self.room {
            return Err(Fault::Syntax);
        }
        if let (Some(place), [byte, rest @ ..]) = (self.fields.buffer.get_mut(self.used), self.text)
        {
            *place = byte.to_ascii_lowercase();
            self.text = rest;
            self.used += 1;
        }
        Ok(())
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> Result<()> {
        while !self.text.is_empty() && wanted(self.peek()) {
            self.take()?;
        }
        Ok(())
    }

    fn take_digits(&mut self) -> Result<()> {
        self.take_while(|byte| byte.is_ascii_digit())
    }

    fn number_field(&mut self) -> Result<FieldKind> {
        self.take_digits()?;
        match self.peek() {
            b':' => {
                self.take()?;
                self.take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'))?;
                Ok(FieldKind::Time)
            }
            delimiter @ (b'-' | b'/' | b'.') => self.date_field(delimiter),
            _ => Ok(FieldKind::Number),
        }
    }

    /// What follows the first number of a date.
    fn date_field(&mut self, delimiter: u8) -> Result<FieldKind> {
        self.take()?;
        if !self.peek().is_ascii_digit() {
            self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == delimiter)?;
            return Ok(FieldKind::Date);
        }
        self.take_digits()?;
        if self.peek() == delimiter {
            self.take_while(|byte| byte.is_ascii_digit() || byte == delimiter)?;
            return Ok(FieldKind::Date);
        }
        Ok(if delimiter == b'.' { FieldKind::Number } else { FieldKind::Date })
    }

    fn signed_field(&mut self) -> Result<FieldKind> {
        self.take()?;
        while is_space(self.peek()) {
            self.text = self.text.get(1..).unwrap_or_default();
        }
        let first = self.peek();
        if first.is_ascii_digit() {
            self.take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'-'))?;
            Ok(FieldKind::Zone)
        } else if first.is_ascii_alphabetic() {
            self.take_while(|byte| byte.is_ascii_alphabetic())?;
            Ok(FieldKind::SignedWord)
        } else {
            Err(Fault::Syntax)
        }
    }

    /// A word, or a date or zone that begins with one. Digits and `+` go on only after what is no
    /// word of dates, because then it must be the name of a zone.
    fn word_field(&mut self, start: usize) -> Result<FieldKind> {
        self.take_while(|byte| byte.is_ascii_alphabetic())?;
        let goes_on = match self.peek() {
            b'-' | b'/' | b'.' => true,
            b'+' | b'0'..=b'9' => {
                let word = self.fields.buffer.get(start..self.used).unwrap_or_default();
                words::date_word(word, PgVersion::V14).is_none()
            }
            _ => false,
        };
        if !goes_on {
            return Ok(FieldKind::Word);
        }
        self.take_while(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'/' | b'_' | b'.' | b':')
        })?;
        Ok(FieldKind::Date)
    }
}

#[cfg(test)]
mod tests {
    use super::FieldKind::*;
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Vec<(FieldKind, String)> {
        let fields = Fields::split(text.as_bytes(), 153).unwrap();
        let field = |number| {
            let (kind, text) = fields.get(number)?;
            Some((kind, String::from_utf8(text.to_vec()).unwrap()))
        };
        (0..).map_while(field).collect()
    }

    #[test]
    fn fields_are_what_they_begin_like() {
        let expected = [
            (Word, "fri"),
            (Date, "feb-7-1997"),
            (Time, "15:23:27.5"),
            (Zone, "-05:30"),
            (Date, "america/new_york"),
            (SignedWord, "-infinity"),
            (Number, "2001.360"),
            (Word, "j"),
            (Number, "2451187"),
        ];
        let text =
            "FRI, Feb-7-1997 15:23:27.5 - 05:30 America/New_York -Infinity 2001.360 J2451187";
        let expected = expected.map(|(kind, text)| (kind, text.to_owned()));
        assert_eq!(split(text), expected);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(Fields::split(&b"1 ".repeat(25), 153).is_ok());
        assert!(Fields::split(&b"1 ".repeat(26), 153).is_err());
        assert!(Fields::split(&[b'1'; 127], 129).is_ok());
        assert!(Fields::split(&[b'1'; 129], 129).is_err());
        assert!(Fields::split("1 ü".as_bytes(), 153).is_err());
        assert!(Fields::split(b"+ ,", 153).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_split_or_are_refused(text: Vec<u8>, room in 0usize..400) {
            if let Ok(fields) = Fields::split(&text, room) {
                prop_assert!((0..fields.len()).all(|number| fields.get(number).is_some()));
            }
        }
    }
}
