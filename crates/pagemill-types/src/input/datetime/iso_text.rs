//! The usual texts, `YYYY-MM-DD` and `YYYY-MM-DD HH:MM:SS[.ffffff][+-HH[:MM[:SS]]]`, by hand.
//!
//! Nearly every date in a file is written so, and to go through the whole grammar costs many times
//! as much. Invariant: what is taken here means what the grammar says it means; whatever is not
//! sure to be sound is left to it, errors too.

use super::calendar::{MICROS_PER_SECOND, POSTGRES_EPOCH, days_in_month, julian_day};

/// A time of day in microseconds, and the offset after it in seconds west of Greenwich.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IsoTime {
    pub(super) micros: i64,
    pub(super) west: Option<i32>,
}

/// Days from 2000-01-01 of a date that is the whole text.
#[inline]
pub(super) fn date(text: &[u8]) -> Option<i32> {
    let &[a, b, c, d, b'-', e, f, b'-', g, h] = text else { return None };
    let year = two(a, b)? * 100 + two(c, d)?;
    let (month, day) = (two(e, f)?, two(g, h)?);
    let sound = year > 0
        && (1..=12).contains(&month)
        && day > 0
        && (day <= 28 || day <= days_in_month(year, month));
    sound.then(|| julian_day(year, month, day) - POSTGRES_EPOCH)
}

/// Days from 2000-01-01 and the time of day.
#[inline]
pub(super) fn timestamp(text: &[u8]) -> Option<(i32, IsoTime)> {
    let (day, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix(b" ")?;
    Some((date(day)?, time(rest)?))
}

/// A time of day before 24:00:00, and its offset.
#[inline]
pub(super) fn time(text: &[u8]) -> Option<IsoTime> {
    let (&[a, b, b':', c, d, b':', e, f], rest) = text.split_first_chunk::<8>()? else {
        return None;
    };
    let (hour, minute, second) = (two(a, b)?, two(c, d)?, two(e, f)?);
    if hour >= 24 || minute >= 60 || second >= 60 {
        return None;
    }
    let (fraction, rest) = fraction(rest)?;
    let west = if rest.is_empty() { None } else { Some(offset(rest)?) };
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    Some(IsoTime { micros: seconds * MICROS_PER_SECOND + i64::from(fraction), west })
}

/// Up to six digits after a point.
#[inline]
fn fraction(text: &[u8]) -> Option<(i32, &[u8])> {
    let Some(digits) = text.strip_prefix(b".") else { return Some((0, text)) };
    let len = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if len == 0 || len > 6 {
        return None;
    }
    let (digits, rest) = digits.split_at_checked(len)?;
    let digit = |place| digits.get(place).map_or(0, |byte: &u8| i32::from(byte - b'0'));
    Some(((0..6).fold(0, |number, place| number * 10 + digit(place)), rest))
}

/// `+hh`, `+hh:mm` or `+hh:mm:ss`, in seconds west.
#[inline]
fn offset(text: &[u8]) -> Option<i32> {
    let (sign, parts) = text.split_first()?;
    let (hours, minutes, seconds) = match *parts {
        [a, b] => (two(a, b)?, 0, 0),
        [a, b, b':', c, d] => (two(a, b)?, two(c, d)?, 0),
        [a, b, b':', c, d, b':', e, f] => (two(a, b)?, two(c, d)?, two(e, f)?),
        _ => return None,
    };
    if hours > 15 || minutes >= 60 || seconds >= 60 {
        return None;
    }
    let offset = hours * 3600 + minutes * 60 + seconds;
    match sign {
        b'+' => Some(-offset),
        b'-' => Some(offset),
        _ => None,
    }
}

/// The number that two digits are.
#[inline]
fn two(tens: u8, ones: u8) -> Option<i32> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| i32::from(tens) * 10 + i32::from(ones))
}
