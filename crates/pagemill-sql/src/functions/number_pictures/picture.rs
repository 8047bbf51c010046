//! A picture of a number, taken apart: items and texts, and what all of them say of it together.
//!
//! Source: `NUM_keywords`, `parse_format`, `NUMDesc_prepare` in `src/backend/utils/adt/formatting.c`, PostgreSQL 14 to 18.

use crate::error::{SqlState, StatementError};

/// An item of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    Comma,
    Point,
    Zero,
    Nine,
    Blank,
    LocalePoint,
    Scientific,
    FillMode,
    Group,
    Currency,
    Minus,
    Plus,
    Brackets,
    RomanCapitals,
    RomanSmall,
    PlusOrMinus,
    Sign,
    OrdinalCapitals,
    OrdinalSmall,
    Shift,
    /// `C` and `SP`, of which nothing comes.
    Nothing,
}

/// No one before a longer one that begins with it. Each stands in capitals or in small letters, not in both.
const ITEMS: [(&str, Item); 22] = [
    (",", Item::Comma),
    (".", Item::Point),
    ("0", Item::Zero),
    ("9", Item::Nine),
    ("B", Item::Blank),
    ("C", Item::Nothing),
    ("D", Item::LocalePoint),
    ("EEEE", Item::Scientific),
    ("FM", Item::FillMode),
    ("G", Item::Group),
    ("L", Item::Currency),
    ("MI", Item::Minus),
    ("PL", Item::Plus),
    ("PR", Item::Brackets),
    ("RN", Item::RomanCapitals),
    ("SG", Item::PlusOrMinus),
    ("SP", Item::Nothing),
    ("S", Item::Sign),
    ("TH", Item::OrdinalCapitals),
    ("V", Item::Shift),
    ("rn", Item::RomanSmall),
    ("th", Item::OrdinalSmall),
];

/// What stands in a picture, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Element {
    Item(Item),
    /// A character that stands for itself.
    Text(char),
}

/// Where the sign of `S` is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignPlace {
    Before,
    Behind,
}

/// What the items say together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Layout {
    /// Digits before the point, behind it, and by how many the number is shifted.
    pub(super) before: usize,
    pub(super) behind: usize,
    pub(super) shift: usize,
    /// The first digit that is written as 0 if it is none, from 1; 0 for none.
    pub(super) zero_start: usize,
    pub(super) zero_end: usize,
    pub(super) sign: Option<SignPlace>,
    pub(super) before_sign: usize,
    pub(super) has_point: bool,
    pub(super) has_locale_point: bool,
    pub(super) fills: bool,
    pub(super) has_zero: bool,
    pub(super) is_blank: bool,
    pub(super) has_sign: bool,
    pub(super) has_brackets: bool,
    pub(super) has_minus: bool,
    pub(super) has_plus: bool,
    pub(super) is_roman: bool,
    pub(super) is_shifted: bool,
    pub(super) is_scientific: bool,
    /// Its point, groups or sign are those of a locale.
    pub(super) needs_locale: bool,
    pub(super) has_currency: bool,
    /// What stands for it, if there is a sign.
    pub(super) currency: Option<char>,
    /// Nothing but `FM` may stand beside a Roman number, as from 18 on.
    pub(super) is_roman_alone: bool,
}

/// A picture.
#[derive(Debug, Clone, Default)]
pub(super) struct Picture {
    pub(super) elements: Vec<Element>,
    pub(super) layout: Layout,
}

impl Picture {
    /// # Errors
    /// When items do not go together for a server of this version.
    pub(super) fn parse(text: &str, major: u32) -> Result<Self, StatementError> {
        let mut picture = Self::default();
        picture.layout.is_roman_alone = major >= 18;
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if let Some((name, item)) = item_at(rest) {
                picture.layout.add(item)?;
                picture.elements.push(Element::Item(item));
                rest = &rest[name.len()..];
            } else if first == '"' {
                rest = picture.quoted(&rest[1..]);
            } else {
                let text = rest.strip_prefix('\\').filter(|behind| behind.starts_with('"'));
                let text = text.unwrap_or(rest);
                rest = picture.text(text);
            }
        }
        Ok(picture)
    }

    /// A character that stands for itself; what is behind it.
    fn text<'t>(&mut self, text: &'t str) -> &'t str {
        let mut characters = text.chars();
        self.elements.extend(characters.next().map(Element::Text));
        characters.as_str()
    }

    /// Characters up to a quotation mark, before each of which may stand a backslash; what is behind it.
    fn quoted<'t>(&mut self, text: &'t str) -> &'t str {
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(behind) = rest.strip_prefix('"') {
                return behind;
            }
            let meant = rest.strip_prefix('\\').filter(|behind| !behind.is_empty());
            rest = self.text(meant.unwrap_or(rest));
        }
        rest
    }
}

