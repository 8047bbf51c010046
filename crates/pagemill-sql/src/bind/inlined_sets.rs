//! Functions in SQL that give rows: a query in the place of a call in FROM; in a select list what they are made of, if that is
//! one function of rows.
//!
//! ```text
//! FROM f(1)       ──► FROM (body with 1 for $1)
//! SELECT f(t.a)   ──► SELECT row of the body's columns, over g(t.a) for the body `SELECT … FROM g($1)`
//! ```
//!
//! Invariant: a STRICT function gives no rows where an argument is NULL.
//!
//! Source: `inline_set_returning_function` in `src/backend/optimizer/util/clauses.c`, `ExecMakeFunctionResultSet` in
//! `src/backend/executor/execSRF.c`, PostgreSQL 14 to 18.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlan, when};
use pagemill_format::Oid;
use sqlparser::ast::{SelectItem, TableAlias, TableFactor};

use super::defaults::FunctionName;
use super::functions::CallArguments;
use super::inlining::{SqlCall, in_function, is_inlined, plain_select};
use super::query::rename;
use super::scope::{Allowed, Level, Scope, folded};
use super::set_calls::{BoundCall, FromFunctions, from_call, is_function};
use super::{Binder, Bound, BoundColumn};
use crate::error::{Result, unsupported};
use crate::functions::row_values::{any_null, row};
use crate::resolve::{Chosen, settled_type};
use crate::typed::{RowField, Typed};
use crate::types::{PgType, RECORD};

