//! The conditions that a scan evaluates itself, on the columns that they look at.
//!
//! Invariant: a row passes only if every condition is true of it, in whatever order they are looked at: none of them can fail
//! on a row ([`is_harmless`]).

use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, BooleanArray};
use arrow::compute::{and, prep_null_mask_filter};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, conjunction_opt};
use datafusion::physical_plan::filter_pushdown::PushedDown;
use pagemill_types::time_zone::Zone;

use super::day_conditions::by_days;
use super::harmless::is_harmless;

/// One of so many rows, or fewer, has to be left for a condition to be evaluated on these alone.
const FEW: usize = 4;

/// Makes another expression of one on columns of this schema.
pub(crate) trait Change:
    Fn(&Arc<dyn PhysicalExpr>, &Schema) -> QueryResult<Arc<dyn PhysicalExpr>>
{
}

impl<F> Change for F where
    F: Fn(&Arc<dyn PhysicalExpr>, &Schema) -> QueryResult<Arc<dyn PhysicalExpr>>
{
}

/// Conditions on the columns of a table.
#[derive(Debug, Clone, Default)]
pub(super) struct ScanFilters {
    conditions: Vec<Arc<dyn PhysicalExpr>>,
    /// Those that are left above the scan, which may tell where rows are to be looked for.
    hints: Vec<Arc<dyn PhysicalExpr>>,
}

impl ScanFilters {
    /// With more conditions, and which of them were taken. One that can fail is left where it is, and so are those behind it,
    /// which must not keep rows from it.
    pub(super) fn with(
        &self,
        more: Vec<Arc<dyn PhysicalExpr>>,
        schema: &SchemaRef,
        zone: Option<&Zone>,
    ) -> QueryResult<(Self, Vec<PushedDown>)> {
        let mut filters = self.clone();
        let taken = more.iter().take_while(|condition| is_harmless(condition, schema)).count();
        let left = more.len() - taken;
        for (at, condition) in more.into_iter().enumerate() {
            match at < taken {
                true => filters.conditions.push(by_days(condition, zone)?),
                // The engine offers what is left where it is more than once.
                false if filters.hints.contains(&condition) => {}
                false => filters.hints.push(condition),
            }
        }
        let mut answer = vec![PushedDown::Yes; taken];
        answer.extend(vec![PushedDown::No; left]);
        Ok((filters, answer))
    }

    /// With each condition on columns of this schema changed to one that is as harmless.
    pub(super) fn changed(&self, change: impl Change, schema: &Schema) -> QueryResult<Self> {
        let changed = |of: &[Arc<dyn PhysicalExpr>]| {
            of.iter().map(|condition| change(condition, schema)).collect::<QueryResult<_>>()
        };
        Ok(Self { conditions: changed(&self.conditions)?, hints: changed(&self.hints)? })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The conditions, on positions in the table.
    pub(super) fn conditions(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.conditions
    }

    /// Those, and the ones that are evaluated above: no row matters for which one of all of them does not hold.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<dyn PhysicalExpr>> {
        self.conditions.iter().chain(&self.hints)
    }

    /// All of them as one; `None` without any.
    pub(super) fn as_one(&self) -> Option<Arc<dyn PhysicalExpr>> {
        conjunction_opt(self.conditions.iter().cloned())
    }

    /// Those that look only at columns of which that holds, and the others.
    pub(super) fn split(&self, holds: impl Fn(usize) -> bool) -> [Self; 2] {
        let all_hold = |condition: &Arc<dyn PhysicalExpr>| columns_of(condition).all(&holds);
        let (some, others) = self.conditions.iter().cloned().partition(all_hold);
        [some, others].map(|conditions| Self { conditions, hints: Vec::new() })
    }

    /// Positions of the columns that are looked at, ascending.
    pub(super) fn columns(&self) -> Vec<usize> {
        let mut columns: Vec<usize> = self.conditions.iter().flat_map(columns_of).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The same on batches that have only these columns of the table.
    pub(super) fn on(&self, columns: &[usize]) -> QueryResult<RowFilter> {
        let moved = |condition: &Arc<dyn PhysicalExpr>| {
            let moved = condition.clone().transform(|node| moved_column(node, columns));
            moved.map(|moved| moved.data)
        };
        let conditions = self.conditions.iter().map(moved).collect::<QueryResult<_>>()?;
        Ok(RowFilter { conditions })
    }
}

fn columns_of(condition: &Arc<dyn PhysicalExpr>) -> impl Iterator<Item = usize> + use<> {
    collect_columns(condition).into_iter().map(|column| column.index())
}

fn moved_column(
    node: Arc<dyn PhysicalExpr>,
    columns: &[usize],
) -> QueryResult<Transformed<Arc<dyn PhysicalExpr>>> {
    let Some(column) = node.downcast_ref::<Column>() else { return Ok(Transformed::no(node)) };
    let place = columns.iter().position(|position| *position == column.index());
    let place = place.expect("filters look at the columns that are decoded for them"); // infallible: collected from them
    Ok(Transformed::yes(Arc::new(Column::new(column.name(), place))))
}

/// Conditions on the columns of a batch.
pub(super) struct RowFilter {
    conditions: Vec<Arc<dyn PhysicalExpr>>,
}

impl RowFilter {
    /// Which rows pass; `None` when all do.
    pub(super) fn passing(&self, batch: &RecordBatch) -> QueryResult<Option<BooleanArray>> {
        let mut passing: Option<BooleanArray> = None;
        for condition in &self.conditions {
            let left = passing.as_ref().map_or(batch.num_rows(), BooleanArray::true_count);
            if left == 0 {
                break;
            }
            let value = match &passing {
                Some(mask) if left * FEW <= batch.num_rows() => {
                    condition.evaluate_selection(batch, mask)?
                }
                _ => condition.evaluate(batch)?,
            };
            let found = value.into_array(batch.num_rows())?;
            let found = truths(found.as_boolean());
            passing = Some(match passing {
                None => found,
                Some(before) => and(&before, &found)?,
            });
        }
        Ok(passing.filter(|mask| mask.true_count() < mask.len()))
    }
}

/// NULL is as good as false.
fn truths(found: &BooleanArray) -> BooleanArray {
    match found.null_count() {
        0 => found.clone(),
        _ => prep_null_mask_filter(found),
    }
}
