//! Which block a WAL record changes, with what, and the image of the whole page if it brings one.
//!
//! An image has no bytes for the hole between the line pointers and the tuples, and may be compressed. 14
//! knows pglz only and has one flag for it; 15 has a flag for each method, and gave the flag that tells
//! whether replay uses the image another bit. A compressed image says how long its hole is; of another the
//! hole is what is missing to a page.
//!
//! Sources: `src/include/access/xlogrecord.h`; `DecodeXLogRecord` and `RestoreBlockImage` in
//! `src/backend/access/transam/xlogreader.c`, PostgreSQL 14 to 18.

use super::{ImageCompression, RelFileLocator};
use crate::error::{Error, Result};
use crate::ids::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, PgVersion};
use crate::reader::Reader;
use crate::{lz4, pglz};

const STRUCTURE: &str = "full-page image";

pub(super) const FORK_MASK: u8 = 0x0F;
pub(super) const HAS_IMAGE: u8 = 0x10;
pub(super) const HAS_DATA: u8 = 0x20;
pub(super) const WILL_INIT: u8 = 0x40;
pub(super) const SAME_RELATION: u8 = 0x80;

/// The flags of an image, by version.
#[derive(Clone, Copy)]
pub(super) struct ImageFlags {
    pub(super) apply: u8,
    pub(super) methods: &'static [(u8, ImageCompression)],
}

impl ImageFlags {
    pub(super) const HAS_HOLE: u8 = 0x01;

    pub(super) fn of(version: PgVersion) -> Self {
        if version == PgVersion::V14 {
            return Self { apply: 0x04, methods: &[(0x02, ImageCompression::Pglz)] };
        }
        let methods = &[
            (0x04, ImageCompression::Pglz),
            (0x08, ImageCompression::Lz4),
            (0x10, ImageCompression::Zstd),
        ];
        Self { apply: 0x02, methods }
    }

    fn method(self, flags: u8) -> ImageCompression {
        let found = self.methods.iter().find(|(flag, _)| flags & flag != 0);
        found.map_or(ImageCompression::Off, |(_, method)| *method)
    }
}

/// A block that a record changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockReference<'a> {
    /// Its number within the record.
    pub id: u8,
    /// The relation.
    pub locator: RelFileLocator,
    /// The fork.
    pub fork: Fork,
    /// The block.
    pub block: BlockNumber,
    /// Replay makes the page anew, whatever lies there.
    pub will_init: bool,
    /// The page as it was after the change.
    pub image: Option<BlockImage<'a>>,
    /// What the resource manager wrote for this block.
    pub data: &'a [u8],
}

/// That a record changes a block, and whether it brings the whole page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockTouch {
    /// The number of the reference within the record.
    pub id: u8,
    /// The relation.
    pub locator: RelFileLocator,
    /// The fork.
    pub fork: Fork,
    /// The block.
    pub block: BlockNumber,
    /// Replay makes the page anew, whatever lies there.
    pub will_init: bool,
    /// Replay puts an image in place of the page.
    pub brings_image: bool,
}

impl BlockReference<'_> {
    /// The same without data.
    pub fn touch(&self) -> BlockTouch {
        BlockTouch {
            id: self.id,
            locator: self.locator,
            fork: self.fork,
            block: self.block,
            will_init: self.will_init,
            brings_image: self.image.is_some_and(|image| image.apply),
        }
    }
}

/// A full-page image as it lies in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockImage<'a> {
    /// The page without its hole, compressed or not.
    pub data: &'a [u8],
    /// Where in the page the hole begins, in bytes.
    pub hole_offset: u16,
    /// Bytes of the hole, all zero.
    pub hole_length: u16,
    /// How `data` is compressed.
    pub compression: ImageCompression,
    /// Replay puts the image in place of the page; otherwise it is there to be compared with.
    pub apply: bool,
}

impl BlockImage<'_> {
    /// The page: decompressed, and with its hole. `scratch` is memory to decompress to.
    ///
    /// # Errors
    /// Corrupt: what is compressed does not come out at the size of a page without its hole.
    pub fn restore(&self, page: &mut BlockBytes, scratch: &mut Vec<u8>) -> Result<()> {
        let hole = usize::from(self.hole_offset)
            ..usize::from(self.hole_offset) + usize::from(self.hole_length);
        let raw_size = BLOCK_SIZE.saturating_sub(hole.len());
        scratch.clear();
        match self.compression {
            ImageCompression::Off => scratch.extend_from_slice(self.data),
            ImageCompression::Pglz => pglz::decompress(self.data, raw_size, scratch)?,
            ImageCompression::Lz4 => lz4::decompress(self.data, raw_size, scratch)?,
            ImageCompression::Zstd => crate::zstd::decompress(self.data, raw_size, scratch)?,
        }
        let parts = scratch.split_at_checked(hole.start).filter(|_| scratch.len() == raw_size);
        let targets = page.split_at_mut_checked(hole.start);
        let (Some((head, tail)), Some((page_head, page_rest))) = (parts, targets) else {
            let what =
                format!("{} bytes and a hole of {} at {}", scratch.len(), hole.len(), hole.start);
            return Err(Error::corrupt(STRUCTURE, 0, what));
        };
        page_head.copy_from_slice(head);
        let (page_hole, page_tail) = page_rest.split_at_mut(hole.len());
        page_hole.fill(0);
        page_tail.copy_from_slice(tail);
        Ok(())
    }
}

