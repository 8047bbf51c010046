//! A statement's rows on their way to the client.
//!
//! Invariant: while rows are waited for, a cancel request, the timeout and the server's end are seen.

use pagemill_sql::StatementError;
use pagemill_sql::session::{Answer, AnswerColumn};
use tokio::time::Instant;

use super::{Connection, SEND_BYTES};
use crate::error::Result;
use crate::running::{Chunk, Event, Running};

/// A statement that runs for a client.
pub(super) struct Portal {
    running: Running,
    deadline: Option<Instant>,
}

/// What came of asking for rows.
pub(super) enum Delivered {
    /// The columns; rows follow.
    Columns(Vec<AnswerColumn>),
    /// Rows.
    Rows(Chunk),
    /// The end.
    End(Answer),
}

impl Connection {
    /// A statement that has just begun; its time runs.
    pub(super) fn portal(&self, running: Running) -> Portal {
        Portal { running, deadline: self.deadline() }
    }

    /// When a statement that begins now has had its time.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.settings.statement_timeout().map(|time| Instant::now() + time)
    }

    /// What a portal gives next.
    pub(super) async fn next(
        &mut self,
        portal: &mut Portal,
    ) -> Result<Result<Delivered, StatementError>> {
        let cancel = portal.running.cancel().clone();
        self.registration.interrupt.begin(&cancel);
        let event = self.unless_ended(portal.running.next(), &cancel, portal.deadline).await;
        self.registration.interrupt.end();
        Ok(match event? {
            Err(error) | Ok(Event::End(Err(error))) => Err(error),
            Ok(Event::Columns(columns)) => Ok(Delivered::Columns(columns)),
            Ok(Event::Rows(chunk)) => Ok(Delivered::Rows(chunk)),
            Ok(Event::End(Ok(answer))) => Ok(Delivered::End(answer)),
        })
    }

    /// Sends what has gathered, if it is much.
    pub(super) async fn flush_much(&mut self) -> Result<()> {
        if self.out.len() >= SEND_BYTES { self.flush().await } else { Ok(()) }
    }
}
