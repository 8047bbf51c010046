//! Pages of B-tree indexes: the meta page, tree pages, and their tuples.
//!
//! ```text
//! | page header | line pointers … | free | … tuples | prev next level flags cycle |
//! 0            24             pd_lower  pd_upper  pd_special                   8192
//! ```
//!
//! A page that has a right sibling has as its first item a *high key*, an upper bound and no
//! entry. Internal pages hold *pivot* tuples: a key and the block below it, the first key on a
//! page being minus infinity; trailing key columns may be cut off. Leaf pages hold tuples for one
//! heap TID or, deduplicated, a *posting list* of several. Versions 2 and 3 of the format (from
//! before 12, through pg_upgrade) do not mark pivot tuples: there the level alone tells.
//!
//! Invariants: a [`BtreePage`] has its line pointers and tuples inside of the page, checked when
//! they are asked for; an [`IndexTuple`] has its key and TIDs inside of its bytes. Nothing here
//! knows the types of the key columns.
//!
//! Sources: `src/include/access/{nbtree,itup}.h`, `src/include/storage/{bufpage,itemid,itemptr}.h`,
//! `contrib/amcheck/verify_nbtree.c`, PostgreSQL 14 to 18.

mod tuple;

pub use tuple::IndexTuple;

use crate::error::{Error, Result};
use crate::ids::{BLOCK_SIZE, BlockBytes, BlockNumber};
use crate::reader::Reader;

const STRUCTURE: &str = "B-tree page";
/// The block of the meta page.
pub const META_BLOCK: BlockNumber = BlockNumber(0);

const HEADER_BYTES: usize = 24;
const LINE_POINTER_BYTES: usize = 4;
const LOWER_OFFSET: usize = 12;
const SPECIAL_BYTES: usize = 16;
const SPECIAL_OFFSET: usize = BLOCK_SIZE - SPECIAL_BYTES;

const MAGIC: u32 = 0x0005_3162;
const VERSIONS: std::ops::RangeInclusive<u32> = 2..=4;
/// From this version on heap TIDs are part of the key and pivot tuples are marked.
const HEAP_KEY_VERSION: u32 = 4;

/// Flags of a tree page (`btpo_flags`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct BtreeFlags(pub u16);

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $bit:expr;)*) => {
        impl BtreeFlags {
            $(
                $(#[$doc])*
                pub fn $name(self) -> bool {
                    self.0 & (1 << $bit) != 0
                }
            )*
        }
    };
}

flags! {
    /// The page is on level 0.
    is_leaf = 0;
    /// The page has no parent.
    is_root = 1;
    /// The page is no longer part of the tree.
    is_deleted = 2;
    /// The page is the meta page.
    is_meta = 3;
    /// The page is empty and about to be deleted.
    is_half_dead = 4;
    /// The page is the rightmost one of a split group.
    is_split_end = 5;
    /// The page has line pointers that are known to be dead (only a hint).
    has_garbage = 6;
    /// The page was split and its right sibling has no downlink yet.
    is_incomplete_split = 7;
    /// The deleted page says in 64 bits from when on it can be used again.
    has_full_xid = 8;
}

impl BtreeFlags {
    /// True for a page that a scan steps over.
    pub fn is_ignored(self) -> bool {
        self.is_deleted() || self.is_half_dead()
    }
}

/// What block 0 of an index says about the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BtreeMeta {
    /// 2 to 4.
    pub version: u32,
    /// The root page; none in an index that never had an entry.
    pub root: Option<BlockNumber>,
    /// The level of the root page.
    pub level: u32,
    /// Where a search may begin: the lowest page that is alone on its level.
    pub fast_root: Option<BlockNumber>,
    /// The level of that page.
    pub fast_level: u32,
    /// Equal keys are equal byte by byte, so deduplication may happen; version 4 only.
    pub all_equal_image: bool,
}

