//! [`WalReader`]: the records of a WAL directory, one after the other.
//!
//! A record is put together from the pages it lies on. Each page is looked at first: whose WAL it is, and
//! whether it is the one that belongs there. Nothing marks the end of WAL. It ends where nothing was ever
//! written (zeros, or no file), where what was written belongs to an older use of the file, or in a record
//! that a crash cut short. What is broken is damage if pages that belong there follow, and the end if none do.
//! Where zeros are followed by such pages, nobody can tell: WAL was lost, or these pages are left from what
//! was written before a crash. That is an end, and it says what is behind it.
//!
//! Invariants: a record that is handed out has the right CRC and names the one before it; after the end, or
//! an error, nothing more is read.
//!
//! Source: `src/backend/access/transam/xlogreader.c`, PostgreSQL 14 to 18.

mod page_source;

use std::fmt;

use pagemill_format::wal::{
    PAGE_BYTES, PageHeader, RECORD_HEADER_BYTES, Record, RecordHeader, align_record,
};
use pagemill_format::{Lsn, PgVersion};
use pagemill_io::Storage;

use crate::error::{Damage, Error, Result};
use crate::wal_directory::WalDirectory;
use page_source::{PageSource, Verdict};

/// Reads WAL from some place on.
#[derive(Debug)]
pub struct WalReader {
    pages: PageSource,
    /// Where the next record begins, or the page it begins on.
    next: Lsn,
    /// Where the record before begins, once one was read.
    previous: Option<Lsn>,
    record: Vec<u8>,
    end: Option<EndOfWal>,
}

/// Where and why WAL ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndOfWal {
    /// Where the next record would begin.
    pub lsn: Lsn,
    /// What is there instead.
    pub reason: String,
    /// A page behind it that belongs to this WAL.
    pub page_behind: Option<Lsn>,
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
    version: PgVersion,
}

impl<'a> WalRecord<'a> {
    /// The record taken apart.
    ///
    /// # Errors
    /// Parts that do not fit together.
    pub fn parse(&self) -> pagemill_format::Result<Record<'a>> {
        Record::parse_unchecked(self.bytes, self.header, self.version)
    }
}

/// What is at a place where a record was looked for.
struct Finding {
    lsn: Lsn,
    /// The last page that was looked at for it.
    page: Lsn,
    what: String,
}

/// How the look at one place ended.
enum Outcome {
    /// A record begins at the first place and ends at the second.
    Record(Lsn, RecordHeader, Lsn),
    /// WAL ends here.
    End(Finding),
    /// There is something, and it is no record.
    Bad(Finding),
    /// The record that begins here was given up; go on at this page.
    Overwritten(Lsn),
}

impl WalReader {
    /// A reader whose first record is the one that begins at `lsn`.
    pub fn at(storage: &Storage, directory: &WalDirectory, lsn: Lsn) -> Self {
        let pages = PageSource::new(storage, directory);
        Self { pages, next: lsn, previous: None, record: Vec::new(), end: None }
    }

    /// A reader whose first record is the first that begins at `lsn` or behind.
    ///
    /// # Errors
    /// There is no WAL at `lsn`, or it is damaged there.
    pub fn from(storage: &Storage, directory: &WalDirectory, lsn: Lsn) -> Result<Self> {
        let mut reader = Self::at(storage, directory, page_of(lsn));
        reader.next = reader.first_record(page_of(lsn))?;
        loop {
            let (before, previous) = (reader.next, reader.previous);
            match reader.next_record()? {
                Some(record) if record.lsn < lsn => {}
                Some(_) => {
                    (reader.next, reader.previous) = (before, previous);
                    return Ok(reader);
                }
                None => return Ok(reader),
            }
        }
    }

