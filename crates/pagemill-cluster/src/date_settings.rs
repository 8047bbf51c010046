//! The settings that the reading of dates and times, and the printing of values depend on: those of a new session, as for
//! the printing of names ([`crate::name_rows`]).
//!
//! Source: `check_datestyle` in `src/backend/commands/variable.c`, PostgreSQL 14 to 18.

use std::sync::Arc;
use std::time::SystemTime;

use pagemill_types::input::datetime::{DateTimeContext, IntervalStyle};
use pagemill_types::time_zone::Zone;
use pagemill_types::value_styles::{ByteaOutput, DateSetting, ValueStyles};

use crate::database::Database;
use crate::error::{Error, Result};
use crate::refusal::Refusal;
use crate::settings::{Settings, parse_search_path};
use crate::time_zones::{NamedZone, SYSTEM_ZONES, TimeZones};

/// From 1970 to 2000, where the server's clock begins, in microseconds.
const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

/// What a session that begins now would say about texts of dates and times.
///
/// # Errors
/// When the settings cannot be read, or name a time zone that is not known.
pub(crate) fn date_time_context(database: &Database) -> Result<DateTimeContext> {
    let settings = database.session_settings()?;
    let zones = database.time_zones();
    let session_zone = match configured_zone(database, &zones)? {
        None => Arc::new(Zone::gmt()),
        Some(found) => found.zone,
    };
    let styles = styles_of(settings);
    Ok(DateTimeContext {
        version: database.cluster().version(),
        date_order: styles.dates.order,
        interval_style: styles.intervals,
        session_zone,
        zones: Arc::new(zones),
        transaction_start: now(),
    })
}

impl Database {
    /// The zone that a new session's setting `TimeZone` means; `None` where it is not set.
    ///
    /// # Errors
    /// When the settings cannot be read, or name a time zone that is not known.
    pub fn configured_time_zone(&self) -> Result<Option<NamedZone>> {
        configured_zone(self, &self.time_zones())
    }

    /// What a new session's settings say of how values are printed, and dates and intervals read; those that cannot be
    /// read are as by default.
    ///
    /// # Errors
    /// When the settings cannot be read.
    pub fn configured_styles(&self) -> Result<ValueStyles> {
        Ok(styles_of(self.session_settings()?))
    }

    /// The zone that a value of the setting `TimeZone` means, where it means one.
    pub fn time_zone_of_setting(&self, value: &str) -> Option<NamedZone> {
        self.time_zones().of_setting(value)
    }

    /// All zones that the setting may name, with their names.
    pub fn all_time_zones(&self) -> Vec<(String, Zone)> {
        self.time_zones().all()
    }

    fn time_zones(&self) -> TimeZones {
        TimeZones::new(self.cluster().storage().host(), SYSTEM_ZONES)
    }
}

fn configured_zone(database: &Database, zones: &TimeZones) -> Result<Option<NamedZone>> {
    let settings = database.session_settings()?;
    let name = settings.get("timezone").map(|value| String::from_utf8_lossy(value).into_owned());
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let unknown = || Error::refused(Refusal::UnknownTimeZone(name.clone()));
    zones.of_setting(&name).ok_or_else(unknown).map(Some)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX).saturating_sub(EPOCH_MICROSECONDS)
}

/// What settings say of styles.
fn styles_of(settings: &Settings) -> ValueStyles {
    let text = |name: &str| settings.get(name).map(String::from_utf8_lossy);
    let digits = text("extra_float_digits").and_then(|value| value.trim().parse().ok());
    // default: what a server does not take it leaves as it was
    ValueStyles {
        dates: date_setting(settings),
        intervals: text("intervalstyle")
            .and_then(|value| IntervalStyle::of_setting(&value))
            .unwrap_or_default(),
        bytea: text("bytea_output")
            .and_then(|value| ByteaOutput::of_setting(&value))
            .unwrap_or_default(),
        fewer_digits: digits.and_then(ValueStyles::fewer_digits_of),
    }
}

/// What settings say of dates.
pub(crate) fn date_setting(settings: &Settings) -> DateSetting {
    let default = DateSetting::default();
    let value = settings.get("datestyle").map(String::from_utf8_lossy);
    // default: what a server does not take it leaves as it was
    value.and_then(|value| changed_date_setting(default, &value, default)).unwrap_or_default()
}

/// What a value of the setting `DateStyle` makes of the one before it, which says what it leaves open; `None` for none of its
/// values. `DEFAULT` in it stands for `default`.
pub fn changed_date_setting(
    before: DateSetting,
    value: &str,
    default: DateSetting,
) -> Option<DateSetting> {
    let words = parse_search_path(value.as_bytes())?;
    let words: Option<Vec<&str>> =
        words.iter().map(|word| std::str::from_utf8(word).ok()).collect();
    before.changed(words?.into_iter(), default)
}

/// What `DateStyle` is where `ALTER ROLE` or `ALTER DATABASE` gave a value: what that leaves open is what the server's files
/// say, whatever less special ones of them said. `None` for other settings, and other values.
pub(crate) fn date_style_over(files: DateSetting, name: &str, value: &[u8]) -> Option<String> {
    if !name.eq_ignore_ascii_case("datestyle") {
        return None;
    }
    let changed = changed_date_setting(files, std::str::from_utf8(value).ok()?, files)?;
    Some(changed.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_says_only_what_it_names() {
        let set = |value: &str| {
            let default = DateSetting::default();
            changed_date_setting(default, value, default).map(|set| set.to_string())
        };
        for (value, wanted) in [
            ("ISO, MDY", Some("ISO, MDY")),
            ("iso, dmy", Some("ISO, DMY")),
            ("ymd", Some("ISO, YMD")),
            ("\"German\"", Some("German, DMY")),
            ("Postgres, European", Some("Postgres, DMY")),
            ("", Some("ISO, MDY")),
            ("ISO DMY", None),
            ("ISO,", None),
        ] {
            assert_eq!(set(value).as_deref(), wanted, "{value}");
        }
    }
}
