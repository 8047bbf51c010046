//! One way to do a piece of work: what takes turns in a group.
//!
//! A contestant does its work once a turn and says how many operations and calls that were. What has to be as it was before
//! each turn is brought about by its `prepare`, outside of the time.
//!
//! Invariant: work does the same in each turn, but for chance; it looks at [`Cancel`] often enough to end within a
//! second or so.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use pagemill_io::{CountersSnapshot, ErrorKind};
use rustix::io::Errno;

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::results::Absence;

/// What a turn did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Work {
    /// Operations done; 1 for work that counts as one.
    pub operations: u64,
    /// Bytes of the work, where turns differ.
    pub bytes: Option<u64>,
    /// Time of the turn, where only a part of it counts; `None` for all of it.
    pub elapsed: Option<Duration>,
    /// Parts of the time, by name.
    pub parts: BTreeMap<String, f64>,
    /// A figure that is counted.
    pub counted: Option<f64>,
    /// Time of one operation, where that is not the time of the turn over the operations.
    pub latency: Option<Duration>,
    /// Calls by name.
    pub calls: BTreeMap<String, u64>,
    /// Time spent waiting, where the contestant knows better than the runner.
    pub wait: Option<Duration>,
    /// Processor time, in user mode and in the kernel, of other processes that did the work and that the runner does not see.
    pub processor: Option<(Duration, Duration)>,
    /// A remark for the cell: what `auto` chose.
    pub note: Option<String>,
}

impl Work {
    /// So many operations.
    pub fn operations(operations: u64) -> Self {
        Self { operations, ..Self::default() }
    }

    /// With calls of one name, if there were any.
    #[must_use]
    pub fn with_calls(mut self, name: &str, count: u64) -> Self {
        if count > 0 {
            *self.calls.entry(name.into()).or_default() += count;
        }
        self
    }

    /// With the calls that a storage counted; `read` is what its reading calls are called.
    #[must_use]
    pub fn with_counted(self, read: &str, counted: &CountersSnapshot) -> Self {
        self.with_calls(read, counted.read_calls)
            .with_calls("lseek", counted.seek_calls)
            .with_calls("io_uring_enter", counted.ring_calls)
            .with_calls("mmap", counted.map_calls)
            .with_calls("fadvise", counted.advice_calls)
            .with_calls("pwrite", counted.write_calls)
            .with_calls("fallocate", counted.extend_calls)
            .with_calls("fdatasync", counted.sync_calls)
    }

    /// With a part of the time.
    #[must_use]
    pub fn with_part(mut self, name: &str, time: Duration) -> Self {
        *self.parts.entry(name.into()).or_default() += time.as_secs_f64();
        self
    }
}

/// What brings files to the state that a turn begins in.
type Prepare<'a> = Box<dyn FnMut() -> Result<()> + 'a>;
/// What does the work.
pub(crate) type Perform<'a> = Box<dyn FnMut(&Cancel) -> Result<Work> + 'a>;

/// Somebody who takes turns.
pub struct Contestant<'a> {
    pub(crate) name: String,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) note: Option<String>,
    /// Other threads do the work, so that nothing is known of what the calling one waits for.
    pub(crate) by_threads: bool,
    pub(crate) prepare: Option<Prepare<'a>>,
    pub(crate) perform: std::result::Result<Perform<'a>, Absence>,
}

impl<'a> Contestant<'a> {
    /// One that does this work.
    pub fn new(name: impl Into<String>, work: impl FnMut(&Cancel) -> Result<Work> + 'a) -> Self {
        Self::with(name.into(), Ok(Box::new(work)))
    }

    /// One that is known not to be able to take part.
    pub fn absent(name: impl Into<String>, absence: Absence) -> Self {
        Self::with(name.into(), Err(absence))
    }

    fn with(name: String, perform: std::result::Result<Perform<'a>, Absence>) -> Self {
        let parameters = BTreeMap::new();
        Self { name, parameters, note: None, by_threads: false, prepare: None, perform }
    }

    /// With a parameter: `method`, `block_size`, `depth`.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: impl ToString) -> Self {
        self.parameters.insert(name.into(), value.to_string());
        self
    }

    /// With a remark.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Brought to the same start before each turn, outside of the time; after the state of the cache if that
    /// concerns the same files.
    #[must_use]
    pub fn prepared(mut self, prepare: impl FnMut() -> Result<()> + 'a) -> Self {
        self.prepare = Some(Box::new(prepare));
        self
    }

    /// Its work is done by threads of its own.
    #[must_use]
    pub fn by_threads(mut self) -> Self {
        self.by_threads = true;
        self
    }
}

impl fmt::Debug for Contestant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contestant").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What an error makes of a cell; `None` for the wish to end the run.
pub fn absence(error: &Error) -> Option<Absence> {
    if matches!(error, Error::Interrupted) {
        return None;
    }
    let why = error.to_string();
    Some(if is_refusal(error) { Absence::Refused(why) } else { Absence::Failed(why) })
}

fn is_refusal(error: &Error) -> bool {
    if let Error::Io(error) = error {
        return match error.kind() {
            ErrorKind::Refused(_) | ErrorKind::Permission => true,
            ErrorKind::Io(error) => is_refused(error),
            _ => false,
        };
    }
    error.io_error().is_some_and(is_refused)
}

/// Errors of a kernel, file system or sandbox that has not got a call, or forbids it.
fn is_refused(error: &std::io::Error) -> bool {
    let refusals =
        [Errno::PERM, Errno::ACCESS, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTTY, Errno::INVAL];
    match error.raw_os_error() {
        Some(number) => refusals.contains(&Errno::from_raw_os_error(number)),
        None => matches!(
            error.kind(),
            std::io::ErrorKind::Unsupported | std::io::ErrorKind::PermissionDenied
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(errno: Errno) -> Option<Absence> {
        absence(&Error::system("a call")(errno.into()))
    }

    #[test]
    fn a_sandbox_refuses_a_device_fails_and_ctrl_c_is_neither() {
        assert!(matches!(of(Errno::NOSYS), Some(Absence::Refused(why)) if why.contains("a call")));
        assert!(matches!(of(Errno::PERM), Some(Absence::Refused(_))));
        assert!(matches!(of(Errno::OPNOTSUPP), Some(Absence::Refused(_))));
        assert!(matches!(of(Errno::IO), Some(Absence::Failed(_))));
        assert_eq!(absence(&Error::Interrupted), None);
    }

    #[test]
    fn calls_that_were_not_made_have_no_row() {
        let counted = CountersSnapshot { read_calls: 3, ..CountersSnapshot::default() };
        let work = Work::operations(1).with_counted("pread", &counted);
        assert_eq!(work.calls.into_iter().collect::<Vec<_>>(), [("pread".to_owned(), 3)]);
    }
}
