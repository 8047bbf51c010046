//! What a session is told that asks a server of transactions, triggers, names of WAL files, and of types and partitions one step up.
//!
//! Invariant: where WAL goes on is known of a cluster that was shut down cleanly and will not follow another; of any other it is
//! refused.
//!
//! Snapshots show all that was committed, and ages count from the next transaction.
//!
//! Source: `pg_xact_status` in `src/backend/utils/adt/xid8funcs.c`, `pg_basetype` in `misc.c`,
//! `pg_partition_root` in `partitionfuncs.c`, `pg_walfile_name` in `src/backend/access/transam/xlogfuncs.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::{DataType, Int64Type, UInt32Type, UInt64Type};
use pagemill_cluster::{Cluster, ClusterLog};
use pagemill_format::slru::TransactionStatus;
use pagemill_format::{Oid, TransactionId};

use super::super::rows::{Made, Outcome, one};
use super::super::sets::catalogs::root;
use super::super::{Build, Implementation, KernelCall};
use super::statement_error;
use crate::error::{Result, SqlState, StatementError, unsupported};
use crate::typed::Typed;

/// `FirstNormalTransactionId`.
const FIRST_NORMAL: u64 = 3;

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(match key {
        // No trigger runs here, and nobody notifies.
        "pg_trigger_depth" | "pg_notification_queue_usage" => {
            Implementation::Build(|build| crate::coerce::constant(build.catalog, build.result, "0"))
        }
        // Nothing is logged to a file here.
        "pg_current_logfile" | "pg_current_logfile_1arg" => {
            Implementation::Build(|build| crate::coerce::null_of(build.catalog, build.result))
        }
        "unicode_version" => Implementation::Build(unicode_version),
        "pg_xact_status" => Implementation::Kernel(transactions),
        "pg_current_snapshot" => Implementation::Build(snapshot),
        "pg_snapshot_xmin" | "pg_snapshot_xmax" => Implementation::Kernel(snapshot_ends),
        "xid_age" => Implementation::Kernel(ages),
        "mxid_age" => Implementation::Kernel(multi_ages),
        "pg_indexam_progress_phasename" => Implementation::Kernel(index_phases),
        "pg_walfile_name" => Implementation::Kernel(wal_files),
        "pg_basetype" => Implementation::Kernel(base_types),
        "pg_partition_root" => Implementation::Kernel(roots),
        _ => return None,
    })
}

/// That of the server's tables of characters.
///
/// Source: `src/include/common/unicode_version.h`, PostgreSQL 17 and 18.
fn unicode_version(build: &Build<'_>) -> Result<Typed> {
    let version = match build.catalog.database().cluster().version().major() {
        17 => "15.1",
        18 => "16.0",
        _ => return unsupported("unicode_version"),
    };
    crate::coerce::constant(build.catalog, build.result, version)
}

/// What files at rest show: all transactions that ended, and none that runs.
fn snapshot(build: &Build<'_>) -> Result<Typed> {
    let next = build.catalog.database().cluster().counters().next_xid.0;
    crate::coerce::constant(build.catalog, build.result, &format!("{next}:{next}:"))
}

/// The end that the function is named after. A snapshot is stored as the count of transactions that run, and both ends.
///
/// Source: `pg_snapshot` in `src/backend/utils/adt/xid8funcs.c`, PostgreSQL 14 to 18.
fn snapshot_ends(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let at = if &*call.key == "pg_snapshot_xmin" { 4 } else { 12 };
    let end = |payload: &[u8]| {
        let bytes = payload.get(at..).and_then(|rest| rest.first_chunk::<8>());
        let short = || StatementError::new(SqlState::DATA_CORRUPTED, "a snapshot without its ends");
        bytes.map(|bytes| u64::from_le_bytes(*bytes)).ok_or_else(short)
    };
    match call.carrier {
        DataType::Int64 => one(arguments, |payload: &[u8]| end(payload).map(u64::cast_signed)),
        _ => one(arguments, end),
    }
}

/// What a B-tree that is built is at, by the number of the phase; no other index tells.
///
/// Source: `btbuildphasename` in `src/backend/access/nbtree/nbtutils.c`, PostgreSQL 14 to 18.
fn index_phases(_: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    /// Of the access method, in `src/include/catalog/pg_am.dat`.
    const BTREE: u32 = 403;
    const PHASES: [&str; 5] = [
        "initializing",
        "scanning table",
        "sorting live tuples",
        "sorting dead tuples",
        "loading tuples in tree",
    ];
    let (methods, phases) =
        (arguments[0].as_primitive::<UInt32Type>(), arguments[1].as_primitive::<Int64Type>());
    let name = |(method, phase): (Option<u32>, Option<i64>)| {
        let place = phase?.checked_sub(1).and_then(|place| usize::try_from(place).ok())?;
        PHASES.get(place).filter(|_| method == Some(BTREE)).map(|name| (*name).to_owned())
    };
    Made::column(methods.iter().zip(phases).map(name).collect::<Vec<Option<String>>>())
}

/// How many transactions began since each of these; those that are older than all are as old as can be told.
///
/// Source: `xid_age` in `src/backend/utils/adt/xid.c`, PostgreSQL 14 to 18.
fn ages(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let next = call.catalog.database().cluster().counters().next_xid.xid().0;
    let age = |xid: u32| match u64::from(xid) < FIRST_NORMAL {
        true => i32::MAX,
        false => next.wrapping_sub(xid).cast_signed(),
    };
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    Made::column(numbers.iter().map(|xid| xid.map(age)).collect::<Vec<Option<i32>>>())
}

