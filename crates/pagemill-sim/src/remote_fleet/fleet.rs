//! Workers and their requests in virtual time: [`Fleet`] and its [`Forecast`].
//!
//! Invariant: what has to wait in a line takes it in the order of time, whoever it is of.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::store_sheet::StoreSheet;
use super::works::{Opening, Work};
use crate::seed::Random;

/// Bytes of the longest request (`MOST_COMBINED` of `pagemill-remote`).
const REQUEST: u64 = 8 << 20;
/// Bytes that a reader asks for ahead: 64 reads of 128 blocks (`FAR_READS` of `pagemill-stream`).
const AHEAD: u64 = 64 << 20;
/// Requests of a process in flight (`MOST_IN_FLIGHT` of `pagemill-remote`).
const MOST_IN_FLIGHT: u64 = 64;

/// Nanoseconds from the beginning.
type Nanos = u64;

/// A machine that reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerSheet {
    /// Its cores, each with a reader.
    pub cores: u32,
    /// Bytes a second of its link.
    pub link: u64,
    /// Bytes a second that one core takes from the network: HTTP, TLS, copies, checks.
    pub receive_rate: u64,
}

/// Workers that read from a store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fleet {
    /// The store.
    pub store: StoreSheet,
    /// Each of the workers.
    pub worker: WorkerSheet,
    /// How many.
    pub workers: u32,
    /// What chance is drawn from.
    pub seed: u64,
}

/// What a work comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// From the beginning to the last worker's end.
    pub time: Duration,
    /// Requests of all workers.
    pub requests: u64,
    /// What these and their bytes cost.
    pub dollars: f64,
    /// What took most of the time.
    pub held_back_by: HeldBackBy,
}

/// What is busy nearly all the time, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldBackBy {
    /// The links of the workers.
    Links,
    /// Their cores.
    Cores,
    /// The requests that the store begins in a second.
    RequestRate,
    /// The rate of all answers together.
    StoreRate,
    /// Waiting for answers, one behind the other or with too few in flight.
    RoundTrips,
}

impl HeldBackBy {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Links => "links",
            Self::Cores => "cores",
            Self::RequestRate => "requests a second",
            Self::StoreRate => "the store's rate",
            Self::RoundTrips => "round trips",
        }
    }
}

/// A thing that one does after the other.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    free: Nanos,
    busy: Nanos,
}

impl Line {
    /// Takes so long from now on, or from when it is free; gives when that is done.
    fn take(&mut self, now: Nanos, time: Nanos) -> Nanos {
        self.free = self.free.max(now) + time;
        self.busy += time;
        self.free
    }
}

/// One worker while it runs.
#[derive(Debug, Clone, Copy, Default)]
struct Worker {
    /// Bytes of its share that it has not asked for.
    left: u64,
    /// Bytes that were asked for and not yet read.
    ahead: u64,
    in_flight: u64,
    link: Line,
    cores: Line,
    end: Nanos,
}

/// What happens, of requests in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A round of an opening begins; so many are left.
    Round,
    /// Its first byte is there.
    Answered,
    FirstByte,
    Arrived,
    Read,
}

/// When, which, what, whose, and of how many bytes; the number keeps those of one moment in their order.
type Event = Reverse<(Nanos, u64, Step, usize, u64)>;

struct Run<'f> {
    fleet: &'f Fleet,
    work: &'f Work,
    random: Random,
    workers: Vec<Worker>,
    events: BinaryHeap<Event>,
    number: u64,
    requests: u64,
    /// The store's beginning of requests, and its answers.
    begins: Line,
    answers: Line,
}

impl Fleet {
    /// How long a work takes, and why.
    pub fn forecast(&self, work: &Work) -> Forecast {
        assert!(self.workers > 0 && self.worker.cores > 0, "somebody has to do it");
        let mut run = Run::new(self, work);
        for worker in 0..run.workers.len() {
            run.add(
                nanos(work.opening.computing),
                Step::Round,
                (worker, u64::from(work.opening.in_a_row)),
            );
        }
        run.run_through();
        run.descend();
        run.told()
    }
}

impl<'f> Run<'f> {
    fn new(fleet: &'f Fleet, work: &'f Work) -> Self {
        let count = u64::from(fleet.workers);
        let share = |number: u64| work.bytes * (number + 1) / count - work.bytes * number / count;
        let workers = (0..count).map(|number| Worker { left: share(number), ..Worker::default() });
        Self {
            fleet,
            work,
            random: Random::new(fleet.seed),
            workers: workers.collect(),
            events: BinaryHeap::new(),
            number: 0,
            requests: 0,
            begins: Line::default(),
            answers: Line::default(),
        }
    }

    /// The next round of opening the database: as much of the bytes in each.
    fn open(&mut self, worker: usize, left: u64, now: Nanos) {
        if left == 0 {
            self.workers[worker].end = now;
            self.ask(worker, now);
            return;
        }
        let Opening { lists, gets, in_a_row, .. } = self.work.opening;
        let rounds = u64::from(in_a_row);
        // The last round has what the division leaves out.
        let rest = if left == 1 { (lists + gets) % rounds } else { 0 };
        let begun = self.begin((lists + gets) / rounds + rest, now);
        let first = begun + nanos(self.fleet.store.draw_first_byte(&mut self.random));
        self.add(first, Step::Answered, (worker, left));
    }

    /// Requests that the store begins one behind the other; gives when the last has begun.
    fn begin(&mut self, requests: u64, now: Nanos) -> Nanos {
        self.requests += requests;
        self.begins.take(now, time_for(requests, self.fleet.store.requests_a_second))
    }

