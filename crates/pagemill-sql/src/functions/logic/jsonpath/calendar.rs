//! Clocks of time zones, weeks and parts of seconds: what the methods of dates and times need beside the calendar of the other
//! functions.
//!
//! Source: `isoweek2j` in `src/backend/utils/adt/timestamp.c`, PostgreSQL 14 to 18.

use pagemill_types::time_zone::Zone;

use crate::functions::datetime::calendar::first_monday;
use crate::functions::datetime::session_zone::unix_second;

/// The day on which a week of ISO 8601 begins.
pub(super) fn iso_week(year: i64, week: i64) -> i64 {
    first_monday(year) + (week - 1) * 7
}

/// The offset at a moment, in seconds east.
pub(super) fn east_at(zone: &Zone, moment: i64) -> i32 {
    zone.at(unix_second(moment)).east
}

/// The offset when clocks showed this.
pub(super) fn east_of_clock(zone: &Zone, local: i64) -> i32 {
    zone.resolve(unix_second(local)).east
}
