//! The blocks of a table that BRIN indexes leave by the conditions of a scan.
//!
//! Such an index is small beside its table, so all of it is read; the index that leaves the fewest blocks decides.
//!
//! Invariants: planning searches nothing; an index that is damaged, or cannot be read, is not used.

use std::ops::Range;

use pagemill_cluster::{RangeColumn, RangeIndex};
use pagemill_engine::{RangeLookup, Table, ValueCondition};
use pagemill_types::index_key_range::ValueBounds;

use super::index_access::{Access, Decision};
use super::index_conditions::Conditions;
use super::source::RelationSource;
use crate::error::{Error, Result};

/// What the conditions say of each column of an index; `None` where they say nothing of any.
fn conditions_of(
    source: &RelationSource,
    table: &Table,
    (index, conditions): (&RangeIndex, &Conditions),
) -> Option<Vec<Option<ValueCondition>>> {
    let of = |column: &RangeColumn| {
        let (position, _) = column.key.as_ref()?;
        let name = &table.relation.columns.get(*position)?.name;
        let place = source.columns.iter().position(|column| column.stored_name == *name)?;
        let known = conditions.get(&place)?;
        // Which ranges have NULLs is not asked: indexes of older minor releases do not always tell.
        let any_of = known.any_of.as_ref().and_then(|values| values.iter().cloned().collect());
        // Filters and networks tell whether there are values at all, and which single ones.
        let is_told =
            |bounds: &ValueBounds| column.has_order() || *bounds == ValueBounds::default();
        let bounds = known.bounds_in(column.collation).filter(is_told);
        let condition = ValueCondition { any_of, bounds };
        (condition.any_of.is_some() || condition.bounds.is_some()).then_some(condition)
    };
    let found: Vec<Option<ValueCondition>> = index.columns.iter().map(of).collect();
    found.iter().any(Option::is_some).then_some(found)
}

fn name_of(index: &RangeIndex) -> String {
    String::from_utf8_lossy(&index.class.name).into_owned()
}

/// The name of an index that can tell.
pub(super) fn range_index_of_conditions(
    source: &RelationSource,
    table: &Table,
    conditions: &Conditions,
) -> Result<Option<String>> {
    let indexes = source.context.catalog.search_indexes(&table.relation)?;
    let tells = |index: &&RangeIndex| conditions_of(source, table, (index, conditions)).is_some();
    Ok(indexes.ranges.iter().find(tells).map(name_of))
}

/// The blocks that are left, or in words why all of them are.
pub(super) fn by_ranges(
    source: &RelationSource,
    table: &Table,
    conditions: &Conditions,
) -> Result<Result<Decision, Vec<String>>> {
    let indexes = source.context.catalog.search_indexes(&table.relation)?;
    let (mut best, mut why) = (None::<(u32, Vec<Range<u32>>, String)>, Vec::new());
    for index in &indexes.ranges {
        let Some(of) = conditions_of(source, table, (index, conditions)) else { continue };
        let name = name_of(index);
        match left_by(source, table, (index, of)) {
            Ok(blocks) => {
                let count = blocks.iter().map(|range| range.end - range.start).sum();
                if best.as_ref().is_none_or(|(least, ..)| count < *least) {
                    best = Some((count, blocks, name));
                }
            }
            Err(pagemill_engine::Error::Cancelled) => {
                return Err(Error::Engine(pagemill_engine::Error::Cancelled));
            }
            Err(error) => why.push(format!("{name} ({error})")),
        }
    }
    Ok(match best {
        Some((count, blocks, name)) if count < table.blocks() => {
            let reason = format!("index {name}, which leaves {count} of {} blocks", table.blocks());
            Ok(Decision { access: Access::Blocks(blocks.into()), reason: reason.into() })
        }
        Some((_, _, name)) => {
            why.push(format!("{name} (leaves all blocks)"));
            Err(why)
        }
        None => Err(why),
    })
}

fn left_by(
    source: &RelationSource,
    table: &Table,
    (index, conditions): (&RangeIndex, Vec<Option<ValueCondition>>),
) -> pagemill_engine::Result<Vec<Range<u32>>> {
    let context = &source.context;
    let progress = context.progress.of_part();
    let reading = (context.options, &progress);
    RangeLookup::open(context.catalog.database(), index, conditions, reading)?.blocks(table)
}