    /// Bytes on their way, from the first of them on.
    fn transfer(&mut self, worker: usize, bytes: u64, first: Nanos) -> Nanos {
        let store = &self.fleet.store;
        let alone = first + time_for(bytes, store.request_rate);
        let together = match store.total_rate {
            Some(rate) => self.answers.take(first, time_for(bytes, rate)),
            None => first,
        };
        let time = time_for(bytes, self.fleet.worker.link);
        alone.max(together).max(self.workers[worker].link.take(first, time))
    }

    /// All that happens, each at its time: who takes a line earlier has it before the others.
    fn run_through(&mut self) {
        while let Some(Reverse((now, _, step, worker, bytes))) = self.events.pop() {
            match step {
                Step::Round => self.open(worker, bytes, now),
                Step::Answered => {
                    let opening = &self.work.opening;
                    let part = opening.bytes / u64::from(opening.in_a_row);
                    let arrived = self.transfer(worker, part, now);
                    self.add(arrived, Step::Round, (worker, bytes - 1));
                }
                Step::FirstByte => {
                    let arrived = self.transfer(worker, bytes, now);
                    self.add(arrived, Step::Arrived, (worker, bytes));
                }
                Step::Arrived => {
                    let time = self.computing(bytes);
                    self.workers[worker].in_flight -= 1;
                    let read = self.workers[worker].cores.take(now, time);
                    self.add(read, Step::Read, (worker, bytes));
                    self.ask(worker, now);
                }
                Step::Read => {
                    self.workers[worker].ahead -= bytes;
                    self.workers[worker].end = now;
                    self.ask(worker, now);
                }
            }
        }
    }

    /// As many requests as there is room for.
    fn ask(&mut self, worker: usize, now: Nanos) {
        let window = AHEAD * u64::from(self.fleet.worker.cores);
        loop {
            let Worker { left, ahead, in_flight, .. } = self.workers[worker];
            let bytes = left.min(REQUEST);
            if bytes == 0 || in_flight == MOST_IN_FLIGHT || (ahead > 0 && ahead + bytes > window) {
                return;
            }
            let one = &mut self.workers[worker];
            one.left -= bytes;
            one.ahead += bytes;
            one.in_flight += 1;
            let begun = self.begin(1, now);
            let first = begun + nanos(self.fleet.store.draw_first_byte(&mut self.random));
            self.add(first, Step::FirstByte, (worker, bytes));
        }
    }

    fn add(&mut self, at: Nanos, step: Step, (worker, bytes): (usize, u64)) {
        self.number += 1;
        self.events.push(Reverse((at, self.number, step, worker, bytes)));
    }

    /// What all cores of a worker take for so many bytes.
    fn computing(&self, bytes: u64) -> Nanos {
        let rates = [self.fleet.worker.receive_rate, self.work.core_rate];
        let one: Nanos = rates.iter().map(|rate| time_for(bytes, *rate)).sum();
        one / u64::from(self.fleet.worker.cores)
    }

    /// One worker goes down an index.
    fn descend(&mut self) {
        for _ in 0..self.work.steps {
            let begun = self.begin(1, self.workers[0].end);
            let first = begun + nanos(self.fleet.store.draw_first_byte(&mut self.random));
            self.workers[0].end = self.transfer(0, PIECE, first);
        }
    }

    fn told(self) -> Forecast {
        let end = self.workers.iter().map(|worker| worker.end).max().unwrap_or(0); // default: there is a worker
        let lists = self.work.opening.lists * self.workers.len() as u64;
        let store = &self.fleet.store;
        let bytes = self.work.bytes + self.work.opening.bytes * self.workers.len() as u64;
        let dollars = lists as f64 / 1000.0 * store.list_price
            + (self.requests - lists) as f64 / 1000.0 * store.get_price
            + bytes as f64 / f64::from(1 << 30) * store.retrieval_price;
        let held_back_by = self.held_back_by(end);
        Forecast { time: Duration::from_nanos(end), requests: self.requests, dollars, held_back_by }
    }

    fn held_back_by(&self, end: Nanos) -> HeldBackBy {
        let count = self.workers.len() as u64;
        let mean =
            |busy: fn(&Worker) -> Nanos| self.workers.iter().map(busy).sum::<Nanos>() / count;
        let busy = [
            (mean(|worker| worker.link.busy), HeldBackBy::Links),
            (mean(|worker| worker.cores.busy), HeldBackBy::Cores),
            (self.begins.busy, HeldBackBy::RequestRate),
            (self.answers.busy, HeldBackBy::StoreRate),
        ];
        let most = busy.into_iter().max_by_key(|(busy, _)| *busy);
        match most {
            Some((busy, what)) if busy * 10 >= end * 7 => what,
            _ => HeldBackBy::RoundTrips,
        }
    }
}

/// Bytes that a step down an index brings (`PIECE` of `pagemill-remote`).
const PIECE: u64 = 128 << 10;

fn nanos(time: Duration) -> Nanos {
    Nanos::try_from(time.as_nanos()).unwrap_or(Nanos::MAX) // infallible: no work takes 500 years
}

/// How long so many take at so many a second; no time at all at a rate of 0, which stands for nothing to do, or at the largest.
fn time_for(amount: u64, rate: u64) -> Nanos {
    if rate == 0 || rate == u64::MAX {
        return 0;
    }
    let time = u128::from(amount) * 1_000_000_000 / u128::from(rate);
    Nanos::try_from(time).unwrap_or(Nanos::MAX) // infallible: as above
}
