//! Tuples of a B-tree index: forming entries from rows, copying entries of an older index, and the
//! tuples made of entries: posting lists and pivots.
//!
//! ```text
//! | t_tid 6 | t_info 2 | null bitmap 4, padding 4 (if any column is null) | columns | padding to 8 |
//! ```
//!
//! Values of more than 510 bytes are compressed in line where their column allows it; an entry that is
//! too long for three to fit a page is refused.
//!
//! Invariants: a tuple's length is a multiple of 8 and stands in its `t_info`; padding is zero, so
//! equal keys are equal bytes if they were stored in the same way.
//!
//! Sources: `index_form_tuple` and `index_truncate_tuple` in
//! `src/backend/access/common/indextuple.c`, `src/include/access/{itup,nbtree}.h`, `_bt_truncate`,
//! `_bt_check_third_page` in `src/backend/access/nbtree/nbtutils.c`, `_bt_form_posting` in
//! `nbtdedup.c`, PostgreSQL 14 to 18.

use crate::btree::IndexTuple;
use crate::error::{Error, Result};
use crate::ids::{BlockNumber, Tid};
use crate::page_builder::max_align;
use crate::toast_builder::ValueCompressor;
use crate::tuple::infomask;
use crate::tuple_builder::{block_halves, tid_bytes};
use crate::tuple_data_builder::{AttributeStorage, ColumnLayout, DataForm, DataSize, Row, Value};
use crate::varlena::VARLENA_HEADER_BYTES;

/// Bytes before the key, without nulls and with.
/// Bytes of an entry before its key, where it has no nulls.
pub const HEADER_BYTES: usize = 8;
pub(crate) const HEADER_BYTES_WITH_NULLS: usize = 16;
/// A heap TID, and one padded to 8 at the end of a pivot.
pub(crate) const TID_BYTES: usize = 6;
const TID_BYTES_PADDED: usize = 8;
/// Where `t_info` is.
const INFO: usize = 6;

const SIZE_MASK: u16 = 0x1FFF;
const ALTERNATIVE_TID: u16 = 0x2000;
const HAS_VARIABLE_WIDTHS: u16 = 0x4000;
const HAS_NULLS: u16 = 0x8000;
/// In the line pointer number of an alternative `t_tid`.
const PIVOT_HAS_HEAP_TID: u16 = 0x1000;
const IS_POSTING: u16 = 0x2000;

/// Most columns an index can have (`INDEX_MAX_KEYS`).
pub const INDEX_MAX_KEYS: usize = 32;
/// The longest entry a page can hold three of, with a heap TID for a high key (`BTMaxItemSize`).
pub const MAX_ENTRY_BYTES: usize = 2704;
/// Values longer than this, header included, are compressed (`TOAST_INDEX_TARGET`).
const COMPRESSION_TARGET: usize = 8160 / 16;

/// Forms the entries of one index.
#[derive(Debug)]
pub struct IndexForm {
    name: String,
    data: DataForm,
    columns: Vec<ColumnLayout>,
    compressor: ValueCompressor,
    scratch: Vec<u8>,
    compressed: Vec<Option<(usize, usize)>>,
}

impl IndexForm {
    /// For an index of this name with these columns (as `pg_attribute` has them for the index), included
    /// ones last.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] for more than 32 columns.
    pub fn new(name: &str, columns: &[ColumnLayout]) -> Result<Self> {
        if columns.len() > INDEX_MAX_KEYS {
            let message = format!(
                "number of index columns ({}) exceeds limit ({INDEX_MAX_KEYS})",
                columns.len()
            );
            return Err(Error::limit(message));
        }
        Ok(Self {
            name: name.to_owned(),
            data: DataForm::new(columns),
            columns: columns.to_vec(),
            compressor: ValueCompressor::default(),
            scratch: Vec::new(),
            compressed: Vec::new(),
        })
    }

    /// Appends the entry for the index columns' values of the heap tuple at `tid` to `out`; leaves it as it
    /// was on error. Its length is what `out` grew by.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] when the entry is too long for the index, in a server's words;
    /// [`DataForm::measure`]'s.
    #[inline]
    pub fn form<R: Row + ?Sized>(&mut self, row: &R, tid: Tid, out: &mut Vec<u8>) -> Result<()> {
        let size = self.data.measure(row)?;
        if size.bytes > COMPRESSION_TARGET {
            return self.form_compressed(row, tid, out);
        }
        self.data.form_entry(row, size, tid, out)
    }

    #[cold]
    fn form_compressed<R: Row + ?Sized>(
        &mut self,
        row: &R,
        tid: Tid,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.compress(row);
        let start = out.len();
        let row = CompressedRow { row, compressed: &self.compressed, scratch: &self.scratch };
        self.data.form_entry(&row, self.data.measure(&row)?, tid, out)?;
        let length = out.len() - start;
        if length > MAX_ENTRY_BYTES {
            out.truncate(start);
            return Err(entry_too_long(length, &self.name));
        }
        Ok(())
    }

