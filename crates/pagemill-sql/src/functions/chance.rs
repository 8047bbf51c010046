//! Values by chance: `random()` and its kin between bounds, UUIDs, and arrays in another order.
//!
//! Each call begins with a seed of its own, which the standard library draws from the system.
//!
//! Invariant: the query engine knows that two calls differ, and computes neither ahead of its row.
//!
//! Source: `drandom` in `src/backend/utils/adt/float.c`, `pg_prng_double` in `src/common/pg_prng.c`, `gen_random_uuid` in
//! `src/backend/utils/adt/uuid.c`, `array_shuffle_n` in `array_userfuncs.c`, `pseudorandomfuncs.c`, PostgreSQL 15 to 18.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow::array::{Array as _, ArrayRef, AsArray, BinaryBuilder, Float64Array};
use arrow::datatypes::{DataType, Int32Type};
use datafusion::common::Result as QueryResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use pagemill_types::time_zone::Zone;

use super::arrays::array_at;
use super::arrays::changes::arrays;
use super::datetime::calendar::UNIX_EPOCH;
use super::datetime::interval::Interval;
use super::datetime::session_zone::plus_in;
use super::numeric::arithmetic::rounded;
use super::numeric::column::{self, Numbers as Decimals};
use super::numeric::value::{Integer, Number, Value};
use super::rows::{Given, Held, Outcome, one, two};
use super::{Build, Implementation, KernelCall};
use crate::error::{Result, SqlState, StatementError};
use crate::scan::now;
use crate::typed::Typed;

pub(crate) fn find(key: &str) -> Option<Implementation> {
    Some(match key {
        "drandom" | "gen_random_uuid" | "uuidv7" => Implementation::Build(drawn),
        "int4random" => Implementation::Kernel(|_, a| {
            between(a, |of, low: i32, high: i32| Ok(of.integer(low.into(), high.into())? as i32))
        }),
        "int8random" => Implementation::Kernel(|_, a| {
            between(a, |of, low: i64, high: i64| Ok(of.integer(low.into(), high.into())? as i64))
        }),
        "numeric_random" => Implementation::Kernel(decimals),
        "drandom_normal" => Implementation::Kernel(|_, a| {
            between(a, |of, mean: f64, deviation: f64| Ok(mean + deviation * of.normal()))
        }),
        "array_shuffle" | "array_sample" => Implementation::Kernel(drawn_elements),
        "uuidv7_interval" => Implementation::Kernel(uuids_of_time),
        _ => return None,
    })
}

/// Whether two calls of a function may differ, whatever they are given.
pub(super) fn is_drawn(key: &str) -> bool {
    matches!(
        key,
        "int4random"
            | "int8random"
            | "numeric_random"
            | "drandom_normal"
            | "array_shuffle"
            | "array_sample"
            | "uuidv7_interval"
    )
}

fn drawn(build: &Build<'_>) -> Result<Typed> {
    let signature = Signature::nullary(Volatility::Volatile);
    let what = match build.key {
        "gen_random_uuid" => Drawn::Uuid,
        "uuidv7" => Drawn::UuidOfTime,
        _ => Drawn::Share,
    };
    let function = Arc::new(ScalarUDF::new_from_impl(Draw { what, signature }));
    let expr = Expr::ScalarFunction(ScalarFunction::new_udf(function, Vec::new()));
    Ok(build.done(expr, what.carrier()))
}

/// What functions without arguments draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Drawn {
    /// From 0 to 1.
    Share,
    /// Of version 4.
    Uuid,
    /// Of version 7.
    UuidOfTime,
}

