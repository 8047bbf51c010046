//! Row-level security: the policies of a table as a condition on its rows, behind a barrier.
//!
//! ```text
//!   rows ──► all restrictive policies AND any permissive one ──► barrier ──► the statement
//! ```
//!
//! The policies are those of the table that is named, for SELECT and for ALL, for everybody and for roles whose rights the reader has. Those
//! of what inherits from it, of partitions, are not looked at. Queries in them read as the reader does, and under the policies of what
//! they read.
//!
//! Invariant: without a permissive policy no row is seen. A policy may look at columns that the reader may not.
//!
//! Source: `get_row_security_policies`, `get_policies_for_relation` and `add_security_quals` in `src/backend/rewrite/rowsecurity.c`,
//! `fireRIRrules` in `rewriteHandler.c`, `check_enable_rls` in `src/backend/utils/misc/rls.c`, PostgreSQL 14 to 18.

use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, lit};
use pagemill_cluster::{ClassRow, RelationKind};
use pagemill_format::Oid;
use sqlparser::ast::{Expr as Syntax, SelectItem, SetExpr, Statement};

use super::scope::Scope;
use super::stored_expressions::text_of_tree;
use super::table_names::FoundTable;
use super::{Binder, TableRows};
use crate::barrier::behind_barrier;
use crate::catalog::Catalog;
use crate::error::{Error, Result, SqlState, StatementError, fail};
use crate::rights::Policy;

impl Binder<'_> {
    /// The rows of a table that its policies show to whoever reads it.
    pub(super) fn with_policies(
        &mut self,
        found: &FoundTable,
        mut rows: TableRows,
    ) -> Result<TableRows> {
        let FoundTable { catalog, class, .. } = found;
        let Some(role) = self.reader.or(self.catalog.role()) else { return Ok(rows) };
        if !is_guarded(catalog, role, class)? {
            return Ok(rows);
        }
        let name = String::from_utf8_lossy(&class.name).into_owned();
        let policies = catalog.policies_for(role, class.oid)?;
        let bound = &mut rows.bound;
        let plan = bound.plan.clone();
        bound.plan = match self.policy_text(class.oid, &policies)? {
            None => LogicalPlanBuilder::from(plan).filter(lit(false))?.build()?,
            Some(text) => {
                if policies.iter().any(Policy::has_queries) && self.guarded.contains(&class.oid) {
                    let message =
                        format!("infinite recursion detected in policy for relation \"{name}\"");
                    return fail(SqlState("42P17"), message);
                }
                let mut scope = Scope::of_table(name.clone(), bound.columns.clone());
                scope.tables[0].system = rows.system.clone();
                self.guarded.push(class.oid);
                let filtered =
                    self.isolated(self.reader, |binder| binder.filtered_by(plan, scope, &text));
                self.guarded.pop();
                filtered.map_err(|error| in_policy(error, &name))?
            }
        };
        rows.bound.plan = behind_barrier(rows.bound.plan);
        Ok(rows)
    }

    /// Refuses a table of which policies would leave out rows, where `row_security` is off.
    pub(super) fn check_row_security(&self, role: Oid, class: &ClassRow) -> Result<()> {
        if self.row_security || !is_guarded(&self.catalog, role, class)? {
            return Ok(());
        }
        let name = String::from_utf8_lossy(&class.name);
        let message =
            format!("query would be affected by row-level security policy for table \"{name}\"");
        let error = StatementError::new(SqlState::DENIED, message);
        match self.catalog.owns_relation(role, class.oid)? {
            false => Err(error.into()),
            true => {
                let hint = "To disable the policy for the table's owner, use ALTER TABLE NO FORCE ROW LEVEL SECURITY.";
                Err(error.with_hint(hint).into())
            }
        }
    }

    /// The condition that the policies are together; `None` where they let no row through.
    fn policy_text(&self, table: Oid, policies: &[Policy]) -> Result<Option<String>> {
        let write = |policy: &Policy| -> Result<Option<String>> {
            let Some(tree) = &policy.condition else { return Ok(None) };
            Ok(Some(format!("({})", text_of_tree(&self.catalog, table, tree)?)))
        };
        let (mut all, mut any) = (Vec::new(), Vec::new());
        for policy in policies {
            let to = if policy.is_permissive { &mut any } else { &mut all };
            to.extend(write(policy)?);
        }
        if any.is_empty() {
            return Ok(None);
        }
        all.push(format!("({})", any.join(" OR ")));
        Ok(Some(all.join(" AND ")))
    }

    fn filtered_by(&mut self, plan: LogicalPlan, scope: Scope, text: &str) -> Result<LogicalPlan> {
        let condition = self.within(scope, |binder| binder.condition_of_text(text, "POLICY"))?;
        Ok(LogicalPlanBuilder::from(plan).filter(condition)?.build()?)
    }
}

/// Whether a relation has policies that count for a role.
fn is_guarded(catalog: &Catalog, role: Oid, class: &ClassRow) -> Result<bool> {
    let is_table = matches!(class.kind, RelationKind::Table | RelationKind::PartitionedTable);
    Ok(is_table && catalog.is_row_security_active(role, class.oid)?)
}

/// The expression of a SELECT that has nothing else.
pub(super) fn only_expression(statements: &[Statement]) -> Option<&Syntax> {
    let [Statement::Query(query)] = statements else { return None };
    let SetExpr::Select(select) = &*query.body else { return None };
    match &select.projection[..] {
        [SelectItem::UnnamedExpr(expr)] => Some(expr),
        _ => None,
    }
}

/// What a policy has that is not known here. A right that is missing, and a policy that asks itself, are the server's errors, too.
fn in_policy(error: Error, table: &str) -> Error {
    match error {
        Error::Statement(error)
            if ![SqlState::DATA_CORRUPTED, SqlState::DENIED, SqlState("42P17")]
                .contains(&error.state) =>
        {
            let what = error.message.trim_end_matches(" is not supported here");
            StatementError::unsupported(format!("the policies of \"{table}\" ({what})")).into()
        }
        Error::Statement(error) => error.without_position().into(),
        other => other,
    }
}
