//! Descriptors, some of them ready, and the calls that tell which.
//!
//! The descriptors are eventfds, since each takes one number of the process's limit and becomes ready by a value alone. What
//! a call costs besides the call, finding the ready ones in what it left, belongs to it, as whoever calls has to do that.
//!
//! ```text
//!           told with each call   left behind
//! select    a bit for each        a bit for each
//! poll      an entry for each     an entry for each
//! epoll     nothing               an entry for each that is ready
//! io_uring  those told of before  an entry for each that is ready
//! ```
//!
//! Invariant: a wait that finds another number of ready descriptors than there are has failed.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use pagemill_sys::{DescriptorSet, RingPoll, select_readable};
use rustix::event::{EventfdFlags, PollFd, PollFlags, epoll, eventfd, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::{Error, Result};
use crate::results::Absence;

/// Descriptors that the process needs for itself.
const OWN: u64 = 128;
/// Descriptors that calls look at between two looks at the clock, about.
const LOOKS: usize = 2000;

/// A way to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitCall {
    Select,
    Poll,
    Epoll,
    IoUring,
}

impl WaitCall {
    pub(crate) const ALL: [Self; 4] = [Self::Select, Self::Poll, Self::Epoll, Self::IoUring];

    fn name(self) -> &'static str {
        match self {
            Self::Select => "select",
            Self::Poll => "poll",
            Self::Epoll => "epoll",
            Self::IoUring => "io_uring",
        }
    }

    fn call(self) -> &'static str {
        match self {
            Self::Select => "select",
            Self::Poll => "poll",
            Self::Epoll => "epoll_wait",
            Self::IoUring => "io_uring_enter",
        }
    }
}

/// The process's limit of open files, raised as far as it goes until this is dropped.
#[derive(Debug)]
pub(crate) struct RaisedLimit(Rlimit);

impl RaisedLimit {
    pub(crate) fn new() -> Self {
        let before = getrlimit(Resource::Nofile);
        // What is refused stays as it is; there are fewer rows then.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before });
        Self(before)
    }
}

impl Drop for RaisedLimit {
    fn drop(&mut self) {
        let _ = setrlimit(Resource::Nofile, self.0);
    }
}

/// Why there cannot be so many descriptors; `None` when there can.
pub(crate) fn too_many(count: usize) -> Option<Absence> {
    let limit = getrlimit(Resource::Nofile).current?;
    let needed = count as u64 + OWN;
    (needed > limit).then(|| {
        let why = format!(
            "{needed} open files are needed and {limit} allowed: raise the hard limit (ulimit -Hn)"
        );
        Absence::Skipped(why)
    })
}

/// Descriptors, so many of them ready.
#[derive(Debug)]
pub(crate) struct Descriptors {
    all: Vec<OwnedFd>,
    ready: usize,
}

impl Descriptors {
    /// The ready ones are spread evenly.
    pub(crate) fn make(count: usize, ready: usize) -> Result<Self> {
        let is_ready = |place: usize| (place + 1) * ready / count > place * ready / count;
        let make = |place| eventfd(u32::from(is_ready(place)), EventfdFlags::CLOEXEC);
        let all: rustix::io::Result<Vec<_>> = (0..count).map(make).collect();
        let all = all.map_err(|error| Error::system("eventfd")(error.into()))?;
        Ok(Self { all, ready })
    }

    /// One who waits for them, for a time, with what can be made ready beforehand made ready once.
    pub(crate) fn waiter(&self, way: WaitCall, time: Duration) -> Contestant<'_> {
        let work = move |cancel: &Cancel| {
            let mut waiting = Waiting::begin(self, way)?;
            let batch = (LOOKS / self.all.len().max(1)).clamp(1, 64);
            // What is told once, such as which descriptors there are, is told.
            waiting.wait()?;
            Repetition { way, time, batch }.run(cancel, || waiting.wait())
        };
        self.described(Contestant::new(way.name(), work), way)
    }

    /// One who makes everything ready, waits once and lets go of it, over and over for a time.
    pub(crate) fn one_time_waiter(&self, way: WaitCall, time: Duration) -> Contestant<'_> {
        let work = move |cancel: &Cancel| {
            let repetition = Repetition { way, time, batch: 1 };
            repetition.run(cancel, || Waiting::begin(self, way)?.wait())
        };
        self.described(Contestant::new(way.name(), work), way)
    }

    fn described<'a>(&self, contestant: Contestant<'a>, way: WaitCall) -> Contestant<'a> {
        contestant
            .parameter("method", way.name())
            .parameter("descriptors", self.all.len())
            .parameter("ready", self.ready)
    }
}

/// Waits over and over.
#[derive(Debug, Clone, Copy)]
struct Repetition {
    /// The call that waits.
    way: WaitCall,
    /// It goes on for at least so long.
    time: Duration,
    /// Waits between two looks at the clock.
    batch: usize,
}

