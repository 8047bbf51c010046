//! The attributes of a tuple, of heap and index alike: how many bytes they take, and writing them.
//!
//! A row is measured first and then written straight to where it will stay, so that nothing is
//! allocated or copied twice per tuple. A value comes as its *payload*: a type of fixed length with
//! just its bytes, one of variable length without length word. Which header it gets is decided here:
//! one byte, unaligned, where it is short and the column's storage is not plain, else four, aligned.
//!
//! Invariants: what is written is as long as what was measured; padding is never written, so it is
//! zero where the room was; a dropped column is null whatever the row says.
//!
//! Sources: `heap_compute_data_size` and `heap_fill_tuple` in
//! `src/backend/access/common/heaptuple.c`, `src/include/varatt.h`, PostgreSQL 14 to 18.

use crate::error::{Error, Result};
use crate::tuple::{AttributeLayout, Span, infomask};
use crate::varlena::{Compression, MAX_VALUE_BYTES, ToastPointer, VARLENA_HEADER_BYTES};

/// The longest payload that a header of one byte can announce.
const MAX_SHORT_PAYLOAD: usize = 126;
/// The largest payload behind a header of four.
const MAX_PAYLOAD: usize = MAX_VALUE_BYTES - VARLENA_HEADER_BYTES;
/// `attlen` of strings that end with a zero.
const CSTRING: i16 = -2;
/// Bits of a length word that say "compressed in line".
const COMPRESSED_BITS: u32 = 2;

/// How a column's long values may be stored (`attstorage`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeStorage {
    /// In line, as it is, always with the long header.
    Plain,
    /// In a TOAST table, not compressed.
    External,
    /// Compressed, in a TOAST table, or both.
    Extended,
    /// Compressed, and in a TOAST table only when nothing else helps.
    Main,
}

impl AttributeStorage {
    /// Reads `attstorage`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] for a letter that stands for none.
    pub fn from_byte(byte: u8) -> Result<Self> {
        match byte {
            b'p' => Ok(Self::Plain),
            b'e' => Ok(Self::External),
            b'x' => Ok(Self::Extended),
            b'm' => Ok(Self::Main),
            other => {
                let what = format!("attstorage {:?}", char::from(other));
                Err(Error::corrupt("attribute", 0, what))
            }
        }
    }
}

/// What writing a column has to know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnLayout {
    /// `attlen` and `attalign`.
    pub layout: AttributeLayout,
    /// `attstorage`.
    pub storage: AttributeStorage,
    /// `attcompression`, or what `default_toast_compression` says where it is unset.
    pub compression: Compression,
    /// `attisdropped`.
    pub dropped: bool,
}

/// A column's value on its way into a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// The payload as it is.
    Plain(&'a [u8]),
    /// What stands behind the length word of a value compressed in line: size and method, and data.
    Compressed(&'a [u8]),
    /// The payload is in a TOAST table.
    External(ToastPointer),
}

/// The values of a row, in the order of the columns.
pub trait Row {
    /// The value of a column, counted from 0; NULL past the last.
    fn value(&self, column: usize) -> Value<'_>;
}

impl Row for [Value<'_>] {
    #[inline]
    fn value(&self, column: usize) -> Value<'_> {
        self.get(column).copied().unwrap_or(Value::Null)
    }
}

impl Row for [Option<&[u8]>] {
    #[inline]
    fn value(&self, column: usize) -> Value<'_> {
        self.get(column).copied().flatten().map_or(Value::Null, Value::Plain)
    }
}

/// A row whose payloads lie in one piece of memory.
#[derive(Debug, Clone, Copy)]
pub struct SpannedRow<'a> {
    /// The memory, of this row alone or of many.
    pub bytes: &'a [u8],
    /// Where each column's payload lies; [`Span::NULL`] for NULL.
    pub spans: &'a [Span],
}

impl Row for SpannedRow<'_> {
    #[inline]
    fn value(&self, column: usize) -> Value<'_> {
        let span = self.spans.get(column).copied().unwrap_or(Span::NULL);
        span.of(self.bytes).map_or(Value::Null, Value::Plain)
    }
}

