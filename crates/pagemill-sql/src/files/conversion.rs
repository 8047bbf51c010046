//! Arrow's types as PostgreSQL's, and their values as those are carried here.
//!
//! | Arrow | PostgreSQL |
//! | --- | --- |
//! | Boolean; Int8, Int16, UInt8; Int32, UInt16; Int64, UInt32 | boolean; smallint; integer; bigint |
//! | Float32, Float64 | real, double precision |
//! | Decimal128 with places from 0 to its digits | numeric(p,s) |
//! | a dictionary | what its values are |
//! | Utf8 and its larger kin; Binary, FixedSizeBinary | text; bytea, or uuid where the field says so |
//! | Date32, Time32, Time64, Timestamp, that in a time zone | date, time, time, timestamp, timestamptz |
//!
//! Invariant: nothing is rounded: nanoseconds that are no microseconds, and dates past the ends of PostgreSQL's, are refused.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Field, Int64Type, TimeUnit};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::DataFusionError;
use pagemill_types::builtin::oid;

use crate::error::{Result, SqlState, fail};
use crate::types::{OF_ANOTHER_DATABASE, PgType, numeric_modifier};

/// 2000-01-01 in days from 1970-01-01, and in microseconds.
const EPOCH_DAYS: i64 = 10_957;
const EPOCH_MICROS: i64 = 946_684_800_000_000;
/// The first date, and the first after the last, in days from 2000-01-01.
///
/// Source: `IS_VALID_DATE` and `IS_VALID_TIMESTAMP` in `src/include/datatype/timestamp.h`, PostgreSQL 18.
const DATES: std::ops::Range<i64> = -2_451_545..2_145_031_949;
const TIMESTAMPS: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;
const TIMES: std::ops::Range<i64> = 0..86_400_000_000;

/// The type whose values a column has.
pub(super) fn type_of(field: &Field) -> PgType {
    let is_uuid = || {
        Field::metadata(field).get("ARROW:extension:name").is_some_and(|name| name == "arrow.uuid")
    };
    PgType::new(match field.data_type() {
        DataType::Dictionary(_, values) => {
            return type_of(&Field::new(field.name(), (**values).clone(), true));
        }
        DataType::Boolean => oid::BOOL,
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => oid::INT2,
        DataType::UInt16 | DataType::Int32 => oid::INT4,
        DataType::UInt32 | DataType::Int64 => oid::INT8,
        DataType::Float32 => oid::FLOAT4,
        DataType::Float64 => oid::FLOAT8,
        DataType::Decimal128(digits, places) if (0..=*digits as i8).contains(places) => {
            let modifier = numeric_modifier(i32::from(*digits), i32::from(*places));
            return PgType::new(oid::NUMERIC).with_modifier(modifier);
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => oid::TEXT,
        DataType::FixedSizeBinary(16) if is_uuid() => oid::UUID,
        DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_) => oid::BYTEA,
        DataType::Date32 => oid::DATE,
        DataType::Time32(_) | DataType::Time64(_) => oid::TIME,
        DataType::Timestamp(_, None) => oid::TIMESTAMP,
        DataType::Timestamp(_, Some(_)) => oid::TIMESTAMPTZ,
        _ => OF_ANOTHER_DATABASE,
    })
}

/// What carries values of such a type; of one that is not here, NULLs of any.
pub(super) fn carrier(ty: PgType) -> DataType {
    match ty.oid {
        OF_ANOTHER_DATABASE => DataType::Boolean,
        other => crate::types::carrier(other, ty.modifier),
    }
}