impl Drawn {
    fn carrier(self) -> DataType {
        if self == Self::Share { DataType::Float64 } else { DataType::Binary }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Draw {
    what: Drawn,
    signature: Signature,
}

impl ScalarUDFImpl for Draw {
    fn name(&self) -> &str {
        match self.what {
            Drawn::Share => "random",
            Drawn::Uuid => "gen_random_uuid",
            Drawn::UuidOfTime => "uuidv7",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> QueryResult<DataType> {
        Ok(self.what.carrier())
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> QueryResult<ColumnarValue> {
        let mut numbers = Numbers::new();
        let rows = given.number_rows;
        let mut uuids = BinaryBuilder::new();
        let array: ArrayRef = match self.what {
            Drawn::Share => {
                Arc::new(Float64Array::from_iter_values((0..rows).map(|_| numbers.share())))
            }
            Drawn::Uuid => {
                (0..rows).for_each(|_| uuids.append_value(numbers.uuid()));
                Arc::new(uuids.finish())
            }
            Drawn::UuidOfTime => {
                (0..rows).for_each(|_| uuids.append_value(numbers.uuid_of(next_moment())));
                Arc::new(uuids.finish())
            }
        };
        Ok(ColumnarValue::Array(array))
    }
}

/// The moment that an UUID was made last, in nanoseconds from 1970.
static LAST: AtomicI64 = AtomicI64::new(0);
/// What an UUID tells two moments apart by, at least: a 4096th of a millisecond is less.
const STEP: i64 = 256;

/// Now, or as little later than the UUID before as an UUID tells: they are in the order that they were made in.
fn next_moment() -> i64 {
    let now = (now() - UNIX_EPOCH) * 1000;
    let next = |last: i64| now.max(last + STEP);
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
    next(last.expect("there is always a next one")) // infallible: it is Some
}

/// `uuidv7` of a moment so long before or after now.
fn uuids_of_time(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let mut numbers = Numbers::new();
    let utc = Zone::gmt();
    let zone = call.catalog.time_zone().map_or(&utc, |zone| zone);
    one(arguments, |shift: Interval| {
        if shift.is_infinite() {
            return Err(StatementError::unsupported("an UUID of an infinite interval"));
        }
        let now = next_moment();
        let shifted = plus_in(zone, now / 1000 + UNIX_EPOCH, shift)?;
        let far = || StatementError::unsupported("an UUID of a moment so far away");
        let nanoseconds = shifted.checked_sub(UNIX_EPOCH).and_then(|since| since.checked_mul(1000));
        Ok(numbers.uuid_of(nanoseconds.ok_or_else(far)? + now % 1000).to_vec())
    })
}

/// A value between two, or of two numbers that say how they lie.
fn between<'a, T: Held<'a>, G: Given>(
    arguments: &'a [ArrayRef],
    of: impl Fn(&mut Numbers, T, T) -> Outcome<G>,
) -> Outcome<ArrayRef> {
    let mut numbers = Numbers::new();
    two(arguments, |low: T, high: T| of(&mut numbers, low, high))
}

#[cold]
fn invalid(message: impl Into<String>) -> StatementError {
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}

/// With as many digits behind the point as the longer of its bounds.
fn decimals(_: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let mut numbers = Numbers::new();
    let (lows, highs) = (Decimals::of(&arguments[0]), Decimals::of(&arguments[1]));
    column::build(arguments[0].len(), |row| {
        let (Some(low), Some(high)) = (lows.get(row)?, highs.get(row)?) else { return Ok(None) };
        let (low, high) = (finite(&low, "lower")?, finite(&high, "upper")?);
        let places = low.dscale.max(high.dscale);
        let at = |number: &Number| match rounded(number, places as i32).integer {
            Integer::Small(small) => Ok(small),
            Integer::Large(_) => Err(StatementError::unsupported("so long a random number")),
        };
        let drawn = numbers.integer(at(low)?, at(high)?)?;
        Ok(Some(Number::new(drawn, places).into()))
    })
}

fn finite<'v>(value: &'v Value, bound: &str) -> Outcome<&'v Number> {
    match value {
        Value::Finite(number) => Ok(number),
        Value::NaN => Err(invalid(format!("{bound} bound cannot be NaN"))),
        _ => Err(invalid(format!("{bound} bound cannot be infinity"))),
    }
}

/// `array_shuffle`, which keeps the bounds, and `array_sample`: elements of the first dimension, whole, each at most once.
fn drawn_elements(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let mut numbers = Numbers::new();
    let counts = arguments.get(1).map(|counts| counts.as_primitive::<Int32Type>());
    arrays(call, arguments[0].len(), |elements, row| {
        let Some(mut parts) = array_at(elements, &arguments[0], row)? else { return Ok(None) };
        let count = parts.bounds.first().map_or(0, |bound| bound.count);
        let wanted = match counts {
            Some(counts) if counts.is_null(row) => return Ok(None),
            Some(counts) => counts.value(row),
            None => count,
        };
        if !(0..=count).contains(&wanted) {
            return Err(invalid(format!("sample size must be between 0 and {count}")));
        }
        let (whole, wanted) = (parts.elements.len() / count.max(1) as usize, wanted as usize);
        let mut slices: Vec<_> = parts.elements.chunks(whole.max(1)).map(<[_]>::to_vec).collect();
        for at in 0..wanted {
            let other = numbers.integer(at as i128, slices.len() as i128 - 1)?;
            slices.swap(at, other as usize);
        }
        slices.truncate(wanted);
        parts.elements = slices.concat();
        match (parts.bounds.first_mut(), wanted) {
            (_, 0) => parts.bounds.clear(),
            (Some(bound), _) if counts.is_some() => {
                (bound.count, bound.lower) = (wanted as i32, 1);
            }
            _ => {}
        }
        Ok(Some(parts))
    })
}

/// Numbers that nobody foresees, each a hash of its place under keys of the system's.
struct Numbers {
    keys: RandomState,
    place: u64,
}

impl Numbers {
    fn new() -> Self {
        Self { keys: RandomState::new(), place: 0 }
    }

    fn next(&mut self) -> u64 {
        self.place += 1;
        self.keys.hash_one(self.place)
    }

    /// From 0 to 1, without 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 12) as f64 / (1_u64 << 52) as f64
    }

    /// From one integer to another, each as likely.
    fn integer(&mut self, low: i128, high: i128) -> Outcome<i128> {
        if low > high {
            return Err(invalid("lower bound must be less than or equal to upper bound"));
        }
        let count = high.wrapping_sub(low).cast_unsigned().wrapping_add(1);
        let drawn = u128::from(self.next()) << 64 | u128::from(self.next());
        // As many bits more than the count has that no number is likelier in any way that can be seen.
        let place = if count == 0 { drawn } else { drawn % count };
        Ok(low.wrapping_add_unsigned(place))
    }

    /// Around 0, as many as the normal distribution has with a deviation of 1.
    fn normal(&mut self) -> f64 {
        let (size, angle) = (1.0 - self.share(), self.share());
        (-2.0 * size.ln()).sqrt() * (std::f64::consts::TAU * angle).sin()
    }

    /// Of version 7: milliseconds of the moment, 4096ths of them, and the rest by chance.
    fn uuid_of(&mut self, nanoseconds: i64) -> [u8; 16] {
        let mut bytes = self.uuid();
        let milliseconds = nanoseconds.div_euclid(1_000_000);
        let parts = nanoseconds.rem_euclid(1_000_000) * 4096 / 1_000_000;
        bytes[..6].copy_from_slice(&milliseconds.to_be_bytes()[2..]);
        bytes[6..8].copy_from_slice(&(parts as u16 | 0x7000).to_be_bytes());
        bytes
    }

    /// Of version 4.
    fn uuid(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next().to_be_bytes());
        bytes[8..].copy_from_slice(&self.next().to_be_bytes());
        bytes[6] = bytes[6] & 0x0F | 0x40;
        bytes[8] = bytes[8] & 0x3F | 0x80;
        bytes
    }
}
