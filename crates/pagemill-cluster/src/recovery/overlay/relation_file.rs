//! [`RelationFile`]: a segment of a fork with redone pages over those of its file.
//!
//! Blocks without records are read from the file, neighbors in one call; behind its end, and behind where a truncation cut
//! it, blocks that nobody wrote are zeros, as a server that extends a file leaves them.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use pagemill_format::{BlockBytes, BlockNumber, SEGMENT_BLOCKS};
use pagemill_io::File;
use pagemill_wal::{BlockKey, ForkHistory, ForkKey};

use super::composed_file::{Composition, read_page, read_pages};
use super::page_redo::{PageRedo, of_index};

/// What redoing a record takes, about, which waits for memory most of the time.
const TIME_OF_A_RECORD: Duration = Duration::from_nanos(400);

/// Where the pages of a segment come from.
#[derive(Debug)]
pub(super) struct RelationFile {
    pub(super) redo: Arc<PageRedo>,
    pub(super) key: ForkKey,
    pub(super) segment: u32,
    /// The file, if there is one.
    pub(super) base: Option<Box<dyn File>>,
    pub(super) extent: SegmentExtent,
}

/// How long a segment is, and how much of its file counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentExtent {
    /// Blocks of the segment after redo.
    pub(super) blocks: u32,
    /// Blocks of the file that count.
    pub(super) base_blocks: u32,
}

impl SegmentExtent {
    /// The extent of a segment whose file has so many whole blocks.
    pub(super) fn of(history: &ForkHistory, segment: u32, file_blocks: u32) -> Self {
        let start = segment.saturating_mul(SEGMENT_BLOCKS);
        let within = |blocks: u32| blocks.saturating_sub(start).min(SEGMENT_BLOCKS);
        let file_blocks = file_blocks.min(SEGMENT_BLOCKS);
        let most = file_blocks.min(within(history.most_blocks()));
        let blocks = most.max(within(history.least_blocks()));
        let base_blocks = file_blocks.min(within(history.base_blocks())).min(blocks);
        Self { blocks, base_blocks }
    }
}

impl RelationFile {
    fn history(&self) -> Option<&ForkHistory> {
        self.redo.index().fork(self.key)
    }

    /// Reads a page of the file as it lies.
    fn read_base(&self, block: u32, page: &mut BlockBytes) -> io::Result<()> {
        let base = self.base.as_deref().filter(|_| block < self.extent.base_blocks);
        read_page(base, block, page)
    }
}

impl Composition for RelationFile {
    fn pages(&self) -> u32 {
        self.extent.blocks
    }

    fn making_time(&self, pages: Range<u32>) -> Duration {
        let start = self.segment.saturating_mul(SEGMENT_BLOCKS);
        let blocks = start.saturating_add(pages.start)..start.saturating_add(pages.end);
        let mut records = 0_u32;
        if let Some(history) = self.history() {
            // An estimate only: an index that cannot be read is reported by the redo of the first page.
            let _ = history.visit_touched(blocks, |_| records = records.saturating_add(1));
        }
        TIME_OF_A_RECORD.saturating_mul(records)
    }

    fn fill(&self, first: u32, pages: &mut [BlockBytes]) -> io::Result<usize> {
        let start = self.segment.saturating_mul(SEGMENT_BLOCKS);
        let block = BlockNumber(start.saturating_add(first));
        let history = self.history();
        let entries = match history {
            Some(history) => history.entries_of(block).map_err(of_index)?,
            None => Cow::default(),
        };
        if !entries.is_empty() {
            let page = &mut pages[0];
            let base = |page: &mut BlockBytes| self.read_base(first, page);
            self.redo.page(BlockKey { fork: self.key, block }, &entries, base, page)?;
            return Ok(1);
        }
        let next = match history {
            Some(history) => history.next_touched(block).map_err(of_index)?,
            None => None,
        };
        let run = next.map_or(u32::MAX, |next| next.0 - block.0);
        let run = pages.len().min(run as usize);
        let pages = &mut pages[..run];
        let of_base = self.extent.base_blocks.saturating_sub(first) as usize;
        match self.base.as_deref() {
            Some(base) if of_base > 0 => {
                let wanted = run.min(of_base);
                match read_pages(base, first, &mut pages[..wanted])? {
                    // The file was longer when it was opened.
                    0 => Err(io::ErrorKind::UnexpectedEof.into()),
                    read => Ok(read),
                }
            }
            _ => {
                pages.iter_mut().for_each(|page| page.fill(0));
                Ok(run)
            }
        }
    }
}
