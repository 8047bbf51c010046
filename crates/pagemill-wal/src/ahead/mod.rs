//! [`ReadAhead`]: what WAL does, found out piece by piece on all cores, and handed out as if it were read record by record.
//!
//! A piece is read without those before it, so what it says holds only if they lead to it: the record before ends where
//! the first of the piece begins, and is the one that this names; the timelines agree. Then its records are those that
//! [`WalReader`](crate::WalReader) would read next. Where a piece does not fit, or ends before its end, the reader goes on
//! record by record to the next piece. So nothing here decides where WAL ends, or what is wrong with it.
//!
//! Invariant: what is handed out begins where the reader is.

mod piece;
mod pieces;
mod plain_records;

use std::collections::VecDeque;

use pagemill_format::Lsn;
use pagemill_io::Storage;

use crate::wal_source::{Listing, WalSource};
use pieces::{OwnRecord, Pieces, Run, Summary};
pub(crate) use plain_records::ForkHasher;
pub use plain_records::{PlainEnd, PlainRecords, RecordPlace};

/// Where a reader is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    /// Where the next record begins, or the page it begins on.
    pub(crate) next: Lsn,
    /// Where the record before begins.
    pub(crate) previous: Lsn,
    /// The timeline of the last page.
    pub(crate) timeline: u32,
    /// The segment that was read last.
    pub(crate) segment: Option<u64>,
}

/// How far a reader comes by what was handed out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    pub(crate) next: Lsn,
    pub(crate) previous: Lsn,
    /// The piece that was entered, if one was.
    pub(crate) entered: Option<Entered>,
}

/// A piece that is gone on with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entered {
    /// Its segment.
    pub(crate) segment: u64,
    /// The timeline of its last page.
    pub(crate) timeline: u32,
    /// The timeline of its file.
    pub(crate) file_timeline: u32,
}

/// What a reader goes on with.
#[derive(Debug)]
pub(crate) enum Stride {
    /// Many records.
    Plain(PlainRecords),
    /// One.
    One { lsn: Lsn, end: Lsn, header: pagemill_format::wal::RecordHeader, bytes: Vec<u8> },
}

/// Reads ahead of a reader.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    pieces: Pieces,
    /// The last piece that was asked for.
    asked: u64,
    /// What is left of it.
    runs: VecDeque<Run>,
    /// The beginning of a record that goes on behind it.
    tail: Option<(Lsn, Vec<u8>)>,
    /// Where what is left begins.
    expected: Lsn,
}

impl ReadAhead {
    /// For a reader that is at `next`; `None` where pieces would be too large.
    pub(crate) fn new(
        storage: &Storage,
        source: &WalSource,
        listing: &Listing,
        next: Lsn,
    ) -> Option<Self> {
        let first = source.directory().segment_of(next).number;
        let pieces = Pieces::new(storage, source, listing, first)?;
        // The piece that the reader is in has begun before it.
        let asked = pieces.number_of(next);
        Some(Self { pieces, asked, runs: VecDeque::new(), tail: None, expected: next })
    }

    /// What a reader that stands here goes on with; `None` when it has to read the next record itself.
    pub(crate) fn next(&mut self, standing: Standing) -> Option<(Stride, Progress)> {
        if standing.next != self.expected {
            (self.runs, self.tail) = (VecDeque::new(), None);
        }
        if let Some(run) = self.runs.pop_front() {
            return self.hand_out(run, None);
        }
        if let Some((lsn, beginning)) = self.tail.take() {
            return self.stitch(standing, lsn, beginning);
        }
        let number = self.pieces.number_of(standing.next);
        let summary = self.ask(number)?;
        let (segment, begins_it) = self.pieces.segment_of(number);
        let is_entered = begins_it || standing.segment == Some(segment);
        let fits = summary.edges.entry == standing.next
            && summary.edges.first_previous == Some(standing.previous)
            && summary.edges.timelines.0 >= standing.timeline;
        if !fits || !is_entered {
            return None;
        }
        let entered = self.enter(number, summary);
        let run = self.runs.pop_front()?;
        self.hand_out(run, Some(entered))
    }

    /// A piece that was not asked for yet.
    fn ask(&mut self, number: u64) -> Option<Summary> {
        if number <= self.asked {
            return None;
        }
        self.asked = number;
        self.pieces.summary(number)
    }

    fn enter(&mut self, number: u64, summary: Summary) -> Entered {
        let Summary { edges, runs, file_timeline } = summary;
        self.runs = runs.into();
        self.tail = edges.tail;
        let segment = self.pieces.segment_of(number).0;
        Entered { segment, timeline: edges.timelines.1, file_timeline }
    }

    /// Puts the record together that lies on two pieces.
    fn stitch(
        &mut self,
        standing: Standing,
        lsn: Lsn,
        mut bytes: Vec<u8>,
    ) -> Option<(Stride, Progress)> {
        let number = self.pieces.number_of(lsn) + 1;
        let mut summary = self.ask(number)?;
        if summary.edges.timelines.0 < standing.timeline {
            return None;
        }
        bytes.append(&mut summary.edges.head);
        let header = piece::sound_header(&bytes, lsn, Some(standing.previous))?;
        let end = summary.edges.entry;
        let is_whole = header.total_len as usize == bytes.len();
        let follows = summary.edges.first_previous.is_none_or(|previous| previous == lsn);
        if !is_whole || !follows || header.is_switch() || pieces::names_given_up(&header) {
            return None;
        }
        let entered = self.enter(number, summary);
        self.hand_out(Run::One(OwnRecord { lsn, end, header, bytes }), Some(entered))
    }

    fn hand_out(&mut self, run: Run, entered: Option<Entered>) -> Option<(Stride, Progress)> {
        let (stride, previous, next) = match run {
            Run::Plain(records) => {
                let last = *records.places().last()?;
                (Stride::Plain(records), last.lsn, last.end)
            }
            Run::One(OwnRecord { lsn, end, header, bytes }) => {
                (Stride::One { lsn, end, header, bytes }, lsn, end)
            }
        };
        self.expected = next;
        Some((stride, Progress { next, previous, entered }))
    }
}
