//! The order of an index's entries: its key columns one by one, then the heap TID.
//!
//! Entries are compared as the bytes they are stored as; a value that is compressed in line is
//! decompressed for it. Nulls come last or first as the column says, whatever its direction.
//!
//! Invariants: a total order, on damaged tuples too, where a column that cannot be found counts as
//! null; a lower abbreviation means an entry that comes earlier.
//!
//! Sources: `comparetup_index_btree` in `src/backend/utils/sort/tuplesort.c` (14, 15) and
//! `tuplesortvariants.c` (16 on), `_bt_keep_natts` in `src/backend/access/nbtree/nbtutils.c`.

use std::borrow::Cow;
use std::cmp::Ordering;

use pagemill_format::btree_builder::EntryOrder;
use pagemill_format::index_tuple_builder::{
    HEADER_BYTES, Truncation, entry_key_end, entry_tid, has_nulls, key_start,
};
use pagemill_format::tuple::AttributeLayout;

use crate::order::{ValueOrder, stored_payload};

/// A key column of an index.
#[derive(Debug, Clone)]
pub struct KeyColumn {
    /// `attlen` and `attalign` of the index's attribute.
    pub layout: AttributeLayout,
    /// The order of its operator class.
    pub order: ValueOrder,
    /// `DESC` (`indoption & 1`).
    pub descending: bool,
    /// `NULLS FIRST` (`indoption & 2`).
    pub nulls_first: bool,
}

impl KeyColumn {
    fn compare(&self, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
        self.compare_by(a, b, |a, b| self.order.compare(&self.payload(a), &self.payload(b)))
    }

    /// The order of a value as it is stored and a payload.
    pub(crate) fn compare_stored(&self, stored: Option<&[u8]>, payload: Option<&[u8]>) -> Ordering {
        self.compare_by(stored, payload, |stored, payload| {
            self.order.compare(&self.payload(stored), payload)
        })
    }

    /// The order of two payloads.
    pub(crate) fn compare_payloads(&self, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
        self.compare_by(a, b, |a, b| self.order.compare(a, b))
    }

    #[inline]
    fn compare_by(
        &self,
        a: Option<&[u8]>,
        b: Option<&[u8]>,
        values: impl FnOnce(&[u8], &[u8]) -> Ordering,
    ) -> Ordering {
        let nulls = if self.nulls_first { Ordering::Less } else { Ordering::Greater };
        match (a, b) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => nulls,
            (Some(_), None) => nulls.reverse(),
            (Some(a), Some(b)) => {
                let order = values(a, b);
                if self.descending { order.reverse() } else { order }
            }
        }
    }

    fn abbreviate(&self, value: Option<&[u8]>) -> u64 {
        match value {
            None if self.nulls_first => 0,
            None => u64::MAX,
            Some(value) => {
                let ascending = self.order.abbreviate(&self.payload(value));
                if self.descending { !ascending } else { ascending }
            }
        }
    }

    /// A value as it lies in the tuple, without its header. What cannot be read counts as empty.
    #[inline]
    fn payload<'t>(&self, value: &'t [u8]) -> Cow<'t, [u8]> {
        stored_payload(self.layout.len, value)
    }
}

/// The order of an index.
#[derive(Debug, Clone)]
pub struct KeyOrder {
    columns: Vec<KeyColumn>,
}

impl KeyOrder {
    /// The order by these columns (included ones are none of them).
    pub fn new(columns: Vec<KeyColumn>) -> Self {
        Self { columns }
    }

    pub(crate) fn columns(&self) -> &[KeyColumn] {
        &self.columns
    }

