//! Page splits: the right half comes from the record, the left half is what it had before, without what went to
//! the right, and with the new entry, if that one came to lie there, and a new high key.
//!
//! The left page is written anew, item by item, since that is how the server made it: the order of the tuples
//! on the page follows from it. If the new entry split a posting list, the record has the entry as it was before,
//! and the list and the entry swap a TID again.
//!
//! Source: `btree_xlog_split` in `src/backend/access/nbtree/nbtxlog.c`, PostgreSQL 14 to 18.

use pagemill_format::{BLOCK_SIZE, BlockBytes, Result};

use super::tree_page::{Flags, NONE, TreePage};
use super::{clear_incomplete_split, posting, restore_items};
use crate::change::Change;
use crate::index_page::next_aligned_tuple;
use crate::page_items::{Numbering, PageItems};

const RIGHT: u8 = 1;
const RIGHT_OF_RIGHT: u8 = 2;

/// What the record says of the split.
struct Split {
    level: u32,
    /// The first of the old items that went to the right.
    first_right: u16,
    /// The number of the new entry, had the page not been split.
    new_item: u16,
    /// The place in the posting list before it that it split; 0 for none.
    posting_place: u16,
}

impl Split {
    fn read(change: Change<'_>) -> Result<Self> {
        let mut main = change.main();
        Ok(Self {
            level: main.u32()?,
            first_right: main.u16()?,
            new_item: main.u16()?,
            posting_place: main.u16()?,
        })
    }

    fn leaf_flag(&self) -> u16 {
        if self.level == 0 { Flags::LEAF } else { 0 }
    }
}

/// Applies a split to one of its blocks. `is_left` when the new entry lies in the left half.
pub(super) fn redo(page: &mut BlockBytes, change: Change<'_>, is_left: bool) -> Result<()> {
    let split = Split::read(change)?;
    match change.reference() {
        0 => left(page, change, &split, is_left),
        RIGHT => right(page, change, &split),
        RIGHT_OF_RIGHT => TreePage::open(page)?.set_previous(change.needed(RIGHT)?),
        3 => clear_incomplete_split(page),
        _ => Err(change.unexpected_reference()),
    }
}

fn right(page: &mut BlockBytes, change: Change<'_>, split: &Split) -> Result<()> {
    let mut page = TreePage::init(page, split.level, split.leaf_flag())?;
    page.set_previous(change.needed(0)?)?;
    page.set_next(change.other(RIGHT_OF_RIGHT).unwrap_or(NONE))?;
    restore_items(&mut page.items, change.data())
}

/// What changes among the items that stay on the left page.
struct Replacements {
    /// The new entry, if it lies on this page.
    entry: Option<Vec<u8>>,
    /// The posting list before it, with the TID it took from the entry.
    list: Option<Vec<u8>>,
    high_key: Vec<u8>,
}

fn left(bytes: &mut BlockBytes, change: Change<'_>, split: &Split, is_left: bool) -> Result<()> {
    let mut room = [0; BLOCK_SIZE];
    let mut page = TreePage::open(bytes)?;
    let replacements = replacements(&page.items, change, split, is_left)?;
    let mut new = page.emptied(&mut room)?;
    let first = page.first_data_item()?;
    replacements.fill_left(&page.items, &mut new.items, split, first)?;
    new.change_flags(|_| Flags::INCOMPLETE_SPLIT | split.leaf_flag())?;
    new.set_next(change.needed(RIGHT)?)?;
    new.set_cycle(0)?;
    *bytes = room;
    Ok(())
}

/// What the record has for the left page: the new entry, if needed, and the high key.
fn replacements(
    items: &PageItems<'_>,
    change: Change<'_>,
    split: &Split,
    is_left: bool,
) -> Result<Replacements> {
    let mut data = change.data();
    let mut found = Replacements { entry: None, list: None, high_key: Vec::new() };
    if is_left || split.posting_place != 0 {
        let mut entry = next_aligned_tuple(&mut data)?.to_vec();
        if split.posting_place != 0 {
            let mut list = items.item(split.new_item.saturating_sub(1))?.to_vec();
            posting::swap(&mut entry, &mut list, split.posting_place)?;
            found.list = Some(list);
        }
        // A new entry on the right page is among that page's items.
        found.entry = is_left.then_some(entry);
    }
    found.high_key = next_aligned_tuple(&mut data)?.to_vec();
    if !data.is_empty() {
        return Err(data.corrupt("more than a new entry and a high key"));
    }
    Ok(found)
}

impl Replacements {
    /// Adds the high key, and the old items from `first` on that stay, with the new entry among them.
    fn fill_left(
        &self,
        old: &PageItems<'_>,
        new: &mut PageItems<'_>,
        split: &Split,
        first: u16,
    ) -> Result<()> {
        let mut next = 1;
        let mut add = |tuple: &[u8]| {
            new.add(tuple, next, Numbering::Shift)?;
            next += 1;
            Ok(())
        };
        add(&self.high_key)?;
        for number in first..split.first_right {
            // The list lies right before the new entry, which therefore is another item.
            if let Some(list) = &self.list
                && number + 1 == split.new_item
            {
                add(list)?;
                continue;
            }
            if let Some(entry) = &self.entry
                && number == split.new_item
            {
                add(entry)?;
            }
            add(old.item(number)?)?;
        }
        match &self.entry {
            Some(entry) if split.first_right.max(first) == split.new_item => add(entry),
            _ => Ok(()),
        }
    }
}
