//! Elements and slices by their subscripts.
//!
//! Source: `array_get_element` and `array_get_slice` in `src/backend/utils/adt/arrayfuncs.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef};
use arrow::datatypes::Int32Type;
use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::super::integers::numbers;
use super::super::keys::{payloads, strings};
use super::super::rows::{Made, Outcome};
use super::super::text_form::scalar_of_payload;
use super::super::{KernelCall, call_kernel};
use super::value::{ArrayParts, Bound, unexpected};
use super::{array_at, elements_of};
use crate::catalog::Catalog;
use crate::coerce::carrier_of;
use crate::error::StatementError;
use crate::typed::Typed;
use crate::types::PgType;

/// The element at these subscripts, the array first.
pub(crate) fn element(catalog: &Arc<Catalog>, arguments: &[Typed], result: PgType) -> Typed {
    let carrier = carrier_of(catalog, result);
    call_kernel(catalog, ("array subscript", element_at), arguments, result, carrier)
}

/// The byte of a `name` at a subscript, counted from 0; names are filled up with zeros.
pub(crate) fn byte_of_name(catalog: &Arc<Catalog>, arguments: &[Typed]) -> Typed {
    let result = PgType::new(oid::CHAR);
    let carrier = carrier_of(catalog, result);
    call_kernel(catalog, ("name subscript", byte_at), arguments, result, carrier)
}

fn byte_at(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    const NAME_BYTES: usize = 64;
    let (names, places) = (strings(&arguments[0]), numbers::<Int32Type>(&arguments[1]));
    let one = |row: usize| {
        let place = (!places.is_null(row)).then(|| usize::try_from(places.value(row)).ok());
        let place = place.flatten().filter(|place| *place < NAME_BYTES && !names.is_null(row));
        match place {
            None => ScalarValue::try_from(&call.carrier).map_err(unexpected),
            Some(place) => {
                let byte = names.value(row).as_bytes().get(place).copied().unwrap_or(0);
                scalar_of_payload(&call.catalog, call.result, &call.carrier, &[byte])
            }
        }
    };
    let values = (0..names.len()).map(one).collect::<Outcome<Vec<_>>>()?;
    match values.is_empty() {
        true => Ok(arrow::array::new_empty_array(&call.carrier)),
        false => ScalarValue::iter_to_array(values).map_err(unexpected),
    }
}

/// The value at a subscript, counted from 0, of a type that is made of a fixed number of others: a coordinate of a point, a corner of a box.
///
/// Source: `array_get_element` in `src/backend/utils/adt/arrayfuncs.c`, PostgreSQL 14 to 18.
pub(crate) fn part_of_fixed(catalog: &Arc<Catalog>, arguments: &[Typed], element: Oid) -> Typed {
    let result = PgType::new(element);
    let carrier = carrier_of(catalog, result);
    call_kernel(catalog, ("fixed subscript", part_at), arguments, result, carrier)
}

fn part_at(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (values, places) = (payloads(&arguments[0]), numbers::<Int32Type>(&arguments[1]));
    let length = call.catalog.type_row(call.result.oid).map(|row| usize::try_from(row.length));
    let Some(Ok(length)) = length else {
        return Err(StatementError::unsupported("a subscript of this type"));
    };
    let one = |row: usize| {
        let place = (!places.is_null(row)).then(|| usize::try_from(places.value(row)).ok());
        let begin = place.flatten().and_then(|place| place.checked_mul(length));
        let value = (!values.is_null(row)).then(|| values.value(row));
        let part = value
            .zip(begin)
            .and_then(|(value, begin)| value.get(begin..begin.checked_add(length)?));
        match part {
            None => ScalarValue::try_from(&call.carrier).map_err(unexpected),
            Some(part) => scalar_of_payload(&call.catalog, call.result, &call.carrier, part),
        }
    };
    let found = (0..values.len()).map(one).collect::<Outcome<Vec<_>>>()?;
    match found.is_empty() {
        true => Ok(arrow::array::new_empty_array(&call.carrier)),
        false => ScalarValue::iter_to_array(found).map_err(unexpected),
    }
}