    /// How many key columns there are.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Which of two entries comes first in the index; equal only for the same heap tuple.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.compare_keys(a, b).then_with(|| entry_tid(a).cmp(&entry_tid(b)))
    }

    /// The order of two entries' keys.
    pub fn compare_keys(&self, a: &[u8], b: &[u8]) -> Ordering {
        let (mut a, mut b) = (Walk::new(a), Walk::new(b));
        for (number, column) in self.columns.iter().enumerate() {
            let order =
                column.compare(a.next(number, column.layout), b.next(number, column.layout));
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }

    /// True for two entries that have the same values in so many leading columns, NULLs being equal to each other.
    pub fn are_leading_equal(&self, a: &[u8], b: &[u8], columns: usize) -> bool {
        let (mut a, mut b) = (Walk::new(a), Walk::new(b));
        let leading = self.columns.iter().enumerate().take(columns);
        leading.into_iter().all(|(number, column)| {
            let values = (a.next(number, column.layout), b.next(number, column.layout));
            column.compare(values.0, values.1) == Ordering::Equal
        })
    }

    /// True for two entries that a unique index cannot both have, nulls being equal to each other; ask
    /// [`KeyOrder::has_null`] first where they are not.
    pub fn same_key(&self, a: &[u8], b: &[u8]) -> bool {
        self.compare_keys(a, b) == Ordering::Equal
    }

    /// True when some key column is null: such an entry is not a duplicate of any, unless the index is
    /// `NULLS NOT DISTINCT`.
    pub fn has_null(&self, entry: &[u8]) -> bool {
        let mut walk = Walk::new(entry);
        has_nulls(entry)
            && (0..).zip(&self.columns).any(|(n, column)| walk.next(n, column.layout).is_none())
    }

    /// A number lower than another entry's only if this entry comes earlier. Equal numbers say nothing.
    #[inline]
    pub fn abbreviate(&self, entry: &[u8]) -> u64 {
        let Some(first) = self.columns.first() else { return 0 };
        first.abbreviate(Walk::new(entry).next(0, first.layout))
    }

    /// True when entries without nulls that have the same abbreviation have the same key, so that sorting
    /// needs nothing else but their heap TIDs.
    pub fn is_decided_by_abbreviation(&self) -> bool {
        matches!(&self.columns[..], [only] if only.order.is_decided_by_abbreviation())
    }
}

impl EntryOrder for KeyOrder {
    fn has_equal_image(&self) -> bool {
        self.columns.iter().all(|column| column.order.has_equal_image())
    }

    fn truncation(&self, before: &[u8], entry: &[u8]) -> Truncation {
        let (mut left, mut right) = (Walk::new(before), Walk::new(entry));
        let mut kept = Truncation {
            columns: 0,
            key_bytes: 0,
            has_nulls: false,
            has_variable_widths: false,
            needs_tid: true,
        };
        for (number, column) in self.columns.iter().enumerate() {
            let (a, b) = (left.next(number, column.layout), right.next(number, column.layout));
            kept.columns += 1;
            kept.has_nulls |= b.is_none();
            kept.has_variable_widths |= b.is_some() && column.layout.len < 0;
            kept.key_bytes = right.at;
            if column.compare(a, b) != Ordering::Equal {
                kept.needs_tid = false;
                break;
            }
        }
        kept
    }
}

/// Steps from column to column of an entry.
pub(crate) struct Walk<'t> {
    /// The null bitmap, a set bit for a value that is there.
    present: u32,
    values: &'t [u8],
    at: usize,
}

impl<'t> Walk<'t> {
    #[inline]
    pub(crate) fn new(entry: &'t [u8]) -> Self {
        let bitmap = entry.get(HEADER_BYTES..).and_then(|rest| rest.first_chunk());
        let present = match bitmap {
            Some(bitmap) if has_nulls(entry) => u32::from_le_bytes(*bitmap),
            _ => u32::MAX,
        };
        let values = entry.get(key_start(entry)..entry_key_end(entry)).unwrap_or_default();
        Self { present, values, at: 0 }
    }

    /// The value of column `number`, which has to be the one after the last; `None` for null.
    #[inline]
    pub(crate) fn next(&mut self, number: usize, layout: AttributeLayout) -> Option<&'t [u8]> {
        if self.present.checked_shr(number as u32).unwrap_or(0) & 1 == 0 {
            return None;
        }
        let (start, end) = layout.locate(self.values, self.at).ok()?;
        self.at = end;
        self.values.get(start..end)
    }
}

#[cfg(test)]
mod tests;
