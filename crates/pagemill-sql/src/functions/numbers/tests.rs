//! Casts between numbers held against results that a server of PostgreSQL 15 gave; the file and its reader are those of numeric.
//!
//! Invariant: errors are compared by their words.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, Float32Array, Float64Array};
use arrow::datatypes::{Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use pagemill_types::input::numeric::read_numeric;
use pagemill_types::numeric::write_numeric;

use super::*;

/// A cast of one value, printed.
pub(crate) fn compute(cast: &str, text: &str) -> Result<String, StatementError> {
    match cast {
        "int2" => printed::<Int16Type>(&integers::<Int16Type>(&numeric(text))?),
        "int4" => printed::<Int32Type>(&integers::<Int32Type>(&numeric(text))?),
        "int8" => printed::<Int64Type>(&integers::<Int64Type>(&numeric(text))?),
        "float8" => {
            Ok(float_text(numbers::<Float64Type>(&to_doubles(&numeric(text))?).value(0).into()))
        }
        "float4" => Ok(float_text(
            Float4(numbers::<Float32Type>(&to_floats(&numeric(text))?).value(0)).into(),
        )),
        "f8n" => {
            let array: ArrayRef =
                Arc::new(Float64Array::from(vec![text.parse::<f64>().expect(text)]));
            numeric_text(&float_to_numeric::<Float64Type>(&array, 15)?)
        }
        "f4n" => {
            let array: ArrayRef =
                Arc::new(Float32Array::from(vec![text.parse::<f32>().expect(text)]));
            numeric_text(&float_to_numeric::<Float32Type>(&array, 6)?)
        }
        other => panic!("{other} is no operation"),
    }
}

fn numeric(text: &str) -> ArrayRef {
    let mut payload = Vec::new();
    read_numeric(text.as_bytes(), -1, &mut payload).expect(text);
    Arc::new(BinaryArray::from(vec![&payload[..]]))
}

fn numeric_text(array: &ArrayRef) -> Result<String, StatementError> {
    let mut text = Vec::new();
    write_numeric(crate::functions::keys::payloads(array).value(0), &mut text).expect("whole");
    Ok(String::from_utf8(text).expect("digits"))
}

fn printed<T: PgInteger>(array: &ArrayRef) -> Result<String, StatementError>
where
    T::Native: std::fmt::Display,
{
    Ok(numbers::<T>(array).value(0).to_string())
}

struct Float4(f32);

/// A float as the server prints it.
enum Printable {
    Double(f64),
    Float(f32),
}

impl From<f64> for Printable {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}

impl From<Float4> for Printable {
    fn from(value: Float4) -> Self {
        Self::Float(value.0)
    }
}

fn float_text(value: Printable) -> String {
    let mut text = Vec::new();
    match value {
        Printable::Double(value) => {
            pagemill_types::float::write_float8(&value.to_le_bytes(), &mut text)
                .expect("eight bytes");
        }
        Printable::Float(value) => {
            pagemill_types::float::write_float4(&value.to_le_bytes(), &mut text)
                .expect("four bytes");
        }
    }
    String::from_utf8(text).expect("digits")
}

#[test]
fn floats_become_integers_by_the_even_one() {
    let doubles = |values: &[f64]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
    let rounded =
        rounded::<Float64Type, Int32Type>(&doubles(&[0.5, 1.5, 2.5, -2.5, 2_147_483_647.4]));
    let rounded = rounded.expect("all have room");
    assert_eq!(numbers::<Int32Type>(&rounded).values(), &[0, 2, 2, -2, i32::MAX]);
    for none in [2_147_483_647.5, -2_147_483_648.6, f64::NAN, f64::INFINITY] {
        let error =
            super::rounded::<Float64Type, Int32Type>(&doubles(&[none])).expect_err("no room");
        assert_eq!(error.message, "integer out of range");
    }
    let error = super::rounded::<Float64Type, Int64Type>(&doubles(&[9_223_372_036_854_775_807.0]));
    assert_eq!(error.expect_err("2^63 has no room").message, "bigint out of range");
}

#[test]
fn a_double_that_a_float_has_no_room_for_is_refused() {
    let narrow = |value: f64| narrowed(&(Arc::new(Float64Array::from(vec![value])) as ArrayRef));
    assert_eq!(narrow(1e300).expect_err("too large").message, "value out of range: overflow");
    assert_eq!(narrow(1e-300).expect_err("too small").message, "value out of range: underflow");
    assert_eq!(
        numbers::<Float32Type>(&narrow(f64::INFINITY).expect("infinite")).value(0),
        f32::INFINITY
    );
    assert!(!narrow(0.1).expect("in range").is_null(0));
}
