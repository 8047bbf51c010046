//! Whether a range of blocks can have rows that meet conditions, by what a BRIN index keeps of it.
//!
//! Values that are looked for are put in order, or hashed, once for all summaries.
//!
//! Invariants: no is said only where no row of the range can meet all conditions; all columns before the last that is asked are stepped over by
//! what is stored of them.
//!
//! Source: `brin_deconstruct_tuple` in `src/backend/access/brin/brin_tuple.c`, `bringetbitmap` in `brin.c`, and the `…_consistent` functions
//! in `brin_minmax.c`, `brin_minmax_multi.c`, `brin_bloom.c` and `brin_inclusion.c`, PostgreSQL 14 to 18.

use std::borrow::Cow;

use pagemill_cluster::{RangeColumn, SummaryKey, SummaryKind};
use pagemill_format::brin::RangeSummary;
use pagemill_format::varlena::{Varlena, decompress};
use pagemill_format::{Error, Result};
use pagemill_types::index_key_order::KeyColumn;
use pagemill_types::index_key_range::ValueBounds;
use pagemill_types::value_extent::{ValueExtent, sort_payloads};
use pagemill_types::value_extents::ValueExtents;
use pagemill_types::value_filter::ValueFilter;
use pagemill_types::value_network::may_cover;

/// Values that a column has of a summary, at most.
const MOST_STORED: usize = 3;

/// What the values of a column have to be, none of them NULL.
#[derive(Debug, Clone, Default)]
pub struct ValueCondition {
    /// One of these payloads.
    pub any_of: Option<Vec<Box<[u8]>>>,
    /// Within these bounds.
    pub bounds: Option<ValueBounds>,
}

/// A column, and what is asked of each summary of it.
pub(crate) struct ColumnTest<'i> {
    column: &'i RangeColumn,
    test: Option<Test<'i>>,
}

