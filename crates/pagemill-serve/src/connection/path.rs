//! The database as a session sees it that set its search path.
//!
//! Invariant: a statement is bound by the path that was set before it came.

use std::sync::Arc;

use pagemill_sql::StatementError;
use pagemill_sql::session::Session;

use super::Connection;

/// The database by the search path that was asked for last.
pub(super) struct PathSession {
    /// By the configured path; all clients of the user share it.
    configured: Arc<Session>,
    configured_path: String,
    user: String,
    /// By another path, and that path.
    other: Option<(String, Arc<Session>)>,
}

impl PathSession {
    pub(super) fn new(configured: Arc<Session>, (user, configured_path): (String, String)) -> Self {
        Self { configured, configured_path, user, other: None }
    }

    /// The database by the path that was asked for last.
    pub(super) fn current(&self) -> &Arc<Session> {
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
    /// Reads the catalogs anew where the search path has changed since the last statement.
    pub(super) async fn follow_search_path(&mut self) -> Result<(), StatementError> {
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
