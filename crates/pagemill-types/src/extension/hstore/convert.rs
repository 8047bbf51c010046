//! `hstore` made of texts and arrays, and turned into arrays.
//!
//! Invariant: pairs lie in the order of keys, each key once; an empty `hstore` is an array without dimensions.
//! Source: `contrib/hstore/hstore_io.c` and `hstore_op.c`, PostgreSQL 14 to 18.

use super::functions::{array_at, result};
use super::layout::{Pair, unique};
use super::{Argument, CallError, Called, Value, hstore_at, text_at};
use crate::array::Dimension;
use crate::extension::arrays::Array;
use crate::extension::call::Letters;

const ARRAY_SUBSCRIPT_ERROR: &str = "2202E";
const NULL_VALUE_NOT_ALLOWED: &str = "22004";

/// `hstore(key, value)`: NULL where the key is.
pub(super) fn from_text(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    if is_null(arguments, 0) {
        return Ok(Value::Null);
    }
    let key = text_at(arguments, 0)?;
    let value = if is_null(arguments, 1) { None } else { Some(text_at(arguments, 1)?) };
    result(&[(key, value)])
}

/// `hstore(keys, values)`: NULL where the keys are; all values are NULL where the second array is.
pub(super) fn from_arrays(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    if is_null(arguments, 0) {
        return Ok(Value::Null);
    }
    let keys = array_at(arguments, 0)?;
    check_one_dimension(&keys)?;
    if is_null(arguments, 1) {
        return result_of(keys.elements.iter().map(|key| (key, &None)));
    }
    let values = array_at(arguments, 1)?;
    check_one_dimension(&values)?;
    if keys.dimensions != values.dimensions {
        return Err(CallError::new(ARRAY_SUBSCRIPT_ERROR, "arrays must have same bounds"));
    }
    result_of(keys.elements.iter().zip(&values.elements))
}

/// `hstore(array)`: keys and values by turns, or in two columns.
pub(super) fn from_array(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let array = array_at(arguments, 0)?;
    let refused = match array.dimensions.as_slice() {
        [] => None,
        [one] => (one.len % 2 != 0).then_some("array must have even number of elements"),
        [_, columns] => (columns.len != 2).then_some("array must have two columns"),
        _ => Some("wrong number of array subscripts"),
    };
    match refused {
        Some(message) => Err(CallError::new(ARRAY_SUBSCRIPT_ERROR, message)),
        None => result_of(array.elements.as_chunks().0.iter().map(|[key, value]| (key, value))),
    }
}

fn is_null(arguments: &[Argument<'_>], number: usize) -> bool {
    matches!(arguments.get(number), Some(Argument::Null))
}

fn check_one_dimension(array: &Array<Vec<u8>>) -> Result<(), CallError> {
    match array.dimensions.len() {
        0 | 1 => Ok(()),
        _ => Err(CallError::new(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts")),
    }
}

type Element = Option<Vec<u8>>;

fn result_of<'a>(pairs: impl Iterator<Item = (&'a Element, &'a Element)>) -> Called {
    let pair = |(key, value): (&'a Element, &'a Element)| match key {
        Some(key) => Ok((key.as_slice(), value.as_deref())),
        None => {
            let message = "null value not allowed for hstore key";
            Err(CallError::new(NULL_VALUE_NOT_ALLOWED, message))
        }
    };
    let pairs: Vec<Pair<'a>> = pairs.map(pair).collect::<Result<_, _>>()?;
    result(&unique(pairs))
}

pub(super) fn akeys(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let keys = hstore_at(arguments, 0)?.pairs()?.into_iter().map(|(key, _)| Some(key));
    Ok(Value::Payload(Array::of_one_dimension(keys.collect()).texts_payload()))
}

pub(super) fn avals(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let values = hstore_at(arguments, 0)?.pairs()?.into_iter().map(|(_, value)| value);
    Ok(Value::Payload(Array::of_one_dimension(values.collect()).texts_payload()))
}

pub(super) fn to_array(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let elements = turns(&hstore_at(arguments, 0)?.pairs()?);
    Ok(Value::Payload(Array::of_one_dimension(elements).texts_payload()))
}

pub(super) fn to_matrix(_: &dyn Letters, arguments: &[Argument<'_>]) -> Called {
    let pairs = hstore_at(arguments, 0)?.pairs()?;
    let dimensions = [pairs.len(), 2].map(|len| Dimension { len, lower: 1 }).to_vec();
    Ok(Value::Payload(Array { dimensions, elements: turns(&pairs) }.texts_payload()))
}

/// Keys and values by turns.
fn turns<'v>(pairs: &[Pair<'v>]) -> Vec<Option<&'v [u8]>> {
    pairs.iter().flat_map(|(key, value)| [Some(*key), *value]).collect()
}
