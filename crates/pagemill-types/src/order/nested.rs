//! Orders of values that are made of others: arrays, ranges, multiranges, rows.
//!
//! Arrays go by their elements, a shorter one first, then by their shape; rows by their attributes. In both a null is
//! higher than all, and equal to another. Ranges go by their lower bounds, then by their upper ones, the empty range
//! first; multiranges range by range.
//!
//! Invariants: values are compared as sequences, and damage ends one early, so that the order is total whatever the
//! bytes; nesting is that of the type, which whoever builds the order bounds.
//!
//! Sources: `array_cmp` in `src/backend/utils/adt/arrayfuncs.c`, `range_cmp` and `range_cmp_bounds` in `rangetypes.c`,
//! `multirange_cmp` in `multirangetypes.c`, `record_cmp` in `rowtypes.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use pagemill_format::reader::Reader;
use pagemill_format::tuple::{AttributeLayout, Span, TupleData, TupleLayout};
use pagemill_format::varlena::VARLENA_HEADER_BYTES;

use super::{ValueOrder, stored_payload};
use crate::array::Elements;
use crate::range::{
    EMPTY, LOWER_INCLUSIVE, LOWER_INFINITE, LOWER_NULL, UPPER_INCLUSIVE, UPPER_INFINITE,
    UPPER_NULL, next_offset,
};

/// Where the bounds of a range begin: behind its type's OID.
const RANGE_BOUNDS: usize = 4;

/// The order of the values inside of others: elements, bounds, attributes.
#[derive(Debug, Clone)]
pub struct InnerOrder {
    /// Their length and alignment.
    pub layout: AttributeLayout,
    /// Their order.
    pub order: ValueOrder,
}

impl InnerOrder {
    /// The order of two stored values.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let len = self.layout.len;
        self.order.compare(&stored_payload(len, a), &stored_payload(len, b))
    }

    /// The order of two stored values or nulls, which are higher.
    fn compare_nullable(&self, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) => self.compare(a, b),
            (a, b) => a.is_none().cmp(&b.is_none()),
        }
    }
}

pub(super) fn compare_arrays(element: &InnerOrder, a: &[u8], b: &[u8]) -> Ordering {
    let open = |value| Elements::open(value, element.layout).ok();
    let (Some(mut a), Some(mut b)) = (open(a), open(b)) else {
        return open(a).is_some().cmp(&open(b).is_some());
    };
    loop {
        match (a.next(), b.next()) {
            (Some(x), Some(y)) => match element.compare_nullable(x, y) {
                Ordering::Equal => {}
                other => return other,
            },
            (None, None) => break,
            (x, y) => return x.is_some().cmp(&y.is_some()),
        }
    }
    let lengths = |array: &Elements<'_>| array.dimensions().map(|(len, _)| len).collect::<Vec<_>>();
    let counts = a.dimensions().count().cmp(&b.dimensions().count());
    let lower = |(_, lower): (usize, i32)| lower;
    counts
        .then_with(|| lengths(&a).cmp(&lengths(&b)))
        .then_with(|| a.dimensions().map(lower).cmp(b.dimensions().map(lower)))
}

/// A range's bounds, of which those that are not there are infinite.
#[derive(Default)]
struct Bounds<'a> {
    flags: u8,
    lower: Option<&'a [u8]>,
    upper: Option<&'a [u8]>,
}

impl<'a> Bounds<'a> {
    /// The bounds that `bytes` begin with. One that is damaged counts as infinite.
    fn read(layout: AttributeLayout, flags: u8, bytes: &'a [u8]) -> Self {
        let mut at = 0;
        let mut bound = |absent: u8| {
            if flags & (absent | EMPTY) != 0 {
                return None;
            }
            let (start, end) = layout.locate(bytes, at).ok()?;
            at = end;
            bytes.get(start..end)
        };
        let lower = bound(LOWER_INFINITE | LOWER_NULL);
        let upper = bound(UPPER_INFINITE | UPPER_NULL);
        Self { flags, lower, upper }
    }

    fn of_range(layout: AttributeLayout, value: &'a [u8]) -> Self {
        match value.get(RANGE_BOUNDS..).and_then(<[u8]>::split_last) {
            Some((flags, bytes)) => Self::read(layout, *flags, bytes),
            None => Self { flags: EMPTY, ..Self::default() },
        }
    }

    fn compare(&self, other: &Self, inner: &InnerOrder) -> Ordering {
        match (self.flags & EMPTY != 0, other.flags & EMPTY != 0) {
            (false, false) => {}
            (a, b) => return b.cmp(&a),
        }
        self.compare_lower(other, inner).then_with(|| self.compare_upper(other, inner))
    }