/// A block reference whose data is still to come.
pub(super) struct BlockHeader {
    pub(super) id: u8,
    pub(super) locator: RelFileLocator,
    fork: Fork,
    block: BlockNumber,
    will_init: bool,
    image: Option<ImageHeader>,
    data_len: usize,
}

struct ImageHeader {
    len: u16,
    hole_offset: u16,
    hole_length: u16,
    compression: ImageCompression,
    apply: bool,
}

impl BlockHeader {
    /// Reads on after the reference's number. `previous` is the relation of the reference before it.
    #[inline]
    pub(super) fn read(
        r: &mut Reader<'_>,
        id: u8,
        previous: Option<RelFileLocator>,
        version: PgVersion,
    ) -> Result<Self> {
        let flags = r.u8()?;
        let data_len = usize::from(r.u16()?);
        if (flags & HAS_DATA != 0) != (data_len > 0) {
            return Err(r.corrupt(format!(
                "block reference {id}: flags {flags:02X} with {data_len} bytes of data"
            )));
        }
        let image = match flags & HAS_IMAGE != 0 {
            true => Some(ImageHeader::read(r, version)?),
            false => None,
        };
        let locator = match (flags & SAME_RELATION != 0, previous) {
            (false, _) => RelFileLocator::read(r)?,
            (true, Some(previous)) => previous,
            (true, None) => {
                return Err(
                    r.corrupt("the relation is that of a reference before, and there is none")
                );
            }
        };
        let fork = Fork::ALL.get(usize::from(flags & FORK_MASK));
        let Some(&fork) = fork else {
            return Err(r.corrupt(format!("fork {} where 0 to 3 are defined", flags & FORK_MASK)));
        };
        let block = BlockNumber(r.u32()?);
        Ok(Self { id, locator, fork, block, will_init: flags & WILL_INIT != 0, image, data_len })
    }

    /// What is known of the block without its data.
    #[inline]
    pub(super) fn touch(&self) -> BlockTouch {
        BlockTouch {
            id: self.id,
            locator: self.locator,
            fork: self.fork,
            block: self.block,
            will_init: self.will_init,
            brings_image: self.image.as_ref().is_some_and(|image| image.apply),
        }
    }

    /// Bytes of image and data.
    pub(super) fn data_bytes(&self) -> usize {
        self.data_len + self.image.as_ref().map_or(0, |image| usize::from(image.len))
    }

    pub(super) fn take_data<'a>(self, r: &mut Reader<'a>) -> Result<BlockReference<'a>> {
        let image = match self.image {
            Some(image) => Some(BlockImage {
                data: r.bytes(usize::from(image.len))?,
                hole_offset: image.hole_offset,
                hole_length: image.hole_length,
                compression: image.compression,
                apply: image.apply,
            }),
            None => None,
        };
        Ok(BlockReference {
            id: self.id,
            locator: self.locator,
            fork: self.fork,
            block: self.block,
            will_init: self.will_init,
            image,
            data: r.bytes(self.data_len)?,
        })
    }
}

impl ImageHeader {
    fn read(r: &mut Reader<'_>, version: PgVersion) -> Result<Self> {
        let known = ImageFlags::of(version);
        let (len, hole_offset, flags) = (r.u16()?, r.u16()?, r.u8()?);
        let (has_hole, compression) = (flags & ImageFlags::HAS_HOLE != 0, known.method(flags));
        let hole_length = match (compression, has_hole) {
            (ImageCompression::Off, _) => (BLOCK_SIZE as u16).saturating_sub(len),
            (_, true) => r.u16()?,
            (_, false) => 0,
        };
        let apply = flags & known.apply != 0;
        let image = Self { len, hole_offset, hole_length, compression, apply };
        match image.is_plausible(has_hole) {
            true => Ok(image),
            false => Err(r.corrupt(format!(
                "an image of {len} bytes, a hole of {hole_length} at {hole_offset}, flags {flags:02X}: \
                 that is not a page of {BLOCK_SIZE} bytes"
            ))),
        }
    }

    fn is_plausible(&self, has_hole: bool) -> bool {
        let len = usize::from(self.len);
        let hole_end = usize::from(self.hole_offset) + usize::from(self.hole_length);
        let hole_is_told = match has_hole {
            true => self.hole_offset > 0 && self.hole_length > 0 && hole_end <= BLOCK_SIZE,
            false => self.hole_offset == 0 && self.hole_length == 0,
        };
        let length_fits = match self.compression {
            ImageCompression::Off => len + usize::from(self.hole_length) == BLOCK_SIZE,
            _ => len < BLOCK_SIZE,
        };
        hole_is_told && length_fits
    }
}
