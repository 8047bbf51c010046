//! The end of WAL as a server finds it, and what lies behind it.
//!
//! A crash leaves little behind the end: pages of the last buffers that were written out of order, or what an
//! earlier crash left at the same places. A whole segment is more than that: WAL was damaged or lost. Where a
//! segment's file is not there at all, a later one that was begun says so already.

use pagemill_format::Lsn;
use pagemill_format::wal::SegmentName;

use super::page_source::Verdict;
use super::{EndOfWal, EndRule, FindingAt, ReadStep, WalReader};
use crate::error::Result;

/// How many segments behind the end are looked at: those that were recycled have files too, and hold nothing yet.
const SEGMENTS_LOOKED_AT: usize = 64;

impl WalReader {
    /// Ends where this was found.
    pub(super) fn end_of_recovery(&mut self, finding: FindingAt) -> Result<()> {
        let FindingAt { lsn, page, what } = finding;
        let number = self.directory().segment_of(page).number;
        let is_missing = !self.pages.has_segment(number)? || self.pages.left_before(lsn).is_some();
        let behind = self.pages.segments_behind(page)?;
        let looked_at = behind.iter().take(SEGMENTS_LOOKED_AT).copied();
        let (segment_behind, missing) = if is_missing {
            let begun: Vec<_> = looked_at.filter(|segment| self.is_begun(*segment)).collect();
            let missing = begun.last().map(|last| self.missing(page, *last)).transpose()?;
            (begun.first().copied(), missing.unwrap_or_default())
        } else {
            ({ looked_at }.find(|segment| self.is_whole(*segment)), Vec::new())
        };
        let page_behind = self.pages.next_that_belongs(page)?;
        let lsn = self.previous_end.unwrap_or(self.next);
        self.end = Some(EndOfWal { lsn, reason: what, page_behind, segment_behind, missing });
        Ok(())
    }

    /// The segments from that with `page` on, before `last`, that there are no files of.
    fn missing(&mut self, page: Lsn, last: SegmentName) -> Result<Vec<SegmentName>> {
        let first = self.directory().segment_of(page);
        let timeline = |segment: SegmentName| match self.pages.history() {
            Some(history) => history.timeline_at(Lsn(segment.end().0 - 1)),
            None => segment.timeline,
        };
        let all = (first.number..last.number).map(|number| SegmentName { number, ..first });
        let named: Vec<_> =
            all.map(|segment| SegmentName { timeline: timeline(segment), ..segment }).collect();
        let mut missing = Vec::new();
        for segment in named {
            if segment.number == first.number || !self.pages.has_segment(segment.number)? {
                missing.push(segment);
            }
        }
        Ok(missing)
    }

    /// True when the first page of a segment belongs to this WAL. What cannot be read tells nothing.
    fn is_begun(&self, segment: SegmentName) -> bool {
        let mut pages = self.pages.again();
        matches!(pages.look(segment.start()), Ok(Verdict::Belongs(_)))
    }

    /// True when all records of a segment can be read, one after the other.
    fn is_whole(&self, segment: SegmentName) -> bool {
        let mut reader = Self::new(self.pages.again(), segment.start(), EndRule::Recovery);
        let Ok(first) = reader.first_record(segment.start()) else { return false };
        reader.next = first;
        while reader.next < segment.end() {
            match reader.read_at(reader.next) {
                Ok(ReadStep::Record(lsn, _, end)) => {
                    reader.previous = Some(lsn);
                    reader.next = end;
                }
                Ok(ReadStep::Overwritten(_, page)) => reader.next = page,
                // A record that goes on in the next segment, which need not be there.
                Ok(
                    ReadStep::End(FindingAt { page, .. }) | ReadStep::Bad(FindingAt { page, .. }),
                ) => {
                    return page >= segment.end();
                }
                Err(_) => return false,
            }
        }
        true
    }
}
