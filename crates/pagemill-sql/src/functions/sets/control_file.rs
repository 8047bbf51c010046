//! What `pg_control` says, in one row each: of the cluster, of its last checkpoint, of a recovery, of how its server was built.
//!
//! The file is told as it lies there. A server that was started on it has written it since, with another state and time, and with
//! another checkpoint once it makes one.
//!
//! Source: `src/backend/utils/misc/pg_controldata.c`, PostgreSQL 14 to 18.

use arrow::array::ArrayRef;
use pagemill_format::Oid;
use pagemill_format::control::ControlFile;
use pagemill_types::builtin::oid;

use super::super::rows::Outcome;
use super::super::system::session_facts::wal_file;
use super::{Series, SetCall, made_of_payloads};
use crate::error::{SqlState, StatementError};
use crate::scan::EPOCH;

/// The columns of `pg_control_system()`.
pub(super) const SYSTEM: [(&str, Oid); 4] = [
    ("pg_control_version", oid::INT4),
    ("catalog_version_no", oid::INT4),
    ("system_identifier", oid::INT8),
    ("pg_control_last_modified", oid::TIMESTAMPTZ),
];

/// Those of `pg_control_checkpoint()`.
pub(super) const CHECKPOINT: [(&str, Oid); 18] = [
    ("checkpoint_lsn", oid::PG_LSN),
    ("redo_lsn", oid::PG_LSN),
    ("redo_wal_file", oid::TEXT),
    ("timeline_id", oid::INT4),
    ("prev_timeline_id", oid::INT4),
    ("full_page_writes", oid::BOOL),
    ("next_xid", oid::TEXT),
    ("next_oid", oid::OID),
    ("next_multixact_id", oid::XID),
    ("next_multi_offset", oid::XID),
    ("oldest_xid", oid::XID),
    ("oldest_xid_dbid", oid::OID),
    ("oldest_active_xid", oid::XID),
    ("oldest_multi_xid", oid::XID),
    ("oldest_multi_dbid", oid::OID),
    ("oldest_commit_ts_xid", oid::XID),
    ("newest_commit_ts_xid", oid::XID),
    ("checkpoint_time", oid::TIMESTAMPTZ),
];

/// Those of `pg_control_recovery()`.
pub(super) const RECOVERY: [(&str, Oid); 5] = [
    ("min_recovery_end_lsn", oid::PG_LSN),
    ("min_recovery_end_timeline", oid::INT4),
    ("backup_start_lsn", oid::PG_LSN),
    ("backup_end_lsn", oid::PG_LSN),
    ("end_of_backup_record_required", oid::BOOL),
];

/// Those of `pg_control_init()`; the last one is there from 18 on.
const INIT: [(&str, Oid); 12] = [
    ("max_data_alignment", oid::INT4),
    ("database_block_size", oid::INT4),
    ("blocks_per_segment", oid::INT4),
    ("wal_block_size", oid::INT4),
    ("bytes_per_wal_segment", oid::INT4),
    ("max_identifier_length", oid::INT4),
    ("max_index_columns", oid::INT4),
    ("max_toast_chunk_size", oid::INT4),
    ("large_object_chunk_size", oid::INT4),
    ("float8_pass_by_value", oid::BOOL),
    ("data_page_checksum_version", oid::INT4),
    ("default_char_signedness", oid::BOOL),
];

/// The columns of `pg_control_init()` of a version.
pub(super) fn init_columns(major: u32) -> &'static [(&'static str, Oid)] {
    if major >= 18 { &INIT } else { &INIT[..11] }
}

type Payload = Option<Vec<u8>>;

fn int4(value: u32) -> Payload {
    Some(value.to_le_bytes().to_vec())
}

fn int8(value: u64) -> Payload {
    Some(value.to_le_bytes().to_vec())
}

fn boolean(value: bool) -> Payload {
    Some(vec![u8::from(value)])
}

fn text(value: String) -> Payload {
    Some(value.into_bytes())
}

fn moment(seconds: i64) -> Payload {
    let micros = seconds.wrapping_mul(1_000_000).wrapping_sub(EPOCH);
    int8(micros.cast_unsigned())
}

fn row(call: &SetCall, values: Vec<Payload>) -> Outcome<Box<dyn Series>> {
    assert_eq!(values.len(), call.columns.len(), "a value to each column of {}", call.key);
    made_of_payloads(call, vec![values])
}

fn control(call: &SetCall) -> &ControlFile {
    call.catalog.database().cluster().control()
}

pub(super) fn system(call: &SetCall, _: &[ArrayRef], _: usize) -> Outcome<Box<dyn Series>> {
    let control = control(call);
    let values = vec![
        int4(control.control_version),
        int4(control.catalog_version),
        int8(control.system_identifier),
        moment(control.time),
    ];
    row(call, values)
}

pub(super) fn checkpoint(call: &SetCall, _: &[ArrayRef], _: usize) -> Outcome<Box<dyn Series>> {
    let control = control(call);
    let (last, size) = (&control.checkpoint, u64::from(control.build.wal_segment_size));
    if !size.is_power_of_two() {
        return Err(StatementError::new(SqlState::DATA_CORRUPTED, "WAL segments of no size"));
    }
    let next = last.next_xid.0;
    let values = vec![
        int8(control.checkpoint_location.0),
        int8(last.redo.0),
        text(wal_file(last.timeline, last.redo.0 / size, size)),
        int4(last.timeline),
        int4(last.previous_timeline),
        boolean(last.full_page_writes),
        text(format!("{}:{}", next >> 32, next as u32)),
        int4(last.next_oid.0),
        int4(last.next_multi.0),
        int4(last.next_multi_offset),
        int4(last.oldest_xid.0),
        int4(last.oldest_xid_database.0),
        int4(last.oldest_active_xid.0),
        int4(last.oldest_multi.0),
        int4(last.oldest_multi_database.0),
        int4(last.oldest_commit_ts_xid.0),
        int4(last.newest_commit_ts_xid.0),
        moment(last.time),
    ];
    row(call, values)
}

pub(super) fn recovery(call: &SetCall, _: &[ArrayRef], _: usize) -> Outcome<Box<dyn Series>> {
    let control = control(call);
    let values = vec![
        int8(control.min_recovery_point.0),
        int4(control.min_recovery_point_timeline),
        int8(control.backup_start_point.0),
        int8(control.backup_end_point.0),
        boolean(control.backup_end_required),
    ];
    row(call, values)
}

pub(super) fn init(call: &SetCall, _: &[ArrayRef], _: usize) -> Outcome<Box<dyn Series>> {
    let control = control(call);
    let build = &control.build;
    let mut values = vec![
        int4(build.max_align),
        int4(build.block_size),
        int4(build.segment_blocks),
        int4(build.wal_block_size),
        int4(build.wal_segment_size),
        int4(build.name_data_len),
        int4(build.index_max_keys),
        int4(build.toast_max_chunk_size),
        int4(build.large_object_block_size),
        boolean(build.float8_by_value),
        int4(control.data_checksum_version),
    ];
    values.extend(control.default_char_signedness.map(boolean));
    row(call, values)
}
