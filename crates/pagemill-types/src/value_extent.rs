//! Whether values can be among those of which only the lowest and the highest are known, as they are stored: what a summary of a range of
//! blocks tells.
//!
//! Invariant: no is said only where no value between the two is wanted, both included.
//!
//! Source: `brin_minmax_consistent` in `src/backend/access/brin/brin_minmax.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use crate::index_key_order::KeyColumn;
use crate::index_key_range::ValueBounds;

/// The lowest and the highest of some values of a column, as they lie in a tuple.
#[derive(Debug, Clone, Copy)]
pub struct ValueExtent<'t> {
    /// No value is lower.
    pub lowest: &'t [u8],
    /// No value is higher.
    pub highest: &'t [u8],
}

impl ValueExtent<'_> {
    /// Whether one of these payloads can be among the values; they are in the order of the column.
    pub fn may_have_any(&self, column: &KeyColumn, sorted: &[Box<[u8]>]) -> bool {
        let is_lower = |value: &[u8]| column.compare_stored(Some(self.lowest), Some(value)).is_gt();
        let first = sorted.get(sorted.partition_point(|value| is_lower(value)));
        first.is_some_and(|first| column.compare_stored(Some(self.highest), Some(first)).is_ge())
    }

    /// Whether a value within these bounds can be among them.
    pub fn may_reach(&self, column: &KeyColumn, bounds: &ValueBounds) -> bool {
        let is_out = |value: &[u8], bound: &[u8], inclusive: bool, out: Ordering| {
            let order = column.compare_stored(Some(value), Some(bound));
            order == out || order == Ordering::Equal && !inclusive
        };
        let is_below = bounds.lower.as_ref().is_some_and(|bound| {
            is_out(self.highest, &bound.value, bound.inclusive, Ordering::Less)
        });
        let is_above = bounds.upper.as_ref().is_some_and(|bound| {
            is_out(self.lowest, &bound.value, bound.inclusive, Ordering::Greater)
        });
        !is_below && !is_above
    }
}

/// Puts payloads in the order of a column.
pub fn sort_payloads(column: &KeyColumn, payloads: &mut [Box<[u8]>]) {
    payloads.sort_unstable_by(|a, b| column.compare_payloads(Some(a), Some(b)));
}

#[cfg(test)]
mod tests {
    use pagemill_format::tuple::AttributeLayout;
    use proptest::prelude::*;

    use super::*;
    use crate::builtin::oid;
    use crate::index_key_range::KeyBound;
    use crate::order::{TextCollation, ValueOrder};

    fn column() -> KeyColumn {
        let layout = AttributeLayout { len: 4, align: 4 };
        let order = ValueOrder::of_type(oid::INT4, &TextCollation::C).unwrap();
        KeyColumn { layout, order, descending: false, nulls_first: false }
    }

    fn stored(value: i32) -> Box<[u8]> {
        value.to_le_bytes().into()
    }

    proptest! {
        /// Against all values that there can be between the two.
        #[test]
        fn what_is_told_is_what_there_can_be(
            low in 0..20_i32,
            more in 0..10_i32,
            mut wanted in prop::collection::vec(0..40_i32, 0..5),
            lower in prop::option::of((0..40_i32, any::<bool>())),
            upper in prop::option::of((0..40_i32, any::<bool>())),
        ) {
            let (column, high) = (column(), low + more);
            let (lowest, highest) = (stored(low), stored(high));
            let extent = ValueExtent { lowest: &lowest, highest: &highest };
            let mut payloads: Vec<Box<[u8]>> = wanted.drain(..).map(stored).collect();
            sort_payloads(&column, &mut payloads);
            let is_there = (low..=high).any(|value| payloads.contains(&stored(value)));
            prop_assert_eq!(extent.may_have_any(&column, &payloads), is_there);

            let bound = |(value, inclusive)| KeyBound { value: stored(value), inclusive };
            let bounds = ValueBounds { lower: lower.map(bound), upper: upper.map(bound) };
            let is_over = |value: i32| lower.is_none_or(|(at, own)| value > at || own && value == at);
            let is_under = |value: i32| upper.is_none_or(|(at, own)| value < at || own && value == at);
            // A range of the condition that has no value at all, or one between two, may be told to be met.
            if (low..=high).any(|value| is_over(value) && is_under(value)) {
                prop_assert!(extent.may_reach(&column, &bounds));
            }
            if !(low..=high).any(is_over) || !(low..=high).any(is_under) {
                prop_assert!(!extent.may_reach(&column, &bounds));
            }
        }
    }
}
