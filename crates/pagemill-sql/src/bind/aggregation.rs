//! GROUP BY, aggregates and HAVING: the plan that groups, and what is left of the expressions above it.
//!
//! Aggregates are put aside where they are met, and a column stands in their place. Then every expression above the groups
//! may hold only these columns and what the rows are grouped by.
//!
//! Source: `parseCheckAggregates` in `src/backend/parser/parse_agg.c`, PostgreSQL 18.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::functions_aggregate::expr_fn::first_value;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use sqlparser::ast::{Expr as Syntax, GroupByExpr};

use super::query::{column, ordinal};
use super::scope::{Allowed, folded};
use super::{Binder, BoundColumn};
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::functions::keys;
use crate::typed::Typed;

impl Binder<'_> {
    /// The expressions of GROUP BY; `None` without one.
    pub(super) fn group_by(
        &mut self,
        group_by: &GroupByExpr,
        columns: &[BoundColumn],
    ) -> Result<Option<Vec<Typed>>> {
        let GroupByExpr::Expressions(items, modifiers) = group_by else {
            return fail(SqlState::SYNTAX_ERROR, "syntax error at or near \"ALL\"");
        };
        if !modifiers.is_empty() {
            return fail(SqlState::SYNTAX_ERROR, "syntax error in GROUP BY");
        }
        if items.is_empty() {
            return Ok(None);
        }
        self.level().allowed = Allowed::PlainIn("GROUP BY");
        items.iter().map(|item| self.group_item(item, columns)).collect::<Result<_>>().map(Some)
    }

    fn group_item(&mut self, syntax: &Syntax, columns: &[BoundColumn]) -> Result<Typed> {
        if matches!(syntax, Syntax::GroupingSets(_) | Syntax::Cube(_) | Syntax::Rollup(_)) {
            return unsupported("GROUPING SETS, CUBE and ROLLUP");
        }
        if let Some(at) = ordinal(syntax, columns.len(), "GROUP BY")? {
            return self.plain_group(columns[at].typed.clone());
        }
        // A column of FROM comes before one of the output.
        if let Syntax::Identifier(ident) = syntax {
            let name = folded(ident);
            let in_scope = self.level().scope.bare.iter().any(|column| column.name == name);
            if !in_scope && let Some(found) = columns.iter().find(|column| column.name == name) {
                return self.plain_group(found.typed.clone());
            }
        }
        self.expr(syntax)
    }

    fn plain_group(&mut self, typed: Typed) -> Result<Typed> {
        let aggregates = &self.level().aggregates;
        let has_aggregate = typed
            .expr
            .exists(|inner| Ok(aggregates.iter().any(|(_, stand_in)| stand_in.expr == *inner)))?;
        if has_aggregate {
            return fail(
                SqlState::GROUPING_ERROR,
                "aggregate functions are not allowed in GROUP BY",
            );
        }
        let sets = &self.level().sets;
        if typed.expr.exists(|inner| Ok(sets.has_stand_in(inner)))? {
            return unsupported("GROUP BY of a function that gives rows");
        }
        Ok(typed)
    }

    /// Groups, where the query does; the expressions then refer to the groups.
    pub(super) fn aggregated(
        &mut self,
        plan: LogicalPlan,
        groups: Option<Vec<Typed>>,
        having: Option<Typed>,
        above: &mut [&mut Typed],
    ) -> Result<LogicalPlan> {
        let aggregates = std::mem::take(&mut self.level().aggregates);
        if groups.is_none() && aggregates.is_empty() && having.is_none() {
            return Ok(plan);
        }
        let (mut keys_of_groups, mut values, mut known) = (Vec::new(), Vec::new(), Vec::new());
        for typed in groups.unwrap_or_default() {
            if known.iter().any(|(expr, _): &(Expr, Expr)| *expr == typed.expr) {
                continue;
            }
            // A constant groups nothing, and the engine takes a number for a position.
            let name = self.fresh("group");
            let key = keys::equality_key(&self.catalog, &typed)?;
            let is_own = key == typed.expr;
            keys_of_groups.push(key.alias(&name));
            let seen = match is_own {
                true => column(&name),
                false => {
                    let any = self.fresh("any");
                    values.push(first_value(typed.expr.clone(), Vec::new()).alias(&any));
                    column(&any)
                }
            };
            known.push((typed.expr, seen));
        }
        for (expr, stand_in) in &aggregates {
            let Expr::Column(stand_in) = &stand_in.expr else { continue };
            values.push(expr.clone().alias(stand_in.name()));
        }
        if keys_of_groups.is_empty() && values.is_empty() {
            // HAVING alone makes one group of all rows.
            let name = self.fresh("all");
            values.push(datafusion::functions_aggregate::expr_fn::count(lit(1)).alias(name));
        }
        let mut plan = LogicalPlanBuilder::from(plan).aggregate(keys_of_groups, values)?.build()?;
        let stand_ins: Vec<Expr> = aggregates.into_iter().map(|(_, typed)| typed.expr).collect();
        if let Some(having) = having {
            let condition = self.above_groups(having.expr, &known, &stand_ins)?;
            let condition = self.condition(condition)?;
            plan = LogicalPlanBuilder::from(plan).filter(condition)?.build()?;
        }
        for typed in above {
            typed.expr = self.above_groups(typed.expr.clone(), &known, &stand_ins)?;
        }
        let mut sets = std::mem::take(&mut self.level().sets);
        for argument in sets.arguments() {
            argument.expr = self.above_groups(argument.expr.clone(), &known, &stand_ins)?;
        }
        self.level().sets = sets;
        for at in 0..self.level().windows.len() {
            let expr = self.level().windows[at].0.clone();
            self.level().windows[at].0 = self.above_groups(expr, &known, &stand_ins)?;
        }
        Ok(plan)
    }

    /// The expression over the groups.
    fn above_groups(&self, expr: Expr, known: &[(Expr, Expr)], stand_ins: &[Expr]) -> Result<Expr> {
        let windows = self.levels.last().map(|level| &level.windows);
        let sets = self.levels.last().map(|level| &level.sets);
        let is_stand_in = |expr: &Expr| {
            stand_ins.contains(expr)
                || known.iter().any(|(_, seen)| seen == expr)
                || sets.is_some_and(|sets| sets.has_stand_in(expr))
                || windows.is_some_and(|windows| windows.iter().any(|(_, w)| w.expr == *expr))
        };
        let replaced = expr.transform_down(|inner| {
            if let Some((_, seen)) = known.iter().find(|(group, _)| *group == inner) {
                return Ok(Transformed::new(seen.clone(), true, TreeNodeRecursion::Jump));
            }
            if let Expr::Column(found) = &inner
                && !is_stand_in(&inner)
            {
                let shown = found.name().split('#').next().unwrap_or_default();
                let table = found.relation.as_ref().map(|relation| relation.table());
                let table = table.and_then(|table| table.split('#').next());
                let shown = table.map_or_else(|| shown.to_owned(), |table| format!("{table}.{shown}"));
                let message = format!(
                    "column \"{shown}\" must appear in the GROUP BY clause or be used in an aggregate function"
                );
                return Err(StatementError::new(SqlState::GROUPING_ERROR, message).into());
            }
            Ok(Transformed::no(inner))
        })?;
        Ok(replaced.data)
    }
}
