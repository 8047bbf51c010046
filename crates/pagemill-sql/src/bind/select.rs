//! SELECT: FROM, WHERE, GROUP BY, HAVING, the select list, DISTINCT, ORDER BY, in the order in which they take effect.
//!
//! Source: `transformSelectStmt` in `src/backend/parser/analyze.c`, `parse_clause.c`, PostgreSQL 18.

use arrow::datatypes::DataType;
use datafusion::functions_aggregate::expr_fn::{first_value, max, min};
use datafusion::functions_window::rank::rank_udwf;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, SortExpr, WindowFrame, WindowFrameBound,
    WindowFrameUnits, WindowFunctionDefinition, cast, lit,
};
use datafusion::scalar::ScalarValue;
use pagemill_types::builtin::oid;
use sqlparser::ast::{Distinct, Select, SelectFlavor};

use super::query::{Tail, boolean, column, output_position, sort};
use super::row_order::RowOrder;
use super::scope::{Allowed, Level};
use super::{Binder, Bound, BoundColumn};
use crate::catalog::CastContext;
use crate::coerce::coerce;
use crate::error::{Result, SqlState, fail, unsupported};
use crate::functions::keys;
use crate::functions::row_payloads::taken_apart;
use crate::typed::Typed;
use crate::types::{PgType, UNKNOWN};

/// Which of values that are equal and look different, 1 and 1.0, stands for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// The one that comes first, as where the server groups rows in the order in which they lie.
    Any,
    /// None: which one the server shows depends on its plan, so that there must be no two.
    AllAlike,
}

/// One item of ORDER BY: a column of the output, or another expression.
pub(super) struct SortItem<'q> {
    pub(super) typed: Typed,
    output: Option<usize>,
    pub(super) syntax: &'q sqlparser::ast::OrderByExpr,
}

/// In what order rows come, and whether equal ones come once.
struct Order<'q> {
    items: Vec<SortItem<'q>>,
    /// The number of a row among those that functions of the select list gave for one.
    number: Option<Typed>,
    is_distinct: bool,
    /// The last rank that comes, where rows that sort alike come together.
    ranks: Option<i64>,
}

