//! One client: let in, then answered until it leaves.
//!
//! ```text
//!   channel.rs (TLS) ── startup.rs ─ authentication.rs
//!                          Connection ──► messages: simple.rs (Query)         ─┬► portal.rs: rows at the client's pace
//!                                         extended.rs (Parse … Sync) ─┘
//! ```
//!
//! Invariant: whatever a statement does, the connection answers a cancel request, its timeout and the server's end at once;
//! what still computes then is left behind.

mod authentication;
mod channel;
mod extended;
mod facts;
mod functions;
mod large_object;
mod portal;
mod showing;
mod simple;
mod startup;
mod view;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pagemill_sql::{SqlState, StatementError};
use tokio::io::{AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::time::Instant;

use crate::activity::shown;
use crate::endpoints::{Arrival, Stream};
use crate::error::{Error, Result};
use crate::protocol::{
    FrontendMessage, MessageReader, ResponseBuffer, Severity, TransactionStatus,
};
use crate::registry::Registration;
use crate::server::Server;
use crate::settings::Settings;
use channel::Channel;
use extended::Extended;
use functions::OpenObjects;
use startup::Entered;
use view::ViewedSession;

/// How long a client may be gone unnoticed while something runs for it.
const UNWATCHED: Duration = Duration::from_millis(5);
/// Bytes that are gathered before they are sent.
const SEND_BYTES: usize = 64 << 10;

type Reader = MessageReader<ReadHalf<Box<dyn Stream>>>;

/// A client that was let in.
struct Connection {
    server: Arc<Server>,
    viewed: ViewedSession,
    registration: Registration,
    settings: Settings,
    status: TransactionStatus,
    reader: Reader,
    writer: WriteHalf<Box<dyn Stream>>,
    out: ResponseBuffer,
    extended: Extended,
    objects: OpenObjects,
}

/// Answers a client until it leaves. Whatever ends it concerns nobody else.
pub(crate) async fn serve(server: Arc<Server>, arrival: Arrival) {
    // Clients of TCP that are not let in are kept from taking all descriptors.
    let place = match arrival {
        Arrival::Socket(_) => None,
        Arrival::Tcp(..) => match server.arriving.clone().try_acquire_owned() {
            Ok(place) => Some(place),
            Err(_) => return,
        },
    };
    let ended = server.clone();
    let entered = tokio::select! {
        () = ended.ended() => return,
        entered = enter(&server, arrival) => entered,
    };
    drop(place);
    let Some((channel, entered)) = entered else { return };
    let mut connection = entered.connection(server, channel);
    if let Err(error) = connection.answer().await {
        let server = connection.server.clone();
        channel::tell_fatal(&server, &mut connection.writer, &error).await;
    }
}

/// Lets a client in; `None` for one that wanted something else, was refused, or left.
async fn enter(server: &Arc<Server>, arrival: Arrival) -> Option<(Channel, Entered)> {
    let (mut channel, startup) = channel::first(server, arrival).await?;
    match startup::enter(server, &mut channel, &startup).await {
        Ok(entered) => Some((channel, entered)),
        Err(error) => channel.refuse(server, error).await,
    }
}

/// Writes an error as a message.
fn report(out: &mut ResponseBuffer, severity: Severity, error: &StatementError) {
    let state = Some(error.state.0);
    let character = error.character.map(|character| character.to_string());
    let (message, detail) = (Some(&*error.message), error.detail.as_deref());
    let hint = error.hint.as_deref();
    out.report(
        severity,
        &[
            (b'C', state),
            (b'M', message),
            (b'D', detail),
            (b'H', hint),
            (b'P', character.as_deref()),
        ],
    );
}

impl Connection {
    async fn answer(&mut self) -> Result<()> {
        self.flush().await?;
        loop {
            let server = self.server.clone();
            let status = self.status;
            self.registration.act(|activity| activity.waits(status));
            let message = tokio::select! {
                () = server.ended() => return Err(ended().into()),
                message = self.reader.message() => message?,
            };
            match message {
                None | Some(FrontendMessage::Terminate) => return Ok(()),
                Some(message) => self.message(message).await?,
            }
            // More messages of a run are answered first: its client waits for the last of them.
            if self.reader.is_empty() {
                self.flush().await?;
            }
        }
    }

    async fn message(&mut self, message: FrontendMessage) -> Result<()> {
        match message {
            FrontendMessage::Sync => {
                self.synchronize();
                self.flush().await
            }
            FrontendMessage::Query(text) => {
                self.extended.is_skipping = false;
                self.works_on(&shown(&text));
                self.simple(&text).await?;
                self.flush().await
            }
            // The rows that it would load are of a statement that was refused.
            FrontendMessage::CopyIn => Ok(()),
            FrontendMessage::Password(_) => Err(Error::protocol("unexpected password message")),
            FrontendMessage::Flush => self.flush().await,
            FrontendMessage::FunctionCall(call) if !self.extended.is_skipping => {
                self.function_call(&call).await
            }
            other => self.extended(other).await,
        }
    }

    /// Sends what there is.
    async fn flush(&mut self) -> Result<()> {
        if !self.out.is_empty() {
            let bytes = self.out.take();
            self.server.metrics.sent_bytes.add(bytes.len() as u64);
            self.writer.write_all(&bytes).await?;
            // Within TLS, bytes that the system did not take would wait for more of them.
            self.writer.flush().await?;
        }
        Ok(())
    }

    /// This is what the session does now, for who looks at the server.
    fn works_on(&self, text: &Arc<str>) {
        let application = self.settings.application();
        self.registration.act(|activity| {
            activity.works_on(text);
            if activity.application != application {
                application.clone_into(&mut activity.application);
            }
        });
    }

    /// Tells an error, which ends a transaction that is under way.
    fn fail(&mut self, error: &StatementError) {
        self.server.metrics.error(error);
        report(&mut self.out, Severity::Error, error);
        if self.status == TransactionStatus::InTransaction {
            self.status = TransactionStatus::Failed;
        }
    }

    /// Waits for something that runs elsewhere, and no longer than until it is to end.
    async fn unless_ended<T>(
        &mut self,
        work: impl Future<Output = T>,
        cancel: &pagemill_engine::Progress,
        deadline: Option<Instant>,
    ) -> Result<Result<T, StatementError>> {
        let (server, interrupt) = (self.server.clone(), self.registration.interrupt.clone());
        let timeout = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let canceled = |why: &str| {
            let message = format!("canceling statement due to {why}");
            Ok(Err(StatementError::new(SqlState::QUERY_CANCELED, message)))
        };
        // Most are done before a client can go: to look at the socket each time would cost a call.
        let gone = async {
            tokio::time::sleep(UNWATCHED).await;
            self.reader.gone().await
        };
        tokio::select! {
            biased;
            () = server.ended() => Err(ended().into()),
            () = interrupt.called(cancel) => canceled("user request"),
            () = timeout => canceled("statement timeout"),
            gone = gone => Err(gone),
            done = work => Ok(Ok(done)),
        }
    }
}

/// What a statement is told behind an error in its transaction.
fn aborted() -> StatementError {
    let message = "current transaction is aborted, commands ignored until end of transaction block";
    StatementError::new(SqlState("25P02"), message)
}

/// What a client is told when its statement panicked.
fn defect() -> StatementError {
    let message = "a statement ended in a defect of pagemill, please report it";
    StatementError::new(SqlState("XX000"), message)
}

/// What clients are told when the server ends.
fn ended() -> StatementError {
    let message = "terminating connection due to administrator command";
    StatementError::new(SqlState("57P01"), message)
}
