//! A row that gets a new version, or is deleted: what changes in the headers of the old version and the new one.
//!
//! Invariant: who does not see the updating transaction sees the old version, unchanged but for its `xmax` and `ctid`;
//! who sees it follows the `ctid` to the new one. The new version is entered in the indexes by itself, so neither is
//! part of a HOT chain with the other.
//!
//! Source: `heap_update` and `heap_delete` in `src/backend/access/heap/heapam.c`, `src/include/access/htup_details.h`, PostgreSQL 14 to 18.

use crate::ids::{Tid, TransactionId};
use crate::tuple::{TUPLE_HEADER_BYTES, infomask};
use crate::tuple_builder::{CTID, tid_bytes};

const XMIN: usize = 0;
const XMAX: usize = 4;
const CID: usize = 8;
const INFOMASK2: usize = 18;
const INFOMASK: usize = 20;
/// `HEAP_NATTS_MASK` and `HEAP_ONLY_TUPLE` of `t_infomask2`.
const NATTS: u16 = 0x07FF;
const HEAP_ONLY: u16 = 0x8000;
/// `HEAP_KEYS_UPDATED` of `t_infomask2`: the row is gone, or its key is another.
const KEYS_UPDATED: u16 = 0x2000;
/// `HEAP_COMBOCID`.
const COMBO_CID: u16 = 0x0020;
/// All that tells of the deleter.
const XMAX_BITS: u16 = infomask::XMAX_COMMITTED
    | infomask::XMAX_INVALID
    | infomask::XMAX_IS_MULTI
    | infomask::XMAX_LOCK_ONLY
    | infomask::XMAX_EXCL_LOCK
    | infomask::XMAX_KEYSHR_LOCK;
const MOVED: u16 = infomask::MOVED_OFF | infomask::MOVED_IN;

/// Marks a tuple as updated by a transaction, which put its new version at `successor`.
pub fn supersede(tuple: &mut [u8], xid: TransactionId, successor: Tid) {
    let Some(header) = tuple.first_chunk_mut::<TUPLE_HEADER_BYTES>() else { return };
    header[XMAX..XMAX + 4].copy_from_slice(&xid.0.to_le_bytes());
    header[CID..CID + 4].fill(0);
    header[CTID..CTID + 6].copy_from_slice(&tid_bytes(successor));
    change(header, INFOMASK2, |mask| mask & (NATTS | HEAP_ONLY));
    change(header, INFOMASK, |mask| mask & !(XMAX_BITS | MOVED | COMBO_CID));
}

/// Marks the tuple at `at` as deleted by a transaction.
pub fn delete(tuple: &mut [u8], xid: TransactionId, at: Tid) {
    supersede(tuple, xid, at);
    let Some(header) = tuple.first_chunk_mut::<TUPLE_HEADER_BYTES>() else { return };
    change(header, INFOMASK2, |mask| mask | KEYS_UPDATED);
}

/// Tells a tuple where it is: a row's newest version leads to itself.
pub fn place(tuple: &mut [u8], at: Tid) {
    let Some(header) = tuple.first_chunk_mut::<TUPLE_HEADER_BYTES>() else { return };
    header[CTID..CTID + 6].copy_from_slice(&tid_bytes(at));
}

/// Makes a copy of a tuple its new version, written by a transaction to the place `at`.
pub fn succeed(tuple: &mut [u8], xid: TransactionId, at: Tid) {
    let Some(header) = tuple.first_chunk_mut::<TUPLE_HEADER_BYTES>() else { return };
    header[XMIN..XMIN + 4].copy_from_slice(&xid.0.to_le_bytes());
    header[XMAX..XMAX + 4].fill(0);
    header[CID..CID + 4].fill(0);
    header[CTID..CTID + 6].copy_from_slice(&tid_bytes(at));
    change(header, INFOMASK2, |mask| mask & NATTS);
    let kept = infomask::HASNULL | infomask::HASVARWIDTH | infomask::HASEXTERNAL;
    change(header, INFOMASK, |mask| mask & kept | infomask::XMAX_INVALID | infomask::UPDATED);
}

fn change(header: &mut [u8; TUPLE_HEADER_BYTES], at: usize, to: impl FnOnce(u16) -> u16) {
    let mask = to(u16::from_le_bytes([header[at], header[at + 1]]));
    header[at..at + 2].copy_from_slice(&mask.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::BlockNumber;
    use crate::tuple::HeapTuple;

    #[test]
    fn the_old_version_leads_to_the_new_one_and_neither_is_in_a_hot_chain() {
        let mut old = [0xFF; 32];
        old[22] = 24;
        old[INFOMASK..INFOMASK + 2].copy_from_slice(&0x0902u16.to_le_bytes());
        old[INFOMASK2..INFOMASK2 + 2].copy_from_slice(&0xC001u16.to_le_bytes());
        let mut new = old;
        let at = Tid { block: BlockNumber(7), line_pointer: 3 };
        supersede(&mut old, TransactionId(800), at);
        succeed(&mut new, TransactionId(800), at);
        let (old, new) = (HeapTuple::parse(&old).unwrap(), HeapTuple::parse(&new).unwrap());
        assert_eq!((old.xmax(), old.ctid(), old.infomask()), (800, at, 0x0102));
        assert_eq!((new.xmin().0, new.xmax(), new.ctid()), (800, 0, at));
        assert_eq!((new.infomask(), new.infomask2(), old.infomask2()), (0x2802, 1, 0x8001));
    }

    #[test]
    fn a_deleted_tuple_leads_to_itself() {
        let mut tuple = [0; 32];
        tuple[22] = 24;
        tuple[INFOMASK..INFOMASK + 2].copy_from_slice(&0x0902u16.to_le_bytes());
        tuple[INFOMASK2..INFOMASK2 + 2].copy_from_slice(&0x0003u16.to_le_bytes());
        let at = Tid { block: BlockNumber(7), line_pointer: 3 };
        delete(&mut tuple, TransactionId(800), at);
        let tuple = HeapTuple::parse(&tuple).unwrap();
        assert_eq!((tuple.xmax(), tuple.ctid()), (800, at));
        assert_eq!((tuple.infomask(), tuple.infomask2()), (0x0102, 0x2003));
    }
}
