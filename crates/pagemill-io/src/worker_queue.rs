//! The reads and writes of `worker`: a pool of threads that work ahead of the streams they serve.
//!
//! PostgreSQL's method of the same name (`src/backend/storage/aio/method_worker.c`, PostgreSQL 18):
//! one pool for the process, a bounded queue of requests, and a caller that finds the queue full
//! reads itself. New is the lane: reads of one lane wait for the one worker that serves it.
//!
//! ```text
//!   stream ── submit ──► requests (at most QUEUE_LENGTH) ──► worker threads
//!      ▲                                                          │
//!      └────────── wait, poll ◄── finished, one list a stream ◄───┘
//! ```
//!
//! Invariants: a read that was taken on comes back exactly once; a worker holds no lock while it reads;
//! dropping a queue waits until all its reads are back. A worker that panics would lose a read: it
//! runs nothing that can.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::seam::{Direction, FinishedIo, IoQueue, Lane, QueuedIo};

/// Threads of the pool. PostgreSQL 18 has three by default; four keep two mirrors busy where the mirror
/// is chosen by the reader's thread.
pub const WORKERS: usize = 4;
/// Requests that wait for a worker at most.
const QUEUE_LENGTH: usize = 64;

/// What one stream has in flight.
#[derive(Debug)]
pub(crate) struct WorkerQueue {
    pool: &'static Pool,
    depth: usize,
    finished: Arc<Finished>,
    in_flight: usize,
}

/// What is back of one stream.
#[derive(Debug, Default)]
struct Finished {
    reads: Mutex<Vec<FinishedIo>>,
    arrived: Condvar,
}

impl Finished {
    fn add(&self, read: FinishedIo) {
        lock(&self.reads).push(read);
        self.arrived.notify_one();
    }
}

#[derive(Debug)]
struct Pool {
    requests: Mutex<VecDeque<Request>>,
    added: Condvar,
    /// The numbers the system gave the threads.
    threads: Mutex<Vec<u32>>,
}

#[derive(Debug)]
struct Request {
    /// The only worker that may take it, if any.
    worker: Option<usize>,
    read: QueuedIo,
    finished: Arc<Finished>,
}

impl WorkerQueue {
    /// A queue on the process's pool, whose threads are started with the first one.
    pub(crate) fn new(depth: u32) -> io::Result<Self> {
        let depth = depth.max(1) as usize;
        Ok(Self { pool: Pool::running()?, depth, finished: Arc::default(), in_flight: 0 })
    }

    fn take(&mut self, read: Option<FinishedIo>) -> Option<FinishedIo> {
        self.in_flight -= usize::from(read.is_some());
        read
    }
}

impl IoQueue for WorkerQueue {
    fn submit(&mut self, read: QueuedIo) {
        let worker = read.lane.map(|lane| self.pool.worker_for(lane));
        let request = Request { worker, read, finished: self.finished.clone() };
        let room = self.in_flight < self.depth;
        self.in_flight += 1;
        let refused = if room { self.pool.add(request) } else { Some(request) };
        if let Some(request) = refused {
            request.run();
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn poll(&mut self) -> Option<FinishedIo> {
        let read = lock(&self.finished.reads).pop();
        self.take(read)
    }

    fn wait(&mut self) -> io::Result<Option<FinishedIo>> {
        if self.in_flight == 0 {
            return Ok(None);
        }
        let mut reads = lock(&self.finished.reads);
        while reads.is_empty() {
            reads = self.finished.arrived.wait(reads).unwrap_or_else(PoisonError::into_inner);
        }
        let read = reads.pop();
        drop(reads);
        Ok(self.take(read))
    }
}

impl Drop for WorkerQueue {
    fn drop(&mut self) {
        while let Ok(Some(_)) = self.wait() {}
    }
}

impl Request {
    fn run(self) {
        let QueuedIo { id, file, direction, mut buffer, range, offset, .. } = self.read;
        let outcome = match (buffer.get_mut(range), direction) {
            (Some(part), Direction::Read) => file.read_at(part, offset),
            (Some(part), Direction::Write) => file.write_at(part, offset),
            (None, _) => Err(io::ErrorKind::InvalidInput.into()),
        };
        drop(file);
        self.finished.add(FinishedIo { id, buffer, outcome });
    }
}

impl Pool {
    /// The process's pool.
    fn running() -> io::Result<&'static Self> {
        static POOL: OnceLock<Pool> = OnceLock::new();
        static STARTED: Mutex<usize> = Mutex::new(0);
        let pool = POOL.get_or_init(|| Self {
            requests: Mutex::default(),
            added: Condvar::new(),
            threads: Mutex::default(),
        });
        let mut started = lock(&STARTED);
        while *started < WORKERS {
            let name = format!("pagemill-io-{started}");
            let number = *started;
            let (tell, told) = std::sync::mpsc::sync_channel(1);
            let work = move || {
                // Whoever starts a worker waits for its number.
                let _ = tell.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
                pool.work(number);
            };
            match std::thread::Builder::new().name(name).spawn(work) {
                Ok(_) => *started += 1,
                // One worker is enough to go on.
                Err(_) if *started > 0 => break,
                Err(error) => return Err(no_threads(&error)),
            }
            lock(&pool.threads).push(told.recv().unwrap_or(0));
        }
        Ok(pool)
    }

    /// Queues a request, or gives it back when the queue is full.
    fn add(&self, request: Request) -> Option<Request> {
        let mut requests = lock(&self.requests);
        // A lane is as long as its stream's look-ahead: nobody else should read for it.
        if request.worker.is_none() && requests.len() >= QUEUE_LENGTH {
            return Some(request);
        }
        let for_one = request.worker.is_some();
        requests.push_back(request);
        drop(requests);
        if for_one {
            self.added.notify_all();
        } else {
            self.added.notify_one();
        }
        None
    }

    /// The worker that serves a lane: one whose thread number falls to it, or else any.
    fn worker_for(&self, lane: Lane) -> usize {
        let threads = lock(&self.threads);
        let of = lane.of.max(1);
        let falls_to_it = |thread: &u32| thread % of == lane.number % of;
        let any = lane.number as usize % threads.len().max(1);
        threads.iter().position(falls_to_it).unwrap_or(any)
    }

    /// What each thread does, as long as the process lives.
    fn work(&self, number: usize) {
        loop {
            let mut requests = lock(&self.requests);
            let mine = |request: &Request| request.worker.is_none_or(|worker| worker == number);
            let request = loop {
                match requests.iter().position(mine).and_then(|place| requests.remove(place)) {
                    Some(request) => break request,
                    None => {
                        requests =
                            self.added.wait(requests).unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            drop(requests);
            request.run();
        }
    }
}

fn no_threads(error: &io::Error) -> io::Error {
    crate::Refusal::NoThreads(error.to_string()).into()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
