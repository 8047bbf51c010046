//! Digits written into a picture.
//!
//! Source: `NUM_processor`, `NUM_numpart_to_char`, `get_last_relevant_decnum` in `src/backend/utils/adt/formatting.c`, PostgreSQL 14 to 18.

use super::picture::{Element, Item, Layout, Picture, SignPlace};

/// A number as digits.
#[derive(Debug, Clone)]
pub(super) struct Digits {
    pub(super) is_negative: bool,
    /// Digits, with a point where some are behind it; `#` where it does not fit; a Roman number.
    pub(super) text: Vec<u8>,
    /// Places of the picture before the first digit.
    pub(super) spaces: usize,
}

/// What is written, and how far it is.
struct Writing<'d> {
    layout: Layout,
    number: &'d Digits,
    /// The next digit.
    at: usize,
    /// The last digit that is written where trailing zeros are not.
    last: Option<usize>,
    sign_is_written: bool,
    /// Digits have begun.
    is_in_number: bool,
    count: isize,
    current: usize,
    out: String,
    /// Where digits were wanted that the number has not: nothing behind that comes out.
    end: Option<usize>,
}

/// The number in its picture. With [`Layout::needs_locale`], point and groups are those of the locale C.
pub(super) fn written(picture: &Picture, layout: Layout, number: &Digits) -> String {
    let mut writing = Writing::new(layout, number);
    for element in &picture.elements {
        match element {
            Element::Text(character) => writing.out.push(*character),
            Element::Item(item) => writing.item(*item),
        }
    }
    if let Some(end) = writing.end {
        writing.out.truncate(end);
    }
    writing.out
}

impl<'d> Writing<'d> {
    fn new(mut layout: Layout, number: &'d Digits) -> Self {
        layout.zero_start = layout.zero_start.saturating_sub(1);
        if layout.is_roman {
            layout = Layout { is_roman: true, fills: layout.fills, ..Layout::default() };
        }
        let sign_is_written = match layout.has_plus || layout.has_minus {
            true => !layout.has_plus || layout.has_minus,
            false => {
                if !number.is_negative && layout.has_brackets && layout.fills {
                    layout.has_brackets = false;
                }
                if layout.sign == Some(SignPlace::Before) && layout.before == layout.before_sign {
                    layout.sign = Some(SignPlace::Behind);
                }
                // A Roman number has no sign to write.
                !layout.is_roman && !number.is_negative && layout.fills && !layout.has_sign
            }
        };
        let digits = (layout.behind + layout.before) as isize;
        let has_room = !sign_is_written && number.spaces == 0;
        let count = if has_room { digits } else { digits - 1 };
        let last =
            (layout.fills && layout.has_point).then(|| last_digit(&layout, number)).flatten();
        Self {
            layout,
            number,
            at: 0,
            last,
            sign_is_written,
            is_in_number: false,
            count,
            current: 0,
            out: String::new(),
            end: None,
        }
    }

    fn item(&mut self, item: Item) {
        let Layout { fills, is_roman, has_point, .. } = self.layout;
        let is_negative = self.number.is_negative;
        match item {
            Item::Nine | Item::Zero | Item::Point | Item::LocalePoint => self.digit(item),
            Item::Comma | Item::Group => match self.is_in_number {
                true => self.out.push(','),
                false => self.space(),
            },
            Item::Currency => self.out.push(self.layout.currency.unwrap_or(' ')), // default: that of the locale C
            Item::RomanCapitals | Item::RomanSmall => {
                let text = String::from_utf8_lossy(&self.number.text[self.at..]).into_owned();
                let text = if item == Item::RomanSmall { text.to_ascii_lowercase() } else { text };
                self.out.push_str(&if fills { text } else { format!("{text:>15}") });
            }
            Item::OrdinalCapitals | Item::OrdinalSmall => {
                let is_number = self.number.text.first() != Some(&b'#');
                if !is_roman && is_number && !is_negative && !has_point {
                    let ending = ordinal(&self.number.text);
                    self.out.push_str(&match item {
                        Item::OrdinalCapitals => ending.to_ascii_uppercase(),
                        _ => ending.to_owned(),
                    });
                }
            }
            Item::Minus if is_negative => self.out.push('-'),
            Item::Plus if !is_negative && !is_roman => self.out.push('+'),
            Item::Minus | Item::Plus => self.space(),
            Item::PlusOrMinus if is_roman => {
                self.end.get_or_insert(self.out.len());
            }
            Item::PlusOrMinus => self.out.push(if is_negative { '-' } else { '+' }),
            Item::Blank
            | Item::FillMode
            | Item::Brackets
            | Item::Scientific
            | Item::Sign
            | Item::Shift
            | Item::Nothing => {}
        }
    }

