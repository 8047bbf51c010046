//! Shifted and inverted integers, orders of texts by their bytes, and counts of NULLs.
//!
//! Source: `int4shl` and its kin in `src/backend/utils/adt/int.c` and `int8.c`, `text_pattern_lt` in `varlena.c`, `num_nulls` in `misc.c`,
//! PostgreSQL 14 to 18.

use arrow::array::{Array, ArrayRef};

use super::super::rows::{Made, Outcome, Plain, one, two};

pub(super) fn plain(key: &str) -> Option<Plain> {
    Some(match key {
        // Only so many bits of the count are looked at as the machine does.
        "int2shl" => |a| two(a, |x: i16, by: i32| Ok(i32::from(x).wrapping_shl(by as u32) as i16)),
        "int2shr" => |a| two(a, |x: i16, by: i32| Ok(i32::from(x).wrapping_shr(by as u32) as i16)),
        "int4shl" => |a| two(a, |x: i32, by: i32| Ok(x.wrapping_shl(by as u32))),
        "int4shr" => |a| two(a, |x: i32, by: i32| Ok(x.wrapping_shr(by as u32))),
        "int8shl" => |a| two(a, |x: i64, by: i32| Ok(x.wrapping_shl(by as u32))),
        "int8shr" => |a| two(a, |x: i64, by: i32| Ok(x.wrapping_shr(by as u32))),
        "int2not" => |a| one(a, |x: i16| Ok(!x)),
        "int4not" => |a| one(a, |x: i32| Ok(!x)),
        "int8not" => |a| one(a, |x: i64| Ok(!x)),
        "text_pattern_lt" => |a| two(a, |x: &str, y: &str| Ok(x < y)),
        "text_pattern_le" => |a| two(a, |x: &str, y: &str| Ok(x <= y)),
        "text_pattern_gt" => |a| two(a, |x: &str, y: &str| Ok(x > y)),
        "text_pattern_ge" => |a| two(a, |x: &str, y: &str| Ok(x >= y)),
        "bpchar_pattern_lt" => |a| two(a, |x: &str, y: &str| Ok(unpadded(x) < unpadded(y))),
        "bpchar_pattern_le" => |a| two(a, |x: &str, y: &str| Ok(unpadded(x) <= unpadded(y))),
        "bpchar_pattern_gt" => |a| two(a, |x: &str, y: &str| Ok(unpadded(x) > unpadded(y))),
        "bpchar_pattern_ge" => |a| two(a, |x: &str, y: &str| Ok(unpadded(x) >= unpadded(y))),
        "pg_num_nulls" => |a| count(a, true),
        "pg_num_nonnulls" => |a| count(a, false),
        _ => return None,
    })
}

fn unpadded(text: &str) -> &str {
    text.trim_end_matches(' ')
}

fn count(arguments: &[ArrayRef], nulls: bool) -> Outcome<ArrayRef> {
    let rows = arguments.first().map_or(1, |first| first.len());
    let one = |row: usize| {
        let found = arguments.iter().filter(|argument| argument.is_null(row) == nulls).count();
        Some(found as i32)
    };
    Made::column((0..rows).map(one).collect::<Vec<Option<i32>>>())
}
