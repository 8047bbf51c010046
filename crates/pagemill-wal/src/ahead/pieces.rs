//! [`Pieces`]: pieces of WAL, each read, checked and summarized by itself, by as many threads as there are cores.
//!
//! Threads take pieces in order, a few ahead of the one that is wanted. The first piece is read when it is wanted, so a
//! WAL that is shorter costs no thread.
//!
//! Invariant: who waits for a piece gets an answer, also when its thread panicked.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use pagemill_format::Lsn;
use pagemill_format::wal::{PAGE_BYTES, RecordHeader, ResourceManager};
use pagemill_io::Storage;

use super::piece::{Edges, Piece, walk};
use super::plain_records::{PlainBuilder, PlainRecords};
use crate::reader::WalRecord;
use crate::wal_source::{Candidate, Listing, SegmentBytes, WalSource};

/// Bytes of a piece of a file that is read where needed: it stays in the cache of a core.
const PIECE_BYTES: u64 = 2 << 20;
/// Segments that may be compressed are pieces by themselves, up to this size.
const MOST_BYTES: u64 = 64 << 20;
const MOST_THREADS: usize = 8;
/// What part of the memory that WAL is read in is for pieces.
const SHARE_OF_PIECES: u64 = 4;

/// What the records of a piece do, in order.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) edges: Edges,
    pub(super) runs: Vec<Run>,
    /// The timeline of its file.
    pub(super) file_timeline: u32,
}

/// Records in a row.
#[derive(Debug)]
pub(super) enum Run {
    /// Of which only what they do is known.
    Plain(PlainRecords),
    /// One by itself.
    One(OwnRecord),
}

/// A record and its bytes.
#[derive(Debug)]
pub(super) struct OwnRecord {
    pub(super) lsn: Lsn,
    pub(super) end: Lsn,
    pub(super) header: RecordHeader,
    pub(super) bytes: Vec<u8>,
}

/// Where pieces come from.
#[derive(Debug)]
struct Files {
    storage: Storage,
    source: WalSource,
    chosen: HashMap<u64, Candidate>,
    piece_bytes: u64,
}

/// Summaries of pieces, ascending.
#[derive(Debug)]
pub(super) struct Pieces {
    files: Arc<Files>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    thread_count: usize,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The next piece that nobody has taken.
    next: u64,
    /// Up to which pieces are taken.
    limit: u64,
    done: BTreeMap<u64, Option<Summary>>,
    is_over: bool,
}

impl Pieces {
    /// The pieces of a source, from the segment of this number on; `None` where they would be too large.
    pub(super) fn new(
        storage: &Storage,
        source: &WalSource,
        listing: &Listing,
        first: u64,
    ) -> Option<Self> {
        let segment_size = u64::from(source.directory().segment_size);
        let has_archives = source.places().count() > 1;
        let piece_bytes = if has_archives { segment_size } else { segment_size.min(PIECE_BYTES) };
        let chosen = source.chosen(listing, first);
        let (storage, source) = (storage.clone(), source.clone());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // Of each piece in memory there is what its records do, too, and that of two pieces waits to be asked for.
        let in_memory = source.memory() as u64 / SHARE_OF_PIECES / (2 * piece_bytes);
        let most = usize::try_from(in_memory).unwrap_or(MOST_THREADS).clamp(1, MOST_THREADS);
        (piece_bytes <= MOST_BYTES).then(|| Self {
            files: Arc::new(Files { storage, source, chosen, piece_bytes }),
            shared: Arc::default(),
            threads: Vec::new(),
            thread_count: cores.min(most),
        })
    }

    /// The number of the piece with this byte.
    pub(super) fn number_of(&self, lsn: Lsn) -> u64 {
        lsn.0 / self.files.piece_bytes
    }

    /// The segment of a piece, and whether it begins with that.
    pub(super) fn segment_of(&self, number: u64) -> (u64, bool) {
        let start = Lsn(number.saturating_mul(self.files.piece_bytes));
        let segment = self.files.source.directory().segment_of(start);
        (segment.number, segment.start() == start)
    }

