//! Dates, times and timestamps as values of a path: what they are called, how they are written, as what others they can be
//! taken, and how they compare.
//!
//! A conversion that needs the session's time zone is an error unless the function is one of those with `_tz`, and no
//! silence suppresses that.
//!
//! Source: `compareDatetime`, `checkTimezoneIsUsedForCast`, `executeDateTimeMethod` in
//! `src/backend/utils/adt/jsonpath_exec.c`, `JsonEncodeDateTime` in `json.c`, `date.c`, `timestamp.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use pagemill_types::datetime::{write_date, write_time, write_xsd_timestamp};

use super::calendar::{east_at, east_of_clock};
use super::{Settings, damaged};
use crate::error::{SqlState, StatementError};
use crate::functions::datetime::calendar::{
    DAY, END_TIMESTAMP_DAY, SECOND, is_valid as is_valid_timestamp,
};
use crate::functions::rows::Outcome;

/// Which type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Date,
    Time,
    TimeTz,
    Timestamp,
    TimestampTz,
}

/// A value of one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) ty: Type,
    /// Days or microseconds, as the type counts them.
    pub(super) value: i64,
    /// The offset in seconds west of Greenwich: that of a time, and that in which a timestamp is written.
    pub(super) west: i32,
}

impl Type {
    /// As errors name it.
    fn short_name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::Time => "time",
            Self::TimeTz => "timetz",
            Self::Timestamp => "timestamp",
            Self::TimestampTz => "timestamptz",
        }
    }
}

impl Moment {
    pub(super) fn type_name(&self) -> &'static str {
        match self.ty {
            Type::Date => "date",
            Type::Time => "time without time zone",
            Type::TimeTz => "time with time zone",
            Type::Timestamp => "timestamp without time zone",
            Type::TimestampTz => "timestamp with time zone",
        }
    }

    /// Appends it in the form of XML Schema.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Outcome<()> {
        match self.ty {
            Type::Date => write_date(&(self.value as i32).to_le_bytes(), out),
            Type::Time => write_time(&self.value.to_le_bytes(), out),
            Type::Timestamp => write_xsd_timestamp(&self.value.to_le_bytes(), out),
            Type::TimeTz => write_time(&self.value.to_le_bytes(), out),
            Type::TimestampTz => {
                let local = self.value.saturating_sub(i64::from(self.west) * SECOND);
                write_xsd_timestamp(&local.to_le_bytes(), out)
            }
        }
        .map_err(damaged)?;
        if matches!(self.ty, Type::TimeTz | Type::TimestampTz) {
            self.write_offset(out);
        }
        Ok(())
    }

    /// Behind the clock, before an era.
    fn write_offset(&self, out: &mut Vec<u8>) {
        let is_before_christ = out.ends_with(b" BC");
        if is_before_christ {
            out.truncate(out.len() - 3);
        }
        let seconds = self.west.unsigned_abs();
        let sign = if self.west <= 0 { '+' } else { '-' };
        let mut offset = format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
        if !seconds.is_multiple_of(60) {
            offset.push_str(&format!(":{:02}", seconds % 60));
        }
        out.extend_from_slice(offset.as_bytes());
        if is_before_christ {
            out.extend_from_slice(b" BC");
        }
    }

    fn of(ty: Type, value: i64) -> Self {
        Self { ty, value, west: 0 }
    }

    /// As another type; nothing where that has no meaning.
    pub(super) fn cast(self, to: Type, settings: &Settings<'_>) -> Outcome<Option<Self>> {
        use Type::{Date, Time, TimeTz, Timestamp, TimestampTz};
        let needs_zone = matches!(
            (self.ty, to),
            (TimestampTz, Date | Time | Timestamp)
                | (TimeTz, Time)
                | (Time, TimeTz)
                | (Date | Timestamp, TimestampTz)
        );
        if needs_zone {
            require_zone(settings, self.ty, to)?;
        }
        Ok(Some(match (self.ty, to) {
            (from, to) if from == to => self,
            (Timestamp, Date) => Self::of(Date, self.value.div_euclid(DAY)),
            (TimestampTz, Date) => Self::of(Date, self.clock(settings)?.div_euclid(DAY)),
            (TimeTz, Time) => Self::of(Time, self.value),
            (Timestamp, Time) => Self::of(Time, self.value.rem_euclid(DAY)),
            (TimestampTz, Time) => Self::of(Time, self.clock(settings)?.rem_euclid(DAY)),
            (Time, TimeTz) => Self { ty: TimeTz, value: self.value, west: today(settings)? },
            (TimestampTz, TimeTz) => {
                let west = -east_at(settings.zone, self.value);
                Self { ty: TimeTz, value: self.clock(settings)?.rem_euclid(DAY), west }
            }
            (Date, Timestamp) => Self::of(Timestamp, midnight(self.value)?),
            (TimestampTz, Timestamp) => Self::of(Timestamp, self.clock(settings)?),
            (Date, TimestampTz) => {
                zoned(midnight(self.value)?, settings, "date out of range for timestamp")?
            }
            (Timestamp, TimestampTz) => zoned(self.value, settings, "timestamp out of range")?,
            _ => return Ok(None),
        }))
    }

    /// What clocks of the session's zone showed.
    fn clock(&self, settings: &Settings<'_>) -> Outcome<i64> {
        let local = self.value.checked_add(i64::from(east_at(settings.zone, self.value)) * SECOND);
        local
            .filter(|local| is_valid_timestamp(*local))
            .ok_or_else(|| overflow("timestamp out of range"))
    }

    /// Nothing where the types do not compare.
    pub(super) fn compare(
        &self,
        other: &Self,
        settings: &Settings<'_>,
    ) -> Outcome<Option<Ordering>> {
        use Type::{Date, Time, TimeTz, Timestamp, TimestampTz};
        Ok(Some(match (self.ty, other.ty) {
            (TimeTz, TimeTz) => self.against_time(other),
            (from, to) if from == to => self.value.cmp(&other.value),
            (Date, Timestamp) => day_against(self.value, other.value),
            (Timestamp, Date) => day_against(other.value, self.value).reverse(),
            (Date | Timestamp, TimestampTz) => self.against_moment(other, settings)?,
            (TimestampTz, Date | Timestamp) => other.against_moment(self, settings)?.reverse(),
            (Time, TimeTz) | (TimeTz, Time) => {
                require_zone(settings, Time, TimeTz)?;
                let west = today(settings)?;
                let zoned = |moment: &Self| match moment.ty {
                    Time => Self { west, ..*moment },
                    _ => *moment,
                };
                zoned(self).against_time(&zoned(other))
            }
            _ => return Ok(None),
        }))
    }

    fn against_time(&self, other: &Self) -> Ordering {
        let utc = |time: &Self| time.value + i64::from(time.west) * SECOND;
        utc(self).cmp(&utc(other)).then(self.west.cmp(&other.west))
    }

    /// A date or a timestamp without a zone against one with: what is no moment is beyond all others.
    fn against_moment(&self, moment: &Self, settings: &Settings<'_>) -> Outcome<Ordering> {
        require_zone(settings, self.ty, moment.ty)?;
        let local = match self.ty {
            Type::Date if self.value >= END_TIMESTAMP_DAY => return Ok(Ordering::Greater),
            Type::Date => self.value * DAY,
            _ => self.value,
        };
        let utc = local.checked_sub(i64::from(east_of_clock(settings.zone, local)) * SECOND);
        let beyond = if local < 0 { i64::MIN } else { i64::MAX };
        let utc = utc.filter(|utc| is_valid_timestamp(*utc)).unwrap_or(beyond); // default: beyond all
        Ok(utc.cmp(&moment.value))
    }
}

