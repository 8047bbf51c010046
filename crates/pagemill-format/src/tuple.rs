//! Heap tuples: the header with its visibility fields, and the walk over the attributes.
//!
//! ```text
//! 0     4     8    12     18         20        22    23            hoff
//! | xmin | xmax | cid | ctid | infomask2 | infomask | hoff | null bitmap | attributes
//! ```
//!
//! The walk ([`TupleLayout::spans`]) yields offsets instead of references, so that one vector
//! serves all tuples of a scan and nothing is allocated or copied per tuple. An attribute the
//! tuple is too old to have is [`Span::MISSING`]: its value is `attmissingval`, not NULL.
//!
//! Source: `src/include/access/htup_details.h`, `src/include/access/tupmacs.h`,
//! `heap_deform_tuple` in `src/backend/access/common/heaptuple.c`, PostgreSQL 14 to 18.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::ids::{BlockNumber, Oid, Tid, TransactionId};
use crate::varlena;

/// Bytes of the header before the null bitmap.
pub const TUPLE_HEADER_BYTES: usize = 23;
/// Most attributes a table can have.
pub const MAX_ATTRIBUTES: usize = 1664;

const TUPLE: &str = "tuple";
const HEAP_HASNULL: u16 = infomask::HASNULL;
const NATTS_MASK: u16 = 0x07FF;

/// Bits of `t_infomask` and `t_infomask2`: what visibility depends on, and what the data are like.
pub mod infomask {
    /// Some attribute is null, and there is a null bitmap.
    pub const HASNULL: u16 = 0x0001;
    /// Some attribute is of variable length.
    pub const HASVARWIDTH: u16 = 0x0002;
    /// Some attribute is a TOAST pointer.
    pub const HASEXTERNAL: u16 = 0x0004;
    /// `xmax` only locks the row, and not shared.
    pub const XMAX_EXCL_LOCK: u16 = 0x0040;
    /// `xmax` locks the row's key only, shared.
    pub const XMAX_KEYSHR_LOCK: u16 = 0x0010;
    /// `xmax` is no deleter.
    pub const XMAX_LOCK_ONLY: u16 = 0x0080;
    /// Known: `xmin` committed.
    pub const XMIN_COMMITTED: u16 = 0x0100;
    /// Known: `xmin` aborted.
    pub const XMIN_INVALID: u16 = 0x0200;
    /// Both of the above: frozen, visible to everybody.
    pub const XMIN_FROZEN: u16 = XMIN_COMMITTED | XMIN_INVALID;
    /// Known: `xmax` committed.
    pub const XMAX_COMMITTED: u16 = 0x0400;
    /// `xmax` is none, or aborted.
    pub const XMAX_INVALID: u16 = 0x0800;
    /// `xmax` is a multixact id.
    pub const XMAX_IS_MULTI: u16 = 0x1000;
    /// The row version was made by an update.
    pub const UPDATED: u16 = 0x2000;
    /// Moved away by a VACUUM FULL of 8.4 or before.
    pub const MOVED_OFF: u16 = 0x4000;
    /// Moved here by a VACUUM FULL of 8.4 or before.
    pub const MOVED_IN: u16 = 0x8000;
}

/// A tuple as a line pointer delivers it, its header checked.
#[derive(Debug, Clone, Copy)]
pub struct HeapTuple<'a> {
    bytes: &'a [u8],
}

