//! Batches worked on by several threads, their results taken in order.
//!
//! ```text
//!   workers: wait for room ─► cut the next batch (one at a time) ─► work on its rows ─► publish
//!   caller:  take the result whose turn it is ─► consume it ─► make room
//! ```
//!
//! Invariants:
//! - results are consumed in the order of the rows, each once; after the first error nothing is;
//! - the error told is that of the earliest batch with one, whatever thread met its own first;
//! - what is behind an end-of-copy marker is dropped, errors included, to the end of its input;
//! - at most [`MOST_BATCHES_PER_JOB`] batches for each worker, and about [`MOST_BYTES`], are cut
//!   and not consumed; so memory does not grow with the input;
//! - when [`run`] returns, its threads have ended.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, ScopedJoinHandle};

use pagemill_io::Storage;

use super::batch_cutter::{Batch, BatchCutter};
use super::byte_feed::InputSource;
use super::options::CopyRules;
use super::rows::{RowParser, Rows};
use crate::error::{Error, Result};

/// Batches cut and not consumed yet, for each worker.
const MOST_BATCHES_PER_JOB: usize = 3;
/// Bytes of batches cut and not consumed yet. One batch is always allowed.
const MOST_BYTES: usize = 64 << 20;

/// What is read, by which rules.
#[derive(Debug)]
pub struct Input<'a> {
    /// Where files are opened.
    pub storage: &'a Storage,
    /// How rows are read.
    pub rules: &'a CopyRules,
    /// The inputs, in their order; each has its own header.
    pub sources: Vec<InputSource>,
}

/// The threads that work on batches.
pub struct Workers<N, W> {
    jobs: usize,
    new_state: N,
    work: W,
}

