//! Heap tuples from rows: the header, and behind it what [`crate::tuple_data_builder`] writes.
//!
//! Invariants: the header says what is there (a null bitmap if and only if something is null, the
//! columns' count, the masks of variable width and of TOAST pointers) and is a multiple of 8 long; a
//! new tuple's `ctid` is its own place, and nobody deleted it.
//!
//! Sources: `heap_form_tuple` in `src/backend/access/common/heaptuple.c`, `heap_prepare_insert` in
//! `src/backend/access/heap/heapam.c`, `src/include/access/htup_details.h`, PostgreSQL 14 to 18.

use crate::error::{Error, Result};
use crate::ids::{BlockNumber, Tid, TransactionId};
use crate::page_builder::max_align;
use crate::tuple::{MAX_ATTRIBUTES, TUPLE_HEADER_BYTES, infomask};
use crate::tuple_data_builder::{ColumnLayout, DataForm, DataSize, Row};

/// The largest a heap tuple can be, in bytes, padded to 8 (`MaxHeapTupleSize`).
pub const MAX_HEAP_TUPLE_BYTES: usize = 8160;
/// Where `t_ctid` is in a tuple.
pub(crate) const CTID: usize = 12;

/// Who inserted a tuple, and what is known of that transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TupleStamp {
    xmin: TransactionId,
    cmin: u32,
    mask: u16,
}

impl TupleStamp {
    /// Inserted by command `cmin` of a transaction that the commit log tells of.
    pub fn inserted(xmin: TransactionId, cmin: u32) -> Self {
        Self { xmin, cmin, mask: infomask::XMAX_INVALID }
    }

    /// The same with the hint that the transaction committed: no reader has to ask the commit log.
    pub fn committed(xmin: TransactionId, cmin: u32) -> Self {
        Self { xmin, cmin, mask: infomask::XMAX_INVALID | infomask::XMIN_COMMITTED }
    }

    /// Visible to everybody for all time, as `COPY … FREEZE` writes it.
    pub fn frozen(xmin: TransactionId, cmin: u32) -> Self {
        Self { xmin, cmin, mask: infomask::XMAX_INVALID | infomask::XMIN_FROZEN }
    }
}

/// What a row takes as a heap tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TupleSize {
    header: usize,
    data: DataSize,
}

impl TupleSize {
    /// Bytes of header and attributes (`t_len`).
    #[inline]
    pub fn bytes(self) -> usize {
        self.header + self.data.bytes
    }

    /// Bytes of the header and the padding behind it (`t_hoff`).
    #[inline]
    pub fn header_bytes(self) -> usize {
        self.header
    }

    /// Bytes of the attributes.
    #[inline]
    pub fn data_bytes(self) -> usize {
        self.data.bytes
    }

    /// Bytes on a page, checked against what a page has room for.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] as a server says it.
    #[inline]
    pub fn on_page(self) -> Result<usize> {
        let bytes = max_align(self.bytes());
        if bytes > MAX_HEAP_TUPLE_BYTES { Err(row_too_big(bytes)) } else { Ok(bytes) }
    }
}

#[cold]
fn row_too_big(bytes: usize) -> Error {
    Error::limit(format!("row is too big: size {bytes}, maximum size {MAX_HEAP_TUPLE_BYTES}"))
}

/// How the tuples of a table are made.
#[derive(Debug, Clone)]
pub struct TupleForm {
    data: DataForm,
    /// Header bytes without null bitmap, and with one.
    header_bytes: [usize; 2],
}

impl TupleForm {
    /// The form of tuples with these columns, dropped ones included.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] for more columns than a tuple can have.
    pub fn new(columns: &[ColumnLayout]) -> Result<Self> {
        if columns.len() > MAX_ATTRIBUTES {
            let message =
                format!("number of columns ({}) exceeds limit ({MAX_ATTRIBUTES})", columns.len());
            return Err(Error::limit(message));
        }
        let bitmap = columns.len().div_ceil(8);
        let header_bytes = [TUPLE_HEADER_BYTES, TUPLE_HEADER_BYTES + bitmap].map(max_align);
        Ok(Self { data: DataForm::new(columns), header_bytes })
    }

    /// What the row takes as a tuple, however large.
    ///
    /// # Errors
    /// As [`DataForm::measure`].
    #[inline]
    pub fn measure<R: Row + ?Sized>(&self, row: &R) -> Result<TupleSize> {
        let data = self.data.measure(row)?;
        Ok(TupleSize { header: self.header_bytes[usize::from(data.has_nulls)], data })
    }

    /// Writes the row as a tuple to the start of `out`: zeros before, and at least as long as measured. Its `ctid` stays
    /// zero, for [`set_ctid`].
    ///
    /// # Panics
    /// When `out` is shorter.
    #[inline]
    pub fn write<R: Row + ?Sized>(
        &self,
        row: &R,
        size: TupleSize,
        stamp: TupleStamp,
        out: &mut [u8],
    ) {
        assert!(out.len() >= size.bytes(), "a tuple has the room that was measured for it");
        let (header, data) = out.split_at_mut(size.header);
        let (fixed, bitmap) = header.split_at_mut(TUPLE_HEADER_BYTES);
        let nulls = size.data.has_nulls.then_some(bitmap);
        let mut mask = stamp.mask | self.data.write(row, nulls, data);
        if size.data.has_nulls {
            mask |= infomask::HASNULL;
        }
        fixed[0..4].copy_from_slice(&stamp.xmin.0.to_le_bytes());
        fixed[8..12].copy_from_slice(&stamp.cmin.to_le_bytes());
        fixed[18..20].copy_from_slice(&(self.data.column_count() as u16).to_le_bytes());
        fixed[20..22].copy_from_slice(&mask.to_le_bytes());
        fixed[22] = size.header as u8;
    }
}

/// Writes where a tuple lies, or its next version.
///
/// # Panics
/// When it is shorter than a header.
#[inline]
pub fn set_ctid(tuple: &mut [u8], ctid: Tid) {
    tuple[CTID..CTID + 6].copy_from_slice(&tid_bytes(ctid));
}

/// A TID as it lies in tuples: the block as two halves, the upper one first.
#[inline]
pub(crate) fn tid_bytes(tid: Tid) -> [u8; 6] {
    let [b0, b1, b2, b3] = block_halves(tid.block).to_le_bytes();
    let [i0, i1] = tid.line_pointer.to_le_bytes();
    [b0, b1, b2, b3, i0, i1]
}

/// A block number with its halves in the order of a TID, and back.
#[inline]
pub(crate) fn block_halves(block: BlockNumber) -> u32 {
    block.0.rotate_left(16)
}

#[cfg(test)]
mod tests;
