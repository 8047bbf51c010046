//! The order of rows that an aggregate sees: `string_agg(x, ',')` over a query with ORDER BY collects in that order.
//!
//! The engine drops a sort that nothing asks for, so the order is asked for where it matters.
//!
//! Source: `make_pathkeys_for_groupagg` in `src/backend/optimizer/plan/planner.c`, PostgreSQL 18: from 16 on the server sorts
//! the rows for the aggregates that have ORDER BY or DISTINCT, and those that have none see them so, too.

use datafusion::logical_expr::{Expr, LogicalPlan, SortExpr};

use super::Binder;
use super::query::column;
use crate::barrier::barred;
use crate::error::{Result, unsupported};

/// From which version on the server sorts for aggregates beforehand.
const PRESORTED: u32 = 16;

/// The order in which a plan gives its rows.
#[derive(Debug, Clone, Default)]
pub(super) enum RowOrder {
    /// None that a statement asked for.
    #[default]
    Any,
    By(Vec<SortExpr>),
    /// By something that is no column any more.
    Hidden,
}

/// Which aggregates without ORDER BY a SELECT has beside those with one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sorting {
    is_sorted: bool,
    is_loose: bool,
}

impl Sorting {
    /// True where rows that the server sorts for their groups come to an aggregate that shows their order: what it sorts by says
    /// nothing about equal ones.
    pub(super) fn is_lost(self, sets: usize) -> bool {
        self.is_loose && (self.is_sorted || sets > 1)
    }
}

impl RowOrder {
    pub(super) fn of(plan: &LogicalPlan) -> Self {
        match plan {
            LogicalPlan::Sort(sort) => Self::By(sort.expr.clone()),
            LogicalPlan::Filter(filter) => Self::of(&filter.input),
            LogicalPlan::Limit(limit) => Self::of(&limit.input),
            LogicalPlan::Projection(projection) => {
                Self::of(&projection.input).above(&projection.expr)
            }
            other => barred(other).map_or(Self::Any, Self::of),
        }
    }

    /// The same order by the columns of a projection.
    fn above(self, exprs: &[Expr]) -> Self {
        let Self::By(sorts) = self else { return self };
        let renamed = |mut sort: SortExpr| {
            let found = exprs.iter().find_map(|expr| match expr {
                Expr::Alias(alias) if *alias.expr == sort.expr => Some(column(&alias.name)),
                other if *other == sort.expr => Some(other.clone()),
                _ => None,
            });
            sort.expr = found?;
            Some(sort)
        };
        match sorts.into_iter().map(renamed).collect() {
            Some(sorts) => Self::By(sorts),
            None => Self::Hidden,
        }
    }
}

impl Binder<'_> {
    /// The order in which an aggregate collects.
    pub(super) fn order_of_rows(
        &mut self,
        name: &str,
        own: Vec<SortExpr>,
        is_sorted: bool,
    ) -> Result<Vec<SortExpr>> {
        let is_loose = !is_sorted && depends_on_order(name);
        let sorting = &mut self.level().sorting;
        sorting.is_sorted |= is_sorted;
        sorting.is_loose |= is_loose;
        let is_mixed = sorting.is_sorted && sorting.is_loose;
        if is_mixed && self.catalog.database().cluster().version().major() >= PRESORTED {
            return unsupported(format!("{name} without ORDER BY beside an aggregate with one"));
        }
        match &self.level().row_order {
            RowOrder::By(sorts) if is_loose => Ok(sorts.clone()),
            RowOrder::Hidden if is_loose => {
                unsupported(format!("{name} over rows in the order of what they do not show"))
            }
            _ => Ok(own),
        }
    }
}

/// True for aggregates that collect their values in a row.
fn depends_on_order(name: &str) -> bool {
    const OF_SET: [&str; 4] = ["string_agg", "array_agg", "xmlagg", "any_value"];
    OF_SET.contains(&name) || name.starts_with("json")
}
