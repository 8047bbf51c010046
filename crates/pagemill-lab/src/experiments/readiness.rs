//! `readiness`: select, poll, epoll and io_uring (pgsql-performance, 2003).
//!
//! The message says that kqueue beats select and poll five times on few descriptors and more on many, and is answered that
//! PostgreSQL never waits for many. Linux has no kqueue; what came in its stead are epoll and, later, io_uring. Here with 2
//! to 10,000 descriptors, of which one or half are ready, and with everything made ready for a single wait, as it is where a
//! wait is not part of a loop.

use std::time::Duration;

use crate::contestant::Contestant;
use crate::error::Result;
use crate::experiments::waits::{Descriptors, RaisedLimit, WaitCall, too_many};
use crate::experiments::{Plan, Session};
use crate::results::{Absence, Figure};
use crate::runner::GroupPlan;

/// The experiment.
pub const PLAN: Plan = Plan {
    name: "readiness",
    title: "Which descriptors are ready: select, poll, epoll, io_uring",
    question: "How long does it take to learn which of 2 to 10,000 descriptors can be read, when few of them can and when \
               many can? And when everything is made ready for one wait only?",
    bytes_needed: |_| 0,
    share: 8,
    run,
};

fn run(session: &mut Session<'_>) -> Result<()> {
    let quick = session.scale().quick;
    let counts: &[usize] = if quick { &[2, 100, 10_000] } else { &[2, 10, 100, 1000, 10_000] };
    let _limit = RaisedLimit::new();
    let percent = if quick { 12 } else { 8 };
    for count in counts {
        for (word, ready) in [("few", 1), ("many", count.div_ceil(2))] {
            let name = format!("{count}-{word}-ready");
            let title = format!("Which of {count} descriptors can be read: {ready}");
            let descriptors = DescriptorCount { count: *count, ready };
            group(session, GroupPlan::new(name, title), descriptors, percent, Descriptors::waiter)?;
        }
    }
    for count in [2, 100] {
        let name = format!("{count}-one-wait");
        let title =
            format!("Which of {count} descriptors can be read: everything made ready for one wait");
        let descriptors = DescriptorCount { count, ready: 1 };
        group(
            session,
            GroupPlan::new(name, title),
            descriptors,
            percent,
            Descriptors::one_time_waiter,
        )?;
    }
    Ok(())
}

/// How a contestant comes out of the descriptors.
type Waiter = for<'d> fn(&'d Descriptors, WaitCall, Duration) -> Contestant<'d>;

/// Descriptors that are waited for.
#[derive(Debug, Clone, Copy)]
struct DescriptorCount {
    count: usize,
    /// How many of them are ready.
    ready: usize,
}

fn group(
    session: &mut Session<'_>,
    plan: GroupPlan<'_>,
    descriptors: DescriptorCount,
    percent: u32,
    waiter: Waiter,
) -> Result<()> {
    let DescriptorCount { count, ready } = descriptors;
    let plan = plan.figure(Figure::Latency).baseline("poll");
    let kqueue = Absence::Skipped("kqueue does not exist on Linux".into());
    let kqueue = || Contestant::absent("kqueue", kqueue.clone()).parameter("method", "kqueue");
    if let Some(absence) = too_many(count) {
        let absent = |name: &str| Contestant::absent(name, absence.clone());
        let cells = ["select", "poll", "epoll", "io_uring"].map(absent);
        return session.group(plan.contestants(cells).contestant(kqueue()), percent);
    }
    let time = session.turn_time(percent, WaitCall::ALL.len());
    let descriptors = Descriptors::make(count, ready)?;
    let waiters = WaitCall::ALL.map(|way| waiter(&descriptors, way, time));
    session.group(plan.contestants(waiters).contestant(kqueue()), percent)
}
