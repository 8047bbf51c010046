//! What a session does, for who looks at the server from outside.
//!
//! Invariant: of a text no more is kept than a screen shows, however long it is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pagemill_sql::session::TlsFacts;

use crate::protocol::TransactionStatus;

/// Bytes of a statement that are kept; `track_activity_query_size` has this value by default.
const MOST_BYTES: usize = 1024;

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// Its client is not let in yet.
    Arriving,
    /// It works on a statement.
    Active,
    /// It waits for its client, in this state of a transaction.
    Waiting(TransactionStatus),
}

impl SessionState {
    /// All there are.
    pub const ALL: [Self; 5] = [
        Self::Arriving,
        Self::Active,
        Self::Waiting(TransactionStatus::Idle),
        Self::Waiting(TransactionStatus::InTransaction),
        Self::Waiting(TransactionStatus::Failed),
    ];

    /// As `pg_stat_activity` calls it, where it has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arriving => "arriving",
            Self::Active => "active",
            Self::Waiting(TransactionStatus::Idle) => "idle",
            Self::Waiting(TransactionStatus::InTransaction) => "idle in transaction",
            Self::Waiting(TransactionStatus::Failed) => "idle in transaction (aborted)",
        }
    }
}

/// Whose a session is.
#[derive(Debug, Clone, Default)]
pub struct Owner {
    /// The role.
    pub user: String,
    /// The database, as its client named it.
    pub database: String,
    /// Where its client is, for TCP.
    pub address: Option<SocketAddr>,
    /// What it agreed on with its client, within TLS.
    pub tls: Option<TlsFacts>,
}

/// A session, as it is seen.
#[derive(Debug, Clone)]
pub struct Activity {
    /// Whose it is.
    pub owner: Owner,
    /// Where it stands.
    pub state: SessionState,
    /// The statement that it works on, or was the last, cut where it is long.
    pub text: Arc<str>,
    /// What its client calls itself.
    pub application: String,
    /// When its client came.
    pub began: Instant,
    /// When its last statement began.
    pub statement_began: Option<Instant>,
    /// When its transaction began, where it is in one.
    pub transaction_began: Option<Instant>,
    /// Since when it is in its state.
    pub since: Instant,
}

impl Default for Activity {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            owner: Owner::default(),
            state: SessionState::Arriving,
            text: "".into(),
            application: String::new(),
            began: now,
            statement_began: None,
            transaction_began: None,
            since: now,
        }
    }
}

impl Activity {
    /// Works on a statement from now on.
    pub fn works_on(&mut self, text: &Arc<str>) {
        let now = Instant::now();
        (self.state, self.since, self.text) = (SessionState::Active, now, text.clone());
        self.statement_began = Some(now);
        self.transaction_began.get_or_insert(now);
    }

    /// Waits for its client from now on.
    pub fn waits(&mut self, status: TransactionStatus) {
        let state = SessionState::Waiting(status);
        if self.state != state {
            (self.state, self.since) = (state, Instant::now());
        }
        if status == TransactionStatus::Idle {
            self.transaction_began = None;
        }
    }

    /// How long it stands there.
    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

/// As much of a text as is kept.
pub fn shown(text: &str) -> Arc<str> {
    match text.len() <= MOST_BYTES {
        true => text.into(),
        false => format!("{}…", &text[..text.floor_char_boundary(MOST_BYTES)]).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(&*shown("select 1"), "select 1");
        let long = shown(&format!("x{}", "é".repeat(2000)));
        assert!(long.len() <= MOST_BYTES + '…'.len_utf8() && long.ends_with("é…"));
    }

    #[test]
    fn a_session_that_still_waits_has_waited_since_it_began_to() {
        let mut activity = Activity::default();
        activity.waits(TransactionStatus::Idle);
        let since = activity.since;
        activity.waits(TransactionStatus::Idle);
        assert_eq!(activity.since, since);
        activity.works_on(&"select 1".into());
        assert_eq!((activity.state.name(), &*activity.text), ("active", "select 1"));
        activity.waits(TransactionStatus::Failed);
        assert_eq!(activity.state.name(), "idle in transaction (aborted)");
        assert_eq!(activity.transaction_began, activity.statement_began);
        activity.works_on(&"rollback".into());
        assert!(activity.transaction_began < activity.statement_began);
        activity.waits(TransactionStatus::Idle);
        assert_eq!(activity.transaction_began, None);
    }
}
