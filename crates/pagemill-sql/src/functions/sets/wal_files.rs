//! Functions that give one row about WAL files: the segment of one, and the file of a position.
//!
//! Invariant: names of WAL files are told where it is known how WAL goes on.
//!
//! Source: `pg_split_walfile_name` and `pg_walfile_name_offset` in `src/backend/access/transam/xlogfuncs.c`,
//! PostgreSQL 14 to 18.

use arrow::array::ArrayRef;
use datafusion::scalar::ScalarValue;

use super::super::keys::{payloads, strings};
use super::super::numeric::value::Number;
use super::super::numeric::{column, value::Value};
use super::super::rows::Outcome;
use super::super::system::session_facts::{segment_of, wal_file, wal_of};
use super::{Series, SetCall, made, parameter};
use crate::error::{SqlState, StatementError};

/// Digits of a WAL file's name: timeline, log and segment of eight each.
const NAME_DIGITS: usize = 24;

/// The number of the segment and the timeline that a file is of, by its name.
pub(super) fn split(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let name = strings(&arguments[0]).value(row);
    let size = u64::from(call.catalog.database().cluster().control().build.wal_segment_size);
    let invalid = || parameter(&format!("invalid WAL file name \"{name}\""));
    let (timeline, segment) = parts(name, size).ok_or_else(invalid)?;
    let segment = Value::from(Number::new(i128::from(segment), 0));
    let segment = column::build(1, |_| Ok(Some(segment.clone())))?;
    let segment = ScalarValue::try_from_array(&segment, 0)
        .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
    Ok(made(vec![(segment, i64::from(timeline))], |(segment, timeline), out| {
        out[0].scalar(segment)?;
        out[1].int8(timeline);
        Ok(())
    }))
}

fn parts(name: &str, size: u64) -> Option<(u32, u64)> {
    if name.len() != NAME_DIGITS || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let part = |at: usize| u32::from_str_radix(name.get(at..at + 8)?, 16).ok();
    let in_one_log = (1_u64 << 32).checked_div(size)?;
    let (log, within) = (u64::from(part(8)?), u64::from(part(16)?));
    Some((part(0)?, log.wrapping_mul(in_one_log).wrapping_add(within)))
}

/// The file that a position is in, and how far behind its beginning.
pub(super) fn places(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let cluster = call.catalog.database().cluster();
    let (timeline, size) = wal_of(cluster)?;
    let (segment, offset) = segment_of(cluster, size, payloads(&arguments[0]).value(row))?;
    let place = (wal_file(timeline, segment, size), offset as u32 as i32);
    Ok(made(vec![place], |(file, offset), out| {
        out[0].text(&file)?;
        out[1].int4(offset);
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_wal_files_are_taken_apart() {
        assert_eq!(parts("000000010000000100000002", 16 << 20), Some((1, 258)));
        assert_eq!(parts("ffffffff00000000000000af", 1 << 20), Some((u32::MAX, 0xAF)));
        assert_eq!(parts("0000000100000001000000020", 16 << 20), None);
        assert_eq!(parts("00000001000000010000000x", 16 << 20), None);
        assert_eq!(parts("000000010000000000000001", 0), None);
    }
}
