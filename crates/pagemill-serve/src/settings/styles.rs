//! The settings that say how values are printed: `DateStyle`, `IntervalStyle`, `bytea_output`, `extra_float_digits`.
//!
//! Invariant: what is kept of one is what the server would show, whatever words it was set by. Messages have the setting's name as
//! it is written, from 18 on as it is spelled, and that of `DateStyle` always so.
//!
//! Source: `check_datestyle` in `src/backend/commands/variable.c`, `parse_int` and `parse_and_validate_value` in
//! `src/backend/utils/misc/guc.c`, PostgreSQL 14 to 18.

use pagemill_cluster::changed_date_setting;
use pagemill_sql::session::StyleSettings;
use pagemill_sql::{SqlState, StatementError};
use pagemill_types::input::datetime::IntervalStyle;
use pagemill_types::value_styles::{ByteaOutput, DateSetting};

use super::{Result, Settings, Values, invalid};

/// Names as they are spelled, and the values of a new server.
pub(super) const STYLES: [(&str, &str); 2] = [("bytea_output", "hex"), (DIGITS, "1")];
const DIGITS: &str = "extra_float_digits";
/// What `extra_float_digits` may be.
const LEAST_DIGITS: i32 = -15;
const MOST_DIGITS: i32 = 3;

/// What a setting of this name, as it is written, is to be by this value, as it is shown; `None` for other settings.
pub(super) fn changed(settings: &Settings, written: &str, value: &str) -> Option<Result<String>> {
    let named = |spelled| if settings.is_of_18 { spelled } else { written };
    Some(match written.to_lowercase().as_str() {
        "datestyle" => date_style(settings, value),
        "intervalstyle" => {
            let found = IntervalStyle::of_setting(value).map(|style| style.name().to_owned());
            let known = "postgres, postgres_verbose, sql_standard, iso_8601";
            found.ok_or_else(|| none_of(named("IntervalStyle"), value, known))
        }
        "bytea_output" => {
            let found = ByteaOutput::of_setting(value).map(|output| output.name().to_owned());
            found.ok_or_else(|| none_of(named("bytea_output"), value, "escape, hex"))
        }
        DIGITS => digits(named(DIGITS), value),
        _ => return None,
    })
}

/// What stands there of a style, and what stands there by default.
fn date_style(settings: &Settings, value: &str) -> Result<String> {
    let plain = DateSetting::default();
    let of = |values: &Values| {
        let shown = values.get("datestyle").map(|(_, shown)| shown.as_str());
        // default: only what can be read is set
        shown.and_then(|shown| changed_date_setting(plain, shown, plain)).unwrap_or(plain)
    };
    let changed = changed_date_setting(of(&settings.values), value, of(&settings.defaults));
    changed.map(|set| set.to_string()).ok_or_else(|| invalid("DateStyle", value))
}

fn none_of(name: &str, value: &str, known: &str) -> StatementError {
    invalid(name, value).with_hint(format!("Available values: {known}."))
}

fn digits(name: &str, value: &str) -> Result<String> {
    let number = integer(value).ok_or_else(|| invalid(name, value))?;
    if !(LEAST_DIGITS..=MOST_DIGITS).contains(&number) {
        let message = format!(
            "{number} is outside the valid range for parameter \"{name}\" \
             ({LEAST_DIGITS} .. {MOST_DIGITS})"
        );
        return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
    }
    Ok(number.to_string())
}

/// A whole number in any notation of C, or a fraction that is rounded to one.
fn integer(text: &str) -> Option<i32> {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let is_negative = text.starts_with('-');
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let is_of = |digits: &str, radix: u32| {
        !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix))
    };
    let size = match hexadecimal {
        Some(digits) if is_of(digits, 16) => i64::from_str_radix(digits, 16).ok()? as f64,
        Some(_) => return None,
        None if digits.starts_with('0') && is_of(digits, 10) => {
            i64::from_str_radix(digits, 8).ok()? as f64
        }
        None if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
            digits.parse::<f64>().ok()?
        }
        None => return None,
    };
    let number = if is_negative { -size } else { size }.round_ties_even();
    let is_one = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number);
    is_one.then_some(number as i32)
}

impl Settings {
    /// How values are printed.
    pub fn styles(&self) -> StyleSettings {
        let shown = |key: &str| self.values[key].1.clone();
        StyleSettings {
            date_style: shown("datestyle"),
            interval_style: shown("intervalstyle"),
            bytea_output: shown("bytea_output"),
            // default: only numbers are kept; from 1 on, all print the same
            extra_float_digits: shown(DIGITS).parse().map_or(1, |digits: i32| digits.min(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_those_of_the_server() {
        for (text, number) in [
            ("3", Some(3)),
            (" -0x0A ", Some(-10)),
            ("010", Some(8)),
            ("+0", Some(0)),
            ("0.5", Some(0)),
            ("1.5", Some(2)),
            (".6", Some(1)),
            ("-1e1", Some(-10)),
            ("09", None),
            ("0x", None),
            ("", None),
            ("- 1", None),
            ("1kB", None),
            ("inf", None),
            ("3000000000", None),
        ] {
            assert_eq!(integer(text), number, "{text}");
        }
    }
}
