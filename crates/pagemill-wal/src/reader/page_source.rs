//! The pages of WAL by their address, read in large pieces, and what each of them is.
//!
//! Which file a segment is read from is the [`WalSource`]'s rule; it is chosen once when the first page of the
//! segment is wanted, and stays chosen.
//!
//! Invariant: what is looked at last is in memory, and [`bytes`](PageSource::bytes) gives it.

use std::path::PathBuf;
use std::sync::Arc;

use pagemill_format::Lsn;
use pagemill_format::backup::TimelineHistory;
use pagemill_format::wal::{self, PAGE_BYTES, PageHeader, SHORT_HEADER_BYTES, SegmentName};
use pagemill_io::{File, Storage};

use crate::ahead::{Entered, ReadAhead};
use crate::error::{MissingCause, Result};
use crate::finding::Finding;
use crate::wal_directory::WalDirectory;
use crate::wal_source::{Listing, SegmentBytes, WalSource};

/// Bytes read at once.
const CHUNK_BYTES: usize = 512 << 10;

/// How far behind the end of WAL is looked for more.
const SEARCHED_BYTES: u64 = 16 << 20;

/// What a page is.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The page that belongs there.
    Belongs(PageHeader),
    /// None was written there: WAL ends.
    Ends(MissingCause),
    /// Neither.
    Bad(Finding),
}

/// Reads pages.
#[derive(Debug)]
pub(super) struct PageSource {
    storage: Storage,
    source: WalSource,
    /// The files for each segment, once they were listed.
    listing: Option<Arc<Listing>>,
    open: Option<OpenSegment>,
    /// The last segment of which somebody else has read the first page.
    entered: Option<u64>,
    chunk: Vec<u8>,
    chunk_start: Lsn,
    /// The timeline of the last page that belonged; later pages are of this or a higher one.
    timeline: u32,
    /// The timeline of the last file that was read; later ones are of this or a higher one.
    file_timeline: u32,
    partial_files: Vec<PathBuf>,
}

/// The segment that is being read.
#[derive(Debug)]
struct OpenSegment {
    number: u64,
    timeline: u32,
    path: PathBuf,
    /// `None` when there is no such file, or its bytes are the chunk.
    file: Option<Box<dyn File>>,
}

impl PageSource {
    pub(super) fn new(storage: &Storage, source: &WalSource) -> Self {
        Self {
            storage: storage.clone(),
            source: source.clone(),
            listing: None,
            open: None,
            entered: None,
            chunk: Vec::new(),
            chunk_start: Lsn(0),
            timeline: 0,
            file_timeline: 0,
            partial_files: Vec::new(),
        }
    }

    /// Another look at the same files, that expects the same timelines.
    pub(super) fn again(&self) -> Self {
        Self {
            listing: self.listing.clone(),
            timeline: self.timeline,
            file_timeline: self.file_timeline,
            ..Self::new(&self.storage, &self.source)
        }
    }

    pub(super) fn directory(&self) -> &WalDirectory {
        self.source.directory()
    }

    /// The timelines that are followed.
    pub(super) fn history(&self) -> Option<&TimelineHistory> {
        self.source.history()
    }

    /// The segment that was read last.
    pub(super) fn segment(&self) -> Option<u64> {
        let open = self.open.as_ref().map(|open| open.number);
        open.max(self.entered)
    }

    /// The timeline of the last page that belonged.
    pub(super) fn timeline(&self) -> u32 {
        self.timeline
    }

    /// Somebody else has read on, with the same rules.
    pub(super) fn was_passed(&mut self, entered: Entered) {
        let Entered { segment, timeline, file_timeline } = entered;
        self.entered = Some(segment);
        self.timeline = timeline;
        self.file_timeline = file_timeline.max(self.file_timeline);
    }

    /// Who reads ahead of a reader that is at `next`.
    pub(super) fn read_ahead(&mut self, next: Lsn) -> Result<Option<ReadAhead>> {
        self.list_files()?;
        let listing = self.listing.as_ref();
        Ok(listing.and_then(|all| ReadAhead::new(&self.storage, &self.source, all, next)))
    }

    /// The partial files that were read.
    pub(super) fn partial_files(&self) -> &[PathBuf] {
        &self.partial_files
    }

