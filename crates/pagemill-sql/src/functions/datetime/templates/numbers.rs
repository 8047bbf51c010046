//! Numbers and words in a text that is read by a template.
//!
//! A number takes as many characters as its field has, unless something that is no digit follows in the template; then it
//! takes all digits. A field that is given twice has to say the same both times, unless it says 0.
//!
//! Source: `from_char_parse_int_len`, `from_char_set_int`, `from_char_seq_search`, `is_next_separator`,
//! `adjust_partial_year_to_2020` in `src/backend/utils/adt/formatting.c`, PostgreSQL 14 to 18.

use super::scan::{Fault, Fields, Place, Scan, Scanner, wrong};
use super::{INVALID_FORMAT, Part};
use crate::error::{SqlState, StatementError};

pub(super) fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0B
}

impl Scanner<'_> {
    /// A number into a field.
    pub(super) fn plain_number(
        &mut self,
        len: usize,
        place: Place,
        field: fn(&mut Fields) -> &mut i32,
    ) -> Scan<()> {
        self.number(len, place, field).map(|_| ())
    }

    /// A number into a field; gives how many characters it took.
    pub(super) fn number(
        &mut self,
        len: usize,
        place: Place,
        field: fn(&mut Fields) -> &mut i32,
    ) -> Scan<usize> {
        let (value, taken) = self.integer(len, place)?;
        set(field(&mut self.fields), value, place)?;
        Ok(taken)
    }

    pub(super) fn integer(&mut self, len: usize, place: Place) -> Scan<(i32, usize)> {
        let start = self.at;
        self.skip_spaces();
        let rest = self.rest();
        let room = rest.len().min(len);
        let name = place.keyword.name;
        let invalid = || {
            let shown = rest.as_bytes().get(..room).unwrap_or_default(); // default: it is within
            format!("invalid value \"{}\" for \"{name}\"", String::from_utf8_lossy(shown))
        };
        let is_free = place.is_filled || self.is_before_no_digit(place);
        if !is_free && room < len {
            let message = format!("source string too short for \"{name}\" formatting field");
            return Err(with_fill_hint(message));
        }
        let (value, used) = leading_integer(rest, if is_free { usize::MAX } else { len });
        if !is_free && used > 0 && used < len {
            return Err(with_fill_hint(invalid()));
        }
        if used == 0 && (is_free || self.at == start) {
            return Err(wrong(invalid()));
        }
        self.at += used;
        let value = i32::try_from(value).map_err(|_| {
            let message = format!("value for \"{name}\" in source string is out of range");
            Fault::Wrong(StatementError::new(SqlState::DATETIME_OVERFLOW, message))
        })?;
        Ok((value, self.at - start))
    }

    /// Whether the next part of the template takes no digits.
    fn is_before_no_digit(&self, place: Place) -> bool {
        if place.has_ending {
            return true;
        }
        match self.template.parts.get(place.number + 1) {
            None => true,
            Some(Part::Field { keyword, .. }) => !keyword.is_digits(),
            Some(Part::Character(c) | Part::Separator(c) | Part::Space(c)) => !c.is_ascii_digit(),
        }
    }

    /// Which of some words comes next, of which as many letters count.
    pub(super) fn word(&mut self, words: &[&str], letters: usize, place: Place) -> Scan<i32> {
        let rest = self.rest().as_bytes();
        for (number, word) in words.iter().enumerate() {
            let word = word.get(..letters.min(word.len())).unwrap_or_default(); // default: they are of ASCII
            if rest
                .get(..word.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
            {
                self.at += word.len();
                return Ok(number as i32);
            }
        }
        let end = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{B}' | '\u{C}');
        let shown = self.rest().split(end).next().unwrap_or_default(); // default: there is always a first
        Err(wrong(format!("invalid value \"{shown}\" for \"{}\"", place.keyword.name)))
    }
}

fn with_fill_hint(message: String) -> Fault {
    let hint = "If your source string is not fixed-width, try using the \"FM\" modifier.";
    Fault::Wrong(StatementError::new(INVALID_FORMAT, message).with_hint(hint))
}

/// A field that was set before has to say the same.
pub(super) fn set(field: &mut i32, value: i32, place: Place) -> Scan<()> {
    if *field != 0 && *field != value {
        let name = place.keyword.name;
        return Err(wrong(format!("conflicting values for \"{name}\" field in formatting string")));
    }
    *field = value;
    Ok(())
}

/// The number that a text begins with, within so many characters, and how many it takes; it stops at what no `i64` holds.
pub(super) fn leading_integer(text: &str, most: usize) -> (i64, usize) {
    let bytes = text.as_bytes();
    let bytes = bytes.get(..most.min(bytes.len())).unwrap_or_default(); // default: it is within
    let spaces = bytes.iter().take_while(|byte| is_space(**byte)).count();
    let is_signed = matches!(bytes.get(spaces), Some(b'+' | b'-'));
    let start = spaces + usize::from(is_signed);
    let digits = bytes.iter().skip(start).take_while(|byte| byte.is_ascii_digit());
    let (mut value, mut count) = (0i64, 0);
    for digit in digits {
        value = value.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
        count += 1;
    }
    if count == 0 {
        return (0, 0);
    }
    let is_negative = bytes.get(spaces) == Some(&b'-');
    (if is_negative { -value } else { value }, start + count)
}

/// A year of less than four digits is one near 2020.
pub(super) fn near_2020(year: i32) -> i32 {
    match year {
        ..70 => year.wrapping_add(2000),
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}