impl Binder<'_> {
    pub(super) fn select(&mut self, select: &Select, tail: &Tail<'_>) -> Result<Bound> {
        refuse_strange(select)?;
        let keeps_literals = std::mem::take(&mut self.keeps_literals);
        let before = std::mem::take(&mut self.names_itself);
        let bound = self.bind_from(&select.from);
        let names_itself = std::mem::replace(&mut self.names_itself, before);
        let (plan, scope) = bound?;
        self.levels.push(Level { scope, names_itself, ..Level::default() });
        let bound = self.select_in_scope(select, plan, tail, keeps_literals);
        self.levels.pop();
        self.limited(bound?, tail)
    }

    fn select_in_scope(
        &mut self,
        select: &Select,
        mut plan: LogicalPlan,
        tail: &Tail<'_>,
        keeps_literals: bool,
    ) -> Result<Bound> {
        if let Some(condition) = &select.selection {
            self.level().allowed = Allowed::PlainIn("WHERE");
            let condition = self.expr(condition)?;
            let condition = boolean(condition, "WHERE", &self.catalog)?;
            let condition = self.condition(condition.expr)?;
            plan = LogicalPlanBuilder::from(plan).filter(condition)?.build()?;
        }
        self.level().row_order = RowOrder::of(&plan);
        self.name_windows(&select.named_window)?;
        self.level().allowed = Allowed::All;
        let mut columns = self.select_list(&select.projection)?;
        if !keeps_literals || matches!(select.distinct, Some(Distinct::Distinct)) {
            self.settle_literals(&mut columns)?;
        }
        for item in tail.order_by {
            if let Some(at) = output_position(&item.expr, &columns)? {
                self.settle_literals(&mut columns[at..=at])?;
            }
        }
        let groups = self.group_by(&select.group_by, &columns)?;
        if self.groups_rows_of_calls(groups.as_ref())? {
            plan = self.with_sets(plan)?.0;
        }
        let having = match &select.having {
            None => None,
            Some(syntax) => {
                self.level().allowed = Allowed::Aggregates;
                let typed = self.expr(syntax)?;
                Some(boolean(typed, "HAVING", &self.catalog)?)
            }
        };
        self.level().allowed = Allowed::All;
        let mut order = self.order_items(tail, &columns)?;
        let is_distinct_on = matches!(select.distinct, Some(Distinct::On(_)));
        let mut on = match &select.distinct {
            Some(Distinct::On(items)) => self.distinct_items(items, &columns, &order)?,
            _ => Vec::new(),
        };

        // From here on the parts are put together, from the inside out.
        let mut parts: Vec<&mut Typed> =
            columns.iter_mut().map(|column| &mut column.typed).collect();
        parts.extend(order.iter_mut().map(|item| &mut item.typed));
        parts.extend(on.iter_mut());
        plan = self.aggregated(plan, groups, having, &mut parts)?;
        plan = self.windowed(plan)?;
        if is_distinct_on && tail.with_ties {
            return unsupported("WITH TIES of DISTINCT ON");
        }
        if is_distinct_on && !order.is_empty() && self.has_sets_beside(&order) {
            let plan = self.first_of_equal(plan, on, &order)?;
            let (plan, number) = self.with_sets(plan)?;
            let order = Order { items: order, number, is_distinct: false, ranks: None };
            return self.projected(plan, columns, order);
        }
        let (plan, number) = self.with_sets(plan)?;
        if is_distinct_on {
            return self.distinct_on(plan, columns, on, &order);
        }
        let is_distinct = select.distinct.is_some();
        let ranks = self.ranks_with_ties(tail)?;
        self.projected(plan, columns, Order { items: order, number, is_distinct, ranks })
    }

    /// A literal that nothing gave a type to is a text.
    fn settle_literals(&mut self, columns: &mut [BoundColumn]) -> Result<()> {
        for column in columns.iter_mut().filter(|column| column.typed.ty.oid == UNKNOWN) {
            let text = PgType::new(oid::TEXT);
            column.typed =
                coerce(&self.catalog, column.typed.clone(), text, CastContext::Implicit)?;
        }
        Ok(())
    }

    fn order_items<'q>(
        &mut self,
        tail: &Tail<'q>,
        columns: &[BoundColumn],
    ) -> Result<Vec<SortItem<'q>>> {
        let mut items = Vec::new();
        for syntax in tail.order_by {
            if syntax.with_fill.is_some() {
                return fail(SqlState::SYNTAX_ERROR, "syntax error in ORDER BY");
            }
            let (typed, output) = match output_position(&syntax.expr, columns)? {
                Some(at) => (columns[at].typed.clone(), Some(at)),
                None => {
                    let typed = self.expr(&syntax.expr)?;
                    // The same values under another collation are in another order.
                    let is_it = |column: &BoundColumn| {
                        column.typed.expr == typed.expr && column.typed.ty == typed.ty
                    };
                    let at = columns.iter().position(is_it);
                    (typed, at)
                }
            };
            items.push(SortItem { typed, output, syntax });
        }
        Ok(items)
    }

    /// Each column under a name of its own, and the references to them.
    pub(super) fn outputs(&mut self, columns: Vec<BoundColumn>) -> (Vec<Expr>, Vec<BoundColumn>) {
        let mut exprs = Vec::with_capacity(columns.len());
        let mut outputs = Vec::with_capacity(columns.len());
        for column in columns {
            let (expr, mut typed) = self.named(&column.typed, &column.name);
            typed.literal = column.typed.literal;
            typed.parameter = column.typed.parameter;
            exprs.push(expr);
            outputs.push(BoundColumn { name: column.name, typed });
        }
        (exprs, outputs)
    }

    fn projected(
        &mut self,
        plan: LogicalPlan,
        columns: Vec<BoundColumn>,
        Order { items: order, number, is_distinct, ranks }: Order<'_>,
    ) -> Result<Bound> {
        let (mut exprs, mut outputs) = self.outputs(columns);
        let shown = exprs.len();
        let mut sorts = Vec::new();
        for item in &order {
            let typed = match item.output {
                Some(at) => outputs[at].typed.clone(),
                None if is_distinct => {
                    let message =
                        "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                    return fail(SqlState::INVALID_COLUMN_REFERENCE, message);
                }
                None => {
                    let (expr, typed) = self.named(&item.typed, "sort");
                    exprs.push(expr);
                    typed
                }
            };
            sorts.push((typed, item.syntax));
        }
        let number = match number.filter(|_| !sorts.is_empty() && !is_distinct) {
            None => None,
            Some(number) => {
                let (expr, typed) = self.named(&number, "number");
                exprs.push(expr);
                Some(typed)
            }
        };
        let is_wider = exprs.len() > shown || ranks.is_some();
        let mut plan = LogicalPlanBuilder::from(plan).project(exprs)?.build()?;
        if is_distinct {
            let before = outputs.clone();
            plan = self.distinct(plan, &mut outputs, Shown::Any)?;
            for (typed, _) in &mut sorts {
                let at = before.iter().position(|column| column.typed.expr == typed.expr);
                *typed = outputs[at.expect("sorted by outputs")].typed.clone(); // infallible: refused above
            }
        }
        if !sorts.is_empty() {
            let sort_of = |(typed, syntax): &(Typed, &sqlparser::ast::OrderByExpr)| {
                Ok(sort(keys::order_key(&self.catalog, typed)?, syntax))
            };
            let mut sorts: Vec<SortExpr> = sorts.iter().map(sort_of).collect::<Result<_>>()?;
            if let Some(most) = ranks {
                plan = self.up_to_rank(plan, sorts.clone(), most)?;
            }
            sorts.extend(number.map(|number| number.expr.sort(true, false)));
            plan = LogicalPlanBuilder::from(plan).sort(sorts)?.build()?;
        }
        if is_wider {
            let shown: Vec<Expr> = outputs.iter().map(|column| column.typed.expr.clone()).collect();
            plan = LogicalPlanBuilder::from(plan).project(shown)?.build()?;
        }
        Ok(Bound { plan, columns: outputs })
    }

    /// The rows of the first ranks.
    fn up_to_rank(
        &mut self,
        plan: LogicalPlan,
        order_by: Vec<SortExpr>,
        most: i64,
    ) -> Result<LogicalPlan> {
        let params = WindowFunctionParams {
            args: Vec::new(),
            partition_by: Vec::new(),
            order_by,
            // Ranks look at no frame; one of ranges the engine would make of the keys.
            window_frame: WindowFrame::new_bounds(
                WindowFrameUnits::Rows,
                WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
                WindowFrameBound::CurrentRow,
            ),
            filter: None,
            null_treatment: None,
            distinct: false,
        };
        let fun = WindowFunctionDefinition::WindowUDF(rank_udwf());
        let rank = Expr::from(WindowFunction { fun, params }).alias(self.fresh("rank"));
        let ranked = LogicalPlanBuilder::from(plan).window([rank])?;
        let made = ranked.schema().columns().pop().expect("a window adds a column"); // infallible: just added
        let is_in = cast(Expr::Column(made), DataType::Int64).lt_eq(lit(most));
        Ok(ranked.filter(is_in)?.build()?)
    }

    /// Of equal rows one. Where a value is not its own key, the rows are grouped by keys.
    pub(super) fn distinct(
        &mut self,
        plan: LogicalPlan,
        columns: &mut [BoundColumn],
        shown: Shown,
    ) -> Result<LogicalPlan> {
        // What is stored of rows has more in it than their fields.
        let mut are_plain = Vec::with_capacity(columns.len());
        for column in columns.iter_mut() {
            column.typed = taken_apart(&self.catalog, column.typed.clone())?;
            are_plain.push(keys::is_plain_row(&self.catalog, &column.typed)?);
        }
        let own = |column: &BoundColumn| keys::is_own_key(&self.catalog, &column.typed);
        let are_own = columns.iter().map(own).collect::<Result<Vec<bool>>>()?;
        if are_own.iter().all(|is_own| *is_own) {
            return Ok(LogicalPlanBuilder::from(plan).distinct()?.build()?);
        }
        let (mut groups, mut values) = (Vec::new(), Vec::new());
        for ((column_here, is_own), is_plain) in columns.iter_mut().zip(are_own).zip(are_plain) {
            let key = keys::equality_key(&self.catalog, &column_here.typed)?;
            if is_own {
                groups.push(key);
                continue;
            }
            let fresh = self.fresh("key");
            groups.push(key.alias(fresh));
            let name = self.fresh(&column_here.name);
            let value = column_here.typed.expr.clone();
            let one = column_here.typed.with_expr(column(&name));
            let shown = if is_plain { Shown::Any } else { shown };
            match shown {
                Shown::Any => {
                    values.push(first_value(value, Vec::new()).alias(&name));
                    column_here.typed = one;
                }
                Shown::AllAlike => {
                    let other = self.fresh(&column_here.name);
                    values.push(min(value.clone()).alias(&name));
                    values.push(max(value).alias(&other));
                    let pair = [one.clone(), one.with_expr(column(&other))];
                    column_here.typed = keys::alike(&self.catalog, &pair);
                }
            }
        }
        Ok(LogicalPlanBuilder::from(plan).aggregate(groups, values)?.build()?)
    }
}

fn refuse_strange(select: &Select) -> Result<()> {
    let is_strange = select.top.is_some()
        || select.exclude.is_some()
        || !select.lateral_views.is_empty()
        || select.prewhere.is_some()
        || !select.cluster_by.is_empty()
        || !select.distribute_by.is_empty()
        || !select.sort_by.is_empty()
        || select.qualify.is_some()
        || select.value_table_mode.is_some()
        || select.connect_by.is_some()
        || select.flavor != SelectFlavor::Standard;
    if is_strange {
        return fail(SqlState::SYNTAX_ERROR, "syntax error: no clause of PostgreSQL's SELECT");
    }
    if select.into.is_some() {
        return fail(SqlState::READ_ONLY, "cannot execute SELECT INTO in a read-only transaction");
    }
    if select.projection.is_empty() && select.distinct.is_some() {
        let message = "SELECT DISTINCT must have at least one column";
        return fail(SqlState::SYNTAX_ERROR, message);
    }
    Ok(())
}
