//! A text of statements, answered one behind the other.
//!
//! Source: `exec_simple_query` in `src/backend/tcop/postgres.c`, PostgreSQL 18.

use std::sync::Arc;

use pagemill_format::Oid;
use pagemill_sql::catalog::Catalog;
use pagemill_sql::copy::copy_to_client;
use pagemill_sql::output::CopyForm;
use pagemill_sql::parameters::ParameterValue;
use pagemill_sql::session::{Answer, AnswerColumn};
use pagemill_sql::{SqlState, StatementError};

use super::extended::Executed;
use super::portal::Delivered;
use super::{Connection, report};
use crate::command::{Command, SetConfig, SetSetting, commands};
use crate::error::Result;
use crate::protocol::{ColumnDescription, Severity, TransactionStatus};
use crate::running::{Formats, RowForm, Running, Whole, Work};
use crate::settings::Settings;

impl Connection {
    /// Answers a text. An error ends it.
    pub(super) async fn simple(&mut self, text: &str) -> Result<()> {
        let texts = self.server.texts.clone();
        let mut has_failed = false;
        match commands(text, &texts) {
            Ok(all) if all.is_empty() => self.out.empty(b'I'),
            Ok(all) => {
                for sent in all {
                    let place = sent.place(text);
                    if let Err(error) = self.command(sent.command).await? {
                        self.fail(&place(error));
                        has_failed = true;
                        break;
                    }
                }
            }
            Err(error) => self.fail(&error),
        }
        if self.status == TransactionStatus::Idle {
            self.extended.end_portals(!has_failed);
        }
        self.out.ready(self.status);
        Ok(())
    }

    async fn command(&mut self, command: Command) -> Result<Result<(), StatementError>> {
        if let Err(error) = self.admit(&command) {
            return Ok(Err(error));
        }
        if let Err(error) = self.follow_settings().await {
            return Ok(Err(error));
        }
        match command {
            Command::Query(statement) => self.query(Executed::of_text(statement)).await,
            Command::Copy(text) => self.copy(&text).await,
            Command::Show(_) | Command::ShowAll | Command::SetConfig(_) => {
                let columns = match self.setting_columns(&command).await {
                    Ok(columns) => columns,
                    Err(error) => return Ok(Err(error)),
                };
                self.describe(&columns, &Formats::default());
                Ok(self.control(command).await)
            }
            Command::Prepare { name, types, query } => self.prepare(name, &types, query).await,
            Command::Execute { name, values } => match self.executed(&name, values) {
                Ok(executed) => self.query(executed).await,
                Err(error) => Ok(Err(error)),
            },
            Command::Declare { name, query, options } => {
                self.declare(name, query, options, &[]).await
            }
            Command::Fetch(fetch) => self.fetch_described(&fetch).await,
            other => Ok(self.control(other).await),
        }
    }

    /// Refuses what has no place in a transaction that failed.
    pub(super) fn admit(&self, command: &Command) -> Result<(), StatementError> {
        let is_end = matches!(command, Command::End { .. } | Command::RollbackTo(_));
        if self.status != TransactionStatus::Failed || is_end {
            return Ok(());
        }
        Err(super::aborted())
    }

