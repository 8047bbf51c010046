//! The settings that the reading of dates and times depends on: those of a new session, as for the
//! printing of names ([`crate::name_rows`]).
//!
//! Source: `check_datestyle` in `src/backend/commands/variable.c`, PostgreSQL 14 to 18.

use std::sync::Arc;
use std::time::SystemTime;

use pagemill_types::input::datetime::{DateOrder, DateTimeContext, IntervalStyle};
use pagemill_types::time_zone::Zone;

use crate::database::Database;
use crate::error::{Error, Result};
use crate::refusal::Refusal;
use crate::time_zones::{NamedZone, SYSTEM_ZONES, TimeZones};

/// From 1970 to 2000, where the server's clock begins, in microseconds.
const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

/// What a session that begins now would say about texts of dates and times.
///
/// # Errors
/// When the settings cannot be read, or name a time zone that is not known.
pub(crate) fn date_time_context(database: &Database) -> Result<DateTimeContext> {
    let settings = database.session_settings()?;
    let text =
        |name: &str| settings.get(name).map(|value| String::from_utf8_lossy(value).into_owned());
    let zones = database.time_zones();
    let session_zone = match configured_zone(database, &zones)? {
        None => Arc::new(Zone::gmt()),
        Some(found) => found.zone,
    };
    let sql_standard =
        text("intervalstyle").is_some_and(|style| style.eq_ignore_ascii_case("sql_standard"));
    Ok(DateTimeContext {
        version: database.cluster().version(),
        date_order: date_order(&text("datestyle").unwrap_or_default()),
        interval_style: match sql_standard {
            true => IntervalStyle::SqlStandard,
            false => IntervalStyle::Postgres,
        },
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

    /// The zone that a value of the setting `TimeZone` means, where it means one.
    pub fn time_zone_of_setting(&self, value: &str) -> Option<NamedZone> {
        self.time_zones().of_setting(value)
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

/// The order that a value of `DateStyle` means. German style alone means day, month, year.
fn date_order(style: &str) -> DateOrder {
    let mut order = None;
    let mut german = false;
    for word in style.split(',') {
        let word = word.trim().to_ascii_lowercase();
        match word.as_str() {
            "ymd" => order = Some(DateOrder::Ymd),
            "mdy" | "us" => order = Some(DateOrder::Mdy),
            "dmy" => order = Some(DateOrder::Dmy),
            word if word.starts_with("euro") => order = Some(DateOrder::Dmy),
            word if word.starts_with("noneuro") => order = Some(DateOrder::Mdy),
            "german" => german = true,
            _ => {}
        }
    }
    order.unwrap_or(if german { DateOrder::Dmy } else { DateOrder::Mdy })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_the_second_part_of_the_style() {
        let orders = [
            ("ISO, MDY", DateOrder::Mdy),
            ("ISO, DMY", DateOrder::Dmy),
            ("ymd", DateOrder::Ymd),
            ("German", DateOrder::Dmy),
            ("german, ymd", DateOrder::Ymd),
            ("Postgres, European", DateOrder::Dmy),
            ("SQL", DateOrder::Mdy),
            ("", DateOrder::Mdy),
        ];
        for (style, order) in orders {
            assert_eq!(date_order(style), order, "{style}");
        }
    }
}
