//! Records of GIN indexes.
//!
//! An index is a B-tree of keys, whose leaves hold short lists of heap TIDs, or lead to a posting tree: a B-tree
//! of TIDs. Leaves of posting trees hold compressed lists, inner pages an array of children. Beside them, tuples
//! that are not sorted in yet lie on a list of pages, which the meta page knows.
//!
//! A split, and the cleanup of a page of keys, always bring the whole pages.
//!
//! Sources: `src/backend/access/gin/{ginxlog,gindatapage,ginutil}.c`, `src/include/access/{ginblock,ginxlog}.h`,
//! PostgreSQL 14 to 18.

mod data_leaf;
mod posting_list;

use pagemill_format::reader::Reader;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Result};

use crate::change::{Change, PageLsn};
use crate::index_page::{
    self, CONTENTS, next_tuple, put, put_u16, put_u32, set_lower, tid_block, tid_block_bytes,
    tid_bytes, u16_at,
};
use crate::page_items::{Numbering, PageItems};

const CREATE_PTREE: u8 = 0x10;
const INSERT: u8 = 0x20;
const SPLIT: u8 = 0x30;
const VACUUM_PAGE: u8 = 0x40;
const DELETE_PAGE: u8 = 0x50;
const UPDATE_META_PAGE: u8 = 0x60;
const INSERT_LISTPAGE: u8 = 0x70;
const DELETE_LISTPAGE: u8 = 0x80;
const VACUUM_DATA_LEAF_PAGE: u8 = 0x90;

/// In the flags of an insertion: the page is one of a posting tree; it is a leaf.
const IS_DATA: u16 = 1 << 0;
const IS_LEAF: u16 = 1 << 1;

/// Bytes of the special area: right neighbor, number of items, flags.
const SPECIAL_BYTES: usize = 8;
const RIGHT: usize = 0;
const ITEMS: usize = 4;
const FLAGS: usize = 6;

const DATA: u16 = 1 << 0;
const LEAF: u16 = 1 << 1;
const DELETED: u16 = 1 << 2;
const META: u16 = 1 << 3;
const LIST: u16 = 1 << 4;
const LIST_FULL_ROW: u16 = 1 << 5;
const INCOMPLETE_SPLIT: u16 = 1 << 6;
const COMPRESSED: u16 = 1 << 7;

const NONE: u32 = u32::MAX;
/// Where a deleted page says by whom: in place of the oldest transaction to prune.
const DELETER: usize = 20;

/// Bytes of what the meta page holds.
const META_BYTES: usize = 56;

/// Where the data of a page of a posting tree begins: behind the bound that is its high key.
const TREE_DATA: usize = CONTENTS + 8;
/// Where it has to end.
const TREE_DATA_END: usize = BLOCK_SIZE - SPECIAL_BYTES;
/// Bytes of an item of an inner page of a posting tree: the block below, the TID that bounds it.
const CHILD_BYTES: usize = 10;

/// Applies a record to one of its blocks.
pub(crate) fn redo(page: &mut BlockBytes, change: Change<'_>) -> Result<PageLsn> {
    match (change.kind(), change.reference()) {
        (CREATE_PTREE, 0) => create_posting_tree(page, change),
        (INSERT, 0) => insert(page, change),
        (INSERT, 1) | (SPLIT, 3) => {
            change_flags(&mut open(page)?, |flags| flags & !INCOMPLETE_SPLIT)
        }
        (SPLIT, 0..=2) | (VACUUM_PAGE, 0) => {
            Err(change.corrupt("the record has no image of the page, which is all there is of it"))
        }
        (DELETE_PAGE, 0..=2) => delete_page(page, change),
        (UPDATE_META_PAGE, 0 | 1) => update_meta_page(page, change),
        (INSERT_LISTPAGE, 0) => insert_list_page(page, change),
        (DELETE_LISTPAGE, 0) => init_meta_page(page, &mut change.main()),
        (DELETE_LISTPAGE, _) => init(page, DELETED).map(|_| ()),
        (VACUUM_DATA_LEAF_PAGE, 0) => data_leaf::recompress(page, change.data()),
        (CREATE_PTREE..=VACUUM_DATA_LEAF_PAGE, _) => Err(change.unexpected_reference()),
        _ => Err(change.unexpected_kind()),
    }?;
    Ok(PageLsn::Advance)
}

fn open(page: &mut BlockBytes) -> Result<PageItems<'_>> {
    index_page::open(page, SPECIAL_BYTES)
}

/// Makes an empty page without a neighbor.
fn init(page: &mut BlockBytes, flags: u16) -> Result<PageItems<'_>> {
    let mut items = PageItems::init(page, SPECIAL_BYTES);
    put_u32(items.special(), RIGHT, NONE)?;
    put_u16(items.special(), FLAGS, flags)?;
    Ok(items)
}

fn change_flags(items: &mut PageItems<'_>, change: impl FnOnce(u16) -> u16) -> Result<()> {
    let flags = u16_at(items.special(), FLAGS)?;
    put_u16(items.special(), FLAGS, change(flags))
}

/// How many items a page says it has: of an inner page of a posting tree, or rows on a page of the list.
fn set_item_count(items: &mut PageItems<'_>, count: u16) -> Result<()> {
    put_u16(items.special(), ITEMS, count)
}

/// The root of a posting tree: a leaf with the lists that are the record's.
fn create_posting_tree(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let size = main.u32()? as usize;
    let lists = main.bytes(size)?;
    init(page, DATA | LEAF | COMPRESSED)?;
    data_leaf::set_lists(page, lists)
}