impl BtreeMeta {
    /// Reads block 0 of an index.
    ///
    /// # Errors
    /// Corrupt when it is not a B-tree's meta page; unsupported for unknown versions.
    pub fn parse(page: &BlockBytes) -> Result<Self> {
        let special = Special::read(page)?;
        if !special.flags.is_meta() {
            let what = format!("flags {:#06x} are not those of a meta page", special.flags.0);
            return Err(Error::corrupt(STRUCTURE, SPECIAL_OFFSET + 12, what));
        }
        let mut r = Reader::new(STRUCTURE, page);
        r.seek(HEADER_BYTES)?;
        let (magic, version) = (r.u32()?, r.u32()?);
        if magic != MAGIC {
            let what = format!("magic number {magic:08X} where {MAGIC:08X} belongs");
            return Err(Error::corrupt(STRUCTURE, HEADER_BYTES, what));
        }
        if !VERSIONS.contains(&version) {
            let what = format!("B-tree version {version}; 2, 3 and 4 are read");
            return Err(Error::unsupported(STRUCTURE, what));
        }
        let (root, level) = (block(r.u32()?), r.u32()?);
        let (fast_root, fast_level) = (block(r.u32()?), r.u32()?);
        r.bytes(16)?;
        let all_equal_image = version >= HEAP_KEY_VERSION && r.u8()? != 0;
        Ok(Self { version, root, level, fast_root, fast_level, all_equal_image })
    }

    /// True when equal keys are ordered by heap TID and pivot tuples are marked as such.
    pub fn has_heap_key(&self) -> bool {
        self.version >= HEAP_KEY_VERSION
    }
}

/// One page of the tree.
#[derive(Debug, Clone, Copy)]
pub struct BtreePage<'a> {
    bytes: &'a BlockBytes,
    special: Special,
    upper: usize,
    items: u16,
}

impl<'a> BtreePage<'a> {
    /// Reads a page other than the meta page. Deleted pages are read too, and have no items.
    ///
    /// # Errors
    /// Corrupt when header or special space are not those of a tree page, and for a page that
    /// was never initialised: no link of the tree leads to one.
    pub fn parse(bytes: &'a BlockBytes) -> Result<Self> {
        let special = Special::read(bytes)?;
        if special.flags.is_meta() {
            let what = "the meta page where a tree page belongs";
            return Err(Error::corrupt(STRUCTURE, SPECIAL_OFFSET + 12, what));
        }
        let leaf = special.flags.is_leaf();
        if !special.flags.is_deleted() && leaf != (special.level == 0) {
            let kind = if leaf { "a leaf" } else { "not a leaf" };
            let what = format!("the flags say {kind}, on level {}", special.level);
            return Err(Error::corrupt(STRUCTURE, SPECIAL_OFFSET + 8, what));
        }
        let (lower, upper) = bounds(bytes)?;
        let pointers = (lower - HEADER_BYTES) / LINE_POINTER_BYTES;
        // A deleted page keeps a transaction id where line pointers would be.
        let items = if special.flags.is_deleted() { 0 } else { pointers as u16 };
        Ok(Self { bytes, special, upper, items })
    }

    /// The page's flags.
    pub fn flags(&self) -> BtreeFlags {
        self.special.flags
    }

    /// 0 for leaf pages, counted upwards.
    pub fn level(&self) -> u32 {
        self.special.level
    }

    /// True when the tuples are entries and not pivots.
    pub fn is_leaf(&self) -> bool {
        self.special.flags.is_leaf()
    }

    /// The left sibling.
    pub fn previous(&self) -> Option<BlockNumber> {
        block(self.special.previous)
    }

    /// The right sibling; for a deleted page, where a scan standing on it goes on.
    pub fn next(&self) -> Option<BlockNumber> {
        block(self.special.next)
    }

    /// How many items the page has, high key included.
    pub fn item_count(&self) -> u16 {
        self.items
    }

    /// The number of the first item after the high key, 1 or 2.
    pub fn first_data_item(&self) -> u16 {
        if self.has_high_key() { 2 } else { 1 }
    }

    /// How many items there are without the high key.
    pub fn data_item_count(&self) -> u16 {
        (self.items + 1).saturating_sub(self.first_data_item())
    }

    /// True when the first item is the page's upper bound.
    pub fn has_high_key(&self) -> bool {
        self.special.next != 0
    }

