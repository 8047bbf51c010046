//! A client session that stays open, so that transactions of several sessions overlap.
//!
//! Must hold: when [`Session::run`] returns, the statements are done and their locks are held.

use anyhow::Result;
use pagemill_server::never;

use crate::server::TestCluster;

/// One open connection.
#[derive(Debug)]
pub struct Session(pagemill_server::Session);

impl Session {
    /// Connects to `db`.
    pub fn open(cluster: &TestCluster, db: &str) -> Result<Session> {
        Ok(Session(cluster.server().session(db)?))
    }

    /// Runs SQL, waits for its end and returns what it printed.
    pub fn run(&mut self, sql: &str) -> Result<String> {
        Ok(self.0.ask(sql, &never)?.text.trim_end().to_owned())
    }
}
