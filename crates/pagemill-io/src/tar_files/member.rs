//! [`Member`]: a file that is a window into an archive.
//!
//! Invariant: no read goes past the window, whatever it asks for.

use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::sync::Arc;

use crate::capabilities::FileCapabilities;
use crate::seam::{Advice, File, Residency};

/// A file in an archive. Clones share the archive's open file.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) archive: Arc<dyn File>,
    /// Where the contents begin in the archive, in bytes.
    pub(super) start: u64,
    /// Bytes of contents.
    pub(super) len: u64,
}

impl Member {
    pub(super) fn bytes(&self) -> u64 {
        self.len
    }

    /// How much of a buffer of `wanted` bytes can be filled from `offset` on.
    fn available(&self, wanted: usize, offset: u64) -> usize {
        let left = self.len.saturating_sub(offset);
        usize::try_from(left).map_or(wanted, |left| left.min(wanted))
    }

    /// A range of the member as one of the archive; an empty one stands for all of it.
    fn in_archive(&self, range: &Range<u64>) -> Range<u64> {
        let range = if range.is_empty() { 0..self.len } else { range.clone() };
        self.start + range.start.min(self.len)..self.start + range.end.min(self.len)
    }
}

impl File for Member {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.available(buf.len(), offset) {
            0 => Ok(0),
            available => self.archive.read_at(&mut buf[..available], self.start + offset),
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let wanted = bufs.iter().map(|buf| buf.len()).sum();
        if wanted > 0 && self.available(wanted, offset) == wanted {
            return self.archive.read_vectored_at(bufs, self.start + offset);
        }
        match bufs.iter_mut().find(|buf| !buf.is_empty()) {
            Some(buf) => self.read_at(buf, offset),
            None => Ok(0),
        }
    }

    fn seek_and_read(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.available(buf.len(), offset) {
            0 => Ok(0),
            available => self.archive.seek_and_read(&mut buf[..available], self.start + offset),
        }
    }

    fn advise(&self, range: Range<u64>, advice: Advice) -> io::Result<()> {
        match self.len {
            0 => Ok(()),
            _ => self.archive.advise(self.in_archive(&range), advice),
        }
    }

    /// Whole pages of memory are counted, which hold bytes of neighbors too: less than all of them is less than all of the
    /// range.
    fn residency(&self, range: Range<u64>) -> io::Result<Residency> {
        let bytes = range.end.saturating_sub(range.start);
        let page = rustix::param::page_size() as u64;
        let within = self.in_archive(&range);
        let pages = within.start / page * page..within.end.next_multiple_of(page);
        let around = (pages.end - pages.start).max(1);
        let found = self.archive.residency(pages)?;
        let cached = u128::from(found.cached) * u128::from(bytes) / u128::from(around);
        Ok(Residency {
            cached: u64::try_from(cached).map_or(bytes, |cached| cached.min(bytes)),
            bytes,
        })
    }

    fn capabilities(&self) -> FileCapabilities {
        let FileCapabilities { residency, advise, .. } = self.archive.capabilities();
        FileCapabilities { residency, advise, ..FileCapabilities::default() }
    }

    fn is_own(&self) -> bool {
        self.archive.is_own()
    }
}
