//! Reads in flight: [`RemoteQueue`] collects what is submitted, and combines neighbors of one object into requests of up to
//! [`MOST_COMBINED`] when it is flushed.
//!
//! ```text
//! submit, submit, … flush ─► groups ─► small: pieces in memory, which others may share
//!                                   └► large: pieces on disk, one request for each stretch between those that are there
//! ```
//!
//! Reads of files that are not on a store are made by threads that may wait.
//!
//! Invariant: as many come back as were submitted.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use bytes::Bytes;
use pagemill_io::{Direction, FinishedIo, IoQueue, QueuedIo};
use tokio::runtime::Handle;

use crate::disk_cache::{DiskCache, PieceKey};
use crate::error::Result;
use crate::object::Object;
use crate::parts::{Finished, Part, Parts};
use crate::pieces::Pieces;
use crate::remote_file::RemoteFile;
use crate::runtime;

/// Bytes of the largest request: a round trip of 30 ms is then a small part of what it takes.
pub(crate) const MOST_COMBINED: u64 = 8 << 20;
/// Between reads that are further apart than that, another request costs less than the bytes in between.
const MOST_BETWEEN: u64 = 64 << 10;
/// Groups of fewer bytes go through pieces in memory, and so do those of objects that are not much larger.
const LARGE: u64 = 512 << 10;
const LARGE_OBJECT: u64 = 4 << 20;
/// Bytes of a piece that a scan leaves on disk.
const LARGE_PIECE: u64 = 1 << 20;

/// A queue of reads of objects.
#[derive(Debug)]
pub(crate) struct RemoteQueue {
    pieces: Arc<Pieces>,
    runtime: Handle,
    waiting: Vec<QueuedIo>,
    in_flight: usize,
    finished: Finished,
    arrived: Receiver<FinishedIo>,
}

/// Reads of one object that one request may bring.
#[derive(Debug)]
struct Group {
    object: Arc<Object>,
    parts: Vec<Part>,
}

impl RemoteQueue {
    pub(crate) fn new(pieces: Arc<Pieces>) -> io::Result<Self> {
        let (finished, arrived) = channel();
        let runtime = runtime::handle()?;
        Ok(Self { pieces, runtime, waiting: Vec::new(), in_flight: 0, finished, arrived })
    }

    fn begin(&mut self) {
        let mut parts: BTreeMap<u64, Group> = BTreeMap::new();
        for read in std::mem::take(&mut self.waiting) {
            self.in_flight += 1;
            let (file, offset) = (read.file.clone(), read.offset);
            let remote = file.as_any().and_then(|file| file.downcast_ref::<RemoteFile>());
            match remote {
                Some(remote) if read.direction == Direction::Read => {
                    let room = read.buffer.len().min(read.range.end) - read.range.start;
                    let part = Part::new(read, remote.held(room, offset));
                    if part.len == 0 {
                        self.end(part);
                        continue;
                    }
                    let object = remote.object.clone();
                    let group = parts.entry(object.id);
                    group.or_insert(Group { object, parts: Vec::new() }).parts.push(part);
                }
                _ => self.begin_elsewhere(read),
            }
        }
        for group in parts.into_values() {
            for group in group.divided() {
                let (pieces, finished) = (self.pieces.clone(), self.finished.clone());
                self.runtime.spawn(group.read(pieces, finished));
            }
        }
    }

    /// There is nothing for it: it lies at the end of the object.
    fn end(&self, part: Part) {
        // The other end is ours.
        let _ = self.finished.send(part.finished(Ok(0)));
    }

    /// A read of a file that is on no store, or is made of several.
    fn begin_elsewhere(&self, read: QueuedIo) {
        let finished = self.finished.clone();
        self.runtime.spawn_blocking(move || {
            let QueuedIo { id, file, direction, mut buffer, range, offset, .. } = read;
            let outcome = match (direction, buffer.get_mut(range)) {
                (Direction::Read, Some(part)) => file.read_at(part, offset),
                _ => Err(io::ErrorKind::Unsupported.into()),
            };
            // A queue that is gone wants nothing any more.
            let _ = finished.send(FinishedIo { id, buffer, outcome });
        });
    }

    fn take(&mut self, read: Option<FinishedIo>) -> Option<FinishedIo> {
        self.in_flight -= usize::from(read.is_some());
        read
    }
}

impl IoQueue for RemoteQueue {
    fn submit(&mut self, read: QueuedIo) {
        self.waiting.push(read);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.begin();
        Ok(())
    }

    fn poll(&mut self) -> Option<FinishedIo> {
        let read = self.arrived.try_recv().ok();
        self.take(read)
    }

    fn wait(&mut self) -> io::Result<Option<FinishedIo>> {
        self.begin();
        if self.in_flight == 0 {
            return Ok(None);
        }
        let read = self.arrived.recv().ok();
        Ok(self.take(read))
    }
}

impl Drop for RemoteQueue {
    fn drop(&mut self) {
        while let Ok(Some(_)) = self.wait() {}
    }
}