/// What a row's attributes take in a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataSize {
    /// Bytes, padding between them included.
    pub bytes: usize,
    /// Some attribute is null.
    pub has_nulls: bool,
}

/// How the attributes of a relation's tuples are laid out.
#[derive(Debug, Clone)]
pub struct DataForm {
    columns: Vec<Column>,
    /// Where each column starts, and where all end, when no length depends on the row.
    fixed: Option<(Vec<usize>, usize)>,
}

impl DataForm {
    /// The form of tuples with these columns, dropped ones included.
    pub fn new(columns: &[ColumnLayout]) -> Self {
        let columns: Vec<_> = columns.iter().map(Column::new).collect();
        let fixed = fixed_places(&columns);
        Self { columns, fixed }
    }

    /// How many columns there are.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// What the row's attributes take.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] when a value of fixed length is not of that length, [`crate::ErrorKind::Limit`] when one
    /// is longer than any value can be.
    #[inline]
    pub fn measure<R: Row + ?Sized>(&self, row: &R) -> Result<DataSize> {
        if let Some((_, bytes)) = self.fixed
            && self.columns.iter().enumerate().all(|(number, column)| column.is_fixed(row, number))
        {
            return Ok(DataSize { bytes, has_nulls: false });
        }
        self.measure_any(row)
    }

    fn measure_any<R: Row + ?Sized>(&self, row: &R) -> Result<DataSize> {
        let mut size = DataSize::default();
        for (number, column) in self.columns.iter().enumerate() {
            let at = size.bytes;
            size.bytes = match column.value(row, number) {
                Value::Null => {
                    size.has_nulls = true;
                    at
                }
                Value::Plain(payload) => match column.place(at, payload) {
                    Some(place) => place.end,
                    None => return Err(column.wrong_length(number, payload.len())),
                },
                Value::Compressed(stored) => {
                    column.align_up(at) + VARLENA_HEADER_BYTES + stored.len()
                }
                Value::External(_) => at + ToastPointer::BYTES,
            };
        }
        Ok(size)
    }

    /// Writes the row's attributes to the start of `data` and marks those that are not null in `nulls`,
    /// both zeros before and long enough for what was measured. Returns `HASVARWIDTH` and `HASEXTERNAL` of
    /// the info mask where they apply.
    #[inline]
    pub fn write<R: Row + ?Sized>(
        &self,
        row: &R,
        mut nulls: Option<&mut [u8]>,
        data: &mut [u8],
    ) -> u16 {
        if let (Some((starts, _)), None) = (&self.fixed, &nulls) {
            for (number, &start) in starts.iter().enumerate() {
                if let Value::Plain(payload) = row.value(number) {
                    put_fixed(payload, start, data);
                }
            }
            return 0;
        }
        let (mut at, mut mask) = (0, 0);
        for (number, column) in self.columns.iter().enumerate() {
            let value = column.value(row, number);
            if value == Value::Null {
                continue;
            }
            if let Some(byte) = nulls.as_deref_mut().and_then(|bits| bits.get_mut(number / 8)) {
                *byte |= 1 << (number % 8);
            }
            mask |= column.mask;
            at = match value {
                Value::Null => at,
                Value::Plain(payload) => column.write_plain(payload, at, data),
                Value::Compressed(stored) => {
                    let start = column.align_up(at);
                    write_long(stored, COMPRESSED_BITS, start, data)
                }
                Value::External(pointer) => {
                    mask |= infomask::HASEXTERNAL;
                    put(&pointer.to_bytes(), at, data)
                }
            };
        }
        mask
    }
}

/// A column in the terms of the loops above.
#[derive(Debug, Clone, Copy)]
struct Column {
    len: i16,
    align_mask: u8,
    is_packable: bool,
    is_dropped: bool,
    mask: u16,
}

/// Where a plain value goes: its header, and its end.
struct ValueSlot {
    start: usize,
    is_short: bool,
    end: usize,
}

/// Where columns start that are all of fixed length, and where they end.
fn fixed_places(columns: &[Column]) -> Option<(Vec<usize>, usize)> {
    let (mut starts, mut end) = (Vec::new(), 0);
    for column in columns {
        let length = usize::try_from(column.len).ok().filter(|_| !column.is_dropped)?;
        starts.push(column.align_up(end));
        end = column.align_up(end) + length;
    }
    Some((starts, end))
}

