//! Pages of BRIN indexes: the meta page, the range map, and summaries of ranges of blocks.
//!
//! ```text
//! block 0   meta page: magic | version | blocks in a range | last page of the range map
//! 1 …       range map: for each range of the table the TID of its summary, 6 bytes
//! behind    summaries: block 4 | info 1 | for each column: all NULL?  for each: some NULL? | values …
//! ```
//!
//! The two bitmaps are there only where the info says so, and a set bit means NULL. The values begin at a multiple of 8; a column that is all
//! NULL has none. What the values are is the operator class's.
//!
//! Invariants: a [`RangeSummary`] has its bitmaps and values inside of its page; nothing here knows the types of the columns.
//!
//! Sources: `src/include/access/{brin_page,brin_tuple}.h`, `brin_form_tuple` and `brin_deconstruct_tuple` in
//! `src/backend/access/brin/brin_tuple.c`, PostgreSQL 14 to 18.

use crate::error::{Error, Result};
use crate::ids::{BLOCK_SIZE, BlockBytes, BlockNumber, Tid};
use crate::page::{LinePointerState, Page};
use crate::reader::Reader;

const STRUCTURE: &str = "BRIN page";
/// The block of the meta page; the range map follows.
pub const META_BLOCK: BlockNumber = BlockNumber(0);

const HEADER_BYTES: usize = 24;
/// Bytes of the special area of each page.
pub const SPECIAL_BYTES: usize = 8;
/// What kind of page it is.
const KIND_OFFSET: usize = BLOCK_SIZE - 2;
/// The kind of the meta page, in the last two bytes of each page.
pub const KIND_META: u16 = 0xF091;
/// That of a page of the range map.
pub const KIND_MAP: u16 = 0xF092;
/// That of a page of summaries.
pub const KIND_SUMMARIES: u16 = 0xF093;

/// What the meta page begins with.
pub const MAGIC: u32 = 0xA810_9CFA;
const VERSION: u32 = 1;
const TID_BYTES: usize = 6;
/// So many ranges are on each page of the range map.
pub const RANGES_PER_MAP_PAGE: u32 =
    ((BLOCK_SIZE - HEADER_BYTES - SPECIAL_BYTES) / TID_BYTES) as u32;

/// Block and info of a summary.
const FIXED_BYTES: usize = 5;
const OFFSET_MASK: u8 = 0x1F;
const IS_EMPTY: u8 = 0x20;
const IS_PLACEHOLDER: u8 = 0x40;
const HAS_NULLS: u8 = 0x80;

fn check_kind(page: &BlockBytes, kind: u16, what: &'static str) -> Result<()> {
    let mut reader = Reader::new(STRUCTURE, page);
    reader.seek(KIND_OFFSET)?;
    match reader.u16()? {
        found if found == kind => Ok(()),
        found => {
            let what = format!("a page of kind {found:#06x}, which is not {what}");
            Err(Error::corrupt(STRUCTURE, KIND_OFFSET, what))
        }
    }
}

/// What block 0 of an index says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrinMeta {
    /// Blocks of the table that a summary is for; at least 1.
    pub blocks_per_range: u32,
    /// The last page of the range map.
    pub last_map_block: BlockNumber,
}

impl BrinMeta {
    /// Reads block 0 of an index.
    ///
    /// # Errors
    /// Corrupt when it is not a BRIN index's meta page; unsupported for unknown versions.
    pub fn parse(page: &BlockBytes) -> Result<Self> {
        check_kind(page, KIND_META, "the meta page")?;
        let mut reader = Reader::new(STRUCTURE, page);
        reader.seek(HEADER_BYTES)?;
        let (magic, version) = (reader.u32()?, reader.u32()?);
        if magic != MAGIC {
            let what = format!("magic number {magic:08X} where {MAGIC:08X} belongs");
            return Err(Error::corrupt(STRUCTURE, HEADER_BYTES, what));
        }
        if version != VERSION {
            let what = format!("BRIN version {version}; {VERSION} is read");
            return Err(Error::unsupported(STRUCTURE, what));
        }
        let (blocks_per_range, last_map_block) = (reader.u32()?, BlockNumber(reader.u32()?));
        if blocks_per_range == 0 {
            return Err(Error::corrupt(STRUCTURE, HEADER_BYTES + 8, "ranges of no blocks"));
        }
        Ok(Self { blocks_per_range, last_map_block })
    }
}