    /// The upper bound of the keys on the page; none on the rightmost page of a level.
    ///
    /// # Errors
    /// Corrupt when its line pointer or tuple is.
    pub fn high_key(&self) -> Result<Option<IndexTuple<'a>>> {
        if !self.has_high_key() || self.items == 0 {
            return Ok(None);
        }
        self.item(1).map(Some)
    }

    /// Item `number`, counted from 1.
    ///
    /// # Errors
    /// Corrupt when there is no such item, or its line pointer or tuple is damaged.
    #[inline]
    pub fn item(&self, number: u16) -> Result<IndexTuple<'a>> {
        if number == 0 || number > self.items {
            return Err(self.no_such_item(number));
        }
        let pointer_at = HEADER_BYTES + (usize::from(number) - 1) * LINE_POINTER_BYTES;
        let pointer = self.bytes.get(pointer_at..).and_then(|rest| rest.first_chunk::<4>());
        let pointer = LinePointer(pointer.map_or(0, |bytes| u32::from_le_bytes(*bytes)));
        let (from, to) = (pointer.offset(), pointer.offset() + pointer.length());
        let is_inside = pointer.has_tuple() && from >= self.upper && to <= SPECIAL_OFFSET;
        match self.bytes.get(from..to) {
            Some(tuple) if is_inside => IndexTuple::parse(tuple, from, pointer.is_dead()),
            _ => Err(bad_pointer(pointer_at, pointer)),
        }
    }

    /// Every item but the high key, in key order, dead ones included.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = Result<IndexTuple<'a>>> + use<'a> {
        let page = *self;
        (page.first_data_item()..=page.items).map(move |number| page.item(number))
    }

    #[cold]
    fn no_such_item(&self, number: u16) -> Error {
        let what = format!("item {number} of {}", self.items);
        Error::corrupt(STRUCTURE, LOWER_OFFSET, what)
    }
}

/// The last 16 bytes of a page.
#[derive(Debug, Clone, Copy)]
struct Special {
    previous: u32,
    next: u32,
    level: u32,
    flags: BtreeFlags,
}

impl Special {
    fn read(page: &BlockBytes) -> Result<Self> {
        let mut r = Reader::new(STRUCTURE, page);
        r.seek(LOWER_OFFSET + 4)?;
        let special = usize::from(r.u16()?);
        if special != SPECIAL_OFFSET {
            let what =
                format!("special space at {special}, where a B-tree's is at {SPECIAL_OFFSET}");
            return Err(Error::corrupt(STRUCTURE, LOWER_OFFSET + 4, what));
        }
        r.seek(SPECIAL_OFFSET)?;
        let (previous, next, level) = (r.u32()?, r.u32()?, r.u32()?);
        Ok(Self { previous, next, level, flags: BtreeFlags(r.u16()?) })
    }
}

/// `pd_lower` and `pd_upper`, in order and inside of the page.
fn bounds(page: &BlockBytes) -> Result<(usize, usize)> {
    let mut r = Reader::new(STRUCTURE, page);
    r.seek(LOWER_OFFSET)?;
    let (lower, upper) = (usize::from(r.u16()?), usize::from(r.u16()?));
    if HEADER_BYTES <= lower && lower <= upper && upper <= SPECIAL_OFFSET {
        return Ok((lower, upper));
    }
    let what = format!("free space from {lower} to {upper}");
    Err(Error::corrupt(STRUCTURE, LOWER_OFFSET, what))
}

/// Block 0 is the meta page, so 0 stands for "none" wherever a tree page is named.
fn block(number: u32) -> Option<BlockNumber> {
    (number != 0).then_some(BlockNumber(number))
}

/// Where a tuple is: 15 bits of offset, 2 of state, 15 of length.
#[derive(Clone, Copy)]
struct LinePointer(u32);

impl LinePointer {
    const NORMAL: u32 = 1;
    const DEAD: u32 = 3;

    fn offset(self) -> usize {
        (self.0 & 0x7FFF) as usize
    }

    fn state(self) -> u32 {
        self.0 >> 15 & 3
    }

    fn length(self) -> usize {
        (self.0 >> 17) as usize
    }

    fn is_dead(self) -> bool {
        self.state() == Self::DEAD
    }

    /// Items of an index keep their tuple when they die; no other states occur.
    fn has_tuple(self) -> bool {
        self.state() == Self::NORMAL || self.is_dead()
    }
}

#[cold]
fn bad_pointer(pointer_at: usize, pointer: LinePointer) -> Error {
    let (offset, length, state) = (pointer.offset(), pointer.length(), pointer.state());
    let what = format!("line pointer of state {state} to {length} bytes at {offset}");
    Error::corrupt(STRUCTURE, pointer_at, what)
}

#[cfg(test)]
mod tests;
