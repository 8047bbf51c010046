//! Views in FROM: the stored query is written out as the server writes it, and bound as a query in parentheses.
//!
//! Invariant: the query sees nothing of the statement around it, and reads with the rights of the view's owner. An error in it is never
//! the user's, as the server bound it once, but for a right that the owner has lost.
//!
//! Source: `ApplyRetrieveRule` in `src/backend/rewrite/rewriteHandler.c`, PostgreSQL 18.

use std::sync::Arc;

use pagemill_format::Oid;
use sqlparser::ast::Statement;

use super::table_names::FoundTable;
use super::{Binder, Bound};
use crate::barrier::behind_barrier;
use crate::definitions::{Style, Unwritten, view, view_rule};
use crate::error::{Error, Result, SqlState, StatementError, fail, unsupported};
use crate::session::Session;
use crate::typed::ColumnOrigin;

/// How deep views and policies may stand on each other; the server has no limit but its stack.
const DEEPEST: usize = 64;

impl Binder<'_> {
    /// The query of a view.
    pub(super) fn view(&mut self, found: &FoundTable) -> Result<Bound> {
        let name = String::from_utf8_lossy(&found.class.name).into_owned();
        if !Arc::ptr_eq(&found.catalog, &self.catalog) {
            return unsupported(format!("the view \"{name}\" of another database"));
        }
        let missing = || {
            let message = format!("the view \"{name}\" has no query in pg_rewrite");
            StatementError::new(SqlState::DATA_CORRUPTED, message)
        };
        let rule = view_rule(&self.catalog, found.class.oid)?.ok_or_else(missing)?;
        let text = view(&self.catalog, &rule, Style::READ_BACK);
        let text = text.map_err(|unwritten: Unwritten| StatementError::from(unwritten))?;
        let bound = Session::parse(&text).and_then(|statements| match &statements[..] {
            [Statement::Query(query)] => {
                let reader = self.catalog.reader_of(found.class.oid, self.reader)?;
                self.isolated(reader, |binder| binder.query(query))
            }
            _ => unsupported("what is no query"),
        });
        let mut bound = bound.map_err(|error| in_view(error, &name))?;
        let dictionary = self.catalog.dictionary()?;
        let columns = dictionary.column_names(found.class.oid);
        if columns.len() != bound.columns.len() {
            let message = format!("the view \"{name}\" has other columns than its query");
            return fail(SqlState::DATA_CORRUPTED, message);
        }
        for (number, (column, name)) in (1..).zip(bound.columns.iter_mut().zip(columns)) {
            column.name = name;
            column.typed.origin = Some(ColumnOrigin { relation: found.class.oid, number });
        }
        if self.catalog.is_barrier(found.class.oid)? {
            bound.plan = behind_barrier(bound.plan);
        }
        Ok(bound)
    }

    /// Binds what was stored, without what is in sight here, with the rights of this role, or of the session's.
    pub(super) fn isolated<T>(
        &mut self,
        reader: Option<Oid>,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.views == DEEPEST {
            let message = format!("views and policies stand more than {DEEPEST} deep");
            return fail(SqlState("54001"), message);
        }
        let reader = std::mem::replace(&mut self.reader, reader);
        let is_stored = std::mem::replace(&mut self.is_stored, true);
        let (levels, with) = (std::mem::take(&mut self.levels), std::mem::take(&mut self.with));
        let keeps_literals = std::mem::replace(&mut self.keeps_literals, false);
        let (body, hidden) = (self.body.take(), std::mem::take(&mut self.hidden));
        self.views += 1;
        let bound = bind(self);
        self.views -= 1;
        (self.levels, self.with, self.keeps_literals) = (levels, with, keeps_literals);
        (self.reader, self.is_stored) = (reader, is_stored);
        (self.body, self.hidden) = (body, hidden);
        bound
    }
}

/// What the query of a view has that is not known here.
fn in_view(error: Error, view: &str) -> Error {
    match error {
        Error::Statement(error)
            if error.state != SqlState::DATA_CORRUPTED && error.state != SqlState::DENIED =>
        {
            let what = error.message.trim_end_matches(" is not supported here");
            StatementError::unsupported(format!("the view \"{view}\" ({what})")).into()
        }
        other => other,
    }
}
