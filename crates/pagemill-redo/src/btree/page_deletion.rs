//! Deletion of empty pages, in two steps: the page above loses the downlink, and the leaf becomes half dead;
//! then the page is unlinked from its siblings, and deleted.
//!
//! Of a subtree that goes as a whole, the leaf is deleted last, and says until then which page above it is next.
//!
//! Sources: `btree_xlog_mark_page_halfdead` and `btree_xlog_unlink_page` in
//! `src/backend/access/nbtree/nbtxlog.c`, `BTPageSetDeleted` and `BTreeTupleSetTopParent` in
//! `src/include/access/nbtree.h`, PostgreSQL 14 to 18.

use pagemill_format::{BlockBytes, BlockNumber, Result};

use super::tree_page::{Flags, TreePage};
use crate::change::Change;
use crate::index_page::{
    CONTENTS, TUPLE_HEADER_BYTES, TUPLE_INFO, put, put_u16, set_lower, tid_block, tid_block_bytes,
};
use crate::page_items::Numbering;

/// In a tuple's `t_info`: the TID of the header is something else; here the page above, and no key columns.
const ALTERNATIVE_TID: u16 = 0x2000;
/// Bytes that a deleted page keeps: from which transaction on it can be used again.
const SAFE_XID_BYTES: usize = 8;

/// What the page above a leaf, or a leaf, becomes when the leaf is half dead.
pub(super) fn mark_half_dead(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let downlink = main.u16()?;
    main.align(4);
    main.u32()?; // the leaf, which its block reference names too
    let (left, right, top) = (main.u32()?, main.u32()?, main.u32()?);
    if change.reference() == 1 {
        return remove_downlink(page, downlink);
    }
    half_dead_leaf(page, HalfDead::of(left, right, top))
}

/// The page keeps the key of this downlink's item, and leads from there to where the next item led, which goes.
fn remove_downlink(page: &mut BlockBytes, number: u16) -> Result<()> {
    let next = number.saturating_add(1);
    let mut page = TreePage::open(page)?;
    let below = tid_block(page.items.item(next)?)?;
    put(page.items.item_mut(number)?, 0, &tid_block_bytes(below))?;
    page.items.delete(next)
}

/// A half dead leaf.
struct HalfDead {
    left: BlockNumber,
    right: BlockNumber,
    /// The topmost page of the subtree that goes with it.
    top: BlockNumber,
}

impl HalfDead {
    fn of(left: u32, right: u32, top: u32) -> Self {
        Self { left: BlockNumber(left), right: BlockNumber(right), top: BlockNumber(top) }
    }
}

fn half_dead_leaf(page: &mut BlockBytes, leaf: HalfDead) -> Result<()> {
    let mut page = TreePage::init(page, 0, Flags::HALF_DEAD | Flags::LEAF)?;
    page.set_previous(leaf.left)?;
    page.set_next(leaf.right)?;
    let mut high_key = [0; TUPLE_HEADER_BYTES];
    put(&mut high_key, 0, &tid_block_bytes(leaf.top))?;
    put_u16(&mut high_key, TUPLE_INFO, TUPLE_HEADER_BYTES as u16 | ALTERNATIVE_TID)?;
    page.items.add(&high_key, 1, Numbering::Shift)
}

/// What a page, its siblings, or the leaf below it become when it is taken out of the tree.
pub(super) fn unlink(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let (left, right) = (BlockNumber(main.u32()?), BlockNumber(main.u32()?));
    let level = main.u32()?;
    main.align(8);
    let safe_xid = main.bytes(SAFE_XID_BYTES)?;
    match change.reference() {
        1 => TreePage::open(page)?.set_next(right),
        2 => TreePage::open(page)?.set_previous(left),
        3 => half_dead_leaf(page, HalfDead::of(main.u32()?, main.u32()?, main.u32()?)),
        _ => {
            let leaf = if level == 0 { Flags::LEAF } else { 0 };
            let flags = Flags::DELETED | Flags::HAS_FULL_XID | leaf;
            let mut deleted = TreePage::init(page, level, flags)?;
            deleted.set_previous(left)?;
            deleted.set_next(right)?;
            put(page, CONTENTS, safe_xid)?;
            set_lower(page, CONTENTS + SAFE_XID_BYTES)
        }
    }
}