impl Column {
    fn new(column: &ColumnLayout) -> Self {
        Self {
            len: column.layout.len,
            align_mask: column.layout.align.saturating_sub(1),
            is_packable: column.storage != AttributeStorage::Plain,
            is_dropped: column.dropped,
            mask: if column.layout.len < 0 { infomask::HASVARWIDTH } else { 0 },
        }
    }

    #[inline]
    fn value<'r, R: Row + ?Sized>(&self, row: &'r R, number: usize) -> Value<'r> {
        if self.is_dropped { Value::Null } else { row.value(number) }
    }

    /// True for a value of this column's fixed length.
    #[inline]
    fn is_fixed<R: Row + ?Sized>(&self, row: &R, number: usize) -> bool {
        matches!(row.value(number), Value::Plain(payload) if payload.len() as i64 == i64::from(self.len))
    }

    #[inline]
    fn align_up(&self, at: usize) -> usize {
        let mask = usize::from(self.align_mask);
        (at + mask) & !mask
    }

    /// Where a payload goes; `None` when the column cannot have one of its length.
    #[inline]
    fn place(&self, at: usize, payload: &[u8]) -> Option<ValueSlot> {
        let length = payload.len();
        if let Ok(fixed) = usize::try_from(self.len) {
            let start = self.align_up(at);
            return (length == fixed).then_some(ValueSlot {
                start,
                is_short: false,
                end: start + length,
            });
        }
        if self.len == CSTRING {
            let start = self.align_up(at);
            return Some(ValueSlot {
                start,
                is_short: false,
                end: start + text(payload).len() + 1,
            });
        }
        if self.is_packable && length <= MAX_SHORT_PAYLOAD {
            return Some(ValueSlot { start: at, is_short: true, end: at + 1 + length });
        }
        let start = self.align_up(at);
        let end = start + VARLENA_HEADER_BYTES + length;
        (length <= MAX_PAYLOAD).then_some(ValueSlot { start, is_short: false, end })
    }

    #[inline]
    fn write_plain(&self, payload: &[u8], at: usize, data: &mut [u8]) -> usize {
        let Some(place) = self.place(at, payload) else { return at };
        if self.len > 0 {
            return put_fixed(payload, place.start, data);
        }
        if place.is_short {
            let header = (payload.len() + 1) << 1 | 1;
            return put(payload, put(&[header as u8], at, data), data);
        }
        if self.len == CSTRING {
            return put(&[0], put(text(payload), place.start, data), data);
        }
        write_long(payload, 0, place.start, data)
    }

    #[cold]
    fn wrong_length(&self, number: usize, length: usize) -> Error {
        if self.len < 0 {
            let what = format!("invalid memory alloc request size {}", length + 4);
            return Error::limit(what);
        }
        let what = format!("{length} bytes for column {}, which has {}", number + 1, self.len);
        Error::corrupt("row", 0, what)
    }
}

/// A string without its end: indexes keep a `name` of 64 bytes, padded with zeros, this way.
#[inline]
fn text(payload: &[u8]) -> &[u8] {
    payload.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A value behind a header of four bytes; returns its end.
#[inline]
fn write_long(payload: &[u8], bits: u32, start: usize, data: &mut [u8]) -> usize {
    let word = ((payload.len() + VARLENA_HEADER_BYTES) as u32) << 2 | bits;
    put(payload, put(&word.to_le_bytes(), start, data), data)
}

/// Copies of a length that is known here are a move each instead of a call.
#[inline]
fn put_fixed(payload: &[u8], start: usize, data: &mut [u8]) -> usize {
    if let Ok(four) = <[u8; 4]>::try_from(payload) {
        return put(&four, start, data);
    }
    if let Ok(eight) = <[u8; 8]>::try_from(payload) {
        return put(&eight, start, data);
    }
    put(payload, start, data)
}

/// Copies bytes to where there is room for them, as the row was measured; returns the end.
#[inline]
fn put(bytes: &[u8], start: usize, data: &mut [u8]) -> usize {
    let end = start + bytes.len();
    data[start..end].copy_from_slice(bytes);
    end
}