impl Binder<'_> {
    /// An item of FROM that is one function in SQL of several rows; `None` for any other.
    pub(super) fn inlined_item(
        &mut self,
        factor: &TableFactor,
        before: &Scope,
    ) -> Result<Option<(LogicalPlan, Scope)>> {
        let (call, alias, has_ordinality) = from_call(factor)?;
        let (schema, name) = self.function_name(&call)?;
        let catalog = self.catalog.clone();
        let mut named = catalog.functions_named(&name);
        if !named.any(|row| row.returns_set && is_inlined(row)) {
            return Ok(None);
        }
        let allowed = Allowed::PlainIn("functions in FROM");
        self.levels.push(Level { scope: before.clone(), allowed, ..Level::default() });
        let arguments = self.call_arguments(&call);
        let found = arguments.and_then(|mut arguments| {
            let chosen =
                self.chosen(&catalog, FunctionName { schema, name: &name }, &mut arguments)?;
            match chosen.function.returns_set && is_inlined(chosen.function) {
                true => self.sql_call(&chosen, arguments).map(Some),
                false => Ok(None),
            }
        });
        self.levels.pop();
        let Some(call) = found? else { return Ok(None) };
        if has_ordinality {
            return unsupported(format!("function {} WITH ORDINALITY", call.shown));
        }
        if call.arguments.iter().any(|argument| !argument.expr.column_refs().is_empty()) {
            return unsupported(format!("LATERAL of function {}", call.shown));
        }
        self.item_of_body(&call, alias).map(Some)
    }

    fn item_of_body(
        &mut self,
        call: &SqlCall,
        alias: Option<&TableAlias>,
    ) -> Result<(LogicalPlan, Scope)> {
        let shown = alias.map_or_else(|| call.function.name.clone(), |alias| folded(&alias.name));
        if alias.is_some_and(|alias| alias.columns.iter().any(|column| column.data_type.is_some()))
        {
            return unsupported("a list of column definitions in FROM");
        }
        let bound = self.declared_columns(call).and_then(|declared| {
            let types: Vec<PgType> = declared.iter().map(|(_, ty)| *ty).collect();
            Ok((self.rows_of_body(call, &types)?, declared))
        });
        let (bound, declared) = bound.map_err(|error| in_function(error, &call.shown))?;
        let Bound { plan, columns } = bound;
        let name = |(column, (name, _)): (BoundColumn, (Option<String>, PgType))| BoundColumn {
            name: name.unwrap_or_else(|| shown.clone()),
            ..column
        };
        let is_value = matches!(&declared[..], [(None, _)]);
        let mut columns: Vec<BoundColumn> = columns.into_iter().zip(declared).map(name).collect();
        if let Some(alias) = alias {
            rename(&mut columns, alias, "table")?;
        }
        let mut scope = Scope::of_table(shown, columns);
        scope.tables.iter_mut().for_each(|table| table.is_value = is_value);
        Ok((plan, scope))
    }

    /// The columns of what a function gives; one without a name where that is one value.
    fn declared_columns(&self, call: &SqlCall) -> Result<Vec<(Option<String>, PgType)>> {
        if !call.function.columns.is_empty() {
            let given: Vec<Oid> = call.arguments.iter().map(|typed| typed.ty.oid).collect();
            let column = |(name, ty): &(String, Oid)| {
                let settled = settled_type(&self.catalog, *ty, &call.declared, &given)?;
                Ok((Some(name.clone()), PgType::new(settled)))
            };
            let columns = call.function.columns.iter().map(column);
            let columns = columns.collect::<Result<Vec<_>>>()?;
            return Ok(match &columns[..] {
                [(name, ty)] => vec![(name.clone(), *ty)],
                _ => columns,
            });
        }
        if call.result.oid == RECORD {
            return unsupported("rows without declared columns");
        }
        let dictionary = self.catalog.dictionary()?;
        let base = self.catalog.base_type(call.result.oid, -1).0;
        let Some(columns) = dictionary.row_columns(base) else {
            return Ok(vec![(None, call.result)]);
        };
        let column = |column: crate::definitions::ColumnRow| {
            let ty = PgType { collation: column.collation, ..PgType::new(column.type_oid) };
            (Some(column.name), ty)
        };
        Ok(columns.into_iter().map(column).collect())
    }

    /// Such a function in a select list.
    pub(super) fn inlined_set(
        &mut self,
        chosen: &Chosen<'_>,
        arguments: CallArguments<'_>,
    ) -> Result<Typed> {
        let call = self.sql_call(chosen, arguments)?;
        let bound = self.rows_over_function(&call);
        bound.map_err(|error| in_function(error, &call.shown))
    }

    fn rows_over_function(&mut self, call: &SqlCall) -> Result<Typed> {
        let refused = || unsupported("rows of a body that is not over one function of rows");
        let Some(select) = plain_select(&call.query) else { return refused() };
        let [item] = &select.from[..] else { return refused() };
        if !item.joins.is_empty() || !is_function(&item.relation) {
            return refused();
        }
        let declared = self.declared_columns(call)?;
        let around = self.levels.len();
        // The function's arguments are those of a query within; what they are made of is a row here.
        let body = self.body_arguments(call, around + 1);
        let over = self.within_body(call.oid, body, around, |binder| {
            binder.functions_of_item(&item.relation, Scope::default())
        })?;
        let scope = self.over_inner(call, over)?;
        let items: Vec<&SelectItem> = select.projection.iter().collect();
        let values = self.values_over(call, scope, &items)?;
        if values.len() != declared.len() {
            return unsupported("a body of other columns than it declares");
        }
        let values = values.into_iter().zip(&declared);
        let values = values.map(|(value, (_, ty))| self.as_result(value, *ty));
        let values = values.collect::<Result<Vec<Typed>>>()?;
        if let ([value], [_]) = (&values[..], &declared[..]) {
            return Ok(value.clone());
        }
        let field = |(value, (name, _)): (Typed, (Option<String>, PgType))| {
            (RowField::of(name.unwrap_or_default(), &value), value.expr)
        };
        Ok(row(call.result.oid, values.into_iter().zip(declared).map(field).collect()))
    }

    /// Puts the function that a body is over among those of the select list; its columns.
    fn over_inner(&mut self, call: &SqlCall, over: FromFunctions) -> Result<Scope> {
        let FromFunctions { expansion, mut arguments, mut scope } = over;
        let refused = || unsupported("rows of a body over several functions");
        let (Some(inner), 1) = (expansion.calls.first().cloned(), expansion.calls.len()) else {
            return refused();
        };
        if inner.takes_null || arguments.is_empty() {
            return refused();
        }
        if call.is_strict
            && let Some(is_null) = any_null(&self.catalog, &call.arguments)?
        {
            // It gives nothing where an argument of its own is NULL.
            let null = Expr::Literal(ScalarValue::try_from(&arguments[0].carrier)?, None);
            let value = arguments[0].expr.clone();
            arguments[0] = arguments[0].with_expr(when(is_null.expr, null).otherwise(value)?);
        }
        let bound = BoundCall::new(call.function.name.clone(), inner, arguments);
        self.refuse_rows_of_rows(&bound)?;
        let own: Vec<Typed> = scope.bare.iter().map(|column| column.typed.clone()).collect();
        let mut made = own.clone();
        let number = if expansion.ordinality.is_some() { made.pop() } else { None };
        let columns = self.level().sets.put_inlined(bound, made, number)?;
        let places = scope.tables.iter_mut().flat_map(|table| &mut table.columns);
        for column in places.chain(&mut scope.bare) {
            let place = own.iter().position(|typed| typed.expr == column.typed.expr);
            if let Some(known) = place.and_then(|place| columns.get(place)) {
                column.typed = known.clone();
            }
        }
        Ok(scope)
    }

    /// The values of a body's select list, over the columns of its function.
    fn values_over(
        &mut self,
        call: &SqlCall,
        scope: Scope,
        items: &[&SelectItem],
    ) -> Result<Vec<Typed>> {
        let around = self.levels.len();
        let body = self.body_arguments(call, around);
        let before = std::mem::replace(&mut self.level().scope, scope);
        let allowed = std::mem::replace(&mut self.level().allowed, Allowed::Plain);
        let may_stand = std::mem::replace(&mut self.level().sets.may_stand, false);
        let values = self.within_body(call.oid, body, around.saturating_sub(1), |binder| {
            let mut values = Vec::new();
            for item in items {
                match item {
                    SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                        values.push(binder.expr(expr)?);
                    }
                    SelectItem::Wildcard(_) => {
                        let columns = binder.level().scope.bare.iter();
                        values.extend(columns.map(|column| column.typed.clone()));
                    }
                    _ => return unsupported("a body that selects columns of an item"),
                }
            }
            Ok(values)
        });
        let level = self.level();
        (level.scope, level.allowed, level.sets.may_stand) = (before, allowed, may_stand);
        values
    }
}
