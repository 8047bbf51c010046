//! What the settings `DateStyle` and `IntervalStyle` say of texts that are read: the order of short
//! numbers, and what a sign belongs to.
//!
//! Source: `check_datestyle` in `src/backend/commands/variable.c`, `intervalstyle_options` in
//! `src/backend/utils/misc/guc.c` (`guc_tables.c` from 16), PostgreSQL 14 to 18.

/// The order in which a date of three short numbers is read: the second part of `DateStyle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DateOrder {
    /// Month, day, year: the server's default.
    #[default]
    Mdy,
    /// Day, month, year.
    Dmy,
    /// Year, month, day.
    Ymd,
}

/// How intervals are printed, and how a leading minus sign of one is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IntervalStyle {
    /// `1 day 02:03:04`. A sign belongs to the field behind it, as in all styles but the next.
    #[default]
    Postgres,
    /// `1 2:03:04`. A sign belongs to all fields, when no other one has a sign.
    SqlStandard,
    /// `@ 1 day 2 hours 3 mins 4 secs`.
    PostgresVerbose,
    /// `P1DT2H3M4S`.
    Iso8601,
}

impl IntervalStyle {
    const NAMES: [(Self, &'static str); 4] = [
        (Self::Postgres, "postgres"),
        (Self::PostgresVerbose, "postgres_verbose"),
        (Self::SqlStandard, "sql_standard"),
        (Self::Iso8601, "iso_8601"),
    ];

    /// What a value of the setting `IntervalStyle` means; `None` for none of its values.
    pub fn of_setting(value: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(_, name)| name.eq_ignore_ascii_case(value));
        found.map(|(style, _)| *style)
    }

    /// The value of the setting, as it is shown.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(style, _)| *style == self);
        // default: all are among the names
        found.map_or("postgres", |(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_a_style() {
        assert_eq!(IntervalStyle::of_setting("SQL_STANDARD"), Some(IntervalStyle::SqlStandard));
        assert_eq!(IntervalStyle::of_setting("iso_8601"), Some(IntervalStyle::Iso8601));
        assert_eq!(IntervalStyle::of_setting(" postgres"), None);
        for (style, name) in IntervalStyle::NAMES {
            assert_eq!(style.name(), name);
        }
    }
}
