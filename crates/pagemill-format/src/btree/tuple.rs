//! One tuple of a B-tree page: what it points to, and the bytes of its key.
//!
//! `t_tid` means one of three things: the heap TID of an entry; for a pivot tuple, the block
//! below and the number of key columns present; for a posting list, where in the tuple the list
//! starts and how many TIDs it has. A bit in `t_info` says "not the first".
//!
//! Invariant: the key and the posting list lie inside of the tuple.

use crate::error::{Error, Result};
use crate::ids::{BlockNumber, Tid};

const STRUCTURE: &str = "B-tree tuple";
const HEADER_BYTES: usize = 8;
/// A null bitmap has room for INDEX_MAX_KEYS (32) columns, whatever the number there is.
const NULL_BITMAP_BYTES: usize = 4;
/// Header and null bitmap, padded to 8 bytes.
const HEADER_BYTES_WITH_NULLS: usize = 16;
const TID_BYTES: usize = 6;
/// A heap TID at the end of a pivot tuple, padded to 8 bytes.
const TID_BYTES_PADDED: usize = 8;

const SIZE_MASK: u16 = 0x1FFF;
const ALTERNATIVE_TID: u16 = 0x2000;
const HAS_NULLS: u16 = 0x8000;
/// In the line pointer number of an alternative `t_tid`: the count, and two flags.
const COUNT_MASK: u16 = 0x0FFF;
const PIVOT_HAS_HEAP_TID: u16 = 0x1000;
const IS_POSTING: u16 = 0x2000;

/// A tuple of a B-tree page.
#[derive(Debug, Clone, Copy)]
pub struct IndexTuple<'a> {
    bytes: &'a [u8],
    tid: Tid,
    info: u16,
    is_dead: bool,
    key_end: usize,
}