    /// The directory that is read.
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
            match self.read_at(self.next)? {
                Outcome::Record(lsn, header, end) => {
                    self.previous = Some(lsn);
                    self.next = end;
                    let version = self.directory().version;
                    let bytes = &self.record;
                    return Ok(Some(WalRecord { lsn, end, header, bytes, version }));
                }
                Outcome::Overwritten(page) => self.next = page,
                Outcome::End(finding) => {
                    let page_behind = self.pages.next_that_belongs(finding.page)?;
                    return Ok(self.finish(finding.what, page_behind));
                }
                Outcome::Bad(finding) => {
                    if self.pages.next_that_belongs(finding.page)?.is_some() {
                        return Err(self.damage(finding.lsn, finding.what));
                    }
                    return Ok(self.finish(finding.what, None));
                }
            }
        }
    }

    fn finish(&mut self, reason: String, page_behind: Option<Lsn>) -> Option<WalRecord<'_>> {
        self.end = Some(EndOfWal { lsn: self.next, reason, page_behind });
        None
    }

    fn damage(&mut self, lsn: Lsn, finding: String) -> Error {
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
                Verdict::Ends(reason) => {
                    let path = self.pages.file_of(page);
                    return Err(Error::Missing { path, lsn: page, reason });
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
    fn read_at(&mut self, position: Lsn) -> Result<Outcome> {
        let page = page_of(position);
        let header = match self.pages.look(page)? {
            Verdict::Belongs(header) => header,
            Verdict::Ends(reason) => return Ok(ends(page, page, reason)),
            Verdict::Bad(finding) => return Ok(bad(page, page, finding)),
        };
        let at_page_start = position == page;
        let lsn = if at_page_start { Lsn(page.0 + header.len() as u64) } else { position };
        if lsn.0 < page.0 + header.len() as u64 || lsn != align_record(lsn) {
            return Ok(bad(lsn, page, format!("no record can begin at {lsn}")));
        }
        if header.first_is_continuation && lsn.0 == page.0 + header.len() as u64 {
            // Left behind by a record that was never finished, before the server was started again.
            let what = format!("the page at {page} goes on with another record");
            return Ok(ends(lsn, page, what));
        }
        let first = self.pages.bytes(page).get((lsn.0 - page.0) as usize..).unwrap_or_default();
        let total_len = first.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)) as usize;
        if total_len == 0 {
            return Ok(ends(lsn, page, "zeros where a record would begin".into()));
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
    ) -> Result<Outcome> {
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
            return Ok(bad(lsn, page, format!("a record of {total_len} bytes")));
        };
        if let Err(error) = header.check_crc(&self.record) {
            return Ok(bad(lsn, page, error.to_string()));
        }
        let mut end = align_record(end);
        if header.is_switch() {
            end = self.directory().segment_of(Lsn(end.0.saturating_sub(1))).end();
        }
        Ok(Outcome::Record(lsn, header, end))
    }

    /// Looks at the header in `self.record`; `Err` says how the look at this place ended.
    fn check_header(
        &self,
        lsn: Lsn,
        page: Lsn,
        at_page_start: bool,
    ) -> Result<RecordHeader, Outcome> {
        let header =
            RecordHeader::parse(&self.record).map_err(|error| bad(lsn, page, error.to_string()))?;
        if !header.resource_manager.is_valid() {
            let what =
                format!("resource manager {}, which there is not", header.resource_manager.0);
            return Err(bad(lsn, page, what));
        }
        let is_right = self.previous.map_or(header.prev < lsn, |previous| header.prev == previous);
        if is_right {
            return Ok(header);
        }
        let what = format!("the record says that the one before begins at {}", header.prev);
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
    ) -> Result<Result<Lsn, Outcome>> {
        let header: PageHeader = match self.pages.look(page)? {
            Verdict::Belongs(header) => header,
            Verdict::Ends(reason) => {
                let reason = format!("the record at {lsn} is not finished: {reason}");
                return Ok(Err(ends(lsn, page, reason)));
            }
            Verdict::Bad(finding) => return Ok(Err(bad(page, page, finding))),
        };
        if header.first_is_overwrite {
            return Ok(Err(Outcome::Overwritten(page)));
        }
        let missing = total_len - self.record.len();
        if !header.first_is_continuation || header.remaining as usize != missing {
            let what = format!(
                "the page goes on with {} bytes of a record, where {missing} of that at {lsn} belong",
                if header.first_is_continuation { header.remaining } else { 0 }
            );
            return Ok(Err(bad(page, page, what)));
        }
        let body = self.pages.bytes(page).get(header.len()..).unwrap_or_default();
        let here = body.get(..missing).unwrap_or(body);
        self.record.extend_from_slice(here);
        Ok(Ok(Lsn(page.0 + header.len() as u64 + here.len() as u64)))
    }
}

fn ends(lsn: Lsn, page: Lsn, what: String) -> Outcome {
    Outcome::End(Finding { lsn, page, what })
}

fn bad(lsn: Lsn, page: Lsn, what: String) -> Outcome {
    Outcome::Bad(Finding { lsn, page, what })
}

/// The beginning of the page with the byte at `lsn`.
fn page_of(lsn: Lsn) -> Lsn {
    Lsn(lsn.0 - lsn.0 % PAGE_BYTES as u64)
}
