//! Columns that follow from what rows are grouped by: those of a table whose primary key is grouped by.
//!
//! Source: `check_functional_grouping` in `src/backend/catalog/pg_constraint.c`, PostgreSQL 14 to 18.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::Expr;
use pagemill_format::Oid;

use super::Binder;
use super::scope::ScopeTable;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::for_each_row;
use crate::typed::Typed;

impl Binder<'_> {
    /// The columns that are used above the groups.
    pub(super) fn used_above(
        &mut self,
        having: Option<&Typed>,
        above: &[&mut Typed],
    ) -> HashSet<Column> {
        let level = self.level();
        let windows = level.windows.iter().map(|(expr, _)| expr);
        let exprs = having.map(|typed| &typed.expr).into_iter().chain(windows);
        let directs = level.direct_arguments.iter().flat_map(|direct| &direct.exprs);
        let exprs = exprs.chain(directs).chain(above.iter().map(|typed| &typed.expr));
        let mut used: HashSet<Column> =
            exprs.flat_map(|expr| expr.column_refs()).cloned().collect();
        let mut sets = std::mem::take(&mut self.level().sets);
        for argument in sets.arguments() {
            used.extend(argument.expr.column_refs().into_iter().cloned());
        }
        self.level().sets = sets;
        used
    }

    /// Those of the used columns that are not grouped by, of tables whose primary key is.
    pub(super) fn dependent_columns(
        &mut self,
        grouped: &[&Expr],
        used: &HashSet<Column>,
    ) -> Result<Vec<Typed>> {
        let mut found = Vec::new();
        for table in &self.level().scope.tables {
            let Some((catalog, relation)) = &table.relation else { continue };
            let is_wanted = |typed: &&Typed| match &typed.expr {
                Expr::Column(column) => used.contains(column) && !grouped.contains(&&typed.expr),
                _ => false,
            };
            let columns = table.all_columns().map(|column| &column.typed);
            let wanted: Vec<&Typed> = columns.filter(is_wanted).collect();
            let is_grouped = |typed: &Typed| grouped.contains(&&typed.expr);
            if wanted.is_empty() || !table.columns.iter().any(|c| is_grouped(&c.typed)) {
                continue;
            }
            let key = primary_key(catalog, *relation, table)?;
            if !key.is_empty() && key.into_iter().all(is_grouped) {
                found.extend(wanted.into_iter().cloned());
            }
        }
        Ok(found)
    }
}

/// The columns of a table's primary key; none without one, or where it may be violated for a while.
fn primary_key<'t>(
    catalog: &Arc<Catalog>,
    relation: Oid,
    table: &'t ScopeTable,
) -> Result<Vec<&'t Typed>> {
    let mut numbers = Vec::new();
    let wanted = ["conrelid", "contype", "condeferrable", "conkey"];
    for_each_row(catalog.values(), "pg_constraint", &wanted, |row| {
        if row.oid(0) == relation && row.byte(1) == b'p' && !row.bool(2) {
            numbers = row.int2s(3)?;
        }
        Ok(())
    })?;
    let database = catalog.database();
    let Some(class) = database.class(relation) else {
        return Ok(Vec::new());
    };
    let columns = &database.relation(class)?.columns;
    let column = |number: i16| {
        let before = columns.get(..usize::try_from(number).ok()?.checked_sub(1)?)?;
        let at = before.iter().filter(|column| !column.dropped).count();
        table.columns.get(at).map(|column| &column.typed)
    };
    Ok(numbers.into_iter().map(column).collect::<Option<Vec<_>>>().unwrap_or_default())
}
