//! CASE, COALESCE, NULLIF, GREATEST, LEAST.
//!
//! Source: `transformCaseExpr`, `transformCoalesceExpr`, `transformMinMaxExpr` in `src/backend/parser/parse_expr.c`,
//! PostgreSQL 18.

use std::sync::Arc;

use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{Expr, is_null};
use pagemill_types::builtin::oid;
use sqlparser::ast::{CaseWhen, Expr as Syntax};

use super::Binder;
use super::query::boolean;
use crate::catalog::{CastContext, Catalog};
use crate::coerce::{coerce, null_of};
use crate::error::{Result, SqlState, fail};
use crate::functions::keys;
use crate::functions::row_values::without_names;
use crate::resolve::common_type;
use crate::typed::Typed;
use crate::types::{PgType, RECORD, UNKNOWN};

impl Binder<'_> {
    pub(super) fn case(
        &mut self,
        operand: Option<&Syntax>,
        conditions: &[CaseWhen],
        otherwise: Option<&Syntax>,
    ) -> Result<Typed> {
        let mut operand = operand.map(|syntax| self.expr(syntax)).transpose()?;
        // A literal that is compared with each is a text.
        if let Some(typed) = operand.take_if(|typed| typed.ty.oid == UNKNOWN) {
            let text = PgType::new(oid::TEXT);
            operand = Some(coerce(&self.catalog, typed, text, CastContext::Implicit)?);
        }
        let (mut whens, mut results) = (Vec::new(), Vec::new());
        for when in conditions {
            let condition = self.expr(&when.condition)?;
            let condition = match &operand {
                Some(operand) => self.operator("=", operand.clone(), condition)?,
                None => boolean(condition, "CASE/WHEN", &self.catalog)?,
            };
            whens.push(condition.expr);
            results.push(self.expr(&when.result)?);
        }
        let otherwise = otherwise.map(|syntax| self.expr(syntax)).transpose()?;
        // ELSE comes first where a type is chosen; NULL has no say in it.
        results.insert(0, otherwise.unwrap_or_else(|| Typed::unknown(None)));
        let mut results = self.in_common("CASE", results)?;
        let last = results.remove(0);
        let first = results.first().cloned().unwrap_or_else(|| last.clone());
        let pairs = whens.into_iter().zip(results);
        let when_then_expr =
            pairs.map(|(when, then)| (Box::new(when), Box::new(then.expr))).collect();
        let case = Case { expr: None, when_then_expr, else_expr: Some(Box::new(last.expr)) };
        Ok(first.with_expr(Expr::Case(case)))
    }

    /// COALESCE and its kin; `None` for any other name.
    pub(super) fn conditional(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
    ) -> Result<Option<Typed>> {
        match name {
            "coalesce" => coalesce(&self.catalog, self.in_common("COALESCE", arguments)?).map(Some),
            "greatest" | "least" => self.extreme(name, arguments).map(Some),
            "nullif" => {
                let [a, b]: [Typed; 2] = match arguments.try_into() {
                    Ok(both) => both,
                    Err(_) => return fail(SqlState::SYNTAX_ERROR, "NULLIF takes two arguments"),
                };
                // The result is the first as the operator takes it.
                let given = a.clone();
                let (a, b) = self.operands_of_equality(a, b)?;
                let equal = self.operator("=", a.clone(), b)?;
                // A row keeps its type, though rows are compared as records.
                let a = if a.ty.oid == RECORD { without_names(given) } else { a };
                let null =
                    Expr::Literal(datafusion::scalar::ScalarValue::try_from(&a.carrier)?, None);
                let when = vec![(Box::new(equal.expr), Box::new(null))];
                let case = Case {
                    expr: None,
                    when_then_expr: when,
                    else_expr: Some(Box::new(a.expr.clone())),
                };
                Ok(Some(a.with_expr(Expr::Case(case))))
            }
            _ => Ok(None),
        }
    }

    /// The first of the largest or smallest; NULLs are passed over.
    fn extreme(&mut self, name: &str, arguments: Vec<Typed>) -> Result<Typed> {
        let arguments = self.in_common(&name.to_uppercase(), arguments)?;
        if let Some(ty) = arguments.first().map(|typed| typed.ty.oid)
            && keys::check_order(&self.catalog, ty).is_err()
        {
            let name = self.catalog.type_name(ty);
            let message = format!("could not identify a comparison function for type {name}");
            return fail(SqlState::UNDEFINED_FUNCTION, message);
        }
        let mut best: Option<Typed> = None;
        for next in arguments {
            best = Some(match best {
                None => next,
                Some(best) => {
                    let (a, b) = keys::ordered(&self.catalog, &next, &best)?;
                    let is_better = if name == "greatest" { a.gt(b) } else { a.lt(b) };
                    let when = is_null(best.expr.clone()).or(is_better);
                    let pairs = vec![(Box::new(when), Box::new(next.expr.clone()))];
                    // A comparison with NULL is not true, so the one before stays.
                    let case = Case {
                        expr: None,
                        when_then_expr: pairs,
                        else_expr: Some(Box::new(best.expr.clone())),
                    };
                    next.with_expr(Expr::Case(case))
                }
            });
        }
        match best {
            Some(best) => Ok(best),
            None => fail(SqlState::SYNTAX_ERROR, format!("{name} without arguments")),
        }
    }
}

/// The first that is not NULL, of expressions that have their type in common.
pub(super) fn coalesce(catalog: &Arc<Catalog>, given: Vec<Typed>) -> Result<Typed> {
    let oids: Vec<_> = given.iter().map(|typed| typed.ty.oid).collect();
    let target = PgType::new(common_type(catalog, &oids)?);
    let mut all: Option<Typed> = None;
    for typed in given.into_iter().rev() {
        let typed = match typed.ty.oid == target.oid {
            true => typed,
            false => coerce(catalog, typed, target, CastContext::Implicit)?,
        };
        all = Some(match all {
            None => typed,
            Some(rest) => {
                let when = Expr::IsNotNull(Box::new(typed.expr.clone()));
                let pairs = vec![(Box::new(when), Box::new(typed.expr.clone()))];
                let case = Case {
                    expr: None,
                    when_then_expr: pairs,
                    else_expr: Some(Box::new(rest.expr)),
                };
                typed.with_expr(Expr::Case(case))
            }
        });
    }
    all.map_or_else(|| null_of(catalog, target), Ok)
}
