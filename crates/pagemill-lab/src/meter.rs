//! What a turn took: elapsed time, processor time, waiting, bytes of the device, others' work; and the time line of it.
//!
//! Read before a turn and after it, so nothing is measured while it runs but what [`Timeline`] follows from a thread
//! of its own, every 50 ms, where a group asks for it.
//!
//! Invariants: a [`Reading`] costs a few small files and calls, and stands outside the timed part; what the kernel does
//! not tell is `None`.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pagemill_sys::{UsageOf, resource_usage};
use rustix::time::{ClockId, clock_gettime};

use crate::machine::{DeviceCounters, ProcessorTimes, run_queue_wait};
use crate::results::Moment;

/// How often a time line gets a point.
const POINT: Duration = Duration::from_millis(50);

/// Totals since some fixed moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reading {
    /// The time.
    pub elapsed: Duration,
    /// Processor time of this process and its ended children in user mode.
    pub user: Duration,
    /// The same in the kernel.
    pub system: Duration,
    /// Processor time of the calling thread.
    pub thread: Option<Duration>,
    /// How long the calling thread was ready to run and had no processor.
    pub queued: Option<Duration>,
    /// Bytes that the device read.
    pub device_read: Option<u64>,
    /// Bytes that it wrote.
    pub device_written: Option<u64>,
    /// Time of all processors at work for anybody on this machine.
    pub busy: Option<Duration>,
    /// Time of all processors that the host gave to others.
    pub stolen: Option<Duration>,
}

impl Reading {
    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let time = |now: Option<Duration>, then: Option<Duration>| Some(now?.saturating_sub(then?));
        let bytes = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            elapsed: self.elapsed.saturating_sub(earlier.elapsed),
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            thread: time(self.thread, earlier.thread),
            queued: time(self.queued, earlier.queued),
            device_read: bytes(self.device_read, earlier.device_read),
            device_written: bytes(self.device_written, earlier.device_written),
            busy: time(self.busy, earlier.busy),
            stolen: time(self.stolen, earlier.stolen),
        }
    }

    /// With processor time of other processes that worked for this one.
    #[must_use]
    pub fn with_others(self, (user, system): (Duration, Duration)) -> Self {
        Self { user: self.user + user, system: self.system + system, ..self }
    }

    /// How long the calling thread neither ran nor could have run: it waited for I/O, or for other threads.
    pub fn waited(&self) -> Option<Duration> {
        Some(
            self.elapsed
                .saturating_sub(self.thread?)
                .saturating_sub(self.queued.unwrap_or_default()),
        )
    }
}

/// What turns are measured with.
pub trait Meter {
    /// The totals now.
    fn read(&self) -> Reading;

    /// Begins to follow a turn.
    fn follow(&self) -> Option<Timeline> {
        None
    }
}

/// The machine itself.
#[derive(Debug)]
pub struct MachineMeter {
    start: Instant,
    devices: DeviceCounters,
}

impl MachineMeter {
    /// One that watches these devices.
    pub fn new(devices: &[pagemill_io::probe::device::Device]) -> Self {
        Self { start: Instant::now(), devices: DeviceCounters::of(devices) }
    }
}

/// User and system time of this process and its ended children.
fn processor_use() -> (Duration, Duration) {
    let own = resource_usage(UsageOf::Process).unwrap_or_default();
    let children = resource_usage(UsageOf::Children).unwrap_or_default();
    (own.user + children.user, own.system + children.system)
}

fn thread_time() -> Option<Duration> {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

impl Meter for MachineMeter {
    fn read(&self) -> Reading {
        let (user, system) = processor_use();
        let device = self.devices.now();
        let processors = ProcessorTimes::now();
        Reading {
            user,
            system,
            thread: thread_time(),
            queued: run_queue_wait(),
            device_read: device.map(|device| device.read),
            device_written: device.map(|device| device.written),
            busy: processors.map(|times| times.busy),
            stolen: processors.map(|times| times.stolen),
            elapsed: self.start.elapsed(),
        }
    }

    fn follow(&self) -> Option<Timeline> {
        Timeline::start(self.devices.clone())
    }
}

/// A thread that takes points until it is stopped.
#[derive(Debug)]
pub struct Timeline {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Moment>>,
}

impl Timeline {
    fn start(devices: DeviceCounters) -> Option<Self> {
        let (stop, stopped) = channel::<()>();
        let points = move || {
            let mut points = Points::begin(devices);
            while stopped.recv_timeout(POINT) == Err(RecvTimeoutError::Timeout) {
                points.take();
            }
            points.taken
        };
        let thread = std::thread::Builder::new().name("timeline".into()).spawn(points).ok()?;
        Some(Self { stop, thread })
    }

    /// The points that were taken.
    pub fn finish(self) -> Vec<Moment> {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

struct Points {
    devices: DeviceCounters,
    start: Instant,
    before: (Duration, crate::machine::DeviceBytes, (Duration, Duration)),
    taken: Vec<Moment>,
}

impl Points {
    fn begin(devices: DeviceCounters) -> Self {
        let before = (Duration::ZERO, devices.now().unwrap_or_default(), processor_use());
        Self { devices, start: Instant::now(), before, taken: Vec::new() }
    }

    fn take(&mut self) {
        let now = self.start.elapsed();
        let (device, used) = (self.devices.now().unwrap_or_default(), processor_use());
        let (then, device_then, used_then) =
            std::mem::replace(&mut self.before, (now, device, used));
        let seconds = now.saturating_sub(then).as_secs_f64();
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        let share =
            |now: Duration, then: Duration| now.saturating_sub(then).as_secs_f64() / seconds;
        self.taken.push(Moment {
            at_s: now.as_secs_f64(),
            read_rate: rate(device.read, device_then.read),
            write_rate: rate(device.written, device_then.written),
            user: share(used.0, used_then.0),
            system: share(used.1, used_then.1),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_waits_and_one_that_works_does_not() {
        let meter = MachineMeter::new(&[]);
        let before = meter.read();
        std::thread::sleep(Duration::from_millis(20));
        let slept = meter.read().since(&before);
        assert!(slept.waited().unwrap() >= Duration::from_millis(10), "{slept:?}");
        assert!(slept.elapsed >= Duration::from_millis(20));
        assert_eq!(slept.device_read, None);
    }

    #[test]
    fn a_time_line_has_points_in_order() {
        let line = MachineMeter::new(&[]).follow().unwrap();
        std::thread::sleep(POINT * 5);
        let points = line.finish();
        assert!(!points.is_empty());
        assert!(points.is_sorted_by(|one, next| one.at_s < next.at_s));
    }
}
