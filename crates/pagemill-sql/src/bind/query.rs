//! A query: WITH, its body, ORDER BY, LIMIT.
//!
//! Invariant: ORDER BY sorts by keys whose order is PostgreSQL's; NULLs are larger than all values unless the query says
//! otherwise.
//!
//! Source: `transformSelectStmt` and `findTargetlistEntrySQL92` in `src/backend/parser`, PostgreSQL 18.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, SortExpr, lit};
use datafusion::scalar::ScalarValue;
use pagemill_types::builtin::oid;
use sqlparser::ast::{
    Expr as Syntax, LimitClause, OrderBy, OrderByExpr, OrderByKind, Query, SetExpr, TableAlias,
    UnaryOperator, Value, With,
};

use super::expressions::unnested;
use super::query_options::{computed, without_parentheses};
use super::recursion_rules::in_order;
use super::scope::{Level, Scope, folded};
use super::{Binder, Bound, BoundColumn};
use crate::catalog::CastContext;
use crate::coerce::coerce;
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::functions::keys;
use crate::typed::Typed;
use crate::types::PgType;

/// What FETCH takes without a number.
static ONE: LazyLock<Syntax> =
    LazyLock::new(|| Syntax::Value(Value::Number("1".to_owned(), false).into()));

/// ORDER BY and LIMIT around a body.
pub(super) struct Tail<'q> {
    pub(super) order_by: &'q [OrderByExpr],
    pub(super) limit: Option<&'q Syntax>,
    pub(super) offset: Option<&'q Syntax>,
    /// True where rows that sort like the last one come, too.
    pub(super) with_ties: bool,
}

