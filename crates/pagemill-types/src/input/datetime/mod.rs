//! Dates, times, timestamps and intervals, read as `COPY … FROM` reads them.
//!
//! ```text
//! text ─► iso_text ───────────────────────────────────────────────► values ─► payload
//!      └► fields ─► date_text │ time_text │ interval ──────────────────┘
//! ```
//!
//! What these texts mean depends on the session: the order of day, month and year, its time zone,
//! the moment its transaction began, and the server's version. [`DateTimeContext`] holds all that.
//!
//! Rules: what the server takes is taken, with the same value, and what it refuses is refused in the
//! same words; where versions differ, the difference is written down in the file it is in. No text
//! panics, and nothing is allocated for one that is accepted and names no zone.

mod abbreviations;
mod calendar;
mod date_text;
mod decoder;
mod fault;
mod fields;
mod interval;
mod iso_text;
mod numbers;
mod parts;
mod styles;
mod time_text;
mod values;
mod words;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use pagemill_format::ids::PgVersion;

use super::InputError;
use crate::time_zone::Zone;
use calendar::{Moment, unix_seconds_of};

pub use abbreviations::{Abbreviation, abbreviation, all_abbreviations};
pub use styles::{DateOrder, IntervalStyle};
pub use values::iso_timestamptz;
pub use values::{
    read_date, read_interval, read_time, read_timestamp, read_timestamptz, read_timetz,
};

/// Appends the payload of the value that a text says, given its type modifier (-1 for none) and the
/// session.
pub type DateTimeReader = fn(&[u8], i32, &DateTimeContext, &mut Vec<u8>) -> Result<(), InputError>;

/// Finds time zones by name.
pub trait ZoneLookup: Send + Sync {
    /// The zone of this name, in any case: one of the zone database, or a rule in POSIX's notation.
    fn zone(&self, name: &str) -> Option<Arc<Zone>>;
}

/// What the session says about texts of dates and times.
#[derive(Clone)]
pub struct DateTimeContext {
    /// The version of the server whose grammar it is.
    pub version: PgVersion,
    /// The order of short numbers.
    pub date_order: DateOrder,
    /// The reading of leading signs.
    pub interval_style: IntervalStyle,
    /// The setting `TimeZone`.
    pub session_zone: Arc<Zone>,
    /// The zones that texts may name.
    pub zones: Arc<dyn ZoneLookup>,
    /// When the transaction began, for `now` and its kin: microseconds from 2000-01-01 UTC.
    pub transaction_start: i64,
}

impl std::fmt::Debug for DateTimeContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DateTimeContext")
            .field("version", &self.version)
            .field("date_order", &self.date_order)
            .field("interval_style", &self.interval_style)
            .field("transaction_start", &self.transaction_start)
            .finish_non_exhaustive()
    }
}

impl DateTimeContext {
    fn zone(&self, name: &[u8]) -> Option<Arc<Zone>> {
        self.zones.zone(std::str::from_utf8(name).ok()?)
    }

    /// The begin of the transaction, as the session's clock showed it, and its offset in seconds
    /// west of Greenwich.
    fn now(&self) -> (Moment, i32) {
        let east = self.session_zone.at(unix_seconds_of(self.transaction_start)).east;
        (Moment::of_timestamp(self.transaction_start, east), -east)
    }
}
