//! B-tree records.
//!
//! A page is found by the number of its block reference, and links come from the numbers of the record's other
//! blocks. Of several items of a posting list some may go: the tuple then is replaced, before whole items are
//! deleted, since the record names all of them by their numbers before the change.
//!
//! The rules are the same from 14 to 18; only tails of the main data differ that no page depends on. 18 clears
//! the cycle of a vacuum in redo too, which is what the server that wrote the record did in every version.
//!
//! Sources: `src/backend/access/nbtree/nbtxlog.c`, `src/include/access/{nbtree,nbtxlog}.h`, PostgreSQL 14 to 18.

mod dedup;
mod page_deletion;
mod posting;
mod split;
mod tree_page;

use pagemill_format::page_builder::max_align;
use pagemill_format::reader::Reader;
use pagemill_format::{BlockBytes, Result};

use crate::change::{Change, PageLsn};
use crate::index_page::numbers;
use crate::page_items::{Numbering, PageItems};
use tree_page::{Flags, TreePage};

const INSERT_LEAF: u8 = 0x00;
const INSERT_UPPER: u8 = 0x10;
const INSERT_META: u8 = 0x20;
const SPLIT_L: u8 = 0x30;
const SPLIT_R: u8 = 0x40;
const INSERT_POST: u8 = 0x50;
const DEDUP: u8 = 0x60;
const DELETE: u8 = 0x70;
const UNLINK_PAGE: u8 = 0x80;
const UNLINK_PAGE_META: u8 = 0x90;
const NEWROOT: u8 = 0xA0;
const MARK_PAGE_HALFDEAD: u8 = 0xB0;
const VACUUM: u8 = 0xC0;
const META_CLEANUP: u8 = 0xE0;

/// Bytes before the counts in the main data of a deletion: the transaction that standbys wait for.
const DELETE_CONFLICT_BYTES: usize = 4;

/// Applies a record to one of its blocks.
pub(crate) fn redo(page: &mut BlockBytes, change: Change<'_>) -> Result<PageLsn> {
    match (change.kind(), change.reference()) {
        (INSERT_LEAF | INSERT_UPPER | INSERT_META, 0) => insert(page, change),
        (INSERT_UPPER | INSERT_META, 1) => clear_incomplete_split(page),
        (INSERT_META, 2) => tree_page::restore_meta(page, change),
        (SPLIT_L, _) => split::redo(page, change, true),
        (SPLIT_R, _) => split::redo(page, change, false),
        (INSERT_POST, 0) => insert_into_posting(page, change),
        (DEDUP, 0) => dedup::redo(page, change),
        (DELETE, 0) => delete(page, change),
        (UNLINK_PAGE | UNLINK_PAGE_META, 0..=3) => page_deletion::unlink(page, change),
        (UNLINK_PAGE_META, 4) => tree_page::restore_meta(page, change),
        (NEWROOT, 0) => new_root(page, change),
        (NEWROOT, 1) => clear_incomplete_split(page),
        (NEWROOT, 2) => tree_page::restore_meta(page, change),
        (MARK_PAGE_HALFDEAD, 0 | 1) => page_deletion::mark_half_dead(page, change),
        (VACUUM, 0) => vacuum(page, change),
        (META_CLEANUP, 0) => tree_page::restore_meta(page, change),
        (0x00..=0xC0 | META_CLEANUP, _) => Err(change.unexpected_reference()),
        _ => Err(change.unexpected_kind()),
    }?;
    Ok(PageLsn::Advance)
}

/// One entry comes to lie under a number, those behind move up.
fn insert(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let number = change.main().u16()?;
    let mut page = TreePage::open(page)?;
    page.items.add(change.data().rest(), number, Numbering::Shift)
}

/// An entry whose heap TID lies within the posting list before it: the list takes it in and gives its last TID
/// away, which the new entry gets.
fn insert_into_posting(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let number = change.main().u16()?;
    let mut data = change.data();
    let place = data.u16()?;
    let mut entry = data.rest().to_vec();
    let mut page = TreePage::open(page)?;
    let list = page.items.item_mut(number.saturating_sub(1))?;
    posting::swap(&mut entry, list, place)?;
    page.items.add(&entry, number, Numbering::Shift)
}

/// The page above has got its downlink to the page that this one was split into.
fn clear_incomplete_split(page: &mut BlockBytes) -> Result<()> {
    let mut page = TreePage::open(page)?;
    page.change_flags(|flags| flags & !Flags::INCOMPLETE_SPLIT)
}

fn vacuum(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut page = delete_entries(page, change, change.main())?;
    page.set_cycle(0)?;
    page.change_flags(|flags| flags & !Flags::HAS_GARBAGE)
}

fn delete(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    main.bytes(DELETE_CONFLICT_BYTES)?;
    let mut page = delete_entries(page, change, main)?;
    page.change_flags(|flags| flags & !Flags::HAS_GARBAGE)
}

/// Takes TIDs out of posting lists, then whole entries off the page. `counts` stands where the main data says how
/// many there are of each.
fn delete_entries<'p>(
    page: &'p mut BlockBytes,
    change: Change<'_>,
    mut counts: Reader<'_>,
) -> Result<TreePage<'p>> {
    let (deleted, updated) = (usize::from(counts.u16()?), usize::from(counts.u16()?));
    let mut data = change.data();
    let (deleted, updated) = (numbers(&mut data, deleted)?, numbers(&mut data, updated)?);
    let mut page = TreePage::open(page)?;
    for number in updated {
        let count = data.u16()?;
        let without = numbers(&mut data, usize::from(count))?;
        let mut tuple = posting::without(page.items.item(number)?, &without)?;
        // The line pointer's length is the aligned one.
        tuple.resize(max_align(tuple.len()), 0);
        page.items.overwrite(number, &tuple)?;
    }
    page.items.delete_all(&deleted)?;
    Ok(page)
}

/// A root: empty, the first page of an index; or above the two halves of the old root.
fn new_root(page: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let mut main = change.main();
    main.u32()?; // the block's number, which the block reference says too
    let level = main.u32()?;
    let leaf = if level == 0 { Flags::LEAF } else { 0 };
    let mut page = TreePage::init(page, level, Flags::ROOT | leaf)?;
    if level == 0 {
        return Ok(());
    }
    restore_items(&mut page.items, change.data())
}

/// Fills an empty page with tuples as they lay on another: the one with the highest number first.
fn restore_items(items: &mut PageItems<'_>, mut data: Reader<'_>) -> Result<()> {
    let mut tuples = Vec::new();
    while !data.is_empty() {
        tuples.push(crate::index_page::next_aligned_tuple(&mut data)?);
    }
    for (number, tuple) in (1..).zip(tuples.iter().rev()) {
        items.add(tuple, number, Numbering::Shift)?;
    }
    Ok(())
}
