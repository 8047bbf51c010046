//! One value from PostgreSQL's form to Arrow's: other epochs, other scales, and what has no place there.
//!
//! Invariant: a value comes out as what it is, or as a fault; what an option lets through is what the option says.

use pagemill_cluster::ValueLookups;
use pagemill_format::Error as FormatError;
use pagemill_types::decode::payload;
use pagemill_types::encoding::Transcoder;
use pagemill_types::numeric::{SMALL_POWERS_OF_TEN, short_scaled};
use pagemill_types::output::{ValueType, ValueWriter};
use pagemill_types::value::{Date, Numeric, Timestamp};

use crate::error::Remedy;
use crate::options::InfinityChoice;

/// 24:00:00 in microseconds.
const MICROS_PER_DAY: i64 = 86_400_000_000;
/// 0001-01-01 and 9999-12-31 in days from 1970-01-01.
const CLAMPED_DAYS: (i32, i32) = (-719_162, 2_932_896);

/// Why a value is not in the batch.
pub(crate) enum Fault {
    /// It is damaged, or could not be fetched.
    Damaged(FormatError),
    /// The column's type cannot hold it.
    Unfit(String, Remedy),
    /// The batch is to be finished before it.
    Full,
}

impl From<FormatError> for Fault {
    fn from(error: FormatError) -> Self {
        Self::Damaged(error)
    }
}

pub(crate) fn unfit<T>(what: impl Into<String>, remedy: Remedy) -> Result<T, Fault> {
    Err(Fault::Unfit(what.into(), remedy))
}

/// What values need beside their bytes.
pub(crate) struct Context {
    pub(crate) lookups: ValueLookups,
    /// From the database's encoding to UTF-8, where they differ.
    pub(crate) transcoder: Option<Transcoder>,
    pub(crate) infinity: InfinityChoice,
    /// What does not lie in the tuple.
    pub(crate) buffer: Vec<u8>,
}

/// A value as it lies in its tuple; `None` for NULL.
pub(crate) type Cell<'v> = Option<&'v [u8]>;
/// What an infinity becomes, or what lies past the array's range.
pub(crate) fn beyond<T>(
    what: &str,
    choice: InfinityChoice,
    is_late: bool,
    clamped: (T, T),
) -> Result<Option<T>, Fault> {
    match choice {
        InfinityChoice::Error => unfit(what, Remedy::Infinity),
        InfinityChoice::Null => Ok(None),
        InfinityChoice::Clamp => Ok(Some(if is_late { clamped.1 } else { clamped.0 })),
    }
}

pub(crate) fn date(date: Date, choice: InfinityChoice) -> Result<Option<i32>, Fault> {
    match date.unix_days().and_then(|days| i32::try_from(days).ok()) {
        Some(days) => Ok(Some(days)),
        None => beyond("an infinite date", choice, date > Date(0), CLAMPED_DAYS),
    }
}

pub(crate) fn timestamp(at: Timestamp, choice: InfinityChoice) -> Result<Option<i64>, Fault> {
    if let Some(micros) = at.unix_micros() {
        return Ok(Some(micros));
    }
    let what = match at.is_finite() {
        false => "an infinite timestamp",
        true => "a timestamp after 294247-01-10 04:00:54.775807, where Arrow's end",
    };
    let (first, last) = CLAMPED_DAYS;
    let clamped = (i64::from(first) * MICROS_PER_DAY, (i64::from(last) + 1) * MICROS_PER_DAY - 1);
    beyond(what, choice, at > Timestamp(0), clamped)
}

pub(crate) fn time(micros: i64, choice: InfinityChoice) -> Result<Option<i64>, Fault> {
    match micros {
        MICROS_PER_DAY => {
            let what = "24:00:00, where Arrow's times end before";
            beyond(what, choice, true, (0, MICROS_PER_DAY - 1))
        }
        0..MICROS_PER_DAY => Ok(Some(micros)),
        other => {
            let what = format!("{other} microseconds are no time of a day");
            Err(Fault::Damaged(FormatError::corrupt("time", 0, what)))
        }
    }
}

/// Looks at a numeric.
pub(crate) fn in_numeric<T>(
    raw: &[u8],
    value_type: &ValueType,
    context: &mut Context,
    look: impl FnOnce(Numeric<'_>, InfinityChoice) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let Context { lookups, buffer, infinity, .. } = context;
    let bytes = payload(lookups, value_type.layout.len, raw, buffer)?;
    look(Numeric::parse(bytes)?, *infinity)
}

pub(crate) fn decimal(
    number: Numeric<'_>,
    (precision, scale): (u8, u8),
    infinity: InfinityChoice,
) -> Result<Option<i128>, Fault> {
    let what = match number {
        Numeric::Finite { .. } => {
            let limit = 10u128.pow(precision.into());
            return match number.scaled(scale.into()) {
                Some(value) if value.unsigned_abs() < limit => Ok(Some(value)),
                _ => unfit(
                    format!("a numeric that does not fit decimal({precision},{scale})"),
                    Remedy::Numeric,
                ),
            };
        }
        Numeric::NaN => "NaN",
        Numeric::Infinity => "Infinity",
        Numeric::NegativeInfinity => "-Infinity",
    };
    match infinity {
        InfinityChoice::Null => Ok(None),
        _ => unfit(format!("{what}, which no decimal is"), Remedy::Numeric),
    }
}

/// A numeric of the usual form as an integer over 10^`scale`, where it surely fits; `None` for everything else, which
/// [`decimal`] looks at.
#[inline]
pub(crate) fn short_decimal(payload: &[u8], precision: u8, scale: u8) -> Option<i128> {
    let (number, _) = short_scaled(payload, Some(scale.into()))?;
    let is_below = |limit: &u64| number.unsigned_abs() < *limit;
    SMALL_POWERS_OF_TEN.get(usize::from(precision)).is_none_or(is_below).then(|| number.into())
}

/// The double nearest to a numeric: as PostgreSQL has it, by way of its text.
pub(crate) fn as_double(
    raw: &[u8],
    value_type: &ValueType,
    context: &mut Context,
) -> Result<f64, Fault> {
    let mut text = Vec::new();
    ValueWriter::new(&mut context.lookups).write(
        &value_type.output,
        value_type.layout.len,
        raw,
        &mut text,
    )?;
    let number = str::from_utf8(&text).ok().and_then(|text| text.parse::<f64>().ok());
    match number {
        Some(number) if number.is_finite() => Ok(number),
        // NaN and the infinities print as Rust reads them; what overflows is no infinity.
        Some(number) if text.iter().any(u8::is_ascii_alphabetic) => Ok(number),
        _ => unfit("a numeric past the range of a double", Remedy::Numeric),
    }
}

#[cfg(test)]
#[path = "conversion_tests.rs"]
mod tests;