    /// The file that the byte at `lsn` is read from, or would be.
    pub(super) fn file_of(&self, lsn: Lsn) -> PathBuf {
        let segment = self.directory().segment_of(lsn);
        if let Some(open) = self.open.as_ref().filter(|open| open.number == segment.number) {
            return open.path.clone();
        }
        let chosen = self
            .listing
            .as_ref()
            .and_then(|listing| self.source.choose(listing, segment.number, self.file_timeline));
        chosen.map_or_else(|| self.directory().file_of(segment), |chosen| chosen.path.clone())
    }

    /// The bytes of the page at this address, if it was looked at last; fewer at the end of a file.
    pub(super) fn bytes(&self, page: Lsn) -> &[u8] {
        let from =
            page.0.checked_sub(self.chunk_start.0).and_then(|from| usize::try_from(from).ok());
        let rest = from.and_then(|from| self.chunk.get(from..)).unwrap_or_default();
        rest.get(..PAGE_BYTES).unwrap_or(rest)
    }

    /// Where the timeline of the file with this page was left, if `lsn` is not before that: what lies there is no
    /// part of the way.
    pub(super) fn left_before(&self, lsn: Lsn) -> Option<Lsn> {
        let left = self.source.left_at(self.open.as_ref()?.timeline)?;
        (left <= lsn).then_some(left)
    }

    /// True when there is a file for this segment.
    pub(super) fn has_segment(&mut self, number: u64) -> Result<bool> {
        let file_timeline = self.file_timeline;
        self.list_files()?;
        let listing = self.listing.as_ref();
        Ok(listing.is_some_and(|all| self.source.choose(all, number, file_timeline).is_some()))
    }

    /// The first page behind this one that is where it belongs, in the rest of the segment or at the
    /// beginning of the next.
    pub(super) fn next_that_belongs(&mut self, page: Lsn) -> Result<Option<Lsn>> {
        let segment_end = self.directory().segment_of(page).end().0;
        let last = segment_end.min(page.0.saturating_add(SEARCHED_BYTES));
        for at in (page.0..=last).step_by(PAGE_BYTES).skip(1) {
            if matches!(self.look(Lsn(at))?, Verdict::Belongs(_)) {
                return Ok(Some(Lsn(at)));
            }
        }
        Ok(None)
    }

    /// The segments behind that with `page` of which there are whole files, ascending.
    pub(super) fn segments_behind(&mut self, page: Lsn) -> Result<Vec<SegmentName>> {
        self.list_files()?;
        let segment = self.directory().segment_of(page);
        let listing = self.listing.as_ref();
        let numbers = listing.map(|all| all.behind(segment.number).collect::<Vec<_>>());
        Ok(numbers
            .unwrap_or_default()
            .iter()
            .map(|&number| SegmentName { number, ..segment })
            .collect())
    }

    /// As [`look`](Self::look), but of a segment that is entered in its midst the first page is looked at before,
    /// as a server does.
    pub(super) fn enter(&mut self, page: Lsn) -> Result<Verdict> {
        let segment = self.directory().segment_of(page);
        if self.segment() != Some(segment.number) && page != segment.start() {
            match self.look(segment.start())? {
                Verdict::Belongs(_) => {}
                other => return Ok(other),
            }
        }
        self.look(page)
    }

    /// Reads the page at this address, and says what it is.
    pub(super) fn look(&mut self, page: Lsn) -> Result<Verdict> {
        if self.bytes(page).len() < PAGE_BYTES && !self.read_chunk(page)? {
            let name = self.directory().segment_of(page);
            return Ok(Verdict::Ends(MissingCause::NoSegment(name)));
        }
        let bytes = self.bytes(page);
        if bytes.len() < PAGE_BYTES {
            let name = self.name_of_open(page);
            return Ok(Verdict::Ends(MissingCause::CutShort(name)));
        }
        let verdict = judge(&self.source, self.timeline, page, bytes);
        if let Verdict::Belongs(header) = &verdict {
            self.timeline = header.timeline;
        }
        Ok(verdict)
    }

    fn name_of_open(&self, page: Lsn) -> SegmentName {
        let segment = self.directory().segment_of(page);
        let timeline = self.open.as_ref().map_or(segment.timeline, |open| open.timeline);
        SegmentName { timeline, ..segment }
    }

