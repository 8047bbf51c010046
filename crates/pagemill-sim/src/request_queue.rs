//! The kernel's queue of requests before one drive: it merges neighbours, sorts, holds back for a moment
//! what may grow (*plugging*), and makes its user wait when it is full (`nr_requests`).
//!
//! ```text
//!   pieces ──► waiting (sorted, merged) ──► in the drive (its own order) ──► done
//!                 └── at most nr_requests requests in both ──┘
//! ```
//!
//! Written from what Linux's documentation says of `/sys/block/*/queue`, and from its behaviour.
//!
//! Invariants: each piece that was put in comes out once; a request is never longer than
//! `max_request`; requests go to the drive in ascending order from the last one on, then from the start.

use std::collections::{BTreeMap, HashMap};

use crate::drive::{Command, DriveModel, Nanos};

/// How a queue treats its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueSettings {
    pub(crate) nr_requests: usize,
    pub(crate) max_request: u64,
    /// The most requests given to the drive at once, where that is less than it takes.
    pub(crate) dispatch: usize,
    pub(crate) plug: Option<Plug>,
}

/// When a queue that was empty lets its first requests go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plug {
    pub(crate) requests: usize,
    pub(crate) delay: Nanos,
}

/// What a drive did, as `iostat` tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DriveCount {
    /// Requests done.
    pub requests: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Nanoseconds with a request in the drive.
    pub busy: u64,
}

/// The queue and its drive.
#[derive(Debug)]
pub(crate) struct RequestQueue {
    drive: Box<dyn DriveModel>,
    settings: QueueSettings,
    waiting: BTreeMap<(u64, u64), Request>,
    in_drive: HashMap<u64, Request>,
    next_id: u64,
    /// Where the last request given to the drive ended.
    last_end: u64,
    plugged_until: Option<Nanos>,
    busy_since: Nanos,
    count: DriveCount,
}

#[derive(Debug)]
struct Request {
    start: u64,
    end: u64,
    pieces: Vec<Piece>,
}

/// A part of an I/O that one drive does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) io: u64,
    pub(crate) start: u64,
    pub(crate) len: u64,
}

impl RequestQueue {
    pub(crate) fn new(drive: Box<dyn DriveModel>, settings: QueueSettings) -> Self {
        Self {
            drive,
            settings,
            waiting: BTreeMap::new(),
            in_drive: HashMap::new(),
            next_id: 0,
            last_end: 0,
            plugged_until: None,
            busy_since: 0,
            count: DriveCount::default(),
        }
    }

    pub(crate) fn count(&self) -> DriveCount {
        self.count
    }

    /// Requests waiting and in the drive.
    fn len(&self) -> usize {
        self.waiting.len() + self.in_drive.len()
    }

