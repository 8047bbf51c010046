//! What does not count on pages of indexes: hints, which are not logged, and pages that are not in use.
//!
//! Sources: `btree_mask`, `hash_mask`, `gin_mask`, `gist_mask`, `spg_mask` and `brin_mask` in the `*xlog.c` of
//! their managers under `src/backend/access`, `src/backend/access/common/bufmask.c`, PostgreSQL 14 to 18.

use crate::page_mask::{
    HEADER_BYTES, LOWER, PAGE_BYTES, PageBytes, PageKind, SPECIAL, UPPER, mask_page_hints, u16_at,
};

// Flags, by where they are in the special area.
const BTREE_FLAGS: usize = 12;
const BTREE_LEAF: u16 = 1 << 0;
const BTREE_SPLIT_END: u16 = 1 << 5;
const BTREE_HAS_GARBAGE: u16 = 1 << 6;
const BTREE_CYCLE: usize = 14;
const HASH_FLAGS: usize = 12;
const HASH_PAGE_TYPE: u16 = 0xF;
const HASH_UNUSED: u16 = 0;
const HASH_OVERFLOW: u16 = 1;
const HASH_BUCKET: u16 = 2;
const HASH_HAS_DEAD: u16 = 1 << 7;
const GIN_FLAGS: usize = 6;
const GIN_DELETED: u16 = 1 << 2;
const GIST_NSN: std::ops::Range<usize> = 0..8;
const GIST_FLAGS: usize = 12;
const GIST_LEAF: u16 = 1 << 0;
const GIST_TUPLES_DELETED: u16 = 1 << 2;
const GIST_FOLLOW_RIGHT: u16 = 1 << 3;
const GIST_HAS_GARBAGE: u16 = 1 << 4;
const BRIN_FLAGS: usize = 4;
const BRIN_TYPE: usize = 6;
const BRIN_EVACUATE: u16 = 1 << 0;
const BRIN_REVMAP: u16 = 0xF092;

fn clear(page: &mut PageBytes, at: usize, bits: u16) {
    let left = u16_at(page, at) & !bits;
    page[at..at + 2].copy_from_slice(&left.to_le_bytes());
}

fn special_start(page: &PageBytes) -> usize {
    usize::from(u16_at(page, SPECIAL)).min(PAGE_BYTES - 8)
}

/// False for pages whose header does not say where their contents end: BRIN's range maps, which are full of them,
/// and those of GIN without line pointers.
pub(crate) fn has_unused_space(page: &PageBytes, kind: PageKind) -> bool {
    match kind {
        PageKind::Brin => u16_at(page, special_start(page) + BRIN_TYPE) != BRIN_REVMAP,
        PageKind::Gin => usize::from(u16_at(page, LOWER)) > HEADER_BYTES,
        _ => true,
    }
}

/// Blanks what does not count on a page of this index manager, beside LSN, checksum and unused space.
pub(crate) fn mask(page: &mut PageBytes, kind: PageKind) {
    mask_page_hints(page);
    let special = special_start(page);
    match kind {
        PageKind::Btree => {
            if u16_at(page, special + BTREE_FLAGS) & BTREE_LEAF != 0 {
                mask_line_pointers(page);
            }
            clear(page, special + BTREE_FLAGS, BTREE_SPLIT_END | BTREE_HAS_GARBAGE);
            clear(page, special + BTREE_CYCLE, u16::MAX);
        }
        PageKind::Hash => match u16_at(page, special + HASH_FLAGS) & HASH_PAGE_TYPE {
            HASH_UNUSED => mask_contents(page),
            HASH_OVERFLOW | HASH_BUCKET => {
                mask_line_pointers(page);
                clear(page, special + HASH_FLAGS, HASH_HAS_DEAD);
            }
            _ => {}
        },
        PageKind::Gin if u16_at(page, special + GIN_FLAGS) & GIN_DELETED != 0 => {
            mask_contents(page);
        }
        PageKind::Gist => mask_gist(page, special),
        PageKind::Brin => clear(page, special + BRIN_FLAGS, BRIN_EVACUATE),
        _ => {}
    }
}

/// Beside what PostgreSQL masks: that tuples were deleted. Redo of DELETE says so where the server that did it did
/// not, and the server's own comparison fails there.
fn mask_gist(page: &mut PageBytes, special: usize) {
    page[special + GIST_NSN.start..special + GIST_NSN.end].fill(0);
    if u16_at(page, special + GIST_FLAGS) & GIST_LEAF != 0 {
        mask_line_pointers(page);
    }
    let hints = GIST_TUPLES_DELETED | GIST_FOLLOW_RIGHT | GIST_HAS_GARBAGE;
    clear(page, special + GIST_FLAGS, hints);
}

/// The states of line pointers: that a tuple is dead is a hint.
fn mask_line_pointers(page: &mut PageBytes) {
    let lower = usize::from(u16_at(page, LOWER)).min(PAGE_BYTES);
    for at in (HEADER_BYTES..lower).step_by(4) {
        // The states are bits 15 and 16 of 32.
        page[at + 1] &= 0x7F;
        page[at + 2] &= 0xFE;
    }
}

/// All but the header, and in it how far the contents reach.
fn mask_contents(page: &mut PageBytes) {
    page[LOWER..UPPER + 2].fill(0);
    page[HEADER_BYTES..].fill(0);
}