/// The slice between pairs of subscripts. `given` has for each a `1` where it was written and a `0` where it is the array's own.
pub(crate) fn slice(catalog: &Arc<Catalog>, arguments: &[Typed], given: &str) -> Typed {
    let (result, carrier) = (arguments[0].ty, arguments[0].carrier.clone());
    let key = format!("array slice {given}");
    call_kernel(catalog, (&key, slice_at), arguments, result, carrier)
}

/// The subscripts of a row; `None` if one is NULL.
fn subscripts(columns: &[ArrayRef], row: usize) -> Option<Vec<i32>> {
    let one =
        |column: &ArrayRef| (!column.is_null(row)).then(|| numbers::<Int32Type>(column).value(row));
    columns.iter().map(one).collect()
}

fn element_at(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let elements = elements_of(call, 0)?;
    let one = |row: usize| {
        let parts = array_at(&elements, &arguments[0], row)?;
        let wanted = subscripts(&arguments[1..], row);
        let place =
            parts.as_ref().zip(wanted).and_then(|(parts, wanted)| place(&parts.bounds, &wanted));
        let found = parts.as_ref().zip(place).and_then(|(parts, place)| parts.elements.get(place));
        elements.value(found.and_then(Option::as_deref))
    };
    let values = (0..arguments[0].len()).map(one).collect::<Outcome<Vec<_>>>()?;
    elements.column(values)
}

/// The number of the element, if the array has as many dimensions and reaches so far.
fn place(bounds: &[Bound], wanted: &[i32]) -> Option<usize> {
    if bounds.len() != wanted.len() {
        return None;
    }
    bounds.iter().zip(wanted).try_fold(0, |before, (bound, wanted)| {
        let at = i64::from(*wanted) - i64::from(bound.lower);
        let at = usize::try_from(at).ok().filter(|at| *at < bound.count as usize)?;
        Some(before * bound.count as usize + at)
    })
}

fn slice_at(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let elements = elements_of(call, 0)?;
    let given: Vec<bool> =
        call.key.rsplit(' ').next().unwrap_or_default().bytes().map(|b| b == b'1').collect();
    let one = |row: usize| -> Outcome<Option<Vec<u8>>> {
        let parts = array_at(&elements, &arguments[0], row)?;
        let Some((parts, wanted)) = parts.zip(subscripts(&arguments[1..], row)) else {
            return Ok(None);
        };
        sliced(&parts, &wanted, &given).payload(&elements).map(Some)
    };
    Made::column((0..arguments[0].len()).map(one).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}

/// Empty where the array does not reach. Dimensions without subscripts are whole.
fn sliced(parts: &ArrayParts, wanted: &[i32], given: &[bool]) -> ArrayParts {
    let empty = || ArrayParts::of(Vec::new());
    if parts.bounds.len() * 2 < wanted.len() {
        return empty();
    }
    let mut ranges = Vec::with_capacity(parts.bounds.len());
    for (number, bound) in parts.bounds.iter().enumerate() {
        let at = |place: usize, own: i32| match given.get(place) {
            Some(true) => wanted[place],
            _ => own,
        };
        let (low, high) = (at(number * 2, bound.lower), at(number * 2 + 1, bound.upper()));
        let (low, high) = (low.max(bound.lower), high.min(bound.upper()));
        if low > high {
            return empty();
        }
        ranges.push((low - bound.lower) as usize..(high - bound.lower) as usize + 1);
    }
    let mut places = vec![0];
    for (range, bound) in ranges.iter().zip(&parts.bounds) {
        let inner = |before: usize| range.clone().map(move |at| before * bound.count as usize + at);
        places = places.into_iter().flat_map(inner).collect();
    }
    let bounds = ranges.iter().map(|range| Bound { count: range.len() as i32, lower: 1 }).collect();
    ArrayParts {
        bounds,
        elements: places.into_iter().map(|at| parts.elements[at].clone()).collect(),
    }
}
