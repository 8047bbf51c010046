//! An open file whose changes are recorded, and the queue such files are read and written through.
//!
//! Invariant: a change is made and recorded under the recording's lock, so that the order recorded is that in which
//! changes were made, whatever thread made them.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_io::{
    Advice, Direction, File, FileCapabilities, FinishedIo, IoQueue, QueuedIo, Residency, WriteBack,
};
use pagemill_sys::{Extent, Mapping};

use rustix::io::Errno;

use super::recording::{Change, FileNumber, Recording};

/// A file opened for writing.
#[derive(Debug)]
pub(super) struct RecordedFile {
    file: Box<dyn File>,
    number: FileNumber,
    recording: Arc<Mutex<Recording>>,
}

impl RecordedFile {
    pub(super) fn new(
        file: Box<dyn File>,
        number: FileNumber,
        recording: Arc<Mutex<Recording>>,
    ) -> Self {
        Self { file, number, recording }
    }

    fn perform<T>(&self, change: Change, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner).perform(change, act)
    }

    fn sync(&self) -> io::Result<()> {
        // What the image is about needs no real sync.
        self.perform(Change::Sync { file: self.number }, || Ok(()))
    }
}

impl File for RecordedFile {
    fn capabilities(&self) -> FileCapabilities {
        self.file.capabilities()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn advise(&self, range: Range<u64>, advice: Advice) -> io::Result<()> {
        self.file.advise(range, advice)
    }

    fn residency(&self, range: Range<u64>) -> io::Result<Residency> {
        self.file.residency(range)
    }

    fn map(&self, len: usize) -> io::Result<Mapping> {
        self.file.map(len)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let change = Change::Write { file: self.number, offset, bytes: buf.into() };
        self.perform(change, || {
            // All or nothing, so that what is recorded is what was done.
            let mut done = 0;
            while let Some(rest) = buf.get(done..).filter(|rest| !rest.is_empty()) {
                match self.file.write_at(rest, offset + done as u64) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    written => done += written?,
                }
            }
            Ok(done)
        })
    }

    fn allocate(&self, range: Range<u64>) -> io::Result<()> {
        let change = Change::Allocate { file: self.number, range: range.clone() };
        self.perform(change, || self.file.allocate(range))
    }

    fn reserve(&self, range: Range<u64>) -> io::Result<()> {
        let change = Change::Reserve { file: self.number, range: range.clone() };
        self.perform(change, || self.file.reserve(range))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.perform(Change::SetLen { file: self.number, len }, || self.file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync()
    }

    fn write_back(&self, range: Range<u64>, how: WriteBack) -> io::Result<()> {
        let change = Change::WriteBack { file: self.number };
        self.perform(change, || self.file.write_back(range, how))
    }

    fn share_blocks_of(&self, from: &dyn File) -> io::Result<()> {
        // To a power cut, blocks that come at once are blocks that were written.
        let bytes = read_range(from, 0..from.len()?)?.into();
        let change = Change::Write { file: self.number, offset: 0, bytes };
        self.perform(change, || self.file.share_blocks_of(from))
    }

    fn copy_range_of(&self, from: &dyn File, range: Range<u64>) -> io::Result<u64> {
        let bytes: Arc<[u8]> = read_range(from, range.clone())?.into();
        let len = bytes.len() as u64;
        let change = Change::Write { file: self.number, offset: range.start, bytes };
        self.perform(change, || {
            // All or nothing, so that what is recorded is what was done.
            let mut done = 0;
            while done < len {
                match self.file.copy_range_of(from, range.start + done..range.start + len) {
                    Ok(0) => return Err(Errno::INVAL.into()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    copied => done += copied?,
                }
            }
            Ok(done)
        })
    }

    fn extents(&self) -> io::Result<Vec<Extent>> {
        self.file.extents()
    }
}

/// The bytes of a range, as far as the file has them.
fn read_range(file: &dyn File, range: Range<u64>) -> io::Result<Vec<u8>> {
    let len = file.len()?.min(range.end).saturating_sub(range.start);
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, range.start + done as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => done += read?,
        }
    }
    Ok(bytes)
}

/// Reads and writes that are made when they are waited for: of several, in turn the last and the first, so that
/// they do not come in order and are the same in each run.
#[derive(Debug, Default)]
pub(super) struct InlineQueue {
    waiting: VecDeque<QueuedIo>,
    made: u64,
}

impl IoQueue for InlineQueue {
    fn submit(&mut self, read: QueuedIo) {
        self.waiting.push_back(read);
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn poll(&mut self) -> Option<FinishedIo> {
        None
    }

    fn wait(&mut self) -> io::Result<Option<FinishedIo>> {
        self.made += 1;
        let last = self.made % 2 == 1;
        let next = if last { self.waiting.pop_back() } else { self.waiting.pop_front() };
        let Some(next) = next else { return Ok(None) };
        let QueuedIo { id, file, direction, mut buffer, range, offset, .. } = next;
        let outcome = match (buffer.get_mut(range), direction) {
            (Some(part), Direction::Read) => file.read_at(part, offset),
            (Some(part), Direction::Write) => file.write_at(part, offset),
            (None, _) => Err(io::ErrorKind::InvalidInput.into()),
        };
        Ok(Some(FinishedIo { id, buffer, outcome }))
    }
}

impl Drop for InlineQueue {
    fn drop(&mut self) {
        while let Ok(Some(_)) = self.wait() {}
    }
}
