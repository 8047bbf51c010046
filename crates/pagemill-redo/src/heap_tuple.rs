//! The headers of heap tuples as records change them: who deleted or locked a row version, where its successor
//! is, and what a tuple from the WAL gets in front of its data.
//!
//! Sources: `fix_infomask_from_infobits` and `heap_execute_freeze_tuple` in `src/backend/access/heap/heapam.c`
//! (`heapam_xlog.c` and `heapam.h` from 18 on), `src/include/access/htup_details.h`,
//! `src/include/access/heapam_xlog.h`, PostgreSQL 14 to 18.

use pagemill_format::reader::Reader;
use pagemill_format::tuple::{TUPLE_HEADER_BYTES, infomask};
use pagemill_format::{BlockNumber, Error, Result, Tid, TransactionId};

use crate::page_items::{Numbering, PageItems};

const XMIN: usize = 0;
const XMAX: usize = 4;
/// Command id, or the transaction of an old VACUUM FULL.
const FIELD3: usize = 8;
const CTID: usize = 12;
const INFOMASK2: usize = 18;
const INFOMASK: usize = 20;
const HOFF: usize = 22;

/// Bits of `t_infomask2`.
const KEYS_UPDATED: u16 = 0x2000;
const HOT_UPDATED: u16 = 0x4000;
/// `HEAP_COMBOCID` of `t_infomask`.
const COMBO_CID: u16 = 0x0020;
const MOVED: u16 = infomask::MOVED_OFF | infomask::MOVED_IN;
/// The lock bits, both for a shared lock.
const LOCK_BITS: u16 = infomask::XMAX_EXCL_LOCK | infomask::XMAX_KEYSHR_LOCK;
/// What `infobits` tells anew.
const TOLD: u16 = infomask::XMAX_IS_MULTI | infomask::XMAX_LOCK_ONLY | LOCK_BITS;
/// All that tells of the deleter or locker (`HEAP_XMAX_BITS`).
const XMAX_BITS: u16 = infomask::XMAX_COMMITTED | infomask::XMAX_INVALID | TOLD;

/// Bits of a record's `infobits_set` (`XLHL_*`), with what they stand for in `t_infomask`.
const INFOBITS: [(u8, u16); 4] = [
    (0x01, infomask::XMAX_IS_MULTI),
    (0x02, infomask::XMAX_LOCK_ONLY),
    (0x04, infomask::XMAX_EXCL_LOCK),
    (0x08, infomask::XMAX_KEYSHR_LOCK),
];
const INFOBIT_KEYS_UPDATED: u8 = 0x10;

/// The `ctid` of a row that an update moved to another partition.
pub(crate) const MOVED_PARTITIONS: Tid = Tid { block: BlockNumber(u32::MAX), line_pointer: 0xFFFD };

/// The header of a tuple on a page.
#[derive(Debug)]
pub(crate) struct TupleHeader<'t> {
    bytes: &'t mut [u8; TUPLE_HEADER_BYTES],
}

impl<'t> TupleHeader<'t> {
    /// The header at the beginning of an item.
    pub(crate) fn of(item: &'t mut [u8]) -> Result<Self> {
        let len = item.len();
        let found = item.first_chunk_mut();
        let bytes = found.ok_or_else(|| {
            Error::corrupt("tuple", 0, format!("{len} bytes are no header of a tuple"))
        })?;
        Ok(Self { bytes })
    }