/// The same of multixacts; 0 is none.
fn multi_ages(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let next = call.catalog.database().cluster().counters().next_multi.0;
    let age = |multi: u32| match multi {
        0 => i32::MAX,
        multi => next.wrapping_sub(multi).cast_signed(),
    };
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    Made::column(numbers.iter().map(|multi| multi.map(age)).collect::<Vec<Option<i32>>>())
}

/// What became of transactions: none runs in files that are at rest.
fn transactions(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let cluster = call.catalog.database().cluster();
    if !cluster.is_complete() {
        return Err(StatementError::unsupported(
            "what became of transactions in a crashed cluster",
        ));
    }
    let mut log = ClusterLog::new(cluster.clone());
    let numbers = &arguments[0];
    let number = |row: usize| match numbers.data_type() {
        DataType::Int64 => numbers.as_primitive::<Int64Type>().value(row) as u64,
        _ => numbers.as_primitive::<UInt64Type>().value(row),
    };
    let mut status = |row: usize| match numbers.is_null(row) {
        true => Ok(None),
        false => status(cluster, &mut log, number(row)),
    };
    let found = (0..numbers.len()).map(&mut status);
    Made::column(found.collect::<Outcome<Vec<Option<String>>>>()?)
}

fn status(cluster: &Cluster, log: &mut ClusterLog, full: u64) -> Outcome<Option<String>> {
    let counters = cluster.counters();
    let (next, xid) = (counters.next_xid.0, TransactionId(full as u32));
    if xid == TransactionId::INVALID {
        return Ok(None);
    }
    if u64::from(xid.0) >= FIRST_NORMAL {
        if full >= next {
            let message = format!("transaction ID {full} is in the future");
            return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
        }
        let behind = counters.next_xid.xid().0.wrapping_sub(counters.oldest_xid.0);
        if next - full > u64::from(behind) {
            return Ok(None);
        }
        let found = log.status(xid).map_err(|error| statement_error(error.into()))?;
        let word = if found == TransactionStatus::Committed { "committed" } else { "aborted" };
        return Ok(Some(word.to_owned()));
    }
    // The bootstrap's transaction, and that of frozen rows.
    Ok(Some("committed".to_owned()))
}

/// The timeline and the size of the segments that a server's WAL would go on with.
///
/// # Errors
/// When a server on these files would redo WAL first, and so might go on with another.
pub(in super::super) fn wal_of(cluster: &Cluster) -> Outcome<(u32, u64)> {
    let state = cluster.state();
    let follows = ["standby.signal", "recovery.signal", "backup_label"];
    if !state.is_clean() || follows.iter().any(|name| state.contains(name)) {
        return Err(StatementError::unsupported("the WAL of a cluster that was not shut down"));
    }
    let control = cluster.control();
    let size = u64::from(control.build.wal_segment_size);
    match size.is_power_of_two() {
        true => Ok((control.checkpoint.timeline, size)),
        false => Err(StatementError::new(SqlState::DATA_CORRUPTED, "WAL segments of no size")),
    }
}

/// The segment of a position, and the offset in it. Until version 16 the first byte of a segment was the end of that before it.
pub(in super::super) fn segment_of(
    cluster: &Cluster,
    size: u64,
    payload: &[u8],
) -> Outcome<(u64, u64)> {
    let bytes = payload.first_chunk::<8>().ok_or_else(|| {
        StatementError::new(SqlState::DATA_CORRUPTED, "a pg_lsn of less than 8 bytes")
    })?;
    let position = u64::from_le_bytes(*bytes);
    let segment = match cluster.version().major() >= 17 {
        true => position / size,
        false => position.wrapping_sub(1) / size,
    };
    Ok((segment, position % size))
}

/// How the file of a segment is called.
pub(in super::super) fn wal_file(timeline: u32, segment: u64, size: u64) -> String {
    let in_one_log = (1 << 32) / size;
    let (log, within) = (segment / in_one_log, segment % in_one_log);
    format!("{timeline:08X}{:08X}{within:08X}", log as u32)
}

fn wal_files(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let cluster = call.catalog.database().cluster();
    let (timeline, size) = wal_of(cluster)?;
    one(arguments, |position: &[u8]| {
        let (segment, _) = segment_of(cluster, size, position)?;
        Ok(wal_file(timeline, segment, size))
    })
}

/// The type under a domain, or the type itself; NULL for none.
fn base_types(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let catalog = &call.catalog;
    let base =
        |number: u32| catalog.type_row(Oid(number)).map(|_| catalog.base_type(Oid(number), -1).0.0);
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    let found = numbers.iter().map(|number| number.and_then(base));
    Made::column(found.collect::<Vec<Option<u32>>>())
}

fn roots(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let root = |number: Option<u32>| match number {
        None => Ok(None),
        Some(number) => Ok(root(&call.catalog, Oid(number))?.map(|root| root.0)),
    };
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    Made::column(numbers.iter().map(root).collect::<Outcome<Vec<Option<u32>>>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_wal_are_called_as_the_server_calls_them() {
        assert_eq!(wal_file(1, 1, 16 << 20), "000000010000000000000001");
        assert_eq!(wal_file(0xA, 256, 16 << 20), "0000000A0000000100000000");
        assert_eq!(wal_file(1, 5, 1 << 30), "000000010000000100000001");
    }
}