    /// True when whoever brings a new request has to wait.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.settings.nr_requests.max(1)
    }

    /// True when there is so much in it that readahead is better left for later.
    pub(crate) fn is_congested(&self) -> bool {
        self.len() >= (self.settings.nr_requests - self.settings.nr_requests / 8).max(1)
    }

    /// Puts a piece in; false when it has to wait.
    pub(crate) fn put(&mut self, piece: Piece, now: Nanos) -> bool {
        if !self.merge(piece) {
            if self.is_full() {
                return false;
            }
            self.add(piece, now);
        }
        self.dispatch(now);
        true
    }

    fn add(&mut self, piece: Piece, now: Nanos) {
        if let (Some(plug), true) = (self.settings.plug, self.waiting.is_empty()) {
            self.plugged_until = Some(now + plug.delay);
        }
        self.next_id += 1;
        let request =
            Request { start: piece.start, end: piece.start + piece.len, pieces: vec![piece] };
        self.waiting.insert((piece.start, self.next_id), request);
        if self.settings.plug.is_some_and(|plug| self.waiting.len() >= plug.requests) {
            self.plugged_until = None;
        }
    }

    /// Makes a piece part of a request that it continues, or that continues it.
    fn merge(&mut self, piece: Piece) -> bool {
        let end = piece.start + piece.len;
        let most = self.settings.max_request;
        let before = self.waiting.range_mut(..(piece.start, 0)).next_back();
        if let Some((_, request)) =
            before.filter(|(_, request)| request.end == piece.start && end - request.start <= most)
        {
            request.end = end;
            request.pieces.push(piece);
            return true;
        }
        let after = self.waiting.range((end, 0)..(end + 1, 0)).next();
        let Some(key) = after.map(|(key, _)| *key) else { return false };
        let Some(mut request) = self.waiting.remove(&key) else { return false };
        let fits = request.end - piece.start <= most;
        if fits {
            request.start = piece.start;
            request.pieces.push(piece);
        }
        self.waiting.insert((request.start, key.1), request);
        fits
    }

    /// Lets go what was held back.
    pub(crate) fn unplug(&mut self, now: Nanos) {
        self.plugged_until = None;
        self.dispatch(now);
    }

    fn dispatch(&mut self, now: Nanos) {
        if self.plugged_until.is_some() {
            return;
        }
        let most = self.drive.depth().min(self.settings.dispatch).max(1);
        while self.in_drive.len() < most {
            let ahead = self.waiting.range((self.last_end, 0)..).next();
            let Some((key, _)) = ahead.or_else(|| self.waiting.iter().next()) else { return };
            let key = *key;
            let Some(request) = self.waiting.remove(&key) else { return };
            self.last_end = request.end;
            if self.in_drive.is_empty() {
                self.busy_since = now;
            }
            let len = request.end - request.start;
            self.drive.take(Command { id: key.1, start: request.start, len }, now);
            self.in_drive.insert(key.1, request);
        }
    }

    /// When something will happen by itself.
    pub(crate) fn next_time(&self) -> Option<Nanos> {
        let times = [self.drive.next_done(), self.plugged_until];
        times.into_iter().flatten().min()
    }

    /// Does what is due, and adds the pieces that are done.
    pub(crate) fn advance(&mut self, now: Nanos, finished: &mut Vec<Piece>) {
        if self.plugged_until.is_some_and(|until| until <= now) {
            self.unplug(now);
        }
        while let Some(id) = self.drive.done(now) {
            let Some(request) = self.in_drive.remove(&id) else { continue };
            self.count.requests += 1;
            self.count.bytes += request.end - request.start;
            if self.in_drive.is_empty() {
                self.count.busy += now - self.busy_since;
            }
            finished.extend(request.pieces);
            self.dispatch(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solid_state::{Nvme, NvmeSheet};

    fn queue(nr_requests: usize, plug: Option<Plug>) -> RequestQueue {
        let settings = QueueSettings { nr_requests, max_request: 64 << 10, dispatch: 1, plug };
        RequestQueue::new(Box::new(Nvme::new(NvmeSheet::common())), settings)
    }

    fn piece(io: u64, block: u64) -> Piece {
        Piece { io, start: block * 8192, len: 8192 }
    }

    fn drain(queue: &mut RequestQueue) -> Vec<u64> {
        let mut finished = Vec::new();
        while let Some(next) = queue.next_time() {
            queue.advance(next, &mut finished);
        }
        finished.iter().map(|piece| piece.io).collect()
    }

    #[test]
    fn neighbours_become_one_request_up_to_its_longest() {
        let mut queue = queue(128, Some(Plug { requests: 4, delay: 1000 }));
        for n in 0..10 {
            assert!(queue.put(piece(n, n), 0));
        }
        assert!(queue.put(piece(10, 21), 0));
        assert!(queue.put(piece(11, 20), 0), "in front of another");
        assert_eq!(drain(&mut queue).len(), 12);
        assert_eq!(queue.count().requests, 3, "8 blocks, 2 blocks, 2 blocks");
    }

    #[test]
    fn a_full_queue_takes_only_what_it_can_merge() {
        let mut queue = queue(3, None);
        for n in [0, 10, 20] {
            assert!(queue.put(piece(n, n), 0));
        }
        assert!(queue.is_full() && !queue.put(piece(30, 30), 0));
        assert!(queue.put(piece(21, 21), 0));
        assert_eq!(drain(&mut queue), [0, 10, 20, 21]);
    }

    #[test]
    fn requests_go_out_in_ascending_order_from_the_last_one() {
        let mut queue = queue(128, None);
        for n in [50, 70, 10, 60, 20] {
            queue.put(piece(n, n), 0);
        }
        assert_eq!(drain(&mut queue), [50, 60, 70, 10, 20]);
    }
}
