//! The records of one piece of WAL, in place: no other piece is looked at, and nothing is copied but records that lie on
//! more than one page.
//!
//! ```text
//!   │ end of a record │ record │ record │ … │ beginning of a record │
//!     head              entry                tail
//! ```
//!
//! Whatever is not as it should be ends the walk before it, and is left to who reads records one after the other: only
//! what such a reader would have handed out too is handed out here.

use pagemill_format::Lsn;
use pagemill_format::wal::{
    MAX_RECORD_BYTES, PAGE_BYTES, PageHeader, RECORD_HEADER_BYTES, RecordHeader, align_record,
};

use crate::reader::WalRecord;
use crate::reader::page_source::{Verdict, judge};
use crate::wal_source::WalSource;

/// A piece of one segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    /// Where its WAL comes from.
    pub(super) source: &'a WalSource,
    /// Whole pages.
    pub(super) bytes: &'a [u8],
    /// Where it begins.
    pub(super) start: Lsn,
    /// Another piece follows it without a gap.
    pub(super) is_whole: bool,
    /// Where the timeline of its file was left: what lies from there on counts no more.
    pub(super) left: Option<Lsn>,
}

/// What was found besides records.
#[derive(Debug, Default)]
pub(super) struct Edges {
    /// The end of a record that begins in a piece before.
    pub(super) head: Vec<u8>,
    /// Where that ends, and the first record begins; the page if it begins on a new one.
    pub(super) entry: Lsn,
    /// The timelines of the first page and of the last one.
    pub(super) timelines: (u32, u32),
    /// Where the record before the first one begins, by its header.
    pub(super) first_previous: Option<Lsn>,
    /// The beginning of a record that goes on in the next piece, and its place.
    pub(super) tail: Option<(Lsn, Vec<u8>)>,
}

/// Goes over the records of a piece; `take` says whether to go on. `None` when there is no first page, or no end of
/// the record on it.
pub(super) fn walk(
    piece: Piece<'_>,
    take: &mut impl FnMut(&WalRecord<'_>) -> bool,
) -> Option<Edges> {
    let mut walk = Walk { piece, timeline: 0, scratch: Vec::new(), edges: Edges::default() };
    let mut at = walk.pass_head()?;
    let mut previous = None;
    while let Some(found) = walk.record(at, previous) {
        let (record, next) = found;
        if !take(&record) {
            break;
        }
        let (lsn, before, is_switch) = (record.lsn, record.header.prev, record.header.is_switch());
        walk.edges.first_previous.get_or_insert(before);
        previous = Some(lsn);
        at = next;
        if is_switch {
            break;
        }
    }
    walk.edges.timelines.1 = walk.timeline;
    Some(walk.edges)
}

struct Walk<'a> {
    piece: Piece<'a>,
    /// Of the last page that was looked at.
    timeline: u32,
    scratch: Vec<u8>,
    edges: Edges,
}

/// Where a record that lies on several pages ends.
enum Gathered {
    At(usize),
    InNextPiece,
    Nowhere,
}