/// A batch with the carriers of these types.
pub(super) fn converted(batch: &RecordBatch, types: &[PgType]) -> Result<RecordBatch> {
    let schema = batch.schema();
    let (mut arrays, mut fields) = (Vec::new(), Vec::new());
    for ((array, field), ty) in batch.columns().iter().zip(schema.fields()).zip(types) {
        let array = column(array, *ty).map_err(|error| match error {
            crate::Error::Statement(mut error) => {
                error.message = format!("column \"{}\": {}", field.name(), error.message);
                error.into()
            }
            other => other,
        })?;
        fields.push(Field::new(field.name(), carrier(*ty), true));
        arrays.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let schema = Arc::new(arrow::datatypes::Schema::new(fields));
    Ok(RecordBatch::try_new_with_options(schema, arrays, &options)
        .map_err(DataFusionError::from)?)
}

fn column(array: &ArrayRef, ty: PgType) -> Result<ArrayRef> {
    match array.data_type() {
        _ if ty.oid == OF_ANOTHER_DATABASE => Ok(new_null_array(&carrier(ty), array.len())),
        DataType::Dictionary(_, values) => {
            column(&cast(array, values).map_err(DataFusionError::from)?, ty)
        }
        DataType::Date32 => dates(array),
        DataType::Timestamp(unit, _) => {
            let scale = (*unit, EPOCH_MICROS, TIMESTAMPS);
            micros(array, scale)
        }
        DataType::Time32(unit) | DataType::Time64(unit) => micros(array, (*unit, 0, TIMES)),
        _ => {
            let found = cast(array, &carrier(ty)).map_err(DataFusionError::from)?;
            if ty.oid == oid::TEXT {
                refuse_zero_bytes(&found)?;
            }
            Ok(found)
        }
    }
}

fn dates(array: &ArrayRef) -> Result<ArrayRef> {
    let days = array.as_primitive::<Date32Type>();
    let day = |day: i32| match i64::from(day) - EPOCH_DAYS {
        found if DATES.contains(&found) => Ok(found as i32),
        _ => fail(SqlState::DATETIME_OVERFLOW, "date out of range"),
    };
    let days = days.iter().map(|found| found.map(day).transpose());
    Ok(Arc::new(days.collect::<Result<Int32Array>>()?))
}

/// Moments or times in microseconds from PostgreSQL's beginning.
fn micros(
    array: &ArrayRef,
    (unit, epoch, valid): (TimeUnit, i64, std::ops::Range<i64>),
) -> Result<ArrayRef> {
    let integers = match array.data_type() {
        DataType::Time32(_) => {
            cast(array, &DataType::Int32).and_then(|a| cast(&a, &DataType::Int64))
        }
        _ => cast(array, &DataType::Int64),
    };
    let integers = integers.map_err(DataFusionError::from)?;
    let one = |value: i64| {
        let micros = match unit {
            TimeUnit::Second => value.checked_mul(1_000_000),
            TimeUnit::Millisecond => value.checked_mul(1_000),
            TimeUnit::Microsecond => Some(value),
            TimeUnit::Nanosecond if value % 1_000 == 0 => Some(value / 1_000),
            TimeUnit::Nanosecond => {
                return fail(SqlState::DATETIME_OVERFLOW, "a nanosecond that is no microsecond");
            }
        };
        match micros.and_then(|micros| micros.checked_sub(epoch)) {
            Some(found) if valid.contains(&found) => Ok(found),
            _ => fail(SqlState::DATETIME_OVERFLOW, "timestamp out of range"),
        }
    };
    let found = integers.as_primitive::<Int64Type>().iter();
    let found = found.map(|value| value.map(one).transpose());
    Ok(Arc::new(found.collect::<Result<Int64Array>>()?))
}

fn refuse_zero_bytes(array: &ArrayRef) -> Result<()> {
    match array.as_string::<i32>().iter().flatten().any(|text| text.contains('\0')) {
        true => fail(SqlState("22021"), "invalid byte sequence for encoding \"UTF8\": 0x00"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Date32Array, Time32MillisecondArray, TimestampNanosecondArray};

    use super::*;

    fn first(array: ArrayRef) -> Result<i64> {
        let ty = type_of(&Field::new("c", array.data_type().clone(), true));
        let found = cast(&column(&array, ty)?, &DataType::Int64).unwrap();
        Ok(found.as_primitive::<Int64Type>().value(0))
    }

    #[test]
    fn moments_keep_their_microseconds() {
        assert_eq!(first(Arc::new(Date32Array::from(vec![10_957]))).unwrap(), 0);
        assert!(first(Arc::new(Date32Array::from(vec![i32::MIN]))).is_err());
        let at = |nanos| first(Arc::new(TimestampNanosecondArray::from(vec![nanos])));
        assert_eq!(at(946_684_800_000_001_000).unwrap(), 1);
        assert!(at(946_684_800_000_001_001).is_err());
        let time = |millis| first(Arc::new(Time32MillisecondArray::from(vec![millis])));
        assert_eq!(time(1).unwrap(), 1000);
        assert!(time(86_400_000).is_err());
    }

    #[test]
    fn what_has_no_type_here_is_told() {
        let of = |data_type| type_of(&Field::new("c", data_type, true)).oid;
        assert_eq!(of(DataType::Decimal128(10, 2)), oid::NUMERIC);
        assert_eq!(of(DataType::Decimal128(10, -2)), OF_ANOTHER_DATABASE);
        assert_eq!(of(DataType::UInt64), OF_ANOTHER_DATABASE);
    }
}