enum Test<'i> {
    Extent(&'i KeyColumn, ValueCondition),
    Extents(&'i KeyColumn, ValueCondition),
    /// Hashes, one of which the filter has to have.
    Filter(Vec<u32>),
    /// Addresses, one of which has to be in the network.
    Network(Vec<Box<[u8]>>),
    /// There is a value.
    NotNull,
}

impl<'i> ColumnTest<'i> {
    /// What a condition asks of a column; `None` for one without a condition.
    pub(crate) fn new(column: &'i RangeColumn, condition: Option<ValueCondition>) -> Self {
        let test = condition.map(|condition| Test::new(column, condition));
        Self { column, test }
    }
}

impl<'i> Test<'i> {
    fn new(column: &'i RangeColumn, mut condition: ValueCondition) -> Self {
        match &column.key {
            Some((_, SummaryKey::Order(key))) => {
                if let Some(values) = &mut condition.any_of {
                    sort_payloads(key, values);
                }
                match column.kind {
                    SummaryKind::Extents => Self::Extents(key, condition),
                    SummaryKind::Extent => Self::Extent(key, condition),
                    SummaryKind::Filter | SummaryKind::Inclusion => Self::NotNull,
                }
            }
            Some((_, SummaryKey::Hash(hash))) => match condition.any_of {
                Some(values) => {
                    Self::Filter(values.iter().map(|value| hash.short_hash(value)).collect())
                }
                None => Self::NotNull,
            },
            Some((_, SummaryKey::Network)) => condition.any_of.map_or(Self::NotNull, Self::Network),
            None => Self::NotNull,
        }
    }

    /// Whether a range of which this is stored can have a row that passes.
    fn may_be_met(&self, stored: [&[u8]; MOST_STORED], column: &RangeColumn) -> Result<bool> {
        let [first, second, third] = stored;
        match self {
            Self::NotNull => Ok(true),
            Self::Extent(key, condition) => {
                Ok(condition.may_be_met(key, ValueExtent { lowest: first, highest: second }))
            }
            Self::Extents(key, condition) => {
                let payload = payload(first)?;
                let mut extents = ValueExtents::parse(&payload, column.layout.len)?;
                while let Some(extent) = extents.next_extent()? {
                    if condition.may_be_met(key, extent) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Filter(hashes) => {
                let payload = payload(first)?;
                let filter = ValueFilter::parse(&payload)?;
                Ok(hashes.iter().any(|hash| filter.may_have(*hash)))
            }
            // Addresses of both families are in no network together.
            Self::Network(_) if second != [0] || third != [0] => Ok(true),
            Self::Network(addresses) => {
                let network = payload(first)?;
                Ok(addresses.iter().any(|address| may_cover(&network, address)))
            }
        }
    }
}

/// Whether a range with this summary can have rows that pass all tests.
pub(crate) fn meets(summary: &RangeSummary<'_>, tests: &[ColumnTest<'_>]) -> Result<bool> {
    if summary.is_placeholder() {
        return Ok(true);
    }
    if summary.is_empty() {
        return Ok(false);
    }
    let (values, mut at) = (summary.values(), 0);
    for (number, ColumnTest { column, test }) in tests.iter().enumerate() {
        if summary.is_all_null(number) {
            if test.is_some() {
                return Ok(false);
            }
            continue;
        }
        let mut stored = [&[][..]; MOST_STORED];
        for (value, layout) in stored.iter_mut().zip(column.stored()) {
            let (start, end) = layout.locate(values, at)?;
            at = end;
            *value = values.get(start..end).unwrap_or_default();
        }
        if let Some(test) = test
            && !test.may_be_met(stored, column)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

impl ValueCondition {
    fn may_be_met(&self, key: &KeyColumn, extent: ValueExtent<'_>) -> bool {
        let by_values = |values: &Vec<Box<[u8]>>| extent.may_have_any(key, values);
        let by_bounds = |bounds: &ValueBounds| extent.may_reach(key, bounds);
        self.any_of.as_ref().is_none_or(by_values) && self.bounds.as_ref().is_none_or(by_bounds)
    }
}

/// What is stored without its length word; summaries of some size are compressed.
fn payload(stored: &[u8]) -> Result<Cow<'_, [u8]>> {
    match Varlena::parse(stored)? {
        Varlena::Plain(payload) => Ok(Cow::Borrowed(payload)),
        Varlena::Compressed { raw_bytes, method, data } => {
            let mut payload = Vec::new();
            decompress(method, data, raw_bytes, &mut payload)?;
            Ok(Cow::Owned(payload))
        }
        Varlena::External(_) => Err(Error::corrupt("BRIN summary", 0, "a value out of line")),
    }
}

#[cfg(test)]
mod tests {
    use pagemill_format::brin::{KIND_SUMMARIES, SPECIAL_BYTES};
    use pagemill_format::page::LinePointer;
    use pagemill_format::tuple::AttributeLayout;
    use pagemill_format::{BLOCK_SIZE, BlockBytes};
    use pagemill_types::builtin::oid;
    use pagemill_types::index_key_range::KeyBound;
    use pagemill_types::order::{TextCollation, ValueOrder};
    use pagemill_types::value_hash::ValueHash;

    use super::*;

    const HEADER: usize = 24;
    const INT4: AttributeLayout = AttributeLayout { len: 4, align: 4 };

    fn page(summary: &[u8]) -> Box<BlockBytes> {
        let mut page = Box::new([0; BLOCK_SIZE]);
        let end = BLOCK_SIZE - SPECIAL_BYTES;
        let offset = (end - summary.len()) & !7;
        page[offset..offset + summary.len()].copy_from_slice(summary);
        page[HEADER..HEADER + 4]
            .copy_from_slice(&LinePointer::normal(offset, summary.len()).0.to_le_bytes());
        for (at, word) in [(12, HEADER + 4), (14, offset), (16, end)] {
            page[at..at + 2].copy_from_slice(&(word as u16).to_le_bytes());
        }
        page[BLOCK_SIZE - 2..].copy_from_slice(&KIND_SUMMARIES.to_le_bytes());
        page
    }

    fn number(value: i32) -> Box<[u8]> {
        value.to_le_bytes().into()
    }

    fn order() -> SummaryKey {
        let order = ValueOrder::of_type(oid::INT4, &TextCollation::C).unwrap();
        SummaryKey::Order(KeyColumn { layout: INT4, order, descending: false, nulls_first: false })
    }

    fn column(kind: SummaryKind, key: Option<SummaryKey>) -> RangeColumn {
        RangeColumn { layout: INT4, kind, key: key.map(|key| (0, key)), collation: None }
    }

    /// Of 8 to 10, 15 and 20.
    fn extents() -> Vec<u8> {
        let words = [oid::INT4.0 as i32, 1, 2, 32, 8, 10, 15, 20];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        [&[(bytes.len() as u8 + 1) << 1 | 1][..], &bytes].concat()
    }

    fn is_met(columns: &[RangeColumn], summary: &[u8], condition: ValueCondition) -> Result<bool> {
        let mut conditions = vec![None; columns.len() - 1];
        conditions.push(Some(condition));
        let tests: Vec<_> =
            columns.iter().zip(conditions).map(|(c, v)| ColumnTest::new(c, v)).collect();
        meets(&RangeSummary::parse(&page(summary), 1, columns.len())?, &tests)
    }

    fn any_of(values: &[i32]) -> ValueCondition {
        let values = values.iter().copied().map(number).collect();
        ValueCondition { any_of: Some(values), bounds: None }
    }

    #[test]
    fn a_range_is_left_out_where_none_of_its_extents_meets_all_conditions() {
        let columns = [column(SummaryKind::Extents, Some(order()))];
        let summary = [&[0, 0, 0, 0, 8, 0, 0, 0][..], &extents()].concat();
        let met = |condition| is_met(&columns, &summary, condition).unwrap();
        for (values, known) in [
            (&[9][..], true),
            (&[15], true),
            (&[11, 14, 16], false),
            (&[1, 20], true),
            (&[], false),
        ] {
            assert_eq!(met(any_of(values)), known, "{values:?}");
        }
        let bound = |value, inclusive| Some(KeyBound { value: number(value), inclusive });
        let within = |lower, upper| {
            met(ValueCondition { any_of: None, bounds: Some(ValueBounds { lower, upper }) })
        };
        assert!(!within(bound(10, false), bound(15, false)), "between two of them");
        assert!(within(bound(10, true), bound(15, false)));
        assert!(!within(bound(20, false), None));
        assert!(within(None, None), "there are values");
    }

    #[test]
    fn what_is_stored_of_columns_before_is_stepped_over() {
        let columns = [
            column(SummaryKind::Inclusion, None),
            column(SummaryKind::Extent, None),
            column(SummaryKind::Filter, Some(SummaryKey::Hash(ValueHash::Bytes))),
            column(SummaryKind::Extents, Some(order())),
        ];
        // A value with all in it, two booleans; two values behind a gap; a filter; extents.
        let before = [1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0];
        let summary =
            [&[0, 0, 0, 0, 8, 0, 0, 0][..], &before, &[2 << 1 | 1, 7], &extents()].concat();
        assert!(is_met(&columns, &summary, any_of(&[9])).unwrap());
        assert!(!is_met(&columns, &summary, any_of(&[7])).unwrap());
        // All values of the second column NULL: nothing is stored of it.
        let info = 8 | 0x80;
        let summary =
            [&[0, 0, 0, 0, info, 0b10, 0, 0][..], &before[..6], &[2 << 1 | 1, 7], &extents()];
        assert!(!is_met(&columns, &summary.concat(), any_of(&[7])).unwrap());
        assert!(is_met(&columns, &summary.concat(), any_of(&[20])).unwrap());
        assert!(is_met(&columns, &summary[..3].concat(), any_of(&[20])).is_err(), "it is cut");
    }
}