/// The places of the summaries that a page of the range map tells, `None` where a range has none.
///
/// # Errors
/// Corrupt when it is no such page.
pub fn summary_places(page: &BlockBytes) -> Result<Vec<Option<Tid>>> {
    check_kind(page, KIND_MAP, "one of the range map")?;
    let contents = page.get(HEADER_BYTES..BLOCK_SIZE - SPECIAL_BYTES).unwrap_or_default();
    let (tids, _) = contents.as_chunks::<TID_BYTES>();
    let place = |[a, b, c, d, e, f]: &[u8; TID_BYTES]| {
        let block =
            u32::from(u16::from_le_bytes([*a, *b])) << 16 | u32::from(u16::from_le_bytes([*c, *d]));
        let line_pointer = u16::from_le_bytes([*e, *f]);
        (line_pointer != 0).then_some(Tid { block: BlockNumber(block), line_pointer })
    };
    Ok(tids.iter().map(place).collect())
}

/// What an index keeps of a range of blocks.
#[derive(Debug, Clone, Copy)]
pub struct RangeSummary<'a> {
    block: BlockNumber,
    info: u8,
    /// Both bitmaps, or nothing.
    nulls: &'a [u8],
    values: &'a [u8],
}

impl<'a> RangeSummary<'a> {
    /// The summary behind a line pointer of a page, of an index with so many columns.
    ///
    /// # Errors
    /// Corrupt when it is no page of summaries, there is none of this number, or it is shorter than it says.
    pub fn parse(page: &'a BlockBytes, number: u16, columns: usize) -> Result<Self> {
        check_kind(page, KIND_SUMMARIES, "one of summaries")?;
        let view = Page::new(page);
        let pointer = view.line_pointer(number);
        let Some(pointer) = pointer.filter(|p| p.state() == LinePointerState::Normal) else {
            let what = format!("no summary behind line pointer {number}");
            return Err(Error::corrupt(STRUCTURE, HEADER_BYTES, what));
        };
        let bytes = view.item(pointer)?;
        let mut reader = Reader::new("BRIN summary", bytes);
        let (block, info) = (BlockNumber(reader.u32()?), reader.u8()?);
        let nulls = match info & HAS_NULLS {
            0 => &[][..],
            _ => reader.bytes((2 * columns).div_ceil(8))?,
        };
        let begin = usize::from(info & OFFSET_MASK);
        if begin < FIXED_BYTES + nulls.len() {
            let what = format!("values begin at {begin}, within what is before them");
            return Err(Error::corrupt("BRIN summary", FIXED_BYTES - 1, what));
        }
        reader.seek(begin)?;
        Ok(Self { block, info, nulls, values: reader.rest() })
    }

    /// The first block of the range.
    pub fn block(&self) -> BlockNumber {
        self.block
    }

    /// Whether it stands there while the range is being summarized, and says nothing.
    pub fn is_placeholder(&self) -> bool {
        self.info & IS_PLACEHOLDER != 0
    }

    /// Whether there was no row in the range. Minor releases before May 2023 do not tell, and call all columns NULL.
    pub fn is_empty(&self) -> bool {
        self.info & IS_EMPTY != 0
    }

    /// Whether all values of a column are NULL, which then has none here.
    pub fn is_all_null(&self, column: usize) -> bool {
        self.nulls.get(column / 8).is_some_and(|byte| byte & 1 << (column % 8) != 0)
    }