    /// The summary of a piece, behind those that were asked for before; `None` when it cannot be had.
    pub(super) fn summary(&mut self, number: u64) -> Option<Summary> {
        if self.thread_count < 2 {
            return self.files.summarize(number, &mut Vec::new());
        }
        let mut state = self.shared.lock();
        state.next = state.next.max(number);
        state.limit = number + 2 * self.thread_count as u64 + 1;
        state.done = state.done.split_off(&number);
        self.shared.changed.notify_all();
        drop(state);
        self.start_threads();
        let mut state = self.shared.lock();
        loop {
            match state.done.remove(&number) {
                Some(summary) => return summary,
                None => {
                    let waited = self.shared.changed.wait(state);
                    state = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn start_threads(&mut self) {
        while self.threads.len() < self.thread_count {
            let (files, shared) = (self.files.clone(), self.shared.clone());
            let builder = std::thread::Builder::new().name("wal".into());
            match builder.spawn(move || shared.work(&files)) {
                Ok(thread) => self.threads.push(thread),
                // With none at all, nobody would bring the piece that is waited for.
                Err(_) if !self.threads.is_empty() => return,
                Err(_) => return self.shared.clone().work_on_one(&self.files),
            }
        }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A piece that was taken; what became of it is told when it is dropped.
struct Taken<'s> {
    shared: &'s Shared,
    number: u64,
    summary: Option<Summary>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.shared.lock().done.insert(self.number, self.summary.take());
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, files: &Files) {
        let mut buffer = Vec::new();
        while let Some(mut taken) = self.take() {
            taken.summary = files.summarize(taken.number, &mut buffer);
        }
    }

    fn work_on_one(&self, files: &Files) {
        if let Some(mut taken) = self.take() {
            taken.summary = files.summarize(taken.number, &mut Vec::new());
        }
    }

    /// The next piece, once one is wanted; `None` when no more are.
    fn take(&self) -> Option<Taken<'_>> {
        let mut state = self.lock();
        loop {
            if state.is_over {
                return None;
            }
            if state.next < state.limit {
                state.next += 1;
                return Some(Taken { shared: self, number: state.next - 1, summary: None });
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Files {
    /// Reads a piece, and says what its records do. What cannot be read is left to who reads it next, and says why.
    fn summarize(&self, number: u64, buffer: &mut Vec<u8>) -> Option<Summary> {
        let start = Lsn(number.checked_mul(self.piece_bytes)?);
        let directory = self.source.directory();
        let file = self.chosen.get(&directory.segment_of(start).number)?;
        if file.is_partial {
            return None;
        }
        let (wanted, offset) =
            (usize::try_from(self.piece_bytes).ok()?, directory.offset_of(start));
        let opened = self.source.open(&self.storage, file).ok()??;
        let bytes = match &opened {
            SegmentBytes::File(file) => {
                buffer.resize(wanted, 0);
                let got = self.storage.read_fully_at(file.as_ref(), buffer, offset).ok()?;
                buffer.get(..got)?
            }
            SegmentBytes::Memory(bytes) => {
                let rest = bytes.get(usize::try_from(offset).ok()?..)?;
                rest.get(..wanted).unwrap_or(rest)
            }
        };
        let left = self.source.left_at(file.timeline);
        let is_whole = bytes.len() == wanted;
        let bytes = bytes.get(..bytes.len() - bytes.len() % PAGE_BYTES)?;
        let piece = Piece { source: &self.source, bytes, start, is_whole, left };
        let mut builder = SummaryBuilder::default();
        let edges = walk(piece, &mut |record| builder.add(record))?;
        let runs = builder.finish();
        Some(Summary { edges, runs, file_timeline: file.timeline })
    }
}

#[derive(Default)]
struct SummaryBuilder {
    plain: PlainBuilder,
    runs: Vec<Run>,
}

impl SummaryBuilder {
    #[inline]
    fn add(&mut self, record: &WalRecord<'_>) -> bool {
        self.plain.add(record) || self.add_one(record)
    }

    /// Takes in a record by itself, unless it has to do with one before it.
    fn add_one(&mut self, record: &WalRecord<'_>) -> bool {
        if names_given_up(&record.header) {
            return false;
        }
        self.runs.extend(self.plain.take().map(Run::Plain));
        let (bytes, header) = (record.bytes.to_vec(), record.header);
        self.runs.push(Run::One(OwnRecord { lsn: record.lsn, end: record.end, header, bytes }));
        true
    }

    fn finish(mut self) -> Vec<Run> {
        self.runs.extend(self.plain.take().map(Run::Plain));
        self.runs
    }
}

/// True for the record that names one that was given up, which only a reader of all records can have met.
pub(super) fn names_given_up(header: &RecordHeader) -> bool {
    header.resource_manager == ResourceManager::XLOG
        && header.kind() == ResourceManager::XLOG_OVERWRITE_CONTRECORD
}