    fn compress<R: Row + ?Sized>(&mut self, row: &R) {
        self.scratch.clear();
        self.compressed.clear();
        for (number, column) in self.columns.iter().enumerate() {
            let may = column.layout.len == -1
                && matches!(column.storage, AttributeStorage::Extended | AttributeStorage::Main);
            let start = self.scratch.len();
            let done = match row.value(number) {
                Value::Plain(payload) if may => {
                    payload.len() + VARLENA_HEADER_BYTES > COMPRESSION_TARGET
                        && self.compressor.compress(column.compression, payload, &mut self.scratch)
                }
                _ => false,
            };
            self.compressed.push(done.then_some((start, self.scratch.len())));
        }
    }
}

pub(crate) fn entry_too_long(length: usize, index: &str) -> Error {
    Error::limit(format!(
        "index row size {length} exceeds btree version 4 maximum {MAX_ENTRY_BYTES} for index \
         \"{index}\""
    ))
}

/// A row some of whose values were compressed.
struct CompressedRow<'a, R: ?Sized> {
    row: &'a R,
    compressed: &'a [Option<(usize, usize)>],
    scratch: &'a [u8],
}

impl<R: Row + ?Sized> Row for CompressedRow<'_, R> {
    fn value(&self, column: usize) -> Value<'_> {
        match self.compressed.get(column) {
            Some(Some((start, end))) => Value::Compressed(&self.scratch[*start..*end]),
            _ => self.row.value(column),
        }
    }
}

impl DataForm {
    /// Appends an entry with what was measured of the row.
    #[inline]
    fn form_entry<R: Row + ?Sized>(
        &self,
        row: &R,
        size: DataSize,
        tid: Tid,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let header = if size.has_nulls { HEADER_BYTES_WITH_NULLS } else { HEADER_BYTES };
        let length = max_align(header + size.bytes);
        let Some(info) = u16::try_from(length).ok().filter(|length| *length <= SIZE_MASK) else {
            let message = format!("index row requires {length} bytes, maximum size is {SIZE_MASK}");
            return Err(Error::limit(message));
        };
        let start = out.len();
        out.resize(start + length, 0);
        let (head, values) = out[start..].split_at_mut(header);
        let (head, bitmap) = head.split_at_mut(HEADER_BYTES);
        let mask = self.write(row, size.has_nulls.then_some(bitmap), values);
        let mut info = info;
        if mask & infomask::HASVARWIDTH != 0 {
            info |= HAS_VARIABLE_WIDTHS;
        }
        if size.has_nulls {
            info |= HAS_NULLS;
        }
        head[..TID_BYTES].copy_from_slice(&tid_bytes(tid));
        head[INFO..].copy_from_slice(&info.to_le_bytes());
        Ok(())
    }
}

/// Appends an entry with the key of `entry` (of any kind but a pivot) for one heap tuple to `out`: how the
/// posting lists of an older index are taken apart.
pub fn copy_entry(entry: &IndexTuple<'_>, tid: Tid, out: &mut Vec<u8>) {
    // Within the tuple, as that was parsed.
    let key = &entry.bytes()[..entry.key_end()];
    let start = out.len();
    out.extend_from_slice(key);
    out.resize(start + max_align(key.len()), 0);
    let tuple = &mut out[start..];
    set_tid(tuple, tid);
    let length = tuple.len();
    set_info(tuple, info(tuple) & !ALTERNATIVE_TID, length);
}

/// Writes the heap TID of an entry.
pub fn set_tid(tuple: &mut [u8], tid: Tid) {
    put(tuple, 0, &tid_bytes(tid));
}

/// The heap TID of an entry that is no posting list.
#[inline]
pub fn entry_tid(tuple: &[u8]) -> Tid {
    let [h0, h1, l0, l1, p0, p1] = *tuple.first_chunk().unwrap_or(&[0; TID_BYTES]);
    Tid {
        block: BlockNumber(u32::from_le_bytes([l0, l1, h0, h1])),
        line_pointer: u16::from_le_bytes([p0, p1]),
    }
}

#[inline]
fn info(tuple: &[u8]) -> u16 {
    tuple
        .get(INFO..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |info| u16::from_le_bytes(*info))
}

fn set_info(tuple: &mut [u8], flags: u16, length: usize) {
    let info = flags & !SIZE_MASK | length as u16 & SIZE_MASK;
    put(tuple, INFO, &info.to_le_bytes());
}

fn put(tuple: &mut [u8], at: usize, bytes: &[u8]) {
    tuple[at..at + bytes.len()].copy_from_slice(bytes);
}

/// True when some column of the entry is null.
#[inline]
pub fn has_nulls(tuple: &[u8]) -> bool {
    info(tuple) & HAS_NULLS != 0
}

/// Where the key starts in a tuple.
#[inline]
pub fn key_start(tuple: &[u8]) -> usize {
    if has_nulls(tuple) { HEADER_BYTES_WITH_NULLS } else { HEADER_BYTES }
}

/// True for two entries that differ in their heap TID at most.
#[inline]
pub(crate) fn has_same_image(a: &[u8], b: &[u8]) -> bool {
    a.get(INFO..) == b.get(INFO..)
}

