//! [`WindowQueue`]: the queue of a file system that knows no windows, for windows into its files.
//!
//! A read of a window goes on its way as one of the file; what is no window goes as it is.
//!
//! Invariant: no read goes past the window.

use std::io;

use crate::file_window::FileWindow;
use crate::seam::{Direction, FinishedIo, IoQueue, QueuedIo};

/// Reads of windows, by a queue that reads files.
#[derive(Debug)]
pub(crate) struct WindowQueue {
    below: Box<dyn IoQueue>,
    /// Reads at the end of a window, for which there is nothing.
    ended: Vec<FinishedIo>,
}

impl WindowQueue {
    pub(crate) fn new(below: Box<dyn IoQueue>) -> Self {
        Self { below, ended: Vec::new() }
    }
}

impl IoQueue for WindowQueue {
    fn submit(&mut self, read: QueuedIo) {
        let file = read.file.clone();
        let window = file.as_any().and_then(|file| file.downcast_ref::<FileWindow>());
        let Some(window) = window.filter(|_| read.direction == Direction::Read) else {
            return self.below.submit(read);
        };
        let QueuedIo { id, buffer, range, offset, .. } = read;
        let available = window.available(range.len(), offset);
        if available == 0 {
            return self.ended.push(FinishedIo { id, buffer, outcome: Ok(0) });
        }
        self.below.submit(QueuedIo {
            id,
            file: window.file().clone(),
            direction: read.direction,
            buffer,
            range: range.start..range.start + available,
            offset: window.start() + offset,
            force_async: read.force_async,
            lane: read.lane,
        });
    }

    fn flush(&mut self) -> io::Result<()> {
        self.below.flush()
    }

    fn poll(&mut self) -> Option<FinishedIo> {
        self.ended.pop().or_else(|| self.below.poll())
    }

    fn wait(&mut self) -> io::Result<Option<FinishedIo>> {
        match self.ended.pop() {
            Some(ended) => Ok(Some(ended)),
            None => self.below.wait(),
        }
    }

    fn ring_calls(&self) -> u64 {
        self.below.ring_calls()
    }
}