    fn compare_lower(&self, other: &Self, inner: &InnerOrder) -> Ordering {
        match (self.lower, other.lower) {
            // One that shuts its value out lies above it.
            (Some(a), Some(b)) => inner
                .compare(a, b)
                .then_with(|| (other.flags & LOWER_INCLUSIVE).cmp(&(self.flags & LOWER_INCLUSIVE))),
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    }

    fn compare_upper(&self, other: &Self, inner: &InnerOrder) -> Ordering {
        match (self.upper, other.upper) {
            (Some(a), Some(b)) => inner
                .compare(a, b)
                .then_with(|| (self.flags & UPPER_INCLUSIVE).cmp(&(other.flags & UPPER_INCLUSIVE))),
            (a, b) => b.is_some().cmp(&a.is_some()),
        }
    }
}

pub(super) fn compare_ranges(bound: &InnerOrder, a: &[u8], b: &[u8]) -> Ordering {
    let read = |value| Bounds::of_range(bound.layout, value);
    read(a).compare(&read(b), bound)
}

/// The ranges of a multirange one by one.
struct Ranges<'a> {
    layout: AttributeLayout,
    items: &'a [u8],
    flags: &'a [u8],
    bounds: &'a [u8],
    number: usize,
    offset: usize,
}

impl<'a> Ranges<'a> {
    fn open(layout: AttributeLayout, value: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new("multirange", value);
        reader.u32().ok()?;
        let count = reader.u32().ok()? as usize;
        let items = reader.bytes(count.checked_sub(1)?.saturating_mul(4)).ok()?;
        let flags = reader.bytes(count).ok()?;
        let start = layout.align_up(reader.pos() + VARLENA_HEADER_BYTES) - VARLENA_HEADER_BYTES;
        let bounds = value.get(start..).unwrap_or_default();
        Some(Self { layout, items, flags, bounds, number: 0, offset: 0 })
    }
}

impl<'a> Iterator for Ranges<'a> {
    type Item = Bounds<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let flags = *self.flags.get(self.number)?;
        if let Some(before) = self.number.checked_sub(1) {
            self.offset = next_offset(self.offset, self.items.get(before * 4..)?);
        }
        self.number += 1;
        Some(Bounds::read(self.layout, flags, self.bounds.get(self.offset..)?))
    }
}

pub(super) fn compare_multiranges(bound: &InnerOrder, a: &[u8], b: &[u8]) -> Ordering {
    let ranges = |value| Ranges::open(bound.layout, value).into_iter().flatten();
    let (mut a, mut b) = (ranges(a), ranges(b));
    loop {
        match (a.next(), b.next()) {
            (Some(x), Some(y)) => match x.compare(&y, bound) {
                Ordering::Equal => {}
                other => return other,
            },
            (x, y) => return x.is_some().cmp(&y.is_some()),
        }
    }
}

/// The order of rows of one type.
#[derive(Debug, Clone)]
pub struct RecordOrder {
    layout: TupleLayout,
    attributes: Vec<Option<InnerOrder>>,
}

impl RecordOrder {
    /// For rows of these attributes, of which those that were dropped have no order.
    pub fn new(attributes: Vec<(AttributeLayout, Option<ValueOrder>)>) -> Self {
        let layout = TupleLayout::new(attributes.iter().map(|(layout, _)| *layout).collect());
        let inner = |(layout, order): (AttributeLayout, Option<ValueOrder>)| {
            Some(InnerOrder { layout, order: order? })
        };
        Self { layout, attributes: attributes.into_iter().map(inner).collect() }
    }

    pub(super) fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let (a, b) = (self.values(a), self.values(b));
        let (Some((a_data, a_spans)), Some((b_data, b_spans))) = (&a, &b) else {
            return a.is_some().cmp(&b.is_some());
        };
        let value = |data, spans: &[Span], at: usize| spans.get(at).and_then(|span| span.of(data));
        for (at, inner) in self.attributes.iter().enumerate() {
            let Some(inner) = inner else { continue };
            let (a, b) = (value(a_data, a_spans, at), value(b_data, b_spans, at));
            match inner.compare_nullable(a, b) {
                Ordering::Equal => {}
                other => return other,
            }
        }
        Ordering::Equal
    }

    /// The bytes of a row's values, and where each lies; nothing for a damaged row.
    fn values<'a>(&self, value: &'a [u8]) -> Option<(&'a [u8], Vec<Span>)> {
        let (_, _, tuple) = TupleData::parse_composite(value).ok()?;
        let mut spans = Vec::new();
        self.layout.spans(&tuple, self.attributes.len(), &mut spans).ok()?;
        Some((tuple.data, spans))
    }
}