impl Binder<'_> {
    pub(super) fn query(&mut self, query: &Query) -> Result<Bound> {
        let query = without_parentheses(query)?;
        let query = &*query;
        if !query.locks.is_empty() {
            return fail(
                SqlState::READ_ONLY,
                "cannot execute SELECT FOR UPDATE in a read-only transaction",
            );
        }
        if query.for_clause.is_some()
            || query.settings.is_some()
            || !query.pipe_operators.is_empty()
        {
            return fail(SqlState::SYNTAX_ERROR, "syntax error: no clause of PostgreSQL's");
        }
        self.with.push(HashMap::new());
        let bound = self.query_with(query);
        self.with.pop();
        bound
    }

    fn query_with(&mut self, query: &Query) -> Result<Bound> {
        let keeps_literals = std::mem::take(&mut self.keeps_literals);
        if let Some(with) = &query.with {
            self.bind_with(with)?;
        }
        let tail = tail(query)?;
        match &*query.body {
            SetExpr::Select(select) => {
                self.keeps_literals = keeps_literals;
                self.select(select, &tail)
            }
            body => {
                let bound = self.set_expr(body)?;
                self.ordered(bound, &tail, matches!(body, SetExpr::Values(_)))
            }
        }
    }

    pub(super) fn bind_with(&mut self, with: &With) -> Result<()> {
        let mut names = HashSet::new();
        for cte in &with.cte_tables {
            let name = folded(&cte.alias.name);
            if names.contains(&name) {
                let message = format!("WITH query name \"{name}\" specified more than once");
                return fail(SqlState::DUPLICATE_ALIAS, message);
            }
            names.insert(name);
        }
        let tables = match with.recursive {
            true => in_order(&with.cte_tables)?,
            false => with.cte_tables.iter().map(|cte| (cte, false)).collect(),
        };
        for (cte, names_itself) in tables {
            let name = folded(&cte.alias.name);
            let bound = match names_itself {
                true => self.recursive(cte, &name)?,
                false => {
                    let mut bound = self.query(&cte.query)?;
                    rename(&mut bound.columns, &cte.alias, "WITH query")?;
                    bound
                }
            };
            let here = self.with.last_mut().expect("a query has its own tables"); // infallible: pushed above
            here.insert(name, bound);
        }
        Ok(())
    }

    /// A body that is no SELECT; only rows of VALUES can be sorted by expressions.
    fn ordered(&mut self, bound: Bound, tail: &Tail<'_>, of_values: bool) -> Result<Bound> {
        if tail.with_ties {
            return unsupported("WITH TIES of UNION, INTERSECT, EXCEPT or VALUES");
        }
        let Bound { mut plan, columns } = bound;
        let mut sorts = Vec::new();
        for item in tail.order_by {
            let typed = match output_position(&item.expr, &columns)? {
                Some(at) => columns[at].typed.clone(),
                None => self.sorted_by(&item.expr, &columns, of_values)?,
            };
            sorts.push(sort(keys::order_key(&self.catalog, &typed)?, item));
        }
        if !sorts.is_empty() {
            plan = LogicalPlanBuilder::from(plan).sort(sorts)?.build()?;
        }
        self.limited(Bound { plan, columns }, tail)
    }

    /// An expression over the columns of a body that is no SELECT.
    fn sorted_by(
        &mut self,
        syntax: &Syntax,
        columns: &[BoundColumn],
        of_values: bool,
    ) -> Result<Typed> {
        let scope = Scope::of_table(String::new(), columns.to_vec());
        self.levels.push(Level { scope, ..Level::default() });
        let typed = self.expr(syntax);
        self.levels.pop();
        let typed = typed?;
        if of_values {
            return Ok(typed);
        }
        let message = "invalid UNION/INTERSECT/EXCEPT ORDER BY clause";
        let error = StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
        let hint =
            "Add the expression/function to every SELECT, or move the UNION into a FROM clause.";
        Err(error.with_hint(hint).into())
    }

    pub(super) fn limited(&mut self, bound: Bound, tail: &Tail<'_>) -> Result<Bound> {
        let limit = tail.limit.map(|limit| self.row_count(limit, "LIMIT")).transpose()?.flatten();
        // Which are the last is told by their ranks already.
        let limit = limit.filter(|_| !tail.with_ties);
        let offset = tail.offset.map(|offset| self.row_count(offset, "OFFSET")).transpose()?;
        let offset = offset.flatten();
        if limit.is_none() && offset.is_none() {
            return Ok(bound);
        }
        let plan = LogicalPlanBuilder::from(bound.plan).limit_by_expr(offset, limit)?.build()?;
        Ok(Bound { plan, columns: bound.columns })
    }

    /// How many rows come before and with the last one that WITH TIES counts.
    pub(super) fn ranks_with_ties(&mut self, tail: &Tail<'_>) -> Result<Option<i64>> {
        if !tail.with_ties {
            return Ok(None);
        }
        let mut count = |syntax: Option<&Syntax>, clause| match syntax {
            None => Ok(None),
            Some(syntax) => self.row_count(syntax, clause),
        };
        let (limit, offset) = (count(tail.limit, "LIMIT")?, count(tail.offset, "OFFSET")?);
        let number = |expr: Option<Expr>| expr.as_ref().and_then(constant_number);
        match number(limit) {
            Some(0) => Ok(Some(0)),
            Some(limit) => Ok(limit.checked_add(number(offset).unwrap_or(0))),
            None => unsupported("FETCH of NULL rows WITH TIES"),
        }
    }

    /// A number of rows; `None` for NULL and ALL, which limit nothing.
    fn row_count(&mut self, syntax: &Syntax, clause: &'static str) -> Result<Option<Expr>> {
        self.levels.push(Level::default());
        let typed = self.expr(syntax);
        self.levels.pop();
        let typed = typed?;
        if matches!(typed.literal, Some(None)) {
            return Ok(None);
        }
        let count = coerce(&self.catalog, typed, PgType::new(oid::INT8), CastContext::Assignment)?;
        // No rows are limited while types are sought; a value of NULL limits nothing.
        let is_null = matches!(&count.expr, Expr::Literal(value, _) if value.is_null());
        if self.parameters.are_sought() || is_null {
            return Ok(None);
        }
        let number = match constant_number(&count.expr) {
            Some(number) => number,
            None => match self.computed_count(&count.expr, clause)? {
                Some(number) => number,
                None => return Ok(None),
            },
        };
        if number < 0 {
            let state = SqlState(if clause == "OFFSET" { "2201X" } else { "2201W" });
            return fail(state, format!("{clause} must not be negative"));
        }
        Ok(Some(lit(number)))
    }

    /// What an expression of a clause gives, queries in it included: it is computed once, before the first row.
    fn computed_count(&mut self, count: &Expr, clause: &'static str) -> Result<Option<i64>> {
        let value = match computed(count)? {
            Some(value) => Some(value),
            None => self.value_run_at_once(count)?,
        };
        match value {
            Some(ScalarValue::Int64(number)) => Ok(number),
            _ => unsupported(format!("{clause} that is no constant")),
        }
    }
}

fn constant_number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(value, _) => match value.cast_to(&DataType::Int64).ok()? {
            ScalarValue::Int64(number) => number,
            _ => None,
        },
        Expr::Cast(cast) => constant_number(&cast.expr),
        _ => None,
    }
}

fn tail(query: &Query) -> Result<Tail<'_>> {
    let order_by = match &query.order_by {
        None => &[][..],
        Some(OrderBy { kind: OrderByKind::Expressions(items), interpolate: None }) => items,
        Some(_) => return fail(SqlState::SYNTAX_ERROR, "syntax error at or near \"ALL\""),
    };
    let (mut limit, mut offset) = (None, None);
    match &query.limit_clause {
        None => {}
        Some(LimitClause::LimitOffset { limit: l, offset: o, limit_by }) if limit_by.is_empty() => {
            limit = l.as_ref();
            offset = o.as_ref().map(|offset| &offset.value);
        }
        Some(_) => return fail(SqlState::SYNTAX_ERROR, "syntax error in LIMIT"),
    }
    if let Some(fetch) = &query.fetch {
        if fetch.percent {
            return fail(SqlState::SYNTAX_ERROR, "syntax error at or near \"PERCENT\"");
        }
        limit = Some(fetch.quantity.as_ref().unwrap_or_else(|| &*ONE));
    }
    let with_ties = query.fetch.as_ref().is_some_and(|fetch| fetch.with_ties);
    if with_ties && order_by.is_empty() {
        let message = "WITH TIES cannot be specified without ORDER BY clause";
        return fail(SqlState::SYNTAX_ERROR, message);
    }
    Ok(Tail { order_by, limit, offset, with_ties })
}

