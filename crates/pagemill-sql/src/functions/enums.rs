//! `enum_first`, `enum_last` and `enum_range`: the values of an enum type in their order.
//!
//! They look at the type of their argument, whose value may be NULL. A value is carried as its place in the order.
//!
//! Source: `enum_first`, `enum_last`, `enum_range_internal` in `src/backend/utils/adt/enum.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::{DataType, Int32Type};

use super::arrays::value::{ArrayParts, ElementType};
use super::rows::{Made, Outcome};
use super::{Implementation, KernelCall};
use crate::error::{SqlState, StatementError};
use crate::types::PgType;

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(match key {
        "enum_first" => Implementation::Kernel(|call, a| end(call, a, false)),
        "enum_last" => Implementation::Kernel(|call, a| end(call, a, true)),
        "enum_range_bounds" | "enum_range_all" => Implementation::Kernel(ranges),
        _ => return None,
    })
}

/// How many values the type of the first argument has.
fn count(call: &KernelCall) -> Outcome<(PgType, i32)> {
    let ty = call.arguments[0];
    let base = call.catalog.base_type(ty.oid, -1).0;
    if call.catalog.type_row(base).is_none_or(|row| row.kind != b'e') {
        return Err(StatementError::unsupported("the values of a type that is no enum"));
    }
    let order = call.catalog.enum_order(base)?;
    // Places are numbered without gaps.
    let mut count = 0;
    while order.label(count).is_ok() {
        count += 1;
    }
    Ok((PgType::new(base), count))
}

/// The first or the last value.
fn end(call: &KernelCall, arguments: &[ArrayRef], is_last: bool) -> Outcome<ArrayRef> {
    let (ty, count) = count(call)?;
    if count == 0 {
        let name = call.catalog.type_name(ty.oid);
        let message = format!("enum {name} contains no values");
        return Err(StatementError::new(SqlState("55000"), message));
    }
    let place = if is_last { count - 1 } else { 0 };
    Made::column(vec![Some(place); arguments[0].len()])
}

/// The values between two, both of them included; NULL stands for the first or the last.
fn ranges(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (_, count) = count(call)?;
    let elements = ElementType::of_array(&call.catalog, call.result)?;
    let order = call.catalog.enum_order(call.arguments[0].oid)?;
    let has_bounds = &*call.key == "enum_range_bounds";
    let bound = |number: usize, row: usize| {
        let column = arguments.get(number).filter(|column| has_bounds && !column.is_null(row))?;
        debug_assert_eq!(column.data_type(), &DataType::Int32, "an enum is carried as a place");
        Some(column.as_primitive::<Int32Type>().value(row))
    };
    let one = |row: usize| -> Outcome<Option<Vec<u8>>> {
        let first = bound(0, row).unwrap_or(0); // default: from the first on
        let last = bound(1, row).unwrap_or(count - 1); // default: up to the last
        // The server stops at the upper bound before it has come to the lower one.
        let label = |place: i32| -> Outcome<Option<Vec<u8>>> {
            Ok(Some(order.label(place)?.0.to_le_bytes().to_vec()))
        };
        let labels = (first..=last).map(label);
        let labels = labels.collect::<Outcome<Vec<Option<Vec<u8>>>>>()?;
        ArrayParts::of(labels).payload(&elements).map(Some)
    };
    Made::column((0..arguments[0].len()).map(one).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}