fn is_posting(tuple: &[u8]) -> bool {
    info(tuple) & ALTERNATIVE_TID != 0 && entry_tid(tuple).line_pointer & IS_POSTING != 0
}

/// Where the key of an entry ends, its padding included.
pub fn entry_key_end(tuple: &[u8]) -> usize {
    if is_posting(tuple) { entry_tid(tuple).block.0 as usize } else { tuple.len() }
}

/// The last heap TID of an entry; `None` where it has no room for one.
fn last_tid(tuple: &[u8]) -> Option<[u8; TID_BYTES]> {
    let at = if is_posting(tuple) {
        let count = usize::from(entry_tid(tuple).line_pointer & !(IS_POSTING | PIVOT_HAS_HEAP_TID));
        entry_key_end(tuple) + count.saturating_sub(1) * TID_BYTES
    } else {
        0
    };
    tuple.get(at..)?.first_chunk().copied()
}

/// Makes an entry for several heap tuples, whose TIDs are given as they are stored, in order.
pub(crate) fn form_posting(base: &[u8], tids: &[u8], out: &mut Vec<u8>) {
    assert!(base.len() >= HEADER_BYTES, "what equal entries have in common begins with a header");
    assert!(
        !tids.is_empty() && tids.len().is_multiple_of(TID_BYTES),
        "a posting list is whole heap TIDs"
    );
    out.clear();
    out.extend_from_slice(base);
    out.extend_from_slice(tids);
    out.resize(max_align(out.len()), 0);
    let count = (tids.len() / TID_BYTES) as u16;
    let tid = Tid { block: BlockNumber(base.len() as u32), line_pointer: count | IS_POSTING };
    set_tid(out, tid);
    let length = out.len();
    set_info(out, info(base) | ALTERNATIVE_TID, length);
}

/// A pivot without key: lower than everything.
pub(crate) fn minus_infinity() -> [u8; HEADER_BYTES] {
    let mut pivot = [0; HEADER_BYTES];
    set_info(&mut pivot, ALTERNATIVE_TID, HEADER_BYTES);
    pivot
}

/// Says which block a pivot leads to.
pub(crate) fn set_downlink(pivot: &mut [u8], block: BlockNumber) {
    put(pivot, 0, &block_halves(block).to_le_bytes());
}

/// How much of an entry becomes the high key of the page before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    /// Columns that are kept.
    pub columns: usize,
    /// Where their bytes end in the key, null ones leaving no bytes.
    pub key_bytes: usize,
    /// Some kept column is null.
    pub has_nulls: bool,
    /// Some kept column that is not null is of variable width.
    pub has_variable_widths: bool,
    /// Every key column is the same in the entry before, so that its heap TID has to decide.
    pub needs_tid: bool,
}

/// Makes the high key: what `truncation` leaves of `entry`, the first of the next page, and where needed
/// the last heap TID of `before`, the last of this page.
///
/// # Errors
/// [`crate::ErrorKind::Corrupt`] for an entry, as an older index may have brought it, whose columns are not within it.
pub(crate) fn form_high_key(
    before: &[u8],
    entry: &[u8],
    truncation: &Truncation,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = key_start(entry);
    let key = entry.get(start..start + truncation.key_bytes);
    let key = key.filter(|_| has_nulls(entry) || !truncation.has_nulls);
    let (Some(key), Some(last_tid)) = (key, last_tid(before)) else {
        return Err(Error::corrupt("index tuple", start, "key columns that are not within it"));
    };
    out.clear();
    out.extend_from_slice(&entry[..TID_BYTES]);
    out.resize(HEADER_BYTES, 0);
    let mut flags = ALTERNATIVE_TID;
    if truncation.has_nulls {
        flags |= HAS_NULLS;
        out.extend_from_slice(&kept_bitmap(entry, truncation.columns));
        out.resize(HEADER_BYTES_WITH_NULLS, 0);
    }
    if truncation.has_variable_widths {
        flags |= HAS_VARIABLE_WIDTHS;
    }
    out.extend_from_slice(key);
    out.resize(max_align(out.len()), 0);
    let mut count = truncation.columns as u16;
    if truncation.needs_tid {
        count |= PIVOT_HAS_HEAP_TID;
        out.resize(out.len() + TID_BYTES_PADDED - TID_BYTES, 0);
        out.extend_from_slice(&last_tid);
    }
    put(out, 4, &count.to_le_bytes());
    let length = out.len();
    set_info(out, flags, length);
    Ok(())
}

/// The null bitmap's bits of the first columns.
fn kept_bitmap(entry: &[u8], columns: usize) -> [u8; 4] {
    let bitmap = entry.get(HEADER_BYTES..).and_then(|rest| rest.first_chunk());
    let bits = bitmap.map_or(0, |bitmap| u32::from_le_bytes(*bitmap));
    let kept = u32::MAX.checked_shr(32 - (columns as u32).clamp(1, 32)).unwrap_or(0);
    (bits & kept).to_le_bytes()
}

#[cfg(test)]
mod tests;