    /// What concerns the session only.
    pub(super) async fn control(&mut self, command: Command) -> Result<(), StatementError> {
        let tag = match command {
            Command::Begin { tag, isolation } => {
                match self.status {
                    TransactionStatus::Idle => self.settings.begin(isolation.as_deref())?,
                    _ => self.warn("25001", "there is already a transaction in progress"),
                }
                self.status = TransactionStatus::InTransaction;
                tag
            }
            Command::End { is_commit, is_chained } => {
                match self.end_transaction(is_commit, is_chained)? {
                    TransactionStatus::Failed => "ROLLBACK",
                    _ if is_commit => "COMMIT",
                    _ => "ROLLBACK",
                }
            }
            Command::Savepoint(_) | Command::Release(_) | Command::RollbackTo(_)
                if self.status == TransactionStatus::Idle =>
            {
                let what = match command {
                    Command::Savepoint(_) => "SAVEPOINT",
                    Command::Release(_) => "RELEASE SAVEPOINT",
                    _ => "ROLLBACK TO SAVEPOINT",
                };
                let message = format!("{what} can only be used in transaction blocks");
                return Err(StatementError::new(SqlState("25P01"), message));
            }
            Command::Savepoint(name) => {
                self.settings.save(&name);
                "SAVEPOINT"
            }
            Command::Release(name) => {
                self.settings.release(&name)?;
                "RELEASE"
            }
            Command::RollbackTo(name) => {
                self.change_settings(|settings| settings.roll_back_to(&name))?;
                self.status = TransactionStatus::InTransaction;
                "ROLLBACK"
            }
            Command::Nothing(tag) => tag,
            Command::Set(set) => {
                let set = self.followed(set).await?;
                self.set(&set)?;
                self.follow_role(&set).await?;
                if set.value.is_some() { "SET" } else { "RESET" }
            }
            Command::SetConfig(call) => return self.set_config(&call, &[]).await,
            Command::ResetAll(tag) => {
                self.change_settings(|settings| {
                    settings.reset_all();
                    Ok(())
                })?;
                tag
            }
            Command::DiscardAll => {
                self.change_settings(|settings| {
                    settings.reset_all();
                    settings.reset_role();
                    Ok(())
                })?;
                self.extended.close_portals();
                self.extended.forget_all();
                "DISCARD ALL"
            }
            Command::Show(name) => {
                self.show(&name).await?;
                "SHOW"
            }
            Command::ShowAll => {
                self.show_all().await?;
                "SHOW"
            }
            Command::Deallocate(Some(name)) => {
                self.extended.forget(&name)?;
                "DEALLOCATE"
            }
            Command::Deallocate(None) => {
                self.extended.forget_all();
                "DEALLOCATE ALL"
            }
            Command::CloseCursor(name) => self.close_cursor(name.as_deref())?,
            Command::Query(_)
            | Command::Copy(_)
            | Command::Declare { .. }
            | Command::Fetch(_)
            | Command::Prepare { .. }
            | Command::Execute { .. } => unreachable!("they are answered elsewhere"),
        };
        self.out.complete(tag);
        Ok(())
    }

    /// The function that sets, with the values of its parameters.
    pub(super) async fn set_config(
        &mut self,
        call: &SetConfig,
        values: &[ParameterValue],
    ) -> Result<(), StatementError> {
        let set = call.setting(values)?;
        if call.if_known && !self.settings.has(&set.name) {
            self.out.complete("SELECT 0");
            return Ok(());
        }
        let mut row = Vec::new();
        if let Some((before, _)) = &call.shown_before {
            row.push(self.shown(before).await?.1);
        }
        let set = self.followed(set).await?;
        // It is a statement, and so a transaction of its own where there is none: to that, a local value is one.
        row.push(self.settings.shown_by(&set)?);
        self.change_settings(|settings| settings.set(&set))?;
        self.follow_role(&set).await?;
        self.show_values(&row)?;
        self.out.complete("SELECT 1");
        Ok(())
    }

    /// Where the transaction stood that ends. One that failed is rolled back whatever ends it.
    fn end_transaction(
        &mut self,
        is_commit: bool,
        is_chained: bool,
    ) -> Result<TransactionStatus, StatementError> {
        if is_chained && self.status == TransactionStatus::Idle {
            let what = if is_commit { "COMMIT" } else { "ROLLBACK" };
            let message = format!("{what} AND CHAIN can only be used in transaction blocks");
            return Err(StatementError::new(SqlState("25P01"), message));
        }
        if self.status == TransactionStatus::Idle {
            self.warn("25P01", "there is no transaction in progress");
        }
        self.objects.close_all();
        let stood = std::mem::replace(&mut self.status, TransactionStatus::Idle);
        self.extended.end_portals(is_commit && stood == TransactionStatus::InTransaction);
        self.change_settings(|settings| {
            let isolation = settings.isolation().to_owned();
            settings.end(is_commit && stood == TransactionStatus::InTransaction);
            if is_chained { settings.begin(Some(&isolation)) } else { Ok(()) }
        })?;
        if is_chained {
            self.status = TransactionStatus::InTransaction;
        }
        Ok(stood)
    }

    fn set(&mut self, set: &SetSetting) -> Result<(), StatementError> {
        if set.is_local && self.status == TransactionStatus::Idle {
            let what = match set.name.as_str() {
                "transaction_isolation" => "SET TRANSACTION",
                _ => "SET LOCAL",
            };
            self.warn("25P01", &format!("{what} can only be used in transaction blocks"));
        }
        self.change_settings(|settings| settings.set(set))
    }

    /// Changes settings, and tells the client of those that it is to know.
    pub(super) fn change_settings(
        &mut self,
        change: impl FnOnce(&mut Settings) -> Result<(), StatementError>,
    ) -> Result<(), StatementError> {
        let before: Vec<_> = self.settings.reported().cloned().collect();
        change(&mut self.settings)?;
        for (name, value) in self.settings.reported().filter(|now| !before.contains(now)) {
            self.out.parameter(name, value);
        }
        Ok(())
    }