impl Repetition {
    fn run(self, cancel: &Cancel, mut wait: impl FnMut() -> Result<()>) -> Result<Work> {
        let (begin, mut done) = (Instant::now(), 0);
        while begin.elapsed() < self.time {
            cancel.check()?;
            for _ in 0..self.batch {
                wait()?;
            }
            done += self.batch as u64;
        }
        let elapsed = Some(begin.elapsed());
        Ok(Work { elapsed, ..Work::operations(done) }.with_calls(self.way.call(), done))
    }
}

/// Everything that one way needs.
struct Waiting<'d> {
    descriptors: &'d Descriptors,
    means: Means<'d>,
}

enum Means<'d> {
    Select { wanted: DescriptorSet, ready: DescriptorSet },
    Poll(Vec<PollFd<'d>>),
    Epoll { epoll: OwnedFd, events: Vec<MaybeUninit<epoll::Event>> },
    IoUring { ring: Box<RingPoll<'d>>, ready: Vec<usize> },
}

impl<'d> Waiting<'d> {
    fn begin(descriptors: &'d Descriptors, way: WaitCall) -> Result<Self> {
        let all = &descriptors.all;
        let means = match way {
            WaitCall::Select => {
                let mut wanted = DescriptorSet::default();
                all.iter().for_each(|fd| wanted.insert(fd));
                Means::Select { ready: DescriptorSet::default(), wanted }
            }
            WaitCall::Poll => {
                Means::Poll(all.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect())
            }
            WaitCall::Epoll => {
                Self::epoll(all).map_err(|error| Error::system("epoll")(error.into()))?
            }
            WaitCall::IoUring => {
                let files = all.iter().map(OwnedFd::as_fd).collect();
                let ring = RingPoll::new(files).map_err(Error::system("io_uring"))?;
                Means::IoUring { ring: Box::new(ring), ready: Vec::new() }
            }
        };
        Ok(Self { descriptors, means })
    }

    fn epoll(all: &[OwnedFd]) -> rustix::io::Result<Means<'d>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (place, fd) in all.iter().enumerate() {
            let data = epoll::EventData::new_u64(place as u64);
            epoll::add(&epoll, fd, data, epoll::EventFlags::IN)?;
        }
        let events = vec![MaybeUninit::uninit(); all.len().max(1)];
        Ok(Means::Epoll { epoll, events })
    }

    /// Waits once, and finds those that are ready.
    fn wait(&mut self) -> Result<()> {
        let Self { descriptors: Descriptors { all, ready: expected }, means } = self;
        let found = match means {
            Means::Select { wanted, ready } => {
                select_readable(wanted, ready, None).map_err(Error::system("select"))?;
                all.iter().filter(|fd| ready.contains(fd)).count()
            }
            Means::Poll(entries) => {
                poll(entries, None).map_err(|error| Error::system("poll")(error.into()))?;
                entries.iter().filter(|entry| entry.revents().contains(PollFlags::IN)).count()
            }
            Means::Epoll { epoll, events } => {
                let fault = |error: rustix::io::Errno| Error::system("epoll_wait")(error.into());
                let (found, _) = epoll::wait(epoll, events.as_mut_slice(), None).map_err(fault)?;
                found.iter().filter(|event| event.data.u64() < all.len() as u64).count()
            }
            Means::IoUring { ring, ready } => {
                ring.wait(*expected, ready).map_err(Error::system("io_uring_enter"))?;
                ready.iter().filter(|place| **place < all.len()).count()
            }
        };
        if found == *expected {
            return Ok(());
        }
        let what = format!("{found} ready descriptors found, {expected} expected");
        Err(Error::system("waiting")(std::io::Error::other(what)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(error: &Error) -> bool {
        matches!(crate::contestant::absence(error), Some(Absence::Refused(_)))
    }

    #[test]
    fn every_way_finds_those_that_are_ready() {
        for (count, ready) in [(2, 1), (2, 2), (300, 1), (300, 150)] {
            let descriptors = Descriptors::make(count, ready).unwrap();
            for way in WaitCall::ALL {
                let time = Duration::from_millis(2);
                for mut waiter in
                    [descriptors.waiter(way, time), descriptors.one_time_waiter(way, time)]
                {
                    match waiter.perform.as_mut().ok().unwrap()(&Cancel::default()) {
                        Ok(work) => assert_eq!(work.calls[way.call()], work.operations),
                        Err(error) => assert!(is_refused(&error), "{way:?} {count}: {error}"),
                    }
                }
            }
        }
    }

    #[test]
    fn another_number_than_there_are_is_a_failure() {
        let descriptors = Descriptors { ready: 3, ..Descriptors::make(8, 2).unwrap() };
        for way in [WaitCall::Select, WaitCall::Poll, WaitCall::Epoll] {
            let error = Waiting::begin(&descriptors, way).unwrap().wait().unwrap_err();
            assert!(error.to_string().contains("2 ready descriptors found, 3 expected"), "{error}");
        }
    }

    #[test]
    fn more_than_are_allowed_is_said() {
        assert_eq!(too_many(2), None);
        if let Some(limit) = getrlimit(Resource::Nofile).current {
            let why = too_many(usize::try_from(limit).unwrap());
            assert!(matches!(why, Some(Absence::Skipped(why)) if why.contains("ulimit")));
        }
    }
}
