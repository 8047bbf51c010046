//! [`RecordFetch`]: single records by their place, again and again, by any number of threads.
//!
//! The index was built from the same WAL, so each place that it names was the beginning of a sound record then. What is
//! found there now is checked all the same, since files can change. Segments are mapped, where that can be done, once and for
//! good: records of one page lie all over the WAL, and to map again what was let go of would take longer than they do. A
//! mapping is looked up without a lock, since a lock for each record kept the processor from waiting for several at once. Other
//! segments are read, and decompressed where an archive has compressed them; of these the last few are kept.
//!
//! Invariants: a record that is handed out has the right CRC; it was copied before it was checked, so that a file that changes
//! cannot change it.
//!
//! Source: `src/backend/access/transam/xlogreader.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pagemill_format::wal::{
    LONG_HEADER_BYTES, MAX_RECORD_BYTES, PAGE_BYTES, RECORD_HEADER_BYTES, Record, RecordHeader,
    SHORT_HEADER_BYTES, align_record,
};
use pagemill_format::{Lsn, PgVersion};
use pagemill_io::Storage;
use pagemill_sys::Mapping;

use crate::error::{Damage, Error, Result};
use crate::finding::Finding;
use crate::wal_source::{Candidate, Listing, SegmentBytes as StoredBytes, WalSource};

/// Segments of one way that are mapped for good at most: 256 GiB of the default size, a quarter of the mappings that Linux
/// lets a process have.
const MOST_MAPPED: u64 = 1 << 14;
/// Other segments that are kept at most: 1 GiB of the default size.
const SLOTS: usize = 64;
/// The same where they may have to be kept in memory, of which they may take a quarter.
const SLOTS_OF_ARCHIVES: usize = 8;

/// Of a record that is fetched soon: most are not longer.
const PREFETCHED_BYTES: usize = 128;

/// Fetches records of one way through WAL.
#[derive(Debug)]
pub struct RecordFetch {
    storage: Storage,
    source: WalSource,
    /// The file that is read for each segment.
    files: HashMap<u64, Candidate>,
    /// The segments from the first on, each mapped when it is first wanted; `None` in it where that cannot be.
    mapped: Box<[OnceLock<Option<Mapping>>]>,
    /// The number of the first of them.
    first: u64,
    slots: Vec<Mutex<Option<Segment>>>,
}

#[derive(Debug, Clone)]
struct Segment {
    number: u64,
    bytes: Arc<SegmentBytes>,
}

#[derive(Debug)]
enum SegmentBytes {
    Mapped(Mapping),
    Read(Vec<u8>),
}

impl SegmentBytes {
    fn get(&self, from: usize, len: usize) -> Option<&[u8]> {
        match self {
            Self::Mapped(mapping) => part_of(mapping, from, len),
            Self::Read(bytes) => bytes.get(from..from.checked_add(len)?),
        }
    }
}

fn part_of(mapping: &Mapping, from: usize, len: usize) -> Option<&[u8]> {
    let end = from.checked_add(len).filter(|end| *end <= mapping.len())?;
    Some(mapping.bytes(from..end))
}

/// A record that was fetched.
#[derive(Debug)]
pub struct FetchedRecord<'a> {
    /// Where it begins.
    pub lsn: Lsn,
    /// Where it ends: the LSN of pages that it changes.
    pub end: Lsn,
    /// The record taken apart.
    pub record: Record<'a>,
}

impl RecordFetch {
    /// Fetches from the files that a reader along this source reads from `start` on.
    ///
    /// # Errors
    /// A directory that cannot be listed.
    pub fn new(storage: &Storage, source: &WalSource, start: Lsn) -> Result<Self> {
        let listing = Listing::read(storage, source)?;
        let first = source.directory().segment_of(start).number;
        let files = source.chosen(&listing, first);
        let has_archives = source.places().count() > 1;
        let in_memory = source.memory() / 4 / source.directory().segment_size as usize;
        let slots = if has_archives { in_memory.clamp(1, SLOTS_OF_ARCHIVES) } else { SLOTS };
        let slots = (0..slots).map(|_| Mutex::default()).collect();
        let numbers = files.keys().copied().min().zip(files.keys().copied().max());
        let count = numbers.map_or(0, |(first, last)| last - first + 1);
        let may_map = storage.settings().may_map && count <= MOST_MAPPED;
        let mapped = (0..if may_map { count } else { 0 }).map(|_| OnceLock::new()).collect();
        Ok(Self {
            storage: storage.clone(),
            source: source.clone(),
            first: numbers.map_or(0, |(first, _)| first),
            files,
            mapped,
            slots,
        })
    }

