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
use crate::time_zones::{SYSTEM_ZONES, TimeZones};

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
    let zones = TimeZones::new(database.cluster().storage().host(), SYSTEM_ZONES);
    let session_zone = match text("timezone").filter(|name| !name.is_empty()) {
        None => Arc::new(Zone::gmt()),
        Some(name) => {
            zones.of_setting(&name).ok_or_else(|| Error::refused(Refusal::UnknownTimeZone(name)))?
        }
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
