//! The fields of an interval as bits of its type modifier: `range << 16 | digits of a second`.
//!
//! Invariant: a range is one of the fields, neighbors from one to another, or all of them.
//!
//! Source: `INTERVAL_MASK`, `INTERVAL_TYPMOD`, `INTERVAL_FULL_RANGE` and `INTERVAL_FULL_PRECISION` in
//! `src/include/utils/timestamp.h`, the numbers of fields in `datetime.h`, PostgreSQL 14 to 18.

/// Months.
pub const MONTH: i32 = 1 << 1;
/// Years.
pub const YEAR: i32 = 1 << 2;
/// Days.
pub const DAY: i32 = 1 << 3;
/// Hours.
pub const HOUR: i32 = 1 << 10;
/// Minutes.
pub const MINUTE: i32 = 1 << 11;
/// Seconds.
pub const SECOND: i32 = 1 << 12;
/// No fields were named: it has all.
pub const FULL_RANGE: i32 = 0x7FFF;
/// No digits were named: there are as many as are kept.
pub const FULL_PRECISION: i32 = 0xFFFF;
