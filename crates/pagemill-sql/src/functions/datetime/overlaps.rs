//! `OVERLAPS`: whether two stretches of time have a moment in common.
//!
//! Source: `overlaps_timestamp`, `overlaps_time` in `src/backend/utils/adt/timestamp.c` and `date.c`, the functions in SQL in
//! `src/include/catalog/pg_proc.dat`, PostgreSQL 14 to 18.

use arrow::array::{Array, ArrayRef, Int64Array};

use super::super::rows::{Made, Outcome, Plain};

pub(super) fn plain(key: &str) -> Option<Plain> {
    matches!(key, "overlaps_timestamp" | "overlaps_time").then_some(overlaps as Plain)
}

fn overlaps(arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let column = |at: usize| -> &Int64Array {
        arguments[at].as_any().downcast_ref().expect("a time is a number") // infallible: types were settled
    };
    let columns = [column(0), column(1), column(2), column(3)];
    let value = |at: usize, row: usize| {
        let column = columns[at];
        (!column.is_null(row)).then(|| column.value(row))
    };
    let one = |row: usize| {
        let (first, second) =
            (stretch(value(0, row), value(1, row)), stretch(value(2, row), value(3, row)));
        first.zip(second).and_then(|(first, second)| have_in_common(first, second))
    };
    Made::column((0..arguments[0].len()).map(one).collect::<Vec<Option<bool>>>())
}

/// Start and perhaps end, the earlier one first; one alone is the start.
fn stretch(start: Option<i64>, end: Option<i64>) -> Option<(i64, Option<i64>)> {
    match (start, end) {
        (None, None) => None,
        (Some(start), Some(end)) => Some((start.min(end), Some(start.max(end)))),
        (Some(only), None) | (None, Some(only)) => Some((only, None)),
    }
}

fn have_in_common(first: (i64, Option<i64>), second: (i64, Option<i64>)) -> Option<bool> {
    let (earlier, later) = if first.0 <= second.0 { (first, second) } else { (second, first) };
    if first.0 == second.0 {
        return first.1.zip(second.1).map(|_| true);
    }
    match earlier.1? > later.0 {
        true => Some(true),
        false => later.1.map(|_| false),
    }
}
