//! Leaves of posting trees: several compressed lists behind one another, and records that change some of them.
//!
//! Sources: `ginRedoRecompress` in `src/backend/access/gin/ginxlog.c`, `dataPlaceToPageLeafRecompress` in
//! `src/backend/access/gin/gindatapage.c`, PostgreSQL 14 to 18.

use pagemill_format::page::Page;
use pagemill_format::reader::Reader;
use pagemill_format::{BlockBytes, Error, Result};

use super::posting_list::{decode, encode, first_list, merge, tids};
use super::{COMPRESSED, ITEMS, TREE_DATA, TREE_DATA_END, change_flags, open, set_item_count};
use crate::index_page::{TID_BYTES, put, set_lower, u16_at};

const DELETE: u8 = 1;
const INSERT: u8 = 2;
const REPLACE: u8 = 3;
const ADD_ITEMS: u8 = 4;

/// Puts these lists in the place of what the page has.
pub(super) fn set_lists(page: &mut BlockBytes, lists: &[u8]) -> Result<()> {
    let end = TREE_DATA + lists.len();
    if end > TREE_DATA_END {
        return Err(damaged(format!("lists of {} bytes do not fit", lists.len())));
    }
    put(page, TREE_DATA, lists)?;
    set_lower(page, end)
}

/// Applies what a record says of the lists: an action for each that changes.
pub(super) fn recompress(page: &mut BlockBytes, mut actions: Reader<'_>) -> Result<()> {
    open(page)?;
    let old = lists(page)?;
    let mut old = old.as_slice();
    let mut new = Vec::with_capacity(old.len());
    let mut passed = 0;
    for _ in 0..actions.u16()? {
        let (place, action) = (actions.u8()?, actions.u8()?);
        if place < passed {
            return Err(actions.corrupt(format!("list {place} comes after list {passed}")));
        }
        while passed < place {
            new.extend_from_slice(take_list(&mut old)?);
            passed += 1;
        }
        match action {
            DELETE => _ = take_list(&mut old)?,
            INSERT => new.extend_from_slice(given_list(&mut actions)?),
            REPLACE => {
                take_list(&mut old)?;
                new.extend_from_slice(given_list(&mut actions)?);
            }
            ADD_ITEMS => {
                let added = usize::from(actions.u16()?) * TID_BYTES;
                let added = tids(actions.bytes(added)?)?;
                new.extend(encode(&merge(&added, &decode(take_list(&mut old)?)?))?);
            }
            _ => return Err(actions.corrupt(format!("action {action} on a list"))),
        }
        // A list that is inserted is none of the old ones.
        passed = if action == INSERT { passed } else { passed.saturating_add(1) };
    }
    new.extend_from_slice(old);
    set_lists(page, &new)
}

/// The lists of the page; one, if the page is of before 9.4 and has its TIDs uncompressed.
fn lists(page: &mut BlockBytes) -> Result<Vec<u8>> {
    let lower = usize::from(Page::new(page).header().lower);
    let mut items = open(page)?;
    let (count, mut is_compressed) = (u16_at(items.special(), ITEMS)?, false);
    change_flags(&mut items, |flags| {
        is_compressed = flags & COMPRESSED != 0;
        flags | COMPRESSED
    })?;
    if is_compressed {
        let lists = page.get(TREE_DATA..lower);
        return lists.map(<[u8]>::to_vec).ok_or_else(|| damaged("it ends before its lists"));
    }
    set_item_count(&mut items, 0)?;
    let end = TREE_DATA + usize::from(count) * TID_BYTES;
    let stored = page.get(TREE_DATA..end).filter(|_| end <= TREE_DATA_END);
    encode(&tids(stored.ok_or_else(|| damaged(format!("{count} TIDs do not fit")))?)?)
}

/// The next of the old lists.
fn take_list<'a>(old: &mut &'a [u8]) -> Result<&'a [u8]> {
    let list = first_list(old)?;
    *old = old.get(list.len()..).unwrap_or_default();
    Ok(list)
}

/// The list that comes with an action.
fn given_list<'a>(actions: &mut Reader<'a>) -> Result<&'a [u8]> {
    let length = first_list(actions.clone().rest())?.len();
    actions.bytes(length)
}

#[cold]
fn damaged(what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::corrupt("leaf of a posting tree", 0, what)
}
