//! A value as numbers, days, microseconds, digits and slices: what is in its bytes, without any text in between.
//!
//! Everything borrows the payload it was decoded from. Units are PostgreSQL's: days and microseconds from 2000-01-01,
//! seconds west of Greenwich, base-10000 digits. Values within values (elements, attributes, bounds) are handed out as
//! they lie there, with their type, to be decoded in turn.
//!
//! Source: `src/include/datatype/timestamp.h`, `src/include/utils/{date,timestamp,numeric,inet,varbit,array,rangetypes}.h`,
//! PostgreSQL 14 to 18.

use std::net::IpAddr;
use std::sync::Arc;

use pagemill_format::ids::{Oid, Tid};
use pagemill_format::tuple::Span;

use super::output::{CompositeAttribute, ValueType};

pub use super::array::ArrayValue;
pub use super::numeric::Numeric;
pub use super::range::{Bound, MultirangeValue, RangeValue};

/// A value that is not NULL.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Value<'v> {
    /// boolean.
    Bool(bool),
    /// smallint.
    Int2(i16),
    /// integer.
    Int4(i32),
    /// bigint.
    Int8(i64),
    /// real.
    Float4(f32),
    /// double precision.
    Float8(f64),
    /// numeric.
    Numeric(Numeric<'v>),
    /// money, in the smallest unit of the currency.
    Money(i64),
    /// oid, xid, cid and the `reg…` types, whose number is that of an object.
    Oid(Oid),
    /// xid8, pg_lsn.
    Unsigned8(u64),
    /// tid.
    Tid(Tid),
    /// `"char"`.
    Char(u8),
    /// text, varchar, bpchar, name, json, the label of an enum, and xml as stored, with its declaration: in the
    /// database's encoding.
    Text(&'v [u8]),
    /// bytea.
    Bytes(&'v [u8]),
    /// date.
    Date(Date),
    /// time, in microseconds from midnight; 24:00:00 is 86,400,000,000.
    Time(i64),
    /// timetz.
    TimeTz {
        /// Microseconds from midnight.
        micros: i64,
        /// Seconds west of Greenwich.
        zone: i32,
    },
    /// timestamp, and timestamptz in UTC.
    Timestamp(Timestamp),
    /// interval.
    Interval(Interval),
    /// uuid.
    Uuid([u8; 16]),
    /// inet, cidr.
    Inet {
        /// The address.
        address: IpAddr,
        /// Bits of the netmask.
        bits: u8,
    },
    /// macaddr.
    MacAddr([u8; 6]),
    /// macaddr8.
    MacAddr8([u8; 8]),
    /// bit, varbit.
    Bits {
        /// How many bits.
        count: usize,
        /// The bits, the first one the highest of its byte.
        bytes: &'v [u8],
    },
    /// point.
    Point {
        /// Abscissa.
        x: f64,
        /// Ordinate.
        y: f64,
    },
    /// jsonb, in its binary form.
    Jsonb(&'v [u8]),
    /// An array.
    Array(ArrayValue<'v>),
    /// A row.
    Composite(CompositeValue<'v>),
    /// A range.
    Range(RangeValue<'v>),
    /// A multirange.
    Multirange(MultirangeValue<'v>),
    /// A value of another type, as its payload: it can be printed, and is not taken apart here.
    Other(&'v [u8]),
}

/// A date, in days from 2000-01-01. The extreme values are the infinities, which compare as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(pub i32);

impl Date {
    /// Later than every other.
    pub const INFINITY: Self = Self(i32::MAX);
    /// Earlier than every other.
    pub const NEGATIVE_INFINITY: Self = Self(i32::MIN);

    /// True for a day of the calendar.
    pub fn is_finite(self) -> bool {
        self != Self::INFINITY && self != Self::NEGATIVE_INFINITY
    }

    /// Days from 1970-01-01; `None` for the infinities.
    pub fn unix_days(self) -> Option<i64> {
        const DAYS_BETWEEN_EPOCHS: i64 = 10_957;
        self.is_finite().then(|| i64::from(self.0) + DAYS_BETWEEN_EPOCHS)
    }
}

/// A point in time, in microseconds from 2000-01-01 00:00:00. The extreme values are the infinities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Later than every other.
    pub const INFINITY: Self = Self(i64::MAX);
    /// Earlier than every other.
    pub const NEGATIVE_INFINITY: Self = Self(i64::MIN);

    /// True for a point in time.
    pub fn is_finite(self) -> bool {
        self != Self::INFINITY && self != Self::NEGATIVE_INFINITY
    }

    /// Microseconds from 1970-01-01 00:00:00; `None` for the infinities and what no `i64` holds.
    pub fn unix_micros(self) -> Option<i64> {
        const MICROS_BETWEEN_EPOCHS: i64 = 946_684_800_000_000;
        if self.is_finite() { self.0.checked_add(MICROS_BETWEEN_EPOCHS) } else { None }
    }
}

/// An interval. From PostgreSQL 17 on three maxima are infinity, three minima minus infinity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interval {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

/// A value inside of another one: NULL, or its bytes as they lie there, with varlena header.
pub type Inner<'v> = Option<&'v [u8]>;

/// A row.
#[derive(Debug, Clone)]
pub struct CompositeValue<'v> {
    pub(super) attributes: &'v Arc<[CompositeAttribute]>,
    pub(super) data: &'v [u8],
    pub(super) spans: Vec<Span>,
}

impl<'v> CompositeValue<'v> {
    /// Its attributes in order, dropped ones left out: the type of each and its value.
    pub fn attributes(&self) -> impl Iterator<Item = (&'v Arc<ValueType>, Inner<'v>)> + '_ {
        let pairs = self.attributes.iter().zip(&self.spans);
        pairs.filter_map(|(attribute, span)| {
            let value = (*span != Span::MISSING).then(|| span.of(self.data)).flatten();
            Some((attribute.value_type.as_ref()?, value))
        })
    }
}
