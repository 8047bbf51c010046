//! The header of a WAL page: which page of which WAL it is, and how much of a record it begins with.
//!
//! The first page of a segment has a long header, which adds whose WAL it is and how it is cut. A page that
//! was recycled carries the address it had before: that is how a reader knows where WAL ends.
//!
//! Invariant: a header that parses has only flags that PostgreSQL defines, and is long exactly when it says so.
//!
//! Sources: `XLogPageHeaderData` and `XLogLongPageHeaderData` in `src/include/access/xlog_internal.h`,
//! PostgreSQL 14 to 18.

use crate::error::{Error, Result};
use crate::ids::Lsn;
use crate::reader::Reader;

const STRUCTURE: &str = "WAL page header";
/// Bytes of the header of most pages.
pub const SHORT_HEADER_BYTES: usize = 24;
/// Bytes of the header of a segment's first page.
pub const LONG_HEADER_BYTES: usize = 40;

const FIRST_IS_CONTINUATION: u16 = 0x0001;
const LONG: u16 = 0x0002;
const IMAGES_REMOVABLE: u16 = 0x0004;
const FIRST_IS_OVERWRITE: u16 = 0x0008;
const ALL_FLAGS: u16 = 0x000F;

/// A page's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageHeader {
    /// Tells the version; see [`page_magic`](super::page_magic).
    pub magic: u16,
    /// The page begins with the rest of a record.
    pub first_is_continuation: bool,
    /// The images that begin here may be left out of an archive.
    pub images_removable: bool,
    /// The record that was to go on here was given up after a crash; a new one begins.
    pub first_is_overwrite: bool,
    /// The timeline of the first record.
    pub timeline: u32,
    /// Where in the WAL the page lies.
    pub address: Lsn,
    /// Bytes of the record that goes on here, headers of pages not counted.
    pub remaining: u32,
    /// What the first page of a segment adds.
    pub long: Option<LongHeader>,
}

/// What the header of a segment's first page adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongHeader {
    /// The cluster's system identifier.
    pub system_identifier: u64,
    /// Bytes of a segment.
    pub segment_size: u32,
    /// Bytes of a page.
    pub page_size: u32,
}

impl PageHeader {
    /// The header that these bytes begin with.
    ///
    /// # Errors
    /// Corrupt: too few bytes, or a flag that no version has.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(STRUCTURE, bytes);
        let (magic, flags) = (r.u16()?, r.u16()?);
        if flags & !ALL_FLAGS != 0 {
            let what = format!("flags {flags:04X}, of which only {ALL_FLAGS:04X} are defined");
            return Err(Error::corrupt(STRUCTURE, 2, what));
        }
        let (timeline, address, remaining) = (r.u32()?, Lsn(r.u64()?), r.u32()?);
        r.u32()?;
        let long = if flags & LONG != 0 { Some(LongHeader::read(&mut r)?) } else { None };
        Ok(Self {
            magic,
            first_is_continuation: flags & FIRST_IS_CONTINUATION != 0,
            images_removable: flags & IMAGES_REMOVABLE != 0,
            first_is_overwrite: flags & FIRST_IS_OVERWRITE != 0,
            timeline,
            address,
            remaining,
            long,
        })
    }

    /// Appends the header's bytes to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let flag = |set: bool, flag: u16| if set { flag } else { 0 };
        let flags = flag(self.first_is_continuation, FIRST_IS_CONTINUATION)
            | flag(self.long.is_some(), LONG)
            | flag(self.images_removable, IMAGES_REMOVABLE)
            | flag(self.first_is_overwrite, FIRST_IS_OVERWRITE);
        out.extend_from_slice(&self.magic.to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&self.timeline.to_le_bytes());
        out.extend_from_slice(&self.address.0.to_le_bytes());
        out.extend_from_slice(&self.remaining.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        if let Some(long) = &self.long {
            out.extend_from_slice(&long.system_identifier.to_le_bytes());
            out.extend_from_slice(&long.segment_size.to_le_bytes());
            out.extend_from_slice(&long.page_size.to_le_bytes());
        }
    }

    /// Bytes of this header.
    pub fn len(&self) -> usize {
        if self.long.is_some() { LONG_HEADER_BYTES } else { SHORT_HEADER_BYTES }
    }

    /// Never: a header has bytes.
    pub fn is_empty(&self) -> bool {
        false
    }
}

impl LongHeader {
    fn read(r: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { system_identifier: r.u64()?, segment_size: r.u32()?, page_size: r.u32()? })
    }
}
