//! Settings that are shown: one, or all.
//!
//! Invariant: what a session has set is shown as the server shows it, and any other setting as `current_setting` tells it.
//!
//! Source: `GetPGVariable` in `src/backend/utils/misc/guc_funcs.c` (`guc.c` until 15), PostgreSQL 14 to 18.

use std::sync::Arc;

use pagemill_sql::session::{AnswerColumn, Session};
use pagemill_sql::types::PgType;
use pagemill_sql::{Error, StatementError};

use super::{Connection, defect};
use crate::command::Command;
use crate::settings::unknown;

impl Connection {
    /// The columns that settings are shown in.
    pub(super) async fn setting_columns(
        &mut self,
        command: &Command,
    ) -> Result<Vec<AnswerColumn>, StatementError> {
        let names = match command {
            Command::Show(name) => vec![self.shown(name).await?.0],
            Command::ShowAll => ["name", "setting", "description"].map(str::to_owned).into(),
            Command::SetConfig(call) => {
                let before = call.shown_before.iter().map(|(_, column)| column);
                before.chain([&call.column]).cloned().collect()
            }
            _ => Vec::new(),
        };
        let ty = PgType::new(pagemill_types::builtin::oid::TEXT);
        Ok(names.into_iter().map(|name| AnswerColumn::computed(name, ty)).collect())
    }

    pub(super) async fn show(&mut self, name: &str) -> Result<(), StatementError> {
        let (_, value) = self.shown(name).await?;
        self.show_values(&[value])
    }

    /// A row to each setting, of which none tells what it is for.
    pub(super) async fn show_all(&mut self) -> Result<(), StatementError> {
        self.follow_settings().await?;
        for (name, value) in self.told(|session| session.shown_settings()).await? {
            self.show_values(&[name, value, String::new()])?;
        }
        Ok(())
    }

    /// A setting's name as it is spelled, and what is shown of it.
    pub(super) async fn shown(&mut self, name: &str) -> Result<(String, String), StatementError> {
        if let Ok((spelled, value)) = self.settings.show(name) {
            return match self.session().setting_shown_as(name, value) {
                Some(shown) => Ok(shown),
                None if name.contains('.') => Ok((spelled.clone(), value.clone())),
                None => Err(unknown(name)),
            };
        }
        let asked = name.to_owned();
        let found = self.told(move |session| session.shown_setting(&asked)).await?;
        found.ok_or_else(|| unknown(name))
    }

    /// What the session tells, found on a thread that may wait for files.
    async fn told<T: Send + 'static>(
        &mut self,
        tell: impl FnOnce(&Arc<Session>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, StatementError> {
        let session = self.session().clone();
        let told = self.server.compute.spawn_blocking(move || tell(&session)).await;
        told.map_err(|_| defect())?.map_err(|error| error.report())
    }

    /// A row with these texts.
    pub(super) fn show_values(&mut self, values: &[String]) -> Result<(), StatementError> {
        self.out.row(values.len(), |at, out| {
            out.extend_from_slice(values[at].as_bytes());
            Ok::<bool, StatementError>(true)
        })
    }
}
