//! A moment as WAL records it, printed as a server prints a `timestamptz` in UTC.
//!
//! Any number is one: what no calendar has is printed as a number.

use std::fmt;

use pagemill_types::datetime;

/// Microseconds since 2000-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub i64);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        match datetime::write_timestamptz(&self.0.to_le_bytes(), &mut text) {
            Ok(()) => f.write_str(&String::from_utf8_lossy(&text)),
            // A moment that no calendar has can stand in a damaged record.
            Err(_) => write!(f, "{} microseconds since 2000-01-01", self.0),
        }
    }
}
