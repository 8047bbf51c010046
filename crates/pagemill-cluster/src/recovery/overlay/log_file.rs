//! [`LogFile`]: a segment of a log of transactions, what WAL says laid over what its file says.
//!
//! Source: `src/backend/access/transam/slru.c`, PostgreSQL 14 to 18.

use std::io;
use std::sync::Arc;

use pagemill_format::BlockBytes;
use pagemill_format::slru::PAGES_PER_SEGMENT;
use pagemill_io::File;
use pagemill_wal::{LogPages, WalIndex};

use super::composed_file::{Composition, read_page};
use super::layout::Log;

/// Where the pages of a log come from.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) index: Arc<WalIndex>,
    pub(super) log: Log,
    pub(super) segment: u32,
    /// The file, if there is one.
    pub(super) base: Option<Box<dyn File>>,
    pub(super) pages: u32,
}

/// What WAL says of a log.
pub(super) fn pages_of(index: &WalIndex, log: Log) -> &LogPages {
    match log {
        Log::Statuses => &index.transactions.statuses,
        Log::Offsets => &index.transactions.offsets,
        Log::Members => &index.transactions.members,
    }
}

/// The pages of a segment that WAL says something of: one more than the last, counted within the segment.
pub(super) fn known_pages(index: &WalIndex, log: Log, segment: u32) -> u32 {
    let first = segment.saturating_mul(PAGES_PER_SEGMENT);
    let of_segment = |page: &u32| (first..first.saturating_add(PAGES_PER_SEGMENT)).contains(page);
    let last = pages_of(index, log).numbers().rev().find(of_segment);
    last.map_or(0, |last| last - first + 1)
}

impl Composition for LogFile {
    fn pages(&self) -> u32 {
        self.pages
    }

    fn fill(&self, first: u32, pages: &mut [BlockBytes]) -> io::Result<usize> {
        let Some(page) = pages.first_mut() else { return Ok(0) };
        read_page(self.base.as_deref(), first, page)?;
        let number = self.segment.saturating_mul(PAGES_PER_SEGMENT).saturating_add(first);
        pages_of(&self.index, self.log).lay_over(number, page);
        Ok(1)
    }
}