impl Walk<'_> {
    /// The header of the page at this offset, if it belongs there.
    fn page(&mut self, offset: usize) -> Option<PageHeader> {
        let bytes = self.piece.bytes.get(offset..offset + PAGE_BYTES)?;
        let page = Lsn(self.piece.start.0 + offset as u64);
        match judge(self.piece.source, self.timeline, page, bytes) {
            Verdict::Belongs(header) => {
                self.timeline = header.timeline;
                Some(header)
            }
            Verdict::Ends(_) | Verdict::Bad(_) => None,
        }
    }

    /// Takes the end of a record that began before; gives the offset behind it.
    fn pass_head(&mut self) -> Option<usize> {
        let first = self.page(0)?;
        self.edges.timelines.0 = first.timeline;
        self.edges.entry = self.piece.start;
        if !first.first_is_continuation {
            return Some(0);
        }
        let wanted = first.remaining as usize;
        let (mut offset, mut header) = (0, first);
        loop {
            let missing = wanted - self.edges.head.len();
            if !header.first_is_continuation || header.remaining as usize != missing {
                return None;
            }
            let from = offset + header.len();
            let to = (offset + PAGE_BYTES).min(from + missing);
            self.edges.head.extend_from_slice(self.piece.bytes.get(from..to)?);
            if self.edges.head.len() == wanted {
                self.edges.entry = align_record(Lsn(self.piece.start.0 + to as u64));
                return Some((self.edges.entry.0 - self.piece.start.0) as usize);
            }
            offset += PAGE_BYTES;
            header = self.page(offset).filter(|header| !header.first_is_overwrite)?;
        }
    }

    /// The record at an offset, and the offset of the next one.
    #[inline]
    fn record(&mut self, at: usize, previous: Option<Lsn>) -> Option<(WalRecord<'_>, usize)> {
        let is_on_new_page = at.is_multiple_of(PAGE_BYTES);
        let at = match is_on_new_page {
            true => at + self.page(at).filter(|header| !header.first_is_continuation)?.len(),
            false => at,
        };
        let piece = self.piece;
        let lsn = Lsn(piece.start.0 + at as u64);
        let len = u32::from_le_bytes(*piece.bytes.get(at..)?.first_chunk()?) as usize;
        let is_left = piece.left.is_some_and(|left| left <= lsn);
        if is_left || !(RECORD_HEADER_BYTES..=MAX_RECORD_BYTES).contains(&len) {
            return None;
        }
        let end = at + len;
        let is_on_one_page = end <= at - at % PAGE_BYTES + PAGE_BYTES;
        let end = if is_on_one_page { end } else { self.gathered(at, len)? };
        let bytes = if is_on_one_page { piece.bytes.get(at..end)? } else { &self.scratch[..] };
        let header = sound_header(bytes, lsn, previous)?;
        let mut end = align_record(Lsn(piece.start.0 + end as u64));
        if header.is_switch() {
            end = piece.source.directory().segment_of(Lsn(end.0.saturating_sub(1))).end();
        }
        let version = piece.source.version();
        let next = (end.0 - piece.start.0) as usize;
        Some((WalRecord { lsn, end, header, bytes, version }, next))
    }

    /// Puts a record on several pages together, in `scratch`, or keeps its beginning.
    fn gathered(&mut self, at: usize, len: usize) -> Option<usize> {
        match self.gather(at, len) {
            Gathered::At(end) => Some(end),
            Gathered::InNextPiece => {
                let lsn = Lsn(self.piece.start.0 + at as u64);
                self.edges.tail = Some((lsn, std::mem::take(&mut self.scratch)));
                None
            }
            Gathered::Nowhere => None,
        }
    }

    fn gather(&mut self, at: usize, len: usize) -> Gathered {
        let mut page = at - at % PAGE_BYTES;
        self.scratch.clear();
        self.scratch.extend_from_slice(&self.piece.bytes[at..page + PAGE_BYTES]);
        loop {
            page += PAGE_BYTES;
            if page >= self.piece.bytes.len() {
                let goes_on = self.piece.is_whole;
                return if goes_on { Gathered::InNextPiece } else { Gathered::Nowhere };
            }
            let missing = len - self.scratch.len();
            let Some(header) = self.page(page) else { return Gathered::Nowhere };
            let goes_on = header.first_is_continuation && header.remaining as usize == missing;
            if header.first_is_overwrite || !goes_on {
                return Gathered::Nowhere;
            }
            let from = page + header.len();
            let to = (page + PAGE_BYTES).min(from + missing);
            self.scratch.extend_from_slice(&self.piece.bytes[from..to]);
            if self.scratch.len() == len {
                return Gathered::At(to);
            }
        }
    }
}

/// The header of a whole record whose CRC is right, behind that at `previous`.
#[inline]
pub(super) fn sound_header(bytes: &[u8], lsn: Lsn, previous: Option<Lsn>) -> Option<RecordHeader> {
    let header = RecordHeader::parse(bytes).ok()?;
    let follows = previous.map_or(header.prev < lsn, |previous| header.prev == previous);
    let is_sound = follows && header.resource_manager.is_valid() && header.check_crc(bytes).is_ok();
    is_sound.then_some(header)
}