impl<'a> HeapTuple<'a> {
    /// Takes the bytes of an item, checking that the header is whole and `hoff` sound.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] when they cannot be a heap tuple.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() <= TUPLE_HEADER_BYTES {
            return Err(too_short(bytes.len()));
        }
        let tuple = Self { bytes };
        let hoff = tuple.hoff();
        if !hoff.is_multiple_of(8) || hoff < tuple.header_need() || hoff > bytes.len() {
            return Err(tuple.hoff_fault());
        }
        Ok(tuple)
    }

    #[inline]
    fn header_need(self) -> usize {
        let bitmap = if self.has_nulls() { self.attribute_count().div_ceil(8) } else { 0 };
        TUPLE_HEADER_BYTES + bitmap
    }

    #[cold]
    fn hoff_fault(self) -> Error {
        let what = format!(
            "header of {} bytes in a tuple of {} with {} attributes",
            self.hoff(),
            self.bytes.len(),
            self.attribute_count()
        );
        Error::corrupt(TUPLE, 22, what)
    }

    #[inline]
    fn u16_at(self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    #[inline]
    fn u32_at(self, at: usize) -> u32 {
        u32::from(self.u16_at(at)) | u32::from(self.u16_at(at + 2)) << 16
    }

    /// The inserting transaction, as stored.
    #[inline]
    pub fn xmin(self) -> TransactionId {
        TransactionId(self.u32_at(0))
    }

    /// The deleting or locking transaction, or a multixact id, as stored.
    #[inline]
    pub fn xmax(self) -> u32 {
        self.u32_at(4)
    }

    /// Command id, combo command id, or the id of an old VACUUM FULL.
    pub fn cid(self) -> u32 {
        self.u32_at(8)
    }

    /// Where the next version of the row lies, or the tuple itself.
    pub fn ctid(self) -> Tid {
        let block = u32::from(self.u16_at(12)) << 16 | u32::from(self.u16_at(14));
        Tid { block: BlockNumber(block), line_pointer: self.u16_at(16) }
    }

    /// Attribute count and update flags.
    #[inline]
    pub fn infomask2(self) -> u16 {
        self.u16_at(18)
    }

    /// Null, hint and lock bits.
    #[inline]
    pub fn infomask(self) -> u16 {
        self.u16_at(20)
    }

    /// Offset of the first attribute.
    #[inline]
    pub fn hoff(self) -> usize {
        usize::from(self.bytes[22])
    }

    /// Attributes the tuple has.
    #[inline]
    pub fn attribute_count(self) -> usize {
        usize::from(self.infomask2() & NATTS_MASK)
    }

    #[inline]
    fn has_nulls(self) -> bool {
        self.infomask() & HEAP_HASNULL != 0
    }

    /// The attributes' bytes.
    #[inline]
    pub fn data(self) -> TupleData<'a> {
        let nulls = self.has_nulls().then(|| &self.bytes[TUPLE_HEADER_BYTES..self.hoff()]);
        TupleData { attributes: self.attribute_count(), nulls, data: &self.bytes[self.hoff()..] }
    }
}

#[cold]
fn too_short(len: usize) -> Error {
    Error::corrupt(TUPLE, 0, format!("{len} bytes are fewer than a tuple header"))
}

/// The attributes of a tuple, wherever it came from.
#[derive(Debug, Clone, Copy)]
pub struct TupleData<'a> {
    /// Attributes present.
    pub attributes: usize,
    /// The null bitmap (a set bit is a value that is there), if any attribute is null.
    pub nulls: Option<&'a [u8]>,
    /// The values; alignment counts from its start.
    pub data: &'a [u8],
}

impl<'a> TupleData<'a> {
    /// A composite value's row type, typmod and attributes, given its payload (the datum without
    /// its length word): a tuple whose first 12 header bytes are length, typmod and type.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] when the header does not fit.
    pub fn parse_composite(payload: &'a [u8]) -> Result<(Oid, i32, Self)> {
        const COMPOSITE: &str = "composite";
        const LENGTH_WORD: usize = varlena::VARLENA_HEADER_BYTES;
        if payload.len() < TUPLE_HEADER_BYTES - LENGTH_WORD {
            return Err(Error::corrupt(COMPOSITE, 0, format!("{} bytes", payload.len())));
        }
        let u16_at = |at: usize| u16::from_le_bytes([payload[at - 4], payload[at - 3]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
        let attributes = usize::from(u16_at(18) & NATTS_MASK);
        let has_nulls = u16_at(20) & HEAP_HASNULL != 0;
        let hoff = usize::from(payload[22 - LENGTH_WORD]);
        let need = TUPLE_HEADER_BYTES + if has_nulls { attributes.div_ceil(8) } else { 0 };
        let Some(data) = hoff.checked_sub(LENGTH_WORD).and_then(|at| payload.get(at..)) else {
            return Err(Error::corrupt(COMPOSITE, 22, format!("header of {hoff} bytes")));
        };
        if hoff < need || hoff % 8 != 0 {
            return Err(Error::corrupt(COMPOSITE, 22, format!("header of {hoff} bytes")));
        }
        let nulls =
            has_nulls.then(|| &payload[TUPLE_HEADER_BYTES - LENGTH_WORD..hoff - LENGTH_WORD]);
        Ok((Oid(u32_at(8)), u32_at(4) as i32, Self { attributes, nulls, data }))
    }

    /// How many attributes come before the first null.
    #[inline]
    pub fn leading_values(&self) -> usize {
        let Some(bits) = self.nulls else { return usize::MAX };
        let full = bits.iter().take_while(|&&byte| byte == u8::MAX).count();
        full * 8 + bits.get(full).map_or(0, |byte| byte.trailing_ones() as usize)
    }

    #[inline]
    fn is_null(&self, attribute: usize) -> bool {
        self.nulls.is_some_and(|bits| {
            bits.get(attribute / 8).is_none_or(|b| b & (1 << (attribute % 8)) == 0)
        })
    }
}

/// The physical shape of an attribute: `attlen` and `attalign` of `pg_attribute`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeLayout {
    /// Bytes, or -1 for a varlena, or -2 for a zero-terminated string.
    pub len: i16,
    /// Alignment in bytes: 1, 2, 4 or 8.
    pub align: u8,
}

impl AttributeLayout {
    /// Reads `attlen` and `attalign`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] for a pair no type has.
    pub fn new(len: i16, align: u8) -> Result<Self> {
        let align = match align {
            b'c' => 1,
            b's' => 2,
            b'i' => 4,
            b'd' => 8,
            other => {
                let what = format!("attalign {:?}", char::from(other));
                return Err(Error::corrupt("attribute", 0, what));
            }
        };
        if len == 0 || len < -2 {
            return Err(Error::corrupt("attribute", 0, format!("attlen {len}")));
        }
        Ok(Self { len, align })
    }

