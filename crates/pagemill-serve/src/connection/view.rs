//! The database as a session sees it that set its user, role, search path, time zone, styles, `row_security`, or settings that
//! statements ask for.
//!
//! Invariant: a statement is bound by what was set before it came.
//!
//! Source: `check_timezone`, `check_session_authorization` and `check_role` in `src/backend/commands/variable.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use pagemill_sql::session::{Client, ServerFacts, Session, StyleSettings};
use pagemill_sql::{SqlState, StatementError};

use super::Connection;
use crate::command::SetSetting;
use crate::served_cluster::check_unchanged;
use crate::settings::Settings;

/// What the catalogs are read by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionView {
    /// Whose it is.
    pub(super) user: String,
    /// Whose rights it has instead of its user's own.
    pub(super) role: Option<String>,
    pub(super) search_path: String,
    pub(super) time_zone: String,
    /// How values are printed.
    pub(super) styles: StyleSettings,
}

impl SessionView {
    fn of(settings: &Settings) -> Self {
        Self {
            user: settings.session_user().to_owned(),
            role: settings.role().map(str::to_owned),
            search_path: settings.search_path().to_owned(),
            time_zone: settings.time_zone().to_owned(),
            styles: settings.styles(),
        }
    }
}

/// The database by the user, role, path, zone and styles that were asked for last.
pub(super) struct ViewedSession {
    /// As it is configured; all clients of the user share it.
    configured: Arc<Session>,
    configured_view: SessionView,
    /// By another view, and that view.
    other: Option<(SessionView, Arc<Session>)>,
    /// The one of both that counts, where policies that would leave out rows are to be errors.
    strict: Option<Arc<Session>>,
    /// That with what its client set, and in its server.
    own: Option<Own>,
    facts: Arc<ServerFacts>,
}

/// A session with the settings that there were after so many changes.
struct Own {
    of: Arc<Session>,
    changes: u64,
    session: Arc<Session>,
}

impl ViewedSession {
    pub(super) fn new(
        configured: Arc<Session>,
        configured_view: SessionView,
        facts: Arc<ServerFacts>,
    ) -> Self {
        Self { configured, configured_view, other: None, strict: None, own: None, facts }
    }

    /// The database by the view that was asked for last.
    pub(super) fn current(&self) -> &Arc<Session> {
        self.own.as_ref().map_or_else(|| self.without_settings(), |own| &own.session)
    }

    fn without_settings(&self) -> &Arc<Session> {
        self.strict.as_ref().unwrap_or_else(|| self.viewed())
    }

    /// Follows what the client set.
    fn follow(&mut self, settings: &Settings) {
        let (of, changes) = (self.without_settings().clone(), settings.changes());
        let is_it = |own: &Own| own.changes == changes && Arc::ptr_eq(&own.of, &of);
        if !self.own.as_ref().is_some_and(is_it) {
            let session = of.with_settings(settings.asked_for());
            let session = Arc::new(session.in_server(self.facts.clone()));
            self.own = Some(Own { of, changes, session });
        }
    }

    fn viewed(&self) -> &Arc<Session> {
        self.other.as_ref().map_or(&self.configured, |(_, session)| session)
    }

    fn view(&self) -> &SessionView {
        self.other.as_ref().map_or(&self.configured_view, |(view, _)| view)
    }
}

/// A value that is to be set, as the server spells it where catalogs are read by it. Looks into files.
///
/// # Errors
/// When there is no such zone or role, or the user may not become it. Another user is one for the session that a client
/// began with.
pub(super) fn followed(session: &Session, set: SetSetting) -> Result<SetSetting, StatementError> {
    let Some(value) = set.value.as_deref() else { return Ok(set) };
    let invalid = |name: &str| {
        let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
        StatementError::new(SqlState::INVALID_PARAMETER, message)
    };
    match set.name.to_lowercase().as_str() {
        "timezone" => {
            let zone = session.catalog().database().time_zone_of_setting(value);
            let spelled = zone.ok_or_else(|| invalid("TimeZone"))?.name;
            Ok(SetSetting { value: Some(spelled), ..set })
        }
        "role" if value != "none" => {
            if session.may_become(value).map_err(|error| error.report())? {
                return Ok(set);
            }
            let message = format!("permission denied to set role \"{value}\"");
            Err(StatementError::new(SqlState("42501"), message))
        }
        "session_authorization" => {
            if session.may_be(value).map_err(|error| error.report())? {
                return Ok(set);
            }
            let message = format!("permission denied to set session authorization \"{value}\"");
            Err(StatementError::new(SqlState("42501"), message))
        }
        _ => Ok(set),
    }
}

fn is_user(set: &SetSetting) -> bool {
    set.name.eq_ignore_ascii_case("session_authorization")
}

impl Connection {
    /// Reads the catalogs anew where user, role, search path, time zone or styles have changed since the last statement, and follows `row_security`.
    pub(super) async fn follow_settings(&mut self) -> Result<(), StatementError> {
        let before = self.viewed.viewed().clone();
        self.follow_view().await?;
        let session = &mut self.viewed;
        if self.settings.row_security() || !Arc::ptr_eq(session.viewed(), &before) {
            session.strict = None;
        }
        if !self.settings.row_security() && session.strict.is_none() {
            session.strict = Some(Arc::new(session.viewed().without_row_security()));
        }
        session.follow(&self.settings);
        Ok(())
    }

    async fn follow_view(&mut self) -> Result<(), StatementError> {
        let wanted = SessionView::of(&self.settings);
        if wanted == *self.viewed.view() {
            return Ok(());
        }
        if wanted == self.viewed.configured_view {
            self.viewed.other = None;
            return Ok(());
        }
        let (configured, view) = (self.viewed.configured.clone(), wanted.clone());
        let client = Client {
            user: wanted.user,
            role: wanted.role,
            search_path: Some(wanted.search_path),
            time_zone: Some(wanted.time_zone),
            styles: Some(wanted.styles),
        };
        let opening = self.server.compute.spawn_blocking(move || {
            let session = configured.for_client(client);
            check_unchanged(&configured)?;
            let session = session.map_err(|error| error.report())?;
            Ok::<_, StatementError>((view, Arc::new(session)))
        });
        let opened = opening.await.unwrap_or_else(|_| Err(super::defect()));
        self.viewed.other = Some(opened?);
        Ok(())
    }

    /// `is_superuser` follows the user and its role, and clients are told.
    pub(super) async fn follow_role(&mut self, set: &SetSetting) -> Result<(), StatementError> {
        if !set.name.eq_ignore_ascii_case("role") && !is_user(set) {
            return Ok(());
        }
        self.follow_settings().await?;
        let is_superuser = self.session().is_superuser();
        self.change_settings(|settings| {
            settings.note_superuser(is_superuser, set.is_local);
            Ok(())
        })
    }

    /// A value that is to be set, as [`followed`] spells it, found on a thread that may wait for files.
    pub(super) async fn followed(&mut self, set: SetSetting) -> Result<SetSetting, StatementError> {
        // Whoever the session was given to, who connected decides.
        let session = if is_user(&set) { &self.viewed.configured } else { self.session() };
        let session = session.clone();
        let found = self.server.compute.spawn_blocking(move || followed(&session, set)).await;
        found.unwrap_or_else(|_| Err(super::defect()))
    }

    /// The database as statements see it now.
    pub(super) fn session(&self) -> &Arc<Session> {
        self.viewed.current()
    }
}
