//! Queries inside of expressions: EXISTS, IN, and those that give one value.
//!
//! Source: `transformSubLink` in `src/backend/parser/parse_expr.c`, PostgreSQL 18.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::common::{Column, ScalarValue, Spans};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::{Case, Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, Limit, LogicalPlan, LogicalPlanBuilder, Subquery, is_null, is_true, lit, not, when,
};
use pagemill_types::builtin::oid;
use sqlparser::ast::{
    BinaryOperator, Expr as Syntax, Function, FunctionArguments, Ident, ObjectName, Query,
    SelectItem, SetExpr,
};

use super::correlation::{is_product, with_computed_keys, without_guards};
use super::expressions::{has_no_common_key, refuse_row_of_type, truth_value, unnested};
use super::first_of_query::{first_as_aggregate, without_limit};
use super::lateral::outer_columns;
use super::query_options::value_of;
use super::row_memberships::rows_as_joins;
use super::row_order::RowOrder;
use super::scope::Allowed;
use super::{Binder, Bound, BoundColumn};
use crate::catalog::TypeRow;
use crate::coerce::{brought, constant, result_type};
use crate::error::{Result, SqlState, fail, unsupported};
use crate::functions::aggregates::{AggregateCall, aggregate, single};
use crate::functions::keys;
use crate::functions::row_forms::shown_row;
use crate::functions::row_values::without_names;
use crate::nested::NestedQuery;
use crate::system_rows::PG_CATALOG;
use crate::typed::Typed;
use crate::types::{PgType, RECORD, RECORDS};

/// What stands for the function of which a comparison with the rows of a query is made; no statement can name it.
pub(super) const ROWS: &str = "\0rows";

