//! How a session prints its values, as the settings that say it: they travel to workers, and are held against each other.
//!
//! Invariant: values that print the same are equal, so that a client that asks for what there is anyway (`extra_float_digits` 3,
//! as drivers do) costs nothing.

use pagemill_cluster::changed_date_setting;
use pagemill_types::input::datetime::IntervalStyle;
use pagemill_types::value_styles::{ByteaOutput, DateSetting, ValueStyles};

use crate::error::{Result, SqlState, StatementError};

/// The settings, as they are shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "workers", derive(serde::Serialize, serde::Deserialize))]
pub struct StyleSettings {
    /// `DateStyle`
    pub date_style: String,
    /// `IntervalStyle`
    pub interval_style: String,
    /// `bytea_output`
    pub bytea_output: String,
    /// `extra_float_digits`; 1 stands for all values above.
    pub extra_float_digits: i32,
}

impl StyleSettings {
    /// What says these styles.
    pub fn of(styles: &ValueStyles) -> Self {
        Self {
            date_style: styles.dates.to_string(),
            interval_style: styles.intervals.name().to_owned(),
            bytea_output: styles.bytea.name().to_owned(),
            extra_float_digits: styles.fewer_digits.map_or(1, |fewer| -i32::from(fewer)),
        }
    }

    /// The styles that they say.
    ///
    /// # Errors
    /// When one is none of its setting's values.
    pub fn values(&self) -> Result<ValueStyles> {
        let default = DateSetting::default();
        let invalid = |name: &str, value: &str| {
            let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
            StatementError::new(SqlState::INVALID_PARAMETER, message)
        };
        let Self { date_style, interval_style, bytea_output, extra_float_digits } = self;
        Ok(ValueStyles {
            dates: changed_date_setting(default, date_style, default)
                .ok_or_else(|| invalid("DateStyle", date_style))?,
            intervals: IntervalStyle::of_setting(interval_style)
                .ok_or_else(|| invalid("IntervalStyle", interval_style))?,
            bytea: ByteaOutput::of_setting(bytea_output)
                .ok_or_else(|| invalid("bytea_output", bytea_output))?,
            fewer_digits: ValueStyles::fewer_digits_of(*extra_float_digits),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_say_what_they_are_of() {
        let settings = StyleSettings::of(&ValueStyles::default());
        assert_eq!(settings.values().unwrap(), ValueStyles::default());
        assert_eq!((&*settings.date_style, settings.extra_float_digits), ("ISO, MDY", 1));
        let own = StyleSettings {
            date_style: "SQL, DMY".to_owned(),
            interval_style: "iso_8601".to_owned(),
            bytea_output: "escape".to_owned(),
            extra_float_digits: -2,
        };
        assert_eq!(StyleSettings::of(&own.values().unwrap()), own);
        assert!(StyleSettings { bytea_output: "base64".to_owned(), ..own }.values().is_err());
    }
}
