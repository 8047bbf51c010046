//! What stands around a query in parentheses: `(SELECT …) ORDER BY x LIMIT 1` is `SELECT … ORDER BY x LIMIT 1`, as if there were none.
//!
//! Invariant: each clause stands once, inside or outside.
//!
//! Source: `select_no_parens` and `insertSelectOptions` in `src/backend/parser/gram.y`, PostgreSQL 14 to 18.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::Schema;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::tree_node::TreeNode as _;
use datafusion::common::{DFSchema, Result as QueryResult};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::create_physical_expr;
use datafusion::scalar::ScalarValue;
use sqlparser::ast::{LimitClause, Query, SetExpr};

use super::set_calls::is_query;
use crate::error::{Result, SqlState, fail};

/// A query with what stands around its parentheses.
///
/// # Errors
/// For a clause that stands inside and outside.
pub(super) fn without_parentheses(query: &Query) -> Result<Cow<'_, Query>> {
    if !matches!(&*query.body, SetExpr::Query(_)) {
        return Ok(Cow::Borrowed(query));
    }
    let mut flat = query.clone();
    while let SetExpr::Query(inner) = &*flat.body {
        let mut inner = (**inner).clone();
        add_options(&mut inner, &flat)?;
        flat = inner;
    }
    Ok(Cow::Owned(flat))
}

fn add_options(inner: &mut Query, outer: &Query) -> Result<()> {
    if outer.for_clause.is_some() || outer.settings.is_some() || !outer.pipe_operators.is_empty() {
        return fail(SqlState::SYNTAX_ERROR, "syntax error: no clause of PostgreSQL's");
    }
    inner.locks.extend(outer.locks.iter().cloned());
    add(&mut inner.order_by, outer.order_by.as_ref(), "ORDER BY")?;
    let (mut limit, mut offset) = (None, None);
    for clause in [&inner.limit_clause, &outer.limit_clause].into_iter().flatten() {
        let LimitClause::LimitOffset { limit: most, offset: begin, limit_by } = clause else {
            return fail(SqlState::SYNTAX_ERROR, "syntax error in LIMIT");
        };
        if !limit_by.is_empty() {
            return fail(SqlState::SYNTAX_ERROR, "syntax error in LIMIT");
        }
        add(&mut offset, begin.as_ref(), "OFFSET")?;
        add(&mut limit, most.as_ref(), "LIMIT")?;
    }
    add(&mut inner.fetch, outer.fetch.as_ref(), "LIMIT")?;
    if limit.is_some() && inner.fetch.is_some() {
        return multiple("LIMIT");
    }
    let has_any = limit.is_some() || offset.is_some();
    let clause = LimitClause::LimitOffset { limit, offset, limit_by: Vec::new() };
    inner.limit_clause = has_any.then_some(clause);
    add(&mut inner.with, outer.with.as_ref(), "WITH")
}

fn add<T: Clone>(inner: &mut Option<T>, outer: Option<&T>, clause: &str) -> Result<()> {
    let Some(outer) = outer else { return Ok(()) };
    if inner.is_some() {
        return multiple(clause);
    }
    *inner = Some(outer.clone());
    Ok(())
}

#[cold]
fn multiple<T>(clause: &str) -> Result<T> {
    fail(SqlState::SYNTAX_ERROR, format!("multiple {clause} clauses not allowed"))
}

/// The value of an expression that is the same whenever it is computed.
pub(super) fn computed(expr: &Expr) -> Result<Option<ScalarValue>> {
    let is_open = |inner: &Expr| {
        let refers = matches!(inner, Expr::OuterReferenceColumn(..) | Expr::Placeholder(_));
        Ok(refers || is_query(inner))
    };
    if expr.is_volatile() || !expr.column_refs().is_empty() || expr.exists(is_open)? {
        return Ok(None);
    }
    Ok(Some(value_of(expr)?))
}

/// The value of an expression without columns.
pub(super) fn value_of(expr: &Expr) -> QueryResult<ScalarValue> {
    let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
    let made = create_physical_expr(expr, &DFSchema::empty(), &props, &context)?;
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
    let value = made.evaluate(&row)?.into_array(1)?;
    ScalarValue::try_from_array(&value, 0)
}
