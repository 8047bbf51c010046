//! Reads that go on while their caller does something else: by workers, or by the kernel for a ring.
//!
//! They come back in the order in which the devices had them. Workers and the kernel's threads are taken to
//! have cores of their own; a worker reads with the readahead of the file it shares with the others.
//!
//! | queue | a read begins | by |
//! | --- | --- | --- |
//! | worker | when one of the workers is free; the submitter itself reads when too many wait | a worker |
//! | io_uring | with the flush; what is in the page cache is copied by the submitter, unless it is forced not to be | its own thread of the kernel |
//!
//! Invariants: a read taken on comes back once; dropping a queue waits for what is in flight.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use pagemill_io::{Direction, FinishedIo, IoQueue, Lane, QueueKind, QueuedIo};
use pagemill_sys::AlignedBuffer;

use crate::drive::Nanos;
use crate::faults::Call;
use crate::machine::{Machine, QueueState};
use crate::page_reads::ReadTask;
use crate::simulated_disk::{OpenFile, SharedMachine, lock};

/// Reads that wait for a worker at most; as in `pagemill-io`.
const MOST_WAITING: usize = 64;
/// Threads of the kernel have numbers from here on.
const KERNEL_THREADS: usize = 1000;

/// The workers, by their thread numbers.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    workers: usize,
    idle: Vec<usize>,
    waiting: VecDeque<(usize, QueuedIo)>,
}

impl WorkerPool {
    pub(crate) fn new(workers: usize) -> Self {
        let workers = workers.max(1);
        Self { workers, idle: (1..=workers).rev().collect(), waiting: VecDeque::new() }
    }

    /// The worker that serves a lane, as in `pagemill-io`.
    fn of_lane(&self, lane: Lane) -> usize {
        let (number, of) = (lane.number as usize, lane.of.max(1) as usize);
        let any = 1 + number % self.workers;
        (1..=self.workers).find(|worker| worker % of == number % of).unwrap_or(any)
    }

    fn take_idle(&mut self, lane: Option<Lane>) -> Option<usize> {
        let Some(lane) = lane else { return self.idle.pop() };
        let worker = self.of_lane(lane);
        let place = self.idle.iter().position(|idle| *idle == worker)?;
        Some(self.idle.remove(place))
    }

    /// The next read that waits for this worker, or for any.
    fn take_waiting(&mut self, worker: usize) -> Option<(usize, QueuedIo)> {
        let its = |lane: Lane| self.of_lane(lane) == worker;
        let place = self.waiting.iter().position(|(_, read)| read.lane.is_none_or(its))?;
        self.waiting.remove(place)
    }
}

/// A read that goes on by itself.
#[derive(Debug)]
pub(crate) struct BackgroundRead {
    queue: usize,
    worker: Option<usize>,
    task: ReadTask,
    /// What is left to do once the pages are there.
    cost: Nanos,
    offset: u64,
    /// Bytes it will return.
    bytes: usize,
    id: u64,
    buffer: AlignedBuffer,
    at: usize,
}

/// A queue of the simulated disk.
#[derive(Debug)]
pub(crate) struct SimulatedQueue {
    machine: Arc<SharedMachine>,
    number: usize,
    ring_calls: u64,
}

impl SimulatedQueue {
    pub(crate) fn new(machine: Arc<SharedMachine>, kind: QueueKind, depth: u32) -> Self {
        let mut inside = lock(&machine);
        inside.queues.push(QueueState {
            kind,
            depth: depth.max(1) as usize,
            in_flight: 0,
            finished: VecDeque::new(),
            unflushed: Vec::new(),
        });
        let number = inside.queues.len() - 1;
        drop(inside);
        Self { machine, number, ring_calls: 0 }
    }
}