    /// Reads the piece with this page; false when there is no such file.
    fn read_chunk(&mut self, page: Lsn) -> Result<bool> {
        let segment = self.directory().segment_of(page);
        if self.open.as_ref().is_none_or(|open| open.number != segment.number) {
            self.open_segment(segment)?;
            if self.bytes(page).len() == PAGE_BYTES {
                return Ok(true);
            }
        }
        let Some(open) = &self.open else { return Ok(false) };
        let Some(file) = &open.file else {
            // All that a compressed file holds is in memory, and the page is not in it.
            return Ok(!self.chunk.is_empty() && self.chunk_start == segment.start());
        };
        let offset = self.directory().offset_of(page);
        let left = u64::from(self.directory().segment_size).saturating_sub(offset);
        self.chunk.clear();
        self.chunk_start = page;
        self.chunk.resize(CHUNK_BYTES.min(usize::try_from(left).unwrap_or(CHUNK_BYTES)), 0);
        let got = self.storage.read_fully_at(file.as_ref(), &mut self.chunk, offset);
        let named = |error| pagemill_io::Error::new(error, &open.path).with_offset(offset);
        self.chunk.truncate(got.map_err(named)?);
        Ok(true)
    }

    /// Chooses a segment's file and opens it.
    fn open_segment(&mut self, segment: SegmentName) -> Result<()> {
        self.list_files()?;
        self.chunk.clear();
        self.open = None;
        let Some(listing) = &self.listing else { return Ok(()) };
        let chosen = self.source.choose(listing, segment.number, self.file_timeline);
        let Some(chosen) = chosen.cloned() else { return Ok(()) };
        let Some(bytes) = self.source.open(&self.storage, &chosen)? else { return Ok(()) };
        if chosen.is_partial && !self.partial_files.contains(&chosen.path) {
            self.partial_files.push(chosen.path.clone());
        }
        let (number, timeline) = (segment.number, chosen.timeline);
        self.file_timeline = timeline.max(self.file_timeline);
        let file = match bytes {
            SegmentBytes::File(file) => Some(file),
            SegmentBytes::Memory(bytes) => {
                self.chunk = bytes;
                self.chunk_start = segment.start();
                None
            }
        };
        self.open = Some(OpenSegment { number, timeline, path: chosen.path, file });
        Ok(())
    }

    /// Lists the files once.
    fn list_files(&mut self) -> Result<()> {
        if self.listing.is_none() {
            self.listing = Some(Arc::new(Listing::read(&self.storage, &self.source)?));
        }
        Ok(())
    }
}

/// What a page is, behind one of this timeline.
pub(crate) fn judge(source: &WalSource, timeline: u32, page: Lsn, bytes: &[u8]) -> Verdict {
    let start = bytes.get(..SHORT_HEADER_BYTES).unwrap_or_default();
    if start.iter().all(|&byte| byte == 0) {
        return Verdict::Ends(MissingCause::NeverWritten(page));
    }
    let header = match PageHeader::parse(bytes) {
        Ok(header) => header,
        Err(error) => return Verdict::Bad(Finding::PageHeader(error.to_string())),
    };
    let magic = wal::page_magic(source.version());
    if header.magic != magic {
        return Verdict::Bad(Finding::Magic { found: header.magic, expected: magic });
    }
    if header.address < page {
        return Verdict::Ends(MissingCause::Recycled { page, found: header.address });
    }
    match finding(source, timeline, page, &header) {
        Some(finding) => Verdict::Bad(finding),
        None => Verdict::Belongs(header),
    }
}

/// What is wrong with a header of this WAL.
fn finding(source: &WalSource, timeline: u32, page: Lsn, header: &PageHeader) -> Option<Finding> {
    let directory = source.directory();
    if header.address != page {
        return Some(Finding::OtherPage(header.address));
    }
    if !is_on_the_way(source, header.timeline) || header.timeline < timeline {
        let (expected, found) = (directory.timeline, header.timeline);
        return Some(Finding::Timeline { found, expected });
    }
    let is_first = directory.offset_of(page) == 0;
    match header.long {
        Some(_) if !is_first => Some(Finding::LongHeader),
        None if is_first => Some(Finding::ShortHeader),
        Some(long) if long.system_identifier != directory.system_identifier => {
            let (found, expected) = (long.system_identifier, directory.system_identifier);
            Some(Finding::OtherCluster { found, expected })
        }
        Some(long) if long.segment_size != directory.segment_size => {
            let (found, expected) = (long.segment_size, directory.segment_size);
            Some(Finding::SegmentSize { found, expected })
        }
        _ => None,
    }
}

fn is_on_the_way(source: &WalSource, timeline: u32) -> bool {
    match source.history() {
        Some(history) => history.part(timeline).is_some(),
        None => timeline <= source.directory().timeline,
    }
}
