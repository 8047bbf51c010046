//! The index of a TOAST table: from a value to the places of its chunks.
//!
//! A B-tree over (`chunk_id`, `chunk_seq`). The way leads down to the leaf where the value's first
//! chunk would be, then right along the leaves. Pages are looked at where the buffer pool holds them; a
//! leaf's places are noted down, so that one page of the index is pinned at a time.
//!
//! Source: `_bt_search`, `_bt_moveright` and `_bt_binsrch` in `src/backend/access/nbtree/nbtsearch.c`,
//! PostgreSQL 14 to 18.

use pagemill_format::btree::{BtreeMeta, BtreePage, IndexTuple, META_BLOCK};
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Error as FormatError, Fork, Oid, Tid};
use pagemill_io::ForkFiles;
use pagemill_stream::{PageKey, PageReader, Strategy};

use crate::data_directory::Cluster;
use crate::error::{Damage, Error, Result};
use crate::page_check::{check_page, read_again};

/// Levels a B-tree of 32-bit block numbers cannot exceed.
const MAX_LEVELS: usize = 32;

/// The index of one TOAST table.
pub(crate) struct ToastIndex {
    files: ForkFiles,
    /// What the buffer pool calls these files.
    key: u64,
    root: Option<BlockNumber>,
}

impl ToastIndex {
    pub(crate) fn open(cluster: &Cluster, files: ForkFiles, key: u64) -> Result<Self> {
        let mut meta = [0; BLOCK_SIZE];
        read_checked(cluster, &files, META_BLOCK, &mut meta)?;
        let mut index = Self { files, key, root: None };
        index.root = BtreeMeta::parse(&meta).map_err(index.damage_in(META_BLOCK))?.root;
        Ok(index)
    }

    fn damage_in(&self, block: BlockNumber) -> impl Fn(FormatError) -> Error + Copy + '_ {
        move |error| {
            let (path, _) = self.files.locate(block);
            Damage::in_block(path, self.files.fork(), block, error.to_string()).into()
        }
    }

    fn corrupt(&self, block: BlockNumber, what: &str) -> Error {
        let (path, _) = self.files.locate(block);
        Damage::in_block(path, Fork::Main, block, format!("corrupt TOAST index: {what}")).into()
    }
}

/// Where a walk along the leaves goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// On this leaf, which may have more of the value.
    Leaf(BlockNumber),
    /// Nowhere: no leaf further right has more of the value.
    End,
}

/// A walk through an index, over shared pages.
pub(crate) struct IndexWalk<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) index: &'a ToastIndex,
    pub(crate) pages: &'a mut PageReader,
}

impl IndexWalk<'_> {
    fn page(&mut self, block: BlockNumber) -> Result<BtreePage<'_>> {
        let (cluster, index) = (self.cluster, self.index);
        let load = |page: &mut BlockBytes| read_checked(cluster, &index.files, block, page);
        let key = PageKey { file: index.key, block };
        let bytes = self.pages.get(key, Strategy::Normal, load)?;
        BtreePage::parse(bytes).map_err(index.damage_in(block))
    }

    /// Most leaves a walk can come through.
    pub(crate) fn most_leaves(&self) -> u32 {
        self.index.files.blocks()
    }

    /// The error of a walk that came through more leaves than there are.
    pub(crate) fn circle(&self, leaf: BlockNumber) -> Error {
        self.index.corrupt(leaf, "the leaf pages run in a circle")
    }

    /// The leaf where the first chunk of a value would be: `hint`, if it is the one.
    pub(crate) fn first_leaf(
        &mut self,
        value: Oid,
        hint: Option<BlockNumber>,
    ) -> Result<Option<BlockNumber>> {
        match hint {
            Some(leaf) if self.covers(leaf, value)? => Ok(Some(leaf)),
            _ => self.descend(value),
        }
    }

    /// Notes the places of all of a value's chunks that one leaf knows.
    pub(crate) fn places_on(
        &mut self,
        leaf: BlockNumber,
        value: Oid,
        places: &mut Vec<Tid>,
    ) -> Result<Continuation> {
        let damage = self.index.damage_in(leaf);
        let page = self.page(leaf)?;
        if !page.flags().is_ignored() && note_places(&page, value, places).map_err(damage)? {
            return Ok(Continuation::End);
        }
        Ok(page.next().map_or(Continuation::End, Continuation::Leaf))
    }

    /// True when the value's first chunk, if any, is on this leaf or right of it.
    fn covers(&mut self, leaf: BlockNumber, value: Oid) -> Result<bool> {
        let damage = self.index.damage_in(leaf);
        let page = self.page(leaf)?;
        if page.flags().is_ignored() || !page.is_leaf() {
            return Ok(false);
        }
        let high = page.high_key().map_err(damage)?;
        let first = page.items().next().transpose().map_err(damage)?;
        Ok(high.is_none_or(|high| (value, 0) < key_of(&high))
            && first.is_some_and(|first| key_of(&first) <= (value, 0)))
    }

    fn descend(&mut self, value: Oid) -> Result<Option<BlockNumber>> {
        let Some(mut block) = self.index.root else { return Ok(None) };
        let mut moves = 0;
        for _ in 0..MAX_LEVELS {
            block = self.move_right(block, value, &mut moves)?;
            let damage = self.index.damage_in(block);
            let page = self.page(block)?;
            if page.is_leaf() {
                return Ok(Some(block));
            }
            block = child(&page, value).map_err(damage)?;
        }
        Err(self.index.corrupt(block, "the tree is deeper than any can be"))
    }

    /// Passes pages that are no longer in use, and such as were split without their parent
    /// knowing.
    fn move_right(
        &mut self,
        from: BlockNumber,
        value: Oid,
        moves: &mut u32,
    ) -> Result<BlockNumber> {
        let mut block = from;
        loop {
            let damage = self.index.damage_in(block);
            let page = self.page(block)?;
            let high = page.high_key().map_err(damage)?;
            let beyond =
                page.flags().is_ignored() || high.is_some_and(|high| key_of(&high) < (value, 0));
            let Some(next) = page.next().filter(|_| beyond) else { return Ok(block) };
            *moves += 1;
            if *moves > self.index.files.blocks() {
                return Err(self.index.corrupt(block, "the pages of a level run in a circle"));
            }
            block = next;
        }
    }
}