    /// `at`, or the next offset after it that this attribute's alignment allows.
    #[inline]
    pub fn align_up(self, at: usize) -> usize {
        let mask = usize::from(self.align) - 1;
        (at + mask) & !mask
    }

    /// Where a value of this shape starts at or after `at`, and where it ends.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] when the value runs past the end of `data`.
    #[inline(always)]
    pub fn locate(self, data: &[u8], at: usize) -> Result<(usize, usize)> {
        // Most values of variable length have the header of one byte.
        if self.len == -1
            && let Some(first) = data.get(at).filter(|first| **first & 1 == 1 && **first > 1)
            && let end = at + usize::from(*first >> 1)
            && end <= data.len()
        {
            return Ok((at, end));
        }
        // A short or TOAST header never starts with a zero byte; padding always does.
        let packed = self.len == -1 && data.get(at).is_some_and(|&b| b != 0);
        self.locate_at(data, if packed { at } else { self.align_up(at) })
    }

    /// Where a value of this shape that starts at `start` ends, both.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] when the value runs past the end of `data`.
    #[inline]
    pub fn locate_at(self, data: &[u8], start: usize) -> Result<(usize, usize)> {
        let end = match self.len {
            -1 => start + varlena::total_len(data.get(start..).unwrap_or_default())?,
            -2 => start + cstring_len(data, start)?,
            len => start + len as usize,
        };
        if end > data.len() { Err(past_end(start, end, data.len())) } else { Ok((start, end)) }
    }
}

fn cstring_len(data: &[u8], start: usize) -> Result<usize> {
    let rest = data.get(start..).unwrap_or_default();
    rest.iter()
        .position(|&b| b == 0)
        .map(|n| n + 1)
        .ok_or_else(|| Error::corrupt(TUPLE, start, "a string without its terminating zero"))
}

#[cold]
fn past_end(start: usize, end: usize, len: usize) -> Error {
    Error::corrupt(TUPLE, start, format!("a value up to byte {end} of {len} bytes of attributes"))
}

/// Where an attribute's bytes lie in [`TupleData::data`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// A value from byte `start` up to `end`, for whoever keeps the values of many rows in one piece.
    #[inline]
    pub fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The attribute is null.
    pub const NULL: Self = Self { start: u32::MAX, end: 0 };
    /// The tuple was written before the attribute existed.
    pub const MISSING: Self = Self { start: u32::MAX, end: 1 };

    /// The attribute's bytes, header included, out of the data it was found in; `None` when
    /// null or missing.
    #[inline]
    pub fn of(self, data: &[u8]) -> Option<&[u8]> {
        data.get(self.start as usize..self.end as usize)
    }
}

/// The shape of a table's tuples.
#[derive(Debug, Clone, Default)]
pub struct TupleLayout {
    attributes: Vec<AttributeLayout>,
    /// Spans of the leading attributes of fixed length, valid as far as none of them is null.
    fixed: Vec<Span>,
}