fn item_at(text: &str) -> Option<(&'static str, Item)> {
    let has_small = |name: &str| !matches!(name, "RN" | "TH" | "rn" | "th");
    let is_it = |name: &str| {
        let found = text.get(..name.len());
        found.is_some_and(|found| {
            found == name || has_small(name) && found == name.to_ascii_lowercase()
        })
    };
    ITEMS.iter().copied().find(|(name, _)| is_it(name))
}

fn wrong(message: &str) -> Result<(), StatementError> {
    Err(StatementError::new(SqlState::SYNTAX_ERROR, message))
}

impl Layout {
    fn add(&mut self, item: Item) -> Result<(), StatementError> {
        if self.is_scientific && item != Item::Scientific {
            return wrong("\"EEEE\" must be the last pattern used");
        }
        match item {
            Item::Nine | Item::Zero => self.digit(item)?,
            Item::Blank => {
                self.is_blank |= self.before == 0 && self.behind == 0 && !self.has_zero;
            }
            Item::LocalePoint | Item::Point => self.point(item)?,
            Item::FillMode => self.fills = true,
            Item::Sign => self.sign_of_locale()?,
            Item::Minus | Item::Plus | Item::PlusOrMinus => self.sign_beside(item)?,
            Item::Brackets => {
                if self.has_sign || self.has_plus || self.has_minus {
                    return wrong("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together");
                }
                self.has_brackets = true;
            }
            Item::RomanCapitals | Item::RomanSmall => {
                if self.is_roman && self.is_roman_alone {
                    return wrong("cannot use \"RN\" twice");
                }
                self.is_roman = true;
            }
            Item::Group => self.needs_locale = true,
            Item::Currency => self.has_currency = true,
            Item::Shift => {
                if self.has_point {
                    return wrong("cannot use \"V\" and decimal point together");
                }
                self.is_shifted = true;
            }
            Item::Scientific => self.scientific()?,
            Item::Comma | Item::OrdinalCapitals | Item::OrdinalSmall | Item::Nothing => {}
        }
        if self.is_roman && self.is_roman_alone && self.has_other_than_roman() {
            return wrong("\"RN\" is incompatible with other formats");
        }
        Ok(())
    }

    fn has_other_than_roman(&self) -> bool {
        self.has_point
            || self.has_zero
            || self.is_blank
            || self.has_sign
            || self.has_brackets
            || self.has_minus
            || self.has_plus
            || self.is_shifted
            || self.is_scientific
    }

    fn digit(&mut self, item: Item) -> Result<(), StatementError> {
        if self.has_brackets {
            return wrong(match item {
                Item::Zero => "\"0\" must be ahead of \"PR\"",
                _ => "\"9\" must be ahead of \"PR\"",
            });
        }
        if item == Item::Nine && self.is_shifted {
            self.shift += 1;
            return Ok(());
        }
        if item == Item::Zero && !self.has_zero && !self.has_point {
            self.has_zero = true;
            self.zero_start = self.before + 1;
        }
        match self.has_point {
            true => self.behind += 1,
            false => self.before += 1,
        }
        if item == Item::Zero {
            self.zero_end = self.before + self.behind;
        }
        Ok(())
    }

    fn point(&mut self, item: Item) -> Result<(), StatementError> {
        if item == Item::LocalePoint {
            self.has_locale_point = true;
            self.needs_locale = true;
        }
        if self.has_point {
            return wrong("multiple decimal points");
        }
        if self.is_shifted {
            return wrong("cannot use \"V\" and decimal point together");
        }
        self.has_point = true;
        Ok(())
    }

    fn sign_of_locale(&mut self) -> Result<(), StatementError> {
        if self.has_sign {
            return wrong("cannot use \"S\" twice");
        }
        if self.has_plus || self.has_minus || self.has_brackets {
            return wrong("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together");
        }
        self.has_sign = true;
        if self.has_point {
            self.sign = Some(SignPlace::Behind);
        } else {
            self.sign = Some(SignPlace::Before);
            self.before_sign = self.before;
        }
        Ok(())
    }

    fn sign_beside(&mut self, item: Item) -> Result<(), StatementError> {
        if self.has_sign {
            return wrong(match item {
                Item::Minus => "cannot use \"S\" and \"MI\" together",
                Item::Plus => "cannot use \"S\" and \"PL\" together",
                _ => "cannot use \"S\" and \"SG\" together",
            });
        }
        self.has_minus |= item != Item::Plus;
        self.has_plus |= item != Item::Minus;
        Ok(())
    }

    fn scientific(&mut self) -> Result<(), StatementError> {
        if self.is_scientific {
            return wrong("cannot use \"EEEE\" twice");
        }
        let others = self.is_blank
            || self.fills
            || self.has_sign
            || self.has_brackets
            || self.has_minus
            || self.has_plus
            || self.is_roman
            || self.is_shifted;
        if others {
            return wrong("\"EEEE\" is incompatible with other formats");
        }
        self.is_scientific = true;
        Ok(())
    }
}
