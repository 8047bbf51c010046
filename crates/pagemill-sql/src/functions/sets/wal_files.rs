//! Functions that give one row of several values: the segment of a WAL file, the file of a position, and how a sequence counts.
//!
//! Invariant: names of WAL files are told where it is known how WAL goes on.
//!
//! Source: `pg_split_walfile_name` and `pg_walfile_name_offset` in `src/backend/access/transam/xlogfuncs.c`,
//! `pg_sequence_parameters` in `src/backend/commands/sequence.c`, PostgreSQL 14 to 18.

use arrow::array::{ArrayRef, AsArray as _};
use arrow::datatypes::UInt32Type;
use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;

use super::super::keys::{payloads, strings};
use super::super::numeric::value::Number;
use super::super::numeric::{column, value::Value};
use super::super::rows::Outcome;
use super::super::system::session_facts::{segment_of, wal_file, wal_of};
use super::super::system::statement_error;
use super::{Series, SetCall, made, parameter};
use crate::error::{SqlState, StatementError};
use crate::system_rows::for_each_row;

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

/// A row of `pg_sequence`.
struct Counting {
    ty: Oid,
    /// Start, least, most, step.
    numbers: [i64; 4],
    has_cycle: bool,
    cache: i64,
}

/// How a sequence counts.
pub(super) fn sequence_parameters(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let sequence = Oid(arguments[0].as_primitive::<UInt32Type>().value(row));
    let columns = [
        "seqrelid",
        "seqtypid",
        "seqstart",
        "seqmin",
        "seqmax",
        "seqincrement",
        "seqcycle",
        "seqcache",
    ];
    let mut found = None;
    for_each_row(call.catalog.values(), "pg_sequence", &columns, |row| {
        if row.oid(0) == sequence {
            let numbers = [2, 3, 4, 5].map(|at| row.int8(at));
            let (ty, has_cycle, cache) = (row.oid(1), row.bool(6), row.int8(7));
            found = Some(Counting { ty, numbers, has_cycle, cache });
        }
        Ok(())
    })
    .map_err(statement_error)?;
    let missing = || {
        let message = format!("cache lookup failed for sequence {}", sequence.0);
        StatementError::new(SqlState("XX000"), message)
    };
    Ok(made(vec![found.ok_or_else(missing)?], |counting, out| {
        for (out, number) in out.iter_mut().zip(counting.numbers) {
            out.int8(number);
        }
        out[4].scalar(ScalarValue::Boolean(Some(counting.has_cycle)))?;
        out[5].int8(counting.cache);
        out[6].scalar(ScalarValue::UInt32(Some(counting.ty.0)))
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