/// Gives columns the names of an alias: fewer names than columns leave the rest as they are.
pub(super) fn rename(columns: &mut [BoundColumn], alias: &TableAlias, what: &str) -> Result<()> {
    if alias.columns.len() > columns.len() {
        let (has, given) = (columns.len(), alias.columns.len());
        let name = folded(&alias.name);
        let message =
            format!("{what} \"{name}\" has {has} columns available but {given} columns specified");
        return fail(SqlState::INVALID_COLUMN_REFERENCE, message);
    }
    for (column, given) in columns.iter_mut().zip(&alias.columns) {
        column.name = folded(&given.name);
    }
    Ok(())
}

/// Which column of the output an item of ORDER BY or GROUP BY means by its number or name.
pub(super) fn output_position(syntax: &Syntax, columns: &[BoundColumn]) -> Result<Option<usize>> {
    if let Some(at) = ordinal(syntax, columns.len(), "ORDER BY")? {
        return Ok(Some(at));
    }
    let Syntax::Identifier(ident) = syntax else { return Ok(None) };
    let name = folded(ident);
    let mut found = (0..columns.len()).filter(|at| columns[*at].name == name);
    let first = found.next();
    // The same expression twice under one name is no contradiction.
    let differs =
        |at: usize| first.is_some_and(|f| columns[f].typed.expr != columns[at].typed.expr);
    if found.any(differs) {
        let message = format!("ORDER BY \"{name}\" is ambiguous");
        return fail(SqlState::AMBIGUOUS_COLUMN, message);
    }
    Ok(first)
}

/// A column of the output by its number, from 1.
pub(super) fn ordinal(syntax: &Syntax, count: usize, clause: &str) -> Result<Option<usize>> {
    let (constant, sign) = match unnested(syntax) {
        Syntax::UnaryOp { op: UnaryOperator::Minus, expr } => (unnested(expr), "-"),
        other => (other, ""),
    };
    let Syntax::Value(value) = constant else { return Ok(None) };
    let number = match &value.value {
        Value::Number(digits, _) if crate::numbers::is_odd(digits) => {
            return unsupported("a position that is no plain number");
        }
        // One that is too long without its sign is none with it.
        Value::Number(digits, _) => {
            digits.parse::<i32>().and_then(|_| format!("{sign}{digits}").parse::<i32>()).ok()
        }
        Value::Placeholder(_) => return Ok(None),
        _ if !sign.is_empty() => return Ok(None),
        _ => None,
    };
    let Some(number) = number else {
        return fail(SqlState::SYNTAX_ERROR, format!("non-integer constant in {clause}"));
    };
    match usize::try_from(number) {
        Ok(number) if (1..=count).contains(&number) => Ok(Some(number - 1)),
        _ => {
            let message = format!("{clause} position {number} is not in select list");
            fail(SqlState::INVALID_COLUMN_REFERENCE, message)
        }
    }
}

/// NULLs sort as if they were larger than all values, unless the statement says otherwise.
pub(super) fn sort(key: Expr, item: &OrderByExpr) -> SortExpr {
    let ascending = item.options.asc.unwrap_or(true);
    let nulls_first = item.options.nulls_first.unwrap_or(!ascending);
    key.sort(ascending, nulls_first)
}

/// A reference to a column of the plan below.
pub(super) fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// The type of a boolean condition.
pub(super) fn boolean(
    typed: Typed,
    clause: &str,
    catalog: &crate::catalog::Catalog,
) -> Result<Typed> {
    if typed.ty.oid == oid::BOOL {
        return Ok(typed);
    }
    if let Some(undecided) = &typed.parameter {
        return undecided.decide(catalog, oid::BOOL);
    }
    if let Some(text) = &typed.literal {
        return match text {
            Some(text) => crate::coerce::constant(catalog, PgType::new(oid::BOOL), text),
            None => crate::coerce::null_of(catalog, PgType::new(oid::BOOL)),
        };
    }
    if catalog.base_type(typed.ty.oid, -1).0 == oid::BOOL {
        return Ok(typed);
    }
    let name = catalog.type_name(typed.ty.oid);
    let message = format!("argument of {clause} must be type boolean, not type {name}");
    fail(SqlState::DATATYPE_MISMATCH, message)
}
