//! The special area of a B-tree's page, the meta page, and pages made anew.
//!
//! Sources: `src/include/access/nbtree.h`, `_bt_pageinit` in `src/backend/access/nbtree/nbtpage.c`,
//! `_bt_restore_meta` in `src/backend/access/nbtree/nbtxlog.c`, PostgreSQL 14 to 18.

use pagemill_format::{BlockBytes, BlockNumber, Result};

use crate::change::Change;
use crate::index_page::{self, CONTENTS, put, put_u16, put_u32, set_lower, u16_at, u32_at};
use crate::page_items::PageItems;

/// Bytes of the special area: both siblings, level, flags, cycle of the last vacuum that saw a split.
const SPECIAL_BYTES: usize = 16;
const PREVIOUS: usize = 0;
const NEXT: usize = 4;
const LEVEL: usize = 8;
const FLAGS: usize = 12;
const CYCLE: usize = 14;
/// The sibling of a page that has none.
pub(super) const NONE: BlockNumber = BlockNumber(0);

/// Flags of a page (`btpo_flags`).
pub(super) struct Flags;

impl Flags {
    pub(super) const LEAF: u16 = 1 << 0;
    pub(super) const ROOT: u16 = 1 << 1;
    pub(super) const DELETED: u16 = 1 << 2;
    const META: u16 = 1 << 3;
    pub(super) const HALF_DEAD: u16 = 1 << 4;
    pub(super) const HAS_GARBAGE: u16 = 1 << 6;
    pub(super) const INCOMPLETE_SPLIT: u16 = 1 << 7;
    pub(super) const HAS_FULL_XID: u16 = 1 << 8;
}

const META_MAGIC: u32 = 0x0005_3162;
/// Bytes of what the meta page holds.
const META_BYTES: usize = 48;
/// How many tuples the heap had at the last cleanup: no longer kept, and -1 since 14.
const META_HEAP_TUPLES: usize = 32;
const META_ALL_EQUAL_IMAGE: usize = 40;

/// A page of the tree.
pub(super) struct TreePage<'p> {
    pub(super) items: PageItems<'p>,
}

impl<'p> TreePage<'p> {
    /// A page that there is.
    pub(super) fn open(page: &'p mut BlockBytes) -> Result<Self> {
        Ok(Self { items: index_page::open(page, SPECIAL_BYTES)? })
    }

    /// An empty page without siblings.
    pub(super) fn init(page: &'p mut BlockBytes, level: u32, flags: u16) -> Result<Self> {
        let mut made = Self { items: PageItems::init(page, SPECIAL_BYTES) };
        put_u32(made.items.special(), LEVEL, level)?;
        put_u16(made.items.special(), FLAGS, flags)?;
        Ok(made)
    }

    pub(super) fn set_previous(&mut self, block: BlockNumber) -> Result<()> {
        put_u32(self.items.special(), PREVIOUS, block.0)
    }

    pub(super) fn set_next(&mut self, block: BlockNumber) -> Result<()> {
        put_u32(self.items.special(), NEXT, block.0)
    }

    pub(super) fn change_flags(&mut self, change: impl FnOnce(u16) -> u16) -> Result<()> {
        let flags = u16_at(self.items.special(), FLAGS)?;
        put_u16(self.items.special(), FLAGS, change(flags))
    }

    pub(super) fn set_cycle(&mut self, cycle: u16) -> Result<()> {
        put_u16(self.items.special(), CYCLE, cycle)
    }

    /// The number of the first item that is no high key, which all pages have but the rightmost of a level.
    pub(super) fn first_data_item(&mut self) -> Result<u16> {
        let next = u32_at(self.items.special(), NEXT)?;
        Ok(if next == NONE.0 { 1 } else { 2 })
    }

    /// An empty page elsewhere with the same special area, to which the items go one by one: as they lie on
    /// the page then, they lie on the server's.
    pub(super) fn emptied<'n>(&mut self, room: &'n mut BlockBytes) -> Result<TreePage<'n>> {
        let mut made = TreePage { items: PageItems::init(room, SPECIAL_BYTES) };
        put(made.items.special(), 0, self.items.special())?;
        Ok(made)
    }
}

/// Makes the meta page, all of it from the record.
pub(super) fn restore_meta(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut data = change.data();
    // Version, root and its level, fast root and its level, deleted pages of the last cleanup.
    let (numbers, all_equal_image) = (data.bytes(24)?, data.u8()?);
    TreePage::init(page, 0, Flags::META)?;
    put_u32(page, CONTENTS, META_MAGIC)?;
    put(page, CONTENTS + 4, numbers)?;
    put(page, CONTENTS + META_HEAP_TUPLES, &(-1.0_f64).to_le_bytes())?;
    put(page, CONTENTS + META_ALL_EQUAL_IMAGE, &[all_equal_image])?;
    set_lower(page, CONTENTS + META_BYTES)
}
