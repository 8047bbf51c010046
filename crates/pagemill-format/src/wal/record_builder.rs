//! WAL records to be written.
//!
//! A record is told in the words of [`RecordBuilder`] and becomes an [`EncodedRecord`] once it is known which
//! record comes before it. Images stay where the pages are: the bytes of an encoded record come in parts,
//! so that a page is copied once, to where it is written from.
//!
//! Invariants: what is encoded parses back to the same record; block references are numbered from 0 without
//! gaps; the relation of a reference is left out where it is that of the one before, as PostgreSQL does.
//!
//! Source: `XLogRecordAssemble` in `src/backend/access/transam/xloginsert.c`, PostgreSQL 14 to 18.

use super::block_reference::{HAS_DATA, HAS_IMAGE, ImageFlags, SAME_RELATION, WILL_INIT};
use super::image::{ImageCompression, PageImage};
use super::record::{ID_DATA_LONG, ID_DATA_SHORT, MAX_RECORD_BYTES, RECORD_HEADER_BYTES, crc_of};
use super::{MAX_BLOCK_ID, RelFileLocator, ResourceManager};
use crate::error::{Error, Result};
use crate::ids::{BlockNumber, Fork, Lsn, PgVersion, TransactionId};

const STRUCTURE: &str = "WAL record";
/// Where in the header the CRC stands: its last four bytes.
const CRC_OFFSET: usize = 20;

/// A record to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordBuilder<'a> {
    resource_manager: ResourceManager,
    info: u8,
    xid: TransactionId,
    blocks: Vec<Block<'a>>,
    main_data: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Block<'a> {
    locator: RelFileLocator,
    fork: Fork,
    block: BlockNumber,
    will_init: bool,
    image: Option<PageImage<'a>>,
    data: &'a [u8],
}

impl<'a> RecordBuilder<'a> {
    /// A record without blocks and data. `info` holds which record of its resource manager it is in the upper
    /// four bits, and flags in the lower.
    pub fn new(resource_manager: ResourceManager, info: u8, xid: TransactionId) -> Self {
        Self { resource_manager, info, xid, blocks: Vec::new(), main_data: Vec::new() }
    }

    /// Adds the image of a page, which replay puts in the page's place.
    #[must_use]
    pub fn image(
        mut self,
        locator: RelFileLocator,
        fork: Fork,
        block: BlockNumber,
        image: PageImage<'a>,
    ) -> Self {
        let image = Some(image);
        self.blocks.push(Block { locator, fork, block, will_init: false, image, data: &[] });
        self
    }

    /// Adds a block with data for it; replay makes the page anew (`REGBUF_WILL_INIT`).
    #[must_use]
    pub fn new_block(
        mut self,
        locator: RelFileLocator,
        fork: Fork,
        block: BlockNumber,
        data: &'a [u8],
    ) -> Self {
        self.blocks.push(Block { locator, fork, block, will_init: true, image: None, data });
        self
    }

    /// The main data.
    #[must_use]
    pub fn main_data(mut self, main_data: Vec<u8>) -> Self {
        self.main_data = main_data;
        self
    }

    /// The resource manager.
    pub fn resource_manager(&self) -> ResourceManager {
        self.resource_manager
    }

    /// True for the record that ends a segment early.
    pub fn is_switch(&self) -> bool {
        self.resource_manager == ResourceManager::XLOG
            && self.info & 0xF0 == ResourceManager::XLOG_SWITCH
    }