    /// The version that wrote the WAL.
    pub fn version(&self) -> PgVersion {
        self.source.version()
    }

    /// The record that begins at `lsn`, its bytes in `buffer`.
    ///
    /// # Errors
    /// There is no sound record at this place; files that cannot be read.
    pub fn fetch<'b>(&self, lsn: Lsn, buffer: &'b mut Vec<u8>) -> Result<FetchedRecord<'b>> {
        let end = match self.copy_within_page(lsn, buffer) {
            Some(end) => end,
            None => self.copy_record(lsn, buffer)?,
        };
        let bytes = buffer.as_slice();
        let parse = || {
            let header = RecordHeader::parse(bytes)
                .map_err(|error| Finding::RecordHeader(error.to_string()))?;
            header.check_crc(bytes).map_err(|error| Finding::Crc(error.to_string()))?;
            Record::parse_unchecked(bytes, header, self.version())
                .map_err(|error| Finding::Parts(error.to_string()))
        };
        let record = parse().map_err(|finding| self.damage(lsn, finding))?;
        Ok(FetchedRecord { lsn, end: align_record(end), record })
    }

    /// Asks the processor for the beginning of a record that is fetched soon, if its segment is mapped already: records of one
    /// page lie all over the WAL, and waiting for memory is most of what fetching them takes.
    #[inline]
    pub fn prefetch(&self, lsn: Lsn) {
        let directory = self.source.directory();
        let place = directory.segment_of(lsn).number.wrapping_sub(self.first);
        let Some(Some(mapping)) = self.mapped.get(place as usize).and_then(OnceLock::get) else {
            return;
        };
        let start = usize::try_from(directory.offset_of(lsn)).unwrap_or(usize::MAX);
        let end = start.saturating_add(PREFETCHED_BYTES).min(mapping.len());
        if start < end {
            pagemill_sys::prefetch(mapping.bytes(start..end));
        }
    }

    /// Copies a record that lies on one page of a mapped segment, as most do, and tells where it ends; `None` for any other,
    /// also for one that is none.
    #[inline]
    fn copy_within_page(&self, lsn: Lsn, buffer: &mut Vec<u8>) -> Option<Lsn> {
        let mapping = self.mapping(lsn)?;
        let start = usize::try_from(self.source.directory().offset_of(lsn)).ok()?;
        let page_end = (start - start % PAGE_BYTES + PAGE_BYTES).min(mapping.len());
        let rest = if start < page_end { mapping.bytes(start..page_end) } else { &[] };
        let len = u32::from_le_bytes(*rest.first_chunk()?) as usize;
        let record = rest.get(..len).filter(|_| len >= RECORD_HEADER_BYTES)?;
        buffer.clear();
        buffer.extend_from_slice(record);
        Some(Lsn(lsn.0 + len as u64))
    }

    /// The segment that a record begins in, if it can be mapped.
    #[inline]
    fn mapping(&self, at: Lsn) -> Option<&Mapping> {
        let number = self.source.directory().segment_of(at).number;
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.mapped.get(place)?.get_or_init(|| self.map(number)).as_ref()
    }

    #[cold]
    fn map(&self, number: u64) -> Option<Mapping> {
        let found = self.files.get(&number)?;
        // What is wrong with the file is told by whoever reads it instead.
        let Ok(Some(StoredBytes::File(file))) = self.source.open(&self.storage, found) else {
            return None;
        };
        let len = file.len().ok()?.min(u64::from(self.source.directory().segment_size));
        file.map(usize::try_from(len).ok()?).ok()
    }

    /// Puts a record together from the pages it lies on, and tells where it ends.
    fn copy_record(&self, lsn: Lsn, buffer: &mut Vec<u8>) -> Result<Lsn> {
        buffer.clear();
        let (mut at, mut wanted) = (lsn, 4);
        let mut total = None;
        loop {
            let page_left = PAGE_BYTES - (at.0 % PAGE_BYTES as u64) as usize;
            let len = page_left.min(wanted - buffer.len());
            self.append(at, len, buffer)?;
            at = Lsn(at.0 + len as u64);
            if total.is_none()
                && let Some(first) = buffer.first_chunk::<4>()
            {
                let len = u32::from_le_bytes(*first) as usize;
                if !(RECORD_HEADER_BYTES..=MAX_RECORD_BYTES).contains(&len) {
                    return Err(self.damage(lsn, Finding::Length(len)));
                }
                (wanted, total) = (len, Some(len));
            }
            if buffer.len() >= wanted {
                return Ok(at);
            }
            if at.0.is_multiple_of(PAGE_BYTES as u64) {
                let is_first = self.source.directory().segment_of(at).start() == at;
                let header = if is_first { LONG_HEADER_BYTES } else { SHORT_HEADER_BYTES };
                at = Lsn(at.0 + header as u64);
            }
        }
    }

    fn append(&self, at: Lsn, len: usize, buffer: &mut Vec<u8>) -> Result<()> {
        let offset = usize::try_from(self.source.directory().offset_of(at)).unwrap_or(usize::MAX);
        let segment;
        let found = match self.mapping(at) {
            Some(mapping) => part_of(mapping, offset, len),
            None => {
                segment = self.segment(at)?;
                segment.get(offset, len)
            }
        };
        let cut = || self.damage(at, Finding::SegmentCut);
        buffer.extend_from_slice(found.ok_or_else(cut)?);
        Ok(())
    }

    fn segment(&self, at: Lsn) -> Result<Arc<SegmentBytes>> {
        let number = self.source.directory().segment_of(at).number;
        let slot = &self.slots[(number % self.slots.len() as u64) as usize];
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = slot.as_ref().filter(|found| found.number == number) {
            return Ok(found.bytes.clone());
        }
        let bytes = Arc::new(self.open(at)?);
        *slot = Some(Segment { number, bytes: bytes.clone() });
        Ok(bytes)
    }

    fn open(&self, at: Lsn) -> Result<SegmentBytes> {
        let number = self.source.directory().segment_of(at).number;
        let found = self.files.get(&number);
        let opened = found.map(|file| self.source.open(&self.storage, file)).transpose()?.flatten();
        let file = match opened {
            Some(StoredBytes::Memory(bytes)) => return Ok(SegmentBytes::Read(bytes)),
            Some(StoredBytes::File(file)) => file,
            None => return Err(self.damage(at, Finding::SegmentGone)),
        };
        let path = self.path_of(at);
        let named = |error| pagemill_io::Error::new(error, &path);
        let most = u64::from(self.source.directory().segment_size);
        let len = usize::try_from(file.len().map_err(named)?.min(most)).unwrap_or(0);
        if self.storage.settings().may_map
            && let Ok(mapping) = file.map(len)
        {
            return Ok(SegmentBytes::Mapped(mapping));
        }
        let mut bytes = vec![0; len];
        let got = self.storage.read_fully_at(file.as_ref(), &mut bytes, 0).map_err(named)?;
        bytes.truncate(got);
        Ok(SegmentBytes::Read(bytes))
    }

    fn path_of(&self, at: Lsn) -> PathBuf {
        let segment = self.source.directory().segment_of(at);
        let found = self.files.get(&segment.number);
        found.map_or_else(|| self.source.directory().file_of(segment), |file| file.path.clone())
    }

    fn damage(&self, lsn: Lsn, finding: Finding) -> Error {
        let (path, offset) = (self.path_of(lsn), self.source.directory().offset_of(lsn));
        Error::Damage(Box::new(Damage { path, offset, lsn, finding }))
    }
}
