//! Redo of the visibility map's pages, where a record refers to them: bits set by VISIBLE records, and bits
//! cleared by the records of 17.11, 18.6 and later, which name the map's page that they change.
//!
//! Records of older servers clear bits of a page that they do not name. That is not redone here: a reader trusts
//! the map only for heap blocks that no record changed.
//!
//! Sources: `heap_xlog_visible`, `heap_xlog_vm_clear` and `heap_xlog_update` in
//! `src/backend/access/heap/heapam_xlog.c`; `visibilitymap_set` and `visibilitymap_clear_locked` in
//! `src/backend/access/heap/visibilitymap.c`, PostgreSQL 14 to 18.

use pagemill_format::page::Page;
use pagemill_format::visibility_map::VisibilityPosition;
use pagemill_format::{BlockBytes, BlockNumber, Error, Result};

use crate::change::{Change, PageLsn};
use crate::page_items::PageItems;

const ALL_FROZEN: u8 = 2;
const BOTH: u8 = 3;

/// References of an update: heap pages of the new and the old version, map pages of both.
const UPDATE_NEW: u8 = 0;
const UPDATE_OLD: u8 = 1;
const UPDATE_MAP_NEW: u8 = 2;
const UPDATE_MAP_OLD: u8 = 3;
/// Where the flags of an update lie in its main data, and the one for the old page.
const UPDATE_FLAGS: usize = 7;
const OLD_ALL_VISIBLE_CLEARED: u8 = 0x01;

/// Sets bits of the block that reference `heap` names; a page of the map that was never written begins here.
pub(crate) fn set(page: &mut BlockBytes, change: Change<'_>, heap: u8) -> Result<PageLsn> {
    let position = position_on(change, change.needed(heap)?)?;
    let mut main = change.main();
    main.u32()?;
    let bits = main.u8()? & BOTH;
    if Page::new(page).is_new() {
        PageItems::init(page, 0);
    }
    let byte = &mut page[position.byte];
    if *byte >> position.shift & BOTH == bits {
        return Ok(PageLsn::Keep);
    }
    *byte |= bits << position.shift;
    Ok(PageLsn::Advance)
}

/// Clears the bits of heap block 0 of a record; a lock leaves the page all-visible, but not all-frozen.
pub(crate) fn clear(page: &mut BlockBytes, change: Change<'_>, is_lock: bool) -> Result<PageLsn> {
    let heap = change.needed(0)?;
    let bits = if is_lock { ALL_FROZEN } else { BOTH };
    clear_bits(page, position_on(change, heap)?, bits)
}

/// Clears bits for an update. The reference for the new version's page is also there for the old one's, if that
/// has its bits on the same page of the map.
pub(crate) fn clear_of_update(page: &mut BlockBytes, change: Change<'_>) -> Result<PageLsn> {
    let new = change.needed(UPDATE_NEW)?;
    let old = change.other(UPDATE_OLD).unwrap_or(new);
    match change.reference() {
        UPDATE_MAP_OLD => clear_bits(page, position_on(change, old)?, BOTH),
        UPDATE_MAP_NEW => {
            let mut lsn = clear_bits(page, position_on(change, new)?, BOTH)?;
            let flags = change.site.record.main_data.get(UPDATE_FLAGS).copied().unwrap_or(0);
            let of_old = VisibilityPosition::of(old);
            let is_here = of_old.block == change.number();
            if flags & OLD_ALL_VISIBLE_CLEARED != 0
                && is_here
                && clear_bits(page, of_old, BOTH)? == PageLsn::Advance
            {
                lsn = PageLsn::Advance;
            }
            Ok(lsn)
        }
        _ => Err(change.unexpected_reference()),
    }
}

fn clear_bits(page: &mut BlockBytes, position: VisibilityPosition, bits: u8) -> Result<PageLsn> {
    if Page::new(page).is_new() {
        return Err(Error::corrupt("visibility map", 0, "bits of a page that was never written"));
    }
    let byte = &mut page[position.byte];
    if *byte & bits << position.shift == 0 {
        return Ok(PageLsn::Keep);
    }
    *byte &= !(bits << position.shift);
    Ok(PageLsn::Advance)
}

/// Where the bits of a heap block are, which must be on the page that is changed.
fn position_on(change: Change<'_>, heap: BlockNumber) -> Result<VisibilityPosition> {
    let position = VisibilityPosition::of(heap);
    if position.block == change.number() {
        return Ok(position);
    }
    let (map, block) = (position.block, change.number());
    Err(change.corrupt(format!("bits of block {heap} are on page {map} of the map, not {block}")))
}
