//! The database as a session sees it that set its search path, `row_security`, or settings that statements ask for.
//!
//! Invariant: a statement is bound by the path that was set before it came.

use std::sync::Arc;

use pagemill_sql::StatementError;
use pagemill_sql::session::Session;

use super::Connection;
use crate::served_cluster::check_unchanged;
use crate::settings::Settings;

/// The database by the search path that was asked for last.
pub(super) struct PathSession {
    /// By the configured path; all clients of the user share it.
    configured: Arc<Session>,
    configured_path: String,
    user: String,
    /// By another path, and that path.
    other: Option<(String, Arc<Session>)>,
    /// The one of both that counts, where policies that would leave out rows are to be errors.
    strict: Option<Arc<Session>>,
    /// That with what its client set.
    own: Option<Own>,
}

/// A session with the settings that there were after so many changes.
struct Own {
    of: Arc<Session>,
    changes: u64,
    session: Arc<Session>,
}

impl PathSession {
    pub(super) fn new(configured: Arc<Session>, (user, configured_path): (String, String)) -> Self {
        Self { configured, configured_path, user, other: None, strict: None, own: None }
    }

    /// The database by the path that was asked for last.
    pub(super) fn current(&self) -> &Arc<Session> {
        self.own.as_ref().map_or_else(|| self.without_settings(), |own| &own.session)
    }

    fn without_settings(&self) -> &Arc<Session> {
        self.strict.as_ref().unwrap_or_else(|| self.by_path())
    }

    /// Follows what the client set.
    fn follow(&mut self, settings: &Settings) {
        let (of, changes) = (self.without_settings().clone(), settings.changes());
        let is_it = |own: &Own| own.changes == changes && Arc::ptr_eq(&own.of, &of);
        if !self.own.as_ref().is_some_and(is_it) {
            let session = Arc::new(of.with_settings(settings.asked_for()));
            self.own = Some(Own { of, changes, session });
        }
    }

    fn by_path(&self) -> &Arc<Session> {
        self.other.as_ref().map_or(&self.configured, |(_, session)| session)
    }

    fn has(&self, path: &str) -> bool {
        match &self.other {
            Some((other, _)) => other == path,
            None => self.configured_path == path,
        }
    }
}

impl Connection {
    /// Reads the catalogs anew where the search path has changed since the last statement, and follows `row_security`.
    pub(super) async fn follow_search_path(&mut self) -> Result<(), StatementError> {
        let before = self.path_session.by_path().clone();
        self.follow_path().await?;
        let session = &mut self.path_session;
        if self.settings.row_security() || !Arc::ptr_eq(session.by_path(), &before) {
            session.strict = None;
        }
        if !self.settings.row_security() && session.strict.is_none() {
            session.strict = Some(Arc::new(session.by_path().without_row_security()));
        }
        session.follow(&self.settings);
        Ok(())
    }

    async fn follow_path(&mut self) -> Result<(), StatementError> {
        let wanted = self.settings.search_path();
        if self.path_session.has(wanted) {
            return Ok(());
        }
        if wanted == self.path_session.configured_path {
            self.path_session.other = None;
            return Ok(());
        }
        let (path, configured) = (wanted.to_owned(), self.path_session.configured.clone());
        let user = self.path_session.user.clone();
        let opening = self.server.compute.spawn_blocking(move || {
            let session = configured.for_client(&user, Some(&path));
            check_unchanged(&configured)?;
            let session = session.map_err(|error| error.report())?;
            Ok::<_, StatementError>((path, Arc::new(session)))
        });
        let opened = opening.await.unwrap_or_else(|_| Err(super::defect()));
        self.path_session.other = Some(opened?);
        Ok(())
    }

    /// The database as statements see it now.
    pub(super) fn session(&self) -> &Arc<Session> {
        self.path_session.current()
    }
}
