//! Cursors, which are portals that are made, run and closed in words.
//!
//! Invariant: none outlives its transaction.

use std::sync::Arc;

use pagemill_sql::statement_texts::StatementText;
use pagemill_sql::{SqlState, StatementError};

use super::{Bound, State, Statement, Told};
use crate::activity::shown;
use crate::command::{Command, Fetch};
use crate::connection::Connection;
use crate::error::Result;
use crate::protocol::TransactionStatus;
use crate::running::Formats;

impl Connection {
    /// A cursor, which is a portal that was made in words.
    pub(super) fn cursor(&self, name: &str) -> Told<&Bound> {
        self.extended.portals.get(name).ok_or_else(|| unknown_cursor(name))
    }

    /// `DECLARE`.
    pub(in crate::connection) async fn declare(
        &mut self,
        name: String,
        query: Arc<StatementText>,
    ) -> Result<Told<()>> {
        if self.status == TransactionStatus::Idle {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Ok(Err(StatementError::new(SqlState("25P01"), message)));
        }
        if self.extended.portals.contains_key(&name) {
            let message = format!("cursor \"{name}\" already exists");
            return Ok(Err(StatementError::new(SqlState("42P03"), message)));
        }
        let text = shown(&query.to_string());
        let command = Command::Query(query);
        let prepared = match self.prepared(Some(&command), Vec::new()).await? {
            Ok(prepared) => prepared,
            Err(error) => return Ok(Err(error)),
        };
        if !prepared.types.is_empty() {
            return Ok(Err(StatementError::unsupported("a parameter in DECLARE")));
        }
        let statement = Arc::new(Statement { command: Some(command), prepared, text });
        let (values, formats) = (Vec::new(), Formats::default());
        let bound = Bound { statement, values, formats, state: State::Ready };
        self.extended.portals.insert(name, bound);
        self.out.complete("DECLARE CURSOR");
        Ok(Ok(()))
    }

    /// `FETCH` and `MOVE`, whose columns were told already.
    pub(in crate::connection) async fn fetch(&mut self, fetch: &Fetch) -> Result<Told<()>> {
        let Some(mut bound) = self.extended.portals.remove(&fetch.name) else {
            return Ok(Err(unknown_cursor(&fetch.name)));
        };
        let Some(Command::Query(statement)) = bound.statement.command.clone() else {
            return Ok(Err(StatementError::unsupported("FETCH from what is no query")));
        };
        let executed = bound.executed(statement);
        Ok(match self.rows(&mut bound, executed, fetch.most_rows, fetch.is_move).await? {
            Ok(sent) => {
                let word = if fetch.is_move { "MOVE" } else { "FETCH" };
                self.out.complete(&format!("{word} {}", sent.rows));
                self.extended.portals.insert(fetch.name.clone(), bound);
                Ok(())
            }
            Err(error) => Err(error),
        })
    }

    /// `FETCH` in a text: its columns come first.
    pub(in crate::connection) async fn fetch_described(
        &mut self,
        fetch: &Fetch,
    ) -> Result<Told<()>> {
        let columns = match self.cursor(&fetch.name) {
            Ok(bound) => bound.statement.prepared.columns.clone(),
            Err(error) => return Ok(Err(error)),
        };
        if !fetch.is_move {
            self.describe(&columns, &Formats::default());
        }
        self.fetch(fetch).await
    }

    /// `CLOSE`.
    pub(in crate::connection) fn close_cursor(&mut self, name: Option<&str>) -> Told<&'static str> {
        match name {
            None => {
                self.extended.portals.clear();
                Ok("CLOSE CURSOR ALL")
            }
            Some(name) => match self.extended.portals.remove(name) {
                Some(_) => Ok("CLOSE CURSOR"),
                None => Err(unknown_cursor(name)),
            },
        }
    }
}

fn unknown_cursor(name: &str) -> StatementError {
    StatementError::new(SqlState("34000"), format!("cursor \"{name}\" does not exist"))
}
