//! The pages of WAL by their address, read in large pieces, and what each of them is.
//!
//! Of one segment there can be several files, one for each timeline that wrote to it; the highest that is not
//! above the timeline followed is read, as a server does that follows that timeline.
//!
//! Invariant: what is looked at last is in memory, and [`bytes`](PageSource::bytes) gives it.

use std::collections::HashMap;
use std::path::PathBuf;

use pagemill_format::Lsn;
use pagemill_format::wal::{self, PAGE_BYTES, PageHeader, SHORT_HEADER_BYTES, SegmentName};
use pagemill_io::{File, Storage};

use crate::error::Result;
use crate::wal_directory::WalDirectory;

/// Bytes read at once.
const CHUNK_BYTES: usize = 512 << 10;

/// How far behind the end of WAL is looked for more.
const SEARCHED_BYTES: u64 = 16 << 20;

/// What a page is.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The page that belongs there.
    Belongs(PageHeader),
    /// None was written there: WAL ends.
    Ends(String),
    /// Neither.
    Bad(String),
}

/// Reads pages.
#[derive(Debug)]
pub(super) struct PageSource {
    storage: Storage,
    directory: WalDirectory,
    /// The file for each segment that was listed.
    files: Option<HashMap<u64, u32>>,
    open: Option<(SegmentName, Option<Box<dyn File>>)>,
    chunk: Vec<u8>,
    chunk_start: Lsn,
    /// The timeline of the last page that belonged; later pages are of this or a higher one.
    timeline: u32,
}

impl PageSource {
    pub(super) fn new(storage: &Storage, directory: &WalDirectory) -> Self {
        Self {
            storage: storage.clone(),
            directory: directory.clone(),
            files: None,
            open: None,
            chunk: Vec::new(),
            chunk_start: Lsn(0),
            timeline: 0,
        }
    }

    pub(super) fn directory(&self) -> &WalDirectory {
        &self.directory
    }

    /// The file that the byte at `lsn` is read from.
    pub(super) fn file_of(&self, lsn: Lsn) -> PathBuf {
        self.directory.file_of(self.segment_of(lsn))
    }

    fn segment_of(&self, lsn: Lsn) -> SegmentName {
        let segment = self.directory.segment_of(lsn);
        let known = self.files.as_ref().and_then(|files| files.get(&segment.number));
        SegmentName { timeline: *known.unwrap_or(&segment.timeline), ..segment }
    }

    /// The bytes of the page at this address, if it was looked at last; fewer at the end of a file.
    pub(super) fn bytes(&self, page: Lsn) -> &[u8] {
        let from =
            page.0.checked_sub(self.chunk_start.0).and_then(|from| usize::try_from(from).ok());
        let rest = from.and_then(|from| self.chunk.get(from..)).unwrap_or_default();
        rest.get(..PAGE_BYTES).unwrap_or(rest)
    }

    /// The first page behind this one that is where it belongs, in the rest of the segment or at the
    /// beginning of the next.
    pub(super) fn next_that_belongs(&mut self, page: Lsn) -> Result<Option<Lsn>> {
        let segment_end = self.directory.segment_of(page).end().0;
        let last = segment_end.min(page.0.saturating_add(SEARCHED_BYTES));
        for at in (page.0..=last).step_by(PAGE_BYTES).skip(1) {
            if matches!(self.look(Lsn(at))?, Verdict::Belongs(_)) {
                return Ok(Some(Lsn(at)));
            }
        }
        Ok(None)
    }

    /// Reads the page at this address, and says what it is.
    pub(super) fn look(&mut self, page: Lsn) -> Result<Verdict> {
        if self.bytes(page).len() < PAGE_BYTES && !self.read_chunk(page)? {
            let name = self.segment_of(page);
            return Ok(Verdict::Ends(format!("there is no segment {name}")));
        }
        let bytes = self.bytes(page);
        if bytes.len() < PAGE_BYTES {
            return Ok(Verdict::Ends(format!("segment {} is cut short", self.segment_of(page))));
        }
        let verdict = self.judge(page, bytes);
        if let Verdict::Belongs(header) = &verdict {
            self.timeline = header.timeline;
        }
        Ok(verdict)
    }

