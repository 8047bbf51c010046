//! A WAL record: its header, its block references, its main data.
//!
//! The bytes of a record are those of all pages it lies on, put together without the headers of pages.
//! Nothing of it is believed before its CRC-32C agrees, which covers what follows the header first, and
//! then the header.
//!
//! Invariants: of a record that parses, every slice lies within its bytes, and each byte of block data and
//! main data is claimed exactly once.
//!
//! Sources: `src/include/access/xlogrecord.h`; `DecodeXLogRecord` and `ValidXLogRecord` in
//! `src/backend/access/transam/xlogreader.c`, PostgreSQL 14 to 18.

use super::block_reference::{BlockHeader, BlockReference, BlockTouch};
use super::{MAX_BLOCK_ID, RelFileLocator, ResourceManager};
use crate::error::{Error, Result};
use crate::ids::{Lsn, PgVersion, TransactionId};
use crate::reader::Reader;

const STRUCTURE: &str = "WAL record";
/// Bytes of a record's header.
pub const RECORD_HEADER_BYTES: usize = 24;
/// Bytes of the header that the CRC covers: all but the CRC itself.
const CHECKED_HEADER_BYTES: usize = 20;
/// Block references whose beginnings are kept without an allocation while a record is taken apart: few records have more.
const FEW_BLOCKS: usize = 4;
/// The longest record that PostgreSQL reads.
pub const MAX_RECORD_BYTES: usize = 1020 << 20;

pub(super) const ID_DATA_SHORT: u8 = 255;
pub(super) const ID_DATA_LONG: u8 = 254;
pub(super) const ID_ORIGIN: u8 = 253;
pub(super) const ID_TOPLEVEL_XID: u8 = 252;

/// The fixed part every record begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    /// Bytes of the whole record, this header included.
    pub total_len: u32,
    /// The transaction that wrote it; 0 when none did.
    pub xid: TransactionId,
    /// Where the record before it begins.
    pub prev: Lsn,
    /// The upper four bits say which record of its resource manager it is, the lower are flags.
    pub info: u8,
    /// The resource manager.
    pub resource_manager: ResourceManager,
    /// CRC-32C of the record.
    pub crc: u32,
}

impl RecordHeader {
    /// What the record is called, or its number where this version has no such record.
    pub fn record_name(&self, version: PgVersion) -> String {
        let name = self.resource_manager.record_name(self.info, version);
        name.map_or_else(|| format!("UNKNOWN ({:x})", self.kind()), str::to_owned)
    }

    /// The header that these bytes begin with.
    ///
    /// # Errors
    /// Corrupt: too few bytes, or a length that no record has.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(STRUCTURE, bytes);
        let total_len = r.u32()?;
        if !(RECORD_HEADER_BYTES..=MAX_RECORD_BYTES).contains(&(total_len as usize)) {
            let what =
                format!("a length of {total_len} bytes, at least {RECORD_HEADER_BYTES} expected");
            return Err(Error::corrupt(STRUCTURE, 0, what));
        }
        let (xid, prev) = (TransactionId(r.u32()?), Lsn(r.u64()?));
        let (info, resource_manager) = (r.u8()?, ResourceManager(r.u8()?));
        r.u16()?;
        Ok(Self { total_len, xid, prev, info, resource_manager, crc: r.u32()? })
    }

    /// Which record of its resource manager it is: the upper four bits of [`info`](Self::info).
    pub fn kind(&self) -> u8 {
        self.info & 0xF0
    }

    /// True for the record that ends a segment early.
    pub fn is_switch(&self) -> bool {
        self.resource_manager == ResourceManager::XLOG
            && self.kind() == ResourceManager::XLOG_SWITCH
    }

    /// Compares the CRC with that of the record's bytes.
    ///
    /// # Errors
    /// Corrupt: they differ.
    pub fn check_crc(&self, record: &[u8]) -> Result<()> {
        let Some((header, body)) = record.split_at_checked(RECORD_HEADER_BYTES) else {
            return Err(Error::corrupt(STRUCTURE, record.len(), "the record ends in its header"));
        };
        let checked = header.get(..CHECKED_HEADER_BYTES).unwrap_or_default();
        let computed = crc32c::crc32c_append(crc32c::crc32c(body), checked);
        if computed == self.crc {
            return Ok(());
        }
        let what = format!("CRC-32C is {computed:08X}, the record says {:08X}", self.crc);
        Err(Error::corrupt(STRUCTURE, CHECKED_HEADER_BYTES, what))
    }
}

/// The CRC-32C of a record of which `header` holds the first 20 bytes, and `rest` all behind its header.
pub(super) fn crc_of<'a>(header: &[u8], rest: impl Iterator<Item = &'a [u8]>) -> u32 {
    let body = rest.fold(0, crc32c::crc32c_append);
    crc32c::crc32c_append(body, header.get(..CHECKED_HEADER_BYTES).unwrap_or_default())
}

/// A record taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its header.
    pub header: RecordHeader,
    /// The blocks it changes, their numbers ascending.
    pub blocks: Vec<BlockReference<'a>>,
    /// What its resource manager wrote besides.
    pub main_data: &'a [u8],
    /// The replication origin, if it has one.
    pub origin: Option<u16>,
    /// The transaction above that which wrote it, where logical decoding needs to know.
    pub toplevel_xid: Option<TransactionId>,
}

