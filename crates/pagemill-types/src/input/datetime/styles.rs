//! The settings that say how dates and intervals are written.
//!
//! Source: `check_datestyle` in `src/backend/commands/variable.c`, `intervalstyle_options` in
//! `src/backend/utils/misc/guc.c` (`guc_tables.c` from 16), PostgreSQL 14 to 18.

/// The order in which a date of three short numbers is read: the second part of `DateStyle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DateOrder {
    /// Month, day, year: the server's default.
    #[default]
    Mdy,
    /// Day, month, year.
    Dmy,
    /// Year, month, day.
    Ymd,
}

impl DateOrder {
    /// The order in a value of the setting `DateStyle`, such as `ISO, DMY`. Style `German` brings
    /// its own order, where none is named.
    pub fn of_date_style(value: &str) -> Self {
        let words = || value.split(',').map(|word| word.trim().to_ascii_lowercase());
        let order = |word: String| match word.as_str() {
            "ymd" => Some(Self::Ymd),
            "dmy" => Some(Self::Dmy),
            "mdy" | "us" => Some(Self::Mdy),
            other if other.starts_with("euro") => Some(Self::Dmy),
            other if other.starts_with("noneuro") => Some(Self::Mdy),
            _ => None,
        };
        let is_german = words().any(|word| word == "german");
        let unnamed = if is_german { Self::Dmy } else { Self::Mdy };
        words().find_map(order).unwrap_or(unnamed)
    }
}

/// How a leading minus sign of an interval is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IntervalStyle {
    /// It belongs to the first field: all settings of `IntervalStyle` but `sql_standard`.
    #[default]
    Postgres,
    /// It belongs to all fields, when no other one has a sign.
    SqlStandard,
}

impl IntervalStyle {
    /// What a value of the setting `IntervalStyle` means.
    pub fn of_setting(value: &str) -> Self {
        let is_standard = value.trim().eq_ignore_ascii_case("sql_standard");
        if is_standard { Self::SqlStandard } else { Self::Postgres }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_an_order() {
        assert_eq!(DateOrder::of_date_style("iso, mdy"), DateOrder::Mdy);
        assert_eq!(DateOrder::of_date_style("SQL,European"), DateOrder::Dmy);
        assert_eq!(DateOrder::of_date_style("ISO, YMD"), DateOrder::Ymd);
        assert_eq!(DateOrder::of_date_style("German"), DateOrder::Dmy);
        assert_eq!(DateOrder::of_date_style("German, US"), DateOrder::Mdy);
        assert_eq!(DateOrder::of_date_style(""), DateOrder::Mdy);
        assert_eq!(IntervalStyle::of_setting("SQL_STANDARD"), IntervalStyle::SqlStandard);
        assert_eq!(IntervalStyle::of_setting("iso_8601"), IntervalStyle::Postgres);
    }
}
