//! Which blocks of a table hold all rows that conditions on `ctid` let pass.
//!
//! Invariant: a row of another block passes not all of the conditions, which are evaluated on each row all the same.
//!
//! Source: `TidQualFromExpr` in `src/backend/optimizer/path/tidpath.c`, PostgreSQL 14 to 18.

use std::ops::Range;

use pagemill_types::index_key_range::KeyBound;

use super::index_conditions::{ColumnCondition, Conditions};
use super::relation_table::TableColumn;
use super::system_columns::SystemColumn;

/// The blocks, in ascending ranges apart from one another; `None` where no condition is on `ctid`.
pub(super) fn blocks_of_tids(
    columns: &[TableColumn],
    conditions: &Conditions,
) -> Option<Vec<Range<u32>>> {
    let ctid = columns.iter().position(|column| column.system == Some(SystemColumn::Ctid))?;
    let ColumnCondition { any_of, bounds } = conditions.get(&ctid)?;
    if let Some(values) = any_of {
        let mut blocks: Vec<u32> =
            values.iter().flatten().filter_map(|value| block(value)).collect();
        blocks.sort_unstable();
        blocks.dedup();
        return Some(as_ranges(&blocks));
    }
    let bounds = bounds.get(&None)?;
    let at = |bound: &Option<KeyBound>| bound.as_ref().and_then(|bound| block(&bound.value));
    if bounds.lower.is_none() && bounds.upper.is_none() {
        return None;
    }
    let (first, last) = (at(&bounds.lower).unwrap_or(0), at(&bounds.upper).unwrap_or(u32::MAX));
    let all = first..last.saturating_add(1);
    Some(std::iter::once(all).collect())
}

/// The block of a TID by its payload, which has the high half of it first.
fn block(payload: &[u8]) -> Option<u32> {
    let [a, b, c, d] = *payload.first_chunk()?;
    Some(u32::from(u16::from_le_bytes([a, b])) << 16 | u32::from(u16::from_le_bytes([c, d])))
}

fn as_ranges(blocks: &[u32]) -> Vec<Range<u32>> {
    let follows = |a: &u32, b: &u32| a.checked_add(1) == Some(*b);
    let range = |run: &[u32]| run[0]..run[run.len() - 1].saturating_add(1);
    blocks.chunk_by(follows).map(range).collect()
}

/// What of such ranges lies within another.
pub(super) fn within(ranges: &[Range<u32>], bounds: &Range<u32>) -> Vec<Range<u32>> {
    let cut = |range: &Range<u32>| range.start.max(bounds.start)..range.end.min(bounds.end);
    ranges.iter().map(cut).filter(|range| !range.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_follow_one_another_are_one_range() {
        assert_eq!(as_ranges(&[1, 2, 3, 7, 9, 10]), [1..4, 7..8, 9..11]);
        assert_eq!(as_ranges(&[]), []);
        assert_eq!(within(&[1..4, 7..8, 9..11], &(2..10)), [2..4, 7..8, 9..10]);
        assert_eq!(within(&[1..4, 5..7], &(8..10)), []);
    }

    #[test]
    fn the_block_is_the_first_of_a_tid() {
        assert_eq!(block(&[1, 0, 2, 0, 7, 0]), Some(65_538));
        assert_eq!(block(&[0, 1]), None);
    }
}
