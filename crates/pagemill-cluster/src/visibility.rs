//! Which tuples a server started on these files would show to its first query.
//!
//! No transaction runs, so a tuple is visible when its inserter committed and its deleter did
//! not. Prepared transactions are in progress, which here is the same as not committed. Hint bits
//! are a shortcut to the commit log and never asked beyond what they promise; `xmax` deletes only
//! when it is no locker, and a multixact only through its one updater.
//!
//! Source: `HeapTupleSatisfiesMVCC` and `HeapTupleSatisfiesToast` in
//! `src/backend/access/heap/heapam_visibility.c`, PostgreSQL 14 to 18.

use pagemill_format::tuple::{HeapTuple, infomask};
use pagemill_format::{MultiXactId, TransactionId};

use crate::error::Result;

/// What became of transactions: the commit log and the multixacts.
pub trait TransactionLog {
    /// True when the transaction committed.
    ///
    /// # Errors
    /// When its status cannot be read.
    fn committed(&mut self, xid: TransactionId) -> Result<bool>;

    /// The member of a multixact that updated or deleted, if one did.
    ///
    /// # Errors
    /// When its members cannot be read.
    fn updater(&mut self, multi: MultiXactId) -> Result<Option<TransactionId>>;
}

/// True when the tuple is part of the table as a first query would see it.
///
/// # Errors
/// When the status of a transaction cannot be read.
#[inline]
pub fn is_visible(tuple: HeapTuple<'_>, status: &mut impl TransactionLog) -> Result<bool> {
    Ok(inserter_committed(tuple, status)? && !deleter_committed(tuple, status)?)
}

/// True when the tuple was ever part of the table.
///
/// # Errors
/// When the status of a transaction cannot be read.
#[inline]
pub fn inserter_committed(tuple: HeapTuple<'_>, status: &mut impl TransactionLog) -> Result<bool> {
    let mask = tuple.infomask();
    if mask & infomask::XMIN_COMMITTED != 0 {
        return Ok(true);
    }
    if mask & infomask::XMIN_INVALID != 0 {
        return Ok(false);
    }
    // Before 9.0, VACUUM FULL moved tuples and left its own id in the command id's place.
    let mover = TransactionId(tuple.cid());
    if mask & infomask::MOVED_OFF != 0 {
        return Ok(!status.committed(mover)?);
    }
    if mask & infomask::MOVED_IN != 0 {
        return status.committed(mover);
    }
    status.committed(tuple.xmin())
}

/// True when the tuple was deleted, or replaced by a newer version.
///
/// # Errors
/// When the status of a transaction cannot be read.
#[inline]
pub fn deleter_committed(tuple: HeapTuple<'_>, status: &mut impl TransactionLog) -> Result<bool> {
    let mask = tuple.infomask();
    if mask & infomask::XMAX_INVALID != 0 || only_locks(mask) {
        return Ok(false);
    }
    if mask & infomask::XMAX_IS_MULTI != 0 {
        return match status.updater(MultiXactId(tuple.xmax()))? {
            Some(updater) => status.committed(updater),
            None => Ok(false),
        };
    }
    if mask & infomask::XMAX_COMMITTED != 0 {
        return Ok(true);
    }
    status.committed(TransactionId(tuple.xmax()))
}

/// `HEAP_XMAX_IS_LOCKED_ONLY`: said outright, or an exclusive lock as 9.2 and before wrote it,
/// which had no other of the lock bits beside it.
#[inline]
fn only_locks(mask: u16) -> bool {
    use infomask::{XMAX_EXCL_LOCK, XMAX_IS_MULTI, XMAX_KEYSHR_LOCK, XMAX_LOCK_ONLY};
    mask & XMAX_LOCK_ONLY != 0
        || mask & (XMAX_IS_MULTI | XMAX_EXCL_LOCK | XMAX_KEYSHR_LOCK) == XMAX_EXCL_LOCK
}

/// True when a TOAST chunk may belong to a visible row: all but those whose insertion is known to
/// have failed. Rows find their chunks by value id, so deletions do not matter.
pub fn is_visible_chunk(tuple: HeapTuple<'_>) -> bool {
    let mask = tuple.infomask();
    let failed = mask & infomask::XMIN_INVALID != 0 || tuple.xmin() == TransactionId::INVALID;
    mask & infomask::XMIN_COMMITTED != 0 || !failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use infomask::*;

    struct Log;
    const COMMITTED: u32 = 10;
    const ABORTED: u32 = 11;

    impl TransactionLog for Log {
        fn committed(&mut self, xid: TransactionId) -> Result<bool> {
            Ok(xid.0 == COMMITTED)
        }
        fn updater(&mut self, multi: MultiXactId) -> Result<Option<TransactionId>> {
            Ok(match multi.0 {
                0 => None,
                other => Some(TransactionId(other)),
            })
        }
    }

    fn visible(xmin: u32, xmax: u32, mask: u16) -> bool {
        let mut bytes = [0u8; 32];
        bytes[0..4].copy_from_slice(&xmin.to_le_bytes());
        bytes[4..8].copy_from_slice(&xmax.to_le_bytes());
        bytes[20..22].copy_from_slice(&mask.to_le_bytes());
        bytes[22] = 24;
        is_visible(HeapTuple::parse(&bytes).unwrap(), &mut Log).unwrap()
    }

    #[test]
    fn an_unhinted_tuple_is_judged_by_the_commit_log() {
        assert!(visible(COMMITTED, 0, XMAX_INVALID));
        assert!(!visible(ABORTED, 0, XMAX_INVALID));
        assert!(!visible(COMMITTED, COMMITTED, 0));
        assert!(visible(COMMITTED, ABORTED, 0));
    }

    #[test]
    fn a_frozen_tuple_is_visible_whatever_its_xmin() {
        assert!(visible(ABORTED, 0, XMIN_FROZEN | XMAX_INVALID));
    }

    #[test]
    fn a_locked_row_is_still_there() {
        assert!(visible(COMMITTED, COMMITTED, XMAX_LOCK_ONLY | XMAX_KEYSHR_LOCK));
        assert!(visible(COMMITTED, COMMITTED, XMAX_EXCL_LOCK));
        assert!(visible(COMMITTED, COMMITTED, XMAX_IS_MULTI | XMAX_LOCK_ONLY));
    }

    #[test]
    fn both_lock_bits_make_a_locker_only_where_the_tuple_says_so() {
        let shared = XMAX_EXCL_LOCK | XMAX_KEYSHR_LOCK;
        assert!(visible(COMMITTED, COMMITTED, shared | XMAX_LOCK_ONLY));
        assert!(!visible(COMMITTED, COMMITTED, shared));
        assert!(visible(COMMITTED, ABORTED, shared));
    }

    #[test]
    fn a_multixact_deletes_only_through_a_committed_updater() {
        assert!(!visible(COMMITTED, COMMITTED, XMAX_IS_MULTI | XMAX_EXCL_LOCK));
        assert!(visible(COMMITTED, ABORTED, XMAX_IS_MULTI));
        assert!(visible(COMMITTED, 0, XMAX_IS_MULTI));
    }

    #[test]
    fn a_tuple_moved_by_an_old_vacuum_full_is_where_the_mover_left_it() {
        assert!(visible(COMMITTED, 0, MOVED_OFF | XMAX_INVALID));
        assert!(!visible(COMMITTED, 0, MOVED_IN | XMAX_INVALID));
    }
}
