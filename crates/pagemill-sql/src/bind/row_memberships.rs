//! Rows held against the rows of queries: `(a, b) = (SELECT …)`, `(a, b) IN (SELECT …)`, `(a, b) < ALL (SELECT …)`.
//!
//! Whether one of them is so, and if none is, whether one may be, a NULL beside it, are two questions of whether there are such
//! rows; as conditions of WHERE both become joins.
//!
//! Source: `transformSubLink` in `src/backend/parser/parse_expr.c`, `ExecSubPlan` in `src/backend/executor/nodeSubplan.c`,
//! PostgreSQL 14 to 18.

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNode as _;
use datafusion::logical_expr::expr::{Case, Exists};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, is_null, lit, not};
use sqlparser::ast::{BinaryOperator, Expr as Syntax, Query};

use super::expressions::{has_no_common_key, truth_value};
use super::subqueries::is_correlated;
use super::{Binder, Bound, BoundColumn};
use crate::error::{Result, SqlState, fail, unsupported};
use crate::functions::keys;
use crate::functions::row_values::{field_at, row};
use crate::typed::{RowField, Typed};
use crate::types::RECORD;

impl Binder<'_> {
    /// `(a, b) < (SELECT …)`, a query of one row at most.
    pub(super) fn row_and_query(
        &mut self,
        fields: &[Syntax],
        op: &BinaryOperator,
        query: &Query,
    ) -> Result<Typed> {
        let (fields, Bound { plan, columns }) = self.row_beside(fields, query)?;
        let field =
            |column: BoundColumn| (RowField::of(column.name, &column.typed), column.typed.expr);
        let found = row(RECORD, columns.into_iter().map(field).collect());
        let name = self.fresh("row");
        let (expr, typed) = self.named(&found, &name);
        let plan = LogicalPlanBuilder::from(plan).project([expr])?.build()?;
        let found = self.one_value(plan, typed)?;
        let of_found = found.row.clone().unwrap_or_default();
        let pairs = fields.into_iter().zip(of_found.iter().enumerate());
        let pairs = pairs.map(|(field, (at, other))| (field, field_at(&found, at, other)));
        self.compare_fields(pairs.collect(), op)
    }

    /// That fields are equal, over keys, by which the engine joins; `None` where some have none in common.
    fn equal_keys(&self, pairs: &[(Typed, Typed)]) -> Result<Option<Expr>> {
        let mut all = Vec::with_capacity(pairs.len());
        for (a, b) in pairs {
            let Ok((a, b)) = self.operands_of_equality(a.clone(), b.clone()) else {
                return Ok(None);
            };
            if a.is_row() || b.is_row() || has_no_common_key(&a, &b) {
                return Ok(None);
            }
            let (a, b) = keys::equality_pair(&self.catalog, &a, &b)?;
            all.push(b.eq(a));
        }
        Ok(conjunction(all))
    }

    /// Fields, and as many columns of a query.
    fn row_beside(&mut self, fields: &[Syntax], query: &Query) -> Result<(Vec<Typed>, Bound)> {
        let fields = fields.iter().map(|field| self.expr(field)).collect::<Result<Vec<_>>>()?;
        let bound = self.query(query)?;
        if bound.columns.len() != fields.len() {
            let few = if bound.columns.len() < fields.len() { "few" } else { "many" };
            return fail(SqlState::SYNTAX_ERROR, format!("subquery has too {few} columns"));
        }
        Ok((fields, bound))
    }

    /// `(a, b) < ANY (SELECT …)`, or ALL.
    pub(super) fn row_and_rows(
        &mut self,
        fields: &[Syntax],
        op: &BinaryOperator,
        query: &Query,
        is_all: bool,
    ) -> Result<Typed> {
        let (fields, Bound { plan, columns }) = self.row_beside(fields, query)?;
        let mut pairs = Vec::with_capacity(fields.len());
        for (field, column) in fields.into_iter().zip(columns) {
            if is_of_group(&field)? {
                return unsupported("a row of aggregates beside the rows of a query");
            }
            // A constant is one on either side, and may be a text without a type.
            let is_constant = field.expr.column_refs().is_empty();
            let seen = if is_constant { field } else { self.seen_from_query(&field)? };
            pairs.push((seen, column.typed));
        }
        let holds = match self.equal_keys(&pairs)?.filter(|_| *op == BinaryOperator::Eq) {
            Some(equal) => equal,
            None => self.compare_fields(pairs, op)?.expr,
        };
        let is_free = !is_correlated(&plan);
        let told = if is_all { not(holds.clone()) } else { holds.clone() };
        let telling = LogicalPlanBuilder::from(plan.clone()).filter(told)?.build()?;
        let open = LogicalPlanBuilder::from(plan).filter(is_null(holds))?.build()?;
        let (telling, open) = match is_free {
            true => (self.exists_in_free(telling)?, self.exists_in_free(open)?),
            false => (self.exists_row(telling, false)?, self.exists_row(open, false)?),
        };
        let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
        let when_then = |when: Typed, then: Expr| (Box::new(when.expr), Box::new(then));
        let when_then_expr = vec![when_then(telling, lit(!is_all)), when_then(open, unknown)];
        let else_expr = Some(Box::new(lit(is_all)));
        Ok(truth_value(Expr::Case(Case { expr: None, when_then_expr, else_expr })))
    }
}