impl Group {
    /// Divided where a request would become too long, or bring too much that nobody wants. Long ones end at multiples of their
    /// length, so that two scans ask for the same.
    fn divided(self) -> Vec<Self> {
        let Self { object, mut parts } = self;
        parts.sort_by_key(|part| part.io.offset);
        let mut groups: Vec<Self> = Vec::new();
        for part in parts {
            let range = part.range();
            let fits = |group: &&mut Self| {
                let start = group.parts.first().map_or(0, |part| part.io.offset);
                let end = group.parts.last().map_or(0, |part| part.range().end);
                range.start >= end
                    && range.start - end <= MOST_BETWEEN
                    && range.end - start <= MOST_COMBINED
                    && range.start / MOST_COMBINED == start / MOST_COMBINED
            };
            match groups.last_mut().filter(fits) {
                Some(group) => group.parts.push(part),
                None => groups.push(Self { object: object.clone(), parts: vec![part] }),
            }
        }
        groups
    }

    async fn read(self, pieces: Arc<Pieces>, finished: Finished) {
        let Self { object, parts } = self;
        let mut parts = Parts::new(parts, finished);
        let range = parts.range();
        let is_short = range.end - range.start < LARGE || object.len < LARGE_OBJECT;
        let read = match &pieces.disk {
            _ if is_short => through_pieces(&object, &mut parts, &pieces).await,
            None => fetch(&object, &mut parts, range).await,
            Some(disk) => {
                // Whose reads are told that they were dropped, should that panic.
                let Some((left, missing)) = kept(object.clone(), parts, disk.clone()).await else {
                    return;
                };
                parts = left;
                fetch_and_keep(&object, &mut parts, disk, missing).await
            }
        };
        if let Err(error) = read {
            parts.fail(error);
        }
    }
}

async fn through_pieces(
    object: &Arc<Object>,
    parts: &mut Parts,
    pieces: &Arc<Pieces>,
) -> Result<()> {
    for found in pieces.fetch(object, parts.range()).await? {
        parts.take(found.at, &found.bytes);
    }
    Ok(())
}

/// A long stretch: it would drive everything else out of memory.
async fn fetch(object: &Object, parts: &mut Parts, range: Range<u64>) -> Result<()> {
    let mut at = range.start;
    let take = |bytes: &[u8]| {
        parts.take(at, bytes);
        at += bytes.len() as u64;
    };
    object.fetch(range, take).await
}

/// What the disk has of a long stretch, by a thread that may wait; with what it does not have.
async fn kept(
    object: Arc<Object>,
    mut parts: Parts,
    disk: Arc<DiskCache>,
) -> Option<(Parts, Vec<Range<u64>>)> {
    let read = move || {
        let range = parts.range();
        let mut missing: Vec<Range<u64>> = Vec::new();
        for number in range.start / LARGE_PIECE..range.end.div_ceil(LARGE_PIECE) {
            let piece = span_of_large(&object, number);
            if take_kept(&object, number, &mut parts, &disk) {
                continue;
            }
            let wanted = piece.start.max(range.start)..piece.end.min(range.end);
            match missing.last_mut().filter(|last| last.end == wanted.start) {
                Some(last) => last.end = wanted.end,
                None => missing.push(wanted),
            }
        }
        (parts, missing)
    };
    runtime::blocking(read).await
}

/// One piece, if the disk has it.
fn take_kept(object: &Object, number: u64, parts: &mut Parts, disk: &DiskCache) -> bool {
    let Some(key) = PieceKey::large(object, number) else { return false };
    let piece = span_of_large(object, number);
    // Where all of it is wanted it is not copied.
    if let Some(buffers) = parts.buffers(&piece) {
        let is_there = disk.read_into(&key, buffers);
        if is_there {
            parts.took(piece);
        }
        return is_there;
    }
    let Some(bytes) = disk.read_now(&key) else { return false };
    parts.take(piece.start, &bytes);
    true
}

/// Where a piece lies in its object.
fn span_of_large(object: &Object, number: u64) -> Range<u64> {
    let start = number * LARGE_PIECE;
    start..(start + LARGE_PIECE).min(object.len)
}

/// Stretches from the network, one after the other.
async fn fetch_and_keep(
    object: &Object,
    parts: &mut Parts,
    disk: &Arc<DiskCache>,
    missing: Vec<Range<u64>>,
) -> Result<()> {
    for range in missing {
        fetch_and_keep_one(object, parts, disk, range).await?;
    }
    Ok(())
}

/// A stretch from the network; the pieces that it has whole are kept on disk.
async fn fetch_and_keep_one(
    object: &Object,
    parts: &mut Parts,
    disk: &Arc<DiskCache>,
    range: Range<u64>,
) -> Result<()> {
    // Who waits for what is to be kept has its own bytes before this has kept anything.
    let _announced = disk.announce();
    let mut at = range.start;
    let mut piece = Vec::new();
    let mut whole: Vec<(u64, Bytes)> = Vec::new();
    let fetched = object.fetch(range, |mut bytes| {
        parts.take(at, bytes);
        while !bytes.is_empty() {
            let Range { start: begin, end } = span_of_large(object, at / LARGE_PIECE);
            let now = bytes.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
            // Of a piece whose beginning was not wanted nothing is kept.
            if at - begin == piece.len() as u64 {
                piece.extend_from_slice(&bytes[..now]);
            }
            at += now as u64;
            bytes = &bytes[now..];
            if at == end {
                let found = std::mem::take(&mut piece);
                if found.len() as u64 == end - begin {
                    whole.push((begin / LARGE_PIECE, found.into()));
                }
            }
        }
    });
    fetched.await?;
    for (number, bytes) in whole {
        if let Some(key) = PieceKey::large(object, number) {
            disk.keep(key, bytes);
        }
    }
    Ok(())
}
