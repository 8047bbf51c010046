//! The steps of aggregates as functions that a statement calls: `float8_accum` and its kin, `booland_statefunc`.
//!
//! A state is an array of floats: how many values there were, their sum, the squares of their distances from the average; of
//! pairs the same for either, and the products.
//!
//! Source: `float8_accum`, `float8_combine`, `float8_regr_accum`, `float8_regr_combine`, `check_float8_array` in
//! `src/backend/utils/adt/float.c`, `booland_statefunc` in `bool.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, Float64Array};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::scalar::ScalarValue;

use super::floating::Moments;
use super::pairs::PairMoments;
use crate::error::{SqlState, StatementError};
use crate::functions::arrays::array_at;
use crate::functions::arrays::value::{ArrayParts, ElementType};
use crate::functions::rows::{Outcome, two};
use crate::functions::{Implementation, KernelCall};

pub(crate) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "float8_accum" | "float4_accum" => |call, arguments| of_states(call, arguments, 3),
        "float8_combine" => |call, arguments| of_states(call, arguments, 3),
        "float8_regr_accum" | "float8_regr_combine" => {
            |call, arguments| of_states(call, arguments, 6)
        }
        "booland_statefunc" => |_, arguments| two(arguments, |a: bool, b: bool| Ok(a && b)),
        "boolor_statefunc" => |_, arguments| two(arguments, |a: bool, b: bool| Ok(a || b)),
        _ => return None,
    }))
}

/// The states after a step, each of so many parts; NULL where an argument is.
fn of_states(call: &KernelCall, arguments: &[ArrayRef], parts: usize) -> Outcome<ArrayRef> {
    let elements = ElementType::of_array(&call.catalog, call.result)?;
    let mut found = BinaryBuilder::new();
    for row in 0..arguments[0].len() {
        if arguments.iter().any(|argument| argument.is_null(row)) {
            found.append_null();
            continue;
        }
        let state = |at: usize| state(call, &elements, (&arguments[at], row), parts);
        let first = state(0)?;
        let number = |at: usize| float_at(&arguments[at], row);
        let next = match &*call.key {
            "float8_combine" => combined(&first, &state(1)?)?,
            "float8_regr_combine" => pairs_combined(&first, &state(1)?)?,
            "float8_regr_accum" => {
                let mut moments = PairMoments::of(&first);
                moments.add(number(1), number(2))?;
                moments.parts().to_vec()
            }
            _ => {
                let mut moments = Moments::of(&first);
                moments.add(number(1))?;
                moments.parts().to_vec()
            }
        };
        let column: ArrayRef = Arc::new(Float64Array::from(next));
        let next = (0..column.len()).map(|at| elements.element(&column, at));
        let next = ArrayParts::of(next.collect::<Outcome<Vec<_>>>()?);
        found.append_value(next.payload(&elements)?);
    }
    Ok(Arc::new(found.finish()))
}

fn float_at(array: &ArrayRef, row: usize) -> f64 {
    match array.data_type() {
        DataType::Float32 => array.as_primitive::<Float32Type>().value(row).into(),
        _ => array.as_primitive::<Float64Type>().value(row),
    }
}

fn combined(first: &[f64], second: &[f64]) -> Outcome<Vec<f64>> {
    let mut moments = Moments::of(first);
    moments.merge(Moments::of(second))?;
    Ok(moments.parts().to_vec())
}

fn pairs_combined(first: &[f64], second: &[f64]) -> Outcome<Vec<f64>> {
    let mut moments = PairMoments::of(first);
    moments.merge(PairMoments::of(second))?;
    Ok(moments.parts().to_vec())
}

/// The parts of a state.
fn state(
    call: &KernelCall,
    elements: &ElementType<'_>,
    (column, row): (&ArrayRef, usize),
    parts: usize,
) -> Outcome<Vec<f64>> {
    let refused = || {
        let message = format!("{}: expected {parts}-element float8 array", call.key);
        StatementError::new(SqlState("XX000"), message)
    };
    let given = array_at(elements, column, row)?.ok_or_else(refused)?;
    if given.bounds.len() != 1 || given.elements.len() != parts {
        return Err(refused());
    }
    let mut found = Vec::with_capacity(parts);
    for element in &given.elements {
        match elements.value(element.as_deref())? {
            ScalarValue::Float64(Some(number)) => found.push(number),
            _ => return Err(refused()),
        }
    }
    // No state that an aggregate makes.
    match found.first() {
        Some(count) if *count >= 0.0 => Ok(found),
        _ => Err(StatementError::unsupported("a state of fewer values than none")),
    }
}
