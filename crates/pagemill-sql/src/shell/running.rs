//! Work that Ctrl-C can end: it is done on a thread of its own, which is left behind should it not end in time.
//!
//! ```text
//!   shell's thread: waits, looks at the key ──cancel──► the work's thread: scans end at the next page,
//!                                                      a Gate takes no more bytes
//! ```
//!
//! Invariant: whatever happens in the work, the shell goes on within [`GRACE`] of the key.

use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use pagemill_engine::Progress;

use crate::error::{Error, Result, SqlState, StatementError};
use crate::nested::PLANNING_STACK;

/// How often the key is looked at.
const GLANCE: Duration = Duration::from_millis(20);
/// How long work may take to notice that it is to end.
const GRACE: Duration = Duration::from_millis(200);

/// A stream that is closed once the work is cancelled: what is left behind writes nothing more.
pub(super) struct Gate<W> {
    pub(super) inner: W,
    pub(super) cancel: Progress,
}

impl<W: Write> Write for Gate<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.cancel.is_cancelled() {
            // Not `Interrupted`: that would be tried again.
            true => Err(io::Error::other("the statement was cancelled")),
            false => self.inner.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.cancel.is_cancelled() { Ok(()) } else { self.inner.flush() }
    }
}

/// What PostgreSQL says of a statement that was cancelled.
pub(super) fn cancelled() -> Error {
    let message = "canceling statement due to user request";
    StatementError::new(SqlState::QUERY_CANCELED, message).into()
}

/// Does work on a thread of its own until it is done, or the key is pressed.
///
/// # Errors
/// What the work returns; that it was cancelled.
pub(super) fn interruptible<T: Send + 'static>(
    work: impl FnOnce(&Progress) -> Result<T> + Send + 'static,
) -> Result<T> {
    // A key that was pressed before meant something else.
    pagemill_io::take_interrupt_key();
    let cancel = Progress::default();
    let (sender, receiver) = sync_channel(1);
    let seen = cancel.clone();
    let named = std::thread::Builder::new().name("statement".to_owned());
    named.stack_size(PLANNING_STACK).spawn(move || {
        // The shell may have gone on without it.
        let _ = sender.send(work(&seen));
    })?;
    let mut deadline: Option<Instant> = None;
    loop {
        match receiver.recv_timeout(GLANCE) {
            // Work that failed by itself has ended its scans, too.
            Ok(_) if deadline.is_some() => return Err(cancelled()),
            Ok(done) => return done,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("the thread of the statement ended early").into());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if pagemill_io::take_interrupt_key() {
            cancel.cancel();
            deadline.get_or_insert(Instant::now() + GRACE);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(cancelled());
        }
    }
}