impl<'a> IndexTuple<'a> {
    /// Takes apart an entry that lies by itself.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn of_bytes(bytes: &'a [u8]) -> Result<Self> {
        Self::parse(bytes, 0, false)
    }

    /// `bytes` are all the line pointer refers to, found at `offset` in the page.
    pub(crate) fn parse(bytes: &'a [u8], offset: usize, is_dead: bool) -> Result<Self> {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            let what = format!("{} bytes, fewer than its header", bytes.len());
            return Err(Error::corrupt(STRUCTURE, offset, what));
        };
        let [t0, t1, t2, t3, t4, t5, i0, i1] = *header;
        let info = u16::from_le_bytes([i0, i1]);
        let tid = tid([t0, t1, t2, t3, t4, t5]);
        let mut tuple = Self { bytes, tid, info, is_dead, key_end: bytes.len() };
        let size = usize::from(info & SIZE_MASK);
        if size != bytes.len() {
            let what = format!("size {size} under a line pointer of {} bytes", bytes.len());
            return Err(Error::corrupt(STRUCTURE, offset + 6, what));
        }
        tuple.key_end = tuple.checked_key_end(offset)?;
        Ok(tuple)
    }

    /// The tuple's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Where the key ends in the tuple: behind it are padding, a posting list, or a pivot's heap TID.
    pub fn key_end(&self) -> usize {
        self.key_end
    }

    /// True when a scan found out that no transaction can see the heap tuples any more.
    pub fn is_dead(&self) -> bool {
        self.is_dead
    }

    /// True for tuples marked as pivots: all of them from version 4 on, some before.
    pub fn is_marked_pivot(&self) -> bool {
        self.has_alternative_tid() && self.tid.line_pointer & IS_POSTING == 0
    }

    /// True for an entry with a list of heap TIDs.
    pub fn is_posting(&self) -> bool {
        self.has_alternative_tid() && self.tid.line_pointer & IS_POSTING != 0
    }

    /// The block below, for a tuple of an internal page.
    pub fn downlink(&self) -> BlockNumber {
        self.tid.block
    }

    /// How many key columns a pivot tuple still has; none (meaning all) for other tuples.
    pub fn key_columns(&self) -> Option<u16> {
        self.is_marked_pivot().then_some(self.tid.line_pointer & COUNT_MASK)
    }

    /// The heap TID that a pivot tuple has as its last key column, if it was not cut off.
    pub fn pivot_heap_tid(&self) -> Option<Tid> {
        self.has_pivot_heap_tid().then(|| self.bytes.last_chunk::<TID_BYTES>())?.map(|b| tid(*b))
    }

    /// The heap tuples of an entry of a leaf page, in TID order; none for a marked pivot.
    pub fn heap_tids(&self) -> impl ExactSizeIterator<Item = Tid> + use<'a> {
        let header = self.bytes.get(..TID_BYTES).unwrap_or_default();
        let list = match (self.is_posting(), self.is_marked_pivot()) {
            (true, _) => self.posting_list(),
            (false, true) => &[],
            (false, false) => header,
        };
        list.as_chunks::<TID_BYTES>().0.iter().map(|bytes| tid(*bytes))
    }

    /// The first, or only, heap tuple of an entry of a leaf page.
    pub fn heap_tid(&self) -> Option<Tid> {
        self.heap_tids().next()
    }

    /// The null bitmap, if any column is null: bit n % 8 of byte n / 8 is clear for a null column
    /// n, counted from 0.
    pub fn null_bitmap(&self) -> Option<&'a [u8; NULL_BITMAP_BYTES]> {
        if self.info & HAS_NULLS == 0 {
            return None;
        }
        self.bytes.get(HEADER_BYTES..).and_then(|rest| rest.first_chunk())
    }

    /// The columns' values, each aligned as its type wants (counted from the start of these
    /// bytes), maybe with padding at the end.
    pub fn key(&self) -> &'a [u8] {
        self.bytes.get(key_start(self.info)..self.key_end).unwrap_or_default()
    }

    fn has_alternative_tid(&self) -> bool {
        self.info & ALTERNATIVE_TID != 0
    }

    fn has_pivot_heap_tid(&self) -> bool {
        self.is_marked_pivot() && self.tid.line_pointer & PIVOT_HAS_HEAP_TID != 0
    }

    fn posting_list(&self) -> &'a [u8] {
        let bytes = usize::from(self.tid.line_pointer & COUNT_MASK) * TID_BYTES;
        self.bytes.get(self.key_end..).and_then(|rest| rest.get(..bytes)).unwrap_or_default()
    }

    fn checked_key_end(&self, offset: usize) -> Result<usize> {
        let length = self.bytes.len();
        let end = if self.is_posting() {
            self.checked_posting_offset(offset)?
        } else if self.has_pivot_heap_tid() {
            length.saturating_sub(TID_BYTES_PADDED)
        } else {
            length
        };
        if end >= key_start(self.info) {
            return Ok(end);
        }
        Err(Error::corrupt(STRUCTURE, offset, format!("no room for a key in {length} bytes")))
    }

    fn checked_posting_offset(&self, offset: usize) -> Result<usize> {
        let count = self.tid.line_pointer & COUNT_MASK;
        let start = self.tid.block.0 as usize;
        let end = start.saturating_add(usize::from(count) * TID_BYTES);
        if count > 0 && end <= self.bytes.len() {
            return Ok(start);
        }
        let what = format!(
            "a posting list of {count} TIDs at {start} in a tuple of {} bytes",
            self.bytes.len()
        );
        Err(Error::corrupt(STRUCTURE, offset, what))
    }
}

fn key_start(info: u16) -> usize {
    if info & HAS_NULLS != 0 { HEADER_BYTES_WITH_NULLS } else { HEADER_BYTES }
}

/// Block numbers are stored as two 16-bit halves, the upper one first.
fn tid(bytes: [u8; TID_BYTES]) -> Tid {
    let [h0, h1, l0, l1, p0, p1] = bytes;
    Tid {
        block: BlockNumber(u32::from_le_bytes([l0, l1, h0, h1])),
        line_pointer: u16::from_le_bytes([p0, p1]),
    }
}
