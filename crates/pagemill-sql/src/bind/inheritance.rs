//! Tables that others inherit from: their own rows and those of all below, or with ONLY their own.
//!
//! Source: `find_all_inheritors` in `src/backend/catalog/pg_inherits.c`, PostgreSQL 18.

use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use pagemill_cluster::{ClassRow, RelationKind};
use pagemill_format::Oid;
use sqlparser::ast::{
    Expr as Syntax, FunctionArg, FunctionArgExpr, Ident, ObjectName, TableAlias, TableFactor,
};

use super::scope::{Scope, folded};
use super::table_names::FoundTable;
use super::virtual_columns::with_virtual_columns;
use super::{Binder, Bound, BoundColumn, TableRows};
use crate::catalog::Catalog;
use crate::error::{Result, SqlState, StatementError, fail};
use crate::spelling::ONLY;
use crate::system_rows::for_each_row;

impl Binder<'_> {
    /// A table with the rows of those that inherit from it.
    pub(super) fn with_children(&mut self, found: &FoundTable, name: &str) -> Result<TableRows> {
        let FoundTable { catalog, class, .. } = found;
        let alias = self.fresh(name);
        let own = self.tables.scan(catalog, class, &alias)?;
        // Partitions are a scan's matter.
        let below = match class.kind {
            RelationKind::Table => descendants(catalog, class.oid)?,
            _ => Vec::new(),
        };
        if below.is_empty() {
            return with_virtual_columns(found, own);
        }
        let wanted: Vec<BoundColumn> = own.all_columns().cloned().collect();
        let names: Vec<String> = wanted.iter().map(|column| self.fresh(&column.name)).collect();
        let mut plan = under(&own, &wanted, &names)?;
        for oid in below {
            let class = class_of(catalog, oid)?;
            let alias = self.fresh(name);
            let child = self.tables.scan(catalog, class, &alias)?;
            plan =
                LogicalPlanBuilder::from(plan).union(under(&child, &wanted, &names)?)?.build()?;
        }
        let column = |(column, name): (&BoundColumn, &String)| {
            let mut typed = column.typed.with_expr(super::query::column(name));
            typed.origin = column.typed.origin;
            BoundColumn { name: column.name.clone(), typed }
        };
        let mut columns: Vec<BoundColumn> = wanted.iter().zip(&names).map(column).collect();
        let system = columns.split_off(own.bound.columns.len());
        let computed = own.computed;
        with_virtual_columns(found, TableRows { bound: Bound { plan, columns }, system, computed })
    }

    /// `ONLY t`: a table without what is below it, of which a partitioned one has nothing.
    pub(super) fn only(
        &mut self,
        argument: &Syntax,
        alias: Option<&TableAlias>,
    ) -> Result<(LogicalPlan, Scope)> {
        let parts: Vec<&Ident> = match argument {
            Syntax::Identifier(ident) => vec![ident],
            Syntax::CompoundIdentifier(parts) => parts.iter().collect(),
            _ => return fail(SqlState::SYNTAX_ERROR, "syntax error in ONLY"),
        };
        let last = parts.last().map_or_else(String::new, |last| folded(last));
        let found = self.find_table(&parts)?;
        let readable = self.check_rights(&found)?;
        let name = self.fresh(&last);
        let rows = self.tables.scan(&found.catalog, &found.class, &name)?;
        let rows = with_virtual_columns(&found, rows)?;
        let mut rows = self.with_policies(&found, rows)?;
        found.mark(&readable, &mut rows);
        if found.class.kind == RelationKind::PartitionedTable {
            let plan = LogicalPlanBuilder::from(rows.bound.plan).limit(0, Some(0))?;
            rows.bound.plan = plan.build()?;
        }
        self.as_relation(&found, rows, alias, &last)
    }
}

fn class_of(catalog: &Catalog, oid: Oid) -> Result<&ClassRow> {
    let classes = catalog.database().classes();
    classes.iter().find(|class| class.oid == oid).ok_or_else(|| {
        let message = format!("relation {} in pg_inherits is missing", oid.0);
        StatementError::new(SqlState::DATA_CORRUPTED, message).into()
    })
}

/// All tables that inherit from one, each once.
fn descendants(catalog: &Catalog, parent: Oid) -> Result<Vec<Oid>> {
    let mut pairs = Vec::new();
    for_each_row(catalog.values(), "pg_inherits", &["inhrelid", "inhparent"], |row| {
        pairs.push((row.oid(0), row.oid(1)));
        Ok(())
    })?;
    let (mut found, mut at) = (vec![parent], 0);
    while let Some(&parent) = found.get(at) {
        let children = pairs.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child);
        let mut children: Vec<Oid> = children.filter(|child| !found.contains(child)).collect();
        children.sort_unstable_by_key(|oid| oid.0);
        found.extend(children);
        at += 1;
    }
    Ok(found.split_off(1))
}

/// The item of FROM that ONLY stands before.
pub(super) fn after_only(factor: &TableFactor) -> Option<(&Syntax, Option<&TableAlias>)> {
    let TableFactor::Table { name, alias, args: Some(args), .. } = factor else { return None };
    match &args.args[..] {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(syntax))] if is_only(name) => {
            Some((syntax, alias.as_ref()))
        }
        _ => None,
    }
}

fn is_only(name: &ObjectName) -> bool {
    name.0.len() == 1 && super::columns::last_name(name) == ONLY
}

/// The columns of a parent, by their names, as another table has them.
fn under(table: &TableRows, wanted: &[BoundColumn], names: &[String]) -> Result<LogicalPlan> {
    let column = |(wanted, name): (&BoundColumn, &String)| -> Result<Expr> {
        let own = table.all_columns().find(|column| column.name == wanted.name);
        match own {
            Some(own) if own.typed.carrier == wanted.typed.carrier => {
                Ok(own.typed.expr.clone().alias(name))
            }
            _ => {
                let message = format!("a child has no column \"{}\" of its parent's", wanted.name);
                fail(SqlState::DATA_CORRUPTED, message)
            }
        }
    };
    let exprs = wanted.iter().zip(names).map(column).collect::<Result<Vec<_>>>()?;
    Ok(LogicalPlanBuilder::from(table.bound.plan.clone()).project(exprs)?.build()?)
}