    fn judge(&self, page: Lsn, bytes: &[u8]) -> Verdict {
        let start = bytes.get(..SHORT_HEADER_BYTES).unwrap_or_default();
        if start.iter().all(|&byte| byte == 0) {
            return Verdict::Ends(format!("the page at {page} was never written"));
        }
        let header = match PageHeader::parse(bytes) {
            Ok(header) => header,
            Err(error) => return Verdict::Bad(error.to_string()),
        };
        let magic = wal::page_magic(self.directory.version);
        if header.magic != magic {
            let what = format!("magic number {:04X} where {magic:04X} belongs", header.magic);
            return Verdict::Bad(what);
        }
        if header.address < page {
            let what =
                format!("the page at {page} was written for {} and not since", header.address);
            return Verdict::Ends(what);
        }
        match self.finding(page, &header) {
            Some(finding) => Verdict::Bad(finding),
            None => Verdict::Belongs(header),
        }
    }

    /// What is wrong with a header of this WAL.
    fn finding(&self, page: Lsn, header: &PageHeader) -> Option<String> {
        let directory = &self.directory;
        if header.address != page {
            return Some(format!("the page says it is that at {}", header.address));
        }
        if header.timeline > directory.timeline || header.timeline < self.timeline {
            let (expected, found) = (directory.timeline, header.timeline);
            return Some(format!("the page is of timeline {found}, on the way to {expected}"));
        }
        let is_first = directory.offset_of(page) == 0;
        match header.long {
            Some(_) if !is_first => Some("a long header in the midst of a segment".into()),
            None if is_first => Some("a segment without a long header".into()),
            Some(long) if long.system_identifier != directory.system_identifier => Some(format!(
                "WAL of another cluster: system identifier {}, not {}",
                long.system_identifier, directory.system_identifier
            )),
            Some(long) if long.segment_size != directory.segment_size => {
                let (found, wanted) = (long.segment_size, directory.segment_size);
                Some(format!("a segment of {found} bytes among those of {wanted}"))
            }
            _ => None,
        }
    }

    /// Reads the piece with this page; false when there is no such file.
    fn read_chunk(&mut self, page: Lsn) -> Result<bool> {
        self.list_files()?;
        let segment = self.segment_of(page);
        if self.open.as_ref().is_none_or(|(open, _)| *open != segment) {
            self.open = Some((segment, self.open_file(segment)?));
        }
        let offset = self.directory.offset_of(page);
        self.chunk.clear();
        self.chunk_start = page;
        let Some((_, Some(file))) = &self.open else { return Ok(false) };
        let left = u64::from(self.directory.segment_size).saturating_sub(offset);
        self.chunk.resize(CHUNK_BYTES.min(usize::try_from(left).unwrap_or(CHUNK_BYTES)), 0);
        let got = self.storage.read_fully_at(file.as_ref(), &mut self.chunk, offset);
        let path = self.directory.file_of(segment);
        let named = |error| pagemill_io::Error::new(error, path).with_offset(offset);
        self.chunk.truncate(got.map_err(named)?);
        Ok(true)
    }

    fn open_file(&self, segment: SegmentName) -> Result<Option<Box<dyn File>>> {
        match self.storage.open(&self.directory.file_of(segment)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Finds out once which timelines there are files of.
    fn list_files(&mut self) -> Result<()> {
        if self.files.is_some() {
            return Ok(());
        }
        let mut files = HashMap::new();
        for entry in self.storage.read_dir(&self.directory.path)? {
            let name = entry.name.to_str().unwrap_or_default();
            let segment = SegmentName::parse(name, self.directory.segment_size);
            let Some(segment) = segment.filter(|s| s.timeline <= self.directory.timeline) else {
                continue;
            };
            let timeline = files.entry(segment.number).or_insert(segment.timeline);
            *timeline = segment.timeline.max(*timeline);
        }
        self.files = Some(files);
        Ok(())
    }
}
