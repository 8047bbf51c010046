//! The constructors: `int4range(1, 5, '[]')`, `int4multirange(range, …)`, `multirange(range)` and casts to multiranges.
//!
//! Invariant: a bound that is NULL is none; a range in a multirange is not.
//!
//! Source: `range_constructor2`, `range_constructor3` and `range_parse_flags` in `src/backend/utils/adt/rangetypes.c`,
//! `multirange_constructor0` and its kin in `multirangetypes.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef};
use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;
use pagemill_types::input::range::{Bound, Bounds};

use super::super::arrays::array_at;
use super::super::arrays::value::{ArrayParts, ElementType};
use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::{Build, Implementation, Kernel, KernelCall};
use super::check_sort;
use super::kind::{RangeKind, failed};
use crate::catalog::TypeRow;
use crate::error::{Result, SqlState, StatementError};
use crate::typed::Typed;

pub(super) fn kernel(key: &str) -> Option<Kernel> {
    Some(match key {
        "range_constructor2" | "range_constructor3" => of_bounds,
        "multirange_constructor1" => of_range,
        "multirange_constructor2" => of_ranges,
        _ => return None,
    })
}

pub(super) fn find(key: &str) -> Option<Implementation> {
    (key == "multirange_constructor0").then_some(Implementation::Build(of_nothing))
}

fn of_nothing(build: &Build<'_>) -> Result<Typed> {
    let payload = RangeKind::new(build.catalog, build.result)?.payload(&[])?;
    let value = ScalarValue::Binary(Some(payload));
    Ok(build.done(Expr::Literal(value, None), DataType::Binary))
}

/// Which bounds belong to the range.
fn inclusion(arguments: &[ArrayRef], row: usize) -> Outcome<(bool, bool)> {
    let Some(flags) = arguments.get(2) else { return Ok((true, false)) };
    if flags.is_null(row) {
        let message = "range constructor flags argument must not be null";
        return Err(StatementError::new(SqlState("22000"), message));
    }
    match strings(flags).value(row) {
        "[]" => Ok((true, true)),
        "[)" => Ok((true, false)),
        "(]" => Ok((false, true)),
        "()" => Ok((false, false)),
        _ => {
            let hint = "Valid values are \"[]\", \"[)\", \"(]\", and \"()\".";
            Err(StatementError::new(SqlState::SYNTAX_ERROR, "invalid range bound flags")
                .with_hint(hint))
        }
    }
}

fn of_bounds(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let kind = RangeKind::new(&call.catalog, call.result)?;
    let one = |row: usize| -> Outcome<Option<Vec<u8>>> {
        let (has_lower, has_upper) = inclusion(arguments, row)?;
        let bound = |place: usize, inclusive, is_lower| -> Outcome<Bound> {
            Ok(Bound { value: kind.element(&arguments[place], row)?, inclusive, is_lower })
        };
        let bounds =
            Bounds { lower: bound(0, has_lower, true)?, upper: bound(1, has_upper, false)? };
        let made: Vec<Bounds> = bounds.made(kind.range()).map_err(failed)?.into_iter().collect();
        kind.payload(&made).map(Some)
    };
    Vec::<u8>::column((0..arguments[0].len()).map(one).collect::<Outcome<_>>()?)
}

fn of_range(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let mut range = RangeKind::new(&call.catalog, call.arguments[0])?;
    let result = RangeKind::new(&call.catalog, call.result)?;
    let mut one = |row: usize| -> Outcome<Option<Vec<u8>>> {
        let ranges = range.at(&arguments[0], row)?;
        ranges.map(|ranges| result.payload(&ranges)).transpose()
    };
    Vec::<u8>::column((0..arguments[0].len()).map(&mut one).collect::<Outcome<_>>()?)
}

/// Of ranges one by one, or of an array of them.
fn of_ranges(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (base, _) = call.catalog.base_type(call.arguments[0].oid, -1);
    match call.catalog.type_row(base).is_some_and(TypeRow::is_array) {
        true => of_array(call, arguments),
        false => of_each(call, arguments),
    }
}

fn of_each(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let mut range = RangeKind::new(&call.catalog, call.arguments[0])?;
    let result = RangeKind::new(&call.catalog, call.result)?;
    let mut one = |row: usize| -> Outcome<Option<Vec<u8>>> {
        let mut ranges = Vec::with_capacity(arguments.len());
        for argument in arguments {
            ranges.extend(range.at(argument, row)?.ok_or_else(has_null)?);
        }
        joined(&result, ranges, arguments.len()).map(Some)
    };
    Vec::<u8>::column((0..arguments[0].len()).map(&mut one).collect::<Outcome<_>>()?)
}

fn of_array(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let elements = ElementType::of_array(&call.catalog, call.arguments[0])?;
    let mut range = RangeKind::new(&call.catalog, elements.ty)?;
    let result = RangeKind::new(&call.catalog, call.result)?;
    let mut one = |row: usize| -> Outcome<Option<Vec<u8>>> {
        let Some(ArrayParts { bounds, elements }) = array_at(&elements, &arguments[0], row)? else {
            return Ok(None);
        };
        if bounds.len() > 1 {
            let message = "multiranges cannot be constructed from multidimensional arrays";
            return Err(StatementError::new(SqlState::CARDINALITY_VIOLATION, message));
        }
        let mut ranges = Vec::with_capacity(elements.len());
        for element in &elements {
            ranges.extend(range.read(element.as_deref().ok_or_else(has_null)?)?);
        }
        joined(&result, ranges, elements.len()).map(Some)
    };
    Vec::<u8>::column((0..arguments[0].len()).map(&mut one).collect::<Outcome<_>>()?)
}

/// The payload of the multirange of so many ranges, of which the empty ones are left out.
fn joined(result: &RangeKind<'_>, ranges: Vec<Bounds>, count: usize) -> Outcome<Vec<u8>> {
    check_sort(result, &ranges, count)?;
    result.payload(&result.range().merged(ranges).map_err(failed)?)
}

#[cold]
fn has_null() -> StatementError {
    StatementError::new(SqlState("22004"), "multirange values cannot contain null members")
}
