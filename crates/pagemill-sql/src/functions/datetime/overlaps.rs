//! `OVERLAPS`: whether two stretches of time have a moment in common.
//!
//! Source: `overlaps_timestamp`, `overlaps_time`, `overlaps_timetz`, `timetz_cmp_internal` in
//! `src/backend/utils/adt/timestamp.c` and `date.c`, the functions in SQL in `src/include/catalog/pg_proc.dat`, PostgreSQL 14
//! to 18.

use arrow::array::{Array, ArrayRef, Int64Array};

use super::super::keys::payloads;
use super::super::rows::{Made, Outcome, Plain};
use super::zoned_times::place;

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        "overlaps_timestamp" | "overlaps_time" => overlaps,
        "overlaps_timetz" => overlaps_with_zones,
        _ => return None,
    })
}

fn overlaps(arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let column = |at: usize| -> &Int64Array {
        arguments[at].as_any().downcast_ref().expect("a time is a number") // infallible: types were settled
    };
    let columns = [column(0), column(1), column(2), column(3)];
    each_row(arguments, |at, row| columns[at].value(row))
}

/// Times with zones are in the order of what they are in Greenwich, and if that is the same of their zones.
fn overlaps_with_zones(arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let columns = [0, 1, 2, 3].map(|at| payloads(&arguments[at]));
    // What is damaged is told first.
    for column in &columns {
        column.iter().flatten().try_for_each(|payload| place(payload).map(drop))?;
    }
    each_row(arguments, |at, row| place(columns[at].value(row)).ok())
}

fn each_row<T: Ord + Copy>(
    arguments: &[ArrayRef],
    value: impl Fn(usize, usize) -> T,
) -> Outcome<ArrayRef> {
    let value = |at: usize, row: usize| (!arguments[at].is_null(row)).then(|| value(at, row));
    let one = |row: usize| {
        let (first, second) =
            (stretch(value(0, row), value(1, row)), stretch(value(2, row), value(3, row)));
        first.zip(second).and_then(|(first, second)| have_in_common(first, second))
    };
    Made::column((0..arguments[0].len()).map(one).collect::<Vec<Option<bool>>>())
}

/// Start and perhaps end, the earlier one first; one alone is the start.
fn stretch<T: Ord + Copy>(start: Option<T>, end: Option<T>) -> Option<(T, Option<T>)> {
    match (start, end) {
        (None, None) => None,
        (Some(start), Some(end)) => Some((start.min(end), Some(start.max(end)))),
        (Some(only), None) | (None, Some(only)) => Some((only, None)),
    }
}

fn have_in_common<T: Ord + Copy>(first: (T, Option<T>), second: (T, Option<T>)) -> Option<bool> {
    let (earlier, later) = if first.0 <= second.0 { (first, second) } else { (second, first) };
    if first.0 == second.0 {
        return first.1.zip(second.1).map(|_| true);
    }
    match earlier.1? > later.0 {
        true => Some(true),
        false => later.1.map(|_| false),
    }
}
