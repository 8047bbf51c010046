//! [`FileWindow`]: a file that is a stretch of another one, such as a member of an archive.
//!
//! Where it begins need not be at a multiple of anything, so it is neither mapped nor read past the page cache.
//!
//! Invariant: no read goes past the window, whatever it asks for.

use std::any::Any;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::sync::Arc;

use crate::capabilities::FileCapabilities;
use crate::seam::{Advice, File, Residency};

/// A stretch of a file. Clones share the open file.
#[derive(Debug, Clone)]
pub struct FileWindow {
    file: Arc<dyn File>,
    /// Where it begins in the file, in bytes.
    start: u64,
    /// Bytes of it.
    len: u64,
}

impl FileWindow {
    /// The `len` bytes of a file from `start` on; the file may end before.
    pub fn new(file: Arc<dyn File>, start: u64, len: u64) -> Self {
        // What lies behind the last possible offset is nowhere.
        Self { file, start, len: len.min(u64::MAX - start) }
    }

    /// What it is a stretch of.
    pub(crate) fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.len
    }

    /// How much of a buffer of `wanted` bytes can be filled from `offset` on.
    pub(crate) fn available(&self, wanted: usize, offset: u64) -> usize {
        let left = self.len.saturating_sub(offset);
        usize::try_from(left).map_or(wanted, |left| left.min(wanted))
    }

    /// A range of the window as one of the file; an empty one stands for all of it.
    fn in_file(&self, range: &Range<u64>) -> Range<u64> {
        let range = if range.is_empty() { 0..self.len } else { range.clone() };
        self.start + range.start.min(self.len)..self.start + range.end.min(self.len)
    }
}

impl File for FileWindow {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.available(buf.len(), offset) {
            0 => Ok(0),
            available => self.file.read_at(&mut buf[..available], self.start + offset),
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let wanted = bufs.iter().map(|buf| buf.len()).sum();
        if wanted > 0 && self.available(wanted, offset) == wanted {
            return self.file.read_vectored_at(bufs, self.start + offset);
        }
        match bufs.iter_mut().find(|buf| !buf.is_empty()) {
            Some(buf) => self.read_at(buf, offset),
            None => Ok(0),
        }
    }

    fn seek_and_read(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.available(buf.len(), offset) {
            0 => Ok(0),
            available => self.file.seek_and_read(&mut buf[..available], self.start + offset),
        }
    }

    fn advise(&self, range: Range<u64>, advice: Advice) -> io::Result<()> {
        match self.len {
            0 => Ok(()),
            _ => self.file.advise(self.in_file(&range), advice),
        }
    }

    /// Whole pages of memory are counted, which hold bytes of neighbors too: less than all of them is less than all of the
    /// range.
    fn residency(&self, range: Range<u64>) -> io::Result<Residency> {
        let bytes = range.end.saturating_sub(range.start);
        let page = rustix::param::page_size() as u64;
        let within = self.in_file(&range);
        let pages = within.start / page * page..within.end.next_multiple_of(page);
        let around = (pages.end - pages.start).max(1);
        let found = self.file.residency(pages)?;
        let cached = u128::from(found.cached) * u128::from(bytes) / u128::from(around);
        Ok(Residency {
            cached: u64::try_from(cached).map_or(bytes, |cached| cached.min(bytes)),
            bytes,
        })
    }

    fn capabilities(&self) -> FileCapabilities {
        let FileCapabilities { residency, advise, .. } = self.file.capabilities();
        FileCapabilities { residency, advise, ..FileCapabilities::default() }
    }

    fn is_own(&self) -> bool {
        self.file.is_own()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}