/// An insertion into a page of keys or of a posting tree; on an inner page, the downlinks to the two halves of the
/// page below, of which the right one is new.
fn insert(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let flags = main.u16()?;
    let right_child = match flags & IS_LEAF {
        0 => {
            main.bytes(4)?; // the left half
            Some(tid_block(main.bytes(4)?)?)
        }
        _ => None,
    };
    match (flags & IS_DATA != 0, right_child) {
        (true, None) => data_leaf::recompress(page, change.data()),
        (true, Some(right)) => insert_child(page, change, right),
        (false, right) => insert_key(page, change, right),
    }
}

fn insert_key(
    page: &mut BlockBytes,
    change: Change<'_>,
    right_child: Option<BlockNumber>,
) -> Result<()> {
    let mut data = change.data();
    let (number, replaces) = (data.u16()?, data.u8()? != 0);
    data.align(2);
    let tuple = next_tuple(&mut data)?;
    let mut items = open(page)?;
    if let Some(right) = right_child {
        put(items.item_mut(number)?, 0, &tid_bytes(right, 0))?;
    }
    if replaces {
        items.delete(number)?;
    }
    items.add(tuple, number, Numbering::Shift)
}

/// The array of children of an inner page of a posting tree.
struct Children<'p> {
    page: &'p mut BlockBytes,
    count: usize,
}

impl<'p> Children<'p> {
    fn open(page: &'p mut BlockBytes) -> Result<Self> {
        let count = usize::from(u16_at(open(page)?.special(), ITEMS)?);
        Ok(Self { page, count })
    }

    /// Where the item of this number begins, of which there are so many that can be meant.
    fn place(&self, number: u16, count: usize) -> Result<usize> {
        let index = usize::from(number).checked_sub(1).filter(|index| *index < count);
        let place = index.map(|index| TREE_DATA + index * CHILD_BYTES);
        place.filter(|_| self.end() <= TREE_DATA_END).ok_or_else(|| {
            let what = format!("item {number} is wanted, there are {}", self.count);
            pagemill_format::Error::corrupt("page of a posting tree", ITEMS, what)
        })
    }

    fn end(&self) -> usize {
        TREE_DATA + self.count * CHILD_BYTES
    }

    /// Moves the items from `from` on to `to`, and says how many there are then.
    fn shift(&mut self, from: usize, to: usize, count: usize) -> Result<()> {
        let end = self.end();
        self.count = count;
        if end.max(self.end()) > TREE_DATA_END || from > end {
            let what = format!("{count} items do not fit");
            return Err(pagemill_format::Error::corrupt("page of a posting tree", ITEMS, what));
        }
        self.page.copy_within(from..end, to);
        set_lower(self.page, self.end())?;
        set_item_count(&mut open(self.page)?, count as u16)
    }
}

fn insert_child(page: &mut BlockBytes, change: Change<'_>, right: BlockNumber) -> Result<()> {
    let mut data = change.data();
    let (number, child) = (data.u16()?, data.bytes(CHILD_BYTES)?);
    let mut children = Children::open(page)?;
    let place = children.place(number, children.count)?;
    // The item that led to the page which was split leads to its right half, and the new one to the left.
    put(children.page, place, &tid_block_bytes(right))?;
    children.shift(place, place + CHILD_BYTES, children.count + 1)?;
    put(page, place, child)
}

/// A page of a posting tree (block 0) is deleted, its downlink (block 1) goes, and its left neighbor (block 2) leads
/// past it.
fn delete_page(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    let downlink = main.u16()?;
    main.align(4);
    let (right, deleter) = (main.u32()?, main.u32()?);
    match change.reference() {
        0 => {
            change_flags(&mut open(page)?, |flags| flags | DELETED)?;
            put_u32(page, DELETER, deleter)
        }
        1 => {
            let mut children = Children::open(page)?;
            let place = children.place(downlink, children.count)?;
            children.shift(place + CHILD_BYTES, place, children.count - 1)
        }
        _ => put_u32(open(page)?.special(), RIGHT, right),
    }
}

/// Makes the meta page, of which the record has all.
fn init_meta_page(page: &mut BlockBytes, main: &mut Reader<'_>) -> Result<()> {
    let contents = main.bytes(META_BYTES)?;
    init(page, META)?;
    put(page, CONTENTS, contents)?;
    set_lower(page, CONTENTS + META_BYTES)
}

/// The meta page (block 0) changes with the list of tuples that are not sorted in yet: its last page (block 1)
/// gets tuples, or leads to others that were appended.
fn update_meta_page(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    main.bytes(12)?; // the relation, which the block references name too
    main.align(8);
    if change.reference() == 0 {
        return init_meta_page(page, &mut main);
    }
    main.bytes(META_BYTES)?;
    main.u32()?; // the last page, which is the block reference's
    let (appended, tuples) = (main.u32()?, main.i32()?);
    let mut items = open(page)?;
    if tuples <= 0 {
        return put_u32(items.special(), RIGHT, appended);
    }
    add_tuples(&mut items, change)?;
    let rows = u16_at(items.special(), ITEMS)?;
    set_item_count(&mut items, rows.wrapping_add(1))
}

fn add_tuples(items: &mut PageItems<'_>, change: Change<'_>) -> Result<()> {
    let mut data = change.data();
    while !data.is_empty() {
        items.add(next_tuple(&mut data)?, items.count() + 1, Numbering::Shift)?;
    }
    Ok(())
}

/// A page of that list is made.
fn insert_list_page(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let right = change.main().u32()?;
    let is_last = right == NONE;
    // Only the last page has whole rows, one to begin with.
    let mut items = init(page, if is_last { LIST | LIST_FULL_ROW } else { LIST })?;
    put_u32(items.special(), RIGHT, right)?;
    set_item_count(&mut items, u16::from(is_last))?;
    add_tuples(&mut items, change)
}
