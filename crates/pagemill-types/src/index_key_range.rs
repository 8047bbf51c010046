//! Which entries of an index a condition on its key columns leads to: a range of its order.
//!
//! A range fixes some leading key columns, and may bound the one after them. In the order of the index its entries
//! follow each other:
//!
//! ```text
//! before … before | inside … inside | behind … behind
//! ```
//!
//! Bounds are told by value, lower and upper; a descending column turns them round. A bounded column is never NULL inside.
//! What was cut off from a pivot's key counts as lower than every value.
//!
//! Invariant: along the order of the index the places of a range's tuples never go back.
//!
//! Source: `_bt_compare` and `_bt_checkkeys` in `src/backend/access/nbtree`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use pagemill_format::btree::IndexTuple;

use crate::index_key_order::{KeyColumn, KeyOrder, Walk};

/// Where an entry lies of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Everything of the range comes later.
    Before,
    /// It belongs to the range; a pivot may have some of it on either side.
    Inside,
    /// Everything of the range comes earlier.
    Behind,
}

/// An end of a range of values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyBound {
    /// The payload of the value.
    pub value: Box<[u8]>,
    /// The value itself belongs to the range.
    pub inclusive: bool,
}

/// The values a column may have; never NULL.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueBounds {
    /// No value is lower.
    pub lower: Option<KeyBound>,
    /// No value is higher.
    pub upper: Option<KeyBound>,
}

/// A range of an index.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyRange {
    /// The payloads that the leading columns have; `None` for NULL.
    pub equal: Vec<Option<Box<[u8]>>>,
    /// The bounds of the column after them.
    pub bounds: Option<ValueBounds>,
}

impl KeyOrder {
    /// Which of two ranges comes first by the columns that both fix; equal where these are.
    pub fn compare_ranges(&self, a: &KeyRange, b: &KeyRange) -> Ordering {
        let columns = self.columns().iter().zip(&a.equal).zip(&b.equal);
        columns
            .map(|((column, a), b)| column.compare_payloads(a.as_deref(), b.as_deref()))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// Where a tuple lies of a range, the first data item of an internal page aside: that is before all.
    pub fn place(&self, tuple: &IndexTuple<'_>, range: &KeyRange) -> Place {
        let present = tuple.key_columns().map_or(usize::MAX, usize::from);
        let mut walk = Walk::new(tuple.bytes());
        for (number, column) in self.columns().iter().enumerate() {
            let wanted = range.equal.get(number);
            if wanted.is_none() && range.bounds.is_none() && number < present {
                return Place::Inside;
            }
            if number >= present {
                return Place::Before;
            }
            let value = walk.next(number, column.layout);
            let place = match (wanted, &range.bounds) {
                (Some(wanted), _) => of_order(column.compare_stored(value, wanted.as_deref())),
                (None, Some(bounds)) => return column.place(value, bounds),
                (None, None) => Place::Inside,
            };
            if place != Place::Inside {
                return place;
            }
        }
        // Where the order knows fewer columns than the index has, a pivot that still has the others lacks nothing.
        let lacks_tid = present == self.columns().len() && tuple.pivot_heap_tid().is_none();
        if lacks_tid { Place::Before } else { Place::Inside }
    }
}

impl KeyColumn {
    /// Where a value lies of the bounds, in the order of the column.
    fn place(&self, value: Option<&[u8]>, bounds: &ValueBounds) -> Place {
        let Some(value) = value else {
            return if self.nulls_first { Place::Before } else { Place::Behind };
        };
        let (start, end) = match self.descending {
            false => (&bounds.lower, &bounds.upper),
            true => (&bounds.upper, &bounds.lower),
        };
        let order = |bound: &KeyBound| {
            (self.compare_stored(Some(value), Some(&bound.value)), bound.inclusive)
        };
        match (start.as_ref().map(order), end.as_ref().map(order)) {
            (Some((Ordering::Less, _) | (Ordering::Equal, false)), _) => Place::Before,
            (_, Some((Ordering::Greater, _) | (Ordering::Equal, false))) => Place::Behind,
            _ => Place::Inside,
        }
    }
}

fn of_order(order: Ordering) -> Place {
    match order {
        Ordering::Less => Place::Before,
        Ordering::Equal => Place::Inside,
        Ordering::Greater => Place::Behind,
    }
}