impl<'a> Record<'a> {
    /// Takes the bytes of one whole record apart, and checks its CRC.
    ///
    /// # Errors
    /// Corrupt: a wrong CRC, or parts that do not fit together.
    pub fn parse(bytes: &'a [u8], version: PgVersion) -> Result<Self> {
        let header = RecordHeader::parse(bytes)?;
        if header.total_len as usize != bytes.len() {
            let what = format!("{} bytes where the record says {}", bytes.len(), header.total_len);
            return Err(Error::corrupt(STRUCTURE, 0, what));
        }
        header.check_crc(bytes)?;
        Self::parse_unchecked(bytes, header, version)
    }

    /// As [`parse`](Self::parse), of a record whose CRC was checked already.
    ///
    /// # Errors
    /// Corrupt: parts that do not fit together.
    pub fn parse_unchecked(
        bytes: &'a [u8],
        header: RecordHeader,
        version: PgVersion,
    ) -> Result<Self> {
        let mut r = Reader::new(STRUCTURE, bytes);
        let (mut first, mut more) = ([const { None }; FEW_BLOCKS], Vec::new());
        let mut count = 0;
        let parts = Parts::read(&mut r, version, |block| {
            match first.get_mut(count) {
                Some(place) => *place = Some(block),
                None => more.push(block),
            }
            count += 1;
        })?;
        let blocks = first.into_iter().flatten().chain(more);
        parts.take_data(&mut r, header, blocks, count)
    }

    /// What a record whose CRC was checked does to blocks: the beginnings of its references alone are read, and nothing
    /// is kept of them. Of the blocks some may have been told of when an error comes.
    ///
    /// # Errors
    /// Corrupt: the same as [`parse_unchecked`](Self::parse_unchecked).
    pub fn visit_blocks(
        bytes: &[u8],
        version: PgVersion,
        mut visit: impl FnMut(BlockTouch),
    ) -> Result<()> {
        let mut r = Reader::new(STRUCTURE, bytes);
        Parts::read(&mut r, version, |block| visit(block.touch()))?;
        Ok(())
    }

    /// Bytes of all full-page images, as they lie in the record.
    pub fn image_bytes(&self) -> usize {
        self.blocks.iter().filter_map(|block| block.image.as_ref()).map(|i| i.data.len()).sum()
    }

    /// The block reference of this number.
    pub fn block(&self, id: u8) -> Option<&BlockReference<'a>> {
        self.blocks.iter().find(|block| block.id == id)
    }
}

/// What the headers at a record's beginning promise.
#[derive(Default)]
struct Parts {
    /// The number of the last block reference.
    last_id: Option<u8>,
    main_len: usize,
    origin: Option<u16>,
    toplevel_xid: Option<TransactionId>,
    locator: Option<RelFileLocator>,
    /// Bytes that the data of blocks and the main data take.
    claimed: usize,
}

impl Parts {
    /// Reads all headers behind that of the record, up to the data, which has the right length then.
    #[inline]
    fn read(
        r: &mut Reader<'_>,
        version: PgVersion,
        mut take: impl FnMut(BlockHeader),
    ) -> Result<Self> {
        r.seek(RECORD_HEADER_BYTES.min(r.remaining()))?;
        let mut parts = Self::default();
        while r.remaining() > parts.claimed {
            if parts.read_header(r, version, &mut take)? {
                break;
            }
        }
        if r.remaining() != parts.claimed {
            let what = format!("{} bytes of data, {} expected", r.remaining(), parts.claimed);
            return Err(r.corrupt(what));
        }
        Ok(parts)
    }

    /// Reads one header; true when it was that of the main data, which is always the last.
    #[inline]
    fn read_header(
        &mut self,
        r: &mut Reader<'_>,
        version: PgVersion,
        take: &mut impl FnMut(BlockHeader),
    ) -> Result<bool> {
        match r.u8()? {
            ID_DATA_SHORT => self.main_len = usize::from(r.u8()?),
            ID_DATA_LONG => self.main_len = r.u32()? as usize,
            ID_ORIGIN => {
                self.origin = Some(r.u16()?);
                return Ok(false);
            }
            ID_TOPLEVEL_XID => {
                self.toplevel_xid = Some(TransactionId(r.u32()?));
                return Ok(false);
            }
            id => {
                take(self.read_block(r, id, version)?);
                return Ok(false);
            }
        }
        self.claimed = self.claimed.saturating_add(self.main_len);
        Ok(true)
    }

    #[inline]
    fn read_block(
        &mut self,
        r: &mut Reader<'_>,
        id: u8,
        version: PgVersion,
    ) -> Result<BlockHeader> {
        if id > MAX_BLOCK_ID {
            return Err(r.corrupt(format!("block reference {id}, at most {MAX_BLOCK_ID} expected")));
        }
        if self.last_id.is_some_and(|last| last >= id) {
            return Err(r.corrupt(format!("block reference {id} out of order")));
        }
        let block = BlockHeader::read(r, id, self.locator, version)?;
        self.last_id = Some(id);
        self.locator = Some(block.locator);
        self.claimed = self.claimed.saturating_add(block.data_bytes());
        Ok(block)
    }

    fn take_data<'a>(
        self,
        r: &mut Reader<'a>,
        header: RecordHeader,
        headers: impl Iterator<Item = BlockHeader>,
        count: usize,
    ) -> Result<Record<'a>> {
        let mut blocks = Vec::with_capacity(count);
        for block in headers {
            blocks.push(block.take_data(r)?);
        }
        Ok(Record {
            header,
            blocks,
            main_data: r.bytes(self.main_len)?,
            origin: self.origin,
            toplevel_xid: self.toplevel_xid,
        })
    }
}