    /// The record's bytes, when the one before it begins at `prev`.
    ///
    /// # Errors
    /// Unsupported: more than 33 blocks, more than 65535 bytes of data for one, more than 1020 MiB in all, or
    /// an image compressed in a way that servers of this version do not know.
    pub fn encode(&self, prev: Lsn, version: PgVersion) -> Result<EncodedRecord<'_>> {
        let mut head = Vec::with_capacity(RECORD_HEADER_BYTES + 32 * self.blocks.len() + 8);
        head.resize(RECORD_HEADER_BYTES, 0);
        if self.blocks.len() > usize::from(MAX_BLOCK_ID) + 1 {
            return Err(refusal(format!("{} blocks, at most 33 fit", self.blocks.len())));
        }
        let mut previous = None;
        for (id, block) in (0..).zip(&self.blocks) {
            block.encode_header(id, previous, version, &mut head)?;
            previous = Some(block.locator);
        }
        self.encode_main_header(&mut head)?;
        let mut record = EncodedRecord { head, parts: self.parts(), len: 0 };
        record.len = record.slices().map(<[u8]>::len).sum();
        if record.len > MAX_RECORD_BYTES {
            return Err(refusal(format!("{} bytes, at most {MAX_RECORD_BYTES} fit", record.len)));
        }
        self.encode_header(prev, &mut record);
        Ok(record)
    }

    fn encode_main_header(&self, head: &mut Vec<u8>) -> Result<()> {
        match (self.main_data.len(), u8::try_from(self.main_data.len())) {
            (0, _) => {}
            (_, Ok(short)) => head.extend_from_slice(&[ID_DATA_SHORT, short]),
            (long, Err(_)) => {
                let long = u32::try_from(long)
                    .map_err(|_| refusal(format!("{long} bytes of main data are too many")))?;
                head.push(ID_DATA_LONG);
                head.extend_from_slice(&long.to_le_bytes());
            }
        }
        Ok(())
    }

    fn parts(&self) -> Vec<&[u8]> {
        let mut parts = Vec::with_capacity(3 * self.blocks.len() + 1);
        for block in &self.blocks {
            if let Some(image) = &block.image {
                parts.extend([&*image.head, image.tail]);
            }
            parts.push(block.data);
        }
        parts.push(&self.main_data);
        parts.retain(|part| !part.is_empty());
        parts
    }

    fn encode_header(&self, prev: Lsn, record: &mut EncodedRecord<'_>) {
        let mut header = [0; RECORD_HEADER_BYTES];
        let len = u32::try_from(record.len).expect("longer records were refused"); // infallible: checked as parts were added
        header[0..4].copy_from_slice(&len.to_le_bytes());
        header[4..8].copy_from_slice(&self.xid.0.to_le_bytes());
        header[8..16].copy_from_slice(&prev.0.to_le_bytes());
        header[16] = self.info;
        header[17] = self.resource_manager.0;
        let rest = &record.head[RECORD_HEADER_BYTES..];
        let body = std::iter::once(rest).chain(record.parts.iter().copied());
        let crc = crc_of(&header, body);
        header[CRC_OFFSET..].copy_from_slice(&crc.to_le_bytes());
        record.head[..RECORD_HEADER_BYTES].copy_from_slice(&header);
    }
}

impl Block<'_> {
    fn encode_header(
        &self,
        id: u8,
        previous: Option<RelFileLocator>,
        version: PgVersion,
        head: &mut Vec<u8>,
    ) -> Result<()> {
        let data_len = u16::try_from(self.data.len())
            .map_err(|_| refusal(format!("{} bytes of data for one block", self.data.len())))?;
        let same_relation = previous == Some(self.locator);
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = self.fork as u8
            | flag(self.image.is_some(), HAS_IMAGE)
            | flag(data_len > 0, HAS_DATA)
            | flag(self.will_init, WILL_INIT)
            | flag(same_relation, SAME_RELATION);
        head.extend_from_slice(&[id, flags]);
        head.extend_from_slice(&data_len.to_le_bytes());
        if let Some(image) = &self.image {
            image.encode_header(version, head)?;
        }
        if !same_relation {
            head.extend_from_slice(&self.locator.encode());
        }
        head.extend_from_slice(&self.block.0.to_le_bytes());
        Ok(())
    }
}

impl PageImage<'_> {
    fn encode_header(&self, version: PgVersion, head: &mut Vec<u8>) -> Result<()> {
        let known = ImageFlags::of(version);
        let method = match self.compression {
            ImageCompression::Off => 0,
            wanted => known.methods.iter().find(|(_, method)| *method == wanted).map_or(0, |m| m.0),
        };
        if (method == 0) != (self.compression == ImageCompression::Off) {
            let name = self.compression.name();
            return Err(refusal(format!(
                "an image compressed with {name}, which {version} does not know"
            )));
        }
        let has_hole = !self.hole.is_empty();
        let flags = known.apply | method | if has_hole { ImageFlags::HAS_HOLE } else { 0 };
        // All of these are at most the size of a page.
        head.extend_from_slice(&(self.stored_len() as u16).to_le_bytes());
        head.extend_from_slice(&(self.hole.start as u16).to_le_bytes());
        head.push(flags);
        if has_hole && method != 0 {
            head.extend_from_slice(&(self.hole.len() as u16).to_le_bytes());
        }
        Ok(())
    }
}

/// The bytes of a record, in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedRecord<'a> {
    head: Vec<u8>,
    parts: Vec<&'a [u8]>,
    len: usize,
}

impl EncodedRecord<'_> {
    /// The parts, in their order.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&*self.head).chain(self.parts.iter().copied())
    }

    /// Bytes of the whole record.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: a record has a header.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The whole record in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        self.slices().collect::<Vec<_>>().concat()
    }
}

fn refusal(what: String) -> Error {
    Error::unsupported(STRUCTURE, what)
}