    fn put(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn mask(&mut self, at: usize, change: impl FnOnce(u16) -> u16) {
        let mask = change(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]));
        self.bytes[at..at + 2].copy_from_slice(&mask.to_le_bytes());
    }

    fn infomask(&self) -> u16 {
        u16::from_le_bytes([self.bytes[INFOMASK], self.bytes[INFOMASK + 1]])
    }

    pub(crate) fn set_xmin(&mut self, xid: TransactionId) {
        self.put(XMIN, xid.0);
    }

    pub(crate) fn set_xmax(&mut self, xmax: u32) {
        self.put(XMAX, xmax);
    }

    /// The first command of its transaction: WAL does not say which it was.
    pub(crate) fn set_first_command(&mut self) {
        self.put(FIELD3, 0);
        self.mask(INFOMASK, |mask| mask & !COMBO_CID);
    }

    pub(crate) fn set_ctid(&mut self, tid: Tid) {
        let block = tid.block.0;
        let words = [(block >> 16) as u16, block as u16, tid.line_pointer];
        for (to, word) in self.bytes[CTID..CTID + 6].chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Forgets who deleted or locked it, for the bits of a record.
    pub(crate) fn set_infobits(&mut self, infobits: u8) {
        let told = INFOBITS.iter().filter(|(bit, _)| infobits & bit != 0);
        let told = told.fold(0, |mask, (_, bit)| mask | bit);
        self.mask(INFOMASK, |mask| mask & !(XMAX_BITS | MOVED) | told);
        let keys = if infobits & INFOBIT_KEYS_UPDATED != 0 { KEYS_UPDATED } else { 0 };
        self.mask(INFOMASK2, |mask| mask & !KEYS_UPDATED | keys);
    }

    /// Whether its successor is in the same HOT chain.
    pub(crate) fn set_hot_updated(&mut self, is_set: bool) {
        let bit = if is_set { HOT_UPDATED } else { 0 };
        self.mask(INFOMASK2, |mask| mask & !HOT_UPDATED | bit);
    }

    /// `xmax` only locks it, also by the bits of servers before 9.3 (`HEAP_XMAX_IS_LOCKED_ONLY`).
    pub(crate) fn is_only_locked(&self) -> bool {
        let mask = self.infomask();
        mask & infomask::XMAX_LOCK_ONLY != 0
            || mask & (infomask::XMAX_IS_MULTI | LOCK_BITS) == infomask::XMAX_EXCL_LOCK
    }

    /// Freezes it as a plan says.
    pub(crate) fn freeze(&mut self, plan: &FreezePlan) {
        self.set_xmax(plan.xmax);
        if plan.flags & FreezePlan::FREEZE_XVAC != 0 {
            self.put(FIELD3, TransactionId::FROZEN.0);
        }
        if plan.flags & FreezePlan::INVALID_XVAC != 0 {
            self.put(FIELD3, TransactionId::INVALID.0);
        }
        self.mask(INFOMASK, |_| plan.infomask);
        self.mask(INFOMASK2, |_| plan.infomask2);
    }
}

/// What freezing makes of a tuple's header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FreezePlan {
    pub(crate) xmax: u32,
    pub(crate) infomask2: u16,
    pub(crate) infomask: u16,
    pub(crate) flags: u8,
}

impl FreezePlan {
    const FREEZE_XVAC: u8 = 0x02;
    const INVALID_XVAC: u8 = 0x04;
}

/// What WAL keeps of a tuple's header (`xl_heap_header`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoggedHeader {
    infomask2: u16,
    infomask: u16,
    pub(crate) hoff: u8,
}

impl LoggedHeader {
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { infomask2: r.u16()?, infomask: r.u16()?, hoff: r.u8()? })
    }
}

/// A tuple from the WAL.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoggedTuple<'w> {
    pub(crate) xmin: TransactionId,
    pub(crate) xmax: u32,
    pub(crate) at: Tid,
    pub(crate) header: LoggedHeader,
    /// All behind the header: null bitmap, padding and attributes, in up to four pieces.
    pub(crate) pieces: [&'w [u8]; 4],
}

impl LoggedTuple<'_> {
    /// Puts it on its page.
    pub(crate) fn insert(&self, items: &mut PageItems<'_>) -> Result<()> {
        let len = self.pieces.iter().fold(TUPLE_HEADER_BYTES, |len, piece| len + piece.len());
        let item = items.reserve(len, self.at.line_pointer, Numbering::Heap)?;
        item.fill(0);
        let mut header = TupleHeader::of(item)?;
        header.set_xmin(self.xmin);
        header.set_xmax(self.xmax);
        header.set_ctid(self.at);
        header.mask(INFOMASK2, |_| self.header.infomask2);
        header.mask(INFOMASK, |_| self.header.infomask & !COMBO_CID);
        header.bytes[HOFF] = self.header.hoff;
        let mut room = item.get_mut(TUPLE_HEADER_BYTES..).unwrap_or_default();
        for piece in self.pieces {
            let (to, rest) = room.split_at_mut(piece.len());
            to.copy_from_slice(piece);
            room = rest;
        }
        Ok(())
    }
}
