//! Parts merged by several threads, taken in their order by one.
//!
//! ```text
//!   caller:  cut parts ahead ─► take the merged part whose turn it is ─► consume it
//!   workers: take a part ─► merge it ─► send it back
//! ```
//!
//! Invariants: all reading and consuming is done by the calling thread; parts that are cut and not consumed are few;
//! when [`merge`] returns, its threads have ended.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, ScopedJoinHandle};

use pagemill_types::index_key_order::KeyOrder;

use super::keys::KeyRun;
use super::parts::{KeyPart, PartCutter};
use super::sources::KeySource;
use crate::error::{Error, Result};

/// More threads than this are not kept busy by one that builds pages.
const MOST_WORKERS: usize = 4;
/// Parts cut and not consumed, for each worker.
const PARTS_PER_WORKER: usize = 3;

/// A part, and where it is to be sent when it is merged.
type Job = (KeyPart, Sender<KeyRun>);

/// Hands the entries of all sources to `consume` in order, some at a time.
///
/// # Errors
/// Of reading or consuming; [`Error::Worker`] if a worker panicked.
pub(in crate::load) fn merge(
    order: &KeyOrder,
    sources: Vec<KeySource<'_>>,
    jobs: usize,
    consume: impl FnMut(&KeyRun) -> Result<()>,
) -> Result<()> {
    let cutter = PartCutter::new(order, sources)?;
    let workers = jobs.clamp(1, MOST_WORKERS);
    let ahead = workers * PARTS_PER_WORKER;
    let (jobs, waiting) = mpsc::channel();
    let waiting = Mutex::new(waiting);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..workers {
            let job = || work(&waiting, order);
            threads.push(Builder::new().spawn_scoped(scope, job).map_err(Error::Threads)?);
        }
        let consumed = consume_in_order(cutter, ahead, &jobs, consume);
        drop(jobs);
        let ended = join(threads);
        consumed.and(ended)
    })
}

/// One worker's life.
fn work(waiting: &Mutex<Receiver<Job>>, order: &KeyOrder) {
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok((part, done)) = next() {
        // Nobody waits for it any more after an error.
        let _ = done.send(part.merged(order));
    }
}

fn consume_in_order(
    mut cutter: PartCutter<'_>,
    ahead: usize,
    jobs: &Sender<Job>,
    mut consume: impl FnMut(&KeyRun) -> Result<()>,
) -> Result<()> {
    let mut begun = VecDeque::new();
    loop {
        while begun.len() < ahead
            && let Some(part) = cutter.next_part()?
        {
            let (done, merged) = mpsc::channel();
            jobs.send((part, done)).map_err(|_| Error::Worker)?;
            begun.push_back(merged);
        }
        let Some(merged) = begun.pop_front() else { return Ok(()) };
        consume(&merged.recv().map_err(|_| Error::Worker)?)?;
    }
}

/// Waits for all threads, and says whether one of them panicked.
fn join(threads: Vec<ScopedJoinHandle<'_, ()>>) -> Result<()> {
    let ends: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
    if ends.iter().any(std::result::Result::is_err) { Err(Error::Worker) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::load::index::keys::test_runs::{order, run};

    /// Batches of scattered numbers, more than a few parts of them.
    fn sources<'p>(order: &KeyOrder) -> Vec<KeySource<'p>> {
        let number = |n: i32| n.wrapping_mul(0x9E37_79B1_u32 as i32);
        let batch = |block: u32| {
            let numbers: Vec<i32> = (0..8000).map(|n| number(n + block as i32 * 8000)).collect();
            KeySource::Memory(Arc::new(run(&numbers, block, order)), 0)
        };
        (0..25).map(batch).collect()
    }

    #[test]
    fn any_number_of_threads_gives_all_entries_in_order() {
        let order = order();
        for jobs in [0, 1, 2, 3, 100] {
            let mut last: Option<Vec<u8>> = None;
            let (mut entries, mut parts) = (0, 0);
            let merged = merge(&order, sources(&order), jobs, |run| {
                for entry in &run.entries {
                    let entry = run.entry(*entry);
                    assert!(last.as_ref().is_none_or(|last| order.compare(last, entry).is_lt()));
                    last = Some(entry.to_vec());
                }
                entries += run.entries.len();
                parts += 1;
                Ok(())
            });
            assert!(
                merged.is_ok() && entries == 25 * 8000 && parts > 5,
                "{jobs} {entries} {parts}"
            );
        }
        merge(&order, Vec::new(), 2, |_| panic!("an entry of none")).unwrap();
    }

    #[test]
    fn an_error_of_the_consumer_ends_the_merge() {
        let order = order();
        let mut parts = 0;
        let merged = merge(&order, sources(&order), 2, |_| {
            parts += 1;
            if parts == 3 { Err(Error::Cancelled) } else { Ok(()) }
        });
        assert!(matches!(merged, Err(Error::Cancelled)) && parts == 3);
    }
}