    fn warn(&mut self, state: &'static str, message: &str) {
        let warning = StatementError::new(SqlState(state), message);
        report(&mut self.out, Severity::Warning, &warning);
    }

    /// A statement whose rows go out as they come.
    async fn query(&mut self, executed: Executed) -> Result<Result<(), StatementError>> {
        let Executed { statement, prepared, values } = executed;
        let (compute, session) = (self.server.compute.clone(), self.session().clone());
        let is_explain = statement.is_explain();
        let formats = Formats::default();
        let work = Work { statement, prepared, values, form: RowForm::Data(formats.clone()) };
        let mut portal = self.portal(Running::start(&compute, session, work));
        loop {
            match self.next(&mut portal).await? {
                Err(error) => return Ok(Err(error)),
                Ok(Delivered::Columns(columns)) => self.describe(&columns, &formats),
                Ok(Delivered::Rows(chunk)) => {
                    self.out.append(&chunk.bytes);
                    self.flush_much().await?;
                }
                Ok(Delivered::End(answer)) => {
                    self.end_of_rows(&answer, is_explain);
                    return Ok(Ok(()));
                }
                Ok(Delivered::Whole(Whole { columns, rows, answer })) => {
                    self.describe(&columns, &formats);
                    self.out.append(&rows.bytes);
                    self.end_of_rows(&answer, is_explain);
                    return Ok(Ok(()));
                }
            }
        }
    }

    fn end_of_rows(&mut self, answer: &Answer, is_explain: bool) {
        self.tell_losses(answer);
        match is_explain {
            true => self.out.complete("EXPLAIN"),
            false => self.out.complete(&format!("SELECT {}", answer.rows)),
        }
    }

    /// `COPY … TO STDOUT`.
    pub(super) async fn copy(&mut self, text: &str) -> Result<Result<(), StatementError>> {
        let session = self.session().clone();
        let (statement, form) = match copy_to_client(session.catalog(), text) {
            Ok(copy) => copy,
            Err(error) => return Ok(Err(error.report())),
        };
        let (statement, values) = (Arc::new(statement.into()), Vec::new());
        let is_binary = form == CopyForm::Binary;
        let work = Work { statement, prepared: None, values, form: RowForm::Copy(form) };
        let compute = self.server.compute.clone();
        let mut portal = self.portal(Running::start(&compute, session, work));
        loop {
            match self.next(&mut portal).await? {
                Err(error) => return Ok(Err(error)),
                Ok(Delivered::Columns(columns)) => self.out.copy_out(columns.len(), is_binary),
                Ok(Delivered::Rows(chunk)) => {
                    self.out.append(&chunk.bytes);
                    self.flush_much().await?;
                }
                Ok(Delivered::End(answer)) => {
                    self.end_of_copy(&answer);
                    return Ok(Ok(()));
                }
                Ok(Delivered::Whole(Whole { columns, rows, answer })) => {
                    self.out.copy_out(columns.len(), is_binary);
                    self.out.append(&rows.bytes);
                    self.end_of_copy(&answer);
                    return Ok(Ok(()));
                }
            }
        }
    }

    fn end_of_copy(&mut self, answer: &Answer) {
        self.tell_losses(answer);
        self.out.empty(b'c');
        self.out.complete(&format!("COPY {}", answer.rows));
    }

    /// Damage that was left out of an answer, and what was taken for granted.
    pub(super) fn tell_losses(&mut self, answer: &Answer) {
        for notice in &answer.notices {
            let notice = StatementError::new(SqlState::SUCCESS, notice.clone());
            report(&mut self.out, Severity::Notice, &notice);
        }
        for loss in &answer.losses {
            let error = StatementError::new(SqlState::DATA_CORRUPTED, loss.clone());
            report(&mut self.out, Severity::Warning, &error);
        }
    }

    /// `RowDescription`.
    pub(super) fn describe(&mut self, columns: &[AnswerColumn], formats: &Formats) {
        let catalog = self.session().catalog().clone();
        let columns = columns.iter().enumerate().map(|(number, column)| ColumnDescription {
            is_binary: formats.is_binary(number),
            ..described(&catalog, column)
        });
        self.out.row_description(columns);
    }
}

/// A column as clients are told of it: of a domain, the type under it.
fn described<'c>(catalog: &Catalog, column: &'c AnswerColumn) -> ColumnDescription<'c> {
    let (type_oid, modifier) = catalog.base_type(column.ty.oid, column.ty.modifier);
    ColumnDescription {
        name: &column.name,
        origin: column.origin.map_or((Oid(0), 0), |origin| (origin.relation, origin.number)),
        type_oid,
        type_length: catalog.type_row(type_oid).map_or(-1, |row| row.length),
        modifier,
        is_binary: false,
    }
}