impl IoQueue for SimulatedQueue {
    fn submit(&mut self, read: QueuedIo) {
        let mut machine = lock(&self.machine);
        let queue = &mut machine.queues[self.number];
        queue.in_flight += 1;
        if read.direction == Direction::Write {
            // Nothing is written here.
            let outcome = Err(io::ErrorKind::Unsupported.into());
            queue.finished.push_back(FinishedIo { id: read.id, buffer: read.buffer, outcome });
            return;
        }
        match queue.kind {
            QueueKind::IoUring => queue.unflushed.push(read),
            QueueKind::Worker | QueueKind::Own => machine.give_to_worker(self.number, read),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut machine = lock(&self.machine);
        if machine.flush(self.number) {
            self.ring_calls += 1;
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<FinishedIo> {
        lock(&self.machine).take_finished(self.number)
    }

    fn wait(&mut self) -> io::Result<Option<FinishedIo>> {
        let mut machine = lock(&self.machine);
        let ring = machine.queues[self.number].kind == QueueKind::IoUring;
        let flushed = machine.flush(self.number);
        if machine.queues[self.number].in_flight == 0 {
            return Ok(None);
        }
        let number = self.number;
        let waits = machine.queues[number].finished.is_empty();
        self.ring_calls += u64::from(ring && (flushed || waits));
        machine.wait_until(|machine| !machine.queues[number].finished.is_empty())?;
        Ok(machine.take_finished(number))
    }

    fn ring_calls(&self) -> u64 {
        self.ring_calls
    }
}

impl Drop for SimulatedQueue {
    fn drop(&mut self) {
        while let Ok(Some(_)) = self.wait() {}
    }
}

impl Machine {
    fn take_finished(&mut self, queue: usize) -> Option<FinishedIo> {
        let queue = &mut self.queues[queue];
        let read = queue.finished.pop_front()?;
        queue.in_flight -= 1;
        Some(read)
    }

    fn give_to_worker(&mut self, queue: usize, read: QueuedIo) {
        let (depth, in_flight) = (self.queues[queue].depth, self.queues[queue].in_flight);
        let crowded = read.lane.is_none() && self.workers.waiting.len() >= MOST_WAITING;
        if in_flight > depth || crowded {
            self.read_in_place(queue, read);
            return;
        }
        match self.workers.take_idle(read.lane) {
            Some(worker) => self.begin_background(queue, read, worker, Some(worker)),
            None => self.workers.waiting.push_back((queue, read)),
        }
    }

    /// Begins what was taken on; true when there was something.
    fn flush(&mut self, queue: usize) -> bool {
        let reads = std::mem::take(&mut self.queues[queue].unflushed);
        if reads.is_empty() {
            return false;
        }
        self.spend(self.cost(0));
        for (thread, read) in (KERNEL_THREADS..).zip(reads) {
            if !read.force_async && self.is_cached(&read) {
                self.read_in_place(queue, read);
            } else {
                self.begin_background(queue, read, thread, None);
            }
        }
        true
    }

    fn is_cached(&self, read: &QueuedIo) -> bool {
        let Some(open) = OpenFile::of(read.file.as_ref()) else { return true };
        let end = read.offset + read.range.len() as u64;
        !open.direct && self.resident(open.file, read.offset..end) >= read.range.len() as u64
    }

    /// The submitter reads.
    fn read_in_place(&mut self, queue: usize, read: QueuedIo) {
        let QueuedIo { id, file, mut buffer, range, offset, .. } = read;
        let outcome = match (OpenFile::of(file.as_ref()), buffer.get_mut(range)) {
            (Some(open), Some(part)) => self.read(open, part, offset),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        };
        self.queues[queue].finished.push_back(FinishedIo { id, buffer, outcome });
    }

    fn begin_background(
        &mut self,
        queue: usize,
        read: QueuedIo,
        thread: usize,
        worker: Option<usize>,
    ) {
        let QueuedIo { id, file, buffer, range, offset, .. } = read;
        let open = OpenFile::of(file.as_ref()).filter(|_| range.end <= buffer.len());
        let begun = match (open, self.begin_call(Call::Read)) {
            (None, _) => Err(io::ErrorKind::InvalidInput.into()),
            (_, Err(error)) => Err(error),
            (Some(open), Ok(fate)) => {
                let wanted = range.len().min(open.most(fate));
                let bytes = self.readable(open.file, offset, wanted);
                bytes.map(|bytes| (open, bytes, fate.slower))
            }
        };
        let (open, bytes, slower) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                let finished = FinishedIo { id, buffer, outcome: Err(error) };
                self.queues[queue].finished.push_back(finished);
                return self.free_worker(worker);
            }
        };
        let task = self.task_for(open, offset, bytes, thread);
        let cost = self.cost(bytes as u64) + slower;
        let at = range.start;
        let number = self.next_background();
        let read = BackgroundRead { queue, worker, task, cost, offset, bytes, id, buffer, at };
        self.background.insert(number, read);
        self.advance_background(number);
    }

    fn next_background(&self) -> u64 {
        self.background.last_key_value().map_or(0, |(last, _)| last + 1)
    }

    /// Goes on with a read until its pages are there, or it has to wait.
    pub(crate) fn advance_background(&mut self, number: u64) {
        let Some(mut read) = self.background.remove(&number) else { return };
        match self.advance(&mut read.task) {
            Some(wait) => {
                self.volume.unplug(self.now);
                self.blocked.push((number, wait));
            }
            None => self.timers.add(self.now + read.cost, number),
        }
        self.background.insert(number, read);
    }

    /// A read is done.
    pub(crate) fn end_background(&mut self, number: u64) {
        let Some(mut read) = self.background.remove(&number) else { return };
        let part = read.buffer.get_mut(read.at..read.at + read.bytes).unwrap_or_default();
        self.files[read.task.file].contents.fill(part, read.offset);
        let BackgroundRead { id, buffer, bytes, .. } = read;
        let finished = FinishedIo { id, buffer, outcome: Ok(bytes) };
        self.queues[read.queue].finished.push_back(finished);
        self.free_worker(read.worker);
    }

    fn free_worker(&mut self, worker: Option<usize>) {
        let Some(worker) = worker else { return };
        match self.workers.take_waiting(worker) {
            Some((queue, read)) => self.begin_background(queue, read, worker, Some(worker)),
            None => self.workers.idle.push(worker),
        }
    }
}