fn day_against(days: i64, timestamp: i64) -> Ordering {
    match midnight(days) {
        Ok(midnight) => midnight.cmp(&timestamp),
        Err(_) => Ordering::Greater,
    }
}

fn midnight(days: i64) -> Outcome<i64> {
    match days < END_TIMESTAMP_DAY {
        true => Ok(days * DAY),
        false => Err(overflow("date out of range for timestamp")),
    }
}

fn zoned(local: i64, settings: &Settings<'_>, wrong: &'static str) -> Outcome<Moment> {
    let east = east_of_clock(settings.zone, local);
    let utc = local.checked_sub(i64::from(east) * SECOND).filter(|utc| is_valid_timestamp(*utc));
    let value = utc.ok_or_else(|| overflow(wrong))?;
    Ok(Moment { ty: Type::TimestampTz, value, west: -east })
}

/// The offset, in seconds west, that clocks have today when they show a time: known where it is the same on all days.
fn today(settings: &Settings<'_>) -> Outcome<i32> {
    let east = settings.zone.only_offset();
    east.map(|east| -east).ok_or_else(|| {
        StatementError::unsupported("a time of no day in a time zone whose clocks change")
    })
}

fn require_zone(settings: &Settings<'_>, from: Type, to: Type) -> Outcome<()> {
    if settings.uses_zone {
        return Ok(());
    }
    let (from, to) = (from.short_name(), to.short_name());
    let message = format!("cannot convert value from {from} to {to} without time zone usage");
    let error = StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
    Err(error.with_hint("Use *_tz() function for time zone support."))
}

#[cold]
pub(super) fn overflow(message: impl Into<String>) -> StatementError {
    StatementError::new(SqlState::DATETIME_OVERFLOW, message)
}
