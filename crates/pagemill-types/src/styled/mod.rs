//! Values as sessions see them that set another `DateStyle`, `IntervalStyle`, `bytea_output` or
//! `extra_float_digits`.
//!
//! ```text
//! styled ── moments.rs    date, timestamp, timestamptz: styles SQL, German and Postgres
//!        ── intervals.rs  styles sql_standard, postgres_verbose and iso_8601
//!        └─ numbers.rs    floats, and shapes that are made of them, of so many digits
//! ```
//!
//! Invariant: [`Styled::of`] gives nothing for a type that is printed as by default, so that a session with the
//! default settings meets nothing of this.
//!
//! Source: `src/backend/utils/adt/date.c`, `timestamp.c`, `float.c`, `geo_ops.c`, `byteaout` in `varlena.c`,
//! `pg_mcv_list_out` in `src/backend/statistics/mcv.c`, PostgreSQL 14 to 18.

mod intervals;
mod moments;
mod numbers;

use std::sync::Arc;

use pagemill_format::error::Result;
use pagemill_format::ids::{Oid, PgVersion};

use super::builtin::oid;
use super::bytea;
use super::geometry::Shape;
use super::time_zone::Zone;
use super::value_styles::{ByteaOutput, DateSetting, DateStyle, ValueStyles};
use crate::input::datetime::IntervalStyle;

/// How values of one type are printed in a session.
#[derive(Debug, Clone)]
pub struct Styled {
    form: Form,
    /// The zone of moments, where it is not UTC.
    zone: Option<Arc<Zone>>,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Date(DateSetting),
    Timestamp(DateSetting),
    TimestampTz(DateSetting),
    Interval { style: IntervalStyle, has_infinity: bool },
    Bytea,
    Float4 { digits: usize },
    Float8 { digits: usize },
    Shape { shape: Shape, digits: usize },
}

/// Digits of `float4` and `float8` that are surely kept: `FLT_DIG` and `DBL_DIG`.
const FLOAT4_DIGITS: u8 = 6;
const FLOAT8_DIGITS: u8 = 15;

impl Styled {
    /// How a built-in type is printed, where these settings are not the default ones for it.
    pub fn of(
        of: Oid,
        version: PgVersion,
        styles: &ValueStyles,
        zone: Option<&Arc<Zone>>,
    ) -> Option<Self> {
        let form = Form::of(of, version, styles)?;
        let zone = zone.filter(|_| matches!(form, Form::TimestampTz(_))).cloned();
        Some(Self { form, zone })
    }

    /// The zone that moments are printed in, where it is not UTC.
    pub fn zone(&self) -> Option<&Zone> {
        self.zone.as_deref()
    }

    /// Appends the text of a payload.
    ///
    /// # Errors
    /// When it is no value of the type.
    pub fn write(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self.form {
            Form::Date(dates) => moments::write_date(dates, payload, out),
            Form::Timestamp(dates) => moments::write_timestamp(dates, payload, out),
            Form::TimestampTz(dates) => {
                moments::write_timestamptz(dates, self.zone(), payload, out)
            }
            Form::Interval { style, has_infinity } => {
                intervals::write_interval(style, has_infinity, payload, out)
            }
            Form::Bytea => {
                bytea::push_escaped(payload, out);
                Ok(())
            }
            Form::Float4 { digits } => numbers::write_float4(digits, payload, out),
            Form::Float8 { digits } => numbers::write_float8(digits, payload, out),
            Form::Shape { shape, digits } => numbers::write_shape(shape, digits, payload, out),
        }
    }
}

impl Form {
    fn of(of: Oid, version: PgVersion, styles: &ValueStyles) -> Option<Self> {
        let dates = Some(styles.dates).filter(|dates| dates.style != DateStyle::Iso);
        let digits = |all: u8| {
            let fewer = styles.fewer_digits?;
            Some(usize::from(all.saturating_sub(fewer).max(1)))
        };
        Some(match of {
            oid::DATE => Self::Date(dates?),
            oid::TIMESTAMP => Self::Timestamp(dates?),
            oid::TIMESTAMPTZ => Self::TimestampTz(dates?),
            oid::INTERVAL if styles.intervals != IntervalStyle::Postgres => {
                let has_infinity = version >= PgVersion::V17;
                Self::Interval { style: styles.intervals, has_infinity }
            }
            oid::BYTEA | oid::PG_MCV_LIST if styles.bytea == ByteaOutput::Escape => Self::Bytea,
            oid::FLOAT4 => Self::Float4 { digits: digits(FLOAT4_DIGITS)? },
            oid::FLOAT8 => Self::Float8 { digits: digits(FLOAT8_DIGITS)? },
            other => Self::Shape { shape: shape(other)?, digits: digits(FLOAT8_DIGITS)? },
        })
    }
}

fn shape(of: Oid) -> Option<Shape> {
    Some(match of {
        oid::POINT => Shape::Point,
        oid::LINE => Shape::Line,
        oid::LSEG => Shape::Lseg,
        oid::BOX => Shape::Box,
        oid::PATH => Shape::Path,
        oid::POLYGON => Shape::Polygon,
        oid::CIRCLE => Shape::Circle,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