/// The rows of a query as an array, as `ARRAY(SELECT …)` has them, to compare something with each.
pub(super) fn array_of_query(query: &Query) -> Syntax {
    Syntax::Function(Function {
        name: ObjectName::from(vec![Ident::new(ROWS)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::Subquery(Box::new(query.clone())),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

impl Binder<'_> {
    pub(super) fn exists(&mut self, query: &Query, negated: bool) -> Result<Typed> {
        let bound = self.query(query)?;
        self.exists_row(bound.plan, negated)
    }

    /// Whether a query has a row.
    pub(super) fn exists_row(&mut self, plan: LogicalPlan, negated: bool) -> Result<Typed> {
        if self.is_nested(&plan) {
            return self.counted(plan, negated);
        }
        refuse_functions(&plan)?;
        let plan = without_limit(plan)?;
        // The engine has EXISTS in conditions only; elsewhere, and where nothing refers outwards, rows are counted.
        if self.level().allowed != Allowed::PlainIn("WHERE") || !is_correlated(&plan) {
            return self.counted(plan, negated);
        }
        // As a join it would lose the row of an aggregate over nothing, and LIMIT for each row of the query around.
        if count_nodes(&plan, is_of_whole) > 0 {
            return unsupported(
                "EXISTS over aggregates or LIMIT that refers to the query around it",
            );
        }
        let exists = Exists { subquery: subquery(plan), negated };
        Ok(truth_value(Expr::Exists(exists)))
    }

    /// Whether a query has a row for which a condition on the query around holds, and nothing below that refers outwards: whatever
    /// is below, it becomes a join.
    pub(super) fn exists_in_free(&mut self, plan: LogicalPlan) -> Result<Typed> {
        if self.nests || self.level().allowed != Allowed::PlainIn("WHERE") {
            return self.exists_row(plan, false);
        }
        let exists = Exists { subquery: subquery(plan), negated: false };
        Ok(truth_value(Expr::Exists(exists)))
    }

    fn counted(&mut self, plan: LogicalPlan, negated: bool) -> Result<Typed> {
        if is_correlated(&plan) && !self.nests {
            return self.counted_for_each(plan, negated);
        }
        let name = self.fresh("exists");
        let count = datafusion::functions_aggregate::expr_fn::count(lit(1));
        let plan = LogicalPlanBuilder::from(plan)
            .limit(0, Some(1))?
            .aggregate(Vec::<Expr>::new(), [count.alias(&name)])?
            .build()?;
        let count = self.value_of(plan, &DataType::Int64)?;
        let none = lit(0_i64);
        Ok(truth_value(if negated { count.eq(none) } else { count.gt(none) }))
    }

    /// True for a query that is run for each row around it.
    fn is_nested(&self, plan: &LogicalPlan) -> bool {
        self.nests && is_correlated(plan)
    }

    /// The value of a query of one value.
    fn value_of(&mut self, plan: LogicalPlan, carrier: &DataType) -> Result<Expr> {
        match self.is_nested(&plan) {
            true => self.nested(plan, carrier),
            false => Ok(Expr::ScalarSubquery(subquery(plan))),
        }
    }

    /// The value of an expression with queries in it that refer to nothing around them, run at once; `None` for what is another value in another
    /// run of the statement.
    pub(super) fn value_run_at_once(&mut self, expr: &Expr) -> Result<Option<ScalarValue>> {
        let is_open = |inner: &Expr| {
            Ok(matches!(inner, Expr::OuterReferenceColumn(..) | Expr::Placeholder(_)))
        };
        let is_bound = expr.column_refs().is_empty() && !expr.exists(is_open)?;
        if self.parameters.are_generic() || expr.is_volatile() || !is_bound {
            return Ok(None);
        }
        let name = self.fresh("query");
        let plan = LogicalPlanBuilder::empty(true).project([expr.clone().alias(&name)])?.build()?;
        if is_correlated(&plan) {
            return Ok(None);
        }
        let carrier = plan.schema().field(0).data_type().clone();
        let query = NestedQuery { name, plan, outer: Vec::new(), carrier };
        let value = query.of(Vec::new(), self.tables.nested()?);
        Ok(Some(value_of(&value)?))
    }

    /// The value of a query that is run for each row around it.
    fn nested(&mut self, plan: LogicalPlan, carrier: &DataType) -> Result<Expr> {
        let outer = outer_columns(&plan);
        let around = self.levels.len().saturating_sub(1);
        let is_further = |column: &Column| {
            let tables = self.levels[..around].iter().flat_map(|level| &level.scope.tables);
            let mut columns = tables.flat_map(|table| table.all_columns());
            columns.any(|known| known.typed.expr == Expr::Column(column.clone()))
        };
        let value = |(column, carrier): &(Column, DataType)| match is_further(column) {
            true => {
                let field = Field::new(column.name(), carrier.clone(), true);
                Expr::OuterReferenceColumn(Arc::new(field), column.clone())
            }
            false => Expr::Column(column.clone()),
        };
        let values = outer.iter().map(value).collect();
        let name = self.fresh("query");
        let query = NestedQuery { name, plan, outer, carrier: carrier.clone() };
        Ok(query.of(values, self.tables.nested()?))
    }

    /// Of a query that refers to the one around it, all rows are counted.
    fn counted_for_each(&mut self, plan: LogicalPlan, negated: bool) -> Result<Typed> {
        if count_nodes(&plan, is_of_whole) > 0 {
            return unsupported(
                "EXISTS over aggregates or LIMIT that refers to the query around it",
            );
        }
        let (plan, guards) = without_guards(plan)?;
        let plan = with_computed_keys(plan, &mut || self.fresh("key"))?;
        let name = self.fresh("exists");
        let count = datafusion::functions_aggregate::expr_fn::count(lit(1));
        let plan = LogicalPlanBuilder::from(plan)
            .aggregate(Vec::<Expr>::new(), [count.alias(&name)])?
            .build()?;
        let count = Expr::ScalarSubquery(subquery(plan));
        let count = match conjunction(guards) {
            Some(guard) => when(guard, count).end()?,
            None => count,
        };
        // Neither a row around that nothing is joined to nor one that its own condition excludes has a count.
        let found = is_true(count.gt(lit(0_i64)));
        Ok(truth_value(if negated { not(found) } else { found }))
    }

    pub(super) fn scalar_subquery(&mut self, query: &Query) -> Result<Typed> {
        let Bound { plan, mut columns } = self.query(query)?;
        if columns.len() != 1 {
            return fail(SqlState::SYNTAX_ERROR, "subquery must return only one column");
        }
        let BoundColumn { name, typed } = columns.remove(0);
        if is_starred(query) {
            self.star_name = Some(name);
        }
        if typed.is_row() && typed.ty.oid != RECORD {
            let stored = shown_row(&self.catalog, &typed);
            let name = self.fresh("row");
            let (expr, typed) = self.named(&stored, &name);
            let plan = LogicalPlanBuilder::from(plan).project([expr])?.build()?;
            return self.one_value(plan, typed);
        }
        Ok(without_names(self.one_value(plan, typed)?))
    }

    /// The value of a query of one column.
    pub(super) fn one_value(&mut self, plan: LogicalPlan, typed: Typed) -> Result<Typed> {
        if self.is_nested(&plan) || is_correlated(&plan) && is_product(&plan) {
            return Ok(typed.with_expr(self.nested(plan, &typed.carrier)?));
        }
        refuse_functions(&plan)?;
        let plan = match is_correlated(&plan) {
            true => {
                let first = first_as_aggregate(&plan, &self.fresh("first"))?.unwrap_or(plan);
                with_computed_keys(first, &mut || self.fresh("key"))?
            }
            false => plan,
        };
        refuse_nested_aggregates(&plan)?;
        let plan = self.or_null(plan, &typed)?;
        if !is_correlated(&plan) || count_nodes(&plan, is_of_whole) > 0 {
            return Ok(typed.with_expr(Expr::ScalarSubquery(subquery(plan))));
        }
        let (plan, guards) = without_guards(plan)?;
        let plan = self.one_row(plan, &typed)?;
        let value = Expr::ScalarSubquery(subquery(plan));
        Ok(typed.with_expr(match conjunction(guards) {
            Some(guard) => when(guard, value).end()?,
            None => value,
        }))
    }

    /// The value of a query that a function in SQL is: run for each row around it where it refers to that.
    pub(super) fn value_of_rows(&mut self, plan: LogicalPlan, typed: &Typed) -> Result<Typed> {
        if is_correlated(&plan) {
            return Ok(typed.with_expr(self.nested(plan, &typed.carrier)?));
        }
        let plan = self.or_null(plan, typed)?;
        Ok(typed.with_expr(Expr::ScalarSubquery(subquery(plan))))
    }

    /// The engine joins a query to the rows around it, and must know that it has one row for each.
    fn one_row(&mut self, plan: LogicalPlan, typed: &Typed) -> Result<LogicalPlan> {
        let value = Expr::Column(plan.schema().columns().remove(0));
        let name = self.fresh("value");
        let value = single(value, &typed.carrier).alias(name);
        Ok(LogicalPlanBuilder::from(plan).aggregate(Vec::<Expr>::new(), [value])?.build()?)
    }

    /// `ARRAY(SELECT …)`: an array of all values, in their order. Of arrays it would be one of their elements, which is not what rows
    /// are compared with.
    pub(super) fn array_of_query(&mut self, query: &Query, is_of_rows: bool) -> Result<Typed> {
        let Bound { mut plan, mut columns } = self.query(query)?;
        if columns.len() != 1 {
            return fail(SqlState::SYNTAX_ERROR, "subquery must return only one column");
        }
        if !self.nests {
            refuse_functions(&plan)?;
        }
        let mut typed = columns.remove(0).typed;
        if is_of_rows && self.catalog.type_row(typed.ty.oid).is_some_and(TypeRow::is_array) {
            return unsupported("a comparison with the arrays that a query gives");
        }
        // What the rows are in the order of need not be among what is shown of them.
        if matches!(RowOrder::of(&plan), RowOrder::Hidden)
            && let Some((below, value)) = below_one_value(&plan)
        {
            typed = typed.with_expr(value);
            plan = below;
        }
        let catalog = self.catalog.clone();
        let chosen = crate::resolve::whole_function(
            &catalog,
            Some(PG_CATALOG),
            "array_agg",
            &[typed.ty.oid],
        )?;
        let order_by = match RowOrder::of(&plan) {
            RowOrder::Any => Vec::new(),
            RowOrder::By(sorts) => sorts,
            RowOrder::Hidden => {
                return unsupported("ARRAY of rows in the order of what they do not show");
            }
        };
        let plan = unsorted(plan)?;
        let arguments = brought(&catalog, &chosen, vec![typed])?;
        let result = result_type(&catalog, chosen.result, &arguments)?;
        let given = AggregateCall {
            arguments,
            distinct: false,
            filter: None,
            order_by,
            directs: Vec::new(),
        };
        let array = aggregate(&catalog, &chosen.function.key, given, result)?;
        let array = array.expect("array_agg is known"); // infallible: of any type
        let name = self.fresh("array");
        let plan = LogicalPlanBuilder::from(plan)
            .aggregate(Vec::<Expr>::new(), [array.expr.clone().alias(name)])?
            .build()?;
        if !self.nests {
            refuse_nested_aggregates(&plan)?;
        }
        let array = array.with_expr(self.value_of(plan, &array.carrier)?);
        let of_texts = catalog.type_row(oid::TEXT).map_or(result.oid, |row| row.array);
        let read_as = if result.oid == RECORDS { PgType::new(of_texts) } else { result };
        let empty = Typed { ty: result, ..constant(&catalog, read_as, "{}")? };
        super::cases::coalesce(&catalog, vec![array, empty])
    }

    /// A constant is never NULL to the engine, but a query of one value is where it has no rows.
    fn or_null(&mut self, plan: LogicalPlan, typed: &Typed) -> Result<LogicalPlan> {
        let is_nullable = plan.schema().fields().iter().any(|field| field.is_nullable());
        if is_nullable || is_correlated(&plan) {
            return Ok(plan);
        }
        let fresh = self.fresh("value");
        let value = keys::unchanged(&self.catalog, typed).alias(fresh);
        Ok(LogicalPlanBuilder::from(plan).project([value])?.build()?)
    }

    /// `x IN (SELECT …)`, over keys that are equal for equal values.
    pub(super) fn in_subquery(
        &mut self,
        syntax: &Syntax,
        query: &Query,
        negated: bool,
    ) -> Result<Typed> {
        refuse_row_of_type(syntax)?;
        if let Some(fields) = self.written_fields(unnested(syntax))? {
            let found = self.row_and_rows(&fields, &BinaryOperator::Eq, query, false)?;
            return Ok(if negated { truth_value(not(found.expr)) } else { found });
        }
        // The engine has IN (SELECT …) in conditions only.
        let is_condition = match self.level().allowed {
            Allowed::PlainIn(clause) => matches!(clause, "WHERE" | "JOIN conditions"),
            Allowed::Aggregates => true,
            Allowed::Plain | Allowed::All => false,
        };
        if !is_condition {
            return self.in_array_of(syntax, query, negated);
        }
        let typed = self.expr(syntax)?;
        let Bound { plan, mut columns } = self.query(query)?;
        if columns.len() != 1 {
            return fail(SqlState::SYNTAX_ERROR, "subquery has too many columns");
        }
        // The join that looks for NULLs looks at the rows of all outer rows together.
        if is_correlated(&plan) {
            return self.in_array_of(syntax, query, negated);
        }
        let (left, right) = self.operands_of_equality(typed, columns.remove(0).typed)?;
        if has_no_common_key(&left, &right) {
            let name = |typed: &Typed| self.catalog.type_name(typed.ty.oid);
            return unsupported(format!("{} IN (SELECT {})", name(&left), name(&right)));
        }
        let (left, right) = keys::equality_pair(&self.catalog, &left, &right)?;
        let name = self.fresh("key");
        let plan = LogicalPlanBuilder::from(plan).project([right.alias(name)])?.build()?;
        let found = InSubquery { expr: Box::new(left), subquery: subquery(plan), negated: false };
        let found = Expr::InSubquery(found);
        Ok(truth_value(if negated { not(found) } else { found }))
    }

    /// `x IN (SELECT …)` as a value: `x = ANY (ARRAY(SELECT …))`, which NULL makes of the same.
    fn in_array_of(&mut self, syntax: &Syntax, query: &Query, negated: bool) -> Result<Typed> {
        let found = self.expr(&Syntax::AnyOp {
            left: Box::new(syntax.clone()),
            compare_op: BinaryOperator::Eq,
            right: Box::new(array_of_query(query)),
            is_some: false,
        })?;
        Ok(if negated { truth_value(not(found.expr)) } else { found })
    }

    /// The condition of WHERE or HAVING. The engine makes `IN (SELECT …)` a join, which tells what is not there from what may
    /// be there, a NULL beside it, only where the whole condition is that or its negation; deeper inside it is spelled out.
    pub(super) fn condition(&mut self, condition: Expr) -> Result<Expr> {
        let parts = split_conjunction_owned(condition).into_iter().map(rows_as_joins);
        let parts = parts.map(|part| match &part {
            // What is not of the rows around it would be looked for among the query's rows alone, and no NULL of them be seen.
            Expr::InSubquery(found) if found.negated && !has_columns(&found.expr) => {
                self.with_nulls(part)
            }
            Expr::InSubquery(_) => Ok(part),
            Expr::Not(inner) if matches!(&**inner, Expr::InSubquery(found) if has_columns(&found.expr)) => {
                Ok(part)
            }
            _ => self.with_nulls(part),
        });
        let parts = parts.collect::<Result<Vec<Expr>>>()?;
        Ok(conjunction(parts).unwrap_or_else(|| lit(true)))
    }

    fn with_nulls(&mut self, expr: Expr) -> Result<Expr> {
        let spelled_out = expr.transform_up(|inner| match inner {
            Expr::InSubquery(found) => {
                let made = self.found_or_null(found);
                made.map(Transformed::yes).map_err(DataFusionError::from)
            }
            other => Ok(Transformed::no(other)),
        });
        Ok(spelled_out?.data)
    }

    /// True where the value is among those of the query; else NULL where it or one of them is NULL, but false over no rows.
    fn found_or_null(&mut self, mut found: InSubquery) -> Result<Expr> {
        let is_negated = std::mem::take(&mut found.negated);
        let plan = Arc::unwrap_or_clone(found.subquery.subquery.clone());
        let keys = plan.schema().columns();
        let is_null_there = LogicalPlanBuilder::from(plan.clone())
            .filter(is_null(Expr::Column(keys[0].clone())))?
            .build()?;
        let is_null_here = is_null((*found.expr).clone());
        let may_be = is_null_here
            .and(self.counted(plan, false)?.expr)
            .or(self.counted(is_null_there, false)?.expr);
        let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
        let when_then = |when: Expr, then: Expr| (Box::new(when), Box::new(then));
        let when_then_expr =
            vec![when_then(Expr::InSubquery(found), lit(true)), when_then(may_be, unknown)];
        let else_expr = Some(Box::new(lit(false)));
        let told = Expr::Case(Case { expr: None, when_then_expr, else_expr });
        Ok(if is_negated { not(told) } else { told })
    }
}

/// True where the first item of the select list is a `*`.
fn is_starred(query: &Query) -> bool {
    let SetExpr::Select(select) = &*query.body else { return false };
    let first = select.projection.first();
    matches!(first, Some(SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)))
}

/// A function that gives rows for one of the query around cannot become a join.
fn refuse_functions(plan: &LogicalPlan) -> Result<()> {
    match crate::expand::refers_outwards(plan) {
        true => unsupported("a function that gives rows and refers to the query around it"),
        false => Ok(()),
    }
}

/// An aggregate over no rows gives one, which is lost below another aggregate when the whole becomes a join.
///
/// # Errors
/// When a query that refers to the one around it has an aggregate or a condition on top of another.
fn refuse_nested_aggregates(plan: &LogicalPlan) -> Result<()> {
    let aggregates = count_nodes(plan, |node| matches!(node, LogicalPlan::Aggregate(_)));
    let has_having = count_nodes(plan, |node| {
        let is_aggregate = |below: &LogicalPlan| matches!(below, LogicalPlan::Aggregate(_));
        matches!(node, LogicalPlan::Filter(_)) && count_nodes(node, is_aggregate) > 0
    });
    match is_correlated(plan) && (aggregates > 1 || has_having > 0) {
        true => unsupported(
            "a condition or an aggregate on aggregates that refers to the query around it",
        ),
        false => Ok(()),
    }
}

/// True where a plan, however deep, refers to columns of the query around it.
pub(super) fn is_correlated(plan: &LogicalPlan) -> bool {
    !plan.all_out_ref_exprs().is_empty()
}

/// True for what depends on all rows below it, not on each.
fn is_of_whole(node: &LogicalPlan) -> bool {
    use LogicalPlan::{Aggregate, Limit, Union, Window};
    matches!(node, Aggregate(_) | Limit(_) | Union(_) | Window(_))
}

/// The rows that a query of one column shows one value of, and that value.
pub(super) fn below_one_value(plan: &LogicalPlan) -> Option<(LogicalPlan, Expr)> {
    match plan {
        LogicalPlan::Projection(shown) => match &shown.expr[..] {
            [value] => Some((Arc::unwrap_or_clone(shown.input.clone()), value.clone().unalias())),
            _ => None,
        },
        LogicalPlan::Limit(limit) => {
            let (below, value) = below_one_value(&limit.input)?;
            let limit = Limit { input: Arc::new(below), ..limit.clone() };
            Some((LogicalPlan::Limit(limit), value))
        }
        _ => None,
    }
}

/// The same rows in any order, where an order takes none of them away.
fn unsorted(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => Arc::unwrap_or_clone(sort.input),
        LogicalPlan::Projection(shown) => {
            let input = unsorted(Arc::unwrap_or_clone(shown.input))?;
            LogicalPlanBuilder::from(input).project(shown.expr)?.build()?
        }
        other => other,
    })
}

fn has_columns(expr: &Expr) -> bool {
    !expr.column_refs().is_empty()
}

fn count_nodes(plan: &LogicalPlan, is_counted: impl Fn(&LogicalPlan) -> bool + Copy) -> usize {
    let below: usize = plan.inputs().into_iter().map(|input| count_nodes(input, is_counted)).sum();
    below + usize::from(is_counted(plan))
}

fn subquery(plan: LogicalPlan) -> Subquery {
    let outer_ref_columns = plan.all_out_ref_exprs();
    Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::DataType;
    use datafusion::functions_aggregate::expr_fn::count;
    use datafusion::logical_expr::{Expr, LogicalPlanBuilder, lit, out_ref_col};

    use super::{count_nodes, is_correlated, is_of_whole, refuse_nested_aggregates};

    /// `SELECT count(1) WHERE outer = 1`, or without the condition.
    fn counted(correlated: bool) -> LogicalPlanBuilder {
        let mut plan = LogicalPlanBuilder::empty(true);
        if correlated {
            plan = plan.filter(out_ref_col(DataType::Int32, "outer").eq(lit(1))).unwrap();
        }
        plan.aggregate(Vec::<Expr>::new(), [count(lit(1)).alias("n")]).unwrap()
    }

    #[test]
    fn a_reference_outwards_is_found_below_an_aggregate() {
        let plan = counted(true).build().unwrap();
        assert!(is_correlated(&plan));
        assert!(!is_correlated(&counted(false).build().unwrap()));
        assert_eq!(count_nodes(&plan, is_of_whole), 1);
        assert!(refuse_nested_aggregates(&plan).is_ok());
    }

    #[test]
    fn what_loses_the_row_of_an_empty_aggregate_is_refused() {
        for (correlated, good) in [(true, false), (false, true)] {
            let having = counted(correlated).filter(lit(true)).unwrap().build().unwrap();
            assert_eq!(refuse_nested_aggregates(&having).is_ok(), good);
            let again = counted(correlated);
            let again =
                again.aggregate(Vec::<Expr>::new(), [count(lit(2))]).unwrap().build().unwrap();
            assert_eq!(refuse_nested_aggregates(&again).is_ok(), good);
        }
    }
}
