//! Clocks of time zones: what the methods of dates and times need beside the calendar of the other functions.
//!
//! Source: `DetermineTimeZoneOffset` in `src/backend/utils/adt/datetime.c`, PostgreSQL 14 to 18.

use pagemill_types::time_zone::Zone;

use crate::functions::datetime::session_zone::unix_second;

/// The offset at a moment, in seconds east.
pub(super) fn east_at(zone: &Zone, moment: i64) -> i32 {
    zone.at(unix_second(moment)).east
}

/// The offset when clocks showed this.
pub(super) fn east_of_clock(zone: &Zone, local: i64) -> i32 {
    zone.resolve(unix_second(local)).east
}
