//! [`WalReader`]: the records of WAL, one after the other.
//!
//! A record is put together from the pages it lies on. Each page is looked at first: whose WAL it is, and
//! whether it is the one that belongs there. Nothing marks the end of WAL. It ends where nothing was ever
//! written (zeros, or no file), where what was written belongs to an older use of the file, or in a record
//! that a crash cut short. What is broken is damage if pages that belong there follow, and the end if none do.
//! Where zeros are followed by such pages, nobody can tell: WAL was lost, or these pages are left from what
//! was written before a crash. That is an end, and it says what is behind it.
//!
//! That is the rule of who asks what lies in files. Who asks what a recovery makes of them wants the server's:
//! whatever is wrong with a page or a record, WAL ends there ([`along`](WalReader::along)). What lies behind is then
//! looked at once, since WAL that goes on behind its end was damaged, and not cut.
//!
//! Invariants: a record that is handed out has the right CRC and names the one before it; after the end, or
//! an error, nothing more is read.
//!
//! Sources: `src/backend/access/transam/xlogreader.c`; `ReadRecord` in
//! `src/backend/access/transam/xlogrecovery.c` (14: `xlog.c`), PostgreSQL 14 to 18.

mod behind;
pub(crate) mod page_source;

use std::fmt;

use pagemill_format::wal::{
    BlockTouch, PAGE_BYTES, PageHeader, RECORD_HEADER_BYTES, Record, RecordHeader, RecoveryRecord,
    ResourceManager, SegmentName, align_record,
};
use pagemill_format::{Lsn, PgVersion};
use pagemill_io::Storage;

use crate::ahead::{PlainRecords, ReadAhead, RecordPlace, Standing, Stride};
use crate::error::{Damage, Error, Result};
use crate::finding::Finding;
use crate::wal_directory::WalDirectory;
use crate::wal_source::WalSource;
use page_source::{PageSource, Verdict};

/// Reads WAL from some place on.
#[derive(Debug)]
pub struct WalReader {
    pages: PageSource,
    /// Where the next record begins, or the page it begins on.
    next: Lsn,
    /// Where the record before begins, once one was read.
    previous: Option<Lsn>,
    /// Where the record before ends.
    previous_end: Option<Lsn>,
    /// Where the record begins that was given up just before.
    given_up: Option<Lsn>,
    record: Vec<u8>,
    rule: EndRule,
    end: Option<EndOfWal>,
    ahead: Ahead,
    /// What was handed out last of what was read ahead.
    stride: Option<Stride>,
}

/// Whether somebody reads ahead.
#[derive(Debug)]
enum Ahead {
    /// Not yet.
    Unasked,
    /// It cannot be done.
    Never,
    Reading(Box<ReadAhead>),
}

/// What comes next: a record, or many of which only what they do is known.
#[derive(Debug)]
pub enum Portion<'a> {
    /// One record.
    One(WalRecord<'a>),
    /// Plain ones in a row.
    Plain(&'a PlainRecords),
}

/// What is made of a failed check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndRule {
    /// Damage where pages that belong follow, the end where none do.
    Judged,
    /// The end, as for a server.
    Recovery,
}

/// Where and why WAL ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndOfWal {
    /// Where the next record would begin.
    pub lsn: Lsn,
    /// What is there instead.
    pub reason: Finding,
    /// A page behind it that belongs to this WAL.
    pub page_behind: Option<Lsn>,
    /// A segment behind it that is whole, which says that WAL was damaged or lost here, and not cut. Looked for along
    /// a [`WalSource`] only, as are those that are missing.
    pub segment_behind: Option<SegmentName>,
    /// The segments from here on that there are no files of, before one that there is a file of.
    pub missing: Vec<SegmentName>,
}

impl fmt::Display for EndOfWal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WAL ends at {}: {}", self.lsn, self.reason)?;
        match self.page_behind {
            Some(page) => write!(f, "; but the page at {page} behind it belongs to this WAL"),
            None => Ok(()),
        }
    }
}