    fn space(&mut self) {
        if !self.layout.fills {
            self.out.push(' ');
        }
    }

    fn next(&self) -> Option<u8> {
        self.number.text.get(self.at).copied()
    }

    /// The last digit that counts is the point.
    fn ends_with_point(&self) -> bool {
        self.last.is_some_and(|last| self.number.text.get(last) == Some(&b'.'))
    }

    /// `0.1` in `9.9`: its zero is none.
    fn is_zero_before_point(&self) -> bool {
        !self.layout.has_zero
            && self.at == 0
            && self.next() == Some(b'0')
            && self.layout.behind != 0
    }

    fn digit(&mut self, item: Item) {
        if self.layout.is_roman {
            return;
        }
        self.is_in_number = false;
        let Layout { has_zero, zero_start, .. } = self.layout;
        let is_due = self.current >= self.number.spaces || has_zero && zero_start == self.current;
        if !self.sign_is_written
            && is_due
            && (!self.is_zero_before_point() || self.ends_with_point())
        {
            self.sign_before();
        }
        if self.current < self.number.spaces && (zero_start > self.current || !has_zero) {
            self.space();
        } else if self.current < self.number.spaces {
            self.out.push('0');
            self.is_in_number = true;
        } else {
            self.own_digit(item);
        }
        self.sign_behind();
        self.current += 1;
    }

    fn sign_before(&mut self) {
        let is_negative = self.number.is_negative;
        if self.layout.has_sign {
            if self.layout.sign == Some(SignPlace::Before) {
                self.out.push(if is_negative { '-' } else { '+' });
                self.sign_is_written = true;
            }
            return;
        }
        match (self.layout.has_brackets, is_negative) {
            (true, true) => self.out.push('<'),
            (true, false) => self.out.push(' '),
            (false, true) => self.out.push('-'),
            (false, false) => self.space(),
        }
        self.sign_is_written = true;
    }

    fn own_digit(&mut self, item: Item) {
        match self.next() {
            Some(b'.') => {
                if !self.ends_with_point() || self.layout.fills {
                    self.out.push('.');
                }
            }
            _ if self.last.is_some_and(|last| self.at > last) && item != Item::Zero => {}
            _ if self.is_zero_before_point() => match self.layout.fills {
                false => self.out.push(' '),
                true if self.ends_with_point() => self.out.push('0'),
                true => {}
            },
            Some(digit) => {
                self.out.push(char::from(digit));
                self.is_in_number = true;
            }
            None => {
                self.end.get_or_insert(self.out.len());
                self.is_in_number = true;
            }
        }
        self.at += usize::from(self.next().is_some());
    }

    fn sign_behind(&mut self) {
        let Layout { has_point, has_brackets, has_sign, sign, .. } = self.layout;
        let current = self.current as isize;
        let mut end = self.count + isize::from(self.number.spaces > 0) + isize::from(has_point);
        if self.last == Some(self.at) {
            end = current;
        }
        if current + 1 != end {
            return;
        }
        if self.sign_is_written && has_brackets {
            self.out.push(if self.number.is_negative { '>' } else { ' ' });
        } else if has_sign && sign == Some(SignPlace::Behind) {
            self.out.push(if self.number.is_negative { '-' } else { '+' });
        }
    }
}

/// Behind which digit nothing but zeros stands that the picture does not ask for.
fn last_digit(layout: &Layout, number: &Digits) -> Option<usize> {
    let text = &number.text;
    let point = text.iter().position(|byte| *byte == b'.')?;
    let significant = (point + 1..text.len()).rfind(|at| text[*at] != b'0').unwrap_or(point);
    match layout.zero_end.checked_sub(number.spaces) {
        Some(zeros) if zeros > 0 => Some(significant.max(zeros.min(text.len() - 1))),
        _ => Some(significant),
    }
}

/// What follows an ordinal number.
fn ordinal(digits: &[u8]) -> &'static str {
    match digits {
        [.., b'1', _] => "th",
        [.., b'1'] => "st",
        [.., b'2'] => "nd",
        [.., b'3'] => "rd",
        _ => "th",
    }
}