impl TupleLayout {
    /// The layout of tuples with these attributes, dropped ones included.
    pub fn new(attributes: Vec<AttributeLayout>) -> Self {
        let mut fixed = Vec::new();
        let mut at = 0usize;
        for a in attributes.iter().take_while(|a| a.len > 0) {
            let mask = usize::from(a.align) - 1;
            let start = (at + mask) & !mask;
            at = start + a.len as usize;
            fixed.push(Span { start: start as u32, end: at as u32 });
        }
        Self { attributes, fixed }
    }

    /// The attributes.
    pub fn attributes(&self) -> &[AttributeLayout] {
        &self.attributes
    }

    /// Where an attribute lies in every tuple that has no null before it, if that is known: it and all before it are
    /// of fixed length.
    pub fn fixed_span(&self, attribute: usize) -> Option<Range<usize>> {
        self.fixed.get(attribute).map(|span| span.start as usize..span.end as usize)
    }

    /// Finds the first `wanted` attributes of a tuple, replacing what `spans` held.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] when a value runs past the tuple.
    #[inline]
    pub fn spans(&self, tuple: &TupleData<'_>, wanted: usize, spans: &mut Vec<Span>) -> Result<()> {
        spans.clear();
        let wanted = wanted.min(self.attributes.len());
        let present = wanted.min(tuple.attributes);
        let known = present.min(self.fixed.len()).min(tuple.leading_values());
        spans.extend_from_slice(&self.fixed[..known]);
        let mut at = spans.last().map_or(0, |s| s.end as usize);
        if at > tuple.data.len() {
            return Err(past_end(0, at, tuple.data.len()));
        }
        for attribute in spans.len()..present {
            if tuple.is_null(attribute) {
                spans.push(Span::NULL);
                continue;
            }
            let (start, end) = self.attributes[attribute].locate(tuple.data, at)?;
            spans.push(Span { start: start as u32, end: end as u32 });
            at = end;
        }
        spans.resize(wanted, Span::MISSING);
        Ok(())
    }
}

/// Some attributes of a layout, found in one walk over each tuple.
///
/// Invariant: the walk looks at no attribute behind the last one that is asked for.
#[derive(Debug, Clone)]
pub struct AttributeWalk {
    steps: Box<[Step]>,
    /// Of the steps at the beginning that are of fixed length: how many they are, where the last ends, and the
    /// spans of those that are asked for. Valid for a tuple without nulls.
    fixed_steps: usize,
    fixed_end: usize,
    fixed: Box<[Span]>,
}

/// One attribute on the way.
#[derive(Debug, Clone, Copy)]
struct Step {
    layout: AttributeLayout,
    is_wanted: bool,
}

impl AttributeWalk {
    /// A walk that finds these attributes of the layout: numbers from 0, ascending, each once.
    ///
    /// # Panics
    /// When they are not in order, or past the last.
    pub fn new(layout: &TupleLayout, attributes: &[usize]) -> Self {
        assert!(attributes.is_sorted_by(|a, b| a < b), "attributes in their order, each once");
        let depth = attributes.last().map_or(0, |last| last + 1);
        let steps = layout.attributes[..depth].iter().enumerate();
        let step = |(at, layout): (usize, &AttributeLayout)| Step {
            layout: *layout,
            is_wanted: attributes.binary_search(&at).is_ok(),
        };
        let fixed_steps = layout.fixed.len().min(depth);
        let fixed = attributes.iter().filter_map(|at| layout.fixed.get(*at).copied());
        Self {
            steps: steps.map(step).collect(),
            fixed_steps,
            fixed_end: fixed_steps.checked_sub(1).map_or(0, |at| layout.fixed[at].end as usize),
            fixed: fixed.collect(),
        }
    }

    /// Appends the spans of the attributes; nothing when that fails.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] when a value runs past the tuple.
    #[inline]
    pub fn spans(&self, tuple: &TupleData<'_>, spans: &mut Vec<Span>) -> Result<()> {
        let before = spans.len();
        let found = match tuple.nulls {
            None if tuple.attributes >= self.steps.len() => self.whole(tuple.data, spans),
            _ => self.with_nulls(tuple, spans),
        };
        found.inspect_err(|_| spans.truncate(before))
    }

