//! Digits of a second that a type modifier allows.
//!
//! Source: `AdjustTimeForTypmod` in `src/backend/utils/adt/date.c`, `AdjustTimestampForTypmod` in
//! `timestamp.c`, PostgreSQL 14 to 18.

/// Digits after the point at most.
pub(super) const MOST_DIGITS: i32 = 6;

/// Microseconds rounded to so many digits of a second, halves away from zero, and whether that
/// wrapped round.
pub(super) fn round(micros: i64, digits: i32) -> (i64, bool) {
    let scale = match digits {
        0 => 1_000_000,
        1 => 100_000,
        2 => 10_000,
        3 => 1000,
        4 => 100,
        5 => 10,
        _ => return (micros, false),
    };
    let half = if micros < 0 { -scale / 2 } else { scale / 2 };
    let (sum, wrapped) = micros.overflowing_add(half);
    (sum / scale * scale, wrapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_away_from_zero() {
        assert_eq!(round(1_500_000, 0), (2_000_000, false));
        assert_eq!(round(-1_500_000, 0), (-2_000_000, false));
        assert_eq!(round(1_499_999, 0), (1_000_000, false));
        assert_eq!(round(123_456, 3), (123_000, false));
        assert_eq!(round(123_456, 6), (123_456, false));
        assert!(round(i64::MAX, 0).1);
    }
}