/// A record and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalRecord<'a> {
    /// Where it begins.
    pub lsn: Lsn,
    /// Where the next one may begin: the LSN of pages that it changes.
    pub end: Lsn,
    /// Its header.
    pub header: RecordHeader,
    /// All its bytes, the header included.
    pub bytes: &'a [u8],
    pub(crate) version: PgVersion,
}

impl<'a> WalRecord<'a> {
    /// The record taken apart.
    ///
    /// # Errors
    /// Parts that do not fit together.
    pub fn parse(&self) -> pagemill_format::Result<Record<'a>> {
        Record::parse_unchecked(self.bytes, self.header, self.version)
    }

    /// Where it lies.
    pub fn place(&self) -> RecordPlace {
        RecordPlace { lsn: self.lsn, end: self.end }
    }

    /// Goes over the blocks it changes, without their data. Some may have been told of when an error comes.
    ///
    /// # Errors
    /// Parts that do not fit together.
    #[inline]
    pub fn visit_blocks(&self, visit: impl FnMut(BlockTouch)) -> pagemill_format::Result<()> {
        Record::visit_blocks(self.bytes, self.version, visit)
    }
}

/// What is at a place where a record was looked for.
struct FindingAt {
    lsn: Lsn,
    /// The last page that was looked at for it.
    page: Lsn,
    what: Finding,
}

/// How the look at one place ended.
enum ReadStep {
    /// A record begins at the first place and ends at the second.
    Record(Lsn, RecordHeader, Lsn),
    /// WAL ends here.
    End(FindingAt),
    /// There is something, and it is no record.
    Bad(FindingAt),
    /// The record that begins at the first place was given up; go on at this page.
    Overwritten(Lsn, Lsn),
}

impl WalReader {
    /// A reader whose first record is the one that begins at `lsn`.
    pub fn at(storage: &Storage, directory: &WalDirectory, lsn: Lsn) -> Self {
        Self::new(
            PageSource::new(storage, &WalSource::of_directory(directory)),
            lsn,
            EndRule::Judged,
        )
    }

    /// A reader whose first record is the one that begins at `lsn`, and whose end is that of a server that
    /// recovers from these places along these timelines.
    pub fn along(storage: &Storage, source: &WalSource, lsn: Lsn) -> Self {
        Self::new(PageSource::new(storage, source), lsn, EndRule::Recovery)
    }

    fn new(pages: PageSource, lsn: Lsn, rule: EndRule) -> Self {
        Self {
            pages,
            next: lsn,
            previous: None,
            previous_end: None,
            given_up: None,
            record: Vec::new(),
            rule,
            end: None,
            ahead: Ahead::Unasked,
            stride: None,
        }
    }

    /// A reader whose first record is the first that begins at `lsn` or behind.
    ///
    /// # Errors
    /// There is no WAL at `lsn`, or it is damaged there.
    pub fn from(storage: &Storage, directory: &WalDirectory, lsn: Lsn) -> Result<Self> {
        Self::at(storage, directory, page_of(lsn)).skipped_to(lsn)
    }

    /// The same along a source; WAL ends there as for a server.
    ///
    /// # Errors
    /// As [`from`](Self::from).
    pub fn from_along(storage: &Storage, source: &WalSource, lsn: Lsn) -> Result<Self> {
        Self::along(storage, source, page_of(lsn)).skipped_to(lsn)
    }

    fn skipped_to(mut self, lsn: Lsn) -> Result<Self> {
        self.next = self.first_record(page_of(lsn))?;
        loop {
            let (before, previous, previous_end) = (self.next, self.previous, self.previous_end);
            match self.next_record()? {
                Some(record) if record.lsn < lsn => {}
                Some(_) => {
                    (self.next, self.previous) = (before, previous);
                    self.previous_end = previous_end;
                    return Ok(self);
                }
                None => return Ok(self),
            }
        }
    }

    /// Partial files, which a server would not have read, that records came from.
    pub fn partial_files(&self) -> &[std::path::PathBuf] {
        self.pages.partial_files()
    }

