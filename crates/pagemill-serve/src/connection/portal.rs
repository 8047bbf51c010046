//! A statement's rows on their way to the client.
//!
//! Invariant: while rows are waited for, a cancel request, the timeout and the server's end are seen.

use std::sync::Arc;

use pagemill_engine::Progress;
use pagemill_sql::StatementError;
use pagemill_sql::session::{Answer, AnswerColumn};
use tokio::time::Instant;

use super::{Connection, SEND_BYTES};
use crate::error::Result;
use crate::metrics::{Metrics, StatementEnd};
use crate::running::{Chunk, Event, Running, Whole};
use crate::served_cluster::check_unchanged;

/// A statement that runs for a client.
pub(super) struct Portal {
    running: Running,
    deadline: Option<Instant>,
    counted: Counted,
}

impl Portal {
    /// From now on it has this time.
    pub(super) fn begin_time(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }
}

/// A statement among those that are counted.
struct Counted {
    metrics: Arc<Metrics>,
    progress: Progress,
    /// Whether it is known how it ended.
    has_ended: bool,
}

impl Counted {
    fn begin(metrics: &Arc<Metrics>, progress: &Progress) -> Self {
        metrics.statements.add(1);
        Self { metrics: metrics.clone(), progress: progress.clone(), has_ended: false }
    }

    fn end(&mut self, outcome: StatementEnd) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.metrics.end(outcome, self.progress.pages());
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.end(StatementEnd::Left);
    }
}

/// What came of asking for rows.
pub(super) enum Delivered {
    /// The columns; rows follow.
    Columns(Arc<[AnswerColumn]>),
    /// Rows.
    Rows(Chunk),
    /// The end.
    End(Answer),
    /// All of it; nothing follows.
    Whole(Whole),
}

impl Connection {
    /// A statement that has just begun; its time runs.
    pub(super) fn portal(&self, running: Running) -> Portal {
        let counted = Counted::begin(&self.server.metrics, running.cancel());
        Portal { running, deadline: self.deadline(), counted }
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
            Err(error) | Ok(Event::End(Err(error))) => {
                portal.counted.end(StatementEnd::Failed);
                Err(error)
            }
            Ok(Event::Columns(columns)) => Ok(Delivered::Columns(columns)),
            Ok(Event::Rows(chunk)) => {
                self.server.metrics.rows.add(chunk.ends.len() as u64);
                Ok(Delivered::Rows(chunk))
            }
            Ok(Event::End(Ok(answer))) => {
                portal.counted.end(StatementEnd::Done);
                self.server.metrics.damage.add(answer.losses.len() as u64);
                Ok(Delivered::End(answer))
            }
            Ok(Event::Whole(whole)) => {
                self.server.metrics.rows.add(whole.rows.ends.len() as u64);
                portal.counted.end(StatementEnd::Done);
                self.server.metrics.damage.add(whole.answer.losses.len() as u64);
                Ok(Delivered::Whole(whole))
            }
        })
    }

    /// Whether rows that were given so far are of the files that were opened: of those that are not the end is never asked for.
    pub(super) async fn still_unchanged(&mut self) -> Result<(), StatementError> {
        let session = self.session().clone();
        let checked = self.server.compute.spawn_blocking(move || check_unchanged(&session)).await;
        checked.unwrap_or_else(|_| Err(super::defect()))
    }

    /// Sends what has gathered, if it is much.
    pub(super) async fn flush_much(&mut self) -> Result<()> {
        if self.out.len() >= SEND_BYTES { self.flush().await } else { Ok(()) }
    }
}
