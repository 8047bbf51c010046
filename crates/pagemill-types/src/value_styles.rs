//! What a session's settings say of how values are printed: `DateStyle`, `IntervalStyle`, `bytea_output` and
//! `extra_float_digits`.
//!
//! Invariant: the default is what a new server has, and what every other module of this crate prints.
//!
//! Source: `check_datestyle` in `src/backend/commands/variable.c`, `bytea_output_options` and
//! `extra_float_digits` in `src/backend/utils/misc/guc.c` (`guc_tables.c` from 16), PostgreSQL 14 to 18.

use std::fmt;

use super::input::datetime::{DateOrder, IntervalStyle};

/// How dates and timestamps are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DateStyle {
    /// `2001-02-03 04:05:06+00`
    #[default]
    Iso,
    /// `02/03/2001 04:05:06 UTC`
    Sql,
    /// `03.02.2001 04:05:06 UTC`
    German,
    /// `Sat Feb 03 04:05:06 2001 UTC`
    Postgres,
}

/// The setting `DateStyle`. It is shown as `ISO, MDY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DateSetting {
    /// How dates are printed.
    pub style: DateStyle,
    /// In which order short numbers are read, and a day and its month are printed.
    pub order: DateOrder,
}

/// What is to be set, and what was said so far.
struct Wanted {
    setting: DateSetting,
    style: Option<DateStyle>,
    order: Option<DateOrder>,
}

impl DateSetting {
    /// What these words of a value make of it, which says what they leave open. `DEFAULT` stands for `default`.
    /// `None` where they are none of such a value, or contradict each other.
    #[must_use]
    pub fn changed<'w>(
        self,
        mut words: impl Iterator<Item = &'w str>,
        default: Self,
    ) -> Option<Self> {
        let mut wanted = Wanted { setting: self, style: None, order: None };
        words.all(|word| wanted.take(word, default)).then_some(wanted.setting)
    }
}

impl Wanted {
    fn take(&mut self, word: &str, default: DateSetting) -> bool {
        let word = word.to_ascii_lowercase();
        match word.as_str() {
            "iso" => self.style(DateStyle::Iso),
            "sql" => self.style(DateStyle::Sql),
            "german" => {
                if self.order.is_none() {
                    self.setting.order = DateOrder::Dmy;
                }
                self.style(DateStyle::German)
            }
            "ymd" => self.order(DateOrder::Ymd),
            "dmy" => self.order(DateOrder::Dmy),
            "mdy" | "us" => self.order(DateOrder::Mdy),
            "default" => {
                self.setting.style = self.style.unwrap_or(default.style);
                self.setting.order = self.order.unwrap_or(default.order);
                true
            }
            word if word.starts_with("postgres") => self.style(DateStyle::Postgres),
            word if word.starts_with("euro") => self.order(DateOrder::Dmy),
            word if word.starts_with("noneuro") => self.order(DateOrder::Mdy),
            _ => false,
        }
    }

    fn style(&mut self, style: DateStyle) -> bool {
        self.setting.style = style;
        self.style.replace(style).is_none_or(|before| before == style)
    }

    fn order(&mut self, order: DateOrder) -> bool {
        self.setting.order = order;
        self.order.replace(order).is_none_or(|before| before == order)
    }
}

impl fmt::Display for DateSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = match self.style {
            DateStyle::Iso => "ISO",
            DateStyle::Sql => "SQL",
            DateStyle::German => "German",
            DateStyle::Postgres => "Postgres",
        };
        let order = match self.order {
            DateOrder::Mdy => "MDY",
            DateOrder::Dmy => "DMY",
            DateOrder::Ymd => "YMD",
        };
        write!(f, "{style}, {order}")
    }
}

/// How `bytea` is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ByteaOutput {
    /// `\x00ff`
    #[default]
    Hex,
    /// `\000\377`
    Escape,
}

impl ByteaOutput {
    /// What a value of the setting means; `None` for none of its values.
    pub fn of_setting(value: &str) -> Option<Self> {
        match value.to_ascii_lowercase().as_str() {
            "hex" => Some(Self::Hex),
            "escape" => Some(Self::Escape),
            _ => None,
        }
    }

    /// The value of the setting, as it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hex => "hex",
            Self::Escape => "escape",
        }
    }
}

/// How values are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ValueStyles {
    /// Dates and timestamps.
    pub dates: DateSetting,
    /// Intervals.
    pub intervals: IntervalStyle,
    /// Strings of bytes.
    pub bytea: ByteaOutput,
    /// How many digits fewer than a number surely keeps are printed of it, as `extra_float_digits` says by 0 and less;
    /// `None` for the fewest that give it back.
    pub fewer_digits: Option<u8>,
}

impl ValueStyles {
    /// What a value of `extra_float_digits` means, which is -15 to 3.
    pub fn fewer_digits_of(extra_float_digits: i32) -> Option<u8> {
        u8::try_from(extra_float_digits.checked_neg()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(from: &str, words: &str) -> Option<String> {
        let default = DateSetting::default();
        let from = default.changed(from.split(", "), default)?;
        let words = words.split(',').filter(|word| !word.is_empty());
        from.changed(words, default).map(|set| set.to_string())
    }

    #[test]
    fn words_change_what_they_name() {
        for (from, words, wanted) in [
            ("ISO, MDY", "DMY", Some("ISO, DMY")),
            ("ISO, DMY", "sql", Some("SQL, DMY")),
            ("ISO, MDY", "German", Some("German, DMY")),
            ("ISO, YMD", "GERMAN,us", Some("German, MDY")),
            ("ISO, YMD", "Euro,German,Dmy", Some("German, DMY")),
            ("ISO, MDY", "postgresql,european", Some("Postgres, DMY")),
            ("SQL, DMY", "noneuropean", Some("SQL, MDY")),
            ("SQL, DMY", "default", Some("ISO, MDY")),
            ("SQL, DMY", "default,german", Some("German, DMY")),
            ("SQL, DMY", "german,default", Some("German, MDY")),
            ("SQL, DMY", "", Some("SQL, DMY")),
            ("ISO, MDY", "iso,sql", None),
            ("ISO, MDY", "dmy,ymd", None),
            ("ISO, MDY", "isox", None),
            ("ISO, MDY", "xsd", None),
        ] {
            assert_eq!(set(from, words).as_deref(), wanted, "{from}: {words}");
        }
    }

    #[test]
    fn no_digit_is_left_out_where_more_are_wanted() {
        assert_eq!(ValueStyles::fewer_digits_of(1), None);
        assert_eq!(ValueStyles::fewer_digits_of(0), Some(0));
        assert_eq!(ValueStyles::fewer_digits_of(-15), Some(15));
    }
}
