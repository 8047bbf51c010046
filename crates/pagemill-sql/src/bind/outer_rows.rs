//! An outer join by a condition to functions of the rows on its left: each of those with the rows of its own that meet the condition, and
//! one that none meets once, beside NULLs.
//!
//! Invariant: the rows on the left are computed once. They are numbered, and of the rows of one number either those are left that meet
//! the condition, or the first.
//!
//! Source: `ExecNestLoop` in `src/backend/executor/nodeNestloop.c`, PostgreSQL 18.

use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, ExprFunctionExt as _, LogicalPlan, LogicalPlanBuilder, WindowFunctionDefinition, is_true,
    lit, when,
};

use super::Binder;
use super::query::column;
use crate::error::Result;
use crate::expand::Expansion;
use crate::typed::Typed;

impl Binder<'_> {
    /// A left join by conditions to functions.
    pub(super) fn left_joined_rows(
        &mut self,
        left: LogicalPlan,
        (mut expansion, arguments): (Expansion, Vec<Typed>),
        conditions: Vec<Expr>,
    ) -> Result<LogicalPlan> {
        let [number, met, all_met, place] =
            ["left", "met", "all met", "place"].map(|name| self.fresh(name));
        let kept = left.schema().columns();
        let numbered = LogicalPlanBuilder::from(left).window([row_number().alias(&number)])?;
        expansion.keeps_all = true;
        let plan = self.expanded(numbered.build()?, expansion, arguments)?;
        let all = plan.schema().columns();
        let condition = conditions.into_iter().reduce(Expr::and).unwrap_or(lit(true)); // default: no condition is met by all
        let mut exprs: Vec<Expr> = all.iter().cloned().map(Expr::Column).collect();
        exprs.push(is_true(condition).alias(&met));
        let of_row = || vec![column(&number)];
        let counted = when(column(&met), lit(1_i64)).end()?;
        let count = WindowFunctionDefinition::AggregateUDF(count_udaf());
        let count = Expr::from(WindowFunction::new(count, vec![counted]));
        let windows = [
            count.partition_by(of_row()).build()?.alias(&all_met),
            row_number().partition_by(of_row()).build()?.alias(&place),
        ];
        let is_only = column(&all_met).eq(lit(0_i64)).and(column(&place).eq(lit(1_u64)));
        let shown =
            all.into_iter().filter(|known| known.name() != number).map(|known| -> Result<Expr> {
                let name = known.name().to_owned();
                let is_kept = kept.contains(&known);
                let value = Expr::Column(known);
                match is_kept {
                    true => Ok(value),
                    false => Ok(when(column(&met), value).end()?.alias(name)),
                }
            });
        let shown = shown.collect::<Result<Vec<Expr>>>()?;
        let plan = LogicalPlanBuilder::from(plan).project(exprs)?.window(windows)?;
        Ok(plan.filter(column(&met).or(is_only))?.project(shown)?.build()?)
    }
}
