//! A text of statements, answered one behind the other.
//!
//! Source: `exec_simple_query` in `src/backend/tcop/postgres.c`, PostgreSQL 18.

use pagemill_sql::catalog::Catalog;
use pagemill_sql::session::AnswerColumn;
use pagemill_sql::{SqlState, StatementError};
use sqlparser::ast::Statement;

use super::portal::Delivered;
use super::{Connection, report};
use crate::command::{Command, commands};
use crate::error::Result;
use crate::protocol::{ColumnDescription, Severity, TransactionStatus};
use crate::running::{Running, TextRows};

impl Connection {
    /// Answers a text. An error ends it.
    pub(super) async fn simple(&mut self, text: &str) -> Result<()> {
        match commands(text) {
            Ok(all) if all.is_empty() => self.out.empty(b'I'),
            Ok(all) => {
                for command in all {
                    if let Err(error) = self.command(command).await? {
                        self.fail(&error);
                        break;
                    }
                }
            }
            Err(error) => self.fail(&error),
        }
        self.out.ready(self.status);
        Ok(())
    }

    async fn command(&mut self, command: Command) -> Result<Result<(), StatementError>> {
        let is_end = matches!(command, Command::Commit | Command::Rollback | Command::RollbackTo);
        if self.status == TransactionStatus::Failed && !is_end {
            let message =
                "current transaction is aborted, commands ignored until end of transaction block";
            return Ok(Err(StatementError::new(SqlState("25P02"), message)));
        }
        match command {
            Command::Query(statement) => self.query(*statement).await,
            Command::Copy(_) => Ok(Err(StatementError::unsupported("COPY"))),
            other => Ok(self.control(other)),
        }
    }

    /// What concerns the session only.
    fn control(&mut self, command: Command) -> Result<(), StatementError> {
        let tag = match command {
            Command::Begin(tag) => {
                if self.status != TransactionStatus::Idle {
                    self.warn("25001", "there is already a transaction in progress");
                }
                self.status = TransactionStatus::InTransaction;
                tag
            }
            Command::Commit => match self.end_transaction() {
                TransactionStatus::Failed => "ROLLBACK",
                _ => "COMMIT",
            },
            Command::Rollback => {
                self.end_transaction();
                "ROLLBACK"
            }
            Command::RollbackTo if self.status == TransactionStatus::Idle => {
                let message = "ROLLBACK TO SAVEPOINT can only be used in transaction blocks";
                return Err(StatementError::new(SqlState("25P01"), message));
            }
            Command::RollbackTo => {
                self.status = TransactionStatus::InTransaction;
                "ROLLBACK"
            }
            Command::Nothing(tag) => tag,
            Command::Set { name, value } => {
                if self.settings.set(&name, value.as_deref())? {
                    self.tell_setting(&name)?;
                }
                if value.is_some() { "SET" } else { "RESET" }
            }
            Command::ResetAll(tag) => {
                self.settings.reset_all();
                self.tell_setting("application_name")?;
                tag
            }
            Command::DiscardAll => {
                self.settings.reset_all();
                self.tell_setting("application_name")?;
                "DISCARD ALL"
            }
            Command::Show(name) => {
                self.show(&name)?;
                "SHOW"
            }
            Command::Deallocate(Some(name)) => {
                let message = format!("prepared statement \"{name}\" does not exist");
                return Err(StatementError::new(SqlState("26000"), message));
            }
            Command::Deallocate(None) => "DEALLOCATE ALL",
            Command::Query(_) | Command::Copy(_) => unreachable!("they are answered elsewhere"),
        };
        self.out.complete(tag);
        Ok(())
    }

    /// Where the transaction stood that ends.
    fn end_transaction(&mut self) -> TransactionStatus {
        if self.status == TransactionStatus::Idle {
            self.warn("25P01", "there is no transaction in progress");
        }
        std::mem::replace(&mut self.status, TransactionStatus::Idle)
    }

    fn warn(&mut self, state: &'static str, message: &str) {
        let warning = StatementError::new(SqlState(state), message);
        report(&mut self.out, Severity::Warning, &warning);
    }

    fn tell_setting(&mut self, name: &str) -> Result<(), StatementError> {
        let (name, value) = self.settings.show(name)?;
        self.out.parameter(name, value);
        Ok(())
    }

    fn show(&mut self, name: &str) -> Result<(), StatementError> {
        let (name, value) = self.settings.show(name)?;
        let ty = pagemill_sql::types::PgType::new(pagemill_types::builtin::oid::TEXT);
        let column = AnswerColumn { name: name.clone(), ty };
        let catalog = self.session.catalog();
        self.out.row_description([described(catalog, &column)].into_iter());
        self.out.row(1, |_, out| {
            out.extend_from_slice(value.as_bytes());
            Ok::<bool, StatementError>(true)
        })
    }

    /// A statement whose rows go out as they come.
    async fn query(&mut self, statement: Statement) -> Result<Result<(), StatementError>> {
        let (compute, session) = (self.server.compute.clone(), self.session.clone());
        let is_explain = matches!(statement, Statement::Explain { .. });
        let mut portal = self.portal(Running::start(&compute, session, statement, TextRows));
        loop {
            match self.next(&mut portal).await? {
                Err(error) => return Ok(Err(error)),
                Ok(Delivered::Columns(columns)) => self.describe(&columns),
                Ok(Delivered::Rows(chunk)) => {
                    self.out.append(&chunk.bytes);
                    self.flush_much().await?;
                }
                Ok(Delivered::End(answer)) => {
                    for loss in &answer.losses {
                        let error = StatementError::new(SqlState::DATA_CORRUPTED, loss.clone());
                        report(&mut self.out, Severity::Warning, &error);
                    }
                    match is_explain {
                        true => self.out.complete("EXPLAIN"),
                        false => self.out.complete(&format!("SELECT {}", answer.rows)),
                    }
                    return Ok(Ok(()));
                }
            }
        }
    }

    fn describe(&mut self, columns: &[AnswerColumn]) {
        let catalog = self.session.catalog().clone();
        self.out.row_description(columns.iter().map(|column| described(&catalog, column)));
    }
}

/// A column as clients are told of it: of a domain, the type under it.
fn described<'c>(catalog: &Catalog, column: &'c AnswerColumn) -> ColumnDescription<'c> {
    let (type_oid, modifier) = catalog.base_type(column.ty.oid, column.ty.modifier);
    ColumnDescription {
        name: &column.name,
        origin: (pagemill_format::Oid(0), 0),
        type_oid,
        type_length: catalog.type_row(type_oid).map_or(-1, |row| row.length),
        modifier,
        is_binary: false,
    }
}
