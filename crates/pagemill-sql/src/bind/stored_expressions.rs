//! Expressions over the columns of one table that are kept as trees: those of indexes, of columns and of policies.
//!
//! Invariant: what is bound here is what the same text would be in a statement about that table, so that the two can be held
//! against each other. There is no query in it, and nothing that depends on who reads.

use std::sync::Arc;

use datafusion::logical_expr::Expr;
use pagemill_cluster::ClassRow;
use pagemill_format::Oid;
use pagemill_format::node_tree::Node;

use super::policies::only_expression;
use super::query::boolean;
use super::scope::{Allowed, Level, Scope};
use super::{Binder, Bound, BoundColumn, TableRows, Tables};
use crate::catalog::Catalog;
use crate::definitions::{Style, Unwritten, Writer};
use crate::error::{Result, StatementError, unsupported};
use crate::nested::Nested;
use crate::parameters::Parameters;
use crate::session::Session;
use crate::typed::Typed;

/// What a stored tree about a table is as SQL that is bound again.
///
/// # Errors
/// Where it is damaged, or has no text here.
pub(super) fn text_of_tree(catalog: &Arc<Catalog>, table: Oid, tree: &str) -> Result<String> {
    let dictionary = catalog.dictionary()?;
    let written = || -> Result<String, Unwritten> {
        let parsed = Node::parse(tree.as_bytes())?;
        Writer::new(catalog, &dictionary, Style::READ_BACK).tree(&parsed, table)
    };
    Ok(written().map_err(StatementError::from)?)
}

/// What a text is over these columns.
///
/// # Errors
/// For what is not supported here.
pub(crate) fn stored_expression(
    catalog: &Arc<Catalog>,
    columns: Vec<BoundColumn>,
    text: &str,
) -> Result<Typed> {
    over_columns(catalog, columns, |binder| binder.text(text))
}

/// What the condition of this text is over these columns.
///
/// # Errors
/// As [`stored_expression`].
pub(crate) fn stored_condition(
    catalog: &Arc<Catalog>,
    columns: Vec<BoundColumn>,
    text: &str,
) -> Result<Expr> {
    over_columns(catalog, columns, |binder| binder.condition_of_text(text, "WHERE"))
}

fn over_columns<T>(
    catalog: &Arc<Catalog>,
    columns: Vec<BoundColumn>,
    bind: impl FnOnce(&mut Binder<'_>) -> Result<T>,
) -> Result<T> {
    let parameters = Parameters::sought(&[]);
    // No stored expression depends on when it is asked.
    let mut binder = Binder::new(catalog, &NoTables, 0, &parameters);
    let scope = Scope::of_table(String::new(), columns);
    binder.isolated(None, |binder| binder.within(scope, bind))
}

impl Binder<'_> {
    /// Binds what stands where these columns are in sight, and no aggregates.
    pub(super) fn within<T>(
        &mut self,
        scope: Scope,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let allowed = Allowed::PlainIn("WHERE");
        self.levels.push(Level { scope, allowed, ..Level::default() });
        let bound = bind(self);
        self.levels.pop();
        bound
    }

    /// A condition by its text; `clause` names it in errors.
    pub(super) fn condition_of_text(&mut self, text: &str, clause: &str) -> Result<Expr> {
        let typed = self.text(text)?;
        let condition = boolean(typed, clause, &self.catalog)?;
        self.condition(condition.expr)
    }

    fn text(&mut self, text: &str) -> Result<Typed> {
        let statements = Session::parse(&format!("SELECT {text}"))?;
        match only_expression(&statements) {
            Some(syntax) => self.expr(syntax),
            None => unsupported("what is no expression"),
        }
    }
}

/// Where no table is to be named.
struct NoTables;

impl Tables for NoTables {
    fn scan(&self, _: &Arc<Catalog>, _: &ClassRow, _: &str) -> Result<TableRows> {
        unsupported("a table in the expression of an index")
    }

    fn file(&self, _: &str, _: &str) -> Result<Option<Bound>> {
        Ok(None)
    }

    fn database(&self, _: Option<&str>, _: &str) -> Result<Arc<Catalog>> {
        unsupported("another database in the expression of an index")
    }

    fn nested(&self) -> Result<Arc<Nested>> {
        unsupported("a query in the expression of an index")
    }
}