    /// The values, laid out like a row's, of the columns that are not all NULL.
    pub fn values(&self) -> &'a [u8] {
        self.values
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(kind: u16) -> Box<BlockBytes> {
        let mut page = Box::new([0; BLOCK_SIZE]);
        page[KIND_OFFSET..].copy_from_slice(&kind.to_le_bytes());
        page[12..14].copy_from_slice(&(HEADER_BYTES as u16).to_le_bytes());
        page[14..16].copy_from_slice(&((BLOCK_SIZE - SPECIAL_BYTES) as u16).to_le_bytes());
        page[16..18].copy_from_slice(&((BLOCK_SIZE - SPECIAL_BYTES) as u16).to_le_bytes());
        page
    }

    fn page_of_meta() -> Box<BlockBytes> {
        page(KIND_META)
    }

    /// A page with one summary.
    fn with_summary(bytes: &[u8]) -> Box<BlockBytes> {
        let mut page = page(KIND_SUMMARIES);
        let offset = (BLOCK_SIZE - SPECIAL_BYTES - bytes.len()) & !7;
        page[offset..offset + bytes.len()].copy_from_slice(bytes);
        let pointer = crate::page::LinePointer::normal(offset, bytes.len());
        page[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(&pointer.0.to_le_bytes());
        page[12..14].copy_from_slice(&(HEADER_BYTES as u16 + 4).to_le_bytes());
        page[14..16].copy_from_slice(&(offset as u16).to_le_bytes());
        page
    }

    #[test]
    fn a_meta_page_tells_the_size_of_ranges() {
        let mut meta = page(KIND_META);
        for (at, word) in [MAGIC, 1, 128, 3].into_iter().enumerate() {
            let at = HEADER_BYTES + 4 * at;
            meta[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        let found = BrinMeta::parse(&meta).unwrap();
        assert_eq!(found, BrinMeta { blocks_per_range: 128, last_map_block: BlockNumber(3) });
        meta[HEADER_BYTES + 8] = 0;
        assert!(BrinMeta::parse(&meta).is_err(), "ranges of no blocks");
        assert!(BrinMeta::parse(&page(KIND_MAP)).is_err());
    }

    #[test]
    fn a_range_map_tells_where_summaries_are() {
        let mut map = page(KIND_MAP);
        map[HEADER_BYTES + 6..HEADER_BYTES + 12].copy_from_slice(&[1, 0, 2, 0, 3, 0]);
        let places = summary_places(&map).unwrap();
        assert_eq!(places.len(), RANGES_PER_MAP_PAGE as usize);
        assert_eq!(places[0], None);
        assert_eq!(places[1], Some(Tid { block: BlockNumber(65_538), line_pointer: 3 }));
    }

    #[test]
    fn a_summary_tells_its_block_nulls_and_values() {
        let mut bytes = vec![128, 0, 0, 0, 8 | HAS_NULLS, 0b0010_0001, 0, 0];
        bytes.extend([7, 0, 0, 0, 9, 0, 0, 0]);
        let page = with_summary(&bytes);
        let summary = RangeSummary::parse(&page, 1, 3).unwrap();
        assert_eq!(summary.block(), BlockNumber(128));
        assert_eq!([0, 1, 2].map(|column| summary.is_all_null(column)), [true, false, false]);
        assert!(!summary.is_empty() && !summary.is_placeholder());
        assert_eq!(summary.values(), [7, 0, 0, 0, 9, 0, 0, 0]);
        assert!(RangeSummary::parse(&page, 2, 3).is_err(), "there is one only");
        assert!(RangeSummary::parse(&page, 1, 100).is_err(), "no room for so many columns");
    }

    proptest! {
        #[test]
        fn no_page_ends_the_program(bytes in prop::collection::vec(any::<u8>(), 64), columns in 1_usize..40) {
            let page = with_summary(&bytes);
            if let Ok(summary) = RangeSummary::parse(&page, 1, columns) {
                prop_assert!(summary.values().len() < bytes.len());
                (0..columns).for_each(|column| { summary.is_all_null(column); });
            }
            let mut meta = page_of_meta();
            meta[HEADER_BYTES..HEADER_BYTES + 64].copy_from_slice(&bytes);
            let _ = BrinMeta::parse(&meta);
        }
    }
}