impl<N, W> Workers<N, W> {
    /// So many threads. Each makes a state by `new_state` first, and does `work` on the rows of a batch at a time.
    pub fn new<S, R>(jobs: usize, new_state: N, work: W) -> Self
    where
        N: Fn() -> S + Sync,
        W: Fn(&mut S, &mut Rows<'_>) -> Result<R> + Sync,
    {
        Self { jobs, new_state, work }
    }
}

/// Has the workers work on the rows of the input, and hands the results to `consume`, in order, in the
/// calling thread.
///
/// # Errors
/// Of what fails the one that comes first in the input: reading, working or consuming. Nothing is
/// consumed after it. [`Error::Worker`] if a worker panicked.
pub fn run<S, R: Send>(
    input: Input<'_>,
    workers: Workers<impl Fn() -> S + Sync, impl Fn(&mut S, &mut Rows<'_>) -> Result<R> + Sync>,
    consume: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    run_cutter(BatchCutter::new(input.storage, input.rules, input.sources), workers, consume)
}

pub(super) fn run_cutter<S, R: Send>(
    cutter: BatchCutter<'_>,
    workers: Workers<impl Fn() -> S + Sync, impl Fn(&mut S, &mut Rows<'_>) -> Result<R> + Sync>,
    consume: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let Workers { jobs, new_state, work } = workers;
    let (jobs, rules) = (jobs.max(1), cutter.rules());
    let shared = Shared::new(cutter, jobs);
    let job = || {
        let _leaving = Leaving(&shared);
        let (mut state, mut parser) = (new_state(), RowParser::new(rules));
        shared.work_on_batches(|batch| {
            let mut rows = parser.rows(batch);
            let result = work(&mut state, &mut rows);
            (result, rows.ended())
        });
    };
    std::thread::scope(|scope| {
        let ending = Ending(&shared);
        let mut threads = Vec::new();
        for _ in 0..jobs {
            threads.push(Builder::new().spawn_scoped(scope, job).map_err(Error::Threads)?);
        }
        let consumed = shared.consume_in_order(consume);
        drop(ending);
        let ended = join(threads);
        consumed.and(ended)
    })
}

/// Waits for all threads, and says whether one of them panicked.
fn join(threads: Vec<ScopedJoinHandle<'_, ()>>) -> Result<()> {
    let ends: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
    if ends.iter().any(std::result::Result::is_err) { Err(Error::Worker) } else { Ok(()) }
}

/// What the threads share.
struct Shared<'a, R> {
    cutter: Mutex<BatchCutter<'a>>,
    state: Mutex<State<R>>,
    changed: Condvar,
    most_batches: usize,
}

/// How far the work is.
struct State<R> {
    /// Results that wait for their turn, by batch.
    done: BTreeMap<u64, Done<R>>,
    /// Batches cut, or about to be, and not consumed.
    batches: usize,
    /// Their bytes, of those that were cut.
    bytes: usize,
    /// Workers that have not ended.
    workers: usize,
    /// Whether nothing more is to be cut.
    is_ending: bool,
}

/// What came of cutting a batch.
enum Next {
    Batch(Batch),
    /// An error, which may yet turn out to be behind an end-of-copy marker.
    Failed,
    End,
}

/// The result of one batch.
struct Done<R> {
    result: Result<R>,
    bytes: usize,
    input_number: usize,
    /// Whether the input ends in this batch, by a marker.
    ended: bool,
}

impl<'a, R> Shared<'a, R> {
    fn new(cutter: BatchCutter<'a>, jobs: usize) -> Self {
        let done = BTreeMap::new();
        let state = State { done, batches: 0, bytes: 0, workers: jobs, is_ending: false };
        Self {
            cutter: Mutex::new(cutter),
            state: Mutex::new(state),
            changed: Condvar::new(),
            most_batches: jobs * MOST_BATCHES_PER_JOB,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_cutter(&self) -> MutexGuard<'_, BatchCutter<'a>> {
        self.cutter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, state: MutexGuard<'g, State<R>>) -> MutexGuard<'g, State<R>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// One worker's life: `work` tells the result of a batch, and whether its input ends there.
    fn work_on_batches(&self, mut work: impl FnMut(&Batch) -> (Result<R>, bool)) {
        while self.reserve() {
            let batch = match self.next_batch() {
                Next::Batch(batch) => batch,
                Next::Failed => continue,
                Next::End => return,
            };
            let (result, ended) = work(&batch);
            // A file that was cut meanwhile explains whatever its rows seemed to be.
            let result = batch.bytes.check().and(result);
            let bytes = batch.bytes.bytes().len();
            let Batch { sequence, input_number, .. } = batch;
            let spare = batch.bytes.release();
            if ended || spare.is_some() {
                let mut cutter = self.lock_cutter();
                spare.into_iter().for_each(|buffer| cutter.reuse(buffer));
                if ended {
                    cutter.skip_input(input_number);
                }
            }
            self.publish(sequence, Done { result, bytes, input_number, ended });
        }
    }

    /// Waits for room for one more batch; false when there are to be no more.
    fn reserve(&self) -> bool {
        let mut state = self.lock();
        loop {
            if state.is_ending {
                return false;
            }
            let has_room = state.batches < self.most_batches && state.bytes < MOST_BYTES;
            if has_room || state.batches == 0 {
                state.batches += 1;
                return true;
            }
            state = self.wait(state);
        }
    }

    /// Cuts a batch. An error is published as the result of the batch that would have come.
    fn next_batch(&self) -> Next {
        let mut cutter = self.lock_cutter();
        if self.lock().is_ending {
            return Next::End;
        }
        match cutter.next_batch() {
            Ok(Some(batch)) => {
                self.lock().bytes += batch.bytes.bytes().len();
                Next::Batch(batch)
            }
            Ok(None) => {
                self.end();
                Next::End
            }
            Err(error) => {
                let (sequence, input_number) = cutter.give_up_input();
                let done = Done { result: Err(error), bytes: 0, input_number, ended: false };
                self.publish(sequence, done);
                Next::Failed
            }
        }
    }

    fn publish(&self, sequence: u64, done: Done<R>) {
        self.lock().done.insert(sequence, done);
        self.changed.notify_all();
    }

    /// No more batches are to be cut.
    fn end(&self) {
        self.lock().is_ending = true;
        self.changed.notify_all();
    }

    /// Consumes results in order until all are, or one is an error.
    fn consume_in_order(&self, mut consume: impl FnMut(R) -> Result<()>) -> Result<()> {
        let mut ended_input = None;
        let mut sequence = 0;
        while let Some(done) = self.take(sequence) {
            sequence += 1;
            if ended_input == Some(done.input_number) {
                continue;
            }
            consume(done.result?)?;
            if done.ended {
                ended_input = Some(done.input_number);
            }
        }
        Ok(())
    }

    /// Waits for the result of this batch; nothing when there is none and none can come.
    fn take(&self, sequence: u64) -> Option<Done<R>> {
        let mut state = self.lock();
        loop {
            if let Some(done) = state.done.remove(&sequence) {
                state.batches = state.batches.saturating_sub(1);
                state.bytes = state.bytes.saturating_sub(done.bytes);
                self.changed.notify_all();
                return Some(done);
            }
            if state.workers == 0 {
                return None;
            }
            state = self.wait(state);
        }
    }
}

/// Ends the work when it is dropped, by an error or a panic as well.
struct Ending<'s, 'a, R>(&'s Shared<'a, R>);

impl<R> Drop for Ending<'_, '_, R> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Signs a worker off when it ends, and ends the work if it panicked.
struct Leaving<'s, 'a, R>(&'s Shared<'a, R>);

impl<R> Drop for Leaving<'_, '_, R> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.workers = state.workers.saturating_sub(1);
        state.is_ending |= std::thread::panicking();
        drop(state);
        self.0.changed.notify_all();
    }
}