    /// The same of a tuple that has a value for each step.
    #[inline]
    fn whole(&self, data: &[u8], spans: &mut Vec<Span>) -> Result<()> {
        if self.fixed_end > data.len() {
            return Err(past_end(0, self.fixed_end, data.len()));
        }
        spans.extend_from_slice(&self.fixed);
        let mut at = self.fixed_end;
        for step in &self.steps[self.fixed_steps..] {
            let (start, end) = step.layout.locate(data, at)?;
            if step.is_wanted {
                spans.push(Span { start: start as u32, end: end as u32 });
            }
            at = end;
        }
        Ok(())
    }

    fn with_nulls(&self, tuple: &TupleData<'_>, spans: &mut Vec<Span>) -> Result<()> {
        let mut at = 0;
        for (attribute, step) in self.steps.iter().enumerate() {
            let span = if attribute >= tuple.attributes {
                Span::MISSING
            } else if tuple.is_null(attribute) {
                Span::NULL
            } else {
                let (start, end) = step.layout.locate(tuple.data, at)?;
                at = end;
                Span { start: start as u32, end: end as u32 }
            };
            if step.is_wanted {
                spans.push(span);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layout(shapes: &[(i16, u8)]) -> TupleLayout {
        let shapes = shapes.iter().map(|&(len, align)| AttributeLayout::new(len, align).unwrap());
        TupleLayout::new(shapes.collect())
    }

    #[test]
    fn values_are_aligned_and_short_ones_are_not() {
        let layout = layout(&[(2, b's'), (-1, b'i'), (4, b'i')]);
        let data = [7, 0, 0x07, b'a', b'b', 0, 0, 0, 9, 0, 0, 0];
        let tuple = TupleData { attributes: 3, nulls: None, data: &data };
        let mut spans = Vec::new();
        layout.spans(&tuple, 3, &mut spans).unwrap();
        assert_eq!(spans[1].of(&data).unwrap(), &[0x07, b'a', b'b']);
        assert_eq!(spans[2].of(&data).unwrap(), &[9, 0, 0, 0]);
    }

    #[test]
    fn a_null_takes_no_room_and_a_late_column_is_missing() {
        let layout = layout(&[(4, b'i'), (4, b'i'), (4, b'i')]);
        let data = [5, 0, 0, 0];
        let tuple = TupleData { attributes: 2, nulls: Some(&[0b10]), data: &data };
        let mut spans = Vec::new();
        layout.spans(&tuple, 3, &mut spans).unwrap();
        assert_eq!(spans[0], Span::NULL);
        assert_eq!(spans[1].of(&data).unwrap(), &data);
        assert_eq!(spans[2], Span::MISSING);
    }

    #[test]
    fn a_value_past_the_tuple_is_damage() {
        let layout = layout(&[(4, b'i'), (8, b'd')]);
        let tuple = TupleData { attributes: 2, nulls: None, data: &[0; 12] };
        assert!(layout.spans(&tuple, 2, &mut Vec::new()).is_err());
    }

    /// What a walk finds of some attributes is what all spans say of them.
    fn agree(layout: &TupleLayout, tuple: &TupleData<'_>, wanted: &[usize]) {
        let depth = wanted.last().map_or(0, |last| last + 1);
        let mut all = Vec::new();
        let expected = layout.spans(tuple, depth, &mut all);
        let mut spans = vec![Span::NULL];
        let found = AttributeWalk::new(layout, wanted).spans(tuple, &mut spans);
        assert_eq!(found.is_ok(), expected.is_ok());
        let of_wanted = wanted.iter().filter(|_| expected.is_ok()).map(|at| all[*at]);
        assert!(spans.into_iter().skip(1).eq(of_wanted));
    }

    proptest! {
        #[test]
        fn arbitrary_tuples_never_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            shapes in proptest::collection::vec((prop_oneof![Just(-2i16), Just(-1), 1i16..40],
                prop_oneof![Just(b'c'), Just(b's'), Just(b'i'), Just(b'd')]), 0..40),
            chosen in any::<u64>(),
        ) {
            let layout = layout(&shapes);
            let mut spans = Vec::new();
            if let Ok(tuple) = HeapTuple::parse(&bytes) {
                let _ = layout.spans(&tuple.data(), shapes.len(), &mut spans);
                for s in &spans {
                    let _ = s.of(tuple.data().data);
                }
                let some: Vec<usize> = (0..shapes.len()).filter(|at| chosen >> at & 1 == 1).collect();
                agree(&layout, &tuple.data(), &some);
            }
            if let Ok((_, _, tuple)) = TupleData::parse_composite(&bytes) {
                let _ = layout.spans(&tuple, shapes.len(), &mut spans);
            }
        }
    }
}