    /// The directory that is read; along a [`WalSource`], `pg_wal`.
    pub fn directory(&self) -> &WalDirectory {
        self.pages.directory()
    }

    /// Where the next record begins, or the page it begins on.
    pub fn position(&self) -> Lsn {
        self.next
    }

    /// Why there are no more records, once there are none.
    pub fn end(&self) -> Option<&EndOfWal> {
        self.end.as_ref()
    }

    /// The next record; `None` at the [end](Self::end) of WAL.
    ///
    /// # Errors
    /// Damage in the midst of WAL, with the file and the offset; files that cannot be read.
    pub fn next_record(&mut self) -> Result<Option<WalRecord<'_>>> {
        if self.end.is_some() {
            return Ok(None);
        }
        loop {
            let found = self.read_at(self.next);
            if let Err(error) = &found {
                let _ = self.finish(Finding::Unread(error.to_string()), None);
            }
            match found? {
                ReadStep::Record(lsn, header, end) => {
                    self.check_given_up(lsn, header)?;
                    self.previous = Some(lsn);
                    self.previous_end = Some(end);
                    self.next = end;
                    let version = self.directory().version;
                    let bytes = &self.record;
                    return Ok(Some(WalRecord { lsn, end, header, bytes, version }));
                }
                ReadStep::Overwritten(lsn, page) => {
                    self.given_up = Some(lsn);
                    self.next = page;
                }
                ReadStep::End(finding) | ReadStep::Bad(finding)
                    if self.rule == EndRule::Recovery =>
                {
                    self.end_of_recovery(finding)?;
                    return Ok(None);
                }
                ReadStep::End(finding) => {
                    let page_behind = self.pages.next_that_belongs(finding.page)?;
                    return Ok(self.finish(finding.what, page_behind));
                }
                ReadStep::Bad(finding) => {
                    if self.pages.next_that_belongs(finding.page)?.is_some() {
                        return Err(self.damage(finding.lsn, finding.what));
                    }
                    return Ok(self.finish(finding.what, None));
                }
            }
        }
    }

    /// The next record, or several: read by all cores where WAL is read along a [`WalSource`]. The records are those that
    /// [`next_record`](Self::next_record) would give, which can be called in between.
    ///
    /// # Errors
    /// As [`next_record`](Self::next_record).
    pub fn next_portion(&mut self) -> Result<Option<Portion<'_>>> {
        self.stride = self.read_ahead()?;
        let version = self.directory().version;
        if self.stride.is_none() {
            return Ok(self.next_record()?.map(Portion::One));
        }
        Ok(self.stride.as_ref().map(|stride| match stride {
            Stride::Plain(records) => Portion::Plain(records),
            Stride::One { lsn, end, header, bytes } => {
                let (lsn, end, header) = (*lsn, *end, *header);
                Portion::One(WalRecord { lsn, end, header, bytes, version })
            }
        }))
    }

    /// Goes on by what was read ahead, if it leads on from here.
    fn read_ahead(&mut self) -> Result<Option<Stride>> {
        let is_possible =
            self.rule == EndRule::Recovery && self.end.is_none() && self.given_up.is_none();
        let Some(previous) = self.previous.filter(|_| is_possible) else { return Ok(None) };
        if matches!(self.ahead, Ahead::Unasked) {
            let asked = self.pages.read_ahead(self.next)?;
            self.ahead = asked.map_or(Ahead::Never, |ahead| Ahead::Reading(Box::new(ahead)));
        }
        let Ahead::Reading(ahead) = &mut self.ahead else { return Ok(None) };
        let (timeline, segment) = (self.pages.timeline(), self.pages.segment());
        let standing = Standing { next: self.next, previous, timeline, segment };
        let Some((stride, progress)) = ahead.next(standing) else { return Ok(None) };
        self.next = progress.next;
        self.previous = Some(progress.previous);
        self.previous_end = Some(progress.next);
        if let Some(entered) = progress.entered {
            self.pages.was_passed(entered);
        }
        Ok(Some(stride))
    }

    fn finish(&mut self, reason: Finding, page_behind: Option<Lsn>) -> Option<WalRecord<'_>> {
        let (lsn, missing) = (self.next, Vec::new());
        self.end = Some(EndOfWal { lsn, reason, page_behind, segment_behind: None, missing });
        None
    }

    /// A record that names the one that was given up has to name the right one: else the server stops.
    fn check_given_up(&mut self, lsn: Lsn, header: RecordHeader) -> Result<()> {
        let is_of_recovery = self.rule == EndRule::Recovery
            && header.resource_manager == ResourceManager::XLOG
            && header.kind() == ResourceManager::XLOG_OVERWRITE_CONTRECORD;
        let given_up = self.given_up.take();
        if !is_of_recovery {
            return Ok(());
        }
        let version = self.directory().version;
        let parsed = Record::parse_unchecked(&self.record, header, version)
            .and_then(|record| RecoveryRecord::parse(record.main_data, header.kind(), version));
        let Ok(Some(RecoveryRecord::OverwriteContrecord(named))) = parsed else { return Ok(()) };
        match given_up {
            Some(given_up) if given_up == named => Ok(()),
            _ => Err(self.damage(lsn, Finding::NothingGivenUp(named))),
        }
    }

    fn damage(&mut self, lsn: Lsn, finding: Finding) -> Error {
        let _ = self.finish(finding.clone(), None);
        let directory = self.directory();
        let path = self.pages.file_of(lsn);
        let offset = directory.offset_of(lsn);
        Error::Damage(Box::new(Damage { path, offset, lsn, finding }))
    }

    /// The first record that begins on this page, or behind it if one goes on over all of it.
    fn first_record(&mut self, mut page: Lsn) -> Result<Lsn> {
        loop {
            let header = match self.pages.look(page)? {
                Verdict::Belongs(header) => header,
                Verdict::Ends(cause) => {
                    let path = self.pages.file_of(page);
                    return Err(Error::Missing { path, lsn: page, cause });
                }
                Verdict::Bad(finding) => return Err(self.damage(page, finding)),
            };
            if !header.first_is_continuation {
                return Ok(page);
            }
            let rest = align_record(Lsn(u64::from(header.remaining))).0;
            let begin = header.len() as u64 + rest;
            if begin < PAGE_BYTES as u64 {
                return Ok(Lsn(page.0 + begin));
            }
            page = Lsn(page.0.saturating_add(PAGE_BYTES as u64));
        }
    }

    /// Reads the record at `position`, into `self.record`.
    fn read_at(&mut self, position: Lsn) -> Result<ReadStep> {
        let page = page_of(position);
        let looked = match self.rule {
            EndRule::Judged => self.pages.look(page)?,
            EndRule::Recovery => self.pages.enter(page)?,
        };
        let header = match looked {
            Verdict::Belongs(header) => header,
            Verdict::Ends(absence) => return Ok(ends(page, page, absence.into())),
            Verdict::Bad(finding) => return Ok(bad(page, page, finding)),
        };
        let at_page_start = position == page;
        let lsn = if at_page_start { Lsn(page.0 + header.len() as u64) } else { position };
        if lsn.0 < page.0 + header.len() as u64 || lsn != align_record(lsn) {
            return Ok(bad(lsn, page, Finding::NoBeginning(lsn)));
        }
        if header.first_is_continuation && lsn.0 == page.0 + header.len() as u64 {
            // Left behind by a record that was never finished, before the server was started again.
            return Ok(ends(lsn, page, Finding::OtherRecord(page)));
        }
        if let Some(left) = self.pages.left_before(lsn) {
            return Ok(ends(lsn, page, Finding::TimelineLeft(left)));
        }
        let first = self.pages.bytes(page).get((lsn.0 - page.0) as usize..).unwrap_or_default();
        let total_len = first.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)) as usize;
        if total_len == 0 {
            return Ok(ends(lsn, page, Finding::Zeros));
        }
        self.record.clear();
        self.record.extend_from_slice(first.get(..total_len).unwrap_or(first));
        self.read_rest(lsn, page, total_len, at_page_start)
    }

    /// Goes on behind a record's first page.
    fn read_rest(
        &mut self,
        lsn: Lsn,
        mut page: Lsn,
        total_len: usize,
        at_page_start: bool,
    ) -> Result<ReadStep> {
        let mut header = None;
        let mut end = Lsn(lsn.0 + self.record.len() as u64);
        loop {
            if header.is_none() && self.record.len() >= RECORD_HEADER_BYTES.min(total_len) {
                header = match self.check_header(lsn, page, at_page_start) {
                    Ok(header) => Some(header),
                    Err(outcome) => return Ok(outcome),
                };
            }
            if self.record.len() >= total_len {
                break;
            }
            page = Lsn(page.0.saturating_add(PAGE_BYTES as u64));
            end = match self.read_continuation(lsn, page, total_len)? {
                Ok(end) => end,
                Err(outcome) => return Ok(outcome),
            };
        }
        let Some(header) = header else {
            return Ok(bad(lsn, page, Finding::TooShort(total_len)));
        };
        if let Err(error) = header.check_crc(&self.record) {
            return Ok(bad(lsn, page, Finding::Crc(error.to_string())));
        }
        let mut end = align_record(end);
        if header.is_switch() {
            end = self.directory().segment_of(Lsn(end.0.saturating_sub(1))).end();
        }
        Ok(ReadStep::Record(lsn, header, end))
    }

    /// Looks at the header in `self.record`; `Err` says how the look at this place ended.
    fn check_header(
        &self,
        lsn: Lsn,
        page: Lsn,
        at_page_start: bool,
    ) -> Result<RecordHeader, ReadStep> {
        let header = RecordHeader::parse(&self.record)
            .map_err(|error| bad(lsn, page, Finding::RecordHeader(error.to_string())))?;
        if !header.resource_manager.is_valid() {
            return Err(bad(lsn, page, Finding::ResourceManager(header.resource_manager.0)));
        }
        let is_right = self.previous.map_or(header.prev < lsn, |previous| header.prev == previous);
        if is_right {
            return Ok(header);
        }
        let what = Finding::OtherBefore(header.prev);
        // Pages that were written before a crash can lie behind what was written after it.
        Err(if at_page_start && self.previous.is_some() {
            ends(lsn, page, what)
        } else {
            bad(lsn, page, what)
        })
    }

    /// Appends to `self.record` what of it lies on `page`, and says where on the page that ends.
    fn read_continuation(
        &mut self,
        lsn: Lsn,
        page: Lsn,
        total_len: usize,
    ) -> Result<Result<Lsn, ReadStep>> {
        let header: PageHeader = match self.pages.look(page)? {
            Verdict::Belongs(header) => header,
            Verdict::Ends(cause) => {
                return Ok(Err(ends(lsn, page, Finding::Unfinished { lsn, cause })));
            }
            Verdict::Bad(finding) => return Ok(Err(bad(page, page, finding))),
        };
        if header.first_is_overwrite {
            return Ok(Err(ReadStep::Overwritten(lsn, page)));
        }
        let missing = total_len - self.record.len();
        if !header.first_is_continuation || header.remaining as usize != missing {
            let found = if header.first_is_continuation { header.remaining } else { 0 };
            return Ok(Err(bad(page, page, Finding::OtherRest { lsn, missing, found })));
        }
        let body = self.pages.bytes(page).get(header.len()..).unwrap_or_default();
        let here = body.get(..missing).unwrap_or(body);
        self.record.extend_from_slice(here);
        Ok(Ok(Lsn(page.0 + header.len() as u64 + here.len() as u64)))
    }
}

fn ends(lsn: Lsn, page: Lsn, what: Finding) -> ReadStep {
    ReadStep::End(FindingAt { lsn, page, what })
}

fn bad(lsn: Lsn, page: Lsn, what: Finding) -> ReadStep {
    ReadStep::Bad(FindingAt { lsn, page, what })
}

/// The beginning of the page with the byte at `lsn`.
fn page_of(lsn: Lsn) -> Lsn {
    Lsn(lsn.0 - lsn.0 % PAGE_BYTES as u64)
}
