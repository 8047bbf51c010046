//! Columns that are computed when they are read: `GENERATED ALWAYS AS (…) VIRTUAL`, from PostgreSQL 18 on, where it is the default.
//!
//! ```text
//! scan of the table, where the column is NULL ──► its expression under its name ──► policies, the statement
//! ```
//!
//! Invariant: the expression is that of the table that is named, not of what inherits from it, of whose rows it may be one of another
//! text; it reads what the table's columns are, whether the reader may see them or not.
//!
//! Source: `expand_virtual_generated_columns` in `src/backend/optimizer/prep/prepjointree.c` and `build_column_default` in
//! `src/backend/rewrite/rewriteHandler.c`, PostgreSQL 18.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use pagemill_format::Oid;

use super::stored_expressions::text_of_tree;
use super::table_names::FoundTable;
use super::{BoundColumn, TableRows, stored_expression};
use crate::catalog::{CastContext, Catalog};
use crate::coerce::coerce;
use crate::error::{Error, Result, SqlState, StatementError, fail, unsupported};
use crate::system_rows::for_each_row;

/// The rows of a table with the columns that are computed of the others.
///
/// # Errors
/// When an expression is missing, or has what is not known here.
pub(super) fn with_virtual_columns(found: &FoundTable, mut rows: TableRows) -> Result<TableRows> {
    let numbers = std::mem::take(&mut rows.computed);
    if numbers.is_empty() {
        return Ok(rows);
    }
    let FoundTable { catalog, class, .. } = found;
    let trees = trees(catalog, class.oid)?;
    let mut computed = HashMap::new();
    for column in &rows.bound.columns {
        let number = column.typed.origin.as_ref().map(|origin| origin.number);
        let Some(number) = number.filter(|number| numbers.contains(number)) else { continue };
        let Some(tree) = trees.get(&number) else { return missing(column) };
        let text = text_of_tree(catalog, class.oid, tree);
        let expr = text.and_then(|text| computed_by(catalog, &rows, (column, &text)));
        let expr = expr.map_err(|error| in_expression(error, &column.name))?;
        computed.insert(column.typed.expr.clone(), expr);
    }
    let plan = rows.bound.plan;
    let as_read = plan.schema().columns().into_iter().map(|column| {
        let (relation, name) = (column.relation.clone(), column.name.clone());
        let column = Expr::Column(column);
        match computed.remove(&column) {
            Some(expr) => expr.alias_qualified(relation, name),
            None => column,
        }
    });
    let as_read: Vec<Expr> = as_read.collect();
    rows.bound.plan = LogicalPlanBuilder::from(plan).project(as_read)?.build()?;
    Ok(rows)
}

/// What a column is over the others.
fn computed_by(
    catalog: &Arc<Catalog>,
    rows: &TableRows,
    (column, text): (&BoundColumn, &str),
) -> Result<Expr> {
    let typed = stored_expression(catalog, rows.all_columns().cloned().collect(), text)?;
    let typed = coerce(catalog, typed, column.typed.ty, CastContext::Assignment)?;
    match typed.carrier == column.typed.carrier {
        true => Ok(typed.expr),
        false => unsupported("an expression of another type"),
    }
}

/// The stored expressions of a table's columns, by their numbers.
fn trees(catalog: &Catalog, table: Oid) -> Result<HashMap<i16, String>> {
    let mut found = HashMap::new();
    for_each_row(catalog.values(), "pg_attrdef", &["adrelid", "adnum", "adbin"], |row| {
        if row.oid(0) == table {
            found.insert(row.int2(1), row.text(2)?.unwrap_or_default());
        }
        Ok(())
    })?;
    Ok(found)
}

fn missing<T>(column: &BoundColumn) -> Result<T> {
    let message =
        format!("the virtual generated column \"{}\" has no expression in pg_attrdef", column.name);
    fail(SqlState::DATA_CORRUPTED, message)
}

/// What the expression of a column has that is not known here.
fn in_expression(error: Error, column: &str) -> Error {
    match error {
        Error::Statement(error) if error.state != SqlState::DATA_CORRUPTED => {
            let what = error.message.trim_end_matches(" is not supported here");
            let what = format!("the virtual generated column \"{column}\" ({what})");
            StatementError::unsupported(what).into()
        }
        other => other,
    }
}
