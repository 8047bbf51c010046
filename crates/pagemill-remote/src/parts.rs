//! Reads of a queue that wait for bytes of one object: [`Parts`] takes the bytes as they come, in any order of stretches, and
//! hands each read on as soon as it has all of its own.
//!
//! Invariant: each read comes back exactly once: with its bytes, or with an error when the parts are dropped without them.

use std::io;
use std::ops::Range;
use std::sync::mpsc::Sender;

use pagemill_io::{FinishedIo, QueuedIo};

use crate::error::RemoteError;
use crate::pieces::copy_part;

/// Where reads go that have come back.
pub(crate) type Finished = Sender<FinishedIo>;

/// A read, and how much of it is there.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) io: QueuedIo,
    /// How many bytes the object has for it.
    pub(crate) len: usize,
    got: usize,
}

impl Part {
    /// `len`: what there is for it before the end of the object, in a buffer that has room for it.
    pub(crate) fn new(io: QueuedIo, len: usize) -> Self {
        Self { io, len, got: 0 }
    }

    /// Where it lies in the object.
    pub(crate) fn range(&self) -> Range<u64> {
        self.io.offset..self.io.offset + self.len as u64
    }

    /// Its bytes in the buffer.
    fn buffer(&mut self) -> &mut [u8] {
        let start = self.io.range.start;
        &mut self.io.buffer[start..start + self.len]
    }

    pub(crate) fn finished(self, outcome: io::Result<usize>) -> FinishedIo {
        FinishedIo { id: self.io.id, buffer: self.io.buffer, outcome }
    }
}

/// Reads of one object, in the order of their offsets.
#[derive(Debug)]
pub(crate) struct Parts {
    parts: Vec<Part>,
    finished: Finished,
    /// Why those left do not get their bytes.
    error: Option<RemoteError>,
}

impl Parts {
    pub(crate) fn new(parts: Vec<Part>, finished: Finished) -> Self {
        Self { parts, finished, error: None }
    }

    /// From the first byte that is wanted to the last.
    pub(crate) fn range(&self) -> Range<u64> {
        let start = self.parts.iter().map(|part| part.io.offset).min().unwrap_or(0);
        let end = self.parts.iter().map(|part| part.range().end).max().unwrap_or(0);
        start..end
    }

    /// Bytes of the object, from `at` on; none come twice.
    pub(crate) fn take(&mut self, at: u64, bytes: &[u8]) {
        for part in &mut self.parts {
            let start = part.range().start;
            copy_part(part.buffer(), start, at, bytes);
        }
        self.took(at..at + bytes.len() as u64);
    }

    /// Where the bytes of a range are wanted, if each of them is, and once.
    pub(crate) fn buffers(&mut self, range: &Range<u64>) -> Option<Vec<&mut [u8]>> {
        let (mut at, mut buffers) = (range.start, Vec::new());
        for part in &mut self.parts {
            let of_part = part.range();
            let (start, end) = (of_part.start.max(range.start), of_part.end.min(range.end));
            if start >= end {
                continue;
            }
            if start != at {
                return None;
            }
            at = end;
            let within = (start - of_part.start) as usize..(end - of_part.start) as usize;
            buffers.push(&mut part.buffer()[within]);
        }
        (at == range.end).then_some(buffers)
    }

    /// The bytes of a range are where they are wanted; none come twice.
    pub(crate) fn took(&mut self, taken: Range<u64>) {
        for index in (0..self.parts.len()).rev() {
            let part = &mut self.parts[index];
            let range = part.range();
            let (start, end) = (range.start.max(taken.start), range.end.min(taken.end));
            if start >= end {
                continue;
            }
            part.got += usize::try_from(end - start).unwrap_or(0);
            if part.got >= part.len {
                let part = self.parts.remove(index);
                let len = part.len;
                // A queue that is gone wants nothing any more.
                let _ = self.finished.send(part.finished(Ok(len)));
            }
        }
    }

    /// The reads that are left do not get their bytes.
    pub(crate) fn fail(&mut self, error: RemoteError) {
        self.error = Some(error);
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        for part in self.parts.drain(..) {
            let error = match &self.error {
                Some(error) => error.clone().into(),
                None => io::Error::other("a request was dropped"),
            };
            // As above.
            let _ = self.finished.send(part.finished(Err(error)));
        }
    }
}
