//! `to_number`: a text read by the picture of a number.
//!
//! Digits are taken wherever the picture has a digit or a point, whatever else stands there is passed; what was read is
//! then the text of a numeric with as many digits as the picture allows.
//!
//! Source: `numeric_to_number`, `NUM_processor`, `NUM_numpart_from_char`, `NUM_eat_non_data_chars`, `roman_to_int` in
//! `src/backend/utils/adt/formatting.c`, PostgreSQL 14 to 18.

use super::picture::{Element, Item, Layout, Picture, SignPlace};
use crate::error::{SqlState, StatementError};

/// The longest Roman number.
const MOST_NUMERALS: usize = 15;

/// What was read.
#[derive(Debug)]
pub(super) struct Read {
    /// A sign or a space, digits, perhaps a point and digits.
    pub(super) text: Vec<u8>,
    /// How many digits it may have, and how many are behind the point.
    pub(super) precision: usize,
    pub(super) scale: usize,
    /// By how many places it is to be moved behind the point, where the picture says so.
    pub(super) shift: Option<usize>,
}

/// Reads a text by a picture of a server of this version.
pub(super) fn read(picture: &Picture, text: &str, major: u32) -> Result<Read, StatementError> {
    if picture.layout.is_scientific {
        return Err(no_input("EEEE"));
    }
    if picture.layout.is_roman && major < 18 {
        return Err(no_input("RN"));
    }
    let mut reader = Reader {
        layout: picture.layout,
        text: text.as_bytes(),
        at: 0,
        sign: b' ',
        digits: Vec::new(),
        before: 0,
        behind: 0,
        has_point: false,
    };
    for element in &picture.elements {
        if reader.next().is_none() {
            break;
        }
        match element {
            Element::Text(_) => reader.skip_character(),
            Element::Item(item) => reader.item(*item)?,
        }
    }
    Ok(reader.done())
}

#[cold]
fn no_input(item: &str) -> StatementError {
    let message = format!("\"{item}\" not supported for input");
    StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

struct Reader<'t> {
    layout: Layout,
    text: &'t [u8],
    at: usize,
    /// A space as long as there is none.
    sign: u8,
    digits: Vec<u8>,
    /// Digits that were read.
    before: usize,
    behind: usize,
    has_point: bool,
}

