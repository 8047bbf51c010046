//! Portals that run: as many rows as are wanted, and how they ended.
//!
//! Invariant: rows that came and are not wanted yet are kept, and come first when more are wanted.

use super::{Begun, Bound, Executed, State, Told, unknown_portal};
use crate::command::Command;
use crate::connection::Connection;
use crate::connection::portal::Delivered;
use crate::error::Result;
use crate::protocol::Execute;
use crate::running::{Chunk, RowForm, Running, Work};

/// What becomes of rows that come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    /// The client gets them.
    Sent,
    /// Nobody does.
    LeftOut,
    /// Their cursor, which may go back.
    Kept,
}

/// Rows that were sent.
pub(super) struct Sent {
    pub(super) rows: usize,
    /// True where there are no more.
    is_end: bool,
}

impl Connection {
    pub(super) async fn execute(&mut self, execute: &Execute) -> Result<Told<()>> {
        let Some(mut bound) = self.extended.portals.remove(&execute.portal) else {
            return Ok(Err(unknown_portal(&execute.portal)));
        };
        self.works_on(&bound.statement.text);
        if let Err(error) = self.follow_settings().await {
            return Ok(Err(error));
        }
        let done = match bound.statement.command.clone() {
            None => {
                self.out.empty(b'I');
                Ok(())
            }
            Some(command) => match (self.admit(&command), command) {
                (Err(error), _) => Err(error),
                (Ok(()), Command::Query(statement)) => {
                    let executed = bound.executed(statement);
                    self.execute_query(&mut bound, executed, execute.most_rows).await?
                }
                (Ok(()), Command::Execute { name, values }) => match self.executed(&name, values) {
                    Ok(executed) => {
                        self.execute_query(&mut bound, executed, execute.most_rows).await?
                    }
                    Err(error) => Err(error),
                },
                (Ok(()), Command::Prepare { name, types, query }) => {
                    self.prepare(name, &types, query).await?
                }
                (Ok(()), Command::SetConfig(call)) => self.set_config(&call, &bound.values).await,
                (Ok(()), Command::Copy(text)) => self.copy(&text).await?,
                (Ok(()), Command::Declare { name, query, options }) => {
                    self.declare(name, query, options, &bound.values).await?
                }
                (Ok(()), Command::Fetch(fetch)) => {
                    let formats = bound.formats.clone();
                    self.fetch(&fetch, formats).await?
                }
                (Ok(()), other) => self.control(other).await,
            },
        };
        if done.is_ok() {
            self.extended.portals.insert(execute.portal.clone(), bound);
        }
        Ok(done)
    }

    /// Rows of a portal, as many as are wanted, and how they ended.
    async fn execute_query(
        &mut self,
        bound: &mut Bound,
        executed: Executed,
        most: u32,
    ) -> Result<Told<()>> {
        let most = if most > 0 { most as usize } else { usize::MAX };
        let is_explain = executed.statement.is_explain();
        let sent = match self.rows(bound, executed, most, Sending::Sent).await? {
            Ok(sent) => sent,
            Err(error) => return Ok(Err(error)),
        };
        match sent.is_end {
            false => self.out.empty(b's'),
            true if is_explain => self.out.complete("EXPLAIN"),
            true => self.out.complete(&format!("SELECT {}", sent.rows)),
        }
        Ok(Ok(()))
    }

    /// Rows of a portal, as many as are wanted.
    pub(super) async fn rows(
        &mut self,
        bound: &mut Bound,
        executed: Executed,
        most: usize,
        sending: Sending,
    ) -> Result<Told<Sent>> {
        if let State::Ready = bound.state {
            let Executed { statement, prepared, values } = executed;
            let form = RowForm::Data(bound.formats.clone());
            let work = Work { statement, prepared, values, form };
            let running = Running::start(&self.server.compute, self.session().clone(), work);
            let begun = Begun { portal: self.portal(running), left: None, answer: None };
            bound.state = State::Running(Box::new(begun));
        }
        let deadline = self.deadline();
        let State::Running(begun) = &mut bound.state else {
            return Ok(Ok(Sent { rows: 0, is_end: true }));
        };
        // Each time that rows are asked for is a statement.
        begun.portal.begin_time(deadline);
        let mut sent = 0;
        loop {
            let wanted = most - sent;
            if let Some((chunk, from)) = begun.left.take() {
                let until = chunk.ends.len().min(from.saturating_add(wanted));
                match (sending, &mut bound.cursor) {
                    (Sending::Sent, _) => self.append_rows(&chunk, from..until),
                    (Sending::LeftOut, _) => {}
                    (Sending::Kept, Some(cursor)) => match cursor.keep(&chunk, from..until) {
                        Ok(()) => {}
                        Err(error) => return Ok(Err(error)),
                    },
                    (Sending::Kept, None) => unreachable!("rows are kept by cursors"),
                }
                sent += until - from;
                if until < chunk.ends.len() {
                    begun.left = Some((chunk, until));
                }
                self.flush_much().await?;
            }
            if sent == most {
                return Ok(self
                    .still_unchanged()
                    .await
                    .map(|()| Sent { rows: sent, is_end: false }));
            }
            if let Some(answer) = begun.answer.take() {
                self.tell_losses(&answer);
                bound.state = State::Done;
                return Ok(Ok(Sent { rows: sent, is_end: true }));
            }
            match self.next(&mut begun.portal).await? {
                Err(error) => return Ok(Err(error)),
                // They were told by what was prepared.
                Ok(Delivered::Columns(_)) => {}
                Ok(Delivered::Rows(chunk)) => begun.left = Some((chunk, 0)),
                Ok(Delivered::End(answer)) => begun.answer = Some(answer),
                Ok(Delivered::Whole(whole)) => {
                    begun.left = Some((whole.rows, 0));
                    begun.answer = Some(whole.answer);
                }
            }
        }
    }

    pub(super) fn append_rows(&mut self, chunk: &Chunk, rows: std::ops::Range<usize>) {
        self.out.append(chunk.rows(rows));
    }
}