/// True for what is not known before rows are grouped.
fn is_of_group(field: &Typed) -> Result<bool> {
    let is_it =
        |inner: &Expr| matches!(inner, Expr::AggregateFunction(_) | Expr::WindowFunction(_));
    Ok(field.expr.exists(|inner| Ok(is_it(inner)))?)
}

/// A condition of its own that holds a row against those of a query, as what becomes joins.
pub(super) fn rows_as_joins(part: Expr) -> Expr {
    let (inner, wanted) = match &part {
        Expr::Not(inner) => (&**inner, false),
        other => (other, true),
    };
    let Some((telling, open, tells)) = parts_of(inner) else { return part };
    let negated = |exists: &Exists| Expr::Exists(Exists { negated: true, ..exists.clone() });
    match tells == wanted {
        true => Expr::Exists(telling.clone()),
        false => negated(telling).and(negated(open)),
    }
}

/// Which rows tell, which leave it open, and what the first say, of what [`Binder::row_and_rows`] makes.
fn parts_of(expr: &Expr) -> Option<(&Exists, &Exists, bool)> {
    let Expr::Case(Case { expr: None, when_then_expr, else_expr }) = expr else { return None };
    let [(telling, says), (open, unknown)] = &when_then_expr[..] else { return None };
    let (Expr::Exists(telling), Expr::Exists(open)) = (&**telling, &**open) else { return None };
    let truth = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::Boolean(truth), _) => Some(*truth),
        _ => None,
    };
    let says = truth(says)??;
    let is_it = truth(unknown) == Some(None) && truth(else_expr.as_deref()?) == Some(Some(!says));
    (is_it && !telling.negated && !open.negated).then_some((telling, open, says))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::common::Spans;
    use datafusion::logical_expr::Subquery;

    use super::*;

    fn exists(negated: bool) -> Expr {
        let plan = Arc::new(LogicalPlanBuilder::empty(true).build().unwrap());
        let subquery =
            Subquery { subquery: plan, outer_ref_columns: Vec::new(), spans: Spans::new() };
        Expr::Exists(Exists { subquery, negated })
    }

    #[test]
    fn what_is_no_condition_of_its_own_keeps_its_third_value() {
        let told = |says: bool| {
            let when = |then: Expr| (Box::new(exists(false)), Box::new(then));
            let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
            let when_then_expr = vec![when(lit(says)), when(unknown)];
            Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(Box::new(lit(!says))) })
        };
        let none = exists(true).and(exists(true));
        for (part, expected) in [
            (told(true), exists(false)),
            (not(told(true)), none.clone()),
            (told(false), none),
            (not(told(false)), exists(false)),
            (told(true).or(lit(false)), told(true).or(lit(false))),
        ] {
            assert_eq!(rows_as_joins(part), expected);
        }
    }
}
