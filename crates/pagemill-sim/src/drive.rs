//! What a drive is to the kernel: something that takes commands and finishes them in its own time and
//! its own order.
//!
//! All times are nanoseconds since the simulation began, all places and lengths bytes.
//!
//! Invariants: a command taken is done exactly once; [`DriveModel::next_done`] never lies before the
//! time that was told last; the same commands at the same times are done at the same times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Debug;
use std::time::Duration;

/// Nanoseconds: since the simulation began, or of a duration.
pub(crate) type Nanos = u64;

/// A second.
pub(crate) const SECOND: Nanos = 1_000_000_000;

/// A read command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) id: u64,
    pub(crate) start: u64,
    pub(crate) len: u64,
}

/// A drive.
pub(crate) trait DriveModel: Debug + Send {
    /// The most commands it takes at once.
    fn depth(&self) -> usize;

    /// Takes a command on.
    fn take(&mut self, command: Command, now: Nanos);

    /// When the next command will be done, if none is taken on before.
    fn next_done(&self) -> Option<Nanos>;

    /// A command that is done by now.
    fn done(&mut self, now: Nanos) -> Option<u64>;
}

/// How long `bytes` take at so many bytes a second.
pub(crate) fn time_for(bytes: u64, rate: u64) -> Nanos {
    let nanos = u128::from(bytes) * u128::from(SECOND) / u128::from(rate.max(1));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

/// How many bytes pass in a time at so many bytes a second.
pub(crate) fn bytes_in(time: Nanos, rate: u64) -> u64 {
    let bytes = u128::from(time) * u128::from(rate) / u128::from(SECOND);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// A duration in nanoseconds; more than 584 years are that much.
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Commands that will be done at a known time.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    entries: BinaryHeap<Reverse<(Nanos, u64)>>,
}

impl Agenda {
    pub(crate) fn add(&mut self, at: Nanos, id: u64) {
        self.entries.push(Reverse((at, id)));
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        self.entries.peek().map(|Reverse((at, _))| *at)
    }

    /// The first one, if it is due.
    pub(crate) fn due(&mut self, now: Nanos) -> Option<u64> {
        self.next().filter(|at| *at <= now)?;
        self.entries.pop().map(|Reverse((_, id))| id)
    }
}
