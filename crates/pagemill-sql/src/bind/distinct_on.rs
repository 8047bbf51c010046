//! DISTINCT ON: of rows that are equal in some expressions the first, in the order of the statement.
//!
//! Invariant: the engine wants those expressions first in the order, and as the same keys. Any of them may be the first one here, as
//! in PostgreSQL, and an order of fewer goes on with the rest.
//!
//! Source: `transformDistinctOnClause` in `src/backend/parser/parse_clause.c`, PostgreSQL 18.

use datafusion::common::tree_node::TreeNode as _;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, SortExpr};
use sqlparser::ast::{Expr as Syntax, Spanned as _};
use sqlparser::tokenizer::Span;

use super::query::{output_position, sort};
use super::scope::at_start;
use super::select::SortItem;
use super::windows::is_lifted;
use super::{Binder, Bound, BoundColumn};
use crate::error::{Result, SqlState, StatementError};
use crate::functions::keys;
use crate::typed::Typed;

/// By what rows are equal, and in what order they come, if in any.
struct Keys {
    on: Vec<Expr>,
    sorts: Option<Vec<SortExpr>>,
}

/// An expression of ON, and where it stands.
struct OnItem {
    typed: Typed,
    span: Span,
}

/// Refuses an order in which rows that are equal do not come one after the other.
fn check_initial_order(on: &[OnItem], order: &[SortItem<'_>]) -> Result<()> {
    let sorts = |item: &SortItem<'_>, on: &OnItem| is_same(&on.typed, &item.typed);
    let is_of_on = |item: &&SortItem<'_>| on.iter().any(|on| sorts(item, on));
    let (initial, rest) = order.split_at(order.iter().take_while(is_of_on).count());
    let is_missing = |on: &&OnItem| !initial.iter().any(|item| sorts(item, on));
    let missing: Vec<&OnItem> = on.iter().filter(is_missing).collect();
    let Some(first) = missing.first().filter(|_| !rest.is_empty()) else { return Ok(()) };
    // The server names one that is sorted by behind something else before one that is not sorted by.
    let late = rest.iter().find_map(|item| missing.iter().find(|on| sorts(item, on)));
    let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
    let error = StatementError::new(SqlState::INVALID_COLUMN_REFERENCE, message);
    Err(at_start(error, late.unwrap_or(first).span))
}

fn is_same(one: &Typed, other: &Typed) -> bool {
    one.expr == other.expr && one.ty == other.ty
}

impl Binder<'_> {
    /// The expressions; one that is named twice says no more.
    pub(super) fn distinct_items(
        &mut self,
        items: &[Syntax],
        columns: &[BoundColumn],
        order: &[SortItem<'_>],
    ) -> Result<Vec<Typed>> {
        let mut on: Vec<OnItem> = Vec::new();
        for syntax in items {
            let typed = match output_position(syntax, columns)? {
                Some(at) => columns[at].typed.clone(),
                None => self.expr(syntax)?,
            };
            if !on.iter().any(|before| is_same(&before.typed, &typed)) {
                on.push(OnItem { typed, span: syntax.span() });
            }
        }
        check_initial_order(&on, order)?;
        Ok(on.into_iter().map(|item| item.typed).collect())
    }

    /// True where functions of the select list give rows, and none is sorted by: the server calls them for the rows that are left.
    pub(super) fn has_sets_beside(&mut self, order: &[SortItem<'_>]) -> bool {
        let sets = &self.level().sets;
        let is_of_set = |item: &SortItem<'_>| {
            let found = item.typed.expr.exists(|inner| Ok(sets.has_stand_in(inner)));
            found.unwrap_or(true) // default: what cannot be looked at is taken for one
        };
        !sets.is_empty() && !order.iter().any(is_of_set)
    }

    /// The rows that are the first, with all that is known of them.
    pub(super) fn first_of_equal(
        &mut self,
        plan: LogicalPlan,
        on: Vec<Typed>,
        order: &[SortItem<'_>],
    ) -> Result<LogicalPlan> {
        let keys = self.keys(on, order)?;
        let all = plan.schema().columns().into_iter().map(Expr::Column).collect();
        let (plan, Keys { on, sorts }) = self.with_lifted_keys(plan, keys)?;
        Ok(LogicalPlanBuilder::from(plan).distinct_on(on, all, sorts)?.build()?)
    }

    pub(super) fn distinct_on(
        &mut self,
        plan: LogicalPlan,
        columns: Vec<BoundColumn>,
        on: Vec<Typed>,
        order: &[SortItem<'_>],
    ) -> Result<Bound> {
        let keys = self.keys(on, order)?;
        let (plan, Keys { on, sorts }) = self.with_lifted_keys(plan, keys)?;
        let (exprs, outputs) = self.outputs(columns);
        let plan = LogicalPlanBuilder::from(plan).distinct_on(on, exprs, sorts)?.build()?;
        Ok(Bound { plan, columns: outputs })
    }

    /// The rows with columns in the place of keys in which there is a CASE: the engine would not know them again behind its groups.
    fn with_lifted_keys(&mut self, plan: LogicalPlan, keys: Keys) -> Result<(LogicalPlan, Keys)> {
        let Keys { mut on, mut sorts } = keys;
        let mut lifted = Vec::new();
        let sorted = sorts.iter_mut().flatten().map(|sort| &mut sort.expr);
        for key in on.iter_mut().chain(sorted) {
            if is_lifted(key)? {
                *key = self.lifted_key(key, &mut lifted);
            }
        }
        if lifted.is_empty() {
            return Ok((plan, Keys { on, sorts }));
        }
        let all = plan.schema().columns().into_iter().map(Expr::Column);
        let all: Vec<Expr> = all.chain(lifted).collect();
        Ok((LogicalPlanBuilder::from(plan).project(all)?.build()?, Keys { on, sorts }))
    }

    fn keys(&self, mut left: Vec<Typed>, order: &[SortItem<'_>]) -> Result<Keys> {
        if order.is_empty() {
            let on = left.iter().map(|typed| keys::equality_key(&self.catalog, typed));
            return Ok(Keys { on: on.collect::<Result<_>>()?, sorts: None });
        }
        let (mut on, mut sorts) = (Vec::new(), Vec::<SortExpr>::new());
        for item in order {
            let key = keys::order_key(&self.catalog, &item.typed)?;
            let at = left.iter().position(|typed| is_same(typed, &item.typed));
            if let Some(at) = at {
                left.remove(at);
            }
            // Twice the same orders nothing more, and the engine counts on keys that differ.
            if sorts.iter().any(|before| before.expr == key) {
                continue;
            }
            if at.is_some() {
                // What sorts alike is equal, though equality may have another key.
                on.push(key.clone());
            }
            sorts.push(sort(key, item.syntax));
        }
        for typed in left {
            let key = keys::order_key(&self.catalog, &typed)?;
            if !sorts.iter().any(|before| before.expr == key) {
                on.push(key.clone());
                sorts.push(key.sort(true, false));
            }
        }
        Ok(Keys { on, sorts: Some(sorts) })
    }
}
