//! Whether a plan with parameters in the place of constants is what a statement with these constants means, and how it would run.
//!
//! It is asked of one statement when a plan for all that are like it is made: a constant that says more than a value, whatever it
//! stands in, shows in the plan.
//!
//! Invariant: where that cannot be told, it is not.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::scalar::ScalarValue;

use super::has_joins_or_sorts;
use crate::catalog::Catalog;
use crate::coerce::constant;
use crate::error::Result;
use crate::statement_texts::Constant;
use crate::types::PgType;

/// A statement with constants in the place of the last parameters.
pub(crate) struct Sample<'s> {
    /// As it was bound.
    pub(crate) plan: &'s LogicalPlan,
    pub(crate) constants: &'s [Constant],
}

impl Sample<'_> {
    /// Whether a plan with these parameters is that of the statement once the constants stand in it.
    pub(super) fn means(
        &self,
        catalog: &Arc<Catalog>,
        (bound, types): (&LogicalPlan, &[PgType]),
    ) -> Result<bool> {
        let first = types.len() - self.constants.len();
        let values = values_of(catalog, &types[first..], self.constants)?;
        let value = |id: &str| {
            let number: usize = id.strip_prefix('$')?.parse().ok()?;
            values.get(number.checked_sub(first + 1)?)
        };
        let changed = bound.clone().transform_up_with_subqueries(|node| {
            node.map_expressions(|expr| {
                expr.transform_up(|expr| {
                    let found = match &expr {
                        Expr::Placeholder(placeholder) => value(&placeholder.id).cloned(),
                        _ => None,
                    };
                    Ok(match found {
                        Some(value) => Transformed::yes(Expr::Literal(value, None)),
                        None => Transformed::no(expr),
                    })
                })
            })
        })?;
        Ok(changed.data == *self.plan)
    }

    /// Whether the plan has the steps that the statement would run by: estimates, by which sides of joins are chosen, see constants.
    pub(super) async fn is_run_by(
        &self,
        plan: &dyn ExecutionPlan,
        state: &SessionState,
    ) -> Result<bool> {
        if !has_joins_or_sorts(plan) {
            return Ok(true);
        }
        let own = state.create_physical_plan(self.plan).await?;
        Ok(have_same_steps(plan, &*own))
    }
}

fn have_same_steps(a: &dyn ExecutionPlan, b: &dyn ExecutionPlan) -> bool {
    let (below_a, below_b) = (a.children(), b.children());
    let mut pairs = below_a.iter().zip(&below_b);
    a.name() == b.name()
        && a.schema() == b.schema()
        && below_a.len() == below_b.len()
        && pairs.all(|(a, b)| have_same_steps(&***a, &***b))
}

/// Constants as values of these types.
pub(super) fn values_of(
    catalog: &Catalog,
    types: &[PgType],
    constants: &[Constant],
) -> Result<Vec<ScalarValue>> {
    let value = |(ty, given): (&PgType, &Constant)| match constant(catalog, *ty, &given.text)?.expr
    {
        Expr::Literal(value, _) => Ok(value),
        other => crate::error::unsupported(format!("the constant {other}")),
    };
    types.iter().zip(constants).map(value).collect()
}
