//! Functions in SQL that give one row, whose bodies list its fields: `SELECT $1, $2` of a function that gives a composite type.
//!
//! Invariant: as many fields as the type has, each brought to the type of its place as by assignment; any other body is refused.
//!
//! Source: `check_sql_fn_retval` in `src/backend/executor/functions.c`, PostgreSQL 14 to 18.

use sqlparser::ast::{Expr as Syntax, Query, SelectItem};

use super::Binder;
use super::inlining::{SqlCall, plain_select};
use crate::error::{Result, unsupported};
use crate::functions::row_casts::fields_of_type;
use crate::functions::row_values::row;
use crate::typed::{RowField, Typed};

impl Binder<'_> {
    /// The row that a call gives, in the place of the call.
    pub(super) fn row_of_body(&mut self, call: &SqlCall) -> Result<Typed> {
        let refused = || unsupported("a body of other columns than it declares");
        let Some(list) = listed_expressions(&call.query) else { return refused() };
        let base = self.catalog.base_type(call.result.oid, -1).0;
        let Some(fields) = fields_of_type(&self.catalog, base)? else { return refused() };
        let has_lengths = fields.iter().any(|field| field.ty.modifier >= 0);
        if fields.len() != list.len() || fields.len() < 2 || has_lengths {
            return refused();
        }
        if list.iter().any(|syntax| self.is_of_rows(syntax)) {
            return unsupported("a row of groups or of rows");
        }
        let (made, body) = self.in_place_of_call(call, |binder| {
            let mut made = Vec::with_capacity(list.len());
            for (syntax, field) in list.iter().zip(fields) {
                let value = binder.expr(syntax)?;
                let value = binder.as_result(value, field.ty)?;
                made.push((RowField::of(field.name, &value), value.expr));
            }
            Ok(made)
        })?;
        match body.has_unused() {
            true => unsupported("a body that does not name all of its arguments"),
            false => Ok(row(call.result.oid, made)),
        }
    }
}

/// The expressions that a query lists, if it has no other clause.
pub(super) fn listed_expressions(query: &Query) -> Option<Vec<&Syntax>> {
    let select = plain_select(query).filter(|select| select.from.is_empty())?;
    select.projection.iter().map(expression).collect()
}

fn expression(item: &SelectItem) -> Option<&Syntax> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}