/// Notes the places of a value's chunks; true once an entry behind the value's was met.
fn note_places(
    page: &BtreePage<'_>,
    value: Oid,
    places: &mut Vec<Tid>,
) -> Result<bool, FormatError> {
    for number in first_not_below(page, page.first_data_item(), value)?..=page.item_count() {
        let entry = page.item(number)?;
        if key_of(&entry).0 != value {
            return Ok(true);
        }
        if !entry.is_dead() {
            places.extend(entry.heap_tids());
        }
    }
    Ok(false)
}

/// The last downlink whose key is below the value's first chunk; the first downlink of a page
/// counts as below everything.
fn child(page: &BtreePage<'_>, value: Oid) -> Result<BlockNumber, FormatError> {
    let behind = first_not_below(page, page.first_data_item().saturating_add(1), value)?;
    Ok(page.item(behind.saturating_sub(1))?.downlink())
}

/// The first item from `low` on whose key is not below that of the value's first chunk; one more
/// than there are when all are.
fn first_not_below(page: &BtreePage<'_>, low: u16, value: Oid) -> Result<u16, FormatError> {
    let (mut low, mut high) = (low, page.item_count().saturating_add(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if key_of(&page.item(middle)?) < (value, 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// `chunk_id` and `chunk_seq` of an entry; what a pivot tuple leaves out sorts first.
fn key_of(entry: &IndexTuple<'_>) -> (Oid, i64) {
    let key = entry.key();
    let word = |at: usize| key.get(at..at + 4).and_then(|b| b.first_chunk::<4>());
    let columns = entry.key_columns().unwrap_or(2);
    let value = word(0).filter(|_| columns >= 1).map_or(0, |b| u32::from_le_bytes(*b));
    let sequence =
        word(4).filter(|_| columns >= 2).map_or(-1, |b| i64::from(i32::from_le_bytes(*b)));
    (Oid(value), sequence)
}

/// Reads a page and checks it.
pub(crate) fn read_checked(
    cluster: &Cluster,
    files: &ForkFiles,
    block: BlockNumber,
    page: &mut BlockBytes,
) -> Result<()> {
    files.read_block(block, page)?;
    match check_page(cluster, files, block, page) {
        Err(_) if cluster.is_live() => read_again(cluster, files, block, page),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: &[u8] =
        include_bytes!("../../pagemill-format/fixtures/btree/toast-leaf-18-start.bin");
    const END: &[u8] = include_bytes!("../../pagemill-format/fixtures/btree/toast-leaf-18-end.bin");

    /// A leaf of a real index.
    fn leaf() -> BlockBytes {
        let mut page = [0; BLOCK_SIZE];
        page[..START.len()].copy_from_slice(START);
        page[BLOCK_SIZE - END.len()..].copy_from_slice(END);
        page
    }

    fn keys(page: &BtreePage<'_>) -> Vec<(Oid, i64)> {
        page.items().map(|entry| key_of(&entry.unwrap())).collect()
    }

    #[test]
    fn the_entries_of_a_real_index_are_in_the_order_of_their_keys() {
        let bytes = leaf();
        let keys = keys(&BtreePage::parse(&bytes).unwrap());
        assert!(keys.len() > 1 && keys.is_sorted_by(|one, next| one < next), "{keys:?}");
        assert!(keys.iter().all(|(value, sequence)| value.0 > 0 && *sequence >= 0), "{keys:?}");
    }

    #[test]
    fn every_value_of_a_real_leaf_is_found_with_all_its_chunks() {
        let bytes = leaf();
        let page = BtreePage::parse(&bytes).unwrap();
        let keys = keys(&page);
        let last = keys.last().unwrap().0;
        for (value, _) in &keys {
            let mut places = Vec::new();
            let ended = note_places(&page, *value, &mut places).unwrap();
            assert_eq!(places.len(), keys.iter().filter(|key| key.0 == *value).count());
            assert_eq!(ended, *value != last);
        }
    }

    #[test]
    fn a_value_that_is_not_there_has_no_places() {
        let bytes = leaf();
        let page = BtreePage::parse(&bytes).unwrap();
        for (value, ended) in [(Oid(1), true), (Oid(u32::MAX), false)] {
            let mut places = Vec::new();
            assert_eq!(note_places(&page, value, &mut places).unwrap(), ended);
            assert_eq!(places, []);
        }
    }

    proptest! {
        #[test]
        fn keys_of_any_entries_never_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
            value: u32,
        ) {
            let mut bytes = leaf();
            for (at, byte) in changes {
                bytes[at.index(BLOCK_SIZE)] = byte;
            }
            let Ok(page) = BtreePage::parse(&bytes) else { return Ok(()) };
            for entry in page.items().flatten() {
                let _ = key_of(&entry);
            }
            let _ = note_places(&page, Oid(value), &mut Vec::new());
            let _ = child(&page, Oid(value));
        }
    }
}
