//! Rows as values: of a table by its name, and the fields of rows.
//!
//! Source: `transformWholeRowRef`, `transformIndirection` in `src/backend/parser/parse_expr.c`, `ParseComplexProjection` in
//! `parse_func.c`, PostgreSQL 18.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::logical_expr::Expr;
use pagemill_cluster::RelationKind;
use pagemill_types::builtin::oid;
use sqlparser::ast::{AccessExpr, Expr as Syntax, Ident, ObjectName};

use super::from::name_parts;
use super::scope::{ScopeTable, at, folded, seen_from};
use super::{Binder, BoundColumn};
use crate::catalog::CastContext;
use crate::coerce::coerce;
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::functions::row_payloads::taken_apart;
use crate::functions::row_values::{field, row_where};
use crate::typed::{RowField, Typed};
use crate::types::{PgType, RECORD, UNKNOWN};

impl Binder<'_> {
    /// The row of a table, seen from so many queries further in.
    pub(super) fn row_of_table(&self, table: &ScopeTable, depth: usize) -> Result<Typed> {
        let refused = || unsupported("a row of what is no relation as a value");
        let present = match (&table.present, table.is_nullable) {
            (_, false) => None,
            (Some(column), true) => Some(seen_from(column, depth, self.nests)?.expr),
            (None, true) => {
                return unsupported("a row of what an outer join may give none of as a value");
            }
        };
        let Some((catalog, relation)) = &table.relation else {
            return self.record_of_table(table, depth, present);
        };
        if !Arc::ptr_eq(catalog, &self.catalog) {
            return unsupported("a row of another database as a value");
        }
        let dictionary = catalog.dictionary()?;
        let names = dictionary.column_names(*relation);
        let Some(ty) = dictionary.row_type(*relation) else { return refused() };
        if names.len() != table.columns.len() || names.is_empty() {
            return refused();
        }
        let required = self.required_columns(table)?;
        let mut fields = Vec::with_capacity(names.len());
        for (name, column) in names.into_iter().zip(&table.columns) {
            let seen = seen_from(&column.typed, depth, self.nests)?;
            let is_never_null = required.contains(&name);
            fields.push((RowField { is_never_null, ..RowField::of(name, &seen) }, seen.expr));
        }
        Ok(row_where(ty, fields, present))
    }

    /// The row of a query in FROM, which has no type of its own.
    fn record_of_table(
        &self,
        table: &ScopeTable,
        depth: usize,
        present: Option<Expr>,
    ) -> Result<Typed> {
        let field = |column: &BoundColumn| {
            let seen = seen_from(&column.typed, depth, self.nests)?;
            Ok((RowField::of(column.name.clone(), &seen), seen.expr))
        };
        let fields = table.columns.iter().map(field).collect::<Result<Vec<_>>>()?;
        Ok(row_where(RECORD, fields, present))
    }

    /// `ROW(a, b)`, whose fields go by their places.
    pub(super) fn row_of_fields(&self, fields: Vec<Typed>) -> Result<Typed> {
        let field = |(at, typed): (usize, Typed)| {
            let was_unknown = typed.ty.oid == UNKNOWN;
            let typed = match typed.ty.oid {
                UNKNOWN => {
                    let text = PgType::new(oid::TEXT);
                    coerce(&self.catalog, typed, text, CastContext::Implicit)?
                }
                _ => typed,
            };
            let field = RowField::of(format!("f{}", at + 1), &typed);
            Ok((RowField { was_unknown, ..field }, typed.expr))
        };
        let fields = fields.into_iter().enumerate().map(field).collect::<Result<Vec<_>>>()?;
        Ok(row_where(RECORD, fields, None))
    }

    /// The columns of a table that are NULL in none of its rows.
    fn required_columns(&self, table: &ScopeTable) -> Result<Vec<String>> {
        let Some((catalog, relation)) = &table.relation else { return Ok(Vec::new()) };
        let class = catalog.database().class(*relation);
        let Some(class) = class.filter(|class| class.kind == RelationKind::Table) else {
            return Ok(Vec::new());
        };
        let found = catalog.database().relation(class)?;
        let required = found.columns.iter().filter(|column| column.not_null && !column.dropped);
        Ok(required.map(|column| String::from_utf8_lossy(&column.name).into_owned()).collect())
    }

    /// `t.*` where one value stands.
    pub(super) fn row_by_star(&self, name: &ObjectName) -> Result<Typed> {
        let (table, depth) = self.table_by_star(name)?;
        let parts = name_parts(name)?;
        self.row_of_table(table, depth).map_err(|e| at(e, parts[0]))
    }

    /// `t.*` among the fields of a row, which are the columns then, each by its name.
    pub(super) fn names_by_star(&self, name: &ObjectName) -> Result<Vec<Syntax>> {
        let (table, _) = self.table_by_star(name)?;
        let names: HashSet<&str> = table.columns.iter().map(|column| &*column.name).collect();
        if names.len() < table.columns.len() {
            return unsupported("columns of one name in a row");
        }
        let of_table = |column: &BoundColumn| {
            let own = Ident::with_quote('"', &column.name);
            let parts = name_parts(name)?.into_iter().cloned();
            Ok(Syntax::CompoundIdentifier(parts.chain([own]).collect()))
        };
        table.columns.iter().map(of_table).collect()
    }

    /// The table that a name before `.*` means, and how many queries around it is.
    pub(super) fn table_by_star(&self, name: &ObjectName) -> Result<(&ScopeTable, usize)> {
        let parts = name_parts(name)?;
        for (depth, level) in self.in_sight().enumerate() {
            let found = level.scope.qualified_table(&parts).map_err(|e| at(e, parts[0]))?;
            if let Some(table) = found {
                return Ok((table, depth));
            }
        }
        let wanted = super::columns::last_name(name);
        let message = format!("missing FROM-clause entry for table \"{wanted}\"");
        fail(SqlState::UNDEFINED_TABLE, message)
    }

    /// `(row).a`, and what stands behind it.
    pub(super) fn fields_of(&mut self, root: &Syntax, chain: &[AccessExpr]) -> Result<Typed> {
        let typed = match inside(root) {
            Syntax::QualifiedWildcard(name, _) => self.row_by_star(name)?,
            other => self.expr(other)?,
        };
        self.fields_behind(typed, chain)
    }

    /// The fields of a row by their names, one within the other.
    pub(super) fn fields_behind(&self, mut typed: Typed, chain: &[AccessExpr]) -> Result<Typed> {
        for part in chain {
            let AccessExpr::Dot(Syntax::Identifier(name)) = part else {
                return unsupported("a field of a row");
            };
            typed = taken_apart(&self.catalog, typed)?;
            if typed.row.is_none() {
                return unsupported("a field of a row");
            }
            let wanted = folded(name);
            let missing = || {
                let of = self.catalog.type_name(typed.ty.oid);
                let message = format!("column \"{wanted}\" not found in data type {of}");
                at(StatementError::new(SqlState::UNDEFINED_COLUMN, message), name)
            };
            typed = field(&typed, &wanted)?.ok_or_else(missing)?;
        }
        Ok(typed)
    }
}

fn inside(syntax: &Syntax) -> &Syntax {
    match syntax {
        Syntax::Nested(inner) => inside(inner),
        other => other,
    }
}
