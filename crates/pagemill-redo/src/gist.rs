//! Records of GiST indexes.
//!
//! When a page is split, the downlinks to the new pages follow in a record of their own. Until then the left ones
//! say that a scan has to follow them to the right; the record that brings the downlinks takes that back, and gives
//! the page the record's own end as its sequence number (NSN), from which scans see that it was split. No image
//! can have that number, as it was made before the record had a place: so it is set behind an image too, see
//! [`after_image`].
//!
//! Sources: `src/backend/access/gist/{gistxlog,gistutil}.c`, `src/include/access/{gist,gistxlog}.h`,
//! PostgreSQL 14 to 18. The main data of a deletion has one more field since 16.

use pagemill_format::reader::Reader;
use pagemill_format::{BlockBytes, BlockNumber, Lsn, PgVersion, Result};

use crate::change::{Change, PageLsn};
use crate::index_page::{
    self, CONTENTS, next_tuple, numbers, put, put_u16, put_u32, set_lower, u16_at,
};
use crate::page_items::{Numbering, PageItems};

const PAGE_UPDATE: u8 = 0x00;
const DELETE: u8 = 0x10;
const PAGE_SPLIT: u8 = 0x30;
const PAGE_DELETE: u8 = 0x60;
const LAST_KIND: u8 = 0x70;

/// Bytes of the special area: NSN, right neighbor, flags, a number that tells the manager.
const SPECIAL_BYTES: usize = 16;
const NSN: usize = 0;
const RIGHT: usize = 8;
const FLAGS: usize = 12;
const PAGE_ID: usize = 14;
const GIST_PAGE_ID: u16 = 0xFF81;

const LEAF: u16 = 1 << 0;
const DELETED: u16 = 1 << 1;
const TUPLES_DELETED: u16 = 1 << 2;
const FOLLOW_RIGHT: u16 = 1 << 3;
const HAS_GARBAGE: u16 = 1 << 4;

const ROOT: BlockNumber = BlockNumber(0);
const NONE: u32 = u32::MAX;

/// In an update, the page to the left of those that the new tuples lead to; in a split, that of the level below.
const UPDATED_CHILD: u8 = 1;
const SPLIT_CHILD: u8 = 0;

/// Applies a record to one of its blocks.
pub(crate) fn redo(page: &mut BlockBytes, change: Change<'_>) -> Result<PageLsn> {
    match (change.kind(), change.reference()) {
        (PAGE_UPDATE, 0) => update(page, change),
        (PAGE_UPDATE, UPDATED_CHILD) | (PAGE_SPLIT, SPLIT_CHILD) => finish_split(page, change),
        (DELETE, 0) => delete(page, change),
        (PAGE_SPLIT, _) => split(page, change),
        (PAGE_DELETE, 0 | 1) => delete_page(page, change),
        (PAGE_UPDATE..=LAST_KIND, _) => Err(change.unexpected_reference()),
        _ => Err(change.unexpected_kind()),
    }?;
    Ok(PageLsn::Advance)
}

/// What has to happen to a page that an image of this record replaced.
pub(crate) fn after_image(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    match (change.kind(), change.reference()) {
        (PAGE_UPDATE, UPDATED_CHILD) | (PAGE_SPLIT, SPLIT_CHILD) => finish_split(page, change),
        _ => Ok(()),
    }
}

fn open(page: &mut BlockBytes) -> Result<PageItems<'_>> {
    index_page::open(page, SPECIAL_BYTES)
}

fn change_flags(items: &mut PageItems<'_>, change: impl FnOnce(u16) -> u16) -> Result<()> {
    let flags = u16_at(items.special(), FLAGS)?;
    put_u16(items.special(), FLAGS, change(flags))
}

/// The number is stored as an LSN, its upper half first.
fn set_nsn(items: &mut PageItems<'_>, nsn: Lsn) -> Result<()> {
    put(items.special(), NSN, &nsn.0.rotate_left(32).to_le_bytes())
}

/// The downlinks to the right of this page are there.
fn finish_split(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut items = open(page)?;
    set_nsn(&mut items, change.site.end)?;
    change_flags(&mut items, |flags| flags & !FOLLOW_RIGHT)
}

/// Tuples are deleted and added; one for one in place.
fn update(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (deleted, inserted) = (main.u16()?, main.u16()?);
    let mut data = change.data();
    let mut items = open(page)?;
    let deleted = numbers(&mut data, usize::from(deleted))?;
    if let ([number], 1) = (&deleted[..], inserted) {
        items.overwrite(*number, next_tuple(&mut data)?)?;
    } else if !deleted.is_empty() {
        items.delete_all(&deleted)?;
        change_flags(
            &mut items,
            |flags| {
                if flags & LEAF == 0 { flags } else { flags | TUPLES_DELETED }
            },
        )?;
    }
    append_all(&mut items, &mut data)
}

/// Adds the tuples that are left behind the others.
fn append_all(items: &mut PageItems<'_>, data: &mut Reader<'_>) -> Result<()> {
    while !data.is_empty() {
        items.add(next_tuple(data)?, items.count() + 1, Numbering::Shift)?;
    }
    Ok(())
}

fn delete(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    main.u32()?; // the transaction that standbys wait for
    let count = main.u16()?;
    if change.version() >= PgVersion::V16 {
        main.u16()?; // whether the table is a catalog, and padding
    }
    let deleted = numbers(&mut main, usize::from(count))?;
    let mut items = open(page)?;
    items.delete_all(&deleted)?;
    change_flags(&mut items, |flags| flags & !HAS_GARBAGE | TUPLES_DELETED)
}

/// One of the pages that a page was split into, from left to right; the root first, where it was split, with the
/// downlinks to the others.
fn split(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let old_right = main.u32()?;
    main.align(8);
    let (nsn, was_leaf) = (Lsn(main.u64()?), main.u8()? != 0);
    main.align(2);
    let (pages, marks_follow_right) = (main.u16()?, main.u8()? != 0);
    let place = u16::from(change.reference());
    if place > pages {
        return Err(change.unexpected_reference());
    }
    let (is_root, is_last) = (change.number() == ROOT, place == pages);
    let is_root_split = change.needed(1)? == ROOT;
    let follows = marks_follow_right && !is_last && !is_root_split;
    let leaf = if was_leaf && !is_root { LEAF } else { 0 };
    let right = match (is_root, is_last) {
        (true, _) => NONE,
        (false, true) => old_right,
        (false, false) => change.needed(change.reference().saturating_add(1))?.0,
    };
    let mut items = PageItems::init(page, SPECIAL_BYTES);
    set_nsn(&mut items, nsn)?;
    put_u32(items.special(), RIGHT, right)?;
    put_u16(items.special(), FLAGS, leaf | if follows { FOLLOW_RIGHT } else { 0 })?;
    put_u16(items.special(), PAGE_ID, GIST_PAGE_ID)?;
    let mut data = change.data();
    data.u32()?; // how many tuples follow
    append_all(&mut items, &mut data)
}

/// An empty leaf (block 0) is deleted, and its downlink (block 1) goes.
fn delete_page(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (deleter, downlink) = (main.bytes(8)?, main.u16()?);
    let mut items = open(page)?;
    if change.reference() == 1 {
        return items.delete(downlink);
    }
    change_flags(&mut items, |flags| flags | DELETED)?;
    put(page, CONTENTS, deleter)?;
    set_lower(page, CONTENTS + 8)
}