impl Reader<'_> {
    fn done(self) -> Read {
        let mut text = vec![self.sign];
        text.extend_from_slice(self.digits.strip_suffix(b".").unwrap_or(&self.digits));
        let Layout { before, shift, is_shifted, .. } = self.layout;
        let precision = before + shift + self.behind;
        Read { text, precision, scale: self.behind, shift: is_shifted.then_some(shift) }
    }

    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_character(&mut self) {
        self.at += 1;
        while self.next().is_some_and(|byte| byte & 0xC0 == 0x80) {
            self.at += 1;
        }
    }

    /// Passes so many characters of which no number is made.
    fn skip_others(&mut self, count: usize) {
        for _ in 0..count {
            match self.next() {
                None | Some(b'0'..=b'9' | b'.' | b',' | b'+' | b'-') => return,
                Some(_) => self.skip_character(),
            }
        }
    }

    fn item(&mut self, item: Item) -> Result<(), StatementError> {
        match item {
            Item::Nine | Item::Zero | Item::Point | Item::LocalePoint => {
                self.part(item);
                self.at += 1;
            }
            Item::Comma | Item::Group => {
                let is_it = !self.layout.fills && self.next() == Some(b',');
                self.at += usize::from(is_it);
            }
            Item::Currency => self.skip_others(1),
            Item::RomanCapitals | Item::RomanSmall => self.roman()?,
            Item::OrdinalCapitals | Item::OrdinalSmall => {
                if !self.layout.is_roman && !self.layout.has_point {
                    self.skip_others(2);
                }
            }
            Item::Minus => self.sign_of(b"-"),
            Item::Plus => self.sign_of(b"+"),
            Item::PlusOrMinus => self.sign_of(b"-+"),
            Item::Blank
            | Item::Brackets
            | Item::FillMode
            | Item::Nothing
            | Item::Scientific
            | Item::Shift
            | Item::Sign => {}
        }
        Ok(())
    }

    fn sign_of(&mut self, signs: &[u8]) {
        match self.next().filter(|next| signs.contains(next)) {
            Some(sign) => {
                self.sign = sign;
                self.at += 1;
            }
            None => self.skip_others(1),
        }
    }

    /// A digit or the point, with a sign before the first one or behind it.
    fn part(&mut self, item: Item) {
        self.at += usize::from(self.next() == Some(b' '));
        if self.sign == b' '
            && matches!(item, Item::Nine | Item::Zero)
            && self.before + self.behind == 0
        {
            self.sign_before();
        }
        let Some(next) = self.next() else { return };
        let mut is_read = false;
        if next.is_ascii_digit() {
            if self.has_point && self.behind == self.layout.behind {
                return;
            }
            self.digits.push(next);
            *(if self.has_point { &mut self.behind } else { &mut self.before }) += 1;
            is_read = true;
        } else if self.layout.has_point && !self.has_point && next == b'.' {
            self.digits.push(next);
            self.has_point = true;
            is_read = true;
        }
        if self.sign == b' ' && self.before + self.behind > 0 {
            self.sign_behind(is_read);
        }
    }

    fn sign_before(&mut self) {
        let Some(next) = self.next() else { return };
        let is_of_locale = self.layout.has_sign && self.layout.sign == Some(SignPlace::Before);
        self.sign = match next {
            b'-' | b'+' => next,
            b'<' if self.layout.has_brackets && !is_of_locale => b'-',
            _ => return,
        };
        self.at += 1;
    }

    /// Next to the last digit where the picture has `S`, else wherever no digit was found.
    fn sign_behind(&mut self, is_read: bool) {
        let is_sign = |byte: &u8| matches!(byte, b'-' | b'+');
        if self.layout.has_sign {
            if is_read && let Some(sign) = self.text.get(self.at + 1).copied().filter(is_sign) {
                self.sign = sign;
                self.at += 1;
            }
        } else if !is_read
            && (self.layout.has_plus || self.layout.has_minus)
            && let Some(sign) = self.next().filter(is_sign)
        {
            self.sign = sign;
        }
    }

    fn roman(&mut self) -> Result<(), StatementError> {
        while self.next().is_some_and(|byte| byte.is_ascii_whitespace() || byte == 0x0B) {
            self.at += 1;
        }
        let mut values = Vec::new();
        while values.len() < MOST_NUMERALS
            && let Some(value) = self.next().and_then(numeral)
        {
            values.push(value);
            self.at += 1;
        }
        let wrong = || StatementError::new(SqlState::INVALID_TEXT, "invalid Roman numeral");
        let digits = roman_number(&values).ok_or_else(wrong)?.to_string();
        self.layout.before = digits.len();
        self.digits.extend_from_slice(digits.as_bytes());
        Ok(())
    }
}

fn numeral(byte: u8) -> Option<i32> {
    Some(match byte.to_ascii_uppercase() {
        b'I' => 1,
        b'V' => 5,
        b'X' => 10,
        b'L' => 50,
        b'C' => 100,
        b'D' => 500,
        b'M' => 1000,
        _ => return None,
    })
}

fn is_five(value: i32) -> bool {
    matches!(value, 5 | 50 | 500)
}

/// What numerals say together; nothing where they do not go together.
fn roman_number(values: &[i32]) -> Option<i32> {
    let (mut total, mut repeats) = (0, 1);
    let (mut least_five, mut below) = (i32::MAX, i32::MAX);
    let mut rest = values;
    // A five stands once, and before smaller ones alone.
    let mut fits = |value: i32| {
        let fits = value < least_five;
        if is_five(value) {
            least_five = value;
        }
        fits
    };
    while let [value, behind @ ..] = rest {
        if *value >= below || !fits(*value) {
            return None;
        }
        rest = behind;
        match behind {
            [next, behind @ ..] if value < next => {
                let is_pair = !is_five(*value) && matches!(next / value, 5 | 10);
                if !is_pair || repeats > 1 || !fits(*next) {
                    return None;
                }
                (repeats, below, rest) = (1, *value, behind);
                total += next - value;
            }
            [next, ..] => {
                repeats = if value == next { repeats + 1 } else { 1 };
                if repeats > 3 {
                    return None;
                }
                total += value;
            }
            [] => total += value,
        }
    }
    (!values.is_empty()).then_some(total)
}
