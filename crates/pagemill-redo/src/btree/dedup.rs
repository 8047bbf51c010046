//! Deduplication: neighbors with the same key become posting lists.
//!
//! Source: `btree_xlog_dedup` in `src/backend/access/nbtree/nbtxlog.c`, `_bt_dedup_start_pending`,
//! `_bt_dedup_save_htid` and `_bt_dedup_finish_pending` in `src/backend/access/nbtree/nbtdedup.c`,
//! PostgreSQL 14 to 18.

use pagemill_format::{BLOCK_SIZE, BlockBytes, Result};

use super::posting::{Entry, form};
use super::tree_page::{Flags, TreePage};
use crate::change::Change;
use crate::index_page::{numbers, tuple_size};
use crate::page_items::{Numbering, PageItems};

/// Writes the page anew, with the items of each interval of the record as one.
pub(super) fn redo(bytes: &mut BlockBytes, change: Change<'_>) -> Result<()> {
    let count = change.main().u16()?;
    let intervals = numbers(&mut change.data(), usize::from(count) * 2)?;
    let mut intervals = intervals.as_chunks::<2>().0.iter().peekable();
    let mut room = [0; BLOCK_SIZE];
    let mut page = TreePage::open(bytes)?;
    let mut new = page.emptied(&mut room)?;
    let first = page.first_data_item()?;
    let mut number = 1;
    while number <= page.items.count() {
        let interval = intervals.next_if(|[base, _]| *base == number && number >= first);
        let Some([_, items]) = interval else {
            add_last(&mut new.items, whole(page.items.item(number)?)?)?;
            number += 1;
            continue;
        };
        if *items < 2 {
            return Err(change.corrupt(format!("{items} items become one")));
        }
        let merged = merge(&page.items, number, *items)?;
        add_last(&mut new.items, &merged)?;
        number += items;
    }
    if let Some([base, _]) = intervals.next() {
        return Err(change.corrupt(format!("item {base} is to be merged, out of order")));
    }
    new.change_flags(|flags| flags & !Flags::HAS_GARBAGE)?;
    *bytes = room;
    Ok(())
}

fn add_last(items: &mut PageItems<'_>, tuple: &[u8]) -> Result<()> {
    items.add(tuple, items.count() + 1, Numbering::Shift)
}

/// The tuple in what a line pointer points to.
fn whole(item: &[u8]) -> Result<&[u8]> {
    Ok(item.get(..tuple_size(item)?).unwrap_or(item))
}

/// The entry that so many entries from this one on become.
fn merge(items: &PageItems<'_>, base: u16, count: u16) -> Result<Vec<u8>> {
    let first = Entry::parse(whole(items.item(base)?)?)?;
    let mut tids = first.tids.to_vec();
    for number in (base..).take(usize::from(count)).skip(1) {
        tids.extend_from_slice(Entry::parse(whole(items.item(number)?)?)?.tids);
    }
    form(first.key, &tids)
}
