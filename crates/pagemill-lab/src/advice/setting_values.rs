//! The values that a setting takes, as `pg_settings` of a server tells them.
//!
//! Invariant: what is told here is what servers of the version tell themselves; a test asks those that are installed.

use serde::Serialize;

/// The values of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingValues {
    /// `on` or `off`.
    Bool,
    /// One of these; not every server has all of them.
    Words(&'static [&'static str]),
    /// A whole number from the first to the second.
    Integer(u64, u64),
    /// A number from 0 on.
    Real,
    /// A size of so many blocks of 8 kB, from the first to the second.
    Blocks(u64, u64),
}

impl SettingValues {
    /// True for a value that such servers take.
    pub fn accepts(self, value: &str) -> bool {
        match self {
            Self::Bool => matches!(value, "on" | "off"),
            Self::Words(words) => words.contains(&value),
            Self::Integer(least, most) => {
                value.parse().is_ok_and(|value: u64| (least..=most).contains(&value))
            }
            Self::Real => value.parse().is_ok_and(|value: f64| value.is_finite() && value >= 0.0),
            Self::Blocks(least, most) => {
                blocks(value).is_some_and(|blocks| (least..=most).contains(&blocks))
            }
        }
    }
}

/// A size with its unit, as blocks.
fn blocks(size: &str) -> Option<u64> {
    let kilobytes = match (size.strip_suffix("kB"), size.strip_suffix("MB")) {
        (Some(kilobytes), _) => kilobytes.parse::<u64>().ok()?,
        (_, Some(megabytes)) => megabytes.parse::<u64>().ok()?.checked_mul(1024)?,
        _ => return size.parse().ok(),
    };
    kilobytes.is_multiple_of(8).then_some(kilobytes / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_blocks_within_what_is_taken() {
        let takes = SettingValues::Blocks(0, 256);
        for size in ["0", "8kB", "256kB", "2MB", "256"] {
            assert!(takes.accepts(size), "{size}");
        }
        for size in ["4kB", "3MB", "-8kB", "kB", "", "on"] {
            assert!(!takes.accepts(size), "{size}");
        }
    }

    #[test]
    fn numbers_and_words_are_those_of_the_setting() {
        assert!(
            SettingValues::Integer(1, 32).accepts("32")
                && !SettingValues::Integer(1, 32).accepts("0")
        );
        assert!(SettingValues::Real.accepts("1.1") && !SettingValues::Real.accepts("NaN"));
        assert!(
            SettingValues::Words(&["copy"]).accepts("copy") && !SettingValues::Bool.accepts("copy")
        );
    }
}
